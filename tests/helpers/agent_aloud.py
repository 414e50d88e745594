"""An agent that says a piece of its answer and waits, and a client of OpenAI's interface that reads it as it comes."""

import asyncio
import json
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from null_agent import ContinuousNullAgent, NullAgent

from agents.answers import TurnAnswer
from agents.contract import Draw, Reply
from agents.errors import AnswerError
from agents.stimuli import Stimulus
from tests.helpers import served_here

CHAT = "/v1/chat/completions"
HELLO = [{"role": "user", "content": "I like books."}]
PATIENCE = 600


class Aloud:
    """The no-op agent, which says ``began`` and waits until that may go on, then replies."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, reply: str | AnswerError, began: str = "One ") -> None:
        self.go_on = threading.Event()
        self.listened: list[bool] = []  # whether anybody did
        self.waited = False

        def say(draw: Draw) -> None:
            self.listened.append(draw.say is not None)
            if draw.say is not None:
                draw.say(began)

        def answer() -> Reply | AnswerError:
            return reply if isinstance(reply, AnswerError) else Reply(TurnAnswer(text=reply))

        def respond(agent: NullAgent, batch: Sequence[Stimulus], draws: Sequence[Draw]) -> list[Reply | AnswerError]:
            for draw in draws:
                say(draw)
            self.waited = self.go_on.wait(PATIENCE)
            return [answer() for _ in draws]

        async def respond_one(agent: ContinuousNullAgent, prepared: Any, draw: Draw) -> Reply:
            say(draw)
            self.waited = await asyncio.to_thread(self.go_on.wait, PATIENCE)
            found = answer()
            if isinstance(found, AnswerError):
                raise found
            return found

        monkeypatch.setattr(NullAgent, "respond", respond)
        monkeypatch.setattr(ContinuousNullAgent, "respond_one", respond_one)


async def streamed(found: served_here.Here, then: Callable[[], None], path: str = CHAT, **more: Any) -> list[Any]:
    """What is sent; ``then`` is called when the first piece is."""
    [name] = found.service.agents
    said = {"messages": HELLO} if path == CHAT else {"input": HELLO}
    told = {"model": name, **said, "stream": True, "seed": 7, **more}
    asking = asyncio.create_task(found.hang_up(path, json.dumps(told).encode()))
    async with asyncio.timeout(PATIENCE):
        while not found.sent:
            assert not asking.done()
            await asyncio.sleep(0.001)
        then()
        return await asking
