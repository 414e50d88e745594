"""What traces hold where writing is not plain: in a composition, of one's own text, and after a browser that died."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from judging.study.log.state import read_state
from tests.helpers import talk_studies
from tests.helpers.study_folders import begin_in, changed, exported, serving
from tests.judging.study.test_asking import made
from tests.judging.study.test_traces_pages import captions, goes_on, ready, what_was_left

if TYPE_CHECKING:
    from playwright.sync_api import Browser, CDPSession, Page

FOREIGN = "a harbour with two red boats in the sun"
# As browsers do whose buttons take no focus when they are clicked: an open composition stays open.
UNFOCUSED_BUTTONS = """addEventListener("mousedown", (event) => {
    if (event.target.closest("button")) event.preventDefault();
}, true)"""


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    page = browser.new_context().new_page()
    yield page
    page.context.close()


def copied(page: Page, text: str) -> None:
    """Bring a text of the page, which no field holds, into the clipboard."""
    page.evaluate(
        """text => {
        const node = document.createElement("pre");
        node.textContent = text;
        document.body.append(node);
        getSelection().selectAllChildren(node);
    }""",
        text,
    )
    page.keyboard.press("Control+c")
    page.evaluate("document.body.lastElementChild.remove()")


def composing(cdp: CDPSession, text: str) -> None:
    cdp.send("Input.imeSetComposition", {"text": text, "selectionStart": len(text), "selectionEnd": len(text)})


def told_of(study: Path) -> list[dict[str, Any]]:
    return [record["raw"]["traces"] for record in exported(study)]


def test_a_paste_while_a_word_is_composed_is_a_paste(browser: Browser, page: Page, tmp_path: Path) -> None:
    study = captions(tmp_path, 1)
    with serving(study) as server:
        begin_in(page, server.url)
        ready(page)
        cdp = page.context.new_cdp_session(page)
        page.evaluate("document.activeElement.blur()")
        copied(page, FOREIGN)
        page.locator("#answer").focus()
        composing(cdp, "The")
        page.keyboard.press("Control+v")
        goes_on(page, 2)
    [(inserted, keys, deletions)] = what_was_left(study)
    assert sorted(inserted) == [("composition", 3), ("paste", len(FOREIGN))]
    assert (keys, deletions) == (0, 0)  # three letters at once are no key
    [told] = told_of(study)
    assert told["pasted_characters"] == len(FOREIGN)
    assert told["unexplained_characters"] == 0


def test_what_is_composed_when_a_text_is_sent_is_recorded_and_what_is_pasted_next(
    browser: Browser, page: Page, tmp_path: Path
) -> None:
    """The form refuses the first text, which is still being composed, and takes the second."""
    study = changed(made(tmp_path, "word_association", number=1), record=True)
    with serving(study) as server:
        begin_in(page, server.url)
        page.evaluate(UNFOCUSED_BUTTONS)
        ready(page)
        cdp = page.context.new_cdp_session(page)
        page.evaluate("document.activeElement.blur()")
        copied(page, "moon")
        page.locator("#answer").focus()
        page.keyboard.type("a ")
        for text in ("h", "ha", "hal"):
            composing(cdp, text)
        page.get_by_role("button", name="Continue").click()
        page.get_by_text("Please answer with one word.").wait_for()
        page.wait_for_function("document.querySelector('button[type=submit]').ariaDisabled !== 'true'")
        page.keyboard.press("Control+a")
        page.keyboard.press("Control+v")
        page.get_by_role("button", name="Continue").click()
        page.locator(".code").wait_for()
    [(inserted, keys, _)] = what_was_left(study)
    assert inserted == [("composition", 3), ("paste", 4)]
    assert keys == 5
    [told] = told_of(study)
    assert [each["at"] for each in told["inserted"]] == sorted(each["at"] for each in told["inserted"])
    assert told["unexplained_characters"] == 0


def test_a_composition_of_one_message_does_not_reach_into_the_next(browser: Browser, tmp_path: Path) -> None:
    study = changed(talk_studies.made(tmp_path, exchanges=4), record=True)
    with serving(study) as server:
        pages = [begin_in(browser.new_context().new_page(), server.url) for _ in range(2)]
        for page in pages:
            page.get_by_role("heading", name="Conversation").wait_for()
            page.evaluate(UNFOCUSED_BUTTONS)
        for turn in range(4):
            page = next(each for each in pages if each.get_by_text("It is your turn.").is_visible())
            other = pages[1 - pages.index(page)]
            cdp = page.context.new_cdp_session(page)
            page.evaluate("document.activeElement.blur()")
            copied(page, FOREIGN)
            page.locator("textarea").focus()
            if turn < 2:
                composing(cdp, "hallo")
            else:
                page.keyboard.press("Control+v")
            page.get_by_role("button", name="Send").click()
            page.get_by_text("It is your turn.").wait_for(state="hidden")
            if turn < 3:
                other.get_by_text("It is your turn.").wait_for()
        for page in pages:
            page.get_by_text("a woman").wait_for()
            page.context.close()
    traces: Any = told_of(study)[0]
    composed = [("composition", 5)]
    pasted = [("paste", len(FOREIGN))]
    found = [[(each["kind"], each["characters"]) for each in told["inserted"]] for told in traces]
    assert found == [composed, composed, pasted, pasted]
    assert [told["unexplained_characters"] for told in traces] == [0] * 4


def test_an_event_that_opens_a_composition_hides_no_paste(browser: Browser, page: Page, tmp_path: Path) -> None:
    study = captions(tmp_path, 1)
    with serving(study) as server:
        begin_in(page, server.url)
        ready(page)
        page.evaluate("document.activeElement.blur()")
        copied(page, FOREIGN)
        page.locator("#answer").focus()
        page.evaluate("document.activeElement.dispatchEvent(new Event('compositionstart', { bubbles: true }))")
        page.keyboard.press("Control+v")
        page.keyboard.type("!")
        goes_on(page, 2)
    assert what_was_left(study) == [([("paste", len(FOREIGN))], 1, 0)]


def test_ones_own_text_is_no_paste(browser: Browser, page: Page, tmp_path: Path) -> None:
    study = captions(tmp_path, 3)
    with serving(study) as server:
        begin_in(page, server.url)
        ready(page)
        page.keyboard.type("stone")  # cut, and put back
        for key in ("Control+a", "Control+x", "Control+v"):
            page.keyboard.press(key)
        goes_on(page, 2)
        ready(page)
        page.keyboard.type("stone red")  # a word dragged to the end
        page.keyboard.press("Home")
        for _ in "stone ":
            page.keyboard.press("Shift+ArrowRight")
        box = page.locator("#answer").bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + 15, box["y"] + 18)
        page.mouse.down()
        for step in range(1, 6):
            page.mouse.move(box["x"] + 15 + 50 * step, box["y"] + 18)
        page.mouse.up()
        moved = page.locator("#answer").input_value()
        goes_on(page, 3)
        ready(page)
        page.keyboard.type("stone")  # one's own text is copied, and then something else
        for key in ("Control+a", "Control+c", "End"):
            page.keyboard.press(key)
        page.evaluate("document.activeElement.blur()")
        copied(page, FOREIGN)
        page.locator("#answer").focus()
        page.keyboard.press("End")
        page.keyboard.press("Control+v")
        goes_on(page, 4)
    assert moved == "redstone "
    kinds = [inserted for inserted, _, _ in what_was_left(study)]
    assert kinds == [[("own", 5)], [("own", 6)], [("paste", len(FOREIGN))]]
    told = told_of(study)
    assert [each["pasted_characters"] for each in told] == [0, 0, len(FOREIGN)]
    assert [each["own_characters"] for each in told] == [5, 6, 0]


def test_a_draft_comes_back_with_its_traces_where_the_browser_died(
    browser: Browser, page: Page, tmp_path: Path
) -> None:
    """The tab ends without any event, and opens again with what it had stored."""
    study = captions(tmp_path, 2)
    with serving(study) as server:
        begin_in(page, server.url)
        for number, forgets in enumerate((False, True), start=2):
            ready(page)
            page.keyboard.type("summer")
            stored = page.evaluate("Object.fromEntries(Object.entries(sessionStorage))")
            assert "summer" not in stored["traces"]
            if forgets:
                del stored["traces"]
            again = page.context.new_page()
            again.goto(f"{server.url}/static/icon.svg")
            again.evaluate("kept => Object.entries(kept).forEach((each) => sessionStorage.setItem(...each))", stored)
            page.close()
            page = again
            page.goto(server.url)
            ready(page)
            assert page.locator("#answer").input_value() == "summer"
            goes_on(page, number)
    assert what_was_left(study) == [([], 6, 0), ([("restored", 6)], 0, 0)]
    told = told_of(study)
    assert [each["contradictions"] for each in told] == [[], []]
    assert [each["unexplained_characters"] for each in told] == [0, 0]
    assert [each["restored_characters"] for each in told] == [0, 6]


def test_lists_are_cut_to_what_the_server_takes(browser: Browser, page: Page, tmp_path: Path) -> None:
    study = captions(tmp_path, 1)
    with serving(study) as server:
        begin_in(page, server.url)
        ready(page)
        page.evaluate(
            """() => {
            const field = document.getElementById("answer");
            for (let number = 0; number < 5100; number += 1) {
                for (const name of ["beforeinput", "input"]) {
                    if (name === "input") field.value = number % 2 ? "a" : "b";
                    field.dispatchEvent(new InputEvent(name, { bubbles: true, inputType: "insertText", data: "a" }));
                }
            }
        }"""
        )
        goes_on(page, 2)
    [event] = [json.loads(line) for line in (study / "events.jsonl").read_text().splitlines() if '"ask"' in line][-1:]
    assert event["traces"]["cut"] is True
    assert len(event["traces"]["keys"]) <= 5000
    assert told_of(study)[0]["unexplained_characters"] == 0


def test_nothing_of_a_participant_stays_in_the_browser_after_the_last_page(
    browser: Browser, page: Page, tmp_path: Path
) -> None:
    """But for the cookie, and the code in the tab, by which a last page is found again.

    The line in the page is not to be translated."""
    study = captions(tmp_path, 1, copied_instruction=True)
    kept = "() => [...Object.entries(localStorage), ...Object.entries(sessionStorage)]"
    with serving(study) as server:
        begin_in(page, server.url)
        ready(page)
        assert page.locator(".line-of-page").get_attribute("translate") == "no"
        page.keyboard.type("summer")
        assert {"shown", "draft", "traces"} <= {name for name, _ in page.evaluate(kept)}
        goes_on(page, 2)
        [first] = read_state(study).judges
        assert [value for _, value in page.evaluate(kept)] == [first]
        page.reload()
        page.locator(".code").wait_for()
        page.get_by_text("The pages held an instruction that nobody sees").wait_for()
        assert [value for _, value in page.evaluate(kept)] == [first]
        other = browser.new_context().new_page()
        begin_in(other, server.url)
        ready(other)
        other.on("dialog", lambda dialog: dialog.accept())
        other.keyboard.type("summer")
        other.get_by_role("button", name="Leave and delete my answers").click()
        other.get_by_text("The pages held an instruction that nobody sees").wait_for()
        assert [value for _, value in other.evaluate(kept)] == [[*read_state(study).judges][1]]
        other.context.close()
