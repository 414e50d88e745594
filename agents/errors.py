"""Every error that Turinglike raises on purpose.

The message of each is a sentence for a person and says what to do. ``AnswerError`` alone never ends a command.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

# Codes of answers that failed for what the stimulus is, and say nothing of how well the agent is.
OF_STIMULUS = frozenset({
    "bad_image", "bad_target", "image_too_large", "image_too_narrow", "invalid_stimulus", "missing_image",
    "no_absent_object", "no_other_image", "no_target_image", "too_few_beams", "unknown_cue", "unsupported_mode",
    "unsupported_pseudo",
})  # fmt: skip


def printable(text: str) -> str:
    """Text of a file, a model or a library as it may reach a terminal: on one line, and what the terminal would obey
    (control characters, marks that turn the direction of writing) as escapes."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


class TuringlikeError(Exception):
    """Base of all errors raised on purpose. ``exit_code`` is what the command line ends with."""

    exit_code = 2

    def __str__(self) -> str:
        return printable(super().__str__())


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with an input: ``where`` (file), ``line`` (from 1, or None), ``field``, ``message``."""

    where: str
    line: int | None
    field: str | None
    message: str

    def __str__(self) -> str:
        where = self.where if self.line is None else f"{self.where}:{self.line}"
        return printable(f"{where}: {self.field}: {self.message}" if self.field else f"{where}: {self.message}")


def bad_settings(name: str, known: Iterable[str], errors: Iterable[Mapping[str, Any]]) -> list[Problem]:
    """The problems of an agent's or a pair's settings, from what pydantic says of them."""
    there = ", ".join(known)

    def told(item: Mapping[str, Any]) -> str:
        if item["type"] == "extra_forbidden":
            return f"no such setting; there are {there}"
        return str(item["msg"]).removeprefix("Value error, ")

    return [
        Problem("settings", None, ".".join([name, *(str(part) for part in item["loc"])]), told(item)) for item in errors
    ]


class InputError(TuringlikeError):
    """Wrong usage or input. ``problems`` lists everything that is wrong."""

    def __init__(self, message: str, problems: Iterable[Problem] = ()) -> None:
        super().__init__(message)
        self.problems = tuple(problems)


class IdentityError(InputError):
    """The run was made from another set, seed or agent digest than the one given now."""


class UnavailableError(TuringlikeError):
    """An agent cannot run on this machine; the message names what is missing and how to get it."""


class StorageError(TuringlikeError):
    """The run folder cannot be written (full, read-only, gone)."""

    exit_code = 4


class LockedError(StorageError):
    """Another live process is writing to the same run folder."""


class ClusterError(TuringlikeError):
    """Ray could not be started, reached, or was lost."""

    exit_code = 5


class AgentStoppedError(TuringlikeError):
    """An agent stopped before its work was done; its remaining stimuli stay unanswered."""

    exit_code = 3


class AnswerError(TuringlikeError):
    """One answer failed. ``code`` is a short machine-readable word, the message a sentence."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code

    def __reduce__(self) -> tuple[type[AnswerError], tuple[str, str]]:
        return type(self), (self.code, str(self))


class ImageError(AnswerError):
    """An image cannot be read or decoded; ``code`` is ``missing_image``, ``bad_image`` or ``image_too_large``."""
