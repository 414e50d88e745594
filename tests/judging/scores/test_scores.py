"""Scores of verdicts through the commands: the tables, the page, and what is refused."""

import csv
import json
import random
import re
import shutil
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import PIL.Image
import pytest

from agents.errors import InputError
from judging.scores.computing import catch_rates, compute_scores, perceived_sexes
from judging.scores.figures import curves, figures
from judging.scores.score_tables import Alike
from judging.scores.scores import headlines
from judging.scores.svg import svg
from judging.scores.verdicts import open_verdicts, read_verdicts, with_columns
from judging.statistics.answer_statistics import CaptionMeasures, CaptionScore
from judging.statistics.measures import Score
from judging.statistics.tables import Estimate, Table
from judging.trial_sets.trial_set import key_path, read_trial_key
from serving.cli import main
from tests.helpers import in_process, verdict_columns
from tests.helpers.plain_words import PLAIN_WORDS


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """People's words and two machines', judged by two classifiers through the commands."""
    folder = tmp_path_factory.mktemp("words")
    chance = random.Random(0)
    truth = {
        f"cue{at}": [
            {
                "response": chance.choice(PLAIN_WORDS[:20] if who == "human" else PLAIN_WORDS[10:]),
                "groundtruth": who,
                f"{who}_groundtruth": name,
            }
            for who, name in [("human", "01"), ("human", "02"), ("machine", "alpha"), ("machine", "beta")]
        ]
        for at in range(40)
    }
    (folder / "word.json").write_text(json.dumps(truth))
    assert main(["import", str(folder / "word.json"), "--out", str(folder / "published")]) == 0
    assert main(["trials", str(folder / "published"), "--out", str(folder / "T")]) == 0
    judges = ["--judges", "svm,svm-paper-code"]
    with pytest.MonkeyPatch.context() as patch:
        in_process.without_ray(patch)
        assert main(["judge", str(folder / "T"), *judges, "--out", str(folder / "V")]) == 0
    return folder


