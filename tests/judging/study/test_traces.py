"""Traces of writing and checks: who agreed to them, what is taken of a page, what is exported, what is deleted."""

from __future__ import annotations

import asyncio
import csv
import json
import random
import re
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest

from agents.errors import InputError
from judging.study import step_pages
from judging.study.actions import LARGEST_BODY
from judging.study.design.settings import read_settings
from judging.study.design.writing_tables import Checks
from judging.study.kinds import material_of
from judging.study.log.state import Judge, read_state
from judging.study.log.steps import MaterialStep
from judging.study.log.traces import InsertedKind, TypingTraces
from judging.study.meetings import lobby_of_talks
from judging.study.pages import patterns
from judging.study.pages.codewords import has_word, plain
from judging.study.pages.page_answers import LONGEST_MESSAGE, LONGEST_RT, BadAnswer, Refused
from judging.study.pages.patterns import fits
from judging.study.pages.phrases import phrase_of, phrases_sent, read_phrases
from judging.study.pages.sent_traces import MOST_CHARACTERS, MOST_SPANS, MOST_TIMES
from judging.study.pages.stimulus_material import SetMaterial
from judging.study.results.contradictions import contradictions
from judging.study.results.writing import traces_told
from judging.study.serving_study import ServedStudy
from judging.study.step_pages import view
from serving.cli import main
from tests.helpers import online_studies, talk_studies
from tests.helpers.study_folders import arrived, changed, exported, lobby_of, run
from tests.judging.study.test_asking import made

TRACES: dict[str, Any] = {
    "inserted": [{"kind": "paste", "at": 900, "characters": 3}],
    "keys": [400, 450],
    "deletions": [600],
    "hidden": [[500, 800]],
    "unfocused": [[490, 810], [820, 840]],
    "first_key": 400,
    "characters": 4,
}
COMPOSED_FIVE = [{"kind": "composition", "at": 1, "characters": 5}]
QUESTIONS = [{"text": "Which day follows Monday?", "people": "(on )?tuesday"}, {"text": "Why?", "people": "free"}]


def written(folder: Path, number: int = 2, **settings: Any) -> Path:
    """A study of words; ``settings`` are keys of the tables ``traces`` and ``checks``."""
    return changed(made(folder, "word_association", number=number), **settings)


async def answer_all(study: ServedStudy, judge: Judge, said: Callable[[int], dict[str, Any]]) -> None:
    """Answer all stimuli and questions, each with what ``said`` gives for the number of those before."""
    number = 0
    while judge.current is not None and judge.current.kind in ("ask", "check"):
        assert (await study.answer(judge, judge.step, said(number))).is_new
        number += 1


def events(study: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (study / "events.jsonl").read_text().splitlines()]


def table(path: Path) -> list[dict[str, str]]:
    return [*csv.DictReader(path.read_text("utf-8").splitlines())]


# settings and consent


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"record": True, "consent": ""}, "traces.record: participants must agree to it"),
        ({"record": True, "consent": " \n"}, "traces.record: participants must agree to it"),
        ({"twice": 0.6}, "checks.twice"),
        ({"questions": [{"text": "Why?", "people": "("}]}, "is no regular expression"),
        ({"questions": [{"text": "", "people": "free"}]}, "must not be empty"),
        ({"questions": [{"text": "Why?"}]}, "people"),
    ],
)
def test_what_cannot_be_is_refused_with_its_line(tmp_path: Path, changes: dict[str, Any], why: str) -> None:
    study = made(tmp_path, "word_association")
    text = (study / "study.toml").read_text()
    if "consent" in changes:
        begin = text.index('consent = """')
        end = text.index("instructions = ")
        text = f"{text[:begin]}consent = {json.dumps(changes.pop('consent'))}\n{text[end:]}"
    (study / "study.toml").write_text(text)
    if "questions" in changes:
        inline = ", ".join(
            "{ " + ", ".join(f"{name} = {json.dumps(value)}" for name, value in question.items()) + " }"
            for question in changes.pop("questions")
        )
        (study / "study.toml").write_text(text.replace("questions = []", f"questions = [{inline}]"))
    changed(study, **changes)
    with pytest.raises(InputError) as refused:
        read_settings(study)
    assert why in " ".join(map(str, refused.value.problems))


def test_nothing_is_recorded_where_nobody_writes(tmp_path: Path) -> None:
    study = made(tmp_path, "color_estimation")
    text = (study / "study.toml").read_text()
    of_checks = text.replace("twice = 0.0", "twice = 0.0\ncopied_instruction = true")
    for other, why in (
        (f"{text}\n[traces]\nrecord = true\n", "traces.record: nobody writes in color_estimation"),
        (of_checks, "checks.copied_instruction: nobody writes in color_estimation"),
    ):
        (study / "study.toml").write_text(other)
        with pytest.raises(InputError) as refused:
            read_settings(study)
        assert why in " ".join(map(str, refused.value.problems))


@pytest.mark.parametrize("language", ["en", "ar", "de", "es", "fr", "zh"])
def test_the_consent_page_tells_of_the_traces_by_itself(tmp_path: Path, language: str) -> None:
    study = changed(written(tmp_path, record=True), language=language)
    own = read_settings(study).texts.consent

    async def work(served: ServedStudy) -> None:
        judge, _ = await served.join(None, None)
        page = view(served, judge)
        assert page["kind"] == "consent"
        assert page["text"].startswith(own.rstrip())
        added = page["text"][len(own.rstrip()) :].strip()
        assert len(added) > 50
        assert served.state.consent is not None
        assert served.state.consent.text == page["text"]  # which the log keeps
        changed_study = (await served.answer(judge, judge.step, {"agree": True, "consent": page["consent"]})).is_new
        assert changed_study

    run(study, work)
    [kept] = [event["consent"]["text"] for event in events(study) if event["event"] == "settings"]
    assert kept != own
    [agreed] = [event["consent"] for event in events(study) if event.get("kind") == "consent"]
    assert agreed == events(study)[0]["consent"]["sha256"]


