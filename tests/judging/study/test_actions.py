"""What the actions of ``turinglike study`` are told is done or refused, and never passed over in silence."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from judging.study.serving_study import ServedStudy
from serving.cli import main
from tests.helpers import study_folders


def words(folder: Path) -> Path:
    """A stimulus set of words."""
    path = folder / "words.jsonl"
    path.write_text(json.dumps({"id": "a", "task": "word_association", "cue": "sun"}) + "\n")
    return path


def trials_of(folder: Path, number: int = 30) -> Path:
    return study_folders.write_trials(folder / "T", study_folders.word_trials(number, catch=8))


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """The sentence of a command that does nothing."""
    capsys.readouterr()
    assert main(["study", *map(str, arguments)]) == 2
    return capsys.readouterr().err


@pytest.mark.parametrize("preset", ["2022", "2025", "feedback"])
def test_a_stimulus_set_has_no_presets(tmp_path: Path, capsys: pytest.CaptureFixture[str], preset: str) -> None:
    said = refused(capsys, "new", words(tmp_path), "--preset", preset, "-o", tmp_path / "study")
    assert f"--preset {preset} needs a folder of `turinglike trials`, which people judge" in said
    assert "leave --preset out" in said
    assert not (tmp_path / "study").exists()
    assert main(["study", "new", str(words(tmp_path)), "--preset", "plain", "-o", str(tmp_path / "study")]) == 0


@pytest.mark.parametrize("preset", ["online", "interrogation"])
def test_live_tests_have_no_set_and_no_other_task(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], preset: str
) -> None:
    out = ("-o", tmp_path / "study")
    for source in (words(tmp_path), trials_of(tmp_path)):
        said = refused(capsys, "new", source, "--preset", preset, *out)
        assert f"--preset {preset} makes live tests, which show no set: leave {source} out" in said
    said = refused(capsys, "new", "--preset", preset, "--task", "word", *out)
    assert f"--preset {preset} makes conversations, not word_association" in said
    assert main(["study", "new", "--preset", preset, "--task", "conversation", *map(str, out)]) == 0


def test_no_set_needs_a_preset_of_live_tests(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for preset in ([], ["--preset", "2025"]):
        said = refused(capsys, "new", *preset, "-o", tmp_path / "study")
        assert "name a trial set or a stimulus set, or give --preset online or interrogation" in said


def test_why_a_judge_has_no_more_trials_is_told_in_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All stimuli of the set are counted: those of trials, and what else takes a stimulus of a judge's."""

    def told(name: str, rows: list[Any], *more: str) -> tuple[str, dict[str, Any]]:
        trials = study_folders.write_trials(tmp_path / name / "T", rows)
        capsys.readouterr()
        assert main(["study", "new", str(trials), "-o", str(tmp_path / name / "study"), *more]) == 0
        made: dict[str, Any] = tomllib.loads((tmp_path / name / "study" / "study.toml").read_text())["trials"]
        said = [line for line in capsys.readouterr().out.splitlines() if line.startswith("trials.number")]
        assert main(["study", "check", str(tmp_path / name / "study")]) == 0
        return " ".join(said), made

    said, made = told("words", study_folders.word_trials(26))
    assert (made["number"], made["practice"], made["sample"]) == (22, 2, True)
    assert said == "trials.number = 22, not 50: the set has 26 stimuli minus 2 for practice and 2 for examples"
    said, made = told("catch", study_folders.word_trials(30, catch=8))
    caught = round(made["catch"] * made["number"])
    assert made["number"] + made["practice"] + caught + 2 == 30
    assert said.endswith(f": the set has 30 stimuli minus 2 for practice, {caught} for catch trials and 2 for examples")
    said, made = told("2022", study_folders.word_trials(26), "--preset", "2022")
    assert (made["number"], said) == (26, "trials.number = 26, not 50: the set has 26 stimuli")
    people_of_six = [row for row in study_folders.word_trials(26) if row[1]["truth"] == "machine" or _number(row) < 6]
    said, made = told("uneven", people_of_six)
    assert made["number"] < 22
    assert "26 stimuli minus 2 for practice and 2 for examples, and no more trials can be drawn from them. No" in said
    assert said.endswith("kinds of trials come equally often: 26 of alpha, 26 of beta, 6 of people")
    study = study_folders.changed(tmp_path / "words" / "study", number=24)
    assert "twice. The set has 26 stimuli. Practice takes 2, examples take 2. 22 are left for the 24 trials" in refused(
        capsys, "check", study
    )


@pytest.mark.parametrize(
    ("changes", "told", "warned"),
    [
        ({"number": 5}, "5 trials for each judge (5 that count + 0 catch trials), drawn", True),
        ({"number": 6}, "7 trials for each judge (6 that count + 1 catch trial), drawn", False),
        ({"number": 10, "repeats": 0.2}, "13 trials for each judge (10 that count + 1 catch trial + 2 shown", False),
        ({"number": 10, "catch": 0.0}, "10 trials for each judge, drawn", False),
    ],
)
def test_check_tells_the_number_that_a_judge_sees(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], changes: dict[str, Any], told: str, warned: bool
) -> None:
    trials = study_folders.write_trials(tmp_path / "T", study_folders.word_trials(30, catch=20))
    study = study_folders.write_study(tmp_path / "study", trials, "word_association", **{"catch": 0.1, **changes})
    assert main(["study", "check", str(study)]) == 0
    said = capsys.readouterr()
    assert f"word_association: {told}" in said.out
    assert ("trials.catch: no judge gets a catch trial: 0.1 of 5 trials is rounded to 0. With" in said.err) is warned
    if warned:
        assert "With trials.number = 6 there is one" in said.err

    async def work(served: ServedStudy) -> None:
        judge, _ = await served.join(None, None)
        assert f"{judge.counted()} trials for each judge" in told

    study_folders.run(study, work)


