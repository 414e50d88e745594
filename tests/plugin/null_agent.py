"""An agent without a model: it answers, fails, waits, crashes or rejects on request."""

import asyncio
import os
import re
import signal
import time
from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, Field

from agents.answers import COLORS, CaptionAnswer, ColorAnswer, ObjectAnswer, ScanpathAnswer, TurnAnswer, WordAnswer
from agents.contract import MIB, Agent, Draw, Entry, Filter, Reply, Settings, Verdict
from agents.errors import AnswerError
from agents.stimuli import TASKS, Stimulus, Task


class NullSettings(Settings):
    """Regular expressions are searched in the stimulus's id; empty means never."""

    fail: str = ""
    """Pattern of stimuli that fail alone."""
    fail_load: bool = False
    """Whether loading fails."""
    raise_batch: str = ""
    """Pattern of stimuli that raise for their whole batch."""
    crash: str = ""
    """Pattern of stimuli that kill the worker process."""
    crash_unless: str = ""
    """A file's path: nothing crashes while it exists, and a crash makes it; empty: every time."""
    hang: str = ""
    """Pattern of stimuli that are not answered within an hour."""
    reject: float = Field(0.0, ge=0, le=1)
    """Share of attempts that the filter rejects."""
    attempts: int = Field(1, ge=1, le=100)
    """How often an answer is tried at most while the filter rejects it."""
    batch_limit: int = Field(0, ge=0)
    """The largest batch that there is "memory" for; 0: any."""
    delay_s: float = Field(0.0, ge=0)
    """Seconds that each call takes."""
    load_s: float = Field(0.0, ge=0)
    """Seconds that loading takes."""
    prepare_s: float = Field(0.0, ge=0)
    """Seconds that preparing a stimulus takes."""


def _answer(task: Task, draw: Draw) -> BaseModel:
    parts = [draw.seed >> shift for shift in (0, 8, 16)]
    if task == "color_estimation":
        return ColorAnswer(color=COLORS[draw.seed % len(COLORS)])
    if task == "object_detection":
        return ObjectAnswer(labels=[COLORS[part % len(COLORS)] for part in parts])
    if task == "attention_prediction":
        path = [[float(part % 1280), float(part % 1024)] for part in parts]
        return ScanpathAnswer(fixations=path, frame=[1280, 1024], stop="end")
    if task == "image_captioning":
        return CaptionAnswer(text=f"a picture of {draw.seed:x}")
    if task == "word_association":
        return WordAnswer(word=f"{draw.seed:x}")
    return TurnAnswer(text=f"{draw.options.get('speaker')} says {draw.seed:x}.")


def _fits(pattern: str, stimulus: Stimulus) -> bool:
    return bool(pattern) and re.search(pattern, stimulus.id) is not None


class NullAgent(Agent[NullSettings]):
    """No operation, in batches."""

    tasks = TASKS
    Settings = NullSettings
    memory = 128 * MIB
    batch_size = 512

    def __init__(self, settings: NullSettings, name: str) -> None:
        super().__init__(settings, name)
        self.attempts = settings.attempts
        self.filters: Sequence[Filter] = (self._lottery,) if settings.reject else ()

    def _lottery(self, stimulus: Stimulus, reply: Reply) -> Verdict | None:
        digits = re.sub("[^0-9a-f]", "", str(reply.raw)) or "0"
        share = int(digits[-6:], 16) % 10_007 / 10_007
        return Verdict("lottery", True, f"{share:.4f}") if share < self.settings.reject else None

    def load(self, device: str) -> None:
        time.sleep(self.settings.load_s)
        if self.settings.fail_load:
            raise RuntimeError("told to fail while loading")

    def prepare(self, stimulus: Stimulus) -> Stimulus:
        if self.settings.prepare_s:
            time.sleep(self.settings.prepare_s)
        return stimulus

    def respond(self, batch: Sequence[Stimulus], draws: Sequence[Draw]) -> Sequence[Reply | Exception]:
        settings = self.settings
        if settings.delay_s:
            time.sleep(settings.delay_s)
        for stimulus in batch:
            self._crash(stimulus)
            if _fits(settings.hang, stimulus):
                time.sleep(3600)
            if _fits(settings.raise_batch, stimulus):
                raise RuntimeError(f"told to raise for {stimulus.id}")
        self._check_limit(len(batch))
        return [self._reply(stimulus, draw) for stimulus, draw in zip(batch, draws, strict=True)]

    def _check_limit(self, count: int) -> None:
        if 0 < self.settings.batch_limit < count:
            raise MemoryError(f"told to have memory for {self.settings.batch_limit}")

    def _crash(self, stimulus: Stimulus) -> None:
        once = self.settings.crash_unless
        if _fits(self.settings.crash, stimulus) and not (once and Path(once).exists()):
            if once:
                Path(once).touch()
            os.kill(os.getpid(), signal.SIGKILL)

    def _reply(self, stimulus: Stimulus, draw: Draw) -> Reply | Exception:
        if _fits(self.settings.fail, stimulus):
            return AnswerError("told_to_fail", f"told to fail {stimulus.id}")
        return Reply(_answer(stimulus.task, draw), f"{draw.seed:x}")


class ContinuousNullAgent(NullAgent):
    """No operation, a stimulus at a time."""

    batch_size = 1
    max_in_flight = 64
    _under_way = 0

    async def respond_one(self, prepared: Stimulus, draw: Draw) -> Reply:
        self._under_way += 1
        try:
            self._check_limit(self._under_way)
            if self.settings.delay_s:
                await asyncio.sleep(self.settings.delay_s)
            self._crash(prepared)
            if _fits(self.settings.hang, prepared):
                await asyncio.sleep(3600)
        finally:
            self._under_way -= 1
        reply = self._reply(prepared, draw)
        if isinstance(reply, Exception):
            raise reply
        return reply


null = Entry("null", "null_agent:NullAgent", TASKS, "no operation, in batches", "for measuring")
null_one = Entry("null-one", "null_agent:ContinuousNullAgent", TASKS, "no operation, one at a time", "for measuring")
