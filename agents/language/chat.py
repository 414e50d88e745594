"""The agents that converse and associate words, prompted as in the papers' programs.

There are two kinds of agent: models that chat (:class:`ChatAgent`) and models that continue a text
(:class:`CompletionAgent`). Below each kind stand its classes by what runs the model: this machine, or a server.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from agents.contract import GIB, LATER, NO_ANSWER, Declaration, Draw, Finding, Reply
from agents.language import person, prompts, pseudo_dialogue
from agents.language.engines.anthropic import AnthropicEngine, AnthropicSettings
from agents.language.engines.openai import ChatSettings, SeededSettings
from agents.language.engines.server_settings import ClientSettings
from agents.language.engines.text_request import GeneratedText, Sampling, TextRequest
from agents.language.hosts import EngineChoice, LocalAgent, ServerAgent, TemplateSettings
from agents.language.person import PersonSettings, open_person
from agents.language.sent_messages import (
    TruncationSettings,
    length_check,
    own_part,
    read_message_lengths,
    sent_message,
    target_length,
    too_short,
)
from agents.language.text_agent import DrawnSettings, TextAgent
from agents.language.words.replies import word_answer
from agents.language.words.rules import RuleSettings
from agents.stimuli import ConversationStimulus, Stimulus, Utterance, WordStimulus

TOKENS_PER_REMEMBERED_TURN = 80
"""Tokens that a prompt needs for a turn of a person's history: some messages with their times."""


class PromptedSettings(DrawnSettings):
    """How messages and words are drawn, and what becomes of a message before it is sent."""

    min_words: int = Field(5, ge=0, le=1000)
    """A message with fewer words after its cut is drawn again; with the fallback whole, they count before it."""
    hottest: float = Field(1.0, ge=0, le=2)
    """The temperature that a rise ends at; it begins at temperature."""
    rises_with: Literal["attempt", "fourth_attempt", "turn"] = "attempt"
    """It rises in equal steps per attempt, or per message from the third on (turn), or at once (fourth_attempt)."""
    word_temperature: float | None = Field(1.0, ge=0, le=2)
    """The temperature of words, which are drawn without penalties; none: words are drawn as messages are."""
    word_tokens: int = Field(10, ge=1, le=4096)
    """The most tokens of a reply in word association."""
    word_rules: RuleSettings = RuleSettings()
    """Which words of a reply may be the answer."""
    lower_case: float = Field(0.5, ge=0, le=1)
    """The share of messages that are put in small letters."""
    truncation: TruncationSettings | None = TruncationSettings()
    """How a message is cut to a drawn length; none: no message is cut."""

    def turn_sampling(self, stimulus: Stimulus, draw: Draw) -> Sampling:
        """The sampling of a message: these settings, with the temperature that is due at ``draw.attempt`` or at the
        turn."""
        share = draw.attempt / max(self.attempts - 1, 1)
        if self.rises_with == "fourth_attempt":
            share = float(draw.attempt >= prompts.PATIENCE)
        elif self.rises_with == "turn" and isinstance(stimulus, ConversationStimulus):
            turn = int(draw.options.get("turn", len(stimulus.history)))
            share = (turn - 2) / max(stimulus.exchanges - 2, 1)
        rise = (self.hottest - self.temperature) * min(max(share, 0.0), 1.0)
        return self.sampling(self.temperature + rise)

    def dialogue_sampling(self) -> Sampling:
        """The sampling of a part of a pseudo-dialogue: always at the first temperature."""
        return self.sampling(self.temperature)

    def word_sampling(self, stimulus: WordStimulus, draw: Draw) -> Sampling:
        """The sampling of a word, with ``word_tokens`` as its limit."""
        if self.word_temperature is None:
            return replace(self.turn_sampling(stimulus, draw), max_tokens=self.word_tokens)
        return Sampling(self.word_temperature, max_tokens=self.word_tokens)


