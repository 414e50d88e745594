"""Agents that show what a measurement has to notice."""

import os
import signal
import time
from collections.abc import Callable, Sequence
from typing import Any

from agents.answers import WordAnswer
from agents.contract import Agent, Draw, Entry, Reply, Settings
from agents.errors import UnavailableError
from agents.stimuli import Stimulus


class Nothing(Settings):
    """Nothing to choose."""


class _Words(Agent[Nothing]):
    tasks = ("word_association",)
    Settings = Nothing

    def respond(self, batch: Sequence[Any], draws: Sequence[Draw]) -> Sequence[Reply | Exception]:
        return [self.reply(stimulus, len(batch)) for stimulus in batch]

    def reply(self, stimulus: Stimulus, size: int) -> Reply | Exception:
        return Reply(WordAnswer(word="word"))


class Killed(_Words):
    """Ends as a process does for which the system has no memory, in batches of more than two."""

    def reply(self, stimulus: Stimulus, size: int) -> Reply | Exception:
        if size > 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().reply(stimulus, size)


class Hungry(_Words):
    """Asks for more memory than any machine has, in batches of more than one."""

    def reply(self, stimulus: Stimulus, size: int) -> Reply | Exception:
        if size > 1:
            bytearray(1 << 46)
        return super().reply(stimulus, size)


class Raising(_Words):
    """Raises for every stimulus."""

    def reply(self, stimulus: Stimulus, size: int) -> Reply | Exception:
        raise ValueError("no")


class Unloadable(_Words):
    """Cannot be loaded."""

    def load(self, device: str) -> None:
        raise UnavailableError("the weights have gone")


class Missing(_Words):
    """Lacks something on every machine."""

    def missing(self) -> str | None:
        return "there are no weights: fetch them"


def linger(send: Callable[[object], None]) -> None:
    """Sends its process's number, and then measures for ten minutes."""
    send(os.getpid())
    time.sleep(600)


KINDS = (Killed, Hungry, Raising, Unloadable, Missing)
ENTRIES = {
    cls.__name__.lower(): Entry(cls.__name__.lower(), f"{__name__}:{cls.__name__}", cls.declares.tasks, "", "")
    for cls in KINDS
}
