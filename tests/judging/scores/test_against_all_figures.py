"""Each figure of the papers beside ours, or with its own reason: on a drawn study with the papers' compositions, whose
figures are counted again from ``verdicts.csv``."""

import csv
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import simulate_published

from judging.scores.computing import compute_scores
from judging.scores.papers.published import published, stands_for
from judging.statistics.verdict_table import PEOPLE
from serving.cli import main

Cells = dict[str, str]
JUDGES = 16


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return simulate_published.write(tmp_path_factory.mktemp("made-up") / "study", JUDGES)


def _scored(folders: list[Path], paper: str, out: Path) -> tuple[list[Cells], list[Cells]]:
    """The rows of ``published.csv`` and of ``verdicts.csv``."""
    assert main(["score", *map(str, folders), "--against", paper, "--out", str(out)]) == 0
    with (out / "published.csv").open(newline="") as file:
        figures = list(csv.DictReader(file))
    with (out / "verdicts.csv").open(newline="") as file:
        return figures, list(csv.DictReader(file))


def _after_feedback(rows: list[Cells]) -> Callable[[Cells], bool]:
    """Verdicts on later trials than a judge's first with feedback; these studies have feedback in every task."""
    first: dict[str, float] = {}
    for row in rows:
        if row["phase"] == "feedback":
            first[row["judge"]] = min(first.get(row["judge"], float("inf")), float(row["place"]))
    return lambda row: row["judge"] in first and float(row["place"]) > first[row["judge"]]


def _parts(rows: list[Cells]) -> dict[str, Callable[[Cells], bool]]:
    """What the parts are by their names, from the columns of ``verdicts.csv``."""
    is_trained = _after_feedback(rows)
    return {
        "": lambda row: True,
        "human-human conversations": lambda row: row["meta.type"] == "H-H",
        "human-AI conversations": lambda row: row["meta.type"] == "H-M",
        "AI-AI conversations": lambda row: row["meta.type"] == "M-M",
        "male judges": lambda row: row["judge.gender"] == "male",
        "female judges": lambda row: row["judge.gender"] == "female",
        "judges of middle and high school": lambda row: row["judge.education"] in ("middle school", "high school"),
        "judges of college": lambda row: row["judge.education"] == "bachelor",
        "judges with a postgraduate degree": lambda row: row["judge.education"] in ("master", "pg"),
        "judges in the laboratory": lambda row: row["folder"] == "lab",
        "judges online": lambda row: row["folder"] == "online",
        "the topic technology": lambda row: row["meta.topic"] == "technology",
        "the topic music": lambda row: row["meta.topic"] == "music",
        "judges before feedback": lambda row: not is_trained(row),
        "judges after feedback": is_trained,
        "40 training examples": lambda row: row["judge"] == "svm-40",
        "features of an early layer": lambda row: row["judge"] == "svm-early",
        "the colour's word alone": lambda row: row["judge"] != "svm-early",
        "one example in the prompt": lambda row: row["judge"] == "llm-one-shot",
    }


def _counted_again(figure: Cells, rows: list[Cells]) -> float:
    """The figure by division, of people together or of the judge that it names."""
    only = figure["only"]
    of_catch = {"catch trials": ("True", "False"), "trials with swapped pictures": ("True", "True")}
    catch = of_catch.get(only, ("False", "False"))
    part = (lambda row: True) if only in of_catch else _parts(rows)[only]
    right: dict[str, list[bool]] = {"human": [], "machine": []}
    for row in rows:
        judge = PEOPLE if row["judge_kind"] == "human" else row["judge"]
        if (row["asked"], judge) != (figure["asked"], figure["judge"]) or (row["catch"], row["swapped"]) != catch:
            continue
        is_agent = row["truth"] == "human" or figure["our_agent"] in ("all", row["agent"])
        is_told = row["phase"] == "feedback" and only not in of_catch
        if is_agent and not is_told and row["repeat_of"] == "" and part(row):
            right[row["truth"]].append(row["verdict"] == row["truth"])
    shares = {truth: sum(of_truth) / len(of_truth) for truth, of_truth in right.items() if of_truth}
    if figure["measure"] == "detectability":
        return (shares["human"] + shares["machine"]) / 2
    return shares[figure["measure"].removeprefix("p_")]


