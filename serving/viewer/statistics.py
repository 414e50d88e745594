"""The figures of the viewer's first page.

A *group* is an agent, or :data:`PEOPLE`, which stands for all people together. An interval covers 95 %, over stimuli:
answers to one stimulus are no independent draws.
"""

import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from scipy.special import stdtrit

from agents.answers import COLORS
from serving.runs.answer_numbers import cliffs_delta, likeness, numbers, words_of

PEOPLE = "people"
UNKNOWN_PERSON = "human:unknown"  # people who are not told apart: each sample is another person's
PERSONS = 12  # people whose answers to a stimulus are compared with each other and with agents'
SAMPLES = 3  # answers of an agent to a stimulus that are compared
LABELS = 25  # words in a figure of frequencies
DRAWN = 40  # groups in a figure
HELD = 200_000  # values of a group that Cliff's delta is computed from
Z = 1.959964  # the normal distribution's quantile for an interval of 95 %
ROUNDING = 1e-9  # relative: a smaller standard error is rounding

Interval = list[float | int | None]
"""[value, low, high, number of answers]; low and high are None where there is no interval."""
Labelled = Sequence[tuple[str, Mapping[str, Any]]]
"""Records of one stimulus, each with its agent's name on the page."""


class Mean:
    """The mean of a number over answers, with its interval over stimuli."""

    def __init__(self) -> None:
        self.sums: dict[int, float] = defaultdict(float)
        self.counts: dict[int, int] = defaultdict(int)

    def add(self, stimulus: int, value: float) -> None:
        """Take in the value of an answer to the stimulus of that number."""
        self.sums[stimulus] += value
        self.counts[stimulus] += 1

    @property
    def number(self) -> int:
        """How many values were taken in."""
        return sum(self.counts.values())

    def interval(self, *, share: bool = False) -> Interval:
        """The mean with its interval: by linearisation of the ratio (Cochran 1977, Sampling Techniques, chapter 6) and
        Student's t, for a ``share`` Wilson's.

        There is no interval for a single stimulus, nor for stimuli that do not vary: it would have no width, as if
        other stimuli could not differ.
        """
        sums = np.fromiter(self.sums.values(), float)
        counts = np.fromiter(self.counts.values(), float)
        units = len(sums)
        mean = float(sums.sum() / counts.sum())
        if units < 2:
            return [mean, None, None, self.number]
        if share:
            return wilson(mean, units, self.number)
        error = math.sqrt(units / (units - 1) * float(((sums - mean * counts) ** 2).sum())) / float(counts.sum())
        if error <= ROUNDING * abs(mean):
            return [mean, None, None, self.number]
        reach = float(stdtrit(units - 1, 0.975)) * error
        return [mean, mean - reach, mean + reach, self.number]


