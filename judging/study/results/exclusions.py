"""The verdicts of a study, a row each, with the rules that exclude it."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from judging.study.events import Judge, State
from judging.study.pages.page_answers import fastest_of
from judging.study.pages.pool import TrialPool
from judging.study.settings import Exclude, JudgesSettings, StudySettings

VerdictRow = dict[str, Any]
ENOUGH = 4  # verdicts of a judge that are all alike before that is a rule's matter


def verdict_rows(
    state: State, settings: JudgesSettings, pool: TrialPool, personal: Mapping[str, Mapping[str, Any]]
) -> Iterator[VerdictRow]:
    for judge in state.judges.values():
        rows = list(_rows(judge, settings.exclude, pool))
        rules = _rules_of_judge(judge, rows, settings.exclude, personal.get(judge.code, {}))
        for row in rows:
            yield row | {"rules": [*rules, *row["rules"]]}


def _rows(judge: Judge, exclude: Exclude, pool: TrialPool) -> Iterator[VerdictRow]:
    began = before = datetime.fromisoformat(judge.joined)
    index = 0
    device = judge.of("instructions").get("device", {})
    for step, answer in zip(judge.steps, judge.answers, strict=False):
        at = datetime.fromisoformat(answer["at"])
        since = 1000 * (at - before).total_seconds()
        before = at
        if step["kind"] != "trial":
            continue
        rules = {
            "fastest": fastest_of(answer["rt"], since) < 1000 * exclude.fastest,
            "wrong_control": exclude.wrong_control and answer.get("right") is False,
        }
        sexes = answer.get("sexes", [None] * len(step["trials"]))
        for name, verdict, sex in zip(step["trials"], answer["verdicts"], sexes, strict=True):
            key = pool.key.get(name)
            if key is None:
                continue  # of another task
            phase = step["phase"]
            if phase == "test" and key["catch"]:
                phase = "swapped" if key["swapped"] else "catch"
            yield {
                "judge": judge.code,
                "trial_index": index,
                "phase": phase,
                "again": step["again"],
                "trial": name,
                **{column: key[column] for column in ("asked", "stimulus", "speaker")},
                "verdict": verdict,
                **{column: key[column] for column in ("truth", "agent", "catch", "swapped")},
                "correct": verdict == key["truth"],
                "rt": answer["rt"],
                "time_elapsed": round((at - began).total_seconds() * 1000),
                "at": answer["at"],
                **{part: answer.get(part) for part in ("confidence", "reason", "control")},
                "control_right": answer.get("right"),
                "sex": sex,
                "away": answer["away"],
                "by_key": answer["key"],
                "key_for_human": judge.keys[0],
                "touch": device.get("touch"),
                "screen": "x".join(map(str, device["screen"])) if device else None,
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
    steps = zip(judge.steps, judge.answers, strict=False)
    sent = [answer.get("right") for step, answer in steps if step.get("phase") != "practice"]
    return _below([is_right for is_right in sent if is_right is not None], exclude.controls)


def outcome_of(judge: Judge, settings: StudySettings) -> str | None:
    """finished, failed_checks (too few controls right), screened_out, no_consent, blocked or left; None before."""
    if judge.ended == "finished" and isinstance(settings, JudgesSettings) and _fails_controls(judge, settings.exclude):
        return "failed_checks"
    return "no_consent" if judge.ended == "declined" else judge.ended


def completion_code(judge: Judge, settings: StudySettings) -> str:
    """The code that a panel gets for the outcome; empty for none."""
    end = settings.end
    codes = {"finished": judge.end_code, "failed_checks": end.failed_checks or judge.end_code}
    codes |= {"screened_out": end.screened_out, "no_consent": end.no_consent, "left": end.no_consent}
    return codes.get(outcome_of(judge, settings) or "", "")


def _below(right: list[bool], share: float) -> bool:
    return bool(right) and sum(right) / len(right) < share
