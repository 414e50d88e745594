"""Delays as a tell, from conversations to scores: a machine that writes as people do, and takes longer."""

import json
import random
import shutil
from collections import Counter
from pathlib import Path
from statistics import mean
from typing import Any

import pandas as pd
import pytest

from agents.stimuli import canonical, parse_row
from judging import judge, score
from judging import trials as draw_trials
from judging.judges.asking import ask_judges
from judging.scores.scores import Scores
from serving.cli import main
from tests.helpers.timed_talks import talks


def person(chance: random.Random) -> float:
    return chance.gammavariate(4, 2)


def machine(chance: random.Random) -> float:
    return chance.gammavariate(4, 5)


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("delays")
    run = talks(folder / "run", 60, people=person, machine=machine)
    options: dict[str, Any] = {"without": "delay,case", "plant": "delay", "show_delays": True}
    return draw_trials(run, folder / "T", lengths=[6], seed=1, **options).path


@pytest.fixture(scope="module")
def scores(drawn: Path) -> Scores:
    judge(drawn, "cue-delay,cue-length", drawn.with_name("V"), here=True)
    return score(drawn.with_name("V"))


def test_the_judge_of_delays_finds_the_tell_and_the_other_does_not(scores: Scores) -> None:
    tells = scores.to_pandas()["tells"].set_index(["judge", "tell", "taken"])
    for taken in ("alone", "last"):
        row = tells.loc["cue-delay", "delay", taken]
        assert row["before"] > 0.8
        assert row["after"] == 0.5  # nothing is left to go by: the judge says human
        assert row["change"] == pytest.approx(row["before"] - row["after"])
        assert row["holm"] < 0.001
        other = tells.loc["cue-length", "delay", taken]
        assert other["change"] == 0
        assert pd.isna(other["holm"]) or other["holm"] == 1
    planted = tells.loc["cue-delay", "delay", "planted"]
    assert abs(planted["after"] - 0.5) < 0.12  # copies of people's delays in training: below chance by .04 on average
    assert planted["holm"] < 0.001
    assert tells.loc["cue-delay", "case", "alone"]["change"] == 0


def test_tables_have_the_mean_seconds(scores: Scores, drawn: Path) -> None:
    changed = scores.to_pandas()["tells_changed"].set_index(["version", "of", "measure"])
    of_drawn: dict[str, list[float]] = {"people": [], "alpha": []}
    truths = pd.read_csv(drawn.with_name("T.key.csv"), keep_default_na=False).set_index("trial")
    for trial in map(json.loads, (drawn / "trials.jsonl").read_text().splitlines()):
        row = truths.loc[trial["id"]]
        if row["version"] == "":
            messages = [one for one in trial["answer"]["messages"] if one["speaker"] == trial["speaker"]]
            shown = [one["delay_s"] for one in messages if "delay_s" in one]
            of_drawn["people" if row["truth"] == "human" else row["agent"]].append(mean(shown))
    for of, means in of_drawn.items():
        delay = changed.loc["delay", of, "delay"]
        assert delay["before"] == pytest.approx(mean(means))
        assert delay["after"] == 0
        assert delay["changed"] == 1
    assert changed.loc["plant:delay", "alpha", "delay"]["after"] < mean(of_drawn["alpha"]) / 2
    correlated = scores.to_pandas()["tells_correlated"].set_index(["judge", "tell"])
    assert correlated.loc["cue-delay", "delay"]["auc"] > 0.9
    assert correlated.loc["cue-delay", "delay"]["removed"] == pytest.approx(1)


def test_cues_has_the_judge_of_delays_where_trials_show_them(
    drawn: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = drawn.with_name("run")
    plain = draw_trials(run, tmp_path / "plain", lengths=[3], seed=1, per_agent=20).path
    timed = draw_trials(run, tmp_path / "timed", lengths=[3], seed=1, per_agent=20, show_delays=True).path
    judged = judge(timed, "cues", tmp_path / "V", here=True)
    assert "cue-delay" in {record.agent for record in judged}
    without = judge(plain, "cues", tmp_path / "W", here=True)
    assert {record.agent for record in judged} - {record.agent for record in without} == {"cue-delay"}
    assert main(["judge", str(plain), "--judges", "cue-delay", "--here", "--out", str(tmp_path / "X")]) == 2
    assert "cue-delay: goes by delays, and no trial shows one: draw trials with --show-delays" in " ".join(
        capsys.readouterr().err.split()
    )


def test_a_set_of_an_older_version_reads_and_is_judged_as_before(tmp_path: Path) -> None:
    kept = Path(__file__).parents[2] / "kept" / "3eb4a4ca"
    shutil.copytree(kept / "trials", tmp_path / "trials")
    for name in ("trials.key.csv", "trials.trials.json"):
        shutil.copy(kept / name, tmp_path / name)
    asked = ask_judges(tmp_path / "trials", "cues")
    assert "cue-length" in asked.names
    assert "cue-delay" not in asked.names
    judged = judge(tmp_path / "trials", "cues", tmp_path / "V", here=True)
    number = len((tmp_path / "trials" / "trials.jsonl").read_text().splitlines())
    assert Counter(record.agent for record in judged) == dict.fromkeys(asked.names, number)


def test_a_message_without_delay_has_the_same_canonical_json_as_before() -> None:
    """On which the checksums in keys stand."""
    row = {
        "answer": {"messages": [{"speaker": "A", "text": "Hi"}, {"speaker": "B", "text": "yes"}]},
        "asked": "conversation",
        "id": "t0001",
        "question": "Is A a human or a machine?",
        "shown": "s0001",
        "speaker": "A",
        "task": "judgement",
    }
    written = json.dumps(row, separators=(",", ":"), sort_keys=True).encode()
    assert canonical(parse_row(written)) == written
