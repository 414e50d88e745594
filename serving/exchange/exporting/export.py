"""An export under way: which of a run's records it takes, and the files that it fills.

A record is the dictionary of a line of ``records/*.jsonl``, a row that of a line of ``stimuli.jsonl``.
"""

from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from agents.errors import InputError
from serving.files.atomic_files import replacing
from serving.runs.run import Run
from serving.runs.stimulus_lookup import StimulusLookup

SCHEMA = "turinglike.export/1"
# endings of the files beside OUT
SIDECAR = "export.json"
STIMULI = "stimuli.jsonl"


@dataclass(slots=True)
class Export:
    """What a format's writer gets: it reads :meth:`records` and fills what :meth:`open` gives."""

    run: Run
    """The run folder that is exported."""
    out: Path
    """Where the user wants it (``--out``): a file, or a folder for the formats that are one."""
    sample: int | None
    """The only sample that is taken, from 0; None: all samples."""
    include_rejected: bool
    """Whether answers that filters rejected are taken."""
    include_control: bool
    """Whether answers to catch trials are taken."""
    allow_missing: bool
    """Whether a benchmark's file may lack answers to some of its stimuli."""
    files: ExitStack
    """Holds the opened files: they come into place together when it closes, or none does after an error."""
    folder: Path | None = None
    """The folder to be filled, where the format is one; None where OUT is a file."""
    taken: Counter[str] = field(default_factory=Counter)
    """How many records were written, by agent."""
    left_out: Counter[str] = field(default_factory=Counter)
    """How many records were not written, by reason: "failed", "rejected", "control", "imported", …"""
    opened: list[BinaryIO] = field(default_factory=list)
    """The files that :meth:`open` gave, in that order."""
    stimuli: StimulusLookup = field(init=False)
    """Finds the row of a record's stimulus."""

    def __post_init__(self) -> None:
        self.stimuli = StimulusLookup(self.run)

    # files

    def path(self, ending: str) -> Path:
        """The path of a file beside OUT: ``answers.csv.export.json`` of OUT ``answers.csv`` and "export.json"."""
        return self.out.with_name(f"{self.out.name}.{ending}")

    def open(self, name: str = "") -> BinaryIO:
        """A new binary file to fill: OUT itself, the file beside it with the ending ``name``, or ``name`` in a folder.
        Nobody sees it under its name before the whole export is done."""
        if self.folder is None:
            file = self.files.enter_context(replacing(self.path(name) if name else self.out))
        else:
            path = self.folder / (f"_{name}" if name in (SIDECAR, STIMULI) else name)
            path.parent.mkdir(exist_ok=True)
            file = self.files.enter_context(path.open("wb"))
        self.opened.append(file)
        return file

    # records

    def machines(self) -> list[str]:
        """The agents of the run, those without records too; controls (catch trials) only where they are included."""
        entries = self.run.meta["agents"]
        names = dict.fromkeys([*entries, *self.run.agents()])
        return [
            name for name in names if self.include_control or entries.get(name, {}).get("kind", "machine") != "control"
        ]

    def reason(self, record: dict[str, Any]) -> str | None:
        """Why a record is left out: "control", "rejected" or None."""
        if record["kind"] == "control" and not self.include_control:
            return "control"
        return "rejected" if record["status"] == "rejected" and not self.include_rejected else None

    def records(self, name: str, answers_to: str | None = None) -> Iterator[dict[str, Any]]:
        """The last record of each key of an agent or import ``name`` that the options take, failed ones too.

        With the task ``answers_to`` only the answers to it: failed records and those without an answer are left out.
        What is given and what is left out is counted in ``taken`` and ``left_out``.
        """
        for record in self.run.latest(name):
            if self.sample not in (None, record["sample"]) or answers_to not in (None, record["task"]):
                continue
            reason = self.reason(record)
            if reason is None and answers_to is not None and (record["status"] == "failed" or not record["answer"]):
                reason = "failed"
            if reason is None:
                self.taken[record["agent"]] += 1
                yield record
            else:
                self.left_out[reason] += 1

    def all_records(self) -> Iterator[dict[str, Any]]:
        """As :meth:`records` of every agent and then every import of the run."""
        for name in [*self.run.agents(), *self.run.imports()]:
            yield from self.records(name)

    def leave_out(self, record: dict[str, Any], reason: str) -> None:
        """Count a record that :meth:`records` gave as left out after all."""
        self.taken[record["agent"]] -= 1
        self.left_out[reason] += 1

    def leave_out_imports(self, tasks: Collection[str]) -> None:
        """Count the imported answers to ``tasks`` as left out, for a format that has a place for machines' alone."""
        for name in self.run.imports():
            number = sum(record["task"] in tasks for record in self.run.latest(name))
            if number:
                self.left_out["imported"] += number

    # what a reader must know

    def sidecar(self, format: str, notes: dict[str, Any]) -> bytes:
        """The JSON of the side-car: which run, agents and records the files hold, and the format's own ``notes``."""
        meta = self.run.meta
        content = {
            "schema": SCHEMA,
            "format": format,
            "run": meta["run"],
            "turinglike": meta.get("turinglike"),
            "seed": meta.get("seed"),
            "sample": "all" if self.sample is None else self.sample,
            "set": meta.get("set"),
            "agents": {name: entry for name, entry in meta["agents"].items() if self.taken[name]},
            "records": dict(+self.taken),
            "left_out": dict(self.left_out),
            **notes,
        }
        return orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)

    def left_out_told(self) -> str:
        """The end of a sentence, or "": ``; 3 rejected left out (--include-rejected)``."""
        options = {
            "rejected": " (--include-rejected)",
            "control": " (--include-control)",
            "imported": " (this format is only for answers of machines; csv, jsonl and parquet are for both)",
        }
        return "".join(
            f"; {number:,} {reason} left out{options.get(reason, '')}" for reason, number in self.left_out.items()
        )


def misfit(record: dict[str, Any], field: str, reason: str) -> InputError:
    """The error of a record whose ``field`` no export can hold; it names the record's agent and stimulus."""
    return InputError(f"{record['agent']}, stimulus {record['stimulus']!r}: {field}: {reason}")
