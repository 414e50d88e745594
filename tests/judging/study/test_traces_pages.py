"""What writing leaves in real browsers, and that the hidden instruction is in a copy of the page and nowhere else."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from judging.study.kit import write_kit
from judging.study.log.state import read_state
from judging.study.pages.phrases import read_phrases
from judging.study.serving_study import ServedStudy
from tests.helpers import online_studies, study_folders, talk_studies
from tests.helpers.firefox import CONTROL, FIREFOX, FirefoxPage, firefox
from tests.helpers.study_folders import begin_in, changed, exported, run, serving
from tests.judging.study.test_asking import made

if TYPE_CHECKING:
    from playwright.sync_api import Browser, CDPSession, Page

TYPED = "a wide red field"
SPOKEN = "a wide red field under a pale sky"
COMPOSED = ("k", "か", "かn", "かん", "漢字")
Left = tuple[list[tuple[str, int]], int, int]
"""What a way of writing leaves: what was inserted, by kind and characters; keys; deletions."""
# The events that the specifications name for what no program can do by itself here, in their order.
FIELD = """(field => {
    const change = (data, about) => {
        const all = { bubbles: true, data, ...about };
        field.dispatchEvent(new InputEvent("beforeinput", all));
        field.value = data;
        field.dispatchEvent(new InputEvent("input", all));
    };
    const compose = (name, data) => field.dispatchEvent(new CompositionEvent(name, { bubbles: true, data }));
    ACTS
})(document.getElementById("answer"))"""


def at_once(kind: str) -> str:
    return FIELD.replace("ACTS", f"change({json.dumps(SPOKEN)}, {{ inputType: {json.dumps(kind)} }});")


SIMULATED = {
    "spoken": at_once("insertText"),
    "filled in": at_once("insertReplacementText"),
    "dropped": at_once("insertFromDrop"),
    "composed": FIELD.replace(
        "ACTS",
        f"""compose("compositionstart", "");
    const about = {{ inputType: "insertCompositionText", isComposing: true }};
    for (const text of {json.dumps(COMPOSED)}) change(text, about);
    compose("compositionend", field.value);""",
    ),
}
EXPECTED: dict[str, Left] = {
    "typed": ([], len(TYPED) + 2, 2),
    "pasted": ([("paste", len(TYPED))], 2, 0),
    "dropped": ([("drop", len(SPOKEN))], 0, 0),
    "filled in": ([("autofill", len(SPOKEN))], 0, 0),
    "composed": ([("composition", 2)], 5, 0),  # the last of the five turns two signs into two others
    "spoken": ([("other", len(SPOKEN))], 0, 0),
    "undone": ([("own", 2), ("own", 2), ("other", 2)], 2, 1),
}


def captions(folder: Path, number: int, **settings: Any) -> Path:
    return changed(made(folder, "image_captioning", number=number, checks="note"), record=True, **settings)


def what_was_left(study: Path) -> list[Left]:
    left = []
    for line in (study / "events.jsonl").read_text().splitlines():
        event = json.loads(line)
        if event.get("kind") == "ask" and "answer" in event:  # and not one that the form refused
            traces = event["traces"]
            inserted = [(each["kind"], each["characters"]) for each in traces["inserted"]]
            left.append((inserted, len(traces["keys"]), len(traces["deletions"])))
            assert TYPED not in json.dumps(traces)
            assert event["rt"] is None or all(time <= event["rt"] + 1 for time in traces["keys"])
    return left


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    page = browser.new_context().new_page()
    yield page
    page.context.close()


def ready(page: Page) -> None:
    page.locator("fieldset.all:enabled").wait_for()
    page.locator("#answer").focus()


def goes_on(page: Page, number: int) -> None:
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("heading", name=f"Number {number} of").or_(page.locator(".code")).wait_for()


def typed(page: Page, cdp: CDPSession) -> None:
    page.keyboard.type(f"{TYPED}xy")
    page.keyboard.press("Backspace")
    page.keyboard.press("Backspace")


def pasted(page: Page, cdp: CDPSession) -> None:
    """By the real clipboard, over what was typed."""
    page.evaluate(f"document.querySelector('h1').textContent = {json.dumps(TYPED)}")
    page.evaluate("document.activeElement.blur()")
    page.evaluate("getSelection().selectAllChildren(document.querySelector('h1'))")
    page.keyboard.press("Control+c")
    page.locator("#answer").focus()
    page.keyboard.type("ab")
    page.keyboard.press("Control+a")
    page.keyboard.press("Control+v")


def dropped(page: Page, cdp: CDPSession) -> None:
    """A text of the page, with the mouse."""
    page.evaluate(f"document.querySelector('h1').textContent = {json.dumps(SPOKEN)}")
    page.evaluate("getSelection().selectAllChildren(document.querySelector('h1'))")
    page.locator("h1").drag_to(page.locator("#answer"), source_position={"x": 20, "y": 10})


def composed(page: Page, cdp: CDPSession) -> None:
    """By Chromium's own way in for input methods."""
    for text in COMPOSED[:-1]:
        cdp.send("Input.imeSetComposition", {"text": text, "selectionStart": len(text), "selectionEnd": len(text)})
    cdp.send("Input.insertText", {"text": COMPOSED[-1]})


