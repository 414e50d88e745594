"""Answers of people (``records/humans.jsonl``) and other machines (``records/published.jsonl``) become records."""

import hashlib
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import orjson

from agents.catalogue import NAME
from agents.errors import InputError, Problem, printable
from serving.runs.atomic_files import lock, replacing, write_json
from serving.runs.import_forms import Size, Source, add_json, add_page, read_bytes
from serving.runs.import_tables import Responses, add_screens, add_table
from serving.runs.output_paths import make_parent
from serving.runs.records import schema_mismatch
from serving.runs.row_problems import count
from serving.runs.run import Run, refuse_other_folder
from serving.runs.run_json import new_run_json

IMPORT = "turinglike.import/1"
FILES = {"human": "humans", "published": "published"}
Rows = list[dict[str, Any]]
Identity = tuple[Any, ...]


def import_files(
    paths: Sequence[Path | str],
    out: Path | str,
    task: str | None = None,
    name: str | None = None,
    frame: Size | None = None,
    responses: Responses | None = None,
) -> int:
    """Import ``paths`` into ``out``, a run folder or a new folder, and print a summary. Returns 0.
    ``name`` is the machine, or a page's two speakers; ``frame`` (width, height) is in pixels; ``responses`` map keys or
    buttons to verdicts. Raises InputError with every problem, StorageError, LockedError; then nothing is imported."""
    out = Path(out)
    if name is not None and not (name.count("~") < 2 and all(map(NAME.fullmatch, name.split("~")))):
        raise InputError(f"--name {name!r}: must be of the form [a-z0-9][a-z0-9._-]*, for two speakers A~B")
    if responses and task != "judgement":
        raise InputError("--responses are for verdicts: give --task judgement too")
    sources: list[Source] = []
    problems: list[Problem] = []
    for path in dict.fromkeys(map(Path, paths)):
        try:
            sources.append(read_source(path, task, name, frame, responses))
        except InputError as error:
            problems += error.problems or [Problem(str(path), None, None, str(error))]
    if problems:
        raise InputError(f"nothing was imported: {count(len(problems), 'problem')}", problems)
    if name is not None and not any(source.name == name for source in sources):
        raise InputError("--name is for files that do not say whose answers they hold; these do")
    refuse_other_folder(out)
    make_parent(out / "records" / "humans.jsonl")
    with lock(out):
        if not (out / "run.json").exists():
            run_id = min(source.sha256 for source in sources)[:12]  # the same files make the same records anywhere
            write_json(out / "run.json", new_run_json(run_id, seed=0, samples=0) | {"imports_only": True})
        run = Run(out)
        listed, rows = _merged(run, _earlier_sources(out / "import.json"), sources)
        about = {"schema": IMPORT, "run": run.meta["run"], "sources": listed}
        with ExitStack() as stack:  # all are written before the first is put in place
            files = [stack.enter_context(replacing(out / "import.json"))]
            files[0].write(orjson.dumps(about, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
            for kind, file_name in FILES.items():
                if rows[kind] or file_name in run.imports():
                    files.append(stack.enter_context(replacing(run.records_path(file_name))))
                    files[-1].writelines(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows[kind])
            for file in files:
                file.flush()
    for source in sources:
        _print_summary(source)
    print(printable(f"imported into {out}"))
    return 0


def read_source(
    path: Path,
    task: str | None = None,
    name: str | None = None,
    frame: Size | None = None,
    responses: Responses | None = None,
) -> Source:
    """Read a file of any form. Raises InputError."""
    suffix = path.suffix.lower()
    is_page = suffix in (".html", ".htm")
    if name is not None and ("~" in name) != is_page:
        raise InputError("is a page of two speakers: --name A~B" if is_page else "is no page of two speakers: --name A")
    if suffix == ".jsonl":
        raise InputError("is no file of answers that is imported; commands that read runs take several run folders")
    data = read_bytes(path)
    source = Source(path.resolve(), hashlib.sha256(data).hexdigest())
    if is_page:
        add_page(source, data, task, name)
    elif suffix == ".csv":
        add_table(source, data, task, frame, responses or {})
    elif task == "judgement":
        add_screens(source, data, responses or {})
    else:
        add_json(source, data, task, name, frame)
    if not source.answers:
        raise InputError("holds no answers that can be imported")
    return source


def _earlier_sources(path: Path) -> Rows:
    try:
        about = orjson.loads(path.read_bytes())
    except FileNotFoundError:
        return []
    except (orjson.JSONDecodeError, OSError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    if not isinstance(about, dict) or schema_mismatch(about.get("schema"), IMPORT):
        raise InputError(f"{path} is not of this version ({IMPORT})")
    return list(about["sources"])


def _identity(entry: dict[str, Any]) -> Identity:
    return entry["sha256"], entry["task"], entry["name"]


def _merged(run: Run, before: Rows, sources: Sequence[Source]) -> tuple[Rows, dict[str, Rows]]:
    """``import.json``'s list and the records by kind; ``sources`` replace earlier imports of the same."""
    listed = list(before)
    fresh: dict[Identity, Rows] = {}
    for source in sources:
        entry = source.about()
        former = [old for old in listed if old["path"] == entry["path"] or _identity(old) == _identity(entry)]
        if former and _identity(former[0]) == _identity(entry):
            entry["path"] = former[0]["path"]
        place = listed.index(former[0]) if former else len(listed)
        listed = [old for old in listed if old not in former]
        listed.insert(place, entry)
        fresh[_identity(entry)] = list(source.records(run.meta["run"]))
    known = {_identity(entry) for entry in before}
    rows: dict[str, Rows] = {}
    for kind, name in FILES.items():
        kept: dict[Identity, Rows] = {}
        for row in run.records(name) if name in run.imports() else ():
            digest, task = row["provenance"]["digest"], row["task"]
            submitted = (digest, task, row["agent"].removeprefix("published:"))
            kept.setdefault(submitted if submitted in known else (digest, task, None), []).append(row)
        rows[kind] = []
        for entry in listed:
            key = _identity(entry)
            rows[kind] += [row for row in fresh[key] if row["kind"] == kind] if key in fresh else kept.get(key, [])
        samples: Counter[tuple[str, str, str]] = Counter()
        for row in rows[kind]:
            answers_of = (row["task"], row["agent"], row["stimulus"])
            row["sample"] = samples[answers_of]
            samples[answers_of] += 1
    return listed, rows


def _print_summary(source: Source) -> None:
    about = source.about()
    print(
        f"{printable(source.path.name)}: {source.task}, {count(about['stimuli'], 'stimulus', 'stimuli')}; "
        f"people: {count(about['human'], 'answer')}, {count(about['subjects'], 'name')}; "
        f"machines: {count(about['published'], 'answer')}, {count(about['machines'], 'name')}"
    )
    for what, number in about["noticed"].items():
        print(f"  noticed: {what.replace('_', ' ')}: {number:,}")
