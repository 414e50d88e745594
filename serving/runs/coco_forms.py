"""COCO's, nocaps's and COCO-Search18's annotations."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr, TypeAdapter, model_validator

from agents.errors import Problem
from serving.runs.row_problems import shown


class CocoImage(BaseModel):
    id: StrictInt
    file_name: StrictStr
    domain: Literal["in-domain", "near-domain", "out-domain"] | None = None  # of nocaps
    open_images_id: StrictStr | None = None


class CocoAnnotation(BaseModel):
    image_id: StrictInt
    caption: StrictStr | None = None
    category_id: StrictInt | None = None


class CocoCategory(BaseModel):
    id: StrictInt
    name: StrictStr


class Coco(BaseModel):
    images: list[CocoImage]
    annotations: list[CocoAnnotation] = Field(default_factory=list)
    categories: list[CocoCategory] = Field(default_factory=list)

    def repeated_ids(self, where: str) -> list[Problem]:
        images = [("images", image.id, image.file_name) for image in self.images]
        names: dict[tuple[str, int], list[str]] = {}
        for field, id, name in [*images, *(("categories", category.id, category.name) for category in self.categories)]:
            names.setdefault((field, id), []).append(name)
        return [
            Problem(where, None, field, shown(f"the id {id} stands {len(several)} times: {', '.join(several)}"))
            for (field, id), several in names.items()
            if len(several) > 1
        ]


class Search(BaseModel):
    model_config = ConfigDict(strict=True, allow_inf_nan=False)

    name: str
    task: str | None = None
    condition: Any = None
    bbox: list[float] | None = Field(default=None, min_length=4, max_length=4)

    @property
    def target(self) -> str | None:
        """What was searched for; None in free viewing."""
        return None if self.condition == "freeview" or self.task in (None, "", "none") else str(self.task).lower()

    @property
    def stimulus(self) -> str:
        return f"{self.target}/{self.name}" if self.target else self.name


class SearchPath(Search):
    subject: int | str
    X: list[float]
    Y: list[float]
    T: list[float] | None = None

    @model_validator(mode="after")
    def _lengths_agree(self) -> SearchPath:
        if len(self.X) != len(self.Y) or (self.T is not None and len(self.T) != len(self.X)):
            raise ValueError("X, Y and T must have as many numbers")
        return self


SEARCHES = TypeAdapter(list[Search])
PATHS = TypeAdapter(list[SearchPath])
