"""Pages of a study whose connection is lost, or that are loaded again: what is told, what is sent, what stays."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.helpers import study_folders
from tests.helpers.study_folders import begin_in, exported, serving
from tests.helpers.talk_studies import made

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

COUNT_WRITES = """() => {
    globalThis.writes = [];
    new MutationObserver((changes) => {
        for (const { addedNodes } of changes)
            for (const node of addedNodes) globalThis.writes.push(node.textContent);
    }).observe(document.getElementById("notice"), { childList: true, characterData: true, subtree: true });
}"""


def refused(page: Page, counts: dict[str, int]) -> None:
    """Count the requests of a page that no server gets, by route."""

    def note(request: Any) -> None:
        name = request.url.rsplit("/", 1)[1]
        counts[name] = counts.get(name, 0) + 1

    page.on("requestfailed", note)


def draft(page: Page) -> Any:
    return json.loads(page.evaluate("sessionStorage.getItem('draft')") or "null")


def test_a_message_without_a_connection_is_told_once_shown_and_sent_at_once_after(
    browser: Browser, tmp_path: Path
) -> None:
    study = made(tmp_path, 6, "burst", seconds_away=300.0)
    with serving(study) as server:
        pages: list[Page] = [begin_in(browser.new_context().new_page(), server.url) for _ in range(2)]
        for page in pages:
            page.get_by_role("heading", name="Conversation").wait_for()
        speaks, listens = pages
        speaks.clock.install()
        speaks.evaluate(COUNT_WRITES)
        counts: dict[str, int] = {}
        refused(speaks, counts)
        speaks.context.set_offline(True)
        listens.get_by_label("Your message").fill("Hello")  # it ends the request that waits for news; the next is lost
        listens.keyboard.press("Enter")
        speaks.get_by_text("Hello").wait_for()
        speaks.locator("#notice").get_by_text("The connection is lost.").wait_for()
        speaks.get_by_label("Your message").fill("Are you there?")
        speaks.keyboard.press("Enter")
        unsent = speaks.locator(".unsent")
        unsent.wait_for()
        assert " ".join(unsent.inner_text().split()) == "You · Not sent yet Are you there?"
        while min(counts.get("say", 0), counts.get("talk", 0)) < 3:  # both requests are tried again and again
            speaks.clock.run_for(8000)
        assert speaks.evaluate("writes") == ["The connection is lost. What you send is kept here and sent again …"]
        assert speaks.locator("main > p.note").inner_text() == ""
        assert draft(speaks)["texts"] == {"message": "Are you there?"}
        speaks.clock.pause_at(speaks.evaluate("Date.now()") + 60_000)  # from now on no timer of the page ends
        speaks.context.set_offline(False)
        listens.get_by_text("Are you there?").wait_for()
        unsent.wait_for(state="detached")
        speaks.locator("#notice").wait_for(state="hidden")
        assert speaks.get_by_text("Are you there?", exact=True).count() == 1
        speaks.locator(".write button[aria-disabled=false]").wait_for()
        assert draft(speaks) is None
        for page in pages:
            page.context.close()


def test_a_message_that_is_half_written_outlives_a_reload(browser: Browser, tmp_path: Path) -> None:
    study = made(tmp_path, exchanges=4)
    with serving(study) as server:
        pages: list[Page] = [begin_in(browser.new_context().new_page(), server.url) for _ in range(2)]
        for page in pages:
            page.get_by_role("heading", name="Conversation").wait_for()
        [speaks] = [page for page in pages if page.get_by_text("It is your turn.").is_visible()]
        field = speaks.get_by_label("Your message")
        field.fill("half a mes")
        speaks.reload()
        speaks.get_by_text("It is your turn.").wait_for()
        assert field.input_value() == "half a mes"
        field.fill("half  a message")
        kept = speaks.evaluate("sessionStorage.getItem('draft')")
        speaks.keyboard.press("Enter")
        speaks.get_by_text("The other one is writing.").wait_for()
        assert draft(speaks) is None
        # A page that is loaded again before it knows that the server has the message does not offer it again.
        speaks.evaluate("kept => sessionStorage.setItem('draft', kept)", kept)
        speaks.reload()
        speaks.get_by_text("half a message", exact=True).wait_for()
        assert field.input_value() == ""
        assert draft(speaks) is None
        for page in pages:
            page.context.close()


def test_a_draft_is_of_its_step_and_gone_after_it(browser: Browser, tmp_path: Path) -> None:
    folder = tmp_path / "pictures"
    study_folders.picture_trials(folder, 2)
    rows = [{"id": f"p{at}", "task": "image_captioning", "image": f"media/s{at:04}.png"} for at in range(2)]
    (folder / "set.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert study_folders.turinglike("study", "new", folder / "set.jsonl", "-o", tmp_path / "study") == 0
    study = study_folders.changed(tmp_path / "study", before=["country"], after=["comments"], number=2)
    with serving(study) as server:
        page: Page = browser.new_context().new_page()
        page.goto(server.url)
        for name in ("Begin", "I agree"):
            page.get_by_role("button", name=name).click()
        page.get_by_label("Country").fill("Icel")
        page.reload()
        page.get_by_label("Country").wait_for()
        assert page.get_by_label("Country").input_value() == "Icel"
        page.get_by_role("button", name="Continue").click()
        page.get_by_role("heading", name="What to do").wait_for()
        assert draft(page) is None
        page.get_by_role("button", name="Continue").click()
        for number in (1, 2):
            page.get_by_role("heading", name=f"Number {number} of 2").wait_for()
            area = page.get_by_label("Describe this image")
            area.wait_for()
            assert area.input_value() == ""
            sentence = f"A long sentence about picture {number}, the one here"
            area.fill(sentence)
            page.reload()
            page.locator("textarea:enabled").wait_for()
            assert area.input_value() == sentence
            assert list(draft(page)["texts"].values()) == [sentence]
            while page.get_by_role("heading", name=f"Number {number} of 2").is_visible():
                page.get_by_role("button", name="Continue").click()  # refused while it is too early for a sentence
                page.wait_for_timeout(500)
        page.get_by_role("heading", name="To end with").wait_for()
        assert draft(page) is None
        page.get_by_label("Anything").fill("no")
        page.get_by_role("button", name="Continue").click()
        page.locator(".code").wait_for()
        assert draft(page) is None
        page.context.close()
    assert len(exported(study)) == 2
