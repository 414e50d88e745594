"""Export of a run's records (each key's last) in the :data:`FORMATS`, completely or not at all.

A format's ``write(chosen)`` writes an :class:`Export`'s records and returns notes for the side-car."""

import shutil
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from agents.errors import InputError
from serving.files.atomic_files import replacing
from serving.files.output_paths import make_parent, new_folder, refuse_existing, refuse_own_files
from serving.files.terminal import print_line
from serving.files.words import count
from serving.runs.run import Run
from serving.runs.stimulus_lookup import StimulusLookup

SCHEMA = "turinglike.export/1"
MALFORMED = (KeyError, TypeError, ValueError, AttributeError, ZeroDivisionError)  # what an answer of no form makes
# endings of the files beside OUT
ABOUT = "export.json"
STIMULI = "stimuli.jsonl"
SHOWN = 20  # agents in the summary

Record = dict[str, Any]
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Format:
    """A format's function, whether it fills a folder, and its further files' endings."""

    write: str
    is_folder: bool = False
    beside: tuple[str, ...] = ()


FORMATS = {
    "jsonl": Format("serving.exchange.export_tables:write_jsonl", beside=(STIMULI,)),
    "csv": Format("serving.exchange.export_tables:write_csv"),
    "parquet": Format("serving.exchange.export_tables:write_parquet"),
    "turingtest": Format("serving.exchange.export_published:write_turingtest", is_folder=True, beside=(STIMULI,)),
    "coco-search18": Format("serving.exchange.export_scanpaths:write_coco_search18", beside=(STIMULI,)),
    "pysaliency": Format("serving.exchange.export_scanpaths:write_pysaliency", beside=("stimuli.hdf5", STIMULI)),
}


def export(
    path: Path | str,
    format: str,
    out: Path | str,
    *,
    sample: int | None = None,
    include_rejected: bool = False,
    include_control: bool = False,
    allow_missing: bool = False,
    force: bool = False,
) -> None:
    """Export the run folder ``path`` to ``out``. Raises InputError, UnavailableError and StorageError.

    ``sample`` None: all samples, for the benchmark's folder sample 0."""
    if (kind := FORMATS.get(format)) is None:
        raise InputError(f"there is no export format {format!r}; there are {', '.join(FORMATS)}")
    run = Run(path)
    out = Path(out)
    if out.name in ("", ".."):
        raise InputError(f"{out} has no name of its own; give the name of the file or folder to make")
    if kind.is_folder and sample is None:
        sample = 0
    module, _, name = kind.write.partition(":")
    write = getattr(import_module(module), name)
    with ExitStack() as files:
        chosen = Export(run, out, sample, include_rejected, include_control, allow_missing, files)
        if kind.is_folder:
            refuse_own_files([out], run.path)
            chosen.folder = files.enter_context(new_folder(out, marker=f"_{ABOUT}", force=force))
        else:
            paths = [out, *(chosen.path(ending) for ending in (*kind.beside, ABOUT))]
            refuse_own_files(paths, run.path)
            refuse_existing(paths, force=force)
            make_parent(out)
        notes = write(chosen)
        if not chosen.taken.total():
            raise InputError(f"{run.path}: there is nothing to export{chosen.left_out_told()}")
        chosen.open(ABOUT).write(chosen.sidecar(format, notes))
        if STIMULI in kind.beside and run.has_stimuli():
            for _ in run.stimuli():  # they are whole
                pass
            with (run.path / "stimuli.jsonl").open("rb") as source:
                shutil.copyfileobj(source, chosen.open(STIMULI))
        for file in chosen.opened:  # if the disk is full, know it before the first is put in place
            file.flush()
    taken = list((+chosen.taken).items())
    counts = ", ".join(f"{name} {number:,}" for name, number in taken[:SHOWN])
    more = f" and {len(taken) - SHOWN:,} more" if len(taken) > SHOWN else ""
    print_line(f"{out}: {count(chosen.taken.total(), 'record')} ({counts}{more}){chosen.left_out_told()}")
    for line in notes.get("remarks", ()):
        print_line(line)


@dataclass(slots=True)
class Export:
    run: Run
    out: Path
    sample: int | None
    include_rejected: bool
    include_control: bool
    allow_missing: bool
    files: ExitStack
    folder: Path | None = None  # to be filled, where OUT is one
    taken: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    opened: list[BinaryIO] = field(default_factory=list)
    stimuli: StimulusLookup = field(init=False)

    def __post_init__(self) -> None:
        self.stimuli = StimulusLookup(self.run)

    # files

    def path(self, ending: str) -> Path:
        return self.out.with_name(f"{self.out.name}.{ending}")

    def open(self, name: str = "") -> BinaryIO:
        """A file to fill: OUT, beside it with the ending ``name``, or ``name`` in a folder."""
        if self.folder is None:
            file = self.files.enter_context(replacing(self.path(name) if name else self.out))
        else:
            path = self.folder / (f"_{name}" if name in (ABOUT, STIMULI) else name)
            path.parent.mkdir(exist_ok=True)
            file = self.files.enter_context(path.open("wb"))
        self.opened.append(file)
        return file

    # records

    def machines(self) -> list[str]:
        entries = self.run.meta["agents"]
        names = dict.fromkeys([*entries, *self.run.agents()])
        return [
            name for name in names if self.include_control or entries.get(name, {}).get("kind", "machine") != "control"
        ]

    def reason(self, record: Record) -> str | None:
        """Why a record is left out: "control", "rejected" or None."""
        if record["kind"] == "control" and not self.include_control:
            return "control"
        return "rejected" if record["status"] == "rejected" and not self.include_rejected else None

    def records(self, name: str, answers_to: str | None = None) -> Iterator[Record]:
        """The chosen records of an agent or import, failed too; or only of a task."""
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

    def leave_out(self, record: Record, why: str) -> None:
        self.taken[record["agent"]] -= 1
        self.left_out[why] += 1

    def leave_out_imports(self, tasks: Collection[str]) -> None:
        """Count the imported answers to ``tasks``, for a form that has a place for machines' alone."""
        for name in self.run.imports():
            number = sum(record["task"] in tasks for record in self.run.latest(name))
            if number:
                self.left_out["imported"] += number

    def everything(self) -> Iterator[Record]:
        for name in [*self.run.agents(), *self.run.imports()]:
            yield from self.records(name)

    # what a reader must know

    def sidecar(self, form: str, notes: dict[str, Any]) -> bytes:
        meta = self.run.meta
        about = {
            "schema": SCHEMA,
            "format": form,
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
        return orjson.dumps(about, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)

    def left_out_told(self) -> str:
        """What was left out, as a sentence's end."""
        options = {
            "rejected": " (--include-rejected)",
            "control": " (--include-control)",
            "imported": " (this form is for machines' answers; csv, jsonl and parquet hold both)",
        }
        return "".join(f"; {number:,} {what} left out{options.get(what, '')}" for what, number in self.left_out.items())


def misfit(record: Record, field: str, reason: str) -> InputError:
    return InputError(f"{record['agent']}, stimulus {record['stimulus']!r}: {field}: {reason}")
