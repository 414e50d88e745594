"""Answers in the form of OpenAI's choices: whole, or streamed as server-sent events."""

import secrets
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Any

import orjson
from fastapi.responses import StreamingResponse
from starlette.requests import Request
from starlette.responses import Response

from serving.http.answering import Answering, ChoiceText, Piece, Usage
from serving.http.bodies import JSON
from serving.http.errors import POSTED, ApiError, documented, request_id
from serving.http.guard import unless_gone
from serving.http.openai_options import ignored_header

EVENT_STREAM = "text/event-stream"
ANSWERED: dict[int | str, dict[str, Any]] = {
    200: {"description": "The answers.", "content": {EVENT_STREAM: {}}},
    **POSTED,
    **documented(502),
}
NO_STORE = {"cache-control": "no-store"}
Whole = Callable[[str], Mapping[str, Any]]
"""The content of a choice with the whole text of an answer."""
Delta = Callable[[Piece | None], Mapping[str, Any]]
"""The content of a choice with a piece of an answer; None is the answer's end."""


def envelope(answering: Answering, kind: str, prefix: str) -> dict[str, Any]:
    """What all events of one answer have in common. ``kind`` is OpenAI's name of the object, ``prefix`` begins its
    random id."""
    name = answering.question.model
    return {
        "id": f"{prefix}-{secrets.token_hex(12)}",
        "object": kind,
        "created": int(time.time()),
        "model": name,
        "system_fingerprint": f"fp_{answering.service.headers[name].digest[:10]}",
    }


async def whole(request: Request, answering: Answering, head: Mapping[str, Any], content: Whole) -> Response:
    """The response with all answers as choices. ``head`` is that of :func:`envelope`. Raises ApiError."""
    answers = await unless_gone(request, answering.whole())
    choices = [_choice(answer.index, content(answer.text), answer.finish) for answer in answers]
    body = {**head, "choices": choices, "usage": _usage(answers), "turinglike": answering.more(answers)}
    return Response(orjson.dumps(body), media_type=JSON, headers=ignored_header(answering.question.ignored))


async def streamed(
    request: Request, answering: Answering, head: Mapping[str, Any], content: Delta, has_usage: bool
) -> Response:
    """The response whose events are pieces of the answers; ``has_usage`` asks for a last event with the numbers of
    tokens.

    It begins when there is a first piece, so that a failure before it has its own status (raises ApiError); a later
    failure is the last event.
    """
    await unless_gone(request, answering.begin())
    if has_usage:
        head = {**head, "usage": None}
    headers = {**ignored_header(answering.question.ignored), **NO_STORE}
    events = _events(answering, head, content, has_usage, request_id(request))
    return StreamingResponse(events, media_type=EVENT_STREAM, headers=headers)


async def _events(
    answering: Answering, head: Mapping[str, Any], content: Delta, has_usage: bool, request_id: str
) -> AsyncGenerator[bytes, None]:
    answers = []
    try:
        async for piece in answering.pieces():
            if isinstance(piece, Piece):
                yield _event({**head, "choices": [_choice(piece.index, content(piece), None)]})
            else:
                answers.append(piece)
                choice = _choice(piece.index, content(None), piece.finish)
                yield _event({**head, "choices": [choice], "turinglike": answering.more([piece])})
        if has_usage:
            yield _event({**head, "choices": [], "usage": _usage(answers)})
        yield b"data: [DONE]\n\n"
    except ApiError as error:
        yield b"data: " + error.body(request_id) + b"\n\n"
    finally:
        await answering.close()


def _choice(index: int, content: Mapping[str, Any], finish: str | None) -> dict[str, Any]:
    return {"index": index, **content, "finish_reason": finish, "logprobs": None}


def _usage(answers: Sequence[ChoiceText]) -> dict[str, int]:
    counted = Usage.of(answers)
    return {
        "prompt_tokens": counted.prompt,
        "completion_tokens": counted.answers,
        "total_tokens": counted.prompt + counted.answers,
    }


def _event(content: Mapping[str, Any]) -> bytes:
    return b"data: " + orjson.dumps(content) + b"\n\n"
