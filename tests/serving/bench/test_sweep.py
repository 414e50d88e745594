"""The bare agent over batch sizes: what is counted, where it stops, and what is said of agents that fail."""

from __future__ import annotations

import asyncio
import math
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from measured_agents import ENTRIES

from agents import catalogue, seeds
from agents.answers import CaptionAnswer, TurnAnswer, WordAnswer
from agents.contract import Draw, Reply
from agents.errors import AgentStoppedError, AnswerError
from serving.bench import apart, machine, stimuli
from serving.bench import loop as loops
from serving.bench.best import best
from serving.bench.device_time import covered
from serving.bench.loop import Batches, Calls, Window, tokens_of
from serving.bench.meter import Job, Loaded, Meter, Trying
from serving.bench.results import Limits, Measured, Size, Stopped
from serving.bench.steady import WarmUp
from serving.bench.sweep import Sweep
from serving.scheduling.interrupts import Interrupted

LIMITS = Limits(None, None)


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stimuli.write(tmp_path_factory.mktemp("set"), "word_association", None, 96)


def job(name: str, source: Path, sizes: tuple[int, ...] | None, settings: dict[str, Any], seconds: float = 0.02) -> Job:
    entry = ENTRIES.get(name) or catalogue.get(name)
    return Job(entry, settings, "cpu", "word_association", None, source, seconds, sizes, LIMITS)


def swept(asked: Job) -> tuple[Measured, str | None]:
    sweep = Sweep(asked)
    sweep.run(lambda text: None)
    found = sweep.measured()
    assert found is not None
    return found, sweep.problem


@pytest.mark.parametrize(("agent", "unit"), [("null", "batch size"), ("null-one", "calls at once")])
def test_the_sweep_ends_where_memory_does_and_says_so(agent: str, unit: str, words: Path) -> None:
    delay = 0.01
    found, problem = swept(job(agent, words, None, {"batch_limit": 5, "delay_s": delay}))
    assert problem is None
    assert [size.batch_size for size in found.sizes] == [1, 2, 4]
    assert found.stopped is not None
    assert (found.stopped.batch_size, found.stopped.why) == (8, "out_of_memory")
    assert found.stopped.message.startswith(f"{unit} 8: out of memory")
    for size in found.sizes:
        assert size.stimuli == pytest.approx(size.stimuli_s * size.seconds)
        # A call takes its delay at the least, whatever else this machine does; calls under way at the edges count too.
        assert size.p95_s >= size.p50_s >= delay
        assert size.stimuli <= size.batch_size * (size.seconds / delay + 1)
        assert 0 < size.busy <= 1
        assert 0 <= size.waiting <= 1
        assert size.failed == 0
    assert found.best is not None
    highest = max(size.stimuli_s for size in found.sizes)
    good = [size.batch_size for size in found.sizes if size.stimuli_s >= 0.97 * highest]
    assert found.best.batch_size in good
    assert found.first_answer_s >= found.load_s + delay


def test_answers_that_depend_on_the_batch_are_counted(words: Path) -> None:
    found, _ = swept(job("crowded", words, (4,), {}))
    assert found.differing is not None
    assert found.differing.batch_size == 4
    assert found.differing.count * 4 == found.differing.of > 0
    assert found.differing.share == 0.25
    steady, _ = swept(job("null", words, (4,), {}))
    assert steady.differing is not None
    assert steady.differing.count == 0


def test_a_process_that_the_system_kills_has_had_too_little_memory(words: Path) -> None:
    found, problem = swept(job("killed", words, (1, 2, 4), {}))
    assert problem is None
    assert [size.batch_size for size in found.sizes] == [1, 2]
    assert found.stopped is not None
    assert (found.stopped.batch_size, found.stopped.why) == (4, "out_of_memory")
    assert "SIGKILL" in found.stopped.message


def test_an_error_ends_the_sweep_and_is_a_problem(words: Path) -> None:
    found, problem = swept(job("raising", words, (1, 2, 4), {}))
    assert [size.batch_size for size in found.sizes] == [1, 2]
    assert found.stopped is not None
    assert (found.stopped.batch_size, found.stopped.why) == (4, "error")
    assert "two is company" in str(problem)


