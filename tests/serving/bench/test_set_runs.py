"""``turinglike bench SET``: runs that are measured, what limits them, and what follows for the whole set."""

import json
import os
import re
import signal
import time
import xml.etree.ElementTree as ElementTree
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from agents.errors import InputError
from serving.bench import drawn_set, generate_run, set_command, set_runs
from serving.bench.progress import ENDS, progress_of
from serving.bench.record_window import read_window, with_pace_of_talks
from serving.bench.results import BenchResult
from serving.bench.run_results import MeasuredRuns, Scaled, median_run
from serving.bench.scaling_plot import plot
from serving.cli import main
from serving.runs import store
from serving.scheduling.interrupts import Interrupted
from tests.helpers import mixed_images
from tests.helpers.in_process import without_ray

MINUTES = "10"  # never reached: all is answered before, and how long that takes decides nothing


@pytest.fixture
def words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(generate_run, "MOST", 1)  # the set is asked once, however quickly it is answered
    path = tmp_path / "words.txt"
    path.write_text("".join(f"word{number}\n" for number in range(40)))
    return path


def measured(out: Path) -> MeasuredRuns:
    [runs] = TypeAdapter(BenchResult).validate_json((out / "bench.json").read_text()).runs
    return runs


def bench(out: Path, *more: str, minutes: str = MINUTES) -> MeasuredRuns:
    assert main(["bench", *more, "--minutes", minutes, "--device", "cpu", "--out", str(out)]) == 0
    return measured(out)


