"""Which server :mod:`agents.language.engines.openai` asks, how patiently, and what it takes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from agents.contract import NO_ANSWER
from agents.language.engines.server_settings import ClientSettings
from agents.servers import Address


class ServerSettings(ClientSettings):
    """As for every server, and where those with OpenAI's interface differ."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    base_url: Address = "https://api.openai.com/v1"
    """The server's address up to and including the version, as in http://localhost:8000/v1."""
    key_variable: Annotated[str, Field(max_length=64, json_schema_extra=NO_ANSWER)] = "OPENAI_API_KEY"
    """The environment variable that holds the key, in capitals; empty: no key is sent. The key is never a setting."""


class SeededSettings(ServerSettings):
    """Of models that say something, not the same each time."""

    seed_bits: int = Field(53, ge=0, le=53)
    """How many bits of an attempt's seed are sent to the server, for those that take fewer; 0: none."""


class ChatSettings(SeededSettings):
    """Of models that chat."""

    length_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """What the limit of tokens is called in chats; OpenAI's reasoning models want max_completion_tokens."""
