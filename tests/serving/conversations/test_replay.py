"""Journals and records that version 0.1 wrote: the same settings write the same bytes, however often they are cut.

``replayed.jsonl`` holds the journal and the record of each case. ``python tests/serving/conversations/test_replay.py``
would write it anew: only a change that is meant to move records may do that.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import pytest

from agents.errors import AnswerError
from agents.language.filters.policies import COMPLETION, FilterSettings, Policy
from agents.stimuli import ConversationStimulus
from serving.conversations.conversation import STRIDE
from serving.conversations.dialogue import BurstDialogue, Dialogue
from serving.conversations.journal import read_journal
from serving.conversations.pseudo import FIRST
from serving.conversations.scenario import PairSettings
from serving.runs.records import Record, RecordHeader
from serving.scheduling.request import Outcome, OutcomeStatus
from tests.helpers.scripted import Scripted, SlowScheduler, hold, row
from tests.helpers.virtual_time import run_virtually

STORED = Path(__file__).parent / "replayed.jsonl"
HEADER = RecordHeader("0123456789ab", "machine", "d" * 64, "checkpoint", None)
CREATED = "2026-01-01T00:00:00.000Z"
LOOP = "I have said this before, you know."
LINES = ("I like tea and the sea.", "Do you?", "It rains a lot here, is all I can say.", "Well.")


def sentence(turn: int, attempt: int) -> str:
    return f"Message {turn} of attempt {attempt} has something new to tell."


def looping(turn: int, attempt: int) -> str:
    return LOOP if turn > 1 and attempt < 2 * STRIDE else sentence(turn, attempt)


def empty_twice(turn: int, attempt: int) -> str:
    return "..." if turn == 3 and attempt % STRIDE < 2 else looping(turn, attempt)


def bursting(turn: int, attempt: int) -> str:
    if turn == 2 and attempt % STRIDE < 1:
        return " \n..."
    return "\n".join(f"{LINES[(turn + part) % 4]} ({turn} {attempt} {part})" for part in range(1 + turn % 3))


def burst_looping(turn: int, attempt: int) -> str:
    return f"{LOOP}\nAnd more." if attempt < STRIDE else bursting(turn, attempt)


def pseudo(turn: int, attempt: int) -> str:
    if turn >= 0:
        return sentence(turn, attempt)
    return ("cats\ndogs", "Ann: I like cats.\nBob: I do not.\nAnn: Why?", "Bob: They scratch.\nAnn: I see.")[
        (turn + 1) % 3
    ]


@dataclass(frozen=True)
class Case:
    """A conversation of two agents."""

    script: Callable[[int, int], str] = sentence
    policy: Policy = field(default_factory=Policy)
    ends: Mapping[tuple[int, int], OutcomeStatus] = field(default_factory=dict)
    fields: Mapping[str, Any] = field(default_factory=dict)
    writers: tuple[bool, bool] = (False, False)
    settings: Mapping[str, Any] = field(default_factory=dict)


AGAIN = COMPLETION.model_copy(update={"empty": "resample_turn"})
PSEUDO = {"pseudo": {"topics": 2, "turns": 3}, "names": ["Ann", "Bob"], "who_starts": "A"}
CASES = {
    "plain": Case(),
    "opener and history": Case(
        fields={"opener": "Hello there, you two.", "history": [{"speaker": "A", "text": "Long ago."}]}
    ),
    "filters": Case(empty_twice, AGAIN),
    "never stops looping": Case(lambda turn, attempt: LOOP, COMPLETION),
    "own filters": Case(looping, AGAIN, {(2, 0): "rejected", (5, STRIDE): "rejected"}),
    "fails": Case(ends={(3, 0): "failed"}),
    "pseudo": Case(pseudo, fields=PSEUDO, writers=(True, False)),
    "burst": Case(bursting, AGAIN, fields={"mode": "burst", "exchanges": 20}),
    "burst loops": Case(burst_looping, AGAIN, fields={"mode": "burst", "exchanges": 12}, settings={"quiet_s": 2.0}),
    "burst opener": Case(bursting, fields={"mode": "burst", "exchanges": 9, "opener": "Hi.\nYou there?"}),
    "burst own filters": Case(bursting, ends={(1, 0): "rejected"}, fields={"mode": "burst", "exchanges": 9}),
    "burst empty": Case(lambda turn, attempt: " \n" if turn == 1 else "Yes.", fields={"mode": "burst"}),
    "burst pseudo": Case(pseudo, fields={**PSEUDO, "mode": "burst"}, writers=(False, True)),
}


def converse(case: Case, scheduler: Any, journalled: Any = None) -> tuple[bytes, list[bytes]]:
    settings = PairSettings(attempts=4, thresholds=FilterSettings(repeated_sentence=2), **case.settings)
    more = {"writers": case.writers, "journalled": journalled or {}}
    policy = case.policy.model_copy(update={"partner_echo": "off"})  # which version 0.1 lacks
    item, lines = hold(scheduler, settings, policy, row(**case.fields), **more)
    return record(item), lines


def record(item: Outcome) -> bytes:
    return HEADER.line(item._replace(created=CREATED))


def stored() -> dict[str, dict[str, Any]]:
    return {case["name"]: case for case in map(json.loads, STORED.read_text().splitlines())}


@pytest.mark.parametrize("name", CASES)
def test_a_journal_that_is_cut_anywhere_ends_as_the_same_record(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    old = stored()[name]
    journal = [line.encode() for line in old["journal"]]
    for known in range(len(journal) + 1):
        (tmp_path / "journal.jsonl").write_bytes(b"".join(journal[:known]))
        turns = read_journal(tmp_path / "journal.jsonl", lambda stimulus, sample: True).get(("c", 0))
        scheduler = Scripted(case.script, case.ends)
        line, fresh = converse(case, scheduler, turns)
        assert line == old["record"].encode()
        assert fresh == journal[known:]
        assert len(scheduler.asked) >= len(fresh)


def test_an_attempt_at_a_pseudo_dialogue_stands_in_a_valid_record() -> None:
    """Its number is that of no turn, so it is negative."""
    case = Case(pseudo, ends={(FIRST, 0): "rejected"}, fields=PSEUDO, writers=(True, False))
    line, _ = converse(case, Scripted(case.script, case.ends))
    [attempt] = Record.model_validate_json(line).attempts
    assert (attempt.turn, attempt.attempt) == (FIRST, 0)


@dataclass(frozen=True)
class PersonCase:
    """A conversation with a person, who says each text after a wait."""

    replies: tuple[str | Exception, ...]
    says: tuple[tuple[float, str], ...]
    person: str = "A"
    fields: Mapping[str, Any] = field(default_factory=dict)


LATE = AnswerError("deadline", "too late")
PERSON = {
    "person": PersonCase(("One.", LATE, "rejected", "Two."), ((3, "Hello!"), (9, "And?"), (1, "And you?"), (2, "So?"))),
    "person is B": PersonCase(("One.", "Two.\nThree."), ((40, "Hello!"), (9.5, "Bye!")), "B", {"exchanges": 4}),
    "person opener": PersonCase(("One.", "Two."), ((4, "I see."),), fields={"opener": "Hi\nyou", "exchanges": 4}),
    "person pseudo": PersonCase(
        ("Cats", "", "Mine", "Yours", "One."), ((1, "Hello!"),), fields={"pseudo": {"topics": 1, "turns": 2}}
    ),
    "person burst": PersonCase(
        ("One.\nTwo.\nThree.", "Four.", LATE, "Five.\nSix."),
        ((3, "Hello!"), (1, "Are you there?"), (12, "Wait."), (30, "Hm."), (30, "Now?")),
        fields={"mode": "burst", "exchanges": 10},
    ),
    "person burst opener": PersonCase(
        ("One.\nTwo.", "Three."), ((60, "Yes."), (25, "No.")), "B", {"mode": "burst", "exchanges": 7, "opener": "a\nb"}
    ),
    "person burst pseudo": PersonCase(
        ("Cats", "Mine", "Yours", "One."), ((9, "Yes."),), fields={"mode": "burst", "pseudo": {"topics": 1, "turns": 2}}
    ),
}


async def with_person(case: PersonCase) -> bytes:
    loop = asyncio.get_running_loop()
    about: dict[str, Any] = {"id": "c", "type": "HM", "names": ("Ann", "Bob"), "who_starts": "A", **case.fields}
    stimulus = ConversationStimulus(task="conversation", **about)
    kind = BurstDialogue if stimulus.mode == "burst" else Dialogue
    dialogue = kind(SlowScheduler(case.replies), "talker", stimulus, person=case.person, clock=loop.time)  # type: ignore[arg-type]
    await dialogue.open()
    for wait, text in case.says:
        await asyncio.sleep(wait)
        try:
            await dialogue.say(text)
        except AnswerError:
            continue
    if stimulus.mode == "burst":
        await asyncio.sleep(60)
    dialogue.close()
    row = json.loads(await dialogue.record(HEADER))
    return orjson.dumps(row | {"created": CREATED})


@pytest.mark.parametrize("name", PERSON)
def test_a_conversation_with_a_person_has_the_same_record(name: str) -> None:
    assert run_virtually(with_person(PERSON[name])) == stored()[name]["record"].encode()


if __name__ == "__main__":
    with STORED.open("wb") as file:
        for name, case in CASES.items():
            line, journal = converse(case, Scripted(case.script, case.ends))
            file.write(
                orjson.dumps({"name": name, "journal": [one.decode() for one in journal], "record": line.decode()})
                + b"\n"
            )
        for name, talk in PERSON.items():
            file.write(orjson.dumps({"name": name, "record": run_virtually(with_person(talk)).decode()}) + b"\n")
