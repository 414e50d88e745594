"""What clients send: how a body is read, the models of the native routes, and how a request becomes a stimulus.

Images travel in the request, as base64 or as parts of a multipart body, under the name of the stimulus's field that
they fill; a stimulus in a request names no path and no address.

No body may keep others waiting. How many values it has is limited before any is looked at, and large bodies are read in
a thread of their own, one at a time.
"""

from __future__ import annotations

import asyncio
import base64
import math
import re
import string
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
from serving.http.errors import ApiError, invalid

ImageField = Literal["image", "target_image", "target_mask"]
IMAGES: tuple[str, ...] = get_args(ImageField)
MOST_ITEMS = 1000
MOST_VALUES = 50_000  # commas and brackets of a body, also those in its texts: counting them takes no parser
MOST_ESCAPES = 1_000_000  # backslashes, which take longer to read than what they stand for
MOST_BESIDE = 8 << 20  # bytes that are no base64
MOST_LISTED = 1000  # problems of a body of which each is looked at
MOST_ROW = 4 << 20  # bytes of a stimulus
LARGE = 65_536  # bytes of a body from which on it is read beside the event loop
PIECE = 1 << 20  # bytes that are gone through at once: between two pieces other threads have their turn
KIB = 1024
BASE64 = string.ascii_letters.encode() + string.digits.encode() + rb"+/=\-_%"
COLON = re.compile(rb"\s*:")
JSON = "application/json"
M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")
P = ParamSpec("P")
_reader = ThreadPoolExecutor(1, "bodies")


ROW = {"id": "tea", "task": "word_association", "cue": "tea"}


class _RowSchema:
    """The JSON Schema of a stimulus set's row without its images, for the OpenAPI document."""

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        schema = handler(ADAPTER.core_schema)
        for reference in schema["oneOf"]:
            one = handler.resolve_ref_schema(reference)
            for name in IMAGES:
                one["properties"].pop(name, None)
            one["required"] = [name for name in one["required"] if name not in IMAGES]
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
    """What a client sends: nothing that is not named, and nothing that JSON has no number for."""

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
    """The run's seed; the server's own, if none is given."""


class StreamRequest(Body):
    """Ask an agent for many answers."""

    agent: str = Field(max_length=200, examples=["null"])
    seed: Seed | None = None
    items: list[StimulusRequest] = Field(min_length=1, max_length=MOST_ITEMS)


def parse(model: type[M], body: bytes | str) -> M:
    """The body as its model. Raises ApiError 400 for what is no JSON, 413 for what has too many values, and 422, with
    all that is wrong, for other."""
    _check_contents(body.encode() if isinstance(body, str) else body)
    try:
        found = from_json(body, cache_strings="none")
    except ValueError:
        raise ApiError(400, "bad_json", "the body is no JSON") from None
    try:
        return model.model_validate(found)  # which copies no texts, as reading JSON by the model would
    except ValidationError as error:
        raise unreadable(error) from None


def _check_contents(body: bytes) -> None:
    """Raises ApiError 413 for what would take long to read."""
    values = escapes = 0
    for at in range(0, len(body), PIECE):
        piece = body[at : at + PIECE]
        values += piece.count(b",") + piece.count(b"[") + piece.count(b"{")
        escapes += piece.count(b"\\")
        if values > MOST_VALUES or escapes > MOST_ESCAPES:
            most = f"{MOST_VALUES:,} commas and brackets and {MOST_ESCAPES:,} backslashes"
            raise ApiError(413, "too_large", f"a request has at most {most}")
    if len(body) > MOST_BESIDE and len(body) - _long_base64(body) > MOST_BESIDE:
        raise ApiError(413, "too_large", f"a request has at most {MOST_BESIDE >> 20} MiB beside its images")


def _long_base64(body: bytes) -> int:
    """Bytes in kibibytes of base64 alone (JSON may escape its slashes and line ends) within texts that are no keys.
    Raises ApiError 413 for one of digits alone."""
    found = end = 0
    is_value = False
    for at in range(0, len(body), KIB):
        block = body[at : at + KIB]
        if block.isdigit():  # reading it would take long, and no field has such a number
            raise ApiError(413, "too_large", f"a number has at most {KIB:,} digits")
        if block.translate(None, BASE64):
            continue
        if at >= end:
            closing = body.find(b'"', at)
            end = closing if closing >= 0 else len(body)
            is_value = body[end - 1 : end] != b"\\" and not COLON.match(body, end + 1)
        if is_value and at + KIB <= end:
            found += KIB
    return found


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


def documented_body(model: type[BaseModel], **forms: Any) -> dict[str, Any]:
    """``openapi_extra`` of a route that takes such a body, or other ``forms`` by their types."""
    content = {JSON: {"schema": {"$ref": f"#/components/schemas/{model.__name__}"}}, **forms}
    return {"requestBody": {"required": True, "content": content}}


def unreadable(error: ValidationError) -> ApiError:
    """The error for what pydantic found in a body."""
    return wrong(error, [(".".join(map(str, one["loc"])) or "body", one["msg"]) for one in listed(error)])


def listed(error: ValidationError) -> list[Any]:
    """What pydantic found, without what was given; nothing of so much that listing it would take long."""
    few = error.error_count() <= MOST_LISTED
    return list(error.errors(include_url=False, include_input=False, include_context=False)) if few else []


def wrong(error: ValidationError, found: list[tuple[str, str]]) -> ApiError:
    """The error for the problems that were listed, or for so many that they were not."""
    return invalid(found or [("body", f"{error.error_count():,} fields are wrong")])


def stimulus_of(
    asking: StimulusRequest, files: Mapping[str, bytes] | None = None
) -> tuple[Stimulus, Mapping[str, bytes] | None]:
    """The stimulus and the bytes of its images by their names. Raises ApiError."""
    named = [name for name in IMAGES if name in asking.stimulus]
    if named:
        raise invalid([(f"stimulus.{name}", "images travel under images, not in the stimulus") for name in named])
    found: dict[str, bytes] = {**asking.images, **(files or {})}  # type: ignore[dict-item]
    return checked_stimulus(asking.stimulus | {name: name for name in found}, found), found or None


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
        raise wrong(error, [_problem(one) for one in listed(error)]) from None


def _has_no_number(value: Any) -> bool:
    if isinstance(value, float):
        return not math.isfinite(value)
    inside = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    return any(map(_has_no_number, inside))


def _problem(error: Mapping[str, Any]) -> tuple[str, str]:
    """The field of a stimulus's problem as the request has it, whose images are beside the stimulus, and what is
    wrong."""
    if error["type"].startswith("union_tag"):
        missing = "missing; " if error["type"] == "union_tag_not_found" else ""
        return "stimulus.task", f"{missing}must be one of {', '.join(ALL_TASKS)}"
    task_and_path = [str(part) for part in error["loc"]]
    beside = task_and_path[1:2] and task_and_path[1] in IMAGES
    return ".".join(["images" if beside else "stimulus", *task_and_path[1:]]), error["msg"]
