"""What a stimulus asks of a scanpath: windows, largest numbers of fixations, targets."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image as PILImage

from agents.attention import scanpath
from agents.attention.models.inhibition import scanpaths
from agents.attention.scanpath import ScanSettings
from agents.errors import AnswerError
from agents.stimuli import AttentionStimulus


def stimulus(**fields: Any) -> AttentionStimulus:
    return AttentionStimulus.model_validate({"id": "a", "task": "attention_prediction", "image": "a.png", **fields})


@pytest.mark.parametrize(
    ("fields", "frame", "chosen", "window", "maximum"),
    [
        ({}, (1280, 1024), {}, 200, 15),
        ({}, (1, 1), {}, 1, 15),
        ({}, (100, 3000), {}, 16, 15),
        ({"dataset": "FindingWaldo"}, (1280, 1024), {}, 100, 15),
        ({"source": "waldo"}, (640, 512), {}, 50, 15),
        ({"dataset": "natural", "source": "waldo"}, (1280, 1024), {}, 200, 15),
        ({"window": 33}, (640, 480), {"window_pixels": 44}, 33, 15),
        ({}, (640, 480), {"window": 300.0, "max_free": 7}, 150, 7),
        ({"max_fixations": 3}, (640, 480), {}, 100, 3),
        ({"mode": "search", "target_box": (1, 1, 5, 5), "dataset": "waldo"}, (640, 480), {}, 50, 80),
        ({"mode": "search", "target_box": (1, 1, 5, 5), "max_fixations": 9}, (640, 480), {"max_search": 4}, 100, 9),
    ],
)
def test_windows_and_maxima(
    fields: dict[str, Any], frame: tuple[int, int], chosen: dict[str, Any], window: Any, maximum: int
) -> None:
    plan = scanpath.plan_scanpath(stimulus(**fields), frame, ScanSettings(**chosen))
    assert (plan.window, plan.maximum, plan.frame) == (window, maximum, frame)


def mask_file(folder: Path, values: NDArray[Any]) -> str:
    PILImage.fromarray(values).save(folder / "mask.png")
    return str(folder / "mask.png")


def test_a_mask_is_finer_than_a_box(tmp_path: Path) -> None:
    values = np.zeros((20, 30), np.uint8)
    values[18:, 2] = 255
    fields = {"target_mask": mask_file(tmp_path, values), "target_box": (0, 0, 30, 20)}
    plan = scanpath.plan_scanpath(stimulus(mode="search", **fields), (30, 20), ScanSettings())
    assert isinstance(plan.target, np.ndarray)
    assert np.array_equal(plan.target, values > 0)
    assert plan.searching


def test_a_target_without_a_pixel_in_the_frame_is_an_error(tmp_path: Path) -> None:
    empty = mask_file(tmp_path, np.zeros((20, 30), np.uint8))
    for fields, frame in (
        ({"target_box": (30, 0, 5, 5)}, (30, 20)),
        ({"target_box": (-5, 0, 5, 5)}, (30, 20)),
        ({"target_mask": empty}, (30, 20)),
        ({"target_mask": empty}, (31, 20)),
    ):
        with pytest.raises(AnswerError, match="target") as caught:
            scanpath.plan_scanpath(stimulus(mode="search", **fields), frame, ScanSettings())
        assert caught.value.code == "bad_target"


def test_a_target_partly_in_the_frame_is_found_there() -> None:
    plan = scanpath.plan_scanpath(
        stimulus(mode="search", target_box=(-8, -8, 9, 9), window=3), (30, 20), ScanSettings()
    )
    assert plan.finds(1, 1)
    assert not plan.finds(2, 1)


@pytest.mark.parametrize(("present", "found"), [(None, None), (False, False)])
def test_what_is_found_where_there_is_nothing_to_test(present: bool, found: Any) -> None:
    asked = stimulus(mode="search", target_image="t.png", target_present=present)
    [path] = scanpaths(torch.rand((1, 20, 30)), [scanpath.plan_scanpath(asked, (30, 20), ScanSettings())])
    assert path.found is found
