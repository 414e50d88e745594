"""One step of a project: a table of ``turinglike.toml``, and the command line that it stands for."""

import argparse
import difflib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agents.errors import Problem
from serving.commands.command_line import path

AGAIN = "is given twice, under two of its names"


@dataclass(slots=True)
class Step:
    """A command of a project."""

    name: str
    """The command, as "generate" or "study new"."""
    line: int | None
    """The line of its table in the project's file."""
    words: list[str] = field(default_factory=list)
    """The command line without "turinglike"."""
    inputs: list[Path] = field(default_factory=list)
    """The files and folders that it reads, relative to the project's folder."""
    outputs: list[Path] = field(default_factory=list)
    """The files and folders that it writes, relative to the project's folder."""
    flags: list[str] = field(default_factory=list)
    """All options that the command has, as "--force"."""
    repeats: bool = False
    """The command is carried out each time: it finds out by itself what is left, makes its output anew (``--force``),
    or has no output but what it prints."""


@dataclass(slots=True)
class TableReader:
    """Makes a table a :class:`Step`: each key is an option of the command, or one of its arguments."""

    parser: argparse.ArgumentParser
    """The parser of the command."""
    command: Sequence[str]
    """Its words, as ``["study", "new"]``."""
    file: Path
    """The project's file."""
    has_agents: bool
    """This file has settings of agents, and is the ``--config`` of each command that has such an option."""
    problems: list[Problem] = field(default_factory=list)
    """What is wrong with the tables so far."""

    def read(self, table: Mapping[str, Any], line: int | None) -> Step:
        """The step of a table. What is wrong with it is in :attr:`problems`."""
        step = Step(" ".join(self.command), line, [*self.command])
        by_name = dict(_named(self.parser))
        step.flags += [f"--{name}" for name in by_name]
        given: dict[argparse.Action, list[str]] = {}
        for key, value in table.items():
            action = by_name.get(key.replace("_", "-"))
            if action is None:
                self._note(step, key, f"`turinglike {step.name}` has no such option; {_hint(key, by_name)}")
            elif action in given:
                self._note(step, key, AGAIN)
            else:
                given[action] = self._texts(step, key, action, value)
        config = by_name.get("config")
        if self.has_agents and config is not None and config not in given:
            given[config] = [self.file.resolve().name]
        for key, action in by_name.items():
            if action.required and action not in given:
                self._note(step, key, "is needed")
                given[action] = []  # to be told once, if it has several names
        arguments: list[str] = []
        for action, texts in given.items():
            if action.option_strings:
                step.words += _as_option(action, texts)
            else:
                arguments += texts
        if any(text.startswith("-") for text in arguments):
            arguments.insert(0, "--")
        step.words += arguments
        step.repeats = bool(self.parser.get_default("resumes")) or "--force" in step.words or not step.outputs
        return step

    def _texts(self, step: Step, key: str, action: argparse.Action, value: Any) -> list[str]:
        """The texts of an option's value, each of which the option takes; the paths among them are the step's."""
        try:
            texts = texts_of(action, value)
            for place, text in enumerate(texts):
                if action.type in (path, Path):  # the shell does this for words that are typed
                    texts[place] = text = os.path.expanduser(text)
                read = _taken(action, text)
                if isinstance(read, Path):
                    paths = step.outputs if action.dest == "out" else step.inputs
                    paths.append(read)
        except (argparse.ArgumentTypeError, ValueError) as error:
            self._note(step, key, str(error))
            return []
        return texts

    def _note(self, step: Step, key: str, message: str) -> None:
        self.problems.append(Problem(str(self.file), step.line, f"{step.name}.{key}", message))


def _named(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.Action]]:
    """The options of a command by their long names, and its arguments by the names that ``--help`` shows."""
    for action in parser._actions:
        if isinstance(action, argparse._HelpAction):
            continue
        for option in action.option_strings:
            if option.startswith("--"):
                yield option[2:], action
        if not action.option_strings and isinstance(action.metavar, str):
            for name in action.metavar.lower().split("|"):
                if action.nargs == "+" and not name.endswith("s"):
                    name += "s"
                yield name, action


def _hint(key: str, by_name: Mapping[str, argparse.Action]) -> str:
    near = difflib.get_close_matches(key.replace("_", "-"), [*by_name], 1)
    if near:
        return f"did you mean {near[0]}?"
    return f"it has {', '.join(sorted(by_name))}"


def texts_of(action: argparse.Action, value: Any) -> list[str]:
    """A value of TOML as the texts that follow an option. Raises ValueError for a value that does not fit.

    A list is several texts where the option takes several, else one text with commas. A table is a list of its pairs:
    ``{mmcq = {colors = 8}}`` is ``mmcq.colors=8``."""
    if action.nargs == 0:
        if not isinstance(value, bool):
            raise ValueError(f"must be true or false, not {_shown(value)}")
        return [""] if value else []
    if isinstance(value, dict):
        parts = list(_pairs(value, as_json=action.dest == "settings"))
    elif isinstance(value, list):
        parts = [_text(part) for part in value]
    else:
        return [_text(value)]
    if isinstance(action, argparse._AppendAction) or action.nargs == "+":
        return parts
    if action.type in (path, Path):
        raise ValueError(f"must be one path, not {_shown(value)}")
    if isinstance(value, list) and any("," in part for part in parts):
        raise ValueError(f"an entry of the list has a comma: {_shown(value)}")
    return [",".join(parts)]


def _pairs(table: Mapping[str, Any], before: str = "", *, as_json: bool) -> Iterator[str]:
    """``as_json``: the option reads values as JSON where they are, so that a text such as "2001" needs quotes."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _pairs(value, f"{before}{key}.", as_json=as_json)
        elif isinstance(value, str) and not (as_json and _is_json(value)):
            yield f"{before}{key}={value}"
        else:
            yield f"{before}{key}={_shown(value)}"


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    raise ValueError(f"must be a text or a number, not {_shown(value)}")


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _taken(action: argparse.Action, text: str) -> Any:
    """What an option makes of a text. Raises ArgumentTypeError or ValueError for one that it does not take."""
    if action.nargs == 0:
        return text
    read = action.type(text) if callable(action.type) else text
    if action.choices is not None and read not in action.choices:
        raise ValueError(f"must be {' or '.join(map(str, action.choices))}, not {text!r}")
    return read


def _as_option(action: argparse.Action, texts: Sequence[str]) -> list[str]:
    name = action.option_strings[-1]
    if action.nargs == 0:
        return [name] * len(texts)
    words: list[str] = []
    for text in texts:
        if text.startswith("-"):
            words.append(f"{name}={text}")
        else:
            words += [name, text]
    return words
