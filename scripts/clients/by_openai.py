"""openai for Python."""

import openai
from calls import CHINA, COLOR, FIRST, KEY, NEXT_REPLY, REPLY, SECOND, SEED, SEEDED, URL, attempt, joined, same
from pydantic import BaseModel

client = openai.OpenAI(base_url=URL, api_key=KEY)
ask = client.chat.completions.create
user = {"role": "user", "content": FIRST}
text = {"type": "text", "text": FIRST}
talk = [user, {"role": "assistant", "content": REPLY}, {"role": "user", "content": SECOND}]
image = {"type": "image_url", "image_url": {"url": f"data:image/jpeg;base64,{CHINA}"}}
function = {"name": "add", "description": "Adds.", "parameters": {"type": "object", "properties": {}}}
tools = [{"type": "function", "function": function}]


class Mood(BaseModel):
    mood: str


def chat(messages=(user,), model="eliza", **options):
    return ask(model=model, messages=list(messages), **options).choices[0].message.content


def streamed(**options):
    chunks = ask(model="eliza", messages=[user], stream=True, **options)
    return joined(chunk.choices[0].delta.content for chunk in chunks if chunk.choices)


def handed_back():
    """A message as it came, with all its fields (refusal, audio, tool_calls: None)."""
    message = ask(model="eliza", messages=[user]).choices[0].message
    return chat([user, message, talk[2]])


def response(**options):
    return client.responses.create(model="eliza", **options).output_text


def response_streamed():
    events = list(client.responses.create(model="eliza", input=FIRST, stream=True))
    whole = joined(event.delta for event in events if event.type == "response.output_text.delta")
    if events[-1].type != "response.completed" or events[-1].response.output_text != whole:
        raise ValueError(f"the last event is {events[-1]}")
    return whole


def response_handed_back():
    """The first answer's output items, as they came."""
    first = client.responses.create(model="eliza", input=FIRST)
    return response(input=[user, *first.output, talk[2]])


def completed():
    return client.completions.create(model="eliza", prompt=FIRST).choices[0].text


def completion_streamed():
    return joined(
        chunk.choices[0].text for chunk in client.completions.create(model="eliza", prompt=FIRST, stream=True)
    )


attempt("models", lambda: client.models.retrieve(client.models.list().data[0].id).id, "eliza")
attempt("chat", chat)
attempt("stream", streamed)
attempt("stream with usage", lambda: streamed(stream_options={"include_usage": True}))
attempt("second turn", lambda: chat(talk), NEXT_REPLY)
attempt("message handed back", handed_back, NEXT_REPLY)
attempt(
    "system, options", lambda: chat([{"role": "developer", "content": "Be kind."}, user], max_tokens=50, store=True)
)
attempt("seed", lambda: same(lambda: chat(seed=SEED)), sends=SEEDED)
attempt("seed -1", lambda: chat(seed=-1))
attempt("n=2", lambda: ask(model="eliza", messages=[user], n=2).choices[0].message.content)
attempt("picture", lambda: chat([{"role": "user", "content": [image]}], "mmcq"), COLOR)
attempt("earlier picture", lambda: chat([{"role": "user", "content": [image, text]}, *talk[1:]]), NEXT_REPLY)
attempt("tools", lambda: chat(tools=tools))
attempt("tools required", lambda: chat(tools=tools, tool_choice="required"), refused=400)
attempt(
    "parse",
    lambda: str(client.chat.completions.parse(model="eliza", messages=[user], response_format=Mood)),
    refused=400,
)
attempt("responses", lambda: response(input=FIRST))
attempt("responses, stream", response_streamed)
attempt("responses, second turn", lambda: response(input=talk), NEXT_REPLY)
attempt("responses, items handed back", response_handed_back, NEXT_REPLY)
attempt(
    "responses, instructions and tools",
    lambda: response(input=FIRST, instructions="Be kind.", tools=[{"type": "function", **function, "strict": False}]),
)
attempt("responses, previous_response_id", lambda: response(input=SECOND, previous_response_id="resp_1"), refused=400)
attempt(
    "responses, parse", lambda: str(client.responses.parse(model="eliza", input=FIRST, text_format=Mood)), refused=400
)
attempt("completions", completed)
attempt("completions, stream", completion_streamed)
attempt("embeddings", lambda: str(client.embeddings.create(model="eliza", input=FIRST)), refused=404)
