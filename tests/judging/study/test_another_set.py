"""A set that changes under a study: nothing of its people is counted with answers that they have not seen."""

import csv
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from judging.study.serving_study import ServedStudy
from judging.trial_sets.studies_of_set import studies_path
from serving.cli import main
from tests.helpers import study_folders
from tests.helpers.plain_words import PLAIN_WORDS
from tests.helpers.server_process import Server
from tests.helpers.study_folders import Visitor, run, serving

CUES = [f"cue{at}" for at in range(12)]
SETTINGS = ("trials.number=4", "trials.practice=0", "trials.sample=false", "trials.catch=0", "judges.break_every=0")
KEY = "key-of-the-lab-of-colours"


def _answers(folder: Path) -> Path:
    """A run with words of three people and of one machine to each of :data:`CUES`."""
    with (folder / "people.csv").open("w", newline="") as file:
        rows = [(f"p{who}", cue, PLAIN_WORDS[(7 * who + at) % 24]) for who in range(3) for at, cue in enumerate(CUES)]
        csv.writer(file).writerows([("subject", "stimulus", "response"), *rows])
    machine = {
        cue: [{"response": PLAIN_WORDS[24 - at], "groundtruth": "machine", "machine_groundtruth": "alpha"}]
        for at, cue in enumerate(CUES)
    }
    (folder / "machine.json").write_text(json.dumps(machine))
    for name in ("people.csv", "machine.json"):
        assert main(["import", str(folder / name), "--task", "word", "--out", str(folder / "run")]) == 0
    return folder / "run"


def _draw(folder: Path, seed: int, *options: str) -> int:
    return main(
        ["trials", str(folder / "run"), "--task", "word", "--out", str(folder / "T"), "--seed", str(seed), *options]
    )


async def _judge_all(study: ServedStudy) -> None:
    judge, _ = await study.join(None, None)
    while (step := judge.current) is not None:
        answer = {"consent": {"agree": True}, "trial": {"verdicts": ["human"], "rt": 900.0}}.get(step.kind, {})
        await study.answer(judge, judge.step, answer)


@pytest.fixture
def study(tmp_path: Path) -> Path:
    _answers(tmp_path)
    assert _draw(tmp_path, 1) == 0
    options = [option for setting in SETTINGS for option in ("--set", setting)]
    assert main(["study", "new", str(tmp_path / "T"), "-o", str(tmp_path / "study"), *options]) == 0
    return tmp_path / "study"


@pytest.fixture
def judged(study: Path) -> Path:
    run(study, _judge_all)
    return study


@pytest.fixture
def served(judged: Path) -> Iterator[Server]:
    with serving(judged, TURINGLIKE_API_KEY=KEY) as server:
        yield server


def _truths(table: Path) -> dict[str, tuple[str, str]]:
    with (table / "verdicts.csv").open(newline="") as file:
        return {row["trial"]: (row["stimulus"], row["truth"]) for row in csv.DictReader(file)}


def _replaced_by_hand(folder: Path) -> None:
    """Draw other trials with ids of the same form, which the command itself refuses to put there."""
    for path in (folder / "T", *folder.glob("T.*")):
        path.rename(folder / f"old-{path.name}")
    assert _draw(folder, 2) == 0


def _put_back(folder: Path) -> None:
    shutil.rmtree(folder / "T")
    for path in folder.glob("old-T*"):
        path.replace(folder / path.name.removeprefix("old-"))


