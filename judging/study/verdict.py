"""The answer to a trial's page, as a browser sends it and as it is kept."""

from __future__ import annotations

from math import inf
from typing import Any

from judging.study.controls import Control
from judging.study.settings import Trials

SAID = ("human", "machine")
LONGEST_REASON = 2000
LONGEST_RT = 86_400_000.0  # milliseconds


class BadAnswer(Exception):
    """An answer that no page of ours sends; nothing was kept."""


def read_verdict(said: dict[str, Any], settings: Trials, speakers: int, control: Control | None) -> dict[str, Any]:
    """What is kept of an answer: ``verdicts``, one for each trial of the page; ``rt`` in ms from when all was on the
    screen, None where that is unknown; ``away``: the page was hidden meanwhile; ``key``: given by the keyboard;
    ``confidence`` from 0 to 1, ``reason``, ``control`` and whether it is ``right``. Raises BadAnswer."""
    known = {"verdicts", "rt", "away", "key", "confidence", "reason", "control"}
    if not said.keys() <= known:
        raise BadAnswer("has parts that no page sends")
    verdicts = said.get("verdicts")
    if not isinstance(verdicts, list) or len(verdicts) != speakers or any(one not in SAID for one in verdicts):
        raise BadAnswer(f"verdicts: must be {speakers} of human and machine")
    found: dict[str, Any] = {"verdicts": verdicts, "rt": read_ms(said.get("rt"))}
    for name in ("away", "key"):
        if not isinstance(said.get(name, False), bool):
            raise BadAnswer(f"{name}: must be true or false")
        found[name] = said.get(name, False)
    if settings.confidence:
        found["confidence"] = _number(said.get("confidence"), 1.0, "confidence")
    if settings.reason:
        reason = said.get("reason", "")
        if not isinstance(reason, str) or len(reason) > LONGEST_REASON:
            raise BadAnswer(f"reason: must be text of at most {LONGEST_REASON:,} letters")
        found["reason"] = reason.encode("utf-8", "replace").decode()
    if control is not None:
        if said.get("control") not in control.options:
            raise BadAnswer("control: must be one of the options")
        found |= {"control": said["control"], "right": said["control"] == control.right}
    return found


def fastest_of(rt: float | None, since: float) -> float:
    """The most ms that an answer can have taken: ``rt`` as the page says, where it does, or the ms ``since`` the answer
    before, by the server's clock, whichever is less. Infinite where neither is known: below 0 that clock was set."""
    return min((ms for ms in (rt, since) if ms is not None and ms >= 0), default=inf)


def read_ms(given: Any) -> float | None:
    """A time in ms, None where it is unknown. Raises BadAnswer."""
    return None if given is None else _number(given, LONGEST_RT, "rt")


def _number(given: Any, most: float, name: str) -> float:
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        raise BadAnswer(f"{name}: must be a number")
    if not 0 <= given <= most:  # which nan is not, either
        raise BadAnswer(f"{name}: must be from 0 to {most:g}")
    return round(float(given), 3)
