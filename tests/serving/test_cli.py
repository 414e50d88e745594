"""The command line: usage, listings, settings, signals."""

import argparse
import functools
import importlib
import importlib.metadata
import inspect
import json
import os
import platform
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from agents import catalogue
from agents.catalogue.selection import resolve
from agents.errors import InputError
from serving.cli import build_parser, main

CALL = [sys.executable, "-m", "serving.cli"]


def test_every_command_has_its_function_and_an_example_that_can_be_typed() -> None:
    """A command that is named by "module:function" takes options of the function's parameters."""
    parser = build_parser()
    [commands] = [action.choices for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    assert len(commands) > 15
    for name, command in commands.items():
        run = command.get_default("run")
        if isinstance(run, functools.partial):
            module, _, function = run.args[0].partition(":")
            parameters = inspect.signature(getattr(importlib.import_module(module), function)).parameters
            assert parameters.keys() == {"options"} or parameters.keys() <= {one.dest for one in command._actions}, name
        options = parser.parse_args(shlex.split(str(command.epilog).removeprefix("Example: "))[1:])
        assert options.command == name
        for agents in (getattr(options, field, None) for field in ("agents", "judges")):
            for agent in ",".join(agents).split(",") if isinstance(agents, list) else (agents or "").split(","):
                assert agent in ("", "cues") or catalogue.get(agent)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["generate", "x", "--agents", "null", "--out", "y", "--samples", "0"],
        ["generate", "x", "--agents", "null", "--out", "y", "--seed", "-1"],
        ["generate", "x", "--agents", "null", "--out", "y", "--replicas", "some"],
    ],
)
def test_wrong_usage_ends_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert "turinglike: " in capsys.readouterr().err


@pytest.mark.parametrize("agents", ["a~b~c", "NULL", "null,null", ",", "null,,../x"])
def test_bad_agent_names(agents: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "set.jsonl").write_text('{"id": "a", "task": "word_association", "cue": "b"}\n')
    assert main(["generate", str(tmp_path / "set.jsonl"), "--agents", agents, "--out", str(tmp_path / "run")]) == 2
    assert capsys.readouterr().err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", [name for name, entry in catalogue.entries().items()])
def test_every_agent_of_the_catalogue_can_be_shown(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["agents", name, "--json"]) == 0
    about = json.loads(capsys.readouterr().out)
    assert about["name"] == name
    assert about["runs_here"] is (about["missing"] is None)
    assert main(["agents", name]) == 0
    assert all(f"{name}.{one['name']} = " in capsys.readouterr().out for one in about["settings"][:1])


PLUGINS = {
    "ends": "import sys; sys.exit(0)",
    "raises": "raise RuntimeError('\\x1b[2Jno\\nno')",
    "absent": "import no_such_package",
    "empty": "",
}


def test_plugins_are_imported_when_they_are_named_and_left_out_where_they_cannot_be(tmp_path: Path) -> None:
    about = tmp_path / "broken-0.1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 0.1\n")
    for name, code in PLUGINS.items():
        mark = f"open({str(tmp_path / 'imported')!r}, 'a').write('{name} ')\n"
        (tmp_path / f"{name}_plugin.py").write_text(mark + code)
    (tmp_path / "later_plugin.py").write_text(
        "from agents.catalogue import Entry\n"
        "entry = Entry('later', 'ends_plugin:Agent', ('word_association',), 'a\\x1b[2J', '')\n"
    )
    points = [f"{name} = {name}_plugin:Agent" for name in PLUGINS] + ["later = later_plugin:entry", "mmcq = x:y"]
    (about / "entry_points.txt").write_text("\n".join(["[turinglike.agents]", *points]))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}

    def call(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*CALL, *arguments], capture_output=True, text=True, env=environment, check=False)

    (tmp_path / "later_plugin.toml").write_text('[beside]\nname = "beside"\n')
    forgotten = call("agents", "beside")
    assert forgotten.returncode == 2
    assert f"it stands in {tmp_path / 'later_plugin.toml'}, but its package has not registered it" in forgotten.stderr
    (tmp_path / "variant.toml").write_text('[mine]\nagent = "null"\n')
    named = ["ask", "mine,echo", "--cue", "sun", "--config", str(tmp_path / "variant.toml")]
    for others in (named, ["agents", "mmcq"]):
        assert call(*others).returncode == 0
    assert not (tmp_path / "imported").exists()
    asked = call("ask", "raises,null", "--cue", "sun")
    assert (asked.returncode, asked.stdout) == (2, "")
    assert "agent 'raises' is left out: it cannot be imported: RuntimeError(" in asked.stderr
    assert (tmp_path / "imported").read_text() == "raises "
    listed = call("agents")
    assert listed.returncode == 0
    assert "\nmmcq " in listed.stdout
    assert "\nlater " in listed.stdout
    for name in (*PLUGINS, "mmcq"):
        assert f"turinglike: package broken: agent '{name}' is left out: it" in listed.stderr
    assert len(listed.stderr.splitlines()) == len(PLUGINS) + 1
    assert "\x1b" not in listed.stdout + listed.stderr


