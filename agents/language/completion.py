"""Language models that continue a text (GPT-2 and its like), asked with the papers' prompt for GPT-3.

In word association they continue the papers' question, or the example pairs (2022 paper, Table S6).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from pydantic import Field

from agents.contract import GIB, Draw
from agents.language import prompts, pseudo_dialogue
from agents.language.engines.request import Sampling, TextRequest
from agents.language.text_agent import PromptedSettings, TextAgent
from agents.stimuli import ConversationStimulus, Family, Utterance, WordStimulus


class CompletionAgent(TextAgent["CompletionAgent.Settings"]):
    """The prompt tells of two people who greet each other, and grows with what they say; a message ends at a name.

    Where the model has no positions for all of it, the oldest messages are left out and the opening stays.
    """

    class Settings(PromptedSettings):
        """The papers' choices for GPT-3."""

        temperature: float = Field(0.8, ge=0, le=2)
        """Divides the logits of the first three attempts; 0 takes the likeliest token."""
        retry_temperature: float = Field(1.0, ge=0, le=2)
        """The same from the fourth attempt on, as in the authors' program."""
        frequency_penalty: float = Field(2.0, ge=-2, le=2)
        """Taken from the logit of a token for each time that the message has it."""
        presence_penalty: float = Field(2.0, ge=-2, le=2)
        """Taken from the logit of a token that the message has."""
        min_words: int = Field(5, ge=0, le=1000)
        """A message of fewer words is asked for again while attempts are left."""
        attempts: int = Field(6, ge=1, le=100)
        """How often a message or a word is asked for; the last short message is kept, unless it has no word at all."""
        separator: Literal[" ", "\n"] = " "
        """What stands between messages in the prompt: a space, as in the papers, or a line, as in their program."""
        template: prompts.Template = "2022"
        """The prompt's words: "Both ask long questions, …" (2022), or "Ask long questions, …", as printed in 2025."""

    tasks = ("conversation", "word_association")
    family: ClassVar[Family] = "completion"
    chats = False
    writes_dialogues = True
    memory = 6 * GIB
    device_memory = 6 * GIB
    model_types = (
        "gpt2", "gpt_neo", "gptj", "gpt_neox", "opt", "llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "phi3",
        "olmo2",
    )  # fmt: skip

    settings: Settings

    def instructions(self, stimulus: ConversationStimulus, draw: Draw) -> str:
        return prompts.completion_opening(stimulus, draw, self.settings.template)

    def _turn(self, stimulus: ConversationStimulus, draw: Draw, history: Sequence[Utterance]) -> TextRequest:
        chosen = self.settings
        sampling = self._sampling(draw, chosen.max_tokens)
        return prompts.completion_request(stimulus, draw, history, sampling, chosen.separator, chosen.template)

    def _dialogue(self, stimulus: ConversationStimulus, draw: Draw, history: Sequence[Utterance]) -> TextRequest:
        sampling = self._sampling(draw, self.settings.max_tokens)
        return pseudo_dialogue.completion_request(stimulus, draw, history, sampling)

    def _word(self, stimulus: WordStimulus, draw: Draw) -> TextRequest:
        return prompts.completion_word(stimulus, self._sampling(draw, self.settings.word_tokens))

    def _sampling(self, draw: Draw, most: int) -> Sampling:
        chosen = self.settings
        return chosen.sampling(
            chosen.temperature if draw.attempt < prompts.PATIENCE else chosen.retry_temperature, most
        )
