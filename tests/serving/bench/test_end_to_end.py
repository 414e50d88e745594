"""How fast the whole is, from what it delivered and when; and what is asked of it."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from agents import catalogue
from agents.contract import GIB
from agents.errors import AgentStoppedError
from serving.bench import apart, end_to_end, peers, stimuli, table
from serving.bench.command import Bench, Options
from serving.bench.end_to_end import Delivered, Found, items, possible
from serving.bench.results import Best, Device, EndToEnd, Measured, Size
from serving.scheduling import interrupts
from serving.scheduling.placement import Need, Node
from serving.scheduling.request import AgentRequest


def item(worker: object, status: Any = "ok") -> AgentRequest:
    made = AgentRequest("null", b"{}", "s")
    made.worker, made.status = worker, status  # type: ignore[assignment]
    return made


def test_answers_are_counted_by_batch_and_rejected_ones_with_them(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = itertools.count(100.0)
    monkeypatch.setattr(end_to_end.time, "perf_counter", lambda: next(clock))
    first, second, third = {"batch_size": 2}, {"batch_size": 2}, {"batch_size": 2}
    found = Delivered()
    for one in [
        item(first),
        item(first),
        item(second, "failed"),
        item(second),
        item(third, "rejected"),
        item(third),
    ]:
        found.add(one)
    assert found.times == [100.0, 101.0, 102.0]
    assert found.sizes == [2, 1, 2]  # one failed, and is no answer


def test_the_rate_is_from_batch_to_batch() -> None:
    found = Delivered([0.0, 1.0, 3.0, 4.0, 6.0, 6.5], [8, 8, 6, 8, 8, 1])
    assert found.rate(0.5, 1, 4.0) == (6 + 8 + 8) / (6.0 - 1.0)  # what began it is not in it, what is under way neither
    assert found.rate(0.0, 1, 6.0) == (8 + 6 + 8 + 8) / 6.0
    assert found.rate(0.5, 1, 0.0) == (6 + 8 + 8) / (6.0 - 1.0)  # all there are
    assert found.rate(0.0, 2, 0.0) == (8 + 6 + 8 + 8) / 6.0  # of two workers four
    assert found.rate(0.5, 2, 0.0) is None  # too few: three
    assert Delivered([*found.times, 7.0], [*found.sizes, 8]).rate(0.5, 2, 0.0) == (6 + 8 + 8 + 1) / (6.5 - 1.0)
    assert found.rate(0.5, 1, 5.5) is None  # too short
    assert found.rate(9.0, 1, 0.0) is None
    assert Delivered().rate(0.0, 1, 0.0) is None


@pytest.mark.parametrize("begin", [0.0, 0.05])
@pytest.mark.parametrize("seconds", [0.0, 2.95, 3.05, 6.5])
def test_batches_of_two_workers_that_end_in_pairs_are_counted_in_pairs(begin: float, seconds: float) -> None:
    found = Delivered([3.0 * pair + late for pair in range(6) for late in (0.0, 0.1)], [4] * 12)
    assert found.rate(begin, 2, seconds) == pytest.approx(8 / 3.0)


@pytest.mark.parametrize("seen", [0, 1, 2, 31, 32])
def test_calls_that_end_together_are_counted_in_whole_rounds(seen: int) -> None:
    times = [second + place / 1000 for second in range(5) for place in range(32)][: 3 * 32 + seen]
    rate = Delivered(times, [1] * len(times)).rate(1.0, 32, 1.5)
    assert rate == (None if seen < 2 else pytest.approx(32.0))  # however many of the next round there are


@pytest.mark.parametrize(
    ("replicas", "seconds", "begin"),
    [
        (1, 0.0, 1.0),  # one at the least
        (2, 0.0, 3.0),  # of each worker
        (1, 5.0, 4.0),  # three, and a second
        (2, 5.0, None),
        (2, 0.3, 3.0),  # three seconds instead of three batches of each
        (1, 25.0, 6.0),  # five seconds
        (1, 40.0, None),
        (6, 0.0, None),
    ],
)
def test_the_first_batches_of_each_worker_are_left_out(replicas: int, seconds: float, begin: float | None) -> None:
    found = Delivered([0.0, 1.0, 3.0, 4.0, 6.0, 6.5], [1] * 6)
    assert found.warm(replicas, seconds) == begin
    assert Delivered().warm(replicas, seconds) is None


@pytest.mark.parametrize(
    ("need", "nodes", "continuous", "counts"),
    [
        (Need("a", GIB), [Node("n", "h", 8, 64 * GIB)], False, [1, 2, 4]),
        (Need("a", GIB), [Node("n", "h", 3, 64 * GIB)], False, [1, 2]),
        (Need("a", GIB), [Node("n", "h", 8, 3 * GIB)], False, [1, 2]),
        (Need("a", GIB), [Node("n", "h", 8, 64 * GIB)], True, [1]),
        (Need("a", GIB, 6 * GIB), [Node("n", "h", 8, 64 * GIB, 2, 80 * GIB)], False, [1, 2]),
        (Need("a", GIB, 6 * GIB), [Node("n", "h", 8, 64 * GIB, 2, 80 * GIB)] * 2, True, [1, 2, 4]),
        (Need("a", GIB, 60 * GIB, devices=2), [Node("n", "h", 8, 64 * GIB, 4, 80 * GIB)], False, [1, 2]),
        (Need("a", 9 * GIB), [Node("n", "h", 1, GIB)], False, [1]),  # which is then refused with the sizes
    ],
)
def test_as_many_workers_as_there_is_room_for(
    need: Need, nodes: list[Node], continuous: bool, counts: list[int]
) -> None:
    assert possible(need, nodes, continuous=continuous) == counts


def test_the_set_has_no_end_and_a_conversation_is_one_turn(tmp_path: Path) -> None:
    shown = stimuli.read(stimuli.write(tmp_path, "conversation", None, 3))
    asked = list(itertools.islice(items("eliza", shown), 7))
    assert [one.stimulus for one in asked] == [shown[at % 3].id for at in range(7)]
    assert [one.order for one in asked] == list(range(1, 8))
    for one, stimulus in zip(asked, [*shown, *shown, shown[0]], strict=True):
        turn = len(orjson.loads(one.row)["history"])
        assert one.turn == turn
        assert one.options == {"speaker": "AB"[turn % 2], "turn": turn} == stimuli.options(stimulus)
    words = stimuli.read(stimuli.write(tmp_path, "word_association", None, 3))
    assert {(one.turn, one.options) for one in itertools.islice(items("null", words), 4)} == {(None, None)}


def here(function: Any, *arguments: Any) -> Iterator[Any]:
    """As apart.run, in this process, whose Ray the other tests use, too."""
    sent: list[Any] = []
    function(sent.append, *arguments)
    yield from sent


@pytest.mark.usefixtures("ray_address")
def test_agents_are_measured_alone_and_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    null = catalogue.get("null")
    entries = {name: replace(null, name=name) for name in ("one", "two", "broken")}
    settings = {
        "one": {"delay_s": 0.02},
        "two": {"delay_s": 0.01, "reject": 0.5, "attempts": 50},
        "broken": {"delay_s": -1.0},
    }
    said: list[str] = []
    found = Found()
    outcomes: dict[str, set[tuple[str | None, int]]] = {name: set() for name in entries}

    class Seen(Delivered):
        def add(self, item: AgentRequest) -> None:
            outcomes[item.agent].add((item.status, len(item.attempts)))
            super().add(item)

    monkeypatch.setattr(end_to_end, "Delivered", Seen)
    monkeypatch.setattr(apart, "run", here)
    monkeypatch.setattr(end_to_end, "REPLICAS", (1,))
    monkeypatch.setattr(end_to_end, "PATIENCE", 0.0)
    end_to_end.measure(
        found, [measured(name, 4, 100.0) for name in entries], entries, settings, tmp_path,
        seconds=0.1, device="cpu", say=said.append,
    )  # fmt: skip
    assert [(one.agent, one.part) for one in found.failed] == [("broken", "end_to_end")]
    assert set(found.runs) == {"one", "two"}
    for name, delay in (("one", 0.02), ("two", 0.01)):
        assert found.runs[name][0].replicas == 1
        for run in found.runs[name]:
            assert 0 < run.stimuli_s <= 1.05 * run.replicas * 4 / delay  # a call of four takes as long
            assert 0 < run.bare_stimuli_s <= 1.05 * 4 / delay  # its own, not the sweep's
            assert run.ratio == run.stimuli_s / run.bare_stimuli_s
            assert run.bare_stimuli_s == sum(run.bare) / 2
    # filters judge, and nothing is asked again
    assert outcomes == {"one": {("ok", 0)}, "two": {("ok", 0), ("rejected", 1)}, "broken": set()}
    assert found.packed is not None
    assert found.packed.agents == ("one", "two")
    assert found.packed.alone == {name: found.runs[name][0].stimuli_s for name in ("one", "two")}
    assert found.packed.stimuli_s["one"] <= 1.05 * 4 / 0.02
    assert not list(tmp_path.glob("*.records"))


def test_each_number_of_workers_has_the_bare_agent_before_and_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[Any] = []
    one = measured("null", 4, 1.0)
    running = end_to_end._Run(
        sent.append, end_to_end.Job((one,), {"null": catalogue.get("null")}, {}, tmp_path, 1.0, "cpu")
    )
    order: list[str] = []
    bare, whole = iter((100.0, 80.0, 120.0, 100.0)), iter((45.0, 90.0, 60.0))

    def ask(*_: Any) -> float:
        order.append("bare")
        if (found := next(bare, None)) is None:
            raise AgentStoppedError("its process was ended by SIGKILL")
        return found

    async def drive(_: Any, those: Any, replicas: int) -> dict[str, float]:
        order.append(f"workers {replicas}")
        return {"null": next(whole)}

    async def settled(patience: float) -> None:
        order.append("settled")

    monkeypatch.setattr(end_to_end._Run, "_bare", ask)
    monkeypatch.setattr(end_to_end._Run, "_drive", lambda self, *arguments: drive(*arguments))
    monkeypatch.setattr(end_to_end, "settled", settled)
    monkeypatch.setattr(end_to_end, "possible", lambda *_, **__: [1, 2])
    fleet = SimpleNamespace(admission=SimpleNamespace(needs={"null": None}))
    monkeypatch.setattr(end_to_end._Run, "_fleet", lambda *_: (fleet, None))
    asyncio.run(running._by_itself(SimpleNamespace(nodes=[]), one))  # type: ignore[arg-type]
    assert order == ["settled", "bare", "workers 1", "settled", "bare", "workers 2", "settled", "bare"]
    assert sent == [
        ("null", EndToEnd(1, 4, 45.0, 90.0, 0.5, (100.0, 80.0))),
        ("null", EndToEnd(2, 4, 90.0, 100.0, 0.9, (80.0, 120.0))),
    ]
    sent.clear()
    with pytest.raises(AgentStoppedError, match="the bare agent, measured again after 1 worker: its process was ended"):
        asyncio.run(running._by_itself(SimpleNamespace(nodes=[]), one))  # type: ignore[arg-type]
    assert sent == [("null", EndToEnd(1, 4, 60.0, 100.0, 0.6, (100.0,)))]  # what there was is not lost


def test_ray_has_settled_once_little_is_used_and_nothing_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    used = iter((10.0, 12.0, 3.0, 3.5, 3.5001, 99.0))  # a worker ends, with all that it had used, between 12 and 3
    monkeypatch.setattr(end_to_end, "_used", lambda root: next(used))
    monkeypatch.setattr(end_to_end, "SETTLING", 0.01)
    asyncio.run(end_to_end.settled(60.0))
    assert list(used) == [99.0]


def test_an_agent_has_the_size_and_the_memory_that_were_measured(tmp_path: Path) -> None:
    one = measured("git-large-coco", 6, 10.0, 10**12)
    two = replace(measured("null-one", 3, 10.0), continuous=True)
    entries = {name: catalogue.get(name) for name in ("git-large-coco", "null-one")}
    running = end_to_end._Run(lambda message: None, end_to_end.Job((one, two), entries, {}, tmp_path, 1.0, "cpu"))
    agent = running._agent(one)
    assert agent.batch_size == 6
    assert agent.device_memory >= 10**12
    assert running._agent(two).max_in_flight == 3


def test_what_was_found_before_the_end_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def ends(*arguments: Any) -> Iterator[Any]:
        yield "null", EndToEnd(1, 4, 50.0, 100.0, 0.5)
        raise interrupts.Interrupted(2)

    monkeypatch.setattr(apart, "run", ends)
    monkeypatch.setattr(peers, "measure", lambda *arguments, **options: ())
    entries = {"null": catalogue.get("null")}
    running = Bench(Options(entries, {}), {"null": entries["null"].make()}, {}, tmp_path)
    running._device = Device("a processor", "cpu", 1)
    running._measured["null"] = measured("null", 4, 100.0)
    with pytest.raises(interrupts.Interrupted):
        running._beyond()
    found = running.result(complete=False)
    assert found is not None
    assert found.agents[0].end_to_end == (EndToEnd(1, 4, 50.0, 100.0, 0.5),)
    lines = "\n".join(table.lines(found))
    assert "end to end, 1 worker: 50 stimuli/s, 0.50 of the bare agent" in lines
    assert "what those cost" not in lines
    whole = replace(found.agents[0].end_to_end[0], bare=(90.0, 110.0))
    swinging = replace(found, agents=(replace(found.agents[0], end_to_end=(whole,)),))
    assert "0.50 of the bare agent, which did 90 before and 110 after" in "\n".join(table.lines(swinging))
    steady = replace(found, agents=(replace(found.agents[0], end_to_end=(replace(whole, bare=(96.0, 104.0)),)),))
    assert "0.50 of the bare agent\n" in "\n".join((*table.lines(steady), ""))
    instant = replace(found, agents=(replace(found.agents[0], best=Best(4, 1e6)),))
    assert "takes the bare agent 1 µs" in "\n".join(table.lines(instant))


def measured(name: str, batch_size: int, rate: float, device_bytes: int | None = None) -> Measured:
    size = Size(batch_size, rate, None, None, 1.0, 1.0, 1, device_bytes, 1.0, 0.0, None, None, None, None, None, 1.0, 1)
    return Measured(
        name, "word_association", None, "0" * 64, {}, "cpu", False, False, 1.0, 1.0, (size,), None,
        Best(batch_size, rate),
    )  # fmt: skip
