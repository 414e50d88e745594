"""``turinglike score --contamination`` from answers to files: traces, laboratories, known rates, refusals."""

import csv
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agents.errors import InputError
from judging import score
from judging.contamination.asked import Traced
from judging.contamination.corrected_scores import contamination
from judging.scores.scores import Scores
from serving.cli import main
from serving.runs.run import Run
from tests.helpers import in_process
from tests.helpers.plain_words import PLAIN_WORDS
from tests.judging.contamination.test_marks import TYPED

PERSONS = 24
CUES = 20
PASTE = range(8)  # who pastes every second answer
Rows = dict[tuple[str, str], dict[str, str]]


def _is_pasted(person: int, cue: int) -> bool:
    return person in PASTE and cue % 2 == 0


def _traces(person: int, cue: int, chance: random.Random, *, in_laboratory: bool = False) -> dict[str, Any]:
    """Of an answer that is pasted, or now and then by chance alone looks so."""
    pasted = not in_laboratory and _is_pasted(person, cue)
    traces: dict[str, Any] = {**TYPED}
    if chance.random() < (0.9 if pasted else 0.03):
        traces |= {"pasted_characters": 36, "keys": 0, "characters_per_s": None}
    if chance.random() < (0.8 if pasted else 0.1):
        traces["hidden_ms"] = 9000
    return {"traces": traces, "checks": {"copied_instruction": pasted and chance.random() < 0.5, "twice_of": None}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Words of people, a third of whom paste what a machine would say, and of a machine, judged by a classifier."""
    folder = tmp_path_factory.mktemp("pasted")
    chance = random.Random(0)
    people = PLAIN_WORDS[:12]
    machine = PLAIN_WORDS[12:24]
    truth = {}
    for cue in range(CUES):
        answers = []
        for person in range(PERSONS):
            words = machine if _is_pasted(person, cue) else people
            answers.append(
                {"response": chance.choice(words), "groundtruth": "human", "human_groundtruth": f"{person:02}"}
            )
        for name in ("alpha", "beta"):
            for _ in range(PERSONS // 2):
                answers.append(
                    {"response": chance.choice(machine), "groundtruth": "machine", "machine_groundtruth": name}
                )
        truth[f"cue{cue}"] = answers
    (folder / "word.json").write_text(json.dumps(truth))
    assert main(["import", str(folder / "word.json"), "--out", str(folder / "run")]) == 0
    assert main(["trials", str(folder / "run"), "--seed", "1", "--catch", "0", "--out", str(folder / "T")]) == 0
    with pytest.MonkeyPatch.context() as patch:
        in_process.without_ray(patch)
        assert main(["judge", str(folder / "T"), "--judges", "svm", "--out", str(folder / "V")]) == 0
    run = Run(folder / "run")
    records = list(run.latest("humans"))
    for record in records:
        person = int(record["agent"].removeprefix("human:"))
        cue = int(record["stimulus"].rpartition("cue")[2])
        record["raw"] = _traces(person, cue, chance)
    run.write_records("humans", records)
    return folder


@pytest.fixture(scope="module")
def plain(folder: Path) -> Scores:
    return score(folder / "V")


@pytest.fixture(scope="module")
def corrected(folder: Path) -> Scores:
    return score(folder / "V", contamination=folder / "run")


def _key(folder: Path) -> list[dict[str, str]]:
    with (folder / "T.key.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_traces_give_the_rate_and_what_people_wrote_themselves(folder: Path, corrected: Scores) -> None:
    rows = corrected.tables.contamination
    [row] = [row for row in rows if row.agent == "all"]
    truth = len(PASTE) / PERSONS / 2
    assert row.rate.low < truth < row.rate.high
    assert row.rate.low > 0
    assert row.rate.high < 0.5
    assert (row.persons, row.answers, row.judged_without_traces) == (PERSONS, PERSONS * CUES, 0)
    assert corrected.verdicts is not None
    verdict = dict(zip(corrected.verdicts["trial"], corrected.verdicts["verdict"], strict=True))
    by_pasted: dict[bool, list[bool]] = {False: [], True: []}
    for trial in _key(folder):
        if trial["truth"] == "human":
            is_pasted = _is_pasted(
                int(trial["agent"].removeprefix("human:")), int(trial["stimulus"].rpartition("cue")[2])
            )
            by_pasted[is_pasted].append(verdict[trial["trial"]] == "human")
    own = np.mean(by_pasted[False])
    assert row.judged_answers == sum(map(len, by_pasted.values()))
    assert row.p_human.value < own - 0.05  # the plain rate is too low
    assert row.p_human_corrected.value == pytest.approx(own, abs=0.05)
    assert row.p_human_corrected.low < own < row.p_human_corrected.high
    assert row.p_foreign == pytest.approx(np.mean(by_pasted[True]), abs=0.15)
    said = [sentence for sentence in corrected.sentences() if "probably not written by them" in sentence]
    value, low, high = (round(100 * figure) for figure in (row.rate.value, row.rate.low, row.rate.high))
    assert said == [
        f"About {value} % ({low} to {high} %) of participants' answers (word association) were probably not written by "
        "them"
    ]
    assert any(sentence.startswith("Judged by svm, p(H|H) (word association) is") for sentence in corrected.sentences())


def test_nothing_is_excluded_and_all_other_figures_stay(plain: Scores, corrected: Scores) -> None:
    before = plain.tables.by_name()
    after = corrected.tables.by_name()
    assert len(after.pop("contamination")) == 3
    assert not before.pop("contamination")
    assert before.keys() == after.keys()
    for name, table in before.items():
        assert list(map(str, table.records())) == list(map(str, after[name].records())), name
    for row in corrected.tables.contamination:
        [score_row] = [score_row for score_row in plain.tables.scores if score_row.agent == row.agent]
        assert (row.p_human, row.detectability) == (score_row.p_human, score_row.detectability)


def test_a_laboratory_joins_and_answers_without_traces_are_not_corrected(folder: Path, tmp_path: Path) -> None:
    chance = random.Random(5)
    run = Run(folder / "run")
    for name in ("lab", "some"):
        copy = tmp_path / name
        (copy / "records").mkdir(parents=True)
        for file in folder.joinpath("run").iterdir():
            if file.is_file():
                (copy / file.name).write_bytes(file.read_bytes())
        records = list(run.latest("humans"))
        for at, record in enumerate(records):
            if name == "lab":
                record["raw"] = _traces(0, 0, chance, in_laboratory=True)
            elif at % 3 == 0:
                record["raw"] = None
        Run(copy).write_records("humans", records)
    scores = score(folder / "V", contamination=tmp_path / "some", anchor=tmp_path / "lab")
    [row, *_] = scores.tables.contamination
    truth = len(PASTE) / PERSONS / 2
    assert row.rate.low < truth < row.rate.high
    assert row.answers == PERSONS * CUES - len(records[::3])
    gone = {(record["agent"], record["stimulus"]) for record in records[::3]}
    of_people = [trial for trial in _key(folder) if trial["truth"] == "human"]
    assert row.judged_without_traces == sum((trial["agent"], trial["stimulus"]) in gone for trial in of_people)
    assert row.p_human_corrected.value > row.p_human.value

    # If all answers without traces are taken for machines', nothing changes: nobody knows whether they were pasted.
    assert scores.verdicts is not None
    changed = scores.verdicts.copy()
    is_gone = {key["trial"] for key in of_people if (key["agent"], key["stimulus"]) in gone}
    changed.loc[changed["trial"].isin(is_gone), "verdict"] = "machine"
    asked = Traced(tmp_path / "some", [tmp_path / "lab"])
    [again, *_], _ = contamination(changed, scores.tables.scores, asked, [("", folder / "T.key.csv")], 0.05)
    assert again.p_human_corrected.value == pytest.approx(row.p_human_corrected.value)


def test_the_command_writes_the_table_and_the_page(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "S"
    options = ["--contamination", "0.02-0.06", "--pasted-like", "published:alpha"]
    assert main(["score", str(folder / "V"), "--out", str(out), *options]) == 0
    printed = capsys.readouterr().out
    assert "2 to 6 % of participants' answers" in printed
    with (out / "contamination.csv").open(newline="") as file:
        rows = {row["agent"]: row for row in csv.DictReader(file)}
    with (out / "scores.csv").open(newline="") as file:
        scores = {row["agent"]: row for row in csv.DictReader(file)}
    assert rows.keys() == scores.keys() == {"all", "published:alpha", "published:beta"}
    like = 1 - float(scores["published:alpha"]["p_machine"])
    for agent, row in rows.items():
        human = float(scores[agent]["p_human"])
        own = (human - 0.04 * like) / 0.96
        assert float(row["p_human_corrected"]) == pytest.approx(own)
        machine = float(scores[agent]["p_machine"])
        assert float(row["detectability_corrected"]) == pytest.approx((own + machine) / 2)
        assert float(row["p_human_at_high"]) == pytest.approx((human - 0.06 * like) / 0.94)
    found = json.loads((out / "scores.json").read_bytes())["contamination"]
    assert [(row["agent"], row["source"], row["like"]) for row in found] == [
        (agent, "known rate", "published:alpha") for agent in ("all", "published:alpha", "published:beta")
    ]
    text = (out / "index.html").read_text(encoding="utf-8")
    assert 'id="contamination"' in text
    assert "Is the human human?" in text
    assert main(["score", str(folder / "V"), "--out", str(out), "--force"]) == 0
    assert not (out / "contamination.csv").exists()
    assert "Is the human human?" not in (out / "index.html").read_text(encoding="utf-8")


def test_a_rate_of_zero_changes_nothing(folder: Path, plain: Scores) -> None:
    for row in score(folder / "V", contamination=0).tables.contamination:
        [score_row] = [score_row for score_row in plain.tables.scores if score_row.agent == row.agent]
        for corrected, before in (
            (row.p_human_corrected, score_row.p_human),
            (row.detectability_corrected, score_row.detectability),
            (row.detectability_judges_corrected, score_row.detectability_judges),
        ):
            found = (corrected.value, corrected.low, corrected.high)
            assert found == pytest.approx((before.value, before.low, before.high))


def test_what_does_not_go_together_is_refused(folder: Path, tmp_path: Path) -> None:
    verdicts = folder / "V"
    for wrong in (1.0, -0.1, (0.3, 0.2), "0.2-0.1", float("nan")):
        with pytest.raises(InputError, match="a rate is from 0 to below 1"):
            score(verdicts, contamination=wrong)
    with pytest.raises(InputError, match="anchor goes with answers with traces"):
        score(verdicts, contamination=0.1, anchor=folder / "run")
    with pytest.raises(InputError, match="give contamination, too"):
        score(verdicts, anchor=[folder / "run"])
    with pytest.raises(InputError, match="goes with a known rate"):
        score(verdicts, contamination=folder / "run", pasted_like="alpha")
    with pytest.raises(InputError, match="no answers of nobody were judged"):
        score(verdicts, contamination=0.1, pasted_like="published:alpha,nobody")
    with pytest.raises(InputError, match="these folders hold answers alone"):
        score(folder / "run", contamination=0.1)
    with pytest.raises(InputError, match="is not a run folder"):
        score(verdicts, contamination=tmp_path / "nowhere")


def test_traces_of_other_answers_are_refused(folder: Path, tmp_path: Path) -> None:
    run = Run(folder / "run")
    (tmp_path / "records").mkdir()
    for file in folder.joinpath("run").iterdir():
        if file.is_file():
            (tmp_path / file.name).write_bytes(file.read_bytes())
    records = [{**record, "stimulus": f"other-{record['stimulus']}"} for record in run.latest("humans")]
    Run(tmp_path).write_records("humans", records)
    with pytest.raises(InputError, match="none of its answers was judged"):
        score(folder / "V", contamination=tmp_path)
