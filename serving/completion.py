"""``turinglike completion``: the completion of commands, options, agents and files for a shell, by shtab."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import shtab

from agents import catalogue
from serving.command_line import path

Shell = Literal["bash", "zsh"]
OF_AGENTS = ("agents", "judges", "name")  # arguments that name some, between commas
FUNCTION = "_turinglike_agents"
BASH = """
{function}() {{
  local before=""
  [[ $1 == *,* ]] && before="${{1%,*}},"
  compgen -P "$before" -W "{names}" -- "${{1##*,}}"
}}
"""
ZSH = """
{function}() {{
  compset -P '*,'
  compadd -- {names}
}}
"""


def script(parser: argparse.ArgumentParser, shell: Shell) -> str:
    """What the ``shell`` evaluates, for all that the ``parser`` takes."""
    for action in _actions(parser):
        if action.type in (path, Path):
            action.complete = shtab.FILE  # type: ignore[attr-defined]
        elif action.dest in OF_AGENTS and not action.choices:
            action.complete = {"bash": FUNCTION, "zsh": FUNCTION}  # type: ignore[attr-defined]
    names = " ".join(name for name, entry in catalogue.entries().items() if not entry.hidden)
    own = (BASH if shell == "bash" else ZSH).format(function=FUNCTION, names=names)
    return shtab.complete(parser, shell, preamble=own)


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from _actions(command)
        else:
            yield action
