"""Export: a run's records for other programs.

======================  ==============================================================================================
``jsonl``               the records themselves, of all agents and imports, in one file
``csv``, ``parquet``    one row per record, flattened (:mod:`serving.export.tables`)
``turingtest``          one folder per agent in the published benchmark's form (:mod:`serving.export.benchmark`)
``coco-search18``       scanpaths as that dataset has them (:mod:`serving.export.scanpaths`)
``pysaliency``          scanpaths and images as that package reads them (:mod:`serving.export.scanpaths`)
``judges``              one GIF per scanpath, blinded, with a separate key (:mod:`serving.export.clips`)
``conversations``       beginnings of conversations, blinded, with a separate key (:mod:`serving.export.excerpts`)
======================  ==============================================================================================

What every format has in common: the last record of a key counts; rejected answers and control answers (catch trials)
are left out unless asked for, and counted; everything is written whole or not at all, and nothing is replaced without
``force``. Beside ``OUT`` stands ``OUT.export.json`` (in a turingtest folder ``_export.json``), which says run, seed,
sample, each agent's settings and provenance, and what was left out. Formats that have no place for the stimuli's own
fields and ``meta`` come with them in ``OUT.stimuli.jsonl`` (``_stimuli.jsonl``).

Text is exported as it stands. A spreadsheet may take an answer such as ``=1+1`` for a formula: import CSV as text.
"""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import orjson

from agents.errors import InputError
from serving.runs.atomic_files import replacing
from serving.runs.display_text import count
from serving.runs.output_paths import make_parent, new_folder, refuse_existing, refuse_other_folder, refuse_own_files
from serving.runs.reader import RunFolder

if TYPE_CHECKING:
    from serving.export.clips import Clips
    from serving.export.excerpts import Excerpts

FORMATS = ("jsonl", "csv", "parquet", "turingtest", "coco-search18", "pysaliency", "judges", "conversations")
SCHEMA = "turinglike.export/1"
MARKER = "_export.json"
STIMULI = "_stimuli.jsonl"
MALFORMED = (KeyError, TypeError, ValueError, AttributeError, ZeroDivisionError)  # what an answer of no form makes


