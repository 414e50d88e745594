"""A study over HTTP, as a process of its own: what is sent, what is refused, what a killed server has kept."""

import hashlib
import http.client
import json
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from judging.study.actions import LARGEST_BODY
from judging.study.log.state import read_state
from judging.trial_sets.blindness import detected
from judging.trial_sets.trial_set import read_trial_key
from serving.cli import main
from tests.helpers import study_folders
from tests.helpers.server_process import Server
from tests.helpers.study_folders import serving

KEY = "a-key-for-the-tests-0123"


class Browser(study_folders.Visitor):
    """A judge's."""

    def answer(self, view: Any, chance: random.Random) -> Any:
        """Answer a step as the page does."""
        said: dict[str, Any] = {}
        if view["kind"] == "trial":
            said = {"verdicts": [chance.choice(["human", "machine"]) for _ in view["speakers"]], "rt": 900.0}
        return self.post("/answer", step=view["step"], answer=said)

    def go(self, chance: random.Random, steps: int = 1000) -> Any:
        """Join, and answer so many steps, or all; returns the last view."""
        view = self.post("/join")[1]
        while steps and view["kind"] in ("instructions", "trial"):
            view = self.answer(view, chance)[1]["next"]
            steps = steps - 1
        return view


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    trials = study_folders.write_trials(folder / "T", study_folders.picture_trials(folder / "T", 60))
    return study_folders.write_study(folder / "study", trials, "image_captioning", number=30, most=1000, wanted=1000)


@pytest.fixture(scope="module")
def server(study: Path) -> Iterator[Server]:
    with serving(study, TURINGLIKE_API_KEY=KEY) as running:
        yield running


def test_nothing_on_the_wire_tells_whose_an_answer_is(server: Server, study: Path) -> None:
    """No agent, no stimulus, no truth is sent; a classifier of sizes, times, names and order is at chance."""
    key = read_trial_key(study.parent / "T.key.csv")
    by_said = {}
    for line in (study.parent / "T" / "trials.jsonl").read_text().splitlines():
        trial = json.loads(line)
        by_said[trial["answer"]["text"], Path(trial["image"]).name] = trial["id"]
    features = []
    truths = []
    stimuli = []
    for number in range(14):
        browser = Browser(server.port)
        chance = random.Random(number)
        view = browser.post("/join")[1]
        while view["kind"] in ("instructions", "trial"):
            _, headers, body = browser.heard[-1]
            if view["kind"] == "trial":
                name = view["image"].rpartition("/")[2]
                row = key[by_said[view["answer"]["text"], name]]
                began = time.perf_counter()
                size = len(browser.ask("GET", f"/{view['image']}")[1])
                took = time.perf_counter() - began
                rest = len(body) - len(json.dumps(view["answer"]["text"]))
                features.append([rest, size, took, int(name[1:5]), view["step"], len(headers), len(view["ahead"])])
                truths.append(row["truth"] == "machine")
                stimuli.append(row["stimulus"])
            view = browser.answer(view, chance)[1]["next"]
        for _, headers, body in browser.heard:
            sent = json.dumps(headers).encode() + body
            assert not any(word in sent for word in (b"alpha", b"human:1", b"picture ", b"t00"))
    found = detected(np.array(features, dtype=np.float64), np.array(truths), stimuli, 0)
    assert found["low"] < 0.53, (
        found
    )  # chance alone goes beyond 0.5 in one run of forty, and so far in one of a thousand


