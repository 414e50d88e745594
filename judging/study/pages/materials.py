"""What people of a study meet: stimuli that they answer, and people or agents with whom they converse."""

import hashlib
import random
from abc import ABC, abstractmethod
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from agents.errors import ImageError, InputError
from agents.language.words.vocabulary import is_spelled_right
from agents.stimuli import ConversationStimulus, Stimulus, WordStimulus, parse_row
from agents.vision import captions
from agents.vision.colors import WORDS
from judging.study.events import Judge, Step
from judging.study.meetings.agent_server import served_agents
from judging.study.meetings.meeting import JudgedMeeting, Meeting, Talk
from judging.study.pages.material import INSTRUCTIONS, Material
from judging.study.pages.page_answers import StimulusAnswer, TalkAnswer, ToldError, fastest_of, parsed, read_texts
from judging.study.pages.pool import Seen, TrialPool
from judging.study.pages.trial_material import TrialMaterial
from judging.study.settings import AnswersSettings, JudgesSettings, TestsSettings, read_settings
from serving.files.words import count
from serving.sets.checking import check_rows
from serving.sets.set_rows import Choose
from serving.sets.set_rows import Row as SetRow
from serving.sets.stimulus_set import read_rows

FASTEST = 4000.0  # ms; a caption that took less was not written for this picture
FLAGS = ("too_few_words", "special_characters", "repeated_words", "mentions_image")  # of the form's checks
SHOWABLE = ("JPEG", "PNG", "GIF", "WEBP", "BMP")  # by browsers


def only_task(task: str | None) -> Choose:
    """Gives stimuli without a task the study's, where it fits."""
    return lambda tasks: [name for name in tasks if name == task]


def read_stimuli(source: Path, task: str) -> tuple[dict[str, Stimulus], str]:
    """The stimuli of a task by id, and their SHA-256. Raises InputError."""
    stimuli: dict[str, Stimulus] = {}
    root = source if source.is_dir() else source.parent
    digest = hashlib.sha256()

    def keep(row: SetRow, *_: object) -> None:
        if row.canonical is not None and row.task == task and row.id is not None:
            stimuli[row.id] = parse_row(row.canonical, root=root)
            digest.update(row.canonical)

    report = check_rows(read_rows(source, choose=only_task(task)), on_row=keep)
    if report.problems:
        raise InputError(f"{source} cannot be shown", report.problems)
    if not stimuli:
        raise InputError(f"{source} has no stimuli of {task}")
    return stimuli, digest.hexdigest()


class SetMaterial(Material):
    """Stimuli that participants answer."""

    settings: AnswersSettings

    def __init__(self, settings: AnswersSettings, source: Path, stimuli: Mapping[str, Stimulus], sha256: str) -> None:
        super().__init__(settings)
        self.source = source
        self.stimuli = stimuli
        self.sha256 = sha256
        self.number = settings.answers.number


class AskMaterial(SetMaterial):
    """Captions pass six checks, and objects are single English words
    (2025 paper, Methods, L731-747, L1206-1210)."""

    kind = "ask"

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.stimuli, start=1)}

    def about(self) -> str:
        return f"{super().about()} of {count(len(self.stimuli), 'stimulus', 'stimuli')}"

    def warnings(self) -> list[str]:
        of_talks = sorted({"talk", "delays"} & self.settings.model_fields_set)
        return [f"{name}: is of conversations, and does nothing here" for name in of_talks]

    def problems(self) -> list[str]:
        problems = []
        if len(self.stimuli) < self.number:
            problems.append(f"answers.number: nobody answers a stimulus twice, and there are {len(self.stimuli):,}")
        for name, stimulus in self.stimuli.items():
            if (image := stimulus.images_by_field().get("image")) is not None:
                try:
                    image.decode()  # for a damaged picture a browser would wait for ever
                    if (form := image.header().format) not in SHOWABLE:
                        problems.append(f"{name}: browsers do not show {form}")
                except ImageError as error:
                    problems.append(f"{name}: {error}")
        return problems

    def steps(self, seen: Seen, chance: random.Random) -> list[Step]:
        # Those come first that fewer have answered.
        drawn = sorted(self.stimuli, key=lambda name: (seen.get((name,), 0), chance.random()))[: self.number]
        return [INSTRUCTIONS, *(self.step(name) for name in chance.sample(drawn, len(drawn)))]

    def read(self, judge: Judge, step: Step, answer: dict[str, Any]) -> dict[str, Any]:
        sent = parsed(StimulusAnswer, answer)
        texts = read_texts(self.settings.task, sent.answer)
        flags = self._flags(judge, step, texts, sent.rt)
        if flags and self.settings.answers.checks == "tell":
            raise ToldError(flags, ", ".join(texts))
        return {"answer": texts, "rt": sent.rt, "away": sent.away, "flags": flags}

    def _flags(self, judge: Judge, step: Step, texts: list[str], rt: float | None) -> list[str]:
        before = [event["answer"] for event in judge.answers if event["kind"] == "ask"]
        lower = [text.casefold() for text in texts]
        flags: dict[str, bool] = {}
        match self.settings.task:
            case "image_captioning":
                noticed = set[str](captions.flags(texts[0]))
                last = judge.answers[-1]["at"] if judge.answers else judge.joined
                since = 1000 * (datetime.now(UTC) - datetime.fromisoformat(last)).total_seconds()
                flags = {flag: flag in noticed for flag in FLAGS}
                flags |= {"too_fast": fastest_of(rt, since) < FASTEST, "as_before": before[-1:] == [texts]}
            case "object_detection":
                earlier = {text.casefold() for answer in before for text in answer}
                flags = {"same_objects": len(set(lower)) < len(lower), "object_again": bool(earlier & set(lower))}
                is_english = self.settings.language.partition("-")[0].casefold() == "en"
                flags["misspelled"] = is_english and not all(map(is_spelled_right, lower))
            case "word_association":
                stimulus = self.stimuli[step["trials"][0]]
                assert isinstance(stimulus, WordStimulus)
                flags = {"several_words": " " in texts[0], "is_cue": lower[0] == stimulus.cue.casefold()}
        return [flag for flag, is_raised in flags.items() if is_raised]

    def show(self, judge: Judge, step: Step) -> dict[str, Any]:
        stimulus = self.stimuli[step["trials"][0]]
        page: dict[str, Any] = {"asked": self.settings.task, "practice": False}
        if isinstance(stimulus, WordStimulus):
            page |= {"cue": stimulus.cue, "examples": [list(pair) for pair in stimulus.examples]}
        if self.settings.task == "color_estimation":
            page["colors"] = list(WORDS)
        for name in self.files(step):
            page["image"] = f"media/{name}"
        return page

    def files(self, step: Step) -> dict[str, Path]:
        stimulus = self.stimuli[step["trials"][0]] if step["kind"] == self.kind else None
        image = None if stimulus is None else stimulus.images_by_field().get("image")
        if stimulus is None or image is None or image.path is None:
            return {}
        return {f"p{self._numbers[stimulus.id]:05}.{image.header().format.lower()}": image.path}


