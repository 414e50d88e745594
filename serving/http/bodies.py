"""Bodies of requests: how they are read, the models of the native routes, and how a request becomes a stimulus.

Images travel in the request as base64, under the name of the stimulus's field that they fill; a stimulus in a request
names no path and no address. Large bodies are read in a thread of their own, one at a time, so that no body keeps
others waiting.
"""

from __future__ import annotations

import asyncio
import base64
import math
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any, Literal, ParamSpec, TypeVar, get_args
from urllib.parse import unquote

import orjson
from fastapi import Depends, Request
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    ValidationError,
    WithJsonSchema,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, from_json

from agents.stimuli import ADAPTER, ALL_TASKS, WHOLE, Stimulus, parse_row
from serving.http.errors import ApiError, invalid, listed, unreadable

ImageField = Literal["image", "target_image", "target_mask"]
IMAGES: tuple[str, ...] = get_args(ImageField)
MOST_ITEMS = 1000
MOST_VALUES = 50_000  # commas and brackets of a body, also those in its texts: counting them takes no parser
MOST_ROW = 4 << 20  # bytes of a stimulus
LARGE = 65_536  # bytes of a body from which on it is read beside the event loop
PIECE = 1 << 20  # bytes that are gone through at once: between two pieces other threads have their turn
JSON = "application/json"
ROW = {"id": "tea", "task": "word_association", "cue": "tea"}
M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")
P = ParamSpec("P")
_reader = ThreadPoolExecutor(1, "bodies")


class _RowSchema:
    """The JSON Schema of a stimulus set's row without its images."""

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        schema = handler(ADAPTER.core_schema)
        for reference in schema["oneOf"]:
            row = handler.resolve_ref_schema(reference)
            for name in IMAGES:
                row["properties"].pop(name, None)
            row["required"] = [name for name in row["required"] if name not in IMAGES]
        return schema


def from_base64(text: str) -> bytes:
    """The bytes of base64 in its common spellings: with line ends, without padding, URL-safe, percent-encoded.
    Raises ValueError."""
    text = unquote(text) if "%" in text else text
    text = "".join(text.split()).replace("-", "+").replace("_", "/")
    unpadded = text.rstrip("=")
    if len(text) - len(unpadded) > 2 or "=" in unpadded:
        raise ValueError("padding in the middle")
    text = unpadded + "=" * (-len(unpadded) % 4)
    return b"".join(base64.b64decode(text[at : at + PIECE], validate=True) for at in range(0, len(text), PIECE))


def _decoded(text: Any) -> Any:
    if not isinstance(text, str):
        return text
    try:
        return from_base64(text)
    except ValueError:
        raise PydanticCustomError("base64", "is no base64") from None


Base64 = Annotated[bytes, BeforeValidator(_decoded), WithJsonSchema({"type": "string", "contentEncoding": "base64"})]
Seed = Annotated[int, Field(strict=True, ge=0, lt=2**53), WHOLE]


class Body(BaseModel):
    """A JSON object without unknown fields and without numbers that JSON has not."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True)


class StimulusRequest(Body):
    """One stimulus to be answered."""

    stimulus: Annotated[dict[str, Any], _RowSchema()] = Field(examples=[ROW])
    """A row of a stimulus set, without its images."""
    images: dict[ImageField, Base64] = Field(default_factory=dict, examples=[{}])
    """Base64 of the image files, by the stimulus's field."""
    sample: Annotated[int, Field(strict=True, ge=0, lt=2**31), WHOLE] = 0
    """Which of an agent's answers: another number draws another one."""


class ResponseRequest(StimulusRequest):
    """Ask an agent for one answer."""

    agent: str = Field(max_length=200, examples=["null"])
    """One of GET /agents."""
    seed: Seed | None = None
    """The run's seed; the server's own by default."""


