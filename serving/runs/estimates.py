"""Numbers that are not known, with their intervals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, sqrt
from statistics import NormalDist

COVERAGE = 0.9  # of an interval


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number that is not known, with an interval that holds it in 9 of 10 cases."""

    value: float
    """The number itself, as far as can be told."""
    low: float | None = None
    """The interval's lower end; None where nothing tells how sure the number is."""
    high: float | None = None
    """The interval's upper end; None with ``low``."""

    def text(self, show: Callable[[float], str]) -> str:
        """For people: "5 s (4 s to 6 s)", with ``show`` for each number."""
        if self.low is None or self.high is None:
            return show(self.value)
        return f"{show(self.value)} ({show(self.low)} to {show(self.high)})"

    def times(self, other: float) -> Estimate:
        """The estimate of a multiple."""
        ends = (None if end is None else end * other for end in (self.low, self.high))
        return Estimate(self.value * other, *ends)

    def plus(self, other: float) -> Estimate:
        """The estimate of a sum with what is known."""
        ends = (None if end is None else end + other for end in (self.low, self.high))
        return Estimate(self.value + other, *ends)

    def after(self, seconds: float) -> Estimate:
        """The estimate of a duration once ``seconds`` of it are over, never below 0."""
        ends = (None if end is None else max(0.0, end - seconds) for end in (self.low, self.high))
        return Estimate(max(0.0, self.value - seconds), *ends)


def within(value: float, variance: float, freedom: float) -> Estimate:
    """``value``, which is positive, with an interval from the ``variance`` of its logarithm. ``freedom`` are the
    degrees of freedom with which that variance is known: t's quantile stands for the normal one."""
    factor = exp(_quantile(freedom) * sqrt(variance))
    return Estimate(value, value / factor, value * factor)


def _quantile(freedom: float) -> float:
    """Student's t for :data:`COVERAGE`, by the expansion of Abramowitz and Stegun (1964, 26.7.5): its first use must
    not hold up the answers, as an import of scipy would. Below 2 degrees of freedom it is that of 2."""
    z = NormalDist().inv_cdf((1 + COVERAGE) / 2)
    f = max(2.0, freedom)
    terms = (
        z,
        (z**3 + z) / (4 * f),
        (5 * z**5 + 16 * z**3 + 3 * z) / (96 * f**2),
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * f**3),
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / (92160 * f**4),
    )
    return sum(terms)
