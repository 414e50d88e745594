"""What every step of the sampler needs of all verdicts, compiled by numba.

A step passes three times over the verdicts. Written for one verdict at a time, a pass keeps in registers what numpy
would write to a dozen arrays and read again. Compiled code also lets other threads run, so chains run side by side.

numba compiles at the first call, which takes about a second. Nothing is kept on disk, since the folder of a package may
be read-only, or shared by machines with other processors.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from numba import njit

from judging.statistics.jackknife import Codes, Floats

Function = TypeVar("Function", bound=Callable[..., Any])
ROOT_OF_HALF = math.sqrt(0.5)
ROOT = math.sqrt(2 * math.pi)


def compiled(function: Function) -> Function:
    """The ``function`` in machine code; a division by zero gives infinity or NaN, as numpy's does."""
    return cast(Function, njit(nogil=True, error_model="numpy")(function))


@compiled
def probits(
    starts: Codes, columns: Codes, values: Floats, effects: Floats, group: Codes, share: Floats, groups: int
) -> tuple[Floats, Floats]:
    """The sum of each verdict's effects, and the mean of these sums in each group.

    ``values`` of the verdict ``row`` stand from ``starts[row]`` to ``starts[row + 1]``, and ``columns`` say of which
    effects; this is scipy's form CSR. ``share`` is the weight of each verdict in its group."""
    each = np.empty(len(group))
    means = np.zeros(groups)
    for row in range(len(group)):
        total = 0.0
        for place in range(starts[row], starts[row + 1]):
            total += values[place] * effects[columns[place]]
        each[row] = total
        means[group[row]] += share[row] * total
    return each, means


@compiled
def likelihood(
    probit: Floats, base: Floats, group: Codes, deviation: Floats, pattern: Codes, sign: Floats, weight: Floats
) -> tuple[float, Floats, Floats, Floats]:
    """The logarithm of the probability of all verdicts, and its derivatives: by each verdict's probit, by each
    group's ``base``, and by the logarithm of each pattern's ``deviation``.

    The probit of a verdict is ``probit`` plus the ``base`` of its group, and the noise has the ``deviation`` of its
    pattern. ``sign`` is 1 where "machine" was said, -1 where "human"; identical verdicts have their number as
    ``weight``."""
    by_probit = np.empty(len(probit))
    by_base = np.zeros(len(base))
    by_deviation = np.zeros(len(deviation))
    density = 0.0
    for row in range(len(probit)):
        factor = sign[row] / deviation[pattern[row]]
        standard = (probit[row] + base[group[row]]) * factor
        probability = math.erfc(-standard * ROOT_OF_HALF) / 2
        slope = weight[row] * math.exp(-standard * standard / 2) / (ROOT * probability)
        density += weight[row] * math.log(probability)
        by_probit[row] = slope * factor
        by_base[group[row]] += slope * factor
        by_deviation[pattern[row]] -= slope * standard
    return density, by_probit, by_base, by_deviation


@compiled
def by_effects(
    starts: Codes,
    columns: Codes,
    values: Floats,
    number: int,
    by_probit: Floats,
    by_mean: Floats,
    group: Codes,
    share: Floats,
) -> Floats:
    """Derivatives by each of ``number`` effects, of derivatives by what :func:`probits` gives: the sums ``by_probit``
    and the groups' means ``by_mean``."""
    each = np.zeros(number)
    for row in range(len(group)):
        pull = by_probit[row] + share[row] * by_mean[group[row]]
        for place in range(starts[row], starts[row + 1]):
            each[columns[place]] += values[place] * pull
    return each
