"""What all rows of a set have: types of their fields, and the base of stimuli."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, field_validator
from pydantic_core import PydanticCustomError

from agents.images import Image

MOST_META = 1000
"""Entries of ``meta`` at most."""
IMAGES = ("image", "target_image", "target_mask", "clip")
"""The fields of stimuli that name an image."""


def _whole(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


WHOLE = BeforeValidator(_whole)
"""For whole numbers: 24.0 counts as one, as in JSON Schema."""
Scalar = str | int | float | bool | None
"""A value of ``meta``."""
StimulusText = Annotated[str, StringConstraints(min_length=1, max_length=100_000)]
"""A text of 1 to 100,000 characters."""
Word = Annotated[str, StringConstraints(min_length=1, max_length=200, strip_whitespace=True)]
"""A word or name of 1 to 200 characters, without the spaces around it."""
Pixels = Annotated[int, Field(ge=1, le=1_000_000), WHOLE]
"""A length in pixels."""


class StimulusPart(BaseModel):
    """Base of stimuli and of their parts: unknown fields and numbers that are not finite are refused, and types are not
    converted."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class BaseStimulus(StimulusPart):
    """What the stimuli of all tasks have."""

    id: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    """Its name in the set, which no other stimulus has; records and seeds go by it."""
    benchmark_id: str | None = None
    """Its name in the papers' benchmark."""
    source: str | None = None
    """The data set that it comes from."""
    source_id: str | None = None
    """Its name in that data set."""
    meta: dict[str, Scalar] = Field(
        default_factory=dict,
        description="Whole numbers have 64 bits, which JSON Schema cannot say beside numbers with an exponent.",
        json_schema_extra={"maxProperties": MOST_META},
    )
    """Whatever else is known of it, by name; each becomes a column of exports."""

    @field_validator("id")
    @classmethod
    def _id_is_plain(cls, value: str) -> str:
        if not value.isprintable() or "\\" in value or value.startswith("/") or ".." in value.split("/"):
            raise PydanticCustomError("id", "must be printable, without a backslash, a '/' at its start or a '..' part")
        return value

    @field_validator("meta", mode="before")
    @classmethod
    def _meta_is_small(cls, value: Any) -> Any:
        if isinstance(value, dict) and len(value) > MOST_META:  # before each is checked
            raise PydanticCustomError("meta", "has more than {most} entries", {"most": MOST_META})
        return value

    @field_validator("meta")
    @classmethod
    def _meta_fits_64_bits(cls, value: dict[str, Scalar]) -> dict[str, Scalar]:
        for key, entry in value.items():
            if isinstance(entry, int) and not -(2**63) <= entry < 2**63:
                raise PydanticCustomError(
                    "meta", "{key}: a whole number beyond 64 bits; write it as text", {"key": key}
                )
        return value

    def images(self) -> list[Image]:
        """Every image that it names."""
        return list(self.images_by_field().values())

    def images_by_field(self) -> dict[str, Image]:
        """Every image that it names, by the field (:data:`IMAGES`)."""
        fields = vars(self)  # quicker than getattr, for which pydantic looks for private attributes
        return {name: image for name in IMAGES if (image := fields.get(name)) is not None}