class MeetingMaterial(Material, ABC):
    """Meetings of people, in which agents of a server may take part. ``meetings`` is what a reader calls them."""

    meeting: str
    meetings: str

    @abstractmethod
    def needed_agents(self) -> tuple[str, dict[str, str]]:
        """The server's address, and the names of the agents that are asked, by their place in ``study.toml``."""

    @abstractmethod
    def is_over(self, meeting: Meeting) -> bool:
        """Whether it came to its end. Raises InputError where that cannot be known."""

    def problems(self) -> list[str]:
        return [f"{place}: name the agent" for place, name in self.needed_agents()[1].items() if not name]

    def served_problems(self) -> list[str]:
        server, needed = self.needed_agents()
        named = {place: name for place, name in needed.items() if name}  # of the others ``problems`` tells
        if not named:
            return []
        served, why = served_agents(server)
        problems = []
        for place, name in named.items():
            if why:
                problems.append(f"{place}: {why}")
            elif name not in served:
                others = ", ".join(sorted(served)) or "no agent"
                problems.append(f"{place}: {server} does not serve {name}; it serves {others}")
            elif "conversation" not in served[name]:
                problems.append(f"{place}: {name} answers {', '.join(served[name])}, not conversation")
        return problems


class TalkMaterial(SetMaterial, MeetingMaterial):
    """Conversations about the topics of a set."""

    kind = "talk"
    meeting = "conversation"
    meetings = "conversations"
    stimuli: Mapping[str, ConversationStimulus]

    def needed_agents(self) -> tuple[str, dict[str, str]]:
        talk = self.settings.talk
        return talk.server, {"talk.agent": talk.agent} if talk.machines else {}

    def is_over(self, meeting: Meeting) -> bool:
        assert isinstance(meeting, Talk)
        stimulus = self.stimuli.get(meeting.stimulus)
        if stimulus is None:
            raise InputError(
                f"{self.source}: has no {meeting.stimulus}, about which people of this study conversed; bring the set "
                "back that the study began with"
            )
        return len(meeting.messages) >= stimulus.exchanges

    def show(self, judge: Judge, step: Step) -> dict[str, Any]:
        return {**super().show(judge, step), "asked": "conversation", "guess": self.settings.talk.guess}

    def warnings(self) -> list[str]:
        talk = self.settings.talk
        if talk.agent and not talk.machines:
            return [f"talk.agent: nobody meets {talk.agent}, for talk.machines is 0"]
        return []

    def problems(self) -> list[str]:
        return super().problems() + [
            f"{name}: people are not shown what came before (history, opener, pseudo)"
            for name, stimulus in self.stimuli.items()
            if stimulus.history or stimulus.opener is not None or stimulus.pseudo
        ]

    def read(self, judge: Judge, step: Step, answer: dict[str, Any]) -> dict[str, Any]:
        if not self.settings.talk.guess:
            return super().read(judge, step, answer)
        return parsed(TalkAnswer, answer).model_dump()


class TestsMaterial(MeetingMaterial):
    """Online tests and interrogations."""

    settings: TestsSettings
    kind = "test"
    meeting = "test"
    meetings = "online tests"
    sha256 = hashlib.sha256(b"online").hexdigest()

    def __init__(self, settings: TestsSettings, study: Path) -> None:
        super().__init__(settings)
        self.source = study
        self.number = settings.tests.each

    def needed_agents(self) -> tuple[str, dict[str, str]]:
        needed = {} if self.settings.tests.two_people == 1 else self.settings.machines()
        return self.settings.agents.server, needed

    def is_over(self, meeting: Meeting) -> bool:
        assert isinstance(meeting, JudgedMeeting)
        return meeting.is_over()

    def show(self, judge: Judge, step: Step) -> dict[str, Any]:
        return {**super().show(judge, step), **self.settings.tests.model_dump(include={"words_below", "codes"})}


def material_of(folder: Path) -> Material:
    """Raises InputError."""
    settings = read_settings(folder)
    source = (folder / settings.source).resolve()
    if isinstance(settings, TestsSettings):
        return TestsMaterial(settings, source)
    if isinstance(settings, JudgesSettings):
        return TrialMaterial(TrialPool(source, settings), folder)
    kind = TalkMaterial if settings.task == "conversation" else AskMaterial
    return kind(settings, source, *read_stimuli(source, settings.task))
