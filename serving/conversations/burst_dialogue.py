"""A burst dialogue of a person with an agent, on a real clock: both write whenever they like. ::

    dialogue = BurstDialogue(scheduler, "eliza", stimulus, seed=7)
    await dialogue.open()
    await dialogue.say("Hello!")
    await dialogue.say("Are you there?")
    said = await dialogue.after(2, wait=20.0)  # what was said after these two, once something was

The agent's part (:mod:`serving.conversations.burst`) goes on in a task of its own until the dialogue is over or closed.
The time that its model takes is part of the delay of its message. Where it fails, :meth:`BurstDialogue.after` says so
once, and it is asked again when the person writes again.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import orjson

from agents.answers import TurnAnswer
from agents.errors import AgentStoppedError, AnswerError
from serving.conversations.burst import QUIET_S, BurstTranscript, messages_of
from serving.conversations.dialogue import Dialogue, DialogueError, FlaggedMessage, checked
from serving.conversations.journal import turn_line


class BurstDialogue(Dialogue):
    """As :class:`serving.conversations.dialogue.Dialogue`, but nobody waits for a turn: what a person says is taken at
    once, and the agent's messages are asked for with :meth:`after`."""

    _transcript: BurstTranscript

    def __init__(self, *args: Any, quiet_s: float = QUIET_S, **more: Any) -> None:
        self._quiet_s = quiet_s
        super().__init__(*args, **more)
        self._news, self._woken = asyncio.Event(), asyncio.Event()
        self._failed: AnswerError | AgentStoppedError | None = None
        self._is_told = True
        self._deadline: float | None = None
        self._task: asyncio.Task[None] | None = None

    async def open(self, deadline: float | None = None) -> list[FlaggedMessage]:
        """Start the conversation's clock; returns the stimulus's opener, if it has one."""
        if self._task is None:
            with self._at_work():
                await self._write_pseudo(deadline)
            self._deadline, self._since = deadline, self._clock()
            if (opener := self._transcript.opener()) is not None:
                for text in messages_of(opener.text)[: self.stimulus.exchanges]:
                    self._say(self._transcript.starts, opener.model_copy(update={"text": text}), 0.0)
            self._task = asyncio.create_task(self._speak())
            self._task.add_done_callback(lambda task: self._tell())
        return self.transcript()

    async def say(self, text: str, deadline: float | None = None) -> None:
        """Take what the person says, now. The agent's next answers have the deadline. Raises DialogueError."""
        if self._task is None:
            raise DialogueError("not_open", "open the conversation")
        self._send_what_is_due()
        if self.ended:
            raise DialogueError("ended", f"the conversation is over: all {self.stimulus.exchanges} messages are said")
        answer, self._deadline = TurnAnswer(text=checked(text)), deadline
        self._failed, self._is_told = None, True
        self._say(self.person, answer, self._now())
        self._woken.set()

    async def after(self, count: int, wait: float) -> list[FlaggedMessage]:
        """The messages after the first ``count``; waits at most ``wait`` seconds for one. Raises AnswerError and
        AgentStoppedError once for a failure of the agent."""
        try:
            async with asyncio.timeout(wait):
                while len(self._flagged) <= count and self._goes_on() and self._is_told:
                    await self._news.wait()
        except TimeoutError:
            return []
        if self._failed is not None and not self._is_told:
            self._is_told = True
            raise self._failed
        return self._flagged[count:]

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _goes_on(self) -> bool:
        """Whether more may be said. Raises what ended the agent's part and should not have."""
        if self._task is not None and self._task.done() and not self._task.cancelled():
            self._task.result()
        return not self.ended

    def _new_transcript(self, **about: Any) -> BurstTranscript:
        return BurstTranscript(**about, quiet_s=self._quiet_s, agents=(1 - self.person,))

    def _now(self) -> float:
        return self._clock() - self._since

    async def _speak(self) -> None:
        """The agent's part, until all has been said."""
        while not self.ended:
            self._send_what_is_due()
            event = self._transcript.next_event
            may_call = event is not None and (event.what == "send" or self._failed is None)
            left = event.at - self._now() if event is not None and may_call else None
            if left is None or left > 0:
                self._woken.clear()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._woken.wait(), left)
            elif event is not None and event.what == "call":
                await self._call(event.side)

    def _send_what_is_due(self) -> None:
        talk = self._transcript
        while (event := talk.next_event) is not None and event.what == "send" and event.at <= self._now():
            typed = talk.typing[event.side].popleft()
            self._say(event.side, typed.answer, typed.at)

    def _say(self, side: int, answer: TurnAnswer, at: float) -> None:
        found = self._transcript.judge_next(answer.text, side)
        message = self._transcript.say(side, answer, at)
        self._flagged.append(FlaggedMessage(message, tuple(one.verdict() for one in found)))
        self._tell()

    async def _call(self, side: int) -> None:
        talk, at = self._transcript, self._now()
        read = talk.call(side)
        try:
            with self._at_work():
                request = await self._ask(talk, self._deadline)
            turn = orjson.loads(turn_line(request, 0))
            self._turns.append(turn)
            answer = self._usable(request)
        except (AnswerError, AgentStoppedError) as error:
            talk.unread[side] = read + (talk.unread[side] or 0)
            self._failed, self._is_told = error, False
            self._tell()
            return
        self._next_attempt = 0
        talk.raws.append(turn["raw"])
        talk.type(side, answer, read, at, answered=self._now())

    def _tell(self) -> None:
        """Wake whoever waits for news."""
        self._news.set()
        self._news = asyncio.Event()
