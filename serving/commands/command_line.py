"""What commands share: how options are read, how commands are added and carried out, how errors are printed.

Packages add commands by the entry-point group ``turinglike.commands``: a function that gets :class:`Commands`.

    def register(commands: Commands) -> None:
        hello = commands.add("hello", say_hello, "greet somebody", example="world")
        hello.add_argument("name")

    def say_hello(options: argparse.Namespace) -> int:
        print("hello", options.name)
        return 0
"""

import argparse
import errno
import logging
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import partial
from importlib import import_module, metadata
from inspect import signature
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from agents.errors import InputError, StorageError, TuringlikeError, printable
from agents.stimuli import ALL_TASKS, SHORT, TASKS
from serving.exchange.importing.row_rules import RowRule, row_rule
from serving.files.signs_of_life import still
from serving.scheduling.interrupts import OWN_ERROR, Interrupted

GROUP = "turinglike.commands"
PROBLEMS_SHOWN = 50  # on a terminal
SET_COMMANDS = ("check", "generate", "bench")  # read a stimulus set, whose problems `check --json` lists all
DEVICE = "where agents compute (default auto: on a GPU if the machine has one)"
log = logging.getLogger("turinglike.commands")


class Parser(argparse.ArgumentParser):
    """argparse with Turinglike's form of errors."""

    def error(self, message: str) -> NoReturn:
        """Print ``turinglike: MESSAGE`` on stderr and end with the exit code 2."""
        self.exit(2, f"turinglike: {printable(message)}; `{self.prog} --help` tells more\n")


# Types of options: each reads a text of the command line, and raises ArgumentTypeError for a wrong one.


def number(text: str, lowest: int = 0, highest: int = 10**9) -> int:
    """A whole number from ``lowest`` to ``highest``, in digits alone: ``-1``, ``1e3`` and ``1_000`` are wrong."""
    if not text.isdecimal() or not lowest <= int(text) <= highest:
        raise argparse.ArgumentTypeError(f"must be a whole number from {lowest:,} to {highest:,}, not {text!r}")
    return int(text)


def positive(text: str) -> int:
    """A whole number from 1 to a billion."""
    return number(text, 1)


def seed(text: str) -> int:
    """A seed: a whole number below 2**53, so that JSON readers of every language hold it exactly."""
    return number(text, 0, 2**53 - 1)


def port(text: str) -> int:
    """A TCP port, from 1 to 65535."""
    return number(text, 1, 65535)


def path(text: str) -> Path:
    """A path that need not exist. An empty text is wrong, which ``Path`` would take for the current folder."""
    if not text:
        raise argparse.ArgumentTypeError("must not be empty")
    return Path(text)


def frame(text: str) -> tuple[int, int]:
    """Width and height in pixels, from ``1680x1050``."""
    across, _, down = text.partition("x")
    return positive(across), positive(down)


def responses(text: str) -> dict[str, str]:
    """Meanings of keys or buttons, from ``f=human,j=machine``."""
    parts = [part.partition("=") for part in text.split(",")]
    pairs = [(key.strip().lower(), meant.strip()) for key, _, meant in parts]
    if len({key for key, _ in pairs}) < len(pairs) or any(meant not in ("human", "machine") for _, meant in pairs):
        raise argparse.ArgumentTypeError(f"must be as f=human,j=machine, not {text!r}")
    return dict(pairs)


