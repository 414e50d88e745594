"""Agents that converse and answer cue words with a model on a server that speaks OpenAI's interface.

They are asked as the papers asked GPT-4o and Claude (chats) or GPT-3 (completions); see :mod:`agents.language.prompts`.
What was said before is sent as a whole: a server knows best how much its model has room for, and says so.
"""

from __future__ import annotations

import random
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Literal, TypeVar

from pydantic import ConfigDict, Field

from agents.answers import TurnAnswer, WordAnswer
from agents.contract import MIB, Agent, Draw, Reply, Verdict
from agents.errors import AnswerError, UnavailableError
from agents.language import prompts
from agents.language.asking import Asked, ChatMessage, Sampling
from agents.language.filters.texts import words
from agents.language.openai_engine import OpenAIEngine, ServerSaid, ServerSettings
from agents.language.truncation import TruncationSettings, draw_length, read_lengths, truncate
from agents.stimuli import ConversationStimulus, Stimulus, Task, WordStimulus
from agents.tasks import Family
from agents.universal_prompts import read_word

V = TypeVar("V", bound=ServerSettings)


class ServerAgent(Agent[V]):
    """Base of the agents whose model is on a server: it needs no device, and has many requests under way at once."""

    memory = 512 * MIB
    parallel = False

    def __init__(self, settings: V, name: str) -> None:
        super().__init__(settings, name)
        self.max_in_flight = settings.concurrency
        self._engine = OpenAIEngine(settings)

    def checkpoint(self) -> tuple[str | None, str | None]:
        return self.settings.model, None

    def missing(self) -> str | None:
        return self._engine.missing()

    def load(self, device: str) -> None:
        missing = self._engine.missing()
        if missing is not None:
            raise UnavailableError(missing)

    @abstractmethod
    async def respond_one(self, prepared: Any, draw: Draw) -> Reply:
        """The reply to one stimulus."""

    def provenance(self) -> dict[str, Any]:
        return self._engine.provenance()

    async def aclose(self) -> None:
        """Close what the running event loop has open; a worker process need not, it ends."""
        await self._engine.aclose()


