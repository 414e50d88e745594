"""A folder to be published as it is: the table in Parquet, and a card that says what is in it and under which licences.

The card has the form that Hugging Face's hub reads, ``README.md`` with YAML on top.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from agents import catalogue
from agents.errors import InputError, printable
from serving.export.parquet import write_parquet
from serving.export.registry import FolderFormat, FormatOptions
from serving.export.selection import Selection
from serving.runs.display_text import count

TABLE = "records.parquet"
HEAD = f"""---
license: other
tags: [turing-test, turinglike]
configs:
- config_name: default
  data_files: {TABLE}
---"""


def write_dataset(chosen: Selection, folder: Path, options: FormatOptions) -> dict[str, Any]:
    """Write the table and the card. Returns notes for the side-car: the columns."""
    with (folder / TABLE).open("wb") as file:
        notes = write_parquet(chosen, [file], options, folder)
    (folder / "README.md").write_text(_card(chosen), encoding="utf-8")
    return notes


def _card(chosen: Selection) -> str:
    meta = chosen.folder.meta
    pictures: Counter[Sequence[str]] = Counter()
    for _, row in chosen.folder.stimuli():
        if "image" in row:
            about = row.get("meta", {})
            pictures[
                row.get("source", ""), about.get("author", ""), about.get("licence", about.get("license", ""))
            ] += 1
    made = f"Turinglike {meta.get('turinglike')}, seed {meta.get('seed')}" if meta["agents"] else "Turinglike"
    parts = [
        HEAD,
        "# Answers of machines and people",
        f"{count(chosen.taken.total(), 'record')}, made by {made}{chosen.left_out_told()}. A row is an answer, with "
        "the stimulus beside it (`stimulus.*`, `meta.*`).",
        *_table("Answers", ("agent", "records", "checkpoint", "revision", "licence"), _answers(chosen)),
    ]
    rows = [(*(one or "unknown" for one in about), f"{number:,}") for about, number in sorted(pictures.items())]
    parts += _table("Pictures, which are not here", ("source", "author", "licence", "stimuli"), rows)
    return "\n\n".join(parts) + "\n"


def _answers(chosen: Selection) -> Iterable[Sequence[str]]:
    agents = chosen.folder.meta["agents"]
    for name, number in (+chosen.taken).items():
        about = agents.get(name, {})
        theirs = "the publisher's to say" if name.startswith("published:") else "the people's to say"
        licences = "; ".join(dict.fromkeys(_licence(one) for one in name.split("~"))) if about else theirs
        yield name, f"{number:,}", about.get("checkpoint") or "", about.get("revision") or "", licences


def _licence(name: str) -> str:
    """Of an agent of the catalogue; of a variant of the user's own, the run does not say."""
    try:
        return catalogue.get(name).licence
    except InputError:
        return "unknown"


def _table(title: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = ["| " + " | ".join(map(_cell, row)) + " |" for row in rows]
    rule = "|" + "---|" * len(head)
    return [f"## {title}", "\n".join(["| " + " | ".join(head) + " |", rule, *lines])] if lines else []


def _cell(text: str) -> str:
    """What a set or a run says, as text of a table and nothing else."""
    plain = printable(str(text))[:200]
    return "".join(f"\\{one}" if one in "\\`*_{}[]<>()#+!|~" else one for one in plain)


DATASET = FolderFormat(write_dataset, one_sample=False)
