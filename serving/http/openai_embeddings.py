"""OpenAI's embeddings, of agents that answer by the vectors of words."""

from __future__ import annotations

import array
import base64
import sys
from contextlib import aclosing
from typing import Annotated, Any, Literal

import orjson
from fastapi import APIRouter, Request, Response
from pydantic import BeforeValidator, Field, StringConstraints

from agents.stimuli import WHOLE
from serving.http.bodies import MOST_ITEMS, body_of, checked_stimulus, documented_body
from serving.http.disconnect import unless_gone
from serving.http.errors import POSTED, ApiError, documented, failure, invalid
from serving.http.openai_bodies import OptionalBody
from serving.http.service import Service

CueText = Annotated[str, StringConstraints(max_length=200, pattern=r"\S")]
CueTexts = Annotated[list[CueText], Field(min_length=1, max_length=MOST_ITEMS)]


def _as_list(given: object) -> object:
    return [given] if isinstance(given, str) else given


class EmbeddingRequest(OptionalBody):
    """Ask for vectors."""

    IGNORED = frozenset({"user"})

    model: str = Field(max_length=200, examples=["minilm"])
    """One of GET /v1/models that has vectors."""
    input: Annotated[CueTexts, BeforeValidator(_as_list, json_schema_input_type=CueText | CueTexts)] = Field(
        examples=[["tea", "coffee"]]
    )
    """Texts as cues may be."""
    encoding_format: Literal["float", "base64"] | None = None
    """base64: of little-endian float32."""
    dimensions: Annotated[int, Field(strict=True, ge=1), WHOLE] | None = None
    """How many the agent's vectors have: they are never cut."""


def router(service: Service) -> APIRouter:
    """The route, for one service."""
    routes = APIRouter(tags=["OpenAI's interface"])

    @routes.post(
        "/v1/embeddings",
        summary="The vectors of texts",
        responses=POSTED | documented(502),
        openapi_extra=documented_body(EmbeddingRequest),
    )
    async def vectors(asking: Annotated[EmbeddingRequest, body_of(EmbeddingRequest)], request: Request) -> Response:
        """For agents that answer a cue with the word whose vector is nearest: the vector that they give the text."""
        return await unless_gone(request, embed(service, asking))

    return routes


async def embed(service: Service, asking: EmbeddingRequest) -> Response:
    """The vectors. Raises ApiError."""
    name = asking.model
    if not service.agent(name).has_vectors:
        having = [other for other, agent in service.agents.items() if agent.has_vectors]
        instead = f"; of those served have some: {', '.join(having)}" if having else ""
        raise ApiError(422, "wrong_task", f"agent {name} has no vectors{instead}")
    service.check_queue(name)
    vectors = await _vectors(service, asking)
    size = len(vectors[0])
    if asking.dimensions not in (None, size):
        raise invalid([("dimensions", f"the vectors of agent {name} have {size}, and are not cut")])
    data = [
        {"object": "embedding", "index": index, "embedding": _encoded(vector, asking.encoding_format)}
        for index, vector in enumerate(vectors)
    ]
    whole = {"object": "list", "data": data, "model": name, "usage": None}
    return Response(orjson.dumps(whole), media_type="application/json")


async def _vectors(service: Service, asking: EmbeddingRequest) -> list[list[float]]:
    """Raises ApiError if one cannot be had."""
    cues = [
        checked_stimulus({"id": str(index), "task": "word_association", "cue": text}, {})
        for index, text in enumerate(asking.input)
    ]
    found: dict[int, list[float]] = {}
    async with aclosing(service.stream(asking.model, ((cue, None, 0) for cue in cues), None, vector=True)) as items:
        async for item in items:
            if item.status != "ok":
                raise failure(asking.model, (item.error or ("failed",))[0])
            found[int(item.stimulus)] = orjson.loads(item.answer or b"")["vector"]
    return [found[index] for index in range(len(cues))]


def _encoded(vector: list[float], form: str | None) -> Any:
    if form != "base64":
        return vector
    numbers = array.array("f", vector)
    if sys.byteorder == "big":
        numbers.byteswap()
    return base64.b64encode(numbers.tobytes()).decode()
