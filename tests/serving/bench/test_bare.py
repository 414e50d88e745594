"""The stimuli that are made to measure with, the bare agent in its process, and the window in which it is measured."""

import os
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
import pytest

from agents import catalogue
from agents.stimuli import TASKS
from serving.bench import made_stimuli
from serving.bench.bare import BareAgent, Setup, Window, WindowTally
from serving.scheduling import machine
from serving.scheduling.batch import BatchReply, PackedReply
from serving.sets.checking import check_rows
from serving.sets.stimulus_set import read_rows

KINDS: list[Any] = [(task, None) for task in TASKS if task != "attention_prediction"]
KINDS += [("attention_prediction", mode) for mode in ("free", "search")]


@pytest.mark.parametrize("kind", KINDS)
def test_made_stimuli_are_sound_and_always_the_same(kind: Any, tmp_path: Path) -> None:
    task, mode = kind
    written = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        path = made_stimuli.write(tmp_path / name / "set.jsonl", task, mode, 9)
        written.append({file.name: file.read_bytes() for file in (tmp_path / name).rglob("*.*")})
    assert written[0] == written[1]
    assert list(check_rows(read_rows(path), deep=True).problems) == []
    stimuli = made_stimuli.read(path)
    assert len({stimulus.id for stimulus in stimuli}) == 9


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_stimuli.write(tmp_path_factory.mktemp("set") / "set.jsonl", "word_association", None, 96)


def bare(name: str, words: Path, **settings: Any) -> BareAgent:
    return BareAgent(Setup(catalogue.get(name), settings, "cpu", "word_association", None, 0.1, words))


@pytest.mark.parametrize(
    ("ends", "seconds", "together", "began", "last", "count"),
    [
        ([4.0, 8.0, 12.0, 16.0, 20.0], 5.0, 1, 12.0, 20.0, 2),  # three rounds warm up, two are measured at the least
        ([0.5, 1.0, 1.5, 2.0, 2.5, 13.0], 10.0, 1, 2.0, 13.0, 2),  # a fifth of what is measured warms up
        ([3.0 * pair + late for pair in range(1, 9) for late in (0.0, 0.1)], 3.05, 2, 9.1, 15.1, 4),  # whole rounds
    ],
)
def test_a_warm_up_is_left_out(
    ends: list[float], seconds: float, together: int, began: float, last: float, count: int
) -> None:
    window = Window(seconds, 0.0, together)
    for end in ends:
        if not window.over:
            window.add(end)
    assert (window.began, window.ended, window.count) == (pytest.approx(began), pytest.approx(last), count)


@pytest.mark.parametrize("name", ["null", "null-one"])
def test_the_rate_is_that_of_the_agent(name: str, words: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "available", lambda: None)  # this process keeps the memory that it may take
    size = 4
    delay = 0.01
    with closing(bare(name, words, delay_s=delay)) as agent:
        tally = agent.measure(size, 0.1)
    assert tally.seconds >= 0.1
    assert tally.failed == 0
    assert 2 * size <= tally.answered <= size * (tally.seconds / delay + 1)
    # of a batch: no part in which it waits for the others under way
    assert len(tally.latencies) * delay <= tally.responding <= sum(tally.latencies)
    assert min(tally.latencies) >= delay


def test_tokens_and_percentiles() -> None:
    tally = WindowTally(Window(1.0, 0.0))
    tally.note(BatchReply([PackedReply(None, b'{"word":"a"}', b'"a"', "0")], 1.0, 1), 2)
    assert tally.tokens is None
    replies = [
        PackedReply(None, b'{"text":"a","tokens":7}', None, "0", 1.0),
        PackedReply("no_word", "no", None, "0", 1.0),
        PackedReply(None, b'{"text":"a"}', b'{"tokens":5,"prompt_tokens":9}', "0", 1.0),
    ]
    tally.note(BatchReply(replies, 1.0, 3), 2)
    assert (tally.tokens, tally.answered, tally.failed, tally.failure) == (12, 3, 1, "no_word: no")
    assert tally.latencies == [1.0, 2.5]  # two threads prepared
    tally.latencies = [float(value) for value in range(101, 0, -1)]
    assert [tally.percentile(share) for share in (0.5, 0.95)] == [51.0, 96.0]


def test_a_process_ends_when_its_parent_was_killed() -> None:
    code = "from tests.helpers import measured_agents as agents; from serving.bench.bare import in_child; "
    code += "[print(pid, flush=True) for pid in in_child(agents.linger)]"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        os.kill(parent.pid, signal.SIGKILL)
    assert psutil.wait_procs([child], timeout=600)[0]
