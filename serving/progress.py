"""What a person sees while a run goes on: a bar for each agent on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self

from agents.errors import printable

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

FIRST_LINE, LAST_PAUSE = (
    10.0,
    600.0,
)  # seconds: pauses between plain lines begin with the one and double up to the other
WIDEST = 120  # columns of the bars
CARET = 2  # columns at the right for the ^C that a terminal writes, which would wrap and put the bars one line too low
State = Literal["waiting", "loading", "working", "stopped"]


@dataclass(slots=True)
class _Row:
    """One agent. Times are those of the monotonic clock; ``first`` is when it was loaded, or its first
    new answer was seen."""

    total: int
    before: int
    state: State = "waiting"
    found: Counter[str] | None = None
    began: float | None = None
    first: float | None = None
    ended: float | None = None
    told: int = -1  # how many were done when a plain line said so

    @property
    def done(self) -> int:
        return self.before if self.found is None else self.found.total()

    def look(self, found: Counter[str], now: float) -> None:
        self.found = found
        if self.first is None and self.done > self.before:
            self.first = now
        if self.ended is None and self.done >= self.total:
            self.ended = now

    def rate(self, now: float) -> float:
        """New answers per second."""
        if self.first is None:
            return 0.0
        return (self.done - self.before) / max((self.ended or now) - self.first, 0.25)

    def left(self, now: float) -> float | None:
        """Seconds until all is answered, where they can be told."""
        rate = self.rate(now) if self.state == "working" and self.done < self.total else 0.0
        return (self.total - self.done) / rate if rate else None

    def word(self) -> str:
        return "done" if self.done >= self.total else self.state

    def speed(self, now: float) -> str:
        rate = self.rate(now)
        return "-" if not rate else f"{rate:,.0f}" if rate >= 10 else f"{rate:.2g}"


class Progress:
    """Shows how far each agent is. ``counts`` tells what is on disk; where ``quiet``, only errors are shown."""

    def __init__(
        self, counts: Callable[[], dict[str, Counter[str]]], totals: Mapping[str, int], *, quiet: bool = False
    ) -> None:
        self._counts = counts
        self._quiet = quiet
        self._rows = {name: _Row(totals[name], found.total(), found=found) for name, found in counts().items()}
        self._doing = ""
        self._loading: list[str] = []  # that no line has told of
        self._live: Any = None
        self._console: Any = None
        self._spinner: Any = None
        self._pause = FIRST_LINE
        self._next_line = time.monotonic() + FIRST_LINE

    def __enter__(self) -> Self:
        if sys.stderr.isatty() and not self._quiet:
            from rich.console import Console
            from rich.live import Live
            from rich.spinner import Spinner

            self._console = Console(stderr=True, markup=False, highlight=False, emoji=False)
            self._spinner = Spinner("dots")
            self._live = Live(console=self._console, get_renderable=self._picture, auto_refresh=False)
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if self._live is not None:
            self._doing = ""
            # A summary takes the place of the bars, where one comes to this terminal.
            self._live.transient = kind is None and sys.stdout.isatty()
            self.look()
            self._live.stop()
            self._live = None

    def doing(self, what: str) -> None:
        """What all agents wait for, in a few words; "" when it is over."""
        self._doing = what
        if what and self._live is None and not self._quiet:
            _print(what)

    def loading(self, name: str, what: str) -> None:
        """An agent or pair is loading ``what``."""
        self._rows[name].state, self._rows[name].began = "loading", time.monotonic()
        self._loading.append(what)

    def answering(self, name: str) -> None:
        """An agent has been loaded."""
        row = self._rows[name]
        row.state, row.first = "working", row.first or time.monotonic()

    def stopped(self, name: str, why: str) -> None:
        """An agent has been stopped."""
        self._rows[name].state, self._rows[name].ended = "stopped", time.monotonic()
        _print(why)

    async def run(self) -> None:
        """Keep the display up to date until cancelled."""
        while True:
            await asyncio.sleep(0.25)
            self.look()

    def look(self) -> None:
        """Show how far everything is by now."""
        now = time.monotonic()
        for name, found in self._counts().items():
            self._rows[name].look(found, now)
        if self._live is not None:
            self._live.refresh()
            return
        if self._quiet:
            return
        if self._loading:
            _print(f"loading {', '.join(self._loading)}")
            self._loading.clear()
        if now >= self._next_line:
            self._pause = min(2 * self._pause, LAST_PAUSE)
            self._next_line = now + self._pause
            if line := self._line(now):
                _print(line)

    def _line(self, now: float) -> str:
        """Of the agents that have gone on since the last line."""
        parts = []
        for name, row in self._rows.items():
            if row.done in (row.told, row.before):
                continue
            row.told = row.done
            text = f"{name}: {row.done:,}/{row.total:,}"
            text += "".join(
                f", {row.found[key]:,} {key}" for key in ("failed", "rejected") if row.found and row.found[key]
            )
            left = row.left(now)
            parts.append(f"{text}, {row.speed(now)}/s, {row.word() if left is None else f'{duration(left)} left'}")
        return "; ".join(parts)

    def _picture(self) -> Group:
        from rich.console import Group
        from rich.text import Text

        now = time.monotonic()
        size = self._console.size
        shown = self._rows
        if len(shown) > (room := max(size.height - 4, 1)):  # those that wait or are done give way
            moving = [name for name, row in shown.items() if row.state != "waiting" and row.ended is None]
            shown = {name: shown[name] for name in (moving or list(shown))[:room]}
        below = []
        if hidden := [row for name, row in self._rows.items() if name not in shown]:
            done = sum(row.done >= row.total for row in hidden)
            below.append(Text(f"and {len(hidden):,} more, {done:,} of them done"))
        if self._doing:
            self._spinner.update(text=self._doing)
            below.append(self._spinner)
        return Group(self._table(shown, now, min(size.width - CARET, WIDEST)), *below)

    def _table(self, shown: Mapping[str, _Row], now: float, width: int) -> Table:
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        rejected = any(row.found and row.found["rejected"] for row in self._rows.values())
        table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, width=width, header_style="dim")
        table.add_column("agent", no_wrap=True, max_width=max(10, width // 4), overflow="ellipsis")
        table.add_column("", ratio=1, min_width=4)
        for title in ("done", "failed", *["rejected"] * rejected, "per s", "time", "left"):
            table.add_column(title, justify="right", no_wrap=True)
        for name, row in shown.items():
            found = row.found or Counter()
            left = row.left(now)
            table.add_row(
                name,
                ProgressBar(total=row.total, completed=row.done),
                f"{row.done:,}/{row.total:,}",
                Text(f"{found['failed']:,}", style="red" if found["failed"] else ""),
                *[f"{found['rejected']:,}"] * rejected,
                row.speed(now),
                "-" if row.began is None else _clock((row.ended or now) - row.began),
                row.word() if left is None else _clock(left),
            )
        return table


def _print(text: str) -> None:
    # rich has a stderr of its own while there are bars, above which it prints.
    print(printable(text), file=sys.stderr, flush=True)


def _clock(seconds: float) -> str:
    """Minutes and seconds, or hours, minutes and seconds, as a clock has them."""
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02d}:{second:02d}" if hours else f"{minutes}:{second:02d}"


def duration(seconds: float) -> str:
    """A duration for people, in seconds, minutes and seconds, or hours and minutes."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
