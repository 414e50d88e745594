"""The log of a study: each kind of event is read as it was written, by the published JSON Schema."""

import ast
import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import jsonschema
import pytest

from agents.errors import InputError
from agents.stimuli import TASKS
from judging.study.design.presets import study_of_judges
from judging.study.log import events, files
from judging.study.log.logged import LoggedEvent
from judging.study.log.state import read_state
from judging.study.serving_study import ServedStudy
from tests.helpers import online_studies, study_folders, talk_studies
from tests.helpers.study_folders import arrived, lobby_of, run

ROOT = Path(__file__).parents[3]
SCHEMA = jsonschema.Draft202012Validator(json.loads((ROOT / "docs" / "event.schema.json").read_text()))
AT = '"at":"2026-01-01T00:00:00.000Z"'
STEP = f'"judge":"j",{AT},"step":0'
TEST = '"test":"test-00001","who":"a"'
TRACES = (
    '"traces":{"inserted":[{"kind":"paste","at":900,"characters":4}],"keys":[10,2000],"deletions":[2100],'
    '"hidden":[[20,30]],"unfocused":[[20,40]],"first_key":10,"characters":5}'
)
LINES = (
    f'{{"event":"settings",{AT},"settings":{{"task":"conversation"}},"sha256":"aa"}}',  # of version 0.2.0
    f'{{"event":"settings",{AT},"settings":{{}},"consent":{{"sha256":"bb","text":"Yes?"}},"sha256":"aa"}}',
    f'{{"event":"closed",{AT}}}',
    '{"event":"joined","judge":"j","session":"cc","number":1,"link":null,"kit":null,"keys":["f","j"],"steps":['
    '{"kind":"consent"},{"kind":"questions"},{"kind":"instructions","examples":[["t1","t2"]]},'
    '{"kind":"trial","trials":["t3"],"phase":"practice","again":false},{"kind":"break"},{"kind":"after"}],'
    f'"end_code":"dd",{AT}}}',
    '{"event":"joined","judge":"j","session":"cc","number":1,"link":"ee","kit":"kit-1","keys":[],"steps":['
    '{"kind":"instructions"},{"kind":"ask","trials":["s"],"phase":"test","again":false},'
    '{"kind":"talk","trials":[],"phase":"test","again":false},{"kind":"test","trials":[],"phase":"test","again":true}],'
    f'"end_code":"dd",{AT}}}',
    '{"event":"joined","judge":"j","session":"cc","number":1,"link":null,"kit":null,"keys":[],"steps":['
    '{"kind":"ask","trials":["s"],"phase":"test","again":true},{"kind":"check","text":"Who?","people":"free"}],'
    f'"end_code":"dd","codeword":"thimble",{AT}}}',
    f'{{"event":"entry",{AT},"open":false}}',
    f'{{"event":"session","judge":"j","session":"cc",{AT}}}',
    f'{{"event":"loaded","judge":"j",{AT}}}',
    f'{{"event":"blocked","judge":"j",{AT}}}',
    f'{{"event":"left","judge":"j",{AT}}}',
    f'{{"event":"restarted","judge":"j","from":1,"steps":[{{"kind":"after"}}],{AT}}}',  # of version 0.2.0
    f'{{"event":"told",{STEP},"kind":"ask","said":"a dog","flags":["too_few_words"]}}',
    f'{{"event":"step",{STEP},"kind":"consent","agree":true}}',  # of version 0.2.0
    f'{{"event":"step",{STEP},"kind":"consent","consent":"bb","agree":false}}',
    f'{{"event":"step",{STEP},"kind":"questions"}}',
    f'{{"event":"step",{STEP},"kind":"questions","screened":true}}',
    f'{{"event":"step",{STEP},"kind":"after"}}',
    f'{{"event":"step",{STEP},"kind":"instructions"}}',
    f'{{"event":"step",{STEP},"kind":"instructions","device":{{"touch":false,"screen":[1920,1080]}}}}',
    f'{{"event":"step",{STEP},"kind":"break","seconds":3.25}}',
    f'{{"event":"step",{STEP},"kind":"trial","rt":null,"away":false,"verdicts":["human"],"key":true}}',
    f'{{"event":"step",{STEP},"kind":"trial","rt":1.5,"away":true,"verdicts":["human","machine"],"key":false,'
    '"confidence":0.5,"reason":"","sexes":["female","male"],"control":"yes","right":false}',
    f'{{"event":"step",{STEP},"kind":"ask","answer":["dog","cat","cup"],"rt":null,"away":false,"flags":[]}}',
    f'{{"event":"step",{STEP},"kind":"ask","answer":["moon"],"rt":1.5,"away":false,"flags":[],{TRACES}}}',
    f'{{"event":"step",{STEP},"kind":"check","answer":"me","passed":null,"rt":1.5,"away":false}}',
    f'{{"event":"step",{STEP},"kind":"check","answer":"me","passed":true,"rt":1.5,"away":false,{TRACES}}}',
    f'{{"event":"step",{STEP},"kind":"talk","talk":null}}',
    f'{{"event":"step",{STEP},"kind":"talk","talk":"t","guess":"human"}}',  # of version 0.2.0
    f'{{"event":"step",{STEP},"kind":"talk","talk":"t","guess":null,"sex":null,"age":""}}',
    f'{{"event":"step",{STEP},"kind":"test","test":"test-00001"}}',
    f'{{"event":"paired","talk":"t","stimulus":"s","speakers":["a","b"],{AT}}}',
    f'{{"event":"said","talk":"t","turn":0,"speaker":"A","text":"hello",{AT}}}',
    f'{{"event":"said","talk":"t","turn":0,"speaker":"A","text":"hello",{TRACES},{AT}}}',
    f'{{"event":"withdrawn","talk":"t","turn":1,"speaker":"B","texts":["so"],{AT}}}',
    f'{{"event":"void","talk":"t","why":"a left",{AT}}}',
    '{"event":"test","test":"test-00001","judge":"j","parts":["person","machine"],"agents":["a","b"],'
    f'"condition":"person_deceives","exchanges":5,"verdicts":"end",{AT}}}',
    '{"event":"test","test":"test-00001","judge":"j","parts":["person","machine"],"agents":["a","b"],'
    f'"seconds":300.0,{AT}}}',
    f'{{"event":"test_ready",{TEST},{AT}}}',
    f'{{"event":"test_asked",{TEST},"text":"who?","clock":1.5,"delay_s":1.5,"raw":null,{AT}}}',
    f'{{"event":"test_asked",{TEST},"text":"who?","clock":1.5,"delay_s":1.5,"raw":null,{TRACES},{AT}}}',
    f'{{"event":"test_answered","side":1,{TEST},"text":"me","clock":1.5,"delay_s":1.5,"raw":null,{TRACES},{AT}}}',
    f'{{"event":"test_said","test":"test-00001","side":2,"who":"a","text":"hi","clock":1.5,"id":null,{TRACES},{AT}}}',
    f'{{"event":"test_answered","side":1,{TEST},"text":"me","clock":1.5,"delay_s":1.5,"raw":"me, I say",{AT}}}',
    f'{{"event":"test_said","test":"test-00001","side":2,"who":"a","text":"hi","clock":1.5,"id":null,{AT}}}',
    '{"event":"test_withdrawn","test":"test-00001","side":2,"who":"a","text":"hi","clock":1.5,"turn":3,'
    f'"why":"ended",{AT}}}',
    f'{{"event":"test_judged",{TEST},"verdict":"human","reason":null,"clock":9.0,{AT}}}',
    f'{{"event":"test_judged",{TEST},"verdict":"machine","reason":"so","confidence":1.0,"codes":[],"clock":9.0,{AT}}}',
    f'{{"event":"test_void","test":"test-00001","why":"forgotten",{AT}}}',
    f'{{"event":"test_left",{TEST},{AT}}}',
)


