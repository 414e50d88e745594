"""What participants are asked: a colour, three objects, a caption, a word, as the papers asked people.

Colour: one of eleven words from a list. Objects: three, not the same and not again in another picture. Captions: the
2025 paper's instructions and its six checks (Methods, L731-747). Words: free, or after example pairs.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agents.errors import ImageError, InputError
from agents.stimuli import ConversationStimulus, Stimulus, WordStimulus, parse_row
from agents.vision import captions
from agents.vision.colors import WORDS
from judging.study.material import Material, Seen, ToldError
from judging.study.page_answers import BadAnswer, fastest_of, read_ms, writable
from judging.study.settings import AnswersSettings
from judging.study.state import Judge, Step
from serving.runs.checking import check_set
from serving.runs.set_rows import Choose, Row

LONGEST = {"image_captioning": 1000, "word_association": 60, "object_detection": 60}
OBJECTS = 3
FASTEST = 4000.0  # ms; a caption that took less was not written for this picture
SHOWABLE = ("JPEG", "PNG", "GIF", "WEBP", "BMP")  # by browsers
FLAGS = ("too_few_words", "special_characters", "repeated_words", "mentions_image")  # of the form's checks


def chosen(task: str | None) -> Choose:
    """Of stimuli that name no task, those are asked the study's that may be."""
    return lambda tasks: [name for name in tasks if name == task]


