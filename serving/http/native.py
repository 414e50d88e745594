"""Turinglike's own routes: which agents there are, whether they are ready, and answers as records."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse, StreamingResponse
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4

from agents import __version__
from serving.http.bodies import JSON, MOST_ITEMS, ResponseRequest, StreamRequest, row_of_request, rows_of_stream
from serving.http.errors import POSTED
from serving.http.guard import unless_gone
from serving.http.not_kept import NOT_KEPT_HEADER, Keep
from serving.http.service import Service
from serving.runs.records import Record

NDJSON = "application/x-ndjson"


def router(service: Service) -> APIRouter:
    """The routes ``/health``, ``/ready``, ``/metrics``, ``/agents``, ``/answers`` and ``/answers/stream`` of a
    service."""
    routes = APIRouter()

    @routes.get("/health", summary="Whether the server is alive", tags=["state"])
    async def health() -> dict[str, str]:
        return {"status": "ok", "version": __version__}

    @routes.get("/ready", summary="Whether the agents are loaded", tags=["state"])
    async def ready(response: Response) -> dict[str, Any]:
        """503 while an agent is being loaded, when none is usable, and while the server is ending."""
        response.status_code = 200 if service.ready else 503
        return {"ready": service.ready, "draining": service.draining, "agents": service.states()}

    @routes.get(
        "/metrics", summary="Counts in Prometheus's text form", tags=["state"], response_class=PlainTextResponse
    )
    async def metrics() -> PlainTextResponse:
        return PlainTextResponse(service.metrics.text(), headers={"content-type": CONTENT_TYPE_PLAIN_0_0_4})

    @routes.get("/agents", summary="The agents that are served", tags=["answers"])
    async def agents() -> dict[str, Any]:
        return {"agents": [_described(service, name) for name in service.agents]}

    @routes.post(
        "/answers",
        summary="One answer, as a record",
        tags=["answers"],
        response_model=Record,
        responses=POSTED,
        openapi_extra=NOT_KEPT_HEADER,
    )
    async def respond(asking: ResponseRequest, request: Request, keep: Keep) -> Response:
        """The record that a run with the same seed writes for the same stimulus; also where that cannot be answered."""
        if asking.images:
            row = await asyncio.to_thread(row_of_request, asking)
        else:
            row = row_of_request(asking)
        with service.queued(asking.agent) as places:
            answer = places.answer(row, sample=asking.sample, seed=asking.seed, keep=keep)
            answered = await unless_gone(request, answer)
        return Response(answered.record, media_type=JSON)

    @routes.post(
        "/answers/stream",
        summary=f"Up to {MOST_ITEMS} answers, one record a line, as they are ready",
        tags=["answers"],
        response_class=StreamingResponse,
        responses={200: {"content": {NDJSON: {}}}, **POSTED},
        openapi_extra=NOT_KEPT_HEADER,
    )
    async def stream(asking: StreamRequest, keep: Keep) -> StreamingResponse:
        questions = await asyncio.to_thread(rows_of_stream, asking)
        for row, _ in questions:
            service.check(asking.agent, row.parsed())
        service.check_queue(asking.agent)

        async def lines() -> AsyncIterator[bytes]:
            async with aclosing(service.stream(asking.agent, questions, asking.seed, keep)) as answers:
                async for answered in answers:
                    yield answered.record

        return StreamingResponse(lines(), media_type=NDJSON)

    return routes


def _described(service: Service, name: str) -> dict[str, Any]:
    agent = service.agents[name]
    declared = service.declared(name)
    header = service.headers[name]
    return {
        "name": name,
        "tasks": list(declared.tasks),
        "modes": list(declared.modes) if "attention_prediction" in declared.tasks else [],
        "kind": header.kind,
        "checkpoint": header.checkpoint,
        "revision": header.revision,
        "digest": header.digest,
        "settings": agent.settings.model_dump(mode="json", exclude={"person"}),  # whose path may name somebody
        **service.states()[name],
    }
