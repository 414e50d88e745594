"""``turinglike study export``: a run folder of people's verdicts or answers, and verdicts as a table.

`score`, `status`, `report` and `view` read the run folder. Beside its records stands ``data/study-NAME_data.csv``, a
Psych-DS data set (``dataset_description.json`` describes every column), its first columns named as jsPsych names them.
``participants.csv``, only where it is asked for, has panels' ids and what people said of themselves.
"""

from __future__ import annotations

import io
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from agents import __version__
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
from judging.study.asking import StimulusMaterial
from judging.study.exclusions import Row, verdict_rows
from judging.study.material import Material, TrialMaterial
from judging.study.settings import CLOSING, FIELDS, JudgesSettings
from judging.study.state import Judge, State, Talk, read_personal, read_state
from judging.trial_set import MARKER
from serving.runs.csv_tables import write_rows
from serving.runs.output_paths import new_folder
from serving.runs.run import Run
from serving.runs.run_opening import new_people_run

COLUMNS: Mapping[str, str] = {
    "trial_type": "always two-choice judgement: human or machine",
    "trial_index": "the page's number in the judge's list, from 0",
    "time_elapsed": "ms from when the judge joined to when the verdict was saved",
    "rt": "ms from when all of the trial was on the screen to the verdict; empty where unknown",
    "response": "the verdict: human or machine",
    "stimulus": "the trial's id in the trial set",
    "judge": "the judge's random code",
    "attempt": "0, or more where the judge began anew",
    "phase": "practice, feedback, test or catch",
    "again": "1 where the trial came for the second time",
    "asked": "the task that was answered",
    "answered": "the stimulus that was answered",
    "speaker": "of a conversation, who is judged",
    "truth": "human or machine",
    "agent": "who answered",
    "correct": "1 where the verdict is the truth",
    "confidence": "from 0 to 1, where it was asked",
    "reason": "in the judge's words, where it was asked",
    "control": "the answer to the control question",
    "control_right": "1 where that is right",
    "away": "1 where the page was hidden meanwhile",
    "by_key": "1 where the verdict was given by a key",
    "key_for_human": "the key for human; the other one is for machine",
    "excluded": "1 where a rule excludes the verdict",
    "exclusion_rule": "the names of these rules",
    "saved_at": "when the verdict was saved, UTC",
}
PARTICIPANTS = "participants.csv"
OF_PARTICIPANTS = ("participant", "worker", "ended", "code", "answers", "excluded", "rules", *FIELDS, *CLOSING)
HIDDEN = ("truth", "agent", "correct", "catch", "stimulus")  # of a verdict's row: not among what the judge did
Record = dict[str, Any]


def export(folder: Path, material: Material, out: Path, *, personal: bool, force: bool) -> int:
    """Write the run folder ``out``; returns the number of verdicts or answers. Raises InputError, StorageError.

    ``personal`` adds what people said of themselves, and a table with the ids of panels.
    """
    known, state = read_personal(folder), read_state(folder)
    rows: list[Row] = []
    if isinstance(material, TrialMaterial):
        rows = list(verdict_rows(state, material.settings, material.pool, known))
        records = [_verdict(row) for row in rows if row["phase"] != "practice"]
        source = material.pool.folder / MARKER
    else:
        assert isinstance(material, StimulusMaterial)
        records = [answer for judge in state.judges.values() for answer in _answers(judge, material.settings.task)]
        records += _conversations(state)
        source = material.source
    if not records:
        raise InputError(f"{folder}: nobody has answered yet")
    with new_folder(out, marker="run.json", force=force) as made:
        write_people_run(made, source, records)
        if personal:
            write_participants(made / PARTICIPANTS, state, known, rows)
        if isinstance(material, TrialMaterial):
            _write_psych_ds(made, folder.resolve().name, material.settings, rows, known if personal else {})
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
    excluded ``verdicts`` with the rules, and what they said of themselves.
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
    # Answers that were to be given anew are rejected attempts.
    for step, event in zip(judge.steps, judge.answers, strict=False):
        if step["kind"] != "ask":
            continue
        rejected = [told for told in judge.told if told["step"] == event["step"]]
        attempts = [
            _attempt(number, told["said"], told["flags"], rejected=True) for number, told in enumerate(rejected)
        ]
        if event["flags"]:
            attempts.append(_attempt(len(rejected), ", ".join(event["answer"]), event["flags"], rejected=False))
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


