"""What a client is told, where it did not ask for a record, of an answer that failed or that filters rejected."""

from __future__ import annotations

from typing import Any

from serving.http.errors import ApiError

REFUSED = {
    "rejected": "the agent's filters let none of its answers pass; with another seed they may",
    "filtered": "the server behind the agent withheld its answer",
    "bad_image": "the image cannot be decoded",
    "missing_image": "an image is missing",
    "image_too_large": "the image has too many pixels or bytes",
    "image_too_narrow": "the image is too narrow for the agent",
    "unknown_cue": "the agent does not know the cue",
    "no_word": "the agent has no such word for the cue",
    "too_few_beams": "the agent has no such sample",
}  # what another request may mend, by the code of the failure
MEANINGS = {
    409: "The conversation is over, or its agent is still answering.",
    410: "Nobody has used the conversation for so long that it was forgotten.",
    429: "There are as many conversations, or the agent has as much to do, as may be; `Retry-After` says when to come "
    "back.",
    502: "The agent could not answer this; `code` says why.",
}


def failure(agent: str, code: str) -> ApiError:
    """The error for a failed answer of ``agent``, by the failure's code."""
    if code == "deadline":
        return ApiError(504, code, f"agent {agent} had no answer in time")
    if code in REFUSED:
        return ApiError(422, code, REFUSED[code])
    return ApiError(502, code, f"agent {agent} could not answer this")


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """``responses`` of a route for errors that others do not have."""
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    return {status: {"description": MEANINGS[status], "content": content} for status in statuses}
