"""Files as real programs write them: a test for each that goes further than its import.

The other files of the list are tested beside the import, by the same names, in ``tests/serving/exchange``:
``test_people_files.py`` (jspsych_words, qualtrics, gorilla, otree_custom, grown) and ``test_people_cells.py``
(jspsych_form, psychopy_wide, psychopy_seconds, the four of fixations, expyriment, chats with a model).
"""

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as PILImage

from serving.cli import main
from tests.helpers.study_folders import word_trials, write_trials

RESPONSES = ("--task", "judgement", "--responses", "0=human,1=machine")
CELLS = ("human_human", "human_machine", "machine_machine", "machine_human")


@pytest.fixture
def key(tmp_path: Path) -> Path:
    """A trial set t0000 to t0019, half of them people's, and its key."""
    return write_trials(tmp_path / "T", word_trials(20)).with_name("T.key.csv")


def truths(key: Path) -> dict[str, str]:
    from judging.trial_sets.trial_set import read_trial_key

    return {trial: row["truth"] for trial, row in read_trial_key(key).items()}


def counts(folder: Path, key: Path, path: Path, *options: str) -> tuple[int, ...]:
    """Human and machine verdicts on people's and on machines' trials, as `score` counts them."""
    assert main(["import", str(path), *RESPONSES, *options, "--out", str(folder / "V")]) == 0
    assert main(["score", str(folder / "V"), "--key", str(key), "--out", str(folder / "S"), "--force"]) == 0
    rows = json.loads((folder / "S" / "scores.json").read_bytes())["scores"]
    [row] = [row for row in rows if row["agent"] == "all"]
    return tuple(row[cell] for cell in CELLS)


def jspsych(trial: str, index: int, response: int | None, **more: Any) -> dict[str, Any]:
    shared = {"trial_type": "html-button-response", "trial_index": index, "subject_id": "J01", "rt": 700}
    return {**shared, "trial": trial, "response": response, **more}


def test_prolific_judges(key: Path, tmp_path: Path) -> None:
    """Three judges, of whom two say machine of people: 2 of 6 verdicts are human, and none is lost."""
    people = [trial for trial, truth in truths(key).items() if truth == "human"][:2]
    lines = ["PROLIFIC_PID,stimulus,response,rt"]
    lines += [
        f"5f{judge},{trial},{'human' if judge == 1 else 'machine'},900" for trial in people for judge in (1, 2, 3)
    ]
    path = tmp_path / "judges.csv"
    path.write_text("\n".join(lines))
    assert counts(tmp_path, key, path) == (2, 4, 0, 0)


def test_jspsych_practice(key: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Wrong verdicts in practice on trials of the test, then twelve right ones."""
    known = truths(key)
    people = [trial for trial, truth in known.items() if truth == "human"][:7]
    machines = [trial for trial, truth in known.items() if truth == "machine"][:5]
    rows = [jspsych(trial, at, 1, phase="practice") for at, trial in enumerate(people[:4])]
    for trial in (*people, *machines):
        rows.append(jspsych(trial, len(rows), 0 if known[trial] == "human" else 1, phase="test"))
    path = tmp_path / "data.json"
    path.write_text(json.dumps(rows))
    assert counts(tmp_path, key, path, "--rows", "phase=test") == (7, 0, 5, 0)
    capsys.readouterr()
    counts(tmp_path, key, path)
    told = capsys.readouterr().out
    assert "In 4 cases a person gave several verdicts to one stimulus" in told
    assert "phase (practice, test)" in told


def test_jspsych_pages(key: Path, tmp_path: Path) -> None:
    """A cross, a question, the verdict and another question, all with the trial in their data."""
    known = truths(key)
    chosen = [
        *[t for t, truth in known.items() if truth == "human"][:6],
        *[t for t, truth in known.items() if truth == "machine"][:2],
    ]
    rows: list[dict[str, Any]] = []
    for trial in chosen:
        right = 0 if known[trial] == "human" else 1
        for page, response in (("cross", None), ("known", 0), ("verdict", right), ("sure", 1)):
            rows.append(jspsych(trial, len(rows), response, page=page))
    path = tmp_path / "data.json"
    path.write_text(json.dumps(rows))
    assert counts(tmp_path, key, path, "--rows", "page=verdict") == (6, 0, 2, 0)


def test_letterbox(tmp_path: Path) -> None:
    """COCO-Search18's form: a picture of 640 x 480 on a screen of 1680 x 1050, with bars of 140 pixels."""
    (tmp_path / "pic" / "cup").mkdir(parents=True)
    PILImage.new("RGB", (640, 480)).save(tmp_path / "pic" / "cup" / "1.jpg")
    entry = {
        "name": "1.jpg",
        "subject": 1,
        "task": "cup",
        "condition": "present",
        "bbox": [420, 200, 100, 100],
        "X": [140.0, 840.0, 1540.0, 470.0],
        "Y": [0.0, 525.0, 1050.0, 250.0],
        "T": [200] * 4,
        "length": 4,
        "correct": 1,
    }
    path = tmp_path / "letterbox.json"
    path.write_text(json.dumps([entry]))
    frame = ["--frame", "1680x1050", "--fit", "bars"]
    out = tmp_path / "s.jsonl"
    assert main(["set", str(path), "--images", str(tmp_path / "pic"), *frame, "--out", str(out)]) == 0
    [row] = map(json.loads, out.read_text().splitlines())
    assert row["target_box"] == pytest.approx([128, 91.43, 45.71, 45.71], abs=0.01)
    run = str(tmp_path / "run")
    assert main(["generate", str(out), "--agents", "center", "--here", "--out", run]) == 0
    assert main(["import", str(path), *frame, "--out", run]) == 0
    h5py = pytest.importorskip("h5py")
    assert main(["export", run, "--format", "pysaliency", "--out", str(tmp_path / "p.h5")]) == 0
    with h5py.File(tmp_path / "p.h5") as file:
        xs = file["train_xs"][-1][:4]
        ys = file["train_ys"][-1][:4]
    assert xs == pytest.approx([0, 320, 640, 150.86], abs=0.01)
    assert ys == pytest.approx([0, 240, 480, 114.29], abs=0.01)


def test_imagefolder_metadata(tmp_path: Path) -> None:
    PILImage.new("RGB", (8, 8)).save(tmp_path / "coffee.png")
    path = tmp_path / "metadata.jsonl"
    path.write_text('{"file_name":"coffee.png","text":"a cup"}\n')
    assert main(["check", str(path), "--task", "caption"]) == 0