def test_one_judge_cannot_have_or_answer_what_another_has(server: Server, study: Path) -> None:
    mine = Browser(server.port)
    other = Browser(server.port)
    nobody = Browser(server.port)
    mine.go(random.Random(1), 3)
    other.go(random.Random(2), 2)
    state = read_state(study)
    by_cookie = {}
    for browser in (mine, other):
        session = hashlib.sha256(browser.headers["cookie"].partition("=")[2].encode()).hexdigest()
        by_cookie[browser] = state.by_session[session]
    lines = (study.parent / "T" / "trials.jsonl").read_text().splitlines()
    pictures = {trial["id"]: trial["image"] for trial in map(json.loads, lines)}
    own = {pictures[step.trials[0]] for step in by_cookie[mine].steps if step.kind == "trial"}
    foreign = sorted(set(pictures.values()) - own)
    assert foreign
    assert mine.ask("GET", f"/{sorted(own)[0]}")[0] == 200
    assert [mine.ask("GET", f"/{name}")[0] for name in foreign] == [404] * len(foreign)
    for name in ("../T.key.csv", "..%2fT.key.csv", "trials.jsonl", "%2e%2e/T.key.csv", "", "%00", "x" * 300):
        assert mine.ask("GET", f"/media/{name}")[0] == mine.ask("GET", f"/static/{name}")[0] == 404
    assert nobody.ask("GET", f"/{sorted(own)[0]}")[0] == 401
    cookie = mine.headers["cookie"].partition("=")[0]
    for value in ("", by_cookie[other].session, by_cookie[other].code, f"x; {cookie}=y"):
        forged = Browser(server.port, cookie=f"{cookie}={value}")
        assert forged.post("/answer", step=1, answer={})[0] == 401
        assert forged.post("/now")[1] == {"kind": "welcome"}
    before = by_cookie[other].step
    assert mine.post("/answer", step=3, answer={"verdicts": ["human"], "judge": by_cookie[other].code})[0] == 422
    assert mine.post("/answer", step=9, answer={"verdicts": ["human"]})[0] == 409
    assert read_state(study).judges[by_cookie[other].code].step == before


