"""``turinglike bench`` from the command line's entry point, and its table."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from agents import catalogue
from agents.contract import GIB, Declaration
from agents.errors import UnavailableError
from agents.vision.mmcq import MedianCutAgent
from serving.bench import command
from serving.bench.bare import Setup
from serving.bench.command import check_room
from serving.bench.results import BenchResult
from serving.cli import main
from serving.scheduling.machine import Device, Host
from tests.helpers.measured_agents import ENTRIES

WORDS = ("--task", "word_association")  # no pictures need be made


def parsed(text: str) -> BenchResult:
    return TypeAdapter(BenchResult).validate_json(text)


def measure(*more: str) -> int:
    return main(["bench", *more, "--seconds", "0.02", "--device", "cpu"])


def test_a_pipe_has_the_object_alone_and_the_table_stands_beside_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "STIMULI", 4)
    out = tmp_path / "out"
    call = ("null", "--batch-sizes", "2,1,2", "--task", "attention_prediction", "--mode", "search")
    assert measure(*call, "--out", str(out)) == 0
    captured = capsys.readouterr()
    assert captured.out == ""  # the file has it
    assert "stimuli/s" in captured.err
    assert measure(*call) == 0
    result = parsed(capsys.readouterr().out)
    assert parsed((out / "bench.json").read_text()).agents[0].digest == result.agents[0].digest
    assert result.complete
    [null] = result.agents
    assert (null.agent, null.task, null.mode) == ("null", "attention_prediction", "search")
    assert [size.batch_size for size in null.sizes] == [1, 2]
    for size in null.sizes:  # null's scanpaths have three fixations each
        assert size.fixations_s == pytest.approx(3 * size.stimuli_s)
        assert size.tokens_s is None


def test_what_fails_is_a_sentence_and_others_are_measured() -> None:
    entries = [ENTRIES["missing"], ENTRIES["unloadable"], ENTRIES["raising"], catalogue.get("null")]
    setups = [Setup(entry, {}, "cpu", "word_association", None, 0.02) for entry in entries]
    device = Device("a processor x 2", "cpu", 1 << 34)
    result = BenchResult("2025-01-01T00:00:00.000Z", Host("node", "a processor", 2, 1 << 34), device, [])
    command.measure(setups, (1, 4), result)
    assert [measured.agent for measured in result.agents] == ["null"]
    messages = {failed.agent: failed.message for failed in result.failed}
    assert messages["missing"] == "there are no weights: fetch them"
    assert messages["unloadable"] == "the weights have gone"
    assert "no stimulus is answered" in messages["raising"]
    assert len(messages) == 3


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (["nul"], "bench: there is no agent 'nul': did you mean null"),
        (["mmcq", "--task", "conversation"], "mmcq answers color_estimation"),
        (["ivsn", "--mode", "free"], "ivsn answers search"),
        (["null", "--out", __file__], "cannot write to"),
    ],
)
def test_bad_input_is_refused_before_anything_is_measured(
    call: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert measure(*call) in (2, 4)
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.out == ""


def test_without_ray_and_after_ctrl_c_there_is_what_was_measured(tmp_path: Path) -> None:
    (tmp_path / "ray.py").write_text('raise ImportError("Ray was imported")\n')  # in the children, too
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ["PYTHONPATH"]])}
    out = tmp_path / "out"
    call = [sys.executable, "-m", "serving.cli", "bench", "null", "null-one", "--set", "null-one.delay_s=60"]
    call += ["--seconds", "0.02", "--batch-sizes", "2", *WORDS, "--device", "cpu", "--out", str(out)]
    with subprocess.Popen(call, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        errors = ""
        while "null-one: loading" not in errors:
            errors += process.stderr.readline()
            assert process.poll() is None, errors
        process.send_signal(signal.SIGINT)
        output, more = process.communicate()
    assert process.returncode == 130, errors + more
    assert output == ""
    result = parsed((out / "bench.json").read_text())
    assert not result.complete
    [null] = result.agents
    assert [size.batch_size for size in null.sizes] == [2]


@pytest.mark.parametrize(("device", "size"), [("cpu", "35.9 GiB of memory"), ("cuda:0", "36.4 GiB of GPU memory")])
def test_what_has_no_room_is_refused_before_it_is_loaded(
    device: str, size: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Large(MedianCutAgent):
        declares = Declaration(memory=int(35.9 * GIB), device_memory=int(35.9 * GIB))

    class Fitting(MedianCutAgent):
        declares = Declaration(memory=23 * GIB, device_memory=23 * GIB)

    monkeypatch.setattr("serving.scheduling.machine.available", lambda: 24 * GIB)
    result = BenchResult("now", Host("here", "a CPU", 2, 24 * GIB), Device("a GPU", "cuda", 24 * GIB))
    with pytest.raises(UnavailableError, match=f"it needs {size}; there is 24.0 GiB"):
        check_room(Large(MedianCutAgent.Settings(), "large"), device, result)
    check_room(Fitting(MedianCutAgent.Settings(), "fitting"), device, result)
