"""Sets of scanpaths from files: what ``scripts/compare_scanpaths.py`` takes for a set.

=================================  ==================================================================================
a run folder                       its agents' answers, or what was imported into it
``.jsonl``                         records, as ``turinglike export --format jsonl`` writes them
JSON: a list                       COCO-Search18's ``{name, subject, task, condition, X, Y, T, length}``
JSON: ``{"scanpaths": [...]}``     ``{image, grid64}``, see :func:`agents.attention.scanpath_sets.read_cells`
any other JSON object              the published ``fv.json``, see :mod:`serving.runs.published_benchmark`
=================================  ==================================================================================

``SET:WHO`` takes the paths of one agent or person, or of all ``humans``, ``machines`` or ``published`` machines. What
a set holds must be of one kind: people's paths are not compared together with machines'. Controls (catch trials) are
left out unless they are named. Beside an export stand ``X.export.json``, which gives frames and agents, and
``X.stimuli.jsonl``, which gives targets and images; both are used where they are there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from agents.attention.scanpath_sets import Read, Recorded, Size, add_record, read_cells, read_coco
from agents.errors import InputError, Problem
from serving.runs.display_text import count
from serving.runs.published_benchmark import read_source
from serving.runs.reader import IMPORTS, RunFolder
from serving.runs.records import problems as record_problems
from serving.runs.stimulus_lookup import Lookup

TASK = "attention_prediction"
GROUPS = {"humans": "human", "machines": "machine", "published": "published"}
LISTED = 8  # names that an error lists

Row = dict[str, Any]


def read_set(text: str, frame: Size | None = None) -> Read:
    """The set ``text``; ``frame`` (width, height) is for files that do not say it themselves.

    Raises InputError with every problem found. A set without a path is an error too.
    """
    path, who = split(text)
    if path.is_dir():
        read = _read_run(RunFolder(path), who)
    elif path.suffix == ".jsonl":
        read = _read_records(path)
    else:
        read = _read_json(path, frame)
    if read.problems:
        raise InputError(f"{path} cannot be compared: {count(len(read.problems), 'problem')}", read.problems)
    everybody = list(dict.fromkeys(_called(one) for one in read.paths))
    read.paths = _chosen(read, who)
    if not read.paths:
        reasons = "".join(f"; {number:,} {reason}" for reason, number in read.passed_over.items())
        held = f"; it has those of {_some(everybody)}" if everybody else ""
        raise InputError(f"{text} holds no scanpaths{f' of {who!r}' if who else ''}{held}{reasons}")
    kinds = list(dict.fromkeys(one.kind for one in read.paths))
    if len(kinds) > 1:
        groups = [group for group, kind in GROUPS.items() if kind in kinds]
        raise InputError(
            f"{text} holds paths of several kinds; give one of {', '.join(f'{path}:{group}' for group in groups)}"
        )
    return read


def split(text: str) -> tuple[Path, str | None]:
    """``SET:WHO`` as the path that exists and who is meant, None for all. Raises InputError if no such path exists."""
    at = len(text)
    while at > 0:
        if Path(text[:at]).exists():
            return Path(text[:at]), text[at + 1 :] or None
        at = text.rfind(":", 0, at)
    raise InputError(f"{text}: there is no such file or folder")


def _chosen(read: Read, who: str | None) -> list[Recorded]:
    if who in GROUPS:
        return [one for one in read.paths if one.kind == GROUPS[who]]
    if who is not None:
        return [one for one in read.paths if who in (one.agent, one.subject)]
    controls = sum(one.kind == "control" for one in read.paths)
    if controls:
        read.passed_over["paths of controls"] = controls
    return [one for one in read.paths if one.kind != "control"]


def _called(path: Recorded) -> str:
    return path.agent or path.subject


def _some(names: list[str]) -> str:
    more = f" and {len(names) - LISTED:,} more" if len(names) > LISTED else ""
    return ", ".join(names[:LISTED]) + more


def _read_run(folder: RunFolder, who: str | None) -> Read:
    read = Read()
    for name in [who] if who in folder.agents() else [*folder.agents(), *folder.imports()]:
        path = folder.records_path(name)
        with Lookup(folder) as by_id, Lookup(folder, "benchmark_id") as by_benchmark:
            for record in folder.latest(name):
                row = by_id.get(record["task"], record["stimulus"])
                if row is None and name in IMPORTS:
                    row = by_benchmark.get(record["task"], record["stimulus"])
                place = Problem(f"{path}, stimulus {record['stimulus']!r}", None, None, "")
                add_record(read, place, record, row)
    return read


def _read_records(path: Path) -> Read:
    """Records, one a line. As in a run folder the last line of a key counts."""
    by_id, by_benchmark = _stimuli(path.with_name(f"{path.name}.stimuli.jsonl"))
    read, last = Read(), dict[tuple[str, str, int], tuple[Problem, Row]]()
    for number, record in _lines(path, read):
        faults = record_problems(record, str(path), number)
        if faults:
            read.problems += faults[:1]
        elif record["task"] != TASK:
            read.skip("answers to other tasks")
        else:
            key = record["agent"], record["stimulus"], record["sample"]
            last[key] = Problem(str(path), number, None, ""), record
    for place, record in last.values():
        row = by_id.get(record["stimulus"])
        if row is None and record["kind"] in ("human", "published"):
            row = by_benchmark.get(record["stimulus"])
        add_record(read, place, record, row)
    return read


def _stimuli(path: Path) -> tuple[dict[str, Row], dict[str, Row]]:
    """The stimuli in a side-car by "id" and by "benchmark_id"; nothing where there is none."""
    if not path.is_file():
        return {}, {}
    read = Read()
    rows = [row for _, row in _lines(path, read) if row.get("task") == TASK]
    if read.problems:
        raise InputError(f"{path} is damaged", read.problems)
    by_id, by_benchmark = (
        {row[field]: row for row in rows if isinstance(row.get(field), str)} for field in ("id", "benchmark_id")
    )
    return by_id, by_benchmark


def _lines(path: Path, read: Read) -> Iterator[tuple[int, Row]]:
    """(number, object) of each line; a line that is no JSON object is a problem."""
    for number, line in enumerate(_bytes(path).splitlines(), start=1):
        try:
            row = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            read.problems.append(Problem(str(path), number, None, f"not JSON: {error}"))
            continue
        if isinstance(row, dict):
            yield number, row
        else:
            read.problems.append(Problem(str(path), number, None, "not a JSON object"))


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error


def _read_json(path: Path, frame: Size | None) -> Read:
    try:
        content = orjson.loads(_bytes(path))
    except orjson.JSONDecodeError as error:
        raise InputError(f"{path} is not JSON: {error}") from None
    if isinstance(content, list):
        frames, agents = _sidecar(path.with_name(f"{path.name}.export.json"))
        return read_coco(content, str(path), frames, frame, agents)
    if not isinstance(content, dict):
        raise InputError(f"{path} must be a JSON list or object of scanpaths")
    if isinstance(content.get("scanpaths"), list):
        return read_cells(content["scanpaths"], str(path), frame)
    return _read_published(path)


def _sidecar(path: Path) -> tuple[dict[tuple[str, str | None], Size], dict[str, tuple[str, int]]]:
    """Frames by (name, subject), and (agent, sample) by subject, from the side-car of an export; maybe none."""
    if not path.is_file():
        return {}, {}
    try:
        about = orjson.loads(_bytes(path))
        frames: dict[tuple[str, str | None], Size] = {
            (name, None): (size[0], size[1]) for name, size in about.get("frames", {}).items()
        }
        for other in about.get("other_frames", ()):
            frames[other["name"], str(other["subject"])] = (other["frame"][0], other["frame"][1])
        agents = {number: (who["agent"], who["sample"]) for number, who in about.get("subjects", {}).items()}
    except (orjson.JSONDecodeError, AttributeError, KeyError, IndexError, TypeError) as error:
        raise InputError(f"{path} is not the side-car of an export: {error!r}") from None
    return frames, agents


def _read_published(path: Path) -> Read:
    try:
        source = read_source(path, TASK, path.stem.lower())
    except InputError as error:
        raise InputError(f"{path} {error}", error.problems) from None
    read = Read()
    seen: dict[tuple[str, str], int] = {}
    for record in source.records("0" * 12):
        key = record["agent"], record["stimulus"]
        record["sample"] = seen.get(key, 0)
        seen[key] = record["sample"] + 1
        add_record(read, Problem(f"{path}, stimulus {record['stimulus']!r}", None, None, ""), record, None)
    return read


def about(paths: list[Recorded]) -> Mapping[str, int]:
    """How many paths each agent or person of a set made; of those who have a name."""
    found: dict[str, int] = {}
    for path in paths:
        if path.agent:
            found[path.agent] = found.get(path.agent, 0) + 1
    return found
