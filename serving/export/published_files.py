"""The published benchmark's submission format.

One folder per agent with one file per task (:data:`FILES`), each ``{id: response}`` in the order of the set; the id is
the stimulus's ``benchmark_id`` if it has one, else its own. Responses: a caption, a word, a colour, up to three labels
as ``"a, b, c"`` in lower case (a comma inside a label becomes a space), and for free viewing the first 15 fixations as
integers in a frame of 1280 x 1024: floor(x * 1280 / width), floor(y * 1024 / height). A point off the frame is moved to
its edge and counted. Visual search and conversation are not part of that benchmark; an agent that is asked search alone
has no gaps in free viewing.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from agents.errors import InputError, Problem
from serving.export.registry import FolderFormat
from serving.export.selection import MALFORMED, Selection, misfit
from serving.runs.eligibility import Kind, is_asked, kind_of
from serving.runs.row_problems import count

FILES: dict[str, str] = {
    "image_captioning": "caption.json",
    "word_association": "word.json",
    "color_estimation": "color.json",
    "object_detection": "object.json",
    "attention_prediction": "fv.json",
}
ELSEWHERE: dict[Kind, str] = {
    ("attention_prediction", "search"): "visual search (use coco-search18, pysaliency or jsonl)",
    **dict.fromkeys((("conversation", kind) for kind in (None, "HM", "HH")), "conversations (use jsonl)"),
}
WIDTH, HEIGHT, FIXATIONS, LABELS = 1280, 1024, 15, 3

Response = str | list[list[int]]
Ids = dict[str, str]


def write_turingtest(chosen: Selection, out: Path) -> dict[str, Any]:
    """Fill the folder ``out``; returns notes for the side-car. Raises InputError that names every gap."""
    ids = _ids(chosen)
    gaps: list[Problem] = []
    notes: dict[str, Any] = {"agents_notes": {}, "missing": {}, "remarks": []}
    for name in chosen.machines():
        about = chosen.folder.meta["agents"].get(name, {})
        tasks = [task for task in FILES if ids.get(task) and is_asked(about, kind_of({"task": task}))]
        if not tasks:
            notes["remarks"].append(f"{name}: nothing of its tasks is in this benchmark")
            continue
        counts: Counter[str] = Counter()
        responses, reasons = _responses(chosen, name, ids, counts)
        for task in tasks:
            gaps += [
                Problem(
                    str(chosen.folder.records_path(name)), None, stimulus, reasons.get((task, stimulus), "unanswered")
                )
                for stimulus in ids[task]
                if (task, stimulus) not in responses
            ]
            answers = {ids[task][key]: responses[task, key] for key in ids[task] if (task, key) in responses}
            if answers:
                _write_json(out / name / FILES[task], answers)
            missing = len(ids[task]) - len(answers)
            if missing:
                notes["missing"].setdefault(name, {})[task] = missing
                notes["remarks"].append(f"{name}: {missing:,} of {len(ids[task]):,} {task} answers are missing")
        notes["agents_notes"][name] = dict(counts)
    if gaps and not chosen.allow_missing:
        verb = "is" if len(gaps) == 1 else "are"
        raise InputError(f"{count(len(gaps), 'answer')} {verb} missing (--allow-missing exports the others)", gaps)
    if not chosen.taken.total():
        raise InputError(f"{chosen.folder.path}: there is nothing to export in this format{_without_place(chosen)}")
    return notes


def _without_place(chosen: Selection) -> str:
    """What the exported agents were asked that this benchmark does not have, and the formats that do; maybe nothing."""
    agents = [chosen.folder.meta["agents"].get(name, {}) for name in chosen.machines()]
    kinds = {kind_of(row) for row in chosen.folder.stimuli()}
    here = [kind for kind in ELSEWHERE if kind in kinds and any(is_asked(about, kind) for about in agents)]
    kinds_elsewhere = dict.fromkeys(ELSEWHERE[kind] for kind in here)
    return f", which has no place for {' and '.join(kinds_elsewhere)}" if kinds_elsewhere else ""


def _ids(chosen: Selection) -> dict[str, Ids]:
    """By task: the stimuli of the benchmark in the order of the set, and the ids they are exported under."""
    by_task: dict[str, Ids] = {}
    for row in chosen.folder.stimuli():
        task, stimulus, public = row.get("task"), row.get("id"), row.get("benchmark_id")
        if task in FILES and isinstance(stimulus, str) and row.get("mode", "free") == "free":
            by_task.setdefault(task, {})[stimulus] = public if isinstance(public, str) else stimulus
    problems = [
        Problem(
            str(chosen.folder.path / "stimuli.jsonl"), None, "benchmark_id", f"{count} stimuli of {task} have {name!r}"
        )
        for task, ids in by_task.items()
        for name, count in Counter(ids.values()).items()
        if count > 1
    ]
    if problems:
        raise InputError(
            "the benchmark has one answer for each id; export a run of a set in which ids differ", problems
        )
    return by_task


def _responses(
    chosen: Selection, name: str, ids: dict[str, Ids], counts: Counter[str]
) -> tuple[dict[tuple[str, str], Response], dict[tuple[str, str], str]]:
    """An agent's responses by (task, stimulus), and for the other records why there is none."""
    responses: dict[tuple[str, str], Response] = {}
    reasons: dict[tuple[str, str], str] = {}
    if name not in chosen.folder.agents():
        return responses, reasons
    for record in chosen.folder.latest(name):
        task, key = record["task"], (record["task"], record["stimulus"])
        if record["sample"] != chosen.sample or record["stimulus"] not in ids.get(task, ()):
            continue
        if record["answer"] is None or record["status"] == "failed":
            error = record["error"] or {}
            reasons[key] = f"failed: {error.get('code')}: {error.get('message')}" if error else record["status"]
        elif record["status"] == "rejected" and not chosen.include_rejected:
            chosen.left_out["rejected"] += 1
            reasons[key] = "every attempt was rejected (--include-rejected exports the last)"
        elif record["kind"] == "control" and not chosen.include_control:
            chosen.left_out["control"] += 1
            reasons[key] = "a control answer"
        else:
            try:
                responses[key] = RESPONSES[task](record["answer"], counts)
            except MALFORMED as error:
                raise misfit(record, "answer", f"not an answer to {task}: {error!r}") from None
            chosen.taken[name] += 1
    return responses, reasons


