"""An agent is asked the stimuli of its tasks and modes, and no others."""

import json

import pytest
from PIL import Image as PILImage

from serving.cli import main
from serving.runs.eligibility import is_asked, kind_of, named
from serving.runs.status import status


@pytest.mark.parametrize(
    ("about", "row", "expected"),
    [
        ({"task": ["attention_prediction"]}, {"task": "attention_prediction"}, True),
        ({"task": ["attention_prediction"]}, {"task": "attention_prediction", "mode": "search"}, True),
        ({"task": ["attention_prediction"], "modes": ["search"]}, {"task": "attention_prediction"}, False),
        (
            {"task": ["attention_prediction"], "modes": ["search"]},
            {"task": "attention_prediction", "mode": "search"},
            True,
        ),
        ({"task": ["conversation"], "modes": ["search"]}, {"task": "conversation", "mode": "free"}, True),
        ({"task": ["conversation"]}, {"task": "attention_prediction"}, False),
        ({}, {"task": "attention_prediction"}, False),
    ],
)
def test_is_asked(about, row, expected):
    assert is_asked(about, kind_of(row)) is expected


def test_kinds_are_named():
    rows = [{"task": "conversation"}, {"task": "attention_prediction", "mode": "search"}]
    assert named(map(kind_of, rows)) == "attention_prediction (search), conversation"


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


@pytest.mark.usefixtures("ray_address")
def test_a_run_asks_an_agent_its_modes_alone(mixed, tmp_path, capsys):
    out = tmp_path / "run"
    assert main(["generate", str(mixed), "--agents", "seeker,random", "--out", str(out)]) == 0
    assert "word_association: 1 stimulus, and none of these agents answers it" in capsys.readouterr().out
    found = [json.loads(line)["stimulus"] for line in (out / "records" / "seeker.jsonl").read_text().splitlines()]
    assert sorted(found) == ["search0", "search1", "search2"]
    about = status(out)
    assert about["complete"]
    assert (about["agents"]["seeker"]["expected"], about["agents"]["random"]["expected"]) == (3, 5)
    assert about["stimuli"] == {"attention_prediction": 5, "word_association": 1}
    assert about["answered_by_all"]["attention_prediction"]["stimuli"] == 3
    assert json.loads((out / "run.json").read_text())["agents"]["seeker"]["modes"] == ["search"]
    (out / "records" / "seeker.jsonl").write_text("")
    assert status(out)["agents"]["seeker"]["unanswered"] == 3


@pytest.mark.usefixtures("ray_address")
def test_an_agent_without_a_stimulus_of_its_mode_is_refused(mixed, tmp_path, capsys):
    free = tmp_path / "free.jsonl"
    free.write_text("".join(mixed.read_text().splitlines(keepends=True)[:2]))
    assert main(["generate", str(free), "--agents", "seeker", "--out", str(tmp_path / "run")]) == 2
    said = capsys.readouterr().err
    assert "answers attention_prediction (search), but the set has attention_prediction (free)" in said
    assert not (tmp_path / "run").exists()
