"""What travels through the scheduler: it never changes, is made by keywords, and its stimulus is parsed once."""

import ast
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import serving
from agents.stimuli import parse_row
from serving.runs import records
from serving.scheduling import request as travelling
from serving.scheduling.dispatch import Dispatcher
from serving.scheduling.scheduler import Scheduler
from serving.sets import stimulus_row
from tests.helpers.in_process import requests, scheduled

MADE_BY_KEYWORDS = ("Request", "Outcome", "Attempt")
BY_POSITION = {"dispatch.py"}
"""Makes an outcome for each answer, where keywords would double the time that it takes."""


def test_what_travels_never_changes() -> None:
    [request] = requests(1)
    outcome = travelling.Outcome.failed(request, "no_room", "there is none")
    for travels in (request, outcome, outcome.timing):
        for field in travels._fields:
            with pytest.raises(AttributeError):
                setattr(travels, field, None)


def test_what_travels_is_made_by_keywords() -> None:
    """A dozen fields without their names are a riddle, and a named tuple would take them."""
    calls = 0
    files = [file for file in Path(serving.__file__).parent.rglob("*.py") if file.name not in BY_POSITION]
    for file in files:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in MADE_BY_KEYWORDS:
                calls += 1
                assert not node.args, f"{file}:{node.lineno}"
    assert calls > 5


def test_the_parts_of_an_outcome_have_the_keys_of_a_records() -> None:
    for part in ("Failure", "Timing", "Where"):
        assert getattr(travelling, part)._fields == getattr(records, part).keys


def test_a_row_is_parsed_once_in_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many attempts and filters ask for it."""
    parsed: Counter[bytes] = Counter()

    def counted(row: bytes, **context: Any) -> Any:
        parsed[row] += 1
        return parse_row(row, **context)

    async def work(scheduler: Scheduler, dispatcher: Dispatcher) -> Counter[str]:
        asked = requests(20)
        again = [request._replace(sample=sample) for request in asked for sample in range(3)]
        return Counter([outcome.status async for outcome in scheduler.stream(again)])

    monkeypatch.setattr(stimulus_row, "parse_row", counted)
    statuses = scheduled(work, {"reject": 0.5, "attempts": 2}, batch_size=8)
    assert statuses["rejected"] > 0
    assert set(parsed.values()) == {1}
    assert len(parsed) == 20
