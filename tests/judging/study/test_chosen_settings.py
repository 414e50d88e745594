"""``study new --set``: settings that are chosen when the study is made."""

import tomllib
from typing import Any

import pytest

from agents.errors import InputError
from judging.study.design import presets
from judging.study.design.chosen_settings import with_settings

TEXT = presets.study_of_judges("../trials", "conversation", "plain")


def chosen(*assignments: str) -> dict[str, Any]:
    return tomllib.loads(with_settings(TEXT, assignments))


def test_a_setting_gets_its_value_and_all_others_stay() -> None:
    before = tomllib.loads(TEXT)
    values = {
        "trials.number=7": ("trials", "number", 7),
        "texts.title=Who wrote this? # 1": ("texts", "title", "Who wrote this? # 1"),
        "texts.consent=One line.": ("texts", "consent", "One line."),
        'questions.out={"age": ["<18"]}': ("questions", "out", {"age": ["<18"]}),
        'judges.parameters=["STUDY_ID", "a#b"]': ("judges", "parameters", ["STUDY_ID", "a#b"]),
        "trials.sample=false": ("trials", "sample", False),
        'end.code="12"': ("end", "code", "12"),
        "end.failed_checks=007": ("end", "failed_checks", "007"),
        "end.no_consent=2001": ("end", "no_consent", "2001"),
    }
    for assignment, (table, key, value) in values.items():
        after = chosen(assignment)
        assert after[table][key] == value
        after[table][key] = before[table][key]
        assert after == before
    assert chosen("language=de")["language"] == "de"
    twice = chosen(*values, "texts.consent=Two\nlines.")
    assert twice["texts"]["consent"] == "Two\nlines."
    assert twice["trials"]["number"] == 7


def test_comments_stay() -> None:
    [line] = [line for line in with_settings(TEXT, ["trials.number=7"]).splitlines() if line.startswith("number = ")]
    assert line.startswith("number = 7 ")
    assert "# trials that count" in line


def test_all_that_is_wrong_is_told() -> None:
    with pytest.raises(InputError, match="the settings cannot be used") as raised:
        with_settings(TEXT, ["trials.count=7", "number=7", "trials", "nothing.at=all", "trials.number=null"])
    first, second, third, fourth, fifth = raised.value.problems
    assert (first.field, second.field, fourth.field) == ("trials.count", "number", "nothing.at")
    assert "trials.number, trials.practice" in first.message
    assert "must be as trials.number=20" in third.message
    assert (fifth.field, fifth.message) == ("trials.number", "null is no value of a setting")