def test_an_agent_that_waits_is_as_fast_as_it_waits_and_its_workers_add_up(
    words: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    without_ray(monkeypatch)
    out = tmp_path / "out"
    call = [str(words), "--task", "word", "--agents", "null", "--set", "null.delay_s=0.1", "--batch-size", "2"]
    runs = bench(out, *call, "--replicas", "2,1", "--price-hour", "3600")
    assert (runs.agent, runs.task, runs.source, runs.way) == ("null", "word_association", str(words), "generate")
    assert [scaled.replicas for scaled in runs.scaling] == [1, 2]
    for scaled in runs.scaling:
        assert len(scaled.repeats) == 3
        assert scaled.rates[-1] <= 20 * scaled.replicas * 1.1  # two answers in a call that takes at least 0.1 s
        assert scaled.forecast is not None
        assert scaled.forecast.answers == 40
        slowest = 40 / scaled.rates[-1] / 3600
        hours = scaled.forecast.hours
        assert hours.low is not None
        assert hours.high is not None
        assert hours.low < hours.value < hours.high
        assert scaled.forecast.hours.value > slowest
        assert scaled.forecast.cost is not None  # a price of one a second
        assert scaled.forecast.cost.value == pytest.approx(3600 * scaled.forecast.hours.value)
    one, two = runs.scaling
    assert one.efficiency is None
    assert two.efficiency == pytest.approx(two.median / 2 / one.median)
    root = ElementTree.fromstring((out / "scaling-null.svg").read_text())
    assert "answers per second" in "".join(root.itertext())
    assert ElementTree.fromstring(plot(runs)).tag == root.tag
    shown = capsys.readouterr().err
    assert "the whole set with 2 workers: 40 answers in" in shown


def test_results_are_compared_with_earlier_ones(
    words: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    without_ray(monkeypatch)
    call = [str(words), "--task", "word", "--agents", "null", "--batch-size", "2", "--set"]
    bench(tmp_path / "slow", *call, "null.delay_s=0.1")
    earlier = str(tmp_path / "slow" / "bench.json")
    capsys.readouterr()
    bench(tmp_path / "fast", *call, "null.delay_s=0.02", "--compare", earlier)
    assert "null by generate, 1 worker: faster (" in capsys.readouterr().err
    assert main(["bench", "null", "--seconds", "0.02", "--batch-sizes", "1", "--compare", earlier]) == 0
    assert "no agent was measured over the same set" in capsys.readouterr().err
    other = tmp_path / "other.json"
    other.write_text('{"schema": "turinglike.bench/4"}')
    assert main(["bench", "null", "--compare", str(other)]) == 2
    assert "is no result of this version of `turinglike bench`" in capsys.readouterr().err


def parts(scaled: Scaled) -> dict[str, float]:
    """How busy agent, preparing and disk were in the median run."""
    shares = median_run(scaled.repeats).shares
    [workers] = shares.workers.values()
    return {"device": max(workers), "preparing": shares.preparing, "disk": shares.writing or 0.0}


LIMITED = {"device": "null.delay_s=0.2", "preparing": "null.prepare_s=0.02"}


def test_what_was_measured_before_a_signal_is_kept(
    words: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    without_ray(monkeypatch)
    measure = generate_run.GenerateRun.measure
    asked = []

    def ended(run: generate_run.GenerateRun) -> object:
        asked.append(run)
        if len(asked) > 1:
            raise Interrupted(signal.SIGTERM)
        return measure(run)

    monkeypatch.setattr(generate_run.GenerateRun, "measure", ended)
    out = tmp_path / "out"
    call = ["bench", str(words), "--task", "word", "--agents", "null", "--set", "null.delay_s=0.1", "--device", "cpu"]
    assert main([*call, "--batch-size", "2", "--minutes", MINUTES, "--out", str(out)]) == 128 + signal.SIGTERM
    [scaled] = measured(out).scaling
    assert len(scaled.repeats) == 1
    assert scaled.forecast is not None
    assert (scaled.forecast.hours.low, scaled.forecast.hours.high) == (None, None)
    assert json.loads((out / "bench.json").read_text())["complete"] is False
    assert "the whole set with 1 worker: 40 answers in" in capsys.readouterr().err


def test_too_little_is_told_with_how_many_minutes_should_do(
    words: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_ray(monkeypatch)
    out = tmp_path / "out"
    call = ["bench", str(words), "--task", "word", "--agents", "null", "--set", "null.delay_s=5", "--device", "cpu"]
    assert main([*call, "--batch-size", "2", "--minutes", "0.05", "--out", str(out)]) == 3
    [failed] = json.loads((out / "bench.json").read_text())["failed"]
    told = r"too little was answered to be measured: no answer ended in \d\.\d s; --minutes 1 should do"
    assert re.fullmatch(told, failed["message"])


def test_how_far_conversations_came_tells_how_long_they_take(tmp_path: Path) -> None:
    """Of two the one that came farther has 8 of its 16 messages after 20 s: both should end within a minute each."""
    rows = [json.dumps({"id": name, "exchanges": 16}).encode() for name in "ab"]
    turns = [{"stimulus": "a", "turn": turn} for turn in range(8)] + [{"stimulus": "b", "turn": 0}]
    (tmp_path / "turns").write_text("".join(f"{json.dumps(turn)}\n" for turn in turns))
    found = progress_of(tmp_path / "none", tmp_path / "turns", rows, 20.0)
    assert found.text() == "too little was answered to be measured: none of 2 conversations ended in 20 s"
    assert found.minutes(3) == 3 * 20 * 2 * ENDS / 60


def test_conversations_that_end_together_are_not_taken_for_fast_ones(tmp_path: Path) -> None:
    """Eight begin at once, and end within 2 s after 100 s."""
    path = tmp_path / "records.jsonl"
    lines = []
    for number in range(8):
        created = datetime.fromtimestamp(1_700_000_100 + number * 2 / 7, UTC).isoformat()
        timing = {"waiting": 20.0, "preparing": 0.0, "responding": 80.0 + number * 2 / 7}
        record = {"created": created, "status": "ok", "error": None, "answer": {}, "raw": None, "timing": timing}
        lines.append(json.dumps(record | {"worker": {"batch_size": 8, "device": "cpu"}}))
    path.write_text("".join(f"{line}\n" for line in lines))
    window = read_window(path, 1_700_000_000.0, 1_700_000_102.0)
    assert window is not None
    assert window.rate_s > 3
    assert with_pace_of_talks(window, path).rate_s == pytest.approx(8 / 102)


@pytest.mark.parametrize("limit", LIMITED)
def test_what_limits_a_run_is_told(
    limit: str, words: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    without_ray(monkeypatch)
    call = [str(words), "--task", "word", "--agents", "null", "--batch-size", "4", "--set", LIMITED[limit]]
    monkeypatch.setattr(set_runs, "REPEATS", 1)
    [scaled] = bench(tmp_path / "out", *call).scaling
    busy = parts(scaled)
    assert max(busy, key=lambda part: busy[part]) == limit
    assert scaled.limited_by in (limit, "cores")  # where other programs take the cores, that is what is told
    assert scaled.why in capsys.readouterr().err


SERVED = {
    # how the agent answers, entries beside a cue, and the part that must be the busiest
    "device": ("null.delay_s=0.2", 0),
    "process": ("null.delay_s=0", 900),  # of 20 KB, which the server reads, checks and keeps
}


@pytest.mark.parametrize("part", SERVED)
def test_what_limits_a_server_is_told(
    part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(set_runs, "REPEATS", 1)
    delay, entries = SERVED[part]
    beside = {f"entry{number}": "a word or two" for number in range(entries)}
    path = tmp_path / "words.jsonl"
    rows = [
        {"id": f"w{number}", "task": "word_association", "cue": f"word{number}", "meta": beside} for number in range(40)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    package = tmp_path / "serving"  # a folder of the user's, which is not to be imported
    package.mkdir()
    (package / "__init__.py").write_text("raise ImportError")
    monkeypatch.chdir(tmp_path)
    call = [str(path), "--agents", "null", "--http", "--connections", "16", "--batch-size", "4", "--set", delay]
    [scaled] = bench(tmp_path / "out", *call, minutes="0.1").scaling  # a run is always as long as it is told
    [repeat] = scaled.repeats
    assert repeat.failed == 0
    shares = repeat.shares
    [answering] = shares.workers["null"]
    assert shares.client is not None
    if part == "device":
        assert answering > shares.process
        assert scaled.limited_by in ("device", "cores")
    else:
        assert shares.process > max(answering, shares.client)
        assert scaled.limited_by in ("server", "cores", "unclear")  # what others leave of the cores may be too little
    assert scaled.why in capsys.readouterr().err


def test_a_slow_disk_is_told(words: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_ray(monkeypatch)
    monkeypatch.setattr(set_runs, "REPEATS", 1)
    monkeypatch.setattr(store, "BUFFER", 5_000)
    fsync = os.fsync

    def slow(descriptor: int) -> None:
        time.sleep(0.4)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", slow)
    call = [str(words), "--task", "word", "--agents", "null", "--batch-size", "4"]
    [scaled] = bench(tmp_path / "out", *call).scaling
    busy = parts(scaled)
    assert max(busy, key=lambda part: busy[part]) == "disk"
    assert scaled.limited_by in ("disk", "cores")


def test_calls_at_once_are_those_that_an_agent_takes(
    words: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_ray(monkeypatch)
    monkeypatch.setattr(set_runs, "REPEATS", 1)
    words.write_text("".join(f"word{number}\n" for number in range(192)))  # three times what it takes at once
    call = [str(words), "--task", "word", "--agents", "null-one", "--set", "null-one.delay_s=0.5"]
    [scaled] = bench(tmp_path / "out", *call).scaling
    assert parts(scaled)["device"] <= 1
    assert scaled.limited_by in ("calls", "cores")


def test_of_two_agents_that_converse_each_has_its_share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_ray(monkeypatch)
    monkeypatch.setattr(generate_run, "MOST", 1)
    monkeypatch.setattr(set_command, "MADE", 12)
    config = tmp_path / "agents.toml"
    config.write_text('[slow]\nagent = "null"\ndelay_s = 0.1\n')
    call = ["--agents", "null~slow", "--config", str(config), "--batch-size", "1"]
    runs = bench(tmp_path / "out", *call)
    assert (runs.agent, runs.task, runs.source) == ("null~slow", "conversation", "made stimuli")
    [scaled] = runs.scaling
    workers = median_run(scaled.repeats).shares.workers
    assert [*workers] == ["null", "slow"]
    assert workers["slow"][0] > 10 * workers["null"][0]
    assert scaled.forecast is None  # of the program's own stimuli


def test_a_worker_that_has_more_batches_than_others_is_told(
    words: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    without_ray(monkeypatch)
    monkeypatch.setattr(set_runs, "REPEATS", 1)
    # Of five batches one of four workers has two.
    call = [str(words), "--task", "word", "--agents", "null", "--set", "null.delay_s=1", "--batch-size", "8"]
    [scaled] = bench(tmp_path / "out", *call, "--replicas", "4").scaling
    [workers] = scaled.repeats[0].shares.workers.values()
    assert max(workers) == pytest.approx(2 * min(workers), rel=0.2)
    assert scaled.limited_by in ("queue", "cores")
    if scaled.limited_by == "queue":
        assert "One worker's queue: of 4 workers the busiest answers" in capsys.readouterr().err


def test_a_small_set_is_asked_repeatedly_and_pictures_come_from_their_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_ray(monkeypatch)
    monkeypatch.setattr(set_runs, "REPEATS", 1)
    monkeypatch.setattr(generate_run, "MOST", 60)
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    count = len(mixed_images.make(pictures))
    monkeypatch.chdir(tmp_path)
    [scaled] = bench(tmp_path / "out", "pictures", "--agents", "null", "--task", "caption", "--batch-size", "4").scaling
    assert scaled.forecast is not None
    assert scaled.forecast.answers == count
    assert all(count < repeat.answers <= 60 for repeat in scaled.repeats)
    assert all(repeat.failed == 0 for repeat in scaled.repeats)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ([], "give the agents to measure, or --agents with a set"),
        (["null", "--replicas", "1,2"], "--replicas: only with --agents"),
        (["null", "--http", "--minutes", "2"], "--minutes, --http: only with --agents"),
        (["--agents", "null", "--seconds", "2"], "--seconds: only without --agents"),
        (["a.txt", "b.txt", "--agents", "null"], "give one set, not 2"),
        (["--agents", "null", "--connections", "2"], "--connections: only with --http"),
        (["--agents", "null~eliza", "--http"], "a pair is not asked by HTTP"),
        (["--agents", "null", "--http", "--address", "auto"], "leave --address out"),
        (["absent.txt", "--agents", "null", "--task", "word"], "absent.txt"),
        (["--agents", "nul"], "there is no agent 'nul'"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    call: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", *call]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.out == ""


def test_problems_of_a_set_are_all_told_before_anything_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "set.jsonl"
    path.write_text('{"id": "a", "task": "word_association"}\n{"id": "b", "task": "word_association", "cue": 3}\n')
    assert main(["bench", str(path), "--agents", "null"]) == 2
    error = capsys.readouterr().err
    assert f"{path}:1" in error
    assert f"{path}:2" in error


def test_the_first_problems_of_a_set_are_kept_and_all_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drawn_set, "KEPT", 3)
    path = tmp_path / "set.jsonl"
    path.write_text("".join(f'{{"id": "{name}", "task": "word_association"}}\n' for name in "abcde"))
    with pytest.raises(InputError, match="5 problems; nothing was started") as raised:
        drawn_set.read_material(path, None, None)
    assert [problem.line for problem in raised.value.problems] == [1, 2, 3]


def test_an_agent_that_fails_is_a_sentence(
    words: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    without_ray(monkeypatch)
    call = ["bench", str(words), "--task", "word", "--agents", "null", "--set", "null.fail=.", "--minutes", MINUTES]
    assert main(call) == 3
    captured = capsys.readouterr()
    assert json.loads(captured.out)["runs"] == []
    assert "told_to_fail" in captured.err
