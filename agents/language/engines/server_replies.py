"""What comes back from a server: the fields of a reply's body that are used, and the text that is made of it."""

import json
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from agents.language.engines.text_request import GeneratedText

R = TypeVar("R", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class ServerText(GeneratedText):
    """A server's text, with what the server says of it."""

    model: str | None = None
    """The name of the model that answered, as the server says it."""
    fingerprint: str | None = None
    """The server's own mark of its configuration."""
    tries: int = 1
    """How many tries it took."""
    reasoning_tokens: int | None = None
    """The tokens of the reply that were thoughts, as the server counts them."""
    unsent: tuple[str, ...] | None = None
    """Parameters that were not sent, as the model refuses them."""
    ignored: tuple[str, ...] | None = None
    """Parameters that were sent and ignored, as this very reply shows."""


class ServerReply(BaseModel):
    """The used fields of a reply's body. Other fields may be of any form."""

    model_config = ConfigDict(strict=True)

    usage: Any = None
    """The numbers of tokens, in a form of the server's."""
    model: Any = None
    """The model's name."""

    def count(self, *names: str) -> int | None:
        """The number of tokens under ``names``, one within the other, as in ``count("completion_tokens_details",
        "reasoning_tokens")``; None if the reply has no such number."""
        value = self.usage
        for name in names:
            value = value.get(name) if isinstance(value, dict) else None
        return value if isinstance(value, int) and value >= 0 else None


def parsed_reply(form: type[R], content: bytes) -> R:
    """A reply's body as ``form``. Raises ValidationError.

    A server may cut a text within a character that JSON writes in two halves. The half becomes U+FFFD, as strict
    readers of JSON would refuse the whole reply.
    """
    try:
        return form.model_validate_json(content)
    except ValidationError as error:
        if error.errors(include_url=False, include_input=False, include_context=False)[0]["type"] != "json_invalid":
            raise
        try:
            text = json.dumps(json.loads(content), ensure_ascii=False)
        except (ValueError, RecursionError):
            raise error from None
    return form.model_validate_json(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))


def reason(body: Any) -> str:
    """The sentence in an error's body, or the body as JSON where no sentence is found; "" for an empty body."""
    if isinstance(body, dict):
        inner = body.get("error", body)
        if isinstance(inner, dict):
            inner = inner.get("message") or inner.get("detail") or inner
        body = inner
    if isinstance(body, str):
        return body
    return json.dumps(body) if body else ""
