"""Two results of ``turinglike bench SET`` side by side: what is faster, slower, or not different."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError
from scipy.stats import ttest_ind

from agents.errors import InputError
from serving.bench import figures
from serving.bench.results import BenchResult
from serving.bench.run_results import MeasuredRuns, Scaled

SIGNIFICANT = 0.05


def read_result(path: Path) -> BenchResult:
    """The results in a file ``bench.json``. Raises InputError for one that cannot be read or is of another version."""
    try:
        return TypeAdapter(BenchResult).validate_json(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise InputError(
            f"{path} is no result of this version of `turinglike bench`: {where}: {first['msg']}"
        ) from None


def compared(earlier: BenchResult, later: BenchResult) -> Iterator[str]:
    """A sentence for each agent, set, way and number of workers that both results have; or one that none is common."""
    before = {key: scaled for runs in earlier.runs for key, scaled in _by_key(runs)}
    after = {key: scaled for runs in later.runs for key, scaled in _by_key(runs)}
    common = [key for key in after if key in before]
    yield ""
    if not common:
        yield "no agent was measured over the same set, with the same number of workers, in both results"
        return
    if earlier.host != later.host or earlier.device != later.device:
        yield f"the earlier result is of another machine: {earlier.host.name}, {earlier.device.name}"
    for key in common:
        agent, _, way, replicas = key
        workers = "1 worker" if replicas == 1 else f"{replicas} workers"
        yield f"{agent} by {way}, {workers}: {_sentence(before[key], after[key])}"


def _by_key(runs: MeasuredRuns) -> Iterator[tuple[tuple[str, str, str, int], Scaled]]:
    for scaled in runs.scaling:
        yield (runs.agent, runs.source, runs.way, scaled.replicas), scaled


def _sentence(before: Scaled, after: Scaled) -> str:
    """Welch's t test of the logarithms of the repeats' rates, and the interval of their ratio."""
    rates = f"{figures.rate(before.median)} before, {figures.rate(after.median)} now"
    test: Any = ttest_ind(
        [math.log(value) for value in after.rates], [math.log(value) for value in before.rates], equal_var=False
    )
    bounds = test.confidence_interval(0.95)
    low = math.exp(bounds.low)
    high = math.exp(bounds.high)
    interval = f"ratio {after.median / before.median:.2f}, 95 % interval {low:.2f} to {high:.2f}"
    if not test.pvalue < SIGNIFICANT:
        return f"no difference that {len(after.rates)} runs show ({rates}; {interval})"
    return f"{'faster' if low > 1 else 'slower'} ({rates}; {interval})"
