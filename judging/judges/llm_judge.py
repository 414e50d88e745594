"""Language models as judges, of single trials, or with ``grid`` of all answers to a stimulus at once, as in the
papers."""

from __future__ import annotations

import asyncio
import hashlib
import random
import tomllib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import Field, model_validator

from agents.answers import VerdictAnswer
from agents.contract import GIB, Declaration, Draw, Finding, Reply, derive_seed
from agents.contract import Settings as BaseSettings
from agents.errors import AnswerError, UnavailableError
from agents.language.engines.anthropic import AnthropicEngine, AnthropicSettings
from agents.language.engines.openai import ChatSettings
from agents.language.engines.text_request import ChatMessage, GeneratedText, Sampling, TextRequest
from agents.language.hosts import LocalAgent, ServerAgent, TemplateSettings
from agents.language.text_agent import EngineAgent
from agents.stimuli import TASKS, JudgementStimulus, Said, ShownAnswer, Stimulus, parse_row
from agents.universal.universal import SENT
from judging.judges import replies
from judging.trial_sets.trial_set import WITHOUT_PICTURE

PROMPTS: Mapping[str, Mapping[str, str]] = tomllib.loads(Path(__file__).with_name("prompts.toml").read_text("utf-8"))


def _schema(kind: str, verdicts: Sequence[Any]) -> Mapping[str, Any]:
    return {
        "type": "object",
        "properties": {"reason": {"type": "string"}, "verdict": {"type": kind, "enum": verdicts}},
        "required": ["reason", "verdict"],
        "additionalProperties": False,
    }


SCHEMA = _schema("string", ["human", "machine"])
SCHEMA_OF_PAIRS = _schema("integer", [1, 2])


def paper_prompt(trials: Sequence[JudgementStimulus], example: str | None = None) -> str:
    """The papers' prompt for trials about a stimulus, of scanpaths and conversations the first alone. With ``example``,
    a conversation of a person A and a machine B, it is one-shot."""
    first = trials[0]
    templates = PROMPTS["papers"]
    text = answer_text(first.answer)
    if first.asked == "conversation":
        name = "conversation" if example is None else "one_shot"
        return templates[name].format(example=example, answers=text)
    if first.asked != "attention_prediction":
        text = " ".join(f"{number}. {answer_text(trial.answer)}" for number, trial in enumerate(trials, start=1))
    width, height = first.answer.frame or (0, 0)
    return templates[first.asked].format(count=len(trials), answers=text, cue=first.cue, width=width, height=height)


def our_prompt(trial: JudgementStimulus, *, without_picture: bool = False) -> str:
    """Our prompt for one trial, which asks for reasons and then a verdict as JSON; ``without_picture`` says that the
    picture is not shown."""
    templates = PROMPTS["ours"]
    if trial.beside is not None:
        return templates["pair"].format(
            first=answer_text(trial.answer),
            second=answer_text(trial.beside),
            question=trial.question,
            delays=_about_delays(trial),
        )
    pairs = ", ".join(f"{cue} - {guess}" for cue, guess in trial.examples)
    width, height = trial.answer.frame or (0, 0)
    text = templates[trial.asked].format(
        seen="a picture, which you cannot see," if without_picture else "this picture",
        search=" in search of the target" if trial.target_image is not None else "",
        examples=f", after the examples {pairs}," if pairs else "",
        cue=trial.cue,
        width=width,
        height=height,
        answer=answer_text(trial.answer),
        delays=_about_delays(trial),
    )
    return text + templates["verdict"].format(question=trial.question)


def answer_text(answer: ShownAnswer) -> str:
    """An answer as a prompt has it: a text, labels with commas, fixations in pixels, or messages line by line, with
    their delays where the trial shows them."""
    if answer.messages is not None:
        return "\n".join(f"{_speaker(message)}: {message.text}" for message in answer.messages)
    if answer.fixations is not None:
        return ", ".join(f"({x:g}, {y:g})" for x, y in answer.fixations)
    if answer.labels is not None:
        return ", ".join(answer.labels)
    return answer.color or answer.text or answer.word or ""