def _attempt(number: int, text: str, flags: Sequence[str], *, rejected: bool) -> Record:
    verdicts = [{"filter": flag, "rejected": rejected, "found": text} for flag in flags]
    return {"attempt": number, "turn": None, "seed": None, "answer": None, "raw": text, "verdicts": verdicts}


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
    guesses = {
        (event["talk"], judge.code): event["guess"]
        for judge in state.judges.values()
        for event in judge.answers
        if event["kind"] == "talk"
    }
    ended = {talk for talk, _ in guesses}
    samples: Counter[tuple[str, str]] = Counter()  # the same two may meet again about the same stimulus
    for talk in state.talks.values():
        if talk.void is not None or talk.id not in ended:
            continue
        speakers = [f"human:{code}" if code in state.judges else code for code in talk.speakers]
        pair = "~".join(speakers)
        yield {
            "task": "conversation",
            "stimulus": talk.stimulus,
            "agent": pair,
            "sample": samples[pair, talk.stimulus],
            "answer": plain(_conversation(talk, dict(zip("AB", speakers, strict=True)))),
            "raw": {
                "talk": talk.id,
                "guesses": {code: guesses[talk.id, code] for code in talk.speakers if (talk.id, code) in guesses},
            },
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
    messages = [
        Message(
            turn=event["turn"],
            speaker=event["speaker"],
            agent=agents[event["speaker"]],
            text=event["text"],
            at=None if was_set else at,
            delay_s=round(gap, 3) if gap >= 0 else None,
        )
        for event, at, gap in zip(talk.messages, times, gaps, strict=True)
    ]
    withdrawn = [
        Withdrawn(
            turn=event["turn"],
            speaker=event["speaker"],
            agent=agents[event["speaker"]],
            text=text,
            at=seconds(event),
            why="ended" if event["turn"] == len(messages) else "interrupted",
        )
        for event in talk.withdrawn
        for text in event["texts"]
    ]
    return ConversationAnswer(messages=messages, withdrawn=withdrawn)


def _write_psych_ds(
    folder: Path, name: str, settings: JudgesSettings, rows: Sequence[Row], known: Mapping[str, Mapping[str, Any]]
) -> None:
    fields = [*FIELDS, *CLOSING] if known else []
    text = io.StringIO(newline="")
    cells = ([*_cells(row), *(known.get(row["judge"], {}).get(field) for field in fields)] for row in rows)
    write_rows(text, [*COLUMNS, *fields], cells)
    (folder / "data").mkdir()
    safe = re.sub(r"[^A-Za-z0-9]", "", name) or "study"
    (folder / "data" / f"study-{safe}_data.csv").write_text(text.getvalue(), encoding="utf-8", newline="")
    described = {**COLUMNS, **dict.fromkeys(fields, "what the judge said of themselves")}
    about = {
        "@context": "https://schema.org/",
        "@type": "Dataset",
        "name": settings.texts.title,
        "description": f"Verdicts of people on trials of {settings.task}: human or machine?",
        "schemaVersion": "Psych-DS 0.4.0",
        "creator": [{"@type": "SoftwareApplication", "name": "Turinglike", "version": __version__}],
        "variableMeasured": [
            {"@type": "PropertyValue", "name": column, "description": description}
            for column, description in described.items()
        ],
    }
    (folder / "dataset_description.json").write_bytes(
        orjson.dumps(about, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    )


def _cells(row: Row) -> list[Any]:
    renamed = {
        "trial_type": "judgement",
        "response": row["verdict"],
        "stimulus": row["trial"],
        "answered": row["stimulus"],
        "excluded": bool(row["rules"]),
        "exclusion_rule": " ".join(row["rules"]),
        "saved_at": row["at"],
    }
    values = [renamed.get(name, row.get(name)) for name in COLUMNS]
    return [int(value) if isinstance(value, bool) else value for value in values]
