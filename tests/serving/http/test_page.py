"""The page at ``/``: its files and their headers, and what people see of it in a real, headless Chromium.

The browser is that of `tests/conftest.py`.
"""

from __future__ import annotations

import base64
import re
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError

import httpx2
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from serving.http import page as served_page
from tests.helpers.server_page import KEY, ServerPage

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

STATIC = served_page.STATIC
IMAGES = Path(__file__).parents[3] / "examples" / "images"

# the files


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    app.include_router(served_page.router())
    with TestClient(app) as client:
        yield client


@pytest.mark.parametrize("name", sorted(file.name for file in STATIC.iterdir()))
def test_a_file_is_served_as_it_is(client: TestClient, name: str) -> None:
    reply = client.get("/" if name == "index.html" else f"/static/{name}")
    assert (reply.status_code, reply.content) == (200, (STATIC / name).read_bytes())
    kind = {
        "html": "text/html",
        "css": "text/css",
        "js": "text/javascript",
        "svg": "image/svg+xml",
        "jpg": "image/jpeg",
        "txt": "text/plain",
    }
    assert reply.headers["content-type"].partition(";")[0] == kind[name.rpartition(".")[2]]
    assert reply.headers["cache-control"] == "no-cache"
    assert reply.headers["referrer-policy"] == "no-referrer"
    assert "set-cookie" not in reply.headers


@pytest.mark.parametrize("name", ["nothing.js", "..%2fpage.py", "%2e%2e/page.py"])
def test_no_other_file_is_served(client: TestClient, name: str) -> None:
    assert client.get(f"/static/{name}", follow_redirects=False).status_code == 404


@pytest.mark.parametrize("path", ["/", "/docs"])
def test_a_page_runs_nothing_but_our_files(client: TestClient, path: str) -> None:
    policy = client.get(path).headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy


def test_nothing_is_asked_of_anybody_else() -> None:
    names = {"http://www.w3.org/2000/svg"}  # of a namespace, which nobody fetches
    for file in STATIC.iterdir():
        if file.suffix == ".jpg":
            continue
        text = file.read_text()
        assert set(re.findall(r"\b(?:https?|wss?|ftp)://[^\s\"'`<>)]*", text)) <= names, file.name
        assert not re.search(r"@import|url\(|[\"'`(]//\w", text), file.name


def test_what_is_said_never_becomes_markup() -> None:
    ways = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|srcdoc|DOMParser"
    for file in STATIC.glob("*.js"):
        assert not re.search(ways, file.read_text()), file.name


# in a browser


@pytest.fixture(scope="module")
def served(browser: Browser, served: str) -> str:
    """The server of this folder's tests, which is not started where there is no browser for it."""
    return served


def test_the_interface_is_described_and_tried(keyed: str, opened: Callable[..., ServerPage]) -> None:
    page = opened(keyed, KEY).page
    page.goto(f"{keyed}/docs")
    asking = page.locator(".opblock-post").first
    asking.locator("button.opblock-summary-control").click()
    asking.get_by_label("The body of the request").fill(
        '{"agent": "null", "stimulus": {"id": "tea", "task": "word_association", "cue": "tea"}}'
    )
    asking.locator("button.execute").click()
    found = asking.locator(".live-responses-table .response")
    assert "200" in found.locator(".response-col_status").inner_text()
    assert "turinglike.record/1" in found.inner_text()


def tab_to(page: Page, wanted: str) -> None:
    """Press Tab until the element has the focus, which must be seen on it."""
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("(id) => document.activeElement.id === id", wanted):
            outline = page.evaluate("() => getComputedStyle(document.activeElement).outlineStyle")
            assert outline != "none", wanted
            return
    raise AssertionError(f"Tab does not reach {wanted}")


