"""The request bodies of the native routes, whose images are in base64, and the rows of stimuli in them."""

import base64
import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args
from urllib.parse import unquote

import orjson
from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler, ValidationError, WithJsonSchema
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from agents.stimuli import ADAPTER, ALL_TASKS, parse_row
from agents.stimulus_parts import WHOLE
from serving.http.errors import ApiError, invalid, problems_of
from serving.sets.stimulus_row import StimulusRow

ImageField = Literal["image", "target_image", "target_mask"]
IMAGES: tuple[str, ...] = get_args(ImageField)
MOST_ITEMS = 1000  # stimuli of one stream
DECODED_AT_ONCE = 1 << 20  # characters of base64: the longer the piece, the longer all other threads wait
JSON = "application/json"
ROW = {"id": "tea", "task": "word_association", "cue": "tea"}  # the example in the API's pages


class _RowSchema:
    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        schema = handler(ADAPTER.core_schema)
        for reference in schema["oneOf"]:
            row = handler.resolve_ref_schema(reference)
            for name in IMAGES:
                row["properties"].pop(name, None)
            row["required"] = [name for name in row["required"] if name not in IMAGES]
        return schema


def from_base64(text: str, field: str) -> bytes:
    """The bytes of a base64 text; it may have line ends, no padding, the URL-safe alphabet, or be percent-encoded.

    ``field`` is named in the error. Call it in a thread of its own: each piece holds Python's lock for some
    milliseconds, and the server's event loop would answer nobody. Raises ApiError 422 for what is no base64.
    """
    plain = "".join((unquote(text) if "%" in text else text).split()).replace("-", "+").replace("_", "/")
    unpadded = plain.rstrip("=")
    padded = unpadded + "=" * (-len(unpadded) % 4)
    try:
        if len(plain) - len(unpadded) > 2 or "=" in unpadded:
            raise ValueError
        pieces = []
        for begin in range(0, len(padded), DECODED_AT_ONCE):
            pieces.append(base64.b64decode(padded[begin : begin + DECODED_AT_ONCE], validate=True))
        return b"".join(pieces)
    except ValueError:
        raise invalid([(field, "is no base64")]) from None


Base64 = Annotated[str, WithJsonSchema({"type": "string", "contentEncoding": "base64"})]
Seed = Annotated[int, Field(strict=True, ge=0, lt=2**53), WHOLE]


class Body(BaseModel):
    """A JSON object; unknown fields, NaN and infinity are refused."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True)


class StimulusRequest(Body):
    """One stimulus to be answered."""

    stimulus: Annotated[dict[str, Any], _RowSchema()] = Field(examples=[ROW])
    """A row of a stimulus set, without its images."""
    images: dict[ImageField, Base64] = Field(default_factory=dict, examples=[{}])
    """Base64 of the image files, by the stimulus's field."""
    sample: Annotated[int, Field(strict=True, ge=0, lt=2**31), WHOLE] = 0
    """The number of the answer: with another number the agent draws another answer."""


class ResponseRequest(StimulusRequest):
    """Ask an agent for one answer."""

    agent: str = Field(max_length=200, examples=["mmcq"])
    """One of GET /agents."""
    seed: Seed | None = None
    """The run's seed; the server's own by default."""


class StreamRequest(Body):
    """Ask an agent for many answers."""

    agent: str = Field(max_length=200, examples=["eliza"])
    """One of GET /agents."""
    seed: Seed | None = None
    """The run's seed; the server's own by default."""
    items: list[StimulusRequest] = Field(min_length=1, max_length=MOST_ITEMS)
    """The stimuli."""


def rows_of_stream(stream: StreamRequest) -> list[tuple[StimulusRow, int]]:
    """The rows of a stream's stimuli, each with the sample that is asked. Raises ApiError 422 with the problems of all.
    Call it in a thread of its own, as :func:`from_base64`."""
    rows = []
    problems = []
    for place, item in enumerate(stream.items):
        try:
            rows.append((row_of_request(item), item.sample))
        except ApiError as error:
            problems += [(f"items.{place}.{problem.field}", problem.message) for problem in error.problems]
    if problems:
        raise invalid(problems)
    return rows


def row_of_request(item: StimulusRequest) -> StimulusRow:
    """The row of a request's stimulus, with the bytes of its images. Raises ApiError 422. If there are images, call it
    in a thread of its own, as :func:`from_base64`."""
    named = [name for name in IMAGES if name in item.stimulus]
    if named:
        raise invalid([(f"stimulus.{name}", "images travel under images, not in the stimulus") for name in named])
    images: dict[str, bytes] = {str(name): from_base64(text, f"images.{name}") for name, text in item.images.items()}
    return checked_row(item.stimulus | {name: name for name in images}, images)


def checked_row(fields: Mapping[str, Any], files: Mapping[str, bytes]) -> StimulusRow:
    """The row of a stimulus's ``fields``, whose images are names in ``files``. It is parsed here, once for all that is
    asked about it. Raises ApiError 422."""
    try:
        text = orjson.dumps(fields)
        if b"null" in text and _has_no_number(fields):
            raise orjson.JSONEncodeError
        return StimulusRow.of(parse_row(text, files=files), files or None)
    except orjson.JSONEncodeError:
        raise invalid([("stimulus", "has a text or a number that JSON has not: NaN, or beyond 64 bits")]) from None
    except ValidationError as error:
        raise invalid([_problem(problem) for problem in problems_of(error)]) from None


def _has_no_number(value: Any) -> bool:
    if isinstance(value, float):
        return not math.isfinite(value)
    if isinstance(value, dict):
        return any(map(_has_no_number, value.values()))
    return isinstance(value, list | tuple) and any(map(_has_no_number, value))


def _problem(error: Mapping[str, Any]) -> tuple[str, str]:
    if error["type"].startswith("union_tag"):
        missing = "missing; " if error["type"] == "union_tag_not_found" else ""
        return "stimulus.task", f"{missing}must be one of {', '.join(ALL_TASKS)}"
    _, *path = map(str, error["loc"])
    return ".".join(["images" if path and path[0] in IMAGES else "stimulus", *path]), error["msg"]