class Selection:
    """The records of a run that an export is about, and a count of those it leaves out."""

    def __init__(self, folder: RunFolder, sample: int | None, include_rejected: bool, include_control: bool) -> None:
        self.folder = folder
        self.sample = sample
        self.include_rejected = include_rejected
        self.include_control = include_control
        self.taken: Counter[str] = Counter()
        self.left_out: Counter[str] = Counter()

    def machines(self) -> list[str]:
        """The agents to export: those that have begun, controls only if asked for."""
        entries = self.folder.meta["agents"]
        names = dict.fromkeys([*entries, *self.folder.agents()])
        return [
            name for name in names if self.include_control or entries.get(name, {}).get("kind", "machine") != "control"
        ]

    def tasks(self, name: str) -> list[str]:
        """The tasks of an agent, as ``run.json`` has them."""
        return list(self.folder.meta["agents"].get(name, {}).get("task", ()))

    def records(self, name: str, answers_to: str | None = None) -> Iterator[dict[str, Any]]:
        """The selected records of an agent or an import, failed ones too; or only answers to the task given."""
        for record in self.folder.latest(name):
            if self.sample is not None and record["sample"] != self.sample:
                continue
            if answers_to is not None and record["task"] != answers_to:
                continue
            if record["kind"] == "control" and not self.include_control:
                self.left_out["control"] += 1
            elif record["status"] == "rejected" and not self.include_rejected:
                self.left_out["rejected"] += 1
            elif answers_to is not None and (record["status"] == "failed" or record["answer"] is None):
                self.left_out["failed"] += 1
            else:
                self.taken[record["agent"]] += 1
                yield record

    def leave_out(self, record: dict[str, Any], why: str) -> None:
        """Not to export a record after all that :meth:`records` gave; ``why`` is for the summary."""
        self.taken[record["agent"]] -= 1
        self.left_out[why] += 1

    def everything(self) -> Iterator[dict[str, Any]]:
        """The selected records of all agents and imports."""
        for name in [*self.folder.agents(), *self.folder.imports()]:
            yield from self.records(name)

    def sidecar(self, form: str, notes: dict[str, Any]) -> bytes:
        """What a reader of the export must know, as JSON."""
        meta = self.folder.meta
        agents = {name: meta["agents"][name] for name in meta["agents"] if self.taken[name]}
        about = {
            "schema": SCHEMA,
            "format": form,
            "run": meta["run"],
            "turinglike": meta.get("turinglike"),
            "seed": meta.get("seed"),
            "sample": "all" if self.sample is None else self.sample,
            "set": meta.get("set"),
            "agents": agents,
            "records": dict(+self.taken),
            "left_out": dict(self.left_out),
            **notes,
        }
        return orjson.dumps(about, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def export(
    path: Path | str,
    format: str,
    out: Path | str,
    *,
    sample: int | None = None,
    allow_missing: bool = False,
    include_rejected: bool = False,
    include_control: bool = False,
    force: bool = False,
    clips: Clips | None = None,
    excerpts: Excerpts | None = None,
) -> int:
    """Export the run folder ``path`` to ``out`` and print a summary. Returns 0.

    ``sample``: which sample of each key; None means all of them, for turingtest sample 0. ``allow_missing`` is for
    turingtest, which otherwise refuses a run with gaps and names every one; ``clips`` says how the clips of judges
    look, ``excerpts`` how conversations are cut. Raises InputError (unknown format, ``out`` exists, gaps, pictures that
    are missing or changed, damaged records, nothing to export), UnavailableError (pysaliency without h5py) and
    StorageError.
    """
    if format not in FORMATS:
        raise InputError(f"there is no export format {format!r}; there are {', '.join(FORMATS)}")
    if sample is not None and sample < 0:
        raise InputError(f"sample {sample}: samples are numbered from 0")
    if clips is not None and format != "judges":
        raise InputError(f"how clips look can be chosen for the format judges, not for {format}")
    if excerpts is not None and format != "conversations":
        raise InputError(f"lengths of excerpts can be chosen for the format conversations, not for {format}")
    folder, out = RunFolder(path), Path(out)
    refuse_own_files([out], folder.path)
    if out.name in ("", ".."):
        raise InputError(f"{out} has no name of its own; give the name of the file or folder to make")
    if format == "turingtest" and sample is None:
        sample = 0
    chosen = Selection(folder, sample, include_rejected, include_control)
    if format == "turingtest":
        notes = _turingtest(chosen, out, allow_missing, force)
    elif format == "judges":
        notes = _judges(chosen, out, clips, force)
    elif format == "conversations":
        notes = _conversations(chosen, out, excerpts, force)
    else:
        notes = _one_file(chosen, format, out, force)
    _summarise(chosen, out, notes)
    return 0


def _turingtest(chosen: Selection, out: Path, allow_missing: bool, force: bool) -> dict[str, Any]:
    from serving.export.benchmark import write_turingtest

    with new_folder(out, marker=MARKER, force=force) as folder:
        notes = write_turingtest(chosen, folder, allow_missing)
        (folder / MARKER).write_bytes(chosen.sidecar("turingtest", notes))
        if chosen.folder.has_stimuli():
            with (folder / STIMULI).open("wb") as file:
                _copy_stimuli(chosen.folder, file)
    return notes


def _judges(chosen: Selection, out: Path, clips: Clips | None, force: bool) -> dict[str, Any]:
    from serving.export.clips import CLIP, Clips, write_clips

    refuse_other_folder(out, CLIP, "clip")
    return _blinded(chosen, "judges", out, force, ("clip", "scanpaths"), partial(write_clips, chosen, clips or Clips()))


def _conversations(chosen: Selection, out: Path, excerpts: Excerpts | None, force: bool) -> dict[str, Any]:
    from serving.export.excerpts import EXCERPT, Excerpts, write_conversations

    refuse_other_folder(out, EXCERPT, "excerpt of a conversation")
    write = partial(write_conversations, chosen, excerpts or Excerpts())
    return _blinded(chosen, "conversations", out, force, ("excerpt", "conversations"), write)


def _blinded(
    chosen: Selection,
    form: str,
    out: Path,
    force: bool,
    called: tuple[str, str],
    write: Callable[[Path, BinaryIO], dict[str, Any]],
) -> dict[str, Any]:
    """A folder that holds what judges see and nothing else, so that it can be handed on as it is: what is known of it
    stands beside it. ``called``: one of its files, and what is exported; ``write`` fills the folder and the key."""
    key, about = (_beside(out, end) for end in ("key.csv", "export.json"))
    refuse_own_files([key, about], chosen.folder.path)
    refuse_existing([key, about], force=force)
    make_parent(out)
    with ExitStack() as files:
        written = [files.enter_context(replacing(key)), files.enter_context(replacing(about))]
        folder = files.enter_context(new_folder(out, marker=f"../{about.name}", force=force))
        notes = write(folder, written[0])
        if not chosen.taken.total():
            raise InputError(f"{chosen.folder.path}: there are no {called[1]} to export{_left_out(chosen)}")
        kept = f"which {called[0]} is whose: {key}; keep it and {about} from the judges"
        notes["remarks"] = [*notes.get("remarks", ()), kept]
        written[1].write(chosen.sidecar(form, notes))
        for file in written:
            file.flush()
    return notes


def _one_file(chosen: Selection, form: str, out: Path, force: bool) -> dict[str, Any]:
    about, stimuli, images = (_beside(out, end) for end in ("export.json", "stimuli.jsonl", "stimuli.hdf5"))
    with_stimuli = form in ("jsonl", "coco-search18", "pysaliency") and chosen.folder.has_stimuli()
    with_images = form == "pysaliency"
    paths = [out, about, *([stimuli] if with_stimuli else []), *([images] if with_images else [])]
    refuse_own_files(paths, chosen.folder.path)
    refuse_existing(paths, force=force)
    make_parent(out)
    with ExitStack() as files:
        written = [files.enter_context(replacing(out))]  # the first to be opened is the last to be put in place
        if with_images:
            written.append(files.enter_context(replacing(images)))
        notes = _write(chosen, form, written, out.parent)
        if not chosen.taken.total():
            raise InputError(f"{chosen.folder.path}: there is nothing to export{_left_out(chosen)}")
        written.append(files.enter_context(replacing(about)))
        written[-1].write(chosen.sidecar(form, notes))
        if with_stimuli:
            written.append(files.enter_context(replacing(stimuli)))
            _copy_stimuli(chosen.folder, written[-1])
        for file in written:  # if the disk is full, know it before the first is put in place
            file.flush()
    return notes


def _write(chosen: Selection, form: str, files: list[BinaryIO], place: Path) -> dict[str, Any]:
    """Write one of the formats that are files, which will stand in the folder ``place``; its notes."""
    if form == "jsonl":
        for record in chosen.everything():
            files[0].write(orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE))
        return {}
    if form == "coco-search18":
        from serving.export.scanpaths import write_coco_search18

        return write_coco_search18(chosen, files[0])
    if form == "pysaliency":
        from serving.export.scanpaths import write_pysaliency

        return write_pysaliency(chosen, files[0], files[1], place)
    from serving.export.tables import write_table

    return write_table(chosen, form, files[0])


