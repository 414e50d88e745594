"""Language models that were trained to chat (Llama, Qwen), asked as a program of the 2025 paper asked its chat models.

Everything of a turn that is left to chance is drawn from the turn's own seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from pydantic import Field

from agents.contract import GIB, Draw, Reply, Verdict
from agents.language import chat_prompts, person, prompts, pseudo_dialogue
from agents.language.engines.request import Sampling, TextRequest
from agents.language.person import PersonSettings, open_person
from agents.language.text_agent import PromptedSettings, TextAgent
from agents.language.truncation import TruncationSettings, read_lengths, says_too_little, sent_message, spoken
from agents.stimuli import ConversationStimulus, Family, Stimulus, Utterance, WordStimulus

TOKENS_PER_REMEMBERED_TURN = 80  # of a history: some messages with their times


class ChatAgent(TextAgent["ChatAgent.Settings"]):
    """Converses in the words of :mod:`agents.language.chat_prompts`; by Llama's program a first message is a greeting
    that the model is not asked for."""

    class Settings(PersonSettings, PromptedSettings):
        """The papers' choices for GPT-4o."""

        program: chat_prompts.Program = "gpt-4o"
        """The program of the papers in whose words and form it is asked to converse."""
        parts: chat_prompts.Parts | None = None
        """Parts of one's own instead, in the program's order, with {name}, {other}, {persona}, {age} and {topic}."""
        temperature: float = Field(0.6, ge=0, le=2)
        """Divides the logits; 0 takes the likeliest token."""
        hottest: float = Field(1.0, ge=0, le=2)
        """The temperature that it rises to, in equal steps."""
        rises_with: Literal["attempt", "turn"] = "attempt"
        """What the temperature rises with: the attempts at a message, or the conversation's messages from the third."""
        word_temperature: float = Field(1.0, ge=0, le=2)
        """The temperature of words; the papers' program sends none, and servers then take 1."""
        frequency_penalty: float = Field(2.0, ge=-2, le=2)
        """Taken from the logit of a token for each time that the message has it."""
        presence_penalty: float = Field(2.0, ge=-2, le=2)
        """Taken from the logit of a token that the message has."""
        max_tokens: int = Field(80, ge=1, le=4096)
        """The most tokens of a message."""
        min_words: int = Field(5, ge=0, le=1000)
        """A message of fewer words is asked for again while attempts are left; by fallback whole, before it is cut."""
        lower_case: float = Field(0.5, ge=0, le=1)
        """The share of messages that are put in small letters."""
        truncation: TruncationSettings | None = TruncationSettings()
        """How a message is cut to a drawn length; none: it is not."""

    tasks = ("conversation", "word_association")
    family: ClassVar[Family] = "chat"
    writes_dialogues = True
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

    def open(self) -> None:
        super().open()
        self._lengths = read_lengths(self.settings.truncation)
        self._person = open_person(self.settings)

    def instructions(self, stimulus: ConversationStimulus, draw: Draw) -> str:
        if self.settings.person is not None:
            return person.instructions(stimulus, draw)
        parts = chat_prompts.instructions(stimulus, draw, self.settings.program, self.settings.parts)
        return "\n".join(filter(None, parts))

    def _unasked(self, stimulus: Stimulus, draw: Draw) -> Reply | None:
        chosen = self.settings
        greets = chosen.program == "llama-3.3" and chosen.person is None and pseudo_dialogue.asked(draw) is None
        return chat_prompts.greeting(stimulus, draw) if greets else None

    def _said(self, stimulus: ConversationStimulus, draw: Draw) -> Sequence[Utterance]:
        return stimulus.history if self._person is None else self._person.said(stimulus, draw)

    def _turn(self, stimulus: ConversationStimulus, draw: Draw, history: Sequence[Utterance]) -> TextRequest:
        chosen = self.settings
        share = draw.attempt / max(self.attempts - 1, 1)
        if chosen.rises_with == "turn":
            turn = int(draw.options.get("turn", len(stimulus.history)))
            share = (turn - 2) / max(stimulus.exchanges - 2, 1)
        rise = (chosen.hottest - chosen.temperature) * min(max(share, 0.0), 1.0)
        sampling = chosen.sampling(chosen.temperature + rise, chosen.max_tokens)
        if self._person is not None:
            return self._person.request(stimulus, draw, history, sampling)
        return chat_prompts.request(stimulus, draw, history, sampling, chosen.program, chosen.parts)

    def _dialogue(self, stimulus: ConversationStimulus, draw: Draw, history: Sequence[Utterance]) -> TextRequest:
        chosen = self.settings
        about = (
            chat_prompts.character(stimulus, draw, chosen.program, chosen.parts)
            if self._person is None
            else self._person.about(stimulus, draw)
        )
        sampling = chosen.sampling(chosen.temperature, chosen.max_tokens)
        return pseudo_dialogue.chat_request(stimulus, draw, history, sampling, about)

    def _word(self, stimulus: WordStimulus, draw: Draw) -> TextRequest:
        return prompts.chat_word(
            stimulus, Sampling(self.settings.word_temperature, max_tokens=self.settings.word_tokens)
        )

    def _message(self, stimulus: ConversationStimulus, text: str, draw: Draw) -> str:
        chosen = self.settings
        if self._person is not None:
            return person.message(stimulus, text, draw)
        # Llama's program cuts from message 3 on.
        whole = chosen.program == "llama-3.3" and len(stimulus.history) == 1
        truncation = None if whole else chosen.truncation
        names = chat_prompts.called(stimulus, draw, chosen.program)
        text = spoken(stimulus, text, *names, *chat_prompts.played(chosen.program, chosen.parts))
        return sent_message(stimulus, text, draw, truncation, self._lengths, chosen.lower_case)

    def _is_cut(self, stimulus: ConversationStimulus) -> bool:
        chosen = self.settings
        return chosen.person is not None or (chosen.truncation is not None and chosen.truncation.people)

    def _says_too_little(self, stimulus: Stimulus, reply: Reply) -> Verdict | None:
        chosen = self.settings
        whole = chosen.truncation is not None and chosen.truncation.fallback == "whole"
        least = chosen.min_words if chosen.person is None else 1
        return says_too_little(stimulus, reply, least, self.attempts, before_cut=whole)
