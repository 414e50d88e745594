"""How fast an agent's answers came, from its records: for a run that goes on, and for one that will be continued."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from math import sqrt
from typing import Any

import numpy as np

from serving.runs.estimates import Estimate, within
from serving.runs.forecast import Forecast, unix_time
from serving.runs.forecast_sample import Numbers


class Pace:
    """What records say of speed and size. Give each record, in any order, to :meth:`note`."""

    def __init__(self, positions: Mapping[tuple[str, str], int]) -> None:
        """``positions`` of the run's stimuli by (task, id)."""
        self._positions = positions
        self._places = array("q")
        self._created = array("d")
        self._waiting = array("d")
        self._preparing = array("d")
        self._responding = array("d")
        self._sizes = array("q")
        self._devices: set[tuple[str, str]] = set()

    def note(self, record: Mapping[str, Any]) -> None:
        """Note a record. Those without time, and those of no stimulus of the run, say nothing."""
        position = self._positions.get((record["task"], record["stimulus"]))
        timing = record.get("timing")
        worker = record.get("worker")
        if position is None or not timing or not worker or not record.get("created"):
            return
        self._places.append(position)
        self._created.append(unix_time(record["created"]))
        self._waiting.append(timing["waiting"])
        self._preparing.append(timing["preparing"])
        self._responding.append(timing["responding"])
        self._sizes.append(worker["batch_size"])
        self._devices.add((worker["host"], worker["device"]))

    @property
    def answers(self) -> int:
        """The records that say something."""
        return len(self._places)

    @property
    def last(self) -> float:
        """When the last of them was created (Unix time); 0 without any."""
        return max(self._created, default=0.0)

    @property
    def is_on_gpu(self) -> bool:
        """Whether a worker was on a GPU."""
        return any(device.startswith("cuda") for _, device in self._devices)

    def forecast(
        self, missing: Sequence[int], lengths: Numbers, *, in_turns: bool, workers: int | None = None
    ) -> Forecast:
        """The forecast of what is ``missing``, in answers to each row of the set with these ``lengths``. ``in_turns``:
        the records are conversations. ``workers`` made them; None: as many as it looks like."""
        there = np.bincount(np.array(self._places, np.intp), minlength=len(missing))
        size = 1 if in_turns else max(self._sizes, default=1)
        forecast = Forecast(
            (there + missing).astype(np.float64), lengths, batch_size=size, workers=workers, in_turns=in_turns
        )
        for place in np.argsort(np.array(self._created), kind="stable").tolist():
            if in_turns:
                seconds = self._waiting[place] + self._preparing[place] + self._responding[place]
                forecast.note_talk(self._places[place], self._created[place], seconds)
                continue
            forecast.note(
                self._places[place],
                self._created[place],
                self._preparing[place],
                self._responding[place],
                self._sizes[place],
            )
        return forecast


def mean(total: float, squares: float, number: int) -> Estimate:
    """The mean of ``number`` positive values with this sum and sum of squares, with its interval."""
    value = total / number
    if number < 2 or not value:
        return Estimate(value)
    variance = max(0.0, squares / number - value**2) / (number - 1)
    return within(value, (sqrt(variance) / value) ** 2, number - 1)
