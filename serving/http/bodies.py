"""What clients send: the models of the native routes, and how a request becomes a stimulus.

Images travel in the request, as base64 or as parts of a multipart body, under the name of the stimulus's field that
they fill; a stimulus in a request names no path and no address.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError, WithJsonSchema
from pydantic.config import JsonDict

from agents.stimuli import ADAPTER, Stimulus, parse_row
from serving.http.errors import ApiError
from serving.runs.row_problems import field_problems

IMAGES = ("image", "target_image", "target_mask")
ImageField = Literal["image", "target_image", "target_mask"]
MOST_ITEMS = 1000
M = TypeVar("M", bound=BaseModel)
SHOWN = 20  # problems in one error

COLOR: JsonDict = {"id": "tulip", "task": "color_estimation"}
CUES: list[JsonValue] = [{"stimulus": {"id": cue, "task": "word_association", "cue": cue}} for cue in ("tea", "sea")]
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


class Body(BaseModel):
    """What a client sends: nothing that is not named, and nothing that JSON has no number for."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True)


class Asked(Body):
    """One stimulus to be answered."""

    stimulus: Annotated[dict[str, Any], WithJsonSchema({"type": "object", "title": "Stimulus"})]
    """A row of a stimulus set, without its images."""
    images: dict[ImageField, str] = Field(default_factory=dict, examples=[{"image": PIXEL}])
    """Base64 of the image files, by the stimulus's field."""
    sample: Annotated[int, Field(ge=0, lt=2**31)] = 0
    """Which of an agent's answers: another number draws another one."""


class ResponseRequest(Asked):
    """Ask an agent for one answer."""

    agent: str = Field(max_length=200, examples=["mmcq"])
    """One of GET /v1/agents."""
    seed: Annotated[int, Field(ge=0, lt=2**53)] | None = None
    """The run's seed; the server's own, if none is given."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"agent": "mmcq", "stimulus": COLOR, "images": {"image": PIXEL}, "seed": 7}],
        }
    )


class StreamRequest(Body):
    """Ask an agent for many answers."""

    agent: str = Field(max_length=200, examples=["mmcq"])
    seed: Annotated[int, Field(ge=0, lt=2**53)] | None = None
    items: list[Asked] = Field(min_length=1, max_length=MOST_ITEMS)

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "agent": "null",
                    "items": CUES,
                }
            ]
        }
    )


def parse(model: type[M], body: bytes) -> M:
    """The body as its model. Raises ApiError 400 for what is no JSON and 422, with all that is wrong, for other."""
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        raise invalid(error) from None


def invalid(error: ValidationError) -> ApiError:
    """The ApiError for what pydantic found."""
    found = error.errors(include_url=False, include_input=False, include_context=False)
    if found and found[0]["type"] == "json_invalid":
        return ApiError(400, "bad_json", "the body is no JSON")
    return _wrong([(".".join(map(str, one["loc"])) or "body", one["msg"]) for one in found])


def _wrong(found: Sequence[tuple[str, str]]) -> ApiError:
    """The ApiError for fields and what is wrong with each."""
    problems = [_problem(field, message) for field, message in found[:SHOWN]]
    message = f"{len(found)} fields of the request are wrong"
    if len(problems) == 1:
        message = f"{problems[0]['field']}: {problems[0]['message']}"
    return ApiError(422, "invalid_request", message, problems=problems)


def stimulus_of(asked: Asked, files: Mapping[str, bytes] | None = None) -> tuple[Stimulus, dict[str, bytes] | None]:
    """The stimulus and the bytes of its images by their names. Raises ApiError."""
    row = dict(asked.stimulus)
    message = "images travel under images, not in the stimulus"
    problems = [_problem(f"stimulus.{name}", message) for name in IMAGES if name in row]
    if problems:
        raise ApiError(422, "invalid_request", message, problems=problems)
    found = {**_decoded(asked.images), **(files or {})}
    return checked_stimulus(row | {name: name for name in found}, found), found or None


def checked_stimulus(row: Mapping[str, Any], files: Mapping[str, bytes]) -> Stimulus:
    """A row as a stimulus, whose images are among ``files``. Raises ApiError."""
    try:
        return parse_row(json.dumps(row), files=files)  # as JSON, where a pair is a list
    except ValidationError as error:
        raise _wrong([_of_row(field, message) for field, message in field_problems(error)]) from None


def _of_row(field: str | None, message: str) -> tuple[str, str]:
    """A problem of a row by its field in the request, where images are beside the stimulus."""
    if field in IMAGES:
        return f"images.{field}", message
    return ("stimulus" if field is None else f"stimulus.{field}"), message


def _problem(field: str, message: str) -> dict[str, str]:
    return {"field": field[:200], "message": message[:200]}


def _decoded(images: Mapping[ImageField, str]) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for name, text in images.items():
        try:
            found[name] = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            problem = _problem(f"images.{name}", "is no base64")
            raise ApiError(422, "invalid_request", f"images.{name} is no base64", problems=[problem]) from None
    return found


def stimulus_schemas() -> dict[str, Any]:
    """JSON Schemas, by name, of the stimuli that a request may hold: those of a set without their images."""
    found = ADAPTER.json_schema(ref_template="#/components/schemas/{model}")
    schemas: dict[str, Any] = found.pop("$defs")
    for schema in schemas.values():
        for name in IMAGES:
            schema["properties"].pop(name, None)
        schema["required"] = [name for name in schema.get("required", ()) if name not in IMAGES]
    return {**schemas, "Stimulus": found}


MODELS: tuple[type[BaseModel], ...] = (ResponseRequest, StreamRequest)
