"""``turinglike import``: answers of people (``records/humans.jsonl``) and other machines (``records/published.jsonl``)
become records of a run folder.

``import.json`` keeps, for each file, what was read as what. A file that is imported again takes the place of its
earlier records; all files of a command come in, or none does.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson

from agents.catalogue import NAME
from agents.errors import InputError, Problem
from agents.frames import Fit
from serving.exchange.importing.form_files import TimeUnit, load_form
from serving.exchange.importing.json_forms import add_json, add_page
from serving.exchange.importing.own_export import add_own_export, is_own_export
from serving.exchange.importing.recognising import with_form
from serving.exchange.importing.row_rules import RowRule
from serving.exchange.importing.source import ImportOptions, Size, Source, person
from serving.exchange.importing.tables import add_table
from serving.files.atomic_files import lock, replacing, write_json
from serving.files.foreign_files import read_bytes
from serving.files.output_paths import make_parent
from serving.files.terminal import print_line
from serving.files.words import count
from serving.runs.run import Run, refuse_other_folder
from serving.runs.run_json import new_run_json
from serving.runs.schema_names import schema_mismatch

IMPORT = "turinglike.import/1"
FILES = {"human": "humans", "published": "published"}  # kinds of records, and the names of their files
OF_OTHER_PROGRAMS = {  # what is wrong with files of other forms, and what to do, by their endings
    ".parquet": "is Parquet, which is not imported; export the run with --format csv, or give its folder",
    ".xlsx": "is an Excel workbook; save it as CSV UTF-8, with commas between the cells",
    ".xls": "is an Excel workbook; save it as CSV UTF-8, with commas between the cells",
    ".ods": "is a spreadsheet; save it as CSV in UTF-8, with commas between the cells",
    ".sav": "is a file of SPSS; save it as CSV in UTF-8, with commas between the cells",
    ".asc": "is a recording of EyeLink; write its fixations as a table: subject, image, x, y, duration",
    ".edf": "is a recording of EyeLink; write its fixations as a table: subject, image, x, y, duration",
    ".eval": "is a log of Inspect; write its answers as a table: subject, stimulus, response",
    ".psydat": "is PsychoPy's own file; import the .csv beside it",
    ".zip": "is an archive; unpack it and import the files in it",
}
TABLES = (".csv", ".tsv", ".tab", ".txt", ".xpd")  # text with cells, unless it begins as JSON does
ImportEntry = dict[str, Any]
"""A file in ``import.json``, as :meth:`Source.summary` writes it."""
Identity = tuple[str, str, str | None]
"""What tells a file from others: its SHA-256, its task, and the name of ``--name``."""
ImportedKey = tuple[str, str, str]
"""Task, agent and stimulus. One person may have several answers to one stimulus."""
ResponsesByFile = dict[ImportedKey, dict[str, set[int]]]
"""Hashes of the raw responses, by the path of the file that they stand in."""


def import_files(
    paths: Sequence[Path | str],
    out: Path | str,
    task: str | None = None,
    name: str | None = None,
    frame: Size | None = None,
    responses: Mapping[str, str] | None = None,
    *,
    fit: Fit | None = None,
    rows: Sequence[RowRule] | None = None,
    columns: Mapping[str, str] | None = None,
    rt: TimeUnit | None = None,
    form: Path | str | None = None,
    unnamed: bool = False,
    drop_equal: bool = False,
) -> int:
    """Import the files ``paths`` into ``out``, a run folder or a new folder, and print a summary. Returns 0.

    The options are those of :class:`serving.exchange.importing.source.ImportOptions`. Raises InputError with every
    problem, StorageError where nothing can be written, LockedError while another command writes to ``out``; then
    nothing is imported.
    """
    options = ImportOptions(
        task=task,
        name=name,
        frame=frame,
        fit=fit,
        responses=responses or {},
        rows=rows or (),
        columns=columns or {},
        rt=rt,
        unnamed=unnamed,
        drop_equal=drop_equal,
    )
    if form is not None:
        own = load_form(Path(form))
        options = replace(with_form(options, own), form=own)
    out = Path(out)
    sources = _read_all(paths, options)
    refuse_other_folder(out)
    make_parent(out / "records" / "humans.jsonl")
    with lock(out):
        if not (out / "run.json").exists():
            run_id = min(source.sha256 for source in sources)[:12]  # the same files make the same records anywhere
            write_json(out / "run.json", new_run_json(run_id, seed=0, samples=0) | {"imports_only": True})
        run = Run(out)
        merged = _merged(run, _earlier_entries(out / "import.json"), sources, options)
        content = {"schema": IMPORT, "run": run.meta["run"], "sources": merged.entries}
        with ExitStack() as stack:  # all are written before the first is put in place
            files = [stack.enter_context(replacing(out / "import.json"))]
            files[0].write(orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
            for kind, file_name in FILES.items():
                if merged.has(kind) or file_name in run.imports():
                    files.append(stack.enter_context(replacing(run.records_path(file_name))))
                    lines = (orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE) for record in merged.records(kind))
                    files[-1].writelines(lines)
            for file in files:
                file.flush()
    for source in sources:
        _print_summary(source)
    for sentence in _unused(sources, options):
        print_line(sentence)
    print_line(f"imported into {out}")
    return 0


def _read_all(paths: Sequence[Path | str], options: ImportOptions) -> list[Source]:
    """The files' answers. Raises InputError with the problems of all files."""
    name = options.name
    if name is not None and not (name.count("~") < 2 and all(map(NAME.fullmatch, name.split("~")))):
        raise InputError(f"--name {name!r}: must be of the form [a-z0-9][a-z0-9._-]*, for two speakers A~B")
    if options.responses and options.task != "judgement":
        raise InputError("--responses are for verdicts: give --task judgement too")
    sources: list[Source] = []
    problems: list[Problem] = []
    for path in dict.fromkeys(map(Path, paths)):
        try:
            sources.append(read_source(path, options))
        except InputError as error:
            problems += error.problems or [Problem(str(path), None, None, str(error))]
    if problems:
        raise InputError(f"nothing was imported: {count(len(problems), 'problem')}", problems)
    if name is not None and not any(source.name == name for source in sources):
        raise InputError("--name is for files that do not say whose answers they contain; these files say it")
    used = set().union(*(source.used for source in sources))
    for option, is_given in (
        ("rows", bool(options.rows)),
        ("columns", bool(options.columns)),
        ("form", options.form is not None),
    ):
        if is_given and option not in used:
            raise InputError(f"--{option} is for tables, and these files are no tables")
    return sources


