"""``turinglike completion``: a script by which a shell completes commands, options, files and names of agents."""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from agents import catalogue
from agents.errors import UnavailableError
from agents.stimuli import TASKS
from serving.commands.command_line import path

SHELLS = ("bash", "zsh", "fish")
CUES = "cues"  # of --judges: all judges by one cue


def print_completion(parser: argparse.ArgumentParser, shell: str) -> int:
    """Print the script of ``shell`` for the whole command line ``parser``, with the names of the agents and judges that
    there are now. Returns 0. Raises UnavailableError without the package shtab."""
    try:
        import shtab
    except ImportError as error:
        raise UnavailableError(f"shell completion needs one more package ({error}): pip install shtab") from None
    entries = catalogue.entries().values()
    agents = _names("agents", [entry.name for entry in entries if set(entry.tasks) & set(TASKS)])
    judges = _names("judges", [CUES, *(entry.name for entry in entries if "judgement" in entry.tasks)])
    for action in _actions(parser):
        if action.type in (path, Path) or action.metavar == "FILE":
            action.complete = shtab.FILE  # type: ignore[attr-defined]
        elif action.dest == "judges":
            action.complete = judges  # type: ignore[attr-defined]
        elif action.dest == "agents" and action.type is None:
            action.complete = agents  # type: ignore[attr-defined]
    print(shtab.complete(parser, shell=shell))
    return 0


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """The options and arguments of a parser, and of the parsers of its commands."""
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for of_command in action.choices.values():
                yield from _actions(of_command)


def _names(what: str, names: Sequence[str]) -> dict[str, object]:
    """How each shell completes ``names``, also behind a comma; bash also behind the ~ of a pair."""
    words = " ".join(names)
    function = f"_turinglike_{what}"
    in_bash = f"""{function}() {{
  local last="${{1##*[,~]}}"
  compgen -P "${{1%"$last"}}" -W "{words}" -- "$last"
}}"""
    return {
        "bash": function,
        "zsh": f"_values -s , {what} {words}",
        "fish": f"(__fish_append , {words})",
        "preamble": {"bash": in_bash},
    }
