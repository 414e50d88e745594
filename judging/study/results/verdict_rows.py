"""The verdicts of a study, a row each, with the rules that exclude it; and the records made of them."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from judging.study.design.settings import JudgesSettings, StudySettings
from judging.study.design.tables import Exclude
from judging.study.log.participant_events import InstructionsRead, TrialJudged
from judging.study.log.state import Judge, State
from judging.study.log.steps import MaterialStep
from judging.study.pages.material import Material
from judging.study.pages.page_answers import fastest_of
from judging.study.pages.pool import TrialPool
from judging.study.pages.trial_material import TrialMaterial
from judging.study.results.conversations import RecordFields

VerdictRow = dict[str, Any]
"""A row of ``verdicts.csv`` by its columns; ``rules`` is a list there, and booleans are not yet 0 and 1."""
ENOUGH = 4
"""Verdicts of a judge that must all be alike before the rule ``one_sided`` excludes them."""
KEY_COLUMNS = ("truth", "agent", "correct", "catch", "stimulus")
"""Columns that a verdict's record has elsewhere, or that the answer key says. All others go into ``raw`` of the record,
a new column too; so a column that would tell whose answer it was must stand here."""


def rows_of(material: Material, state: State, personal: Mapping[str, Mapping[str, Any]]) -> list[VerdictRow]:
    """The verdicts of a study, a row each; none where nobody judges trials."""
    if not isinstance(material, TrialMaterial):
        return []
    return list(verdict_rows(state, material.settings, material.pool, personal))


def verdict_rows(
    state: State, settings: JudgesSettings, pool: TrialPool, personal: Mapping[str, Mapping[str, Any]]
) -> Iterator[VerdictRow]:
    """A row for each verdict, in the order of joining and of answers; ``rules`` are the names of those that exclude it.

    ``personal`` is what participants say of themselves, by their code.
    """
    for judge in state.judges.values():
        rows = list(_rows(judge, settings.exclude, pool))
        rules = _rules_of_judge(judge, rows, settings.exclude, personal.get(judge.code, {}))
        for row in rows:
            yield row | {"rules": [*rules, *row["rules"]]}


def verdict_record(row: VerdictRow, questions: Mapping[str, Any]) -> RecordFields:
    """The record of a verdict in a run; ``questions`` is what the judge says about themselves, by question.

    ``raw`` has the columns of what the judge did. The truth is not among them, so that a run can be handed on while
    its trials are still judged.
    """
    return {
        "task": "judgement",
        "stimulus": row["trial"],
        "agent": f"human:{row['judge']}",
        "sample": int(row["again"]),
        "answer": {"verdict": row["verdict"], "confidence": row["confidence"], "reason": row["reason"] or None},
        "raw": {name: value for name, value in row.items() if name not in KEY_COLUMNS} | {"questions": questions},
        "created": row["at"],
    }


def _rows(judge: Judge, exclude: Exclude, pool: TrialPool) -> Iterator[VerdictRow]:
    began = datetime.fromisoformat(judge.joined)
    before = began
    index = 0
    instructions = judge.answer_of(InstructionsRead)
    device = None if instructions is None else instructions.device
    for step, answer in zip(judge.steps, judge.answers, strict=False):
        answered = datetime.fromisoformat(answer.at)
        since = 1000 * (answered - before).total_seconds()
        before = answered
        if not isinstance(step, MaterialStep) or not isinstance(answer, TrialJudged):
            continue
        rules = {
            "fastest": fastest_of(answer.rt, since) < 1000 * exclude.fastest,
            "wrong_control": exclude.wrong_control and answer.right is False,
        }
        sexes = [None] * len(step.trials) if answer.sexes is None else answer.sexes
        for name, verdict, sex in zip(step.trials, answer.verdicts, sexes, strict=True):
            key = pool.key.get(name)
            if key is None:
                continue  # of another task
            phase: str = step.phase
            if phase == "test" and key["catch"]:
                phase = "swapped" if key["swapped"] else "catch"
            yield {
                "judge": judge.code,
                "trial_index": index,
                "phase": phase,
                "again": step.again,
                "trial": name,
                **{column: key[column] for column in ("asked", "stimulus", "speaker")},
                "verdict": verdict,
                **{column: key[column] for column in ("truth", "agent", "catch", "swapped")},
                "correct": verdict == key["truth"],
                "rt": answer.rt,
                "time_elapsed": round((answered - began).total_seconds() * 1000),
                "at": answer.at,
                "confidence": answer.confidence,
                "reason": answer.reason,
                "control": answer.control,
                "control_right": answer.right,
                "sex": sex,
                "away": answer.away,
                "by_key": answer.key,
                "key_for_human": judge.keys[0],
                "touch": None if device is None else device.touch,
                "screen": None if device is None else "x".join(map(str, device.screen)),
                "rules": [rule for rule, is_broken in rules.items() if is_broken],
            }
        index += 1


def _rules_of_judge(judge: Judge, rows: list[VerdictRow], exclude: Exclude, personal: Mapping[str, Any]) -> list[str]:
    counted = [row for row in rows if row["phase"] != "practice"]
    caught = [row["correct"] for row in counted if row["catch"] and not row["swapped"]]
    plain = [row["verdict"] for row in counted if not row["catch"] and not row["again"]]
    rules = {
        "finished": exclude.finished and judge.ended != "finished",
        "controls": _fails_controls(judge, exclude),
        "catch": _below(caught, exclude.catch),
        "one_sided": exclude.one_sided and len(plain) >= ENOUGH and len(set(plain)) == 1,
        "native": exclude.native and personal.get("native_language") != "yes",
    }
    return [rule for rule, is_broken in rules.items() if is_broken]


def _fails_controls(judge: Judge, exclude: Exclude) -> bool:
    sent: list[bool] = []
    for step, answer in zip(judge.steps, judge.answers, strict=False):
        if not isinstance(step, MaterialStep) or not isinstance(answer, TrialJudged):
            continue
        if step.phase != "practice" and answer.right is not None:
            sent.append(answer.right)
    return _below(sent, exclude.controls)


def outcome_of(judge: Judge, settings: StudySettings) -> str | None:
    """How a participant ended: finished, failed_checks, screened_out, no_consent, blocked or left; None before.

    Who failed the checks has finished, but with too few control questions right.
    """
    if judge.ended == "finished" and isinstance(settings, JudgesSettings) and _fails_controls(judge, settings.exclude):
        return "failed_checks"
    return "no_consent" if judge.ended == "declined" else judge.ended


def completion_code(judge: Judge, settings: StudySettings) -> str:
    """The code by which a panel knows the outcome; "" where there is none."""
    end = settings.end
    codes = {"finished": judge.end_code, "failed_checks": end.failed_checks or judge.end_code}
    codes |= {"screened_out": end.screened_out, "no_consent": end.no_consent, "left": end.no_consent}
    return codes.get(outcome_of(judge, settings) or "", "")


def _below(right: list[bool], share: float) -> bool:
    return bool(right) and sum(right) / len(right) < share
