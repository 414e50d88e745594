"""Every error that Turinglike raises on purpose; ``AnswerError`` alone never ends a command."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

# Codes of answers that failed by their stimulus, which is no sign of a broken agent.
OF_STIMULUS = frozenset(
    {
        "bad_image",
        "bad_target",
        "image_too_large",
        "image_too_narrow",
        "invalid_stimulus",
        "missing_image",
        "no_absent_object",
        "no_features",
        "no_other_image",
        "no_target_image",
        "no_training",
        "too_few_beams",
        "unknown_cue",
        "unsupported_mode",
        "unsupported_pseudo",
    }
)

# Of these what comes again however often it is asked, as a run's stimuli and settings stay; pictures' files may change.
LASTING = OF_STIMULUS - {"bad_image", "image_too_large", "invalid_stimulus", "missing_image"}

# Names of environment variables that programs which need none do not get.
SECRET = re.compile(r"KEY|TOKEN(?!IZERS)|SECRET|PASSWORD|CREDENTIAL")


def printable(text: str) -> str:
    """Text with escapes for what a terminal would obey."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in text
    )


class TuringlikeError(Exception):
    """``exit_code`` is the command line's."""

    exit_code = 2

    def __str__(self) -> str:
        return printable(super().__str__())


class EngineDeadError(RuntimeError):
    """The process that computes an agent's answers has ended."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A fault of an input: ``where`` is its file, ``line`` from 1."""

    where: str
    line: int | None
    field: str | None
    message: str

    def __str__(self) -> str:
        where = self.where if self.line is None else f"{self.where}:{self.line}"
        return printable(f"{where}: {self.field}: {self.message}" if self.field else f"{where}: {self.message}")


def bad_settings(name: str, known: Iterable[str], errors: Iterable[Mapping[str, Any]]) -> list[Problem]:
    """From pydantic's errors."""
    problems = []
    for error in errors:
        message = str(error["msg"]).removeprefix("Value error, ")
        if error["type"] == "extra_forbidden":
            message = f"no such setting; there are {', '.join(known)}"
        problems.append(Problem("settings", None, ".".join([name, *map(str, error["loc"])]), message))
    return problems


class InputError(TuringlikeError):
    """Wrong usage or input; ``problems`` lists all."""

    def __init__(self, message: str, problems: Iterable[Problem] = ()) -> None:
        super().__init__(message)
        self.problems = tuple(problems)


class IdentityError(InputError):
    """A run was made from another set, seed or agent."""


class UnavailableError(TuringlikeError):
    """An agent cannot run here; the message says how to get what is missing."""


class StorageError(TuringlikeError):
    """The run folder cannot be written."""

    exit_code = 4


class LockedError(StorageError):
    """Another process writes to the run folder."""


class ClusterError(TuringlikeError):
    """Ray could not be started, reached, or was lost."""

    exit_code = 5


class AgentStoppedError(TuringlikeError):
    """An agent stopped; stimuli stay unanswered."""

    exit_code = 3


class AnswerError(TuringlikeError):
    """An answer failed; ``code`` is a short word, ``raw`` what the model wrote."""

    def __init__(self, code: str, message: str, raw: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.raw = raw

    def __reduce__(self) -> tuple[type[AnswerError], tuple[Any, ...]]:
        return type(self), (self.code, str(self), self.raw)


class ImageError(AnswerError):
    """``code`` is ``missing_image``, ``bad_image`` or ``image_too_large``."""


# servers

Code = Literal[
    "server_auth",
    "server_refused",
    "server_busy",
    "server_timeout",
    "server_bad_reply",
    "server_unreachable",
    "no_room",
]
SHORTEST_SECRET = 8  # a shorter key ("EMPTY", as some servers want) is no secret, and clearing texts of it harms them
QUOTED = 300  # characters of a server's text in an error


def code_of(status: int) -> Code:
    """The code of an HTTP status other than 200."""
    if status in (401, 403):
        return "server_auth"
    return "server_busy" if status in (408, 429) or status >= 500 else "server_refused"


def cleared(text: str, keys: Iterable[str]) -> str:
    for key in keys:
        if len(key) >= SHORTEST_SECRET:
            text = text.replace(key, "[key]")
    return text


def quoted(text: str, keys: Iterable[str]) -> str:
    """Without the keys, on a line of at most :data:`QUOTED` characters."""
    line = " ".join(cleared(text, keys).split())
    return line if len(line) <= QUOTED else line[:QUOTED] + "…"
