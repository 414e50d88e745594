"""The agent ``gbvs``: from stimuli to answers, in any batch."""

import cv2
import numpy as np
import pytest
import torch
from PIL import Image as PILImage

from agents import catalogue
from agents.answers import ScanpathAnswer, plain
from agents.attention.models import graph_saliency
from agents.attention.models.fixations import Plan
from agents.attention.models.inhibition import scanpaths
from agents.contract import Draw, Reply
from agents.errors import AnswerError
from agents.stimuli import AttentionStimulus

SIZES = [(120, 160), (96, 128), (120, 160), (33, 21), (1, 1), (120, 160), (3, 300), (96, 128)]


def agent(device="cpu", **settings):
    made = catalogue.get("gbvs").make(settings)
    made.open()
    made.load(device)
    return made


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """Files of several sizes, every third one grey."""
    folder = tmp_path_factory.mktemp("pictures")
    rng = np.random.default_rng(0)
    for index, (height, width) in enumerate(SIZES):
        small = rng.integers(0, 256, (max(1, height // 12), max(1, width // 12), 3), np.uint8)
        image = cv2.resize(small, (width, height), interpolation=cv2.INTER_LINEAR)
        PILImage.fromarray(image[..., 0] if index % 3 == 0 else image).save(folder / f"{index}.png")
    return [folder / f"{index}.png" for index in range(len(SIZES))]


def stimulus(path, **fields):
    row = {"id": str(path.name), "task": "attention_prediction", "image": str(path), **fields}
    return AttentionStimulus.model_validate(row)


def answers(made, stimuli, size):
    prepared = [made.prepare(item) for item in stimuli]
    found = []
    for start in range(0, len(prepared), size):
        part = prepared[start : start + size]
        found += made.respond(part, [Draw(seed=1)] * len(part))
    assert all(isinstance(reply, Reply) for reply in found)
    return [plain(reply.answer) for reply in found]


def test_the_answer_is_the_maxima_of_the_map(pictures):
    [answer] = answers(agent(), [stimulus(pictures[1])], 1)
    with PILImage.open(pictures[1]) as image:
        maps = graph_saliency.saliency(torch.from_numpy(np.asarray(image).copy())[None])
    [path] = scanpaths(maps, [Plan((128, 96), 20, 15)])
    assert answer["fixations"] == [list(point) for point in path.fixations]
    first, second = answer["fixations"][:2]
    assert first == [64, 48]
    free = maps[0].clone()
    free[38:59, 54:75] = -1
    assert second == [int(free.argmax()) % 128, int(free.argmax()) // 128]
    ScanpathAnswer.model_validate(answer)
    assert {key: answer[key] for key in ("frame", "window", "forced_first", "found", "found_at", "durations_ms")} == {
        "frame": [128, 96],
        "window": 20,
        "forced_first": True,
        "found": None,
        "found_at": None,
        "durations_ms": None,
    }
    assert answer["selection"] == "maximum, square inhibition"


def test_search_is_the_same_path_up_to_the_target(pictures):
    made = agent(max_search=15)
    [free] = answers(made, [stimulus(pictures[1])], 1)
    x, y = free["fixations"][4]
    [found] = answers(made, [stimulus(pictures[1], mode="search", target_box=(x, y, 1, 1))], 1)
    assert found["stop"] == "target"
    assert found["found_at"] <= 4
    assert found["fixations"] == free["fixations"][: found["found_at"] + 1]
    [unknown] = answers(made, [stimulus(pictures[1], mode="search", target_image="no such file")], 1)
    assert unknown["fixations"] == free["fixations"]
    assert unknown["found"] is None


def test_grey_pictures_are_answered_as_their_colour_versions(pictures, tmp_path):
    grey = np.asarray(PILImage.open(pictures[0]))
    assert grey.ndim == 2
    PILImage.fromarray(grey).convert("RGB").save(tmp_path / "rgb.png")
    made = agent()
    single, rgb = answers(made, [stimulus(pictures[0]), stimulus(tmp_path / "rgb.png")], 2)
    assert single == rgb
    pixels, task = made.prepare(stimulus(tmp_path / "rgb.png"))
    assert pixels.ndim == 2
    [colour] = made.respond([(np.stack([pixels] * 3, 2), task)], [Draw(seed=1)])
    assert plain(colour.answer) == single


def test_a_map_that_is_not_finite_fails_alone(pictures, monkeypatch):
    made = agent()
    prepared = [made.prepare(stimulus(pictures[index])) for index in (1, 7, 1)]
    whole = made.respond(prepared, [Draw(seed=1)] * 3)
    saliency = graph_saliency.saliency

    def spoiled(*arguments):
        maps = saliency(*arguments)
        maps[1, 0, 0] = float("nan")
        return maps

    monkeypatch.setattr(graph_saliency, "saliency", spoiled)
    first, second, third = made.respond(prepared, [Draw(seed=1)] * 3)
    assert (first, third) == (whole[0], whole[2])
    assert isinstance(second, AnswerError)
    assert second.code == "bad_map"
