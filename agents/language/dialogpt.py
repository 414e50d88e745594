"""DialoGPT (Zhang et al. 2020, arXiv 1911.00536): GPT-2 trained on exchanges of messages, joined by its end token.

It knows no topic and no persona; the topic is in the greeting that goes before its first message. Messages are drawn
from the ten likeliest tokens, as its authors drew theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

from pydantic import Field

from agents.contract import GIB, Draw
from agents.language import prompts
from agents.language.engines.request import TextRequest
from agents.language.engines.transformers import TransformersEngine
from agents.language.text_agent import DrawnSettings, TextAgent
from agents.stimuli import ConversationStimulus, Utterance

TEMPLATE = "{% for message in messages %}{{ message['content'] }}{{ eos_token }}{% endfor %}"


class DialoGPTAgent(TextAgent["DialoGPTAgent.Settings"]):
    """All messages, whoever said them, each followed by the end of text, are continued by the next."""

    class Settings(DrawnSettings):
        """How messages are drawn."""

        top_k: int = Field(10, ge=0, le=1_000_000)
        """Only the so many likeliest tokens; 0: all."""
        greetings: Annotated[tuple[str, ...], Field(min_length=1)] = ("Hi!\nWhat do you think about {topic}?",)
        """What the other is taken to have said before the first message; a line with a {topic} not known goes."""

    memory = 6 * GIB
    device_memory = 5 * GIB
    model_types = ("gpt2",)

    settings: Settings

    def make_engine(self) -> TransformersEngine:
        return TransformersEngine(self.folder(), precision=self.settings.precision, template=TEMPLATE)

    def _turn(self, stimulus: ConversationStimulus, draw: Draw, history: Sequence[Utterance]) -> TextRequest:
        name, _ = prompts.speakers(stimulus, draw.options)
        is_whole = len(history) == len(stimulus.history)
        greeting = prompts.greeting(stimulus, draw.sample, self.settings.greetings) if is_whole else None
        sampling = self.settings.sampling(self.settings.temperature, self.settings.max_tokens)
        return TextRequest(messages=prompts.chat(name, history, greeting), sampling=replace(sampling, min_tokens=1))
