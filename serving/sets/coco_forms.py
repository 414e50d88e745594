"""COCO's, nocaps's, LVIS's and COCO-Search18's annotations."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr, TypeAdapter, model_validator

from agents.errors import Problem
from serving.files.words import shown

SEARCH_FRAME = (1680, 1050)  # of COCO-Search18's fixations and boxes: its pictures were shown there with bars


class CocoImage(BaseModel):
    """A picture of the file. LVIS 1.0 gives no file name but the address of COCO's picture, from which it is taken."""

    id: StrictInt
    """The number that annotations have as ``image_id``."""
    file_name: StrictStr
    """The picture's name, or path below the folder of pictures."""
    url_folder: StrictStr | None = None
    """The last folder of LVIS's address; None where the file names its pictures."""
    domain: Literal["in-domain", "near-domain", "out-domain"] | None = None
    """nocaps's part, by whether COCO has the objects; None elsewhere."""
    open_images_id: StrictStr | None = None
    """nocaps's key to Open Images; None elsewhere."""
    neg_category_ids: list[StrictInt] | None = None
    """LVIS's classes that were looked for and are not there; None elsewhere: nobody says."""
    pos_category_ids: list[StrictInt] = Field(default_factory=list)
    """LVIS's classes that are there."""
    not_exhaustive_category_ids: list[StrictInt] = Field(default_factory=list)
    """LVIS's classes of which not every instance is annotated."""

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
    """The class of its pixels; None where the file says nothing."""


class CocoAnnotation(BaseModel):
    """A caption, an object's class, or the classes of a whole picture (panoptic)."""

    id: StrictInt | None = None
    """The annotation's number; None in panoptic files."""
    image_id: StrictInt
    """The picture's number, as :attr:`CocoImage.id`."""
    caption: StrictStr | None = None
    """A person's sentence; None for annotations of objects."""
    category_id: StrictInt | None = None
    """The object's class; None for captions and panoptic annotations."""
    segments_info: list[CocoSegment] | None = None
    """The classes of a panoptic annotation, of which a picture has a single one; None elsewhere."""


class CocoCategory(BaseModel):
    """A class of objects."""

    id: StrictInt
    """The number by which annotations name it."""
    name: StrictStr
    """Its word, such as "teddy bear"."""


class Coco(BaseModel):
    """A file of annotations in COCO's form."""

    images: list[CocoImage]
    """The pictures, whether or not something is annotated in them."""
    annotations: list[CocoAnnotation] = Field(default_factory=list)
    """Captions or objects; [] in a list of pictures alone."""
    categories: list[CocoCategory] = Field(default_factory=list)
    """The classes of objects; [] in a file of captions."""

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


class CocoTrial(BaseModel):
    """A trial of COCO-Search18 or COCO-FreeView."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)

    name: str
    """The picture's file name."""
    task: str | None = None
    """The class that was searched for, such as "bowl"; None or "none" in free viewing."""
    condition: Any = None
    """Whether the target is there: "present" or "absent"; "freeview" where nobody searched."""
    bbox: list[float] | None = Field(default=None, min_length=4, max_length=4)
    """The target's box [x, y, width, height], in pixels of the screen or the picture; None where none is given."""

    @property
    def target(self) -> str | None:
        """What was searched for; None in free viewing."""
        return None if self.condition == "freeview" or self.task in (None, "", "none") else str(self.task).lower()

    @property
    def stimulus(self) -> str:
        """The id of its stimulus: the picture's name, in a search with the target before it."""
        return f"{self.target}/{self.name}" if self.target else self.name


class SearchPath(CocoTrial):
    """A trial with a person's scanpath, whose three lists are equally long."""

    subject: int | str
    """The person's number or name."""
    X: list[float]
    """From the left, in pixels of the screen, by fixation."""
    Y: list[float]
    """From the top, in pixels of the screen, by fixation."""
    T: list[float] | None = None
    """How long each fixation lasted, in milliseconds; None where the file has no durations."""

    @model_validator(mode="after")
    def _lengths_agree(self) -> SearchPath:
        if len(self.X) != len(self.Y) or (self.T is not None and len(self.T) != len(self.X)):
            raise ValueError("X, Y and T must have as many numbers")
        return self


SEARCHES = TypeAdapter(list[CocoTrial])
PATHS = TypeAdapter(list[SearchPath])
