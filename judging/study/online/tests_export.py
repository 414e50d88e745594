"""Online tests as files that the other commands read: their conversations, and trials with the verdicts on them.

A test is two conversations, of the judge (A) with each agent (B), and after each exchange that was judged a trial of
the two beside each other, in the order in which the judge had them. Tests that are void or go on are left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from agents.answers import ConversationAnswer, Message, VerdictAnswer, plain
from agents.errors import InputError
from agents.stimuli import ShownAnswer
from judging.candidates import Candidate, Letter, Shown, Truth
from judging.study.events import State
from judging.study.online.course import SIDES, Judged, OnlineTest, Part
from judging.study.study_export import PARTICIPANTS, Record, write_participants, write_people_run
from judging.trial_set import MARKER, JudgesList, write_trial_set
from serving.runs.atomic_files import replacing
from serving.runs.output_paths import new_folder

SOURCE = "conversations.jsonl"
PARTS_TRUTH: Mapping[Part, Truth] = {"person": "human", "machine": "machine"}


def export_tests(
    state: State, out: Path, *, seed: int, force: bool, personal: Mapping[str, Mapping[str, Any]] | None = None
) -> int:
    """Write the folder ``out``; returns the number of verdicts. Raises InputError where no test is over, StorageError.

    It has ``conversations`` (a run folder), ``trials`` with their key beside them, ``verdicts`` (a run folder about
    these) and, with ``personal``, ``participants.csv``.
    """
    tests = [test for test in state.tests.counted() if test.is_over()]
    if not tests:
        raise InputError("no test is over yet")
    with new_folder(out, marker=SOURCE, force=force) as made:
        source = made / SOURCE
        with replacing(source) as file:
            file.writelines(orjson.dumps(_stimulus(test)) + b"\n" for test in tests)
        conversations = [record for test in tests for record in _conversations(test, state)]
        run = _write_run(made / "conversations", source, out, conversations)
        trials = _write_trials(made / "trials", tests, state, run, seed)
        verdicts = [
            _verdict(test, judged, trials[test.id, judged.exchanges], state) for test in tests for judged in test.judged
        ]
        _write_run(made / "verdicts", made / "trials" / MARKER, out, verdicts)
        if personal is not None:
            write_participants(made / PARTICIPANTS, state, personal)
    return len(verdicts)


def _stimulus(test: OnlineTest) -> dict[str, Any]:
    about = {"condition": test.condition, "pair": test.pair, "exchanges": str(test.exchanges)}
    return {"id": test.id, "task": "conversation", "exchanges": 2 * test.exchanges, "who_starts": "A", "meta": about}


def _conversations(test: OnlineTest, state: State) -> Iterator[Record]:
    samples: Counter[str] = Counter()  # two machines may be the same agent
    for side in SIDES:
        judge, agent = (_name(who, state) for who in (test.judge, test.agents[side - 1]))
        pair = f"{judge}~{agent}"
        messages: list[Message] = []
        for question, answers in zip(test.questions, test.answers, strict=True):
            for speaker, who, part in (("A", judge, question), ("B", agent, answers[side])):
                messages.append(
                    Message(
                        turn=len(messages), speaker=speaker, agent=who, text=part.text, raw=part.raw, at=part.clock,
                        delay_s=part.delay_s,
                    )
                )  # fmt: skip
        yield {
            "task": "conversation",
            "stimulus": test.id,
            "agent": pair,
            "sample": samples[pair],
            "kind": "machine" if state.judges.keys().isdisjoint(test.people) else "human",
            "answer": plain(ConversationAnswer(messages=messages)),
            "raw": {"test": test.id, "agent": side, "part": test.parts[side - 1], "condition": test.condition},
            "created": test.at,
        }
        samples[pair] += 1


def _write_trials(
    folder: Path, tests: Iterable[OnlineTest], state: State, run: str, seed: int
) -> dict[tuple[str, int], str]:
    """Write the trials; returns their ids by test and exchanges."""
    candidates = [_trial(test, judged.exchanges, state, folder, run) for test in tests for judged in test.judged]
    lists = [JudgesList("conversation-all", "conversation", [(candidate, False) for candidate in candidates])]
    notes = {"runs": [], "options": {}, "tasks": {"conversation": {"candidates": len(candidates)}}}
    rows, _ = write_trial_set(folder, lists, notes, seed, force=False)
    return {(key["stimulus"], key["length"] // 2): trial["id"] for trial, key in rows}


def _trial(test: OnlineTest, exchanges: int, state: State, folder: Path, run: str) -> Candidate:
    row, trial = _stimulus(test), test.trial(exchanges)
    shown = Shown("conversation", test.id, row, folder, None, None)
    delays = [  # as the judge saw them: both answers at once
        seconds
        for number, question in enumerate(test.questions[:exchanges])
        for seconds in (question.delay_s, round(test.shown_at(number) - question.clock, 3))
    ]
    both = []
    for side, conversation in zip(SIDES, (trial["answer"], trial["beside"]), strict=True):
        agent, truth = _name(test.agents[side - 1], state), PARTS_TRUTH[test.parts[side - 1]]
        speaker: Letter | None = "B" if truth == "machine" and test.pair == "person machine" else None
        record = run, f"{_name(test.judge, state)}~{agent}", 0
        answer = ShownAnswer.model_validate(conversation)
        both.append(Candidate(shown, agent, truth, False, record, answer, speaker, 2 * exchanges, delays))
    columns = {"after": str(exchanges)}
    return replace(both[0], beside=both[1], turns=2 * exchanges, columns=columns)


def _verdict(test: OnlineTest, judged: Judged, trial: str, state: State) -> Record:
    is_person = judged.who in state.judges
    seconds = round(judged.clock - test.shown_at(judged.exchanges - 1), 3)  # from the answers to the verdict
    answer = VerdictAnswer.model_validate({"verdict": judged.verdict, "reason": judged.reason})
    return {
        "task": "judgement",
        "stimulus": trial,
        "agent": _name(judged.who, state),
        "sample": 0,
        "kind": "human" if is_person else "machine",
        "answer": plain(answer),
        "raw": {"test": test.id, "after": judged.exchanges, "seconds": seconds},
        "created": test.at,
    }


def _name(who: str, state: State) -> str:
    return f"human:{who}" if who in state.judges else who


def _write_run(folder: Path, source: Path, out: Path, records: list[Record]) -> str:
    """Write a run folder about ``source``; returns its id."""
    run = write_people_run(folder, source, records)
    place = out.resolve() / source.relative_to(folder.parent)  # where it will be
    run.meta["set"] |= {"source": str(place), "root": str(place.parent)}
    run.save()
    return str(run.meta["run"])
