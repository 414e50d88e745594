"""Request bodies of the native routes, with images in base64, and their stimuli."""

import base64
import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args
from urllib.parse import unquote

import orjson
from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler, ValidationError, WithJsonSchema
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from agents.stimuli import ADAPTER, ALL_TASKS, Stimulus, parse_row
from agents.stimulus_parts import WHOLE
from serving.http.errors import ApiError, invalid, problems_of

ImageField = Literal["image", "target_image", "target_mask"]
IMAGES: tuple[str, ...] = get_args(ImageField)
MOST_ITEMS = 1000
DECODED_AT_ONCE = 1 << 20  # characters of base64
JSON = "application/json"
ROW = {"id": "tea", "task": "word_association", "cue": "tea"}


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
    """The bytes of base64 with line ends, without padding, URL-safe or percent-encoded. Raises ApiError.

    Each piece holds Python's lock for some milliseconds, so call it in a thread of its own."""
    plain = "".join((unquote(text) if "%" in text else text).split()).replace("-", "+").replace("_", "/")
    unpadded = plain.rstrip("=")
    padded = unpadded + "=" * (-len(unpadded) % 4)
    try:
        if len(plain) - len(unpadded) > 2 or "=" in unpadded:
            raise ValueError
        return b"".join(
            base64.b64decode(padded[at : at + DECODED_AT_ONCE], validate=True)
            for at in range(0, len(padded), DECODED_AT_ONCE)
        )
    except ValueError:
        raise invalid([(field, "is no base64")]) from None


Base64 = Annotated[str, WithJsonSchema({"type": "string", "contentEncoding": "base64"})]
Seed = Annotated[int, Field(strict=True, ge=0, lt=2**53), WHOLE]


class Body(BaseModel):
    """A JSON object without unknown fields, NaN and infinity."""

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

    agent: str = Field(max_length=200, examples=["mmcq"])
    """One of GET /agents."""
    seed: Seed | None = None
    """The run's seed; the server's own by default."""


class StreamRequest(Body):
    """Ask an agent for many answers."""

    agent: str = Field(max_length=200, examples=["eliza"])
    seed: Seed | None = None
    items: list[StimulusRequest] = Field(min_length=1, max_length=MOST_ITEMS)


def stimuli_of(stream: StreamRequest) -> list[tuple[Stimulus, Mapping[str, bytes] | None, int]]:
    """A stream's stimuli, images by name and samples, for a thread as :func:`stimulus_of`. Raises ApiError."""
    stimuli = []
    problems = []
    for at, item in enumerate(stream.items):
        try:
            stimuli.append((*stimulus_of(item), item.sample))
        except ApiError as error:
            problems += [(f"items.{at}.{problem.field}", problem.message) for problem in error.problems]
    if problems:
        raise invalid(problems)
    return stimuli


def stimulus_of(item: StimulusRequest) -> tuple[Stimulus, Mapping[str, bytes] | None]:
    """The stimulus and its images by name; with images for a thread as :func:`from_base64`. Raises ApiError."""
    named = [name for name in IMAGES if name in item.stimulus]
    if named:
        raise invalid([(f"stimulus.{name}", "images travel under images, not in the stimulus") for name in named])
    images: dict[str, bytes] = {str(name): from_base64(text, f"images.{name}") for name, text in item.images.items()}
    return checked_stimulus(item.stimulus | {name: name for name in images}, images), images or None


def checked_stimulus(row: Mapping[str, Any], files: Mapping[str, bytes]) -> Stimulus:
    """A row as a stimulus with images among ``files``. Raises ApiError."""
    try:
        text = orjson.dumps(row)
        if b"null" in text and _has_no_number(row):
            raise orjson.JSONEncodeError
        return parse_row(text, files=files)
    except orjson.JSONEncodeError:
        raise invalid([("stimulus", "has a text or a number that JSON has not: NaN, or beyond 64 bits")]) from None
    except ValidationError as error:
        raise invalid([_problem(problem) for problem in problems_of(error)]) from None


def _has_no_number(value: Any) -> bool:
    if isinstance(value, float):
        return not math.isfinite(value)
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return any(map(_has_no_number, inside))


def _problem(error: Mapping[str, Any]) -> tuple[str, str]:
    if error["type"].startswith("union_tag"):
        missing = "missing; " if error["type"] == "union_tag_not_found" else ""
        return "stimulus.task", f"{missing}must be one of {', '.join(ALL_TASKS)}"
    _, *path = map(str, error["loc"])
    return ".".join(["images" if path and path[0] in IMAGES else "stimulus", *path]), error["msg"]
