"""``turinglike run``: a project's file as commands, what is refused before anything starts, and what is left out."""

import contextlib
import json
import shlex
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest

from agents.errors import InputError
from serving.cli import build_parser, main
from serving.projects import running
from serving.projects.project_file import read_project
from serving.runs.run import Run

ROOT = Path(__file__).resolve().parents[3]
PEOPLE = ROOT / "examples" / "people_words.json"

PROJECT = """\
[agents.slow]
agent = "null"
delay_s = 0.0

[generate]
stimuli = "words.txt"
task = "word"
agents = ["null", "slow"]
here = true
out = "answers"

[import]
files = ["people_words.json"]
task = "word"
out = "answers"

[trials]
runs = ["answers"]
every = true
as_written = true  # the agent null says no words
seed = 3
out = "trials"

[judge]
trials = "trials"
judges = "cue-length"
here = true
out = "verdicts"

[score]
verdicts = ["verdicts"]
out = "scores"
force = true

[study.new]
trials = "trials"
out = "study"
set = { trials = { number = 4 }, texts = { title = "Whose?" } }
"""


def project(folder: Path, text: str = PROJECT) -> Path:
    (folder / "words.txt").write_text("".join(f"word{number}\n" for number in range(12)))
    shutil.copy(PEOPLE, folder)
    file = folder / "turinglike.toml"
    file.write_text(text)
    return file


def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let steps be carried out here: a process of its own for each imports everything anew."""

    def carried_out(words: Sequence[str], folder: Path) -> int:
        with contextlib.chdir(folder):
            return main(words)

    monkeypatch.setattr(running, "_carried_out", carried_out)


def lines(file: Path) -> list[str]:
    return [" ".join(step.words) for step in read_project(file, build_parser())]


def test_a_table_is_the_line_that_one_would_type(tmp_path: Path) -> None:
    assert lines(project(tmp_path)) == [
        "generate --task word --agents null,slow --here --out answers --config turinglike.toml words.txt",
        "import --task word --out answers people_words.json",
        "trials --every --as-written --seed 3 --out trials answers",
        "judge --judges cue-length --here --out verdicts --config turinglike.toml trials",
        "score --out scores --force verdicts",
        "study new --out study --set trials.number=4 --set texts.title=Whose? trials",
    ]


def test_a_command_may_stand_several_times_and_columns_are_a_table(tmp_path: Path) -> None:
    text = """\
[[import]]
files = ["words.txt", "people_words.json"]
columns = { subject = "participant.code", response = "word" }
rows = ["phase=test", "done!=no"]
out = "-people"

[[import]]
files = ["people_words.json"]
rt = "ms"
replace = false
out = "people"
"""
    assert lines(project(tmp_path, text)) == [
        "import --columns subject=participant.code,response=word --rows phase=test --rows done!=no --out=-people "
        "words.txt people_words.json",
        "import --rt ms --out people people_words.json",
    ]


def test_all_that_is_wrong_is_told_before_anything_starts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = """\
[answer]


