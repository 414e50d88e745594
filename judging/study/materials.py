"""What people of a study meet, step by step."""

import hashlib
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from agents.errors import ImageError, InputError
from agents.language.words.vocabulary import is_spelled_right
from agents.stimuli import ConversationStimulus, Stimulus, WordStimulus, parse_row
from agents.vision import captions
from agents.vision.colors import WORDS
from judging.study.agent_server import served_agents
from judging.study.controls import Control, read_controls, uncertain_options
from judging.study.events import Judge, State, Step
from judging.study.exclusions import VerdictRow, verdict_rows
from judging.study.page_answers import (
    BadAnswer,
    StimulusAnswer,
    TalkAnswer,
    ToldError,
    TrialAnswer,
    fastest_of,
    parsed,
    read_texts,
)
from judging.study.pool import Seen, TrialPool
from judging.study.settings import AnswersSettings, JudgesSettings, StudySettings, TestsSettings, read_settings
from judging.trial_set import TRIALS_FILE, VERDICTS, key_path
from serving.runs.checking import check_rows
from serving.runs.row_problems import count
from serving.runs.set_rows import Choose
from serving.runs.set_rows import Row as SetRow
from serving.runs.stimulus_set import read_rows

FASTEST = 4000.0  # ms; a caption that took less was not written for this picture
FLAGS = ("too_few_words", "special_characters", "repeated_words", "mentions_image")  # of the form's checks
TYPES = {"jpeg": "jpeg", "jpg": "jpeg", "png": "png", "gif": "gif", "webp": "webp", "bmp": "bmp", "tiff": "tiff"}
SENT = {"choices", "sex", "confidence", "reason", "seconds_before", "play_once"}  # of a trial's settings
INSTRUCTIONS: Step = {"kind": "instructions"}
SHOWABLE = ("JPEG", "PNG", "GIF", "WEBP", "BMP")  # by browsers


class Material:
    """What a study shows, in ``number`` steps of a ``kind``; ``sha256`` is of what must not change meanwhile."""

    kind: str
    number: int
    sha256: str
    source: Path

    def __init__(self, settings: StudySettings) -> None:
        self.settings = settings

    def problems(self) -> list[str]:
        return []

    def warnings(self) -> list[str]:
        return []

    def served_problems(self) -> list[str]:
        """The agents that their server lacks."""
        return []

    def about(self) -> str:
        return f"{self.settings.task}: {self.number:,} for each participant"

    def steps(self, seen: Seen, chance: random.Random) -> list[Step]:
        """A person's steps from the instructions on; ``seen`` counts how many had each page."""
        return [INSTRUCTIONS, *(self.step() for _ in range(self.number))]

    def step(self, *trials: str, phase: str = "test", again: bool = False) -> Step:
        return {"kind": self.kind, "trials": list(trials), "phase": phase, "again": again}

    def read(self, judge: Judge, step: Step, answer: dict[str, Any]) -> dict[str, Any]:
        """What is kept of an answer. Raises BadAnswer, and ToldError."""
        if answer:
            raise BadAnswer("has parts that no page sends")
        return {}

    def instructions(self, judge: Judge, step: Step) -> dict[str, Any]:
        about = {"practice": 0, "feedback": 0, "samples": [], "four": True}
        return {"trials": judge.counted(), "tests": self.kind == "test", **about}

    def show(self, judge: Judge, step: Step) -> dict[str, Any]:
        return {"practice": False}

    def truth(self, step: Step) -> list[str] | None:
        """Of a step after which the truth is shown."""
        return None

    def files(self, step: Step) -> dict[str, Path]:
        """A step's files by name."""
        return {}

    def rows(self, state: State, personal: Mapping[str, Mapping[str, Any]]) -> list[VerdictRow]:
        return []


