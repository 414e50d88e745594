"""Folders that older versions left behind (README.md) open, go on and are exported: by the command line alone. The
digests of agents are those of the newest of these versions."""

import dataclasses
import hashlib
import json
import re
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import make
import outside
import pytest

from agents import catalogue
from agents.entry import Entry
from serving.cli import main
from serving.runs.run_json import run_entry

HERE = Path(__file__).parent
VERSIONS = ("0.2.0", "d4d88425", "3eb4a4ca")
NEWEST = HERE / "3eb4a4ca"
DIGESTS = HERE / "digests.json"
QUICK = {("0.2.0", "judges"), ("3eb4a4ca", "asked")}  # the other studies' tests together take more than a minute
STUDIES = [
    pytest.param(version, path.name, marks=[] if (version, path.name) in QUICK else [pytest.mark.slow])
    for version in VERSIONS
    for path in sorted((HERE / version / "studies").glob("*"))
]
BOTH_ENDS = [pytest.param(name, marks=[pytest.mark.slow] if name == "d4d88425" else []) for name in VERSIONS]
# The agents whose runs go on. Since version 0.2.0 chat models have other settings, and conversations are checked for
# two faults more (`cut_off`, `partner_echo`), so that the runs of chat models and of all pairs begin anew.
RESUMED = {"0.2.0": ("mmcq", "mmcq-lab", "gbvs", "center", "random", "catch", "minilm")}
Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def turinglike(capsys: pytest.CaptureFixture[str]) -> Command:
    """The command in this process: returns exit code, stdout and stderr."""

    def call(*arguments: object) -> tuple[int, str, str]:
        capsys.readouterr()
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as error:
            code = int(error.code or 0)
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


def kept(version: str, folder: Path) -> Path:
    """A copy of what a version left behind, with the names of its files as they are there."""
    shutil.copytree(HERE / version, folder, dirs_exist_ok=True)
    for path in folder.rglob("*.json*"):
        text = path.read_text()
        if make.KEPT in text:
            path.write_text(text.replace(make.KEPT, str(folder)))
    return folder


