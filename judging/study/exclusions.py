"""The verdicts of a study, a row each, with the rules that exclude it. Nothing is removed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from judging.study.page_answers import fastest_of
from judging.study.pool import TrialPool
from judging.study.settings import JudgesSettings
from judging.study.state import Judge, State, Step

Row = dict[str, Any]
ENOUGH = 4  # verdicts of one judge that are all alike before that is a rule's matter


def verdict_rows(
    state: State, settings: JudgesSettings, pool: TrialPool, personal: Mapping[str, Mapping[str, Any]]
) -> Iterator[Row]:
    """A row per verdict, judge by judge, also of practice and of attempts that were begun anew; ``rules`` exclude
    it."""
    for judge in state.judges.values():
        attempts = [*judge.former, (judge.steps, judge.answers)]
        rows = [
            row
            for number, (steps, answers) in enumerate(attempts)
            for row in _of_attempt(judge, number, number < len(judge.former), steps, answers, settings, pool)
        ]
        rules = _rules_of_judge(judge, rows, settings, personal.get(judge.code, {}))
        for row in rows:
            row["rules"] = [*rules, *row["rules"]]
        yield from rows


def _of_attempt(
    judge: Judge,
    attempt: int,
    is_former: bool,
    steps: list[Step],
    answers: list[Row],
    settings: JudgesSettings,
    pool: TrialPool,
) -> Iterator[Row]:
    began, index = datetime.fromisoformat(judge.joined), 0
    before = began
    for step, answer in zip(steps, answers, strict=False):
        at = datetime.fromisoformat(answer["at"])
        since, before = 1000 * (at - before).total_seconds(), at
        if step["kind"] != "trial":
            continue
        for name, verdict in zip(step["trials"], answer["verdicts"], strict=True):
            key = pool.key.get(name)
            if key is None:
                continue  # of another task
            yield {
                "judge": judge.code,
                "attempt": attempt,
                "trial_index": index,
                "phase": _kind(key) or step["phase"] if step["phase"] == "test" else step["phase"],
                "again": step["again"],
                "trial": name,
                "asked": key["asked"],
                "stimulus": key["stimulus"],
                "speaker": key["speaker"],
                "verdict": verdict,
                "truth": key["truth"],
                "agent": key["agent"],
                "catch": key["catch"],
                "swapped": key["swapped"],
                "correct": verdict == key["truth"],
                "rt": answer["rt"],
                "time_elapsed": round((at - began).total_seconds() * 1000),
                "at": answer["at"],
                "confidence": answer.get("confidence"),
                "reason": answer.get("reason"),
                "control": answer.get("control"),
                "control_right": answer.get("right"),
                "away": answer["away"],
                "by_key": answer["key"],
                "key_for_human": judge.keys[0],
                "rules": _rules_of_trial(answer, since, settings, is_former),
            }
        index += 1


def _kind(key: Mapping[str, Any]) -> str | None:
    return "swapped" if key["swapped"] else "catch" if key["catch"] else None


def _rules_of_trial(answer: Row, since: float, settings: JudgesSettings, is_former: bool) -> list[str]:
    rules = ["begun_anew"] if is_former else []
    if fastest_of(answer["rt"], since) < 1000 * settings.exclude.fastest:
        rules.append("fastest")
    if settings.exclude.wrong_control and answer.get("right") is False:
        rules.append("wrong_control")
    return rules


def _rules_of_judge(judge: Judge, rows: list[Row], settings: JudgesSettings, personal: Mapping[str, Any]) -> list[str]:
    exclude, rules = settings.exclude, []
    counted = [row for row in rows if row["attempt"] == len(judge.former) and row["phase"] != "practice"]
    pages = {row["trial_index"]: row for row in counted}.values()  # one control question for both speakers
    if exclude.finished and judge.ended != "finished":
        rules.append("finished")
    if _below([row["control_right"] for row in pages if row["control_right"] is not None], exclude.controls):
        rules.append("controls")
    if _below([row["correct"] for row in counted if row["catch"] and not row["swapped"]], exclude.catch):
        rules.append("catch")
    plain = [row for row in counted if not row["catch"] and not row["again"]]
    if exclude.one_sided and len(plain) >= ENOUGH and len({row["verdict"] for row in plain}) == 1:
        rules.append("one_sided")
    if exclude.native and personal.get("native_language") != "yes":
        rules.append("native")
    return rules


def _below(right: list[bool], share: float) -> bool:
    return bool(right) and sum(right) / len(right) < share
