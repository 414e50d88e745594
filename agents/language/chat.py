"""Language models that were trained to chat (Llama, Qwen), each in the part of one of two friends.

How they are asked follows the papers' chat models (GPT-4o, Claude) or Llama 3.3, by the settings. Everything of a turn
that is left to chance is drawn from the turn's own seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from agents.contract import GIB, Draw
from agents.language import prompts
from agents.language.engines.request import Sampling, TextRequest
from agents.language.text_agent import PromptedSettings, TextAgent
from agents.language.truncation import TruncationSettings, read_lengths, sent_message
from agents.stimuli import ConversationStimulus, Utterance, WordStimulus
from agents.tasks import Family


class ChatAgent(TextAgent["ChatAgent.Settings"]):
    """The other's messages are the user's, its own the assistant's, and its part is the system message."""

    class Settings(PromptedSettings):
        """The papers' choices for GPT-4o and Claude."""

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

    tasks = ("conversation", "word_association")
    family: ClassVar[Family] = "chat"
    memory = 36 * GIB  # 8 thousand million weights in fp32
    device_memory = 24 * GIB
    working_memory = 6 * GIB  # long prompts' caches
    batch_size = 16
    model_types = ("llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "phi3", "olmo2")

    settings: Settings

    def open(self) -> None:
        super().open()
        self._lengths = read_lengths(self.settings.truncation)

    def instructions(self, stimulus: ConversationStimulus, draw: Draw) -> str:
        template = f"{self.settings.prompt}\n{prompts.PLAIN}" if self.settings.plain else self.settings.prompt
        return prompts.chat_part(stimulus, draw, template, self.settings.ages)

    def _turn(self, stimulus: ConversationStimulus, draw: Draw, history: Sequence[Utterance]) -> TextRequest:
        chosen = self.settings
        share = self._share_of_attempts(draw)
        if chosen.rises_with == "turn":
            turn = int(draw.options.get("turn", len(stimulus.history)))
            share = turn / max(stimulus.exchanges - 1, 1)
        return prompts.chat_request(
            stimulus,
            draw,
            history,
            self._sampling(share, chosen.max_tokens),
            part=self.instructions(stimulus, draw),
            greeting=prompts.greeting(stimulus, draw.sample, chosen.greetings),
        )

    def _word(self, stimulus: WordStimulus, draw: Draw) -> TextRequest:
        return prompts.chat_word(stimulus, self._sampling(self._share_of_attempts(draw), self.settings.word_tokens))

    def _message(self, text: str, draw: Draw) -> str:
        return sent_message(text, draw, self.settings.truncation, self._lengths, self.settings.lower_case)

    def _share_of_attempts(self, draw: Draw) -> float:
        return draw.attempt / max(self.attempts - 1, 1)

    def _sampling(self, share: float, most: int) -> Sampling:
        """The temperature rises with ``share``, from 0 to 1."""
        chosen = self.settings
        rise = chosen.hottest - chosen.temperature
        return chosen.sampling(chosen.temperature + rise * min(max(share, 0.0), 1.0), most)
