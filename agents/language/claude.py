"""Claude on Anthropic's servers, asked as the 2025 paper's program asked it (kreimanlab/TuringTest, "Claude.py").

One thing is otherwise: where a reply has fewer than two words the program asks again, without end, at the same
temperature; here that is one of the attempts at the message, so that it stands in the record.
"""

from __future__ import annotations

from pydantic import ConfigDict, Field

from agents.language import chat_prompts
from agents.language.engines.anthropic import AnthropicEngine, AnthropicSettings
from agents.language.openai_chat import ChatServerAgent, ProgramSettings
from agents.language.truncation import TruncationSettings


class ClaudeSettings(AnthropicSettings, ProgramSettings):
    """The papers' choices for Claude."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    program: chat_prompts.Program = "claude"
    """The program of the papers in whose words and form it is asked to converse."""
    turn_temperature: float = Field(0.6, ge=0, le=1)
    """The temperature of the first attempt at a message."""
    turn_hottest: float = Field(1.0, ge=0, le=1)
    """The temperature of the last attempt; it rises in equal steps."""
    word_temperature: float = Field(1.0, ge=0, le=1)
    """The temperature of words."""
    truncation: TruncationSettings | None = TruncationSettings(least=7)
    """How a message is cut to a drawn length; none: it is not."""


class ClaudeAgent(ChatServerAgent[ClaudeSettings]):
    """A chat model of Anthropic's."""

    Settings = ClaudeSettings
    engine = AnthropicEngine