def rows_rule(text: str) -> RowRule:
    """A rule of ``--rows``, ``phase=test`` or ``phase!=practice``; ``phase=`` are the rows in which it is empty."""
    try:
        return row_rule(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def table_columns(text: str) -> dict[str, str]:
    """Columns by field, from ``subject=participant.code,rt=key_resp.rt``."""
    pairs = [part.partition("=") for part in text.split(",")]
    columns = {name.strip(): column.strip() for name, _, column in pairs}
    if len(columns) < len(pairs) or not all(name and column for name, column in columns.items()):
        raise argparse.ArgumentTypeError(f"must be as subject=participant.code,response=word, not {text!r}")
    return columns


def task(text: str) -> str:
    """The full name of a participants' task, from its full or short name: ``color`` is ``color_estimation``."""
    return _task(text, TASKS)


def tasks(text: str) -> tuple[str, ...]:
    """The full names of several participants' tasks, from ``color,word``."""
    return tuple(task(name.strip()) for name in text.split(","))


def any_task(text: str) -> str:
    """As :func:`task`; also ``judgement``, the task of judges."""
    return _task(text, ALL_TASKS)


def _task(text: str, allowed: Sequence[str]) -> str:
    name = SHORT.get(text, text)
    if name not in allowed:
        names = ", ".join([*SHORT, *(name for name in allowed if name not in SHORT.values())])
        raise argparse.ArgumentTypeError(f"must be {names}, or one of these in full, not {text!r}")
    return name


def replicas(text: str) -> int | None:
    """The number of workers for each agent; None for ``auto``."""
    return None if text == "auto" else positive(text)


def sizes(text: str) -> tuple[int, ...]:
    """Whole numbers in rising order, each once, from ``4,1,2``."""
    return tuple(sorted({positive(part) for part in text.split(",")}))


def seconds(text: str) -> float:
    """A duration in seconds, above 0."""
    return real(text, 1e-9, 1e9)


def minutes(text: str) -> float:
    """A duration in minutes, above 0."""
    return real(text, 1e-9, 1e6)


def price(text: str) -> float:
    """A price in any currency, from 0."""
    return real(text, 0, 1e9)


def share(text: str) -> float:
    """A part of a whole, from 0 to 1."""
    return real(text, 0, 1)


def real(text: str, lowest: float, highest: float) -> float:
    """A number from ``lowest`` to ``highest``; ``nan`` is wrong."""
    value = float(text)
    if not lowest <= value <= highest:
        raise argparse.ArgumentTypeError(f"must be from {lowest:g} to {highest:g}, not {text!r}")
    return value


# Options that several commands have.


def settings_options() -> Parser:
    """Options of commands that make agents."""
    shared = Parser(add_help=False)
    shared.add_argument(
        "--set",
        action="append",
        default=[],
        dest="settings",
        metavar="AGENT.FIELD=VALUE",
        help="give a setting of an agent a value, such as mmcq.colors=8; may be repeated",
    )
    shared.add_argument(
        "--config",
        type=path,
        metavar="FILE",
        help="a TOML file with settings of agents, and with variants (a variant is an agent under a new name, with "
        "its own settings)",
    )
    return shared


def worker_options() -> Parser:
    """Options of commands that start workers."""
    shared = Parser(add_help=False)
    loudness = shared.add_mutually_exclusive_group()
    loudness.add_argument("-q", "--quiet", action="store_true", help="print only errors and the result")
    details = "also print where agents run, sizes of batches, loading times, and lost workers"
    loudness.add_argument("-v", "--verbose", action="store_true", help=details)
    shared.add_argument(
        "--batch-size",
        type=positive,
        metavar="N",
        help="number of answers in a batch (default: the number that each agent declares)",
    )
    shared.add_argument(
        "--address",
        metavar="A",
        help="the address of a running Ray cluster (default: start Ray, which runs the workers, on this machine)",
    )
    shared.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto", help=DEVICE)
    shared.add_argument(
        "--timeout",
        type=seconds,
        default=600.0,
        metavar="S",
        help="largest number of seconds for one batch (default 600)",
    )
    shared.add_argument(
        "--load-timeout",
        type=seconds,
        default=1800.0,
        metavar="S",
        help="largest number of seconds for loading an agent (default 1800)",
    )
    return shared


def source_options() -> Parser:
    """Options of commands that read a stimulus set."""
    shared = Parser(add_help=False)
    forms = "the stimulus set: a .jsonl, .csv or .parquet file, a .txt file of words, or a folder of pictures"
    shared.add_argument("source", type=path, metavar="STIMULI", help=forms)
    shared.add_argument(
        "--task",
        type=tasks,
        dest="tasks",
        default=(),
        metavar="TASK[,TASK]",
        help="the task of rows that name no task: color, object, attention, caption, word or conversation; "
        "several of pictures with commas between them. With a single TASK a row with another task is an error",
    )
    return shared


def json_option() -> Parser:
    """The option of commands that can print JSON."""
    shared = Parser(add_help=False)
    shared.add_argument("--json", action="store_true", help="print JSON, for programs")
    return shared


@dataclass(frozen=True, slots=True)
class Commands:
    """What a package adds its commands with. The fields but ``parsers`` are options to give to :meth:`add`."""

    parsers: Any
    """argparse's object that holds the parsers of all commands."""
    settings: Parser
    """``--set`` and ``--config``, for commands that make agents."""
    workers: Parser
    """``--device``, ``--batch-size`` and others, for commands that start workers."""
    as_json: Parser
    """``--json``, for commands that can print JSON."""

    def add(
        self,
        name: str,
        run: str | Callable[[argparse.Namespace], int],
        summary: str,
        *shared: Parser,
        example: str = "",
        uses_ray: bool = False,
        doing: str = "",
        check: Callable[[argparse.Namespace], object] | None = None,
        resumes: bool = False,
    ) -> argparse.ArgumentParser:
        """Add the command ``name``, and return its parser, to which its own options are added.

        ``run`` carries the command out and returns its exit code. It is a function of the options, or
        "module:function": that module is imported when the command runs, and each parameter of the function gets the
        option of its name. ``summary`` is a phrase in small letters, for ``--help``. ``shared`` are options that
        several commands have. ``example`` is what follows the command's name. With ``uses_ray`` it runs in a child
        process that is watched. ``doing`` says what a command does that may be long and prints nothing meanwhile, as
        "reading the files": it then says from time to time that it is still doing it. ``check`` raises InputError for
        options that the command will refuse; ``turinglike run`` calls it before the first step of a project. With
        ``resumes`` the same command finds out by itself what is left to do, so that ``turinglike run`` repeats it.
        """
        example_line = f"Example: turinglike {name} {example}".rstrip()
        command: argparse.ArgumentParser = self.parsers.add_parser(
            name, help=summary, description=summary[0].upper() + summary[1:] + ".", epilog=example_line, parents=shared
        )
        function = partial(_call, run) if isinstance(run, str) else run
        command.set_defaults(carried_out_by=function, uses_ray=uses_ray, doing=doing, checked_by=check, resumes=resumes)
        return command


def _call(target: str, options: argparse.Namespace) -> int:
    module, _, name = target.partition(":")
    function = getattr(import_module(module), name)
    values = {**vars(options), "options": options}
    return function(**{name: values[name] for name in signature(function).parameters}) or 0


def arguments(function: Callable[..., Any], options: argparse.Namespace) -> dict[str, Any]:
    """The options of a command that ``function`` takes, by the names of its parameters."""
    return {name: value for name, value in vars(options).items() if name in signature(function).parameters}


def add_registered(commands: Commands) -> None:
    """Add the commands of all installed packages. Those that cannot be imported are named on stderr and left out."""
    for point in metadata.entry_points(group=GROUP):
        try:
            point.load()(commands)
        except (Exception, SystemExit) as error:
            log.warning("%s", printable(f"turinglike: the commands of {point.value} are left out: {error!r}"))


Options = TypeVar("Options")


def from_options(kind: type[Options], options: argparse.Namespace, **more: Any) -> Options:
    """An object of the dataclass ``kind``: each field gets the option of its name, or the value in ``more``."""
    names = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    return kind(**{name: value for name, value in {**vars(options), **more}.items() if name in names})


def carry_out(options: argparse.Namespace) -> int:
    """Run the command that ``options`` name; returns its exit code (:mod:`serving.cli` lists them). Prints errors on
    stderr: known ones as a sentence, others with their traceback."""
    # Pillow warns of odd metadata in stimuli; what matters of them becomes an error of that stimulus.
    warnings.filterwarnings("ignore", module="PIL")
    try:
        with still(options.doing, quiet=not options.doing):
            code = int(options.carried_out_by(options))
        sys.stdout.flush()
        return code
    except TuringlikeError as error:
        complain(error, options.command)
        return error.exit_code
    except Interrupted as interrupted:
        more = "" if options.command == "serve" else "; what was written stays: run the same command again to resume"
        print(f"ended{more}", file=sys.stderr)
        return 128 + interrupted.number
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except MemoryError:
        print("turinglike: this process has no memory left", file=sys.stderr)
        return OWN_ERROR
    except BrokenPipeError:
        # The reader of our output (head, less) has gone; what it did not read is no error.
        _drop_output()
        return 0
    except Exception as error:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            _drop_output()
            print(f"turinglike: nothing more can be written: {error}", file=sys.stderr)
            return StorageError.exit_code
        traceback.print_exc()
        return OWN_ERROR


def _drop_output() -> None:
    """Send what is still to be written to nowhere: at its end Python would fail again on writing it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def open_standard_streams() -> None:
    """Open closed standard streams (as after ``>&-``) to nowhere. Otherwise the first file that is opened takes the
    stream's number, and what is printed goes into that file."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            if nowhere != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
            setattr(sys, name, os.fdopen(number, mode))


def complain(error: TuringlikeError, command: str) -> None:
    """Print an error of ``command`` on stderr, after the first 50 of its problems."""
    problems = error.problems if isinstance(error, InputError) else ()
    for problem in problems[:PROBLEMS_SHOWN]:
        print(problem, file=sys.stderr)
    if len(problems) > PROBLEMS_SHOWN:
        more = f"… and {len(problems) - PROBLEMS_SHOWN} more"
        if command in SET_COMMANDS:
            more += "; `turinglike check --json` lists them all"
        print(more, file=sys.stderr)
    print(f"turinglike: {error}", file=sys.stderr)
