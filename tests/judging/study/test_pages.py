"""A study's pages in a headless Chromium: the keyboard alone, reloads, a second tab, a connection that is lost."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from judging.study.log.participant_events import InstructionsRead, ScreenSeen
from judging.study.log.state import Judge, read_state
from serving.cli import main
from tests.helpers import study_folders
from tests.helpers.server_process import Server
from tests.helpers.study_folders import BAD
from tests.helpers.watched_page import small_targets

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    rows = study_folders.picture_trials(folder / "T", 30)
    for trial, _ in rows:
        trial["answer"]["text"] += f" {BAD}"
    trials = study_folders.write_trials(folder / "T", rows)
    return study_folders.write_study(
        folder / "study",
        trials,
        "image_captioning",
        number=6,
        practice=1,
        feedback=1,
        sample=True,
        reason=True,
        break_every=4,
        before=["age", "country"],
        after=["engaging", "comments"],
        consent=f"Will you? {BAD}",
    )


@pytest.fixture(scope="module")
def server(study: Path) -> Iterator[Server]:
    with study_folders.serving(study) as running:
        yield running


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    context = browser.new_context()
    yield context
    context.close()


def opened(context: BrowserContext, server: Server) -> Any:
    page: Any = context.new_page()
    page.faults = []
    page.on("pageerror", lambda error: page.faults.append(str(error)))
    page.on("console", lambda said: said.type == "error" and page.faults.append(said.text))
    page.goto(server.url)
    return page


def judge_of(context: BrowserContext, study: Path) -> Judge:
    [cookie] = context.cookies()
    return read_state(study).by_session[hashlib.sha256(cookie["value"].encode()).hexdigest()]


def to_the_trials(page: Page) -> None:
    page.get_by_role("button", name="Begin").click()
    page.get_by_role("button", name="I agree").click()
    page.get_by_label("Country").fill("Iceland")
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("heading", name="What to do").wait_for()
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("heading", name="Practice").wait_for()


def answer(page: Page, key: str = "f") -> None:
    page.locator("fieldset.all:enabled").wait_for()
    page.keyboard.press(key)
    page.locator("input:checked").wait_for()
    page.keyboard.press("Enter")


def test_a_study_by_the_keyboard_alone(context: BrowserContext, server: Server, study: Path) -> None:
    page = opened(context, server)
    page.get_by_role("button", name="Begin").wait_for()
    assert page.title() == "Human or machine?"
    for heading, name in [("Human", "Begin"), ("Human", "I agree"), ("About you", "Continue"), ("What", "Continue")]:
        page.get_by_role("heading", name=heading).wait_for()
        button = page.get_by_role("button", name=name)
        button.wait_for()
        while not button.evaluate("node => node === document.activeElement"):
            page.keyboard.press("Tab")
        page.keyboard.press("Enter")
    page.get_by_role("heading", name="Practice").wait_for()
    answer(page)
    page.get_by_text("It was:").wait_for()
    is_right = page.get_by_text("That was right.").count() == 1
    told = page.locator(".truth")
    assert ("good" if is_right else "bad") in (told.get_attribute("class") or "").split()
    color = "rgb(29, 107, 53)" if is_right else "rgb(163, 32, 13)"  # --good and --bad of the light style
    assert told.evaluate("node => getComputedStyle(node).borderInlineStartColor") == color
    page.keyboard.press("Enter")
    for number in range(1, 7):
        page.get_by_role("heading", name=f"Trial {number} of 6").wait_for()
        assert page.title() == f"Trial {number} of 6 – Human or machine?"
        assert page.locator("img.photograph").evaluate("node => node.naturalWidth") == 32
        assert page.locator("input:checked").count() == 0  # a key of the page before does nothing here
        answer(page, "fj"[number % 2])
        if number == 1:
            page.get_by_text("It was:").wait_for()
            page.keyboard.press("Enter")
        if number == 4:
            page.get_by_text("You have done 4 of 6.").wait_for()
            page.reload()
            page.get_by_text("You have done 4 of 6.").wait_for()
            second = opened(context, server)
            second.get_by_role("button", name="Continue").click()
            second.get_by_role("heading", name="Trial 5 of 6").wait_for()
            second.locator("img.photograph").wait_for()  # the heading is there before
            second.close()
            page.keyboard.press("Enter")
    page.get_by_role("heading", name="To end with").wait_for()
    page.get_by_role("button", name="Continue").click()
    page.locator(".code").wait_for()
    judge = judge_of(context, study)
    assert judge.ended == "finished"
    assert page.inner_text(".code") == judge.end_code
    given = [one for one in judge.answers if one.kind == "trial"]
    left = {"f": "human", "j": "machine"} if judge.keys[0] == "f" else {"f": "machine", "j": "human"}
    assert [one.verdicts[0] for one in given] == [left[key] for key in "fjfjfjf"]
    assert [one.rt is None for one in given] == [False] * 5 + [True, False]  # shown before, in the second tab
    assert all(one.rt is None or 0 < one.rt < 20_000 for one in given)
    assert all(one.key and not one.away for one in given)
    [pause] = [one for one in judge.answers if one.kind == "break"]
    ended = judge.answers[judge.answers.index(pause) - 1].at
    took = datetime.fromisoformat(pause.at) - datetime.fromisoformat(ended)
    assert pause.seconds == took.total_seconds() > 0
    assert page.title() == "Done – Human or machine?"
    assert page.faults == []


def test_reload_back_and_a_second_tab(context: BrowserContext, server: Server, study: Path) -> None:
    page = opened(context, server)
    to_the_trials(page)
    answer(page)
    page.get_by_text("It was:").wait_for()
    page.reload()  # after practice: on to the first trial
    page.get_by_role("heading", name="Trial 1 of 6").wait_for()
    page.locator("fieldset.all:enabled").wait_for()
    page.reload()
    page.get_by_role("heading", name="Trial 1 of 6").wait_for()
    second = opened(context, server)
    second.get_by_role("heading", name="Trial 1 of 6").wait_for()
    answer(page)
    page.get_by_text("It was:").wait_for()
    answer(second, "j")  # the same step again: what was right is told, too, and the first verdict stands
    second.get_by_text("It was:").wait_for()
    second.get_by_role("button", name="Continue").click()
    second.get_by_role("heading", name="Trial 2 of 6").wait_for()
    judge = judge_of(context, study)
    trials = [one for one in judge.answers if one.kind == "trial"]
    assert len(trials) == 2
    assert trials[1].verdicts == ["human" if judge.keys[0] == "f" else "machine"]
    assert trials[1].rt is None  # it was on the screen before
    second.goto("about:blank")
    second.go_back()
    second.get_by_role("heading", name="Trial 2 of 6").wait_for()
    second.close()
    third = opened(context, server)
    answer(third)
    third.get_by_role("heading", name="Trial 3 of 6").wait_for()
    assert judge_of(context, study).answers[-1].rt is None  # as it was in the tab that was closed
    assert page.faults == second.faults == []


def test_an_answer_waits_for_the_connection(context: BrowserContext, server: Server, study: Path) -> None:
    page = opened(context, server)
    to_the_trials(page)
    page.locator("fieldset.all:enabled").wait_for()
    context.set_offline(True)
    answer(page)
    page.get_by_text("The connection is lost").wait_for()
    assert not any(one.kind == "trial" for one in judge_of(context, study).answers)
    context.set_offline(False)
    page.get_by_text("It was:").wait_for()
    assert sum(one.kind == "trial" for one in judge_of(context, study).answers) == 1


def test_a_slider_has_no_value_until_it_is_touched(browser: Browser, study: Path, tmp_path: Path) -> None:
    """On a phone, after a question that must be answered; a screen that is too small is refused before that."""
    of_here = study_folders.write_study(
        tmp_path / "study",
        study.parent / "T",
        "image_captioning",
        number=2,
        confidence=True,
        before=["age"],
        required=["age"],
        screen=390,
    )
    with study_folders.serving(of_here) as server:
        for width in (380, 390):
            context = browser.new_context(
                viewport={"width": width, "height": 700},
                screen={"width": width, "height": 700},
                has_touch=True,
                is_mobile=True,
            )
            page = opened(context, server)
            page.get_by_text("larger screen" if width == 380 else "Begin").wait_for()
        page.get_by_role("button", name="Begin").tap()
        page.get_by_role("button", name="Continue").tap()
        page.get_by_text("Please answer every question").wait_for()
        page.get_by_label("Age *").select_option("26-30")
        page.get_by_role("button", name="Continue").tap()
        page.get_by_role("heading", name="What to do").wait_for()
        page.get_by_role("button", name="Continue").tap()
        for number in (1, 2):
            page.get_by_role("heading", name=f"Trial {number} of 2").wait_for()
            page.locator("fieldset.all:enabled").wait_for()
            page.locator("input[value=human]").check()
            assert not page.locator("kbd").first.is_visible()
            page.get_by_role("button", name="Continue").tap()
            page.get_by_text("Please answer every question").wait_for()
            if number == 1:
                page.get_by_label("How sure").tap()  # in the middle
            else:
                page.keyboard.press("ArrowRight")  # the page has gone to the slider
            page.get_by_role("button", name="Continue").tap()
        page.locator(".code").wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        judge = judge_of(context, of_here)
    assert [one.confidence for one in judge.answers if one.kind == "trial"] == [0.5, 0.51]
    instructions = judge.answer_of(InstructionsRead)
    assert instructions is not None
    assert instructions.device == ScreenSeen(touch=True, screen=[390, 700])
    assert page.faults == []


def test_a_judge_leaves_and_deletes_at_any_time(context: BrowserContext, server: Server, study: Path) -> None:
    page = opened(context, server)
    page.get_by_role("button", name="Begin").click()
    page.get_by_text("Will you?").wait_for()
    code = judge_of(context, study).code
    page.get_by_text(f"answers deleted later: {code}").wait_for()
    page.get_by_role("button", name="I agree").click()
    page.get_by_role("heading", name="About you").wait_for()  # of the page before the button may go while it is clicked
    page.once("dialog", lambda dialog: dialog.dismiss())
    page.get_by_role("button", name="Leave and delete").click()
    page.get_by_role("button", name="Continue").click()  # they have thought better of it
    page.get_by_role("heading", name="What to do").wait_for()
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Leave and delete").press("Enter")
    page.get_by_text("You have left.").wait_for()
    assert page.get_by_text(code).count() == 0
    page.reload()
    page.get_by_text("You have left.").wait_for()
    judge = judge_of(context, study)
    assert (judge.ended, judge.answers) == ("left", [])
    assert page.faults == []


def test_on_the_last_page_nobody_takes_the_code_or_the_button_for_the_other(
    context: BrowserContext, study: Path, tmp_path: Path
) -> None:
    """The code for deletion is named so; the button is folded away, and asks before it deletes."""
    here = study_folders.write_study(tmp_path / "study", study.parent / "T", "image_captioning", number=1)
    with study_folders.serving(here) as server:
        page = opened(context, server)
        page.get_by_role("button", name="Begin").click()
        page.get_by_text("Number of trials: 1.").wait_for()
        page.get_by_role("button", name="Leave and delete").wait_for()
        page.get_by_role("button", name="Continue").click()
        answer(page)
        page.locator(".code").wait_for()
        judge = judge_of(context, here)
        lines = [line for line in page.locator("main").inner_text().split("\n") if line]
        assert lines[-2:] == [judge.end_code, "Copy the code"]
        assert page.inner_text(".code") == judge.end_code
        # There is no clipboard without a permission; with one the button copies the code and nothing else.
        copied = page.locator("main").get_by_role("status")
        page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error()); }")
        page.get_by_role("button", name="Copy the code").click()
        copied.get_by_text("The code is selected.").wait_for()
        assert page.evaluate("getSelection().toString()").strip() == judge.end_code
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        page.evaluate("delete navigator.clipboard.writeText")
        page.get_by_role("button", name="Copy the code").click()
        copied.get_by_text("Copied.").wait_for()
        assert page.evaluate("navigator.clipboard.readText()") == judge.end_code
        assert small_targets(page) == []
        assert judge.code not in page.locator("main").inner_text()
        said = f"Your code for deletion: {judge.code}. It is not your completion code."
        assert page.locator("#foot p").inner_text().startswith(said)
        button = page.get_by_role("button", name="Leave and delete")
        assert not button.is_visible()
        page.get_by_text("I want my answers deleted").click()
        asked: list[str] = []

        def dismissed(dialog: Any) -> None:
            asked.append(dialog.message)
            dialog.dismiss()

        page.once("dialog", dismissed)
        button.click()
        assert asked == [
            "You have finished. All your answers will be deleted, and whoever pays will not know any more that you "
            "took part. Are you sure?"
        ]
        assert judge_of(context, here).ended == "finished"
        page.once("dialog", lambda dialog: dialog.accept())
        button.click()
        page.get_by_text("You have left.").wait_for()
        assert page.locator("details").count() == 0
    assert page.faults == []


def test_a_new_study_of_pairs_asks_of_pairs(tmp_path: Path) -> None:
    trials = study_folders.write_trials(tmp_path / "T", study_folders.pair_trials(13))
    assert main(["study", "new", str(trials), "-o", str(tmp_path / "study")]) == 0
    assert "two conversations beside each other" in (tmp_path / "study" / "study.toml").read_text()
    assert main(["study", "check", str(tmp_path / "study")]) == 0


def test_a_person_says_in_which_conversation_the_machine_speaks(context: BrowserContext, tmp_path: Path) -> None:
    trials = study_folders.write_trials(tmp_path / "T", study_folders.pair_trials(8))
    study = study_folders.write_study(tmp_path / "study", trials, "conversation", number=2)
    with study_folders.serving(study) as server:
        page = opened(context, server)
        page.get_by_role("button", name="Begin").click()
        page.get_by_text("On a keyboard: F for the first conversation, J for the second").wait_for()
        page.get_by_role("button", name="Continue").click()
        for number, (key, label) in enumerate((("f", "First conversation"), ("j", "Second conversation")), 1):
            page.get_by_role("heading", name=f"Trial {number} of 2").wait_for()
            page.locator("fieldset.all:enabled").wait_for()
            page.get_by_text("In which of the two conversations does a machine speak?").wait_for()
            first, second = (page.locator(".pair section").nth(at).bounding_box() for at in (0, 1))
            assert first["y"] == second["y"]
            assert first["x"] + first["width"] < second["x"]
            page.keyboard.press(key)
            assert page.locator("label:has(input:checked)").inner_text().split("\n")[0].strip() == label
            if number == 1:
                page.keyboard.press("Enter")
        page.set_viewport_size({"width": 360, "height": 740})  # a phone is wide enough
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        page.keyboard.press("Enter")
        page.locator(".code").wait_for()
    judge = judge_of(context, study)
    assert [one.verdicts for one in judge.answers if one.kind == "trial"] == [["machine"], ["human"]]


@pytest.mark.parametrize("of_pairs", [False, True])
def test_messages_say_how_long_they_took_where_trials_show_it(
    context: BrowserContext, tmp_path: Path, of_pairs: bool
) -> None:
    rows = study_folders.pair_trials(8) if of_pairs else study_folders.conversation_trials(4)
    if not of_pairs:
        for trial, _ in rows:
            trial["answer"]["messages"][2]["speaker"] = "B"  # who has written before
    trials = study_folders.write_trials(tmp_path / "T", study_folders.with_delays(rows))
    study = study_folders.write_study(tmp_path / "study", trials, "conversation", number=2)
    with study_folders.serving(study) as server:
        page = opened(context, server)
        page.get_by_role("button", name="Begin").click()
        page.get_by_role("button", name="Continue").click()
        page.get_by_role("heading", name="Trial 1 of 2").wait_for()
        page.locator("fieldset.all:enabled").wait_for()
        page.get_by_text("The seconds beside a message say how long after the previous message it came.").wait_for()
        in_a_burst = ["A", "B · after 1.5 s", "after 3.0 s", "after 4.5 s"]
        for chat in page.locator(".chat").all():
            said = [" ".join(text.split()) for text in chat.locator(".who").all_inner_texts()]
            assert said == (["A", "B · after 1.5 s", "A · after 3.0 s"] if of_pairs else in_a_burst)
        page.set_viewport_size({"width": 360, "height": 740})
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert page.faults == []


def test_without_delays_no_page_speaks_of_them(context: BrowserContext, tmp_path: Path) -> None:
    trials = study_folders.write_trials(tmp_path / "T", study_folders.conversation_trials(4))
    study = study_folders.write_study(tmp_path / "study", trials, "conversation", number=2)
    with study_folders.serving(study) as server:
        page = opened(context, server)
        page.get_by_role("button", name="Begin").click()
        page.get_by_role("button", name="Continue").click()
        page.locator("fieldset.all:enabled").wait_for()
        assert page.locator(".chat .who").all_inner_texts()[0] == "A"
        assert page.get_by_text("after").count() == 0
        assert page.get_by_text("seconds").count() == 0
