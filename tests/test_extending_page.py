"""The examples of docs/extending.md run, and do what the page says."""

import importlib
import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents import catalogue
from agents.catalogue import selection
from agents.contract import Draw, Reply
from agents.stimuli import parse_row
from judging.study.design.settings import read_settings
from judging.study.pages.phrases import read_phrases
from serving.cli import main
from serving.conversations.scenario import PairSettings
from tests.helpers.page_package import examples, installed

PAGE = "extending.md"
SETTINGS = {"our-llama": "base_url", "small": "engine", "cook": "parts"}
"""By variant of the page a setting that its table has."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with the examples, in an environment that has the page's package."""
    (tmp_path / "variants.toml").write_text(examples(PAGE, "toml")[1])
    with installed(PAGE, "my_lab", tmp_path, monkeypatch):
        yield tmp_path


def test_agents_commands_variants_and_studies(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    *commands, of_study = examples(PAGE, "sh")
    for of_section, wanted in zip(commands, examples(PAGE, "text"), strict=True):
        for line in of_section.splitlines():
            capsys.readouterr()
            assert main(shlex.split(line.removeprefix("turinglike "))) == 0, line
        assert capsys.readouterr().out == wanted
    assert main(shlex.split(of_study.removeprefix("turinglike "))) == 0
    importlib.import_module("my_lab").translate(folder / "study")
    assert main(["study", "check", "study"]) == 0
    phrases = read_phrases(folder / "study", read_settings(folder / "study"))
    assert phrases["begin"] == "Anfangen"


def test_the_other_classes_do_what_they_say(folder: Path) -> None:
    lab: Any = importlib.import_module("my_lab")
    assert catalogue.get("shout-loud").make().settings.marks == 3
    cue = parse_row('{"id": "a", "task": "word_association", "cue": "sun"}')
    wary = lab.Wary(lab.ShoutSettings(), "wary")
    [reply] = wary.respond([wary.prepare(cue)], [Draw(seed=1)])
    assert isinstance(reply, Reply)
    [too_short] = wary.declaration().filters
    assert too_short(cue, reply).found == "sun"
    assert wary.declaration().tasks == ("word_association",)
    assert lab.Careful(lab.ShoutSettings(), "careful").provenance() == {"list": "my words, 2026"}
    trial = {"id": "t", "task": "judgement", "asked": "word_association", "shown": "a", "question": "?", "cue": "o"}
    judge = lab.Alliteration(lab.Settings(), "alliteration")
    words = [parse_row(json.dumps({**trial, "answer": {"word": word}})) for word in ("owl", "sun")]
    verdicts = judge.respond([judge.prepare(word) for word in words], [Draw(seed=1), Draw(seed=2)])
    assert [reply.answer.verdict for reply in verdicts] == ["machine", "human"]


@pytest.mark.parametrize("name", SETTINGS)
def test_variants_of_models_have_their_settings(name: str, tmp_path: Path) -> None:
    text = "\n".join(examples(PAGE, "toml")[2:4])
    (tmp_path / "models.toml").write_text(text)
    chosen = selection.resolve([name], [], tmp_path / "models.toml")
    agent = selection.checked_agents(chosen.entries, chosen.settings)[name]
    assert f"{SETTINGS[name]} = " in text
    assert getattr(agent.settings, SETTINGS[name])


def test_a_pair_has_its_policy(tmp_path: Path) -> None:
    (tmp_path / "pair.toml").write_text(examples(PAGE, "toml")[4])
    chosen = selection.resolve(["eliza~eliza"], [], tmp_path / "pair.toml")
    pair = PairSettings.model_validate(chosen.settings["eliza~eliza"])
    assert pair.policy is not None
    assert pair.policy.same_message == "resample_conversation"
    assert pair.thresholds.same_message == 2
