"""The properties of answers as numbers, by task and tell, as the transformations of :mod:`judging.tells` have them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from functools import partial
from typing import Any

from agents.contract import is_installed
from judging.statistics.tell_properties import Measure, MeasuresByTask
from judging.tells.registry import TRANSFORMATIONS
from judging.tells.seen import seen_in


def measures_of_tells() -> MeasuresByTask:
    """By task each transformation's measure of a trial's answer; without those whose package is not installed."""
    measures: dict[str, dict[str, Measure]] = defaultdict(dict)
    for name, transformation in TRANSFORMATIONS.items():
        if transformation.package is not None and not is_installed(transformation.package):
            continue
        for task in transformation.tasks:
            measures[task][name] = partial(_measured, name)
    return measures


def _measured(name: str, trial: Mapping[str, Any]) -> float:
    return TRANSFORMATIONS[name].measure(seen_in(trial))
