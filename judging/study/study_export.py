"""``turinglike study export``: a run folder of people's verdicts or answers, and verdicts as a table.

`score`, `status`, `report` and `view` read the run folder. Beside its records stands ``verdicts.csv``;
``participants.csv``, only with ``--personal``, has panels' ids and what people said of themselves.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from agents.answers import (
    CaptionAnswer,
    ColorAnswer,
    ConversationAnswer,
    Message,
    ObjectAnswer,
    Withdrawn,
    WordAnswer,
    plain,
)
from agents.errors import InputError
from agents.stimuli import Asked
from judging.study.events import Judge, State, Talk, read_personal, read_state
from judging.study.exclusions import Row
from judging.study.materials import Material
from judging.study.settings import CLOSING, FIELDS
from serving.runs.csv_tables import write_rows
from serving.runs.output_paths import new_folder
from serving.runs.run import Run
from serving.runs.run_opening import new_people_run

TABLE, PARTICIPANTS = "verdicts.csv", "participants.csv"
OF_PARTICIPANTS = ("participant", "worker", "ended", "code", "answers", "excluded", "rules", *FIELDS, *CLOSING)
HIDDEN = ("truth", "agent", "correct", "catch", "stimulus")  # of a verdict's row: not among what the judge did
Record = dict[str, Any]


def export(folder: Path, material: Material, out: Path, *, personal: bool, force: bool) -> int:
    """Write the run folder ``out``; returns the number of verdicts or answers. Raises InputError, StorageError.

    ``personal`` adds what people answered about themselves, and a table with the ids of panels.
    """
    known, state = read_personal(folder), read_state(folder)
    rows = material.rows(state, known)
    records = [_verdict(row) for row in rows if row["phase"] != "practice"]
    records += [answer for judge in state.judges.values() for answer in _answers(judge, material.settings.task)]
    records += _conversations(state)
    if not records:
        raise InputError(f"{folder}: nobody has answered yet")
    with new_folder(out, marker="run.json", force=force) as made:
        write_people_run(made, material.source, records)
        if personal:
            write_participants(made / PARTICIPANTS, state, known, rows)
        if rows:
            fields = [*FIELDS, *CLOSING] if personal else []
            with (made / TABLE).open("w", encoding="utf-8", newline="") as file:
                write_rows(file, [*rows[0], *fields], (_cells(row, known, fields) for row in rows))
    return len(records)


def write_people_run(folder: Path, source: Path, records: Iterable[Record]) -> Run:
    """Write a run folder about the set ``source``, of records that have the keys in which they differ.

    People's records are a file; those of the kind "machine" are another, which no run asks for.
    """
    run = new_people_run(folder, source)
    files: defaultdict[str, list[Record]] = defaultdict(list)
    for record in records:
        files["humans" if record.get("kind", "human") == "human" else "published"].append(record)
    for name, group in files.items():
        run.write_records(name, group)
    return run


def write_participants(
    path: Path, state: State, known: Mapping[str, Mapping[str, Any]], verdicts: Sequence[Row] = ()
) -> None:
    """Write a row for each person, in the order in which they came, for payment.

    It has the panel's id, how they ended, the code that they got or would have got, the number of their answers and of
    excluded ``verdicts`` with the rules, and what they answered about themselves.
    """
    excluded: dict[str, list[list[str]]] = defaultdict(list)
    for row in verdicts:
        if row["rules"] and row["phase"] != "practice":
            excluded[row["judge"]].append(row["rules"])

    def cells(code: str, judge: Judge) -> list[Any]:
        rules = excluded[code]
        values = {
            "participant": f"human:{code}",
            "ended": judge.ended,
            "code": judge.end_code,
            "answers": judge.counted(judge.step),
            "excluded": len(rules),
            "rules": " ".join(dict.fromkeys(rule for each in rules for rule in each)),
            **known.get(code, {}),
        }
        return [values.get(name) for name in OF_PARTICIPANTS]

    with path.open("w", encoding="utf-8", newline="") as file:
        write_rows(file, OF_PARTICIPANTS, (cells(code, judge) for code, judge in state.judges.items()))


def _cells(row: Row, known: Mapping[str, Mapping[str, Any]], fields: Sequence[str]) -> list[Any]:
    values = [" ".join(value) if isinstance(value, list) else value for value in row.values()]
    values += [known.get(row["judge"], {}).get(field) for field in fields]
    return [int(value) if isinstance(value, bool) else value for value in values]


def _verdict(row: Row) -> Record:
    return {
        "task": "judgement",
        "stimulus": row["trial"],
        "agent": f"human:{row['judge']}",
        "sample": int(row["again"]),
        "answer": {"verdict": row["verdict"], "confidence": row["confidence"], "reason": row["reason"] or None},
        "raw": {name: value for name, value in row.items() if name not in HIDDEN},
        "created": row["at"],
    }


def _answers(judge: Judge, task: Asked) -> Iterator[Record]:
    # Answers that were to be replaced are rejected attempts.
    for step, event in zip(judge.steps, judge.answers, strict=False):
        if step["kind"] != "ask":
            continue
        tried = [(told["said"], told["flags"], True) for told in judge.told if told["step"] == event["step"]]
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
    match task:
        case "color_estimation":
            return plain(ColorAnswer(color=texts[0]))
        case "object_detection":
            return plain(ObjectAnswer(labels=list(texts)))
        case "image_captioning":
            return plain(CaptionAnswer(text=texts[0]))
    return plain(WordAnswer(word=texts[0]))


def _conversations(state: State) -> Iterator[Record]:
    # Conversations that are void, or still go on, are no answers.
    guesses: dict[str, dict[str, Any]] = defaultdict(dict)
    for judge in state.judges.values():
        for event in judge.answers:
            if event["kind"] == "talk" and event["talk"] is not None:
                guesses[event["talk"]][judge.code] = event["guess"]
    samples: Counter[tuple[str, str]] = Counter()  # the same two may meet again about the same stimulus
    for talk in state.talks.values():
        if talk.void is not None or talk.id not in guesses:
            continue
        speakers = [f"human:{code}" if code in state.judges else code for code in talk.speakers]
        pair = "~".join(speakers)
        of_speakers = {code: guesses[talk.id][code] for code in talk.speakers if code in guesses[talk.id]}
        yield {
            "task": "conversation",
            "stimulus": talk.stimulus,
            "agent": pair,
            "sample": samples[pair, talk.stimulus],
            "answer": plain(_conversation(talk, dict(zip("AB", speakers, strict=True)))),
            "raw": {"talk": talk.id, "guesses": of_speakers},
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
