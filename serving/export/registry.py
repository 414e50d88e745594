"""Export: a run's records for other programs.

Each format is a :class:`FileFormat` or :class:`FolderFormat`, registered by name: ours in :data:`FORMATS`, those of
other packages through the entry-point group ``turinglike.exports``.

What every format has in common: the last record of a key counts; rejected answers and control answers (catch trials)
are left out unless asked for, and counted; everything is written whole or not at all, and nothing is replaced without
``force``. Beside ``OUT`` stands ``OUT.export.json`` (in a folder of a benchmark ``_export.json``), which says run,
seed, sample, each agent's settings and provenance, and what was left out. Formats that have no place for the stimuli's
own fields and ``meta`` come with them in ``OUT.stimuli.jsonl`` (``_stimuli.jsonl``).

Text is exported as it stands. A spreadsheet may take an answer such as ``=1+1`` for a formula: import CSV as text.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from importlib import import_module, metadata
from pathlib import Path
from typing import Any, BinaryIO

from agents.errors import InputError
from serving.export.selection import Selection
from serving.runs.atomic_files import replacing
from serving.runs.output_paths import make_parent, new_folder, refuse_existing, refuse_own_files
from serving.runs.row_problems import count
from serving.runs.run import Run

GROUP = "turinglike.exports"
FORMATS = {
    "jsonl": "serving.export.tables:JSONL",
    "csv": "serving.export.tables:CSV",
    "parquet": "serving.export.parquet:PARQUET",
    "turingtest": "serving.export.published_files:TURINGTEST",
    "coco-search18": "serving.export.scanpaths:COCO_SEARCH18",
    "pysaliency": "serving.export.pysaliency:PYSALIENCY",
}
MARKER = "_export.json"
STIMULI = "_stimuli.jsonl"


@dataclass(frozen=True, slots=True)
class FileFormat:
    """A format that is one file, with others beside it.

    ``write(selection, files, folder)`` fills the files, which will stand in ``folder``: OUT first, then one
    for each of ``beside``, the endings of further files. It returns notes for the side-car; ``remarks`` among them
    are printed.
    """

    write: Callable[[Selection, list[BinaryIO], Path], dict[str, Any]]
    beside: tuple[str, ...] = ()
    with_stimuli: bool = False


@dataclass(frozen=True, slots=True)
class FolderFormat:
    """A format that is a folder of files with the side-car in it, for one sample: ``write(selection, folder)``."""

    write: Callable[[Selection, Path], dict[str, Any]]


Format = FileFormat | FolderFormat


def names() -> list[str]:
    """Every format known on this machine: ours, then those of installed packages."""
    return list(dict.fromkeys([*FORMATS, *(point.name for point in metadata.entry_points(group=GROUP))]))


def load(name: str) -> Format:
    """The format called ``name``. Raises InputError if there is none, or its package cannot be imported."""
    if name in FORMATS:
        module, attribute = FORMATS[name].split(":")
        builtin: Format = getattr(import_module(module), attribute)
        return builtin
    for point in metadata.entry_points(group=GROUP, name=name):
        try:
            loaded: Format = point.load()
        except (Exception, SystemExit) as error:
            raise InputError(f"the export format {name!r} ({point.value}) cannot be imported: {error}") from error
        return loaded
    raise InputError(f"there is no export format {name!r}; there are {', '.join(names())}")


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
) -> int:
    """Export the run folder ``path`` to ``out`` and print a summary. Returns 0.

    ``sample``: which sample of each key; None means all of them, for the benchmark's folder sample 0. Raises
    InputError (unknown format, ``out`` exists, gaps, pictures that are missing or changed, damaged records, nothing to
    export), UnavailableError (a package that the format needs is not installed) and StorageError.
    """
    kind = load(format)
    if sample is not None and sample < 0:
        raise InputError(f"sample {sample}: samples are numbered from 0")
    folder, out = Run(path), Path(out)
    refuse_own_files([out], folder.path)
    if out.name in ("", ".."):
        raise InputError(f"{out} has no name of its own; give the name of the file or folder to make")
    if isinstance(kind, FolderFormat) and sample is None:
        sample = 0
    chosen = Selection(folder, sample, include_rejected, include_control, allow_missing)
    if isinstance(kind, FolderFormat):
        notes = _folder(chosen, kind, format, out, force)
    else:
        notes = _file(chosen, kind, format, out, force)
    _summarise(chosen, out, notes)
    return 0


def _folder(chosen: Selection, kind: FolderFormat, name: str, out: Path, force: bool) -> dict[str, Any]:
    with new_folder(out, marker=MARKER, force=force) as folder:
        notes = kind.write(chosen, folder)
        if not chosen.taken.total():
            raise InputError(f"{chosen.folder.path}: there is nothing to export{chosen.left_out_told()}")
        (folder / MARKER).write_bytes(chosen.sidecar(name, notes))
        if chosen.folder.has_stimuli():
            with (folder / STIMULI).open("wb") as file:
                _copy_stimuli(chosen.folder, file)
    return notes


def _file(chosen: Selection, kind: FileFormat, name: str, out: Path, force: bool) -> dict[str, Any]:
    with_stimuli = kind.with_stimuli and chosen.folder.has_stimuli()
    about, stimuli = _beside(out, "export.json"), _beside(out, "stimuli.jsonl")
    files_out = [out, *(_beside(out, end) for end in kind.beside)]
    paths = [*files_out, about, *([stimuli] if with_stimuli else [])]
    refuse_own_files(paths, chosen.folder.path)
    refuse_existing(paths, force=force)
    make_parent(out)
    with ExitStack() as files:
        # The first to be opened is the last to be put in place.
        written = [files.enter_context(replacing(path)) for path in files_out]
        notes = kind.write(chosen, written, out.parent)
        if not chosen.taken.total():
            raise InputError(f"{chosen.folder.path}: there is nothing to export{chosen.left_out_told()}")
        written.append(files.enter_context(replacing(about)))
        written[-1].write(chosen.sidecar(name, notes))
        if with_stimuli:
            written.append(files.enter_context(replacing(stimuli)))
            _copy_stimuli(chosen.folder, written[-1])
        for file in written:  # if the disk is full, know it before the first is put in place
            file.flush()
    return notes


def _beside(out: Path, end: str) -> Path:
    return out.with_name(f"{out.name}.{end}")


def _copy_stimuli(folder: Run, to: BinaryIO) -> None:
    """Copy the set's rows, once it is known that they are whole."""
    for _ in folder.stimuli():
        pass
    with (folder.path / "stimuli.jsonl").open("rb") as source:
        shutil.copyfileobj(source, to)


def _summarise(chosen: Selection, out: Path, notes: dict[str, Any]) -> None:
    taken = list((+chosen.taken).items())
    counts = ", ".join(f"{name} {number:,}" for name, number in taken[:20])
    more = f" and {len(taken) - 20:,} more" if len(taken) > 20 else ""
    records = count(chosen.taken.total(), "record")
    sys.stdout.write(f"{out}: {records} ({counts}{more}){chosen.left_out_told()}\n")
    for line in notes.get("remarks", ()):
        sys.stdout.write(f"{line}\n")
