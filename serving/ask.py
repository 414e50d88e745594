"""``turinglike ask``: answers to a few stimuli, at once, in this process."""

from __future__ import annotations

import argparse
import sys

import orjson
from rich.text import Text

from agents.answers import BY_TASK, ConversationAnswer, ObjectAnswer, ScanpathAnswer
from agents.errors import InputError, printable
from serving.asking import Agents
from serving.terminal import plain_table, print_table
from serving.typed_records import Records, TypedRecord


def ask(options: argparse.Namespace) -> int:
    """Run the command; returns its exit code: 1 if an answer failed. Raises TuringlikeError."""
    names = [name for name in options.agents.split(",") if name]
    images = options.image[0] if options.image is not None and len(options.image) == 1 else options.image
    shown = (images, options.cue, options.topic, options.message)
    if sum(given is not None for given in shown) != 1:
        raise InputError("ask: give pictures (--image), cues (--cue), topics (--topic) or messages (--message)")
    agents = Agents(names, config=options.config, assignments=options.settings, device=options.device)
    given = agents.check(None, *shown, options.task, options.samples, options.seed)
    if sys.stderr.isatty():
        print(f"loading {' and '.join(agents.entries)}", file=sys.stderr, flush=True)
    with agents:
        records = agents.answer_checked(given, options.samples, options.seed)
    if options.json:
        for record in records:
            print(orjson.dumps(record.model_dump(mode="json", by_alias=True)).decode())
    else:
        _print(records)
    return int(any(record.status == "failed" for record in records))


def _print(records: Records) -> None:
    """The answers for a person; of several also what was shown and who answered."""
    if len(records) == 1:
        print("\n".join(map(printable, _lines(records[0]))))
        return
    table = plain_table("stimulus", "agent", "answer")
    for record in records:
        said = "\n".join(map(printable, _lines(record)))
        table.add_row(Text(printable(record.stimulus)), record.agent, Text(said))
    print_table(table)


def _lines(record: TypedRecord) -> list[str]:
    """An answer in words."""
    if record.status == "failed" and record.error is not None:
        return [f"failed: {record.error.code}: {record.error.message}"]
    match record.answer:
        case ObjectAnswer() as objects:
            return [", ".join(objects.labels)]
        case ScanpathAnswer() as path:
            return [" ".join(f"{x:g},{y:g}" for x, y in path.fixations)]
        case ConversationAnswer() as talk:
            return [f"{one.speaker}: {one.text}" for one in talk.messages]
        case None:
            return [f"{record.status}: no answer"]
        case answer:  # one text, which is its first field
            said = str(getattr(answer, next(iter(BY_TASK[record.task].model_fields))))
            return [said if record.status == "ok" else f"{said} ({record.status})"]
