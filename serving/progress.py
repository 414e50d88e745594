"""How far a run is: a bar for each agent on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Self

from agents.errors import printable

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

FIRST_LINE = 10.0  # seconds until the first plain line; each pause after it is twice as long
LONGEST_PAUSE = 600.0  # seconds
WIDEST = 120  # columns of the bars
CARET = 2  # columns at the right for the ^C that a terminal writes, which would wrap and put the bars a line too low
NAME, BAR = 24, 4  # columns: at most, at least
State = Literal["waiting", "loading", "working", "stopped"]


@dataclass(slots=True)
class _AgentProgress:
    total: int
    before: int  # answers that an earlier call made
    counts: Counter[str]
    state: State = "waiting"
    began: float | None = None  # by the monotonic clock: loaded, or first new answer
    ended: float | None = None
    printed: int = -1  # answers at the last plain line

    @property
    def done(self) -> int:
        return self.counts.total()

    def update(self, counts: Counter[str], now: float) -> None:
        self.counts = counts
        if self.began is None and self.done > self.before:
            self.began = now
        if self.ended is None and self.done >= self.total:
            self.ended = now

    def report(self, now: float) -> str:
        parts = [f"{self.done:,}/{self.total:,}"]
        parts += [f"{self.counts[status]:,} {status}" for status in ("failed", "rejected") if self.counts[status]]
        rate = 0.0
        if self.began is not None:
            rate = (self.done - self.before) / max((self.ended or now) - self.began, 0.25)
        if rate:
            parts.append(f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.2g}/s")
        if self.done >= self.total:
            parts.append("done")
        elif rate and self.state == "working":
            parts.append(f"{duration((self.total - self.done) / rate)} left")
        else:
            parts.append(self.state)
        return ", ".join(parts)


class Progress:
    """Shows how far each agent is. ``counts`` returns what is on disk; with ``quiet`` only errors are shown."""

    def __init__(
        self, counts: Callable[[], dict[str, Counter[str]]], totals: Mapping[str, int], *, quiet: bool = False
    ) -> None:
        self._counts = counts
        self._quiet = quiet
        self._agents = {name: _AgentProgress(totals[name], done.total(), done) for name, done in counts().items()}
        self._unnamed: list[str] = []  # what loads and no plain line has named
        self._bars: Bars | None = None
        self._tasks: dict[str, TaskID] = {}
        self._waiting: TaskID | None = None
        self._pause = FIRST_LINE
        self._next_line = time.monotonic() + FIRST_LINE

    def __enter__(self) -> Self:
        if sys.stderr.isatty() and not self._quiet:
            self._bars = _bars()
            for name, agent in self._agents.items():
                self._tasks[name] = self._bars.add_task(name, total=agent.total, report="")
            self._bars.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if self._bars is not None:
            self.waits_for("")
            # A summary takes the place of the bars, where it comes to this terminal.
            self._bars.live.transient = kind is None and sys.stdout.isatty()
            self.update()
            self._bars.stop()
            self._bars = None

    def waits_for(self, reason: str) -> None:
        """Show what all agents wait for; "" when it is over."""
        if self._bars is None:
            if reason and not self._quiet:
                _print(reason)
            return
        if self._waiting is not None:
            self._bars.remove_task(self._waiting)
        self._waiting = self._bars.add_task(reason, total=None, report="") if reason else None

    def loading(self, name: str, members: str) -> None:
        self._agents[name].state = "loading"
        self._unnamed.append(members)

    def answering(self, name: str) -> None:
        agent = self._agents[name]
        agent.state, agent.began = "working", agent.began or time.monotonic()

    def stopped(self, name: str, reason: str) -> None:
        self._agents[name].state, self._agents[name].ended = "stopped", time.monotonic()
        _print(reason)

    async def run(self) -> None:
        """Keep the display up to date until cancelled."""
        while True:
            await asyncio.sleep(0.25)
            self.update()

    def update(self) -> None:
        """Show how far each agent is by now."""
        now = time.monotonic()
        for name, counts in self._counts().items():
            self._agents[name].update(counts, now)
        if self._bars is not None:
            for name, agent in self._agents.items():
                self._bars.update(self._tasks[name], completed=agent.done, report=agent.report(now))
            self._bars.refresh()
        elif not self._quiet:
            self._print_lines(now)

    def _print_lines(self, now: float) -> None:
        if self._unnamed:
            _print(f"loading {', '.join(self._unnamed)}")
            self._unnamed.clear()
        if now < self._next_line:
            return
        self._pause = min(2 * self._pause, LONGEST_PAUSE)
        self._next_line = now + self._pause
        moved = {name: agent for name, agent in self._agents.items() if agent.done not in (agent.printed, agent.before)}
        for agent in moved.values():
            agent.printed = agent.done
        if moved:
            _print("; ".join(f"{name}: {agent.report(now)}" for name, agent in moved.items()))


def _bars() -> Bars:
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bars
    from rich.table import Column

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
    )


def _print(text: str) -> None:
    # rich has a stderr of its own while there are bars, above which it prints.
    print(printable(text), file=sys.stderr, flush=True)


def duration(seconds: float) -> str:
    """A duration for people, in seconds, minutes and seconds, or hours and minutes."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    rounded = round(seconds)
    if rounded < 60:
        return f"{rounded} s"
    if rounded < 3600:
        return f"{rounded // 60} min {rounded % 60} s"
    return f"{rounded // 3600} h {rounded % 3600 // 60} min"
