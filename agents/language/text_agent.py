"""Agents over an engine: what they ask of a model, and what becomes of its text.

What runs the model is another matter: :mod:`agents.language.hosts`. A subclass says what a request is (``_turn``,
``_dialogue``); this module fits it to the model's positions, draws it, and turns the text into a reply.
"""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, TypeVar

from pydantic import Field, model_validator

from agents.answers import TurnAnswer
from agents.capabilities import Traced
from agents.contract import Agent, Declaration, Draw, Finding, Reply
from agents.contract import Settings as BaseSettings
from agents.errors import AnswerError
from agents.language import prompts, pseudo_dialogue
from agents.language.engines.reasoning import reasoning_mark
from agents.language.engines.text_request import Engine, GeneratedText, Sampling, TextRequest
from agents.language.sent_messages import may_change, spoken, too_short
from agents.stimuli import ConversationStimulus, Stimulus, Utterance

S = TypeVar("S", bound=BaseSettings)


class EngineAgent(Agent[S], Traced):
    """Base of the agents whose texts an engine generates."""

    chats: ClassVar[bool] = True
    """Whether a request is the messages of a chat; otherwise it is a text to be continued."""
    prompt_tokens = 2048
    """Tokens of a long conversation's prompt, for which memory is reckoned."""
    random: bool = False
    """Whether the weights are random numbers, of whose texts nothing is judged."""
    declares = Declaration(filters=(reasoning_mark,), max_in_flight=0)  # which is for what runs the model to say
    _engine: Engine

    def reads_pictures(self) -> bool:
        """Whether the model may be sent pictures."""
        return True

    @abstractmethod
    def fitted_request(self, stimulus: Any, draw: Draw) -> TextRequest:
        """The request for a prepared stimulus, fitted to the model's positions. Raises AnswerError."""

    @abstractmethod
    def _reply(self, stimulus: Any, draw: Draw, request: TextRequest, text: GeneratedText) -> Reply:
        """The reply to a prepared stimulus, read from the ``text`` that the model wrote. Raises AnswerError."""

    def begins_chats(self) -> bool:
        """Whether the assistant may have a chat's first message, after the system's. Some templates drop instructions
        there."""
        return False

    def prompt(self, stimulus: Stimulus, draw: Draw) -> str | None:
        """What the model reads; "" where its engine is private, and None for a reply that no model writes. Raises
        AnswerError."""
        begun = self._begun(self.prepare(stimulus), draw)
        if isinstance(begun, Reply):
            return None
        text = self._engine.prompt_text(begun)
        return "" if self._engine.private else text

    def _begun(self, stimulus: Any, draw: Draw) -> TextRequest | Reply:
        """The request, or a reply that no model writes. Raises AnswerError."""
        return self.fitted_request(stimulus, draw)

    def _adapted(self, stimulus: Any, request: TextRequest) -> TextRequest:
        return request

    def _seed(self, stimulus: Any, draw: Draw) -> int:
        return draw.seed

    async def respond_one(self, prepared: Any, draw: Draw) -> Reply:
        """The reply to a single stimulus. Where a server finds the prompt too long, it is asked again without half of
        the oldest messages, and so on. Raises AnswerError."""
        begun = self._begun(prepared, draw)
        if isinstance(begun, Reply):
            return begun
        while True:
            try:
                text = await self._text(begun, self._seed(prepared, draw))
                break
            except AnswerError as error:
                if error.code != "no_room" or begun.shorter is None:
                    raise
                begun = begun.shorter()
        return self._answered(prepared, draw, begun, text)

    def _answered(self, stimulus: Any, draw: Draw, request: TextRequest, text: GeneratedText) -> Reply:
        """As :meth:`_reply`; an error keeps what the model wrote."""
        prompt_record = self._engine.about_prompt(request)
        try:
            reply = self._reply(stimulus, draw, request, text)
        except AnswerError as error:
            error.raw = text.record() | prompt_record
            raise
        reply.raw |= prompt_record
        return reply

    async def _text(self, request: TextRequest, seed: int) -> GeneratedText:
        text = await self._engine.generate(request, seed)
        if text.finish == "filtered" and not text.text.strip():
            raise AnswerError("filtered", "the server's own filter withheld the reply")
        return text

    def _texts(self, requests: Sequence[TextRequest], seeds: Sequence[int]) -> Sequence[GeneratedText | Exception]:
        return self._engine.generate_batch(requests, seeds)

    def limits(self) -> Sequence[str]:
        """What the engine's model cannot do."""
        return self._engine.limits()

    def provenance(self) -> dict[str, Any]:
        """What the base class says; also what the engine says of itself, and the model's limits."""
        provenance = super().provenance() | self._engine.provenance()
        if limits := [*self.limits()]:
            provenance["limits"] = limits
        return provenance


