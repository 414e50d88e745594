"""Stimuli that people answer, as agents do: what a page shows, and what is kept of its answer."""

import hashlib
import random
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from agents.answers import COLORS, is_blank
from agents.errors import ImageError, InputError
from agents.language.words.vocabulary import is_spelled_right
from agents.stimuli import Asked, Stimulus, WordStimulus, parse_row
from agents.vision import captions
from judging.study.design.settings import AnswersSettings
from judging.study.log.participant_events import StimulusAnswered
from judging.study.log.state import Judge
from judging.study.log.steps import Instructions, MaterialStep, Step
from judging.study.pages.first_page import ANSWERED_S, UNITS
from judging.study.pages.material import Extent, Material
from judging.study.pages.page_answers import BadAnswer, SentWithTime, ToldError, Written, fastest_of, parsed_answer
from judging.study.pages.pool import TimesSeen
from judging.study.pages.sent_traces import TracesOfPage, kept
from serving.files.words import count
from serving.sets.checking import check_rows
from serving.sets.set_rows import Row as SetRow
from serving.sets.set_rows import only
from serving.sets.stimulus_set import read_rows

FASTEST = 4000.0
"""Milliseconds; a caption that took less was not written for this picture."""
FLAGS = ("too_few_words", "special_characters", "repeated_words", "mentions_image")
"""The form's checks of captions; each is a phrase, too."""
SHOWABLE = ("JPEG", "PNG", "GIF", "WEBP", "BMP")
"""The forms of pictures that browsers show."""
LONGEST_ANSWER = {"image_captioning": 1000, "word_association": 60, "object_detection": 60}
"""Letters of an answer; 40 for other tasks."""


class StimulusAnswer(SentWithTime):
    """What the page of a stimulus sends."""

    answer: Written | list[Written]
    """A text, or several where several are asked for."""
    traces: TracesOfPage = None
    """How they were written; None where the page does not tell."""


def read_stimuli(source: Path, task: str) -> tuple[dict[str, Stimulus], str]:
    """The stimuli of a task in a set, by id, and the SHA-256 of their rows. Raises InputError, also where none is."""
    stimuli: dict[str, Stimulus] = {}
    root = source if source.is_dir() else source.parent
    digest = hashlib.sha256()

    def keep(row: SetRow, *_: object) -> None:
        if row.canonical is not None and row.task == task and row.id is not None:
            stimuli[row.id] = parse_row(row.canonical, root=root)
            digest.update(row.canonical)

    report = check_rows(read_rows(source, choose=only(task)), on_row=keep)
    if report.problems:
        raise InputError(f"{source} cannot be shown", report.problems)
    if not stimuli:
        raise InputError(f"{source} has no stimuli of {task}")
    return stimuli, digest.hexdigest()


class SetMaterial(Material):
    """The stimuli of a set."""

    settings: AnswersSettings

    def __init__(self, settings: AnswersSettings, source: Path, stimuli: Mapping[str, Stimulus], sha256: str) -> None:
        super().__init__(settings)
        self.source = source
        self.stimuli = stimuli
        self.sha256 = sha256
        self.number = settings.answers.number

    def sha256_on_disk(self) -> str:
        """That of the rows of the task."""
        return read_stimuli(self.source, self.settings.task)[1]


