"""Trial sets and studies for testing what serves them, written by hand."""

import asyncio
import hashlib
import http.client
import json
import os
import random
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from PIL import Image as PILImage

from agents.stimuli import canonical, parse_row
from judging.study.design.presets import study_of_judges
from judging.study.kinds import material_of
from judging.study.log.events import Event
from judging.study.log.participant_events import Joined
from judging.study.log.state import Judge
from judging.study.log.steps import MaterialStep
from judging.study.serving_study import ServedStudy
from judging.trial_sets.trial_set import COLUMNS, QUESTION_OF_PAIRS, QUESTIONS, about_path, key_path
from serving.cli import main
from serving.runs.records import problems
from tests.helpers import server_process

BAD = "<img src=x onerror=document.title='broken'>"  # what is said, and never becomes markup
WORDS = ("sun", "tea", "house", "river", "green", "dog", "bread", "night")
Row = dict[str, Any]


def word_trials(number: int, agents: Sequence[str] = ("alpha", "beta"), catch: int = 0) -> list[tuple[Row, Row]]:
    """(trial, row of the key): to each of ``number`` cues a person's association and one of each agent, in a drawn
    order; to the first ``catch`` cues one to catch, too."""
    chance = random.Random(0)
    rows = []
    for at in range(number):
        for agent in ["human:1", *agents, *(["catcher"] if at < catch else [])]:
            truth = "human" if agent == "human:1" else "machine"
            trial = {"answer": {"word": chance.choice(WORDS)}, "cue": f"cue{at}", "shown": f"s{at:04}"}
            rows.append(
                (trial, {"agent": agent, "truth": truth, "stimulus": f"stimulus {at}", "catch": agent == "catcher"})
            )
    return _numbered("word_association", rows, chance)


def with_delays(rows: list[tuple[Row, Row]]) -> list[tuple[Row, Row]]:
    """The same trials of conversations, whose messages but the first show delays: 1.5 seconds, 3, 4.5 and so on."""
    for trial, _ in rows:
        for answer in (trial["answer"], trial.get("beside") or {"messages": []}):
            answer["messages"] = [
                {**message, "delay_s": 1.5 * place} if place else message
                for place, message in enumerate(answer["messages"])
            ]
    return rows


def conversation_trials(number: int) -> list[tuple[Row, Row]]:
    """Both speakers of ``number`` excerpts of each of the four pairs."""
    chance = random.Random(1)
    rows = []
    kinds = [("human", "human"), ("human", "machine"), ("machine", "human"), ("machine", "machine")]
    for at, truths in enumerate(kinds * number):
        messages = [{"speaker": "AB"[turn % 2], "text": f"{at} {chance.choice(WORDS)}"} for turn in range(4)]
        for letter, truth in zip("AB", truths, strict=True):
            agent = "human:1" if truth == "human" else "alpha"
            trial = {"answer": {"messages": messages}, "shown": f"s{at:04}", "speaker": letter}
            key = {"agent": agent, "truth": truth, "stimulus": f"talk {at}", "catch": False, "speaker": letter}
            rows.append((trial, key | {"columns": json.dumps({"topic": WORDS[at % 4]})}))
    return _numbered("conversation", rows, chance)


def pair_trials(number: int, agents: Sequence[str] = ("alpha", "beta")) -> list[tuple[Row, Row]]:
    """A conversation of each agent with a person beside one of two people, of three turns, about each of ``number``
    topics; the machine speaks in the first in every other one."""
    chance = random.Random(3)
    rows = []
    for at in range(number):
        for agent in agents:
            sides = [
                {"messages": [{"speaker": letter, "text": f"{at} {chance.choice(WORDS)}"} for letter in "ABA"]}
                for _ in range(2)
            ]
            who = [("machine", agent, "B"), ("human", "human:1~human:2", "")]
            (truth, whose, speaker), (other, others, others_speaker) = who if at % 2 else who[::-1]
            trial = {"answer": sides[0], "beside": sides[1], "shown": f"s{at:04}"}
            key = {"agent": whose, "truth": truth, "stimulus": f"talk {at}", "catch": False, "speaker": speaker}
            key |= {"beside_agent": others, "beside_truth": other, "beside_speaker": others_speaker}
            rows.append((trial, key | {"turns": 3, "length": 3, "columns": json.dumps({"mode": "ping-pong"})}))
    return _numbered("conversation", rows, chance)


