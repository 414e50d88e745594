"""Every error that Turinglike raises on purpose, and what goes wrong with servers.

Each message is a sentence for a person and names what to do. ``AnswerError`` alone never ends a command.

    TuringlikeError                 exit code 2
      InputError                    wrong usage or input, with its problems
        IdentityError               a run was made from another set, seed or agent
      UnavailableError              an agent cannot run on this machine
      StorageError                  4: a run folder cannot be written
        LockedError                 another process writes to it
      ClusterError                  5: Ray could not be started or was lost
      AgentStoppedError             3: stimuli stay unanswered
      AnswerError                   an answer failed
        ImageError                  by its image
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

# Codes of answers that failed by their stimulus, which is no sign of a broken agent.
OF_STIMULUS = frozenset({
    "bad_image", "bad_target", "image_too_large", "image_too_narrow", "invalid_stimulus", "missing_image",
    "no_absent_object", "no_other_image", "no_target_image", "too_few_beams", "unknown_cue", "unsupported_mode",
    "unsupported_pseudo",
})  # fmt: skip


def printable(text: str) -> str:
    """Text of a file, a model or a library on a line, with what a terminal would obey as escapes."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in text
    )


class TuringlikeError(Exception):
    """Base of all errors raised on purpose. ``exit_code`` is what the command line ends with."""

    exit_code = 2

    def __str__(self) -> str:
        return printable(super().__str__())


@dataclass(frozen=True, slots=True)
class Problem:
    """A fault of an input: ``where`` (file), ``line`` (from 1, or None), ``field``, ``message``."""

    where: str
    line: int | None
    field: str | None
    message: str

    def __str__(self) -> str:
        where = self.where if self.line is None else f"{self.where}:{self.line}"
        return printable(f"{where}: {self.field}: {self.message}" if self.field else f"{where}: {self.message}")


def bad_settings(name: str, known: Iterable[str], errors: Iterable[Mapping[str, Any]]) -> list[Problem]:
    """The problems of the settings of ``name``, an agent or a pair, from pydantic's errors."""
    problems = []
    for error in errors:
        message = str(error["msg"]).removeprefix("Value error, ")
        if error["type"] == "extra_forbidden":
            message = f"no such setting; there are {', '.join(known)}"
        problems.append(Problem("settings", None, ".".join([name, *map(str, error["loc"])]), message))
    return problems


class InputError(TuringlikeError):
    """Wrong usage or input. ``problems`` lists everything that is wrong."""

    def __init__(self, message: str, problems: Iterable[Problem] = ()) -> None:
        super().__init__(message)
        self.problems = tuple(problems)


class IdentityError(InputError):
    """The run was made from another set, seed or agent digest."""


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
    """An answer failed. ``code`` is a short machine-readable word, the message a sentence."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code

    def __reduce__(self) -> tuple[type[AnswerError], tuple[str, str]]:
        return type(self), (self.code, str(self))


class ImageError(AnswerError):
    """An image cannot be read or decoded; ``code`` is ``missing_image``, ``bad_image`` or ``image_too_large``."""


# servers

Code = Literal[
    "server_auth", "server_refused", "server_busy", "server_timeout", "server_bad_reply", "server_unreachable",
    "no_room",
]  # fmt: skip
CODES: Mapping[Code, str] = {
    "server_auth": "the key is missing, wrong or not allowed to do this (401, 403)",
    "server_refused": "the request will never be answered (other 4xx, a redirect, a used-up quota)",
    "server_busy": "the server would not answer now (429, 5xx)",
    "server_timeout": "no reply in time",
    "server_bad_reply": "the reply is no JSON, has another form, or is too large",
    "server_unreachable": "no connection, or it broke",
    "no_room": "the prompt is longer than the server's model takes",
}
SHORTEST_SECRET = 8  # a shorter key ("EMPTY", as some servers want) is no secret, and clearing texts of it harms them
QUOTED = 300  # characters of a server's text in an error


def code_of(status: int) -> Code:
    """The code of an HTTP status other than 200, once no further try helps."""
    if status in (401, 403):
        return "server_auth"
    return "server_busy" if status in (408, 429) or status >= 500 else "server_refused"


def cleared(text: str, keys: Iterable[str]) -> str:
    """The text without the keys."""
    for key in keys:
        if len(key) >= SHORTEST_SECRET:
            text = text.replace(key, "[key]")
    return text


def quoted(text: str, keys: Iterable[str]) -> str:
    """A server's or a library's text without the keys, on a line of at most :data:`QUOTED` characters."""
    line = " ".join(cleared(text, keys).split())
    return line if len(line) <= QUOTED else line[:QUOTED] + "…"
