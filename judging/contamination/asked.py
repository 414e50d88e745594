"""What ``score --contamination`` is asked for: a rate that is known, or people's answers with traces."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from agents.errors import InputError

RATE = re.compile(r"([0-9]*\.?[0-9]+)(?:-([0-9]*\.?[0-9]+))?")
Folder = str | PathLike[str]
Contaminated = Folder | float | tuple[float, float]
"""A rate, its bounds, either of them as text ("0.1", "0.05-0.2"), or a run folder with traces."""


@dataclass(frozen=True, slots=True)
class KnownRate:
    """A rate that is known from elsewhere, by its bounds."""

    low: float
    """The least rate, 0 to below 1."""
    high: float
    """The largest; the same where the rate is known exactly."""
    like: str | None = None
    """The agents, with commas, whose answers are judged as foreign ones are; None for all agents that were judged."""


@dataclass(frozen=True, slots=True)
class Traced:
    """Run folders with people's answers and their traces."""

    field: Path
    """The export of a study."""
    laboratory: Sequence[Path] = ()
    """Answers that were written under supervision."""


def read_asked(
    contamination: Contaminated | None, anchor: Folder | Sequence[Folder] = (), pasted_like: str | None = None
) -> KnownRate | Traced | None:
    """What is asked for; None where nothing is. Raises InputError for rates outside 0 to 1, and for options that do not
    go together."""
    laboratory = [Path(anchor)] if isinstance(anchor, str | PathLike) else [Path(folder) for folder in anchor]
    if contamination is None:
        if laboratory or pasted_like is not None:
            raise InputError("anchor and pasted_like correct for contamination: give contamination, too")
        return None
    bounds = bounds_of(contamination)
    if bounds is None:
        if pasted_like is not None:
            raise InputError("pasted_like goes with a known rate; traces say themselves how foreign answers are judged")
        return Traced(Path(contamination), laboratory)  # type: ignore[arg-type]
    if laboratory:
        raise InputError("anchor goes with answers with traces; a known rate needs none")
    low, high = bounds
    if not (0 <= low <= high < 1) or math.isnan(high):
        given = f"{low:g}" if low == high else f"{low:g}-{high:g}"
        raise InputError(f"contamination: a rate is from 0 to below 1, its lower bound first, not {given}")
    return KnownRate(low, high, pasted_like)


def bounds_of(contamination: Contaminated) -> tuple[float, float] | None:
    """The bounds of a known rate; None for a folder."""
    if isinstance(contamination, tuple):
        low, high = contamination
        return float(low), float(high)
    if isinstance(contamination, int | float):
        return float(contamination), float(contamination)
    if isinstance(contamination, str) and (found := RATE.fullmatch(contamination)):
        return float(found[1]), float(found[2] or found[1])
    return None