def _beside(out: Path, end: str) -> Path:
    return out.with_name(f"{out.name}.{end}")


def _copy_stimuli(folder: RunFolder, to: BinaryIO) -> None:
    """Copy the set's rows, once it is known that they are whole."""
    for _ in folder.located_stimuli():
        pass
    with (folder.path / "stimuli.jsonl").open("rb") as source:
        shutil.copyfileobj(source, to)


def _summarise(chosen: Selection, out: Path, notes: dict[str, Any]) -> None:
    taken = list((+chosen.taken).items())
    counts = ", ".join(f"{name} {number:,}" for name, number in taken[:20])
    more = f" and {len(taken) - 20:,} more" if len(taken) > 20 else ""
    sys.stdout.write(f"{out}: {count(chosen.taken.total(), 'record')} ({counts}{more}){_left_out(chosen)}\n")
    for line in notes.get("remarks", ()):
        sys.stdout.write(f"{line}\n")


def _left_out(chosen: Selection) -> str:
    options = {"rejected": " (--include-rejected)", "control": " (--include-control)"}
    return "".join(f"; {number:,} {what} left out{options.get(what, '')}" for what, number in chosen.left_out.items())


def misfit(record: dict[str, Any], field: str, reason: str) -> InputError:
    """The error for a record whose ``field`` cannot be exported."""
    return InputError(f"{record['agent']}, stimulus {record['stimulus']!r}: {field}: {reason}")