def test_trials_that_judges_have_begun_with_are_not_replaced(
    judged: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = tmp_path / "T.key.csv"
    before = key.read_bytes()
    capsys.readouterr()
    assert _draw(tmp_path, 2, "--force") == 2
    assert f"judges of the study {judged.resolve()} began with these trials" in " ".join(
        capsys.readouterr().err.split()
    )
    assert key.read_bytes() == before
    shutil.rmtree(judged)  # or moved: who knows
    assert _draw(tmp_path, 2, "--force") == 2
    assert "If it was deleted, remove" in " ".join(capsys.readouterr().err.split())
    (tmp_path / "T.studies.jsonl").unlink()
    assert _draw(tmp_path, 2, "--force") == 0
    assert key.read_bytes() != before


def test_trials_that_nobody_has_judged_are_replaced_and_the_study_takes_them(study: Path, tmp_path: Path) -> None:
    """Also where the study was served and nobody came."""

    async def nobody(served: ServedStudy) -> None:
        assert not served.state.judges

    run(study, nobody)
    assert _draw(tmp_path, 2, "--force") == 0
    assert main(["study", "check", str(study)]) == 0
    run(study, _judge_all)
    assert main(["study", "export", str(study), "-o", str(tmp_path / "out")]) == 0
    with (tmp_path / "T.key.csv").open(newline="") as file:
        keyed = {row["trial"]: (row["stimulus"], row["truth"]) for row in csv.DictReader(file)}
    truths = _truths(tmp_path / "out")
    assert len(truths) == 4
    assert truths.items() <= keyed.items()


def test_no_action_counts_verdicts_with_other_trials(
    judged: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["study", "export", str(judged), "-o", str(tmp_path / "before")]) == 0
    _replaced_by_hand(tmp_path)
    for action in (["check"], ["status"], ["status", "--json"], ["export", "-o", str(tmp_path / "after")], ["serve"]):
        capsys.readouterr()
        assert main(["study", action[0], str(judged), *action[1:]]) == 2
        said = " ".join(capsys.readouterr().err.split())
        assert "the people of this study began with another set" in said
        assert f"Put back the trials of that time ({(tmp_path / 'T').resolve()}, T.key.csv and T.trials.json" in said
        assert "or make a new study of this set" in said
    assert not (tmp_path / "after").exists()
    _put_back(tmp_path)
    assert main(["study", "check", str(judged)]) == 0
    assert main(["study", "export", str(judged), "-o", str(tmp_path / "after")]) == 0
    assert _truths(tmp_path / "after") == _truths(tmp_path / "before")


def test_the_dashboard_of_a_running_server_refuses_too(served: Server, tmp_path: Path) -> None:
    lab = Visitor(served.port, authorization=f"Bearer {KEY}")
    assert lab.ask("GET", "/admin/status")[0] == lab.ask("GET", "/admin/export")[0] == 200
    _replaced_by_hand(tmp_path)
    for path, code in (("/admin/status", "no_status"), ("/admin/export", "no_export")):
        status, body = lab.ask("GET", path)
        assert (status, json.loads(body)["error"]["code"]) == (409, code)
        assert "began with another set" in json.loads(body)["error"]["message"]


def test_a_study_without_a_note_beside_its_trials_still_refuses_others(judged: Path, tmp_path: Path) -> None:
    """Of an older version: the trials may be replaced, and then nothing is counted."""
    studies_path(tmp_path / "T").unlink()
    assert _draw(tmp_path, 2, "--force") == 0
    assert main(["study", "export", str(judged), "-o", str(tmp_path / "out")]) == 2
    assert not (tmp_path / "out").exists()


def test_stimuli_that_change_under_participants_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "set.jsonl"
    rows = [{"id": f"w{at}", "task": "word_association", "cue": cue} for at, cue in enumerate(CUES)]
    source.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    folder = tmp_path / "study"
    assert main(["study", "new", str(source), "-o", str(folder), "--set", "answers.number=2"]) == 0

    async def one(study: ServedStudy) -> None:
        judge = await study_folders.arrived(study, "ask")
        await study.answer(judge, judge.step, {"answer": "word", "rt": 900.0})

    run(folder, one)
    source.write_text("".join(f"{json.dumps(row | {'cue': 'other'})}\n" for row in rows))
    capsys.readouterr()
    assert main(["study", "export", str(folder), "-o", str(tmp_path / "out")]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert f"Put back {source.resolve()} as it was when the study began" in said