def test_who_agreed_before_is_not_recorded(tmp_path: Path) -> None:
    """And a page that still shows the earlier text gets the new one before anybody agrees to it."""
    study = written(tmp_path, number=2)
    people: dict[str, Any] = {}

    async def before(served: ServedStudy) -> None:
        people["early"] = (await arrived(served, "ask")).code
        judge, _ = await served.join(None, None)
        people["reading"] = judge.code
        people["text"] = view(served, judge)["consent"]

    async def after(served: ServedStudy) -> None:
        early, reading = (served.state.judges[people[name]] for name in ("early", "reading"))
        assert "traces" not in view(served, early)
        await served.answer(early, early.step, {"answer": "moon", "traces": TRACES})
        with pytest.raises(Refused, match="not_yet"):
            await served.answer(reading, reading.step, {"agree": True, "consent": people["text"]})
        await served.answer(reading, reading.step, {"agree": True, "consent": view(served, reading)["consent"]})
        await served.answer(reading, reading.step, {})
        assert view(served, reading)["traces"] is True
        await served.answer(reading, reading.step, {"answer": "moon", "traces": TRACES})

    run(study, before)
    run(changed(study, record=True), after)
    has_traces = {event["judge"]: "traces" in event for event in events(study) if event.get("kind") == "ask"}
    assert has_traces == {people["early"]: False, people["reading"]: True}
    raw = {record["agent"]: record["raw"] for record in exported(study)}
    assert raw[f"human:{people['early']}"]["traces"] is None
    assert raw[f"human:{people['reading']}"]["traces"]["keys"] == 2


def test_a_study_that_asks_for_nothing_is_as_it_was(tmp_path: Path) -> None:
    async def work(served: ServedStudy) -> None:
        judge = await arrived(served, "ask")
        page = view(served, judge)
        assert not {"traces", "line"} & page.keys()
        await answer_all(served, judge, lambda _: {"answer": "moon", "traces": TRACES})

    study = written(tmp_path)
    run(study, work)
    assert not any({"traces", "codeword"} & event.keys() for event in events(study))
    assert not any(step["kind"] == "check" for event in events(study) for step in event.get("steps", ()))
    assert all(record["raw"].keys() == {"rt", "away"} for record in exported(study))


def test_words_of_the_instruction_are_the_studys_own_and_must_be_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = changed(written(tmp_path), copied_instruction=True, phrases="own.toml")
    (tmp_path / "plain").mkdir()
    own = read_phrases(study, read_settings(written(tmp_path / "plain")))
    own = {name: text for name, text in own.items() if phrase_of(name) == name}

    async def work(served: ServedStudy) -> None:
        judge, _ = await served.join(None, None)
        assert judge.codeword in ("ziggurat", "obelisk")

    for codewords, rc in ((" ", 2), ("ziggurat obelisk", 0)):
        lines = (f"{name} = {json.dumps(text)}\n" for name, text in {**own, "codewords": codewords}.items())
        (study / "own.toml").write_text("".join(lines), "utf-8")
        capsys.readouterr()
        assert main(["study", "check", str(study)]) == rc
        assert ("codewords: give words" in capsys.readouterr().err) is (rc == 2)
    run(study, work)


@pytest.mark.parametrize(
    ("word", "text", "is_there"),
    [
        ("pendulum", "a PENDULUM, perhaps", True),
        ("pendulum", "pendulums", False),
        ("Pendel", "Menschen pendeln zur Arbeit", False),
        ("catapult", "a jet is catapulted off the ship", False),
        ("mélasse", unicodedata.normalize("NFD", "de la mélasse."), True),
        ("مزولة", "رأيت مزولة هناك", True),
        ("日晷", "我看见一个日晷。", True),
        ("日晷", "我看见日出。", False),
        ("zither", "zither_player", False),
    ],
)
def test_a_word_of_the_instruction_counts_as_a_whole(word: str, text: str, is_there: bool) -> None:
    assert has_word(text, word) is is_there


@pytest.mark.parametrize("language", ["en", "ar", "de", "es", "fr", "zh"])
def test_words_of_the_instruction_are_many_and_none_is_a_part_of_another(tmp_path: Path, language: str) -> None:
    study = changed(written(tmp_path), language=language)
    words = read_phrases(study, read_settings(study))["codewords"].split()
    assert len({*map(plain, words)}) == len(words) >= 30
    assert all(has_word(f"({word})", word) for word in words)
    assert not [(word, other) for word in words for other in words if word != other and plain(word) in plain(other)]


