"""Verdicts of known rates arrive count for count, whatever form they come in; a key that lacks its file is named."""

import csv
import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from judging.trial_sets.trial_set import key_path, read_trial_key
from serving.cli import main
from serving.exchange.importing.table_columns import JUDGES, PARTICIPANTS
from tests.helpers.run_folders import record, stimulus, write_run

WORD = "word_association"
Given = list[tuple[str, str, str]]  # judge, trial, verdict
CELLS = ("human_human", "human_machine", "machine_human", "machine_machine")  # truth and verdict


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trial set of 20 words, half of them people's."""
    folder = tmp_path_factory.mktemp("trials")
    words = ("moon", "light", "river", "stone", "garden")
    rows = [stimulus(f"c{at}", WORD, cue="thing") for at in range(10)]
    answers = []
    for at in range(10):
        answer = {"word": words[at % 5], "candidates": [], "skipped": []}
        answers.append(record(f"c{at}", WORD, "minilm", answer=answer, raw=""))
    run = write_run(folder / "run", rows, {"minilm": answers})
    lines = ["cue,subject,response", *(f"c{at},p{at},{words[at % 5]}" for at in range(10))]
    (folder / "people.csv").write_text("\n".join(lines))
    assert main(["import", str(folder / "people.csv"), "--task", "word", "--out", str(folder / "people")]) == 0
    files = [str(run), str(folder / "people")]
    assert main(["trials", *files, "--every", "--seed", "1", "--out", str(folder / "T")]) == 0
    return folder / "T"


def given(trials: Path) -> tuple[Given, dict[str, int]]:
    """Drawn verdicts of eight judges, and how many of each truth were taken for which."""
    chance = random.Random(4)
    keys = read_trial_key(key_path(trials))
    verdicts = []
    counts = dict.fromkeys(CELLS, 0)
    for judge in range(8):
        for trial, row in keys.items():
            says_human = chance.random() < (0.8 if row["truth"] == "human" else 0.35)
            verdict = "human" if says_human else "machine"
            verdicts.append((f"J{judge}", trial, verdict))
            counts[f"{row['truth']}_{verdict}"] += 1
    chance.shuffle(verdicts)
    return verdicts, counts