class PromptedAgent(TextAgent[PromptedSettings]):
    """Base of both kinds: converses, associates words, and cuts messages to a drawn length (2025 paper, Methods)."""

    declares = Declaration(
        tasks=("conversation", "word_association"),
        writes_dialogues=True,
    )

    def open(self) -> None:
        """As the base class does; also read the file of lengths that the settings name. Raises InputError."""
        super().open()
        self._lengths = read_message_lengths(self.settings.truncation)

    def fitted_request(self, stimulus: Stimulus, draw: Draw) -> TextRequest:
        """As in the base class. The request for a word is not fitted: it is a line or two."""
        if not isinstance(stimulus, WordStimulus):
            return super().fitted_request(stimulus, draw)
        return self._adapted(stimulus, self._word(stimulus, self.settings.word_sampling(stimulus, draw)))

    def _word(self, stimulus: WordStimulus, sampling: Sampling) -> TextRequest:
        return prompts.chat_word(stimulus, sampling) if self.chats else prompts.completion_word(stimulus, sampling)

    def _reply(self, stimulus: Stimulus, draw: Draw, request: TextRequest, text: GeneratedText) -> Reply:
        if not isinstance(stimulus, WordStimulus):
            return super()._reply(stimulus, draw, request, text)
        is_cut = text.finish == "length"
        return Reply(word_answer(stimulus, text.text, self.settings.word_rules, cut=is_cut), text.record())

    def _truncation(self, stimulus: ConversationStimulus) -> TruncationSettings | None:
        return self.settings.truncation

    def _message(self, stimulus: ConversationStimulus, text: str, draw: Draw) -> str:
        message = super()._message(stimulus, text, draw)
        truncation = self._truncation(stimulus)
        least = self.settings.min_words
        lower_case = self.settings.lower_case
        return sent_message(stimulus, message, draw, truncation, self._lengths, least, lower_case)

    def _is_enough(self, stimulus: ConversationStimulus, draw: Draw) -> Callable[[str], bool] | None:
        truncation = self._truncation(stimulus)
        least = self.settings.min_words
        length = target_length(stimulus, draw, truncation, self._lengths, least)
        if truncation is None or length is None or stimulus.mode == "burst":
            return None
        return length_check(stimulus, length, truncation.fallback, least, *self._names(stimulus, draw))

    def _cuts(self, stimulus: ConversationStimulus) -> bool:
        truncation = self.settings.truncation
        return truncation is not None and truncation.people

    def _too_short(self, stimulus: Stimulus, reply: Reply) -> Finding | None:
        truncation = self.settings.truncation
        is_kept_whole = truncation is not None and truncation.fallback == "whole"
        return too_short(stimulus, reply, self._least_words, self.settings.attempts, before_cut=is_kept_whole)


# models that chat


class ChatPromptSettings(PersonSettings, PromptedSettings):
    """The choices of a chat model; the defaults are the papers' for GPT-4o."""

    temperature: float = Field(0.6, ge=0, le=2)
    """Divides the logits; 0 takes the likeliest token."""
    max_tokens: int = Field(80, ge=1, le=4096)
    """The most tokens of a message."""
    reasoning_tokens: int = Field(0, ge=0, le=100_000)
    """How many tokens a model may think before a reply; what it thinks stands in the record's raw part alone."""
    program: prompts.Program = "gpt-4o"
    """The program of the papers whose words and form the prompt has."""
    opening: str | None = Field(None, min_length=1, max_length=10_000, json_schema_extra=LATER)
    """A first user message of chats that the model would begin: some models' templates want one; none: it begins."""
    parts: prompts.SpeakerTexts | None = None
    """Other parts instead, in the program's order, with {name}, {other}, {persona}, {age} and {topic}."""


