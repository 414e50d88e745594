"""How far the agents of runs are, for the page that follows them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from serving.files.words import duration, per_second
from serving.runs.estimates import Estimate
from serving.runs.run import Run
from serving.runs.status import status

NameShown = Callable[[int, Mapping[str, Any]], str]
"""What the page calls an agent of the run of that number."""


def unfinished(runs: Sequence[Run], name_shown: NameShown) -> list[list[Any]]:
    """A row for each agent that has not answered all: its name, answers, expected answers, answers in a second lately
    and the time left as text (None where records say too little), and when it wrote last (Unix time, or None)."""
    rows = []
    for number, run in enumerate(runs):
        for name, agent in status(run.path)["agents"].items():
            if not agent["unanswered"]:
                continue
            answered = agent["expected"] - agent["unanswered"]
            rows.append(
                [
                    name_shown(number, {"agent": name, "kind": agent["kind"]}),
                    answered,
                    agent["expected"],
                    None if agent["rate"] is None else per_second(agent["rate"]),
                    None if agent["left"] is None else Estimate(**agent["left"]).text(duration),
                    run.records_path(name).stat().st_mtime if answered else None,
                ]
            )
    return rows
