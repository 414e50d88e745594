"""The page at ``/``: several agents side by side, and the programs that ask the same.

Each program is run as the page shows it, and must print what the page shows.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from tests.helpers.server_page import KEY, ServerPage

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Route

IMAGES = Path(__file__).parents[3] / "examples" / "images"
SAME = ("stimulus", "stimulus_sha256", "sample", "seed", "answer", "provenance")


@pytest.fixture(scope="module")
def served(browser: Browser, served: str) -> str:
    """The server of this folder's tests, which is not started where there is no browser for it."""
    return served


def programs(seen: ServerPage, number: int = 0) -> list[str]:
    """The lines of curl, Python and, where there are any, openai in a place."""
    lines = seen.unfolded("The same by program", number).locator("pre")
    lines.first.wait_for()  # they are made when the part is unfolded
    return lines.all_inner_texts()


def printed(command: list[str], folder: Path, key: str | None = None) -> str:
    """What a program prints, run in ``folder``."""
    environment = {name: value for name, value in os.environ.items() if name != "TURINGLIKE_API_KEY"}
    if key is not None:
        environment["TURINGLIKE_API_KEY"] = key
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def by_curl(lines: str, folder: Path, key: str | None = None) -> str:
    return printed(["sh", "-c", lines], folder, key)


def by_python(lines: str, folder: Path, key: str | None = None) -> str:
    return printed([sys.executable, "-c", lines], folder, key)


def same(record: Any) -> dict[str, Any]:
    """What of a record is the same, however often it is asked for."""
    return {name: record[name] for name in SAME}


def posted(route: Route) -> Any:
    """What the page posts."""
    return route.request.post_data_json


def ask(page: Page) -> None:
    page.click("#submit")
    page.wait_for_function("() => document.querySelector('#answer').getAttribute('aria-busy') === 'false'")


@pytest.mark.slow
def test_the_programs_get_the_answers_of_the_page(
    served: str, opened: Callable[..., ServerPage], tmp_path: Path
) -> None:
    seen = opened(served)
    seen.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = seen.load()
    page.select_option("#agent", "mmcq")
    page.fill("#seed", "41")
    page.click("[aria-label='Take the picture of a cup of coffee']")
    page.wait_for_selector("#image-about:has-text('420 × 280 px')")
    ask(page)
    curl, python, openai = programs(seen)
    record = seen.answered()
    assert record["stimulus"] == "page/coffee.jpg"
    assert same(json.loads(by_curl(curl, tmp_path))) == same(record)
    assert json.loads(by_python(python, tmp_path)) == record["answer"]
    assert by_python(openai, tmp_path) == record["answer"]["color"] + "\n"
    for name, lines in (("curl", curl), ("Python", python), ("openai", openai)):
        page.click(f"text=Copy the {name} lines")
        page.wait_for_function("async text => await navigator.clipboard.readText() === text", arg=lines)

    odd = tmp_path / "it's $HOME `x` \\n 'ü'.jpg"  # larger than an argument of a command may be
    odd.write_bytes((IMAGES / "china.jpg").read_bytes())
    page.set_input_files("#image", odd)
    page.click("#more summary")
    page.fill("#extra", '{"meta": {"note": "$(id) `id` \\\\ \\"quoted\\" it\'s", "odd": true, "none": null}}')
    ask(page)
    curl, python, openai = programs(seen)
    record = seen.answered()
    assert same(json.loads(by_curl(curl, tmp_path))) == same(record)
    assert json.loads(by_python(python, tmp_path)) == record["answer"]
    assert by_python(openai, tmp_path) == record["answer"]["color"] + "\n"

    page.fill("#extra", "")
    page.select_option("#agent", "null")
    page.select_option("#task", "word_association")
    page.fill("#cue", 'tea \\ "$HOME" `id` it\'s')
    page.fill("#sample", "2")
    ask(page)
    curl, python = programs(seen)  # OpenAI's interface has no sample 2 alone
    record = seen.answered()
    assert record["sample"] == 2
    assert same(json.loads(by_curl(curl, tmp_path))) == same(record)
    assert json.loads(by_python(python, tmp_path)) == record["answer"]


@pytest.mark.slow
def test_the_programs_hear_what_was_said_on_the_page(
    served: str, opened: Callable[..., ServerPage], tmp_path: Path
) -> None:
    seen = opened(served)
    page = seen.load()
    page.select_option("#agent", "eliza")
    page.click("text='travel'")
    page.select_option("#starts", "B")
    page.fill("#exchanges", "7")
    page.click("#submit")
    for text, messages in (("Let's talk about `$HOME` and \\n.", 3), ('My mother said "no".', 5)):
        page.wait_for_selector("#message:visible")
        page.fill("#message", text)
        page.keyboard.press("Enter")
        page.wait_for_selector(f".chat li:nth-child({messages}):has-text('eliza')")
        page.wait_for_function("() => document.querySelector('#message').value === ''")
    curl, python, openai = programs(seen)
    shown = page.locator(".chat .left .bubble").all_inner_texts()[1:]  # without that with which the agent began
    heard = [json.loads(line)["messages"][-1]["text"] for line in by_curl(curl, tmp_path).splitlines()]
    assert heard == shown
    assert by_python(python, tmp_path).splitlines() == shown
    assert by_python(openai, tmp_path).splitlines() == shown


