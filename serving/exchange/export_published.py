"""The published benchmark's form: a folder per agent, a file per task (:data:`FILES`), ``{id: response}``.

Responses: a text, up to three labels ``"a, b, c"``, or the first 15 fixations rounded down in 1280 x 1024. This is the
size of the benchmark's own pictures: a path on a picture of another shape is stretched to it, and counted."""

import math
from collections import Counter
from typing import Any

import orjson

from agents.errors import InputError, Problem
from agents.frames import Point, have_one_shape
from serving.exchange.export_images import ScanpathImages, Size
from serving.exchange.exporting import MALFORMED, Export, Record, misfit
from serving.files.words import count
from serving.sets.kinds import is_asked, kind_of

FILES: dict[str, str] = {
    "image_captioning": "caption.json",
    "word_association": "word.json",
    "color_estimation": "color.json",
    "object_detection": "object.json",
    "attention_prediction": "fv.json",
}
TEXTS = {"image_captioning": "text", "word_association": "word", "color_estimation": "color"}
WIDTH = 1280
HEIGHT = 1024
FIXATIONS = 15
LABELS = 3

Response = str | list[list[int]]
Ids = dict[str, str]


def write_turingtest(chosen: Export) -> dict[str, Any]:
    """Fill the folder; returns notes for the side-car. Raises InputError with every gap."""
    ids = _ids(chosen)
    chosen.leave_out_imports(FILES)
    gaps: list[Problem] = []
    images = ScanpathImages(chosen.run)
    notes: dict[str, Any] = {"agents_notes": {}, "missing": {}, "remarks": []}
    for name in chosen.machines():
        about = chosen.run.meta["agents"].get(name, {})
        tasks = [task for task in FILES if ids.get(task) and is_asked(about, kind_of({"task": task}))]
        if not tasks:
            notes["remarks"].append(f"{name}: nothing of its tasks is in this benchmark")
            continue
        counts: Counter[str] = Counter()
        responses, reasons = _responses(chosen, name, ids, images, counts)
        for task in tasks:
            missing = [stimulus for stimulus in ids[task] if (task, stimulus) not in responses]
            where = str(chosen.run.records_path(name))
            gaps += [Problem(where, None, key, reasons.get((task, key), "unanswered")) for key in missing]
            answers = {public: responses[task, key] for key, public in ids[task].items() if (task, key) in responses}
            if answers:
                chosen.open(f"{name}/{FILES[task]}").write(orjson.dumps(answers))
            if missing:
                notes["missing"].setdefault(name, {})[task] = len(missing)
                notes["remarks"].append(f"{name}: {len(missing):,} of {len(ids[task]):,} {task} answers are missing")
        notes["agents_notes"][name] = dict(counts)
        if stretched := counts["scanpaths_stretched_from_another_shape"]:
            notes["remarks"].append(
                f"{name}: {count(stretched, 'scanpath')} on pictures of another shape than {WIDTH} x {HEIGHT}, the "
                "benchmark's, stretched to it"
            )
    images.refuse()
    notes["remarks"] += images.unread_told()
    if gaps and not chosen.allow_missing:
        verb = "is" if len(gaps) == 1 else "are"
        raise InputError(f"{count(len(gaps), 'answer')} {verb} missing (--allow-missing exports the others)", gaps)
    if not chosen.taken.total() and not chosen.left_out:
        raise InputError(
            f"{chosen.run.path}: there is nothing to export in this format, which has no place for visual search "
            "(use pysaliency or jsonl) and conversations (use jsonl)"
        )
    return notes


def _ids(chosen: Export) -> dict[str, Ids]:
    by_task: dict[str, Ids] = {}
    for row in chosen.run.stimuli():
        task = row.get("task")
        stimulus = row.get("id")
        public = row.get("benchmark_id")
        if task in FILES and isinstance(stimulus, str) and row.get("mode", "free") == "free":
            by_task.setdefault(task, {})[stimulus] = public if isinstance(public, str) else stimulus
    where = str(chosen.run.path / "stimuli.jsonl")
    problems = [
        Problem(where, None, "benchmark_id", f"{number} stimuli of {task} have {name!r}")
        for task, ids in by_task.items()
        for name, number in Counter(ids.values()).items()
        if number > 1
    ]
    if problems:
        raise InputError("the benchmark has one answer for each id; export a set in which ids differ", problems)
    return by_task


def _responses(
    chosen: Export, name: str, ids: dict[str, Ids], images: ScanpathImages, counts: Counter[str]
) -> tuple[dict[tuple[str, str], Response], dict[tuple[str, str], str]]:
    responses: dict[tuple[str, str], Response] = {}
    reasons: dict[tuple[str, str], str] = {}
    for record in chosen.run.latest(name) if name in chosen.run.agents() else ():
        key = (record["task"], record["stimulus"])
        if record["sample"] != chosen.sample or record["stimulus"] not in ids.get(record["task"], ()):
            continue
        if record["status"] == "failed" or record["answer"] is None:
            error = record["error"] or {}
            reasons[key] = f"failed: {error.get('code')}: {error.get('message')}"
        elif (reason := chosen.reason(record)) is not None:
            chosen.left_out[reason] += 1
            reasons[key] = f"{reason} (--include-{reason} exports it)"
        else:
            try:
                if record["task"] == "attention_prediction":
                    image = str((chosen.stimuli.get(record) or {}).get("image") or record["stimulus"])
                    points, size = images.fixations_in_a_frame(image, record)
                    responses[key] = _fixations(points, size, counts)
                else:
                    responses[key] = _response(record, counts)
            except MALFORMED as error:
                raise misfit(record, "answer", f"not an answer to {record['task']}: {error!r}") from None
            chosen.taken[name] += 1
    return responses, reasons


def _response(record: Record, counts: Counter[str]) -> str:
    """A record's response, of scanpaths apart; ``counts`` notes losses."""
    task = record["task"]
    answer = record["answer"]
    if task == "object_detection":
        labels = [label.lower() for label in answer["labels"][:LABELS]]
        counts["commas_in_labels"] += sum("," in label for label in labels)
        counts["fewer_than_three_labels"] += len(labels) < LABELS
        return ", ".join(" ".join(label.replace(",", " ").split()) for label in labels)
    return str(answer[TEXTS[task]])


def _fixations(path: list[Point], size: Size, counts: Counter[str]) -> list[list[int]]:
    """The first fixations of a path in pixels of a picture of ``size`` (width, height)."""
    width, height = size
    counts["scanpaths_cut_to_15"] += len(path) > FIXATIONS
    counts["fewer_than_15_fixations"] += len(path) < FIXATIONS
    counts["scanpaths_stretched_from_another_shape"] += not have_one_shape(size, (WIDTH, HEIGHT))
    points = []
    for x, y in path[:FIXATIONS]:
        column = math.floor(x * WIDTH / width)
        row = math.floor(y * HEIGHT / height)
        inside = [min(max(column, 0), WIDTH - 1), min(max(row, 0), HEIGHT - 1)]
        counts["points_moved_to_the_edge"] += inside != [column, row]
        points.append(inside)
    return points
