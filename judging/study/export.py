"""``turinglike study export``: a run folder of people's verdicts or answers, and verdicts as a table for all others.

The run folder is what `score`, `status`, `report` and `view` read. Beside its records stands
``data/study-NAME_data.csv``, laid out as a Psych-DS data set (``dataset_description.json`` describes every column), its
first columns named as jsPsych names them. What people said of themselves goes in only where it is asked for; then
``participants.csv`` has the ids of panels beside it, and what rules exclude, for payment.
"""

from __future__ import annotations

import io
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
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
from judging.study.state import Judge, State, read_personal, read_state
from judging.trial_set import MARKER
from serving.runs.csv_tables import write_rows
from serving.runs.output_paths import new_folder
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


def export(folder: Path, material: Material, out: Path, *, personal: bool, force: bool) -> int:
    """Write it; returns the number of verdicts, or of participants' answers. ``personal`` puts what people said of
    themselves in, and a table with the ids of panels. Raises InputError where there are none, StorageError."""
    known, state = read_personal(folder), read_state(folder)
    rows: list[Row] = []
    if isinstance(material, TrialMaterial):
        rows = list(verdict_rows(state, material.settings, material.pool, known))
        records = [_verdict(row) for row in rows if row["phase"] != "practice"]
        source = material.pool.folder / MARKER
    else:
        assert isinstance(material, StimulusMaterial)
        records = [one for judge in state.judges.values() for one in _answers(judge, material.settings.task)]
        records += _conversations(state)
        source = material.source
    if not records:
        raise InputError(f"{folder}: nobody has answered yet")
    with new_folder(out, marker="run.json", force=force) as made:
        new_people_run(made, source).write_records("humans", records)
        if personal:
            write_participants(made / PARTICIPANTS, state, known, rows)
        if isinstance(material, TrialMaterial):
            _psych_ds(made, folder.resolve().name, material.settings, rows, known if personal else {})
    return len(records)


def write_participants(
    path: Path, state: State, known: Mapping[str, Mapping[str, Any]], verdicts: Sequence[Row] = ()
) -> None:
    """A row for each person in the order in which they came: the id that a panel gave them, how they ended, the code
    that they got or would have got, how many answers they gave and how many verdicts are ``excluded``, by which rules,
    and what they said of themselves."""
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


def _verdict(row: Row) -> dict[str, Any]:
    hidden = ("truth", "agent", "correct", "catch", "stimulus")
    return {
        "task": "judgement",
        "stimulus": row["trial"],
        "agent": f"human:{row['judge']}",
        "sample": int(row["again"]),
        "answer": {"verdict": row["verdict"], "confidence": row["confidence"], "reason": row["reason"] or None},
        "raw": {name: value for name, value in row.items() if name not in hidden},
        "created": row["at"],
    }


def _answers(judge: Judge, task: Asked) -> Iterator[dict[str, Any]]:
    """A participant's answers; those that were to be given anew are their rejected attempts."""
    for step, said in zip(judge.steps, judge.answers, strict=False):
        if step["kind"] != "ask":
            continue
        told = [one for one in judge.told if one["step"] == said["step"]]
        attempts = [
            {
                "attempt": number,
                "turn": None,
                "seed": None,
                "answer": None,
                "raw": one["said"],
                "verdicts": [{"filter": flag, "rejected": True, "found": one["said"]} for flag in one["flags"]],
            }
            for number, one in enumerate(told)
        ]
        if said["flags"]:
            kept = [{"filter": flag, "rejected": False, "found": ", ".join(said["answer"])} for flag in said["flags"]]
            attempts.append({"attempt": len(told), "turn": None, "seed": None, "answer": None,
                             "raw": ", ".join(said["answer"]), "verdicts": kept})  # fmt: skip
        yield {
            "task": task,
            "stimulus": step["trials"][0],
            "agent": f"human:{judge.code}",
            "answer": _typed(task, said["answer"]),
            "raw": {"rt": said["rt"], "away": said["away"]},
            "attempts": attempts,
            "created": said["at"],
        }


