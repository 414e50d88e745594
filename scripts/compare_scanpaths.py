"""Whole scanpaths of runs side by side: the figures of the section "Marks of the method" of docs/attention.md.

    turinglike generate examples/images --task attention --agents gbvs --skip-invalid --out paths
    python scripts/compare_scanpaths.py paths [PEOPLE...]

PEOPLE is a run that ``turinglike import`` wrote. Prints as JSON for each agent, and for all people or published
machines of an import: paths, fixations, saccades; ``returns``, how many fixations come back to within a degree, and
``counted``, of how many (Zhang et al. 2022); ``at_border``, how many saccades end at most a pixel outside the square
window of an earlier fixation. A map's maximum with hard inhibition causes that; people's share is near zero. Neither
says how well a model predicts people: `turinglike export --format pysaliency` leads to measures that do.

The exit code is 2 for wrong usage or input.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from agents.errors import InputError, TuringlikeError
from serving.runs.answer_numbers import RETURN_RADIUS, return_fixations
from serving.runs.run import Run

WINDOW = 200 / 1280  # the side, of the frame's width: what agents have by default
WITHIN = 1.0  # pixels outside the window


def at_border(fixations: Sequence[Sequence[float]], window: float) -> int:
    """How many saccades of a path end at the border of an earlier fixation's window; ``window`` in pixels."""
    points = np.asarray(fixations, dtype=np.float64).reshape(-1, 2)
    landed = 0
    for index in range(1, len(points)):
        beyond = np.abs(points[:index] - points[index]).max(axis=1) - window // 2
        landed += bool(((beyond > 0) & (beyond <= WITHIN)).any())
    return landed


def paths(folder: Run, name: str) -> Iterator[dict[str, Any]]:
    """The scanpaths of an agent, or of an import."""
    for record in folder.latest(name):
        if record["task"] == "attention_prediction" and record["status"] == "ok":
            yield record["answer"]


def figures(answers: Iterator[dict[str, Any]], window: float) -> dict[str, int]:
    """The figures of all paths together; ``window``, for paths that name none, is a share of the frame's width."""
    counts = dict.fromkeys(("paths", "fixations", "returns", "counted", "saccades", "at_border"), 0)
    for answer in answers:
        points = answer["fixations"]
        width = answer["frame"][0]
        returns, counted = return_fixations(points, RETURN_RADIUS * width)
        counts["paths"] += 1
        counts["fixations"] += len(points)
        counts["returns"] += returns
        counts["counted"] += counted
        counts["saccades"] += max(len(points) - 1, 0)
        counts["at_border"] += at_border(points, answer.get("window") or max(1, round(window * width)))
    return counts


def compare(runs: Sequence[Path], window: float = WINDOW) -> dict[str, dict[str, int]]:
    """The figures of whoever made paths, by "RUN: NAME". Raises InputError where nobody did."""
    result: dict[str, dict[str, int]] = {}
    for path in runs:
        folder = Run(path)
        for name in [*folder.agents(), *folder.imports()]:
            found = figures(paths(folder, name), window)
            if found["paths"]:
                result[f"{path}: {name}"] = found
    if not result:
        raise InputError(f"{', '.join(map(str, runs))}: no scanpaths")
    return result


def main(argv: Sequence[str] | None = None) -> int:
    """The command. Returns its exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="run folders")
    side = "side of the square window of paths that name none, as a share of the frame's width (200/1280)"
    parser.add_argument("--window", type=float, default=WINDOW, help=side)
    options = parser.parse_args(argv)
    try:
        result = compare(options.runs, options.window)
    except TuringlikeError as error:
        print(f"compare_scanpaths: {error}", file=sys.stderr)
        return error.exit_code
    print(orjson.dumps(result, option=orjson.OPT_INDENT_2).decode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
