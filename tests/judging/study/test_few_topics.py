"""A study of few topics: `study new` makes it so that judges can judge something, or says what lacks."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from serving.cli import main
from tests.helpers import study_folders


def _three_topics(folder: Path) -> Path:
    """Excerpts of each of the four pairs of speakers, about three topics, which are the stimuli."""
    rows = study_folders.conversation_trials(6)
    for _, key in rows:
        key["stimulus"] = ("travel", "music", "books")[int(key["stimulus"].split()[1]) % 3]
    return study_folders.write_trials(folder / "T", rows)


def _new(folder: Path, trials: Path, *settings: str) -> tuple[int, dict[str, Any]]:
    options = [option for setting in settings for option in ("--set", setting)]
    code = main(["study", "new", str(trials), "-o", str(folder / "study"), *options])
    return code, tomllib.loads((folder / "study" / "study.toml").read_text())["trials"]


def test_three_topics_are_three_trials_without_practice_and_examples(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trials = _three_topics(tmp_path)
    capsys.readouterr()
    code, made = _new(tmp_path, trials)
    said = capsys.readouterr().out
    assert (code, made["number"], made["practice"], made["sample"]) == (0, 3, 0, False)
    assert "trials.practice = 0, trials.sample = false: practice and examples would take more of the stimuli" in said
    assert "the set has 3 stimuli" in said
    assert "minus" not in said
    assert main(["study", "check", str(tmp_path / "study")]) == 0
    said = capsys.readouterr().out
    kinds = "6 between people, 6 of a person (A) with a machine (B), 6 of a machine (A) with a person (B)"
    assert kinds in said.replace("6 between machines, ", "")


def test_chosen_settings_are_fitted_to(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What the user has set is neither changed nor forgotten in what is told."""
    trials = _three_topics(tmp_path)
    capsys.readouterr()
    code, made = _new(tmp_path, trials, "trials.practice=0", "trials.sample=false")
    said = capsys.readouterr().out
    assert (code, made["number"]) == (0, 3)
    assert "trials.number = 3" in said
    assert "practice" not in said
    assert "not ready yet" not in said


def test_a_number_that_cannot_be_drawn_is_told_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trials = _three_topics(tmp_path)
    capsys.readouterr()
    code, made = _new(tmp_path, trials, "trials.number=20")
    said = capsys.readouterr().out
    assert (code, made["number"]) == (0, 20)
    assert "not ready yet: trials.number, practice, catch, sample: reduce these settings" in said
    assert main(["study", "check", str(tmp_path / "study")]) == 2


def test_what_serving_lacks_is_told_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`study new` and `study check` name the extra, which `study serve` needs."""
    monkeypatch.setattr("judging.study.needed_packages.is_installed", lambda name: name != "uvloop")
    trials = _three_topics(tmp_path)
    capsys.readouterr()
    assert _new(tmp_path, trials)[0] == 0
    told = "`turinglike study serve` needs more packages (uvloop): pip install 'turinglike[serve]'"
    assert told in capsys.readouterr().out
    assert main(["study", "check", str(tmp_path / "study")]) == 0
    assert f"warning: {told}" in capsys.readouterr().err