def _speaker(message: Said) -> str:
    if message.delay_s is None:
        return message.speaker
    return f"{message.speaker} (after {message.delay_s:.1f} s)"


def _about_delays(trial: JudgementStimulus) -> str:
    """What says in our prompt what the seconds are; "" where no message has any."""
    answers = [trial.answer] if trial.beside is None else [trial.answer, trial.beside]
    messages = [message for answer in answers for message in answer.messages or ()]
    return PROMPTS["ours"]["delays"] if any(message.delay_s is not None for message in messages) else ""


class JudgeSettings(BaseSettings):
    """How a language model is asked to judge, and how its replies are read."""

    prompt: Literal["own", "papers"] = "own"
    """An answer, reasons before the verdict, JSON; or the 2025 paper's prompts, word for word."""
    example: Path | None = None
    """For the papers' one-shot prompt of conversations: a text, a whole one in which A is a person and B a machine."""
    grid: bool = False
    """With the papers' prompts: all answers to a stimulus in one prompt, and both speakers at once, as they did."""
    trials: Path | None = None
    """For grids, the trials, TRIALS/trials.jsonl: `turinglike judge` fills it in."""
    seed: int = Field(0, ge=0)
    """The seed of the order of the answers in a grid, and of the text about it."""
    any_case: bool = False
    """With the papers' prompts: "human" counts as well as "Human", which alone counts in their program."""
    without_picture: bool = False
    """Whether answers about a picture are judged without it, by our prompt, which says so."""
    temperature: float = Field(0.0, ge=0, le=2)
    """The temperature of the reply; the papers send none, and servers then take 1."""
    max_tokens: int = Field(1024, ge=1, le=100_000)
    """The most tokens of a reply."""
    reasoning_tokens: int = Field(0, ge=0, le=100_000)
    """How many tokens a model may think before a reply; what it thinks is in the record's raw part alone."""
    json_schema: bool = True
    """Whether the engine must hold to the schema of our answer; servers that do not know it refuse."""
    attempts: int = Field(1, ge=1, le=100)
    """How often a trial is asked about while the reply has no verdict; each attempt is in the record."""

    @model_validator(mode="after")
    def _papers_alone(self) -> JudgeSettings:
        if self.prompt == "own" and (self.grid or self.example is not None or self.any_case):
            raise ValueError("grid, example and any_case belong to prompt=papers")
        if self.prompt == "papers" and self.without_picture:
            raise ValueError("the papers' prompts show the picture; without it there is prompt=own")
        return self

    def identity(self) -> dict[str, Any]:
        """What a run's digest has of these settings: without a grid no seed and no path of trials, which then decide
        nothing."""
        settings = super().identity()
        if not self.grid:
            del settings["trials"], settings["seed"]
        return settings


@dataclass(frozen=True, slots=True)
class Pictured:
    """A trial with the pictures that the model is shown; None for none."""

    trial: JudgementStimulus
    """What is judged."""
    image: bytes | None = None
    """The picture that was answered about, encoded as it is sent."""
    target: bytes | None = None
    """The target of a search, likewise."""


class Group(NamedTuple):
    """The trials that are asked about in one prompt."""

    key: tuple[str, int, int]
    """The name of the trial, or in a grid of the group, with sample and attempt; the same key has the same reply."""
    trials: Sequence[JudgementStimulus]
    """The trials in the prompt's order; a single one without a grid."""
    seed: int
    """The seed of the reply, and of a grid's order."""


