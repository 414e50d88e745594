"""DialoGPT (Zhang et al. 2020, arXiv 1911.00536), BlenderBot (Roller et al. 2021, arXiv 2004.13637). They know a topic
only from the greeting."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field

from agents.contract import GIB, Declaration, Draw
from agents.language import prompts
from agents.language.engines.text_request import Sampling, TextRequest
from agents.language.engines.transformers import TransformersEngine
from agents.language.hosts import EngineSettings, LocalAgent
from agents.language.text_agent import DrawnSettings, TextAgent, TextSettings
from agents.stimuli import ConversationStimulus, Utterance

DIALOGPT_TEMPLATE = "{% for message in messages %}{{ message['content'] }}{{ eos_token }}{% endfor %}"
# A space before each message, as its words were in training, and two between messages.
BLENDERBOT_TEMPLATE = (
    "{% for message in messages %}{{ ' ' + message['content'] }}{% if not loop.last %}{{ '  ' }}{% endif %}{% endfor %}"
    "{{ eos_token }}"
)
GREETINGS = ("Hi!\nWhat do you think about {topic}?",)


class DialoGPTAgent(TextAgent["DialoGPTAgent.Settings"], LocalAgent[Any]):
    """Continues all messages, each followed by the end of text."""

    class Settings(DrawnSettings, EngineSettings):
        frequency_penalty: float = Field(0.0, ge=-2, le=2)
        """Taken from the logit of a token for each time that the message has it."""
        presence_penalty: float = Field(0.0, ge=-2, le=2)
        """Taken from the logit of a token that the message has."""
        top_k: int = Field(10, ge=0, le=1_000_000)
        """Only the so many likeliest tokens; 0: all."""
        greetings: Annotated[tuple[str, ...], Field(min_length=1)] = GREETINGS
        """The other's words before the first message; a line with a {topic} not known goes."""

    declares = Declaration(
        memory=6 * GIB,
        device_memory=5 * GIB,
        batch_size=32,
    )
    working_memory = 2 * GIB
    model_types = ("gpt2",)
    template = DIALOGPT_TEMPLATE

    def _turn(self, stimulus: ConversationStimulus, draw: Draw, history: Sequence[Utterance]) -> TextRequest:
        sampling = replace(self.settings.sampling(self.settings.temperature), min_tokens=1)
        return prompts.dialogue_request(stimulus, draw, history, sampling, self.settings.greetings)


class BlenderbotAgent(TextAgent["BlenderbotAgent.Settings"], LocalAgent[Any]):
    """The best beam after the newest messages that fit the encoder (128 positions)."""

    class Settings(TextSettings, EngineSettings):
        attempts: int = Field(1, ge=1, le=1)
        """Beam search says the same each time."""
        beams: int = Field(10, ge=1, le=64)
        """Width of the beam search; greedy with 1 beam."""
        min_tokens: int = Field(20, ge=1, le=4096)
        """The least number of tokens, the start token included."""
        max_tokens: int = Field(60, ge=2, le=4096)
        """The largest number of tokens, the start token and the end token included."""
        length_penalty: float = Field(0.65, ge=-10, le=10)
        """Beam scores are divided by the length to this power; below 0 favours short messages."""
        no_repeat_ngram: int = Field(3, ge=0, le=20)
        """No sequence of so many tokens stands twice in the message, nor in it and those before; 0: no such rule."""
        greetings: Annotated[tuple[str, ...], Field(min_length=1)] = GREETINGS
        """The other's words before the first message; a line with a {topic} not known goes."""

    declares = Declaration(
        family="blenderbot",
        memory=14 * GIB,
        device_memory=10 * GIB,
    )
    working_memory = 2 * GIB
    model_types = ("blenderbot",)
    template = BLENDERBOT_TEMPLATE

    def make_engine(self) -> TransformersEngine:
        chosen = self.settings
        beams: dict[str, Any] = {
            "num_beams": chosen.beams,
            "no_repeat_ngram_size": chosen.no_repeat_ngram,
            "forced_eos_token_id": not self.random,
        }
        if chosen.beams > 1:
            beams["length_penalty"] = chosen.length_penalty
        return TransformersEngine(self.folder(), precision=chosen.precision, beams=beams, template=self.template)

    def _turn(self, stimulus: ConversationStimulus, draw: Draw, history: Sequence[Utterance]) -> TextRequest:
        # The engine counts the tokens after the start token.
        least = self.settings.min_tokens - 1
        most = self.settings.max_tokens - 1
        sampling = Sampling(temperature=0, min_tokens=least, max_tokens=most)
        return prompts.dialogue_request(stimulus, draw, history, sampling, self.settings.greetings)
