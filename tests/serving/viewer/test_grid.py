"""The grid in a real Chromium: what stands beside what, how it is arranged, and that the address keeps it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from serving.runs.status import status
from serving.viewer import data as viewer_data
from serving.viewer.report import write_report
from serving.viewer.view import viewer
from tests.helpers.made_runs import ANSWERS, COLOR, PATH, Folder
from tests.serving.viewer.test_viewer import Seen, serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.slow
COLORS = ("red", "blue", "green", "red")
FLAGGED = 3  # the picture whose caption has a flag


@pytest.fixture
def seen(browser: Browser) -> Iterator[Seen]:
    seen = Seen(browser, viewport={"width": 1400, "height": 900})
    yield seen
    seen.context.close()
    assert seen.complaints == []


def _two_runs(tmp_path: Path) -> list[Path]:
    """Two runs over four pictures: colours and paths of a machine and two people, then captions."""
    folders = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        folders.append(Folder(tmp_path / name))
    first, second = folders
    second.set = first.set
    first.agent("mmcq", "color_estimation")
    first.agent("gbvs", "attention_prediction")
    second.agent("blip", "image_captioning")
    for number, color in enumerate(COLORS):
        name = f"p{12 - number}.png"
        picture = first.picture(name, (number, 0, 0))
        row = first.ask("color_estimation", name, image=picture, meta={"scene": "in" if number == 0 else "out"})
        first.record("mmcq", row, {**COLOR, "color": color})
        for person in (1, 2):
            first.record(f"human:{person}", row, {**COLOR, "color": "red"}, kind="human")
        looked = first.ask("attention_prediction", f"gaze {name}", image=picture, benchmark_id=name)
        first.record("gbvs", looked, PATH)
        caption = {
            **ANSWERS["image_captioning"],
            "text": f"caption {number}",
            "flags": ["cut"] if number == FLAGGED else [],
        }
        second.record("blip", second.ask("image_captioning", name, image=picture), caption)
    return [first.write(), second.write().rename(tmp_path / "captions")]


def _cells(page: Page) -> list[list[str]]:
    """What stands in the rows, without what is only drawn."""
    return page.eval_on_selector_all(
        "#found tbody tr",
        """all => all.map((row) => [...row.cells].map((cell) =>
          [...cell.querySelectorAll("a.open, .quote, .share, .said > small")]
            .filter((one) => !one.querySelector(".quote")).map((one) => one.textContent).join(" ")
            || cell.textContent))""",
    )


def _heads(page: Page) -> list[str]:
    return page.locator("#found thead tr").nth(1).locator("th").all_inner_texts()


def test_what_failed_stays_in_its_column_and_a_name_breaks_before_its_ending(tmp_path: Path, seen: Seen) -> None:
    """A message without blanks, and a name that is a little too long for a telephone's first column."""
    folder = Folder(tmp_path)
    for agent in ("hf-tiny-vlm", "mmcq"):
        folder.agent(agent, "color_estimation")
    picture = folder.picture("Chelsea.JPG")
    row = folder.ask("color_estimation", "Chelsea.JPG", image=picture)
    error = {"code": "unparsable", "message": "no colour in the reply:\xa0'blis\\x0fgeure4ecEMLdyellosZ0btheqac'"}
    folder.record("hf-tiny-vlm", row, status="failed", error=error)
    folder.record("mmcq", row, COLOR)
    page = seen.go(write_report([folder.write()], tmp_path / "out").as_uri())
    wide = """cell => {
        const [box, ...parts] = [cell, ...cell.querySelectorAll("*")].map((part) => part.getBoundingClientRect());
        return Math.max(...parts.map((part) => part.right)) - box.right; }"""
    page.locator(".failure").wait_for()
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.eval_on_selector("td:has(.failure)", wide) <= 0
    lines = """link => { const range = document.createRange();
        range.selectNodeContents(link.querySelector(".quote").firstChild);
        return range.getClientRects().length; }"""
    assert page.eval_on_selector("#found a.open", lines) == 1  # "Chelsea" is whole


