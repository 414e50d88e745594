"""``turinglike bench`` from the command line's entry point, and what ``--batch-size auto`` makes of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from measured_agents import ENTRIES, look

from agents import catalogue
from agents.tasks import TASKS
from serving.bench import command, machine, remembered, results, stimuli, table
from serving.bench.command import Options, bench
from serving.bench.results import Device, Limits, Result
from serving.cli import main
from serving.runs.checking import check_set

WORDS = ("--task", "word_association")  # no pictures need be made


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The device's limits are not measured."""
    monkeypatch.setattr(command, "look", look)


def last(capsys: pytest.CaptureFixture[str]) -> Result:
    """The result on the last line of stdout, after which there is nothing."""
    out = capsys.readouterr().out
    assert out.endswith("}\n")
    return results.from_json(out.splitlines()[-1])


def measure(*more: str) -> int:
    return main(["bench", *more, "--bare", "--seconds", "0.02", "--device", "cpu"])


@pytest.mark.usefixtures("quick")
def test_the_last_line_is_the_result_which_can_be_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "STIMULI", 4)
    out = tmp_path / "out"
    asked = ("null", "--batch-sizes", "2,1,2", "--task", "attention_prediction", "--mode", "search")
    then = results.Host("then", "a processor", 1, 1)
    before = Result("0.0.1", "2001-02-03T04:05:06.000Z", then, Device("a processor", "cpu", 1), Limits(None, None), ())
    old_file = tmp_path / "old.json"
    old_file.write_bytes(before.to_json())
    assert measure(*asked, "--out", str(out), "--compare", str(old_file)) == 0
    text = capsys.readouterr().out
    assert text.endswith("}\n")
    assert "beside 2001-02-03T04:05:06.000Z, a processor" in text
    assert "null: was not measured then" in text
    found = results.from_json(text.splitlines()[-1])
    head = next(line for line in text.splitlines() if line.split()[:1] == ["batch"])
    assert head.split() == ["batch", "stimuli/s", "fix/s", "p50", "p95", "busy", "waiting", "host"]  # what there is
    assert results.read(out / "bench.json") == found
    assert found.complete
    [one] = found.agents
    assert (one.agent, one.task, one.mode) == ("null", "attention_prediction", "search")
    assert [size.batch_size for size in one.sizes] == [1, 2]
    for size in one.sizes:  # null's scanpaths have three fixations each
        assert size.fixations_s == pytest.approx(3 * size.stimuli_s)
        assert size.tokens_s is None
    slower = tuple(
        replace(size, stimuli_s=size.stimuli_s / 2, p50_s=size.p50_s * 4, p95_s=size.p95_s * 5) for size in one.sizes
    )
    found = replace(found, limits=Limits(3e9, 8e9))
    old = replace(found, agents=(replace(one, sizes=slower[1:]),), limits=Limits(3e9, 4e9))
    rows = [line.split() for line in table.comparison(found, old)]
    assert ["2", "2", "0.25", "0.2", "1", "-"] in rows
    assert ["limits:", "copied", "1,", "float32", "2"] in rows
    assert not [row for row in rows if row[:1] == ["1"]]  # was not measured then
    other = replace(old, device=Device("another", "cpu", 1))
    assert any("another machine or device" in line for line in table.comparison(found, other))


@pytest.mark.usefixtures("quick")
def test_what_fails_is_a_sentence_and_the_rest_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    names = ("missing", "unloadable", "raising")
    entries = {name: ENTRIES[name] for name in names} | {"null": catalogue.get("null")}
    asked = Options(entries, {}, sizes=(1, 4), seconds=0.02, device="cpu", task="word_association", bare=True)
    assert bench(asked) == 3
    found = last(capsys)
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
    monkeypatch.setattr(remembered, "write", lambda *given: out.rmdir())  # as if a disk had gone meanwhile
    assert measure("null", "--batch-sizes", "2", *WORDS, "--out", str(out)) == 4
    captured = capsys.readouterr()
    assert [one.agent for one in results.from_json(captured.out.splitlines()[-1]).agents] == ["null"]
    assert f"cannot write to {out}" in captured.err


@pytest.mark.usefixtures("quick")
def test_what_was_measured_is_written_though_nobody_reads_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lines(result: Result) -> list[str]:
        raise BrokenPipeError

    monkeypatch.setattr(table, "lines", lines)
    asked = Options(
        {"null": catalogue.get("null")}, {}, (2,), 0.02, "cpu", "word_association", None, tmp_path, bare=True
    )
    with pytest.raises(BrokenPipeError):
        bench(asked)
    assert [one.agent for one in results.read(tmp_path / "bench.json").agents] == ["null"]
    assert (tmp_path / "bench.png").exists()


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (["nul"], "bench: there is no agent 'nul': did you mean null"),
        (["eliza~eliza"], "a pair is not measured"),
        (["null,null"], "name each agent to be measured once"),
        (["null", "--set", "null.delay=1"], "null.delay: no such setting"),
        (["mmcq", "--task", "conversation"], "mmcq answers color_estimation"),
        (["ivsn", "--mode", "free"], "ivsn answers search"),
        (["null", "--compare", "nothing.json"], "nothing.json: cannot be read"),
        (["null", "--compare", __file__], "not a result of `turinglike bench`"),
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