def spoken(page: Page, cdp: CDPSession) -> None:
    """By Chromium's own way in for a text that no key wrote, as dictation commits it."""
    cdp.send("Input.insertText", {"text": SPOKEN})


def filled_in(page: Page, cdp: CDPSession) -> None:
    """By the specified event: a page without an address has nothing that Chromium fills in."""
    page.evaluate(SIMULATED["filled in"])


def undone(page: Page, cdp: CDPSession) -> None:
    page.keyboard.type("ab")
    for key in ("Control+a", "Control+c", "End", "Control+v", "Control+v", "Control+z", "Control+Shift+z"):
        page.keyboard.press(key)


WAYS: dict[str, Callable[[Page, CDPSession], None]] = {
    "typed": typed,
    "pasted": pasted,
    "dropped": dropped,
    "filled in": filled_in,
    "composed": composed,
    "spoken": spoken,
    "undone": undone,
}


def test_what_each_way_of_writing_leaves_in_chromium(browser: Browser, page: Page, tmp_path: Path) -> None:
    study = captions(tmp_path, len(WAYS) - 1)
    names = [*WAYS][:-1]
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    with serving(study) as server:
        begin_in(page, server.url)
        cdp = page.context.new_cdp_session(page)
        for number, name in enumerate(names, start=1):
            ready(page)
            before = len(asked)
            WAYS[name](page, cdp)
            assert len(asked) == before, "something is sent while somebody writes"
            goes_on(page, number + 1)
    left = dict(zip(names, what_was_left(study), strict=True))
    assert left == {name: EXPECTED[name] for name in names}
    told = [record["raw"]["traces"] for record in exported(study)]
    assert [traces["unexplained_characters"] for traces in told] == [0] * len(names)
    assert [traces["pasted_characters"] for traces in told] == [0, len(TYPED), 0, 0, 0, 0]
    assert [traces["contradictions"] for traces in told] == [[]] * len(names)


def test_what_is_undone_and_done_again_is_no_key(browser: Browser, page: Page, tmp_path: Path) -> None:
    study = captions(tmp_path, 1)
    with serving(study) as server:
        begin_in(page, server.url)
        ready(page)
        undone(page, page.context.new_cdp_session(page))
        goes_on(page, 2)
    assert what_was_left(study) == [EXPECTED["undone"]]


def test_what_a_script_writes_is_not_explained(browser: Browser, page: Page, tmp_path: Path) -> None:
    """A tool that sets the field's text, with or without the event by which frameworks notice it."""
    study = captions(tmp_path, 2)
    with serving(study) as server:
        begin_in(page, server.url)
        for number, event in enumerate(("", "field.dispatchEvent(new Event('input', { bubbles: true }));")):
            ready(page)
            script = f"field.value = {json.dumps(SPOKEN)}; {event}"
            page.evaluate(f"(field => {{ {script} }})(document.getElementById('answer'))")
            page.keyboard.press("End")
            page.keyboard.type("!!")
            goes_on(page, number + 2)
    assert what_was_left(study) == [([], 2, 0)] * 2
    assert [record["raw"]["traces"]["unexplained_characters"] for record in exported(study)] == [len(SPOKEN)] * 2


