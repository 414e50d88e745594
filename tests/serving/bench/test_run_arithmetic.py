"""The arithmetic of measured runs, beside closed forms and scipy."""

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from scipy import stats

from serving.bench import drawn_set
from serving.bench.compare import compared
from serving.bench.drawn_set import read_material, write_repeated
from serving.bench.limits import limit
from serving.bench.record_window import read_window
from serving.bench.results import BenchResult
from serving.bench.run_results import MeasuredRuns, Repeat, Scaled, Shares
from serving.bench.set_bench import Prices
from serving.bench.set_runs import forecast_of
from serving.bench.usage import Sample, usage
from serving.generation.measured_speed import of_repeats
from serving.scheduling.machine import Device, Host
from serving.sets.stimulus_set import read_rows

BEGAN = 1_700_000_000.0
HOST = Host("node", "a processor", 2, 1 << 34)
DEVICE = Device("a processor x 2", "cpu", 1 << 34)


def record(created: float, **changed: Any) -> bytes:
    moment = datetime.fromtimestamp(created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    fields = {
        "status": "ok",
        "answer": {"word": "tea", "tokens": 3},
        "raw": None,
        "error": None,
        "timing": {"waiting": 0.5, "preparing": 0.25, "responding": 1.0},
        "worker": {"host": "here", "device": "cpu", "batch_size": 4},
        "created": moment,
    }
    return orjson.dumps(fields | changed, option=orjson.OPT_APPEND_NEWLINE)


def test_the_rate_of_several_workers_that_answer_in_step_is_neither_higher_nor_lower(tmp_path: Path) -> None:
    path = tmp_path / "null.jsonl"
    for workers in (1, 4, 32):  # each answers 8 stimuli a second, at nearly the same moment as the others
        moments = [BEGAN + second + 0.001 * worker for second in range(1, 61) for worker in range(workers)]
        path.write_bytes(b"".join(record(moment) * 8 for moment in moments))
        window = read_window(path, BEGAN, BEGAN + 60)
        assert window is not None
        assert window.rate_s == pytest.approx(8 * workers, rel=0.002)
        assert window.answers == 8 * workers * 49  # from the warm-up's end, at 12 seconds
        assert window.tokens_s == pytest.approx(3 * window.rate_s)
        assert (window.waiting_s, window.preparing_s, window.responding_s, window.calling_s) == (0.5, 0.25, 1.0, 0.25)


def test_failures_are_counted_and_what_no_worker_got_is_not(tmp_path: Path) -> None:
    path = tmp_path / "null.jsonl"
    failed = {"status": "failed", "answer": None, "error": {"code": "no_text", "message": "the answer is empty"}}
    lines = [record(BEGAN + 20), record(BEGAN + 30, **failed), record(BEGAN + 40, status="rejected")]
    lines += [record(BEGAN + 50, **failed, worker=None)]
    path.write_bytes(b"".join(lines))
    window = read_window(path, BEGAN, BEGAN + 60)
    assert window is not None
    assert (window.answers, window.failed, window.rejected) == (3, 1, 1)
    assert window.failure == "no_text: the answer is empty"
    assert window.rate_s == pytest.approx(0.1)
    assert window.fixations_s is None
    assert read_window(path, BEGAN, BEGAN + 200) is None  # all are of the warm-up, or of one moment


def test_what_a_machine_did_between_two_moments() -> None:
    samples = [
        Sample(
            0.0, watched_s=5.0, run_s={1: 5.0, 2: 1.0}, busy_s=100.0, run_bytes=1000, gpu_busy=(0.0,), gpu_bytes=(7,)
        ),
        Sample(
            1.0, watched_s=6.0, run_s={1: 6.0, 2: 1.0}, busy_s=102.0, run_bytes=1400, gpu_busy=(0.5,), gpu_bytes=(9,)
        ),
        Sample(
            1.5, watched_s=6.2, run_s={1: 6.2, 4: 0.8}, busy_s=102.5, run_bytes=1300, gpu_busy=(0.75,), gpu_bytes=(8,)
        ),
        Sample(
            2.0, watched_s=6.5, run_s={1: 6.5, 3: 0.5}, busy_s=103.0, run_bytes=1200, gpu_busy=(1.0,), gpu_bytes=(8,)
        ),
        Sample(3.0, watched_s=9.0, run_s={1: 9.0}, busy_s=110.0, run_bytes=9000, gpu_busy=(0.0,), gpu_bytes=(1,)),
    ]
    found = usage(samples, 0.2, 1.9, cores=4)
    assert found.process == pytest.approx(1.5 / 2)
    assert found.cores == pytest.approx(3 / 2 / 4)
    # A process that came later counts from its begin, and one that has ended with what it had spent.
    assert found.run_cores == pytest.approx((1.5 + 0.5 + 0.8) / 2 / 4)
    assert (found.memory_bytes, found.gpus, found.gpu_bytes) == (1400, (0.75,), (9,))


def shares(*workers: float, **changed: Any) -> Shares:
    quiet: dict[str, Any] = {"preparing": 0.1, "writing": 0.1, "process": 0.2, "cores": 0.3, "run_cores": 0.2}
    return Shares(**{"workers": {"a": [*workers]}, **quiet, **changed})


@pytest.mark.parametrize(
    ("busy", "told", "code"),
    [
        (shares(0.97), {}, "device"),
        (shares(0.97, gpus=[0.9]), {"on_gpu": True}, "device"),
        (shares(0.97, run_cores=0.95, cores=0.99), {}, "cores"),
        (shares(0.97, run_cores=0.2, cores=0.99), {}, "device"),  # others keep the cores busy, and it waits anyway
        (shares(0.2, run_cores=0.2, cores=0.99), {}, "cores"),
        (shares(0.97), {"calls": True}, "calls"),
        (shares(0.3, preparing=0.95), {}, "preparing"),
        (shares(0.3, preparing=0.7, run_cores=0.9, cores=1.0), {}, "preparing"),
        (shares(0.3, run_cores=0.9, cores=1.0), {}, "cores"),
        (shares(0.3, writing=0.9), {}, "disk"),
        (shares(0.3, process=0.97), {}, "scheduler"),
        (shares(0.3, process=0.97, writing=None), {"http": True}, "server"),
        (shares(0.3, process=0.5, client=0.99), {"http": True}, "client"),
        (shares(0.95, 0.1), {}, "queue"),
        (Shares({"a": [0.95], "b": [0.1]}, 0.1, 0.1, 0.1, 0.1, 0.1), {}, "queue"),
        (shares(0.5), {}, "unclear"),
    ],
)
def test_the_limit_follows_from_the_shares(busy: Shares, told: dict[str, bool], code: str) -> None:
    found, sentence = limit(busy, **{"on_gpu": False, "calls": False, "http": False, **told})
    assert found == code
    assert sentence.endswith(".")
    assert "%" in sentence


def test_more_workers_are_no_advice_where_other_programs_have_the_cores() -> None:
    told = {"on_gpu": False, "calls": False, "http": False}
    _, alone = limit(shares(0.97, run_cores=0.2, cores=0.3), **told)
    assert alone.endswith("More workers help.")
    _, beside = limit(shares(0.97, run_cores=0.2, cores=0.99), **told)
    assert beside.endswith("other programs take 79 %. More workers help only if it waits.")


def repeat(rate_s: float, **changed: Any) -> Repeat:
    fields: dict[str, Any] = {
        "seconds": 10.0,
        "answers": 100,
        "rejected": 0,
        "failed": 0,
        "start_s": 36.0,
        "waiting_s": 0.1,
        "preparing_s": 0.1,
        "responding_s": 0.1,
        "record_bytes": 1000.0,
        "shares": shares(0.9),
        "memory_bytes": 1,
        "tokens_s": 5 * rate_s,
    }
    return Repeat(rate_s=rate_s, **(fields | changed))


def test_a_forecast_is_answers_over_rate_with_the_start() -> None:
    repeats = [repeat(10.0), repeat(10.0), repeat(10.0)]
    found = forecast_of(repeats, 360_000, 4, Prices(hour=2.0, token=0.001))
    assert found.hours.value == pytest.approx(10.01)  # 36,000 s and 36 s
    assert (found.hours.low, found.hours.high) == pytest.approx((10.01, 10.01))  # all repeats agree
    assert found.gpu_hours is not None
    assert found.gpu_hours.value == pytest.approx(40.04)
    assert found.record_bytes.value == pytest.approx(360e6)
    assert found.cost is not None
    assert found.cost.value == pytest.approx(2 * 40.04 + 0.001 * 5 * 360_000)
    plain = forecast_of([repeat(8.0, tokens_s=None), repeat(12.0, tokens_s=None)], 1000, 0, Prices(token=1.0))
    assert plain.gpu_hours is None
    assert plain.cost is None  # nothing counts tokens
    assert plain.hours.low is not None
    assert plain.hours.high is not None
    assert plain.hours.low < plain.hours.value < plain.hours.high


def test_an_interval_is_that_of_one_more_run_by_students_t() -> None:
    values = [10.0, 11.0, 12.5]
    logs = np.log(values)
    low, high = stats.t.interval(0.9, 2, loc=logs.mean(), scale=logs.std(ddof=1) * np.sqrt(4 / 3))
    found = of_repeats(values)
    assert found.value == pytest.approx(stats.gmean(values))
    # t's quantile is by an expansion, which is 0.2 % off at two degrees of freedom.
    assert (found.low, found.high) == pytest.approx((np.exp(low), np.exp(high)), rel=2e-3)
    alone = of_repeats([3.0])
    assert (alone.value, alone.low, alone.high) == (pytest.approx(3.0), None, None)


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ([10.0, 10.1, 9.9], [20.0, 20.1, 19.9], "faster"),
        ([20.0, 20.1, 19.9], [10.0, 10.1, 9.9], "slower"),
        ([10.0, 14.0, 7.0], [11.0, 15.0, 8.0], "no difference"),
    ],
)
def test_a_difference_is_one_only_beyond_the_scatter_of_the_repeats(
    before: list[float], after: list[float], words: str
) -> None:
    results = []
    for rates in (before, after):
        scaled = Scaled(2, [repeat(rate) for rate in rates], "device", "The agent.")
        runs = MeasuredRuns("a", "word_association", "0" * 64, {}, "set", "generate", [scaled])
        results.append(BenchResult("2026-11-29T00:00:00.000Z", HOST, DEVICE, runs=[runs]))
    [_, sentence] = compared(*results)
    assert sentence.startswith(f"a by generate, 2 workers: {words}")


def test_a_large_set_is_drawn_from_evenly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawn_set, "DRAWN", 50)
    path = tmp_path / "words.txt"
    path.write_text("".join(f"{'early' if number < 500 else 'late'}{number}\n" for number in range(1000)))
    early: Counter[bool] = Counter()
    for seed in range(40):
        material = read_material(path, "word_association", None, seed)
        assert material.kinds == Counter({("word_association", None): 1000})
        cues = [orjson.loads(row)["cue"] for row in material.rows]
        assert len({*cues}) == 50
        early.update(cue.startswith("early") for cue in cues)
    assert stats.binomtest(early[True], early.total(), 0.5).pvalue > 1e-4


def test_rows_that_are_asked_again_have_ids_of_their_own(tmp_path: Path) -> None:
    rows = [b'{"id":"a","task":"word_association","cue":"tea"}', b'{"id":"b","task":"word_association","cue":"cup"}']
    path = tmp_path / "set.jsonl"
    write_repeated(rows, 3, path)
    read = list(read_rows(path))
    assert [row.id for row in read] == ["a", "b", "a#2", "b#2", "a#3", "b#3"]
    assert not any(row.problems for row in read)