class Statistics:
    """Takes in the records of one stimulus after the other, then makes :meth:`figures`. ``stimuli`` is their number."""

    def __init__(self, stimuli: int) -> None:
        self.stimuli = stimuli
        self.seen: dict[str, dict[str, None]] = defaultdict(dict)  # task -> who answered, in order
        self.means: dict[tuple[str, str], dict[str, Mean]] = defaultdict(lambda: defaultdict(Mean))
        self.values: dict[tuple[str, str], dict[str, array[float]]] = defaultdict(
            lambda: defaultdict(lambda: array("d"))
        )
        self.alike: dict[tuple[str, str, str], Mean] = defaultdict(Mean)
        self.words: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        self.rejections: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
        self.records: Counter[tuple[str, str]] = Counter()

    def stimulus(self, number: int, records: Labelled, parsed: Labelled) -> float | None:
        """Take in all ``records`` of the stimulus of that number, and the ``parsed`` ones, whose answers count. Returns
        how alike the answers are, from 0 to 1; None where no two can be compared."""
        for agent, record in records:
            group = PEOPLE if record["kind"] == "human" else agent
            self.records[record["task"], group] += 1
            for attempt in record["attempts"]:
                for verdict in attempt["verdicts"]:
                    if verdict["rejected"]:
                        self.rejections[record["task"]][group][verdict["filter"]] += 1
        for agent, record in parsed:
            self._answer(number, PEOPLE if record["kind"] == "human" else agent, record["task"], record["answer"])
        return self._compare(number, parsed)

    def _answer(self, number: int, group: str, task: str, answer: Mapping[str, Any]) -> None:
        self.seen[task].setdefault(group)
        for name, value in numbers(task, answer):
            self.means[task, name][group].add(number, float(value))
            if len(self.values[task, name][group]) < HELD:
                self.values[task, name][group].append(float(value))
        if task == "object_detection":
            self.words[task, group].update({label.casefold()[:60] for label in answer["labels"]})
        elif task == "image_captioning":
            self.words[task, group].update(words_of(answer["text"]))
        elif task == "word_association":
            self.words[task, group][answer["word"].casefold()[:60]] += 1

    def _compare(self, number: int, parsed: Labelled) -> float | None:
        """Note how alike each two answers to a stimulus are; returns the mean over all pairs, None without a pair."""
        answers: dict[str, list[Mapping[str, Any]]] = defaultdict(list)  # by who answered
        for agent, record in parsed:
            who = f"{agent}#{record['sample']}" if agent == UNKNOWN_PERSON else agent  # people who are not told apart
            if record["kind"] != "control" and len(answers[who]) < SAMPLES:
                answers[who].append(record)
        people = [who for who, records in answers.items() if records[0]["kind"] == "human"]
        for who in people[PERSONS:]:
            del answers[who]
        total = 0.0
        pairs = 0
        for first, second in combinations(answers, 2):
            first_group = PEOPLE if first in people else first
            second_group = PEOPLE if second in people else second
            for left in answers[first]:
                for right in answers[second]:
                    value = likeness(left["task"], left["answer"], right["answer"])
                    if value is not None:
                        self.alike[left["task"], first_group, second_group].add(number, value)
                        total = total + value
                        pairs = pairs + 1
        return total / pairs if pairs else None

    def figures(self) -> list[dict[str, Any]]:
        """The figures as JSON values. Each has ``task``, ``kind`` (how it is drawn: panels, matrix or stacks),
        ``title``, ``note``, ``rows`` and its data."""
        figures = []
        for task in dict.fromkeys(task for task, _ in self.records):
            groups = sorted(self.seen[task], key=lambda group: group != PEOPLE)[:DRAWN]
            figures += [{"task": task, **figure} for figure in self._of_task(task, groups)]
        return figures

    def _of_task(self, task: str, groups: list[str]) -> Iterator[dict[str, Any]]:
        if task != "color_estimation":
            yield from self._numbers(task, groups)
        elif groups:
            columns = [*COLORS, "other words"]
            values = []
            for group in groups:
                means = [self.means[task, f"share of {word}"][group] for word in columns]
                values.append([mean.interval(share=True) for mean in means])
            yield _figure("stacks", "Colours named", groups, columns=columns, values=values)
        if task in ("object_detection", "word_association", "image_captioning") and groups:
            yield from self._frequencies(task, groups)
        yield from self._agreement(task, groups)
        yield from self._rejected(task)

    def _numbers(self, task: str, groups: list[str]) -> Iterator[dict[str, Any]]:
        panels = []
        for (of_task, name), means in self.means.items():
            if of_task != task:
                continue
            values = {group: np.asarray(numbers) for group, numbers in self.values[task, name].items()}
            rows = []
            deltas = []
            for group in groups:
                rows.append(means[group].interval() if group in means else None)
                both = group in values and PEOPLE in values and group != PEOPLE
                deltas.append(cliffs_delta(values[group], values[PEOPLE]) if both else None)
            panels.append({"title": name, "values": rows, "delta": deltas})
        note = f"Means over {'messages' if task == 'conversation' else 'answers'}."
        if PEOPLE in groups:
            note += " δ (Cliff's delta, beside a row): how much more often an agent's value is above a person's than "
            note += "below it, from -1 to 1."
        if panels:
            yield _figure("panels", "The answers in numbers", groups, note, panels=panels)

    def _frequencies(self, task: str, groups: list[str]) -> Iterator[dict[str, Any]]:
        first = next(iter(name for of_task, name in self.means if of_task == task))
        means = self.means[task, first]
        answered = {group: means[group].number for group in groups if group in means}
        total: dict[str, float] = defaultdict(float)
        for group in answered:
            for word, number in self.words[task, group].items():
                total[word] += number / answered[group]

        def share(word: str, group: str) -> Interval | None:
            if group not in answered:
                return None
            return wilson(self.words[task, group][word] / answered[group], len(means[group].sums), answered[group])

        words = sorted(total, key=lambda word: (-total[word], word))[:LABELS]
        what = "Labels" if task == "object_detection" else "Words"
        if words:
            values = [[share(word, group) for group in groups] for word in words]
            note = "Share of answers that have it."
            yield _figure("matrix", f"{what} most used", words, note, columns=groups, values=values)

    def _agreement(self, task: str, groups: list[str]) -> Iterator[dict[str, Any]]:
        cells: dict[tuple[str, str], Interval] = {}
        for (of_task, first, second), mean in self.alike.items():
            if of_task == task:
                value, low, high, number = mean.interval()
                cells[first, second] = [value, low and max(low, 0.0), high and min(high, 1.0), number]
        if not cells:
            return

        def cell(first: str, second: str) -> Interval | None:
            return cells.get((first, second)) or cells.get((second, first))

        note = ALIKE[task]
        if PEOPLE in groups:
            note += " People with people: each two of them."
        # Controls are compared with nobody.
        groups = [group for group in groups if any(group in pair for pair in cells)]
        values = [[cell(first, second) for second in groups] for first in groups]
        yield _figure("matrix", "Agreement", groups, note, columns=groups, values=values)
        rows = [group for group in groups if PEOPLE in groups and cell(group, PEOPLE)]
        if rows:
            title = {"image_captioning": "Word overlap with people", "word_association": "Same word as a person"}
            panel = {
                "title": "with a person, from 0 to 1",
                "values": [cell(group, PEOPLE) for group in rows],
                "delta": [],
            }
            yield _figure("panels", title.get(task, "Agreement with people"), rows, ALIKE[task], panels=[panel])

    def _rejected(self, task: str) -> Iterator[dict[str, Any]]:
        counts_by_group = self.rejections[task]
        filters = sorted(set().union(*counts_by_group.values()))[:20]
        rows = list(counts_by_group)[:DRAWN]
        values = []
        for group in rows:
            records = self.records[task, group]
            counts = counts_by_group[group]
            values.append([[counts[name] / records, None, None, counts[name]] for name in filters])
        if rows:
            note = "Rejected attempts for each record, and their number."
            yield _figure("matrix", "Rejections by filter", rows, note, columns=filters, values=values)


def _figure(kind: str, title: str, rows: list[str], note: str = "", **more: Any) -> dict[str, Any]:
    return {"kind": kind, "title": title, "rows": rows, "note": note, **more}


ALIKE = {
    "color_estimation": "How often two answers to one picture are the same word.",
    "word_association": "How often two answers to one cue are the same word.",
    "judgement": "How often two verdicts on one trial are the same.",
    "object_detection": "Labels that two answers to one picture have in common, of all that either names.",
    "image_captioning": "Words that two captions of one picture have in common, of all that either has.",
    "attention_prediction": "Share of fixations within a tenth of the frame's diagonal of one of the other path's.",
}


def wilson(share: float, units: int, number: int) -> Interval:
    """Wilson's interval (1927) of a ``share`` that was seen in ``units`` independent draws; ``number`` answers are
    told."""
    middle = (share + Z**2 / (2 * units)) / (1 + Z**2 / units)
    half = Z / (1 + Z**2 / units) * math.sqrt(share * (1 - share) / units + Z**2 / (4 * units**2))
    return [share, max(0.0, middle - half), min(1.0, middle + half), number]
