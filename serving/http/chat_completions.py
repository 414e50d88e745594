"""The routes of OpenAI's interface for models and chat completions."""

import asyncio
import time
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response

from serving.http import openai_forms
from serving.http.answering import Answering, Piece
from serving.http.chat_requests import ChatRequest
from serving.http.not_kept import NOT_KEPT_HEADER, Keep
from serving.http.openai_forms import ANSWERED, envelope
from serving.http.service import Service


def router(service: Service) -> APIRouter:
    """The routes ``/v1/models``, ``/v1/models/{name}`` and ``/v1/chat/completions`` of a service."""
    routes = APIRouter(tags=["OpenAI's interface"])
    began = int(time.time())

    def model(name: str) -> dict[str, Any]:
        tasks = service.declared(name).tasks
        return {"id": name, "object": "model", "created": began, "owned_by": "turinglike", "tasks": list(tasks)}

    @routes.get("/v1/models", summary="The agents, as models")
    async def models() -> dict[str, Any]:
        return {"object": "list", "data": [model(name) for name in service.agents]}

    @routes.get("/v1/models/{name}", summary="An agent, as a model")
    async def retrieve(name: Annotated[str, Path(examples=["eliza"])]) -> dict[str, Any]:
        return model(name)

    @routes.post(
        "/v1/chat/completions",
        summary="The next message of a chat, or the answer to an image or a cue",
        responses=ANSWERED,
        openapi_extra=NOT_KEPT_HEADER,
    )
    async def complete(chat: ChatRequest, request: Request, keep: Keep) -> Response:
        """Instructions and options of models have no effect; `turinglike.ignored` names them, and the header
        `Turinglike-Ignored`."""
        answering = await asyncio.to_thread(Answering, service, chat.question(), keep=keep)
        if chat.stream:
            head = envelope(answering, "chat.completion.chunk", "chatcmpl")
            return await openai_forms.streamed(request, answering, head, _delta, chat.has_usage)
        head = envelope(answering, "chat.completion", "chatcmpl")
        return await openai_forms.whole(request, answering, head, _message)

    return routes


def _message(text: str) -> Mapping[str, Any]:
    return {"message": {"role": "assistant", "content": text, "refusal": None}}


def _delta(piece: Piece | None) -> Mapping[str, Any]:
    if piece is None:
        return {"delta": {}}
    if piece.is_first:
        return {"delta": {"role": "assistant", "content": piece.text}}
    return {"delta": {"content": piece.text}}
