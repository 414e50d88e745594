"""Which server and model an agent asks, and how patient its client is."""

import socket
from typing import Annotated
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from pydantic import Field

from agents.contract import NO_ANSWER, Address, Settings
from agents.loopback import is_loopback

CONNECTS_WITHIN = 2.0
"""Seconds in which a server must take a connection, before it is called far or busy."""
SCHEMES = {"http": 80, "https": 443}
"""The schemes of addresses with their ports."""

KeyVariable = Annotated[str, Field(max_length=64, pattern=r"^([A-Z_][A-Z0-9_]*)?$", json_schema_extra=NO_ANSWER)]
"""The name of an environment variable: in capitals only, so that a key put here by mistake is refused, and not
printed."""


class ClientSettings(Settings):
    """Which server and model, and how patient the client is."""

    base_url: Address
    """The server's address."""
    model: str = Field(min_length=1)
    """The model's name at the server."""
    key_variable: KeyVariable
    """The environment variable that holds the key, in capitals; empty: no key is sent. The key is never a setting."""
    concurrency: int = Field(16, ge=1, le=1000, json_schema_extra=NO_ANSWER)
    """How many requests a worker has under way at once."""
    timeout_s: float = Field(60.0, gt=0, le=3600, json_schema_extra=NO_ANSWER)
    """How long the server may be silent in a try, in seconds."""
    patience_s: float = Field(300.0, gt=0, le=86_400, json_schema_extra=NO_ANSWER)
    """The longest that a request may take with all its tries and waits, in seconds; keep it below --timeout."""
    retries: int = Field(6, ge=0, le=100, json_schema_extra=NO_ANSWER)
    """How often a request is tried again; the waits between tries are those of the client."""

    def is_local(self) -> bool:
        """Whether the server is on this machine."""
        return is_loopback(self.base_url)

    def unreachable(self) -> str | None:
        """What to start where nothing listens at the address, or None. It is tried once, as no server has answered yet;
        a server behind a proxy is not tried, as only the proxy could tell."""
        parts = urlsplit(self.base_url)
        host = parts.hostname or ""
        if not self.is_local() and getproxies().keys() & {parts.scheme, "all"} and not proxy_bypass(host):
            return None  # as only the proxy knows
        try:
            socket.create_connection((host, parts.port or SCHEMES[parts.scheme]), CONNECTS_WITHIN).close()
        except TimeoutError:  # far, or busy
            return None
        except OSError as error:
            why = error.strerror or type(error).__name__
            act = "start the server (such as `ollama serve`)" if self.is_local() else "is there a network?"
            return f"nothing answers at {self.base_url} ({why}): {act}; base_url names another"
        return None
