"""Signs that something is wrong with an agent's answers, though each of them looks like an answer.

Only machine and published answers are looked at: controls are made to be odd, and one person answers a few stimuli.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import orjson

from agents.stimuli import Task

LOOKED_AT = 10_000  # stimuli per task, so that memory stays bounded
LEAST = 8  # with fewer answers no alarm is raised
TWINS = 0.95  # two agents give the same answer to at least this share of the stimuli that both answered
MONOTONE = 0.80  # one answer to at least this share of the stimuli
SAME_PATH = 0.10  # at least this share of the pictures has a path that another picture has too
SHORTEST_PATH = 3  # a path with fewer fixations can be the same by its length alone


@dataclass(frozen=True, slots=True)
class Alarm:
    """``sentence`` says what was found, with the counts; ``example`` quotes an answer or a stimulus, or is empty."""

    kind: str
    agents: tuple[str, ...]
    sentence: str
    example: str = ""


@dataclass(slots=True)
class _Answers:
    """What one agent answered in one task: stimulus -> digest of the answer; digest -> how it reads."""

    task: Task
    answers: dict[str, bytes] = field(default_factory=dict)
    words: dict[bytes, str] = field(default_factory=dict)
    pictures: dict[bytes, set[tuple[str, str]]] = field(default_factory=dict)


class Alarms:
    """Collects answers (:meth:`stimulus` for all stimuli first, then :meth:`record`), then says what is odd."""

    def __init__(self) -> None:
        self._images: dict[str, str] = {}
        self._seen: Counter[str] = Counter()
        self._given: dict[tuple[str, str], _Answers] = {}

    def stimulus(self, row: Mapping[str, Any]) -> None:
        task = str(row.get("task"))
        self._seen[task] += 1
        if self._seen[task] <= LOOKED_AT:
            self._images[str(row.get("id"))] = str(row.get("image") or "")

    def record(self, row: Mapping[str, Any]) -> None:
        """Take in one record per key; where an agent answered a stimulus several times, the first sample counts."""
        stimulus = row.get("stimulus")
        if row.get("status") != "ok" or row.get("kind") not in ("machine", "published") or row.get("sample") != 0:
            return
        if not isinstance(stimulus, str) or stimulus not in self._images:
            return
        key = _key(row)
        if key is None:
            return
        given = self._given.setdefault((str(row["agent"]), str(row["task"])), _Answers(row["task"]))
        digest = hashlib.blake2b(orjson.dumps(key), digest_size=12).digest()
        given.answers[stimulus] = digest
        given.words.setdefault(digest, _reads(row["task"], key))
        if row["task"] == "attention_prediction" and len(key) >= SHORTEST_PATH:
            picture = (self._images[stimulus], str(row.get("stimulus_sha256")))
            given.pictures.setdefault(digest, set()).add(picture)

    def found(self) -> list[Alarm]:
        """Every alarm, the worst kind first."""
        return [*self._same_paths(), *self._monotone(), *self._twins()]

    def told(self) -> dict[str, Any]:
        """What is found, for the page: ``found``, ``few`` (who answered too little) and what was looked for."""
        compared = self.compared()
        return {
            "found": [[alarm.kind, alarm.sentence, alarm.example] for alarm in self.found()[:200]],
            "few": [f"{agent} ({task})" for (agent, task), number in compared.items() if number < LEAST][:20],
            "compared": bool(compared),
            "note": (
                f"Looked for, among answers of machines to the first {LOOKED_AT:,} stimuli of each task, from {LEAST} "
                f"on: two agents that give the same answer to at least {TWINS:.0%} of the stimuli that both answered; "
                f"one answer to at least {MONOTONE:.0%} of the stimuli; a path of {SHORTEST_PATH} or more fixations "
                f"that is the same for different pictures, at least {SAME_PATH:.0%} of them. An alarm is a reason to "
                "look, not a verdict."
            ),
        }

    def compared(self) -> dict[tuple[str, str], int]:
        """The number of answers that were looked at, by (agent, task)."""
        return {key: len(given.answers) for key, given in sorted(self._given.items())}

    def _monotone(self) -> list[Alarm]:
        alarms = []
        for (agent, task), given in sorted(self._given.items()):
            total = len(given.answers)
            if total < LEAST or task == "attention_prediction":
                continue
            digest, times = Counter(given.answers.values()).most_common(1)[0]
            if times >= MONOTONE * total:
                sentence = f"{agent} gave one answer to {times:,} of {total:,} stimuli ({task})."
                alarms.append(Alarm("one answer most of the time", (agent,), sentence, given.words[digest]))
        return alarms

    def _twins(self) -> list[Alarm]:
        alarms = []
        for (first, a), (second, b) in combinations(sorted(self._given.items()), 2):
            if first[1] != second[1]:
                continue
            common = a.answers.keys() & b.answers.keys()
            same = sum(a.answers[stimulus] == b.answers[stimulus] for stimulus in common)
            if len(common) >= LEAST and same >= TWINS * len(common):
                sentence = (
                    f"{first[0]} and {second[0]} gave the same answer to {same:,} of the {len(common):,} stimuli that "
                    f"both answered ({first[1]})."
                )
                alarms.append(Alarm("two agents almost always identical", (first[0], second[0]), sentence))
        return alarms

    def _same_paths(self) -> list[Alarm]:
        alarms = []
        for (agent, task), given in sorted(self._given.items()):
            if task != "attention_prediction":
                continue
            # One picture may stand in the set under two names, and a search for two targets has one picture: pictures
            # are different where both their names and their hashes are.
            pictures = {picture for group in given.pictures.values() for picture in group}
            total = _different(pictures)
            shared = [group for group in given.pictures.values() if _different(group) > 1]
            count = sum(_different(group) for group in shared)
            if total >= LEAST and count >= SAME_PATH * total:
                sentence = f"{agent} looked along the same path at {count:,} of {total:,} different pictures."
                example = ", ".join(sorted(name for name, _ in max(shared, key=_different))[:3])
                alarms.append(Alarm("the same path for different pictures", (agent,), sentence, example))
        return alarms


def _different(pictures: set[tuple[str, str]]) -> int:
    return min(len({name for name, _ in pictures}), len({digest for _, digest in pictures})) if pictures else 0


def _key(row: Mapping[str, Any]) -> Any:
    """What makes two answers the same, by task; None if the answer has not its task's form."""
    answer = row.get("answer")
    try:
        match row.get("task"):
            case "color_estimation":
                return str(answer["color"]).casefold()  # type: ignore[index]
            case "object_detection":
                return [str(label).casefold() for label in answer["labels"]]  # type: ignore[index]
            case "image_captioning":
                return " ".join(str(answer["text"]).casefold().split())  # type: ignore[index]
            case "word_association":
                return str(answer["word"]).casefold()  # type: ignore[index]
            case "conversation":
                return [str(message["text"]) for message in answer["messages"]]  # type: ignore[index]
            case "judgement":
                return str(answer["verdict"])  # type: ignore[index]
            case "attention_prediction":
                return [[round(x), round(y)] for x, y in answer["fixations"]]  # type: ignore[index]
    except (KeyError, TypeError, ValueError):
        return None
    return None


def _reads(task: str, key: Any) -> str:
    if task == "attention_prediction":
        return ""
    text = key if isinstance(key, str) else " / ".join(key[:3])
    return text[:120]