@pytest.mark.slow
def test_a_key_is_never_written_into_a_program(keyed: str, opened: Callable[..., ServerPage], tmp_path: Path) -> None:
    seen = opened(keyed, KEY)
    page = seen.load()
    page.wait_for_selector("#agent option[value='null']", state="attached")
    page.select_option("#agent", "null")
    page.select_option("#task", "word_association")
    page.click("text=doctor")
    ask(page)
    curl, python, openai = programs(seen)
    assert KEY not in page.content()
    record = seen.answered()
    assert same(json.loads(by_curl(curl, tmp_path, KEY))) == same(record)
    assert json.loads(by_python(python, tmp_path, KEY)) == record["answer"]
    assert by_python(openai, tmp_path, KEY) == record["answer"]["word"] + "\n"
    assert json.loads(by_curl(curl, tmp_path, "another-key-0123456789"))["error"]["code"] == "unauthorized"


@pytest.mark.slow
def test_several_agents_are_asked_at_once(served: str, opened: Callable[..., ServerPage]) -> None:
    seen = opened(served)
    seen.page.set_viewport_size({"width": 390, "height": 800})
    held: list[Route] = []
    refused = {"error": {"code": "queue_full", "message": "the queue is full", "type": "x", "request_id": "r7"}}

    def hold(route: Route) -> None:
        task = posted(route)["stimulus"]["task"]
        if task == "image_captioning":
            held.append(route)
        elif task == "object_detection":
            route.fulfill(status=429, json=refused, headers={"retry-after": "3"})
        else:
            route.continue_()

    seen.page.route("**/answers", hold)
    page = seen.load()
    page.select_option("#agent", "mmcq")
    page.fill("#seed", "5")
    page.focus("#agent")
    for key in ("Tab", "Tab", "Enter", "Tab"):  # the agent's particulars, the other agents, the first of these
        page.keyboard.press(key)
    assert page.evaluate("() => document.activeElement.value") == "color_estimation null"
    page.keyboard.press("Space")
    for name in ("object_detection null", "attention_prediction null", "image_captioning git-base-coco"):
        page.check(f"input[value='{name}']")
    assert page.inner_text("#submit") == "Ask 5 agents"
    page.focus("[aria-label='Take the picture of a rocket']")
    page.keyboard.press("Enter")
    page.wait_for_selector("#image-about:has-text('rocket.jpg')")
    page.click("#submit")
    page.wait_for_selector("text=3 of 5 agents answered; 1 still asked …")
    places = page.locator(".place")
    assert "the queue is full" in places.nth(2).inner_text()
    assert "Try again in 3 s." in places.nth(2).inner_text()
    assert "is asked …" in places.nth(4).inner_text()
    assert page.locator(".place .bar").count() == 1  # of mmcq's colours
    held[0].continue_()
    page.wait_for_selector("text=4 of 5 agents answered.")
    image = posted(held[0])["images"]["image"]
    expected = {
        0: ("mmcq", "color_estimation", "page/rocket.jpg"),
        1: ("null", "color_estimation", "page/rocket.jpg"),
        3: ("null", "attention_prediction", "attention_prediction/page/rocket.jpg"),
        4: ("git-base-coco", "image_captioning", "page/rocket.jpg"),
    }
    for number, (agent, task, name) in expected.items():
        stimulus = {"id": name, "task": task}
        if name.startswith(task):
            stimulus["benchmark_id"] = "page/rocket.jpg"
        body = {"agent": agent, "seed": 5, "stimulus": stimulus, "images": {"image": image}}
        reply = httpx2.post(f"{served}/answers", json=body, timeout=600)
        assert same(seen.answered(number)) == same(reply.json())
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    seen.complaints.clear()  # Chromium's own line about the 429


@pytest.mark.slow
def test_several_agents_hear_the_same(served: str, opened: Callable[..., ServerPage]) -> None:
    seen = opened(served)
    page = seen.load()
    page.select_option("#agent", "eliza")
    page.click("#others-summary")
    page.check("input[value='conversation null']")
    page.select_option("#starts", "A")
    page.fill("#exchanges", "4")
    page.click("#submit")
    page.wait_for_selector("#message:visible")
    lost: list[str] = []

    def lose(route: Route) -> None:
        lost.append(route.request.url)
        if len(lost) == 1:
            route.abort()
        else:
            route.continue_()

    page.route("**/messages", lose)
    page.fill("#message", "Hello there.")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=The message was not taken")
    assert page.locator(".chat .bubble").count() == 2
    page.click("text=Send it again")
    page.wait_for_function("() => document.querySelectorAll('.chat .bubble').length === 4")
    assert page.locator("text=The message was not taken").count() == 0
    page.fill("#message", "Goodbye.")
    page.click("text='Send'")
    page.wait_for_function("() => !document.querySelector('#message').checkVisibility()")  # both are over
    for number, agent in enumerate(("eliza", "null")):
        bubbles = seen.place(number).locator(".chat .bubble").all_inner_texts()
        assert bubbles[::2] == ["Hello there.", "Goodbye."]
        record = seen.answered(number)
        assert agent in record["agent"]
        assert [one["text"] for one in record["answer"]["messages"]] == bubbles
    seen.complaints.clear()  # Chromium's own line about the request that was lost
