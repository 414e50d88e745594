"""The offline kit: one file in a browser without a server or network, whose answers come back whole or not at all."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import study_folders

from judging.study.events import read_state
from serving.cli import main

if TYPE_CHECKING:
    from playwright.sync_api import Browser


def turinglike(arguments: list[str]) -> int:
    """The command, in a thread of its own: Playwright's event loop is this one's."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(main, arguments).result()


@pytest.fixture(scope="module")
def saved(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, list[str]]:
    """(study, file of answers, requests that left the page): two people judge in a kit for three."""
    folder = tmp_path_factory.mktemp("kit")
    trials = study_folders.write_trials(folder / "T", study_folders.picture_trials(folder / "T", 20))
    study = study_folders.write_study(
        folder / "study", trials, "image_captioning", number=4, practice=1, before=["age"], sample=True
    )
    assert turinglike(["study", "kit", str(study), "3", "-o", str(folder / "kit.html")]) == 0
    context = browser.new_context(accept_downloads=True)
    asked: list[str] = []
    page = context.new_page()
    page.on("request", lambda request: asked.append(request.url))
    page.goto((folder / "kit.html").as_uri())
    chance = random.Random(0)
    for number in range(2):
        page.get_by_role("button", name="Begin").click()
        page.get_by_role("heading", name="About you").wait_for()
        page.get_by_label("Age").select_option(">50")
        page.get_by_role("button", name="Continue").click()
        page.get_by_role("heading", name="What to do").wait_for()
        page.get_by_role("button", name="Continue").click()
        for heading in ("Practice", *(f"Trial {at} of 4" for at in range(1, 5))):
            page.get_by_role("heading", name=heading).wait_for()
            page.locator("fieldset.all:enabled").wait_for()
            assert page.locator("img.photograph").evaluate("node => node.naturalWidth") == 32
            page.keyboard.press(chance.choice("fj"))
            page.keyboard.press("Enter")
            if heading == "Practice":
                page.get_by_text("It was:").wait_for()
                page.keyboard.press("Enter")
            if heading == "Trial 2 of 4":
                page.get_by_role("heading", name="Trial 3 of 4").wait_for()
                page.reload()  # the browser knows where they were
        page.locator(".code").wait_for()
        if number == 0:
            page.get_by_role("button", name="Ready for the next person").click()
            page.get_by_role("button", name="Begin").wait_for()
    with page.expect_download() as download:
        page.get_by_role("button", name="Save all answers").click()
    download.value.save_as(folder / "answers.json")
    context.close()
    return study, folder / "answers.json", asked


def test_answers_come_back_once(saved: tuple[Path, Path, list[str]], tmp_path: Path) -> None:
    study, answers, asked = saved
    assert all(url.startswith(("file:", "blob:")) for url in asked)
    body = json.loads(json.loads(answers.read_text())["body"])
    assert turinglike(["study", "import", str(study), str(answers)]) == 0
    events = (study / "events.jsonl").read_bytes()
    state = read_state(study)
    finished = [judge for judge in state.judges.values() if judge.ended == "finished"]
    assert len(finished) == 2
    for one in body["judges"]:
        kept = [step["verdicts"] for step in state.judges[one["judge"]].answers if step["kind"] == "trial"]
        assert kept == [step["answer"]["verdicts"] for step in one["answers"] if "verdicts" in step["answer"]]
        assert len(kept) == 5
    assert turinglike(["study", "import", str(study), str(answers)]) == 0
    assert (study / "events.jsonl").read_bytes() == events
    assert turinglike(["study", "export", str(study), "-o", str(tmp_path / "V")]) == 0


