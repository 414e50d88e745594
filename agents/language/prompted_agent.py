"""Agents with a prompt for cue words beside the one for conversations: all but the small models that only chat."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, TypeVar

from pydantic import ConfigDict, Field

from agents.answers import WordAnswer
from agents.contract import Draw, Reply, Verdict
from agents.language.engines.request import Asked, Said
from agents.language.text_agent import DrawnSettings, Request, TextAgent
from agents.language.words.replies import no_word, word_answer
from agents.language.words.rules import RuleSettings
from agents.stimuli import Stimulus, Task, WordStimulus


class PromptedSettings(DrawnSettings):
    """How words are asked for and which of them may be answers."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    word_tokens: int = Field(10, ge=1, le=4096)
    """The most tokens of a reply in word association."""
    word_rules: RuleSettings = RuleSettings()
    """Which words of a reply may be the answer."""


P = TypeVar("P", bound=PromptedSettings)


class PromptedAgent(TextAgent[P]):
    """Base of the agents that converse and answer cue words."""

    tasks: ClassVar[tuple[Task, ...]] = ("conversation", "word_association")

    @abstractmethod
    def _word(self, stimulus: WordStimulus, draw: Draw) -> Asked:
        """What is asked for a word."""

    def _request(self, stimulus: Stimulus, draw: Draw) -> Request:
        if isinstance(stimulus, WordStimulus):
            return Request(self._word(stimulus, draw))
        return super()._request(stimulus, draw)

    def _reply(self, stimulus: Stimulus, draw: Draw, request: Request, said: Said) -> Reply:
        if isinstance(stimulus, WordStimulus):
            return Reply(word_answer(stimulus, said.text, self.settings.word_rules), said.text)
        return super()._reply(stimulus, draw, request, said)

    def _too_few_words(self, stimulus: Stimulus, reply: Reply) -> Verdict | None:
        if isinstance(reply.answer, WordAnswer):
            return no_word(reply.answer, str(reply.raw))
        return super()._too_few_words(stimulus, reply)
