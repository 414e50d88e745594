"""``turinglike bench`` from the command line's entry point."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from measured_agents import ENTRIES, send_cpu
from pydantic import TypeAdapter

from agents import catalogue
from serving.bench import command, sweep
from serving.bench.bare import Setup
from serving.bench.command import BenchOptions, bench
from serving.bench.results import BenchResult, Measured
from serving.cli import main

WORDS = ("--task", "word_association")  # no pictures need be made


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The device is the CPU, without asking torch."""
    monkeypatch.setattr(command, "send_device", send_cpu)


def parsed(text: str) -> BenchResult:
    return TypeAdapter(BenchResult).validate_json(text)


def measure(*more: str) -> int:
    return main(["bench", *more, "--bare", "--seconds", "0.02", "--device", "cpu"])


@pytest.mark.usefixtures("quick")
def test_a_pipe_has_the_object_alone_and_the_table_stands_beside_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "STIMULI", 4)
    out = tmp_path / "out"
    asked = ("null", "--batch-sizes", "2,1,2", "--task", "attention_prediction", "--mode", "search")
    assert measure(*asked, "--out", str(out)) == 0
    captured = capsys.readouterr()
    assert captured.out == ""  # the file has it
    assert measure(*asked) == 0
    found = parsed(capsys.readouterr().out)
    assert parsed((out / "bench.json").read_text()).agents[0].digest == found.agents[0].digest
    assert found.complete
    [one] = found.agents
    assert (one.agent, one.task, one.mode) == ("null", "attention_prediction", "search")
    assert [size.batch_size for size in one.sizes] == [1, 2]
    for size in one.sizes:  # null's scanpaths have three fixations each
        assert size.fixations_s == pytest.approx(3 * size.stimuli_s)
        assert size.tokens_s is None
    assert "stimuli/s" in captured.err
    assert "this takes about 1 min" in captured.err
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)  # a terminal has the table alone
    assert measure(*asked) == 0
    shown = capsys.readouterr().out
    assert "stimuli/s" in shown
    assert "{" not in shown


@pytest.mark.usefixtures("quick")
def test_what_fails_is_a_sentence_and_the_rest_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    names = ("missing", "unloadable", "raising")
    entries = {name: ENTRIES[name] for name in names} | {"null": catalogue.get("null")}
    asked = BenchOptions(entries, {}, sizes=(1, 4), seconds=0.02, device="cpu", task="word_association", bare=True)
    assert bench(asked) == 3
    found = parsed(capsys.readouterr().out)
    assert [one.agent for one in found.agents] == ["raising", "null"]
    said = {one.agent: one.message for one in found.failed}
    assert said["missing"] == "there are no weights: fetch them"
    assert said["unloadable"] == "the weights have gone"
    assert "two is company" in said["raising"]
    assert len(said) == 3


@pytest.mark.usefixtures("quick")
def test_what_was_measured_is_printed_though_it_cannot_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    whole_sweep = sweep.measure

    def measure_and_lose_disk(setup: Setup, *more: Any) -> Iterator[Measured]:
        yield from whole_sweep(setup, *more)
        out.rmdir()

    monkeypatch.setattr(sweep, "measure", measure_and_lose_disk)
    assert measure("null", "--batch-sizes", "2", *WORDS, "--out", str(out)) == 4
    captured = capsys.readouterr()
    assert [one.agent for one in parsed(captured.out).agents] == ["null"]
    assert f"turinglike: cannot write {out}" in captured.err.replace("write to", "write")


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (["nul"], "bench: there is no agent 'nul': did you mean null"),
        (["eliza~eliza"], "a pair is not measured"),
        (["null,null"], "name each agent to be measured once"),
        (["null", "--set", "null.delay=1"], "null.delay: no such setting"),
        (["mmcq", "--task", "conversation"], "mmcq answers color_estimation"),
        (["ivsn", "--mode", "free"], "ivsn answers search"),
        (["null", "--out", __file__], "cannot write to"),
    ],
)
def test_bad_input_is_refused_before_anything_is_measured(
    asked: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert measure(*asked) in (2, 4)
    captured = capsys.readouterr()
    assert says in captured.err
    assert captured.out == ""


@pytest.mark.parametrize("sizes", ["0", "1,,2"])
def test_bad_sizes_are_refused(sizes: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        measure("null", f"--batch-sizes={sizes}")
    assert ended.value.code == 2
    assert "must be a whole number" in capsys.readouterr().err


def test_without_ray_and_after_ctrl_c_what_was_measured_is_told(tmp_path: Path) -> None:
    (tmp_path / "ray.py").write_text('raise ImportError("Ray was asked for")\n')  # in the children, too
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ["PYTHONPATH"]])}
    out = tmp_path / "out"
    call = [sys.executable, "-m", "serving.cli", "bench", "null", "null-one", "--set", "null-one.delay_s=60"]
    call += ["--seconds", "0.02", "--batch-sizes", "2", *WORDS, "--bare", "--device", "cpu", "--out", str(out)]
    with subprocess.Popen(call, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said = ""
        while "null-one: loading" not in said:
            said += process.stderr.readline()
            assert process.poll() is None, said
        process.send_signal(signal.SIGINT)
        told, rest = process.communicate()
    assert process.returncode == 130, said + rest
    assert told == ""
    found = parsed((out / "bench.json").read_text())
    assert not found.complete
    [one] = found.agents
    assert [size.batch_size for size in one.sizes] == [2]
