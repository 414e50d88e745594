"""The published benchmark's ground truth: everybody's answers, people's too, as its judges and its scores take them.

One file per task (:data:`serving.export.benchmark.FILES`), each ``{id: [{"response", "groundtruth": "human" or
"machine", "human_groundtruth", "machine_groundtruth"}, …]}``. What was imported stands there as it was in its file;
answers of our agents are those of a submission.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import orjson

from agents.errors import InputError
from serving.export.benchmark import FILES, RESPONSES
from serving.export.registry import FolderFormat, FormatOptions
from serving.export.selection import MALFORMED, Selection, misfit
from serving.runs.published_benchmark import UNKNOWN
from serving.runs.stimulus_lookup import StimulusLookup

IMPORTED = {"human": "human", "published": "machine"}


def write_ground_truth(chosen: Selection, out: Path, options: FormatOptions) -> dict[str, Any]:
    """Fill the folder ``out``; returns notes for the side-car. Raises InputError where there is nothing to export."""
    found: dict[str, dict[str, list[dict[str, Any]]]] = {}
    counts: Counter[str] = Counter()
    with StimulusLookup(chosen.folder) as stimuli:
        for record in chosen.everything():
            task, row = record["task"], stimuli.get(record) or {}
            is_search = row.get("mode", "free") == "search" or (
                not row and isinstance(record["raw"], dict) and "X" in record["raw"]
            )
            if task not in FILES or (task == "attention_prediction" and is_search):
                chosen.leave_out(record, "of tasks that the benchmark does not have")
            elif record["status"] == "failed" or record["answer"] is None:
                chosen.leave_out(record, "failed")
            else:
                name = row.get("benchmark_id") or record["stimulus"]
                found.setdefault(task, {}).setdefault(name, []).append(_entry(record, counts))
    if not found:
        raise InputError(f"{chosen.folder.path}: there is nothing to export in this format{chosen.left_out_told()}")
    for task, answers in found.items():
        (out / FILES[task]).write_bytes(orjson.dumps(answers))
    return {"noticed": dict(+counts)}


def _entry(record: dict[str, Any], counts: Counter[str]) -> dict[str, Any]:
    """A record as the benchmark has an answer."""
    said_by = IMPORTED.get(record["kind"], "machine")
    prefix, _, name = record["agent"].partition(":")
    who = "" if name == UNKNOWN else name if prefix == record["kind"] else record["agent"]
    try:
        kept = record["kind"] in IMPORTED and isinstance(record["raw"], str | list)
        response = record["raw"] if kept else RESPONSES[record["task"]](record["answer"], counts)
    except MALFORMED as error:
        raise misfit(record, "answer", f"not an answer to {record['task']}: {error!r}") from None
    names = {f"{kind}_groundtruth": who if kind == said_by else "" for kind in ("human", "machine")}
    return {"response": response, "groundtruth": said_by, **names}


GROUND_TRUTH = FolderFormat(write_ground_truth, one_sample=False)
