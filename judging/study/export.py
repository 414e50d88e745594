"""``turinglike study export``: run folders, ``verdicts.csv`` and ``participants.csv``."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents.answers import BY_TASK, plain
from agents.errors import InputError
from agents.stimuli import Asked
from judging.study.design.settings import TestsSettings
from judging.study.design.tables import ASKED_BEFORE, CLOSING
from judging.study.kinds import material_of
from judging.study.log.files import EXPORTS, append, read_person, read_personal
from judging.study.log.participant_events import StimulusAnswered
from judging.study.log.state import Judge, read_state
from judging.study.log.steps import MaterialStep
from judging.study.meetings.material import MeetingMaterial, TalkMaterial
from judging.study.pages.material import Material
from judging.study.results.conversations import RecordFields, conversations, numbered
from judging.study.results.live_tests import CONVERSATIONS_FILE, Test, verdict_on_test, write_tests
from judging.study.results.participants import Personal, write_participants
from judging.study.results.status import count_meetings
from judging.study.results.verdict_rows import VerdictRow, rows_of, verdict_record
from judging.study.results.writing import WritingResults
from serving.files.atomic_files import write_json
from serving.files.csv_tables import write_rows
from serving.files.output_paths import new_folder, refuse_existing
from serving.files.terminal import print_line
from serving.files.timestamps import now
from serving.files.words import count
from serving.runs.opening import new_people_run

TABLE = "verdicts.csv"
"""The verdicts, a row each."""
PARTICIPANTS = "participants.csv"
"""Who took part, a row each."""


@dataclass(frozen=True, slots=True)
class Exported:
    """What an export wrote to the folder ``path``; may stand where a path is wanted.

    ``number`` counts the verdicts, or answers of participants, that it holds; with 0 there is ``participants.csv``
    alone, which says who is paid. ``left_out`` says which meetings of live tests were void, and is empty without any.
    """

    path: Path
    number: int
    left_out: str

    def __fspath__(self) -> str:
        return str(self.path)


def export_study(study: Path, out: Path, *, personal: bool, judge: str | None, force: bool) -> None:
    """Write what counts as a run folder, or with ``judge`` all that is kept of one person. Raises InputError."""
    if judge is not None:
        if personal:
            raise InputError("study export: --judge also writes the personal data of this person: leave --personal out")
        refuse_existing([out], force=force)
        write_json(out, read_person(study, judge))
        print_line(f"{out}: everything that the study keeps about {judge}")
        return
    material = material_of(study)
    exported = export(study, material, out, personal=personal, force=force)
    following = {
        "trial": f"score {out} -o {out}-scores",
        "test": f"score {out / 'verdicts'} -o scores",
    }.get(material.kind, f"trials RUN {out} -o trials")
    what = "verdict" if material.kind in ("trial", "test") else "answer"
    if exported.left_out and isinstance(material, MeetingMaterial):
        print_line(f"{material.meetings} that are left out: {exported.left_out}")
    if not exported.number:
        print_line(f"no answer counts: {out} contains only participants.csv, which says who is paid")
        return
    print_line(f"{out}: {count(exported.number, what)}; next: turinglike {following}")


def export(
    folder: Path, material: Material, out: Path, *, personal: bool, force: bool, place: str | None = None
) -> Exported:
    """Write the export of the study in ``folder``, which shows ``material``, to ``out``.

    ``personal`` adds what people say of themselves, and who is paid. ``force`` replaces what is there. The study notes
    where the export lies; ``place`` says it where that is not ``out``. Raises InputError where nobody has answered yet,
    and StorageError.
    """
    personal_answers = read_personal(folder)
    state = read_state(folder)
    material.refuse_other_set(state)
    rows = rows_of(material, state, personal_answers)
    asked = material.settings.questions
    questions: Sequence[str] = asked.before if personal or asked.public else ()
    told = {code: {name: personal_answers.get(code, {}).get(name) for name in questions} for code in state.judges}
    held = [test for test in state.meetings.values() if isinstance(test, Test)]
    tests = [test for test in held if test.void is None and test.is_over()]
    writing = WritingResults(state, material.settings, personal=personal)
    records = [verdict_on_test(test, judged, state, told) for test in tests for judged in test.judged]
    records += [verdict_record(row, told[row["judge"]]) for row in rows if row["phase"] != "practice"]
    for judge in state.judges.values():
        records += _answers(judge, material.settings.task, _about(told[judge.code]), writing)
    left_out = ""
    if isinstance(material, MeetingMaterial):
        left_out = count_meetings(state, material).left_out()
    if isinstance(material, TalkMaterial):
        records += numbered(conversations(state, material, writing))
    is_for_payment = personal and bool(state.judges)  # who has finished is paid, whether or not it counts
    if not records and not is_for_payment:
        why = f"; its {material.meetings}: {left_out}" if isinstance(material, MeetingMaterial) and left_out else ""
        raise InputError(f"{folder}: nobody has answered yet{why}")
    marker = CONVERSATIONS_FILE if tests else "run.json" if records else PARTICIPANTS
    with new_folder(out, marker=marker, force=force) as made:
        if isinstance(material.settings, TestsSettings) and records:
            write_tests(made, out, tests, state, records, material.settings.tests.seed, writing)
        elif records:
            new_people_run(made, material.source, material.settings.task).write_records("humans", records)
        if personal:
            write_participants(made / PARTICIPANTS, state, personal_answers, rows, material, writing)
        if rows:
            # What a run's records tell of the judges, its table tells, too.
            fields = [*ASKED_BEFORE, *CLOSING] if personal else questions
            with (made / TABLE).open("w", encoding="utf-8", newline="") as file:
                write_rows(file, [*rows[0], *fields], (_cells(row, personal_answers, fields) for row in rows))
    append(folder / EXPORTS, [{"at": now(), "out": place or str(out.resolve())}])
    return Exported(out, len(records), left_out)


def _cells(row: VerdictRow, personal_answers: Personal, fields: Sequence[str]) -> list[Any]:
    values = [" ".join(value) if isinstance(value, list) else value for value in row.values()]
    values += [personal_answers.get(row["judge"], {}).get(field) for field in fields]
    return [int(value) if isinstance(value, bool) else value for value in values]


def _about(told: Mapping[str, Any]) -> dict[str, str]:
    """What a participant said of themselves, as ``meta`` of an answer has it; only what was answered."""
    about = {}
    for name, value in told.items():
        if value:
            about[name] = " ".join(value) if isinstance(value, list) else str(value)
    return about


def _answers(judge: Judge, task: Asked, about: Mapping[str, str], writing: WritingResults) -> Iterator[RecordFields]:
    """The answers to stimuli. Those that were to be replaced are rejected attempts. ``about`` is what the participant
    said of themselves; it stands where an imported table's columns about people stand, in ``raw.meta``.

    The answer to a stimulus that the participant had before is their sample 1."""
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
            "sample": int(step.again),
            "answer": _typed(task, answer.answer),
            "raw": {
                "rt": answer.rt,
                "away": answer.away,
                **writing.of_answer(judge, answer),
                **({"meta": dict(about)} if about else {}),
            },
            "attempts": attempts,
            "created": answer.at,
        }


def _typed(task: Asked, texts: Sequence[str]) -> dict[str, Any]:
    field = {"color_estimation": "color", "object_detection": "labels", "image_captioning": "text"}.get(task, "word")
    return plain(BY_TASK[task].model_validate({field: texts if field == "labels" else texts[0]}))
