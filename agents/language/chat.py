"""Models that chat or continue a text, prompted as in the papers' programs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Literal, TypeVar

from pydantic import Field

from agents.contract import GIB, Draw, Reply, Settings, Verdict
from agents.language import person, prompts, pseudo_dialogue
from agents.language.engines.text_request import Sampling, TextRequest
from agents.language.person import PersonSettings, open_person
from agents.language.sent_messages import TruncationSettings, own_part, read_lengths, sent_message, spoken, too_short
from agents.language.text_agent import (
    DrawnSettings,
    EngineChoice,
    EngineSettings,
    LocalAgent,
    TextAgent,
    TextSettings,
    WordSettings,
)
from agents.stimuli import ConversationStimulus, Family, Stimulus, Task, Utterance, WordStimulus

TOKENS_PER_REMEMBERED_TURN = 80  # of a history: some messages with their times


class SentSettings(Settings):
    """What becomes of a message before it is sent."""

    word_temperature: float = Field(1.0, ge=0, le=2)
    """The temperature of words; the papers' program sends none, and servers then take 1."""
    lower_case: float = Field(0.5, ge=0, le=1)
    """The share of messages that are put in small letters."""
    truncation: TruncationSettings | None = TruncationSettings()
    """How a message is cut to a drawn length; none: it is not."""


class PromptedSettings(WordSettings, TextSettings):
    """Which replies are drawn again, and how."""

    min_words: int = Field(5, ge=0, le=1000)
    """A message of fewer words is drawn again while attempts are left."""

    @abstractmethod
    def turn_sampling(self, stimulus: ConversationStimulus, draw: Draw) -> Sampling:
        """How a message is drawn."""

    def dialogue_sampling(self, stimulus: ConversationStimulus, draw: Draw) -> Sampling:
        """How a part of a pseudo-dialogue is drawn."""
        return self.turn_sampling(stimulus, draw)


class ChatPromptSettings(PersonSettings, SentSettings, PromptedSettings):
    """How a chat model is prompted to converse."""

    program: prompts.Program = "gpt-4o"
    """The program of the papers in whose words and form it is prompted."""
    parts: prompts.Parts | None = None
    """Other parts instead, in the program's order, with {name}, {other}, {persona}, {age} and {topic}."""
    min_words: int = Field(5, ge=0, le=1000)
    """A message of fewer words, once it is cut, is drawn again while attempts are left; by fallback whole, before."""


C = TypeVar("C", bound=ChatPromptSettings)


class BaseChatAgent(TextAgent[C]):
    """Converses by :mod:`agents.language.prompts`, or as a person."""

    tasks: ClassVar[tuple[Task, ...]] = ("conversation", "word_association")
    family: ClassVar[Family] = "chat"
    writes_dialogues = True

    def open(self) -> None:
        super().open()
        self._lengths = read_lengths(self.settings.truncation)
        self._person = open_person(self.settings)

    def instructions(self, stimulus: ConversationStimulus, draw: Draw) -> str:
        if self.settings.person is not None:
            return person.instructions(stimulus, draw)
        parts = prompts.chat_instructions(stimulus, draw, self.settings.program, self.settings.parts)
        return "\n".join(filter(None, parts))

    def _fixed_reply(self, stimulus: Stimulus, draw: Draw) -> Reply | None:
        settings = self.settings
        is_turn = settings.person is None and "pseudo" not in draw.options
        return prompts.llama_greeting(stimulus, draw) if is_turn and settings.program == "llama-3.3" else None

    def _earlier(self, stimulus: ConversationStimulus, draw: Draw) -> Sequence[Utterance]:
        return stimulus.history if self._person is None else self._person.earlier(stimulus, draw)

    def _turn(self, stimulus: ConversationStimulus, draw: Draw, history: Sequence[Utterance]) -> TextRequest:
        settings, sampling = self.settings, self.settings.turn_sampling(stimulus, draw)
        if self._person is not None:
            return self._person.request(stimulus, draw, history, sampling)
        return prompts.chat_request(stimulus, draw, history, sampling, settings.program, settings.parts)

    def _dialogue(self, stimulus: ConversationStimulus, draw: Draw, history: Sequence[Utterance]) -> TextRequest:
        settings, sampling = self.settings, self.settings.dialogue_sampling(stimulus, draw)
        if self._person is not None:
            character = self._person.character(stimulus, draw)
        else:
            system, _ = prompts.chat_instructions(stimulus, draw, settings.program, settings.parts)
            character = system if settings.program in prompts.ONE_SIDED else ""
        return pseudo_dialogue.pseudo_chat_request(stimulus, draw, history, sampling, character)

    def _word(self, stimulus: WordStimulus, draw: Draw) -> TextRequest:
        settings = self.settings
        return prompts.chat_word(stimulus, Sampling(settings.word_temperature, max_tokens=settings.word_tokens))

    def _message(self, stimulus: ConversationStimulus, text: str, draw: Draw) -> str:
        settings = self.settings
        if self._person is not None:
            return own_part(stimulus, text, *prompts.speakers(stimulus, draw.options))
        # Llama's program cuts from message 3 on.
        is_whole = settings.program == "llama-3.3" and len(stimulus.history) == 1
        truncation = None if is_whole else settings.truncation
        text = spoken(stimulus, text, *prompts.chat_names(stimulus, draw, settings.program, settings.parts))
        return sent_message(stimulus, text, draw, truncation, self._lengths, settings.lower_case)

    def _cuts(self, stimulus: ConversationStimulus) -> bool:
        settings = self.settings
        return settings.person is not None or (settings.truncation is not None and settings.truncation.people)

    def _too_short(self, stimulus: Stimulus, reply: Reply) -> Verdict | None:
        settings = self.settings
        least = settings.min_words if settings.person is None else 1
        is_kept_whole = settings.truncation is not None and settings.truncation.fallback == "whole"
        return too_short(stimulus, reply, least, settings.attempts, before_cut=is_kept_whole)


