"""Figures of a benchmark for people: rates, times, sizes, shares."""

from collections.abc import Callable

from agents.contract import GIB, MIB

Text = Callable[[float], str]
"""Makes a figure text."""


def rate(value: float) -> str:
    """A rate: whole with thousands marked from 1,000, below that with four digits."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def share(value: float) -> str:
    """A share from 0 to 1: "7 %", "0.4 %"."""
    return f"{100 * value:.0f} %" if value >= 0.1 or value == 0 else f"{100 * value:.2g} %"


def seconds(value: float) -> str:
    """A time: "12.3 s", "4.5 ms", "310 µs"."""
    if value >= 1:
        return f"{value:.3g} s"
    return f"{1000 * value:.3g} ms" if value >= 0.001 else f"{1e6 * value:.3g} µs"


def memory(value: float) -> str:
    """A size in memory: "1.5 GiB", "310 MiB"."""
    return f"{value / GIB:.1f} GiB" if value >= GIB else f"{value / MIB:.0f} MiB"


def hours(value: float) -> str:
    """A long time: "12 s", "3.5 min", "2.1 h"."""
    if value * 3600 < 60:
        return f"{value * 3600:.3g} s"
    return f"{value * 60:.3g} min" if value < 1 else f"{value:,.3g} h"