def as_table(path: Path, rows: list[dict[str, str]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def plain_table(column: str) -> Callable[[Path, Given], tuple[Path, list[str]]]:
    def write(folder: Path, verdicts: Given) -> tuple[Path, list[str]]:
        rows = [{"stimulus": trial, column: judge, "response": verdict} for judge, trial, verdict in verdicts]
        as_table(folder / "verdicts.csv", rows)
        return folder / "verdicts.csv", []

    return write


def keys_of_a_keyboard(folder: Path, verdicts: Given) -> tuple[Path, list[str]]:
    """Keys with a meaning, times, a time-out and a header line in the middle."""
    rows = [
        {"trial": trial, "rater": judge, "response": verdict[0].upper(), "rt": "512"}
        for judge, trial, verdict in verdicts
    ]
    rows.insert(7, {"trial": "t0001", "rater": "J1", "response": "None", "rt": ""})
    rows.insert(9, {name: name for name in rows[0]})
    as_table(folder / "verdicts.csv", rows)
    return folder / "verdicts.csv", ["--responses", "h=human,m=machine"]


def jspsych(kind: str) -> Callable[[Path, Given], tuple[Path, list[str]]]:
    """jsPsych's rows: a fixation cross before each verdict, practice on the same trials, buttons by number."""

    def write(folder: Path, verdicts: Given) -> tuple[Path, list[str]]:
        rows: list[dict[str, Any]] = []
        for phase in ("practice", "test"):
            for judge, trial, verdict in verdicts[: 10 if phase == "practice" else None]:
                shared = {"trial_type": "html-button-response", "participant": judge, "phase": phase}
                rows.append({**shared, "trial_index": len(rows), "response": None, "stimulus": "<p>+</p>"})
                button = ["human", "machine"].index(verdict) if phase == "test" else 1
                shared["trial_index"] = len(rows)  # type: ignore[assignment]
                rows.append({**shared, "response": button, "trial": trial, "rt": 700})
        path = folder / f"verdicts.{kind}"
        if kind == "json":
            path.write_text(json.dumps(rows))
        else:
            names = list(dict.fromkeys(name for row in rows for name in row))
            texts = [{name: "" if row.get(name) is None else str(row.get(name)) for name in names} for row in rows]
            as_table(path, texts)
        return path, ["--responses", "0=human,1=machine", "--rows", "phase=test"]

    return write


FORMS = {
    **{f"table, {column}": plain_table(column) for column in sorted({*JUDGES, *PARTICIPANTS})},
    "keys": keys_of_a_keyboard,
    "jsPsych csv": jspsych("csv"),
    "jsPsych json": jspsych("json"),
}


@pytest.mark.parametrize("form", FORMS)
def test_verdicts_of_known_rates_arrive_count_for_count(form: str, trials: Path, tmp_path: Path) -> None:
    verdicts, counts = given(trials)
    path, options = FORMS[form](tmp_path, verdicts)
    assert main(["import", str(path), "--task", "judgement", *options, "--out", str(tmp_path / "V")]) == 0
    lines = (tmp_path / "V" / "records" / "humans.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    arrived = {(row["agent"], row["stimulus"], row["sample"], row["answer"]["verdict"]) for row in rows}
    assert arrived == {(f"human:{judge}", trial, 0, verdict) for judge, trial, verdict in verdicts}
    if "table" in form and form != "table, judge":
        return  # the scores of equal records are the same
    key = str(key_path(trials))
    assert main(["score", str(tmp_path / "V"), "--key", key, "--out", str(tmp_path / "S")]) == 0
    scores = json.loads((tmp_path / "S" / "scores.json").read_bytes())["scores"]
    [whole] = [row for row in scores if row["agent"] == "all"]
    assert {name: whole[name] for name in CELLS} == counts
    total = {truth: counts[f"{truth}_human"] + counts[f"{truth}_machine"] for truth in ("human", "machine")}
    right = (counts["human_human"] / total["human"] + counts["machine_machine"] / total["machine"]) / 2
    assert whole["detectability"] == pytest.approx(right)


def test_a_key_without_its_file_says_what_is_missing(
    trials: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    verdicts, _ = given(trials)
    path, _ = plain_table("judge")(tmp_path, verdicts)
    assert main(["import", str(path), "--task", "judgement", "--out", str(tmp_path / "V")]) == 0
    shutil.copy(key_path(trials), tmp_path / "K.key.csv")
    assert main(["score", str(tmp_path / "V"), "--key", str(tmp_path / "K.key.csv"), "--out", str(tmp_path / "S")]) == 2
    assert "K.trials.json, which has its checksum, is not beside it" in capsys.readouterr().err


def test_score_tells_verdicts_that_count_nowhere(
    trials: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Runs that were imported before names were needed have all judges as one: their scores say so."""
    verdicts, _ = given(trials)
    path, _ = plain_table("judge")(tmp_path, verdicts)
    assert main(["import", str(path), "--task", "judgement", "--out", str(tmp_path / "V")]) == 0
    records = tmp_path / "V" / "records" / "humans.jsonl"
    rows = [json.loads(line) for line in records.read_text().splitlines()]
    samples: dict[str, int] = {}
    for row in rows:
        row["agent"] = "human:unknown"
        row["sample"] = samples.get(row["stimulus"], 0)
        samples[row["stimulus"]] = row["sample"] + 1
    records.write_text("".join(json.dumps(row) + "\n" for row in rows))
    key = str(key_path(trials))
    capsys.readouterr()
    assert main(["score", str(tmp_path / "V"), "--key", key, "--out", str(tmp_path / "S")]) == 0
    told = capsys.readouterr().out
    assert f"{len(rows) - len(samples)} verdicts of 1 person are further ones on the same trials" in told
    assert "human:unknown may be several people" in told
