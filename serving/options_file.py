"""Options of commands from the file of ``--config``, in tables beside those of agents::

    [options.generate]
    agents = ["mmcq", "gbvs"]
    seed = 7
    skip-invalid = true

They stand before what the command line says, which wins; an option that may be given several times has both.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from agents.errors import InputError, Problem
from agents.selection import OPTIONS, read_tables

CONFIG = "--config"


def with_file(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> list[str]:
    """The command line with the options of its file, if it names one. Raises InputError with all that is wrong in it,
    for whichever command."""
    finder = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    finder.add_argument(CONFIG)
    try:
        config = finder.parse_known_args(arguments[1:])[0].config
    except argparse.ArgumentError:  # it names no file, which the command's own parser tells
        config = None
    if not config:
        return [*arguments]
    [commands] = [one.choices for one in parser._actions if isinstance(one, argparse._SubParsersAction)]
    known = {
        name: options
        for name, command in commands.items()
        if CONFIG in (options := {text: one for one in command._actions for text in one.option_strings})
    }
    problems: list[Problem] = []
    found: dict[str, list[str]] = {}
    for name, table in _tables(read_tables(Path(config)).get(OPTIONS, {})):
        field = f"{OPTIONS}.{name}"
        if name not in known:
            problems.append(Problem(config, None, field, f"no command that takes {CONFIG}: {', '.join(known)}"))
        elif not isinstance(table, dict):
            problems.append(Problem(config, None, field, "must be a table of a command's options"))
        else:
            found[name] = []
            for option, value in table.items():
                try:
                    found[name] += _arguments(known[name], f"--{option}", value)
                except argparse.ArgumentTypeError as error:
                    problems.append(Problem(config, None, f"{field}.{option}", str(error)))
    if problems:
        raise InputError(f"{CONFIG} {config}: its options cannot be used", problems)
    return [arguments[0], *found.get(arguments[0], []), *arguments[1:]]


def _tables(options: Any) -> Iterator[tuple[str, Any]]:
    yield from options.items() if isinstance(options, dict) else [("", options)]


def _arguments(known: Mapping[str, argparse.Action], option: str, value: Any) -> Iterator[str]:
    """An option as the command line has it. Raises ArgumentTypeError."""
    action = known.get(option)
    if action is None or option in (CONFIG, "--help"):
        options = ", ".join(name[2:] for name in known if name.startswith("--") and name not in (CONFIG, "--help"))
        raise argparse.ArgumentTypeError(f"no such option: {options}")
    if action.nargs == 0:
        if not isinstance(value, bool):
            raise argparse.ArgumentTypeError("must be true or false")
        if value:
            yield option
        return
    several = value if isinstance(value, list) else [value]
    if not all(isinstance(one, str | int | float) and not isinstance(one, bool) for one in several):
        raise argparse.ArgumentTypeError("must be text, a number, or a list of these")
    texts = [str(one) for one in several]
    for text in texts if isinstance(action, argparse._AppendAction) else [",".join(texts)]:
        made = action.type(text) if callable(action.type) else text
        if action.choices is not None and made not in action.choices:
            raise argparse.ArgumentTypeError(f"must be one of {', '.join(map(str, action.choices))}, not {text!r}")
        yield f"{option}={text}"