def test_traces_outlive_a_reload_of_the_page_and_go_with_the_step(browser: Browser, page: Page, tmp_path: Path) -> None:
    study = captions(tmp_path, 2)
    with serving(study) as server:
        begin_in(page, server.url)
        ready(page)
        page.keyboard.type("a wide")
        page.reload()
        ready(page)
        page.keyboard.press("End")
        page.keyboard.type(" red field")
        goes_on(page, 2)
        ready(page)
        assert page.evaluate("sessionStorage.getItem('traces')") is None
        page.keyboard.type("x")
        page.reload()
        ready(page)
        goes_on(page, 3)
        assert page.evaluate("sessionStorage.getItem('traces')") is None
    assert what_was_left(study) == [([], len(TYPED), 0), ([], 1, 0)]
    assert [record["raw"]["traces"]["unexplained_characters"] for record in exported(study)] == [0, 0]
    assert exported_times(study) == sorted(exported_times(study))


def exported_times(study: Path) -> list[int]:
    [judge] = read_state(study).judges.values()
    return next(answer.traces.keys for answer in judge.answers if getattr(answer, "traces", None) is not None)


def test_an_answer_that_is_written_anew_has_the_traces_of_both(browser: Browser, page: Page, tmp_path: Path) -> None:
    study = changed(made(tmp_path, "word_association", number=1), record=True)
    with serving(study) as server:
        begin_in(page, server.url)
        ready(page)
        for text in ("two words", "three more words", "moon"):
            page.keyboard.press("Control+a")
            page.keyboard.type(text)
            page.get_by_role("button", name="Continue").click()
            page.get_by_text("Please answer with one word.").or_(page.locator(".code")).wait_for()
            if text != "moon":
                page.locator("#answer").focus()
                page.wait_for_function("document.querySelector('button[type=submit]').ariaDisabled !== 'true'")
        page.locator(".code").wait_for()
    times = exported_times(study)
    assert len(times) == len("two words") + len("three more words") + len("moon")
    assert times == sorted(times)


def test_who_looks_elsewhere_is_away(browser: Browser, page: Page, tmp_path: Path) -> None:
    study = captions(tmp_path, 1)
    with serving(study) as server:
        begin_in(page, server.url)
        ready(page)
        page.keyboard.type("a")
        hide = "is => { Object.defineProperty(document, 'hidden', { get: () => is, configurable: true });"
        hide += " document.dispatchEvent(new Event('visibilitychange')); }"
        page.evaluate(hide, True)
        page.wait_for_timeout(300)
        page.evaluate(hide, False)
        page.evaluate("dispatchEvent(new Event('blur'))")
        page.wait_for_timeout(200)
        page.evaluate("dispatchEvent(new Event('focus'))")
        page.keyboard.type("b")
        goes_on(page, 2)
    [record] = exported(study)
    traces = record["raw"]["traces"]
    assert traces["contradictions"] == []
    assert traces["hidden_ms"] >= 300
    assert traces["unfocused_ms"] >= traces["hidden_ms"] + 200


def test_messages_are_recorded_each_for_itself(browser: Browser, tmp_path: Path) -> None:
    study = changed(talk_studies.made(tmp_path, exchanges=4), record=True)
    with serving(study) as server:
        pages = [begin_in(browser.new_context().new_page(), server.url) for _ in range(2)]
        for page in pages:
            page.get_by_role("heading", name="Conversation").wait_for()
        for turn in range(4):
            page = next(each for each in pages if each.get_by_text("It is your turn.").is_visible())
            other = pages[1 - pages.index(page)]
            page.locator("textarea").focus()
            page.keyboard.type(f"{'m' * (turn + 3)}")
            page.keyboard.press("Enter")
            page.get_by_text("It is your turn.").wait_for(state="hidden")
            if turn < 3:
                other.get_by_text("It is your turn.").wait_for()
        for page in pages:
            page.get_by_text("a woman").wait_for()
            page.context.close()
    [record] = exported(study)
    assert [told["keys"] for told in record["raw"]["traces"]] == [3, 4, 5, 6]
    assert [told["unexplained_characters"] for told in record["raw"]["traces"]] == [0] * 4
    assert [told["contradictions"] for told in record["raw"]["traces"]] == [[]] * 4


