"""Which server an engine asks, and how patiently."""

from __future__ import annotations

import ipaddress
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import ConfigDict, Field, field_validator

from agents.contract import NO_ANSWER, Settings
from agents.servers import Address


class ClientSettings(Settings):
    """Which server and model, and how patiently it is asked: the settings of every agent on a server."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    base_url: Address
    """The server's address."""
    model: str = Field(min_length=1)
    """The model's name at the server."""
    key_variable: Annotated[str, Field(max_length=64, json_schema_extra=NO_ANSWER)]
    """The environment variable that holds the key, in capitals; empty: no key is sent. The key is never a setting."""
    concurrency: int = Field(16, ge=1, le=1000, json_schema_extra=NO_ANSWER)
    """How many requests one worker has under way at once."""
    timeout_s: float = Field(60.0, gt=0, le=3600, json_schema_extra=NO_ANSWER)
    """How long the server may be silent in one try, in seconds."""
    patience_s: float = Field(300.0, gt=0, le=86_400, json_schema_extra=NO_ANSWER)
    """The longest that a request may take with all its tries and waits, in seconds; keep it below --timeout."""
    retries: int = Field(6, ge=0, le=100, json_schema_extra=NO_ANSWER)
    """How often a request is tried again; the waits between tries are those of the client."""

    @field_validator("key_variable")
    @classmethod
    def _is_a_name(cls, value: str) -> str:
        # Capitals only, so that a key given here by mistake is refused, and not shown.
        if value and not (value.isascii() and value.isidentifier() and value == value.upper()):
            raise ValueError("must be the name of an environment variable, in capitals; a key is never given here")
        return value

    def is_local(self) -> bool:
        """Whether the server is on this machine; such a one need not have a key."""
        host = urlsplit(self.base_url).hostname or ""
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return host == "localhost"  # of names below it many systems ask a name server
