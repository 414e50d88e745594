"""``turinglike study export``: run folders and ``verdicts.csv``. An online test is two conversations and its
verdicts."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from agents.answers import BY_TASK, ConversationAnswer, Message, VerdictAnswer, Withdrawn, plain
from agents.errors import InputError
from agents.stimuli import Asked, ShownAnswer
from judging.candidates import AnsweredStimulus, Candidate, Letter, Truth
from judging.study.events import Judge, State, read_personal, read_state
from judging.study.exclusions import VerdictRow, completion_code, outcome_of
from judging.study.materials import Material
from judging.study.meetings import SIDES, Interrogation, OnlineTest, Talk
from judging.study.settings import CLOSING, FIELDS, StudySettings, TestsSettings
from judging.trial_set import TRIALS_FILE, JudgesList, write_trial_set
from serving.runs.atomic_files import replacing
from serving.runs.csv_tables import write_rows
from serving.runs.output_paths import new_folder
from serving.runs.run_opening import new_people_run

TABLE, PARTICIPANTS, CONVERSATIONS = "verdicts.csv", "participants.csv", "conversations.jsonl"
OF_PARTICIPANTS = ("outcome", "code", "paid", "answers", "excluded", "rules", "consent", *FIELDS, *CLOSING)
HIDDEN = ("truth", "agent", "correct", "catch", "stimulus")  # of a verdict's row: not among what the judge did
Record = dict[str, Any]
Test = OnlineTest | Interrogation
Personal = Mapping[str, Mapping[str, Any]]


def export(folder: Path, material: Material, out: Path, *, personal: bool, force: bool) -> int:
    """Write ``out``, with ``personal`` answers; the number of verdicts or answers. Raises InputError, StorageError."""
    known, state = read_personal(folder), read_state(folder)
    rows = material.rows(state, known)
    asked = material.settings.questions
    questions: Sequence[str] = asked.before if personal or asked.public else ()
    about = {code: {name: known.get(code, {}).get(name) for name in questions} for code in state.judges}
    if isinstance(material.settings, TestsSettings):
        held: list[Test] = [*state.counted(OnlineTest), *state.counted(Interrogation)]
        tests = [test for test in held if test.is_over()]
        records = [record for test in tests for record in _verdicts_on_test(test, state, about)]
        marker = CONVERSATIONS
    else:
        records = [_verdict(row, about[row["judge"]]) for row in rows if row["phase"] != "practice"]
        records += [answer for judge in state.judges.values() for answer in _answers(judge, material.settings.task)]
        records += _conversations(state)
        marker = "run.json"
    if not records:
        raise InputError(f"{folder}: nobody has answered yet")
    with new_folder(out, marker=marker, force=force) as made:
        if isinstance(material.settings, TestsSettings):
            _write_tests(made, out, tests, state, records, material.settings.tests.seed)
        else:
            new_people_run(made, material.source).write_records("humans", records)
        if personal:
            _write_participants(made / PARTICIPANTS, state, known, rows, material.settings)
        if rows:
            fields = [*FIELDS, *CLOSING] if personal else []
            with (made / TABLE).open("w", encoding="utf-8", newline="") as file:
                write_rows(file, [*rows[0], *fields], (_cells(row, known, fields) for row in rows))
    return len(records)


def _write_participants(
    path: Path, state: State, known: Personal, verdicts: Sequence[VerdictRow], settings: StudySettings
) -> None:
    """Who is ``paid`` (1: who finished and failed no checks) and by which rules verdicts are excluded."""
    columns = ("participant", "worker", *settings.judges.parameters, *OF_PARTICIPANTS)
    excluded: dict[str, list[list[str]]] = defaultdict(list)
    for row in verdicts:
        if row["rules"] and row["phase"] != "practice":
            excluded[row["judge"]].append(row["rules"])

    def cells(code: str, judge: Judge) -> list[Any]:
        rules, outcome = excluded[code], outcome_of(judge, settings)
        values = {
            "participant": f"human:{code}",
            "outcome": outcome,
            "code": completion_code(judge, settings),
            "paid": int(outcome == "finished"),
            "answers": judge.counted(judge.step),
            "excluded": len(rules),
            "rules": " ".join(dict.fromkeys(rule for each in rules for rule in each)),
            "consent": judge.of("consent").get("consent"),
            **known.get(code, {}),
        }
        return [values.get(name) for name in columns]

    with path.open("w", encoding="utf-8", newline="") as file:
        write_rows(file, columns, (cells(*each) for each in state.judges.items() if each[1].ended != "left"))


def _cells(row: VerdictRow, known: Personal, fields: Sequence[str]) -> list[Any]:
    values = [" ".join(value) if isinstance(value, list) else value for value in row.values()]
    values += [known.get(row["judge"], {}).get(field) for field in fields]
    return [int(value) if isinstance(value, bool) else value for value in values]


def _verdict(row: VerdictRow, about: Mapping[str, Any]) -> Record:
    return {
        "task": "judgement",
        "stimulus": row["trial"],
        "agent": f"human:{row['judge']}",
        "sample": int(row["again"]),
        "answer": {"verdict": row["verdict"], "confidence": row["confidence"], "reason": row["reason"] or None},
        "raw": {name: value for name, value in row.items() if name not in HIDDEN} | {"questions": about},
        "created": row["at"],
    }


def _answers(judge: Judge, task: Asked) -> Iterator[Record]:
    # Answers that were to be replaced are rejected attempts.
    for step, event in zip(judge.steps, judge.answers, strict=False):
        if step["kind"] != "ask":
            continue
        tried = [(old["said"], old["flags"], True) for old in judge.told if old["step"] == event["step"]]
        if event["flags"]:
            tried.append((", ".join(event["answer"]), event["flags"], False))
        attempts = []
        for number, (text, flags, rejected) in enumerate(tried):
            verdicts = [{"filter": flag, "rejected": rejected, "found": text} for flag in flags]
            about = {"attempt": number, "turn": None, "seed": None, "answer": None, "raw": text}
            attempts.append({**about, "verdicts": verdicts})
        yield {
            "task": task,
            "stimulus": step["trials"][0],
            "agent": f"human:{judge.code}",
            "sample": 0,
            "answer": _typed(task, event["answer"]),
            "raw": {"rt": event["rt"], "away": event["away"]},
            "attempts": attempts,
            "created": event["at"],
        }


def _typed(task: Asked, texts: Sequence[str]) -> dict[str, Any]:
    field = {"color_estimation": "color", "object_detection": "labels", "image_captioning": "text"}.get(task, "word")
    return plain(BY_TASK[task].model_validate({field: texts if field == "labels" else texts[0]}))


def _name(who: str, state: State) -> str:
    return f"human:{who}" if who in state.judges else who


def _conversations(state: State) -> Iterator[Record]:
    # Conversations that are void, or still go on, are no answers.
    ends: dict[str, dict[str, Mapping[str, Any]]] = defaultdict(dict)  # by conversation and participant
    for judge in state.judges.values():
        for event in judge.answers:
            if event["kind"] == "talk" and event["talk"] is not None:
                ends[event["talk"]][judge.code] = event
    samples: Counter[tuple[str, str]] = Counter()  # the same two may meet again about the same stimulus
    for talk in state.counted(Talk):
        if talk.id not in ends:
            continue
        speakers = [_name(code, state) for code in talk.people]
        pair = "~".join(speakers)
        others = {  # for whom each takes the other
            name: {code: ends[talk.id][code].get(asked) for code in talk.people if code in ends[talk.id]}
            for name, asked in {"guesses": "guess", "sexes": "sex", "ages": "age"}.items()
        }
        yield {
            "task": "conversation",
            "stimulus": talk.stimulus,
            "agent": pair,
            "sample": samples[pair, talk.stimulus],
            "answer": plain(_conversation(talk, dict(zip("AB", speakers, strict=True)))),
            "raw": {"talk": talk.id, **others},
            "created": talk.at,
        }
        samples[pair, talk.stimulus] += 1


def _conversation(talk: Talk, agents: Mapping[str, str]) -> ConversationAnswer:
    began = datetime.fromisoformat(talk.at)

    def seconds(event: Mapping[str, Any]) -> float:
        return round((datetime.fromisoformat(event["at"]) - began).total_seconds(), 3)

    times = [seconds(event) for event in talk.messages]
    gaps = [at - before for at, before in zip(times, [0.0, *times], strict=False)]
    was_set = min(gaps, default=0.0) < 0  # the machine's clock, backwards: such times are not known
    messages = []
    for event, at, gap in zip(talk.messages, times, gaps, strict=True):
        about = {"turn": event["turn"], "speaker": event["speaker"], "agent": agents[event["speaker"]]}
        when = {"at": None if was_set else at, "delay_s": round(gap, 3) if gap >= 0 else None}
        messages.append(Message(text=event["text"], **about, **when))
    withdrawn = []
    for event in talk.withdrawn:
        about = {"turn": event["turn"], "speaker": event["speaker"], "agent": agents[event["speaker"]]}
        why = "ended" if event["turn"] == len(messages) else "interrupted"
        withdrawn += [Withdrawn(text=text, at=seconds(event), why=why, **about) for text in event["texts"]]
    return ConversationAnswer(messages=messages, withdrawn=withdrawn)


# tests


def _write_tests(
    made: Path, out: Path, tests: Sequence[Test], state: State, verdicts: Sequence[Record], seed: int
) -> None:
    source = made / CONVERSATIONS
    with replacing(source) as file:
        file.writelines(orjson.dumps(_stimulus(test)) + b"\n" for test in tests)
    conversations = [record for test in tests for record in _conversations_of_test(test, state)]
    run = _write_run(made / "conversations", source, out, conversations)
    candidates = [(trial, False) for test in tests for trial in _trials(test, state, made, run)]
    lists = [JudgesList("conversation-all", "conversation", candidates)]
    notes = {"runs": [], "options": {}, "tasks": {"conversation": {"candidates": len(candidates)}}}
    rows, _ = write_trial_set(made / "trials", lists, notes, seed, force=False)
    trials = {(key["stimulus"], orjson.loads(key["columns"]).get("after")): trial["id"] for trial, key in rows}

    named = []
    for row in verdicts:
        after = row["raw"].get("after")
        named.append({**row, "stimulus": trials[row["raw"]["test"], None if after is None else str(after)]})
    _write_run(made / "verdicts", made / "trials" / TRIALS_FILE, out, named)


def _write_run(folder: Path, source: Path, out: Path, records: Sequence[Record]) -> str:
    run = new_people_run(folder, source)
    run.write_records("humans", records)
    place = out.resolve() / source.relative_to(folder.parent)  # where it will be
    run.meta["set"] |= {"source": str(place), "root": str(place.parent)}
    run.save()
    return str(run.meta["run"])


def _stimulus(test: Test) -> dict[str, Any]:
    row: dict[str, Any] = {"id": test.id, "task": "conversation", "who_starts": "A"}
    if isinstance(test, Interrogation):
        most = max(1, *(len(test.chat(side)) for side in SIDES))
        about = {"pair": test.pair, "minutes": f"{test.seconds / 60:g}"}
        return {**row, "mode": "burst", "exchanges": most, "meta": about}
    about = {"condition": test.condition, "pair": test.pair, "exchanges": str(test.exchanges)}
    return {**row, "exchanges": 2 * test.exchanges, "meta": about}


def _conversations_of_test(test: Test, state: State) -> Iterator[Record]:
    samples: Counter[str] = Counter()  # two machines may be the same agent
    for side in SIDES:
        judge, agent = (_name(test.people[at], state) for at in (0, side))
        pair, condition = f"{judge}~{agent}", {"condition": test.condition} if isinstance(test, OnlineTest) else {}
        yield {
            "task": "conversation",
            "stimulus": test.id,
            "agent": pair,
            "sample": samples[pair],
            "answer": plain(_conversation_with(test, side, {"A": judge, "B": agent})),
            "raw": {"test": test.id, "agent": side, "part": test.parts[side - 1], **condition},
            "created": test.at,
        }
        samples[pair] += 1


def _conversation_with(test: Test, side: int, agents: Mapping[str, str]) -> ConversationAnswer:
    messages, withdrawn = list[Message](), list[Withdrawn]()

    def add(speaker: str, text: str, at: float, delay_s: float, raw: str | None = None) -> None:
        about = {"turn": len(messages), "speaker": speaker, "agent": agents[speaker], "raw": raw}
        messages.append(Message(text=text, at=at, delay_s=delay_s, **about))

    if isinstance(test, Interrogation):
        before = 0.0
        for message in test.chat(side):
            add(test.letter(message), message["text"], message["clock"], round(max(0.0, message["clock"] - before), 3))
            before = message["clock"]
        for event in test.withdrawn:
            if event["side"] == side:
                about = {name: event[name] for name in ("turn", "text", "why")}
                withdrawn.append(Withdrawn(speaker="B", agent=agents["B"], at=event["clock"], **about))
    else:
        for question, answers in zip(test.questions, test.answers, strict=True):
            for speaker, part in (("A", question), ("B", answers[side])):
                add(speaker, part.text, part.clock, part.delay_s, part.raw)
    return ConversationAnswer(messages=messages, withdrawn=withdrawn)


def _trials(test: Test, state: State, folder: Path, run: str) -> Iterator[Candidate]:
    """A trial for each verdict, of both conversations as the judge saw them then."""
    stimulus = AnsweredStimulus("conversation", test.id, _stimulus(test), folder, None, None)

    def pair(
        shown: Sequence[Sequence[Mapping[str, Any]]], delays: Sequence[Sequence[float]], **about: Any
    ) -> Candidate:
        both = []
        for side, messages, seconds in zip(SIDES, shown, delays, strict=True):
            agent, is_machine = _name(test.people[side], state), test.parts[side - 1] == "machine"
            speaker: Letter | None = "B" if is_machine and test.pair == "person machine" else None
            record = run, f"{_name(test.people[0], state)}~{agent}", 0
            answer = ShownAnswer.model_validate({"messages": messages})
            truth: Truth = "machine" if is_machine else "human"
            both.append(Candidate(stimulus, agent, truth, False, record, answer, speaker, about.get("turns"), seconds))
        return replace(both[0], beside=both[1], **about)

    if isinstance(test, Interrogation):
        chats = [_conversation_with(test, side, {"A": "", "B": ""}).messages for side in SIDES]
        shown = [[{"speaker": message.speaker, "text": message.text} for message in chat] for chat in chats]
        yield pair(shown, [[message.delay_s or 0.0 for message in chat] for chat in chats])
        return
    for judged in test.judged:
        number = judged.exchanges
        seconds = [  # as the judge saw them: both answers at once
            seconds
            for at, question in enumerate(test.questions[:number])
            for seconds in (question.delay_s, round(test.shown_at(at) - question.clock, 3))
        ]
        messages = [test.messages(side, number) for side in SIDES]
        yield pair(messages, [seconds, seconds], turns=2 * number, columns={"after": str(number)})


def _verdicts_on_test(test: Test, state: State, about: Mapping[str, Any]) -> Iterator[Record]:
    judged: list[tuple[str, Record, Record]] = []  # by whom, what, and what else is known of it
    if isinstance(test, Interrogation):
        last = test.judged or {}
        answer = {name: last[name] for name in ("verdict", "confidence", "reason")}
        seconds = round(last["clock"] - test.seconds, 3)  # from when the clock stopped
        judged.append((last["who"], answer, {"codes": last["codes"], "seconds": seconds}))
    else:
        for each in test.judged:
            seconds = round(each.clock - test.shown_at(each.exchanges - 1), 3)  # from the answers to the verdict
            answer = {"verdict": each.verdict, "reason": each.reason}
            judged.append((each.who, answer, {"after": each.exchanges, "seconds": seconds}))
    for who, answer, more in judged:
        yield {
            "task": "judgement",
            "agent": _name(who, state),
            "sample": 0,
            "answer": plain(VerdictAnswer.model_validate(answer)),
            "raw": {"test": test.id, **more, "questions": about.get(who, {})},
            "created": test.at,
        }
