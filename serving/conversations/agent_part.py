"""An agent's part in a conversation on a real clock: it is called when due, and its messages go out when typed."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from agents.answers import Message, TurnAnswer
from serving.conversations.transcript import Transcript


class AgentPart:
    """Use :meth:`run` as a task, and :meth:`wake` after each message of a person.

    ``clock`` returns the seconds since the conversation's start. ``ask`` returns the reply of a side's agent; None
    if it has failed, and is called again when a person writes. ``send`` publishes what a side has typed.
    """

    def __init__(
        self,
        transcript: Transcript,
        clock: Callable[[], float],
        ask: Callable[[int], Awaitable[TurnAnswer | None]],
        send: Callable[[int], Awaitable[Message]],
    ) -> None:
        self.transcript, self.clock = transcript, clock
        self._ask, self._send = ask, send
        self._woken = asyncio.Event()
        self._has_failed = False

    async def run(self) -> None:
        """Until the conversation is over. Raises what ``ask`` and ``send`` raise."""
        transcript = self.transcript
        while True:
            await self.send_due()
            if transcript.ended:
                return
            event = transcript.next_event
            if event is not None and event.what == "call" and self._has_failed:
                event = None
            if event is None or event.at > self.clock():
                self._woken.clear()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._woken.wait(), None if event is None else event.at - self.clock())
            elif event.what == "call":
                await self._call(event.side)

    def wake(self) -> None:
        """A person has written: what is due has changed, and an agent that failed may be called again."""
        self._has_failed = False
        self._woken.set()

    async def send_due(self) -> None:
        """Send the messages whose time has come."""
        while (event := self.transcript.next_event) is not None and event.what == "send" and event.at <= self.clock():
            await self._send(event.side)

    async def _call(self, side: int) -> None:
        transcript, at = self.transcript, self.clock()
        read = transcript.call(side)
        answer = await self._ask(side)
        if answer is None:
            transcript.unread[side] = read + (transcript.unread[side] or 0)
            self._has_failed = True
        else:
            transcript.type(side, answer, read, at, answered=self.clock())