def classes(union: Any = events.Event) -> Iterator[type[Any]]:
    if isinstance(union, type):
        yield union
    for part in get_args(union):
        yield from classes(part)


EVERY = {kind for kind in classes() if issubclass(kind, LoggedEvent)}


def kinds_in(study: Path) -> set[str]:
    """The kinds of a study's events, with the kinds of steps, after each was checked."""
    kinds = set()
    for line in (study / "events.jsonl").read_bytes().splitlines(keepends=True):
        row = json.loads(line)
        SCHEMA.validate(row)
        assert events.read_event(line).line == line
        kinds.add(f"step {row['kind']}" if row["event"] == "step" else row["event"])
    return kinds


@pytest.mark.parametrize("line", LINES)
def test_an_event_is_written_as_it_was_read(line: str) -> None:
    event = events.read_event(line.encode())
    assert event.line == f"{line}\n".encode()
    SCHEMA.validate(json.loads(line))


def test_every_kind_is_among_the_lines() -> None:
    assert {type(events.read_event(line.encode())) for line in LINES} == EVERY


def test_the_schema_refuses_what_is_no_event() -> None:
    """A kind that is not there, and a line that lacks any field that every version wrote."""
    assert not SCHEMA.is_valid({"event": "other"})
    for line in LINES:
        row = json.loads(line)
        for name in row:
            less = {key: value for key, value in row.items() if key != name}
            try:
                events.read_event(json.dumps(less).encode())
            except ValueError:
                assert not SCHEMA.is_valid(less)
            else:
                assert SCHEMA.is_valid(less)


