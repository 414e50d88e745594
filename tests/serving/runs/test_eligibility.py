"""An agent is asked the stimuli of its tasks and modes, and no others."""

from pathlib import Path
from typing import Any

import pytest
from run_folders import agent_entry

from serving.cli import main
from serving.runs.eligibility import is_asked, kind_of

GAZE, TALK = "attention_prediction", "conversation"


@pytest.mark.parametrize(
    ("entry", "row", "asked"),
    [
        (agent_entry(GAZE), {"task": GAZE, "mode": "search"}, True),
        ({**agent_entry(GAZE), "modes": ["search"]}, {"task": GAZE}, False),
        ({**agent_entry(GAZE), "modes": ["search"]}, {"task": GAZE, "mode": "search"}, True),
        (agent_entry(GAZE), {"task": "word_association"}, False),
        (agent_entry(TALK), {"task": TALK, "type": "HM"}, True),
        ({**agent_entry(TALK), "members": {"a": {}, "b": {}}}, {"task": TALK, "type": "HM"}, False),
        ({**agent_entry(TALK), "members": {"a": {}, "b": {}}}, {"task": TALK}, True),
    ],
)
def test_what_an_agent_is_asked(entry: dict[str, Any], row: dict[str, Any], asked: bool) -> None:
    assert is_asked(entry, kind_of(row)) == asked


def test_an_agent_without_a_stimulus_of_its_mode_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "free.jsonl").write_text('{"id": "a", "task": "attention_prediction", "image": "a.png"}\n')
    (tmp_path / "a.png").write_bytes((Path(__file__).parents[3] / "examples" / "images" / "coffee.png").read_bytes())
    assert main(["generate", str(tmp_path / "free.jsonl"), "--agents", "seeker", "--out", str(tmp_path / "run")]) == 2
    said = capsys.readouterr().err
    assert "answers attention_prediction (search), but the set has attention_prediction (free)" in said
    assert not (tmp_path / "run").exists()
