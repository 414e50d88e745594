"""The first answers of each person in a file, as ``import --dry-run`` shows them."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from serving.exchange.importing.source import Source
from serving.files.terminal import print_line
from serving.files.words import count, shown

ANSWERS_SHOWN = 3  # of each person
PEOPLE_SHOWN = 10
LONGEST = 60  # letters of an answer


def print_first_rows(source: Source) -> None:
    """Print who answered, about which stimulus, with what and how fast: the first answers of the first people."""
    agents = list(dict.fromkeys(answer.agent for answer in source.answers))
    first = set(agents[:PEOPLE_SHOWN])
    seen: Counter[str] = Counter()
    for answer in source.answers:
        seen[answer.agent] += 1
        if answer.agent in first and seen[answer.agent] <= ANSWERS_SHOWN:
            said = _text(answer.answer) + _time(answer.whole_raw())
            print_line(f"  {answer.agent} | {shown(answer.stimulus)} | {said}")
    more = len(agents) - PEOPLE_SHOWN
    if more > 0:
        print_line(f"  and {count(more, 'more name')}")


def _text(answer: Mapping[str, Any] | None) -> str:
    if answer is None:
        return "no answer"
    if "fixations" in answer:
        points = answer["fixations"]
        if not points:
            return "no fixation"
        return f"{count(len(points), 'fixation')}, the first at {points[0][0]:g}, {points[0][1]:g}"
    if "messages" in answer:
        messages = answer["messages"]
        first = messages[0]["text"] if messages else ""
        return f"{count(len(messages), 'message')}: {shown(first)[:LONGEST]}"
    if "labels" in answer:
        return ", ".join(map(shown, answer["labels"]))[:LONGEST]
    said = next(answer[name] for name in ("word", "color", "text", "verdict") if name in answer)
    return shown(str(said))[:LONGEST]


def _time(raw: Any) -> str:
    time = raw.get("rt") if isinstance(raw, dict) else None
    return f" | {time:g} ms" if isinstance(time, int | float) else ""