def test_whatever_is_written_is_of_the_union() -> None:
    """Each kind is made somewhere, and what older versions alone wrote nowhere; no event is made as a mapping."""
    made = set()
    for path in (ROOT / "judging" / "study").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                made.add(node.func.id)
            is_mapping = isinstance(node, ast.Dict) and any(
                isinstance(key, ast.Constant) and key.value == "event" for key in node.keys
            )
            assert not is_mapping or path.name == "logged.py"  # where a model becomes a line
    names = {kind.__name__ for kind in EVERY}
    assert names - made == {"Restarted"}


@pytest.mark.parametrize("preset", ["plain", "2022", "2025", "feedback"])
def test_a_study_of_judges_writes_events(tmp_path: Path, preset: str) -> None:
    trials = study_folders.write_trials(tmp_path / "T", study_folders.conversation_trials(30))
    study = tmp_path / "study"
    study.mkdir()
    (study / "study.toml").write_text(study_of_judges(str(trials), "conversation", preset))
    values: dict[str, Any] = {"number": 4, "catch": 0.0, "control": "topic", "break_every": 2, "reason": True}
    values |= {"feedback": 2, "practice": 2} if preset in ("plain", "feedback") else {"reload": "block"}
    study_folders.changed(study, **values, confidence=True)

    async def work(served: ServedStudy) -> None:
        for _ in range(2):
            judge, _ = await served.join(None, None)
            while (step := judge.current) is not None:
                said: dict[str, Any] = {"agree": True} if step.kind == "consent" else {}
                if step.kind == "trial":
                    control = served.material.control(step)
                    human = ["human"] * len(step.trials)
                    said = {"verdicts": human, "confidence": 0.5, "reason": "", "control": control.options[0]}
                    said |= {"sexes": ["female"] * len(step.trials)} if served.settings.trials.sex else {}
                elif step.kind == "instructions":
                    said = {"device": {"touch": False, "screen": [800, 600]}}
                assert (await served.answer(judge, judge.step, said)).is_new
        judge, _ = await served.join(None, None)
        for said in ({"agree": True}, {}, {}):
            await served.answer(judge, judge.step, said)
        await served.loaded(judge)
        await served.leave(judge)
        seen.update(kinds_in(study))

    seen: set[str] = set()
    run(study, work)
    steps = {"consent", "questions", "instructions", "trial", "break", "after"}
    assert seen == {"settings", "joined", "loaded", "left", *(f"step {kind}" for kind in steps)}
    assert len(read_state(study).judges) == 2  # the third has left


