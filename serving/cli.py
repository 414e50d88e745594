"""The command ``turinglike``.

Exit codes: 0 all answered; 1 failed records or downloads; 2 wrong usage or input; 3 an agent stopped; 4 the run
folder cannot be written; 5 Ray failed; 70 an internal error, with a traceback; 130 and 143 Ctrl-C and SIGTERM.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from agents import __version__
from agents.errors import printable
from serving.commands import answer_commands, run_commands
from serving.commands.command_line import (
    Commands,
    Parser,
    add_registered,
    carry_out,
    json_option,
    open_standard_streams,
    path,
    settings_options,
    worker_options,
)
from serving.commands.completion import SHELLS, print_completion
from serving.projects.project_file import FILE as PROJECT
from serving.projects.running import run_project
from serving.scheduling.interrupts import watched
from serving.scheduling.machine import collect_rarely


def build_parser() -> argparse.ArgumentParser:
    """The parser of the whole command line, with the commands that installed packages add."""
    parser = Parser(
        prog="turinglike",
        description="Let machine agents answer Turing-like tests, and find out which agents pass as a person.",
    )
    parser.add_argument("--version", action="version", version=f"turinglike {__version__}")
    parsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=Parser)
    commands = Commands(parsers, settings_options(), worker_options(), json_option())
    answer_commands.register(commands)
    run_commands.register(commands)
    add_registered(commands)
    completion = commands.add(
        "completion",
        lambda options: print_completion(parser, options.shell),
        "print a script by which a shell completes commands, options, files and names of agents",
        example="bash",
    )
    completion.add_argument("shell", choices=SHELLS, help="the shell")
    whole = commands.add(
        "run",
        lambda options: run_project(options.file, parser, options.steps, options.dry_run),
        f"carry out a whole project: the commands of a file {PROJECT} in their order, without what is done already",
    )
    whole.add_argument(
        "file",
        nargs="?",
        type=path,
        default=Path(PROJECT),
        metavar="FILE",
        help=f"the project's file (default {PROJECT})",
    )
    whole.add_argument(
        "--steps",
        type=lambda text: [name.strip() for name in text.split(",")],
        default=[],
        metavar="A,B",
        help="carry out only the steps with these names, also if they were done before: for example judge,score",
    )
    whole.add_argument("--dry-run", action="store_true", help="check the file, and print the command of each step")
    return parser


def main(arguments: Sequence[str]) -> int:
    """Run ``turinglike`` with these arguments in this process; returns the exit code. Raises SystemExit for ``--help``
    and wrong usage."""
    return carry_out(_parsed(arguments))


def _parsed(arguments: Sequence[str]) -> argparse.Namespace:
    parser = build_parser()
    options, unknown = parser.parse_known_args(arguments)
    if options.command == "ask" and not any(text.startswith("-") for text in unknown):
        options.material += unknown  # files that stand behind an option
    elif unknown:
        message = printable(f"unrecognized arguments: {' '.join(unknown)}")
        parser.exit(2, f"turinglike: {message}; `turinglike {options.command} --help` tells more\n")
    return options


def command() -> int:
    """Run the shell's ``turinglike``; returns the exit code. A command that uses Ray runs in a child process, which
    this one watches: Ray may kill or hang the process that uses it (see
    :func:`serving.scheduling.interrupts.watched`). The process is the command's own, so that its collector of garbage
    may be set: reading records makes objects by the thousand, and none of them in circles."""
    open_standard_streams()
    collect_rarely()
    options = _parsed(sys.argv[1:])
    if options.uses_ray:
        return watched(lambda: carry_out(options))
    return carry_out(options)


if __name__ == "__main__":
    sys.exit(command())
