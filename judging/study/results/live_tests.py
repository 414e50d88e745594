"""The export of live tests: two conversations each, trials of both as the judge saw them, and the verdicts on these."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import orjson

from agents.answers import VerdictAnswer, plain
from agents.stimuli import ShownAnswer
from judging.study.log.meeting import AGENT_SIDES, Interrogation, Line, OnlineTest, VerdictOnTest
from judging.study.log.state import State
from judging.study.results.conversations import RecordFields, agent_name, conversation, numbered
from judging.study.results.writing import WritingResults
from judging.trial_sets.candidates import AnsweredStimulus, Candidate, Truth, is_person
from judging.trial_sets.message_lines import Letter
from judging.trial_sets.trial_set import TRIALS_FILE, JudgesList, write_trial_set
from serving.files.atomic_files import replacing
from serving.runs.opening import new_people_run

CONVERSATIONS_FILE = "conversations.jsonl"
"""The stimulus set of the tests, a row each."""
Test = OnlineTest | Interrogation


def write_tests(
    made: Path,
    out: Path,
    tests: Sequence[Test],
    state: State,
    verdicts: Sequence[RecordFields],
    seed: int,
    writing: WritingResults,
) -> None:
    """Write the tests into the folder ``made``, which will be ``out`` when all is done. Raises StorageError.

    ``verdicts`` are those of :func:`verdict_on_test`; ``seed`` draws the order of the trials, and
    ``writing`` tells how people wrote.
    """
    source = made / CONVERSATIONS_FILE
    with replacing(source) as file:
        file.writelines(orjson.dumps(_stimulus(test)) + b"\n" for test in tests)
    conversations = [
        *numbered(_conversation_of_test(test, side, state, writing) for test in tests for side in AGENT_SIDES)
    ]
    run = _write_run(made / "conversations", source, out, conversations)
    of_tests = zip(tests, conversations[::2], conversations[1::2], strict=True)
    candidates = [(trial, False) for test, *both in of_tests for trial in _trials(test, both, made, run)]
    lists = [JudgesList("conversation-all", "conversation", candidates)]
    notes = {"runs": [], "options": {}, "tasks": {"conversation": {"candidates": len(candidates)}}}
    rows, _ = write_trial_set(made / "trials", lists, notes, seed, force=False)
    trials = {(key["stimulus"], key["turns"]): trial["id"] for trial, key in rows}
    named = [
        {**row, "stimulus": trials[row["raw"]["test"], 2 * row["raw"].get("after", 0) or None]} for row in verdicts
    ]
    _write_run(made / "verdicts", made / "trials" / TRIALS_FILE, out, named)


def _write_run(folder: Path, source: Path, out: Path, records: Sequence[RecordFields]) -> str:
    run = new_people_run(folder, source, "conversation")
    run.write_records("humans", records)
    place = out.resolve() / source.relative_to(folder.parent)  # where it will be
    run.meta["set"] |= {"source": str(place), "root": str(place.parent)}
    run.save()
    return str(run.meta["run"])


def _stimulus(test: Test) -> dict[str, Any]:
    most = max(1, *(len(test.lines(side)) for side in AGENT_SIDES))
    row: dict[str, Any] = {"id": test.id, "task": "conversation", "who_starts": "A", "exchanges": most}
    if isinstance(test, Interrogation):
        return {**row, "mode": "burst", "meta": {"pair": test.pair, "minutes": f"{test.seconds / 60:g}"}}
    return {**row, "meta": {"condition": test.condition, "pair": test.pair, "exchanges": str(test.exchanges)}}


def _conversation_of_test(test: Test, side: int, state: State, writing: WritingResults) -> RecordFields:
    lines = test.lines(side)
    messages = [asdict(replace(line, traces=None)) for line in lines]
    for message in messages:
        del message["traces"], message["traces_refused"]  # they are told apart from what was said
    withdrawn: list[RecordFields] = []
    if isinstance(test, Interrogation):
        withdrawn = [
            {"speaker": "B", "at": event.clock, "turn": event.turn, "text": event.text, "why": event.why}
            for event in test.withdrawn
            if event.side == side
        ]
    people = (test.people[0], test.people[side])
    record = conversation(test, people, state, messages, withdrawn)
    condition = {"condition": test.condition} if isinstance(test, OnlineTest) else {}
    raw = {"test": test.id, "agent": side, "part": test.parts[side - 1], **condition}
    raw |= writing.of_conversation(people, lines)
    return {"stimulus": test.id, "raw": raw, **record}


def _trials(test: Test, conversations: Sequence[RecordFields], folder: Path, run: str) -> Iterator[Candidate]:
    """A trial for each verdict, of both conversations as the judge saw them then."""
    stimulus = AnsweredStimulus("conversation", test.id, _stimulus(test), folder, None, None)
    for number in [judged.exchanges for judged in test.judged]:
        both = []
        for side, record in zip(AGENT_SIDES, conversations, strict=True):
            lines = _lines_seen(test, side, number)
            agent = record["agent"].partition("~")[2]
            truth: Truth = "human" if is_person(agent) else "machine"
            speaker: Letter | None = "B" if truth == "machine" and test.pair == "person machine" else None
            messages = [{"speaker": line.speaker, "text": line.text} for line in lines]
            key = (run, record["agent"], record["sample"])
            shown = ShownAnswer.model_validate({"messages": messages})
            delays = [line.delay_s for line in lines]
            both.append(Candidate(stimulus, agent, truth, False, key, shown, speaker, delays=delays))
        turns = None if number is None else 2 * number
        columns = {} if number is None else {"after": str(number)}
        yield replace(both[0], beside=both[1], length=turns, turns=turns, columns=columns)


def _lines_seen(test: Test, side: int, exchanges: int | None) -> list[Line]:
    # Of an exchange the judge sees both answers at once.
    if not isinstance(test, OnlineTest):
        return test.lines(side)
    lines = list[Line]()
    for exchange, question in enumerate(test.questions[:exchanges]):
        delay = round(test.shown_at(exchange) - question.at, 3)
        lines += [question, replace(test.answers[exchange][side], delay_s=delay)]
    return lines


def verdict_on_test(
    test: Test, judged: VerdictOnTest, state: State, questions: Mapping[str, Mapping[str, Any]]
) -> RecordFields:
    """The record of a verdict, but for its stimulus; ``questions`` has what participants say of themselves."""
    answer = {"verdict": judged.verdict, "confidence": judged.confidence, "reason": judged.reason}
    more = {"codes": judged.codes} if isinstance(test, Interrogation) else {"after": judged.exchanges}
    return {
        "task": "judgement",
        "agent": agent_name(judged.who, state),
        "answer": plain(VerdictAnswer.model_validate(answer)),
        "raw": {"test": test.id, **more, "seconds": judged.seconds, "questions": questions.get(judged.who, {})},
        "created": test.at,
    }