def test_columns_are_ordered_pinned_hidden_and_grouped(tmp_path: Path, seen: Seen) -> None:
    url = write_report(_two_runs(tmp_path), tmp_path / "out").as_uri()
    page = seen.go(url)
    assert page.locator("#found thead tr").nth(0).locator("th").all_inner_texts() == [
        "Colour estimation",
        "Attention prediction",
        "Image captioning",
    ]
    assert _heads(page) == ["picture", "agreement", "mmcq", "people", "gbvs", "blip"]
    # Of the three pairs of a machine and two people all agree, or one.
    assert _cells(page) == [
        ["p12.png", "100 %", "red", "red 2 answers", "3 fixations", "caption 0"],
        ["p11.png", "33 %", "blue", "red 2 answers", "3 fixations", "caption 1"],
        ["p10.png", "33 %", "green", "red 2 answers", "3 fixations", "caption 2"],
        ["p9.png", "100 %", "red", "red 2 answers", "3 fixations", "caption 3"],
    ]
    page.wait_for_selector("#found .sketch polyline >> nth=7", state="attached")
    # A column's name orders by it, once more turns that round; the choice is in the address.
    for direction, wanted in (("ascending", ["p11", "p10", "p12", "p9"]), ("descending", ["p12", "p9", "p10", "p11"])):
        page.click("#found thead button:has-text('mmcq')")
        page.wait_for_selector(f"#found thead th[aria-sort={direction}]:has-text('mmcq')")
        assert [row[0] for row in _cells(page)] == [f"{name}.png" for name in wanted]
        assert page.evaluate("document.activeElement.dataset.key") == "color_estimation/mmcq"
    page.select_option("label:has-text('Order') select", "flags")
    page.wait_for_function("() => document.querySelector('#found a.open').textContent === 'p9.png'")
    page.select_option("label:has-text('Order') select", "disagreement")
    page.wait_for_function("() => document.querySelector('#found a.open').textContent === 'p11.png'")
    page.select_option("label:has-text('Order') select", "name")
    page.wait_for_function("() => document.querySelector('#found a.open').textContent === 'p9.png'")  # 9 before 10
    # The columns' part.
    page.click("#columns summary")
    page.click("#columns [data-pin='image_captioning/blip']")
    page.wait_for_selector("#found thead th.pinned:has-text('blip')")
    assert page.evaluate("document.activeElement.dataset.pin") == "image_captioning/blip"
    page.uncheck("#columns [data-show='color_estimation/mmcq']")
    page.uncheck("#columns [data-all='attention_prediction']")
    page.check("#columns .each input")
    page.wait_for_function("() => document.querySelectorAll('#found thead tr:nth-child(2) th').length === 5")
    assert _heads(page) == ["picture ▲", "blip", "agreement", "human:1", "human:2"]
    page.select_option("label:has-text('Group') select", "meta.scene")
    page.wait_for_selector("#found tr.group")
    arranged = _cells(page)
    assert [row[0] for row in arranged] == ["out", "p9.png", "p10.png", "p11.png", "in", "p12.png"]
    assert page.locator("nav[aria-label=Groups] li").all_inner_texts() == ["out 3", "in 1"]
    # Another browser that gets the address shows the same.
    page = seen.go(url, page.url.partition("#")[2])
    assert _cells(page) == arranged
    assert _heads(page) == ["picture ▲", "blip", "agreement", "human:1", "human:2"]
    assert page.locator("#found thead th.pinned").count() == 2  # in both rows of names
    # Tasks of a picture are one click apart; the way back leads to its row.
    page.click("#found a.open:has-text('p11.png')")
    page.click("nav[aria-label='Tasks of this stimulus'] >> text=Image captioning")
    page.wait_for_selector("article[data-agent=blip]")
    assert "3 of 4" in page.inner_text("#one")


