"""The offline kit: one file in a browser without a server or network, whose answers come back whole or not at all."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from judging.study.log.state import read_state
from tests.helpers import study_folders
from tests.helpers.study_folders import turinglike

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


def data_of(page: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(page.read_text().split('id="kit">')[1].split("</script>")[0])
    return data


def test_a_kit_answers_whatever_the_page_posts() -> None:
    """A page in a kit has no server: ``calls`` of kit.js stands for it."""
    folder = Path(__file__).parents[3] / "judging" / "study" / "static"
    posted = set(re.findall(r'\bpost\("(\w+)"', (folder / "study.js").read_text("utf-8")))
    [calls] = re.findall(r"^    const calls = \{\n(.*?)^    \};", (folder / "kit.js").read_text("utf-8"), re.M | re.S)
    assert posted <= set(re.findall(r"^      (\w+)[:(]", calls, re.M))
    assert "answer" in posted


def test_two_people_judge_in_a_kit_their_answers_come_back_once_and_one_leaves(
    browser: Browser, tmp_path: Path
) -> None:
    trials = study_folders.write_trials(tmp_path / "T", study_folders.picture_trials(tmp_path / "T", 20))
    study = study_folders.write_study(
        tmp_path / "study", trials, "image_captioning", number=4, practice=1, sample=True, break_every=2
    )
    kit, answers, late = (tmp_path / name for name in ("kit.html", "answers.json", "late.json"))
    assert turinglike("study", "kit", study, 3, "-o", kit) == 0
    context = browser.new_context(accept_downloads=True)
    page = context.new_page()
    asked = list[str]()
    page.on("request", lambda request: asked.append(request.url))
    page.goto(kit.as_uri())
    for number in range(2):
        page.get_by_role("button", name="Begin").click()
        page.get_by_role("heading", name="What to do").wait_for()
        page.get_by_role("button", name="Continue").click()
        for heading in ("Practice", *(f"Trial {at} of 4" for at in range(1, 5))):
            page.get_by_role("heading", name=heading).wait_for()
            page.locator("fieldset.all:enabled").wait_for()
            assert page.locator("img.photograph").evaluate("node => node.naturalWidth") == 32
            page.keyboard.press("fj"[number])
            page.keyboard.press("Enter")
            if heading == "Practice":
                page.get_by_text("It was:").wait_for()
                page.keyboard.press("Enter")
            if heading == "Trial 2 of 4":
                page.get_by_text("You have done 2 of 4.").wait_for()
                page.reload()  # the browser knows where they were
                page.get_by_text("You have done 2 of 4.").wait_for()
                page.keyboard.press("Enter")
        page.locator(".code").wait_for()
        if number == 0:
            page.get_by_role("button", name="Ready for the next person").click()
            page.get_by_role("button", name="Begin").wait_for()
    with page.expect_download() as download:
        page.get_by_role("button", name="Save all answers").click()
    download.value.save_as(answers)
    assert not page.get_by_role("button", name="Leave and delete").is_visible()
    assert page.get_by_text("It is not your completion code.").count() == 0  # in a kit it is
    page.get_by_text("I want my answers deleted").click()
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Leave and delete").click()
    page.get_by_text("You have left.").wait_for()
    with page.expect_download() as download:
        page.get_by_role("button", name="Save all answers").click()
    download.value.save_as(late)
    context.close()
    assert all(url.startswith(("file:", "blob:")) for url in asked)
    events = []
    for _ in range(2):
        assert turinglike("study", "import", study, answers) == 0
        events.append((study / "events.jsonl").read_bytes())
    assert events[0] == events[1]
    state = read_state(study)
    for judge in json.loads(json.loads(answers.read_text())["body"])["judges"]:
        kept = [step.verdicts for step in state.judges[judge["judge"]].answers if step.kind == "trial"]
        assert kept == [step["answer"]["verdicts"] for step in judge["answers"] if "verdicts" in step["answer"]]
        assert len(kept) == 5
    assert [judge.ended for judge in state.judges.values()] == ["finished", "finished", None]
    for judge in data_of(kit)["judges"]:
        for step in judge["steps"]:
            if step["view"]["kind"] == "trial":
                assert (step["truth"] is not None) == step["view"]["practice"]
    assert not any(word in kit.read_text() for word in ("alpha", "human:1", "picture 1"))
    first, left, _ = state.judges
    for files in ([late], [late, answers]):  # what an earlier file had of who has left is deleted, and stays so
        assert turinglike("study", "import", study, *files) == 0
        assert left not in (study / "events.jsonl").read_text()
        assert read_state(study).judges[first] == state.judges[first]


def judged_in(page: Page, trials: int, key: str = "f") -> None:
    """A judge's whole list, from "Begin" on."""
    page.get_by_role("button", name="Begin").click()
    page.get_by_role("heading", name="What to do").wait_for()
    page.get_by_role("button", name="Continue").click()
    for number in range(1, trials + 1):
        page.get_by_role("heading", name=f"Trial {number} of {trials}").wait_for()
        page.locator("fieldset.all:enabled").wait_for()
        page.keyboard.press(key)
        page.keyboard.press("Enter")
    page.locator(".code").wait_for()


