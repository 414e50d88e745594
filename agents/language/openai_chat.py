"""Agents on servers; with OpenAI's interface prompted as the papers' GPT-4o and GPT-3."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import Field, model_validator

from agents.contract import MIB, NO_ANSWER, Draw
from agents.language import prompts
from agents.language.chat import (
    BaseChatAgent,
    BaseCompletionAgent,
    ChatPromptSettings,
    CompletionPromptSettings,
    SentSettings,
)
from agents.language.engines.clients import ClientSettings, ServerEngine, ServerModel
from agents.language.engines.openai import ChatSettings, OpenAIEngine, SeededSettings
from agents.language.engines.text_request import Sampling, TextRequest
from agents.language.sent_messages import TruncationSettings, read_lengths, sent_message
from agents.language.text_agent import EngineAgent
from agents.stimuli import ConversationStimulus

V = TypeVar("V", bound=ClientSettings)


class ServerAgent(ServerModel[V], EngineAgent[V]):
    """Base of the agents that write by a server."""

    memory = 512 * MIB
    parallel = False
    engine: ClassVar[type[ServerEngine[Any]]] = OpenAIEngine
    _engine: ServerEngine[Any]

    def __init__(self, settings: V, name: str) -> None:
        super().__init__(settings, name)
        self.max_in_flight = settings.concurrency

    def _adapted(self, stimulus: Any, request: TextRequest) -> TextRequest:
        """Between machines the stops are the papers'."""
        if not isinstance(stimulus, ConversationStimulus) or stimulus.type != "MM":
            return request
        return replace(request, sampling=replace(request.sampling, label=""))


class TurnSettings(ClientSettings):
    """How a message is drawn: the papers' choices for GPT-4o and Claude."""

    turn_temperature: float = Field(0.6, ge=0, le=2)
    """The temperature of the first attempt at a message."""
    turn_hottest: float = Field(1.0, ge=0, le=2)
    """The temperature of the last attempt; it rises in equal steps."""
    turn_tokens: int = Field(80, ge=1, le=4096)
    """The most tokens of a message."""


class PenaltySettings(SeededSettings):
    """The penalties of OpenAI's interface."""

    frequency_penalty: float = Field(2.0, ge=-2, le=2)
    """For messages: taken from the logit of a token for each time that the message has it."""
    presence_penalty: float = Field(2.0, ge=-2, le=2)
    """For messages: taken from the logit of a token that the message has."""


class ChatServerSettings(TurnSettings, ChatPromptSettings):
    """How a chat model on a server is prompted."""

    person_leaves: Annotated[bool, Field(json_schema_extra=NO_ANSWER)] = False
    """Whether the person's history may be sent to a server that is not on this machine."""

    @model_validator(mode="after")
    def _person_stays(self) -> ChatServerSettings:
        if self.person is not None and not self.person_leaves and not self.is_local():
            raise ValueError(
                f"a person's history would leave this machine: {self.base_url} is elsewhere; name a server here, or "
                "set person_leaves=true if the history may be sent there"
            )
        return self

    def turn_sampling(self, stimulus: ConversationStimulus, draw: Draw) -> Sampling:
        share = min(draw.attempt / max(self.attempts - 1, 1), 1.0)
        temperature = self.turn_temperature + (self.turn_hottest - self.turn_temperature) * share
        return Sampling(round(temperature, 6), max_tokens=self.turn_tokens)


C = TypeVar("C", bound=ChatServerSettings)


class ChatServerAgent(BaseChatAgent[C], ServerAgent[C]):
    def __init__(self, settings: C, name: str) -> None:
        super().__init__(settings, name)
        self._engine.private = settings.person is not None


class TalkSettings(ChatSettings, PenaltySettings, ChatServerSettings):
    """The papers' choices for GPT-4o."""

    def turn_sampling(self, stimulus: ConversationStimulus, draw: Draw) -> Sampling:
        sampling = super().turn_sampling(stimulus, draw)
        return replace(sampling, frequency_penalty=self.frequency_penalty, presence_penalty=self.presence_penalty)


class OpenAIChatAgent(ChatServerAgent[TalkSettings]):
    """Prompted as the papers' GPT-4o."""

    Settings = TalkSettings


class OpenAICompletionAgent(
    BaseCompletionAgent["OpenAICompletionAgent.Settings"], ServerAgent["OpenAICompletionAgent.Settings"]
):
    """Prompted as the papers' GPT-3."""

    class Settings(PenaltySettings, TurnSettings, SentSettings, CompletionPromptSettings):
        """The papers' choices for GPT-3."""

        turn_temperature: float = Field(0.8, ge=0, le=2)
        """The temperature of the first three attempts at a message."""
        turn_hottest: float = Field(1.0, ge=0, le=2)
        """The temperature from the fourth attempt on, as in the authors' program."""
        turn_tokens: int = Field(60, ge=1, le=4096)
        """The most tokens of a message."""
        lower_case: float = Field(0.0, ge=0, le=1)
        """The share of messages that are put in small letters."""
        truncation: TruncationSettings | None = None
        """How a message is cut to a drawn length; none: it is not."""

        def turn_sampling(self, stimulus: ConversationStimulus, draw: Draw) -> Sampling:
            return Sampling(
                self.turn_temperature if draw.attempt < prompts.PATIENCE else self.turn_hottest,
                frequency_penalty=self.frequency_penalty,
                presence_penalty=self.presence_penalty,
                max_tokens=self.turn_tokens,
            )

        def word_sampling(self, draw: Draw) -> Sampling:
            return Sampling(self.word_temperature, max_tokens=self.word_tokens)

    settings: Settings

    def open(self) -> None:
        super().open()
        self._lengths = read_lengths(self.settings.truncation)

    def _message(self, stimulus: ConversationStimulus, text: str, draw: Draw) -> str:
        settings, message = self.settings, super()._message(stimulus, text, draw)
        return sent_message(
            stimulus, message, draw, settings.truncation, self._lengths, settings.min_words, settings.lower_case
        )
