"""LangChain for Python."""

import asyncio

from calls import CHINA, COLOR, FIRST, KEY, NEXT_REPLY, REPLY, SECOND, SEED, SEEDED, URL, attempt, joined, same
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI, OpenAI
from pydantic import BaseModel


class Mood(BaseModel):
    """A mood."""

    mood: str


@tool
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


def chat(agent="eliza", **options):
    return ChatOpenAI(model=agent, base_url=URL, api_key=KEY, **options)


def shown(image):
    return chat("mmcq").invoke([HumanMessage([image])]).text


def by_agent(tools):
    made = create_agent(chat(), tools=tools, system_prompt="Be kind.")
    one = made.invoke({"messages": [HumanMessage(FIRST)]})
    return made.invoke({"messages": [*one["messages"], HumanMessage(SECOND)]})["messages"][-1].text


async def streamed_async():
    return joined([chunk.text async for chunk in chat().astream(FIRST)])


eliza = chat()
talk = [SystemMessage("Be kind."), HumanMessage(FIRST), AIMessage(REPLY), HumanMessage(SECOND)]
url_form = {"type": "image_url", "image_url": {"url": f"data:image/jpeg;base64,{CHINA}"}}
own_form = {"type": "image", "base64": CHINA, "mime_type": "image/jpeg"}
earlier = [HumanMessage([own_form, {"type": "text", "text": FIRST}]), *talk[2:]]
responses = chat(use_responses_api=True)

attempt("invoke", lambda: eliza.invoke(FIRST).text)
attempt("stream", lambda: joined(chunk.text for chunk in eliza.stream(FIRST)))
attempt("astream", lambda: asyncio.run(streamed_async()))
attempt("second turn", lambda: eliza.invoke(talk).text, NEXT_REPLY)
attempt(
    "seed, options",
    lambda: same(lambda: chat(seed=SEED, temperature=1, max_tokens=50).invoke(FIRST).text),
    sends=SEEDED,
)
attempt("image_url", lambda: shown(url_form), COLOR)
attempt("image block", lambda: shown(own_form), COLOR)
attempt("earlier picture", lambda: eliza.invoke(earlier).text, NEXT_REPLY)
attempt("create_agent", lambda: by_agent([]), NEXT_REPLY)
attempt("create_agent with tools", lambda: by_agent([add]), NEXT_REPLY)
attempt("bind_tools", lambda: eliza.bind_tools([add]).invoke(FIRST).text)
attempt("bind_tools, any", lambda: eliza.bind_tools([add], tool_choice="any").invoke(FIRST).text, refused=400)
attempt("with_structured_output", lambda: str(eliza.with_structured_output(Mood).invoke(FIRST)), refused=400)
attempt("use_responses_api", lambda: responses.invoke(FIRST).text)
attempt("use_responses_api, stream", lambda: joined(chunk.text for chunk in responses.stream(FIRST)))
attempt("use_responses_api, second turn", lambda: responses.invoke(talk).text, NEXT_REPLY)
attempt("OpenAI (completions)", lambda: OpenAI(model="eliza", base_url=URL, api_key=KEY).invoke(FIRST))