class LanguageJudge(EngineAgent[JudgeSettings]):
    """A language model that judges, over any engine: what is asked, how replies are read, and grids of trials."""

    declares = Declaration(tasks=("judgement",))

    def __init__(self, settings: JudgeSettings, name: str) -> None:
        super().__init__(settings, name)
        self._judges = TASKS if settings.without_picture or self.reads_pictures() else WITHOUT_PICTURE
        self._groups: Mapping[str, Sequence[JudgementStimulus]] = {}
        self._tasks: dict[int, asyncio.Future[GeneratedText]] = {}  # of grids, by seed
        self._known: dict[int, GeneratedText | Exception] = {}

    def declaration(self) -> Declaration:
        """With the attempts at a verdict, and the tasks that a model which may be blind can judge."""
        declared = super().declaration()
        filters = (self._has_no_verdict, *declared.filters)
        return declared.replace(attempts=self.settings.attempts, filters=filters, judges=self._judges)

    def open(self) -> None:
        """Read the example and, for grids, the trials. Raises UnavailableError."""
        super().open()
        settings = self.settings
        if settings.grid and settings.trials is None:
            raise UnavailableError(f"{self.name} judges the answers to a stimulus together: `turinglike judge`")
        try:
            self._example = settings.example.read_text("utf-8").strip() if settings.example is not None else None
            if settings.grid and settings.trials is not None:
                self._groups = _grouped(settings.trials)
        except (OSError, UnicodeDecodeError) as error:
            raise UnavailableError(f"{self.name}: cannot be read: {error}") from None

    def prepare(self, stimulus: Stimulus) -> Pictured:
        """The trial with its pictures as they are sent. Raises AnswerError for what this judge cannot be asked."""
        assert isinstance(stimulus, JudgementStimulus)
        image = stimulus.image
        target = stimulus.target_image
        is_paper = self.settings.prompt == "papers"
        if stimulus.beside is not None and is_paper:
            raise AnswerError("unsupported_mode", "the papers have no prompt for pairs of conversations")
        if self.settings.without_picture or stimulus.asked in WITHOUT_PICTURE:
            return Pictured(stimulus)
        if image is None:
            raise AnswerError("missing_image", "the trial has no picture; without_picture=true judges without")
        if target is not None and is_paper:
            raise AnswerError("unsupported_mode", "the papers' prompt for scanpaths knows free viewing only")
        return Pictured(stimulus, image.sendable(SENT)[0], None if target is None else target.sendable(SENT)[0])

    def group(self, trial: JudgementStimulus, draw: Draw) -> Group:
        """The trials asked about together. Raises AnswerError for an unknown trial."""
        settings = self.settings
        if not settings.grid:
            return Group((trial.id, draw.sample, draw.attempt), [trial], draw.seed)
        name = _group_of(trial)
        trials = sorted(self._groups.get(name, ()), key=lambda member: member.id)
        if trial.id not in [member.id for member in trials]:
            raise AnswerError("invalid_stimulus", f"not among the trials of {settings.trials}")
        seed = derive_seed(settings.seed, self.name, name, draw.sample, None, draw.attempt)
        random.Random(seed).shuffle(trials)
        return Group((name, draw.sample, draw.attempt), trials, seed)

    def fitted_request(self, stimulus: Pictured, draw: Draw) -> TextRequest:
        """The prompt with its pictures and schema. Raises AnswerError ``no_room`` for one that is too long."""
        settings = self.settings
        trial = stimulus.trial
        if settings.prompt == "own":
            text = our_prompt(trial, without_picture=settings.without_picture)
            schema = SCHEMA if trial.beside is None else SCHEMA_OF_PAIRS
        else:
            text = paper_prompt(self.group(trial, draw).trials, self._example)
            schema = None
        messages = [ChatMessage("user", text, stimulus.image)]
        if stimulus.target is not None:
            messages.insert(0, ChatMessage("user", PROMPTS["ours"]["target"], stimulus.target))
        sampling = Sampling(
            settings.temperature, max_tokens=settings.max_tokens, reasoning_tokens=settings.reasoning_tokens
        )
        schema = schema if settings.json_schema else None
        request = self._adapted(stimulus, TextRequest(messages=tuple(messages), sampling=sampling, schema=schema))
        if excess := self._engine.excess(request):
            raise AnswerError("no_room", f"the prompt has {excess} tokens too many for the model")
        return request

    def _seed(self, stimulus: Pictured, draw: Draw) -> int:
        return self.group(stimulus.trial, draw).seed

    async def _text(self, request: TextRequest, seed: int) -> GeneratedText:
        if not self.settings.grid:
            return await self._engine.generate(request, seed)
        task = self._tasks.get(seed)
        if task is None or (task.done() and (task.cancelled() or task.exception() is not None)):
            task = self._tasks[seed] = asyncio.ensure_future(self._engine.generate(request, seed))
        return await asyncio.shield(task)

    def _texts(self, requests: Sequence[TextRequest], seeds: Sequence[int]) -> Sequence[GeneratedText | Exception]:
        if not self.settings.grid:
            return super()._texts(requests, seeds)
        new = {seed: request for request, seed in zip(requests, seeds, strict=True) if seed not in self._known}
        self._known.update(zip(new, super()._texts([*new.values()], [*new]), strict=True))
        return [self._known[seed] for seed in seeds]

    def _reply(self, stimulus: Pictured, draw: Draw, request: TextRequest, text: GeneratedText) -> Reply:
        order = [member.id for member in self.group(stimulus.trial, draw).trials]
        answer = None if text.finish == "filtered" else self._read(stimulus.trial, order, text.text, text.finish)
        raw = text.record() | {"attempt": draw.attempt}
        if self.settings.grid:
            raw["order"] = order
        return Reply(answer or VerdictAnswer(verdict=replies.why_none(text.text, text.finish)), raw)

    def _read(self, trial: JudgementStimulus, order: Sequence[str], text: str, finish: str) -> VerdictAnswer | None:
        any_case = self.settings.any_case
        is_cut = finish == "length"
        if self.settings.prompt == "own":
            if trial.beside is not None:
                return replies.read_pair(text, cut=is_cut)
            judged = "" if trial.asked == "conversation" else answer_text(trial.answer)  # a speaker is no answer
            return replies.read_verdict(text, judged=judged, cut=is_cut)
        if trial.asked == "conversation":
            assert trial.speaker is not None
            word = replies.read_identity(text, trial.speaker)
        elif trial.asked == "attention_prediction":
            word = replies.read_answer(text, any_case=any_case)
        else:
            summary = replies.read_summary(text, len(order), any_case=any_case)
            word = summary[order.index(trial.id)] if summary is not None else None
        return VerdictAnswer(verdict=word) if word is not None else None

    def _has_no_verdict(self, stimulus: Stimulus, reply: Reply) -> Finding | None:
        answer = reply.answer
        if not isinstance(answer, VerdictAnswer) or answer.verdict in ("human", "machine"):
            return None
        return Finding(answer.verdict, reply.raw["attempt"] + 1 < self.settings.attempts, reply.raw["text"][:200])