@pytest.mark.parametrize("what", ["a byte", "a verdict", "another study", "no JSON"])
def test_what_is_damaged_is_taken_in_by_nothing(
    saved: tuple[Path, Path, list[str]], tmp_path: Path, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    study, answers, _ = saved
    assert turinglike(["study", "import", str(study), str(answers)]) == 0
    before = (study / "events.jsonl").read_bytes()
    whole: dict[str, Any] = json.loads(answers.read_text())
    body = json.loads(whole["body"])
    if what == "a byte":
        whole["body"] = whole["body"].replace("human", "machine", 1)
    elif what == "another study":
        body["kit"] = "0" * 16
    elif what == "a verdict":
        trial = next(step for step in body["judges"][0]["answers"] if "verdicts" in step["answer"])
        trial["answer"]["verdicts"] = ["machine" if trial["answer"]["verdicts"] == ["human"] else "human"]
    if what in ("another study", "a verdict"):
        whole["body"] = json.dumps(body)
        whole["sha256"] = hashlib.sha256(whole["body"].encode()).hexdigest()
    text = "{" if what == "no JSON" else json.dumps(whole)
    (tmp_path / "answers.json").write_text(text)
    assert turinglike(["study", "import", str(study), str(tmp_path / "answers.json")]) == 2
    assert "answers.json" in capsys.readouterr().err
    assert (study / "events.jsonl").read_bytes() == before


@pytest.mark.parametrize(
    ("at", "trial"),
    [
        ("2026-01-01T00:00:00Z", {"verdicts": ["cat"]}),
        ("2026-01-01T00:00:00", {"verdicts": ["human"]}),
        ("2026-01-01T00:00:00Z", {"verdicts": ["human"], "rt": 10**400}),
    ],
)
def test_a_file_is_taken_in_whole_or_not_at_all(
    saved: tuple[Path, Path, list[str]], tmp_path: Path, at: str, trial: dict[str, Any]
) -> None:
    study, answers, _ = saved
    body = json.loads(json.loads(answers.read_text())["body"])
    state = read_state(study)
    new = next(judge for judge in state.judges.values() if not judge.answers)
    given = [{"age": ">50"}, {}, {"verdicts": ["human"]}, trial]
    told = [{"step": step, "answer": one, "at": at} for step, one in enumerate(given)]
    text = json.dumps({"kit": body["kit"], "judges": [{"judge": new.code, "answers": told}]})
    whole = {"schema": "turinglike.kit/1", "body": text, "sha256": hashlib.sha256(text.encode()).hexdigest()}
    (tmp_path / "answers.json").write_text(json.dumps(whole))
    assert turinglike(["study", "import", str(study), str(tmp_path / "answers.json")]) == 2
    assert read_state(study) == state


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """(study, what the kit's page has) of three judges, with consent and two trials each."""
    folder = tmp_path_factory.mktemp("kit")
    trials = study_folders.write_trials(folder / "T", study_folders.word_trials(10))
    study = study_folders.write_study(folder / "study", trials, "word_association", number=2, consent="Yes?")
    assert turinglike(["study", "kit", str(study), "3", "-o", str(folder / "kit.html")]) == 0
    text = (folder / "kit.html").read_text()
    return study, json.loads(text.split('id="kit">')[1].split("</script>")[0])


AGREES: list[dict[str, Any]] = [{"agree": True}, {}, {"verdicts": ["human"]}, {"verdicts": ["machine"]}]


def written(path: Path, kit: str, *judges: tuple[str, list[dict[str, Any]]]) -> str:
    """A kit's file of what judges answered."""
    at = "2026-01-01T00:00:00Z"
    told = [
        {"judge": judge, "answers": [{"step": step, "answer": one, "at": at} for step, one in enumerate(answers)]}
        for judge, answers in judges
    ]
    body = json.dumps({"kit": kit, "judges": told})
    sha256 = hashlib.sha256(body.encode()).hexdigest()
    path.write_text(json.dumps({"schema": "turinglike.kit/1", "body": body, "sha256": sha256}))
    return str(path)


@pytest.mark.parametrize(
    ("second", "why"),
    [
        ([{"agree": False}, *AGREES[1:]], "who does not agree answers nothing more"),
        ([*AGREES, {}], "there is no such step"),
        ([*AGREES[:2], {"verdicts": ["cat"]}], "verdicts: must be 1 of human and machine"),
        ([{"agree": "yes"}], "agree: must be true or false"),
    ],
)
def test_no_judges_answers_are_taken_in_where_anothers_cannot_be(
    kit: tuple[Path, dict[str, Any]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    second: list[dict[str, Any]],
    why: str,
) -> None:
    study, page = kit
    judges = [one["judge"] for one in page["judges"]]
    before = (study / "events.jsonl").read_bytes()
    file = written(tmp_path / "a.json", page["kit"], (judges[0], AGREES), (judges[1], second))
    assert turinglike(["study", "import", str(study), file]) == 2
    assert f"judge {judges[1]}, step " in (said := capsys.readouterr().err)
    assert why in said
    assert (study / "events.jsonl").read_bytes() == before


def test_two_files_of_a_judge_agree_or_neither_is_taken_in(
    kit: tuple[Path, dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As when the file is saved after each person: the later one has all of the former. A closed study takes none."""
    study, page = kit
    first, second, third = (one["judge"] for one in page["judges"])
    early = written(tmp_path / "early.json", page["kit"], (first, AGREES), (second, AGREES[:3]))
    late = written(tmp_path / "late.json", page["kit"], (first, AGREES), (second, AGREES), (third, [{"agree": False}]))
    other = written(tmp_path / "other.json", page["kit"], (second, [*AGREES[:2], {"verdicts": ["machine"]}]))
    events = (study / "events.jsonl").read_bytes()
    assert turinglike(["study", "close", str(study)]) == 0
    closed = (study / "events.jsonl").read_bytes()
    assert turinglike(["study", "import", str(study), late]) == 2
    assert "closed: it takes no answers any more" in capsys.readouterr().err
    assert (study / "events.jsonl").read_bytes() == closed
    (study / "events.jsonl").write_bytes(events)
    assert turinglike(["study", "import", str(study), late, early]) == 0
    assert [line.split(": ")[1] for line in capsys.readouterr().out.splitlines()] == [
        "4 new answers, finished", "4 new answers, finished", "1 new answer, declined"
    ]  # fmt: skip
    events = (study / "events.jsonl").read_bytes()
    assert turinglike(["study", "import", str(study), early, late]) == 0
    assert turinglike(["study", "import", str(study), other]) == 2
    assert "is there already, and differs" in capsys.readouterr().err
    assert (study / "events.jsonl").read_bytes() == events


def test_who_was_forgotten_keeps_nobody_elses_answers_out(
    kit: tuple[Path, dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, study = kit[1], tmp_path / "study"
    shutil.copytree(kit[0], study)
    first, second, _ = (one["judge"] for one in page["judges"])
    file = written(tmp_path / "a.json", page["kit"], (first, AGREES), (second, AGREES))
    assert turinglike(["study", "forget", str(study), first]) == 0
    capsys.readouterr()
    assert turinglike(["study", "import", str(study), file]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[1].startswith(f"{second}: ")
    assert said[1].endswith(", finished")
    assert said[0] == f"{first}: passed over, for nothing is known of this judge any more"
    assert first not in (study / "events.jsonl").read_text()
    assert turinglike(["study", "import", str(study), written(tmp_path / "b.json", "0123", (first, AGREES))]) == 2
    assert "is not of a kit of this study" in capsys.readouterr().err


def test_the_kit_has_no_code_that_tells_who_has_finished(kit: tuple[Path, dict[str, Any]]) -> None:
    study, page = kit
    text = (study.parent / "kit.html").read_text()
    judges = read_state(study).judges
    assert not any(judge.end_code in text for judge in judges.values())
    assert [one["end"]["code"] for one in page["judges"]] == list(judges)


def test_the_kit_tells_truth_of_practice_alone(saved: tuple[Path, Path, list[str]]) -> None:
    study, _, _ = saved
    text = (study.parent / "kit.html").read_text()
    data = json.loads(text.split('id="kit">')[1].split("</script>")[0])
    for judge in data["judges"]:
        for step in judge["steps"]:
            if step["view"]["kind"] == "trial":
                assert (step["truth"] is not None) == step["view"]["practice"]
    assert not any(word in text for word in ("alpha", "human:1", "picture 1"))


def test_a_kit_is_not_for_participants(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "set.jsonl").write_text('{"id": "a", "task": "word_association", "cue": "sun"}\n')
    assert turinglike(["study", "new", str(tmp_path / "set.jsonl"), "-o", str(tmp_path / "study")]) == 0
    toml = tmp_path / "study" / "study.toml"
    toml.write_text(toml.read_text().replace("number = 50", "number = 1"))
    assert turinglike(["study", "kit", str(tmp_path / "study"), "1", "-o", str(tmp_path / "kit.html")]) == 2
    assert "a kit is for judges" in capsys.readouterr().err
    assert not (tmp_path / "kit.html").exists()
