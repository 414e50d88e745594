"""What is promised of every agent of the catalogue, checked on tiny models of the real architectures.

A batch is its single stimuli; a bad picture fails alone; what is missing is one sentence; the provenance says whether
weights are random; nothing that a checkpoint holds is executed.
"""

import functools
import json
import math
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from agents import declaration
from agents.capabilities import WithCheckpoint, provenance_of
from agents.catalogue import Entry
from agents.contract import Agent
from agents.errors import ImageError, UnavailableError
from agents.stimuli import as_dict, parse_row
from tests.helpers import device_cases, pickles

ENTRIES = device_cases.here()
Tiny = Callable[[str], tuple[dict[str, Any], Path]]


def distinct() -> list[str]:
    """The catalogue's names, without those that differ from an earlier one in their checkpoint alone."""
    kinds: dict[str, str] = {}
    for name, entry in ENTRIES.items():
        others = {key: value for key, value in entry.settings.items() if key not in device_cases.OF_CHECKPOINT}
        kinds.setdefault(repr((entry.agent, others)), name)
    return list(kinds.values())


NAMES = distinct()
OF_PICTURES = [name for name in NAMES if ENTRIES[name].tasks[0] in device_cases.WITH_PICTURE and name != "catch"]
HEADER_ALONE = ("center", "random")  # look at no pixel
PRETRAINED = [name for name in NAMES if "checkpoint" in ENTRIES[name].load_class().Settings.model_fields]
ONE_PER_CLASS = list({ENTRIES[name].agent: name for name in PRETRAINED}.values())


@pytest.fixture(scope="session")
def agents(tiny: Tiny) -> Iterator[Callable[[str], Agent[Any]]]:
    """Each agent, loaded once, in fp32 where there is a choice."""
    loaded: list[Agent[Any]] = []

    @functools.cache
    def load(name: str) -> Agent[Any]:
        settings, _ = tiny(name)
        exact = {"precision": "fp32"} if device_cases.takes_precision(ENTRIES[name]) else {}
        loaded.append(device_cases.loaded(ENTRIES[name], settings | exact, "cpu"))
        return loaded[-1]

    yield load
    for agent in loaded:
        agent.close()


def same(first: Any, second: Any) -> bool:
    """Whether two answers are equal; numbers may differ by rounding."""
    if isinstance(first, float) and isinstance(second, float):
        return math.isclose(first, second, rel_tol=1e-4, abs_tol=1e-3)
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(same(first[key], second[key]) for key in first)
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(same, first, second))
    return bool(first == second)


@pytest.mark.parametrize("name", NAMES)
def test_a_batch_is_its_single_stimuli_in_any_order(name: str, tiny: Tiny, agents: Callable[[str], Agent[Any]]) -> None:
    agent = agents(name)
    entry = ENTRIES[name]
    stimuli = device_cases.stimuli(entry, tiny(name)[1], 2 if entry.agent.startswith(device_cases.FULL_SIZE) else 4)
    draws = device_cases.draws(stimuli)
    alone = [device_cases.answers(agent, [stimulus], [draw])[0] for stimulus, draw in zip(stimuli, draws, strict=True)]
    assert same(device_cases.answers(agent, stimuli, draws), alone)
    assert same(device_cases.answers(agent, stimuli[::-1], draws[::-1]), alone[::-1])


