"""What a person sees while a run goes on: one display on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Self

from agents.errors import printable

PLAIN_EVERY = 10.0  # seconds


class Progress:
    """Shows, per agent: done, failed, rejected, rate and time left. ``counts`` tells what is on disk."""

    def __init__(self, counts: Callable[[], dict[str, Counter[str]]], totals: Mapping[str, int]) -> None:
        self._counts = counts
        self._totals = totals
        self._began = time.monotonic()
        self._before = {name: found.total() for name, found in counts().items()}
        self._message = ""
        self._live: Any = None
        self._last_plain = self._began
        self._first: dict[str, float] = {}  # when an agent's first new answer was seen

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.live import Live

            self._live = Live(console=Console(stderr=True), get_renderable=self._table, auto_refresh=False)
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._live is not None:
            self._message = ""
            self._live.refresh()
            self._live.stop()
            self._live = None

    def say(self, message: str) -> None:
        """What is going on, in a few words."""
        self._message = printable(message)
        if self._live is None and message:
            print(self._message, file=sys.stderr, flush=True)

    async def run(self) -> None:
        """Keep the display up to date until cancelled."""
        while True:
            await asyncio.sleep(0.25)
            for name, found in self._counts().items():
                if name not in self._first and found.total() > self._before[name]:
                    self._first[name] = time.monotonic() - 0.25
            if self._live is not None:
                self._live.refresh()
            elif time.monotonic() - self._last_plain >= PLAIN_EVERY:
                self._last_plain = time.monotonic()
                print("; ".join(self._lines()), file=sys.stderr, flush=True)

    def _lines(self) -> list[str]:
        lines = []
        for name, done, total, found, rate, left in self._rows():
            text = f"{name}: {done}/{total}"
            text += "".join(f", {found[key]} {key}" for key in ("failed", "rejected") if found[key])
            lines.append(f"{text}, {left}" if rate == "-" else f"{text}, {rate}/s, {left}")
        return lines

    def _rows(self) -> list[tuple[str, int, int, Counter[str], str, str]]:
        rows = []
        for name, found in self._counts().items():
            done, total = found.total(), self._totals[name]
            seconds = time.monotonic() - self._first.get(name, self._began)
            rate = (done - self._before[name]) / max(seconds, 0.25)
            left = "done" if done >= total else f"{duration((total - done) / rate)} left" if rate else "waiting"
            shown = "-" if not rate else f"{rate:,.0f}" if rate >= 10 else f"{rate:.2g}"
            rows.append((name, done, total, found, shown, left))
        return rows

    def _table(self) -> Any:
        from rich.table import Table

        table = Table(box=None, pad_edge=False, caption=self._message or None, caption_justify="left")
        for title in ("agent", "done", "failed", "rejected", "per second", ""):
            table.add_column(title, justify="left" if title in ("agent", "") else "right")
        for name, done, total, found, rate, left in self._rows():
            table.add_row(name, f"{done:,} / {total:,}", f"{found['failed']:,}", f"{found['rejected']:,}", rate, left)
        return table


def duration(seconds: float) -> str:
    """A rough duration for people."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
