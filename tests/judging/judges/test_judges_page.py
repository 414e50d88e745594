"""The judges of docs/judges.md: they are installed, judge, and are scored as the page says."""

import csv
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents import catalogue
from agents.catalogue import lookup, selection
from agents.contract import Draw
from agents.stimuli import JudgementStimulus, parse_row
from judging.judges.llm_judge import our_prompt
from serving.cli import main
from tests.helpers import in_process

REPOSITORY = Path(__file__).resolve().parents[3]
PAGE = (REPOSITORY / "docs" / "judges.md").read_text("utf-8")
EGG_INFO = "from setuptools import setup; setup()"  # what an install writes, without the network


def examples(language: str) -> list[str]:
    """The page's examples in a language, in their order."""
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with the examples, in an environment that has the page's package."""
    package = tmp_path / "package"
    package.mkdir()
    (package / "my_judges.py").write_text("".join(examples("python")))
    (package / "pyproject.toml").write_text(examples("toml")[0])
    subprocess.run([sys.executable, "-c", EGG_INFO, "-q", "egg_info"], cwd=package, check=True)
    shutil.copytree(REPOSITORY / "examples", tmp_path / "examples")
    in_process.without_ray(monkeypatch)
    monkeypatch.syspath_prepend(package)
    monkeypatch.chdir(tmp_path)
    for cached in (lookup._installed, lookup._known, lookup.entries):
        cached.cache_clear()
    yield tmp_path
    monkeypatch.undo()
    sys.modules.pop("my_judges", None)
    for cached in (lookup._installed, lookup._known, lookup.entries):
        cached.cache_clear()


def run(commands: str) -> None:
    for line in commands.splitlines():
        assert main(shlex.split(line.removeprefix("turinglike "))) == 0, line


def columns(line: str) -> list[str]:
    return re.split(r" {2,}", line.strip())


def test_they_judge_and_are_scored_as_the_page_says(installed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, stricter = examples("sh")
    run(first)
    printed = [columns(line) for line in capsys.readouterr().out.splitlines()]
    assert all(columns(line) in printed for line in examples("text")[0].splitlines())
    run(stricter)

    trials = [json.loads(line) for line in (installed / "trials" / "trials.jsonl").read_text().splitlines()]
    with (installed / "trials.key.csv").open(newline="") as file:
        key = {row["trial"]: row for row in csv.DictReader(file)}
    for folder, letters in (("scores", 8), ("stricter-scores", 6)):
        with (installed / folder / "scores.csv").open(newline="") as file:
            scores = {row["agent"]: row for row in csv.DictReader(file) if row["judge"] == "long-words"}
        words = [trial["answer"]["word"] for trial in trials if key[trial["id"]]["agent"] == "published:gpt2"]
        share = sum(len(word) >= letters for word in words) / len(words)
        assert float(scores["published:gpt2"]["p_machine"]) == pytest.approx(share)

    lines = (installed / "verdicts" / "records" / "vowels.jsonl").read_text().splitlines()
    assert len(lines) == len(trials)
    assert {json.loads(line)["status"] for line in lines} == {"ok"}


def test_the_language_model_reads_the_advice_before_the_trial(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    agent = catalogue.get("sceptic").make()
    row = {"id": "t1", "task": "judgement", "asked": "word_association", "shown": "s1", "question": "Who?"}
    trial = parse_row(json.dumps({**row, "answer": {"word": "cold"}, "cue": "hot"}))
    assert isinstance(trial, JudgementStimulus)
    agent.open()
    request = agent.fitted_request(agent.prepare(trial), Draw(seed=1))
    assert [message.role for message in request.messages] == ["system", "user"]
    assert "Small mistakes prove nothing." in request.messages[0].text
    assert request.messages[1].text == our_prompt(trial)
    agent.close()


def test_the_tables_of_settings_are_judges(tmp_path: Path) -> None:
    (tmp_path / "judges.toml").write_text(examples("toml")[1])
    chosen = selection.resolve(["terse", "blind"], [], tmp_path / "judges.toml")
    agents = selection.checked_agents(chosen.entries, chosen.settings)
    assert agents["terse"].settings.attempts == 3
    assert agents["blind"].settings.without_picture is True
    assert agents["blind"].declaration().tasks == ("judgement",)