def test_the_link_says_who_it_is(study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Judges come to a machine of the lab one after the other, or leave a tab open there."""
    folder = study_folders.write_study(
        tmp_path / "study",
        study.parent / "T",
        "image_captioning",
        number=25,
        entry="links",
        reload="block",
    )

    def links(number: int) -> list[str]:
        assert main(["study", "links", str(folder), str(number)]) == 0
        return [line.partition("?link=")[2] for line in capsys.readouterr().out.splitlines()]

    one, two = links(2)
    assert not any(link in (folder / "links.jsonl").read_text() for link in (one, two))
    with serving(folder) as server:
        browser = Browser(server.port)
        digest = hashlib.sha256(one.encode()).hexdigest()
        wrong: list[dict[str, str]] = [{}, {"link": ""}, {"link": "guess"}, {"link": digest}]
        assert [browser.post("/join", **link)[0] for link in wrong] == [403] * 4
        first = browser.post("/join", link=one)[1]
        first = browser.answer(first, random.Random(1))[1]["next"]
        assert browser.post("/now", loaded=True)[1] == browser.post("/now", link=one)[1] == first
        assert browser.post("/now", loaded=True, link=two)[1] == {"kind": "welcome"}
        second = browser.post("/join", link=two)[1]
        second = browser.answer(second, random.Random(1))[1]["next"]
        assert second["step"] == first["step"]
        said = {"verdicts": ["human"], "rt": 900.0}
        assert browser.post("/answer", step=first["step"], list=first["list"], answer=said)[0] == 409
        assert browser.post("/answer", step=second["step"], list=second["list"], answer=said)[0] == 200
        assert browser.post("/join", link=one)[1] == first
        assert browser.post("/join", link=two)[1]["kind"] == "blocked"  # a page that is loaded again
        assert browser.post("/answer", step=second["step"] + 1, list=second["list"], answer=said)[0] == 409
        assert Browser(server.port).post("/join", link=links(1)[0])[0] == 200  # made while it is served


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        ({"origin": "http://evil.example"}, b"{}", 403),
        ({"host": "evil.example"}, b"{}", 403),
        ({"content-type": "application/x-www-form-urlencoded"}, b"step=1", 415),
        ({}, b'{"step": true}', 422),
        ({}, b"[" * 30_000, 400),
        ({}, b'"' + b"x" * LARGEST_BODY + b'"', 413),
    ],
)
def test_what_no_page_sends_is_refused(server: Server, headers: dict[str, str], body: bytes, status: int) -> None:
    browser = Browser(server.port)
    browser.go(random.Random(1), 2)
    browser.headers |= headers
    found, said = browser.ask("POST", "/answer", body)
    assert found == status
    assert set(json.loads(said)) == {"error"}


def test_the_cookie_is_out_of_reach_and_the_lab_alone_sees_how_far_it_is(server: Server) -> None:
    for scheme in ("http", "https"):
        browser = Browser(server.port, origin=f"{scheme}://127.0.0.1:{server.port}")
        browser.post("/join")
        cookie = browser.heard[-1][1]["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert ("secure" in cookie) == (scheme == "https")
    for key in ("", "Bearer ", "Bearer wrong", f"Basic {KEY}"):
        assert Browser(server.port, authorization=key).ask("GET", "/admin/status")[0] == 401
    status, body = Browser(server.port, authorization=f"Bearer {KEY}").ask("GET", "/admin/status")
    assert (status, json.loads(body)["judges"]["wanted"]) == (200, 1000)


def test_a_killed_server_has_kept_what_it_told_and_nothing_twice(study: Path, tmp_path: Path) -> None:
    """Ten judges at once; the server is killed; each goes on where they were."""
    folder = study_folders.write_study(
        tmp_path / "study", study.parent / "T", "image_captioning", number=25, most=100, wanted=100
    )
    told = {}
    lock = threading.Lock()
    ports = [0]
    is_over = threading.Event()

    def judge(number: int) -> None:
        browser = Browser(0)
        chance = random.Random(number)
        view = None
        while not is_over.is_set() and (view is None or view["kind"] != "end"):
            try:
                browser.port = ports[0]
                browser.headers["origin"] = f"http://127.0.0.1:{ports[0]}"
                if view is None:
                    view = browser.post("/now", loaded=True)[1]
                    if view["kind"] == "welcome":
                        view = browser.post("/join")[1]
                    continue
                said = {"verdicts": [chance.choice(["human", "machine"])]} if view["kind"] == "trial" else {}
                status, reply = browser.post("/answer", step=view["step"], answer=said)
                assert status == 200, reply
                if view["kind"] == "trial" and reply["new"]:
                    with lock:
                        told[browser.headers["cookie"].partition("=")[2], view["step"]] = said["verdicts"]
                view = reply["next"]
            except (OSError, http.client.HTTPException):
                view = None  # the page is loaded again
                time.sleep(0.05)

    judges = [threading.Thread(target=judge, args=(number,)) for number in range(10)]
    try:
        with serving(folder) as server:
            ports[0] = server.port
            for one in judges:
                one.start()
            while len(told) < 100:
                time.sleep(0.01)
            os.killpg(server.process.pid, signal.SIGKILL)
            server.process.wait()
        with serving(folder) as server:
            ports[0] = server.port
            for one in judges:
                one.join(60)
    finally:
        is_over.set()
    state = read_state(folder)
    assert Counter(one.ended for one in state.judges.values()) == {"finished": 10}
    for (token, step), verdicts in told.items():
        assert state.by_session[hashlib.sha256(token.encode()).hexdigest()].answers[step].verdicts == verdicts
    steps = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    assert max(Counter((one["judge"], one["step"]) for one in steps if one["event"] == "step").values()) == 1


def test_what_cannot_be_written_is_sent_again(server: Server, study: Path, tmp_path: Path) -> None:
    """As when an editor saved another file in its place: a page tries again at 503, until a server can write."""
    folder = study_folders.write_study(tmp_path / "study", study.parent / "T", "image_captioning", number=25)
    browser = Browser(0)
    chance = random.Random(1)
    elsewhere = Browser(server.port)
    elsewhere.post("/join")
    said = {"verdicts": ["human"], "rt": 900.0}
    for at in range(2):
        with serving(folder) as of_here:
            browser.port = of_here.port
            browser.headers["origin"] = f"http://127.0.0.1:{of_here.port}"
            if at == 0:
                view = browser.go(chance, 3)
                (folder / "events.jsonl").rename(folder / "moved")
                (folder / "events.jsonl").write_bytes((folder / "moved").read_bytes())
            status, reply = browser.post("/answer", step=3, list=view["list"], answer=said)
            assert (status, reply.get("new")) == ((503, None), (200, True))[at]
    # A browser sends a host's cookies to all its ports: each study's has a name of its own.
    assert browser.headers["cookie"].partition("=")[0] != elsewhere.headers["cookie"].partition("=")[0]
