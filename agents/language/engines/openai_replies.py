"""What a server with OpenAI's interface sends back, read without trust: pure functions of bodies and headers."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

from agents.errors import AnswerError

MEDIA = ((b"\x89PNG\r\n\x1a\n", "png"), (b"\xff\xd8\xff", "jpeg"), (b"GIF87a", "gif"), (b"GIF89a", "gif"))


class BadReply(Exception):
    """The reply is not what was asked for; ``again`` says whether another try may bring a better one."""

    def __init__(self, message: str, again: bool = False) -> None:
        super().__init__(message)
        self.again = again


def read_json(content: bytes) -> Any:
    """The JSON of a body. Raises BadReply; another try may help, as such bodies are mostly pages of what stands
    between."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        raise BadReply("the reply is no JSON", again=True) from None


def chat_text(choice: Mapping[str, Any]) -> str | None:
    """What the assistant said; "" where it said nothing (it thought until its limit, or used a tool)."""
    message = choice.get("message")
    if not isinstance(message, dict):
        return None
    content = message.get("content")
    if isinstance(content, list):
        content = "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    if not content and isinstance(message.get("refusal"), str):
        content = message["refusal"]
    return "" if content is None else content if isinstance(content, str) else None


def refuses(choice: Mapping[str, Any]) -> bool:
    """Whether the model declined, where a server tells that apart."""
    message = choice.get("message")
    return isinstance(message, dict) and bool(message.get("refusal"))


def count(value: Any) -> int | None:
    """A number of tokens, or None if it is none."""
    return value if isinstance(value, int) and value >= 0 else None


def vectors(body: Any, count: int) -> list[list[float]]:
    """The vectors of an embeddings reply by their ``index``, checked."""
    data = body.get("data") if isinstance(body, dict) else None
    if not isinstance(data, list) or len(data) != count or not all(isinstance(one, dict) for one in data):
        raise BadReply(f"not one vector for each of {count} texts")
    places = [one.get("index", place) for place, one in enumerate(data)]
    if sorted(place for place in places if isinstance(place, int)) != list(range(count)):
        raise BadReply("vectors whose numbers are not those of the texts")
    found: list[list[float]] = [[]] * count
    for place, one in zip(places, data, strict=True):
        vector = one.get("embedding")
        if not isinstance(vector, list) or not vector or not all(_is_number(value) for value in vector):
            raise BadReply("a vector that is no list of numbers")
        found[place] = [float(value) for value in vector]
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def media(image: bytes) -> str:
    """The kind of an image, by its first bytes."""
    if image.startswith(b"RIFF") and image[8:12] == b"WEBP":
        return "webp"
    for start, kind in MEDIA:
        if image.startswith(start):
            return kind
    raise AnswerError("bad_image", "servers take PNG, JPEG, WEBP and GIF only")


def reason(body: Any) -> str:
    """The sentence in the body of an error, whichever of the usual forms it has."""
    if isinstance(body, dict):
        inner = body.get("error", body)
        if isinstance(inner, dict):
            inner = inner.get("message") or inner.get("detail") or inner
        body = inner
    return body if isinstance(body, str) else json.dumps(body) if body else ""


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds that a server asks to be waited: ``retry-after-ms``, or ``retry-after`` as seconds or as a date."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) * unit
        except ValueError:
            continue
        if seconds >= 0:
            return seconds
    try:
        return max(0.0, parsedate_to_datetime(headers.get("retry-after", "")).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None