def test_settings_from_the_command_line_and_a_file(tmp_path: Path) -> None:
    config = tmp_path / "agents.toml"
    config.write_text('[mmcq]\nquality = 3\n[mmcq-ten]\nagent = "mmcq"\ncolors = 10\n')
    assignments = ["mmcq.naming=lab", "mmcq-ten.quality=2"]
    chosen = resolve(["mmcq", "mmcq-ten"], assignments, config)
    entries = chosen.entries
    settings = chosen.settings
    made = {name: entry.make(settings.get(name)).settings for name, entry in entries.items()}
    assert (made["mmcq"].quality, made["mmcq"].naming) == (3, "lab")
    assert (made["mmcq-ten"].quality, made["mmcq-ten"].colors) == (2, 10)
    assert entries["mmcq-ten"].agent == entries["mmcq"].agent


@pytest.mark.parametrize(
    ("assignments", "toml", "says"),
    [
        (["mmcq"], "", "must be agent.field=value"),
        (["gbvs.window=3"], "", "starts with the name of no agent that is asked"),
        ([], "[x]\nagent = 'mmc'", "did you mean mmcq"),
        ([], "[gbvs]\nagent = 'mmcq'", "a name of its own"),
        ([], f"[mmcq]\ncolors = {'[' * 20_000}{']' * 20_000}", "maximum recursion depth"),
        ([], '["a\\u001b\\nb"]', "a\\x1b\\nb"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_settings_that_are_wrong(assignments: list[str], toml: str, says: str, tmp_path: Path) -> None:
    config = tmp_path / "agents.toml"
    config.write_text(toml)
    with pytest.raises(InputError) as caught:
        resolve(["mmcq"], assignments, config)
    assert says in "\n".join([str(caught.value), *map(str, caught.value.problems)])


HERE = """
import sys, pytest
from tests.helpers import in_process
from serving.cli import command, main
in_process.without_ray(pytest.MonkeyPatch())
sys.exit({call})
"""
WITHOUT_RAY = [sys.executable, "-c", HERE.format(call="main(sys.argv[1:])")]


@pytest.mark.parametrize(
    ("when", "call", "settings", "number"),
    [
        ("loading", CALL, ["null.load_s=120"], signal.SIGINT),
        (
            "answering",
            WITHOUT_RAY,
            ["null.delay_s=0.3"],
            signal.SIGTERM,
        ),
    ],
)
def test_a_signal_ends_a_run_in_order(
    when: str, call: list[str], settings: list[str], number: signal.Signals, tmp_path: Path
) -> None:
    rows = [{"id": f"w{i}", "task": "word_association", "cue": "sun"} for i in range(500)]
    source = tmp_path / "set.jsonl"
    out = tmp_path / "run"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    asked = ["generate", str(source), "--agents", "null", "--out", str(out), "--batch-size", "5", "--set", *settings]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    records = out / "records" / "null.jsonl"
    said = ""
    with subprocess.Popen([*call, *asked], stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr is not None
        while "loading null" not in said:
            said += process.stderr.readline()
            assert process.poll() is None, said
        while when == "answering" and not records.stat().st_size:
            time.sleep(0.02)
        process.send_signal(number)
        _, rest = process.communicate()
    assert process.returncode == 128 + number, rest
    assert "run the same command again to resume" in rest
    assert "Traceback" not in rest
    lines = records.read_bytes()
    assert not lines or lines.endswith(b"\n")
    assert (lines.count(b"\n") > 0) is (when == "answering")


def test_what_runs_here_and_what_the_rest_needs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["agents", "--json"]) == 0
    sizes = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert sizes["llama-3.3-70b"]["memory"] > 4 * 70e9
    assert sizes["mmcq"]["fits"]
    assert main(["doctor", "--task", "color"]) == 0
    said = capsys.readouterr().out
    colors = [name for name, entry in catalogue.entries().items() if "color_estimation" in entry.tasks]
    here = [name for name in colors if sizes[name]["runs_here"]]
    assert {"mmcq", "mmcq-lab", "catch"} <= {*here}
    assert f"agents that can run here: {', '.join(here)}\n" in said
    assert "mmcq-lab " not in said
    assert main(["doctor", "--task", "color", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in found["agents"]] == colors
    assert [row.keys() for row in found["agents"]] == [sizes[name].keys() for name in colors]
    assert found["turinglike"] == importlib.metadata.version("turinglike")
    assert found["python"] == platform.python_version()
    assert found["cores"] >= 1
    assert min(found["memory"], found["memory_free"], found["disk_free"]) > 0


def test_short_names_of_tasks_and_schemas(capsys: pytest.CaptureFixture[str]) -> None:
    root = Path(__file__).parents[2]
    assert main(["check", str(root / "examples" / "images"), "--task", "color"]) == 0
    assert "color_estimation 10" in capsys.readouterr().out
    for name in ("record", "stimulus"):
        assert main(["schema", name]) == 0
        assert capsys.readouterr().out == (root / "docs" / f"{name}.schema.json").read_text()


def test_the_list_can_be_sorted_and_of_what_runs_here_and_fits_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def listed(*more: str) -> list[dict[str, Any]]:
        assert main(["agents", "--json", *more]) == 0
        found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
        return found

    everything = listed()
    here = listed("--here")
    names = [one["name"] for one in everything]
    assert {"mmcq", "echo"} <= {*names}
    assert [one["name"] for one in listed("--sort", "name")] == sorted(names)
    sizes = [one["memory"] for one in listed("--sort", "size")]
    assert sizes == sorted(one["memory"] for one in everything)
    assert [one["name"] for one in here] == [
        one["name"] for one in everything if one["fits"] and catalogue.get(one["name"]).make().missing() is None
    ]
    monkeypatch.setattr("serving.files.terminal.columns", lambda: 80)
    assert main(["agents"]) == 0
    table = capsys.readouterr().out.split("\n\n")[0].splitlines()
    assert max(map(len, table)) <= 80
    assert [line.split()[0] for line in table[1:]] == names


@pytest.mark.parametrize("closed", [">&-", "<&- >&- 2>&-"])
def test_a_command_runs_with_its_standard_streams_closed(closed: str, tmp_path: Path) -> None:
    stimuli = tmp_path / "set.jsonl"
    out = tmp_path / "run"
    stimuli.write_text('{"id": "a", "task": "word_association", "cue": "tea"}\n')
    run = shlex.join([*CALL, "generate", str(stimuli), "--agents", "null", "--out", str(out)])
    done = subprocess.run(["sh", "-c", f"{run} {closed}"], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    [record] = (out / "records" / "null.jsonl").read_text().splitlines()
    assert json.loads(record)["status"] == "ok"  # nothing that was printed is in the file
    assert main(["status", str(out)]) == 0


def test_a_full_disk_is_a_sentence() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([*CALL, "schema", "record"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (4, 1), done.stderr
    assert "No space left on device" in done.stderr