@pytest.mark.parametrize(("paper", "numbers"), [("2022", 43), ("2025", 104)])
def test_every_figure_stands_beside_ours(verdicts: list[Path], tmp_path: Path, paper: str, numbers: int) -> None:
    figures, rows = _scored(verdicts, paper, tmp_path / "scores")
    cells = [cell for cell in published()["cells"] if cell["paper"] == paper]
    assert len(cells) == numbers
    keys = [tuple(str(cell.get(name, "")) for name in ("asked", "judge", "agent", "measure", "only")) for cell in cells]
    found = {tuple(row[name] for name in ("asked", "kind", "agent", "measure", "only")) for row in figures}
    assert found == set(keys)
    assert [row for row in figures if row["ours"] == ""] == []
    for figure in figures:
        assert float(figure["ours"]) == pytest.approx(_counted_again(figure, rows)), figure
        assert figure["inside"] == str(float(figure["low"]) <= float(figure["published"]) <= float(figure["high"]))
        if figure["agent"] != "all":
            assert stands_for(figure["our_agent"], figure["asked"]) == figure["agent"]
    talks = {
        row["only"]: row["ours"]
        for row in figures
        if (row["asked"], row["judge"], row["agent"]) == ("conversation", PEOPLE, "all") and row["measure"] == "p_human"
    }
    assert len(set(talks.values())) == len(talks) >= 3  # no part is the whole under another name


def test_each_figure_without_ours_has_its_own_reason(verdicts: list[Path], tmp_path: Path) -> None:
    """Without the laboratory and the classifiers' folder, and under another name for the platform."""
    shutil.copytree(verdicts[0], tmp_path / "elsewhere")
    shutil.copytree(verdicts[0].parent / "trials", tmp_path / "trials")
    for file in ("trials.key.csv", "trials.trials.json"):
        shutil.copy(verdicts[0].parent / file, tmp_path / file)
    figures, _ = _scored([tmp_path / "elsewhere"], "2025", tmp_path / "scores")
    why = {(row["asked"], row["kind"], row["only"]): row["why"] for row in figures if row["ours"] == ""}
    assert why["image_captioning", "people", "judges in the laboratory"] == (
        "no verdicts from a folder named inlab or lab or laboratory, nor of judges whose platform is so called"
    )
    assert why["word_association", "classifier", "40 training examples"] == "no classifier judged"
    assert why["conversation", "language model", "one example in the prompt"] == "no language model judged"
    assert why["image_captioning", "people", "judges online"] == (
        "no verdicts from a folder named amt or mturk or online or prolific, nor of judges whose platform is so called"
    )
    assert len(figures) == 104
    assert [row for row in figures if row["ours"] == "" and row["why"] == ""] == []


def test_a_judge_without_the_setting_is_no_judge_of_the_part() -> None:
    table = pd.DataFrame(
        [
            {
                "judge": "svm",
                "judge_kind": "machine",
                "trial": f"t{number}",
                "stimulus": f"s{number}",
                "sample": 0,
                "asked": "word_association",
                "truth": truth,
                "agent": "human:a" if truth == "human" else "published:gpt2",
                "verdict": truth,
                "margin": 1.0,
                "fold": 0,
                "phase": "test",
                "catch": False,
                "repeat_of": None,
                "beside_truth": None,
                "excluded": None,
            }
            for number, truth in enumerate(["human", "machine"] * 12)
        ]
    )
    settings = {"svm": dict(simulate_published.SVM)}
    tables = compute_scores(table, [], settings, against="2025")
    of_few = tables.published.where(task="word_association", only="40 training examples")
    assert {row.why for row in of_few} == {"no classifier judged with train=40"}
    tables = compute_scores(table, [], {"svm": settings["svm"] | {"train": 40}}, against="2025")
    of_few = tables.published.where(task="word_association", only="40 training examples")
    with_ours = {row.agent: row for row in of_few if row.has_ours}
    assert with_ours.keys() == {"all", "GPT2"}
    assert "trained on a part" not in with_ours["GPT2"].why
    assert "MiniLM where theirs had Word2vec" in with_ours["GPT2"].why
    assert {row.why for row in of_few if not row.has_ours} >= {"no verdicts on Word2Vec"}


