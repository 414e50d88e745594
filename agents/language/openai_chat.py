"""Agents that converse and answer cue words with a model on a server that speaks OpenAI's interface.

They are asked as the papers asked GPT-4o and Claude (chats) or GPT-3 (completions); see :mod:`agents.language.prompts`.
What was said before is sent as a whole: a server knows best how much its model has room for, and says so.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Literal, TypeVar

from pydantic import ConfigDict, Field

from agents.answers import TurnAnswer
from agents.contract import MIB, Agent, Draw, Reply, Verdict
from agents.errors import AnswerError, UnavailableError
from agents.language import prompts
from agents.language.engines.openai import OpenAIEngine, ServerText
from agents.language.engines.openai_settings import ServerSettings
from agents.language.engines.request import Sampling, TextRequest
from agents.language.truncation import TruncationSettings, read_lengths, says_too_little, sent_message
from agents.language.words.replies import word_answer
from agents.language.words.rules import RuleSettings
from agents.stimuli import ConversationStimulus, Stimulus, Task, WordStimulus
from agents.tasks import Family

V = TypeVar("V", bound=ServerSettings)


class ServerAgent(Agent[V]):
    """Base of the agents whose model is on a server: it needs no device, and has many requests under way at once."""

    memory = 512 * MIB
    parallel = False

    def __init__(self, settings: V, name: str) -> None:
        super().__init__(settings, name)
        self.max_in_flight = settings.concurrency
        self._engine = OpenAIEngine(settings)

    def environment(self) -> tuple[str, ...]:
        return (self.settings.key_variable,)

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
    word_rules: RuleSettings = RuleSettings()
    """Which words of a reply may be the answer."""


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
        self._lengths = read_lengths(self.settings.truncation)

    async def respond_one(self, prepared: Any, draw: Draw) -> Reply:
        if isinstance(prepared, WordStimulus):
            text = await self._complete(self._word(prepared, draw), draw)
            return Reply(word_answer(prepared, text.text, self.settings.word_rules), text.record())
        assert isinstance(prepared, ConversationStimulus)
        text = await self._complete(self._turn(prepared, draw), draw)
        chosen = self.settings
        message = sent_message(text.text, draw, chosen.truncation, self._lengths, chosen.lower_case)
        answer = TurnAnswer(text=message, raw=text.raw, finish=text.finish)
        return Reply(answer, {**text.record(), "attempt": draw.attempt})

    def instructions(self, stimulus: ConversationStimulus, draw: Draw) -> str:
        return prompts.chat_part(stimulus, draw, self.settings.prompt, self.settings.ages)

    def _turn(self, stimulus: ConversationStimulus, draw: Draw) -> TextRequest:
        sampling = self._turn_sampling(draw)
        part, greeting = self.instructions(stimulus, draw), self.settings.greeting
        return prompts.chat_request(stimulus, draw, stimulus.history, sampling, part=part, greeting=greeting)

    def _turn_sampling(self, draw: Draw) -> Sampling:
        chosen = self.settings
        return Sampling(
            temperature=self._temperature(draw),
            frequency_penalty=chosen.frequency_penalty,
            presence_penalty=chosen.presence_penalty,
            max_tokens=chosen.turn_tokens,
        )

    def _word(self, stimulus: WordStimulus, draw: Draw) -> TextRequest:
        return prompts.chat_word(stimulus, self._word_sampling(draw))

    def _word_sampling(self, draw: Draw) -> Sampling:
        return Sampling(self._temperature(draw), max_tokens=self.settings.word_tokens)

    def _temperature(self, draw: Draw) -> float:
        chosen = self.settings
        share = min(draw.attempt / max(self.attempts - 1, 1), 1.0)
        return round(chosen.turn_temperature + (chosen.turn_hottest - chosen.turn_temperature) * share, 6)

    async def _complete(self, request: TextRequest, draw: Draw) -> ServerText:
        """The server's text. Raises AnswerError, ``filtered`` if its own filter left nothing of it."""
        text = await self._engine.complete(request, draw.seed)
        if text.finish == "filtered" and not text.text.strip():
            raise AnswerError("filtered", "the server's own filter withheld the reply")
        return text

    def _says_too_little(self, stimulus: Stimulus, reply: Reply) -> Verdict | None:
        if not isinstance(stimulus, WordStimulus | ConversationStimulus):
            return None
        return says_too_little(reply, self.settings.min_words, self.attempts)


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

    def instructions(self, stimulus: ConversationStimulus, draw: Draw) -> str:
        return prompts.completion_opening(stimulus, draw)

    def _turn(self, stimulus: ConversationStimulus, draw: Draw) -> TextRequest:
        sampling = self._turn_sampling(draw)
        return prompts.completion_request(stimulus, draw, stimulus.history, sampling, self.settings.separator)

    def _word(self, stimulus: WordStimulus, draw: Draw) -> TextRequest:
        return prompts.completion_word(stimulus, self._word_sampling(draw))