def picture_trials(folder: Path, number: int) -> list[tuple[Row, Row]]:
    """Captions of a person and an agent of each of ``number`` pictures."""
    chance = random.Random(2)
    rows = []
    (folder / "media").mkdir(parents=True)
    for at in range(number):
        name = f"media/s{at:04}.png"
        PILImage.new("RGB", (32, 24), (9 * at % 256, 90, 30)).save(folder / name)
        for agent in ("human:1", "alpha"):
            truth = "human" if agent == "human:1" else "machine"
            text = " ".join(chance.choices(WORDS, k=6))
            trial = {"answer": {"text": text}, "image": name, "shown": f"s{at:04}"}
            rows.append((trial, {"agent": agent, "truth": truth, "stimulus": f"picture {at}", "catch": False}))
    return _numbered("image_captioning", rows, chance)


def _numbered(asked: Any, rows: list[tuple[Row, Row]], chance: random.Random) -> list[tuple[Row, Row]]:
    chance.shuffle(rows)
    made = []
    for at, (trial, key) in enumerate(rows):
        question = QUESTION_OF_PAIRS if "beside" in trial else QUESTIONS[asked].format(speaker=trial.get("speaker"))
        about = {"id": f"t{at:04}", "task": "judgement", "asked": asked, "question": question}
        made.append((about | trial, {"trial": f"t{at:04}", "asked": asked} | key))
    return made


def write_trials(folder: Path, rows: list[tuple[Row, Row]]) -> Path:
    """The trial set, with its key beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    table = [",".join(COLUMNS)]
    for trial, key in rows:
        line = json.dumps(trial)
        digest = hashlib.sha256(canonical(parse_row(line, root=folder))).hexdigest()
        lines.append(line)
        catch = key["catch"] if key["catch"] == "swapped" else int(key["catch"])
        cells = {"sha256": digest, "columns": "{}", "said": "x"} | key | {"catch": catch}
        table.append(",".join('"' + str(cells.get(name, "")).replace('"', '""') + '"' for name in COLUMNS))
    (folder / "trials.jsonl").write_text("\n".join(lines) + "\n")
    written = ("\n".join(table) + "\n").encode()
    key_path(folder).write_bytes(written)
    about_path(folder).write_text(json.dumps({"key_sha256": hashlib.sha256(written).hexdigest()}))
    return folder


def write_study(folder: Path, trials: Path, task: Any, **changes: Any) -> Path:
    """A study with the plain choices, without pages before and after; ``changes`` by the key of ``study.toml``."""
    text = study_of_judges(str(trials), task, "plain")
    begin = text.index('consent = """')
    end = text.index("instructions = ")
    text = f"{text[:begin]}consent = {json.dumps(changes.pop('consent', ''))}\n{text[end:]}"
    folder.mkdir(parents=True)
    (folder / "study.toml").write_text(text)
    return changed(
        folder, **{"before": [], "after": [], "catch": 0.0, "practice": 0, "sample": False, "break_every": 0, **changes}
    )


def changed(study: Path, **values: Any) -> Path:
    """The study with lines of ``study.toml`` changed, by their key or by table and key (``batch_server``)."""
    path = study / "study.toml"
    left = dict(values)
    table = ""
    lines = path.read_text().split("\n")
    for at, line in enumerate(lines):
        table = line.split("]")[0][1:] if line.startswith("[") else table
        name = line.partition(" = ")[0]
        dotted = f"{table}_{name}" if table in ("roles",) or f"{table}_{name}" in left else name
        if dotted in left and " = " in line:
            lines[at] = f"{name} = {json.dumps(left.pop(dotted))}"
    assert not left
    path.write_text("\n".join(lines))
    return study


def run(folder: Path, work: Callable[[ServedStudy], Awaitable[None]]) -> None:
    """Do ``work`` with the study in ``folder``, opened here and closed after it; in a thread of its own, as
    Playwright's event loop may be the caller's."""

    async def inside() -> None:
        study = ServedStudy(folder, material_of(folder), lambda: None)
        study.start()
        await work(study)
        await study.close()

    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, inside()).result()


def lobby_of(study: ServedStudy) -> Any:
    assert study.lobby is not None
    return study.lobby


async def machines_stop(lobby: Any) -> None:
    """Wait until no machine takes part in anything any more, which a busy computer may take a while over."""
    if lobby.tasks:
        _, at_it = await asyncio.wait(lobby.tasks.values(), timeout=120)
        assert not at_it


