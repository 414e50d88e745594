"""The picture and the table: they are made whatever is missing."""

from __future__ import annotations

import io
import sys

import pytest
from PIL import Image
from rich.console import Console

from agents.errors import UnavailableError
from serving.bench import output
from serving.bench.results import BenchResult, EndToEnd, Failed, Measured, Size, Stopped
from serving.scheduling.machine import Device, Host


def size(batch_size: int, rate: float) -> Size:
    return Size(batch_size, rate, batch_size / rate, 2 * batch_size / rate, 1 << 30, 4.0, int(4 * rate), busy=0.9)


def agent(name: str, *sizes: Size) -> Measured:
    return Measured(name, "image_captioning", None, "0" * 64, {}, "cpu", False, sizes=[*sizes], best=sizes[-1])


def result(*agents: Measured) -> BenchResult:
    device = Device("a processor x 2", "cpu", 1 << 34)
    about = Host("node", "a processor", 2, 1 << 34)
    return BenchResult("2025-01-01T00:00:00.000Z", about, device, [*agents])


@pytest.mark.parametrize(
    "bench_result",
    [
        result(agent("one", size(1, 10.0), size(2, 15.0))),
        result(),
        result(*(agent(f"agent-{n}", size(1, 1.0 + n), size(3, 2.0 + n)) for n in range(13))),
    ],
    ids=["one", "nothing", "many"],
)
def test_a_picture_is_written_whatever_is_missing(bench_result: BenchResult) -> None:
    drawn = io.BytesIO()
    output.plot(bench_result, drawn)
    with Image.open(drawn) as picture:
        picture.load()
        assert picture.format == "PNG"
        assert picture.width > 1000
        assert picture.convert("L").getextrema() == (0, 255)  # black on white


def test_without_matplotlib_there_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("matplotlib.backends.backend_agg", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UnavailableError, match=r"matplotlib is not installed; pip install 'turinglike\[bench\]'"):
        output.plot(result(), io.BytesIO())


def test_the_table_has_what_there_is() -> None:
    one = agent("one", size(1, 10.0), size(4, 20.0))
    one.stopped = Stopped(8, "out_of_memory", "batch size 8: out of memory")
    one.end_to_end = [EndToEnd(1, 4, 50.0, 100.0, 0.5, (90.0, 110.0)), EndToEnd(2, 4, 99.0, 100.0, 0.99, (99.0, 101.0))]
    shown = result(one)
    shown.failed = [Failed("three", "bare", "the weights have gone")]
    written = io.StringIO()
    output.print_result(Console(file=written, width=60), shown)
    lines = written.getvalue().splitlines()
    head = next(line for line in lines if "batch" in line)
    assert head.split() == ["batch", "stimuli/s", "p50", "p95", "busy", "host"]
    assert any(line.split()[:2] == ["4*", "20"] for line in lines)
    for sentence in (
        "  batch size 8: out of memory",
        "  end to end, 1 worker: 50 stimuli/s, 0.50 of the bare agent",
        "  end to end, 2 workers: 99 stimuli/s, 0.99 of the bare agent",
        "three failed (bare): the weights have gone",
        "ended before everything was measured",
    ):
        assert sentence in lines, sentence