def saved(page: Page, path: Path) -> dict[str, Any]:
    """The answers by judge that "Save all answers" saves."""
    with page.expect_download() as download:
        page.get_by_role("button", name="Save all answers").click()
    download.value.save_as(path)
    return {judge["judge"]: judge["answers"] for judge in json.loads(json.loads(path.read_text())["body"])["judges"]}


def test_a_kit_can_be_saved_at_any_time_and_says_when_nobody_is_left(browser: Browser, tmp_path: Path) -> None:
    """Within a list, at its end, and when all its judges have begun, without loading the page again."""
    trials = study_folders.write_trials(tmp_path / "T", study_folders.word_trials(10))
    study = study_folders.write_study(tmp_path / "study", trials, "word_association", number=2)
    kit = tmp_path / "kit.html"
    answers = tmp_path / "answers.json"
    assert turinglike("study", "kit", study, 2, "-o", kit) == 0
    context = browser.new_context(accept_downloads=True)
    page = context.new_page()
    page.goto(kit.as_uri())
    judged_in(page, 2)
    assert [len(judge) for judge in saved(page, answers).values()] == [3]
    page.get_by_role("button", name="Ready for the next person").click()
    page.get_by_role("button", name="Begin").click()
    page.get_by_role("heading", name="What to do").wait_for()
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("heading", name="Trial 1 of 2").wait_for()
    assert [len(judge) for judge in saved(page, answers).values()] == [3, 1]
    page.once("dialog", lambda dialog: dialog.dismiss())
    page.get_by_role("button", name="Ready for the next person").click()  # who has thought better of it goes on
    page.get_by_role("heading", name="Trial 1 of 2").wait_for()
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Ready for the next person").click()
    page.get_by_text("Everybody for whom this file was made has begun.").wait_for()
    assert page.get_by_role("button", name="Begin").count() == 0
    assert [len(judge) for judge in saved(page, answers).values()] == [3, 1]
    context.close()
    assert turinglike("study", "import", study, answers) == 0
    assert [judge.ended for judge in read_state(study).judges.values()] == ["finished", None]