@pytest.mark.parametrize("name", OF_PICTURES)
def test_a_picture_that_cannot_be_read_fails_alone(
    name: str, tiny: Tiny, agents: Callable[[str], Agent[Any]], tmp_path: Path
) -> None:
    agent = agents(name)
    [whole] = device_cases.stimuli(ENTRIES[name], tiny(name)[1], 1)
    picture = Path(whole.images()[0].name).read_bytes()
    (tmp_path / "cut.png").write_bytes(picture[: len(picture) // 2])
    (tmp_path / "text.png").write_text("no picture")
    cases = {"absent.png": "missing_image", "text.png": "bad_image", "cut.png": "bad_image"}
    if name in HEADER_ALONE:
        del cases["cut.png"]
    for file, code in cases.items():
        spoiled = parse_row(json.dumps(as_dict(whole) | {"image": str(tmp_path / file)}))
        with pytest.raises(ImageError, match=file) as failure:
            agent.prepare(spoiled)
        assert failure.value.code == code
    assert len(device_cases.answers(agent, [whole], device_cases.draws([whole]))) == 1


@pytest.mark.parametrize("name", PRETRAINED)
def test_a_missing_checkpoint_is_one_sentence(name: str, tiny: Tiny, tmp_path: Path) -> None:
    settings, _ = tiny(name)
    for checkpoint in (tmp_path / "absent.safetensors", tmp_path / "absent"):
        message = ENTRIES[name].make(settings | {"checkpoint": str(checkpoint)}).missing()
        assert message is not None
        assert str(checkpoint) in message
        assert "\n" not in message
        assert len(message) < 400


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_package_is_one_sentence(name: str, tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = ENTRIES[name].make(tiny(name)[0])
    packages = agent.declares.packages
    monkeypatch.setattr(declaration, "is_installed", lambda module: module not in packages[-1:])
    message = agent.missing() or ""
    assert ("pip install" in message) == bool(packages)
    assert "\n" not in message


@pytest.mark.parametrize("name", ["deepgaze3", "detectron2-maskrcnn"])
def test_a_missing_package_of_no_registry_is_one_sentence_too(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "pip install --no-build-isolation 'git+https://github.com/" in str(ENTRIES[name].make().missing())


@pytest.mark.parametrize("name", NAMES)
def test_the_provenance_says_what_ran(name: str, tiny: Tiny, agents: Callable[[str], Agent[Any]]) -> None:
    settings, _ = tiny(name)
    agent = agents(name)
    about = json.loads(json.dumps(provenance_of(agent)))
    assert about.get("random_weights") == (True if is_marked(settings.get("checkpoint")) else None)
    assert all(about.values())
    if name in PRETRAINED:
        assert isinstance(agent, WithCheckpoint)
        checkpoint, revision = agent.checkpoint()
        assert checkpoint == settings["checkpoint"]
        assert str(revision).startswith("sha256:")


def is_marked(checkpoint: str | None) -> bool:
    if checkpoint is None:
        return False
    path = Path(checkpoint)
    return ((path if path.is_dir() else path.parent) / "RANDOM_WEIGHTS").exists()


def copy_of(checkpoint: str, folder: Path) -> Path:
    """The checkpoint, a folder or a file with its neighbours, copied into ``folder``."""
    path = Path(checkpoint)
    shutil.copytree(path if path.is_dir() else path.parent, folder)
    return folder if path.is_dir() else folder / path.name


def load_anew(entry: Entry, settings: dict[str, Any]) -> None:
    """Raises UnavailableError for what ``missing`` says, too."""
    agent = entry.make(settings)
    if (message := agent.missing()) is not None:
        raise UnavailableError(message)
    agent.open()
    agent.load("cpu")
    agent.close()


@pytest.mark.parametrize("name", [name for name in ONE_PER_CLASS if "Vector" not in ENTRIES[name].agent])
def test_code_in_a_checkpoint_is_not_executed(name: str, tiny: Tiny, tmp_path: Path) -> None:
    """Neither in a pickle in the place of the weights nor in a module that a configuration names."""
    settings, _ = tiny(name)
    executed = tmp_path / "executed"
    path = copy_of(settings["checkpoint"], tmp_path / "copy")
    folder = path if path.is_dir() else path.parent
    (folder / "evil.py").write_text(f"open({str(executed)!r}, 'w')\nclass Evil: pass\n")
    for file in folder.glob("*config.json"):
        classes = dict.fromkeys(("AutoConfig", "AutoModel", "AutoProcessor", "AutoImageProcessor"), "evil.Evil")
        tokenizer = {"AutoTokenizer": ["evil.Evil", "evil.Evil"]}
        file.write_text(json.dumps(json.loads(file.read_text()) | {"auto_map": classes | tokenizer}))
    load_anew(ENTRIES[name], settings | {"checkpoint": str(path)})
    assert not executed.exists()
    bomb = {"weight": torch.zeros(2), "bomb": pickles.Armed(executed)}
    if path.is_dir():
        for weights in [*folder.glob("*.safetensors"), *folder.glob("*.pth"), *folder.glob("*.pt")]:
            weights.unlink()
            target = "pytorch_model.bin" if weights.stem == "model" else f"{weights.stem}.pth"
            torch.save(bomb, folder / target)
    else:
        path.unlink()
        path = folder / "weights.pth"
        torch.save(bomb, path)
    with pytest.raises(UnavailableError, match="it was not executed"):
        load_anew(ENTRIES[name], settings | {"checkpoint": str(path)})
    assert not executed.exists()
