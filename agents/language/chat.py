"""Language models that were trained to chat (Llama, Qwen), each in the part of one of two friends.

How they are asked follows the papers' chat models (GPT-4o, Claude) or Llama 3.3, by the settings. Everything of a turn
that is left to chance is drawn from the turn's own seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from agents.contract import GIB, Draw
from agents.language import prompts, turns
from agents.language.engines.request import Asked, Sampling
from agents.language.engines.vllm import VLLMSettings
from agents.language.prompted_agent import PromptedAgent, PromptedSettings
from agents.language.truncation import TruncationSettings
from agents.stimuli import ConversationStimulus, Utterance, WordStimulus
from agents.tasks import Family


class ChatAgent(PromptedAgent["ChatAgent.Settings"]):
    """The other's messages are the user's, its own the assistant's, and its part is the system message."""

    class Settings(PromptedSettings):
        """The papers' choices for GPT-4o and Claude."""

        engine: Literal["transformers", "vllm"] = "transformers"
        """What runs the model."""
        vllm: VLLMSettings = VLLMSettings()
        """How vLLM runs it, where that is the engine."""
        prompt: str = prompts.CHAT
        """The part, with {name}, {other}, {persona}, {age} and {topic}; a line with one that is not known goes."""
        plain: bool = False
        """Whether the part goes on with the rules for Llama: no emojis, no asterisks, no announcing of the part."""
        greetings: Annotated[tuple[str, ...], Field(min_length=1)] = (prompts.GREETING,)
        """What the other is taken to have said before the first message; one is drawn for each conversation."""
        ages: bool = False
        """Whether the two have ages, drawn for each conversation: 18 to 70 years, at most five apart."""
        temperature: float = Field(0.6, ge=0, le=2)
        """Divides the logits; 0 takes the likeliest token."""
        hottest: float = Field(1.0, ge=0, le=2)
        """The temperature that it rises to, in equal steps."""
        rises_with: Literal["attempt", "turn"] = "attempt"
        """What the temperature rises with: the attempts at a message, or the messages of the conversation."""
        frequency_penalty: float = Field(2.0, ge=-2, le=2)
        """Taken from the logit of a token for each time that the message has it."""
        presence_penalty: float = Field(2.0, ge=-2, le=2)
        """Taken from the logit of a token that the message has."""
        max_tokens: int = Field(80, ge=1, le=4096)
        """The most tokens of a message."""
        min_words: int = Field(5, ge=0, le=1000)
        """A message of fewer words, before it is cut, is asked for again while attempts are left."""
        lower_case: float = Field(0.5, ge=0, le=1)
        """The share of messages that are put in small letters."""
        truncation: TruncationSettings | None = TruncationSettings()
        """How a message is cut to a drawn length; none: it is not."""

    family: ClassVar[Family] = "chat"
    memory = 36 * GIB  # 8 thousand million weights in fp32
    device_memory = 24 * GIB
    working_memory = 6 * GIB  # long prompts' caches
    batch_size = 16
    model_types = ("llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "phi3", "olmo2")

    settings: Settings

    def open(self) -> None:
        super().open()
        self._lengths = turns.lengths(self.settings.truncation)

    def instructions(self, stimulus: ConversationStimulus, draw: Draw) -> str:
        template = f"{self.settings.prompt}\n{prompts.PLAIN}" if self.settings.plain else self.settings.prompt
        return turns.chat_part(stimulus, draw, template, self.settings.ages)

    def _turn(self, stimulus: ConversationStimulus, draw: Draw, history: Sequence[Utterance]) -> Asked:
        chosen = self.settings
        share = turns.tried(draw, self.attempts)
        if chosen.rises_with == "turn":
            said = int(draw.options.get("turn", len(stimulus.history)))
            share = said / max(stimulus.exchanges - 1, 1)
        return turns.chat(
            stimulus,
            draw,
            history,
            self._sampling(share, chosen.max_tokens),
            part=self.instructions(stimulus, draw),
            greeting=prompts.greeting(stimulus, draw.sample, chosen.greetings),
        )

    def _word(self, stimulus: WordStimulus, draw: Draw) -> Asked:
        return turns.chat_word(stimulus, self._sampling(turns.tried(draw, self.attempts), self.settings.word_tokens))

    def _message(self, text: str, draw: Draw) -> str:
        return turns.message(text, draw, self.settings.truncation, self._lengths, self.settings.lower_case)

    def _sampling(self, share: float, most: int) -> Sampling:
        chosen = self.settings
        return Sampling(
            temperature=chosen.temperature + (chosen.hottest - chosen.temperature) * min(max(share, 0.0), 1.0),
            top_p=chosen.top_p,
            top_k=chosen.top_k,
            frequency_penalty=chosen.frequency_penalty,
            presence_penalty=chosen.presence_penalty,
            max_tokens=most,
        )
