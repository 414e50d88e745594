"""What a judge lacks is said before it is asked: eyes, and the trials that its verdicts are of."""

from pathlib import Path

import pytest

from serving.cli import main
from tests.helpers import study_folders, tiny_language


def test_a_judge_without_eyes_says_how_it_may_judge_pictures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trials = study_folders.write_trials(tmp_path / "T", study_folders.picture_trials(tmp_path / "T", 4))
    model = tiny_language.llama(tmp_path / "model", positions=2048)
    capsys.readouterr()
    call = ["judge", str(trials), "--judges", "llm-judge", "--set", f"llm-judge.checkpoint={model}"]
    assert main([*call, "--out", str(tmp_path / "V")]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "llm-judge: sees no pictures, and these trials are about pictures (image_captioning)" in said
    assert "add --set llm-judge.without_picture=true; or choose a model that sees pictures" in said
    assert not (tmp_path / "V").exists()


def test_verdicts_of_other_trials_name_the_file_that_has_changed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trials = study_folders.write_trials(tmp_path / "T", study_folders.word_trials(12))
    call = ["judge", str(trials), "--judges", "cue-length", "--out", str(tmp_path / "V")]
    assert main(call) == 0
    study_folders.write_trials(tmp_path / "T", study_folders.word_trials(13))
    capsys.readouterr()
    assert main(call) == 2
    said = " ".join(capsys.readouterr().err.split())
    changed = f"a file that its settings name has changed since: trials ({trials / 'trials.jsonl'})"
    assert f"agents.cue-length: {changed}" in said
    assert "another implementation" not in said
