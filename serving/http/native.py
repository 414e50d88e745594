"""The routes of our own: what is there, how it is, and answers as uniform records."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import aclosing
from typing import Any, TypeVar

from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse, StreamingResponse
from starlette.exceptions import HTTPException

from agents import __version__
from serving.http.bodies import IMAGES, MOST_ITEMS, ResponseRequest, StreamRequest, parse, stimulus_of
from serving.http.errors import ApiError
from serving.http.service import Service
from serving.runs.records import Record

T = TypeVar("T")
JSON = "application/json"
PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
NDJSON = "application/x-ndjson"


class ClientGone(Exception):
    """Whoever asked is not there any more."""


async def unless_gone(request: Request, work: Awaitable[T]) -> T:
    """What ``work`` gives; it is cancelled when the client goes away, which raises ClientGone."""
    task = asyncio.current_task()
    assert task is not None
    cancelled = task.cancelling()
    is_gone = False

    async def watch() -> None:
        nonlocal is_gone
        await _gone(request)
        is_gone = True
        task.cancel()

    watching = asyncio.create_task(watch())
    try:
        return await work
    except asyncio.CancelledError:
        if is_gone and task.uncancel() <= cancelled:
            raise ClientGone from None
        raise
    finally:
        watching.cancel()


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def request_body(model: type[Any], multipart: bool = False) -> dict[str, Any]:
    """``openapi_extra`` for a route that reads its body itself."""
    content: dict[str, Any] = {JSON: {"schema": {"$ref": f"#/components/schemas/{model.__name__}"}}}
    if multipart:
        parts = {name: {"type": "string", "format": "binary"} for name in IMAGES}
        fields = {"request": {"type": "string", "description": "The JSON body, without images."}, **parts}
        content["multipart/form-data"] = {"schema": {"type": "object", "properties": fields, "required": ["request"]}}
    return {"requestBody": {"required": True, "content": content}}


def router(service: Service) -> APIRouter:
    """The routes, for one service."""
    routes = APIRouter()

    @routes.get("/health", summary="Whether the server is alive", tags=["state"])
    async def health() -> dict[str, str]:
        return {"status": "ok", "version": __version__}

    @routes.get("/ready", summary="Whether the agents are loaded", tags=["state"])
    async def ready(response: Response) -> dict[str, Any]:
        """503 while an agent is being loaded, when none is usable, and while the server is ending. An agent that failed
        says why, and the others are served all the same."""
        response.status_code = 200 if service.ready else 503
        return {"ready": service.ready, "draining": service.draining, "agents": service.states()}

    @routes.get(
        "/metrics", summary="Counts in Prometheus's text form", tags=["state"], response_class=PlainTextResponse
    )
    async def metrics() -> PlainTextResponse:
        return PlainTextResponse(service.metrics.text(), headers={"content-type": PROMETHEUS})

    @routes.get("/v1/agents", summary="The agents that are served", tags=["answers"])
    async def agents() -> dict[str, Any]:
        return {"agents": [_about(service, name) for name in service.agents]}

    @routes.post(
        "/v1/responses",
        summary="One answer, as a record",
        tags=["answers"],
        response_model=Record,
        openapi_extra=request_body(ResponseRequest, multipart=True),
    )
    async def respond(request: Request) -> Response:
        """The record is the one that a run with the same seed writes for the same stimulus. A stimulus that cannot be
        answered (a broken image, say) has a record too, with `status` "failed" and the reason in `error`."""
        asked, files = await _asked(request)
        stimulus, found = stimulus_of(asked, files)
        with service.place(asked.agent):
            answer = service.answer(asked.agent, stimulus, files=found, sample=asked.sample, seed=asked.seed)
            item = await unless_gone(request, answer)
        return Response(service.record(item), media_type=JSON)

    @routes.post(
        "/v1/responses/stream",
        summary=f"Up to {MOST_ITEMS} answers, one record a line, as they are ready",
        tags=["answers"],
        response_class=StreamingResponse,
        openapi_extra=request_body(StreamRequest),
    )
    async def stream(request: Request) -> StreamingResponse:
        asked: StreamRequest = parse(StreamRequest, await request.body())
        each = [(*stimulus_of(one), one.sample) for one in asked.items]
        for stimulus, _, _ in each:
            service.check(asked.agent, stimulus)
        service.room(asked.agent)

        async def lines() -> AsyncIterator[bytes]:
            async with aclosing(service.stream(asked.agent, each, asked.seed)) as items:
                async for item in items:
                    yield service.record(item)

        return StreamingResponse(lines(), media_type=NDJSON)

    return routes


def _about(service: Service, name: str) -> dict[str, Any]:
    agent, header = service.agents[name], service.headers[name]
    return {
        "name": name,
        "tasks": list(agent.tasks),
        "modes": list(agent.modes) if "attention_prediction" in agent.tasks else [],
        "kind": header.kind,
        "checkpoint": header.checkpoint,
        "revision": header.revision,
        "digest": header.digest,
        "settings": agent.settings.model_dump(mode="json"),
        **service.states()[name],
    }


async def _asked(request: Request) -> tuple[ResponseRequest, Mapping[str, bytes] | None]:
    """The request and the images of its multipart form. Raises ApiError."""
    if not request.headers.get("content-type", "").lower().startswith("multipart/form-data"):
        return parse(ResponseRequest, await request.body()), None
    try:
        form = await request.form(max_files=len(IMAGES), max_fields=1 + len(IMAGES))
    except HTTPException:
        message = f"the form cannot be read: it has one field, of at most 1 MiB, and at most {len(IMAGES)} files"
        raise ApiError(400, "bad_request", message) from None
    try:
        text = form.get("request")
        if not isinstance(text, str):
            raise ApiError(422, "invalid_request", "the form needs a field request with the JSON, which is no file")
        asked: ResponseRequest = parse(ResponseRequest, text.encode())
        files: dict[str, bytes] = {}
        for name, part in form.multi_items():
            if part is text:
                continue
            if name not in IMAGES or isinstance(part, str) or name in files:
                message = f"beside one field request the form has files: {', '.join(IMAGES)}, each at most once"
                raise ApiError(422, "invalid_request", message)
            files[name] = await part.read()
        return asked, files
    finally:
        await form.close()