class StimulusMaterial(Material):
    """The stimuli of participants. Raises InputError with every problem of the set."""

    settings: AnswersSettings

    def __init__(self, source: Path, settings: AnswersSettings) -> None:
        self.settings = settings
        self.source = source
        root = source if source.is_dir() else source.parent
        self.stimuli: dict[str, Stimulus] = {}
        digest = hashlib.sha256()

        def keep(row: Row, *_: object) -> None:
            if row.canonical is not None and row.task == settings.task and row.id is not None:
                self.stimuli[row.id] = parse_row(row.canonical, root=root)
                digest.update(row.canonical)

        report = check_set(source, choose=chosen(settings.task), on_row=keep)
        if report.problems:
            raise InputError(f"{source} cannot be shown", report.problems)
        if not self.stimuli:
            raise InputError(f"{source} has no stimuli of {settings.task}")
        self.sha256 = digest.hexdigest()
        self._paths: dict[str, Path] = {}
        self._names: dict[str, str] = {}
        self._name_pictures()

    def _name_pictures(self) -> None:
        problems = []
        for number, (name, stimulus) in enumerate(self.stimuli.items(), start=1):
            image = stimulus.images_by_field().get("image")
            if image is None or image.path is None:
                continue
            try:
                form = image.header().format
            except ImageError as error:
                problems.append(f"{name}: {error}")
                continue
            if form not in SHOWABLE:
                problems.append(f"{name}: browsers do not show {form}")
            file = f"p{number:05}.{form.lower()}"
            self._paths[file], self._names[name] = image.path, file
        if problems:
            raise InputError(f"{self.source}: pictures cannot be shown: {'; '.join(problems[:5])}")

    def problems(self) -> list[str]:
        problems = []
        if self.settings.task != "conversation" and len(self.stimuli) < self.settings.answers.number:
            problems.append(f"answers.number: nobody answers a stimulus twice, and there are {len(self.stimuli):,}")
        for name, stimulus in self.stimuli.items():
            if isinstance(stimulus, ConversationStimulus) and (
                stimulus.history or stimulus.opener is not None or stimulus.pseudo
            ):
                problems.append(f"{name}: people are not shown what was said before (history, opener, pseudo)")
        for name in self._names:  # a browser would wait for ever for a damaged picture
            try:
                self.stimuli[name].images_by_field()["image"].decode()
            except ImageError as error:
                problems.append(f"{name}: {error}")
        return problems

    def steps(self, seen: Seen, chance: random.Random, known: Collection[str]) -> list[Step]:
        # Stimuli that fewer people have answered come first; the lobby chooses that of a conversation.
        if self.settings.task == "conversation":
            talk: Step = {"kind": "talk", "trials": [], "phase": "test", "again": False}
            return [dict(talk) for _ in range(self.settings.answers.number)]
        new = [name for name in self.stimuli if name not in known]
        ranked = sorted(new, key=lambda name: (seen.get((name,), 0), chance.random()))
        drawn = ranked[: self.settings.answers.number]
        return [
            {"kind": "ask", "trials": [name], "phase": "test", "again": False}
            for name in chance.sample(drawn, len(drawn))
        ]

    def stimulus_of(self, step: Step) -> str:
        return str(next(iter(step["trials"]), ""))

    def read(self, judge: Judge, step: Step, answer: dict[str, Any]) -> dict[str, Any]:
        if step["kind"] == "talk":
            if not answer.keys() <= {"guess"} or answer.get("guess") not in (None, "human", "machine"):
                raise BadAnswer("guess: must be human or machine")
            return {"guess": answer.get("guess")}
        if not answer.keys() <= {"answer", "rt", "away"}:
            raise BadAnswer("has parts that no page sends")
        if not isinstance(answer.get("away", False), bool):
            raise BadAnswer("away: must be true or false")
        texts = self._texts(answer.get("answer"))
        rt = read_ms(answer.get("rt"))
        flags = self._flags(judge, step, texts, rt)
        if flags and self.settings.answers.checks == "tell":
            raise ToldError(flags, ", ".join(texts))
        return {"answer": texts, "rt": rt, "away": answer.get("away", False), "flags": flags}

    def _texts(self, value: Any) -> list[str]:
        task = self.settings.task
        if task == "object_detection":
            if not isinstance(value, list) or len(value) != OBJECTS or not all(isinstance(text, str) for text in value):
                raise BadAnswer(f"answer: must be {OBJECTS} texts")
        elif not isinstance(value, str):
            raise BadAnswer("answer: must be text")
        texts = [writable(" ".join(text.split())) for text in (value if isinstance(value, list) else [value])]
        if not all(texts) or max(map(len, texts)) > LONGEST.get(task, 40):
            raise BadAnswer("answer: is empty or too long")
        if task == "color_estimation" and texts[0] not in WORDS:
            raise BadAnswer("answer: must be one of the eleven colours")
        return texts

    def _flags(self, judge: Judge, step: Step, texts: list[str], rt: float | None) -> list[str]:
        before = [event["answer"] for event in judge.answers if event["kind"] == "ask"]
        lower = [text.casefold() for text in texts]
        flags: list[str] = []
        match self.settings.task:
            case "image_captioning":
                noticed = set[str](captions.flags(texts[0]))
                flags = [flag for flag in FLAGS if flag in noticed]
                last = judge.answers[-1]["at"] if judge.answers else judge.joined
                since = 1000 * (datetime.now(UTC) - datetime.fromisoformat(last)).total_seconds()
                flags += ["too_fast"] * (fastest_of(rt, since) < FASTEST)
                flags += ["as_before"] * bool(before and before[-1] == texts)
            case "object_detection":
                earlier = {text.casefold() for answer in before for text in answer}
                flags += ["same_objects"] * (len(set(lower)) < OBJECTS)
                flags += ["object_again"] * bool(earlier & set(lower))
            case "word_association":
                stimulus = self.stimuli[self.stimulus_of(step)]
                assert isinstance(stimulus, WordStimulus)
                flags += ["several_words"] * (" " in texts[0])
                flags += ["is_cue"] * (lower[0] == stimulus.cue.casefold())
        return flags

    def instructions(self, judge: Judge) -> dict[str, Any]:
        return {"trials": judge.counted(), "practice": 0, "feedback": 0, "samples": [], "four": True}

    def show(self, judge: Judge, step: Step) -> dict[str, Any]:
        if step["kind"] == "talk":
            return {"asked": "conversation", "guess": self.settings.talk.guess, "practice": False}
        name = self.stimulus_of(step)
        stimulus = self.stimuli[name]
        page: dict[str, Any] = {"asked": self.settings.task}
        if isinstance(stimulus, WordStimulus):
            page |= {"cue": stimulus.cue, "examples": [list(pair) for pair in stimulus.examples]}
        if self.settings.task == "color_estimation":
            page["colors"] = list(WORDS)
        if name in self._names:
            page["image"] = f"media/{self._names[name]}"
        return {**page, "practice": False}

    def files(self, step: Step) -> list[str]:
        name = self._names.get(self.stimulus_of(step))
        return [] if name is None else [name]

    def path(self, name: str) -> Path:
        return self._paths[name]
