"""The made-up study: as the commands read it, with the rates that it says, and with its effects found."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import simulate_study

from judging.scores.verdicts import open_verdicts, read_verdicts
from judging.statistics.verdict_table import FEEDBACK
from serving.cli import main
from tests.helpers import verdict_columns


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made-up") / "study"
    simulate_study.write(folder)
    return folder


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    return simulate_study.trials(tmp_path_factory.mktemp("trials"))


def test_the_study_in_files_is_the_study_in_memory(folder: Path, trials: pd.DataFrame) -> None:
    read = read_verdicts(open_verdicts([folder / "online", folder / "lab"]))
    made = simulate_study.judged(simulate_study.drawn(trials, 0, has_effects=True))
    assert set(read.columns) <= set(made.columns)
    order = ["judge", "trial"]
    read, made = (table.sort_values(order).reset_index(drop=True)[list(read.columns)] for table in (read, made))
    pd.testing.assert_frame_equal(read, made, check_dtype=False)
    assert (read["phase"] == FEEDBACK).mean() == simulate_study.WITH_FEEDBACK / simulate_study.PER_JUDGE


def test_the_columns_of_peoples_verdicts_are_described(folder: Path) -> None:
    table = read_verdicts(open_verdicts([folder / "online", folder / "lab"]))
    assert {"excluded", "place", "sex", "phase", "judge.gender", "meta.partner"} <= set(table.columns)
    assert verdict_columns.undescribed(table) == set()


def test_verdicts_are_right_as_often_as_they_should_be(trials: pd.DataFrame) -> None:
    for has_effects in (True, False):
        table = pd.concat([simulate_study.drawn(trials, study, has_effects=has_effects) for study in range(60)])
        is_right = table["verdict"] == table["truth"]
        for column in ("judge.gender", "judge.education", "phase", "meta.partner", "length", "agent", "folder"):
            of_values = table.assign(is_right=is_right).groupby(["truth", column])[["is_right", "right"]].mean()
            known = of_values if column != "agent" else of_values.loc["machine"]
            assert np.abs(known["is_right"] - known["right"]).max() < 0.03
            assert has_effects == (np.ptp(known["right"]) > 0.05)
        assert (table["sex"] == "male").mean() == pytest.approx(simulate_study.MALE, abs=0.02)


def test_the_command_finds_the_effects(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "scores"
    verdicts = [str(folder / platform) for platform in ("online", "lab")]
    assert main(["score", *verdicts, "--by", ",".join(simulate_study.BY), "--out", str(out)]) == 0
    tests = json.loads((out / "scores.json").read_bytes())["tests"]["conversation"]
    told = {row["column"] for row in tests["by_columns"] if row["p"] is not None and row["p"] < 0.05}
    assert {"education", "phase", "length"} <= told
    assert not told & set(simulate_study.OF_NONE)
    [feedback] = [row for row in tests["papers_t_tests"] if row["column"] == "phase"]
    assert (feedback["effect"] < 0, feedback["p"] < 0.001) == (True, True)  # before, less often right
    assert (feedback["unit"], feedback["freedom"]) == ("judge, paired", str(simulate_study.JUDGES - 1))


def test_shares_are_of_the_truth(trials: pd.DataFrame) -> None:
    shares = simulate_study.calibration(trials, 2)
    inside = [row.share for row in shares if row.wanted == simulate_study.INSIDE]
    assert np.mean(inside) > 0.85
    power = {row.of for row in shares if row.table == "by_columns" and row.wanted == simulate_study.POWER}
    assert power == {*simulate_study.BY} - {*simulate_study.OF_NONE, "gender*agent"}
    nothing = [
        row.share for row in shares if row.table == "by_columns" and row.effects == "without" and "0.02" in row.wanted
    ]
    assert np.mean(nothing) < 0.2
