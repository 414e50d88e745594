"""``turinglike ask``: answers to a few stimuli, at once, in this process."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import orjson
from rich.text import Text

from agents.answers import BY_TASK, ConversationAnswer, ObjectAnswer, ScanpathAnswer
from agents.errors import InputError, printable
from serving.asking import Agents
from serving.runs.stimulus_set import SET_SUFFIXES
from serving.terminal import plain_table, print_table
from serving.typed_records import Records, TypedRecord


def ask(options: argparse.Namespace) -> int:
    """Run the command; returns its exit code: 1 if an answer failed. Raises TuringlikeError."""
    names = [name for name in options.agents.split(",") if name]
    pictures, stimuli = options.image, None
    if options.material:
        sets = [
            text
            for text in options.material
            if os.path.splitext(text)[1].lower() in SET_SUFFIXES or os.path.isdir(text)
        ]
        if sets and len(options.material) > 1:
            raise InputError(f"ask: {sets[0]} is a set; give it alone")
        stimuli = Path(sets[0]) if sets else None
        pictures = None if sets else [*options.material, *(pictures or ())]
    images = pictures[0] if pictures is not None and len(pictures) == 1 else pictures
    sources = (stimuli, images, options.cue, options.topic, options.message)
    if sum(source is not None for source in sources) != 1:
        raise InputError("ask: give pictures or one set (FILE), cues (--cue), topics (--topic) or messages (--message)")
    agents = Agents(names, config=options.config, assignments=options.settings, device=options.device)
    checked = agents.check(*sources, options.task, options.samples, options.seed)
    if sys.stderr.isatty():
        print(f"loading {' and '.join(agents.entries)}", file=sys.stderr, flush=True)
    with agents:
        records = agents.answer_checked(checked, options.samples, options.seed)
    if options.json:
        for record in records:
            print(orjson.dumps(record.model_dump(mode="json", by_alias=True)).decode())
    else:
        _print(records)
    return int(any(record.status == "failed" for record in records))


def _print(records: Records) -> None:
    if len(records) == 1:
        print("\n".join(map(printable, _lines(records[0]))))
        return
    table = plain_table("stimulus", "agent", "answer")
    for record in records:
        text = "\n".join(map(printable, _lines(record)))
        table.add_row(Text(printable(record.stimulus)), record.agent, Text(text))
    print_table(table)


def _lines(record: TypedRecord) -> list[str]:
    if record.status == "failed" and record.error is not None:
        return [f"failed: {record.error.code}: {record.error.message}"]
    match record.answer:
        case ObjectAnswer() as objects:
            return [", ".join(objects.labels)]
        case ScanpathAnswer() as path:
            return [" ".join(f"{x:g},{y:g}" for x, y in path.fixations)]
        case ConversationAnswer() as talk:
            return [f"{message.speaker}: {message.text}" for message in talk.messages]
        case None:
            return [f"{record.status}: no answer"]
        case answer:  # its first field is a text
            text = str(getattr(answer, next(iter(BY_TASK[record.task].model_fields))))
            return [text if record.status == "ok" else f"{text} ({record.status})"]
