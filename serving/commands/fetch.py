"""``turinglike fetch``: downloads agents' checkpoints."""

import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agents.capabilities import Fetching
from agents.catalogue import Entry
from agents.catalogue.selection import checked_agents, resolve
from agents.contract import Agent, Download
from agents.errors import InputError, TuringlikeError, printable
from agents.models.hub import NoNetworkError, readable
from serving.files.terminal import print_line, printed_log
from serving.files.words import count

FAILED = 1  # the exit code if not everything was brought


def _print(text: str) -> None:
    for line in text.split("\n"):
        print_line(line)


def fetch(agents: Sequence[str], settings: Sequence[str], config: Path | None) -> int:
    """Fetch what ``agents`` ("a" or "a,b") need; returns the exit code. Raises InputError before downloads."""
    names = [name for listed in agents for name in listed.split(",") if name]
    if not names:
        raise InputError("fetch: no agent is given")
    chosen = resolve(names, settings, config)
    entries = chosen.entries
    failed = []
    for name, entry in entries.items():
        try:
            entry.load_class()
        except ImportError as error:
            failed.append(name)
            _complain(name, error)
    made = checked_agents({name: entry for name, entry in entries.items() if name not in failed}, chosen.settings)
    from huggingface_hub.utils import logging as hub_logging

    brought: dict[Path, int] = {}
    hub_logging.set_verbosity(logging.ERROR)
    with printed_log("turinglike.fetch", logging.INFO, _print):
        for name, agent in made.items():
            try:
                downloads = _fetch(agent, entries[name])
            except (TuringlikeError, OSError) as error:
                failed.append(name)
                _complain(name, error)
            else:
                brought.update({download.path: download.size for download in downloads})
    if brought:
        _print(f"total: {readable(sum(brought.values()))} in {count(len(brought), 'checkpoint')}")
    if failed:
        print(f"turinglike: {len(failed)} of {len(entries)} agents could not be fetched for", file=sys.stderr)
    return FAILED if failed else 0


def _fetch(agent: Agent[Any], entry: Entry) -> Sequence[Download]:
    try:
        downloads = agent.fetch() if isinstance(agent, Fetching) else ()
    except NoNetworkError as error:
        if agent.missing() is not None:
            raise
        _print(f"{agent.name}: is on this machine; whether there is a newer revision could not be looked up\n  {error}")
        return ()
    missing = agent.missing()
    _print(agent.name if downloads else f"{agent.name}: nothing to fetch")
    for download in downloads:
        _print(_about(download, entry))
    if missing is not None:
        _print(f"  it still cannot run here: {missing}")
    return downloads


def _about(download: Download, entry: Entry) -> str:
    revision = "" if download.revision is None else f"  revision {download.revision}"
    licence = printable(download.licence or entry.licence)
    return f"  {download.name}{revision}  {readable(download.size)}  licence {licence}\n    {download.path}"


def _complain(name: str, error: Exception) -> None:
    print(printable(f"turinglike: agent {name}: {error}"), file=sys.stderr)
