"""``turinglike.toml``: the commands of a project in their order, each a table, and settings of agents."""

import argparse
import contextlib
import io
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from agents.catalogue.selection import PROJECT_AGENTS, resolve
from agents.errors import InputError, Problem
from serving.projects.step import Step, TableReader

FILE = "turinglike.toml"
NO_STEPS = ("run", "completion", "serve", "view")  # the last two end only with Ctrl-C


def read_project(file: Path, parser: argparse.ArgumentParser) -> list[Step]:
    """The steps of a project's file; ``parser`` is that of the whole command line. Raises InputError with all that is
    wrong: unknown commands, options, values and agents, and files that are neither there nor written before."""
    try:
        text = file.read_text("utf-8-sig")  # editors of Windows write a mark
        tables = tomllib.loads(text)
    except UnicodeDecodeError:
        raise InputError(f"{file} is not in UTF-8; save it as UTF-8") from None
    except FileNotFoundError:
        raise InputError(f"{file}: there is no such file; docs/projects.md has an example of a project") from None
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{file}: {error}") from None
    problems: list[Problem] = []
    steps: list[Step] = []
    of_agents = tables.pop(PROJECT_AGENTS, None)
    if of_agents is not None:
        try:
            resolve([], [], file)
        except InputError as error:
            problems += error.problems or [Problem(str(file), None, PROJECT_AGENTS, str(error))]
    has_wrong_agents = bool(problems)  # which each command would tell again
    found = [*_of_commands(tables, _heads(text), _commands(parser), file, problems)]
    # TOML puts tables of one name together; steps follow each other as they stand in the file.
    for command, table, line in sorted(found, key=lambda each: each[2]):
        of_command = _parser_of(parser, command)
        reader = TableReader(of_command, command, file, of_agents is not None, problems)
        before = len(problems)
        step = reader.read(table, line)
        steps.append(step)
        if len(problems) == before and not has_wrong_agents:
            problems += _refused(step, parser, file)
    problems += _absent(steps, file)
    if problems:
        raise InputError(f"{file} cannot be used; nothing was started", problems)
    if not steps:
        raise InputError(f"{file} has no step: give a table for each command, such as [generate]")
    return steps


def _commands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The commands of a parser by their names; none where it has none."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return {name: of_command for name, of_command in action.choices.items() if name not in NO_STEPS}
    return {}


def _parser_of(parser: argparse.ArgumentParser, command: Sequence[str]) -> argparse.ArgumentParser:
    for word in command:
        parser = _commands(parser)[word]
    return parser


def _heads(text: str) -> dict[tuple[str, ...], list[int]]:
    """The lines of the heads of tables, ``[study.new]``, by the names in them."""
    heads: dict[tuple[str, ...], list[int]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("["):
            with contextlib.suppress(tomllib.TOMLDecodeError):
                names: list[str] = []
                table: Any = tomllib.loads(line)
                while table:
                    [(name, inner)] = table.items()
                    names.append(name)
                    table = inner[0] if isinstance(inner, list) else inner
                heads.setdefault(tuple(names), []).append(number)
    return heads


def _of_commands(
    tables: dict[str, Any],
    heads: Mapping[tuple[str, ...], Sequence[int]],
    commands: Mapping[str, argparse.ArgumentParser],
    file: Path,
    problems: list[Problem],
    before: tuple[str, ...] = (),
) -> Iterator[tuple[tuple[str, ...], dict[str, Any], int]]:
    """Each command's words, one of its tables, and the line of the table's head. A table ``[[generate]]`` may stand
    several times; the actions of ``study`` are tables in its table, ``[study.new]``."""
    for name, value in tables.items():
        command = (*before, name)
        shown = ".".join(command)
        lines = heads.get(command, ())
        several = value if isinstance(value, list) else [value]
        of_command = commands.get(name)
        if of_command is None:
            what = "is no step: it ends only with Ctrl-C" if name in NO_STEPS else "is no command"
            message = f"{what}; a step is one of {', '.join(commands)}"
            problems.append(Problem(str(file), lines[0] if lines else None, shown, message))
        elif not all(isinstance(table, dict) for table in several):
            problems.append(Problem(str(file), None, shown, f"must be a table: [{shown}]"))
        elif actions := _commands(of_command):
            for table in several:
                yield from _of_commands(table, heads, actions, file, problems, command)
        elif len(lines) != len(several):
            problems.append(
                Problem(str(file), None, shown, f"must have a line of its own, [{shown}], and its keys below")
            )
        else:
            for line, table in zip(lines, several, strict=True):
                yield command, table, line


def _refused(step: Step, parser: argparse.ArgumentParser, file: Path) -> list[Problem]:
    """What the command itself says against its line, and against agents or judges that it names."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            options = parser.parse_args(step.words)
        if options.checked_by is not None:
            with contextlib.chdir(file.resolve().parent):
                options.checked_by(options)
    except SystemExit:
        message = said.getvalue().strip().removeprefix("turinglike: ").partition("; `turinglike")[0]
        return [Problem(str(file), step.line, step.name, message)]
    except InputError as error:
        told = [
            f"{problem.field}: {problem.message}" if problem.field else problem.message for problem in error.problems
        ]
        return [Problem(str(file), step.line, step.name, message) for message in told or [str(error)]]
    return []


def _told(error: InputError) -> list[str]:
    if not error.problems:
        return [str(error)]
    return [f"{problem.field}: {problem.message}" if problem.field else problem.message for problem in error.problems]


def _absent(steps: Sequence[Step], file: Path) -> Iterator[Problem]:
    """Inputs that are not there, and that no step before writes."""
    folder = file.resolve().parent
    written: list[Path] = []
    for step in steps:
        for path in step.inputs:
            place = folder / path
            if not place.exists() and not any(place == made or made in place.parents for made in written):
                message = f"{path}: there is no such file or folder, and no step before writes it"
                yield Problem(str(file), step.line, step.name, message)
        written += [folder / path for path in step.outputs]
