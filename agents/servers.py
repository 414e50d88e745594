"""What agents on servers have in common: how an address is given, the codes of what goes wrong, and how a server's own
words are told without the keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator

Code = Literal[
    "server_auth", "server_refused", "server_busy", "server_timeout", "server_bad_reply", "server_unreachable",
    "no_room",
]  # fmt: skip
CODES: Mapping[Code, str] = {
    "server_auth": "the key is missing, wrong or not allowed to do this (401, 403)",
    "server_refused": "the request will never be answered (other 4xx, a redirect, a used-up quota)",
    "server_busy": "the server would not answer now (429, 5xx)",
    "server_timeout": "no reply in time",
    "server_bad_reply": "the reply is no JSON, has another form, or is too large",
    "server_unreachable": "no connection, or it broke",
    "no_room": "the prompt is longer than the server's model takes",
}
SHORTEST_SECRET = 8  # a shorter key ("EMPTY", as some servers want) is no secret, and clearing texts of it harms them
QUOTED = 300  # characters of a server's own words in an error


def code_of(status: int) -> Code:
    """What follows from an HTTP status other than 200, once no further try helps."""
    if status in (401, 403):
        return "server_auth"
    return "server_busy" if status in (408, 429) or status >= 500 else "server_refused"


def cleared(text: str, keys: Iterable[str]) -> str:
    """The text without the keys."""
    for key in keys:
        if len(key) >= SHORTEST_SECRET:
            text = text.replace(key, "[key]")
    return text


def quoted(text: str, keys: Iterable[str]) -> str:
    """What a server or a library said, without the keys, in one line that is not long."""
    said = " ".join(cleared(text, keys).split())
    return said if len(said) <= QUOTED else said[:QUOTED] + "…"


def _is_an_address(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0:  # or port raises ValueError
        raise ValueError("must begin with http:// or https:// and name a host")
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise ValueError("must hold no user, password, query or fragment: they would stand in the records")
    return value


Address = Annotated[str, AfterValidator(_is_an_address)]
