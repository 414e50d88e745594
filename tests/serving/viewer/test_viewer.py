"""The viewer in a real Chromium, from files and from its server: what is shown is what was recorded, and only text."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError

import pytest

from serving.viewer import data as viewer_data
from serving.viewer import report
from serving.viewer.report import write_report
from serving.viewer.view import viewer
from tests.helpers.made_runs import ANSWERS, COLOR, PATH, Folder
from tests.helpers.watched_page import WatchedPage, small_targets

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

EVIL = "</script><img src=x onerror=alert(1)><script>alert(2)</script>\u202e&amp;"
HELD = 8  # chunks that the page keeps


def _many(folder: Folder) -> list[str]:
    """60 stimuli of two agents and two people; returns the lines of their records, as they are in the run."""
    for name in ("mmcq", "blip"):
        folder.agent(name, "color_estimation" if name == "mmcq" else "image_captioning")
    picture = folder.picture("a.png")
    for number in range(30):
        row = folder.ask("color_estimation", f"color/{number}", image=picture, meta={"scene": "ab"[number % 2]})
        folder.record("mmcq", row, {**COLOR, "color": "red" if number % 3 else "blue"})
        folder.record("human:1", row, {**COLOR, "color": "red"}, kind="human")
        row = folder.ask("image_captioning", f"caption/{number}", image=picture)
        caption = {**ANSWERS["image_captioning"], "text": f"=1+{number}, a Dog number {number}", "flags": []}
        if number % 10 == 0:
            folder.record("blip", row, status="failed", error={"code": "timeout", "message": "too slow"})
        else:
            folder.record("blip", row, caption)
        folder.record("human:2", row, {**caption, "text": "a cat"}, kind="human")
    folder.write()
    return [line for file in (folder.path / "records").iterdir() for line in file.read_text().splitlines()]


def _evil(folder: Folder) -> None:
    """Every task's answers, every field of stimulus and record, hostile."""
    picture = folder.picture("a.png")
    agent = f"evil {EVIL}"
    folder.agent(
        "evil",
        "color_estimation",
        settings={EVIL: EVIL},
        checkpoint=EVIL,
        revision=EVIL,
        digest=EVIL,
        versions={EVIL: EVIL},
        provenance={EVIL: [EVIL]},
    )
    for task, answer in ANSWERS.items():
        fields = dict.fromkeys(("source", "cue", "topic", EVIL), EVIL)
        history = [{"speaker": EVIL, "text": EVIL, "at": EVIL}]
        row = folder.ask(task, f"{task} {EVIL}", image=picture, meta={EVIL: EVIL}, history=history, **fields)
        text = re.sub(r'(?<=: )"(?!(maximum|stop|machine)")[^"]*"', lambda _: json.dumps(EVIL), json.dumps(answer))
        evil = json.loads(text)
        if task == "object_detection":
            evil["labels"] = [EVIL, EVIL]
        attempts = [
            {
                "attempt": 0,
                "turn": turn,
                "seed": 1,
                "answer": evil if turn is None else {"text": EVIL},
                "raw": EVIL,
                "verdicts": [{"filter": EVIL, "rejected": turn is None, "found": EVIL}],
            }
            for turn in (None, 1)
        ]
        more: dict[str, Any] = {"worker": {EVIL: EVIL}, "timing": {EVIL: EVIL}}
        more["provenance"] = {"digest": EVIL, "checkpoint": EVIL, "revision": EVIL}
        folder.records.setdefault("evil", [])
        for sample, changes in enumerate(
            (
                {"raw": {EVIL: EVIL}, "attempts": attempts, **more},
                {"kind": EVIL, "created": EVIL},
                {"status": "failed", "answer": None, "error": {"code": EVIL, "message": EVIL}},
                {"answer": {"color": {EVIL: EVIL}}},
                {"kind": "human", "answer": evil},
            )
        ):
            folder.record(agent, row, **{"answer": evil, "sample": sample, **changes})
    for name in [name for name in folder.records if name != "humans"]:
        folder.records["evil"] += folder.records.pop(name) if name != "evil" else []
    folder.ask("image_captioning", "gone", image=f"{EVIL}.png")


class Seen(WatchedPage):
    """A report's page."""

    def go(self, url: str, choices: str = "") -> Page:
        """Show a part of the page and wait until it is there."""
        self.page.goto("about:blank")  # another fragment alone loads nothing
        self.page.goto(f"{url}#{choices}")
        self.page.wait_for_function("() => performance.getEntriesByName('first screen').length > 0")
        return self.page


