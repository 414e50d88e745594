"""Agents that converse and answer cue words with a model on a server: what they have in common, and those whose server
speaks OpenAI's interface, asked as the papers asked GPT-4o (chats) or GPT-3 (completions).

What was said before is sent as a whole: a server knows best how much its model has room for, and says so.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import ConfigDict, Field, model_validator

from agents.answers import TurnAnswer
from agents.contract import MIB, NO_ANSWER, Agent, Draw, Reply, Verdict
from agents.errors import AnswerError, UnavailableError
from agents.language import chat_prompts, person, prompts, pseudo_dialogue
from agents.language.engines.openai import ChatSettings, OpenAIEngine, SeededSettings
from agents.language.engines.request import Sampling, TextRequest
from agents.language.engines.server import ClientSettings, ServerEngine, ServerText
from agents.language.person import PersonSettings, open_person
from agents.language.truncation import TruncationSettings, read_lengths, says_too_little, sent_message, spoken
from agents.language.words.replies import word_answer
from agents.language.words.rules import RuleSettings
from agents.stimuli import ConversationStimulus, Family, Stimulus, Task, WordStimulus

V = TypeVar("V", bound=ClientSettings)


class ServerAgent(Agent[V]):
    """Base of the agents whose model is on a server: it needs no device, and has many requests under way at once."""

    memory = 512 * MIB
    parallel = False
    engine: ClassVar[type[ServerEngine[Any]]] = OpenAIEngine

    def __init__(self, settings: V, name: str) -> None:
        super().__init__(settings, name)
        self.max_in_flight = settings.concurrency
        self._engine = self.engine(settings)

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


class MessageSettings(ClientSettings):
    """How a model says a message or a word: the papers' choices for GPT-4o and Claude."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    turn_temperature: float = Field(0.6, ge=0, le=2)
    """The temperature of the first attempt at a message."""
    turn_hottest: float = Field(1.0, ge=0, le=2)
    """The temperature of the last attempt; it rises in equal steps."""
    turn_tokens: int = Field(80, ge=1, le=4096)
    """The most tokens of a message."""
    min_words: int = Field(5, ge=0, le=1000)
    """A message of fewer words, after it is cut, is asked for again while attempts are left."""
    attempts: int = Field(6, ge=1, le=100)
    """How often an answer is asked for at most; the last short message is kept, unless it has no word at all."""
    lower_case: float = Field(0.5, ge=0, le=1)
    """The share of messages that are put in small letters."""
    truncation: TruncationSettings | None = TruncationSettings()
    """How a message is cut to a drawn length; none: it is not."""
    word_tokens: int = Field(10, ge=1, le=4096)
    """The most tokens of a reply in word association; models that reason before they answer need many more."""
    word_temperature: float = Field(1.0, ge=0, le=2)
    """The temperature of words; the papers' program sends none, and servers then take 1."""
    word_rules: RuleSettings = RuleSettings()
    """Which words of a reply may be the answer."""

    def turn_sampling(self, attempt: int) -> Sampling:
        """How a message is drawn: at each attempt a little warmer."""
        share = min(attempt / max(self.attempts - 1, 1), 1.0)
        temperature = self.turn_temperature + (self.turn_hottest - self.turn_temperature) * share
        return Sampling(round(temperature, 6), max_tokens=self.turn_tokens)


class ProgramSettings(PersonSettings, MessageSettings):
    """How a chat model is asked to converse, too."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    program: chat_prompts.Program = "gpt-4o"
    """The program of the papers in whose words and form it is asked to converse."""
    parts: chat_prompts.Parts | None = None
    """Parts of one's own instead, in the program's order, with {name}, {other}, {persona}, {age} and {topic}."""
    person_leaves: Annotated[bool, Field(json_schema_extra=NO_ANSWER)] = False
    """Whether the person's history may be sent to a server that is not on this machine."""

    @model_validator(mode="after")
    def _person_stays(self) -> ProgramSettings:
        if self.person is not None and not self.person_leaves and not self.is_local():
            raise ValueError(
                f"a person's history would leave this machine: {self.base_url} is elsewhere; name a server here, or "
                "set person_leaves=true if the history may be sent there"
            )
        return self


