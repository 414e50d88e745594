"""``turinglike export``: a run's records (the last of each key) in one of the :data:`FORMATS`, completely or not at
all.

To add a format, write ``write_NAME(export: Export) -> dict`` and give it a line in :data:`FORMATS`. It reads
``export.records(...)``, fills the files that ``export.open(...)`` gives, and returns notes for the side-car; sentences
under "remarks" are printed too.
"""

import shutil
from contextlib import ExitStack
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from agents.errors import InputError
from serving.exchange.exporting.export import SIDECAR, STIMULI, Export
from serving.files.output_paths import make_parent, new_folder, refuse_existing, refuse_own_files
from serving.files.terminal import print_line
from serving.files.words import count
from serving.runs.run import Run

SHOWN = 20  # agents in the summary


@dataclass(frozen=True, slots=True)
class Format:
    """A format of export."""

    write: str
    """The writer, as "module:function": the packages that it needs are imported only for its own format."""
    is_folder: bool = False
    """Whether OUT is a folder that the writer fills."""
    beside: tuple[str, ...] = ()
    """Endings of the further files that stand beside OUT."""


FORMATS = {
    "jsonl": Format("serving.exchange.exporting.tables:write_jsonl", beside=(STIMULI,)),
    "csv": Format("serving.exchange.exporting.tables:write_csv"),
    "parquet": Format("serving.exchange.exporting.tables:write_parquet"),
    "turingtest": Format("serving.exchange.exporting.published:write_turingtest", is_folder=True, beside=(STIMULI,)),
    "coco-search18": Format("serving.exchange.exporting.scanpaths:write_coco_search18", beside=(STIMULI,)),
    "pysaliency": Format("serving.exchange.exporting.scanpaths:write_pysaliency", beside=("stimuli.hdf5", STIMULI)),
}


def export_run(
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
    """Export the run folder ``path`` to ``out``, and print how many records were taken and left out.

    ``format`` is one of :data:`FORMATS`. ``sample`` None takes all samples, for the benchmark's folder sample 0.
    ``include_rejected`` takes answers that filters rejected, ``include_control`` catch trials. ``allow_missing`` lets
    the benchmark's files lack answers. ``force`` replaces what stands at ``out``. Raises InputError, UnavailableError
    and StorageError; then nothing is written.
    """
    kind = FORMATS.get(format)
    if kind is None:
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
        export = Export(run, out, sample, include_rejected, include_control, allow_missing, files)
        if kind.is_folder:
            refuse_own_files([out], run.path)
            export.folder = files.enter_context(new_folder(out, marker=f"_{SIDECAR}", force=force))
        else:
            paths = [out, *(export.path(ending) for ending in (*kind.beside, SIDECAR))]
            refuse_own_files(paths, run.path)
            refuse_existing(paths, force=force)
            make_parent(out)
        notes = write(export)
        if not export.taken.total():
            raise InputError(f"{run.path}: there is nothing to export{export.left_out_told()}")
        export.open(SIDECAR).write(export.sidecar(format, notes))
        if STIMULI in kind.beside and run.has_stimuli():
            for _ in run.stimuli():  # raises InputError where a line is damaged
                pass
            with (run.path / "stimuli.jsonl").open("rb") as source:
                shutil.copyfileobj(source, export.open(STIMULI))
        for file in export.opened:  # if the disk is full, know it before the first is put in place
            file.flush()
    _print_summary(export)
    for line in notes.get("remarks", ()):
        print_line(line)


def _print_summary(export: Export) -> None:
    taken = list((+export.taken).items())
    counts = ", ".join(f"{name} {number:,}" for name, number in taken[:SHOWN])
    more = f" and {len(taken) - SHOWN:,} more" if len(taken) > SHOWN else ""
    records = count(export.taken.total(), "record")
    print_line(f"{export.out}: {records} ({counts}{more}){export.left_out_told()}")