def test_no_word_of_the_instruction_stands_in_the_set(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = changed(written(tmp_path), copied_instruction=True, phrases="own.toml")
    (tmp_path / "plain").mkdir()
    own = read_phrases(study, read_settings(written(tmp_path / "plain")))
    own = {name: text for name, text in own.items() if phrase_of(name) == name}
    material = material_of(study)
    assert isinstance(material, SetMaterial)
    cues = [str(getattr(stimulus, "cue", "")) for stimulus in material.stimuli.values()]
    assert all(cues)

    def give(*codewords: str) -> None:
        lines = (f"{name} = {json.dumps(text)}\n" for name, text in {**own, "codewords": " ".join(codewords)}.items())
        (study / "own.toml").write_text("".join(lines), "utf-8")

    async def work(served: ServedStudy) -> None:
        for _ in range(20):
            judge, _ = await served.join(None, None)
            assert judge.codeword == "ziggurat"

    give(cues[0].upper(), "ziggurat", cues[1][:-1])
    assert main(["study", "check", str(study)]) == 0
    run(study, work)
    give(*cues)
    capsys.readouterr()
    assert main(["study", "check", str(study)]) == 2
    assert "each word of the phrase codewords stands in the set" in capsys.readouterr().err


# what a page may send


@pytest.mark.parametrize(
    "change",
    [
        {"keys": [5, 4]},
        {"keys": [-1, 4], "first_key": -1},
        {"keys": [LONGEST_RT + 1], "first_key": int(LONGEST_RT) + 1},
        {"keys": [1.5], "first_key": 1},
        {"keys": [True]},
        {"keys": list(range(MOST_TIMES + 1)), "first_key": 0},
        {"deletions": list(range(MOST_TIMES + 1))},
        {"deletions": ["5"]},
        {"first_key": None},
        {"first_key": 401},
        {"keys": [], "first_key": 400},
        {"hidden": [[5]]},
        {"hidden": [[7, 5]]},
        {"hidden": [[1, 5], [4, 9]]},
        {"hidden": [[-2, 5]]},
        {"unfocused": [[at, at] for at in range(MOST_SPANS + 1)]},
        {"inserted": [{"kind": "paste", "at": 1, "characters": -1}]},
        {"inserted": [{"kind": "paste", "at": 1, "characters": MOST_CHARACTERS + 1}]},
        {"inserted": [{"kind": "paste", "at": 1, "characters": 2, "text": "secret"}]},
        {"inserted": [{"kind": "keyboard", "at": 1, "characters": 2}]},
        {"inserted": [{"kind": "paste", "at": at, "characters": 2} for at in range(MOST_SPANS + 1)]},
        {"characters": -1},
        {"contents": "what was typed"},
        {"keys": None},
        {"typed": -1},
        {"composed_deletions": 2},
        {"composed_deletions": -1},
        {"cut": 1},
    ],
)
def test_traces_that_no_page_sends_cost_nobody_an_answer(tmp_path: Path, change: dict[str, Any]) -> None:
    sent = {**TRACES, **change}

    async def work(served: ServedStudy) -> None:
        judge = await arrived(served, "ask")
        await answer_all(served, judge, lambda number: {"answer": "moon", "traces": TRACES if number else sent})

    study = written(tmp_path, record=True)
    run(study, work)
    first, second = (event for event in events(study) if event.get("kind") == "ask")
    assert "traces" not in first
    assert next(iter(change)) in first["traces_refused"]
    assert "traces_refused" not in second
    first, second = (record["raw"] for record in exported(study))
    assert first["traces"] is None
    assert next(iter(change)) in first["traces_refused"]
    assert second["traces"] is not None
    assert second["traces_refused"] is None


@pytest.mark.parametrize("sent", [5, "all", [TRACES], {"\ud800" * 300: 1}])
def test_what_are_no_traces_at_all_costs_nobody_an_answer(tmp_path: Path, sent: Any) -> None:
    async def work(served: ServedStudy) -> None:
        judge = await arrived(served, "ask")
        await answer_all(served, judge, lambda _: {"answer": "moon", "traces": sent})

    study = written(tmp_path, record=True)
    run(study, work)
    told = [record["raw"]["traces_refused"] for record in exported(study)]
    assert all(0 < len(why) <= 200 for why in told)


@pytest.mark.parametrize("traces", [{}, {"traces": None}])
def test_a_page_without_traces_is_taken(tmp_path: Path, traces: dict[str, Any]) -> None:
    async def work(served: ServedStudy) -> None:
        judge = await arrived(served, "ask")
        await answer_all(served, judge, lambda _: {"answer": "moon", **traces})

    study = written(tmp_path, record=True)
    run(study, work)
    assert all(record["raw"]["traces"] is None for record in exported(study))


def test_the_largest_traces_fit_into_what_a_page_may_send() -> None:
    day = int(LONGEST_RT)
    largest = {
        "inserted": [{"kind": "composition", "at": day, "characters": MOST_CHARACTERS}] * MOST_SPANS,
        "keys": [day] * MOST_TIMES,
        "deletions": [day] * MOST_TIMES,
        "hidden": [[day, day]] * MOST_SPANS,
        "unfocused": [[day, day]] * MOST_SPANS,
        "first_key": day,
        "characters": MOST_CHARACTERS,
    }
    body = {"act": "say", "text": "\\" * LONGEST_MESSAGE, "traces": largest, "list": "b" * 10, "test": "test-00001"}
    assert len(json.dumps(body)) < LARGEST_BODY


# what is exported


def test_the_sums_are_those_of_an_edited_text() -> None:
    """Texts are edited at random, and what is told is recounted from the edits. Nothing of them is unexplained."""
    chance = random.Random(5)
    for _ in range(300):
        text = ""
        at = 0
        keys: list[int] = []
        deletions: list[int] = []
        inserted: list[dict[str, Any]] = []
        counted = dict.fromkeys(get_args(InsertedKind), 0)
        for _ in range(chance.randrange(1, 60)):
            at += chance.randrange(1, 400)
            place = chance.randrange(len(text) + 1)
            act = chance.choice(["key", "key", "key", "delete", *counted])
            if act == "key":
                text = text[:place] + chance.choice("abé月") + text[place:]
                keys.append(at)
            elif act == "delete" and text:
                end = min(len(text), place + chance.randrange(1, 4))
                if end > place:
                    text = text[:place] + text[end:]
                    deletions.append(at)
            elif act in counted:
                size = chance.randrange(1, 30)
                text = text[:place] + "x" * size + text[place:]
                inserted.append({"kind": act, "at": at, "characters": size})
                counted[act] += size
        if not text:
            continue
        first = keys[0] if keys else None
        sent = {"inserted": inserted, "keys": keys, "deletions": deletions, "hidden": [[1, 4], [9, 20]]}
        traces = TypingTraces.model_validate({**sent, "unfocused": [], "first_key": first, "characters": len(text)})
        told = traces_told(traces, text)
        names = {"paste": "pasted", "drop": "dropped", "autofill": "autofilled", "composition": "composed"}
        assert {kind: told[f"{names.get(kind, kind)}_characters"] for kind in counted} == counted
        assert (told["keys"], told["deletions"], told["characters"]) == (len(keys), len(deletions), len(text))
        assert (told["hidden_ms"], told["unfocused_ms"], told["first_key_ms"]) == (14, 0, first)
        assert told["unexplained_characters"] == 0
        if len(keys) > 1:
            assert told["typing_ms"] == keys[-1] - keys[0]
            assert told["characters_per_s"] == pytest.approx(len(keys) / (keys[-1] - keys[0]) * 1000, abs=5e-4)
        more = traces_told(traces, text + "y" * 500)  # and what came without any event is
        assert 500 - 2 * len(deletions) * 3 <= more["unexplained_characters"] <= 500


@pytest.mark.parametrize(
    ("text", "change", "unexplained"),
    [
        ("لا", {"keys": [1], "first_key": 1, "typed": 2, "inserted": [], "deletions": []}, 0),  # one key, two letters
        # A composition counts once, by what it added: five keys and two deletions within it count nothing.
        (
            "hallo",
            {"keys": [1] * 7, "first_key": 1, "typed": 0, "composed_deletions": 1, "inserted": COMPOSED_FIVE},
            0,
        ),
        (
            "hallo and more",
            {"keys": [1] * 7, "first_key": 1, "typed": 0, "composed_deletions": 1, "inserted": COMPOSED_FIVE},
            9,
        ),
        ("moonlight", {"keys": [1], "first_key": 1, "typed": 1, "cut": True}, 0),  # not all is known
        ("moonlight", {"keys": [], "first_key": None, "inserted": [], "deletions": []}, 9),
        ("moonlight", {"keys": [1] * 9, "first_key": 1, "inserted": [], "deletions": []}, 0),
        ("moonlight", {"keys": [1] * 9, "first_key": 1, "inserted": [], "deletions": [2] * 4}, 4),
        ("moonlight", {"keys": [], "first_key": None, "deletions": []}, 6),  # of which 3 were pasted
        ("月光", {"keys": [1], "first_key": 1, "inserted": [], "deletions": []}, 1),
        (
            "x" * 9000,
            {"keys": [1] * MOST_TIMES, "first_key": 1, "inserted": [], "deletions": []},
            0,
        ),  # not all is known
    ],
)
def test_characters_that_no_event_explains(text: str, change: dict[str, Any], unexplained: int) -> None:
    traces = TypingTraces.model_validate({**TRACES, **change})
    assert traces_told(traces, text)["unexplained_characters"] == unexplained


def test_traces_are_exported_with_the_answer_and_counted_by_person(tmp_path: Path) -> None:
    study = written(tmp_path, record=True)

    async def work(served: ServedStudy) -> None:
        judge = await arrived(served, "ask")
        await answer_all(served, judge, lambda number: {"answer": "moon", "traces": sent if number else None})

    sent = {**TRACES, "deletions": [604]}
    run(study, work)
    first, second = (record["raw"] for record in exported(study))
    assert first["traces"] is None
    assert second["traces"] == {
        "inserted": TRACES["inserted"],
        "keys": 2,
        "deletions": 1,
        "first_key_ms": 400,
        "typing_ms": 50,
        "hidden_ms": 300,
        "unfocused_ms": 340,
        "characters": 4,
        "pasted_characters": 3,
        "dropped_characters": 0,
        "autofilled_characters": 0,
        "composed_characters": 0,
        "own_characters": 0,
        "restored_characters": 0,
        "other_characters": 0,
        "contradictions": [],
        "unexplained_characters": 0,
        "characters_per_s": 40.0,
    }
    assert "checks" not in second
    assert main(["study", "export", str(study), "-o", str(tmp_path / "all"), "--personal"]) == 0
    records = [*map(json.loads, (tmp_path / "all" / "records" / "humans.jsonl").read_text().splitlines())]
    personal = records[1]["raw"]["traces"]
    assert personal == {**second["traces"], "key_times": [400, 450], "deletion_times": [600]}
    [row] = table(tmp_path / "all" / "participants.csv")
    assert row["pastes"] == "1"
    assert "checks_failed" not in row
    docs = (Path(__file__).parents[3] / "docs" / "contamination.md").read_text("utf-8")
    assert personal.keys() <= {*re.findall(r"`(\w+)`", docs)}


def test_messages_have_their_traces_by_position(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a conversation of two people, whose second message is sent without."""
    study = changed(talk_studies.made(tmp_path), record=True, copied_instruction=True)
    monkeypatch.setattr(lobby_of_talks.CHANCE, "shuffle", lambda people: None)
    codes: list[str] = []

    async def work(served: ServedStudy) -> None:
        people = [await arrived(served, "talk") for _ in range(2)]
        lobby = lobby_of(served)
        for judge in people:
            lobby.waiting.setdefault(judge.code, 0.0)
            lobby.seen[judge.code] = 1e12
        await lobby.look(people[1])
        [talk] = served.state.meetings.values()
        codes.extend(talk.people)
        for turn in range(4):
            judge = served.state.judges[talk.people[turn % 2]]
            first = served.state.judges[talk.people[0]].codeword
            text = f"{turn} {first}" if turn in (2, 3) else f"message {turn}"
            said: dict[str, Any] = {"turn": turn, "text": text}
            if turn != 1:
                said["traces"] = {**TRACES, "keys": [400 + turn], "first_key": 400 + turn}
            if turn == 3:
                said["traces"]["first_key"] = 1  # which breaks a rule, and costs nobody the message
            assert await lobby.move(judge, said) is None
        assert str(people[0].codeword) in view(served, people[0])["line"]

    run(study, work)
    [record] = exported(study)
    told = record["raw"]["traces"]
    assert [None if each is None else each["first_key_ms"] for each in told] == [400, None, 402, None]
    refused = "first_key: is not the first of keys"
    assert [why and refused in why for why in record["raw"]["traces_refused"]] == [None, None, None, True]
    assert [each["copied_instruction"] for each in record["raw"]["checks"]] == [False, False, True, False]
    persons = record["raw"]["person_checks"]
    assert {code: persons[code]["copied"] for code in codes} == {codes[0]: 1, codes[1]: 0}
    events_text = (study / "events.jsonl").read_text()
    word = next(event["codeword"] for event in events(study) if event.get("judge") == codes[0] and "codeword" in event)
    other = next(event["codeword"] for event in events(study) if event.get("judge") == codes[1] and "codeword" in event)
    (study / "events.jsonl").write_text(events_text.replace(f'"codeword":"{other}"', f'"codeword":"{word}"'))
    assert main(["study", "export", str(study), "-o", str(tmp_path / "people"), "--force"]) == 0
    [record] = map(json.loads, (tmp_path / "people" / "records" / "humans.jsonl").read_text().splitlines())
    assert [each["copied_instruction"] for each in record["raw"]["checks"]] == [False, False, True, False]  # an echo
    assert all(not {"traces", "traces_refused"} & message.keys() for message in record["answer"]["messages"])


@pytest.mark.parametrize("preset", ["online", "interrogation"])
def test_people_of_live_tests_have_traces_and_machines_have_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, preset: str
) -> None:
    given: dict[str, Any] = {"wanted": 1, "record": True, "copied_instruction": True}
    if preset == "online":
        given |= {"exchanges": [2], "person_deceives": 0.0}
    else:
        given |= {"minutes": 100.0}
    study = online_studies.made(tmp_path, preset, **given)
    online_studies.replies(monkeypatch)

    async def work(served: ServedStudy) -> None:
        people = [await arrived(served, "test") for _ in range(2)]
        lobby = lobby_of(served)
        for judge in people * 2:
            await lobby.look(judge)
        [test] = served.state.meetings.values()
        for judge in people:
            assert await lobby.move(judge, {"test": test.id, "act": "ready"}) is None
        judge, person = roles(served, test)
        side = test.people.index(person.code)
        said: dict[str, Any] = {"test": test.id, "act": "judge", "turn": 2, "human": 1}
        if preset == "online":
            for turn in (1, 2):
                await awaited(lobby, judge, "ask")
                common = {"test": test.id, "turn": turn, "traces": TRACES}
                assert await lobby.move(judge, {**common, "act": "ask", "text": f"question {turn}"}) is None
                assert await lobby.move(person, {**common, "act": "answer", "text": f"answer {turn}"}) is None
            await awaited(lobby, judge, "judge")
        else:
            for number in (1, 2):
                common = {"test": test.id, "act": "say", "id": f"m{number}", "traces": TRACES}
                assert await lobby.move(judge, {**common, "side": side, "text": f"question {number}"}) is None
                assert await lobby.move(person, {**common, "text": f"answer {number}"}) is None
            monkeypatch.setattr(lobby, "clock", lambda meeting: 1e6)
            said |= {"confidence": 0.5, "codes": []}
        assert await lobby.move(judge, said) is None

    run(study, work)
    assert main(["study", "export", str(study), "-o", str(tmp_path / "out")]) == 0
    lines = (tmp_path / "out" / "conversations" / "records" / "humans.jsonl").read_text().splitlines()
    for record in map(json.loads, lines):
        messages = record["answer"]["messages"]
        assert len(record["raw"]["traces"]) == len(messages)
        for message, told, marks in zip(messages, record["raw"]["traces"], record["raw"]["checks"], strict=True):
            assert (told is None) is (marks is None) is not message["agent"].startswith("human:")


async def awaited(lobby: Any, judge: Judge, act: str) -> None:
    """Wait until an act is awaited of the judge: the machine has answered, and its answer is shown."""
    while (await lobby.look(judge))["act"] != act:
        await asyncio.sleep(0.01)


def roles(served: ServedStudy, test: Any) -> tuple[Judge, Judge]:
    """The judge of a test, and the person among its agents."""
    judge, *agents = test.people
    [person] = [code for code in agents if code in served.state.judges]
    return served.state.judges[judge], served.state.judges[person]


STILL: dict[str, Any] = {"inserted": [], "deletions": [], "hidden": [], "unfocused": []}
SLOW_KEYS = [*range(0, 5000, 100)]


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({}, []),
        ({"characters": 99999}, ["characters_differ"]),
        ({"keys": [0] * 5000, "first_key": 0}, ["more_keys_than_time"]),
        ({"keys": [*range(0, 800, 40)], "first_key": 0}, ["more_keys_than_time"]),
        ({"keys": [*range(0, 1200, 60)], "first_key": 0}, []),
        ({"keys": [0] * 19, "first_key": 0}, []),
        ({"hidden": [[1010, 1390]], "unfocused": [[1000, 1400]]}, ["keys_while_hidden"]),
        ({"hidden": [[1010, 1080]], "unfocused": [[1000, 1100]]}, []),
        ({"hidden": [[9000, 9900]]}, ["hidden_without_unfocused"]),
        ({"hidden": [[9000, 9900]], "unfocused": [[8950, 9200], [9300, 9950]]}, ["hidden_without_unfocused"]),
        ({"hidden": [[9000, 9900]], "cut": True}, []),
        ({"deletions": [20_000]}, ["later_than_the_answer"]),
        ({"inserted": [{"kind": "paste", "at": 12_000, "characters": 1}]}, ["later_than_the_answer"]),
        ({"deletions": [10_900]}, []),
    ],
)
def test_traces_that_contradict_themselves_are_marked(change: dict[str, Any], names: list[str]) -> None:
    given = {**STILL, "keys": SLOW_KEYS, "first_key": 0, "characters": 5, **change}
    traces = TypingTraces.model_validate(given)
    assert contradictions(traces, "bread", rt=10_000.0) == names
    assert traces_told(traces, "bread", 10_000.0)["contradictions"] == names
    assert "later_than_the_answer" not in contradictions(traces, "bread")
    docs = (Path(__file__).parents[3] / "docs" / "contamination.md").read_text("utf-8")
    assert all(f"`{name}`" in docs for name in names)


# checks


@pytest.mark.parametrize(
    ("pattern", "answer", "is_right"),
    [
        ("3|three", "3.", True),
        ("3|three", "  Three! ", True),
        ("3|three", "“three”", True),
        ("3|three", "three four", False),
        (r"who\?", "Who?", True),
        ("(on )?tuesday", "ON TUESDAY…", True),
    ],
)
def test_marks_at_the_ends_of_an_answer_do_not_count(pattern: str, answer: str, is_right: bool) -> None:
    assert fits(pattern, answer) is is_right


def test_a_pattern_that_takes_too_long_is_told_and_stops_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A stand-in for the package ends the one pattern as it ends a slow one."""
    study = written(tmp_path, number=2)
    questions = '[{ text = "How many?", people = "slow" }, { text = "Who?", people = "me" }]'
    text = (study / "study.toml").read_text().replace("questions = []", f"questions = {questions}")
    (study / "study.toml").write_text(text)
    matched = patterns.regex.fullmatch
    limits: set[float] = set()

    def ends(pattern: str, text: str, flags: int, timeout: float) -> Any:
        limits.add(timeout)
        if pattern == "slow":
            raise TimeoutError
        return matched(pattern, text, flags, timeout=timeout)

    monkeypatch.setattr(patterns.regex, "fullmatch", ends)
    assert main(["study", "check", str(study)]) == 0
    told = capsys.readouterr().err
    assert "people = 'slow': this pattern takes too long" in told
    assert "people = 'me'" not in told

    async def work(served: ServedStudy) -> None:
        judge = await arrived(served, "ask")
        while judge.current is not None and judge.current.kind in ("ask", "check"):
            assert (await served.answer(judge, judge.step, {"answer": "me"})).is_new

    run(study, work)
    assert "took too long for an answer" in "".join(capsys.readouterr())
    passed = {event["passed"] for event in events(study) if event.get("kind") == "check"}
    assert passed == {None, True}
    person = exported(study)[0]["raw"]["person_checks"]
    assert (person["questions"], person["questions_right"]) == (1, 1)
    assert limits == {patterns.LIMIT_S}


def test_a_usual_pattern_is_not_slow() -> None:
    questions = [{"text": "How many?", "people": pattern} for pattern in (r"\d+ apples?", "[a-z ]+!?", "free")]
    assert patterns.slow_patterns(Checks.model_validate({"questions": questions})) == []


@pytest.mark.parametrize(("number", "twice", "again"), [(4, 0.1, 1), (6, 0.5, 3), (6, 0.0, 0), (1, 0.5, 0)])
def test_a_share_above_nothing_repeats_at_least_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], number: int, twice: float, again: int
) -> None:
    study = written(tmp_path, number=number, twice=twice)
    assert main(["study", "check", str(study)]) == 0
    assert ("repeats nothing" in capsys.readouterr().err) is (twice > 0 and not again)

    async def work(served: ServedStudy) -> None:
        judge = await arrived(served, "ask")
        assert sum(isinstance(step, MaterialStep) and step.again for step in judge.steps) == again

    run(study, work)


