"""Signs of wrong answers that look like answers, in machine and published answers."""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
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


@dataclass(slots=True)
class _Answers:
    digests: dict[str, bytes] = field(default_factory=dict)
    texts: dict[bytes, str] = field(default_factory=dict)
    pictures: dict[bytes, set[tuple[str, str]]] = field(default_factory=dict)


class Alarms:
    """Collects stimuli, then records, and raises alarms."""

    def __init__(self) -> None:
        self._images: dict[str, str] = {}
        self._stimuli: Counter[str] = Counter()
        self._answers: dict[tuple[str, str], _Answers] = {}

    def add_stimulus(self, row: Mapping[str, Any]) -> None:
        task = str(row.get("task"))
        self._stimuli[task] += 1
        if self._stimuli[task] <= MOST_STIMULI:
            self._images[str(row.get("id"))] = str(row.get("image") or "")

    def add_record(self, agent: str, record: Mapping[str, Any]) -> None:
        """Take in a well-formed record; the first sample counts."""
        stimulus = record["stimulus"]
        task = record["task"]
        if record["kind"] not in ("machine", "published") or record["sample"] != 0 or stimulus not in self._images:
            return
        key = _key(task, record["answer"])
        answers = self._answers.setdefault((agent, task), _Answers())
        digest = hashlib.blake2b(orjson.dumps(key), digest_size=12).digest()
        answers.digests[stimulus] = digest
        if task != "attention_prediction":
            answers.texts.setdefault(digest, (key if isinstance(key, str) else " / ".join(key[:3]))[:120])
        elif len(key) >= SHORTEST_PATH:
            picture = (self._images[stimulus], str(record["stimulus_sha256"]))
            answers.pictures.setdefault(digest, set()).add(picture)

    def sentences(self) -> list[str]:
        """The 200 worst alarms, worst first."""
        return [*self._same_paths(), *self._monotone(), *self._twins()][:200]

    def _monotone(self) -> Iterator[str]:
        for (agent, task), answers in sorted(self._answers.items()):
            total = len(answers.digests)
            if total < LEAST or task == "attention_prediction":
                continue
            digest, times = Counter(answers.digests.values()).most_common(1)[0]
            if times >= MONOTONE * total:
                yield f"{agent} gave one answer to {times:,} of {total:,} stimuli ({task}): {answers.texts[digest]}"

    def _twins(self) -> Iterator[str]:
        for (first, left), (second, right) in combinations(sorted(self._answers.items()), 2):
            common = left.digests.keys() & right.digests.keys() if first[1] == second[1] else ()
            same = sum(left.digests[stimulus] == right.digests[stimulus] for stimulus in common)
            if len(common) >= LEAST and same >= TWINS * len(common):
                names = f"{first[0]} and {second[0]}"
                of_common = f"{same:,} of the {len(common):,} stimuli"
                yield f"{names} gave the same answer to {of_common} that both answered ({first[1]})."

    def _same_paths(self) -> Iterator[str]:
        for (agent, _), answers in sorted(self._answers.items()):
            total = _different({picture for group in answers.pictures.values() for picture in group})
            shared = [group for group in answers.pictures.values() if _different(group) > 1]
            count = sum(_different(group) for group in shared)
            if total >= LEAST and count >= SAME_PATH * total:
                example = ", ".join(sorted(name for name, _ in max(shared, key=_different))[:3])
                yield f"{agent} looked along the same path at {count:,} of {total:,} different pictures: {example}"


def _different(pictures: set[tuple[str, str]]) -> int:
    return min(len({name for name, _ in pictures}), len({digest for _, digest in pictures})) if pictures else 0


def _key(task: str, answer: Mapping[str, Any]) -> Any:
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
