"""``turinglike ask``: prints agents' answers to a few pictures, words or topics at once."""

import argparse
import os
import sys
from collections import Counter
from pathlib import Path

from rich.text import Text

from agents.errors import InputError, printable
from serving.files.terminal import plain_table, print_json, print_table
from serving.library.asking import Agents
from serving.library.typed_records import Records
from serving.sets.stimulus_set import SET_SUFFIXES


def ask(options: argparse.Namespace) -> int:
    """Carry out ``turinglike ask``: print the answers, with ``--json`` the records, a line each. Returns 1 if an answer
    failed, else 0. Raises TuringlikeError."""
    names = [name for name in options.agents.split(",") if name]
    files = options.material
    is_set = len(files) == 1 and (os.path.splitext(files[0])[1].lower() in SET_SUFFIXES or os.path.isdir(files[0]))
    stimuli = Path(files[0]) if is_set else None
    pictures = [*(options.image or ())]
    if not is_set:
        pictures = [*files, *pictures]
    images = pictures[0] if len(pictures) == 1 else pictures or None
    sources = (stimuli, images, options.cue, options.topic, options.message)
    if sum(source is not None for source in sources) != 1:
        raise InputError("ask: give pictures or one set (FILE), cues (--cue), topics (--topic) or messages (--message)")
    agents = Agents(names, config=options.config, assignments=options.settings, device=options.device)
    query = agents.check(*sources, options.task, options.samples, options.seed)
    if sys.stderr.isatty():
        print(f"loading {' and '.join(agents.entries)}", file=sys.stderr, flush=True)
    with agents:
        records = agents.answer_checked(query)
    if options.json:
        for record in records:
            print_json(record.model_dump(mode="json", by_alias=True), is_indented=False)
    else:
        _print(records)
        _print_notes(records)
    return int(any(record.status == "failed" for record in records))


def _print_notes(records: Records) -> None:
    """Print on stderr what filters noted about answers that they let pass, the first note of each filter. Those about
    conversations are many, and stand in the records."""
    counts: Counter[tuple[str, str]] = Counter()
    first: dict[tuple[str, str], str] = {}
    for record in records:
        if record.task == "conversation":
            continue
        for attempt in record.attempts:
            for verdict in attempt.verdicts:
                if not verdict.rejected:
                    key = (record.agent, verdict.filter)
                    counts[key] += 1
                    first.setdefault(key, f"{record.stimulus}: {verdict.found}")
    for (agent, name), found in first.items():
        number = counts[agent, name]
        more = f" (the first of {number} answers)" if number > 1 else ""
        print(printable(f"noted by {agent}'s filter {name}: {found}{more}"), file=sys.stderr)


def _print(records: Records) -> None:
    if len(records) == 1:
        print("\n".join(map(printable, records[0].text().splitlines())))
        return
    table = plain_table("stimulus", "agent", "answer")
    for record in records:
        text = "\n".join(map(printable, record.text().splitlines()))
        table.add_row(record.stimulus, record.agent, Text(text))
    print_table(table)
