"""Every error that Turinglike raises on purpose; ``AnswerError`` alone never ends a command."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

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
"""Codes of answers that failed by their stimulus, which is no sign of a broken agent."""

LASTING = OF_STIMULUS - {"bad_image", "image_too_large", "invalid_stimulus", "missing_image"}
"""Codes of failures that would come again: a run's stimuli and settings stay. The file of a picture may change."""

SECRET = re.compile(r"KEY|TOKEN(?!IZERS)|SECRET|PASSWORD|CREDENTIAL")
"""Names of environment variables that a program without a need for them does not get."""


def printable(text: str) -> str:
    """A text in which whatever a terminal would obey, such as an escape sequence, is written out: ``\\x1b``."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in text
    )


def short_text(error: BaseException) -> str:
    """An exception's text on a line of at most 200 characters, with its type where the text is a bare word."""
    text = " ".join(str(error).split())
    kind = type(error).__name__
    return text[:200] if " " in text else f"{kind} {text[:200]}".strip()  # a KeyError holds no more than its key


class TuringlikeError(Exception):
    """Base of the errors whose message is for the user."""

    exit_code = 2
    """The exit code of a command that ends by it."""

    def __str__(self) -> str:
        return printable(super().__str__())


class EngineDeadError(RuntimeError):
    """The process that computes an agent's answers has ended."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A fault of an input."""

    where: str
    """Its file, or the option of the command."""
    line: int | None
    """The line in the file, from 1; None: the whole."""
    field: str | None
    """The field of the line, or the setting; None: the whole."""
    message: str
    """What is wrong, and what would be right."""

    def __str__(self) -> str:
        where = self.where if self.line is None else f"{self.where}:{self.line}"
        return printable(f"{where}: {self.field}: {self.message}" if self.field else f"{where}: {self.message}")


def bad_settings(name: str, fields: Iterable[str], errors: Iterable[Mapping[str, Any]]) -> list[Problem]:
    """Faults of an agent's settings in the user's words. ``name`` is the agent's, ``fields`` are the names of its
    settings, and ``errors`` come from pydantic's ``ValidationError.errors()``."""
    problems = []
    for error in errors:
        message = str(error["msg"]).removeprefix("Value error, ")
        if error["type"] == "extra_forbidden":
            message = f"no such setting; there are {', '.join(fields)}"
        problems.append(Problem("settings", None, ".".join([name, *map(str, error["loc"])]), message))
    return problems


class InputError(TuringlikeError):
    """Wrong usage or input."""

    problems: tuple[Problem, ...]
    """Every fault that was found, not the first alone."""

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
    """An agent stopped, as its workers die or its server refuses the key; stimuli stay unanswered."""

    exit_code = 3


class AnswerError(TuringlikeError):
    """An answer failed. It stands in the record of its stimulus, and the run goes on."""

    code: str
    """A short word for the kind of failure, such as "bad_image" (docs/records.md)."""
    raw: Any
    """What the model wrote, if it wrote something."""

    def __init__(self, code: str, message: str, raw: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.raw = raw

    def __reduce__(self) -> tuple[type[AnswerError], tuple[Any, ...]]:
        return type(self), (self.code, str(self), self.raw)


class ImageError(AnswerError):
    """A picture cannot be shown. ``code`` is ``missing_image``, ``bad_image`` or ``image_too_large``."""


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
"""The code of an answer that a server failed to give."""
SHORTEST_SECRET = 8
"""Characters of a key at least. A shorter one ("EMPTY", as some servers want) is no secret: it may be a word of a
text."""
QUOTED = 300
"""Characters of a server's text in an error, at most."""


def code_of(status: int) -> Code:
    """The code of a failure by the status of an HTTP reply other than 200."""
    if status in (401, 403):
        return "server_auth"
    return "server_busy" if status in (408, 429) or status >= 500 else "server_refused"


def cleared(text: str, keys: Iterable[str]) -> str:
    """A text in which "[key]" stands for each of the keys, as a server may repeat what it was sent."""
    for key in keys:
        if len(key) >= SHORTEST_SECRET:
            text = text.replace(key, "[key]")
    return text


def quoted(text: str, keys: Iterable[str]) -> str:
    """Without the keys, on a line of at most :data:`QUOTED` characters."""
    line = " ".join(cleared(text, keys).split())
    return line if len(line) <= QUOTED else line[:QUOTED] + "…"