def test_scores_are_those_of_the_verdicts(verdicts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judging.scores.svg.FORMS", ("svg", "png", "pdf"))
    out = tmp_path / "S"
    assert main(["score", str(verdicts / "V"), "--out", str(out), "--bounds", "0.2"]) == 0
    with (out / "scores.csv").open(newline="") as file:
        rows = {(row["judge"], row["agent"]): row for row in csv.DictReader(file)}
    table = read_verdicts(open_verdicts([verdicts / "V"]))
    for (judge, agent), row in rows.items():
        chosen = table[(table["judge"] == judge)]
        people = chosen[chosen["truth"] == "human"]
        machines = chosen[(chosen["truth"] == "machine") & (True if agent == "all" else chosen["agent"] == agent)]
        human = (people["verdict"] == "human").mean()
        machine = (machines["verdict"] == "machine").mean()
        assert float(row["detectability"]) == pytest.approx((human + machine) / 2)
        assert int(row["machine_machine"]) == (machines["verdict"] == "machine").sum()
    result = json.loads((out / "scores.json").read_bytes())
    for test in result["tests"]["word_association"]["against_people"]:
        row = rows[test["judge"], test["agent"]]
        assert test["difference"] == pytest.approx(1 - 2 * float(row["detectability"]))
        assert test["difference_low"] == pytest.approx(1 - 2 * float(row["detectability_high"]))
        assert test["passes"] == (test["bounds"] <= 0.2)
    assert "320 verdicts of 2 judges" in result["methods"]
    assert {(row["of"], row["number"]) for row in result["statistics"]} == {
        ("people", 80),
        ("people", 40),
        ("published:alpha", 40),
        ("published:beta", 40),
    }
    assert (out / "statistics.csv").read_text().count("letters") == 3
    page = (out / "index.html").read_text()
    assert page.count('<svg role="img"') == 3
    words = {"passes": "passes", "does not pass": "does not pass", "may or may not pass": "is undecided"}
    assert all(
        f"published:{name} {words[row['outcome']]}" in page
        for name in ("alpha", "beta")
        for row in result["conclusions"]["word_association"]
        if row["agent"] == f"published:{name}"
    )
    names = {"overview", "word_association-svm", "word_association-svm-paper-code"}
    files = {f"{name}.{form}" for name in names for form in ("svg", "png", "pdf")}
    assert {path.name for path in (out / "figures").iterdir()} == files
    assert set(re.findall(r'href="figures/([^"]+)"', page)) == files
    with PIL.Image.open(out / "figures" / "overview.png") as picture:
        assert picture.width > 1000
    assert (out / "figures" / "overview.pdf").read_bytes().startswith(b"%PDF-")
    drawn = (out / "figures" / "word_association-svm.svg").read_text()
    row = rows["svm", "published:beta"]
    assert all(f"{share:.2f}<" in drawn for share in (float(row["p_machine"]), 1 - float(row["p_machine"])))
    assert "http" not in page.replace("http://www.w3.org", "").replace("http-equiv", "")


def test_the_correction_of_dprime_is_a_choice_and_is_named(verdicts: Path, tmp_path: Path) -> None:
    """On the page's glossary, in the methods and in scores.json; both corrections move d' by less than 0.2 here."""
    figures = []
    for name, words in (("log-linear", "half a verdict added to each kind"), ("1/2N", "Macmillan and Kaplan 1985")):
        out = tmp_path / name.replace("/", "-")
        assert main(["score", str(verdicts / "V"), "--out", str(out), "--dprime-correction", name]) == 0
        result = json.loads((out / "scores.json").read_bytes())
        assert result["dprime_correction"] == name
        assert words in result["methods"]
        glossaries = re.findall(r"<dl>(.*?)</dl>", (out / "index.html").read_text(), re.DOTALL)
        assert [words in glossary for glossary in glossaries] == [False, True]
        figures.append([row["dprime"] for row in result["scores"]])
    assert figures[0] != figures[1]


def test_the_page_says_for_whom_it_decides(verdicts: Path, tmp_path: Path) -> None:
    assert main(["score", str(verdicts / "V"), "--out", str(tmp_path / "S")]) == 0
    scope = "for judges, stimuli and participants like these: where there are several, they count as a random sample"
    page = (tmp_path / "S" / "index.html").read_text()
    assert page.index(scope) < page.index("All agents and judges")
    assert scope in json.loads((tmp_path / "S" / "scores.json").read_bytes())["methods"]


def test_peoples_verdicts_are_imported(verdicts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(verdicts, tmp_path / "all")
    run = tmp_path / "all" / "V"
    table = tmp_path / "people.csv"
    key = read_trial_key(key_path(tmp_path / "all" / "T"))
    spoken = [(trial, f"p{at % 7}", "Human" if at % 3 else "machine") for at, trial in enumerate(key)]
    lines = ["stimulus,subject,response", *(",".join(item) for item in spoken)]
    table.write_text("\n".join(lines) + "\n")
    command = ["import", str(table), "--task", "judgement", "--out", str(run)]
    assert main(command) == 0
    assert main(["score", str(run), "--out", str(tmp_path / "S")]) == 0
    with (tmp_path / "S" / "scores.csv").open(newline="") as file:
        [row] = [row for row in csv.DictReader(file) if (row["judge"], row["agent"]) == ("people", "all")]
    machines = [answer for trial, _, answer in spoken if key[trial]["truth"] == "machine"]
    assert int(row["machine_machine"]) == machines.count("machine")
    assert int(row["machine_human"]) == machines.count("Human")
    assert main([*command[:-1], str(tmp_path / "alone")]) == 0
    more = ["--key", str(key_path(tmp_path / "all" / "T")), "--out", str(tmp_path / "S3")]
    assert main(["score", str(tmp_path / "alone"), *more[2:]]) == 2
    assert "alone does not hold the trials: give the key" in capsys.readouterr().err
    assert main(["score", str(tmp_path / "alone"), *more]) == 0
    with (tmp_path / "S3" / "scores.csv").open(newline="") as file:
        assert [each for each in csv.DictReader(file) if each["agent"] == "all"] == [row]
    pages = [(tmp_path / name / "index.html").read_text() for name in ("S", "S3")]
    assert ["Fleiss' kappa of the others" in page or "Fleiss&#39; kappa of" in page for page in pages] == [True, False]
    statistics = [(tmp_path / name / "statistics.csv").read_bytes() for name in ("S", "S3")]
    assert statistics[0] == statistics[1]
    trials = tmp_path / "all" / "T" / "trials.jsonl"
    trials.write_text(trials.read_text().replace("Was the", "Was this", 1))
    assert main(["score", str(tmp_path / "alone"), *more, "--force"]) == 2
    assert "trials.jsonl:1: t" in capsys.readouterr().err


def test_an_edited_trial_is_not_judged(verdicts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = shutil.copytree(verdicts / "T", tmp_path / "T")
    shutil.copy(key_path(verdicts / "T"), key_path(folder))
    lines = (folder / "trials.jsonl").read_text().splitlines()
    trial = json.loads(lines[6])
    trial["answer"]["word"] += "s"
    lines[6] = json.dumps(trial)
    (folder / "trials.jsonl").write_text("\n".join(lines) + "\n")
    assert main(["judge", str(folder), "--judges", "cue-length", "--out", str(tmp_path / "V")]) == 2
    output = capsys.readouterr().err
    assert "T.key.csv is the key of other trials" in output
    assert f"trials.jsonl:7: {trial['id']}: is no trial of" in output
    assert not (tmp_path / "V").exists()


@pytest.mark.parametrize(
    ("file", "before", "after", "why"),
    [
        ("V/records/svm.jsonl", b'"verdict":"machine"', b'"verdict":"human"', "its checksum is not that in run.json"),
        ("T.key.csv", b",human,", b",machine,", "T.key.csv cannot be trusted"),
        ("T.trials.json", b"{", b"", "T.key.csv cannot be trusted"),
    ],
)
def test_what_was_changed_after_the_run_is_not_scored(
    verdicts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], file: str, before: bytes, after: bytes, why: str
) -> None:
    shutil.copytree(verdicts, tmp_path / "all")
    path = tmp_path / "all" / file
    path.write_bytes(path.read_bytes().replace(before, after, 1))
    run = tmp_path / "all" / "V"
    key = tmp_path / "all" / "T.key.csv"
    about = json.loads((run / "run.json").read_bytes())
    about["set"] |= {"root": str(tmp_path / "all" / "T")}
    (run / "run.json").write_text(json.dumps(about))
    assert main(["score", str(run), "--key", str(key), "--out", str(tmp_path / "S")]) == 2
    assert why in capsys.readouterr().err
    assert not (tmp_path / "S").exists()


def test_records_without_a_verdict(verdicts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(verdicts, tmp_path / "all")
    run = tmp_path / "all" / "V"
    key = read_trial_key(key_path(tmp_path / "all" / "T"))
    (tmp_path / "people.csv").write_text(
        "\n".join(["stimulus,subject,response", *(f"{trial},p1,human" for trial in list(key)[:5])])
    )
    assert main(["import", str(tmp_path / "people.csv"), "--task", "judgement", "--out", str(run)]) == 0
    path = run / "records" / "humans.jsonl"
    records = [json.loads(line) for line in path.read_bytes().splitlines()]
    records[1]["answer"]["verdict"] = "<script>"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    assert main(["score", str(run), "--out", str(tmp_path / "S")]) == 2
    output = capsys.readouterr().err
    assert "humans.jsonl:2: answer.verdict: Input should be 'human', 'machine', 'refused' or 'unparsed'" in output
    assert output.count("humans.jsonl:") == 1
    assert not (tmp_path / "S").exists()


def test_judges_that_cannot_be_trained_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    people = [{"response": word, "groundtruth": "human", "human_groundtruth": word} for word in PLAIN_WORDS[:4]]
    machines = [
        {"response": "ocean", "groundtruth": "machine", "machine_groundtruth": name} for name in PLAIN_WORDS[:4]
    ]
    for name, content in (("one", {"sun": people + machines}), ("people", {"sun": people, "moon": people})):
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
        imported = ["import", str(tmp_path / f"{name}.json"), "--task", "word_association"]
        assert main([*imported, "--out", str(tmp_path / name)]) == 0
        assert main(["trials", str(tmp_path / name), "--every", "--out", str(tmp_path / f"{name}-t")]) == 0
        assert main(["judge", str(tmp_path / f"{name}-t"), "--judges", "svm", "--out", str(tmp_path / "V")]) == 2
        assert "svm: cannot be trained: word_association lacks answers of" in capsys.readouterr().err
    assert not (tmp_path / "V").exists()


def test_trials_of_two_sets_are_told_apart(verdicts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_process.without_ray(monkeypatch)
    assert main(["trials", str(verdicts / "published"), "--out", str(tmp_path / "T"), "--seed", "9"]) == 0
    assert main(["judge", str(tmp_path / "T"), "--judges", "cue-length", "--out", str(tmp_path / "V")]) == 0
    table = read_verdicts(open_verdicts([verdicts / "V", tmp_path / "V"]))
    assert table["trial"].nunique() == 2 * 160
    assert compute_scores(table, []).agreement["word_association"].trials_of_all == 0
    with pytest.raises(InputError, match="two verdicts of svm, svm-paper-code on the same trials"):
        read_verdicts(open_verdicts([verdicts / "V", verdicts / "V"]))


def test_the_columns_of_classifiers_verdicts_are_described(
    verdicts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_process.without_ray(monkeypatch)
    judges = ["--judges", "svm", "--set", "svm.split=other", "--set", "svm.partitions=2"]
    assert main(["judge", str(verdicts / "T"), *judges, "--out", str(tmp_path / "V")]) == 0
    table = read_verdicts(open_verdicts([tmp_path / "V"]))
    assert {"part", "partition", "trained_on", "beside_agent"} <= set(table.columns)
    assert verdict_columns.undescribed(table) == set()
    assert verdict_columns.undescribed(table.assign(mood="glad")) == {"mood"}


def test_what_is_not_judged_yet_is_told(verdicts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(verdicts / "V", tmp_path / "V")
    about = json.loads((tmp_path / "V" / "run.json").read_bytes())
    for judge in about["agents"].values():
        del judge["records"]  # the run has not ended
    (tmp_path / "V" / "run.json").write_text(json.dumps(about))
    lines = tmp_path / "V" / "records" / "svm.jsonl"
    lines.write_bytes(b"".join(lines.read_bytes().splitlines(keepends=True)[:100]))
    key = ["--key", str(key_path(verdicts / "T"))]
    assert main(["score", str(tmp_path / "V"), "--out", str(tmp_path / "S"), *key]) == 0
    result = json.loads((tmp_path / "S" / "scores.json").read_bytes())
    overall_rows = {row["judge"]: row["unjudged"] for row in result["scores"] if row["agent"] == "all"}
    assert overall_rows == {"svm": 60, "svm-paper-code": 0}
    assert "60 unjudged" in (tmp_path / "S" / "index.html").read_text()
    lines.write_bytes(b"")
    (tmp_path / "V" / "records" / "svm-paper-code.jsonl").write_bytes(b"")
    assert main(["score", str(tmp_path / "V"), "--out", str(tmp_path / "S2"), *key]) == 2
    assert "no verdict can be scored: 320 unjudged" in capsys.readouterr().err


def test_people_of_a_run_that_is_read_whole_are_not_read_again(verdicts: Path, tmp_path: Path) -> None:
    people = f"{verdicts / 'published'}:humans"
    assert main(["trials", str(verdicts / "published"), "--people", people, "--out", str(tmp_path / "T")]) == 0
    with key_path(tmp_path / "T").open(newline="") as file:
        keys = list(csv.DictReader(file))
    assert len({(row["record"], row["sample"], row["stimulus"]) for row in keys}) == len(keys) == 160


def test_what_is_no_judge_or_trial_set(verdicts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["judge", str(verdicts / "T"), "--judges", "mmcq", "--out", str(tmp_path / "V")]) == 2
    assert "mmcq: is no judge: it answers color_estimation" in capsys.readouterr().err
    assert main(["judge", str(tmp_path), "--judges", "svm", "--out", str(tmp_path / "V")]) == 2
    assert "is no trial set" in capsys.readouterr().err
    assert main(["score", str(verdicts / "T"), "--out", str(tmp_path / "S")]) == 2
    assert "is not a run folder" in capsys.readouterr().err


def test_repeats_and_catch_trials_are_told_apart(verdicts: Path) -> None:
    table = read_verdicts(open_verdicts([verdicts / "V"]))
    table["catch"] = table["trial"].isin(["t0001", "t0002"])
    table.loc[table["trial"] == "t0004", "repeat_of"] = "t0003"
    result = compute_scores(table, [])
    assert {row.judge for row in catch_rates(table)} == {"svm", "svm-paper-code"}
    assert sum(row.trials for row in catch_rates(table)) == 4
    assert [row.verdicts for row in result.repeats] == [1, 1]
    refused = table.assign(verdict=table["verdict"].where(table["trial"] != "t0004", "refused"))
    assert not compute_scores(refused, []).repeats
    further = table.assign(sample=1, verdict=["human"] * len(table))
    again = compute_scores(pd.concat([table, further], ignore_index=True), [])
    assert again.scores == result.scores  # no verdict counts twice
    assert again.tests == result.tests
    alike = (table["verdict"][table["judge"] == "svm"] == "human").mean()
    assert again.samples.data[0] == Alike("word_association", "svm", 160, pytest.approx(alike))  # type: ignore[arg-type]
    overall = next(row for row in result.scores if row.agent == "all")
    assert overall.of_people + overall.of_machines == 157


def test_many_people_are_scored_together_and_not_two_by_two(verdicts: Path) -> None:
    table = read_verdicts(open_verdicts([verdicts / "V"]))
    people = table[table["judge"] == "svm"].assign(judge_kind="human")
    people["judge"] = [f"human:{at % 40}" for at in people.groupby("truth").cumcount()]  # two of each kind of answer
    result = compute_scores(pd.concat([table, people]), [])
    assert set(result.scores.distinct("judge")) == {"people", "svm", "svm-paper-code"}
    [output] = result.agreement.values()
    assert output.judges == ["svm", "svm-paper-code"]
    assert len(output.pairs) == 1
    beside = {(test.first, test.second): test for test in result.tests["word_association"]["between_judges"]}
    assert set(beside) == {("people", "svm"), ("people", "svm-paper-code"), ("svm", "svm-paper-code")}
    assert beside["people", "svm"].difference.value == pytest.approx(0)  # they gave the same verdicts
    alone = compute_scores(people, [])
    assert not alone.agreement["word_association"].pairs
    assert not alone.tests["word_association"]["between_judges"]


def test_what_is_told_beside_cues_and_folds(verdicts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_process.without_ray(monkeypatch)
    judges = ["--judges", "svm,svm-rows,svm-unique,cues"]
    assert main(["judge", str(verdicts / "T"), *judges, "--out", str(tmp_path / "V")]) == 0
    assert main(["score", str(tmp_path / "V"), "--out", str(tmp_path / "S")]) == 0
    result = json.loads((tmp_path / "S" / "scores.json").read_bytes())
    rows = {row["judge"]: row for row in result["ledger"]}
    cues = {name for name in rows if name.startswith("cue-")}
    assert cues == {"cue-constant", "cue-length", "cue-punctuation", "cue-frequency", "cue-metadata"}  # of words
    overall_rows = {row["judge"]: row["detectability"] for row in result["scores"] if row["agent"] == "all"}
    best = rows["svm"]["best_cue"]
    assert overall_rows[best] == max(overall_rows[name] for name in cues)
    assert rows["svm"]["above_cue"] == pytest.approx(100 * (overall_rows["svm"] - overall_rows[best]))
    assert rows["svm-rows"]["above_grouped"] == pytest.approx(100 * (overall_rows["svm-rows"] - overall_rows["svm"]))
    assert rows["svm-rows"]["split"] == "single rows"
    assert rows["svm-unique"]["grouped"] == "svm"
    assert rows["cue-constant"]["accuracy"] == rows["cue-constant"]["always_human"] == 0.5

    run = json.loads((tmp_path / "V" / "run.json").read_bytes())
    assert {name for name, entry in run["agents"].items() if entry["single_cue"]} == cues
    for name, entry in run["agents"].items():
        if name in cues:
            del entry["single_cue"]  # as in a run of version 0.2
        else:
            entry["settings"]["cue"] = "a setting of another meaning"
    (tmp_path / "V" / "run.json").write_text(json.dumps(run))
    assert main(["score", str(tmp_path / "V"), "--out", str(tmp_path / "again")]) == 0
    again = json.loads((tmp_path / "again" / "scores.json").read_bytes())
    for table in ("ledger", "conclusions"):
        assert json.dumps(again[table]) == json.dumps(result[table])
    judged_by = {row["judge"] for rows in result["conclusions"].values() for row in rows}
    assert judged_by == {"svm", "svm-rows", "svm-unique"}


def test_each_agent_has_a_sentence_that_its_interval_bears_out() -> None:
    """People judge "like" as people and detect "unlike"; a classifier sees 12 stimuli, too few to decide."""
    chance = np.random.default_rng(4)
    shares = {"human:1": 0.5, "like": 0.5, "unlike": 0.2}  # that are taken for a person
    rows = [
        (f"human:{judge}", "human", agent, f"s{stimulus}", "human" if chance.random() < share else "machine")
        for judge, stimulus, (agent, share) in product(range(40), range(60), shares.items())
    ]
    rows += [
        ("svm", "machine", agent, f"s{at}", ("human", "machine")[(at // 2**place) % 2])
        for at, (place, agent) in product(range(12), enumerate(shares))
    ]
    table = pd.DataFrame(rows, columns=["judge", "judge_kind", "agent", "stimulus", "verdict"])
    table["truth"] = np.where(table["agent"] == "human:1", "human", "machine")
    table["trial"] = table["stimulus"] + table["agent"]
    same = {"asked": "word_association", "catch": False, "repeat_of": None, "beside_truth": None, "sample": 0}
    result = compute_scores(table.assign(**same, confidence=np.nan), [])
    conclusions = list(result.conclusions["word_association"])
    assert {(row.agent, row.judge): row.outcome for row in conclusions} == {
        ("like", "people"): "passes",
        ("like", "svm"): "may or may not pass",
        ("unlike", "people"): "does not pass",
        ("unlike", "svm"): "may or may not pass",
    }
    written = headlines(conclusions)
    [(headline, why), (_, of_svm)] = written["unlike"]
    assert headline == "Judged by people, unlike does not pass"
    [rate] = [row.detectability for row in result.scores if (row.judge, row.agent) == ("people", "unlike")]
    figures = [f"{100 * end:.0f}" for end in (rate.value, rate.low, rate.high)]
    assert "human judges tell it from people in {} % of trials ({} to {} %;".format(*figures) in why
    [more] = [row.more for row in conclusions if (row.agent, row.judge) == ("unlike", "svm")]
    assert of_svm.endswith(f". {more.capitalize()}")
    [row] = [row for row in result.needed if (row.agent, row.judge) == ("unlike", "svm")]
    assert more == f"about {row.more_stimuli:,} more stimuli would decide"
    [few] = compute_scores(
        table[table["judge"] == "human:3"].assign(**same, confidence=np.nan), []
    ).conclusions.values()
    assert all(row.why.endswith("; the result holds only for this judge and this participant") for row in few)


def test_columns_and_measures_of_captions_are_drawn_with_each_value_and_series() -> None:
    chance = np.random.default_rng(0)
    judge, stimulus, agent = (part.ravel() for part in np.indices((8, 20, 3)))
    table = pd.DataFrame({"judge": judge, "stimulus": stimulus, "trial": stimulus * 3 + agent, "sample": 0})
    table = table.assign(
        agent=np.array(["human:1", "git", "blip"])[agent],
        truth=np.where(agent > 0, "machine", "human"),
        verdict=np.where(chance.random(len(judge)) < 0.5, "machine", "human"),
        judge_kind="human",
        asked="image_captioning",
        catch=False,
        repeat_of=None,
        beside_truth=None,
        length=3 * (1 + stimulus % 3),
        place="a",
        **{"x/y": np.where(stimulus % 2, "new", "old")},
    )
    rows = [CaptionScore("people", 9), CaptionScore("git", 9, 31.5, 1.5), CaptionScore("blip", 9, 20.0, 0.9)]
    captions = CaptionMeasures("", Table(rows), Table([]))
    scores = replace(compute_scores(table, ["length", "x/y", "place"]), captions=captions)
    drawn = {name: svg(draw) for name, draw in figures(scores, []).items()}
    assert set(drawn) == {"overview", "image_captioning-people", "by-length", "by-x-y", "captions"}  # place has no two
    for name, texts in {"by-length": "3 6 9", "by-x-y": "new old", "captions": "CIDEr-D BLEU-4"}.items():
        assert all(f"{text}<" in drawn[name] for text in (*texts.split(), "git", "blip"))
    assert [drawn["captions"].count(f">{name}<") for name in ("BLEU-4", "CIDEr-D", "BLEU-4 or CIDEr-D")] == [1, 1, 0]
    alike = pd.concat([table, table.assign(judge="svm", judge_kind="machine")])
    by_judge = svg(figures(compute_scores(alike, ["length"]), ["svm"])["by-length"])
    assert "all agents<" in by_judge  # of people alone: svm is a cue
    assert "svm<" in svg(figures(compute_scores(alike, ["length"]), [])["by-length"])


def _conversations() -> pd.DataFrame:
    """Verdicts of people, of ten on each so many "human", by type, speaker and length."""
    judged_human = {
        ("H-H", "human"): (9, 8),
        ("H-M", "human"): (7, 6),
        ("H-M", "machine"): (3, 2),
        ("M-M", "machine"): (5, 4),
    }
    rows = []
    for (kind, truth), numbers in judged_human.items():
        for length, number in zip((3, 12), numbers, strict=True):
            agent = "human:1" if truth == "human" else "gpt2"
            for at in range(10):
                verdict = "human" if at < number else "machine"
                rows.append((kind, truth, length, agent, f"{kind} {truth} {length} {at}", f"j{at}", verdict))
    table = pd.DataFrame(rows, columns=["meta.type", "truth", "length", "agent", "trial", "judge", "verdict"])
    same = {"asked": "conversation", "judge_kind": "human", "sample": 0, "catch": False}
    return table.assign(**same, repeat_of=None, beside_truth=None, stimulus=table["trial"])


def _drawn(table: pd.DataFrame, column: str) -> dict[str, dict[str, list[tuple[Any, float]]]]:
    """By panel and series the shares at each value of a column."""
    panels = curves(compute_scores(*with_columns(table, column)).by.data, column)
    assert {across for _, across in panels} == {column.rpartition("*")[2]}
    return {
        title.replace("\n", " "): {
            name: [(at, round(rate.value, 9)) for at, rate in sorted(of)] for name, of in of_panel.items()
        }
        for (title, _), of_panel in panels.items()
    }


def test_conversations_without_a_machine_or_a_person_have_curves_of_who_was_judged_human() -> None:
    of_people = _conversations()
    assert _drawn(of_people, "type*length") == {
        "Conversation: people judged human": {"H-H": [(3, 0.9), (12, 0.8)], "H-M": [(3, 0.7), (12, 0.6)]},
        "Conversation: machines judged human": {"H-M": [(3, 0.3), (12, 0.2)], "M-M": [(3, 0.5), (12, 0.4)]},
        "Conversation: detectability": {"H-M": [(3, 0.7), (12, 0.7)]},
    }
    assert _drawn(of_people, "type") == {
        "Conversation: judged human": {
            "people's answers": [("H-H", 0.85), ("H-M", 0.65)],
            "gpt2": [("H-M", 0.25), ("M-M", 0.45)],
        },
        "Conversation: detectability": {"gpt2": [("H-M", 0.7)]},
    }
    both = pd.concat([of_people, of_people.assign(judge="svm", judge_kind="machine", verdict="machine")])
    assert _drawn(both, "type")["Conversation: machines judged human"] == {
        "people": [("H-M", 0.25), ("M-M", 0.45)],
        "svm": [("H-M", 0.0), ("M-M", 0.0)],
    }
    of_judges = _drawn(both, "type*length")
    assert of_judges["Conversation, people: detectability"] == {"H-M": [(3, 0.7), (12, 0.7)]}
    assert of_judges["Conversation, svm: people judged human"]["H-H"] == [(3, 0.0), (12, 0.0)]


def test_a_judge_trained_on_one_agent_has_a_matrix_of_agents() -> None:
    rates = {("published:gpt2", "glove"): 0.65, ("published:gpt2", "bert"): 0.8, ("glove", "bert"): 0.45}
    about: dict[str, Any] = {"task": "word_association", "judge": "svm", "column": "trained_on"}
    rows = [
        Score(**about, value=trained, agent=agent, detectability=Estimate(rate))
        for (trained, agent), rate in rates.items()
    ]
    drawn = svg(figures(replace(compute_scores(_conversations(), []), by=Table(rows)), [])["by-trained_on"])
    for text in ("0.65", "0.80", "0.45", "gpt2", "glove", "bert", "trained on", "judged", "0.5", "1.0"):
        assert f">{text}<" in drawn
    assert drawn.count(">–<") == 1
    assert "published:" not in drawn


def test_intervals_of_perceived_sexes_end_at_0_and_1() -> None:
    judge, stimulus = (part.ravel() for part in np.indices((2, 2)))
    table = pd.DataFrame({"judge": judge, "stimulus": stimulus, "trial": stimulus, "sex": ["male", *["female"] * 3]})
    known = perceived_sexes("conversation", "people", table.assign(agent="gpt2", truth="machine", verdict="human"))
    assert (known[0].of, known[0].male) == ("all", Estimate(0.25, 0.0, 1.0))


def test_columns_to_score_by_are_offered_only_where_they_hold_something() -> None:
    """Words have no length: the message that refuses it does not offer it."""
    table = pd.DataFrame({"agent": ["a", "human:1"], "truth": ["machine", "human"], "length": [None, None]})
    table = table.assign(place=[1, 2], phase="test", **{"meta.topic": ["x", "y"], "meta.mood": [None, None]})
    with pytest.raises(InputError) as refused:
        with_columns(table, "length")
    assert str(refused.value) == "by: the verdicts have no length; they have place, phase, agent, topic"
    for name in str(refused.value).partition("they have ")[2].split(", "):
        _, listed = with_columns(table, name)
        assert listed == [name]