class OpenAIJudge(LanguageJudge, ServerAgent[Any]):
    """A model on an OpenAI-compatible server as judge."""

    class Settings(ChatSettings, JudgeSettings):
        """Which server and model, and how it is asked."""

    declares = Declaration(
        memory=1 * GIB,  # photographs that are decoded
    )


class AnthropicJudge(LanguageJudge, ServerAgent[Any]):
    """A model of Anthropic's service as judge."""

    class Settings(AnthropicSettings, JudgeSettings):
        """A model of Anthropic's as judge."""

    declares = Declaration(memory=OpenAIJudge.declares.memory)
    engine = AnthropicEngine


class LocalJudge(LanguageJudge, LocalAgent[Any]):
    """A model whose weights are on this machine as judge, run by transformers or vLLM."""

    class Settings(JudgeSettings, TemplateSettings):
        """Which checkpoint, what runs it, and how it is asked."""


def _grouped(trials: Path) -> Mapping[str, Sequence[JudgementStimulus]]:
    groups = defaultdict(list)
    for line in trials.read_bytes().splitlines():
        trial = parse_row(line, root=trials.parent)
        assert isinstance(trial, JudgementStimulus)
        groups[_group_of(trial)].append(trial)
    return groups


def _group_of(trial: JudgementStimulus) -> str:
    if trial.asked == "attention_prediction":
        return trial.id
    if trial.asked == "conversation":
        return f"{trial.shown} {hashlib.sha256(answer_text(trial.answer).encode()).hexdigest()}"
    return f"{trial.asked} {trial.shown}"