def test_the_arrow_keys_go_from_cell_to_cell(tmp_path: Path, seen: Seen) -> None:
    """One cell can be reached by the tab key, and what has the focus is always in sight."""
    page = seen.go(write_report(_two_runs(tmp_path), tmp_path / "out").as_uri())
    page.set_viewport_size({"width": 390, "height": 700})
    assert page.locator("#found [tabindex='0']:is(a, button)").count() == 1

    def focused() -> str:
        return str(page.evaluate("document.activeElement.textContent.trim()"))

    page.focus("#found .grid")
    page.keyboard.press("Tab")
    assert focused() == "p12.png"
    for key, wanted in {
        "ArrowDown": "p11.png",
        "End": "caption 1",
        "ArrowUp": "caption 0",
        "ArrowLeft": "3 fixations",
        "Home": "p12.png",
        "ArrowLeft+": "p12.png",
    }.items():
        page.keyboard.press(key.rstrip("+"))
        assert focused() == wanted
        box = page.evaluate("JSON.parse(JSON.stringify(document.activeElement.getBoundingClientRect()))")
        assert 0 <= box["x"] < box["x"] + box["width"] <= 390
    page.keyboard.press("ArrowUp")
    assert focused() == "picture"
    page.keyboard.press("j")
    page.keyboard.press("j")
    assert page.locator("#found [tabindex='0']:is(a, button)").count() == 1
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.wait_for_selector("article.wanted[data-agent=mmcq]")
    page.keyboard.press("Escape")
    page.wait_for_selector("#found tbody")
    assert focused() == "p11.png"  # where one has come from
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_two_pictures_of_one_name_have_pages_of_their_own(tmp_path: Path, seen: Seen) -> None:
    paths = []
    for nth, name in enumerate(("first", "second")):
        (tmp_path / name).mkdir()
        folder = Folder(tmp_path / name)
        folder.agent("mmcq", "color_estimation")
        row = folder.ask("color_estimation", "dog.png", image=folder.picture("dog.png", (100 * nth, 0, 0)))
        folder.record("mmcq", row, {**COLOR, "color": ("red", "blue")[nth]})
        paths.append(folder.write().rename(tmp_path / f"run-{name}"))
    page = seen.go(write_report(paths, tmp_path / "out").as_uri())
    assert [row[0] for row in _cells(page)] == ["dog.png", "dog.png"]
    page.locator("#found a.open").nth(1).click()
    page.wait_for_selector("#one article")
    assert "blue" in page.inner_text("#one article")
    page.keyboard.press("k")
    page.wait_for_function("() => document.querySelector('#one article').textContent.includes('red')")


def test_a_large_index_shows_its_first_rows_and_then_all(
    tmp_path: Path, seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(viewer_data, "LARGE", 1)
    folder = Folder(tmp_path)
    folder.agent("gbvs", "attention_prediction")
    picture = folder.picture("a.png")
    for number in range(60):
        folder.record("gbvs", folder.ask("attention_prediction", str(number), image=picture), PATH)
    with viewer([folder.write()]) as server, serving(server) as address:
        page = seen.go(f"{address}/")
        assert page.evaluate("performance.getEntriesByName('first rows').length") == 1
        page.wait_for_selector("#found .sketch polyline", state="attached")
        page.keyboard.press("ArrowRight")
        page.wait_for_function("() => document.querySelector('#found a.open').textContent === '25'")
        page = seen.go(f"{address}/", "page=3&view=list")
        assert page.evaluate("performance.getEntriesByName('first rows').length") == 0
        assert page.locator("#found a.open").first.inner_text() == "50"
        page.close()


def test_a_run_that_goes_on_tells_its_pace(tmp_path: Path, seen: Seen) -> None:
    """The same figures as `turinglike status`."""
    folder = Folder(tmp_path)
    folder.agent("mmcq", "color_estimation")
    picture = folder.picture("a.png")
    for number in range(50):
        row = folder.ask("color_estimation", str(number), image=picture)
        if number < 20:
            timing = {"waiting": 0.0, "preparing": 0.01, "responding": 0.5}
            worker = {"host": "here", "device": "cpu", "batch_size": 1}
            created = f"2026-01-02T03:04:{number:02}.000Z"
            folder.record("mmcq", row, COLOR, created=created, timing=timing, worker=worker)
    run = folder.write()
    told: dict[str, Any] = status(run)["agents"]["mmcq"]
    assert told["rate"] == pytest.approx(1, rel=0.1)
    with viewer([run]) as server, serving(server) as address:
        page = seen.go(f"{address}/")
        text = page.inner_text("#progress li")
        assert page.eval_on_selector("#progress progress", "one => [one.value, one.max]") == [20, 50]
        assert "20 of 50 answers · 1/s lately · 30 s" in text
        assert "left at this pace · last answer at " in text
        page.close()