def test_questions_and_answers_of_live_tests_are_recorded(browser: Browser, tmp_path: Path) -> None:
    study = online_studies.made(tmp_path, two_people=1.0, exchanges=[1], wanted=1, record=True)
    with serving(study) as server:
        pages = [begin_in(browser.new_context().new_page(), server.url) for _ in range(3)]
        for page in pages:
            page.get_by_role("button", name="I have read this").click()
        judge = next(page for page in pages if page.get_by_role("heading", name="You are the judge").count())
        judge.locator("textarea").focus()
        judge.keyboard.type("who?")
        judge.keyboard.press("Enter")
        for page in pages:
            if page is not judge:
                page.locator("textarea").focus()
                page.keyboard.type("me too")
                page.keyboard.press("Enter")
        judge.get_by_text("Which one is the human?").wait_for()
        for page in pages:
            page.context.close()
    told = {}
    for line in (study / "events.jsonl").read_text().splitlines():
        event = json.loads(line)
        if event["event"] in ("test_asked", "test_answered"):
            told[event["event"], event.get("side")] = len(event["traces"]["keys"])
    assert told == {("test_asked", None): 4, ("test_answered", 1): 6, ("test_answered", 2): 6}


# the hidden instruction


def test_the_instruction_is_in_a_copy_of_the_page_alone(browser: Browser, page: Page, tmp_path: Path) -> None:
    study = captions(tmp_path, 2, copied_instruction=True)
    with serving(study) as server:
        begin_in(page, server.url)
        ready(page)
        [judge] = read_state(study).judges.values()
        word = str(judge.codeword)
        page.evaluate("document.activeElement.blur()")
        page.keyboard.press("Control+a")
        page.keyboard.press("Control+c")
        page.evaluate("getSelection().removeAllRanges()")
        page.locator("#answer").focus()
        page.keyboard.press("Control+v")
        assert word in page.locator("#answer").input_value()
        page.locator("#answer").fill("")
        cdp = page.context.new_cdp_session(page)
        nodes = cdp.send("Accessibility.getFullAXTree")["nodes"]
        heard = [str(node.get("name", {}).get("value")) for node in nodes if not node["ignored"]]
        assert any("Describe this image" in name for name in heard)
        assert not [name for name in heard if word in name]
        for _ in range(12):
            page.keyboard.press("Tab")
            assert not page.evaluate("document.activeElement.closest('.line-of-page') !== null")
        page.evaluate("document.activeElement.blur()")
        with_it = page.screenshot(full_page=True)
        page.evaluate("document.querySelector('.line-of-page').remove()")
        assert page.screenshot(full_page=True) == with_it
        assert page.get_by_text(word).count() == 0
        goes = page.get_by_role("button", name="Continue")
        for number, text in enumerate((f"a {word} in a wide red field", "a wide red field under a pale sky"), start=2):
            ready(page)
            page.keyboard.type(text)
            goes.click()
            page.get_by_role("heading", name=f"Number {number} of").or_(page.locator(".code")).wait_for()
        page.get_by_text("The pages held an instruction that nobody sees").wait_for()
        assert word in page.locator("main").inner_text()
    assert [record["raw"]["checks"]["copied_instruction"] for record in exported(study)] == [True, False]


def test_a_question_of_the_study_is_answered_on_a_page_of_its_own(browser: Browser, page: Page, tmp_path: Path) -> None:
    study = captions(tmp_path, 1)
    asked = 'questions = [{ text = "Which day follows Monday?", people = "tuesday" }]'
    (study / "study.toml").write_text((study / "study.toml").read_text().replace("questions = []", asked))
    with serving(study) as server:
        begin_in(page, server.url)
        ready(page)
        page.keyboard.type(TYPED)
        page.get_by_role("button", name="Continue").click()
        page.get_by_role("heading", name="A question in between").wait_for()
        ready(page)
        page.get_by_role("button", name="Continue").click()
        page.get_by_text("Please answer every question on this page.").wait_for()
        page.get_by_label("Which day follows Monday?").focus()
        page.keyboard.type("Tuesday")
        page.keyboard.press("Enter")
        page.locator(".code").wait_for()
    [record] = exported(study)
    assert record["raw"]["person_checks"]["questions_right"] == 1


def test_a_kit_records_nothing(tmp_path: Path) -> None:
    """It is for judges, who write nothing but reasons; it holds the script, because its pages are the same."""
    trials = study_folders.write_trials(tmp_path / "T", study_folders.word_trials(8))
    study = study_folders.write_study(tmp_path / "study", trials, "word_association", number=2)

    async def work(served: ServedStudy) -> None:
        await write_kit(served, read_phrases(study, served.settings), 1, tmp_path / "kit.html")

    run(study, work)
    kit = (tmp_path / "kit.html").read_text()
    assert "compositionstart" in kit
    assert '"traces":true' not in kit
    assert '"line"' not in kit
    assert "debriefing_copied" not in kit


