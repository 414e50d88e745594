"""``turinglike fetch``: downloads the checkpoints that agents need, and tells what they are."""

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

FAILED = 1  # the exit code if something could not be downloaded


def _print(text: str) -> None:
    for line in text.split("\n"):
        print_line(line)


def fetch(agents: Sequence[str], settings: Sequence[str], config: Path | None) -> int:
    """Download the checkpoints that ``agents`` ("a" or "a,b") need, and print name, size and licence of each.

    Returns 0, or :data:`FAILED` where something could not be downloaded. Raises InputError before the first download.
    """
    names = [name for listed in agents for name in listed.split(",") if name]
    if not names:
        raise InputError("fetch: no agent is given")
    selection = resolve(names, settings, config)
    entries = selection.entries
    failed = []
    for name, entry in entries.items():
        try:
            entry.load_class()
        except ImportError as error:
            failed.append(name)
            _complain(name, error)
    importable = {name: entry for name, entry in entries.items() if name not in failed}
    agents_by_name = checked_agents(importable, selection.settings)
    from huggingface_hub.utils import logging as hub_logging

    sizes: dict[Path, int] = {}  # bytes on disk, by checkpoint
    hub_logging.set_verbosity(logging.ERROR)
    with printed_log("turinglike.fetch", logging.INFO, _print):
        for name, agent in agents_by_name.items():
            try:
                downloads = _fetch(agent, entries[name])
            except (TuringlikeError, OSError) as error:
                failed.append(name)
                _complain(name, error)
            else:
                sizes.update({download.path: download.size for download in downloads})
    if sizes:
        _print(f"total: {readable(sum(sizes.values()))} in {count(len(sizes), 'checkpoint')}")
    if failed:
        print(
            f"turinglike: for {len(failed)} of {len(entries)} agents something could not be downloaded", file=sys.stderr
        )
    return FAILED if failed else 0


def _fetch(agent: Agent[Any], entry: Entry) -> Sequence[Download]:
    try:
        downloads = agent.fetch() if isinstance(agent, Fetching) else ()
    except NoNetworkError as error:
        if agent.missing() is not None:
            raise
        _print(f"{agent.name}: is on this machine; there was no network to look for a newer revision\n  {error}")
        return ()
    missing = agent.missing()
    _print(agent.name if downloads else f"{agent.name}: nothing to fetch")
    for download in downloads:
        _print(_told(download, entry))
    if missing is not None:
        _print(f"  the agent still cannot run here: {missing}")
    return downloads


def _told(download: Download, entry: Entry) -> str:
    revision = "" if download.revision is None else f"  revision {download.revision}"
    licence = printable(download.licence or entry.licence)
    return f"  {download.name}{revision}  {readable(download.size)}  licence {licence}\n    {download.path}"


def _complain(name: str, error: Exception) -> None:
    print(printable(f"turinglike: agent {name}: {error}"), file=sys.stderr)