class TurnSettings(SeededSettings, MessageSettings):
    """As every model on a server says it, and the penalties of OpenAI's interface."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    frequency_penalty: float = Field(2.0, ge=-2, le=2)
    """For messages: taken from the logit of a token for each time that the message has it."""
    presence_penalty: float = Field(2.0, ge=-2, le=2)
    """For messages: taken from the logit of a token that the message has."""

    def turn_sampling(self, attempt: int) -> Sampling:
        drawn = super().turn_sampling(attempt)
        return replace(drawn, frequency_penalty=self.frequency_penalty, presence_penalty=self.presence_penalty)


class TalkSettings(ChatSettings, TurnSettings, ProgramSettings):
    """All of it, for chat models."""


T = TypeVar("T", bound=MessageSettings)


class TalkingAgent(ServerAgent[T]):
    """Base of the agents that converse and answer cue words; a family says what is asked."""

    tasks: ClassVar[tuple[Task, ...]] = ("conversation", "word_association")
    family: ClassVar[Family] = "chat"
    writes_dialogues = True

    def __init__(self, settings: T, name: str) -> None:
        super().__init__(settings, name)
        self.attempts = settings.attempts
        self.filters = (self._says_too_little,)

    def open(self) -> None:
        self._lengths = read_lengths(self.settings.truncation)

    async def respond_one(self, prepared: Any, draw: Draw) -> Reply:
        if isinstance(prepared, WordStimulus):
            text = await self._complete(self._word(prepared, draw), draw)
            is_cut = text.finish == "length"
            return Reply(word_answer(prepared, text.text, self.settings.word_rules, cut=is_cut), text.record())
        assert isinstance(prepared, ConversationStimulus)
        if pseudo_dialogue.asked(draw) is not None:
            request = self._dialogue(prepared, draw)
            text = await self._complete(request, draw)
            answer = TurnAnswer(text=pseudo_dialogue.written(request, text.text), raw=text.raw, finish=text.finish)
            return Reply(answer, {**text.record(), "attempt": draw.attempt, "pseudo": True})
        request = self._turn(prepared, draw)
        # Between machines servers are sent the stops of the papers' programs.
        sampling = replace(request.sampling, sends_label=prepared.type == "MM")
        text = await self._complete(replace(request, sampling=sampling), draw)
        answer = TurnAnswer(text=self._message(prepared, text.text, draw), raw=text.raw, finish=text.finish)
        return Reply(answer, {**text.record(), "attempt": draw.attempt})

    @abstractmethod
    def _turn(self, stimulus: ConversationStimulus, draw: Draw) -> TextRequest:
        """The request for the next message."""

    @abstractmethod
    def _dialogue(self, stimulus: ConversationStimulus, draw: Draw) -> TextRequest:
        """The request for a part of a pseudo-dialogue."""

    @abstractmethod
    def _word(self, stimulus: WordStimulus, draw: Draw) -> TextRequest:
        """The request for a word."""

    def _message(self, stimulus: ConversationStimulus, text: str, draw: Draw) -> str:
        """The message that is sent, made from what the model said."""
        chosen = self.settings
        said = spoken(stimulus, text, *self._called(stimulus, draw))
        return sent_message(stimulus, said, draw, chosen.truncation, self._lengths, chosen.lower_case)

    def _called(self, stimulus: ConversationStimulus, draw: Draw) -> tuple[str, ...]:
        """What the request calls the one who is asked, and the other; then what else it calls the one."""
        return prompts.speakers(stimulus, draw.options)

    def _word_sampling(self) -> Sampling:
        return Sampling(self.settings.word_temperature, max_tokens=self.settings.word_tokens)

    async def _complete(self, request: TextRequest, draw: Draw) -> ServerText:
        """The server's text. Raises AnswerError, ``filtered`` if its own filter left nothing of it."""
        text = await self._engine.complete(request, draw.seed)
        if text.finish == "filtered" and not text.text.strip():
            raise AnswerError("filtered", "the server's own filter withheld the reply")
        return text

    def _says_too_little(self, stimulus: Stimulus, reply: Reply) -> Verdict | None:
        return says_too_little(stimulus, reply, self.settings.min_words, self.settings.attempts)


C = TypeVar("C", bound=ProgramSettings)