class ChatAgent(PromptedAgent):
    """A chat model. It converses by :mod:`agents.language.prompts`, or as a person (:mod:`agents.language.person`)."""

    declares = Declaration(family="chat")
    settings: ChatPromptSettings
    """The prompt's program, the sampling, and the person to be played, if any; fixed once the agent is made."""

    def __init__(self, settings: ChatPromptSettings, name: str) -> None:
        super().__init__(settings, name)
        if settings.person is not None:
            self.prompt_tokens += TOKENS_PER_REMEMBERED_TURN * settings.person_turns
            self._least_words = 1

    def open(self) -> None:
        """As the base class does; also read the person's history, if the settings name one. Raises InputError.

        With a history the engine is private: its errors and the shown prompts quote nobody.
        """
        super().open()
        self._person = open_person(self.settings)
        self._engine.private = self._person is not None

    def begins_chats(self) -> bool:
        """Whether the assistant may have a chat's first message. It may in programs that write a conversation as a
        chat. It may not where the settings give an ``opening``, or the program asks a first question."""
        settings = self.settings
        is_asked_first = settings.opening is not None or settings.program in prompts.QUESTIONED
        return settings.person is None and settings.program in prompts.AS_CHATS and not is_asked_first

    def instructions(self, stimulus: ConversationStimulus, draw: Draw) -> str:
        """What the model reads before a conversation: the person's introduction, or the program's parts, one below the
        other."""
        if self.settings.person is not None:
            return person.instructions(stimulus, draw)
        parts = prompts.chat_instructions(stimulus, draw, self.settings.program, self.settings.parts)
        return "\n".join(filter(None, parts))

    def _begun(self, stimulus: Stimulus, draw: Draw) -> TextRequest | Reply:
        is_turn = self.settings.person is None and "pseudo" not in draw.options
        if self.settings.program == "llama-3.3" and is_turn:
            greeting = prompts.llama_greeting(stimulus, draw)
            if greeting is not None:
                return greeting
        return super()._begun(stimulus, draw)

    def _earlier(self, stimulus: ConversationStimulus, draw: Draw) -> Sequence[Utterance]:
        return stimulus.history if self._person is None else self._person.earlier(stimulus, draw)

    def _turn(self, stimulus: ConversationStimulus, draw: Draw, history: Sequence[Utterance]) -> TextRequest:
        settings = self.settings
        sampling = self.settings.turn_sampling(stimulus, draw)
        if self._person is not None:
            return self._person.request(stimulus, draw, history, sampling)
        return prompts.chat_request(
            stimulus, draw, history, sampling, settings.program, settings.parts, opening=settings.opening
        )

    def _dialogue(self, stimulus: ConversationStimulus, draw: Draw, history: Sequence[Utterance]) -> TextRequest:
        settings = self.settings
        if self._person is not None:
            character = self._person.character(stimulus, draw)
        else:
            system, _ = prompts.chat_instructions(stimulus, draw, settings.program, settings.parts)
            character = system if settings.program in prompts.ONE_SIDED else ""
        return pseudo_dialogue.pseudo_chat_request(stimulus, draw, history, settings.dialogue_sampling(), character)

    def _adapted(self, stimulus: Stimulus, request: TextRequest) -> TextRequest:
        sampling = replace(request.sampling, reasoning_tokens=self.settings.reasoning_tokens)
        return super()._adapted(stimulus, replace(request, sampling=sampling))

    def _names(self, stimulus: ConversationStimulus, draw: Draw) -> Sequence[str]:
        return prompts.chat_names(stimulus, draw, self.settings.program, self.settings.parts)

    def _truncation(self, stimulus: ConversationStimulus) -> TruncationSettings | None:
        # Llama's program cuts from message 3 on.
        is_whole = self.settings.program == "llama-3.3" and len(stimulus.history) == 1
        return None if is_whole else self.settings.truncation

    def _message(self, stimulus: ConversationStimulus, text: str, draw: Draw) -> str:
        if self._person is None:
            return super()._message(stimulus, text, draw)
        return own_part(stimulus, text, *prompts.speakers(stimulus, draw.options))

    def _is_enough(self, stimulus: ConversationStimulus, draw: Draw) -> Callable[[str], bool] | None:
        return super()._is_enough(stimulus, draw) if self._person is None else None

    def _cuts(self, stimulus: ConversationStimulus) -> bool:
        return self.settings.person is not None or super()._cuts(stimulus)


class ServedPersonSettings(ClientSettings, PersonSettings):
    """The person whose history a server's model reads."""

    person_leaves: Annotated[bool, Field(json_schema_extra=NO_ANSWER)] = False
    """Whether the person's history may be sent to a server that is not on this machine."""

    @model_validator(mode="after")
    def _person_stays(self) -> ServedPersonSettings:
        if self.person is not None and not self.person_leaves and not self.is_local():
            raise ValueError(
                f"a person's history would leave this machine: {self.base_url} is elsewhere; name a server here, or "
                "set person_leaves=true if the history may be sent there"
            )
        return self


