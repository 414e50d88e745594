"""A conversation of people and agents on a live clock, whoever asks the agents and wherever messages are kept.

:class:`serving.conversations.dialogue.BurstDialogue` and the conversations of a study stand on it.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable

from agents.answers import Message, TurnAnswer, Withdrawn
from serving.conversations.transcript import Transcript, lines_of


class LiveDialogue:
    """People and agents write on a live clock. Use :meth:`run` as a task.

    - ``transcript``: the conversation's state, which this class changes. Its ``agents`` are the sides that are asked.
    - ``clock``: returns the seconds since the conversation's start.
    - ``ask``: returns the reply of a side's agent, or None where it failed; it is asked again after a person's next
      message. What it reads is in the transcript at the call: a later message withdraws the reply.
    - ``note``: gets each message that was said, with its ``id`` (see :meth:`say`), and each that was withdrawn.
    - ``said``: the messages of an earlier process as (side, text, seconds). They are not noted again.

    Only :meth:`run` awaits anything, and ``note`` must not: between a caller's check and :meth:`say` nothing else is
    said. A caller whose messages must be on disk waits for that after :meth:`say`, and in ``ask``.
    """

    def __init__(
        self,
        transcript: Transcript,
        clock: Callable[[], float],
        ask: Callable[[int], Awaitable[TurnAnswer | None]],
        note: Callable[[Message | Withdrawn, str | None], None],
        said: Iterable[tuple[int, str, float]] = (),
    ) -> None:
        self.transcript = transcript
        self._clock = clock
        self._ask = ask
        self._note = note
        self._woken = asyncio.Event()
        self._has_failed = False
        self._withdrawn = 0  # how many withdrawn messages are noted
        for side, text, at in said:
            transcript.call(side)
            transcript.say(side, TurnAnswer(text=text), at)
        if (opener := transcript.opener()) is not None:
            for text in lines_of(opener.text)[: transcript.stimulus.exchanges]:
                self._noted(transcript.say(transcript.starts, opener.model_copy(update={"text": text}), 0.0))

    async def run(self) -> None:
        """Call agents and send their messages when they are due, until the conversation has ended. Raises what ``ask``
        and ``note`` raise."""
        transcript = self.transcript
        while True:
            self._send_due()
            if transcript.ended:
                return
            event = transcript.next_event
            if event is not None and event.what == "call" and self._has_failed:
                event = None
            if event is None or event.at > self._clock():
                self._woken.clear()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._woken.wait(), None if event is None else event.at - self._clock())
            elif event.what == "call":
                await self._call(event.side)

    def say(self, side: int, text: str, id: str | None = None) -> bool:
        """Take a person's message now, after the agents' messages whose time has come.

        ``id`` is the caller's own name for it; an agent's message has None. Returns whether it was taken: after the
        last message none is. Raises pydantic's ValidationError for a text that no message may have.
        """
        self._send_due()
        if self.transcript.ended:
            return False
        answer = TurnAnswer(text=text)
        self.transcript.call(side)
        self._noted(self.transcript.say(side, answer, self._clock()), id=id)
        self._has_failed = False
        self._woken.set()
        return True

    def end(self, at: float) -> None:
        """Withdraw what agents have typed, because the time is over at ``at``."""
        self.transcript.now = at
        for side in self.transcript.agents:
            self.transcript.withdraw(side, "ended")
        self._noted()

    def _send_due(self) -> None:
        transcript = self.transcript
        while (event := transcript.next_event) is not None and event.what == "send" and event.at <= self._clock():
            self._noted(transcript.send(event.side))

    async def _call(self, side: int) -> None:
        transcript = self.transcript
        at = self._clock()
        read = transcript.call(side)
        answer = await self._ask(side)
        if answer is None:
            transcript.unread[side] = read + (transcript.unread[side] or 0)
            self._has_failed = True
        else:
            transcript.type(side, answer, read, at, answered=self._clock())
            self._noted()

    def _noted(self, *said: Message, id: str | None = None) -> None:
        news: list[Message | Withdrawn] = [*said, *self.transcript.withdrawn[self._withdrawn :]]
        for message in news:
            self._note(message, id)
        self._withdrawn = len(self.transcript.withdrawn)
