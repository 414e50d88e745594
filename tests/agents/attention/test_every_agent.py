"""What every path of every attention agent must have, on random pictures.

Agents with hard inhibition: no two fixations inside one window, none off the frame, no repeated tail, a valid path for
a flat picture. All agents: never off the frame.
"""

import functools
import importlib.util
import subprocess
import sys

import gaze_cases
import numpy as np
import pytest
from gaze_cases import answers, search
from PIL import Image as PILImage

from agents import catalogue
from agents.attention.vgg import VGGAgent
from agents.errors import AnswerError, ImageError

QUICK = {
    "ivsn": {"variant": "whole", "search_size": 128},
    "ivsn-notarget": {"variant": "whole", "search_size": 128},
    "ivsn-layer": {"variant": "whole", "search_size": 128},
    "eccnet": {"long_side": 96, "radius": 56, "margin": 8},
    "return-fixations": {"sizes": [64, 32]},
    "deepgaze3": {"center_bias": "uniform", "longer_side": 192},
}
NAMES = [
    name
    for name, entry in catalogue.entries().items()
    if entry.tasks == ("attention_prediction",) and entry.load_class().__module__.startswith("agents.")
]
HARD = [name for name in NAMES if "inhibition" in catalogue.get(name).load_class().Settings.model_fields]


@pytest.fixture(scope="module")
def agents(vgg_weights, tmp_path_factory):
    """Each agent once, quick and with random weights."""

    @functools.cache
    def make(name):
        cls, chosen = catalogue.get(name).load_class(), dict(QUICK.get(name, {}))
        if issubclass(cls, VGGAgent):
            chosen["checkpoint"] = str(vgg_weights)
        if name == "deepgaze3":
            if importlib.util.find_spec("deepgaze_pytorch") is None:
                pytest.skip("deepgaze_pytorch is not installed")
            chosen["checkpoint"] = str(deepgaze_weights(tmp_path_factory.mktemp("deepgaze")))
        agent = catalogue.get(name).make(chosen)
        agent.open()
        agent.load("cpu")
        return agent

    return make


def deepgaze_weights(folder):
    from safetensors.torch import save_file

    from agents.attention.models import deepgaze as deepgaze_model

    path = folder / "deepgaze.safetensors"
    save_file({k: v.contiguous().clone() for k, v in deepgaze_model.build().state_dict().items()}, path)
    return path


def stimulus(agent, image, target, **fields):
    asked = gaze_cases.stimulus if "free" in agent.modes else functools.partial(gaze_cases.search, target=target)
    return asked(image, **fields)


def check(answer, size, hard):
    path, (width, height) = answer["fixations"], size
    assert answer["frame"] == [width, height]
    assert all(0 <= x < width and 0 <= y < height for x, y in path)
    assert all(type(value) is int for point in path for value in point)
    if not hard:
        return
    reach = answer["window"] // 2
    places = np.array(path)
    apart = np.abs(places[:, None] - places[None]).max(2)
    assert (apart[~np.eye(len(path), dtype=bool)] > reach).all()


def random_pictures(folder, seed, count):
    """Pictures of random sizes: noise, blots, flat ones; (path, (width, height))."""
    rng = np.random.default_rng(seed)
    found = []
    for index in range(count):
        height, width = rng.integers(32, 90, 2).tolist()
        path = folder / f"{seed}-{index}.png"
        PILImage.fromarray(gaze_cases.blots(rng, height, width, grain=(1, 8, 99)[index % 3])).save(path)
        found.append((path, (width, height)))
    return found


@pytest.mark.parametrize("name", NAMES)
def test_every_agent_on_random_pictures(agents, tmp_path, name):
    agent = agents(name)
    pictures = random_pictures(tmp_path, 7, 2 if name in ("eccnet", "deepgaze3") else 8)
    target = pictures[0][0]
    stimuli = [stimulus(agent, path, target, window=15, max_fixations=10) for path, _ in pictures]
    for answer, (_, size) in zip(answers(agent, stimuli), pictures, strict=True):
        check(answer, size, hard=name in HARD)


def mixed(agent, pictures):
    """Stimuli of several sizes, in free viewing and in search, found and not."""
    paths = [path for path, _ in pictures]
    found = [stimulus(agent, path, paths[0], window=12, max_fixations=3 + n) for n, path in enumerate(paths)]
    return [*found, search(paths[1], paths[0], window=12, max_fixations=4, target_box=(1, 1, 9, 9)), found[0]]


@pytest.mark.parametrize("name", NAMES)
def test_answers_do_not_depend_on_the_batch(agents, tmp_path, name):
    agent = agents(name)
    stimuli = mixed(agent, random_pictures(tmp_path, 3, 3))
    alone = [answers(agent, [item])[0] for item in stimuli]
    assert answers(agent, stimuli) == alone
    assert answers(agent, stimuli[::-1]) == alone[::-1]
    assert list(agent.respond([], [])) == []


@pytest.mark.parametrize("name", ["center", "gbvs", "ivsn-layer", "return-fixations"])
def test_an_agent_draws_its_number_of_fixations_from_peoples(agents, tmp_path, monkeypatch, name):
    """From the draw's seed alone, up to the most there may be; the fixations are those of the longer path."""
    agent, lengths = agents(name), tmp_path / "lengths.txt"
    lengths.write_text("2\n4\n9\n")
    [(path, _), (target, _)] = random_pictures(tmp_path, 11, 2)
    item = stimulus(agent, path, target, window=7, max_fixations=5)
    seeds = list(range(8))
    usual = [answers(agent, [item], [seed])[0]["fixations"] for seed in seeds]
    monkeypatch.setattr(agent, "settings", agent.settings.model_copy(update={"lengths": lengths}))
    drawn = [answer["fixations"] for answer in answers(agent, [item] * 8, seeds)]
    assert {len(path) for path in usual} == {5}
    assert {len(path) for path in drawn} == {2, 4, 5}
    assert drawn == [path[: len(own)] for own, path in zip(drawn, usual, strict=True)]
    assert answers(agent, [item], seeds[3:4])[0]["fixations"] == drawn[3]


@pytest.mark.parametrize("name", NAMES)
def test_what_cannot_be_prepared_says_why(agents, tmp_path, name):
    agent = agents(name)
    [(path, (width, _))] = random_pictures(tmp_path, 5, 1)
    (tmp_path / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    with pytest.raises(ImageError):
        agent.prepare(stimulus(agent, tmp_path / "broken.png", path))
    with pytest.raises(ImageError):
        agent.prepare(search(path, path, target_mask=str(tmp_path / "broken.png")))
    with pytest.raises(AnswerError, match="outside the frame") as caught:
        agent.prepare(search(path, path, target_box=(width, 0, 9, 9)))
    assert caught.value.code == "bad_target"


@pytest.mark.parametrize("name", ["ivsn", "ivsn-layer", "eccnet", "return-fixations"])
def test_who_looks_for_a_picture_needs_one(agents, tmp_path, name):
    [(path, _)] = random_pictures(tmp_path, 5, 1)
    with pytest.raises(AnswerError, match=f"^{name} looks for a picture: give it as target_image$") as caught:
        agents(name).prepare(gaze_cases.stimulus(path, mode="search", target_box=(0, 0, 9, 9)))
    assert caught.value.code == "no_target_image"


def test_agents_files_and_settings_need_no_torch():
    code = """
import sys
from agents import catalogue
for entry in catalogue.entries().values():
    if entry.tasks == ("attention_prediction",):
        entry.load_class().Settings()
print({"torch", "cv2"} & sys.modules.keys())
"""
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "set()"
