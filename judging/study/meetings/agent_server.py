"""The client of the `turinglike serve` that answers for a study's agents."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import orjson

from agents.answers import is_blank
from agents.loopback import client_options, is_loopback

if TYPE_CHECKING:
    import httpx

TRIES = 3
"""How often an agent is asked for an answer before its meeting is void."""
PAUSE = 1.0
"""Seconds between tries."""
MOST_AT_ONCE = 256
"""Requests that are under way at a time."""
MOST_BYTES = 1 << 22
"""The size of a reply; a longer one is an error."""
T = TypeVar("T")


class NoAnswerError(Exception):
    """An agent gave no answer that can be used. The text names it and says why."""


class AgentClient:
    """Asks the servers of agents. What any of them sends is foreign: nothing in it may end the study's server."""

    def __init__(self) -> None:
        self._clients: dict[bool, httpx.AsyncClient] = {}  # of servers on this machine, and of others

    async def answer(
        self, server: str, agent: str, row: dict[str, Any], read: Callable[[Any], T], *, seconds: float, **more: Any
    ) -> T:
        """What ``read`` makes of an agent's answer, from another sample at each try.

        ``row`` is the stimulus, ``more`` are further keys of the request. An exception of ``read`` is a failed try.
        Raises NoAnswerError after the last try, or after ``seconds``.
        """
        why = ""
        try:
            async with asyncio.timeout(seconds):
                for sample in range(TRIES):
                    await asyncio.sleep(PAUSE if sample else 0)
                    try:
                        record = await self.record(server, {"agent": agent, "stimulus": row, "sample": sample, **more})
                        if (error := record.get("error")) is not None:
                            raise ValueError(f"{error['code']}: {error['message']}")
                        return read(record["answer"])
                    except Exception as error:  # whatever a reply of another program makes of it is a failed try
                        why = f"{type(error).__name__}: {error}"
        except TimeoutError:
            why = f"no answer within {seconds:g} s"
        raise NoAnswerError(f"{agent}: {' '.join(why.split())}"[:300].strip(": "))

    async def record(self, server: str, body: dict[str, Any]) -> dict[str, Any]:
        """The record that a server replies to a request. Raises OSError, ValueError, and the HTTP client's errors."""
        async with self._client(server).stream("POST", f"{server.rstrip('/')}/answers", json=body) as reply:
            data = b""
            async for part in reply.aiter_raw():
                data += part
                if len(data) > MOST_BYTES:
                    raise ValueError("its reply is too long")
        value = orjson.loads(data) if reply.is_success or data.startswith(b"{") else {}
        if not isinstance(value, dict):
            raise ValueError("its reply is no object")
        if not reply.is_success:
            error = value.get("error", {})  # without the id, which is of a single request
            raise OSError(f"{reply.status_code}: {error.get('code', '')}: {error.get('message', '')}")
        return value

    async def close(self) -> None:
        """Close all connections."""
        for client in self._clients.values():
            await client.aclose()

    def _client(self, server: str) -> httpx.AsyncClient:
        import httpx  # half a second, which most commands do without

        is_here = is_loopback(server)
        if is_here not in self._clients:
            # Each question has a connection of its own: an idle connection may be cut as it is used.
            limits = httpx.Limits(max_connections=MOST_AT_ONCE, max_keepalive_connections=0)
            self._clients[is_here] = httpx.AsyncClient(
                limits=limits, timeout=None, headers={"accept-encoding": "identity"}, **client_options(server)
            )
        return self._clients[is_here]


def text_of(answer: Any) -> str:
    """The message in an agent's answer. Raises ValueError, KeyError, IndexError or TypeError where there is none."""
    text = answer["messages"][0]["text"]
    if not isinstance(text, str):
        raise ValueError("its message is no text")
    if is_blank(text):
        raise ValueError("says nothing")
    return text


def served_agents(server: str) -> tuple[dict[str, list[str]], str]:
    """A server's agents with their tasks, and "" or, where they cannot be had, why. Raises nothing."""
    import httpx

    try:
        with httpx.Client(timeout=10, **client_options(server)) as client:
            reply = client.get(f"{server.rstrip('/')}/agents").raise_for_status().json()
        return {str(agent["name"]): list(agent["tasks"]) for agent in reply["agents"]}, ""
    except (httpx.ConnectError, httpx.TimeoutException):
        return {}, f"{server} does not answer; start `turinglike serve`"
    except Exception as error:  # anything may come from another program
        return {}, f"{server} is no `turinglike serve`: it sends no list of agents ({type(error).__name__})"
