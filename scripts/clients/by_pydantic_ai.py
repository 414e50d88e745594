"""pydantic-ai: `openai:` (it asks /v1/responses) and `openai-chat:`, told where to ask by OpenAI's own variables."""

import base64
import os

from calls import CHINA, COLOR, FIRST, KEY, NEXT_REPLY, SECOND, SEED, SEEDED, URL, attempt, joined, same
from pydantic import BaseModel
from pydantic_ai import Agent, BinaryContent
from pydantic_ai.settings import ModelSettings

os.environ |= {"OPENAI_BASE_URL": URL, "OPENAI_API_KEY": KEY}


class Mood(BaseModel):
    mood: str


def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


def streamed(agent):
    return joined(agent.run_stream_sync(FIRST).stream_text(delta=True, debounce_by=None))


def talk(agent):
    one = agent.run_sync(FIRST)
    return agent.run_sync(SECOND, message_history=one.all_messages()).output


for kind in ("openai:", "openai-chat:"):
    agent = Agent(f"{kind}eliza", instructions="Be kind.")
    seeded = ModelSettings(seed=SEED, temperature=1.0, max_tokens=50)
    sent = SEEDED if kind == "openai-chat:" else {}  # the responses that OpenAI offers have no seed
    image = BinaryContent(data=base64.b64decode(CHINA), media_type="image/jpeg")
    attempt(f"{kind} run", lambda a=agent: a.run_sync(FIRST).output)
    attempt(f"{kind} stream", lambda a=agent: streamed(a))
    attempt(f"{kind} history", lambda a=agent: talk(a), NEXT_REPLY)
    attempt(
        f"{kind} seed", lambda a=agent, s=seeded: same(lambda: a.run_sync(FIRST, model_settings=s).output), sends=sent
    )
    attempt(f"{kind} picture", lambda k=kind, i=image: Agent(f"{k}mmcq").run_sync([i]).output, COLOR)
    attempt(f"{kind} tools", lambda k=kind: Agent(f"{k}eliza", tools=[add]).run_sync(FIRST).output)
    attempt(
        f"{kind} output_type", lambda k=kind: str(Agent(f"{k}eliza", output_type=Mood).run_sync(FIRST)), refused=400
    )
