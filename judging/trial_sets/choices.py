"""What :func:`judging.trials` is asked for, checked before anything is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from agents.errors import InputError
from agents.stimuli import TASKS, Asked
from judging.tells.registry import check_names

Preset = Literal["2022", "2025"]
PRESETS: Mapping[str, Mapping[Asked, int]] = {
    # 2022 paper, Table 1 and sections S2 to S7; captions are not stated, and are those of 2025.
    "2022": dict(zip(TASKS, (25, 25, 12, 40, 50, 20), strict=True)),
    # 2025 paper, Methods, "shown per judge"; words are not stated, and are those of 2022.
    "2025": dict(zip(TASKS, (25, 25, 12, 40, 50, 32), strict=True)),
}
OF_ALL = ("per_agent", "lists", "per_judge", "every", "repeats")  # choices that the set's file notes
OF_PAIRS = ("pairs", "show_pseudo")
OF_SPEAKERS = ("preset", "common", "unique", "catch", "as_written")
OF_VERSIONS = ("without", "plant")


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What :func:`judging.trials` was asked for, in the form in which it is drawn by. Raises InputError for what no
    trial set can be."""

    runs: Sequence[Path]
    """Run folders whose answers count."""
    people: Sequence[Path]
    """Run folders of which people's answers alone count."""
    tasks: Sequence[str]
    """Tasks by their full names."""
    agents: Sequence[str] | None
    """Names of agents; None: all."""
    per_agent: int | None
    """Trials of each agent; None: as many as can be balanced."""
    lists: int
    """The number of lists."""
    per_judge: int | None
    """Trials in each list; None: all, or what ``preset`` says."""
    preset: Preset | None
    """The paper whose numbers of trials a list has; None: none."""
    lengths: Sequence[int]
    """Messages of excerpts, of pairs turns, in increasing order."""
    pairs: bool
    """Whether two conversations stand beside each other."""
    show_pseudo: bool
    """Whether pairs show what a machine wrote beforehand."""
    show_delays: bool
    """Whether messages say how long they took."""
    common: bool
    """Whether only stimuli count that people and every agent answered."""
    unique: bool
    """Whether of equal answers one is kept."""
    as_written: bool
    """Whether answers pass no rules."""
    without: Sequence[str]
    """Names of properties that versions lack."""
    plant: Sequence[str]
    """Names of properties of which machines get people's form."""
    every: bool
    """Whether all answers are drawn, balanced or not."""
    catch: float
    """Catch trials as a share of a list, 0 to 1."""
    repeats: float
    """Trials that come again as a share of a list, 0 to 1."""
    seed: int
    """The seed of all that is drawn."""

    def __post_init__(self) -> None:
        if (self.lists > 1 or self.repeats) and self.per_judge is None and self.preset is None:
            raise InputError("lists, repeats: say with per_judge or preset how long each list is")
        others = ("preset", "common", "unique", "as_written", *OF_VERSIONS) if self.pairs else ("show_pseudo",)
        if wrong := [name for name in others if getattr(self, name)]:
            side = "with" if self.pairs else "without"
            raise InputError(f"{wrong[0]} does not go {side} pairs")
        if self.show_delays and self.show_pseudo:
            raise InputError("show_delays does not go with show_pseudo: what was written beforehand took no time")
        strange = [name for name in self.tasks if name not in TASKS]
        if strange or not self.tasks:
            raise InputError(f"a task is one of {', '.join(TASKS)}, not {', '.join(strange) or 'none'}")
        if self.preset is not None and self.preset not in get_args(Preset):
            raise InputError(f"a preset is one of {', '.join(get_args(Preset))}, not {self.preset!r}")
        numbers = (self.per_agent, self.lists, self.per_judge, *self.lengths)
        if any(number is not None and number < 1 for number in numbers):
            raise InputError("per_agent, lists, per_judge and lengths are whole numbers from 1")
        if not (0 <= self.catch <= 1 and 0 <= self.repeats <= 1):
            raise InputError(f"catch and repeats are shares from 0 to 1, not {self.catch:g} and {self.repeats:g}")
        if self.show_delays and "conversation" not in self.tasks:
            raise InputError("show_delays: only conversations have delays, and task leaves them out")
        if self.show_delays and max(self.lengths, default=2) < 2:
            raise InputError("show_delays: the first message of an excerpt shows no delay: lengths from 2")
        of_tasks = [task for task in TASKS if task in self.tasks]
        check_names(self.without, self.plant, of_tasks, shows_delays=self.show_delays)

    def noted(self) -> dict[str, Any]:
        """The choices as ``TRIALS.trials.json`` has them."""
        names = OF_ALL + (OF_PAIRS if self.pairs else OF_SPEAKERS)
        noted = {name: getattr(self, name) for name in names} | {"lengths": list(self.lengths)}
        if self.without or self.plant:
            noted |= {name: list(getattr(self, name)) for name in OF_VERSIONS}
        if self.show_delays:
            noted["show_delays"] = True
        return noted
