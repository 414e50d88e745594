"""``python scripts/make_reference.py [--check]`` writes the JSON Schemas and the tables of agents and tells in docs/.
``--check`` writes nothing and exits 1 if a file is missing or out of date."""

import argparse
import sys
from pathlib import Path

import orjson

from agents.capabilities import checkpoint_of
from agents.catalogue.built_in import BUILT_IN, PROPRIETARY
from agents.contract import GIB, Entry
from agents.models.random_weights import RANDOM
from agents.stimuli import SHORT, TASKS
from judging.cards.card import card_schema
from judging.study.log import events
from judging.tells.listing import listed_tells
from serving.runs.json_schemas import record_schema, stimulus_schema

BEGIN = "<!-- begin: made by python scripts/make_reference.py -->"
END = "<!-- end -->"
DOCS = Path(__file__).resolve().parent.parent / "docs"
SHORTER: dict[str, str] = {name: short for short, name in SHORT.items()}
HEAD = """# The agents

Made by `python scripts/make_reference.py`. GiB: memory of one loaded agent on the CPU. Weights: none; a name, which
`turinglike fetch` brings; a file of yours; in a package of the install; the key of a service.
[How true each is, and whether it ever ran](fidelity.md). `detectron2-maskrcnn` and `deepgaze3` want a package from its
repository as well: `turinglike doctor` tells.

| agent | task | GiB | licence | weights |
|---|---|---|---|---|
"""


def render() -> dict[Path, bytes]:
    """Each file and its content."""
    schemas = {
        "record.schema.json": record_schema(),
        "stimulus.schema.json": stimulus_schema(),
        "event.schema.json": events.json_schema(),
        "card.schema.json": card_schema(),
    }
    options = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
    rendered = {DOCS / name: orjson.dumps(schema, option=options) for name, schema in schemas.items()}
    pages = {DOCS / "catalogue.md": agents_table().encode(), DOCS / "tells.md": page_of_tells().encode()}
    return rendered | pages


def page_of_tells() -> str:
    """The page of tells, in which the table of transformations is written anew between its two comments."""
    page = (DOCS / "tells.md").read_text(encoding="utf-8")
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    rows = ["| name | tasks | takes away | may not change | planted |\n", "|---|---|---|---|---|\n"]
    for row in listed_tells():
        rows.append(f"| `{row.name}` | {row.tasks} | {row.takes} | {row.keeps} | {row.planted} |\n")
    return f"{before}{begin}\n{''.join(rows)}{end}{after}"


def agents_table() -> str:
    """The agents of ``agents/catalogue/built_in.toml`` for people's tasks, the same on every machine."""
    rows = [HEAD]
    for entry in BUILT_IN:
        if not set(entry.tasks) & set(TASKS):
            continue
        able = entry.takes_random_weights()
        memory = entry.make({"checkpoint": RANDOM} if able else None).declaration().memory / GIB
        tasks = "all" if set(entry.tasks) == set(TASKS) else ", ".join(SHORTER[one] for one in entry.tasks)
        rows.append(f"| `{entry.name}` | {tasks} | {memory:.1f} | {entry.licence} | {_weights(entry)} |\n")
    return "".join(rows)


def _weights(entry: Entry) -> str:
    """What an agent needs beside Turinglike's packages."""
    checkpoint, _ = checkpoint_of(entry.make())
    if entry.licence == PROPRIETARY:
        return f"key{f' ({checkpoint})' if checkpoint else ''}"
    if checkpoint is None:
        return "none"
    if entry.ran:
        return "in a package"
    return f"{'file ' if checkpoint.startswith('./') else ''}`{checkpoint}`"


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Write the JSON Schemas and the table of agents in docs/.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a file is out of date")
    arguments = parser.parse_args(argv)
    stale = {path: data for path, data in render().items() if not path.exists() or path.read_bytes() != data}
    for path, data in stale.items():
        if arguments.check:
            print(f"{path} is out of date; run python scripts/make_reference.py", file=sys.stderr)
        else:
            path.write_bytes(data)
            print(f"wrote {path}")
    return 1 if stale and arguments.check else 0


if __name__ == "__main__":
    sys.exit(main())
