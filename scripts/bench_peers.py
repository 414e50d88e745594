"""Turinglike beside other programs that do the same work, on this machine.

    python scripts/bench_peers.py --works stimuli,http,chat,captions --environments peers --install --out peers.json

All sides of a work take turns, ``--repeats`` times, so that what else the machine does meets all of them. The table
has the middle of each side's rates and, with the least and the most, of their ratio turn by turn.

Peers are no dependencies. Their environments are looked for in ``--environments``, below the names that ``--install``
gives those that it makes by uv; then in this environment. What is not there is told as "not measured", with the
reason, and the exit code stays 0. The exit code is 1 if a peer gave other answers than Turinglike, 2 for wrong usage.
After Ctrl-C and SIGTERM you have what was measured until then.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from peers import captions, chat, noop_http, noop_stimuli
from peers.measuring import Interpreters, Row, Work, by_turns, machine, rows_of
from rich.console import Console
from rich.table import Table

from agents import __version__

SCHEMA = "turinglike.peers/1"


def numbers(text: str) -> list[int]:
    """Whole numbers from 1, between commas."""
    values = [int(part) for part in text.split(",")]
    if min(values) < 1:
        raise ValueError
    return values


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--works", default="stimuli,http,chat,captions", help="which kinds of work (default: all)")
    add("--repeats", type=int, default=3, help="turns of each side (3)")
    add("--environments", type=Path, metavar="FOLDER", help="a folder with an environment for each peer")
    add("--install", action="store_true", help="make the environments that FOLDER lacks")
    add("--out", type=Path, metavar="FILE", help="where the JSON goes; without it the last line of stdout has it")
    add("--stimuli", type=numbers, default=[200_000, 400_000], help="sizes of the set (200000,400000)")
    add("--seconds", type=float, default=10.0, help="how long a server is asked (10)")
    add("--connections", type=int, default=64, help="connections to a server (64)")
    add("--words", type=int, default=64, help="word associations of the chat model (64)")
    add("--talks", type=int, default=16, help="messages of the chat model (16)")
    add("--pictures", type=int, default=256, help="pictures that tiny captioners describe (256)")
    add("--large-pictures", type=int, default=32, help="pictures for captioners of real size; 0 leaves them out (32)")
    add("--cores", type=int, default=0, help="how many cores all programs may use; 0: all (0)")
    options = parser.parse_args(argv)
    if options.install and options.environments is None:
        parser.error("--install needs --environments FOLDER")
    if unknown := set(options.works.split(",")) - WORKS.keys():
        parser.error(f"no such works: {', '.join(sorted(unknown))}; there are {', '.join(WORKS)}")
    if options.repeats < 1 or min(options.words, options.talks, options.pictures, options.connections) < 1:
        parser.error("numbers are from 1")
    return options


Makes = Callable[[argparse.Namespace, Path, Interpreters], Iterator[Work]]
WORKS: dict[str, Makes] = {
    "stimuli": lambda options, folder, found: noop_stimuli.works(folder, options.stimuli, found),
    "http": lambda options, folder, found: noop_http.works(folder, options.seconds, options.connections, found),
    "chat": lambda options, folder, found: chat.works(folder, options.words, options.talks, found),
    "captions": lambda options, folder, found: captions.works(folder, options.pictures, options.large_pictures, found),
}


def measure(options: argparse.Namespace, interpreters: Interpreters, tell: Callable[[str], None]) -> list[Row]:
    """The rows of all works."""
    rows: list[Row] = []
    for name in options.works.split(","):
        with tempfile.TemporaryDirectory(prefix="peers-", ignore_cleanup_errors=True) as scratch:
            folder = Path(scratch)
            for work in WORKS[name](options, folder, interpreters):
                measured = by_turns(work, options.repeats, folder / "turns", tell)
                commands = {side.name: side.command for side in work.sides}
                for row in rows_of(work, measured):
                    row["commands"] = {side: commands[side] for side in (row["side"], row["beside"])}
                    rows.append(row)
                if measured.is_stopped:
                    return rows
    return rows


def table_of(rows: Sequence[Row]) -> Table:
    """The table: a row for each measure of two sides."""
    table = Table("work", "measure", "Turinglike", "beside", "its", "ratio (least to most)")
    for row in rows:
        names = (row["work"], row["measure"])
        if "ratio" in row:
            ratio = row["ratio"]
            bounds = f"{ratio['middle']:.2f} ({ratio['least']:.2f} to {ratio['most']:.2f})"
            ours = f"{row['ours']['middle']:,.4g} ({row['side']})"
            table.add_row(*names, ours, row["beside"], f"{row['peer']['middle']:,.4g}", bounds)
        elif "wrong" in row:
            table.add_row(*names, row["side"], row["beside"], "", f"wrong answer: {row['wrong']}")
        else:
            table.add_row(*names, row["side"], row["beside"], "", f"not measured ({row['not_measured']})")
    return table


def main(argv: Sequence[str] | None = None) -> int:
    """The command. Returns its exit code."""
    options = arguments(argv)
    if options.cores:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.cores])
    began = machine()
    interpreters = Interpreters(options.environments and options.environments.absolute(), options.install)
    rows = measure(options, interpreters, lambda line: print(line, file=sys.stderr, flush=True))
    result = {
        "schema": SCHEMA,
        "command": sys.argv[1:] if argv is None else list(argv),
        "machine": began,
        "load_after": machine()["load"],
        "versions": {"turinglike": __version__, **interpreters.versions()},
        "rows": rows,
    }
    Console(width=200, stderr=options.out is None).print(table_of(rows))
    text = json.dumps(result)
    if options.out is None:
        print(text)
    else:
        options.out.write_text(text + "\n")
    return int(any("wrong" in row for row in rows))


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