def test_a_consent_text_that_nobody_has_written_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = written(tmp_path, record=True)
    assert main(["study", "check", str(study)]) == 0
    assert "texts.consent is still the text that `study new` wrote" in capsys.readouterr().err
    text = (study / "study.toml").read_text()
    own = text.replace("You take part of your own will", "We are a laboratory. You take part of your own will")
    assert own != text
    (study / "study.toml").write_text(own)
    assert main(["study", "check", str(study)]) == 0
    assert "texts.consent" not in capsys.readouterr().err


def test_nobody_is_told_of_checks_before_their_step_nor_of_those_that_they_did_not_meet(tmp_path: Path) -> None:
    study = written(tmp_path, number=6, copied_instruction=True, twice=0.5, record=True)
    text = (study / "study.toml").read_text()
    asked = '[{ text = "Who?", people = "me" }]'
    (study / "study.toml").write_text(text.replace("questions = []", f"questions = {asked}"))
    phrases = read_phrases(study, read_settings(study))
    sent = json.dumps(phrases_sent(read_settings(study), phrases, "study"))
    assert not [word for word in phrases["codewords"].split() if word in sent]
    hidden = ("copied_instruction", "consent_traces", "debriefing_copied", "debriefing_twice", "debriefing_questions")
    assert not [name for name in hidden if name in sent or phrases[name][:30] in sent]
    static = Path(step_pages.__file__).with_name("static")
    served_texts = "".join(path.read_text("utf-8") for path in static.iterdir() if path.suffix in (".js", ".css"))
    assert not re.search("codeword|copied_instruction|unseen|hidden instruction|nobody sees", served_texts)

    async def work(served: ServedStudy) -> None:
        judge, _ = await served.join(None, None)
        word = str(judge.codeword)
        while judge.current is not None and judge.current.kind != "ask":
            page = view(served, judge)
            assert word not in json.dumps(page)
            reply = {"agree": True, "consent": page["consent"]} if page["kind"] == "consent" else {}
            await served.answer(judge, judge.step, reply)
        await served.leave(judge)
        assert len(view(served, judge)["debriefing"]) == 1  # of the first stimulus alone
        judge, _ = await served.join(None, None)
        page = view(served, judge)
        await served.leave(judge)
        assert page["kind"] == "consent"
        assert "debriefing" not in view(served, judge)
        judge = await arrived(served, "ask")
        while judge.current is not None and judge.current.kind in ("ask", "check"):
            page = view(served, judge)
            assert ("line" in page) is (page["kind"] == "ask")
            await served.answer(judge, judge.step, {"answer": "moon"})
        assert len(view(served, judge)["debriefing"]) == 3

    run(study, work)


