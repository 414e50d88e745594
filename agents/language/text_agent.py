"""What agents have in common that converse, or answer cue words, with a language model here.

A family's file says which request is made of a conversation (:meth:`TextAgent._turn`) and of a cue word
(:meth:`TextAgent._word`).
"""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import ClassVar, TypeVar

from pydantic import Field, model_validator

from agents.answers import TurnAnswer
from agents.contract import Draw, Reply, Verdict
from agents.language import prompts, pseudo_dialogue
from agents.language.engine_agent import EngineAgent, EngineChoice, EngineSettings, FittedRequest
from agents.language.engines.request import GeneratedText, Sampling, TextRequest
from agents.language.labels import may_change
from agents.language.truncation import says_too_little, spoken
from agents.language.words.replies import word_answer
from agents.language.words.rules import RuleSettings
from agents.stimuli import ConversationStimulus, Stimulus, Task, Utterance, WordStimulus


class TextSettings(EngineSettings):
    """How a model is run, and which replies are asked for again."""

    min_words: int = Field(1, ge=0, le=1000)
    """A message of fewer words is asked for again while attempts are left."""
    attempts: int = Field(6, ge=1, le=100)
    """How often a message or a word is asked for; the last short message is kept, unless it has no word at all."""


class DrawnSettings(TextSettings):
    """How text is drawn, in the words of OpenAI and vLLM."""

    temperature: float = Field(1.0, ge=0, le=2)
    """Divides the logits; 0 takes the likeliest token."""
    top_p: float = Field(1.0, gt=0, le=1)
    """Only the likeliest tokens that have this mass together."""
    top_k: int = Field(0, ge=0, le=1_000_000)
    """Only the so many likeliest tokens; 0: all."""
    frequency_penalty: float = Field(0.0, ge=-2, le=2)
    """Taken from the logit of a token for each time that the message has it."""
    presence_penalty: float = Field(0.0, ge=-2, le=2)
    """Taken from the logit of a token that the message has."""
    max_tokens: int = Field(60, ge=1, le=4096)
    """The most tokens of a message."""

    @model_validator(mode="after")
    def _temperature_divides(self) -> DrawnSettings:
        for name in type(self).model_fields:
            if name.endswith("temperature") and 0 < getattr(self, name) < 0.01:
                raise ValueError(f"{name} is 0, which takes the likeliest token, or at least 0.01")
        return self

    def sampling(self, temperature: float, max_tokens: int) -> Sampling:
        """These settings for one text, with a temperature and a limit of its own."""
        return Sampling(
            temperature=temperature,
            top_p=self.top_p,
            top_k=self.top_k,
            frequency_penalty=self.frequency_penalty,
            presence_penalty=self.presence_penalty,
            max_tokens=max_tokens,
        )


class PromptedSettings(EngineChoice, DrawnSettings):
    """What runs a model that is told what to do, how it is asked for words, and which words may be answers."""

    word_tokens: int = Field(10, ge=1, le=4096)
    """The most tokens of a reply in word association."""
    word_rules: RuleSettings = RuleSettings()
    """Which words of a reply may be the answer."""


T = TypeVar("T", bound=TextSettings)


