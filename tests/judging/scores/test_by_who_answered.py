"""Scores by columns of who answered: from tables of people, of machines and of verdicts to tests, counted again."""

import csv
import json
import random
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from serving.cli import main

CUES = ("moon", "bird", "road", "milk", "fire", "rain", "gold", "wind")
WORDS = ("table", "river", "stone", "cloud", "music", "bread", "horse", "light", "apple", "chair", "paper", "water")
AGES = ("31", "24", "45", "52", "")
Rows = list[dict[str, str]]


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight people with sex and age, a machine, and six judges of two sexes."""
    folder = tmp_path_factory.mktemp("people")
    chance = random.Random(1)
    people = [
        [cue, f"p{person}", chance.choice(WORDS), AGES[person % 5], ("male", "female")[person % 2]]
        for person in range(8)
        for cue in CUES
    ]
    _write(folder / "people.csv", ["stimulus", "subject", "response", "age", "sex"], people)
    machine = [[cue, "alpha", chance.choice(WORDS), "machine"] for cue in CUES]
    _write(folder / "machine.csv", ["stimulus", "subject", "response", "truth"], machine)
    for table in ("people.csv", "machine.csv"):
        assert main(["import", str(folder / table), "--task", "word", "--out", str(folder / "run")]) == 0
    drawn = ["--every", "--as-written", "--seed", "1", "--out", str(folder / "trials")]
    assert main(["trials", str(folder / "run"), *drawn]) == 0
    with (folder / "trials.key.csv").open(newline="") as file:
        trials = [row["trial"] for row in csv.DictReader(file)]
    verdicts = [
        [trial, f"j{judge}", chance.choice(("human", "human", "machine")), ("male", "female")[judge % 2]]
        for judge in range(6)
        for trial in trials
    ]
    _write(folder / "verdicts.csv", ["stimulus", "subject", "response", "sex"], verdicts)
    judged = ["import", str(folder / "verdicts.csv"), "--task", "judgement", "--out", str(folder / "judged")]
    assert main(judged) == 0
    by = "person.sex,person.age,sex"
    key = str(folder / "trials.key.csv")
    assert main(["score", str(folder / "judged"), "--key", key, "--by", by, "--out", str(folder / "S")]) == 0
    return folder


def _write(path: Path, names: list[str], rows: list[list[str]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows(rows)


def _read(path: Path) -> Rows:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def _right_by_judge(rows: Rows, column: str) -> dict[str, dict[str, float]]:
    """By value and judge the share of people's answers judged human."""
    right: dict[str, dict[str, list[bool]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row["truth"] == "human" and row[column]:
            right[row[column]][row["judge"]].append(row["verdict"] == "human")
    return {
        value: {judge: sum(said) / len(said) for judge, said in of_value.items()} for value, of_value in right.items()
    }


def test_rates_are_those_of_the_people_with_the_value(study: Path) -> None:
    rows = _read(study / "S" / "verdicts.csv")
    of_sex = {
        row["value"]: row
        for row in _read(study / "S" / "by.csv")
        if (row["column"], row["agent"]) == ("person.sex", "all")
    }
    assert of_sex.keys() == {"male", "female"}
    for value, row in of_sex.items():
        said = [each["verdict"] == "human" for each in rows if each["meta.person.sex"] == value]
        assert len(said) == 4 * 8 * 6
        assert float(row["p_human"]) == pytest.approx(sum(said) / len(said))
        assert row["p_machine"] == ""
    ages = {row["value"] for row in _read(study / "S" / "by.csv") if row["column"] == "person.age"}
    assert ages == {"24", "31", "45", "52"}  # who gave no age is at none


def test_the_test_compares_how_often_people_are_taken_for_people(study: Path) -> None:
    """There is no detectability of people alone. Each judge counts once."""
    tests = json.loads((study / "S" / "scores.json").read_bytes())["tests"]["word_association"]["by_columns"]
    rows = _read(study / "S" / "verdicts.csv")
    [by_sex] = [test for test in tests if test["column"] == "person.sex"]
    assert by_sex["test"] == "p(H|H): judges and stimuli and people"
    shares = _right_by_judge(rows, "meta.person.sex")
    means = {value: np.mean(list(of_value.values())) for value, of_value in shares.items()}
    assert by_sex["value"] == "female"
    assert by_sex["difference"] == pytest.approx(means["female"] - means["male"])
    assert (by_sex["judges"], by_sex["people"]) == (6, 4)
    assert by_sex["difference_low"] < by_sex["difference"] < by_sex["difference_high"]
    [by_judge] = [test for test in tests if test["column"] == "sex"]
    assert not by_judge["test"].startswith("p(H|H)")  # who judged has answers of both kinds before them


def test_an_age_is_a_number_and_has_a_slope(study: Path) -> None:
    tests = json.loads((study / "S" / "scores.json").read_bytes())["tests"]["word_association"]["by_columns"]
    [by_age] = [test for test in tests if test["column"] == "person.age"]
    assert (by_age["value"], by_age["test"]) == ("slope", "p(H|H): judges and stimuli and people")
    rows = [row for row in _read(study / "S" / "verdicts.csv") if row["meta.person.age"]]
    ages = [float(row["meta.person.age"]) for row in rows]
    right = [float(row["verdict"] == "human") for row in rows]
    slope = np.polyfit(ages, right, 1)[0]  # each judge judged everything, and so counts once
    assert by_age["difference"] == pytest.approx(slope)