def _number(row: tuple[dict[str, Any], dict[str, Any]]) -> int:
    return int(row[1]["stimulus"].removeprefix("stimulus "))


def test_a_participant_of_a_small_set_answers_fewer_and_it_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["study", "new", str(words(tmp_path)), "-o", str(tmp_path / "study")]) == 0
    assert "answers.number = 1, not 50: the set has 1 stimulus" in capsys.readouterr().out
    assert tomllib.loads((tmp_path / "study" / "study.toml").read_text())["answers"]["number"] == 1
    rows = [{"id": f"s{at}", "task": "word_association", "cue": f"cue{at}"} for at in range(60)]
    (tmp_path / "many.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert main(["study", "new", str(tmp_path / "many.jsonl"), "-o", str(tmp_path / "other")]) == 0
    assert "answers.number" not in capsys.readouterr().out


def test_less_feedback_than_the_preset_has_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A small set has fewer trials, of which half are with the truth."""
    trials = trials_of(tmp_path)
    assert main(["study", "new", str(trials), "--preset", "feedback", "-o", str(tmp_path / "study")]) == 0
    made = tomllib.loads((tmp_path / "study" / "study.toml").read_text())["trials"]
    assert made["feedback"] == made["number"] // 2
    assert f"trials.feedback = {made['feedback']}, not 40: at least half of the trials give no feedback" in (
        capsys.readouterr().out
    )
    assert main(["study", "new", str(trials), "-o", str(tmp_path / "plain")]) == 0
    assert "trials.feedback" not in capsys.readouterr().out


@pytest.mark.parametrize(
    "option", ["--half-width=0.1", "--measure=p_machine", "--agents=3", "--per-judge=40", "--stimuli=9"]
)
def test_the_plan_of_a_study_takes_no_other_numbers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    study = study_folders.write_study(tmp_path / "study", trials_of(tmp_path), "word_association", number=10, wanted=5)
    said = refused(capsys, "plan", study, option)
    assert f"study plan: {option.partition('=')[0]}: {study} has its own numbers" in said
    assert main(["study", "plan", str(study)]) == 0


def test_a_person_is_exported_with_all_that_is_personal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = study_folders.write_study(tmp_path / "study", trials_of(tmp_path), "word_association", number=4)
    out = ("-o", tmp_path / "one.json")
    assert "leave --personal out" in refused(capsys, "export", study, "--judge", "x", "--personal", *out)
    assert "has no judge" in refused(capsys, "export", study, "--judge", "", *out)


@pytest.mark.parametrize("address", ["https://study.example.org/?a=b", "https://study.example.org/#here"])
def test_links_need_an_address_that_they_can_be_added_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], address: str
) -> None:
    study = study_folders.write_study(
        tmp_path / "study", trials_of(tmp_path), "word_association", number=4, entry="links"
    )
    assert f"--address {address}: give the address without ? and #" in refused(
        capsys, "links", study, 2, "--address", address
    )
    assert not (study / "links.jsonl").exists()


def test_what_a_kit_cannot_keep_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def told(name: str, **changes: Any) -> str:
        study = study_folders.write_study(tmp_path / name, trials, "word_association", number=4, **changes)
        capsys.readouterr()
        assert main(["study", "kit", str(study), "1", "-o", str(tmp_path / f"{name}.html")]) == 0
        return capsys.readouterr().out

    trials = trials_of(tmp_path)
    said = told("panel", worker="PID", reload="block", redirect="https://panel.example/?cc={code}", code="DONE")
    assert "a kit does not use these settings: judges.reload, judges.worker, end.code, end.redirect" in said
    assert "does not use" not in told("laboratory")


def test_settings_that_do_nothing_are_warned_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An agent whom nobody meets, and a table of conversations where there are none."""
    (tmp_path / "topics.jsonl").write_text(json.dumps({"id": "t", "task": "conversation", "exchanges": 4}) + "\n")
    assert main(["study", "new", str(tmp_path / "topics.jsonl"), "-o", str(tmp_path / "talks")]) == 0
    capsys.readouterr()
    assert main(["study", "check", str(study_folders.changed(tmp_path / "talks", agent="eliza"))]) == 0
    assert "warning: talk.agent: nobody meets eliza, because talk.machines is 0" in capsys.readouterr().err
    assert main(["study", "new", str(words(tmp_path)), "-o", str(tmp_path / "asked")]) == 0
    with (tmp_path / "asked" / "study.toml").open("a") as file:
        file.write('\n[talk]\nagent = "eliza"\nmachines = 1.0\n')
    capsys.readouterr()
    assert main(["study", "check", str(tmp_path / "asked")]) == 0
    assert "warning: talk: this table is for conversations, and does nothing here" in capsys.readouterr().err