class TextAgent(EngineAgent[T]):
    """Base of the agents that converse. A family gives :meth:`_turn`, and :meth:`_word` if it answers cue words."""

    tasks: ClassVar[tuple[Task, ...]] = ("conversation",)

    def __init__(self, settings: T, name: str) -> None:
        super().__init__(settings, name)
        if not self.random:  # whose texts nobody judges
            self.attempts = settings.attempts
            self.filters = (self._says_too_little,)

    # what a family gives

    @abstractmethod
    def _turn(self, stimulus: ConversationStimulus, draw: Draw, history: Sequence[Utterance]) -> TextRequest:
        """The request for the next message after ``history``, the newest part of :meth:`_said`."""

    def _word(self, stimulus: WordStimulus, draw: Draw) -> TextRequest:
        """The request for a word."""
        raise TypeError(f"{type(self).__name__} answers no cue words")

    def _said(self, stimulus: ConversationStimulus, draw: Draw) -> Sequence[Utterance]:
        """What was said before the next message, oldest first."""
        return stimulus.history

    def _dialogue(self, stimulus: ConversationStimulus, draw: Draw, history: Sequence[Utterance]) -> TextRequest:
        """The request for a part of a pseudo-dialogue."""
        raise TypeError(f"{type(self).__name__} writes no dialogues")

    def _message(self, stimulus: ConversationStimulus, text: str, draw: Draw) -> str:
        """The message that is sent, made from what the model said."""
        return spoken(stimulus, text, *prompts.speakers(stimulus, draw.options))

    def _is_cut(self, stimulus: ConversationStimulus) -> bool:
        """Whether the message that is sent may be less than what the model said."""
        return False

    # requests and replies

    def fitted_request(self, stimulus: Stimulus, draw: Draw) -> FittedRequest:
        """The request, without the oldest messages if the model has no room for all. Raises AnswerError."""
        if isinstance(stimulus, WordStimulus):
            return FittedRequest(self._fixed_length(self._word(stimulus, draw)))
        assert isinstance(stimulus, ConversationStimulus)
        history, say = self._said(stimulus, draw), self._listener(stimulus, draw)
        is_dialogue = pseudo_dialogue.asked(draw) is not None

        def request(left_out: int) -> TextRequest:
            asked = (self._dialogue if is_dialogue else self._turn)(stimulus, draw, history[left_out:])
            if is_dialogue:
                most = min(asked.sampling.max_tokens, self._engine.half())
                asked = replace(asked, sampling=replace(asked.sampling, max_tokens=most))
            return replace(self._fixed_length(asked), say=say)

        def fits(left_out: int) -> bool:
            return self._engine.excess(request(left_out)) == 0

        most = max(len(history) - 1, 0)
        left_out = 0 if fits(0) else bisect_left(range(most), True, key=fits)
        fitted = request(left_out)
        return FittedRequest(fitted, left_out, self._engine.excess(fitted) if left_out == most else 0)

    def _listener(self, stimulus: ConversationStimulus, draw: Draw) -> Callable[[str], None] | None:
        """What hears the message while it is generated: of those to a person, which no filter rejects unless they are
        empty, that no cut shortens; in a burst none, as what begins a line may be a name."""
        say = draw.say
        unheard = stimulus.type == "MM" or stimulus.mode == "burst" or pseudo_dialogue.asked(draw) is not None
        if say is None or unheard or self._is_cut(stimulus):
            return None

        def tell(text: str) -> None:
            if not may_change(text):
                # What a capital sigma is in small letters depends on what follows it.
                say(self._message(stimulus, text.rstrip("\u03a3"), draw))

        return tell

    def _reply(self, stimulus: Stimulus, draw: Draw, fitted: FittedRequest, text: GeneratedText) -> Reply:
        if isinstance(stimulus, WordStimulus):
            assert isinstance(self.settings, PromptedSettings)
            is_cut = text.finish == "length"
            return Reply(word_answer(stimulus, text.text, self.settings.word_rules, cut=is_cut), text.text)
        assert isinstance(stimulus, ConversationStimulus)
        is_cut = bool(fitted.left_out or fitted.cut)
        is_dialogue = pseudo_dialogue.asked(draw) is not None
        answer = TurnAnswer(
            text=(
                pseudo_dialogue.written(fitted.request, text.text)
                if is_dialogue
                else self._message(stimulus, text.text, draw)
            ),
            raw=text.raw,
            finish=f"{text.finish}; prompt cut" if is_cut else text.finish,
        )
        about = {
            "text": text.text,
            "attempt": draw.attempt,
            "temperature": round(fitted.request.sampling.temperature, 4),
            "prompt_tokens": text.prompt_tokens,
            "tokens": text.tokens,
            "messages_left_out": fitted.left_out,
            "tokens_cut": fitted.cut,
        }
        if is_dialogue:
            about["pseudo"] = True
        return Reply(answer, about)

    def _says_too_little(self, stimulus: Stimulus, reply: Reply) -> Verdict | None:
        return says_too_little(stimulus, reply, self.settings.min_words, self.attempts)
