"""The agent ``gbvs``: from stimuli to answers."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image as PILImage

from agents.attention.gbvs import GraphSaliencyAgent
from agents.attention.models import graph_saliency
from tests.agents.attention.gaze_cases import answers, files, loaded, pixels, stimulus


def agent(**settings: Any) -> Any:
    return loaded(GraphSaliencyAgent, "gbvs", **settings)


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    return files(tmp_path, [(96, 128)])[0]


def test_the_answer_is_the_maxima_of_the_map(picture: Path) -> None:
    [answer] = answers(agent(), [stimulus(picture)])
    [free] = graph_saliency.saliency(torch.from_numpy(pixels(picture).copy())[None])
    assert answer["fixations"][0] == [64, 48]
    free[38:59, 54:75] = -1
    assert answer["fixations"][1] == [int(free.argmax()) % 128, int(free.argmax()) // 128]
    about = ("frame", "window", "forced_first", "found", "found_at", "durations_ms", "selection")
    expected = [[128, 96], 20, True, None, None, None, "maximum, square inhibition"]
    assert [answer[key] for key in about] == expected


@pytest.mark.parametrize(("mode", "without"), [("L", True), ("LA", True), ("I;16", True), ("RGB", False), ("P", False)])
def test_a_picture_of_one_channel_may_have_no_colour_channel(
    tmp_path: Path, picture: Path, mode: str, without: bool
) -> None:
    """The authors' program skips the colour channel where imread gives one channel."""
    grey = PILImage.open(picture).convert("L")
    path = tmp_path / "grey.png"
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