class StreamRequest(Body):
    """Ask an agent for many answers."""

    agent: str = Field(max_length=200, examples=["null"])
    seed: Seed | None = None
    items: list[StimulusRequest] = Field(min_length=1, max_length=MOST_ITEMS)


def parse(model: type[M], body: bytes | str) -> M:
    """The body as its model. Raises ApiError: 400 for what is no JSON, 413 for what has too many values, else 422."""
    data = body.encode() if isinstance(body, str) else body
    values = 0
    for at in range(0, len(data), PIECE):
        piece = data[at : at + PIECE]
        values += piece.count(b",") + piece.count(b"[") + piece.count(b"{")
    if values > MOST_VALUES:
        raise ApiError(413, "too_large", f"a request has at most {MOST_VALUES:,} commas and brackets")
    try:
        content = from_json(data, cache_strings="none")
    except ValueError:
        raise ApiError(400, "bad_json", "the body is no JSON") from None
    try:
        return model.model_validate(content)  # which copies no texts, as reading JSON by the model would
    except ValidationError as error:
        raise unreadable(error) from None


async def aside(request: Request, work: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """Call ``work`` on what came in the request; beside the event loop, if that was large."""
    if len(await request.body()) < LARGE:
        return work(*arguments, **named)
    return await asyncio.get_running_loop().run_in_executor(_reader, lambda: work(*arguments, **named))


def body_of(model: type[M]) -> Any:
    """FastAPI's dependency for a route that takes such a body; :func:`documented_body` describes it."""

    async def read(request: Request) -> M:
        return await aside(request, parse, model, await request.body())

    dependency: Callable[[Request], Awaitable[M]] = read
    return Depends(dependency)


def documented_body(model: type[BaseModel]) -> dict[str, Any]:
    """``openapi_extra`` of a route that takes such a body."""
    content = {JSON: {"schema": {"$ref": f"#/components/schemas/{model.__name__}"}}}
    return {"requestBody": {"required": True, "content": content}}


def stimulus_of(item: StimulusRequest) -> tuple[Stimulus, Mapping[str, bytes] | None]:
    """The stimulus and the bytes of its images by their names. Raises ApiError."""
    named = [name for name in IMAGES if name in item.stimulus]
    if named:
        raise invalid([(f"stimulus.{name}", "images travel under images, not in the stimulus") for name in named])
    images: dict[str, bytes] = {str(name): content for name, content in item.images.items()}
    return checked_stimulus(item.stimulus | {name: name for name in images}, images), images or None


def checked_stimulus(row: Mapping[str, Any], files: Mapping[str, bytes]) -> Stimulus:
    """A row as a stimulus, whose images are among ``files``. Raises ApiError."""
    try:
        text = orjson.dumps(row)  # where a pair is a list
        if b"null" in text and _has_no_number(row):
            raise invalid([("stimulus", "has a number that JSON has not (NaN, or beyond 1e308)")])
        if len(text) > MOST_ROW:
            raise ApiError(413, "too_large", f"a stimulus has at most {MOST_ROW:,} bytes, its images apart")
        return parse_row(text, files=files)
    except orjson.JSONEncodeError:
        raise invalid([("stimulus", "has a whole number beyond 64 bits")]) from None
    except ValidationError as error:
        raise invalid([_problem(problem) for problem in listed(error)]) from None


def _has_no_number(value: Any) -> bool:
    if isinstance(value, float):
        return not math.isfinite(value)
    inside = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    return any(map(_has_no_number, inside))


def _problem(error: Mapping[str, Any]) -> tuple[str, str]:
    """A stimulus's problem as (field, message), the field named as in the request."""
    if error["type"].startswith("union_tag"):
        missing = "missing; " if error["type"] == "union_tag_not_found" else ""
        return "stimulus.task", f"{missing}must be one of {', '.join(ALL_TASKS)}"
    _, *path = map(str, error["loc"])
    return ".".join(["images" if path and path[0] in IMAGES else "stimulus", *path]), error["msg"]