def _conversations(state: State) -> Iterator[dict[str, Any]]:
    """What was said to its end; conversations that are void, or went on when this was asked, are no answers."""
    guesses = {
        (one["talk"], judge.code): one["guess"]
        for judge in state.judges.values()
        for one in judge.answers
        if one["kind"] == "talk"
    }
    done = {talk for talk, _ in guesses}
    before: Counter[tuple[str, str]] = Counter()  # the same two may meet again about the same
    for talk in state.talks.values():
        if talk.void is not None or talk.id not in done:
            continue
        whose = [f"human:{code}" if code in state.judges else code for code in talk.speakers]
        seconds = partial(_seconds_since, datetime.fromisoformat(talk.at))
        times = [seconds(one) for one in talk.messages]
        gaps = [at - before_it for at, before_it in zip(times, [0.0, *times], strict=False)]
        was_set = min(gaps, default=0.0) < 0  # the machine's clock, backwards: such times are not known
        messages = [
            Message(
                turn=one["turn"], speaker=one["speaker"], agent=whose["AB".index(one["speaker"])], text=one["text"],
                at=None if was_set else at, delay_s=round(gap, 3) if gap >= 0 else None,
            )
            for one, at, gap in zip(talk.messages, times, gaps, strict=True)
        ]  # fmt: skip
        withdrawn = [
            Withdrawn(
                turn=one["turn"], speaker=one["speaker"], agent=whose["AB".index(one["speaker"])], text=text,
                at=seconds(one), why="ended" if one["turn"] == len(messages) else "interrupted",
            )
            for one in talk.withdrawn
            for text in one["texts"]
        ]  # fmt: skip
        told = {code: guesses[talk.id, code] for code in talk.speakers if (talk.id, code) in guesses}
        pair = "~".join(whose)
        sample = before[pair, talk.stimulus]
        before[pair, talk.stimulus] += 1
        yield {
            "task": "conversation",
            "stimulus": talk.stimulus,
            "agent": pair,
            "sample": sample,
            "answer": plain(ConversationAnswer(messages=messages, withdrawn=withdrawn)),
            "raw": {"talk": talk.id, "guesses": told},
            "created": talk.at,
        }


def _seconds_since(began: datetime, event: Mapping[str, Any]) -> float:
    return round((datetime.fromisoformat(event["at"]) - began).total_seconds(), 3)


def _typed(task: Asked, said: Sequence[str]) -> dict[str, Any]:
    match task:
        case "color_estimation":
            return plain(ColorAnswer(color=said[0]))
        case "object_detection":
            return plain(ObjectAnswer(labels=list(said)))
        case "image_captioning":
            return plain(CaptionAnswer(text=said[0]))
    return plain(WordAnswer(word=said[0]))


def _psych_ds(
    made: Path, name: str, settings: JudgesSettings, rows: Sequence[Row], known: Mapping[str, Mapping[str, Any]]
) -> None:
    own = [*FIELDS, *CLOSING] if known else []
    text = io.StringIO(newline="")
    cells = ([*_values(row), *(known.get(row["judge"], {}).get(field) for field in own)] for row in rows)
    write_rows(text, [*COLUMNS, *own], cells)
    (made / "data").mkdir()
    safe = re.sub(r"[^A-Za-z0-9]", "", name) or "study"
    (made / "data" / f"study-{safe}_data.csv").write_text(text.getvalue(), encoding="utf-8", newline="")
    described = [
        {"@type": "PropertyValue", "name": column, "description": about} for column, about in COLUMNS.items()
    ] + [{"@type": "PropertyValue", "name": field, "description": "what the judge said of themselves"} for field in own]
    about = {
        "@context": "https://schema.org/",
        "@type": "Dataset",
        "name": settings.texts.title,
        "description": f"Verdicts of people on trials of {settings.task}: human or machine?",
        "schemaVersion": "Psych-DS 0.4.0",
        "creator": [{"@type": "SoftwareApplication", "name": "Turinglike", "version": __version__}],
        "variableMeasured": described,
    }
    (made / "dataset_description.json").write_bytes(
        orjson.dumps(about, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    )


def _values(row: Row) -> list[Any]:
    renamed = {"trial_type": "judgement", "response": row["verdict"], "stimulus": row["trial"],
               "answered": row["stimulus"], "excluded": bool(row["rules"]), "exclusion_rule": " ".join(row["rules"]),
               "saved_at": row["at"]}  # fmt: skip
    values = [renamed.get(name, row.get(name)) for name in COLUMNS]
    return [int(value) if isinstance(value, bool) else value for value in values]
