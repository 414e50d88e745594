"""Signs that something is wrong with an agent's answers, though each of them looks like an answer.

Only machine and published answers count: controls are made to be odd, and a person answers few stimuli.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import orjson

MOST_STIMULI = 10_000  # per task, so that memory stays bounded
LEAST = 8  # with fewer answers no alarm is raised
TWINS = 0.95  # two agents give the same answer to at least this share of the stimuli that both answered
MONOTONE = 0.80  # the same answer to at least this share of the stimuli
SAME_PATH = 0.10  # at least this share of the pictures has a path that another picture has too
SHORTEST_PATH = 3  # a path with fewer fixations can be the same by its length alone
NOTE = (
    f"Looked for, among answers of machines to the first {MOST_STIMULI:,} stimuli of each task, from {LEAST} on: two "
    f"agents that give the same answer to at least {TWINS:.0%} of the stimuli that both answered; one answer to at "
    f"least {MONOTONE:.0%} of the stimuli; a path of {SHORTEST_PATH} or more fixations that is the same for different "
    f"pictures, at least {SAME_PATH:.0%} of them. An alarm is a reason to look, not a verdict."
)


@dataclass(frozen=True, slots=True)
class Alarm:
    kind: str
    agents: tuple[str, ...]
    sentence: str
    example: str = ""


@dataclass(slots=True)
class _Answers:
    """An agent's answers in a task: stimulus -> digest of the answer; digest -> its text; digest -> pictures."""

    digests: dict[str, bytes] = field(default_factory=dict)
    texts: dict[bytes, str] = field(default_factory=dict)
    pictures: dict[bytes, set[tuple[str, str]]] = field(default_factory=dict)


class Alarms:
    """Collects stimuli (:meth:`add_stimulus`), then records (:meth:`add_record`), and raises alarms."""

    def __init__(self) -> None:
        self._images: dict[str, str] = {}
        self._stimuli: Counter[str] = Counter()
        self._answers: dict[tuple[str, str], _Answers] = {}

    def add_stimulus(self, row: Mapping[str, Any]) -> None:
        task = str(row.get("task"))
        self._stimuli[task] += 1
        if self._stimuli[task] <= MOST_STIMULI:
            self._images[str(row.get("id"))] = str(row.get("image") or "")

    def add_record(self, record: Mapping[str, Any]) -> None:
        """Take in a key's record; of several samples the first counts."""
        stimulus = record.get("stimulus")
        is_machine = record.get("kind") in ("machine", "published")
        if record.get("status") != "ok" or not is_machine or record.get("sample") != 0:
            return
        if not isinstance(stimulus, str) or stimulus not in self._images:
            return
        key = _key(record)
        if key is None:
            return
        answers = self._answers.setdefault((str(record["agent"]), str(record["task"])), _Answers())
        digest = hashlib.blake2b(orjson.dumps(key), digest_size=12).digest()
        answers.digests[stimulus] = digest
        is_path = record["task"] == "attention_prediction"
        if not is_path:
            answers.texts.setdefault(digest, (key if isinstance(key, str) else " / ".join(key[:3]))[:120])
        elif len(key) >= SHORTEST_PATH:
            picture = (self._images[stimulus], str(record.get("stimulus_sha256")))
            answers.pictures.setdefault(digest, set()).add(picture)

    def alarms(self) -> list[Alarm]:
        """Every alarm, the worst kind first."""
        return [*self._same_paths(), *self._monotone(), *self._twins()]

    def summary(self) -> dict[str, Any]:
        """For the page: ``alarms``, ``few`` (who answered too little), whether anything was ``compared``, a
        ``note``."""
        numbers = {key: len(answers.digests) for key, answers in sorted(self._answers.items())}
        return {
            "alarms": [[alarm.kind, alarm.sentence, alarm.example] for alarm in self.alarms()[:200]],
            "few": [f"{agent} ({task})" for (agent, task), number in numbers.items() if number < LEAST][:20],
            "compared": bool(numbers),
            "note": NOTE,
        }

    def _monotone(self) -> list[Alarm]:
        alarms = []
        for (agent, task), answers in sorted(self._answers.items()):
            total = len(answers.digests)
            if total < LEAST or task == "attention_prediction":
                continue
            digest, times = Counter(answers.digests.values()).most_common(1)[0]
            if times >= MONOTONE * total:
                sentence = f"{agent} gave one answer to {times:,} of {total:,} stimuli ({task})."
                alarms.append(Alarm("one answer most of the time", (agent,), sentence, answers.texts[digest]))
        return alarms

    def _twins(self) -> list[Alarm]:
        alarms = []
        for (first, left), (second, right) in combinations(sorted(self._answers.items()), 2):
            if first[1] != second[1]:
                continue
            common = left.digests.keys() & right.digests.keys()
            same = sum(left.digests[stimulus] == right.digests[stimulus] for stimulus in common)
            if len(common) >= LEAST and same >= TWINS * len(common):
                sentence = (
                    f"{first[0]} and {second[0]} gave the same answer to {same:,} of the {len(common):,} stimuli that "
                    f"both answered ({first[1]})."
                )
                alarms.append(Alarm("two agents almost always identical", (first[0], second[0]), sentence))
        return alarms

    def _same_paths(self) -> list[Alarm]:
        alarms = []
        for (agent, _), answers in sorted(self._answers.items()):
            total = _different({picture for group in answers.pictures.values() for picture in group})
            shared = [group for group in answers.pictures.values() if _different(group) > 1]
            count = sum(_different(group) for group in shared)
            if total >= LEAST and count >= SAME_PATH * total:
                sentence = f"{agent} looked along the same path at {count:,} of {total:,} different pictures."
                example = ", ".join(sorted(name for name, _ in max(shared, key=_different))[:3])
                alarms.append(Alarm("the same path for different pictures", (agent,), sentence, example))
        return alarms


def _different(pictures: set[tuple[str, str]]) -> int:
    """How many pictures differ in both name and hash: a picture may have two names, and two targets."""
    return min(len({name for name, _ in pictures}), len({digest for _, digest in pictures})) if pictures else 0


def _key(record: Mapping[str, Any]) -> Any:
    """What makes two answers the same, by task; None if the answer has not its task's form."""
    answer: Any = record.get("answer")
    try:
        match record.get("task"):
            case "color_estimation":
                return str(answer["color"]).casefold()
            case "object_detection":
                return [str(label).casefold() for label in answer["labels"]]
            case "image_captioning":
                return " ".join(str(answer["text"]).casefold().split())
            case "word_association":
                return str(answer["word"]).casefold()
            case "conversation":
                return [str(message["text"]) for message in answer["messages"]]
            case "judgement":
                return str(answer["verdict"])
            case "attention_prediction":
                return [[round(x), round(y)] for x, y in answer["fixations"]]
    except (KeyError, TypeError, ValueError):
        return None
    return None