class ChatAgent(BaseChatAgent["ChatAgent.Settings"], LocalAgent["ChatAgent.Settings"]):
    """A chat model that runs here."""

    class Settings(ChatPromptSettings, DrawnSettings, EngineChoice, EngineSettings):
        """The papers' choices for GPT-4o."""

        temperature: float = Field(0.6, ge=0, le=2)
        """Divides the logits; 0 takes the likeliest token."""
        hottest: float = Field(1.0, ge=0, le=2)
        """The temperature that it rises to, in equal steps."""
        rises_with: Literal["attempt", "turn"] = "attempt"
        """What the temperature rises with: the attempts at a message, or the conversation's messages from the third."""
        max_tokens: int = Field(80, ge=1, le=4096)
        """The most tokens of a message."""

        def turn_sampling(self, stimulus: ConversationStimulus, draw: Draw) -> Sampling:
            share = draw.attempt / max(self.attempts - 1, 1)
            if self.rises_with == "turn":
                turn = int(draw.options.get("turn", len(stimulus.history)))
                share = (turn - 2) / max(stimulus.exchanges - 2, 1)
            rise = (self.hottest - self.temperature) * min(max(share, 0.0), 1.0)
            return self.sampling(self.temperature + rise, self.max_tokens)

        def dialogue_sampling(self, stimulus: ConversationStimulus, draw: Draw) -> Sampling:
            return self.sampling(self.temperature, self.max_tokens)

    memory = 36 * GIB  # 8 thousand million weights in fp32
    device_memory = 24 * GIB
    working_memory = 6 * GIB  # long prompts' caches
    batch_size = 16
    model_types = ("llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "phi3", "olmo2")

    settings: Settings

    def __init__(self, settings: ChatAgent.Settings, name: str) -> None:
        super().__init__(settings, name)
        if settings.person is not None:
            self.prompt_tokens += TOKENS_PER_REMEMBERED_TURN * settings.person_turns


class SmallChatAgent(ChatAgent):
    """A chat model of at most some hundred million weights."""

    memory = 2 * GIB
    device_memory = 2 * GIB
    working_memory = 3 * GIB // 2


# models that continue a text


class CompletionPromptSettings(PromptedSettings):
    """The papers' prompt for GPT-3."""

    separator: Literal[" ", "\n"] = " "
    """What stands between messages in the prompt: a space, as in the papers, or a line, as in their program."""
    template: prompts.Template = "2022"
    """The prompt's words: "Both ask long questions, …" (2022), or "Ask long questions, …", as printed in 2025."""

    @abstractmethod
    def word_sampling(self, draw: Draw) -> Sampling:
        """How a word is drawn."""


T = TypeVar("T", bound=CompletionPromptSettings)


class BaseCompletionAgent(TextAgent[T]):
    """The prompt is a dialogue; a message ends at a name."""

    tasks: ClassVar[tuple[Task, ...]] = ("conversation", "word_association")
    family: ClassVar[Family] = "completion"
    writes_dialogues = True

    def instructions(self, stimulus: ConversationStimulus, draw: Draw) -> str:
        return prompts.completion_opening(stimulus, draw, self.settings.template)

    def _turn(self, stimulus: ConversationStimulus, draw: Draw, history: Sequence[Utterance]) -> TextRequest:
        settings, sampling = self.settings, self.settings.turn_sampling(stimulus, draw)
        return prompts.completion_request(stimulus, draw, history, sampling, settings.separator, settings.template)

    def _dialogue(self, stimulus: ConversationStimulus, draw: Draw, history: Sequence[Utterance]) -> TextRequest:
        sampling = self.settings.dialogue_sampling(stimulus, draw)
        return pseudo_dialogue.pseudo_completion_request(stimulus, draw, history, sampling)

    def _word(self, stimulus: WordStimulus, draw: Draw) -> TextRequest:
        return prompts.completion_word(stimulus, self.settings.word_sampling(draw))


class CompletionAgent(BaseCompletionAgent["CompletionAgent.Settings"], LocalAgent["CompletionAgent.Settings"]):
    """A completion model that runs here."""

    class Settings(CompletionPromptSettings, DrawnSettings, EngineChoice, EngineSettings):
        """The papers' choices for GPT-3."""

        temperature: float = Field(0.8, ge=0, le=2)
        """Divides the logits of the first three attempts; 0 takes the likeliest token."""
        retry_temperature: float = Field(1.0, ge=0, le=2)
        """The same from the fourth attempt on, as in the authors' program."""

        def turn_sampling(self, stimulus: ConversationStimulus, draw: Draw) -> Sampling:
            return self.sampling(self._temperature(draw), self.max_tokens)

        def word_sampling(self, draw: Draw) -> Sampling:
            return self.sampling(self._temperature(draw), self.word_tokens)

        def _temperature(self, draw: Draw) -> float:
            return self.temperature if draw.attempt < prompts.PATIENCE else self.retry_temperature

    chats = False
    memory = 6 * GIB
    device_memory = 6 * GIB
    model_types = (
        "gpt2", "gpt_neo", "gptj", "gpt_neox", "opt", "llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "phi3",
        "olmo2",
    )  # fmt: skip
    settings: Settings
