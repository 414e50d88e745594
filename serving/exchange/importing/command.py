"""``turinglike import``: answers of people (``records/humans.jsonl``) and other machines (``records/published.jsonl``)
become records of a run folder.

``import.json`` keeps, for each file, what was read as what. A file that is imported again takes the place of its
earlier records; all files of a command come in, or none does.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace as replaced
from pathlib import Path

import orjson

from agents.errors import InputError, Problem
from agents.frames import Fit
from serving.exchange.importing.form_files import Origin, PlaceUnit, TimeUnit, load_form
from serving.exchange.importing.merging import FILES, IMPORT, Again, Imported, ImportEntry, Merged, merge, read_imported
from serving.exchange.importing.reading import read_all
from serving.exchange.importing.recognising import with_form
from serving.exchange.importing.row_rules import RowRule
from serving.exchange.importing.shown_rows import print_first_rows
from serving.exchange.importing.source import ImportOptions, Size, Source, listed
from serving.files.atomic_files import lock, replacing, write_json
from serving.files.output_paths import make_parent
from serving.files.terminal import print_line
from serving.files.words import count
from serving.runs.run import Run, refuse_other_folder
from serving.runs.run_json import new_run_json


def import_files(
    paths: Sequence[Path | str],
    out: Path | str,
    task: str | None = None,
    name: str | None = None,
    frame: Size | None = None,
    responses: Mapping[str, str] | None = None,
    *,
    fit: Fit | None = None,
    origin: Origin | None = None,
    units: PlaceUnit | None = None,
    rows: Sequence[RowRule] | None = None,
    columns: Mapping[str, str] | None = None,
    wide: Sequence[str] | None = None,
    rt: TimeUnit | None = None,
    sheet: str | None = None,
    color_words: str | None = None,
    form: Path | str | None = None,
    unnamed: bool = False,
    drop_equal: bool = False,
    replace: bool = False,
    add: bool = False,
    dry_run: bool = False,
    undo: bool = False,
) -> int:
    """Import the files ``paths`` into ``out``, a run folder or a new folder, and print a summary. Returns 0.

    Most options are those of :class:`serving.exchange.importing.source.ImportOptions`; ``form`` is the path of a lab's
    form. Where most answers of a file stand in another file, too, ``replace`` takes that file out, and ``add`` counts
    both. ``dry_run`` shows the first answers and writes nothing. ``undo`` takes the files out again.

    Raises InputError with every problem, StorageError where nothing can be written, LockedError while another command
    writes to ``out``; then nothing is imported.
    """
    options = ImportOptions(
        task=task,
        name=name,
        frame=frame,
        fit=fit,
        origin=origin,
        units=units,
        responses=responses or {},
        rows=rows or (),
        columns=columns or {},
        wide=wide or (),
        rt=rt,
        sheet=sheet,
        color_words=color_words,
        unnamed=unnamed,
        drop_equal=drop_equal,
    )
    if undo:
        if form is not None or replace or add or dry_run or options != ImportOptions(task=task, name=name):
            raise InputError("--undo takes files out of --out; it goes with --task and --name alone")
        return _undo(paths, Path(out), options)
    if replace and add:
        raise InputError("--replace and --add contradict each other")
    if form is not None:
        own = load_form(Path(form))
        options = replaced(with_form(options, own), form=own)
    again: Again | None = None
    if replace or add:
        again = "replace" if replace else "add"
    sources = read_all(paths, options)
    if dry_run:
        _show(sources, Path(out), options, again)
        return 0
    _write_sources(sources, Path(out), options, again)
    for source in sources:
        _print_summary(source)
    for sentence in _unused(sources, options):
        print_line(sentence)
    print_line(f"imported into {out}")
    return 0


def _write_sources(sources: Sequence[Source], out: Path, options: ImportOptions, again: Again | None) -> None:
    refuse_other_folder(out)
    merged = None
    if not (out / "run.json").exists():
        run_id = min(source.sha256 for source in sources)[:12]  # the same files make the same records anywhere
        merged = merge(run_id, Imported(), sources, options, again)  # before there is a folder, since it may refuse
    make_parent(out / "records" / "humans.jsonl")
    with lock(out):
        if merged is None:
            run = Run(out)
            merged = merge(str(run.meta["run"]), read_imported(run), sources, options, again)
        elif (out / "run.json").exists():
            raise InputError(f"{out}: another command has just made this run folder; run this command again")
        else:
            write_json(out / "run.json", new_run_json(merged.run, seed=0, samples=0) | {"imports_only": True})
        _write(Run(out), merged)


def _write(run: Run, merged: Merged) -> None:
    """Write the records and ``import.json``; all are written before the first is put in place."""
    content = {"schema": IMPORT, "run": run.meta["run"], "sources": merged.entries}
    with ExitStack() as stack:
        files = [stack.enter_context(replacing(run.path / "import.json"))]
        files[0].write(orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
        for kind, file_name in FILES.items():
            if merged.has(kind) or file_name in run.imports():
                files.append(stack.enter_context(replacing(run.records_path(file_name))))
                lines = (orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE) for record in merged.records(kind))
                files[-1].writelines(lines)
        for file in files:
            file.flush()


def _show(sources: Sequence[Source], out: Path, options: ImportOptions, again: Again | None) -> None:
    """Print what an import would do. Raises InputError where it would ask."""
    refuse_other_folder(out)
    is_new = not (out / "run.json").exists()
    question = None
    try:
        merge("", Imported() if is_new else read_imported(Run(out)), sources, options, again)
    except InputError as error:
        question = error
    for source in sources:
        _print_summary(source)
        print_first_rows(source)
    for sentence in _unused(sources, options):
        print_line(sentence)
    if question is not None:
        raise question
    print_line(f"nothing was written; without --dry-run this is imported into {out}")


def _undo(paths: Sequence[Path | str], out: Path, options: ImportOptions) -> int:
    """Take the files ``paths`` out of the run. They need not exist any more. Raises InputError for a file that was not
    imported; then nothing is taken out."""
    refuse_other_folder(out)
    if not (out / "import.json").exists():
        raise InputError(f"{out}: nothing was imported into it")
    with lock(out):
        run = Run(out)
        before = read_imported(run)
        problems = []
        undone = []
        for path in dict.fromkeys(map(Path, paths)):
            found = [entry for entry in before.entries if entry["path"] == str(path.resolve())]
            if not found:
                found = _moved(path, before.entries)
            if options.task is not None:
                found = [entry for entry in found if entry["task"] == options.task]
            if options.name is not None:
                found = [entry for entry in found if entry["name"] == options.name]
            if not found:
                files = listed([entry["path"] for entry in before.entries]) or "none"
                problems.append(Problem(str(path), None, None, f"was not imported; the files are {files}"))
            undone += found
        if problems:
            raise InputError(f"nothing was taken out: {count(len(problems), 'problem')}", problems)
        entries = [entry for entry in before.entries if entry not in undone]
        _write(run, Merged(str(run.meta["run"]), entries, {}, before.records))
    for entry in undone:
        answers = entry["human"] + entry["published"]
        print_line(f"{Path(entry['path']).name}: {entry['task']}, {count(answers, 'answer')} taken out of {out}")
        for path in entry.get("replaced", ()):
            print_line(f"  {path}, which it replaced, does not come back; to have it, import it again")
        for other in entries:
            if entry["path"] in other.get("equal_in", ()):
                text = "was imported without the answers that are equal to answers in this file"
                print_line(f"  {other['path']} {text}; to have them, import it again")
    return 0


def _moved(path: Path, entries: Sequence[ImportEntry]) -> list[ImportEntry]:
    """The entries of a file with this name that is no longer where it was: its folder was moved. None if there are
    several places."""
    found = [entry for entry in entries if Path(entry["path"]).name == path.name and not Path(entry["path"]).exists()]
    return found if len({entry["path"] for entry in found}) == 1 else []


def _unused(sources: Sequence[Source], options: ImportOptions) -> list[str]:
    """Sentences on options that had no meaning for any file, and did no harm."""
    used = set().union(*(source.used for source in sources))
    sentences = []
    if options.frame is not None and "frame" not in used:
        sentences.append("--frame is not used: these files contain no scanpaths")
    if options.fit is not None and "fit" not in used:
        sentences.append("--fit is not used: these files contain no scanpaths")
    if options.origin is not None and "origin" not in used:
        sentences.append("--origin is not used: these files contain no scanpaths")
    if options.units is not None and "units" not in used:
        sentences.append("--units is not used: these files contain no scanpaths")
    if options.rt is not None and "rt" not in used:
        sentences.append("--rt is not used: these files contain no times")
    if options.color_words is not None and "color_words" not in used:
        sentences.append("--color-words is not used: these files contain no colours")
    if options.sheet is not None and "sheet" not in used:
        sentences.append("--sheet is not used: these files are no workbooks")
    if options.drop_equal and "drop_equal" not in used:
        sentences.append("--drop-equal is not used: no row or answer occurs twice")
    if options.unnamed and "unnamed" not in used:
        sentences.append("--unnamed is not used: all answers have names, or files of this form contain no names")
    return sentences


def _print_summary(source: Source) -> None:
    summary = source.summary()
    print_line(
        f"{source.path.name}: {source.task}, {count(summary['stimuli'], 'stimulus', 'stimuli')}; "
        f"people: {count(summary['human'], 'answer')}, {count(summary['subjects'], 'name')}; "
        f"machines: {count(summary['published'], 'answer')}, {count(summary['machines'], 'name')}"
    )
    for reason, number in summary["noticed"].items():
        print_line(f"  noticed: {reason.replace('_', ' ')}: {number:,}")
    for remark in [*source.remarks, *source.notes]:
        print_line(f"  {remark}")
    if source.same_as is not None:
        print_line(f"  has the same bytes as {source.same_as}: its answers count once")
