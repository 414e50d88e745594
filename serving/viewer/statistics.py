"""The first page's figures. Intervals are of 95 %, over stimuli; all people are ``people``."""

import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from scipy.special import stdtrit

from agents.vision.colors import WORDS
from serving.runs.answer_numbers import cliffs_delta, likeness, numbers, words_of

PEOPLE = "people"
UNKNOWN = "human:unknown"  # whose samples are as many people
PERSONS = 12  # people of a stimulus who are compared with each other and with agents
SAMPLES = 3  # of an agent, likewise
LABELS = 25
DRAWN = 40  # agents in a figure
HELD = 200_000  # values of a number and agent that Cliff's delta is taken of
Z = 1.959964
ROUNDING = 1e-9  # of a mean

Row = list[float | int | None]
Labelled = Sequence[tuple[str, Mapping[str, Any]]]


class Mean:
    """A mean over answers, with its interval over stimuli."""

    def __init__(self) -> None:
        self.sums: dict[int, float] = defaultdict(float)
        self.counts: dict[int, int] = defaultdict(int)

    def add(self, stimulus: int, value: float) -> None:
        self.sums[stimulus] += value
        self.counts[stimulus] += 1

    @property
    def number(self) -> int:
        return sum(self.counts.values())

    def interval(self, *, share: bool = False) -> Row:
        """[mean, low, high, answers], linearised or for a share Wilson's; low and high None for a single stimulus, and
        for stimuli that do not vary, whose interval would have no width as if others could not differ."""
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
    """Takes in answers by stimulus, then makes :meth:`figures`."""

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
        """Take in a stimulus's ``records`` and the ``parsed`` ones; returns their likeness, 0 to 1."""
        for agent, record in records:
            of = PEOPLE if record["kind"] == "human" else agent
            self.records[record["task"], of] += 1
            for attempt in record["attempts"]:
                for verdict in attempt["verdicts"]:
                    if verdict["rejected"]:
                        self.rejections[record["task"]][of][verdict["filter"]] += 1
        for agent, record in parsed:
            self._answer(number, PEOPLE if record["kind"] == "human" else agent, record["task"], record["answer"])
        return self._compare(number, parsed)

    def _answer(self, number: int, of: str, task: str, answer: Mapping[str, Any]) -> None:
        self.seen[task].setdefault(of)
        for name, value in numbers(task, answer):
            self.means[task, name][of].add(number, float(value))
            if len(self.values[task, name][of]) < HELD:
                self.values[task, name][of].append(float(value))
        if task == "object_detection":
            self.words[task, of].update({label.casefold()[:60] for label in answer["labels"]})
        elif task == "image_captioning":
            self.words[task, of].update(words_of(answer["text"]))
        elif task == "word_association":
            self.words[task, of][answer["word"].casefold()[:60]] += 1

    def _compare(self, number: int, parsed: Labelled) -> float | None:
        answers: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
        for agent, record in parsed:
            of = f"{agent}#{record['sample']}" if agent == UNKNOWN else agent  # people who are not told apart
            if record["kind"] != "control" and len(answers[of]) < SAMPLES:
                answers[of].append(record)
        persons = [of for of, records in answers.items() if records[0]["kind"] == "human"]
        for of in persons[PERSONS:]:
            del answers[of]
        total = 0.0
        pairs = 0
        for pair in combinations(answers, 2):
            first, second = (PEOPLE if of in persons else of for of in pair)
            for left in answers[pair[0]]:
                for right in answers[pair[1]]:
                    value = likeness(left["task"], left["answer"], right["answer"])
                    if value is not None:
                        self.alike[left["task"], first, second].add(number, value)
                        total = total + value
                        pairs = pairs + 1
        return total / pairs if pairs else None

    def figures(self) -> list[dict[str, Any]]:
        """Each figure's ``task``, ``kind``, ``title``, ``note`` and data."""
        figures = []
        for task in dict.fromkeys(task for task, _ in self.records):
            ofs = sorted(self.seen[task], key=lambda of: of != PEOPLE)[:DRAWN]
            figures += [{"task": task, **figure} for figure in self._of_task(task, ofs)]
        return figures

    def _of_task(self, task: str, ofs: list[str]) -> Iterator[dict[str, Any]]:
        if task != "color_estimation":
            yield from self._numbers(task, ofs)
        elif ofs:
            columns = [*WORDS, "other words"]
            values = [[self.means[task, f"share of {word}"][of].interval(share=True) for word in columns] for of in ofs]
            yield _figure("stacks", "Colours named", ofs, columns=columns, values=values)
        if task in ("object_detection", "word_association", "image_captioning") and ofs:
            yield from self._frequencies(task, ofs)
        yield from self._agreement(task, ofs)
        yield from self._rejected(task)

    def _numbers(self, task: str, ofs: list[str]) -> Iterator[dict[str, Any]]:
        panels = []
        for (of_task, name), means in self.means.items():
            if of_task != task:
                continue
            values = {of: np.asarray(numbers) for of, numbers in self.values[task, name].items()}
            rows = []
            deltas = []
            for of in ofs:
                rows.append(means[of].interval() if of in means else None)
                both = of in values and PEOPLE in values and of != PEOPLE
                deltas.append(cliffs_delta(values[of], values[PEOPLE]) if both else None)
            panels.append({"title": name, "values": rows, "delta": deltas})
        note = f"Means over {'messages' if task == 'conversation' else 'answers'}."
        if PEOPLE in ofs:
            note += " δ (Cliff's delta, beside a row): how much more often an agent's value is above a person's than "
            note += "below it, from -1 to 1."
        if panels:
            yield _figure("panels", "The answers in numbers", ofs, note, panels=panels)

    def _frequencies(self, task: str, ofs: list[str]) -> Iterator[dict[str, Any]]:
        first = next(iter(name for of_task, name in self.means if of_task == task))
        means = self.means[task, first]
        answered = {of: means[of].number for of in ofs if of in means}
        total: dict[str, float] = defaultdict(float)
        for of in answered:
            for word, number in self.words[task, of].items():
                total[word] += number / answered[of]

        def share(word: str, of: str) -> Row | None:
            if of not in answered:
                return None
            return wilson(self.words[task, of][word] / answered[of], len(means[of].sums), answered[of])

        words = sorted(total, key=lambda word: (-total[word], word))[:LABELS]
        what = "Labels" if task == "object_detection" else "Words"
        if words:
            values = [[share(word, of) for of in ofs] for word in words]
            note = "Share of answers that have it."
            yield _figure("matrix", f"{what} most used", words, note, columns=ofs, values=values)

    def _agreement(self, task: str, ofs: list[str]) -> Iterator[dict[str, Any]]:
        cells: dict[tuple[str, str], Row] = {}
        for (of_task, first, second), mean in self.alike.items():
            if of_task == task:
                value, low, high, number = mean.interval()
                cells[first, second] = [value, low and max(low, 0.0), high and min(high, 1.0), number]
        if not cells:
            return

        def cell(first: str, second: str) -> Row | None:
            return cells.get((first, second)) or cells.get((second, first))

        note = ALIKE[task] + (" People with people: each two of them." if PEOPLE in ofs else "")
        ofs = [of for of in ofs if any(of in pair for pair in cells)]  # controls are compared with nobody
        values = [[cell(first, second) for second in ofs] for first in ofs]
        yield _figure("matrix", "Agreement", ofs, note, columns=ofs, values=values)
        if rows := [of for of in ofs if PEOPLE in ofs and cell(of, PEOPLE)]:
            title = {"image_captioning": "Word overlap with people", "word_association": "Same word as a person"}
            panel = {"title": "with a person, from 0 to 1", "values": [cell(of, PEOPLE) for of in rows], "delta": []}
            yield _figure("panels", title.get(task, "Agreement with people"), rows, ALIKE[task], panels=[panel])

    def _rejected(self, task: str) -> Iterator[dict[str, Any]]:
        by = self.rejections[task]
        filters = sorted({name for counts in by.values() for name in counts})[:20]
        rows = list(by)[:DRAWN]
        values = []
        for of in rows:
            records = self.records[task, of]
            values.append([[by[of][name] / records, None, None, by[of][name]] for name in filters])
        if rows:
            note = "Rejected attempts per record, and how many."
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


def wilson(share: float, units: int, number: int) -> Row:
    """[share, low, high, number of answers]; ``units`` are the draws."""
    middle = (share + Z**2 / (2 * units)) / (1 + Z**2 / units)
    half = Z / (1 + Z**2 / units) * math.sqrt(share * (1 - share) / units + Z**2 / (4 * units**2))
    return [share, max(0.0, middle - half), min(1.0, middle + half), number]