def test_a_study_of_answers_writes_events(tmp_path: Path) -> None:
    rows = [{"id": f"s{at}", "task": "word_association", "cue": f"cue {at}"} for at in range(3)]
    (tmp_path / "set.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    study = tmp_path / "study"
    assert study_folders.turinglike("study", "new", tmp_path / "set.jsonl", "-o", study) == 0
    study_folders.changed(study, before=[], after=[], wanted=1, most=2)

    async def work(served: ServedStudy) -> None:
        judge = await arrived(served, "ask")
        assert (await served.answer(judge, judge.step, {"answer": "two words"})).flags == ["several_words"]
        while judge.current is not None:
            assert (await served.answer(judge, judge.step, {"answer": "moon"})).is_new

    run(study, work)
    assert study_folders.turinglike("study", "close", study) == 0
    assert kinds_in(study) == {
        *("settings", "joined", "told", "closed"),
        *("step consent", "step instructions", "step ask"),
    }


def test_a_study_of_conversations_writes_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judging.study.meetings.lobby.LOOK", 0.01)
    online_studies.replies(monkeypatch, lambda agent, row: "first\n\nsecond")
    study = talk_studies.made(tmp_path, 6, "burst", **talk_studies.ALONE, quiet_s=0.0, base=0.3)

    async def work(served: ServedStudy) -> None:
        for leaves in (False, True):
            judge = await arrived(served, "talk")
            mine = 0
            after = -1
            while (view := await lobby_of(served).at(judge, after))["state"] == "open":
                after = len(view["messages"])
                if leaves and after:
                    lobby_of(served).seen[judge.code] -= 60
                elif view["messages"][-1:] in ([], [{"speaker": "A" if view["mine"] == "B" else "B", "text": "first"}]):
                    assert await talk_studies.say(served, judge, mine, f"mine {mine}") is None
                    mine += 1
            assert view["state"] == ("void" if leaves else "over")
            assert (await served.answer(judge, judge.step, {"guess": "machine", "age": "30"})).is_new

    run(study, work)
    steps = {"step consent", "step instructions", "step talk"}
    assert kinds_in(study) == {"settings", "joined", "paired", "said", "withdrawn", "void", *steps}


def test_a_study_of_online_tests_writes_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judging.study.meetings.lobby.LOOK", 0.01)
    online_studies.replies(monkeypatch)
    study = online_studies.made(tmp_path, exchanges=[2], each=2)

    async def work(served: ServedStudy) -> None:
        lobby = lobby_of(served)
        people = [await arrived(served, "test") for _ in range(2)]
        await asyncio.gather(*(lobby.at(judge, "") for judge in people))
        lobby.seen[people[0].code] -= 60
        for judge in people:
            found = await lobby.at(judge, "")
            assert await lobby.move(judge, {"test": found["test"], "act": "back"}) is None
        await asyncio.gather(*(online_studies.take_part(served, judge, "p") for judge in people))
        for judge in people:
            assert (await served.answer(judge, judge.step, {})).is_new

    run(study, work)
    tests = {"test", "test_ready", "test_asked", "test_answered", "test_judged", "test_void", "test_left"}
    assert kinds_in(study) == {"settings", "joined", *tests, "step consent", "step instructions", "step test"}


def test_a_study_of_interrogations_writes_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judging.study.meetings.lobby.LOOK", 0.01)
    online_studies.replies(monkeypatch, lambda agent, row: "first")
    study = online_studies.made(tmp_path, "interrogation", two_machines=1.0, base=30.0, minutes=0.02, each=1)

    async def work(served: ServedStudy) -> None:
        lobby = lobby_of(served)
        judge = await arrived(served, "test")
        test = (await lobby.at(judge, ""))["test"]
        assert await lobby.move(judge, {"test": test, "act": "ready"}) is None
        assert await lobby.move(judge, {"test": test, "act": "say", "side": 1, "text": "hi", "id": "1"}) is None
        view = await lobby.at(judge, "")
        while view["act"] != "judge" or not served.state.meetings[test].withdrawn:
            view = await lobby.at(judge, view["version"])
        verdict = {"test": test, "act": "judge", "human": 1, "confidence": 1.0, "reason": "", "codes": []}
        assert await lobby.move(judge, verdict) is None
        assert (await served.answer(judge, judge.step, {})).is_new

    run(study, work)
    tests = {"test", "test_ready", "test_said", "test_withdrawn", "test_judged"}
    assert kinds_in(study) == {"settings", "joined", *tests, "step consent", "step instructions", "step test"}


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('{"event":"other"}', "no event is called so; perhaps a later version wrote it"),
        ("[]", "no JSON object"),
        ('{"event":"closed"}', "at: Field required"),
        (f'{{"event":"left","judge":"nobody",{AT}}}', "KeyError"),
        (f'{{"event":"step",{STEP},"kind":"dance"}}', "no event is called so"),
    ],
)
def test_what_is_no_event_is_named(tmp_path: Path, line: str, why: str) -> None:
    (tmp_path / "events.jsonl").write_text(f'{{"event":"closed",{AT}}}\n{line}\n{{"event":"closed",{AT}}}\n')
    with pytest.raises(InputError, match=f"events.jsonl:2: is damaged: .*{why}"):
        read_state(tmp_path)


def test_whoever_is_forgotten_stands_in_no_event_that_stays(tmp_path: Path) -> None:
    """And whoever asks gets all events with their code. An event is found by ``judge``, ``who``, or its meeting."""
    code = "bcdfghjkmn"
    lines = [re.sub(r'"[aj]"', f'"{code}"', line).replace("a left", f"{code} left").encode() for line in LINES]
    entries = [files.LogEntry(events.read_event(line), line) for line in lines]
    stay = [entry.line for entry in files.without(code, entries)]
    assert [line for line in stay if code.encode() in line] == []
    kinds = {json.loads(line)["event"] for line in stay}
    assert kinds == {"settings", "closed", "entry", "paired", "void", "test", "test_void"}

    (tmp_path / "events.jsonl").write_bytes(b"".join(line + b"\n" for line in lines))
    told = {event["event"] for event in files.read_person(tmp_path, code)["events"]}
    named = {json.loads(line)["event"] for line in lines if code.encode() in line}
    assert named - told == {"paired", "void"}  # of a conversation what the person said is told


def test_a_later_version_is_read_as_far_as_it_is_known(tmp_path: Path) -> None:
    """A field that this version does not know is passed over, and stays in the file when somebody else is deleted."""
    more = [line.replace("{", '{"later":{"x":1},', 1) for line in LINES[:4]]
    (tmp_path / "events.jsonl").write_text("".join(f"{line}\n" for line in more))
    (tmp_path / "study.toml").write_text(study_of_judges("T", TASKS[0], "plain"))
    assert list(read_state(tmp_path).judges) == ["j"]
    assert study_folders.turinglike("study", "forget", tmp_path, "j") == 0
    assert (tmp_path / "events.jsonl").read_text().splitlines() == more[:3]
