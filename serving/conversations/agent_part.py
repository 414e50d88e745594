"""The agents' part in a conversation with a person, which follows a real clock."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from agents.answers import Message, TurnAnswer
from serving.conversations.transcript import Transcript


class AgentPart:
    """The agents' part in a conversation on a real clock. Use :meth:`run` as a task, and :meth:`wake` after a person's
    message.

    ``clock`` returns the seconds since the conversation's start. ``ask`` returns the reply of a side's agent, or None
    where it failed; it is then asked again after the person's next message. ``send`` sends the first typed message of a
    side (:meth:`Transcript.send`).
    """

    def __init__(
        self,
        transcript: Transcript,
        clock: Callable[[], float],
        ask: Callable[[int], Awaitable[TurnAnswer | None]],
        send: Callable[[int], Awaitable[Message]],
    ) -> None:
        self.transcript = transcript
        self.clock = clock
        self._ask = ask
        self._send = send
        self._woken = asyncio.Event()
        self._has_failed = False

    async def run(self) -> None:
        """Call agents and send their messages when they are due, until the conversation has ended. Raises what ``ask``
        and ``send`` raise."""
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
        """Look at the transcript again, because a person has written; an agent that failed is asked again."""
        self._has_failed = False
        self._woken.set()

    async def send_due(self) -> None:
        """Send all messages whose time has come."""
        while (event := self.transcript.next_event) is not None and event.what == "send" and event.at <= self.clock():
            await self._send(event.side)

    async def _call(self, side: int) -> None:
        transcript = self.transcript
        at = self.clock()
        read = transcript.call(side)
        answer = await self._ask(side)
        if answer is None:
            transcript.unread[side] = read + (transcript.unread[side] or 0)
            self._has_failed = True
        else:
            transcript.type(side, answer, read, at, answered=self.clock())
