"""Signs that an agent is broken though its answers look like answers: it gives one answer to most stimuli, the answers
of another agent, or the same path for different pictures. Only machines' answers are looked at, published ones too.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import orjson

MOST_STIMULI = 10_000  # stimuli of a task that are looked at, so that memory stays bounded
MOST_ALARMS = 200
LEAST = 8  # with fewer answers no alarm is raised
# The shares from which on an alarm is raised:
TWINS = 0.95  # of the stimuli that two agents answered, those to which they gave the same answer
MONOTONE = 0.80  # of an agent's stimuli, those with one and the same answer
SAME_PATH = 0.10  # of an agent's pictures, those with a path that another picture has too
SHORTEST_PATH = 3  # a path with fewer fixations can be the same by its length alone


@dataclass(slots=True)
class _AnswersOfAgent:
    """An agent's answers to a task, by digests of what they say."""

    digests: dict[str, bytes] = field(default_factory=dict)  # by stimulus
    texts: dict[bytes, str] = field(default_factory=dict)  # by digest: what an alarm quotes
    pictures: dict[bytes, set[tuple[str, str]]] = field(default_factory=dict)  # by digest of a path: name and SHA-256


class Alarms:
    """Takes in all stimuli, then all records, and raises alarms as sentences."""

    def __init__(self) -> None:
        self._images: dict[str, str] = {}
        self._stimuli: Counter[str] = Counter()
        self._answers: dict[tuple[str, str], _AnswersOfAgent] = {}  # by agent and task

    def add_stimulus(self, row: Mapping[str, Any]) -> None:
        """Take in a row of a set. Records on stimuli that are not taken in are not looked at."""
        task = str(row.get("task"))
        self._stimuli[task] += 1
        if self._stimuli[task] <= MOST_STIMULI:
            self._images[str(row.get("id"))] = str(row.get("image") or "")

    def add_record(self, agent: str, record: Mapping[str, Any]) -> None:
        """Take in a well-formed record of an agent; only sample 0 is looked at."""
        stimulus = record["stimulus"]
        task = record["task"]
        if record["kind"] not in ("machine", "published") or record["sample"] != 0 or stimulus not in self._images:
            return
        key = _key(task, record["answer"])
        answers = self._answers.setdefault((agent, task), _AnswersOfAgent())
        digest = hashlib.blake2b(orjson.dumps(key), digest_size=12).digest()
        answers.digests[stimulus] = digest
        if task != "attention_prediction":
            answers.texts.setdefault(digest, (key if isinstance(key, str) else " / ".join(key[:3]))[:120])
        elif len(key) >= SHORTEST_PATH:
            picture = (self._images[stimulus], str(record["stimulus_sha256"]))
            answers.pictures.setdefault(digest, set()).add(picture)

    def sentences(self) -> list[str]:
        """The first 200 alarms: same paths, then one answer to most stimuli, then the answers of another agent."""
        return [*self._same_paths(), *self._monotone(), *self._twins()][:MOST_ALARMS]

    def _monotone(self) -> Iterator[str]:
        for (agent, task), answers in sorted(self._answers.items()):
            total = len(answers.digests)
            if total < LEAST or task == "attention_prediction":
                continue
            digest, number = Counter(answers.digests.values()).most_common(1)[0]
            if number >= MONOTONE * total:
                yield f"{agent} gave one answer to {number:,} of {total:,} stimuli ({task}): {answers.texts[digest]}"

    def _twins(self) -> Iterator[str]:
        for (first, first_answers), (second, second_answers) in combinations(sorted(self._answers.items()), 2):
            first_agent, task = first
            second_agent, second_task = second
            if task != second_task:
                continue
            common = first_answers.digests.keys() & second_answers.digests.keys()
            same = sum(first_answers.digests[stimulus] == second_answers.digests[stimulus] for stimulus in common)
            if len(common) >= LEAST and same >= TWINS * len(common):
                yield (
                    f"{first_agent} and {second_agent} gave the same answer to {same:,} of the {len(common):,} stimuli "
                    f"that both answered ({task})."
                )

    def _same_paths(self) -> Iterator[str]:
        for (agent, _), answers in sorted(self._answers.items()):
            total = _different({picture for group in answers.pictures.values() for picture in group})
            shared = [group for group in answers.pictures.values() if _different(group) > 1]
            count = sum(_different(group) for group in shared)
            if total >= LEAST and count >= SAME_PATH * total:
                example = ", ".join(sorted(name for name, _ in max(shared, key=_different))[:3])
                yield f"{agent} looked along the same path at {count:,} of {total:,} different pictures: {example}"


def _different(pictures: set[tuple[str, str]]) -> int:
    """How many different pictures there are: copies of one file, and two files of one name, count once."""
    return min(len({name for name, _ in pictures}), len({digest for _, digest in pictures})) if pictures else 0


def _key(task: str, answer: Mapping[str, Any]) -> Any:
    """What two answers have in common that count as the same."""
    match task:
        case "attention_prediction":
            return [[round(x), round(y)] for x, y in answer["fixations"]]
        case "image_captioning":
            return " ".join(answer["text"].casefold().split())
        case "conversation":
            return [message["text"] for message in answer["messages"]]
        case "object_detection":
            return [label.casefold() for label in answer["labels"]]
    name = {"color_estimation": "color", "word_association": "word", "judgement": "verdict"}[task]
    return answer[name].casefold()