@pytest.mark.parametrize(
    ("agent", "says"),
    [("unanswering", "no_word: no word comes to mind"), ("unloadable", "the weights have gone")],
)
def test_an_agent_that_answers_nothing_is_one_sentence(agent: str, says: str, words: Path) -> None:
    sweep = Sweep(job(agent, words, (1, 2), {}))
    with pytest.raises(AgentStoppedError, match=says):
        sweep.run(lambda text: None)
    assert sweep.measured() is None


@pytest.mark.parametrize(("limit", "size", "why"), [(5, 8, "out of memory"), (0, 10**9, "was not tried")])
def test_a_first_size_that_has_no_memory_is_an_agent_that_cannot_be_measured(
    limit: int, size: int, why: str, words: Path
) -> None:
    sweep = Sweep(job("null", words, (size,), {"batch_limit": limit}))
    with pytest.raises(AgentStoppedError, match=f"^batch size {size}.*{why}"):
        sweep.run(lambda text: None)
    assert sweep.measured() is None


@pytest.mark.parametrize(("size", "why"), [(4, "interrupted"), (2, None)], ids=["measuring", "comparing"])
def test_ctrl_c_says_which_size_was_under_way(
    size: int, why: str | None, words: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured, _ = swept(job("null", words, (2,), {}))

    def messages(*given: Any) -> Iterator[Any]:
        yield from (Loaded(False, 1.0, 2.0), Trying(2), *measured.sizes, Trying(size))
        raise Interrupted(signal.SIGINT)

    sweep = Sweep(job("null", words, (2, 4), {}))
    monkeypatch.setattr(apart, "run", messages)
    with pytest.raises(Interrupted):
        sweep.run(lambda text: None)
    found = sweep.measured()
    assert found is not None
    assert (found.stopped and found.stopped.why) == why
    assert found.stopped is None or found.stopped.batch_size == size


@dataclass
class Scripted(Batches):
    """A loop whose throughput is written down, by size."""

    rates: dict[int, float] = field(default_factory=dict)
    batch_s: float = 0.1  # of a batch of one; the others take as much longer as they are larger

    def measure(self, size: int, seconds: float) -> Window:
        return Window(1.0, round(self.rates[size]), latencies=[self.batch_s * size], responding=0.5, waiting=0.5)


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(3) as threads:
        yield threads


def meter(words: Path, pool: ThreadPoolExecutor, rates: dict[int, float], batch_s: float = 0.1) -> Meter:
    asked = job("null", words, None, {})
    agent = asked.entry.make()
    return Meter(asked, agent, Scripted(agent, stimuli.read(words), pool, 3, rates=rates, batch_s=batch_s))


def test_doubling_ends_after_two_that_bring_nothing(words: Path, pool: ThreadPoolExecutor) -> None:
    sent: list[object] = []
    # 8 is hardly faster than 4 and 16 than 8; 32, which would be, is not tried
    found = meter(words, pool, {1: 1000, 2: 900, 4: 4000, 8: 4080, 16: 4100, 32: 9000}).sweep(sent.append)
    assert [size.batch_size for size in found] == [1, 2, 4, 8, 16]
    assert isinstance(sent[-1], Stopped)
    assert (sent[-1].batch_size, sent[-1].why) == (16, "no_gain")
    assert best(found).batch_size == 4


def test_doubling_goes_on_while_a_batch_takes_no_time(words: Path, pool: ThreadPoolExecutor) -> None:
    sent: list[object] = []
    found = meter(words, pool, {2**power: 1000 for power in range(11)}, 0.004).sweep(sent.append)
    assert [size.batch_size for size in found] == [1, 2, 4, 8, 16]  # which takes 64 ms
    assert best(found).batch_size == 16


def test_a_size_that_would_not_fit_into_memory_is_not_tried(
    words: Path, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    # 100 MB and 10 for each stimulus, of which 150 are there: 4 need 140, 8 would need 180
    peaks = iter([110_000_000, 120_000_000, 140_000_000, 180_000_000])
    monkeypatch.setattr(machine, "peak", lambda: next(peaks))
    monkeypatch.setattr(machine, "resident", lambda: 100_000_000)
    monkeypatch.setattr(machine, "available", lambda: 50_000_000)
    sent: list[object] = []
    found = meter(words, pool, {size: 100 * size for size in (1, 2, 4, 8)}).sweep(sent.append)
    assert [size.batch_size for size in found] == [1, 2, 4]
    assert isinstance(sent[-1], Stopped)
    assert (sent[-1].batch_size, sent[-1].why) == (8, "too_little_memory")


def test_answers_come_in_the_order_of_the_stimuli(words: Path, pool: ThreadPoolExecutor) -> None:
    agent = catalogue.get("null").make()
    shown = stimuli.read(words)
    loop = Batches(agent, shown, pool, 3)
    draws = [Draw(seeds.derive(0, "null", stimulus.id, 0, None, 0)) for stimulus in shown[:17]]
    alone: Sequence[Any] = agent.respond(shown[:17], draws)
    for size in (1, 2, 5, 17, 40):
        found: list[Any] = loop.answers(size, 17)
        assert [reply.answer for reply in found] == [reply.answer for reply in alone]


@pytest.mark.parametrize("name", ["null", "null-one"])
def test_single_answers_end_with_the_time_but_not_before_there_are_some(
    name: str, words: Path, pool: ThreadPoolExecutor
) -> None:
    agent, shown = catalogue.get(name).make(), stimuli.read(words)
    with asyncio.Runner() as runner:
        loop = Calls(agent, shown, pool, runner) if agent.continuous() else Batches(agent, shown, pool, 3)
        whole: list[Any] = loop.answers(1, 20)
        assert len(whole) == 20
        for enough, count in (((5, 0.0), 5), ((5, 60.0), 20), ((30, 0.0), 20)):
            found: list[Any] = loop.answers(1, 20, enough)
            assert [reply.answer for reply in found] == [reply.answer for reply in whole[:count]]


@pytest.mark.parametrize(("seconds", "rounds"), [(0.5, 2), (1.2, 2), (2.4, 2), (2.6, 3), (5.1, 5)])
def test_calls_under_way_are_measured_in_whole_rounds(
    seconds: float, rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr(loops.time, "perf_counter", lambda: now)

    async def measured() -> Window:
        nonlocal now
        found = loops._Rounds(4, seconds)
        while not found.over.done():  # four that began together, each 1.25 s long, end within 4 ms
            found.activity.enter()
            now += 1.25 - 0.003
            for _ in range(4):
                found.end_call(1.25, AnswerError("deadline", "late"))
                now += 0.001
            now -= 0.001
            found.activity.leave()
            assert now < 60
        for _ in range(3):
            found.end_call(1.25, AnswerError("deadline", "late"))  # nobody counts what comes later
        return found.found

    found = asyncio.run(measured())  # after three rounds that warm up
    assert len(found.latencies) == found.failed == 4 * rounds
    assert found.seconds == pytest.approx(1.25 * rounds)
    assert found.responding + found.waiting == pytest.approx(found.seconds)


def test_the_warm_up_goes_on_while_rounds_become_shorter() -> None:
    def over(rounds: Sequence[float], seconds: float) -> list[bool]:
        warm_up = WarmUp(seconds)
        return [warm_up.add(took) for took in rounds]

    assert over([4.0, 2.0, 1.9], 5.0) == [False, False, True]
    assert over([4.0, 4.0, 2.0, 1.0, 0.95], 5.0) == [False, False, False, False, True]
    assert over([2.0**-power for power in range(8)], 5.0) == [False] * 7 + [True]
    assert over([4.0], 0.4) == [True]  # ten times what is measured
    assert over([4.0], 0.5) == [False]
    assert over([0.125] * 8, 5.0) == [False] * 7 + [True]  # a fifth of it
    assert over([0.125] * 9, 5.5) == [False] * 8 + [True]


@pytest.mark.parametrize("size", [1, 4])
def test_three_batches_warm_up(
    size: int, words: Path, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent, batches = catalogue.get("null").make({"delay_s": 0.01}), []
    own = agent.respond
    monkeypatch.setattr(agent, "respond", lambda *given: batches.append(len(given[0])) or own(*given))
    window = Batches(agent, stimuli.read(words), pool, 3).measure(size, 0.004)
    assert batches[:3] == [size] * 3
    assert len(batches) >= 3 + len(window.latencies)
    assert window.answered == size * len(window.latencies) >= 2 * size


def test_a_latency_has_no_part_in_which_a_batch_waits_for_others(words: Path) -> None:
    agent = catalogue.get("null").make({"delay_s": 0.02})
    with ThreadPoolExecutor(8, "prepare") as pool:  # each has a stimulus: eight batches of one are under way
        window = Batches(agent, stimuli.read(words), pool, 8).measure(1, 0.2)
    assert window.responding <= sum(window.latencies) < 4 * window.responding


@pytest.mark.parametrize("batches", [1, 3])
def test_the_device_is_watched_from_the_first_answer_to_the_last(
    batches: int, words: Path, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent, done = catalogue.get("null").make(), []
    for name in ("prepare", "respond"):
        own = getattr(agent, name)
        monkeypatch.setattr(agent, name, lambda *given, own=own, name=name: done.append(name) or own(*given))
    run = Batches(agent, stimuli.read(words), pool, 3).steady(4, batches)
    assert done == ["prepare"] * 4
    run()
    assert (done.count("prepare"), done.count("respond")) == (4 * batches, batches)


def test_the_best_is_the_smallest_that_is_nearly_as_fast() -> None:
    def size(batch: int, rate: float, p50: float = 1.0) -> Size:
        return Size(batch, rate, None, None, p50, p50, 0, None, 1, 0, None, None, None, None, None, 1, 1)

    assert best([size(1, 50), size(2, 98), size(4, 100), size(8, 99)]).batch_size == 2
    assert best([size(1, 50), size(2, 96), size(4, 100)]).batch_size == 4
    quick = [size(1, 99, 0.01), size(2, 100, 0.02), size(4, 99, 0.04)]
    assert best(quick).batch_size == 4
    assert best([*quick, size(8, 98, 0.08), size(16, 99, 0.16)]).batch_size == 8
    assert best([*quick, size(8, 91, 0.08), size(16, 92, 0.16)]).batch_size == 8
    assert best([*quick, size(8, 89, 0.08)]).batch_size == 4
    assert best([*quick, size(8, 91, 0.045), size(16, 89, 0.08)]).batch_size == 8
    assert best(quick, 0.0).batch_size == 1


@pytest.mark.parametrize("count", [1, 2, 3, 20, 100, 101])
def test_percentiles_are_the_nearest_ranks(count: int) -> None:
    window = Window(latencies=[float(value) for value in reversed(range(1, count + 1))])
    for share in (0.5, 0.95):
        value = window.percentile(share)
        assert value == math.ceil(share * count)


def test_a_device_is_busy_once_whatever_runs_together() -> None:
    assert covered([(5, 6), (0, 2), (1, 3), (1, 2), (3, 4)]) == 5
    assert covered([]) == 0


def test_tokens_are_counted_where_an_agent_tells() -> None:
    assert tokens_of(Reply(CaptionAnswer(text="a", tokens=7))) == 7
    assert tokens_of(Reply(TurnAnswer(text="a"), {"tokens": 5, "prompt_tokens": 9})) == 5
    assert tokens_of(Reply(WordAnswer(word="a"), "a")) is None
    window = Window()
    for reply in (Reply(CaptionAnswer(text="a", tokens=7)), ValueError("no"), Reply(CaptionAnswer(text="b", tokens=1))):
        window.note(reply)
    assert (window.tokens, window.answered, window.failed) == (8, 2, 1)
