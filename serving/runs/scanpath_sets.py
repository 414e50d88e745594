"""COCO-Search18's list of scanpaths, and the side-car ``X.export.json`` of an export in that form."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
from pydantic import BaseModel, ConfigDict, model_validator

from agents.errors import InputError

FREE = ""  # the target of free viewing
Size = tuple[float, float]  # width, height


class CocoPath(BaseModel):
    """An entry of COCO-Search18's list."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)

    name: str
    subject: int | str
    X: list[float]
    Y: list[float]
    T: list[float] | None = None
    task: str | None = None
    condition: Any = None

    @model_validator(mode="after")
    def _lengths_agree(self) -> CocoPath:
        if len(self.X) != len(self.Y) or (self.T is not None and len(self.T) != len(self.X)):
            raise ValueError("X, Y and T must have one number for each fixation")
        return self


def searched_for(condition: Any, task: str | None) -> str | None:
    """What an entry of COCO-Search18's list says was searched for: nothing in free viewing; None if it does not say."""
    if condition == "freeview":
        return FREE
    return None if task in (None, "", "none") else str(task).lower()


def sidecar(path: Path) -> tuple[Mapping[tuple[str, str | None], Size], Mapping[str, tuple[str, int]]]:
    """Frames by (name, subject), and (agent, sample) by subject, from the side-car of an export; maybe none."""
    if not path.is_file():
        return {}, {}
    try:
        content = orjson.loads(path.read_bytes())
        frames: dict[tuple[str, str | None], Size] = {
            (name, None): (size[0], size[1]) for name, size in content.get("frames", {}).items()
        }
        for other in content.get("other_frames", ()):
            frames[other["name"], str(other["subject"])] = (other["frame"][0], other["frame"][1])
        return frames, {number: (who["agent"], who["sample"]) for number, who in content.get("subjects", {}).items()}
    except (orjson.JSONDecodeError, AttributeError, KeyError, IndexError, TypeError) as error:
        raise InputError(f"{path} is not the side-car of an export: {error!r}") from None
