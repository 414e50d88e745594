"""The form of the published benchmark: a folder per agent, and in it a file per task (:data:`FILES`), ``{id:
response}``.

A response is a text, up to three labels ``"a, b, c"``, or the first 15 fixations, rounded down to pixels of 1280 x
1024. This is the size of the benchmark's own pictures: a path on a picture of another shape is stretched to it, and
counted.
"""

import math
from collections import Counter
from typing import Any

import orjson

from agents.errors import InputError, Problem
from agents.frames import Point, have_one_shape
from serving.exchange.exporting.export import Export, misfit
from serving.exchange.exporting.images import ScanpathImages, Size
from serving.files.words import count
from serving.runs.path_frames import MALFORMED
from serving.sets.kinds import is_asked, kind_of

FILES: dict[str, str] = {
    "image_captioning": "caption.json",
    "word_association": "word.json",
    "color_estimation": "color.json",
    "object_detection": "object.json",
    "attention_prediction": "fv.json",
}
ANSWER_FIELDS = {"image_captioning": "text", "word_association": "word", "color_estimation": "color"}
# pixels of the benchmark's pictures
WIDTH = 1280
HEIGHT = 1024
# how much of an answer the benchmark holds
FIXATIONS = 15
LABELS = 3

Response = str | list[list[int]]
"""A text, or a path of fixations [column, row]."""
AnswerId = tuple[str, str]
"""The task and the stimulus's id in the run."""
PublicIds = dict[str, str]
"""The benchmark's ids of stimuli, by their ids in the run."""


def write_turingtest(export: Export) -> dict[str, Any]:
    """Fill the folder with the machines' answers. Returns notes for the side-car: losses by agent, missing answers by
    agent and task. Raises InputError with every missing answer, unless ``export.allow_missing``."""
    ids = _ids(export)
    export.leave_out_imports(FILES)
    gaps: list[Problem] = []
    images = ScanpathImages(export.run)
    notes: dict[str, Any] = {"agents_notes": {}, "missing": {}, "remarks": []}
    for name in export.machines():
        entry = export.run.meta["agents"].get(name, {})
        tasks = [task for task in FILES if ids.get(task) and is_asked(entry, kind_of({"task": task}))]
        if not tasks:
            notes["remarks"].append(f"{name}: nothing of its tasks is in this benchmark")
            continue
        losses: Counter[str] = Counter()
        responses, reasons = _responses(export, name, ids, images, losses)
        for task in tasks:
            missing = [stimulus for stimulus in ids[task] if (task, stimulus) not in responses]
            where = str(export.run.records_path(name))
            gaps += [Problem(where, None, key, reasons.get((task, key), "unanswered")) for key in missing]
            answers = {public: responses[task, key] for key, public in ids[task].items() if (task, key) in responses}
            if answers:
                export.open(f"{name}/{FILES[task]}").write(orjson.dumps(answers))
            if missing:
                notes["missing"].setdefault(name, {})[task] = len(missing)
                notes["remarks"].append(f"{name}: {len(missing):,} of {len(ids[task]):,} {task} answers are missing")
        notes["agents_notes"][name] = dict(losses)
        stretched = losses["scanpaths_stretched_from_another_shape"]
        if stretched:
            notes["remarks"].append(
                f"{name}: {count(stretched, 'scanpath')} on pictures of another shape than {WIDTH} x {HEIGHT}, the "
                "benchmark's, stretched to it"
            )
    images.refuse()
    notes["remarks"] += images.remarks_on_unread()
    if gaps and not export.allow_missing:
        verb = "is" if len(gaps) == 1 else "are"
        raise InputError(f"{count(len(gaps), 'answer')} {verb} missing (--allow-missing exports the others)", gaps)
    if not export.taken.total() and not export.left_out:
        raise InputError(
            f"{export.run.path}: there is nothing to export in this format, which has no place for visual search "
            "(use pysaliency or jsonl) and conversations (use jsonl)"
        )
    return notes


def _ids(export: Export) -> dict[str, PublicIds]:
    """The stimuli that the benchmark asks about, by task. Raises InputError for a public id that stands twice."""
    by_task: dict[str, PublicIds] = {}
    for row in export.run.stimuli():
        task = row.get("task")
        stimulus = row.get("id")
        public = row.get("benchmark_id")
        if task in FILES and isinstance(stimulus, str) and row.get("mode", "free") == "free":
            by_task.setdefault(task, {})[stimulus] = public if isinstance(public, str) else stimulus
    where = str(export.run.path / "stimuli.jsonl")
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
    export: Export, name: str, ids: dict[str, PublicIds], images: ScanpathImages, losses: Counter[str]
) -> tuple[dict[AnswerId, Response], dict[AnswerId, str]]:
    """The responses of an agent, and why others are missing. ``losses`` counts what the form cannot hold."""
    responses: dict[AnswerId, Response] = {}
    reasons: dict[AnswerId, str] = {}
    if name not in export.run.agents():
        return responses, reasons
    for record in export.run.latest(name):
        key = (record["task"], record["stimulus"])
        if record["sample"] != export.sample or record["stimulus"] not in ids.get(record["task"], ()):
            continue
        if record["status"] == "failed" or record["answer"] is None:
            error = record["error"] or {}
            reasons[key] = f"failed: {error.get('code')}: {error.get('message')}"
        elif (reason := export.reason(record)) is not None:
            export.left_out[reason] += 1
            reasons[key] = f"{reason} (--include-{reason} exports it)"
        else:
            try:
                if record["task"] == "attention_prediction":
                    image = str((export.stimuli.get(record) or {}).get("image") or record["stimulus"])
                    points, size = images.fixations_in_a_frame(image, record)
                    responses[key] = _fixations(points, size, losses)
                else:
                    responses[key] = _response(record, losses)
            except MALFORMED as error:
                raise misfit(record, "answer", f"not an answer to {record['task']}: {error!r}") from None
            export.taken[name] += 1
    return responses, reasons


def _response(record: dict[str, Any], losses: Counter[str]) -> str:
    """The response of a record of any task but scanpaths. ``losses`` counts commas and absent labels."""
    task = record["task"]
    answer = record["answer"]
    if task == "object_detection":
        labels = [label.lower() for label in answer["labels"][:LABELS]]
        losses["commas_in_labels"] += sum("," in label for label in labels)
        losses["fewer_than_three_labels"] += len(labels) < LABELS
        return ", ".join(" ".join(label.replace(",", " ").split()) for label in labels)
    return str(answer[ANSWER_FIELDS[task]])


def _fixations(path: list[Point], size: Size, losses: Counter[str]) -> list[list[int]]:
    """The first fixations of a path on a picture of ``size``, as [column, row] of the benchmark's pixels."""
    width, height = size
    losses["scanpaths_cut_to_15"] += len(path) > FIXATIONS
    losses["fewer_than_15_fixations"] += len(path) < FIXATIONS
    losses["scanpaths_stretched_from_another_shape"] += not have_one_shape(size, (WIDTH, HEIGHT))
    points = []
    for x, y in path[:FIXATIONS]:
        column = math.floor(x * WIDTH / width)
        row = math.floor(y * HEIGHT / height)
        inside = [min(max(column, 0), WIDTH - 1), min(max(row, 0), HEIGHT - 1)]
        losses["points_moved_to_the_edge"] += inside != [column, row]
        points.append(inside)
    return points
