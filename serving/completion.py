"""``turinglike completion``: the completion of commands, options, agents and files for a shell, by shtab."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import shtab

from agents import catalogue
from agents.tasks import SHORT
from serving.command_line import path

Shell = Literal["bash", "zsh"]
OF_AGENTS = ("agents", "judges", "name")  # arguments that name some, between commas
AGENTS, OF_TASKS = "_turinglike_agents", "_turinglike_tasks"
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
            action.complete = {"bash": AGENTS, "zsh": AGENTS}  # type: ignore[attr-defined]
        elif action.dest == "task":
            action.complete = {"bash": OF_TASKS, "zsh": OF_TASKS}  # type: ignore[attr-defined]
    hidden = {entry.name for entry in catalogue.BUILT_IN if entry.hidden}
    agents = [name for name in catalogue.names() if name not in hidden]
    form = BASH if shell == "bash" else ZSH
    own = [
        form.format(function=function, names=" ".join(names))
        for function, names in ((AGENTS, agents), (OF_TASKS, SHORT))
    ]
    return shtab.complete(parser, shell, preamble="".join(own))


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from _actions(command)
        else:
            yield action