# Firefox


def press_in(page: FirefoxPage, name: str) -> None:
    found = f"[...document.querySelectorAll('button')].find(each => each.textContent === {json.dumps(name)})"
    page.wait_for(f"Boolean({found})")
    page.evaluate(f"{found}.click()")


def field_in(page: FirefoxPage, number: int) -> None:
    page.wait_for(f"document.querySelector('h1')?.textContent.startsWith('Number {number} of')")
    page.wait_for("document.querySelector('fieldset.all:enabled') !== null")
    page.evaluate("document.getElementById('answer').focus()")


@pytest.mark.slow
@pytest.mark.skipif(
    FIREFOX is None, reason="no Firefox: install Debian's firefox-esr or name one in TURINGLIKE_FIREFOX"
)
def test_what_each_way_of_writing_leaves_in_firefox(tmp_path: Path) -> None:
    """Keys and the clipboard are real; a drop, what is filled in, an input method and dictation are their events."""
    names = ["typed", "pasted", "dropped", "filled in", "composed", "spoken"]
    study = captions(tmp_path, len(names))
    (tmp_path / "firefox").mkdir()
    with serving(study) as server, firefox(tmp_path / "firefox") as page:
        page.goto(server.url)
        for name in ("Begin", "I agree", "Continue"):
            press_in(page, name)
        for number, name in enumerate(names, start=1):
            field_in(page, number)
            if name == "typed":
                page.press(f"{TYPED}xy", "\ue003", "\ue003")
            elif name == "pasted":
                page.evaluate(f"document.querySelector('h1').textContent = {json.dumps(TYPED)}")
                page.evaluate("getSelection().selectAllChildren(document.querySelector('h1'))")
                page.evaluate("document.getElementById('answer').blur()")
                page.press(f"{CONTROL}c")
                page.evaluate("document.getElementById('answer').focus()")
                page.press("ab", f"{CONTROL}a", f"{CONTROL}v")
            else:
                page.evaluate(SIMULATED[name])
            press_in(page, "Continue")
        page.wait_for("document.querySelector('.code') !== null")
    assert dict(zip(names, what_was_left(study), strict=True)) == {name: EXPECTED[name] for name in names}
    told = [record["raw"]["traces"] for record in exported(study)]
    assert [traces["unexplained_characters"] for traces in told] == [0] * len(names)


@pytest.mark.slow
@pytest.mark.skipif(
    FIREFOX is None, reason="no Firefox: install Debian's firefox-esr or name one in TURINGLIKE_FIREFOX"
)
def test_what_is_undone_and_the_copy_of_the_page_in_firefox(tmp_path: Path) -> None:
    study = captions(tmp_path, 2, copied_instruction=True)
    (tmp_path / "firefox").mkdir()
    with serving(study) as server, firefox(tmp_path / "firefox") as page:
        page.goto(server.url)
        for name in ("Begin", "I agree", "Continue"):
            press_in(page, name)
        field_in(page, 1)
        page.press("ab", f"{CONTROL}a", f"{CONTROL}c", "\ue010", f"{CONTROL}v", f"{CONTROL}v", f"{CONTROL}z")
        page.press(f"{CONTROL}\ue008z")  # with Shift: done again
        press_in(page, "Continue")
        field_in(page, 2)
        [judge] = read_state(study).judges.values()
        page.evaluate("document.activeElement.blur()")
        page.press(f"{CONTROL}a", f"{CONTROL}c")
        page.evaluate("getSelection().removeAllRanges()")
        page.evaluate("document.getElementById('answer').focus()")
        page.press(f"{CONTROL}v")
        assert str(judge.codeword) in page.evaluate("document.getElementById('answer').value")
        reached = []
        for _ in range(2):  # a third would leave the page for the browser's bars
            page.press("\ue004")
            reached.append(page.evaluate("document.activeElement.textContent"))
        assert reached == ["Continue", "Leave and delete my answers"]
        box = page.evaluate(
            "(box => [box.width, box.height])(document.querySelector('.line-of-page').getBoundingClientRect())"
        )
        assert max(box) <= 1
    assert what_was_left(study) == [EXPECTED["undone"]]
