"""The picture: where agents stand under the roof, and that it is written whatever is missing."""

from __future__ import annotations

import io
import sys

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from agents.errors import UnavailableError
from serving.bench import plot
from serving.bench.results import Best, Device, Host, Limits, Measured, Result, Size


def size(batch_size: int, rate: float, flops: int | None = None, bytes_: int | None = None) -> Size:
    return Size(
        batch_size, rate, None, None, batch_size / rate, 2 * batch_size / rate, 1 << 30, None, 0.9, 0.1, None,
        flops, bytes_, None, None, 4.0, int(4 * rate),
    )  # fmt: skip


def agent(name: str, *sizes: Size, best: int = 1) -> Measured:
    rates = {one.batch_size: one.stimuli_s for one in sizes}
    return Measured(
        name, "image_captioning", None, "0" * 64, {}, "cpu", True, False, 1.0, 1.5, sizes, None, Best(best, rates[best])
    )


def result(*agents: Measured, limits: Limits | None = None) -> Result:
    host, device = Host("node", "a processor", 2, 1 << 34), Device("a processor x 2", "cpu", 1 << 34)
    return Result("0.1.0", "2025-01-01T00:00:00.000Z", host, device, limits or Limits(20e9, 200e9), agents)


def test_an_agent_stands_at_the_operations_of_its_best_batch() -> None:
    fast = agent("fast", size(1, 10.0, 1000, 500), size(4, 20.0, 4000, 500), best=4)
    without = agent("no-torch", size(1, 5.0))
    again = agent("again", size(1, 10.0, 1000, 500))
    found = list(plot.points([fast, without, again]))
    # 20 stimuli a second are 5 batches of 4 a second, each of 4000 operations
    assert found == [(0, 8.0, pytest.approx(20_000.0)), (2, 2.0, pytest.approx(10_000.0))]


@pytest.mark.parametrize(
    "shown",
    [
        result(agent("one", size(1, 10.0, 1000, 500), size(2, 15.0, 2000, 500), best=2)),
        result(agent("without-operations", size(1, 10.0))),
        result(agent("without-limits", size(1, 10.0, 1000, 500)), limits=Limits(None, None)),
        result(limits=Limits(None, None)),
        result(*(agent(f"agent-{n}", size(1, 1.0 + n, 10**n, 50), size(3, 2.0 + n)) for n in range(13))),
    ],
    ids=["one", "no-operations", "no-limits", "nothing", "many"],
)
def test_a_picture_is_written_whatever_is_missing(shown: Result) -> None:
    drawn = io.BytesIO()
    plot.plot(shown, drawn)
    with Image.open(drawn) as picture:
        picture.load()
        assert picture.format == "PNG"
        assert picture.width > 1000
        assert picture.convert("L").getextrema() == (0, 255)  # black on white


@pytest.mark.parametrize(("low", "high"), [(12, 16), (120, 185), (11, 13), (21, 29), (9.5, 12), (3, 70), (2, 9000)])
def test_an_axis_of_rates_has_labels(low: float, high: float) -> None:
    figure = Figure()
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    one = agent("one", size(1, low), size(2, high))
    plot._throughput(axes, one, plot._style(0))
    plot._by_batch_size(axes, [one])
    figure.canvas.draw()
    bottom, top = axes.get_ylim()
    shown = [
        label.get_text()
        for label in (*axes.yaxis.get_ticklabels(which="major"), *axes.yaxis.get_ticklabels(which="minor"))
        if label.get_text() and bottom <= label.get_position()[1] <= top
    ]
    assert len(shown) >= 2


def test_latencies_reach_from_the_median_to_the_95th_percentile() -> None:
    figure = Figure()
    for axes, sizes in zip(figure.subplots(2), ([size(4, 2.0)], [size(4, 2.0), size(8, 2.0)]), strict=True):
        plot._latency(axes, agent("one", *sizes, best=4), plot._style(0))
        [drawn] = axes.collections
        ends = {tuple(map(float, point)) for path in drawn.get_paths() for point in path.vertices}
        assert ends == {(one.batch_size, seconds) for one in sizes for seconds in (one.p50_s, one.p95_s)}


def test_agents_have_looks_of_their_own() -> None:
    looks = [tuple(sorted(plot._style(place).items())) for place in range(4 * plot.NAMED)]
    assert len(set(looks)) == len(looks)


def test_without_matplotlib_there_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("matplotlib.backends.backend_agg", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UnavailableError, match=r"matplotlib is not installed; pip install 'turinglike\[bench\]'"):
        plot.plot(result(), io.BytesIO())