class ChatServerAgent(TalkingAgent[C]):
    """A chat model, asked in the words of :mod:`agents.language.chat_prompts`."""

    def __init__(self, settings: C, name: str) -> None:
        super().__init__(settings, name)
        self._engine.private = settings.person is not None

    def open(self) -> None:
        super().open()
        self._person = open_person(self.settings)

    def instructions(self, stimulus: ConversationStimulus, draw: Draw) -> str:
        if self.settings.person is not None:
            return person.instructions(stimulus, draw)
        parts = chat_prompts.instructions(stimulus, draw, self.settings.program, self.settings.parts)
        return "\n".join(filter(None, parts))

    def _called(self, stimulus: ConversationStimulus, draw: Draw) -> tuple[str, ...]:
        chosen = self.settings
        names = chat_prompts.called(stimulus, draw, chosen.program)
        return (*names, *chat_prompts.played(chosen.program, chosen.parts))

    def _message(self, stimulus: ConversationStimulus, text: str, draw: Draw) -> str:
        if self._person is not None:
            return person.message(stimulus, text, draw)
        return super()._message(stimulus, text, draw)

    def _says_too_little(self, stimulus: Stimulus, reply: Reply) -> Verdict | None:
        least = self.settings.min_words if self.settings.person is None else 1
        return says_too_little(stimulus, reply, least, self.settings.attempts)

    async def respond_one(self, prepared: Any, draw: Draw) -> Reply:
        is_turn = pseudo_dialogue.asked(draw) is None
        greets = is_turn and self.settings.program == "llama-3.3" and self.settings.person is None
        if greets and (said := chat_prompts.greeting(prepared, draw)) is not None:
            return said
        return await super().respond_one(prepared, draw)

    def _turn(self, stimulus: ConversationStimulus, draw: Draw) -> TextRequest:
        chosen, sampling = self.settings, self.settings.turn_sampling(draw.attempt)
        if self._person is not None:
            return self._person.request(stimulus, draw, self._person.said(stimulus, draw), sampling)
        return chat_prompts.request(stimulus, draw, stimulus.history, sampling, chosen.program, chosen.parts)

    def _dialogue(self, stimulus: ConversationStimulus, draw: Draw) -> TextRequest:
        chosen, sampling = self.settings, self.settings.turn_sampling(draw.attempt)
        if self._person is not None:
            said, about = self._person.said(stimulus, draw), self._person.about(stimulus, draw)
            return pseudo_dialogue.chat_request(stimulus, draw, said, sampling, about)
        about = chat_prompts.character(stimulus, draw, chosen.program, chosen.parts)
        return pseudo_dialogue.chat_request(stimulus, draw, stimulus.history, sampling, about)

    def _word(self, stimulus: WordStimulus, draw: Draw) -> TextRequest:
        return prompts.chat_word(stimulus, self._word_sampling())


class OpenAIChatAgent(ChatServerAgent[TalkSettings]):
    """A chat model, asked as the papers' GPT-4o."""

    Settings = TalkSettings


class OpenAICompletionAgent(TalkingAgent["OpenAICompletionAgent.Settings"]):
    """A model that continues texts, asked as the papers' GPT-3."""

    class Settings(TurnSettings):
        """The papers' choices for GPT-3."""

        separator: Literal[" ", "\n"] = " "
        """What stands between the messages in the prompt: a space, as in the papers, or a line."""
        template: prompts.Template = "2022"
        """The prompt's words: "Both ask long questions, …" (2022), or "Ask long questions, …", as printed in 2025."""
        turn_temperature: float = Field(0.8, ge=0, le=2)
        """The temperature of the first three attempts at a message."""
        turn_hottest: float = Field(1.0, ge=0, le=2)
        """The temperature from the fourth attempt on, as in the authors' program."""
        turn_tokens: int = Field(60, ge=1, le=4096)
        """The most tokens of a message."""
        attempts: int = Field(6, ge=1, le=100)
        """How often an answer is asked for at most; the last short message is kept, unless it has no word at all."""
        lower_case: float = Field(0.0, ge=0, le=1)
        """The share of messages that are put in small letters."""
        truncation: TruncationSettings | None = None
        """How a message is cut to a drawn length; none: it is not."""

        def turn_sampling(self, attempt: int) -> Sampling:
            temperature = self.turn_temperature if attempt < prompts.PATIENCE else self.turn_hottest
            return replace(super().turn_sampling(attempt), temperature=temperature)

    family = "completion"
    settings: Settings

    def instructions(self, stimulus: ConversationStimulus, draw: Draw) -> str:
        return prompts.completion_opening(stimulus, draw, self.settings.template)

    def _turn(self, stimulus: ConversationStimulus, draw: Draw) -> TextRequest:
        chosen, sampling = self.settings, self.settings.turn_sampling(draw.attempt)
        return prompts.completion_request(stimulus, draw, stimulus.history, sampling, chosen.separator, chosen.template)

    def _dialogue(self, stimulus: ConversationStimulus, draw: Draw) -> TextRequest:
        sampling = self.settings.turn_sampling(draw.attempt)
        return pseudo_dialogue.completion_request(stimulus, draw, stimulus.history, sampling)

    def _word(self, stimulus: WordStimulus, draw: Draw) -> TextRequest:
        return prompts.completion_word(stimulus, self._word_sampling())