@pytest.mark.slow
def test_the_keyboard_alone_asks_what_any_client_asks(served: str, opened: Callable[..., ServerPage]) -> None:
    seen = opened(served)
    # the browser needs a while until it leaves the choice of a file to somebody who listens
    seen.page.on("filechooser", lambda chooser: None)
    page = seen.load()
    page.wait_for_function("() => document.querySelectorAll('#agent option').length > 3")
    page.fill("#seed", "41")
    page.fill("#sample", "3")
    page.focus("body")
    tab_to(page, "agent")
    page.keyboard.type("mmcq")
    assert page.input_value("#agent") == "mmcq"
    assert "Colour estimation" in page.inner_text("#agent-about")
    tab_to(page, "image")
    with page.expect_file_chooser() as chooser:
        page.keyboard.press("Space")
    chooser.value.set_files(IMAGES / "coffee.png")
    tab_to(page, "submit")
    page.keyboard.press("Enter")
    page.wait_for_selector("#shown .bar")
    answer = seen.answered()["answer"]
    assert page.inner_text("#status") == f"mmcq answered: {answer['color']}"
    counted = [one for one in answer["palette"] if one["population"] > 0]
    shown = page.eval_on_selector_all(
        ".bar span", "parts => parts.map(part => [part.style.backgroundColor, +part.style.flexGrow])"
    )
    assert shown == [["rgb({}, {}, {})".format(*one["rgb"]), one["population"]] for one in counted]
    named = page.inner_text(".legend li:has(strong)")
    assert named.startswith("#{:02x}{:02x}{:02x}".format(*answer["rgb"]))
    assert named.endswith(f"{answer['css_name']}, {answer['color']}")
    stimulus = {"id": "page/coffee.png", "task": "color_estimation"}
    images = {"image": base64.b64encode((IMAGES / "coffee.png").read_bytes()).decode()}
    body = {"agent": "mmcq", "seed": 41, "sample": 3, "stimulus": stimulus, "images": images}
    expected = httpx2.post(f"{served}/answers", json=body, timeout=600).json()
    same = ("stimulus", "stimulus_sha256", "sample", "seed", "answer", "provenance")
    assert {name: seen.answered()[name] for name in same} == {name: expected[name] for name in same}


@pytest.mark.slow
def test_a_person_and_an_agent_talk(served: str, opened: Callable[..., ServerPage]) -> None:
    seen = opened(served)
    page = seen.load()
    page.select_option("#agent", "eliza")
    page.fill("#topic", "books")
    page.select_option("#starts", "A")
    page.fill("#exchanges", "4")
    page.fill("#seed", "7")
    page.keyboard.press("Enter")
    page.wait_for_selector("#message")
    assert page.evaluate("() => document.activeElement.id") == "message"
    said = ["I lost all my <b>books</b> today.", "1, 2, 3, 4, 5, 6, 7, <b>8</b>"]
    page.keyboard.type(said[0])
    page.keyboard.press("Enter")
    page.wait_for_selector(".chat li:nth-child(2):has-text('eliza')")
    page.wait_for_function("() => document.querySelector('#message').value === ''")
    page.click("text=The conversation as JSON")
    page.wait_for_selector("section.record pre")
    page.fill("#message", said[1])
    page.click("text=Send")
    page.wait_for_selector("text=The conversation is over")
    page.wait_for_function("() => document.querySelector('section.record pre').textContent.includes('\"turn\": 3')")
    messages = seen.answered()["answer"]["messages"]
    assert [one["text"] for one in messages[::2]] == said
    assert page.locator(".chat .bubble").all_inner_texts() == [one["text"] for one in messages]
    sides = page.eval_on_selector_all(".chat li", "rows => rows.map(row => row.className)")
    assert sides == ["right", "left", "right", "left"]
    assert "list" in page.inner_text(".chat li:nth-child(3) .flag")
    assert not page.is_visible("#message")
    with page.expect_request(lambda request: request.method == "DELETE"):
        page.click("#submit")  # the one before is forgotten
    page.wait_for_selector("#message:visible")