def test_two_tabs_of_a_kit_lose_nothing_and_each_has_its_judge(browser: Browser, tmp_path: Path) -> None:
    trials = study_folders.write_trials(tmp_path / "T", study_folders.word_trials(10))
    study = study_folders.write_study(tmp_path / "study", trials, "word_association", number=2)
    kit = tmp_path / "kit.html"
    answers = tmp_path / "answers.json"
    assert turinglike("study", "kit", study, 2, "-o", kit) == 0
    context = browser.new_context(accept_downloads=True)
    one, other, late = (context.new_page() for _ in range(3))
    for page in (one, other, late):
        page.goto(kit.as_uri())
    for page in (one, other):
        page.get_by_role("button", name="Begin").click()
        page.get_by_role("heading", name="What to do").wait_for()
    late.get_by_role("button", name="Begin").click()
    late.get_by_text("Everybody for whom this file was made has begun.").wait_for()
    late.get_by_role("button", name="Save all answers").wait_for()
    for page in (one, other):
        page.get_by_role("button", name="Continue").click()
        page.get_by_role("heading", name="Trial 1 of 2").wait_for()
        page.reload()
    for number in (1, 2):
        for page, key in ((one, "f"), (other, "j")):
            page.get_by_role("heading", name=f"Trial {number} of 2").wait_for()
            page.locator("fieldset.all:enabled").wait_for()
            page.keyboard.press(key)
            page.keyboard.press("Enter")
    for page in (one, other):
        page.locator(".code").wait_for()
    kept = saved(one, answers)
    assert list(kept) == [page.inner_text(".code") for page in (one, other)]
    assert all(len(judge) == 3 for judge in kept.values())
    context.close()
    assert turinglike("study", "import", study, answers) == 0
    state = read_state(study)
    for key, judge in zip("fj", state.judges.values(), strict=True):
        said = {"f": "human", "j": "machine"} if judge.keys[0] == "f" else {"f": "machine", "j": "human"}
        assert [event.verdicts for event in judge.answers if event.kind == "trial"] == [[said[key]]] * 2


