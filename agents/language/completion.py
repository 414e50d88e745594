"""Models that continue a text, here or on a server, with the papers' prompt for GPT-3.

In word association they continue the papers' question, or the example pairs (2022 paper, Table S6).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal, TypeVar

from pydantic import Field

from agents.contract import GIB, Draw
from agents.language import prompts, pseudo_dialogue
from agents.language.engines.text_request import Sampling, TextRequest
from agents.language.text_agent import (
    DrawnSettings,
    EngineChoice,
    EngineSettings,
    LocalAgent,
    TextAgent,
    TextSettings,
    WordSettings,
)
from agents.stimuli import ConversationStimulus, Family, Task, Utterance, WordStimulus


class CompletionPromptSettings(WordSettings, TextSettings):
    """The papers' prompt for GPT-3."""

    min_words: int = Field(5, ge=0, le=1000)
    """A message of fewer words is drawn again while attempts are left."""
    separator: Literal[" ", "\n"] = " "
    """What stands between messages in the prompt: a space, as in the papers, or a line, as in their program."""
    template: prompts.Template = "2022"
    """The prompt's words: "Both ask long questions, …" (2022), or "Ask long questions, …", as printed in 2025."""

    def turn_sampling(self, draw: Draw) -> Sampling:
        """How a message is drawn."""
        raise NotImplementedError

    def word_sampling(self, draw: Draw) -> Sampling:
        """How a word is drawn."""
        raise NotImplementedError


C = TypeVar("C", bound=CompletionPromptSettings)


class BaseCompletionAgent(TextAgent[C]):
    """The prompt tells of two people who greet each other, and grows with their messages; a message ends at a name.

    Where the model has no positions for all of it, the oldest messages are left out and the opening stays.
    """

    tasks: ClassVar[tuple[Task, ...]] = ("conversation", "word_association")
    family: ClassVar[Family] = "completion"
    writes_dialogues = True

    def instructions(self, stimulus: ConversationStimulus, draw: Draw) -> str:
        return prompts.completion_opening(stimulus, draw, self.settings.template)

    def _turn(self, stimulus: ConversationStimulus, draw: Draw, history: Sequence[Utterance]) -> TextRequest:
        settings, sampling = self.settings, self.settings.turn_sampling(draw)
        return prompts.completion_request(stimulus, draw, history, sampling, settings.separator, settings.template)

    def _dialogue(self, stimulus: ConversationStimulus, draw: Draw, history: Sequence[Utterance]) -> TextRequest:
        return pseudo_dialogue.completion_request(stimulus, draw, history, self.settings.turn_sampling(draw))

    def _word(self, stimulus: WordStimulus, draw: Draw) -> TextRequest:
        return prompts.completion_word(stimulus, self.settings.word_sampling(draw))


class CompletionAgent(BaseCompletionAgent["CompletionAgent.Settings"], LocalAgent["CompletionAgent.Settings"]):
    """A model that runs here (GPT-2 and its like)."""

    class Settings(CompletionPromptSettings, DrawnSettings, EngineChoice, EngineSettings):
        """The papers' choices for GPT-3."""

        temperature: float = Field(0.8, ge=0, le=2)
        """Divides the logits of the first three attempts; 0 takes the likeliest token."""
        retry_temperature: float = Field(1.0, ge=0, le=2)
        """The same from the fourth attempt on, as in the authors' program."""
        frequency_penalty: float = Field(2.0, ge=-2, le=2)
        """Taken from the logit of a token for each time that the message has it."""
        presence_penalty: float = Field(2.0, ge=-2, le=2)
        """Taken from the logit of a token that the message has."""

        def turn_sampling(self, draw: Draw) -> Sampling:
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