class LocalChatAgent(ChatAgent, LocalAgent[Any]):
    """A chat model that runs on this machine."""

    class Settings(ChatPromptSettings, TemplateSettings):
        """A chat model that runs here."""


class SmallChatAgent(LocalChatAgent):
    """A chat model of a few hundred million weights at most. The papers' question for a word is too hard for such a
    model, so that it is asked as in a game (:func:`agents.language.prompts.word_game`)."""

    declares = Declaration(
        memory=5 * GIB // 2,
        device_memory=5 * GIB // 2,
        batch_size=32,
    )
    working_memory = 2 * GIB

    def _word(self, stimulus: WordStimulus, sampling: Sampling) -> TextRequest:
        return prompts.word_game(stimulus, sampling)


class OpenAIChatAgent(ChatAgent, ServerAgent[Any]):
    """A chat model on a server with OpenAI's interface: OpenAI's own, vLLM, Ollama, llama.cpp and others."""

    class Settings(ChatSettings, ServedPersonSettings, ChatPromptSettings):
        """A chat model on a server with OpenAI's interface."""


class AnthropicChatAgent(ChatAgent, ServerAgent[Any]):
    """A chat model on Anthropic's server."""

    class Settings(AnthropicSettings, ServedPersonSettings, ChatPromptSettings):
        """A chat model on Anthropic's server, whose interface takes no penalties."""

        frequency_penalty: float = Field(0.0, ge=0, le=0)
        """Always 0: the interface has no such option."""
        presence_penalty: float = Field(0.0, ge=0, le=0)
        """Always 0: the interface has no such option."""

    engine = AnthropicEngine


# models that continue a text


class CompletionPromptSettings(PromptedSettings):
    """The choices of a completion model; the defaults are the papers' for GPT-3."""

    temperature: float = Field(0.8, ge=0, le=2)
    """Divides the logits; 0 takes the likeliest token."""
    rises_with: Literal["attempt", "fourth_attempt", "turn"] = "fourth_attempt"
    """As for chat models; the authors' program draws three times at the first temperature."""
    lower_case: float = Field(0.0, ge=0, le=1)
    """The share of messages that are put in small letters."""
    truncation: TruncationSettings | None = None
    """How a message is cut to a drawn length; none: no message is cut."""
    separator: Literal[" ", "\n"] = " "
    """What stands between messages in the prompt: a space, as in the papers, or a new line, as in their program."""
    template: prompts.Template = "2022"
    """The prompt's words: "Both ask long questions, …" (2022), or "Ask long questions, …", as printed in 2025."""


class CompletionAgent(PromptedAgent):
    """A model that continues a text. Its prompt is a dialogue with names, and a message ends where the next name
    begins."""

    declares = Declaration(family="completion")
    settings: CompletionPromptSettings
    """The prompt's words, the sampling, and how messages are cut; fixed once the agent is made."""
    chats = False

    def instructions(self, stimulus: ConversationStimulus, draw: Draw) -> str:
        """The beginning of the prompt, before either speaks."""
        return prompts.completion_opening(stimulus, draw, self.settings.template)

    def _turn(self, stimulus: ConversationStimulus, draw: Draw, history: Sequence[Utterance]) -> TextRequest:
        settings = self.settings
        sampling = self.settings.turn_sampling(stimulus, draw)
        return prompts.completion_request(stimulus, draw, history, sampling, settings.separator, settings.template)

    def _dialogue(self, stimulus: ConversationStimulus, draw: Draw, history: Sequence[Utterance]) -> TextRequest:
        sampling = self.settings.dialogue_sampling()
        return pseudo_dialogue.pseudo_completion_request(stimulus, draw, history, sampling)


class LocalCompletionAgent(CompletionAgent, LocalAgent[Any]):
    """A completion model that runs on this machine."""

    class Settings(CompletionPromptSettings, EngineChoice):
        """A completion model that runs here."""

    declares = Declaration(
        memory=6 * GIB,
        device_memory=6 * GIB,
        batch_size=32,
    )
    working_memory = 2 * GIB


class OpenAICompletionAgent(CompletionAgent, ServerAgent[Any]):
    """A completion model on a server with OpenAI's interface."""

    class Settings(SeededSettings, CompletionPromptSettings):
        """A completion model on a server with OpenAI's interface."""