def _on_pair(judge: str, pair: int, turns: int, mode: str, agent: str, passes: bool) -> dict[str, Any]:
    """A verdict on a pair of which every other has the machine in the first."""
    truth, other = ("machine", "human") if pair % 2 else ("human", "machine")
    names = (agent, f"human:{pair}") if truth == "machine" else (f"human:{pair}", agent)
    row = {"judge": judge, "judge_kind": "machine" if judge == "llm" else "human", "sample": 0, "asked": "conversation"}
    row |= {"trial": f"{agent}-{turns}-{mode}-{pair}", "stimulus": f"{mode}-{pair}", "turns": turns, "meta.mode": mode}
    row |= {"truth": truth, "beside_truth": other, "agent": names[0], "beside_agent": names[1]}
    none: dict[str, Any] = dict.fromkeys(("repeat_of", "excluded"))
    return row | none | {"catch": False, "phase": "test", "verdict": other if passes else truth}


def test_the_figures_of_x_turing_stand_beside_pass_rates_by_turns_and_mode() -> None:
    """Pass rates of both modes together are those of all pairs, not the mean of two rates."""
    number = {"ping-pong": 4, "burst": 6}
    passed = {("ping-pong", 3): 3, ("burst", 3): 1, ("ping-pong", 110): 1, ("burst", 110): 0}
    rows = []
    for (mode, turns), of_cell in passed.items():
        for judge in ("human:a", "human:b", "llm"):
            for pair in range(number[mode]):
                rows.append(_on_pair(judge, pair, turns, mode, "gpt-4", pair < of_cell + (judge == "llm")))
    tables = compute_scores(pd.DataFrame(rows), [], {"llm": {"prompt": "own"}}, against="x-turing")
    assert len(tables.published) == len([cell for cell in published()["cells"] if cell["paper"] == "x-turing"]) == 13
    ours = {(row.kind, row.agent, row.only): row for row in tables.published}
    assert ours["people", "GPT-4", "3 turns"].ours == pytest.approx(4 / 10)
    assert ours["people", "GPT-4", "3 turns, ping-pong"].ours == pytest.approx(3 / 4)
    assert ours["people", "GPT-4", "3 turns, burst"].ours == pytest.approx(1 / 6)
    assert ours["people", "GPT-4", "110 turns"].ours == pytest.approx(1 / 10)
    model = ours["language model", "GPT-4", "110 turns"]
    assert model.ours == pytest.approx(3 / 10)
    assert model.why == "another model or other words than theirs, GPT-4"
    assert ours["people", "GPT-4", "10 turns"].why == "no verdicts on pairs of GPT-4, 10 turns"
    assert ours["people", "Qwen-110B", "3 turns"].why == "no verdicts on pairs of Qwen-110B, 3 turns"
    assert ours["people", "GPT-4", "110 turns, ping-pong"].why == "no pairs of GPT-4, 110 turns, ping-pong"


def test_the_words_of_x_turing_stand_beside_words_per_message() -> None:
    rows = [_on_pair("human:a", pair, 110, "ping-pong", "gpt-4", passes=False) for pair in range(3)]
    answers = []
    for row in rows:
        talks = {"machine": "one two three four five six", "human": "one two"}
        sides = {}
        for side, truth in (("answer", row["truth"]), ("beside", row["beside_truth"])):
            sides[side] = {
                "messages": [
                    {"speaker": "A", "text": talks[truth]},
                    {"speaker": "B", "text": "one two three"},
                ]
            }
        answers.append({**row, **sides, "speaker": "A", "beside_speaker": "A", "delays": {}})
    tables = compute_scores(pd.DataFrame(rows), [], against="x-turing", answers=answers)
    [words] = tables.published.where(measure="words")
    assert (words.published, words.ours, words.our_agent) == (3.5, 3.0, "gpt-4")