def _unused(sources: Sequence[Source], options: ImportOptions) -> list[str]:
    """Sentences on options that had no meaning for any file, and did no harm."""
    used = set().union(*(source.used for source in sources))
    sentences = []
    if options.frame is not None and "frame" not in used:
        sentences.append("--frame is not used: these files contain no scanpaths")
    if options.fit is not None and "fit" not in used:
        sentences.append("--fit is not used: these files contain no scanpaths")
    if options.rt is not None and "rt" not in used:
        sentences.append("--rt is not used: these files contain no times")
    if options.drop_equal and "drop_equal" not in used:
        sentences.append("--drop-equal is not used: no row or answer occurs twice")
    if options.unnamed and "unnamed" not in used:
        sentences.append("--unnamed is not used: all answers have names, or files of this form contain no names")
    return sentences


def read_source(path: Path, options: ImportOptions | None = None) -> Source:
    """The answers in a file of any form, which its ending and its content tell. Raises InputError, with a problem for
    each fault of a row; also where no answer is left."""
    options = options or ImportOptions()
    suffix = path.suffix.lower()
    is_page = suffix in (".html", ".htm")
    if options.name is not None and ("~" in options.name) != is_page:
        raise InputError("is a page of two speakers: --name A~B" if is_page else "is no page of two speakers: --name A")
    data = read_bytes(path)
    is_table = (suffix in TABLES and data.lstrip()[:1] not in (b"[", b"{")) or _is_text_of_excel(suffix, data)
    if suffix in OF_OTHER_PROGRAMS and not is_table:
        raise InputError(OF_OTHER_PROGRAMS[suffix])
    source = Source(path.resolve(), hashlib.sha256(data).hexdigest())
    if is_page:
        add_page(source, data, options)
    elif suffix == ".csv" and is_own_export(data):
        add_own_export(source, data, options)
    elif is_table:
        add_table(source, data, options)
    else:
        add_json(source, data, options)
    if not source.answers:
        raise InputError("contains no answers that can be imported")
    return source


def _is_text_of_excel(suffix: str, data: bytes) -> bool:
    """Whether a file called .xls is a text with tabs, as EyeLink's and E-Prime's programs write it."""
    start = data[:10_000]
    return suffix == ".xls" and not start.startswith((b"\xd0\xcf", b"PK")) and b"\t" in start