def test_a_share_comes_twice_and_is_no_trial(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = written(tmp_path, number=6, twice=0.4)
    assert main(["study", "check", str(study)]) == 0
    assert "6 for each participant of 6 stimuli, 2 of them twice" in capsys.readouterr().out

    async def work(served: ServedStudy) -> None:
        for _ in range(20):
            judge = await arrived(served, "ask")
            steps = [step for step in judge.steps if isinstance(step, MaterialStep)]
            names = [step.trials[0] for step in steps]
            assert len(names) == 8
            assert len({*names}) == 6
            again = [at for at, step in enumerate(steps) if step.again]
            assert all(names[at] in names[:at] for at in again)
            assert min(again) >= 3
        await answer_all(served, judge, lambda number: {"answer": f"moon{number}"})

    run(study, work)
    records = exported(study)
    samples = {(record["stimulus"], record["sample"]): record["raw"]["checks"]["twice_of"] for record in records}
    assert len(samples) == 8
    assert sum(sample for _, sample in samples) == 2
    assert all(twice_of == (0 if sample else None) for (_, sample), twice_of in samples.items())
    assert main(["trials", str(tmp_path / "people"), "-o", str(tmp_path / "T"), "--every"]) == 0
    key = table(tmp_path / "T.key.csv")
    assert len(key) == 6
    assert {row["sample"] for row in key} == {"0"}


@pytest.mark.parametrize("task", ["object_detection", "image_captioning"])
def test_the_form_lets_the_same_be_said_of_the_same_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, task: str
) -> None:
    monkeypatch.setattr("judging.study.pages.stimulus_material.FASTEST", 0.0)
    study = changed(made(tmp_path, task, number=2), twice=0.5)
    objects = {"s0": "dog cat sun", "s1": "tree car sofa", "s2": "cup hat pen"}
    objects |= {"s3": "bed fish shoe", "s4": "road bird lamp", "s5": "desk door window"}
    said: dict[str, Any] = {name: text.split() for name, text in objects.items()}
    if task == "image_captioning":
        said = {name: f"a {text} and two more things here" for name, text in objects.items()}

    async def work(served: ServedStudy) -> None:
        judge = await arrived(served, "ask")
        while isinstance(step := judge.current, MaterialStep):
            reply = await served.answer(judge, judge.step, {"answer": said[step.trials[0]], "rt": 9000.0})
            assert reply.is_new, reply.flags

    run(study, work)
    assert [record["sample"] for record in exported(study)].count(1) == 1


