"""What a browser sends of a page, checked: verdicts on a trial, and what people say of themselves."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

from judging.study.controls import Control
from judging.study.settings import Trials

VERDICTS = ("human", "machine")
LONGEST_REASON = 2000
LONGEST_RT = 86_400_000.0  # milliseconds
OPTIONS: Mapping[str, Sequence[str]] = {
    "age": ("18-20", "21-25", "26-30", "31-35", "36-40", "41-45", "46-50", ">50"),
    "gender": ("female", "male", "non_binary"),
    "education": ("middle school", "high school", "bachelor", "master", "pg"),
    "native_language": ("yes", "no"),
    "ai_experience": ("none", "user", "expert"),
    "engaging": tuple(map(str, range(11))),
    "difficult": tuple(map(str, range(11))),
}
"""As on the 2022 and 2025 papers' forms, with an age above 50; ``country`` and ``comments`` are free text."""
LONGEST = {"country": 60, "comments": 4000}
UNFILLED = re.compile(r".*[{}\[\]<>$].*|%.*%|undefined|null|none|nan|n/?a|", re.IGNORECASE | re.DOTALL)


class BadAnswer(Exception):
    """An answer that no page of ours sends; nothing was kept."""


def read_verdict(answer: dict[str, Any], settings: Trials, speakers: int, control: Control | None) -> dict[str, Any]:
    """What is kept of a trial's answer. Raises BadAnswer.

    ``verdicts`` has a verdict on each trial of the page; ``rt`` is in ms from when all was on the screen, or None;
    ``away``: the page was hidden meanwhile; ``key``: by the keyboard; also ``confidence`` from 0 to 1, ``reason``,
    ``control`` and whether it is ``right``.
    """
    check_parts(answer, {"verdicts", "rt", "away", "key", "confidence", "reason", "control"})
    verdicts, reason = answer.get("verdicts"), answer.get("reason", "")
    is_list = isinstance(verdicts, list) and len(verdicts) == speakers
    if not is_list or any(verdict not in VERDICTS for verdict in verdicts or ()):
        raise BadAnswer(f"verdicts: must be {speakers} of human and machine")
    kept = {"verdicts": verdicts, "rt": read_ms(answer), "away": read_flag(answer, "away")}
    kept["key"] = read_flag(answer, "key")
    if settings.confidence:
        kept["confidence"] = _number(answer.get("confidence"), 1.0, "confidence")
    if settings.reason:
        if not isinstance(reason, str) or len(reason) > LONGEST_REASON:
            raise BadAnswer(f"reason: must be text of at most {LONGEST_REASON:,} letters")
        kept["reason"] = writable(reason)
    if control is not None:
        if answer.get("control") not in control.options:
            raise BadAnswer("control: must be an option")
        kept |= {"control": answer["control"], "right": answer["control"] == control.right}
    return kept


def check_parts(answer: Mapping[str, Any], known: Sequence[str] | set[str]) -> None:
    """Raises BadAnswer for an answer with other parts."""
    if not answer.keys() <= set(known):
        raise BadAnswer("has parts that no page sends")


def writable(text: str) -> str:
    """The text without halves of surrogate pairs, which cannot be written."""
    return text.encode("utf-8", "replace").decode()


def fastest_of(rt: float | None, since: float) -> float:
    """The most ms that an answer can have taken: the page's ``rt`` or the server's ``since`` the answer before,
    whichever is less. A value below 0 is a clock that was set; infinite where neither is known."""
    return min((ms for ms in (rt, since) if ms is not None and ms >= 0), default=inf)


def read_ms(answer: Mapping[str, Any]) -> float | None:
    """The answer's ``rt`` in ms, None where it is unknown. Raises BadAnswer."""
    value = answer.get("rt")
    return None if value is None else _number(value, LONGEST_RT, "rt")


def read_flag(answer: Mapping[str, Any], name: str) -> bool:
    """A truth that may lack. Raises BadAnswer."""
    value = answer.get(name, False)
    if not isinstance(value, bool):
        raise BadAnswer(f"{name}: must be true or false")
    return value


def _number(value: Any, most: float, name: str) -> float:
    # No number is nan, which is not between the two.
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= most:
        raise BadAnswer(f"{name}: must be a number from 0 to {most:g}")
    return round(float(value), 3)


def read_questions(fields: Sequence[str], answer: Mapping[str, Any]) -> dict[str, str]:
    """The answers to ``fields``, without what was left out; nobody must answer. Raises BadAnswer."""
    check_parts(answer, fields)
    kept = {}
    for name, value in answer.items():
        if value in (None, ""):
            continue
        if not isinstance(value, str) or value not in OPTIONS.get(name, (value,)):
            raise BadAnswer(f"{name}: no such answer")
        if len(value) > LONGEST.get(name, 100):
            raise BadAnswer(f"{name}: too long")
        kept[name] = writable(value)
    return kept


def panel_id(worker: str | None, parameter: str) -> str:
    """The id that a panel put into the address's ``parameter``; "" where there is none or it was not filled in, as in
    "{{%PROLIFIC_PID%}}", "${e://Field/PROLIFIC_PID}", "[worker_id]", "undefined", or the parameter's name."""
    worker = (worker or "").strip()[:200]
    is_name = re.sub(r"\W|_", "", worker.casefold()) == re.sub(r"\W|_", "", parameter.casefold())
    return "" if not parameter or is_name or UNFILLED.fullmatch(worker) else worker
