"""The agent ``gbvs``: from stimuli to answers."""

import numpy as np
import pytest
import torch
from gaze_cases import answers, files, loaded, pixels, stimulus
from PIL import Image as PILImage

from agents.attention.gbvs import GraphSaliencyAgent
from agents.attention.models import graph_saliency
from agents.contract import Draw
from agents.errors import AnswerError


def agent(**settings):
    return loaded(GraphSaliencyAgent, "gbvs", **settings)


@pytest.fixture
def picture(tmp_path):
    return files(tmp_path, [(96, 128)])[0]


def test_the_answer_is_the_maxima_of_the_map(picture):
    [answer] = answers(agent(), [stimulus(picture)])
    [free] = graph_saliency.saliency(torch.from_numpy(pixels(picture).copy())[None])
    assert answer["fixations"][0] == [64, 48]
    free[38:59, 54:75] = -1
    assert answer["fixations"][1] == [int(free.argmax()) % 128, int(free.argmax()) // 128]
    about = ("frame", "window", "forced_first", "found", "found_at", "durations_ms", "selection")
    expected = [[128, 96], 20, True, None, None, None, "maximum, square inhibition"]
    assert [answer[key] for key in about] == expected


def test_search_is_the_same_path_up_to_the_target(picture):
    made = agent(max_search=15)
    [free] = answers(made, [stimulus(picture)])
    x, y = free["fixations"][4]
    found, unknown = answers(
        made,
        [
            stimulus(picture, mode="search", target_box=(x, y, 1, 1)),
            stimulus(picture, mode="search", target_image="no such file"),
        ],
    )
    assert (found["stop"], found["fixations"]) == ("target", free["fixations"][: found["found_at"] + 1])
    assert found["found_at"] <= 4
    assert (unknown["found"], unknown["fixations"]) == (None, free["fixations"])


@pytest.mark.parametrize(("mode", "without"), [("L", True), ("LA", True), ("I;16", True), ("RGB", False), ("P", False)])
def test_a_picture_of_one_channel_may_have_no_colour_channel(tmp_path, picture, mode, without):
    """The authors' program skips the colour channel where imread gives one channel."""
    grey, path = PILImage.open(picture).convert("L"), tmp_path / "grey.png"
    if mode == "I;16":
        PILImage.fromarray(np.asarray(grey).astype(np.uint16) * 257).save(path)
    else:
        grey.convert(mode).save(path)
    made = agent(grey="no_colour")
    [usual, skipped, chosen] = (
        answers(one, [stimulus(path), stimulus(picture)]) for one in (agent(), made, agent(weights=(0, 1, 1)))
    )
    assert usual[0] != chosen[0]
    assert skipped[0] == (chosen if without else usual)[0]
    assert skipped[1] == usual[1]  # the other picture of the batch, in colour


def test_a_map_that_is_not_finite_fails_alone(picture, monkeypatch):
    made = agent()
    prepared = [made.prepare(stimulus(picture))] * 3
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
