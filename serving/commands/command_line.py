"""What commands share. Packages add commands by the entry-point group ``turinglike.commands``."""

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
from serving.exchange.importing.source import RowRule
from serving.scheduling.interrupts import OWN_ERROR, Interrupted

GROUP = "turinglike.commands"
SHOWN = 50  # problems on a terminal
OF_SETS = ("check", "generate", "bench")  # commands that read a set of stimuli, of which `check --json` says all
log = logging.getLogger("turinglike.commands")


class Parser(argparse.ArgumentParser):
    """argparse with Turinglike's form of errors."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"turinglike: {printable(message)}; `{self.prog} --help` tells more\n")


def number(text: str, lowest: int = 0, highest: int = 10**9) -> int:
    if not text.isdecimal() or not lowest <= int(text) <= highest:
        raise argparse.ArgumentTypeError(f"must be a whole number from {lowest:,} to {highest:,}, not {text!r}")
    return int(text)


def positive(text: str) -> int:
    return number(text, 1)


def seed(text: str) -> int:
    return number(text, 0, 2**53 - 1)


def port(text: str) -> int:
    return number(text, 1, 65535)


def path(text: str) -> Path:
    if not text:
        raise argparse.ArgumentTypeError("must not be empty")
    return Path(text)


def frame(text: str) -> tuple[int, int]:
    across, _, down = text.partition("x")
    return positive(across), positive(down)


def responses(text: str) -> dict[str, str]:
    """Meanings of keys or buttons, from ``f=human,j=machine``."""
    parts = [part.partition("=") for part in text.split(",")]
    pairs = [(key.strip().lower(), meant.strip()) for key, _, meant in parts]
    if len({key for key, _ in pairs}) < len(pairs) or any(meant not in ("human", "machine") for _, meant in pairs):
        raise argparse.ArgumentTypeError(f"must be as f=human,j=machine, not {text!r}")
    return dict(pairs)


def row_rule(text: str) -> RowRule:
    """A rule of ``--rows``, ``phase=test`` or ``phase!=practice``; ``phase=`` are the rows in which it is empty."""
    column, sign, value = text.partition("=")
    if not sign or not column.strip("! "):
        raise argparse.ArgumentTypeError(f"must be as phase=test or phase!=practice, not {text!r}")
    return RowRule(column.removesuffix("!").strip(), value.strip(), unlike=column.endswith("!"))


def table_columns(text: str) -> dict[str, str]:
    """Columns by field, from ``subject=participant.code,rt=key_resp.rt``."""
    pairs = [part.partition("=") for part in text.split(",")]
    columns = {name.strip(): column.strip() for name, _, column in pairs}
    if len(columns) < len(pairs) or not all(name and column for name, column in columns.items()):
        raise argparse.ArgumentTypeError(f"must be as subject=participant.code,response=word, not {text!r}")
    return columns


def task(text: str) -> str:
    """A participants' task by its full or short name."""
    return _task(text, TASKS)


def tasks(text: str) -> tuple[str, ...]:
    return tuple(task(name.strip()) for name in text.split(","))


def any_task(text: str) -> str:
    """As :func:`task`, or that of judges."""
    return _task(text, ALL_TASKS)


def _task(text: str, known: Sequence[str]) -> str:
    if (name := SHORT.get(text, text)) not in known:
        names = ", ".join([*SHORT, *(name for name in known if name not in SHORT.values())])
        raise argparse.ArgumentTypeError(f"must be {names}, or one of these in full, not {text!r}")
    return name


def replicas(text: str) -> int | None:
    return None if text == "auto" else positive(text)


def sizes(text: str) -> tuple[int, ...]:
    return tuple(sorted({positive(part) for part in text.split(",")}))


def seconds(text: str) -> float:
    return real(text, 1e-9, 1e9)


def share(text: str) -> float:
    return real(text, 0, 1)


def real(text: str, lowest: float, highest: float) -> float:
    if not lowest <= (value := float(text)) <= highest:
        raise argparse.ArgumentTypeError(f"must be from {lowest:g} to {highest:g}, not {text!r}")
    return value


def settings_options() -> Parser:
    """Options of commands that make agents."""
    shared = Parser(add_help=False)
    shared.add_argument("--set", action="append", default=[], dest="settings", metavar="AGENT.FIELD=VALUE")
    shared.add_argument("--config", type=path, metavar="FILE", help="TOML: settings and named variants of agents")
    return shared


