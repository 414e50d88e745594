"""The examples of docs/extending.md run, and do what the page says."""

import importlib
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents import catalogue
from agents.catalogue import lookup, selection
from agents.contract import Draw, Reply
from agents.stimuli import parse_row
from judging.study.design.settings import read_settings
from judging.study.pages.phrases import read_phrases
from serving.cli import main
from serving.conversations.scenario import PairSettings
from tests.helpers import in_process

REPOSITORY = Path(__file__).resolve().parents[1]
PAGE = (REPOSITORY / "docs" / "extending.md").read_text("utf-8")
EGG_INFO = "from setuptools import setup; setup()"  # what an install writes, without the network
SETTINGS = {"our-llama": "base_url", "small": "engine", "cook": "parts"}
"""By variant of the page a setting that its table has."""


def examples(language: str) -> list[str]:
    """The page's examples in a language, in their order."""
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with the examples, in an environment that has the page's package."""
    package = tmp_path / "package"
    package.mkdir()
    (package / "my_lab.py").write_text("".join(examples("python")))
    (package / "pyproject.toml").write_text(examples("toml")[0])
    subprocess.run([sys.executable, "-c", EGG_INFO, "-q", "egg_info"], cwd=package, check=True)
    shutil.copytree(REPOSITORY / "examples", tmp_path / "examples")
    (tmp_path / "variants.toml").write_text(examples("toml")[1])
    in_process.without_ray(monkeypatch)
    monkeypatch.syspath_prepend(package)
    monkeypatch.chdir(tmp_path)
    for cached in (lookup._installed, lookup._known, lookup.entries):
        cached.cache_clear()
    yield tmp_path
    monkeypatch.undo()
    sys.modules.pop("my_lab", None)
    for cached in (lookup._installed, lookup._known, lookup.entries):
        cached.cache_clear()


def test_agents_commands_variants_and_studies(installed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    *commands, of_study = examples("sh")
    for of_section, wanted in zip(commands, examples("text"), strict=True):
        for line in of_section.splitlines():
            capsys.readouterr()
            assert main(shlex.split(line.removeprefix("turinglike "))) == 0, line
        assert capsys.readouterr().out == wanted
    assert main(shlex.split(of_study.removeprefix("turinglike "))) == 0
    importlib.import_module("my_lab").translate(installed / "study")
    assert main(["study", "check", "study"]) == 0
    phrases = read_phrases(installed / "study", read_settings(installed / "study"))
    assert phrases["begin"] == "Anfangen"


def test_the_other_classes_do_what_they_say(installed: Path) -> None:
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
    judge = lab.Loudness(lab.Settings(), "loudness")
    words = [parse_row(json.dumps({**trial, "answer": {"word": word}})) for word in ("sun!", "sun")]
    verdicts = judge.respond([judge.prepare(word) for word in words], [Draw(seed=1), Draw(seed=2)])
    assert [reply.answer.verdict for reply in verdicts] == ["machine", "human"]


@pytest.mark.parametrize("name", SETTINGS)
def test_variants_of_models_have_their_settings(name: str, tmp_path: Path) -> None:
    text = "\n".join(examples("toml")[2:4])
    (tmp_path / "models.toml").write_text(text)
    chosen = selection.resolve([name], [], tmp_path / "models.toml")
    agent = selection.checked_agents(chosen.entries, chosen.settings)[name]
    assert f"{SETTINGS[name]} = " in text
    assert getattr(agent.settings, SETTINGS[name])


def test_a_pair_has_its_policy(tmp_path: Path) -> None:
    (tmp_path / "pair.toml").write_text(examples("toml")[4])
    chosen = selection.resolve(["eliza~eliza"], [], tmp_path / "pair.toml")
    pair = PairSettings.model_validate(chosen.settings["eliza~eliza"])
    assert pair.policy is not None
    assert pair.policy.same_message == "resample_conversation"
    assert pair.thresholds.same_message == 2
