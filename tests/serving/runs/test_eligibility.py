"""An agent is asked the stimuli of its tasks and modes, and no others."""

import json

import pytest
from PIL import Image as PILImage
from run_folders import agent_entry, record, write_run

from serving.cli import main
from serving.runs.eligibility import is_asked, kind_of
from serving.runs.status import status


@pytest.fixture
def mixed(tmp_path):
    """Two pictures to look at freely, three to search, a word."""
    PILImage.new("RGB", (8, 6)).save(tmp_path / "a.png")
    rows = [{"id": f"free{i}", "task": "attention_prediction", "image": "a.png"} for i in range(2)]
    search = {"task": "attention_prediction", "image": "a.png", "mode": "search", "target_box": [1, 1, 2, 2]}
    rows += [{"id": f"search{i}", **search} for i in range(3)]
    rows.append({"id": "word", "task": "word_association", "cue": "cat"})
    path = tmp_path / "set.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_an_agent_is_counted_by_its_modes_alone(mixed, tmp_path):
    """Free viewing and search are two kinds of stimuli; a word is nobody's here."""
    rows = [json.loads(line) for line in mixed.read_text().splitlines()]
    search = {**agent_entry("attention_prediction"), "modes": ["search"]}
    agents = {"seeker": search, "random": agent_entry("attention_prediction")}
    records = {
        name: [record(row["id"], row["task"], name) for row in rows[:5] if is_asked(about, kind_of(row))]
        for name, about in agents.items()
    }
    about = status(write_run(tmp_path / "run", rows, records, agents))
    assert about["complete"]
    assert (about["agents"]["seeker"]["expected"], about["agents"]["random"]["expected"]) == (3, 5)
    assert about["stimuli"] == {"attention_prediction": 5, "word_association": 1}
    assert status(write_run(tmp_path / "less", rows, {"seeker": []}, agents))["agents"]["seeker"]["unanswered"] == 3


def test_an_agent_without_a_stimulus_of_its_mode_is_refused(mixed, tmp_path, capsys):
    free = tmp_path / "free.jsonl"
    free.write_text("".join(mixed.read_text().splitlines(keepends=True)[:2]))
    assert main(["generate", str(free), "--agents", "seeker", "--out", str(tmp_path / "run")]) == 2
    said = capsys.readouterr().err
    assert "answers attention_prediction (search), but the set has attention_prediction (free)" in said
    assert not (tmp_path / "run").exists()
