"""What clients send: the models of the native routes, and how a request becomes a stimulus.

Images travel in the request, as base64 or as parts of a multipart body, under the name of the stimulus's field that
they fill; a stimulus in a request names no path and no address.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar, get_args

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
from pydantic_core import CoreSchema, PydanticCustomError

from agents.stimuli import ADAPTER, Stimulus, parse_row
from serving.http.errors import ApiError, invalid

ImageField = Literal["image", "target_image", "target_mask"]
IMAGES: tuple[str, ...] = get_args(ImageField)
MOST_ITEMS = 1000
M = TypeVar("M", bound=BaseModel)


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


def _decoded(text: Any) -> Any:
    if not isinstance(text, str):
        return text
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise PydanticCustomError("base64", "is no base64") from None


Base64 = Annotated[bytes, BeforeValidator(_decoded), WithJsonSchema({"type": "string", "contentEncoding": "base64"})]
Seed = Annotated[int, Field(ge=0, lt=2**53)]


class Body(BaseModel):
    """What a client sends: nothing that is not named, and nothing that JSON has no number for."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True)


class StimulusRequest(Body):
    """One stimulus to be answered."""

    stimulus: Annotated[dict[str, Any], _RowSchema()] = Field(examples=[ROW])
    """A row of a stimulus set, without its images."""
    images: dict[ImageField, Base64] = Field(default_factory=dict, examples=[{}])
    """Base64 of the image files, by the stimulus's field."""
    sample: Annotated[int, Field(ge=0, lt=2**31)] = 0
    """Which of an agent's answers: another number draws another one."""


class ResponseRequest(StimulusRequest):
    """Ask an agent for one answer."""

    agent: str = Field(max_length=200, examples=["null"])
    """One of GET /v1/agents."""
    seed: Seed | None = None
    """The run's seed; the server's own, if none is given."""


class StreamRequest(Body):
    """Ask an agent for many answers."""

    agent: str = Field(max_length=200, examples=["null"])
    seed: Seed | None = None
    items: list[StimulusRequest] = Field(min_length=1, max_length=MOST_ITEMS)


def parse(model: type[M], body: bytes | str) -> M:
    """The body as its model. Raises ApiError 400 for what is no JSON and 422, with all that is wrong, for other."""
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        raise unreadable(error.errors(include_url=False, include_input=False, include_context=False)) from None


def unreadable(errors: Sequence[Mapping[str, Any]], of_body: bool = False) -> ApiError:
    """The error for what pydantic found. Where ``of_body``, FastAPI has put "body" before each field."""
    empty = of_body and errors[0]["loc"] == ("body",) and errors[0]["type"] == "missing"
    if errors[0]["type"] == "json_invalid" or empty:
        return ApiError(400, "bad_json", "the body is no JSON")
    return invalid([(".".join(map(str, one["loc"][of_body:])) or "body", one["msg"]) for one in errors])


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
        return parse_row(json.dumps(row), files=files)  # as JSON, where a pair is a list
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False, include_context=False)
    raise invalid([(_field(one), one["msg"]) for one in found])


def _field(error: Mapping[str, Any]) -> str:
    """The field of a stimulus's problem as the request has it: its images are beside the stimulus."""
    if error["type"].startswith("union_tag"):
        return "stimulus.task"
    task_and_path = [str(part) for part in error["loc"]]
    beside = task_and_path[1:2] and task_and_path[1] in IMAGES
    return ".".join(["images" if beside else "stimulus", *task_and_path[1:]])