class TrialMaterial(Material):
    settings: JudgesSettings
    kind = "trial"

    def __init__(self, pool: TrialPool, study: Path) -> None:
        super().__init__(pool.settings)
        self.pool, self.study, self.number = pool, study, pool.settings.trials.number
        self.source = pool.folder / TRIALS_FILE
        self.sha256 = hashlib.sha256(key_path(pool.folder).read_bytes()).hexdigest()

    @cached_property
    def controls(self) -> dict[str, Control]:
        return read_controls(self.settings.trials.control, self.study, self.pool.key, self.sha256)

    def problems(self) -> list[str]:
        problems = self.pool.problems()
        try:
            self.controls  # noqa: B018
        except InputError as error:
            problems += [*map(str, error.problems), str(error)]
        return problems

    def warnings(self) -> list[str]:
        trials, least = self.settings.trials, self.settings.exclude.catch
        uncertain = uncertain_options(trials.control, self.pool.key)
        warnings = [] if uncertain is None else [uncertain]
        number = round(trials.catch * trials.number)
        if not least or not number:
            return warnings
        out = sum(math.comb(number, caught) for caught in range(number + 1) if caught < least * number) / 2**number
        return [
            *warnings,
            "exclude.catch: selects judges by their bias to say human, which changes all scores. Of judges who guess, "
            f"{count(number, 'catch trial')} of each would exclude {out:.0%}. Control questions measure attention",
        ]

    def about(self) -> str:
        cells = ", ".join(f"{len(pages):,} of {name}" for name, pages in sorted(self.pool.cells.items()))
        return f"{self.settings.task}: {count(self.number, 'trial')} for each judge, of {cells}"

    def steps(self, seen: Seen, chance: random.Random) -> list[Step]:
        turns, examples = self.pool.draw(seen, chance)
        trials = [self.step(*turn.page.trials, phase=turn.phase, again=turn.again) for turn in turns]
        return [INSTRUCTIONS | {"examples": [list(page.trials) for page in examples]}, *trials]

    def control(self, step: Step) -> Control | None:
        return self.controls.get(str(self.pool.key[step["trials"][0]]["stimulus"]))

    def read(self, judge: Judge, step: Step, answer: dict[str, Any]) -> dict[str, Any]:
        sent, settings, control = parsed(TrialAnswer, answer), self.settings.trials, self.control(step)
        if len(sent.verdicts) != len(step["trials"]):
            raise BadAnswer(f"verdicts: must be {len(step['trials'])} of human and machine")
        kept = sent.model_dump(include={"verdicts", "rt", "away", "key"})
        if settings.confidence:
            if sent.confidence is None:
                raise BadAnswer("confidence: is missing")
            kept["confidence"] = sent.confidence
        if settings.reason:
            kept["reason"] = sent.reason
        if settings.sex:
            if len(sent.sexes) != len(step["trials"]):
                raise BadAnswer("sexes: must be as many as the verdicts")
            kept["sexes"] = sent.sexes
        if control is not None:
            if sent.control not in control.options:
                raise BadAnswer("control: must be an option")
            kept |= {"control": sent.control, "right": sent.control == control.correct}
        return kept

    def instructions(self, judge: Judge, step: Step) -> dict[str, Any]:
        samples = [{**self._trial(page), "truth": self.pool.truth(page)} for page in step.get("examples", [])]
        trials = self.settings.trials
        return {
            "trials": judge.counted(),
            **trials.model_dump(include={"practice", "feedback", "prior_told"}),
            "keys": judge.keys,
            "four": trials.choices == "four" and not self.pool.of_pairs,
            "pairs": self.pool.of_pairs,
            "samples": samples,
        }

    def show(self, judge: Judge, step: Step) -> dict[str, Any]:
        trials, control = self.settings.trials, self.control(step)
        pairs = zip(VERDICTS, judge.keys, strict=True)
        return {
            **self._trial(step["trials"]),
            "practice": step["phase"] == "practice",
            # in the order of the keys, which differs from judge to judge
            "options": sorted(pairs, key=lambda pair: pair[1] != trials.keys[0]),
            **trials.model_dump(include=SENT),
            "control": None if control is None else control.sent,
        }

    def truth(self, step: Step) -> list[str] | None:
        return self.pool.truth(step["trials"]) if step.get("phase") in ("practice", "feedback") else None

    def files(self, step: Step) -> dict[str, Path]:
        trials = [*step.get("trials", []), *(trial for page in step.get("examples", []) for trial in page)]
        names = [name for trial in trials for _, name in self._named(trial)]
        return {name: self.pool.folder / "media" / name for name in names}

    def rows(self, state: State, personal: Mapping[str, Mapping[str, Any]]) -> list[VerdictRow]:
        return list(verdict_rows(state, self.settings, self.pool, personal))

    def _trial(self, names: Sequence[str]) -> dict[str, Any]:
        trial = self.pool.trials[names[0]]
        page: dict[str, Any] = {
            "asked": trial.asked,
            "speakers": [self.pool.trials[name].speaker for name in names],
            "answer": trial.answer.model_dump(mode="json", exclude_none=True),
        }
        if trial.beside is not None:
            page["beside"] = trial.beside.model_dump(mode="json", exclude_none=True)
        if trial.cue is not None:
            page |= {"cue": trial.cue, "examples": [list(pair) for pair in trial.examples]}
        if trial.asked == "attention_prediction":
            del page["answer"]  # the clip shows it
        return page | {field: f"media/{name}" for field, name in self._named(names[0])}

    def _named(self, trial: str) -> Iterator[tuple[str, str]]:
        images = self.pool.trials[trial].images_by_field()
        fields = ("clip",) if "clip" in images else ("image", "target_image")  # the clip shows both
        for field in fields:
            if field in images:
                yield field, images[field].name.rpartition("/")[2]