async def arrived(study: ServedStudy, kind: str) -> Judge:
    """Somebody new, at their first step of that kind."""
    judge, _ = await study.join(None, None)
    while judge.current is not None and judge.current.kind != kind:
        said = {"consent": {"agree": True}, "questions": {"country": "Iceland"}}
        await study.answer(judge, judge.step, said.get(judge.current.kind, {}))
    return judge


async def arrivals(
    study: ServedStudy, kind: str, patch: pytest.MonkeyPatch, rates: tuple[float, float], number: int
) -> list[tuple[float, Judge, Any]]:
    """How long each of ``number`` people waited until they met, and what they saw then. So many come in a second, by
    turns of an hour, on a clock of the test's."""
    lobby = lobby_of(study)
    state = study.state
    chance = random.Random(8)
    clock = [0.0]
    for name in ("lobby", "lobby_of_tests"):
        time = SimpleNamespace(monotonic=lambda: clock[0], time=lambda: 1.8e9)
        patch.setattr(f"judging.study.meetings.{name}.time", time)
    patch.setattr("judging.study.meetings.lobby.SWEEP", 1e9)
    patch.setattr(type(lobby), "drive", lambda self, meeting: None)

    async def note(*events: Event) -> None:
        for event in events:
            state.apply(event.model_copy(update={"at": "2026-01-01T00:00:00Z"}))

    lobby.note = note
    here: list[tuple[Judge, float]] = []
    met: list[tuple[float, Judge, Any]] = []
    while len(met) < number:
        clock[0] += 1
        if chance.random() < rates[clock[0] % 7200 >= 3600]:
            name = f"p{len(state.judges)}"
            about = {"session": name, "number": 1, "keys": [], "end_code": "", "link": None, "kit": None, "at": ""}
            step = MaterialStep(kind=kind, trials=[], phase="test", again=False)
            await note(Joined(judge=name, steps=[step], **about))
            here.append((state.judges[name], clock[0]))
        for judge, came in list(here):
            lobby.seen[judge.code] = clock[0]
            view = await lobby.look(judge)
            if view["state"] != "waiting":
                here.remove((judge, came))
            if view["state"] == "open":
                met.append((clock[0] - came, judge, view))
    return met


@contextmanager
def serving(study: Path, **environment: str) -> Iterator[server_process.Server]:
    """The study, served by a process of its own."""
    command = [sys.executable, "-m", "serving.cli", "study", "serve", str(study)]
    (log := study.parent / "log").mkdir(exist_ok=True)
    with server_process.running(log, command, os.environ | environment) as server:
        server.wait_for("/health")
        yield server


def begin_in(page: Any, url: str) -> Any:
    """A browser's page, after consent and instructions."""
    page.goto(url)
    for name in ("Begin", "I agree"):
        page.get_by_role("button", name=name).click()
    page.get_by_role("heading", name="What to do").wait_for()
    page.get_by_role("button", name="Continue").click()
    return page


def exported(study: Path) -> list[dict[str, Any]]:
    """What people answered, exported beside the study as ``people``."""
    assert turinglike("study", "export", study, "-o", study.parent / "people") == 0
    lines = (study.parent / "people" / "records" / "humans.jsonl").read_text().splitlines()
    records: list[dict[str, Any]] = list(map(json.loads, lines))
    assert not any(problems(record) for record in records)
    return records


def turinglike(*arguments: object) -> int:
    """The command, in a thread of its own: Playwright's event loop is the caller's."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(main, [*map(str, arguments)]).result()


class Visitor:
    """A participant's browser, with its cookie; ``heard`` are all (status, headers, body) that the server sent."""

    def __init__(self, port: int, **headers: str) -> None:
        self.port = port
        self.headers = {"content-type": "application/json", "origin": f"http://127.0.0.1:{port}", **headers}
        self.heard: list[tuple[int, dict[str, str], bytes]] = []

    def ask(self, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        try:
            connection.request(method, path, body, self.headers)
            reply = connection.getresponse()
            data = reply.read()
        finally:
            connection.close()
        headers = {name.lower(): value for name, value in reply.getheaders()}
        if "set-cookie" in headers:
            self.headers["cookie"] = headers["set-cookie"].partition(";")[0]
        self.heard.append((reply.status, headers, data))
        return reply.status, data

    def post(self, path: str, **said: Any) -> tuple[int, Any]:
        status, data = self.ask("POST", path, json.dumps(said).encode())
        return status, json.loads(data)