# agents that converse


class TextSettings(BaseSettings):
    """Which messages are drawn again."""

    min_words: int = Field(1, ge=0, le=1000)
    """A message of fewer words is drawn again while attempts are left."""
    attempts: int = Field(6, ge=1, le=100)
    """How often a message or a word is drawn at most; the last short message is kept, unless it has no word."""


class DrawnSettings(TextSettings):
    """How the tokens of a message are drawn; the defaults are the papers'."""

    temperature: float = Field(1.0, ge=0, le=2)
    """Divides the logits; 0 takes the likeliest token."""
    top_p: float = Field(1.0, gt=0, le=1)
    """Draws are among the likeliest tokens that together have this probability."""
    top_k: int = Field(0, ge=0, le=1_000_000)
    """Draws are among this many of the likeliest tokens; 0: among all."""
    frequency_penalty: float = Field(2.0, ge=-2, le=2)
    """Subtracted from a token's logit for each time that the message has the token."""
    presence_penalty: float = Field(2.0, ge=-2, le=2)
    """Subtracted from the logit of every token that the message has."""
    max_tokens: int = Field(60, ge=1, le=4096)
    """The most tokens of a message."""

    @model_validator(mode="after")
    def _temperature_divides(self) -> DrawnSettings:
        for name in type(self).model_fields:
            if name.endswith("temperature") and 0 < (getattr(self, name) or 0) < 0.01:
                raise ValueError(f"{name} is 0, which takes the likeliest token, or at least 0.01")
        return self

    def sampling(self, temperature: float) -> Sampling:
        """These settings as an engine takes them, with another ``temperature``."""
        return Sampling(
            temperature=temperature,
            top_p=self.top_p,
            top_k=self.top_k,
            frequency_penalty=self.frequency_penalty,
            presence_penalty=self.presence_penalty,
            max_tokens=self.max_tokens,
        )


T = TypeVar("T", bound=TextSettings)


