"""The measured limits of a device: they scale with what is asked, and no agent's arithmetic exceeds them."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from serving.bench import limits
from serving.bench.results import Limits


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """A clock that goes on only when it is told to, by so many seconds."""
    now = [0.0]
    monkeypatch.setattr(limits.time, "perf_counter", lambda: now[0])

    def go_on(seconds: float) -> None:
        now[0] += seconds

    return go_on


def test_the_best_repeat_counts_and_the_first_does_not(clock: Callable[[float], None]) -> None:
    took = iter([0.001, 0.5, 0.25, 0.75, 0.5])
    assert limits._best(lambda: clock(next(took)), seconds=1.6) == 0.25
    assert list(took) == []  # the fourth began within 1.6 seconds, a fifth did not


def test_the_fastest_size_of_matrix_counts(clock: Callable[[float], None]) -> None:
    sides: list[int] = []

    def product(side: int) -> Callable[[], object]:
        sides.append(side)
        # small ones have an overhead, of large ones a thousand million multiplications take a second
        return lambda: clock(side**3 / 1e9 + 0.1)

    rate = limits._fastest_product(product, seconds=60.0)
    assert sides == [512, 1024]  # one of 2048 would take three times eight seconds, and half of them are left
    assert rate == pytest.approx(2 * 1024**3 / (1024**3 / 1e9 + 0.1))


@pytest.mark.parametrize("lacks_torch", [False, True])
def test_a_copy_reads_and_writes_and_a_product_multiplies_and_adds(
    lacks_torch: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if lacks_torch:
        find = importlib.util.find_spec
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "torch" else find(name))
        monkeypatch.setitem(sys.modules, "torch", None)  # and importing it fails
    monkeypatch.setattr(limits, "caches", lambda: 0)
    seen: list[object] = []

    def two_seconds(act: Callable[[], object], seconds: float, device: str = "cpu") -> float:
        seen.append(act())
        return 2.0

    monkeypatch.setattr(limits, "_best", two_seconds)
    found = limits.measure("cpu", 0.0)
    assert found.copy_bytes_s == 2 * limits.SMALLEST / 2.0
    assert found.matrix_flop_s == 2 * 512**3 / 2.0
    assert found.precision == "float32"
    assert len(seen) == 2


def test_each_type_has_a_limit_of_its_own() -> None:
    found = Limits(1.0, 8e12, "bfloat16", {"float32": 1e12})
    assert [found.matrix(one) for one in ("bfloat16", "float32", "float16", None)] == [8e12, 1e12, None, None]


def test_all_last_caches_are_counted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # two sockets of two cores each: a cache of the first level per core, one of the third per socket
    for core in range(4):
        for index, (level, size, shared) in enumerate([(1, "32K", str(core)), (3, "8M", f"{core // 2 * 2}-")]):
            cache = tmp_path / f"cpu{core}" / "cache" / f"index{index}"
            cache.mkdir(parents=True)
            for name, text in (("level", level), ("size", size), ("shared_cpu_list", shared)):
                (cache / name).write_text(f"{text}\n")
    monkeypatch.setattr(limits, "CPUS", tmp_path)
    assert limits.caches() == 2 * (8 << 20)


def test_the_copied_array_is_larger_than_the_caches() -> None:
    assert limits._array(100 << 20) * 4 == limits.CACHES * (100 << 20)
    assert limits._array(0) * 4 == limits.SMALLEST
    assert limits._array(10 << 30) * 4 == limits.LARGEST