class AskMaterial(SetMaterial):
    """Stimuli, each on a page, that participants answer with text.

    Captions pass six checks, and objects are single English words (2025 paper, Methods, L731-747, L1206-1210).
    """

    kind = "ask"

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.stimuli, start=1)}

    def summary(self) -> str:
        """With the number of stimuli of the set, and how many of a participant's come twice."""
        twice = f", {self._twice:,} of them twice" if self._twice else ""
        return f"{super().summary()} of {count(len(self.stimuli), 'stimulus', 'stimuli')}{twice}"

    def extent(self) -> Extent:
        """The stimuli of a participant."""
        task = self.settings.task
        return Extent(UNITS[task], self.number + self._twice, 0, ANSWERED_S[task], "first_answer")

    @property
    def _twice(self) -> int:
        """How many stimuli a participant has a second time: never more than the first half of the list. A share above
        0 is at least one, unless there is a single stimulus."""
        if not self.settings.checks.twice:
            return 0
        return min(max(1, round(self.settings.checks.twice * self.number)), self.number // 2)

    def warnings(self) -> list[str]:
        """Tables of conversations, which do nothing here."""
        of_talks = sorted({"talk", "delays"} & self.settings.model_fields_set)
        return [f"{name}: this table is for conversations, and does nothing here" for name in of_talks]

    def problems(self) -> list[str]:
        """Too few stimuli, and pictures that are damaged or that browsers do not show."""
        problems = []
        if len(self.stimuli) < self.number:
            problems.append(
                f"answers.number: nobody answers a stimulus twice, and the set has only {len(self.stimuli):,}"
            )
        for name, stimulus in self.stimuli.items():
            if (image := stimulus.images_by_field().get("image")) is not None:
                try:
                    image.decode()  # for a damaged picture a browser would wait for ever
                    if (form := image.header().format) not in SHOWABLE:
                        problems.append(f"{name}: browsers do not show {form}")
                except ImageError as error:
                    problems.append(f"{name}: {error}")
        return problems

    def steps(self, seen: TimesSeen, chance: random.Random) -> list[Step]:
        """Stimuli in a random order; those come into the list that fewer participants have.

        A share ``checks.twice`` comes twice: the first of the list, mixed into its second half. So others lie between,
        and nobody knows which stimulus comes again.
        """
        # Those come first that fewer have answered.
        drawn = sorted(self.stimuli, key=lambda name: (seen.get((name,), 0), chance.random()))[: self.number]
        once = [self.step(name) for name in chance.sample(drawn, len(drawn))]
        again = [self.step(*step.trials, again=True) for step in once[: self._twice]]
        half = len(once) // 2
        late = [*once[half:], *again]
        return [Instructions(kind="instructions"), *once[:half], *chance.sample(late, len(late))]

    def read(
        self, judge: Judge, number: int, answer: dict[str, Any], at: str, meeting: str | None = None
    ) -> StimulusAnswered:
        """The texts, with the checks that they do not meet as ``flags``, or ToldError for them."""
        step = judge.steps[number]
        assert isinstance(step, MaterialStep)
        sent = parsed_answer(StimulusAnswer, answer)
        texts = read_texts(self.settings.task, sent.answer)
        flags = self._flags(judge, step, texts, sent.rt)
        if flags and self.settings.answers.checks == "tell":
            raise ToldError(flags, ", ".join(texts))
        return StimulusAnswered(
            judge=judge.code,
            at=at,
            step=number,
            kind="ask",
            answer=texts,
            rt=sent.rt,
            away=sent.away,
            flags=flags,
            **kept(sent.traces, is_agreed=self.records_traces(judge)),
        )

    def _flags(self, judge: Judge, step: MaterialStep, texts: list[str], rt: float | None) -> list[str]:
        # Whoever has the same stimulus a second time may well say the same.
        before = [
            event.answer
            for other, event in zip(judge.steps, judge.answers, strict=False)
            if isinstance(event, StimulusAnswered) and isinstance(other, MaterialStep) and other.trials != step.trials
        ]
        lower = [text.casefold() for text in texts]
        flags: dict[str, bool] = {}
        match self.settings.task:
            case "image_captioning":
                noticed = set[str](captions.flags(texts[0]))
                last = judge.answers[-1].at if judge.answers else judge.joined
                since = 1000 * (datetime.now(UTC) - datetime.fromisoformat(last)).total_seconds()
                flags = {flag: flag in noticed for flag in FLAGS}
                flags |= {"too_fast": fastest_of(rt, since) < FASTEST, "as_before": before[-1:] == [texts]}
            case "object_detection":
                earlier = {text.casefold() for answer in before for text in answer}
                flags = {"same_objects": len(set(lower)) < len(lower), "object_again": bool(earlier & set(lower))}
                is_english = self.settings.language.partition("-")[0].casefold() == "en"
                flags["misspelled"] = is_english and not all(map(is_spelled_right, lower))
            case "word_association":
                stimulus = self.stimuli[step.trials[0]]
                assert isinstance(stimulus, WordStimulus)
                flags = {"several_words": " " in texts[0], "is_cue": lower[0] == stimulus.cue.casefold()}
        return [flag for flag, is_raised in flags.items() if is_raised]

    def show(self, judge: Judge, step: MaterialStep) -> dict[str, Any]:
        """The stimulus as agents get it, and for colours the words among which one chooses."""
        stimulus = self.stimuli[step.trials[0]]
        page: dict[str, Any] = {"asked": self.settings.task, "practice": False}
        if isinstance(stimulus, WordStimulus):
            page |= {"cue": stimulus.cue, "examples": [list(pair) for pair in stimulus.examples]}
        if self.settings.task == "color_estimation":
            page["colors"] = list(COLORS)
        if self.settings.task == "image_captioning":
            page["fastest"] = FASTEST  # so that a page can tell how long somebody who is too fast has to wait
        for name in self.files(step):
            page["image"] = f"media/{name}"
        return page

    def files(self, step: Step) -> dict[str, Path]:
        """The stimulus's picture, by a number: its own name could tell what is in it."""
        if not isinstance(step, MaterialStep):
            return {}
        stimulus = self.stimuli[step.trials[0]]
        image = stimulus.images_by_field().get("image")
        if image is None or image.path is None:
            return {}
        return {f"p{self._numbers[stimulus.id]:05}.{image.header().format.lower()}": image.path}


def read_texts(task: Asked, sent: str | list[str]) -> list[str]:
    """The texts of an answer to a stimulus, without blanks around them. Raises BadAnswer."""
    number = 3 if task == "object_detection" else 1
    if isinstance(sent, str):
        sent = [sent]
    texts = [" ".join(text.split()) for text in sent]
    if len(texts) != number:
        raise BadAnswer(f"answer: must be {count(number, 'text')}")
    if any(map(is_blank, texts)) or max(map(len, texts)) > LONGEST_ANSWER.get(task, 40):
        raise BadAnswer("answer: is empty or too long")
    if task == "color_estimation" and texts[0] not in COLORS:
        raise BadAnswer("answer: must be a colour of the eleven")
    return texts