@pytest.fixture
def kit(tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    """(study, what the kit's page has) of three judges, with consent and two trials each."""
    trials = study_folders.write_trials(tmp_path / "T", study_folders.word_trials(10))
    study = study_folders.write_study(tmp_path / "study", trials, "word_association", number=2, consent="Yes?")
    assert turinglike("study", "kit", str(study), "3", "-o", str(tmp_path / "kit.html")) == 0
    page = data_of(tmp_path / "kit.html")
    judges = read_state(study).judges
    assert [judge["end"]["code"] for judge in page["judges"]] == list(judges)  # which proves nothing
    assert not any(judge.end_code in json.dumps(page) for judge in judges.values())
    return study, page


AGREES: list[dict[str, Any]] = [{"agree": True}, {}, {"verdicts": ["human"]}, {"verdicts": ["machine"]}]
NOW = "2026-01-01T00:00:00Z"


def written(path: Path, kit: str, *judges: tuple[str, list[dict[str, Any]]], at: str = NOW) -> str:
    """A kit's file of what judges answered."""
    content = [
        {"judge": judge, "answers": [{"step": step, "answer": answer, "at": at} for step, answer in enumerate(answers)]}
        for judge, answers in judges
    ]
    body = json.dumps({"kit": kit, "judges": content})
    sha256 = hashlib.sha256(body.encode()).hexdigest()
    path.write_text(json.dumps({"schema": "turinglike.kit/1", "body": body, "sha256": sha256}))
    return str(path)


@pytest.mark.parametrize(
    ("second", "at", "why"),
    [
        ([{"agree": False}, *AGREES[1:]], NOW, "who does not agree answers nothing more"),
        ([*AGREES[:2], {"verdicts": ["cat"]}], NOW, "step 2: verdicts.0: "),
        ([*AGREES[:2], {"verdicts": ["human"], "rt": 10**400}], NOW, "is no file of a kit"),
        (AGREES, "2026-01-01T00:00:00", "its time has no zone"),
        (None, NOW, "its checksum is another"),
        ("kit", NOW, "these answers are not from a kit of this study"),
    ],
)
def test_no_answers_of_a_file_are_taken_in_where_any_cannot_be(
    kit: tuple[Path, dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str], second: Any, at: str, why: str
) -> None:
    study, page = kit
    judges = [judge["judge"] for judge in page["judges"]]
    before = (study / "events.jsonl").read_bytes()
    of_second = second if isinstance(second, list) else AGREES
    name = "0" * 16 if second == "kit" else page["kit"]
    file = Path(written(tmp_path / "a.json", name, (judges[0], AGREES), (judges[1], of_second), at=at))
    if second is None:
        file.write_text(file.read_text().replace("human", "machine", 1))
    assert turinglike("study", "import", str(study), str(file)) == 2
    message = capsys.readouterr().err
    assert "a.json" in message
    assert why in message
    assert (study / "events.jsonl").read_bytes() == before


def test_a_file_that_is_saved_after_each_person_is_taken_in(
    kit: tuple[Path, dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The later file has all of the former. A closed study takes none."""
    study, page = kit
    first, second, third = (judge["judge"] for judge in page["judges"])
    early = written(tmp_path / "early.json", page["kit"], (first, AGREES), (second, AGREES[:3]))
    late = written(tmp_path / "late.json", page["kit"], (first, AGREES), (second, AGREES), (third, [{"agree": False}]))
    other = written(tmp_path / "other.json", page["kit"], (second, [*AGREES[:2], {"verdicts": ["machine"]}]))
    shutil.copytree(study, tmp_path / "closed")
    assert turinglike("study", "close", str(tmp_path / "closed")) == 0
    assert turinglike("study", "import", str(tmp_path / "closed"), late) == 2
    assert "closed, and takes no more answers" in capsys.readouterr().err
    assert turinglike("study", "import", str(study), early, late, early) == 0
    assert [line.split(": ")[1] for line in capsys.readouterr().out.splitlines()] == [
        "4 new answers, finished",
        "4 new answers, finished",
        "1 new answer, declined",
    ]
    events = (study / "events.jsonl").read_bytes()
    assert turinglike("study", "import", str(study), other) == 2
    assert "is there already, and differs" in capsys.readouterr().err
    assert (study / "events.jsonl").read_bytes() == events


def test_an_older_kits_file_with_texts_that_show_nothing_is_taken_in(tmp_path: Path) -> None:
    """Older pages let blanks pass as answers; what such a file brought is there, and it may come a second time."""
    trials = study_folders.write_trials(tmp_path / "T", study_folders.word_trials(10))
    study = study_folders.write_study(
        tmp_path / "study", trials, "word_association", number=1, reason=True, before=["country"], required=["country"]
    )
    assert turinglike("study", "kit", study, "1", "-o", tmp_path / "kit.html") == 0
    [code] = read_state(study).judges
    sent: list[dict[str, Any]] = [{"country": " "}, {}, {"verdicts": ["human"], "reason": " \u200b"}]
    file = written(tmp_path / "a.json", data_of(tmp_path / "kit.html")["kit"], (code, sent))
    assert turinglike("study", "import", study, file) == 0
    [judge] = read_state(study).judges.values()
    assert (judge.ended, judge.answers[-1].reason) == ("finished", "")
    events = (study / "events.jsonl").read_text()
    (study / "events.jsonl").write_text(events.replace('"reason":""', '"reason":" "'))  # as older versions kept it
    assert turinglike("study", "import", study, file) == 0
    assert [judge.answers[-1].reason for judge in read_state(study).judges.values()] == [" "]


def test_who_was_forgotten(
    kit: tuple[Path, dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study, page = kit
    first, second, _ = (judge["judge"] for judge in page["judges"])
    file = written(tmp_path / "a.json", page["kit"], (first, AGREES), (second, AGREES))
    assert turinglike("study", "forget", str(study), first) == 0
    capsys.readouterr()
    assert turinglike("study", "import", str(study), file) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"{first}: left out, because this judge's data were deleted"
    assert lines[1] == f"{second}: 4 new answers, finished"
    assert first not in (study / "events.jsonl").read_text()