def test_questions_stand_at_random_places_and_are_marked(tmp_path: Path) -> None:
    study = written(tmp_path, number=4)
    text = (study / "study.toml").read_text().replace("questions = []", "")
    tables = "".join(
        f"[[checks.questions]]\ntext = {json.dumps(each['text'])}\npeople = {json.dumps(each['people'])}\n"
        for each in QUESTIONS
    )
    (study / "study.toml").write_text(f"{text}\n{tables}")
    assert main(["study", "check", str(study)]) == 0
    places = set()
    replies = {"Which day follows Monday?": ["TUESDAY", "  on  tuesday ", "Tuesday, of course"], "Why?": ["so"] * 3}

    async def work(served: ServedStudy) -> None:
        for _ in range(30):
            judge = await arrived(served, "ask")
            kinds = [step.kind for step in judge.steps]
            at = [number for number, kind in enumerate(kinds) if kind == "check"]
            assert len(at) == 2
            assert kinds[kinds.index("instructions") + 1] == "ask"
            places.add(tuple(at))
        for number in range(3):
            judge = await arrived(served, "ask")
            while judge.current is not None and judge.current.kind in ("ask", "check"):
                said = "moon"
                if judge.current.kind == "check":
                    assert view(served, judge)["text"] == judge.current.text
                    assert "people" not in view(served, judge)  # the page does not tell what is right
                    with pytest.raises(BadAnswer):
                        await served.answer(judge, judge.step, {"answer": " "})
                    said = replies[judge.current.text][number]
                await served.answer(judge, judge.step, {"answer": said})
            assert len(view(served, judge)["debriefing"]) == 1

    run(study, work)
    assert len(places) > 5
    assert all("answers" not in record["raw"]["person_checks"] for record in exported(study))
    assert main(["study", "export", str(study), "-o", str(tmp_path / "all"), "--personal"]) == 0
    lines = (tmp_path / "all" / "records" / "humans.jsonl").read_text().splitlines()
    persons = {record["agent"]: record["raw"]["person_checks"] for record in map(json.loads, lines)}
    assert [(told["questions_right"], told["questions"]) for told in persons.values()] == [(1, 1), (1, 1), (0, 1)]
    asked = [
        {each["question"]: (each["answer"], each["passed"]) for each in told["answers"]} for told in persons.values()
    ]
    assert [each["Why?"] for each in asked] == [("so", None)] * 3
    assert asked[1]["Which day follows Monday?"] == ("on tuesday", True)
    rows = table(tmp_path / "all" / "participants.csv")
    assert [row["checks_failed"] for row in rows][-3:] == ["0", "0", "1"]
    assert len(rows) == 33