def only_task(task: str | None) -> Choose:
    """Gives stimuli without a task the study's, where it fits."""
    return lambda tasks: [name for name in tasks if name == task]


def read_stimuli(source: Path, task: str) -> tuple[dict[str, Stimulus], str]:
    """The stimuli of a task by id, and their SHA-256. Raises InputError."""
    stimuli: dict[str, Stimulus] = {}
    root, digest = source if source.is_dir() else source.parent, hashlib.sha256()

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
        self.source, self.stimuli, self.sha256, self.number = source, stimuli, sha256, settings.answers.number


class AskMaterial(SetMaterial):
    """Captions pass six checks, and objects are single English words
    (2025 paper, Methods, L731-747, L1206-1210)."""

    kind = "ask"

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.stimuli, start=1)}

    def about(self) -> str:
        return f"{super().about()} of {count(len(self.stimuli), 'stimulus', 'stimuli')}"

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


class TalkMaterial(SetMaterial):
    kind = "talk"
    stimuli: Mapping[str, ConversationStimulus]

    def show(self, judge: Judge, step: Step) -> dict[str, Any]:
        return {**super().show(judge, step), "asked": "conversation", "guess": self.settings.talk.guess}

    def problems(self) -> list[str]:
        return [
            f"{name}: people are not shown what came before (history, opener, pseudo)"
            for name, stimulus in self.stimuli.items()
            if stimulus.history or stimulus.opener is not None or stimulus.pseudo
        ]

    def read(self, judge: Judge, step: Step, answer: dict[str, Any]) -> dict[str, Any]:
        if not self.settings.talk.guess:
            return super().read(judge, step, answer)
        return parsed(TalkAnswer, answer).model_dump()


class TestsMaterial(Material):
    settings: TestsSettings
    kind = "test"
    sha256 = hashlib.sha256(b"online").hexdigest()

    def __init__(self, settings: TestsSettings, study: Path) -> None:
        super().__init__(settings)
        self.source, self.number = study, settings.tests.each
        self.machines = {} if settings.tests.two_people == 1 else settings.machines()

    def show(self, judge: Judge, step: Step) -> dict[str, Any]:
        return {**super().show(judge, step), **self.settings.tests.model_dump(include={"words_below", "codes"})}

    def problems(self) -> list[str]:
        return [f"{place}: name the agent" for place, name in self.machines.items() if not name]

    def served_problems(self) -> list[str]:
        server, problems = self.settings.agents.server, []
        served, why = served_agents(server) if self.machines else ({}, "")
        for place, name in self.machines.items():
            if name not in served:
                problems.append(f"{place}: {why or f'{server} does not serve {name}'}")
            elif "conversation" not in served[name]:
                problems.append(f"{place}: {name} answers {', '.join(served[name])}, not conversation")
        return problems


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