def worker_options() -> Parser:
    """Options of commands that start workers."""
    shared = Parser(add_help=False)
    loudness = shared.add_mutually_exclusive_group()
    loudness.add_argument("-q", "--quiet", action="store_true", help="say nothing but errors and the result")
    why = "say why, too: where agents are placed, their batches, loads, lost workers"
    loudness.add_argument("-v", "--verbose", action="store_true", help=why)
    shared.add_argument("--batch-size", type=positive, metavar="N", help="instead of each agent's own")
    shared.add_argument("--address", metavar="A", help="a Ray cluster instead of a local Ray")
    shared.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    shared.add_argument("--timeout", type=seconds, default=600.0, metavar="S", help="seconds for one batch")
    shared.add_argument("--load-timeout", type=seconds, default=1800.0, metavar="S", help="seconds to load an agent")
    return shared


def source_options() -> Parser:
    """Options of commands that read a stimulus set."""
    shared = Parser(add_help=False)
    about = "a .jsonl, .csv or .parquet file, a .txt of words, or a folder of pictures"
    shared.add_argument("source", type=path, metavar="set", help=about)
    names = "color, object, attention, caption, word, conversation; for rows that name none, and no other may be named"
    shared.add_argument("--task", type=task, metavar="TASK", help=names)
    return shared


def json_option() -> Parser:
    shared = Parser(add_help=False)
    shared.add_argument("--json", action="store_true")
    return shared


@dataclass(frozen=True, slots=True)
class Commands:
    """What a package adds its commands with, and shared options."""

    parsers: Any
    settings: Parser
    workers: Parser
    as_json: Parser

    def add(
        self,
        name: str,
        run: str | Callable[[argparse.Namespace], int],
        summary: str,
        *shared: Parser,
        example: str = "",
        uses_ray: bool = False,
    ) -> argparse.ArgumentParser:
        """Add a command. ``run`` returns its exit code: a function of the options, or "module:function"."""
        example_line = f"Example: turinglike {name} {example}".rstrip()
        made: argparse.ArgumentParser = self.parsers.add_parser(
            name, help=summary, description=summary[0].upper() + summary[1:] + ".", epilog=example_line, parents=shared
        )
        made.set_defaults(run=partial(_call, run) if isinstance(run, str) else run, uses_ray=uses_ray)
        return made


def _call(target: str, options: argparse.Namespace) -> int:
    module, _, name = target.partition(":")
    function = getattr(import_module(module), name)
    values = {**vars(options), "options": options}
    return function(**{name: values[name] for name in signature(function).parameters}) or 0


def add_registered(commands: Commands) -> None:
    """Add every package's commands; failed imports are named on stderr."""
    for point in metadata.entry_points(group=GROUP):
        try:
            point.load()(commands)
        except (Exception, SystemExit) as error:
            log.warning("%s", printable(f"turinglike: the commands of {point.value} are left out: {error!r}"))


Chosen = TypeVar("Chosen")


def from_options(kind: type[Chosen], options: argparse.Namespace, **more: Any) -> Chosen:
    """The dataclass ``kind`` from options of the same names."""
    names = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    return kind(**{name: value for name, value in {**vars(options), **more}.items() if name in names})


def carry_out(options: argparse.Namespace) -> int:
    """Run the chosen command; returns its exit code and prints errors on stderr."""
    # Pillow warns of odd metadata in stimuli; what matters of them becomes an error of that stimulus.
    warnings.filterwarnings("ignore", module="PIL")
    try:
        code = int(options.run(options))
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
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def open_standard_streams() -> None:
    """Open closed standard streams to nowhere, so that no file takes their numbers."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            if nowhere != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
            setattr(sys, name, os.fdopen(number, mode))


def complain(error: TuringlikeError, command: str) -> None:
    """Print an error of a command, with the first problems."""
    problems = error.problems if isinstance(error, InputError) else ()
    for problem in problems[:SHOWN]:
        print(problem, file=sys.stderr)
    if len(problems) > SHOWN:
        more = f"… and {len(problems) - SHOWN} more"
        if command in OF_SETS:
            more += "; `turinglike check --json` lists them all"
        print(more, file=sys.stderr)
    print(f"turinglike: {error}", file=sys.stderr)
