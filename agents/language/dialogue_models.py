"""DialoGPT (Zhang et al. 2020, arXiv 1911.00536) and BlenderBot (Roller et al. 2021, arXiv 2004.13637).

Both were trained on messages alone and read no instructions. They learn of a topic only from the greeting, which is put
before the first message as if the other speaker had said it.
"""

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
"""DialoGPT's form of a chat (Jinja): every message is followed by the end of text."""
BLENDERBOT_TEMPLATE = (
    "{% for message in messages %}{{ ' ' + message['content'] }}{% if not loop.last %}{{ '  ' }}{% endif %}{% endfor %}"
    "{{ eos_token }}"
)
"""BlenderBot's form of a chat (Jinja): a space before each message, as its words had in training, and two between
messages."""
GREETINGS = ("Hi!\nWhat do you think about {topic}?",)
"""What the other speaker says before a model's first message, unless the settings say otherwise."""


class DialoGPTAgent(TextAgent["DialoGPTAgent.Settings"], LocalAgent[Any]):
    """Continues the conversation's messages, each followed by the end of text."""

    class Settings(DrawnSettings, EngineSettings):
        """How a message is drawn. The penalties of the papers' chat models are off."""

        frequency_penalty: float = Field(0.0, ge=-2, le=2)
        """Subtracted from a token's logit for each time that the message has the token."""
        presence_penalty: float = Field(0.0, ge=-2, le=2)
        """Subtracted from the logit of every token that the message has."""
        top_k: int = Field(10, ge=0, le=1_000_000)
        """Draws are among this many of the likeliest tokens; 0: among all."""
        greetings: Annotated[tuple[str, ...], Field(min_length=1)] = GREETINGS
        """What the other says before the first message; a line with {topic} is left out where the topic is unknown."""

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
    """Says the best beam after the newest messages that fit into the encoder, which has 128 positions."""

    class Settings(TextSettings, EngineSettings):
        """The beam search; the defaults are the published model's."""

        attempts: int = Field(1, ge=1, le=1)
        """Always 1: beam search says the same each time."""
        beams: int = Field(10, ge=1, le=64)
        """The width of the beam search; with 1 beam it takes the likeliest token each time."""
        min_tokens: int = Field(20, ge=1, le=4096)
        """The least number of tokens, the start token included."""
        max_tokens: int = Field(60, ge=2, le=4096)
        """The largest number of tokens, the start token and the end token included."""
        length_penalty: float = Field(0.65, ge=-10, le=10)
        """Beam scores are divided by the length to this power; below 0 favours short messages."""
        no_repeat_ngram: int = Field(3, ge=0, le=20)
        """A sequence of this many tokens stands once at most in the message and those before it; 0: no such rule."""
        greetings: Annotated[tuple[str, ...], Field(min_length=1)] = GREETINGS
        """What the other says before the first message; a line with {topic} is left out where the topic is unknown."""

    declares = Declaration(
        family="blenderbot",
        memory=14 * GIB,
        device_memory=10 * GIB,
    )
    working_memory = 2 * GIB
    model_types = ("blenderbot",)
    template = BLENDERBOT_TEMPLATE

    def make_engine(self) -> TransformersEngine:
        """An engine that searches with beams. ``length_penalty`` is given to a true search alone, as transformers warns
        of it elsewhere."""
        settings = self.settings
        search: dict[str, Any] = {
            "num_beams": settings.beams,
            "no_repeat_ngram_size": settings.no_repeat_ngram,
            "forced_eos_token_id": not self.random,
        }
        if settings.beams > 1:
            search["length_penalty"] = settings.length_penalty
        return TransformersEngine(self.folder(), precision=settings.precision, beams=search, template=self.template)

    def _turn(self, stimulus: ConversationStimulus, draw: Draw, history: Sequence[Utterance]) -> TextRequest:
        # The engine counts the tokens after the start token.
        least = self.settings.min_tokens - 1
        most = self.settings.max_tokens - 1
        sampling = Sampling(temperature=0, min_tokens=least, max_tokens=most)
        return prompts.dialogue_request(stimulus, draw, history, sampling, self.settings.greetings)