def _labels(answer: dict[str, Any], counts: Counter[str]) -> str:
    labels = [label.lower() for label in answer["labels"][:LABELS]]
    counts["commas_in_labels"] += sum("," in label for label in labels)
    counts["fewer_than_three_labels"] += len(labels) < LABELS
    return ", ".join(" ".join(label.replace(",", " ").split()) for label in labels)


def _fixations(answer: dict[str, Any], counts: Counter[str]) -> list[list[int]]:
    width, height = answer["frame"]
    path = answer["fixations"]
    counts["scanpaths_cut_to_15"] += len(path) > FIXATIONS
    counts["fewer_than_15_fixations"] += len(path) < FIXATIONS
    points = []
    for x, y in path[:FIXATIONS]:
        column, row = math.floor(x * WIDTH / width), math.floor(y * HEIGHT / height)
        inside = [min(max(column, 0), WIDTH - 1), min(max(row, 0), HEIGHT - 1)]
        counts["points_moved_to_the_edge"] += inside != [column, row]
        points.append(inside)
    return points


def _text(key: str) -> Callable[[dict[str, Any], Counter[str]], Response]:
    def response(answer: dict[str, Any], counts: Counter[str]) -> Response:
        value = answer[key]
        if not isinstance(value, str):
            raise TypeError(f"{key} is not text")
        return value

    return response


RESPONSES: dict[str, Callable[[dict[str, Any], Counter[str]], Response]] = {
    "image_captioning": _text("text"),
    "word_association": _text("word"),
    "color_estimation": _text("color"),
    "object_detection": _labels,
    "attention_prediction": _fixations,
}


def _write_json(path: Path, value: Any) -> None:
    path.parent.mkdir(exist_ok=True)
    with path.open("wb") as file:
        file.write(orjson.dumps(value))


TURINGTEST = FolderFormat(write_turingtest)