@pytest.mark.parametrize("sizes", ["0", "1,x", "", "1,,2", "-1"])
def test_bad_sizes_are_refused(sizes: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        measure("null", f"--batch-sizes={sizes}")
    assert ended.value.code == 2
    assert "must be a number" in capsys.readouterr().err


def test_without_ray_and_after_ctrl_c_what_was_measured_is_told(tmp_path: Path) -> None:
    (tmp_path / "ray.py").write_text('raise ImportError("Ray was asked for")\n')  # in the children, too
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ["PYTHONPATH"]])}
    out = tmp_path / "out"
    words = ["null", "null-one", "--set", "null-one.delay_s=60", "--seconds", "0.02", "--batch-sizes", "2"]
    call = [
        sys.executable,
        "-m",
        "serving.cli",
        "bench",
        *words,
        *WORDS,
        "--bare",
        "--device",
        "cpu",
        "--out",
        str(out),
    ]
    with subprocess.Popen(call, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said = ""
        while "null-one: loading" not in said:
            said += process.stderr.readline()
            assert process.poll() is None, said
        process.send_signal(signal.SIGINT)
        told, rest = process.communicate()
    assert process.returncode == 130, said + rest
    found = results.from_json(told.splitlines()[-1])
    assert not found.complete
    [one] = found.agents
    assert [size.batch_size for size in one.sizes] == [2]
    assert found.limits.copy_bytes_s is not None
    assert found.limits.matrix_flop_s is not None
    assert results.read(out / "bench.json") == found


def run(tmp_path: Path, name: str, *more: str) -> list[int]:
    """The batch sizes that ``generate --batch-size auto`` had for 12 stimuli."""
    source, out = tmp_path / "set.jsonl", tmp_path / name
    rows = [{"id": f"w{number}", "task": "word_association", "cue": f"cue{number}"} for number in range(12)]
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    asked = ["generate", str(source), "--agents", "null", "--out", str(out), "--device", "cpu", "--replicas", "1"]
    assert main([*asked, "--batch-size", "auto", *more]) == 0
    lines = (out / "records" / "null.jsonl").read_text().splitlines()
    return [json.loads(line)["worker"]["batch_size"] for line in lines]


@pytest.mark.usefixtures("ray_address", "quick")
def test_generate_uses_the_best_size_of_the_same_settings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert measure("null", "--batch-sizes", "3", *WORDS) == 0
    capsys.readouterr()
    assert run(tmp_path, "same") == [3] * 12
    assert "`turinglike bench null`" not in capsys.readouterr().err


@pytest.mark.usefixtures("quick")
def test_what_is_remembered_holds_for_one_device_and_version(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = {"null": catalogue.get("null")}

    def size(**settings: float) -> int:
        said: list[str] = []
        agents: dict[str, Any] = {"null": entries["null"].make(settings)}
        remembered.use(agents, entries, device="cpu", address=None, say=said.append)
        if agents["null"].batch_size == 512:
            [sentence] = said
            assert "null runs with its own, 512" in sentence
            assert "`turinglike bench null`" in sentence
        else:
            assert said == []
        return int(agents["null"].batch_size)

    assert measure("null", "--batch-sizes", "3", *WORDS) == 0
    assert size() == 3
    assert size(prepare_s=0.0001) == 512
    with monkeypatch.context() as patch:
        patch.setattr(machine, "cpu", lambda: Device("another", "cpu", 1))
        assert size() == 512
    with monkeypatch.context() as patch:
        patch.setattr(remembered, "__version__", "0.0.0")
        assert size() == 512
    assert size() == 3
    whole = remembered.path().read_text()
    for damaged in ("{", whole.replace('"batch_size": 3', '"batch_size": 0'), whole.replace("bytes", "\\ud800")):
        assert damaged != whole
        remembered.path().write_text(damaged)  # as if nothing were remembered
        assert size() == 512


@pytest.mark.usefixtures("quick")
def test_remembering_keeps_other_agents_and_replaces_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    agents: dict[str, Any] = {name: catalogue.get(name).make() for name in ("null", "null-one")}
    entries = {name: catalogue.get(name) for name in agents}
    for asked in (["null", "--batch-sizes", "3"], ["null-one", "--batch-sizes", "2"], ["null", "--batch-sizes", "5"]):
        assert measure(*asked, *WORDS) == 0
    said: list[str] = []
    remembered.use(agents, entries, device="cpu", address=None, say=said.append)
    assert (agents["null"].batch_size, agents["null-one"].max_in_flight) == (5, 2)
    assert said == []
    remembered.use(agents, entries, device="cpu", address="elsewhere:6379", say=said.append)
    assert len(said) == 2


def test_a_size_brings_the_device_memory_that_it_took() -> None:
    agent = catalogue.get("null").make()
    remembered.fit(agent, 8, 1000)
    assert agent.device_memory == 0  # it has no use for a device
    agent.device_memory = 500
    remembered.fit(agent, 8, 1000)
    assert agent.device_memory == 1100
    remembered.fit(agent, 8, 100)
    assert agent.device_memory == 1100


@pytest.mark.parametrize(
    ("task", "mode"),
    [(task, None) for task in TASKS if task != "attention_prediction"]
    + [("attention_prediction", "free"), ("attention_prediction", "search")],
)
def test_generated_stimuli_are_sound_and_always_the_same(task: Any, mode: Any, tmp_path: Path) -> None:
    written = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        path = stimuli.write(tmp_path / name, task, mode, 9)
        written.append({file.name: file.read_bytes() for file in (tmp_path / name).rglob("*.*")})
    assert written[0] == written[1]
    checked = check_set(path, deep=True)
    assert list(checked.problems) == []
    found = stimuli.read(path)
    assert len({stimulus.id for stimulus in found}) == 9
    sizes = {(image.header().width, image.header().height) for one in found for image in one.images()[:1]}
    assert len(sizes) == (4 if found[0].images() else 0)
    assert stimuli.options(found[1]) == ({"speaker": "B", "turn": 3} if task == "conversation" else {})
