"""A test as a trial: the judge's conversations with both agents, beside each other."""

from __future__ import annotations

from typing import Any

from judging.study.online.state import SIDES, OnlineTest
from judging.trial_set import QUESTION_OF_PAIRS


def trial_of(test: OnlineTest, exchanges: int) -> dict[str, Any]:
    """The trial after so many exchanges, without its id: the conversation with agent 1 is the answer, that with agent 2
    stands beside it; the judge is A in both."""
    first, second = ({"messages": _said(test, side, exchanges)} for side in SIDES)
    return {"asked": "conversation", "question": QUESTION_OF_PAIRS, "answer": first, "beside": second}


def _said(test: OnlineTest, side: int, exchanges: int) -> list[dict[str, str]]:
    found = []
    for question, answers in zip(test.asked[:exchanges], test.answers, strict=False):
        found.append({"speaker": "A", "text": question.text})
        found.append({"speaker": "B", "text": answers[side].text})
    return found
