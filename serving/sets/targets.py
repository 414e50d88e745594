"""What is looked for in a visual search: the target's name in a row of a set, and whether the picture shows it."""

import math
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any


def target_name(row: Mapping[str, Any]) -> str:
    """The target of a stimulus row in a word: ``meta.target``, else the name of its target picture without the ending
    (``mug`` of ``targets/mug.png``), else "none"."""
    named = (row.get("meta") or {}).get("target")
    if isinstance(named, str):
        return named
    image = row.get("target_image")
    if isinstance(image, str):
        return PurePosixPath(image).stem
    return "none"


def presence(row: Mapping[str, Any]) -> float:
    """1.0 where the picture of a stimulus row shows the target, 0.0 where it does not, NaN where nobody knows.

    ``target_present`` says it; a box or a mask of the target shows that it is there. Free viewing has no target: NaN.
    """
    if row.get("mode", "free") == "free":
        return math.nan
    present = row.get("target_present")
    if present is not None:
        return float(present)
    return 1.0 if row.get("target_box") or row.get("target_mask") else math.nan