[generate]
stimuli = "absent.txt"
agents = ["null", "nul"]
out = "answers"
[trials]
run = ["answers"]
per_agent = "many"
every = 1
[judge]
trials = "trials"
judges = ["cue-length", "null"]
out = "verdicts"
[study]
close = 3
[study.new]
trials = "answers"
out = "study"
preset = "2023"
"""
    file = project(tmp_path, text)
    assert main(["run", str(file)]) == 2
    error = capsys.readouterr().err
    for told in (
        f"{file}:1: answer: is no command",
        f"{file}:4: generate: absent.txt: there is no such file or folder, and no step before writes it",
        f"{file}:4: generate: there is no agent 'nul'",
        f"{file}:8: trials.run: `turinglike trials` has no such option; did you mean runs?",
        f"{file}:8: trials.per_agent: must be a whole number",
        f"{file}:8: trials.every: must be true or false, not 1",
        f"{file}:8: trials.runs: is needed",
        f"{file}:8: trials.out: is needed",
        f"{file}:12: judge: null: is no judge",
        f"{file}: study.close: must be a table: [study.close]",
        f"{file}:18: study new.preset: must be plain or 2022",
        "cannot be used; nothing was started",
    ):
        assert told in error, told
    assert sorted(path.name for path in tmp_path.iterdir()) == ["people_words.json", "turinglike.toml", "words.txt"]


def test_the_example_of_the_docs_is_in_the_repository_and_can_be_used() -> None:
    file = ROOT / "examples" / "project" / "turinglike.toml"
    shown = (ROOT / "docs" / "projects.md").read_text("utf-8")
    example = file.read_text("utf-8").partition("\n\n")[2]
    assert f"```toml\n{example}```" in shown
    for step in read_project(file, build_parser()):
        assert f"$ {shlex.join(['turinglike', *step.words])}\n" in shown


def test_what_is_no_project_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"turinglike\.toml: there is no such file"):
        read_project(tmp_path / "turinglike.toml", build_parser())
    for text, message in (
        ("[generate", "turinglike.toml: Expected"),
        ("", "has no step"),
        ("[run]\n", "cannot be used"),
    ):
        with pytest.raises(InputError, match=message):
            read_project(project(tmp_path, text), build_parser())


def test_a_project_goes_from_stimuli_to_scores_and_does_again_only_what_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    file = project(tmp_path)
    in_this_process(monkeypatch)
    assert main(["run", str(file), "--dry-run"]) == 0
    assert not (tmp_path / "answers").exists()
    capfd.readouterr()
    assert main(["run", str(file)]) == 0
    shown = capfd.readouterr().err
    assert shown.count("$ turinglike") == 6
    assert (tmp_path / "scores" / "index.html").is_file()
    settings = tomllib.loads((tmp_path / "study" / "study.toml").read_text())
    assert (settings["trials"]["number"], settings["texts"]["title"]) == (4, "Whose?")
    records = Run(tmp_path / "answers").records_path("slow").read_bytes()

    def carried_out(*more: str, code: int = 0) -> list[str]:
        """The commands of the steps that were carried out."""
        assert main(["run", str(file), *more]) == code
        return [line.split()[2] for line in capfd.readouterr().err.splitlines() if line.startswith("$ ")]

    # Commands that know what is left are repeated; trials and the study, which would refuse their folders, are not.
    assert carried_out() == ["generate", "import", "judge", "score"]
    assert Run(tmp_path / "answers").records_path("slow").read_bytes() == records
    assert carried_out("--steps", "score, generate") == ["generate", "score"]

    # What was lost is made again, the answers of people, too; they are the same, and so are the trials of them.
    shutil.rmtree(tmp_path / "answers")
    assert carried_out() == ["generate", "import", "judge", "score"]
    assert len(list(Run(tmp_path / "answers").records_path("humans").read_bytes().splitlines())) == 150

    # Fewer answers: the trials that are there were drawn from all, and somebody may be judging them.
    people = json.loads((tmp_path / "people_words.json").read_bytes())
    people.popitem()
    (tmp_path / "people_words.json").write_text(json.dumps(people))
    assert main(["run", str(file)]) == 2
    shown = capfd.readouterr().err
    assert "trials.key.csv already exists" in shown
    assert "the step trials ended with exit code 2" in shown
    shutil.copy(PEOPLE, tmp_path)
    assert carried_out() == ["generate", "import", "judge", "score"]

    # Another number in study.toml, which is there already: the study is the user's, and stays.
    file.write_text(PROJECT.replace("number = 4", "number = 5"))
    assert main(["run", str(file)]) == 2
    assert "study exists already" in capfd.readouterr().err
    assert main(["run", str(file), "--steps", "guess"]) == 2
    assert "has no step guess; it has generate, import" in capfd.readouterr().err


def test_steps_stand_in_the_order_of_their_heads(tmp_path: Path) -> None:
    people = '[[import]]\nfiles = ["people_words.json"]\ntask = "word"\nout = '
    trials = '[[trials]]\nruns = ["r"]\nout = '
    study = '[study.new]\nout = "s"\npreset = "online"\n'
    export = '[study.export]\nstudy = "s"\nout = "x"\n'
    report = '[report]\nruns = ["r"]\n'
    text = f'{people}"r"\n{trials}"one"\n{study}{people}"r"\n{report}{trials}"two"\n{export}'
    named = [line.rpartition("--out ")[2].split()[0] for line in lines(project(tmp_path, text))]
    assert named == ["r", "one", "s", "r", "report", "two", "x"]


def test_a_file_of_windows_and_a_link_are_read(tmp_path: Path) -> None:
    file = project(tmp_path)
    before = lines(file)
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes().replace(b"\n", b"\r\n"))
    assert lines(file) == before
    (tmp_path / "link.toml").symlink_to(file.name)
    assert lines(tmp_path / "link.toml") == before
    file.write_text(PROJECT.replace('"Whose?"', '"2001"'))
    assert """--set 'texts.title="2001"'""" in shlex.join(read_project(file, build_parser())[-1].words)
    file.write_bytes(PROJECT.encode("utf-16"))
    with pytest.raises(InputError, match="is not in UTF-8; save it as UTF-8"):
        read_project(file, build_parser())


def test_failed_records_do_not_end_a_project_and_an_agent_that_stops_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    in_this_process(monkeypatch)
    text = """\
