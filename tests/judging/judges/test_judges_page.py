"""The judges of docs/judges.md: they are installed, judge, and are scored as the page says."""

import csv
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents import catalogue
from agents.catalogue import selection
from agents.contract import Draw
from agents.stimuli import JudgementStimulus, parse_row
from judging.judges.built_in import JUDGE_PRESETS
from judging.judges.llm_judge import our_prompt
from serving.cli import main
from tests.helpers.page_package import examples, installed

PAGE = "judges.md"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with the examples, in an environment that has the page's package."""
    with installed(PAGE, "my_judges", tmp_path, monkeypatch):
        yield tmp_path


def run(commands: str) -> None:
    for line in commands.splitlines():
        assert main(shlex.split(line.removeprefix("turinglike "))) == 0, line


def columns(line: str) -> list[str]:
    return re.split(r" {2,}", line.strip())


def test_each_judge_of_ours_has_its_row_on_the_page_of_judging() -> None:
    page = (Path(__file__).parents[3] / "docs" / "judging.md").read_text("utf-8")
    tables = re.findall(r"^\| judge \| what it \w+ \|\n(?:^\|.*\n)+", page, re.MULTILINE)
    told = [name for table in tables for name in re.findall(r"^\| `([\w.-]+)` \|", table, re.MULTILINE)]
    assert sorted(told) == sorted(preset["name"] for preset in JUDGE_PRESETS.values())


def test_they_judge_and_are_scored_as_the_page_says(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, stricter = examples(PAGE, "sh")
    run(first)
    printed = [columns(line) for line in capsys.readouterr().out.splitlines()]
    assert all(columns(line) in printed for line in examples(PAGE, "text")[0].splitlines())
    run(stricter)

    trials = [json.loads(line) for line in (folder / "trials" / "trials.jsonl").read_text().splitlines()]
    with (folder / "trials.key.csv").open(newline="") as file:
        key = {row["trial"]: row for row in csv.DictReader(file)}
    for name, letters in (("scores", 8), ("stricter-scores", 6)):
        with (folder / name / "scores.csv").open(newline="") as file:
            scores = {row["agent"]: row for row in csv.DictReader(file) if row["judge"] == "long-words"}
        words = [trial["answer"]["word"] for trial in trials if key[trial["id"]]["agent"] == "published:gpt2"]
        share = sum(len(word) >= letters for word in words) / len(words)
        assert float(scores["published:gpt2"]["p_machine"]) == pytest.approx(share)

    lines = (folder / "verdicts" / "records" / "vowels.jsonl").read_text().splitlines()
    assert len(lines) == len(trials)
    assert {json.loads(line)["status"] for line in lines} == {"ok"}


def test_the_language_model_reads_the_advice_before_the_trial(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    (tmp_path / "judges.toml").write_text(examples(PAGE, "toml")[1])
    chosen = selection.resolve(["terse", "blind"], [], tmp_path / "judges.toml")
    agents = selection.checked_agents(chosen.entries, chosen.settings)
    assert agents["terse"].settings.attempts == 3
    assert agents["blind"].settings.without_picture is True
    assert agents["blind"].declaration().tasks == ("judgement",)