class TalkSettings(ServerSettings):
    """How a chat model talks: the papers' choices for GPT-4o and Claude."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    prompt: str = prompts.CHAT
    """The part: {name}, {other}, {persona}, {age}, {topic} are filled in; a line with one that is not known goes."""
    greeting: str = prompts.GREETING
    """What the other is taken to have said before the first message."""
    ages: bool = False
    """Whether the two have ages, drawn for each conversation: 18 to 70 years, at most five apart."""
    turn_temperature: float = Field(0.6, ge=0, le=2)
    """The temperature of the first attempt at a message or a word."""
    turn_hottest: float = Field(1.0, ge=0, le=2)
    """The temperature of the last attempt; it rises in equal steps."""
    turn_tokens: int = Field(80, ge=1, le=4096)
    """The most tokens of a message."""
    frequency_penalty: float = Field(2.0, ge=-2, le=2)
    """For messages: taken from the logit of a token for each time that the message has it."""
    presence_penalty: float = Field(2.0, ge=-2, le=2)
    """For messages: taken from the logit of a token that the message has."""
    min_words: int = Field(5, ge=0, le=1000)
    """A message of fewer words, before it is cut, is asked for again while attempts are left."""
    attempts: int = Field(7, ge=1, le=100)
    """How often an answer is asked for at most; the last short message is kept, unless it has no word at all."""
    lower_case: float = Field(0.5, ge=0, le=1)
    """The share of messages that are put in small letters."""
    truncation: TruncationSettings | None = TruncationSettings()
    """How a message is cut to a drawn length; none: it is not."""
    word_tokens: int = Field(10, ge=1, le=4096)
    """The most tokens of a reply in word association; models that reason before they answer need many more."""


T = TypeVar("T", bound=TalkSettings)


class TalkingAgent(ServerAgent[T]):
    """Conversation and word association with a chat model."""

    tasks: ClassVar[tuple[Task, ...]] = ("conversation", "word_association")
    family: ClassVar[Family] = "chat"

    def __init__(self, settings: T, name: str) -> None:
        super().__init__(settings, name)
        self.attempts = settings.attempts
        self.filters = (self._says_too_little,)

    def open(self) -> None:
        chosen = self.settings.truncation
        self._lengths = read_lengths(chosen.lengths) if chosen is not None and chosen.lengths is not None else ()

    async def respond_one(self, prepared: Any, draw: Draw) -> Reply:
        if isinstance(prepared, WordStimulus):
            said = await self._say(self._word(prepared, draw), draw)
            return Reply(WordAnswer(word=read_word(said.text, prepared.cue)), said.record())
        assert isinstance(prepared, ConversationStimulus)
        said = await self._say(self._turn(prepared, draw), draw)
        answer = TurnAnswer(text=self._message(said.text, draw), raw=said.raw, finish=said.finish)
        return Reply(answer, {**said.record(), "attempt": draw.attempt})

    # what is asked

    def _turn(self, stimulus: ConversationStimulus, draw: Draw) -> Asked:
        name, other = prompts.speakers(stimulus, draw.options)
        side = (stimulus.names or prompts.SIDES).index(name)
        part = prompts.filled(
            self.settings.prompt,
            name=name,
            other=other,
            topic=stimulus.topic,
            persona=stimulus.personas[side] if stimulus.personas else None,
            age=prompts.ages(stimulus, draw.sample)[side] if self.settings.ages else None,
        )
        messages = prompts.chat(name, stimulus.history, self.settings.greeting, part)
        return Asked(messages=messages, sampling=self._turn_sampling(draw, (f"{name}:", f"{other}:")))

    def _turn_sampling(self, draw: Draw, stops: Sequence[str]) -> Sampling:
        chosen = self.settings
        return Sampling(
            temperature=self._temperature(draw),
            frequency_penalty=chosen.frequency_penalty,
            presence_penalty=chosen.presence_penalty,
            max_tokens=chosen.turn_tokens,
            stops=tuple(stops),
        )

    def _word(self, stimulus: WordStimulus, draw: Draw) -> Asked:
        text = prompts.word_question(stimulus)
        if stimulus.version == "prompted":
            text = f"{prompts.WORD_EXAMPLES}\n{prompts.word_examples(stimulus)}"
        return Asked(messages=(ChatMessage("user", text),), sampling=self._word_sampling(draw))

    def _word_sampling(self, draw: Draw, stops: Sequence[str] = ()) -> Sampling:
        return Sampling(self._temperature(draw), max_tokens=self.settings.word_tokens, stops=tuple(stops))

    def _temperature(self, draw: Draw) -> float:
        chosen = self.settings
        share = min(draw.attempt / max(self.attempts - 1, 1), 1.0)
        return round(chosen.turn_temperature + (chosen.turn_hottest - chosen.turn_temperature) * share, 6)

    # what becomes of what is said

    async def _say(self, asked: Asked, draw: Draw) -> ServerSaid:
        """What the server says. Raises AnswerError, ``filtered`` if its own filter left nothing of it."""
        said = await self._engine.complete(asked, draw.seed)
        if said.finish == "filtered" and not said.text.strip():
            raise AnswerError("filtered", "the server's own filter withheld the reply")
        return said

    def _message(self, text: str, draw: Draw) -> str:
        """The message that is sent: on one line, cut to a drawn length, at times in small letters."""
        text = " ".join(text.split())
        if self.settings.truncation is not None:
            length = draw_length(draw.seed, self.settings.truncation, self._lengths)
            text = truncate(text, length, self.settings.truncation.fallback)
        return text.lower() if random.Random(f"case {draw.seed}").random() < self.settings.lower_case else text

    def _says_too_little(self, stimulus: Stimulus, reply: Reply) -> Verdict | None:
        """The filter of messages with too few words; the last attempt's is kept if it has any."""
        if not isinstance(reply.answer, TurnAnswer):
            return None
        count = len(words(reply.raw["text"]))
        if count >= max(self.settings.min_words, 1):
            return None
        is_last = reply.raw["attempt"] + 1 >= self.attempts
        return Verdict("too_few_words", count == 0 or not is_last, f"{count} words: {reply.raw['text'][:200]}")


class OpenAIChatAgent(TalkingAgent[TalkSettings]):
    """A chat model, asked as the papers' GPT-4o."""

    Settings = TalkSettings


class OpenAICompletionAgent(TalkingAgent["OpenAICompletionAgent.Settings"]):
    """A model that continues texts, asked as the papers' GPT-3."""

    class Settings(TalkSettings):
        """The papers' choices for GPT-3; ``prompt``, ``greeting`` and ``ages`` have no use here."""

        separator: Literal[" ", "\n"] = " "
        """What stands between the messages in the prompt: a space, as in the papers, or a line."""
        turn_temperature: float = Field(0.8, ge=0, le=2)
        """The temperature of the first attempt at a message or a word."""
        turn_hottest: float = Field(0.8, ge=0, le=2)
        """The temperature of the last attempt; it rises in equal steps."""
        turn_tokens: int = Field(60, ge=1, le=4096)
        """The most tokens of a message."""
        attempts: int = Field(6, ge=1, le=100)
        """How often an answer is asked for at most; the last short message is kept, unless it has no word at all."""
        lower_case: float = Field(0.0, ge=0, le=1)
        """The share of messages that are put in small letters."""
        truncation: TruncationSettings | None = None
        """How a message is cut to a drawn length; none: it is not."""

    family = "completion"
    settings: Settings

    def _turn(self, stimulus: ConversationStimulus, draw: Draw) -> Asked:
        speakers = prompts.speakers(stimulus, draw.options)
        starter = prompts.first_speaker(speakers, stimulus.history)
        text = prompts.completion(speakers, stimulus.topic, stimulus.history, self.settings.separator, starter)
        return Asked(text, sampling=self._turn_sampling(draw, [f"{name}:" for name in speakers]))

    def _word(self, stimulus: WordStimulus, draw: Draw) -> Asked:
        if stimulus.version == "free":
            return Asked(prompts.word_question(stimulus), sampling=self._word_sampling(draw))
        return Asked(prompts.word_examples(stimulus), sampling=self._word_sampling(draw, ["Cue:"]))
