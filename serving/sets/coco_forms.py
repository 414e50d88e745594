"""COCO's, nocaps's, LVIS's and COCO-Search18's annotations."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr, TypeAdapter, model_validator

from agents.errors import Problem
from serving.files.words import shown

SEARCH_FRAME = (1680, 1050)  # of COCO-Search18's fixations and boxes: its pictures were shown there with bars


class CocoImage(BaseModel):
    """LVIS 1.0 has no file names but addresses of COCO's pictures, whose last folder (``url_folder``) some keep."""

    id: StrictInt
    file_name: StrictStr
    url_folder: StrictStr | None = None
    domain: Literal["in-domain", "near-domain", "out-domain"] | None = None  # of nocaps
    open_images_id: StrictStr | None = None
    neg_category_ids: list[StrictInt] | None = None  # of LVIS: looked for, and not there
    pos_category_ids: list[StrictInt] = Field(default_factory=list)
    not_exhaustive_category_ids: list[StrictInt] = Field(default_factory=list)

    @model_validator(mode="before")
    @classmethod
    def _named_by_its_address(cls, value: Any) -> Any:
        if isinstance(value, dict) and "file_name" not in value and isinstance(value.get("coco_url"), str):
            before, _, name = value["coco_url"].rpartition("/")
            return {**value, "file_name": name, "url_folder": before.rpartition("/")[2]}
        return value


class CocoSegment(BaseModel):
    """A segment of a panoptic annotation."""

    category_id: StrictInt | None = None


class CocoAnnotation(BaseModel):
    """``segments_info`` is of panoptic annotations, of which an image has a single one."""

    id: StrictInt | None = None
    image_id: StrictInt
    caption: StrictStr | None = None
    category_id: StrictInt | None = None
    segments_info: list[CocoSegment] | None = None


class CocoCategory(BaseModel):
    """A class of objects."""

    id: StrictInt
    name: StrictStr


class Coco(BaseModel):
    """A file of annotations in COCO's form."""

    images: list[CocoImage]
    annotations: list[CocoAnnotation] = Field(default_factory=list)
    categories: list[CocoCategory] = Field(default_factory=list)

    def repeated_ids(self, where: str) -> list[Problem]:
        """The ids of images and categories that stand twice in the file ``where``."""
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
    """A trial of COCO-Search18 or COCO-FreeView."""

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
        """The id of its stimulus: the picture's name, in a search with the target before it."""
        return f"{self.target}/{self.name}" if self.target else self.name


class SearchPath(Search):
    """A trial with a person's scanpath: ``X`` and ``Y`` in pixels, ``T`` in milliseconds."""

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
