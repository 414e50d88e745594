"""The route of OpenAI's older completions: a text in, a text out."""

import asyncio
from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Request, Response

from serving.http import openai_forms
from serving.http.answering import Answering, Piece
from serving.http.completion_requests import CompletionRequest
from serving.http.not_kept import NOT_KEPT_HEADER, Keep
from serving.http.openai_forms import ANSWERED, envelope
from serving.http.service import Service


def router(service: Service) -> APIRouter:
    """The route ``/v1/completions`` of a service."""
    routes = APIRouter(tags=["OpenAI's interface"])

    @routes.post(
        "/v1/completions",
        summary="The answer to a text, or to a cue",
        responses=ANSWERED,
        openapi_extra=NOT_KEPT_HEADER,
    )
    async def complete(asked: CompletionRequest, request: Request, keep: Keep) -> Response:
        """For programs that know no chats: the text is the only message of one."""
        answering = await asyncio.to_thread(Answering, service, asked.question(), keep=keep)
        head = envelope(answering, "text_completion", "cmpl")
        if asked.stream:
            return await openai_forms.streamed(request, answering, head, _piece, asked.has_usage)
        return await openai_forms.whole(request, answering, head, _text)

    return routes


def _text(text: str) -> Mapping[str, Any]:
    return {"text": text}


def _piece(piece: Piece | None) -> Mapping[str, Any]:
    return {"text": "" if piece is None else piece.text}