class TextAgent(EngineAgent[T]):
    """Base of the agents that converse.

    ``_turn`` of a subclass makes the request for the next message from the stimulus, the draw and the messages that
    there is room for.
    """

    declares = Declaration(tasks=("conversation",))

    def __init__(self, settings: T, name: str) -> None:
        super().__init__(settings, name)
        self._least_words = settings.min_words

    def declaration(self) -> Declaration:
        """With the attempts at a message, and a filter for short ones."""
        declared = super().declaration()
        if self.random:  # whose texts nobody judges
            return declared.replace(filters=())
        return declared.replace(attempts=self.settings.attempts, filters=(self._too_short, *declared.filters))

    @abstractmethod
    def _turn(self, stimulus: ConversationStimulus, draw: Draw, history: Sequence[Utterance]) -> TextRequest:
        """The request for the next message."""

    def _dialogue(self, stimulus: ConversationStimulus, draw: Draw, history: Sequence[Utterance]) -> TextRequest:
        raise TypeError(f"{type(self).__name__} writes no dialogues")

    def _earlier(self, stimulus: ConversationStimulus, draw: Draw) -> Sequence[Utterance]:
        return stimulus.history

    def _names(self, stimulus: ConversationStimulus, draw: Draw) -> Sequence[str]:
        """The prompt's names for the next speaker and the other, and whatever else it calls the speaker."""
        return prompts.speakers(stimulus, draw.options)

    def _message(self, stimulus: ConversationStimulus, text: str, draw: Draw) -> str:
        return spoken(stimulus, text, *self._names(stimulus, draw))

    def _cuts(self, stimulus: ConversationStimulus) -> bool:
        return False

    def _is_enough(self, stimulus: ConversationStimulus, draw: Draw) -> Callable[[str], bool] | None:
        """Whether nothing that follows an unfinished text is sent."""
        return None

    def _too_short(self, stimulus: Stimulus, reply: Reply) -> Finding | None:
        return too_short(stimulus, reply, self._least_words, self.settings.attempts)

    def fitted_request(self, stimulus: Stimulus, draw: Draw) -> TextRequest:
        """The request with as many of the newest messages as the model has room for.

        The oldest are left out one by one, found by bisection, and the newest always stays. What it is too long by is
        cut from the prompt's beginning. The request's ``shorter`` halves the messages for servers that only refuse a
        long prompt. Raises AnswerError.
        """
        assert isinstance(stimulus, ConversationStimulus)
        history = self._earlier(stimulus, draw)
        say = self._listener(stimulus, draw)
        is_dialogue = "pseudo" in draw.options
        most_left_out = max(len(history) - 1, 0)
        is_enough = None if is_dialogue or self.random else self._is_enough(stimulus, draw)

        def without(left_out: int) -> TextRequest:
            if is_dialogue:
                request = self._dialogue(stimulus, draw, history[left_out:])
                most = min(request.sampling.max_tokens, self._engine.half_of_positions())
                request = replace(request, sampling=replace(request.sampling, max_tokens=most))
            else:
                request = self._turn(stimulus, draw, history[left_out:])
            half = left_out + (most_left_out - left_out + 1) // 2
            shorter = partial(without, half) if half > left_out else None
            request = self._adapted(stimulus, request)
            return replace(request, say=say, is_enough=is_enough, left_out=left_out, shorter=shorter)

        def fits(left_out: int) -> bool:
            return self._engine.excess(without(left_out)) == 0

        request = without(0)
        excess = self._engine.excess(request)
        if excess and most_left_out:
            request = without(bisect_left(range(most_left_out), True, lo=1, key=fits))
            excess = self._engine.excess(request) if request.left_out == most_left_out else 0
        return replace(request, cut=excess)

    def _listener(self, stimulus: ConversationStimulus, draw: Draw) -> Callable[[str], None] | None:
        """None where a filter, cut or burst may change the message."""
        say = draw.say
        is_whole = stimulus.type == "MM" or stimulus.mode == "burst" or "pseudo" in draw.options
        if say is None or is_whole or self._cuts(stimulus):
            return None

        def listen(text: str) -> None:
            if not may_change(text):
                # What a capital sigma is in small letters depends on the next letter.
                say(self._message(stimulus, text.rstrip("\u03a3"), draw))

        return listen

    def _reply(self, stimulus: Stimulus, draw: Draw, request: TextRequest, text: GeneratedText) -> Reply:
        assert isinstance(stimulus, ConversationStimulus)
        raw = text.record() | {
            "attempt": draw.attempt,
            "temperature": round(request.sampling.temperature, 4),
            "messages_left_out": request.left_out,
            "tokens_cut": request.cut,
        }
        if "pseudo" not in draw.options:
            message = self._message(stimulus, text.text, draw)
        else:
            message = pseudo_dialogue.written(request, text.text)
            raw["pseudo"] = True
        finish = f"{text.finish}; prompt cut" if request.left_out or request.cut else text.finish
        return Reply(TurnAnswer(text=message, raw=text.raw, finish=finish), raw)
