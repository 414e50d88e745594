"""Marks of answers from the traces and checks that an export of a study has."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agents.errors import InputError
from judging.contamination.marks import MARKS, AnswerKey, count_patterns, marks_of, read_marks
from serving.runs.run import Run
from tests.helpers.made_runs import LINES, Folder

TYPED = {
    "inserted": [],
    "keys": 40,
    "deletions": 3,
    "first_key_ms": 900,
    "typing_ms": 8000,
    "hidden_ms": 0,
    "unfocused_ms": 0,
    "characters": 36,
    "pasted_characters": 0,
    "dropped_characters": 0,
    "autofilled_characters": 0,
    "composed_characters": 0,
    "other_characters": 0,
    "unexplained_characters": 0,
    "characters_per_s": 4.5,
    "key_times": [],
    "deletion_times": [],
}
CASES: list[tuple[dict[str, Any], tuple[float | None, ...]]] = [
    ({}, (0, 0, 0)),
    ({"pasted_characters": 18}, (1, 0, None)),
    ({"pasted_characters": 17}, (0, 0, 0)),
    ({"dropped_characters": 10, "unexplained_characters": 8}, (1, 0, None)),
    ({"autofilled_characters": 36}, (0, 0, 0)),
    ({"composed_characters": 36, "keys": 0}, (0, 0, None)),
    ({"hidden_ms": 3000}, (0, 1, 0)),
    ({"hidden_ms": 2999}, (0, 0, 0)),
    ({"hidden_ms": 1000, "unfocused_ms": 3500}, (0, 1, 0)),
    ({"hidden_ms": 1500, "unfocused_ms": 2500}, (0, 0, 0)),
    ({"other_characters": 36, "keys": 0}, (0, 0, None)),
    ({"characters_per_s": 10.5}, (0, 0, 1)),
    ({"characters_per_s": None}, (0, 0, 0)),
    ({"keys": 59, "deletions": 0}, (0, 0, 0)),
    ({"keys": 60, "deletions": 0}, (0, 0, 1)),
    ({"keys": 19, "characters_per_s": 30}, (0, 0, None)),
    ({"characters": 0}, (None, None, None)),
]


@pytest.mark.parametrize(("changed", "expected"), CASES)
def test_traces_become_marks(changed: dict[str, Any], expected: tuple[float | None, ...]) -> None:
    assert marks_of([{**TYPED, **changed}], {}) == (*expected, None)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ({"checks": {"copied_instruction": True, "twice_of": None}}, 1),
        ({"checks": {"copied_instruction": False, "twice_of": 0}}, 0),
        ({"checks": {"copied_instruction": None}, "person_checks": {"questions_right": 1, "questions": 2}}, 0),
        ({"person_checks": {"questions_right": 0, "questions": 1, "copied": 0}}, 1),
        ({"person_checks": {"questions_right": 0, "questions": 0, "copied": 0}}, None),
        ({"checks": None, "person_checks": None}, None),
    ],
)
def test_checks_become_a_mark(raw: dict[str, Any], expected: float | None) -> None:
    assert marks_of([TYPED], raw)[3] == expected
    assert marks_of([None], raw) == (None, None, None, expected)


def _made(tmp_path: Path, raws: dict[str, Any]) -> Path:
    folder = Folder(tmp_path)
    row = folder.ask("word_association", "moon", cue="moon")
    for person, raw in raws.items():
        answer = {"word": "night", "original": "night", "flags": []}
        folder.record(f"human:{person}", row, answer, kind="human", raw=raw)
    return folder.write()


def test_answers_with_and_without_traces_are_counted_by_person(tmp_path: Path) -> None:
    pasted = {**TYPED, "pasted_characters": 36, "keys": 0}
    run = _made(tmp_path, {"01": {"traces": TYPED}, "02": {"traces": pasted}, "03": {"rt": 900}, "04": None})
    answers = read_marks([run])
    assert [answer.marks for answer in answers] == [(0, 0, 0, None), (1, 0, None, None), (None,) * 4, (None,) * 4]
    assert answers[1].key == AnswerKey("word_association", "human:02", "moon", 0, "")
    counts, patterns = count_patterns(answers, [])
    assert patterns == [0, 1, -1, -1]
    assert counts.field.tolist() == [[1, 0], [0, 1]]
    assert counts.laboratory.shape == (0, 2)
    assert np.array_equal(counts.patterns, [[0, 0, 0, np.nan], [1, 0, np.nan, np.nan]], equal_nan=True)
    assert len(counts.least) == len(MARKS)


@pytest.mark.parametrize(
    ("copied", "right", "expected"),
    [(False, 2, 0), (True, 2, 1), (False, 0, 1), (None, 2, 0), (None, None, None)],
)
def test_a_conversation_has_the_marks_of_each_person_in_it(
    tmp_path: Path, copied: bool | None, right: int | None, expected: float | None
) -> None:
    folder = Folder(tmp_path)
    row = folder.ask("conversation", "talk", topic="music", exchanges=2)
    pasted = {**TYPED, "pasted_characters": 36, "keys": 0}
    lines = [{**LINES[0], "agent": "human:01"}, LINES[1], {**LINES[0], "turn": 2, "agent": "human:01"}]
    answer = {"messages": lines, "ended_early": False, "withdrawn": [], "pseudo": []}
    raw: dict[str, Any] = {"traces": [TYPED, None, pasted]}
    if right is not None:
        of_message = {"copied_instruction": copied, "twice_of": None}
        raw["checks"] = [{**of_message, "copied_instruction": copied and False}, None, of_message]
        raw["person_checks"] = {"01": {"questions_right": right, "questions": 2, "copied": int(copied or 0)}}
    folder.record("human:01~talker", row, answer, kind="human", raw=raw)
    [found] = read_marks([folder.write()])
    assert found.key == AnswerKey("conversation", "human:01~talker", "talk", 0, "A")
    assert (found.person, found.marks) == ("human:01", (1, 0, None, expected))  # half of both messages' characters


def test_wrong_traces_are_refused_all_at_once(tmp_path: Path) -> None:
    wrong = {
        "01": {"traces": {**TYPED, "keys": -1}},
        "02": {"traces": "pasted"},
        "03": {"traces": {name: value for name, value in TYPED.items() if name != "hidden_ms"}},
        "04": {"traces": {**TYPED, "characters": True}},
    }
    with pytest.raises(InputError) as refused:
        read_marks([_made(tmp_path, wrong)])
    fields = [problem.field for problem in refused.value.problems]
    assert fields == [
        "human:01, moon: raw.traces.keys",
        "human:02, moon: raw.traces",
        "human:03, moon: raw.traces.hidden_ms",
        "human:04, moon: raw.traces.characters",
    ]


def test_a_run_without_any_trace_is_refused(tmp_path: Path) -> None:
    run = _made(tmp_path, {"01": {"rt": 900}})
    with pytest.raises(InputError, match="no answer of a participant with traces"):
        read_marks([run])
    assert Run(run).imports() == ["humans"]
