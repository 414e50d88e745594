"""A run's progress: bars on a terminal, plain lines elsewhere."""

import asyncio
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Task, TaskID, TextColumn
from rich.progress import Progress as Bars
from rich.table import Column

from agents.errors import printable
from serving.files.words import count, duration, per_second
from serving.generation.load_times import LoadTimes
from serving.runs.estimates import Estimate

FIRST_LINE = 10.0  # seconds until the first plain line; each pause after it is twice as long
LONGEST_PAUSE = 600.0  # seconds
WIDEST = 120  # columns of the bars
CARET = 2  # columns at the right for the ^C that a terminal writes, which would wrap and put the bars a line too low
# columns: at most, at least
NAME = 24
BAR = 4
PERIOD = 600.0  # seconds that a rate is taken of


class Progress:
    """Shows each agent's progress by ``counts``, and by ``left`` the seconds until it has answered; ``loads`` knows how
    long agents took to load the last time. ``quiet`` shows errors alone."""

    def __init__(
        self,
        counts: Callable[[], dict[str, Counter[str]]],
        totals: Mapping[str, int],
        left: Mapping[str, Callable[[], Estimate | None]],
        loads: LoadTimes,
        *,
        quiet: bool = False,
    ) -> None:
        self._counts = counts
        self._left = left
        self._loads = loads
        self._quiet = quiet
        self._bars = _bars(disable=quiet or not sys.stderr.isatty())
        self._tasks: dict[str, TaskID] = {}
        self._printed: dict[str, int] = {}  # answers at the last plain line
        self._loading_since: dict[str, float] = {}
        for name, done in counts().items():
            self._printed[name] = done.total()
            self._tasks[name] = self._bars.add_task(
                name, start=False, total=totals[name], completed=done.total(), state="waiting", report=""
            )
        self._before = sum(self._printed.values())  # answers of earlier starts
        self._answers = self._before
        self._began: float | None = None  # when the first agent was loaded
        self._last = 0.0  # when answers came last
        self._pause = FIRST_LINE
        self._next_line = time.monotonic() + FIRST_LINE

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.update()
        self._bars.stop()

    def tell(self, text: str) -> None:
        """Print a line above the bars."""
        if not self._quiet:
            _print(text)

    def loading(self, name: str, members: str) -> None:
        """Show that the agents ``members`` are being loaded for ``name``."""
        self._loading_since[name] = time.monotonic()
        self._bars.update(self._tasks[name], state="loading")
        last = self._loads.last(name)
        usual = "" if last is None else f", the last time {duration(last)}"
        if self._bars.disable:
            self.tell(f"loading {members}{usual}")

    def answering(self, name: str) -> None:
        """Show that it answers from now on."""
        now = time.monotonic()
        self._began = self._began or now
        self._loads.note(name, now - self._loading_since.pop(name, now))
        self._bars.update(self._tasks[name], state="working")
        self._bars.start_task(self._tasks[name])

    def stopped(self, name: str, reason: str) -> None:
        """Show that it has stopped, and why."""
        self._loading_since.pop(name, None)
        self._bars.update(self._tasks[name], state="stopped")
        _print(reason)

    async def run(self) -> None:
        """Update the display until cancelled."""
        while True:
            await asyncio.sleep(0.25)
            self.update()

    def update(self) -> None:
        """Show the present counts."""
        moved = []
        by_name = self._counts()
        answers = sum(counts.total() for counts in by_name.values())
        if answers != self._answers:
            self._answers = answers
            self._last = time.monotonic()
        for name, counts in by_name.items():
            task = self._bars.tasks[self._tasks[name]]
            self._bars.update(task.id, completed=counts.total())
            self._bars.update(task.id, report=_report(task, counts, self._left[name]()))
            if task.completed != self._printed[name]:
                moved.append(task)
        self._bars.refresh()
        if not self._bars.disable or self._quiet or time.monotonic() < self._next_line:
            return
        self._pause = min(2 * self._pause, LONGEST_PAUSE)
        self._next_line = time.monotonic() + self._pause
        self._printed |= {task.description: int(task.completed) for task in moved}
        parts = [f"{task.description}: {task.fields['report']}" for task in moved]
        for name, since in self._loading_since.items():
            waited = time.monotonic() - since
            if waited >= FIRST_LINE:  # a shorter load was told when it began
                last = self._loads.last(name)
                usual = "" if last is None else f"; the last time {duration(last)}"
                parts.append(f"{name}: still loading ({duration(waited)}{usual})")
        if parts:
            _print("; ".join(parts))

    def rate(self) -> str:
        """For people: the answers of all agents, and how many they were in a second, from the moment at which the first
        agent was loaded to the last answer. Empty where nothing was answered."""
        if self._began is None or self._last <= self._began:
            return ""
        answers = self._answers - self._before
        return f": {count(answers, 'answer')}, {per_second(answers / (self._last - self._began))}"


def _report(task: Task, counts: Counter[str], left: Estimate | None) -> str:
    parts = [f"{task.completed:,.0f}/{task.total:,.0f}"]
    parts += [f"{counts[status]:,} {status}" for status in ("failed", "rejected") if counts[status]]
    if rate := task.finished_speed or task.speed:
        parts.append(per_second(rate))
    if task.completed >= (task.total or 0):
        parts.append("done")
    elif left is not None and task.fields["state"] == "working":
        parts.append(f"{left.text(duration)} left")
    else:
        parts.append(task.fields["state"])
    return ", ".join(parts)


def _bars(*, disable: bool) -> Bars:
    console = Console(stderr=True, markup=False, highlight=False, emoji=False)
    console.width = min(console.width - CARET, WIDEST)
    name = Column(no_wrap=True, max_width=NAME, overflow="ellipsis")
    report = Column(no_wrap=True, overflow="ellipsis")
    return Bars(
        TextColumn("{task.description}", markup=False, table_column=name),
        BarColumn(bar_width=None, table_column=Column(min_width=BAR, ratio=1)),
        TextColumn("{task.fields[report]}", markup=False, table_column=report),
        console=console,
        auto_refresh=False,
        expand=True,
        disable=disable,
        speed_estimate_period=PERIOD,
        get_time=time.monotonic,
    )


def _print(text: str) -> None:
    # rich has a stderr of its own while there are bars, above which it prints.
    print(printable(text), file=sys.stderr, flush=True)