@pytest.fixture
def seen(browser: Browser) -> Iterator[Seen]:
    seen = Seen(browser, viewport={"width": 1400, "height": 900})
    yield seen
    seen.context.close()
    assert seen.complaints == []


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


@pytest.mark.slow
def test_choosing_and_paging(folder: Folder, seen: Seen, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(viewer_data, "CHUNK", 2_000)
    _many(folder)
    url = write_report([folder.path], tmp_path / "out").as_uri()
    page = seen.go(url, "view=list")

    def chosen() -> str:
        return page.inner_text("#found .found")

    assert chosen() == "60 pictures, 120 answers"
    assert page.locator("#found tbody tr a.open").count() == 25
    page.keyboard.press("ArrowRight")
    page.wait_for_function("() => document.querySelector('#found input').value === '2'")
    assert page.locator("#found tbody tr").first.get_attribute("aria-rowindex") == "28"  # after two rows of names
    page.go_back()
    page.wait_for_function("() => document.querySelector('#found input').value === '1'")
    for choices, wanted in {
        "only=failed": "3 pictures, 3 answers",
        "only=disagree": "37 pictures, 74 answers",  # 10 colours; all captions but the three that failed
        "agent=human%3A1": "30 pictures, 30 answers",
        "agent=*people": "60 pictures, 60 answers",
        "column=scene&value=b": "15 pictures, 30 answers",
        "task=color_estimation&agent=mmcq&q=blue": "10 pictures, 10 answers",
        "flag=none": "0 pictures, 0 answers",
    }.items():
        page.evaluate("(choices) => { location.hash = `#view=list&${choices}`; }", choices)
        page.wait_for_function("(told) => document.querySelector('#found .found').textContent === told", arg=wanted)
    page = seen.go(url, "view=list&page=2")
    page.keyboard.press("/")
    page.keyboard.type("DOG 12")
    page.wait_for_function("() => document.querySelector('#found .found').textContent.startsWith('1 ')")
    assert "q=DOG+12" in page.url
    assert "page" not in page.url
    assert page.evaluate("Turinglike.held()") <= HELD
    assert len(list((tmp_path / "out" / "data").iterdir())) > HELD + 2
    assert all(address.startswith("file://") for address in seen.asked if address != "about:blank")


@pytest.mark.slow
def test_an_answer_has_its_address_and_the_keys_go_through_the_selection(folder: Folder, seen: Seen) -> None:
    _many(folder)
    url = write_report([folder.path], single_file=True).as_uri()
    page = seen.go(url, "view=list&task=image_captioning&agent=blip")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_selector("#one article")
    assert "caption/1 " in page.inner_text("#one h2")
    page.keyboard.press("j")
    page.wait_for_function("() => document.querySelector('#one h2').textContent.includes('caption/2')")
    page.keyboard.press("ArrowLeft")
    page.wait_for_function("() => document.querySelector('#one h2').textContent.includes('caption/1')")
    assert "2 of 30" in page.inner_text("#one")
    page.click("article[data-agent='human:2'] summary")
    page.click("article[data-agent='human:2'] >> text=Link to this answer")
    page.wait_for_selector("article.wanted[data-agent='human:2']")
    address = page.url
    page.keyboard.press("Escape")
    page.wait_for_selector("#found tbody")
    page = seen.go(address.partition("#")[0], address.partition("#")[2])
    assert page.locator("article.wanted").get_attribute("data-agent") == "human:2"
    page.click("article.wanted summary")
    page.click("article.wanted summary:has-text('Record')")
    shown = page.inner_text("article.wanted .record pre")
    assert json.loads(shown) in folder.records["humans"]


@pytest.mark.slow
def test_scanpaths_lie_on_each_other_and_are_gone_through(folder: Folder, seen: Seen) -> None:
    row = folder.ask("attention_prediction", "gaze", image=folder.picture("a.png"))  # 40 x 30 pixels
    folder.agent("gbvs", "attention_prediction")
    folder.record("gbvs", row, PATH)
    scaled = {**PATH, "fixations": [[10 * x, 10 * y] for x, y in PATH["fixations"]], "frame": [400, 300]}
    folder.record("human:1", row, scaled, kind="human")
    page = seen.go(write_report([folder.write()]).as_uri(), "view=one&of=attention_prediction&stimulus=gaze")
    drawn = page.eval_on_selector_all(
        ".layer",
        "all => all.map(one => [...one.querySelectorAll('circle')].map(c => [c.cx.baseVal.value, c.cy.baseVal.value]))",
    )
    assert drawn == [PATH["fixations"]] * 2  # of two frames, in pixels of the picture
    page.focus(".overlay input[type=range]")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.inner_text(".overlay .where") == "fixation 2 of 3"
    assert page.locator(".layer >> nth=0 >> g:not([display=none])").count() == 2
    page.check("text=density of the fixations shown")
    density = page.locator("image.density")
    with_two = density.get_attribute("href")
    page.click(".overlay button:has-text('none')")
    assert density.get_attribute("visibility") == "hidden"
    assert page.locator(".layer[visibility=visible]").count() == 0
    page.click(".overlay button:has-text('people')")
    assert page.locator(".layer[visibility=visible]").count() == 1
    page.keyboard.press("End")
    page.focus(".overlay input[type=range]")
    page.keyboard.press("End")
    assert density.get_attribute("href") != with_two
    assert density.get_attribute("visibility") == "visible"


@pytest.mark.slow
def test_a_screen_with_bars_is_drawn_as_it_was_seen(folder: Folder, seen: Seen) -> None:
    """A picture of 40 x 30 on a screen of 80 x 30, between bars of 20: over each other in the picture, alone on the
    screen; a fixation on a bar is named."""
    box = {"mode": "search", "target_box": [10, 6, 4, 3]}
    row = folder.ask("attention_prediction", "gaze", image=folder.picture("a.png"), **box)
    folder.agent("gbvs", "attention_prediction")
    folder.record("gbvs", row, {**PATH, "fixations": [[0, 0], [20, 15], [40, 30]]})
    screen = {**PATH, "fixations": [[20, 0], [40, 15], [60, 30], [5, 5]], "frame": [80, 30], "fit": "bars"}
    folder.record("human:1", row, screen, kind="human")
    url = write_report([folder.write()]).as_uri()
    page = seen.go(url, "view=one&of=attention_prediction&stimulus=gaze")
    drawn = page.eval_on_selector_all(
        ".layer",
        "all => all.map(one => [...one.querySelectorAll('circle')].map(c => [c.cx.baseVal.value, c.cy.baseVal.value]))",
    )
    corners = [[0, 0], [20, 15], [40, 30]]
    assert drawn == [corners, [*corners, [-15, 5]]]
    alone = page.evaluate(
        """(answer) => {
        const picture = { url: "data:image/png;base64,", width: 40, height: 30 };
        const parts = Turinglike.scanpath(answer, { target_box: [10, 6, 4, 3] }, picture).filter(Boolean);
        const svg = parts[0].querySelector("svg");
        const box = svg.querySelector("rect.box");
        return {
          view: svg.getAttribute("viewBox"),
          kept: svg.querySelector("image").getAttribute("preserveAspectRatio"),
          box: ["x", "y", "width", "height"].map((name) => Number(box.getAttribute(name))),
          told: parts.map((part) => part.textContent).join("\\n"),
        };
        }""",
        screen,
    )
    assert (alone["view"], alone["kept"], alone["box"]) == ("0 0 80 30", "xMidYMid meet", [30, 6, 4, 3])
    assert "On the bars beside the picture: 4." in alone["told"]
    assert "Outside the frame: 3." in alone["told"]
    assert "in the middle, with bars on two sides" in alone["told"]
    page = seen.go(url, "view=list")
    page.wait_for_selector("#found .sketch polyline >> nth=3", state="attached")
    lines = page.eval_on_selector_all(
        "#found .sketch polyline.over", "all => all.map(one => one.getAttribute('points'))"
    )
    assert lines == ["0,0 20,15 40,30", "0,0 20,15 40,30 -15,5"]


@pytest.mark.slow
def test_without_the_picture_paths_of_several_screens_do_not_lie_on_each_other(folder: Folder, seen: Seen) -> None:
    row = folder.ask("attention_prediction", "gaze", image="gone.png")
    folder.agent("gbvs", "attention_prediction")
    folder.record("gbvs", row, PATH)
    screen = {**PATH, "frame": [80, 30], "fit": "bars"}
    folder.record("human:1", row, screen, kind="human")
    page = seen.go(write_report([folder.write()]).as_uri(), "view=one&of=attention_prediction&stimulus=gaze")
    assert page.locator(".layer").count() == 1
    assert "Not drawn for want of the picture: 1 path of another frame." in page.inner_text("figure.overlay")


@pytest.mark.slow
@pytest.mark.parametrize("single_file", [False, True])
def test_nothing_that_was_said_becomes_markup(folder: Folder, seen: Seen, tmp_path: Path, single_file: bool) -> None:
    _evil(folder)
    url = write_report([folder.write()], tmp_path / "out.html", single_file=single_file).as_uri()
    page = seen.go(url, "view=statistics")
    page.evaluate("() => document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    for view in ("provenance", "list"):
        page.evaluate("(view) => { location.hash = `#view=${view}`; }", view)
        page.wait_for_selector(f"#{view}:visible")
    assert page.locator("#found tbody tr").count() == 5  # four tasks about one picture stand in one row
    count = page.evaluate("Turinglike.index.stimuli.id.length")
    for number in range(count):
        page.evaluate("(number) => { location.hash = Turinglike.forOne(number); }", number)
        page.wait_for_function(
            "(id) => document.querySelector('#one h2 .quote')?.textContent === id",
            arg=page.evaluate(f"Turinglike.index.stimuli.id[{number}]"),
        )
        page.evaluate("() => document.querySelectorAll('#one details').forEach((one) => { one.open = true; })")
        assert page.locator("#one article").count() == (5 if number < count - 1 else 0)
        assert EVIL.replace("\u202e", "") in page.inner_text("#one").replace("\u202e", "")
    scripts = [file for file in report.page_files() if file.endswith(".js")]
    assert page.locator("script:not([type='application/json'])").count() == len(scripts)
    assert page.locator("[onerror], [onload], img[src=x], iframe").count() == 0


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_is_wide_enough(folder: Folder, browser: Browser, scheme: Any) -> None:
    long = "m" * 300
    picture = folder.picture("a.png")
    for task, answer in ANSWERS.items():
        folder.agent(task[:4], task)
        row = folder.ask(task, f"{task}/{long}", image=picture, cue=long, meta={long: long})
        for agent in (task[:4], "human:1"):
            filled = json.loads(json.dumps(answer).replace("zebra", long).replace("red", long).replace("morning", long))
            folder.record(agent, row, filled, kind="machine" if agent != "human:1" else "human")
    url = write_report([folder.write()]).as_uri()
    page = browser.new_page(viewport={"width": 360, "height": 740}, color_scheme=scheme)
    views = ["statistics", "list", "provenance"]
    views += [f"one&of={task}&stimulus={task}%2F{long}" for task in ANSWERS]
    for view in views:
        page.goto(f"{url}#view={view}")
        page.wait_for_function("() => document.getElementById('told').textContent === ''")
        page.wait_for_selector("main > section:visible")
        assert page.evaluate("() => document.documentElement.scrollWidth") == 360, view
    # Whoever hears the page knows what a field is for, and every figure has its name.
    unnamed = "one => !(one.labels?.length || one.ariaLabel)"
    page.goto(f"{url}#view=list")
    page.wait_for_selector("#found")
    assert page.evaluate(f"() => [...document.querySelectorAll('input, select')].filter({unnamed}).length") == 0
    page.close()


OUTSIDE = """svg => {
    const box = svg.getBoundingClientRect();
    const isOut = ({ left, right, top, bottom }) =>
        left < box.left - 2 || right > box.right + 2 || top < box.top - 2 || bottom > box.bottom + 2;
    return [...svg.querySelectorAll("text")].filter((text) => isOut(text.getBoundingClientRect()))
        .map((text) => text.textContent);
}"""
PIXELS = "svg => svg.getBoundingClientRect().width / svg.viewBox.baseVal.width"


@pytest.mark.slow
def test_no_figure_is_cut_and_its_words_can_be_read_on_a_phone(folder: Folder, browser: Browser) -> None:
    """Also after the phone is turned; the smallest letters of a drawing have ten of its pixels."""
    names = ["human:1", "human:2", *(f"agent-of-a-long-name-{at}" for at in range(6))]
    colors = ["red", "blue", "green", "gray", "black", "white"]
    for name in names[2:]:
        folder.agent(name, "color_estimation")
        folder.agent(f"gaze-{name}", "attention_prediction")
    for number in range(6):
        picture = folder.picture(f"{number}.png")
        row = folder.ask("color_estimation", f"c{number}", image=picture)
        gazed = folder.ask("attention_prediction", f"a{number}", image=picture)
        for at, name in enumerate(names):
            kind = "human" if name.startswith("human") else "machine"
            folder.record(name, row, {"color": colors[(number * at) % 6]}, kind=kind)
            if kind == "machine":
                folder.record(f"gaze-{name}", gazed, ANSWERS["attention_prediction"])
    url = write_report([folder.write()]).as_uri()
    page = browser.new_page(viewport={"width": 360, "height": 740})
    page.goto(f"{url}#view=statistics")
    drawings = page.locator("svg.chart")
    drawings.first.wait_for()
    assert drawings.count() >= 5
    for width, least in ((360, 0.95), (844, 0.6), (390, 0.95), (1280, 0.6)):
        page.set_viewport_size({"width": width, "height": 740})
        page.wait_for_function(
            "() => (document.querySelector('svg.chart').viewBox.baseVal.width < 400) === innerWidth < 640"
        )
        for at in range(drawings.count()):
            drawing = drawings.nth(at)
            assert drawing.evaluate(OUTSIDE) == [], (width, at)
            assert drawing.evaluate(PIXELS) >= least, (width, at)
            assert drawing.evaluate("svg => svg.parentElement.scrollWidth - svg.parentElement.clientWidth") <= 0
    page.set_viewport_size({"width": 390, "height": 844})
    for view in ("statistics", "list", "provenance", "one&of=color_estimation&stimulus=c1"):
        page.goto(f"{url}#view={view}")
        page.wait_for_function("() => document.getElementById('told').textContent === ''")
        page.wait_for_selector("main > section:visible")
        assert small_targets(page) == [], view
    page.close()


# from its server


@contextmanager
def serving(server: ThreadingHTTPServer) -> Iterator[str]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()


@pytest.fixture
def served(folder: Folder) -> Iterator[Callable[..., Any]]:
    """Asks the server of a run with one picture: path, and headers of the request."""
    folder.agent("mmcq", "color_estimation")
    folder.record("mmcq", folder.ask("color_estimation", "a", image=folder.picture("a.png")), COLOR)
    with viewer([folder.write()]) as server, serving(server) as address:

        def ask(path: str, **headers: str) -> Any:
            return urllib.request.urlopen(urllib.request.Request(address + path, headers=headers))

        yield ask


def test_the_server_shows_the_viewer_and_nothing_else(folder: Folder, served: Callable[..., Any]) -> None:
    with served("/") as reply:
        assert b'<script src="static/viewer.js">' in reply.read()
        assert "default-src 'none'; script-src 'self'; style-src 'self'" in reply.headers["content-security-policy"]
    with served("/data/0.js") as reply:
        assert reply.headers["content-type"] == "text/javascript; charset=utf-8"
        [stimulus] = json.loads(reply.read().removeprefix(b'Turinglike.take("0",').removesuffix(b");\n"))
    assert [json.loads(line) for line in stimulus[1]] == folder.records["mmcq"]
    with served("/pictures/0.jpg") as reply:
        assert reply.read()[:2] == b"\xff\xd8"
    assert not (folder.path / "report").exists()
    for path in (
        "/data/1.js",
        "/data/../0.js",
        "/static/../view.py",
        "/static/index.html",
        "/pictures/1.jpg",
        "/etc/passwd",
    ):
        with pytest.raises(HTTPError, match="404"):
            served(path)
    with pytest.raises(HTTPError, match="403"):
        served("/", host="evil.example")


def _data(reply: Any, name: str) -> Any:
    return json.loads(reply.read().removeprefix(f'Turinglike.take("{name}",'.encode()).removesuffix(b");\n"))


def test_a_run_that_goes_on_is_read_anew_when_the_page_asks(folder: Folder, served: Callable[..., Any]) -> None:
    first = _data(served("/data/index.js"), "index")
    assert _data(served("/data/stamp.js"), "stamp") == first["stamp"]
    folder.record("mmcq", folder.ask("color_estimation", "b", image=folder.picture("b.png")), COLOR)
    folder.write()
    assert _data(served("/data/index.js"), "index") == first  # until somebody asks
    stamp = _data(served("/data/stamp.js"), "stamp")
    latest = _data(served("/data/index.js"), "index")
    assert latest["stamp"] == stamp != first["stamp"]
    assert latest["stimuli"]["id"] == ["a", "b"]
    (folder.path / "run.json").write_text("{")  # half written: the page keeps what it has
    assert _data(served("/data/stamp.js"), "stamp") == stamp


def test_a_folder_of_runs_lists_them_and_opens_each(tmp_path: Path) -> None:
    names = ("a b", "deep/er/run")
    for name in names:
        (tmp_path / "runs" / name).parent.mkdir(parents=True, exist_ok=True)
        made = Folder(tmp_path / name.replace("/", " "))
        made.agent("mmcq", "color_estimation")
        made.record("mmcq", made.ask("color_estimation", name, image=made.picture("a.png")), COLOR)
        shutil.copytree(made.write(), tmp_path / "runs" / name)
    (tmp_path / "runs" / "damaged").mkdir()
    (tmp_path / "runs" / "damaged" / "run.json").write_text("{")
    with viewer([tmp_path / "runs"]) as server, serving(server) as address:
        page = urllib.request.urlopen(f"{address}/").read().decode()
        links = re.findall('<a href="([^"#]+)">', page)
        assert links == ["a%20b/", "deep/er/run/"]
        assert "damaged/run.json" in page
        assert b"damaged/run.json" in urllib.request.urlopen(f"{address}/damaged/").read()
        for name, link in zip(names, links, strict=True):
            assert b"viewer.js" in urllib.request.urlopen(f"{address}/{link}").read()
            reply = urllib.request.urlopen(f"{address}/{link}data/index.js")
            assert _data(reply, "index")["stimuli"]["id"] == [name]
        for path in ("/a%20b", "/../", "/a%20b/../", "/deep/"):
            with pytest.raises(HTTPError, match="404"):
                urllib.request.urlopen(address + path)


@pytest.mark.slow
def test_the_page_shows_what_a_run_writes_meanwhile(folder: Folder, seen: Seen) -> None:
    folder.agent("mmcq", "color_estimation")
    rows = [folder.ask("color_estimation", name, image=folder.picture("a.png")) for name in ("a", "b")]
    folder.record("mmcq", rows[0], COLOR)
    with viewer([folder.write()]) as server, serving(server) as address:
        page = seen.go(f"{address}/")
        page.get_by_text("2 pictures, 1 answer").wait_for()  # it opens on the answers
        page.get_by_role("link", name="b", exact=True).focus()
        folder.record("mmcq", rows[1], COLOR)
        folder.write()
        page.get_by_text("2 pictures, 2 answers").wait_for(timeout=20_000)
        assert page.evaluate("document.activeElement.textContent") == "b"
        page.close()


@pytest.mark.slow
def test_a_machines_delay_is_called_drawn(folder: Folder, seen: Seen) -> None:
    folder.agent("eliza", "conversation")
    row = folder.ask("conversation", "talk", topic="tea")
    message = ANSWERS["conversation"]["messages"][0]
    both = [{**message, "turn": at, "agent": agent, "at": 2.0} for at, agent in enumerate(("human:01", "eliza"))]
    folder.record("eliza", row, {**ANSWERS["conversation"], "messages": both})
    page = seen.go(write_report([folder.write()]).as_uri(), "view=one&of=conversation&stimulus=talk")
    assert page.locator(".chat .who small", has_text="at 2.0 s").all_inner_texts() == ["at 2.0 s", "at 2.0 s, drawn"]


def test_the_command_serves_until_it_is_ended_and_leaves_nothing(folder: Folder, tmp_path: Path) -> None:
    folder.agent("mmcq", "color_estimation")
    folder.record("mmcq", folder.ask("color_estimation", "a", image=folder.picture("a.png")), COLOR)
    (tmp_path / "temporary").mkdir()
    call = [sys.executable, "-m", "serving.cli", "view", str(folder.write())]
    environment = {**os.environ, "TMPDIR": str(tmp_path / "temporary")}
    with subprocess.Popen(call, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "reading the runs …\n"
        address = process.stdout.readline().split()[0]
        with urllib.request.urlopen(f"{address}data/index.js") as reply:
            assert b"mmcq" in reply.read()
        process.terminate()
        assert process.wait(20) == 0
    assert list((tmp_path / "temporary").iterdir()) == []