def test_who_follows_the_hidden_instruction_is_marked_and_nothing_is_removed(tmp_path: Path) -> None:
    """Also where the form has refused the answer that followed it."""
    study = changed(made(tmp_path, "word_association", number=3), copied_instruction=True)
    words: set[str] = set()

    async def work(served: ServedStudy) -> None:
        for _ in range(25):
            judge, _ = await served.join(None, None)
            assert judge.codeword is not None
            words.add(judge.codeword)
        judge = await arrived(served, "ask")
        word = str(judge.codeword)
        assert word in view(served, judge)["line"]
        assert (await served.answer(judge, judge.step, {"answer": f"{word} moon"})).flags == ["several_words"]
        await served.answer(judge, judge.step, {"answer": "moon"})
        await served.answer(judge, judge.step, {"answer": word.upper()})
        await served.answer(judge, judge.step, {"answer": "sea"})
        [told] = view(served, judge)["debriefing"]
        assert word in told

    run(study, work)
    assert len(words) > 2
    records = exported(study)
    assert [record["raw"]["checks"]["copied_instruction"] for record in records] == [True, True, False]
    assert {record["raw"]["person_checks"]["copied"] for record in records} == {2}


# deletion


@pytest.mark.parametrize("way", ["leave", "forget"])
def test_traces_and_checks_are_deleted_with_the_person(tmp_path: Path, way: str) -> None:
    questions = 'questions = [{ text = "Why?", people = "free" }]'
    study = written(tmp_path, record=True, copied_instruction=True)
    (study / "study.toml").write_text((study / "study.toml").read_text().replace("questions = []", questions))
    gone: list[str] = []
    marked = {**TRACES, "keys": [123456, 654321], "first_key": 123456}

    async def work(served: ServedStudy) -> None:
        judge = await arrived(served, "ask")
        gone.extend((judge.code, str(judge.codeword), "123456", "654321", "whatever I think"))
        await answer_all(served, judge, lambda _: {"answer": "whatever I think"[:8], "traces": marked})
        other = await arrived(served, "ask")
        await answer_all(served, other, lambda _: {"answer": "sea", "traces": TRACES})
        if way == "leave":
            await served.leave(judge)
            told, of_questions = view(served, judge)["debriefing"]
            assert str(judge.codeword) in told
            assert "questions in between" in of_questions

    run(study, work)
    if way == "forget":
        everything = "".join(path.read_text() for path in study.rglob("*") if path.is_file())
        assert "123456" in everything
        assert main(["study", "export", str(study), "-o", str(tmp_path / "own.json"), "--judge", gone[0]]) == 0
        assert "123456" in (tmp_path / "own.json").read_text()  # what is kept of a person is told to them
        assert main(["study", "forget", str(study), gone[0]]) == 0
    else:
        from judging.study.log.files import forget

        forget(study, [gone[0]])
    everything = "".join(path.read_text() for path in study.rglob("*") if path.is_file() and path.name != "study.toml")
    codeword = gone.pop(1)
    assert not [text for text in gone if text in everything]
    others = [event["codeword"] for event in events(study) if event["event"] == "joined"]
    assert everything.count(codeword) <= others.count(codeword)
    [record, *_] = exported(study)
    assert record["agent"] == f"human:{next(iter(read_state(study).judges))}"
