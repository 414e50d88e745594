"""litellm."""

import litellm
from calls import FIRST, KEY, NEXT_REPLY, REPLY, SECOND, SEED, SEEDED, URL, attempt, joined, same

where = {"api_base": URL, "api_key": KEY}
user = {"role": "user", "content": FIRST}
talk = [user, {"role": "assistant", "content": REPLY}, {"role": "user", "content": SECOND}]
tools = [{"type": "function", "function": {"name": "add", "parameters": {"type": "object", "properties": {}}}}]


def chat(model="openai/eliza", messages=(user,), **options):
    return litellm.completion(model, list(messages), **where, **options).choices[0].message.content


def streamed(model):
    chunks = litellm.completion(model, [user], stream=True, **where)
    return joined(chunk.choices[0].delta.content for chunk in chunks)


def output_text(response):
    return "".join(part.text for item in response.output for part in item.content)


def response_streamed():
    events = litellm.responses(model="openai/eliza", input=FIRST, stream=True, **where)
    return joined(event.delta for event in events if event.type == "response.output_text.delta")


attempt("openai/", chat)
attempt("openai/ stream", lambda: streamed("openai/eliza"))
attempt("openai/ second turn", lambda: chat(messages=talk), NEXT_REPLY)
attempt("openai/ seed", lambda: same(lambda: chat(seed=SEED, temperature=1)), sends=SEEDED)
attempt("openai/ tools", lambda: chat(tools=tools))
attempt("hosted_vllm/", lambda: chat("hosted_vllm/eliza"))
attempt("hosted_vllm/ stream", lambda: streamed("hosted_vllm/eliza"))
attempt("responses", lambda: output_text(litellm.responses(model="openai/eliza", input=FIRST, **where)))
attempt("responses, stream", response_streamed)
attempt(
    "text_completion",
    lambda: litellm.text_completion(model="text-completion-openai/eliza", prompt=FIRST, **where).choices[0].text,
)
attempt("embedding", lambda: str(litellm.embedding("openai/eliza", [FIRST], **where)), refused=404)