def _earlier_entries(path: Path) -> list[ImportEntry]:
    """The files of ``import.json``; [] where nothing was imported. Raises InputError for a file of another version."""
    try:
        content = orjson.loads(path.read_bytes())
    except FileNotFoundError:
        return []
    except (orjson.JSONDecodeError, OSError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    if not isinstance(content, dict) or schema_mismatch(content.get("schema"), IMPORT):
        raise InputError(f"{path} is not of this version ({IMPORT})")
    return list(content["sources"])


def _identity(entry: Mapping[str, Any]) -> Identity:
    return entry["sha256"], entry["task"], entry["name"]


@dataclass(frozen=True, slots=True)
class _Merged:
    """What the run holds after the import."""

    run: str  # its id
    entries: list[ImportEntry]  # all files, old and new, in the order of import.json
    sources: Mapping[Identity, Source]  # the new files
    kept: Mapping[Identity, list[dict[str, Any]]]  # the records of files that stay

    def has(self, kind: str) -> bool:
        """Whether there is any record of a ``kind``, "human" or "published"."""
        return next(self.records(kind), None) is not None

    def records(self, kind: str) -> Iterator[dict[str, Any]]:
        """The records of a ``kind``, in the order of the files. ``sample`` numbers several answers of one agent to one
        stimulus, over all files."""
        samples: Counter[ImportedKey] = Counter()
        for entry in self.entries:
            source = self.sources.get(_identity(entry))
            records = self.kept.get(_identity(entry), ()) if source is None else source.records(self.run)
            for record in records:
                if record["kind"] == kind:
                    key = (record["task"], record["agent"], record["stimulus"])
                    record["sample"] = samples[key]
                    samples[key] += 1
                    yield record


def _merged(run: Run, before: list[ImportEntry], sources: Sequence[Source], options: ImportOptions) -> _Merged:
    """The new files beside those that were imported before; they replace earlier imports of the same."""
    entries = list(before)
    by_identity: dict[Identity, Source] = {}
    for source in sources:
        entry = source.summary()
        former = [old for old in entries if _is_replaced(old, entry)]
        if former and _identity(former[0]) == _identity(entry):
            if former[0]["path"] != entry["path"]:
                source.same_as = former[0]["path"]
            entry["path"] = former[0]["path"]
        elif former:
            answers = sum(old["human"] + old["published"] for old in former)
            source.notes.append(f"replaces {count(answers, 'answer')} of an earlier import from this path")
        others = [old for old in before if old["path"] == entry["path"] and old not in former]
        for other in others:
            what = other["task"] if other["name"] is None else f"{other['task']} of {other['name']}"
            source.notes.append(f"an earlier import from this path stays: {what}")
        place = entries.index(former[0]) if former else len(entries)
        entries = [old for old in entries if old not in former]
        entries.insert(place, entry)
        by_identity[_identity(entry)] = source
    kept = _kept_records(run, {_identity(entry) for entry in before})
    responses: ResponsesByFile = {}
    for place, entry in enumerate(entries):
        identity = _identity(entry)
        new_source = by_identity.get(identity)
        if new_source is not None:
            _compare(new_source, responses, options)
            entries[place] = {**new_source.summary(), "path": entry["path"]}
        if any(_identity(later) in by_identity for later in entries[place + 1 :]):
            records = kept.get(identity, ()) if new_source is None else new_source.records("")
            for record in records:
                if _has_name(record["agent"]):
                    by_file = responses.setdefault((record["task"], record["agent"], record["stimulus"]), {})
                    by_file.setdefault(entry["path"], set()).add(hash(orjson.dumps(record["raw"])))
    return _Merged(str(run.meta["run"]), entries, by_identity, kept)


def _is_replaced(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether a new file takes the place of an earlier one: it has the same bytes, or the same path, and is read for
    the same task and under the same name."""
    if (old["task"], old["name"]) != (new["task"], new["name"]):
        return False
    return bool(old["path"] == new["path"] or old["sha256"] == new["sha256"])


def _kept_records(run: Run, identities: set[Identity]) -> dict[Identity, list[dict[str, Any]]]:
    """The records of earlier imports, by the file that they came from. ``identities`` are those of the files; a record
    does not say whether its agent's name was that of ``--name``."""
    kept: dict[Identity, list[dict[str, Any]]] = {}
    for name in FILES.values():
        if name not in run.imports():
            continue
        for record in run.records(name):
            digest = record["provenance"]["digest"]
            submitted = (digest, record["task"], record["agent"].removeprefix("published:"))
            identity = submitted if submitted in identities else (digest, record["task"], None)
            kept.setdefault(identity, []).append(record)
    return kept


def _has_name(agent: str) -> bool:
    """Whether an agent is one person with a name; two who converse have none."""
    return agent.startswith("human:") and agent != person("")


def _compare(source: Source, responses: ResponsesByFile, options: ImportOptions) -> None:
    """Tell which people answered the same stimuli in another file already: a file that was saved again, or corrected
    under another name, would double its people. ``--drop-equal`` leaves the equal answers out."""
    again = []
    equal = set()
    files: dict[str, None] = {}
    for place, answer in enumerate(source.answers):
        key = (source.task, answer["agent"], answer["stimulus"])
        others = responses.get(key)
        if not others or not _has_name(answer["agent"]):
            continue
        again.append(answer)
        files |= dict.fromkeys(others)
        raw = hash(orjson.dumps(answer["raw"]))
        if any(raw in raws for raws in others.values()):
            equal.add(place)
    if not again:
        return
    people = len({answer["agent"] for answer in again})
    names = ", ".join(Path(path).name for path in files)
    text = (
        f"{count(len(again), 'answer')} of {count(people, 'person', 'people')} to stimuli that were answered in "
        f"{names}, too; {len(equal):,} of these answers are equal to an answer in that file"
    )
    if options.drop_equal:
        source.answers = [answer for place, answer in enumerate(source.answers) if place not in equal]
        source.used.add("drop_equal")
        if equal:
            text += ", and are left out"
        else:
            text += ". --drop-equal leaves out only equal answers"
    else:
        text += (
            ". All answers count. If this file is a copy or a correction of the other file, import it under the same "
            "path, or leave equal answers out with --drop-equal"
        )
    source.noticed["answers_that_stand_in_another_file_too"] += len(again)
    source.remarks.append(text)


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
