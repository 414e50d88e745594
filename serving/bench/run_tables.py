"""Tables of what was measured over a set, for the terminal."""

from collections.abc import Iterator
from statistics import fmean

from rich.console import RenderableType

from serving.bench import figures
from serving.bench.run_results import MeasuredRuns, Repeat, Scaled, Shares, WholeSet, median_run
from serving.files.terminal import plain_table

RATES = ("workers", "answers/s", "least", "most", "efficiency", "tokens/s", "fix/s")
TIMES = ("workers", "start", "wait", "prepare", "respond", "memory", "GPU memory")


def run_table(runs: MeasuredRuns) -> Iterator[RenderableType]:
    """The lines and tables of an agent: rates, times, how busy each part was, its limit, how long the set takes."""
    yield ""
    yield f"{runs.agent} ({runs.task}; {runs.source}, by {runs.way})"
    rates = plain_table(*RATES)
    times = plain_table(*TIMES)
    process = "server" if runs.way == "serve" else "scheduler"
    busy = plain_table("workers", "agent", "prepare", "write", process, "cores", "run cores", "GPUs")
    for scaled in runs.scaling:
        typical = median_run(scaled.repeats)
        rates.add_row(f"{scaled.replicas}", *_rates(scaled, typical))
        times.add_row(f"{scaled.replicas}", *_times(typical))
        busy.add_row(f"{scaled.replicas}", *_busy(typical.shares))
    yield rates
    yield "  times and memory of the median run:"
    yield times
    yield "  how busy its parts were:"
    yield busy
    for scaled in runs.scaling:
        yield f"  {_workers(scaled.replicas)}: {scaled.why}"
    for scaled in runs.scaling:
        if scaled.forecast is not None:
            yield f"  the whole set with {_workers(scaled.replicas)}: {forecast_text(scaled.forecast)}"


def _workers(number: int) -> str:
    return "1 worker" if number == 1 else f"{number} workers"


def _rates(scaled: Scaled, typical: Repeat) -> list[str]:
    return [
        figures.rate(typical.rate_s),
        figures.rate(scaled.rates[0]),
        figures.rate(scaled.rates[-1]),
        "-" if scaled.efficiency is None else f"{scaled.efficiency:.2f}",
        "-" if typical.tokens_s is None else figures.rate(typical.tokens_s),
        "-" if typical.fixations_s is None else figures.rate(typical.fixations_s),
    ]


def _times(repeat: Repeat) -> list[str]:
    return [
        figures.seconds(repeat.start_s),
        figures.seconds(repeat.waiting_s),
        figures.seconds(repeat.preparing_s),
        figures.seconds(repeat.responding_s),
        figures.memory(repeat.memory_bytes),
        " ".join(map(figures.memory, repeat.gpu_bytes)) or "-",
    ]


def _busy(shares: Shares) -> list[str]:
    return [
        " and ".join(figures.share(fmean(workers)) for workers in shares.workers.values()),
        figures.share(shares.preparing),
        "-" if shares.writing is None else figures.share(shares.writing),
        figures.share(shares.process),
        figures.share(shares.cores),
        figures.share(shares.run_cores),
        " ".join(map(figures.share, shares.gpus)) or "-",
    ]


def forecast_text(forecast: WholeSet) -> str:
    """A forecast in one line: "2.1 h (1.9 to 2.4), 4.2 GPU hours (3.8 to 4.8), 0.31 GB, cost 8.40 (7.60 to 9.60)"."""
    parts = [f"{forecast.answers:,} answers in {forecast.hours.text(figures.hours)}"]
    if forecast.gpu_hours is not None:
        parts.append(f"{forecast.gpu_hours.text(lambda value: f'{value:,.3g}')} GPU hours")
    parts.append(f"{forecast.record_bytes.value / 1e9:.3g} GB of records")
    if forecast.cost is not None:
        parts.append(f"cost {forecast.cost.text(lambda value: f'{value:,.2f}')}")
    return ", ".join(parts)