def by_name(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*.jsonl")}


def goes_on(
    folder: Path,
    name: str,
    command: list[str],
    finished: dict[str, list[object]],
    exits: int,
    turinglike: Command,
    patch: pytest.MonkeyPatch,
) -> None:
    """A killed run's command again answers what is missing of ``finished``, which :func:`make.answers` gave of a run
    that nobody killed, and leaves the lines that were there as they were."""
    agents = {key.split()[0] for key in finished}
    before = {name: set(data.splitlines()) for name, data in by_name(folder / name / "records").items()}
    before = {file: lines for file, lines in before.items() if file.removesuffix(".jsonl") in agents}
    assert sum(map(len, before.values())) < len(finished)
    with outside.models() as server:
        for variable, value in server.environment().items():
            patch.setenv(variable, value)
        code, _, said = turinglike(*command)
        assert code == exits, said
        asked = server.asked
        assert turinglike(*command)[0] == exits
        assert server.asked == asked  # nothing was left to be answered
    after = {name: data.splitlines() for name, data in by_name(folder / name / "records").items()}
    assert all(lines <= set(after[name]) for name, lines in before.items())
    assert sum(len(lines) for file, lines in after.items() if file.removesuffix(".jsonl") in agents) == len(finished)
    answers = make.answers(folder / name)
    assert {key: at for key, at in answers.items() if key.split()[0] in agents} == finished


@pytest.mark.parametrize("version", BOTH_ENDS)
def test_a_killed_run_goes_on(
    version: str, tmp_path: Path, turinglike: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its records, its unfinished conversations and a set that has grown since; other settings are refused. Version
    0.2.0 wrote another index of its set, with which a set that has grown is refused."""
    folder = kept(version, tmp_path)
    monkeypatch.chdir(folder)
    code, said, _ = turinglike("status", "run", "--json")
    assert code == 0
    lines = sum(len(data.splitlines()) for data in by_name(folder / "run" / "records").values())
    agents = json.loads(said)["agents"].values()
    assert sum(agent[status] for agent in agents for status in ("ok", "rejected", "failed")) == lines
    command = make.generate(Path("run"))
    for changed in (["--seed", "1"], ["--set", "mmcq.quality=3"], ["--set", "openai-chat.min_words=2"]):
        records = by_name(folder / "run" / "records")
        assert turinglike(*command, *changed)[0] == 2
        assert by_name(folder / "run" / "records") == records
    assert any(by_name(folder / "run" / "turns").values())
    finished = json.loads((folder / "answers.json").read_text())
    if version in RESUMED:
        code, _, said = turinglike(*command)
        assert code == 2
        refused = re.findall(r"^ *run/run.json: agents\.(\S+): (.+)$", said, flags=re.M)
        files = [path for part in ("records", "turns") for path in (folder / "run" / part).glob("*.jsonl")]
        begun = {path.name.removesuffix(".jsonl") for path in files if path.stat().st_size}
        assert {name for name, _ in refused} == begun - {*RESUMED[version]}
        assert "setting thresholds.partner_echo was None, is 8" in dict(refused)["eliza~eliza"]
        command = make.generate(Path("run"), RESUMED[version])
        code, _, said = turinglike(*command)
        assert code == 2
        assert "has no index of it; give the set as it was" in said
        stimuli = [json.loads(line)["id"] for line in (folder / "run" / "stimuli.jsonl").read_text().splitlines()]
        rows = [json.loads(line) for line in (folder / "set.jsonl").read_text().splitlines()]
        make.write_rows("set.jsonl", [row for row in rows if row["id"] in stimuli])
        for agent in RESUMED[version]:  # these had answered all; their last lines are lost, as with the power
            path = folder / "run" / "records" / f"{agent}.jsonl"
            path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
        finished = {
            key: answer
            for key, answer in finished.items()
            if key.split()[0] in RESUMED[version] and key.split()[2] in stimuli
        }
    exits = 0 if version in RESUMED else 1  # some replies of a model say nothing
    goes_on(folder, "run", command, finished, exits, turinglike, monkeypatch)


@pytest.mark.parametrize("version", BOTH_ENDS)
def test_killed_judges_go_on(
    version: str, tmp_path: Path, turinglike: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = kept(version, tmp_path)
    monkeypatch.chdir(folder)
    command = make.judge(Path("verdicts"))
    assert turinglike(*command, "--set", "svm.seed=9")[0] == 2
    if version in RESUMED:
        assert turinglike(*command)[0] == 2
        return
    finished = json.loads((folder / "verdicts.json").read_text())
    goes_on(folder, "verdicts", command, finished, 0, turinglike, monkeypatch)


def without_the_table_of_batches(study: Path, turinglike: Command) -> None:
    """Take out of ``study.toml`` what was a setting in version 0.2.0 alone: it is refused until then."""
    code, _, said = turinglike("study", "status", study)
    assert code == 2
    assert "batch: is no field here" in said
    path = study / "study.toml"
    path.write_text(re.sub(r"^\[batch\]\n(?:[^\[\n].*\n|\n)*", "", path.read_text(), flags=re.M))


@pytest.mark.parametrize(("version", "name"), STUDIES)
def test_a_study_goes_on(
    version: str, name: str, tmp_path: Path, turinglike: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It opens; those who were half-way go on where they were; it is exported, with their answers."""
    folder = kept(version, tmp_path)
    monkeypatch.chdir(folder)
    study = folder / "studies" / name
    before = (study / "events.jsonl").read_bytes()
    if (version, name) == ("0.2.0", "online"):
        without_the_table_of_batches(study, turinglike)
    code, said, _ = turinglike("study", "status", study, "--json")
    assert code == 0
    kinds = Counter(json.loads(line)["event"] for line in before.splitlines())
    assert json.loads(said)["judges"]["joined"] == kinds["joined"]
    cookies = json.loads((folder / "cookies.json").read_text()).get(name, {})
    with outside.models() as machines:
        text = (study / "study.toml").read_text()
        (study / "study.toml").write_text(text.replace("http://127.0.0.1:8001/", f"{machines.url}/"))
        with outside.served(study) as server:
            visitors = {who: server.visitor(cookie) for who, cookie in cookies.items()}
            views = {who: visitor.post("/now") for who, visitor in visitors.items()}
            assert not {view["kind"] for view in views.values()} & {"welcome", "end"}
            if name == "talks":
                outside.converse((visitors["first"], visitors["second"]))
            elif name in ("online", "interrogation"):
                outside.take_part(visitors)
            elif name == "bots":
                outside.say_on(visitors["half"])
            for visitor in visitors.values():
                view = visitor.post("/now")
                if view["kind"] in ("talk", "test"):
                    view = visitor.answer(view, {})
                assert visitor.go(view)["kind"] == ("test" if name == "interrogation" else "end")
    after = (study / "events.jsonl").read_bytes()
    events = [json.loads(line) for line in before.splitlines()]
    left = {event["judge"] for event in events if event["event"] == "left"}
    lasting = [event for event in events if event.get("judge") not in left]
    assert list(map(json.loads, after.splitlines()))[: len(lasting)] == lasting
    assert len(after.splitlines()) > len(lasting) or not cookies
    code, _, said = turinglike("study", "export", study, "-o", "exported")
    assert code == 0, said


def test_tables_and_json_are_as_the_version_wrote_them(
    tmp_path: Path, turinglike: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each CSV and JSON file of `export`, `trials`, `score` and `study export`, by its SHA-256."""
    folder = kept(NEWEST.name, tmp_path)
    monkeypatch.chdir(folder)
    exits = {" ".join(command): turinglike(*command)[0] for command in make.exports(folder)}
    found = exits | make.exported(folder)
    expected = json.loads((folder / "expected.json").read_text())
    changed = sorted(name for name in found.keys() | expected.keys() if found.get(name) != expected.get(name))
    assert not changed, (
        f"{', '.join(changed)} are not as {NEWEST.name} wrote them. They stand in {folder / 'out'}: compare them with "
        "those that this test writes at an earlier commit. If the change is meant, write it into CHANGELOG.md, and run "
        f"python tests/kept/make.py --expected tests/kept/{NEWEST.name}"
    )
    for path in (folder / "out").rglob("*.trials.json"):
        key = path.with_name(path.name.replace(".trials.json", ".key.csv"))
        assert json.loads(path.read_text())["key_sha256"] == hashlib.sha256(key.read_bytes()).hexdigest()


def digest(entry: Entry) -> str:
    """What a run is resumed by: with default settings, and a model named ``m`` where one must be named."""
    model = entry.load_class().Settings.model_fields.get("model")
    settings = {"model": "m"} if model is not None and model.is_required() else {}
    return str(run_entry([(entry, entry.make(settings))])["digest"])


def test_digests_are_as_the_version_made_them() -> None:
    """Of each agent and judge that the version's catalogue has."""
    digests = json.loads(DIGESTS.read_text())
    assert {name: digest(catalogue.get(name)) for name in digests} == digests


def test_a_new_identity_is_a_name_and_a_number() -> None:
    """Of our agents and judges. Those of the version look like paths of modules, where classes once stood."""
    kept_identities = {catalogue.get(name).identity for name in json.loads(DIGESTS.read_text())}
    ours = [entry for entry in catalogue.entries().values() if entry.agent.startswith(("agents.", "judging."))]
    new = {entry.identity for entry in ours} - kept_identities
    assert [identity for identity in new if not re.fullmatch(r"[\w.-]+/[1-9]\d*", identity)] == []


def test_a_class_under_another_module_path_keeps_its_digest() -> None:
    entry = catalogue.get("mmcq")
    agent = entry.make({})
    moved = type("Moved", (type(agent),), {"__module__": "agents.elsewhere"})
    elsewhere = dataclasses.replace(entry, agent="agents.elsewhere:Moved")
    kept_digest = json.loads(DIGESTS.read_text())["mmcq"]
    assert run_entry([(elsewhere, moved(agent.settings, agent.name))])["digest"] == kept_digest
