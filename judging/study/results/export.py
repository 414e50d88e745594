"""``turinglike study export``: run folders, ``verdicts.csv`` and ``participants.csv``."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from agents.answers import BY_TASK, plain
from agents.errors import InputError
from agents.stimuli import Asked
from judging.study.design.settings import TestsSettings
from judging.study.design.tables import CLOSING, FIELDS
from judging.study.log.files import read_personal, read_state
from judging.study.log.participant_events import StimulusAnswered
from judging.study.log.state import Judge
from judging.study.log.steps import MaterialStep
from judging.study.meetings.material import MeetingMaterial, TalkMaterial
from judging.study.pages.material import Material
from judging.study.results.conversations import RecordFields, conversations, numbered
from judging.study.results.live_tests import CONVERSATIONS_FILE, Test, verdict_on_test, write_tests
from judging.study.results.participants import Personal, write_participants
from judging.study.results.status import count_meetings
from judging.study.results.verdict_rows import VerdictRow, rows_of, verdict_record
from serving.files.csv_tables import write_rows
from serving.files.output_paths import new_folder
from serving.runs.opening import new_people_run

TABLE = "verdicts.csv"
"""The verdicts, a row each."""
PARTICIPANTS = "participants.csv"
"""Who took part, a row each."""


def export(folder: Path, material: Material, out: Path, *, personal: bool, force: bool) -> tuple[int, str]:
    """Write the export of the study in ``folder``, which shows ``material``, to ``out``.

    ``personal`` adds what people say of themselves, and who is paid. ``force`` replaces what is there. Returns the
    number of verdicts or answers, and in words which conversations or tests are left out. Raises InputError where
    nobody has answered yet, and StorageError.
    """
    personal_answers = read_personal(folder)
    state = read_state(folder)
    rows = rows_of(material, state, personal_answers)
    asked = material.settings.questions
    questions: Sequence[str] = asked.before if personal or asked.public else ()
    told = {code: {name: personal_answers.get(code, {}).get(name) for name in questions} for code in state.judges}
    held = [test for test in state.meetings.values() if isinstance(test, Test)]
    tests = [test for test in held if test.void is None and test.is_over()]
    records = [verdict_on_test(test, judged, state, told) for test in tests for judged in test.judged]
    records += [verdict_record(row, told[row["judge"]]) for row in rows if row["phase"] != "practice"]
    records += [answer for judge in state.judges.values() for answer in _answers(judge, material.settings.task)]
    left_out = ""
    if isinstance(material, MeetingMaterial):
        left_out = count_meetings(state, material).left_out()
    if isinstance(material, TalkMaterial):
        records += numbered(conversations(state, material))
    is_for_payment = personal and bool(state.judges)  # who has finished is paid, whether or not it counts
    if not records and not is_for_payment:
        why = f"; its {material.meetings}: {left_out}" if isinstance(material, MeetingMaterial) and left_out else ""
        raise InputError(f"{folder}: nobody has answered yet{why}")
    marker = CONVERSATIONS_FILE if tests else "run.json" if records else PARTICIPANTS
    with new_folder(out, marker=marker, force=force) as made:
        if isinstance(material.settings, TestsSettings) and records:
            write_tests(made, out, tests, state, records, material.settings.tests.seed)
        elif records:
            new_people_run(made, material.source).write_records("humans", records)
        if personal:
            write_participants(made / PARTICIPANTS, state, personal_answers, rows, material)
        if rows:
            # What a run's records tell of the judges, its table tells, too.
            fields = [*FIELDS, *CLOSING] if personal else questions
            with (made / TABLE).open("w", encoding="utf-8", newline="") as file:
                write_rows(file, [*rows[0], *fields], (_cells(row, personal_answers, fields) for row in rows))
    return len(records), left_out


def _cells(row: VerdictRow, personal_answers: Personal, fields: Sequence[str]) -> list[Any]:
    values = [" ".join(value) if isinstance(value, list) else value for value in row.values()]
    values += [personal_answers.get(row["judge"], {}).get(field) for field in fields]
    return [int(value) if isinstance(value, bool) else value for value in values]


def _answers(judge: Judge, task: Asked) -> Iterator[RecordFields]:
    """The answers to stimuli. Those that were to be replaced are rejected attempts."""
    for step, answer in zip(judge.steps, judge.answers, strict=False):
        if not isinstance(step, MaterialStep) or not isinstance(answer, StimulusAnswered):
            continue
        tried = [(old.said, old.flags, True) for old in judge.returned if old.step == answer.step]
        if answer.flags:
            tried.append((", ".join(answer.answer), answer.flags, False))
        attempts = []
        for number, (text, flags, rejected) in enumerate(tried):
            attempts.append(
                {
                    "attempt": number,
                    "turn": None,
                    "seed": None,
                    "answer": None,
                    "raw": text,
                    "verdicts": [{"filter": flag, "rejected": rejected, "found": text} for flag in flags],
                }
            )
        yield {
            "task": task,
            "stimulus": step.trials[0],
            "agent": f"human:{judge.code}",
            "answer": _typed(task, answer.answer),
            "raw": {"rt": answer.rt, "away": answer.away},
            "attempts": attempts,
            "created": answer.at,
        }


def _typed(task: Asked, texts: Sequence[str]) -> dict[str, Any]:
    field = {"color_estimation": "color", "object_detection": "labels", "image_captioning": "text"}.get(task, "word")
    return plain(BY_TASK[task].model_validate({field: texts if field == "labels" else texts[0]}))
