"""The route of OpenAI's responses: text in, text out, and nothing is stored."""

import asyncio
import secrets
import time
from collections.abc import AsyncGenerator
from typing import Any

import orjson
from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse

from serving.http.answering import Answering, ChoiceText, Piece, Usage
from serving.http.bodies import JSON
from serving.http.errors import ApiError, request_id
from serving.http.guard import unless_gone
from serving.http.not_kept import NOT_KEPT_HEADER, Keep
from serving.http.openai_forms import ANSWERED, EVENT_STREAM, NO_STORE
from serving.http.openai_options import ignored_header
from serving.http.response_requests import ResponsesRequest
from serving.http.said_here import SaidHere
from serving.http.service import Service

INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}  # OpenAI's reasons, by our ``finish``


def router(service: Service, said: SaidHere) -> APIRouter:
    """The route ``/v1/responses`` of a service; ``said`` remembers the answers."""
    routes = APIRouter(tags=["OpenAI's interface"])

    @routes.post(
        "/v1/responses",
        summary="The next message of a conversation, or the answer to an image or a cue",
        responses=ANSWERED,
        openapi_extra=NOT_KEPT_HEADER,
    )
    async def respond(asked: ResponsesRequest, request: Request, keep: Keep) -> Response:
        """Instructions and options of models have no effect; `turinglike.ignored` names them, and the header
        `Turinglike-Ignored`. No response can be asked for again, changed or continued by its id."""
        answering = await asyncio.to_thread(Answering, service, asked.question(said), keep=keep)
        made = _Response(answering, said)
        headers = ignored_header(answering.question.ignored)
        if not asked.stream:
            [answer] = await unless_gone(request, answering.whole())
            return Response(orjson.dumps(made.answered(answer)), media_type=JSON, headers=headers)
        await unless_gone(request, answering.begin())
        return StreamingResponse(
            made.events(request_id(request)), media_type=EVENT_STREAM, headers={**headers, **NO_STORE}
        )

    return routes


class _Response:
    """One response with one message, whole (:meth:`answered`) or as :meth:`events`."""

    def __init__(self, answering: Answering, said: SaidHere) -> None:
        self._answering = answering
        self._said = said
        self._id = f"resp_{secrets.token_hex(16)}"
        self._message_id = said.new_id()
        self._created = int(time.time())
        self._events = 0

    def answered(self, answer: ChoiceText) -> dict[str, Any]:
        """The response with its answer, which is remembered under the message's id."""
        self._said.remember(self._message_id, answer.text)
        reason = INCOMPLETE.get(answer.finish)
        counted = Usage.of([answer])
        return {
            **self._body("completed" if reason is None else "incomplete"),
            "completed_at": int(time.time()) if reason is None else None,
            "incomplete_details": None if reason is None else {"reason": reason},
            "output": [self._message(answer)],
            "usage": {
                "input_tokens": counted.prompt,
                "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
                "output_tokens": counted.answers,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": counted.prompt + counted.answers,
            },
            "turinglike": self._answering.more([answer]),
        }

    async def events(self, request_id: str) -> AsyncGenerator[bytes, None]:
        """The events of a stream; a failure is the last, ``response.failed``."""
        item = {"output_index": 0}
        part = {"item_id": self._message_id, "output_index": 0, "content_index": 0}
        try:
            yield self._event("response.created", response=self._body("in_progress"))
            yield self._event("response.in_progress", response=self._body("in_progress"))
            yield self._event("response.output_item.added", **item, item=self._message(None))
            yield self._event("response.content_part.added", **part, part=_text_part(""))
            async for piece in self._answering.pieces():
                if isinstance(piece, Piece):
                    if piece.text:
                        yield self._event("response.output_text.delta", **part, delta=piece.text, logprobs=[])
                    continue
                response = self.answered(piece)
                yield self._event("response.output_text.done", **part, text=piece.text, logprobs=[])
                yield self._event("response.content_part.done", **part, part=_text_part(piece.text))
                yield self._event("response.output_item.done", **item, item=self._message(piece))
                yield self._event(f"response.{response['status']}", response=response)
        except ApiError as error:
            # Clients know the codes of OpenAI's own server alone.
            failed = {**self._body("failed"), "error": {"code": "server_error", "message": error.detail}}
            failed["turinglike"] = {"code": error.code, "request_id": request_id}
            yield self._event("response.failed", response=failed)
        finally:
            await self._answering.close()

    def _event(self, kind: str, **fields: Any) -> bytes:
        content = {"type": kind, "sequence_number": self._events, **fields}
        self._events += 1
        return b"event: " + kind.encode() + b"\ndata: " + orjson.dumps(content) + b"\n\n"

    def _body(self, status: str) -> dict[str, Any]:
        return {
            "id": self._id,
            "object": "response",
            "created_at": self._created,
            "completed_at": None,
            "status": status,
            "background": False,
            "error": None,
            "incomplete_details": None,
            "instructions": None,
            "max_output_tokens": None,
            "metadata": {},
            "model": self._answering.question.model,
            "output": [],
            "parallel_tool_calls": False,
            "previous_response_id": None,
            "reasoning": {"effort": None, "summary": None},
            "store": False,
            "temperature": None,
            "text": {"format": {"type": "text"}},
            "tool_choice": "none",
            "tools": [],
            "top_p": None,
            "truncation": "disabled",
            "usage": None,
        }

    def _message(self, answer: ChoiceText | None) -> dict[str, Any]:
        if answer is None:
            status = "in_progress"
        elif answer.finish in INCOMPLETE:
            status = "incomplete"
        else:
            status = "completed"
        content = [] if answer is None else [_text_part(answer.text)]
        return {
            "id": self._message_id,
            "type": "message",
            "role": "assistant",
            "status": status,
            "content": content,
        }


def _text_part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