[agents.null]
fail = "word3$"
[[generate]]
stimuli = "words.txt"
task = "word"
agents = "null"
here = true
out = "one"
[[generate]]
stimuli = "words.txt"
task = "word"
agents = "slow"
here = true
out = "two"
[agents.slow]
agent = "null"
fail_load = true
[status]
run = "one"
"""
    file = project(tmp_path, text)
    assert main(["run", str(file)]) == 3
    shown = capfd.readouterr().err
    assert "the step generate ended with exit code 3; " in shown
    assert "$ turinglike status" not in shown
    file.write_text(text.replace("fail_load = true", "fail_load = false"))
    assert main(["run", str(file)]) == 1  # one record has failed, and all else is done


class Killed(BaseException):
    """Stands for the end of the process by kill -9."""


@pytest.mark.parametrize("has_folder", [True, False])
def test_a_step_that_was_killed_before_it_was_noted_is_carried_out_again(
    has_folder: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Its own folder, or the key that it writes before the folder, would make it refuse."""
    file = project(tmp_path, PROJECT.partition("[judge]")[0])
    in_this_process(monkeypatch)
    in_process = running._carried_out
    called: list[Sequence[str]] = []

    def killed(words: Sequence[str], folder: Path) -> int:
        called.append(words)
        code = in_process(words, folder)
        if words[0] == "trials":
            raise Killed
        return code

    monkeypatch.setattr(running, "_carried_out", killed)
    with pytest.raises(Killed):
        main(["run", str(file)])
    key = (tmp_path / "trials.key.csv").read_bytes()
    if not has_folder:
        shutil.rmtree(tmp_path / "trials")
    called.clear()

    def carried_out(words: Sequence[str], folder: Path) -> int:
        called.append(words)
        return in_process(words, folder)

    monkeypatch.setattr(running, "_carried_out", carried_out)
    assert main(["run", str(file)]) == 0
    assert "--force" in called[-1]
    assert (tmp_path / "trials" / "trials.jsonl").is_file()
    assert (tmp_path / "trials.key.csv").read_bytes() == key
    assert main(["run", str(file)]) == 0
    assert [words[0] for words in called[3:]] == ["generate", "import"]  # it is noted now
    # A folder that was there before is somebody's: it is not replaced.
    (tmp_path / "turinglike.done.json").unlink()
    assert main(["run", str(file)]) == 2
    assert main(["run", str(file)]) == 2
    assert "already exists" in capfd.readouterr().err


def test_a_signal_is_passed_on_and_the_same_command_goes_on(tmp_path: Path) -> None:
    file = project(tmp_path, PROJECT.replace("delay_s = 0.0", "delay_s = 0.3").partition("[trials]")[0])
    package = tmp_path / "agents"  # a folder of the user's, which is not to be imported
    package.mkdir()
    (package / "__init__.py").write_text("raise ImportError")
    command = [sys.executable, "-m", "serving.cli", "run", str(file)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, cwd=ROOT, text=True)
    answers = tmp_path / "answers" / "records"
    while not (answers.is_dir() and any(path.stat().st_size for path in answers.iterdir())):
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    _, error = process.communicate()
    assert process.returncode == 143
    assert "$ turinglike import" not in error
    assert not (tmp_path / "turinglike.done.json").exists()
    assert main(["run", str(file)]) == 0
    assert len(list(Run(tmp_path / "answers").latest("slow"))) == 12
