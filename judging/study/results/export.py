"""``turinglike study export``: run folders and ``verdicts.csv``. An online test is two conversations and its
verdicts."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from agents.answers import BY_TASK, ConversationAnswer, Message, VerdictAnswer, Withdrawn, plain
from agents.errors import InputError
from agents.stimuli import Asked, ShownAnswer
from judging.study.events import MEETINGS, Judge, State, read_personal, read_state
from judging.study.meetings.meeting import SIDES, Interrogation, Line, Meeting, OnlineTest, Talk, VerdictOnTest
from judging.study.pages.material import Material
from judging.study.pages.materials import MeetingMaterial, TalkMaterial
from judging.study.results.exclusions import VerdictRow, completion_code, outcome_of
from judging.study.results.status import count_meetings
from judging.study.settings import CLOSING, FIELDS, TestsSettings
from judging.trial_sets.candidates import AnsweredStimulus, Candidate, Letter, Truth, is_person
from judging.trial_sets.trial_set import TRIALS_FILE, JudgesList, write_trial_set
from serving.files.atomic_files import replacing
from serving.files.csv_tables import write_rows
from serving.files.output_paths import new_folder
from serving.runs.opening import new_people_run

TABLE = "verdicts.csv"
PARTICIPANTS = "participants.csv"
CONVERSATIONS = "conversations.jsonl"
OF_PARTICIPANTS = ("outcome", "code", "paid", "answers", "excluded", "rules", "consent")
OF_MEETINGS = ("counts", "void")
UNFINISHED = "unfinished"  # a meeting that is not void, and not at its end
HIDDEN = ("truth", "agent", "correct", "catch", "stimulus")  # of a verdict's row: not among what the judge did
Record = dict[str, Any]  # as the run writes it, as far as a study knows
Test = OnlineTest | Interrogation
Personal = Mapping[str, Mapping[str, Any]]


def export(folder: Path, material: Material, out: Path, *, personal: bool, force: bool) -> tuple[int, str]:
    """Write ``out``, with ``personal`` answers. Returns the number of verdicts or answers, and which conversations or
    tests are left out, in words. Raises InputError, StorageError."""
    known = read_personal(folder)
    state = read_state(folder)
    rows = material.rows(state, known)
    asked = material.settings.questions
    questions: Sequence[str] = asked.before if personal or asked.public else ()
    about = {code: {name: known.get(code, {}).get(name) for name in questions} for code in state.judges}
    held = [test for test in state.meetings.values() if isinstance(test, Test)]
    tests = [test for test in held if test.void is None and test.is_over()]
    records = [_verdict_on_test(test, judged, state, about) for test in tests for judged in test.judged]
    records += [_verdict(row, about[row["judge"]]) for row in rows if row["phase"] != "practice"]
    records += [answer for judge in state.judges.values() for answer in _answers(judge, material.settings.task)]
    left_out = ""
    if isinstance(material, MeetingMaterial):
        left_out = count_meetings(state, material).left_out()
    if isinstance(material, TalkMaterial):
        records += _numbered(_conversations(state, material))
    is_for_payment = personal and bool(state.judges)  # who has finished is paid, whether or not it counts
    if not records and not is_for_payment:
        why = f"; its {material.meetings}: {left_out}" if isinstance(material, MeetingMaterial) and left_out else ""
        raise InputError(f"{folder}: nobody has answered yet{why}")
    marker = CONVERSATIONS if tests else "run.json" if records else PARTICIPANTS
    with new_folder(out, marker=marker, force=force) as made:
        if isinstance(material.settings, TestsSettings) and records:
            _write_tests(made, out, tests, state, records, material.settings.tests.seed)
        elif records:
            new_people_run(made, material.source).write_records("humans", records)
        if personal:
            _write_participants(made / PARTICIPANTS, state, known, rows, material)
        if rows:
            # What a run's records tell of the judges, its table tells, too.
            fields = [*FIELDS, *CLOSING] if personal else questions
            with (made / TABLE).open("w", encoding="utf-8", newline="") as file:
                write_rows(file, [*rows[0], *fields], (_cells(row, known, fields) for row in rows))
    return len(records), left_out


def _write_participants(
    path: Path, state: State, known: Personal, verdicts: Sequence[VerdictRow], material: Material
) -> None:
    """Who is ``paid`` (1: who finished and failed no checks), by which rules verdicts are excluded, and of meetings
    whether any counts, and why others do not (``void``)."""
    settings = material.settings
    of_meetings: Sequence[str] = ()
    counting = list[Meeting]()
    if isinstance(material, MeetingMaterial):
        of_meetings = OF_MEETINGS
        there = state.meetings.values()
        counting = [meeting for meeting in there if meeting.void is None and material.is_over(meeting)]
    counted = {who for meeting in counting for who in meeting.people}  # also who closed the page after it
    names = {meeting.id for meeting in counting}
    columns = ("participant", "worker", *settings.judges.parameters, *OF_PARTICIPANTS, *of_meetings, *FIELDS, *CLOSING)
    excluded: dict[str, list[list[str]]] = defaultdict(list)
    for row in verdicts:
        if row["rules"] and row["phase"] != "practice":
            excluded[row["judge"]].append(row["rules"])

    def cells(code: str, judge: Judge) -> list[Any]:
        rules = excluded[code]
        outcome = outcome_of(judge, settings)
        values = {
            "participant": f"human:{code}",
            "outcome": outcome,
            "code": completion_code(judge, settings),
            "paid": int(outcome == "finished"),
            "answers": judge.counted(judge.step),
            "excluded": len(rules),
            "rules": " ".join(dict.fromkeys(rule for each in rules for rule in each)),
            "consent": judge.of("consent").get("consent"),
            "counts": int(code in counted),
            "void": " ".join(_voids(code, judge, state, names)),
            **known.get(code, {}),
        }
        return [values.get(name) for name in columns]

    with path.open("w", encoding="utf-8", newline="") as file:
        write_rows(file, columns, (cells(*each) for each in state.judges.items() if each[1].ended != "left"))


def _voids(code: str, judge: Judge, state: State, counting: Collection[str]) -> list[str]:
    """Why meetings of somebody do not count, in the order in which they began; ``counting`` are those that do. All that
    they were in are told of, whether or not they went on after it: who is paid for the time is decided by this."""
    causes: list[tuple[str, str]] = []
    for meeting in state.meetings.values():
        if code in meeting.people and meeting.id not in counting:
            causes.append((meeting.at, meeting.void_to(code) or UNFINISHED))
    for event in judge.answers:
        if event["kind"] not in MEETINGS:
            continue
        name = event.get(event["kind"])
        if name is None:
            causes.append((event["at"], "nobody"))
        elif name not in state.meetings:  # an older version deleted all that was known of it
            causes.append((event["at"], "deleted"))
    return [cause for _, cause in sorted(causes, key=lambda at_and_cause: at_and_cause[0])]


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


def _conversations(state: State, material: TalkMaterial) -> Iterator[Record]:
    """Those that came to their end, which is when all is said: who closed the page at the questions after it has said
    nothing of the other (null). Void ones, and those that still go on, are no answers."""
    answers = [answer for judge in state.judges.values() for answer in judge.answers]
    ends = {(answer["talk"], answer["judge"]): answer for answer in answers if answer["kind"] == "talk"}
    for talk in state.counted(Talk):
        if not material.is_over(talk):
            continue
        raw: Record = {"talk": talk.id}
        for name, field in {"guesses": "guess", "sexes": "sex", "ages": "age"}.items():  # of the other
            people = [code for code in talk.people if code in state.judges]
            raw[name] = {code: ends.get((talk.id, code), {}).get(field) for code in people}
        yield {"stimulus": talk.stimulus, "raw": raw, **_conversation(talk, talk.people, state, *_timed(talk))}


def _timed(talk: Talk) -> tuple[list[Record], list[Record]]:
    """The messages that were sent, and those withdrawn, with seconds from the beginning."""
    began = datetime.fromisoformat(talk.at)

    def seconds(event: Mapping[str, Any]) -> float:
        return round((datetime.fromisoformat(event["at"]) - began).total_seconds(), 3)

    times = [seconds(event) for event in talk.messages]
    gaps = [at - before for at, before in zip(times, [0.0, *times], strict=False)]
    was_set = min(gaps, default=0.0) < 0  # the machine's clock, backwards: such times are not known
    messages = []
    for event, at, gap in zip(talk.messages, times, gaps, strict=True):
        when = {"at": None if was_set else at, "delay_s": round(gap, 3) if gap >= 0 else None}
        messages.append({"speaker": event["speaker"], "text": event["text"], **when})
    withdrawn = []
    for event in talk.withdrawn:
        about = {"turn": event["turn"], "speaker": event["speaker"], "at": seconds(event)}
        about["why"] = "ended" if event["turn"] == len(messages) else "interrupted"
        withdrawn += [{"text": text, **about} for text in event["texts"]]
    return messages, withdrawn


def _conversation(
    meeting: Meeting, people: Sequence[str], state: State, messages: Sequence[Record], withdrawn: Sequence[Record]
) -> Record:
    agents = dict(zip("AB", (_name(who, state) for who in people), strict=True))
    sent = [Message(turn=turn, agent=agents[each["speaker"]], **each) for turn, each in enumerate(messages)]
    unsent = [Withdrawn(agent=agents[each["speaker"]], **each) for each in withdrawn]
    return {
        "task": "conversation",
        "agent": "~".join(agents.values()),
        "answer": plain(ConversationAnswer(messages=sent, withdrawn=unsent)),
        "created": meeting.at,
    }


def _numbered(records: Iterable[Record]) -> Iterator[Record]:
    # The same two may meet again about the same stimulus, and two machines of a test may be the same agent.
    samples: Counter[tuple[str, str]] = Counter()
    for record in records:
        key = record["agent"], record["stimulus"]
        yield {**record, "sample": samples[key]}
        samples[key] += 1


# tests


def _write_tests(
    made: Path, out: Path, tests: Sequence[Test], state: State, verdicts: Sequence[Record], seed: int
) -> None:
    source = made / CONVERSATIONS
    with replacing(source) as file:
        file.writelines(orjson.dumps(_stimulus(test)) + b"\n" for test in tests)
    conversations = [*_numbered(_conversation_of_test(test, side, state) for test in tests for side in SIDES)]
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


def _write_run(folder: Path, source: Path, out: Path, records: Sequence[Record]) -> str:
    run = new_people_run(folder, source)
    run.write_records("humans", records)
    place = out.resolve() / source.relative_to(folder.parent)  # where it will be
    run.meta["set"] |= {"source": str(place), "root": str(place.parent)}
    run.save()
    return str(run.meta["run"])


def _stimulus(test: Test) -> dict[str, Any]:
    most = max(1, *(len(test.lines(side)) for side in SIDES))
    row: dict[str, Any] = {"id": test.id, "task": "conversation", "who_starts": "A", "exchanges": most}
    if isinstance(test, Interrogation):
        return {**row, "mode": "burst", "meta": {"pair": test.pair, "minutes": f"{test.seconds / 60:g}"}}
    return {**row, "meta": {"condition": test.condition, "pair": test.pair, "exchanges": str(test.exchanges)}}


def _conversation_of_test(test: Test, side: int, state: State) -> Record:
    messages = [asdict(line) for line in test.lines(side)]
    withdrawn = [
        {"speaker": "B", "at": event["clock"], **{name: event[name] for name in ("turn", "text", "why")}}
        for event in test.withdrawn
        if event["side"] == side
    ]
    record = _conversation(test, (test.people[0], test.people[side]), state, messages, withdrawn)
    condition = {"condition": test.condition} if isinstance(test, OnlineTest) else {}
    raw = {"test": test.id, "agent": side, "part": test.parts[side - 1], **condition}
    return {"stimulus": test.id, "raw": raw, **record}


def _trials(test: Test, conversations: Sequence[Record], folder: Path, run: str) -> Iterator[Candidate]:
    """A trial for each verdict, of both conversations as the judge saw them then."""
    stimulus = AnsweredStimulus("conversation", test.id, _stimulus(test), folder, None, None)
    for number in [judged.exchanges for judged in test.judged]:
        both = []
        for side, record in zip(SIDES, conversations, strict=True):
            lines = _lines_seen(test, side, number)
            agent = record["agent"].partition("~")[2]
            truth: Truth = "human" if is_person(agent) else "machine"
            speaker: Letter | None = "B" if truth == "machine" and test.pair == "person machine" else None
            said = [{"speaker": line.speaker, "text": line.text} for line in lines]
            key = (run, record["agent"], record["sample"])
            shown = ShownAnswer.model_validate({"messages": said})
            delays = [line.delay_s for line in lines]
            both.append(Candidate(stimulus, agent, truth, False, key, shown, speaker, delays=delays))
        turns, columns = (None, {}) if number is None else (2 * number, {"after": str(number)})
        yield replace(both[0], beside=both[1], length=turns, turns=turns, columns=columns)


def _lines_seen(test: Test, side: int, exchanges: int | None) -> list[Line]:
    # Of an exchange the judge sees both answers at once.
    if not isinstance(test, OnlineTest):
        return test.lines(side)
    lines = list[Line]()
    for at, question in enumerate(test.questions[:exchanges]):
        lines += [question, replace(test.answers[at][side], delay_s=round(test.shown_at(at) - question.at, 3))]
    return lines


def _verdict_on_test(test: Test, judged: VerdictOnTest, state: State, about: Mapping[str, Any]) -> Record:
    answer = {"verdict": judged.verdict, "confidence": judged.confidence, "reason": judged.reason}
    more = {"codes": judged.codes} if isinstance(test, Interrogation) else {"after": judged.exchanges}
    return {
        "task": "judgement",
        "agent": _name(judged.who, state),
        "answer": plain(VerdictAnswer.model_validate(answer)),
        "raw": {"test": test.id, **more, "seconds": judged.seconds, "questions": about.get(judged.who, {})},
        "created": test.at,
    }