@pytest.mark.slow
def test_in_a_burst_messages_arrive_in_the_order_in_which_they_were_written(
    served: str, opened: Callable[..., ServerPage]
) -> None:
    page = opened(served).load()
    page.select_option("#agent", "eliza")
    page.select_option("#talk-mode", "burst")
    page.select_option("#starts", "A")
    page.click("#submit")
    page.wait_for_selector("#message")
    held: list[Any] = []
    page.route("**/messages", lambda route: route.continue_() if held else held.append(route))
    for text in ("first", "second"):
        page.fill("#message", text)
        page.keyboard.press("Enter")
    page.wait_for_timeout(100)
    held[0].continue_()
    page.wait_for_function("() => document.querySelectorAll('.chat li').length === 2")
    assert page.locator(".chat .bubble").all_inner_texts() == ["first", "second"]


@pytest.mark.slow
def test_a_key_is_asked_for(keyed: str, opened: Callable[..., ServerPage]) -> None:
    with pytest.raises(HTTPError, match="401"):
        urllib.request.urlopen(f"{keyed}/agents")
    seen = opened(keyed)
    page = seen.load()
    page.wait_for_selector("#key-panel:visible")
    assert page.evaluate("() => document.activeElement.id") == "key"
    with page.expect_response("**/agents") as reply:
        page.keyboard.type("a-wrong-key-of-some-length")
        page.keyboard.press("Enter")
    page.wait_for_selector("text=does not accept this key")
    assert reply.value.headers["x-request-id"] in page.inner_text("#key-error")
    page.fill("#key", "not ascii: ü")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=letters, digits and signs of ASCII")
    page.fill("#key", KEY)
    page.keyboard.press("Enter")
    page.wait_for_selector("#key-panel", state="hidden")
    assert page.evaluate("() => document.activeElement.id") == "agent"
    page.reload()
    page.wait_for_function("() => document.querySelectorAll('#agent option').length === 4")
    assert not page.is_visible("#key-panel")
    assert not any(KEY in url for url in seen.asked)
    kept = page.evaluate("() => [document.cookie, JSON.stringify(localStorage), Object.values(sessionStorage)]")
    assert kept == ["", "{}", [KEY]]
    page.click("#forget")
    assert page.evaluate("() => sessionStorage.length") == 0
    assert page.is_visible("#key-panel")
    assert {text for text in seen.complaints if "401" not in text} == set()
    seen.complaints.clear()


@pytest.mark.slow
def test_a_scanpath_is_played(keyed: str, opened: Callable[..., ServerPage]) -> None:
    seen = opened(keyed, KEY)
    page = seen.load()
    page.select_option("#agent", "gbvs")
    page.wait_for_selector("text=loads when it is first asked")
    page.clock.install(time=0)
    page.clock.pause_at(1)  # from here on the page's time is what the test lets pass
    page.set_input_files("#image", IMAGES / "china.jpg")
    page.click("#submit")
    page.wait_for_selector("svg.canvas")
    answer = seen.answered()["answer"]
    fixations = answer["fixations"]
    frame = answer["frame"]
    assert frame == [640, 427]
    drawn = page.eval_on_selector_all(
        ".fixation", "all => all.map(one => [one.cx.baseVal.value, one.cy.baseVal.value])"
    )
    assert [one == pytest.approx(point, abs=0.1) for one, point in zip(drawn, fixations, strict=True)] == [True] * 15
    ring = (
        "() => { const ring = document.querySelector('.ring'); return [ring.cx.baseVal.value, ring.cy.baseVal.value]; }"
    )
    for number in (1, 2, 3):
        page.clock.run_for(1 if number == 1 else 300)
        assert page.inner_text(".where") == f"fixation {number} of 15"
        assert page.evaluate(ring) == pytest.approx(fixations[number - 1], abs=0.1)
        assert page.is_visible(".ring")
    page.click("text=Pause")
    page.clock.run_for(5000)
    assert page.inner_text(".where") == "fixation 3 of 15"
    page.focus("input[type=range]")
    page.keyboard.press("End")
    assert page.evaluate(ring) == pytest.approx(fixations[-1], abs=0.1)
    page.click("text=Play")
    page.clock.run_for(300 * 17)
    assert page.inner_text(".where") == "the whole path"
    assert not page.is_visible(".ring")
    page.clock.run_for(2000)
    page.wait_for_selector("#agent-about .badge:has-text('ready')")  # it was loaded for this
