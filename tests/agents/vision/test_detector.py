"""What the detectors share: from boxes to words, and batches in which one image's outputs are not finite."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from agents.answers import ObjectAnswer
from agents.contract import Draw, Reply
from agents.errors import AnswerError, UnavailableError
from agents.loading import load_weights
from agents.vision.detector import Detections, DetectionSettings, Detector, PreparedImage, pick

NAMES = ("__background__", "person", "dog", "N/A", "cat", "hot dog")
BOX = (10.0, 20.0, 60.0, 50.0)
Found = tuple[int, float, tuple[float, float, float, float]]


def answer(boxes: Sequence[Found], **settings: object) -> tuple[ObjectAnswer, dict[str, object]]:
    found = Detections(
        torch.tensor([number for number, _, _ in boxes], dtype=torch.int64),
        torch.tensor([score for _, score, _ in boxes]),
        torch.tensor([corners for _, _, corners in boxes]).reshape(-1, 4),
    )
    reply = pick(found, NAMES, (100, 200), DetectionSettings.model_validate(settings))
    assert isinstance(reply.answer, ObjectAnswer)
    return reply.answer, reply.raw


FOUR = [(2, 0.4, BOX), (1, 0.9, BOX), (4, 0.3, BOX), (1, 0.8, BOX)]


@pytest.mark.parametrize(
    ("boxes", "settings", "labels", "raw"),
    [
        (FOUR, {}, ["person", "person", "dog"], {"detections": 4}),
        (FOUR, {"distinct": True}, ["person", "dog", "cat"], {"detections": 4}),
        (
            FOUR,
            {"distinct": True, "top": 4},
            ["person", "dog", "cat"],
            {"detections": 4, "note": "3 of 4 distinct labels scored above 0.05"},
        ),
        (
            [(2, 0.4, BOX), (1, 0.05, BOX)],
            {"threshold": 0.05},
            ["dog"],
            {"detections": 1, "note": "1 of 3 objects scored above 0.05"},
        ),
        ([], {}, [], {"detections": 0, "note": "0 of 3 objects scored above 0.05"}),
        ([(1, 0.5, BOX), (2, 0.75, BOX)], {"threshold": 0.5, "top": 1}, ["dog"], {"detections": 1}),
        ([(3, 0.9, BOX), (0, 0.8, BOX), (4, 0.2, BOX)], {"top": 1}, ["cat"], {"detections": 1}),
        ([(1, 0.5, BOX), (4, 0.50001, BOX)], {"top": 2}, ["cat", "person"], {"detections": 2}),
        ([(5, 0.9, BOX), (2, 0.8, BOX)], {"top": 2}, ["hot dog", "dog"], {"detections": 2}),
        ([(5, 0.9, BOX), (2, 0.8, BOX)], {"top": 2, "label_words": "last"}, ["dog", "dog"], {"detections": 2}),
        (
            [(5, 0.9, BOX), (2, 0.8, BOX), (1, 0.7, BOX)],
            {"top": 2, "label_words": "last", "distinct": True},
            ["dog", "person"],
            {"detections": 3},
        ),
    ],
    ids=[
        "repeats",
        "distinct",
        "few distinct",
        "few",
        "none",
        "at the threshold",
        "nameless",
        "no tie",
        "all words",
        "last word",
        "distinct last words",
    ],
)
def test_labels_of_the_highest_scores(
    boxes: list[Found], settings: dict[str, Any], labels: list[str], raw: dict[str, Any]
) -> None:
    said, about = answer(boxes, **settings)
    assert said.labels == labels
    assert about == raw
    assert said.scores == sorted(said.scores or [], reverse=True)


def test_boxes_are_in_pixels_and_cut_at_the_image() -> None:
    said, _ = answer([(1, 0.9, BOX), (1, 0.8, (-5.0, 30.0, 300.0, 120.0))])
    assert said.boxes == [[10.0, 20.0, 50.0, 30.0], [0.0, 30.0, 200.0, 70.0]]


def test_ties_do_not_depend_on_the_order_of_the_boxes() -> None:
    tied = [(4, 0.5, BOX), (1, 0.5 + 1e-7, (30, 0, 40, 9)), (1, 0.5, (20, 0, 40, 9)), (2, 0.5 - 1e-7, BOX)]
    said, _ = answer(tied, top=4)
    assert said.labels == ["person", "person", "dog", "cat"]
    assert said.boxes is not None
    assert [box[0] for box in said.boxes[:2]] == [20.0, 30.0]
    assert answer(tied[::-1], top=4)[0] == said


class Brightest(Detector[DetectionSettings]):
    """Finds one object whose score is the image's mean; above 200 its head overflows."""

    Settings = DetectionSettings
    names = NAMES

    def load(self, device: str) -> None:
        self.head = nn.Identity()
        self._install(self.head, device, [self.head])
        self.groups: list[int] = []

    def detect(self, pixels: torch.Tensor, sizes: Sequence[tuple[int, int]]) -> Sequence[torch.Tensor]:
        self.groups.append(len(pixels))
        mean = pixels.float().mean((1, 2, 3))
        mean = self.head({"scores": [torch.where(mean > 200, torch.nan, mean)]})["scores"][0]
        return [part for one in mean[:, None] for part in (torch.ones(1).long(), one / 255, torch.zeros(1, 4))]


def answered(*images: tuple[int, int]) -> tuple[list[float | str], list[int]]:
    """Scores or errors for images of (level, height), and how many went through the model together."""
    agent = Brightest(DetectionSettings(), "brightest")
    agent.load("cpu")
    batch = [
        PreparedImage(torch.full((3, height, 4), level, dtype=torch.uint8), (height, 4)) for level, height in images
    ]
    out: list[float | str] = []
    for reply in agent.respond(batch, [Draw(1)] * len(batch)):
        if isinstance(reply, AnswerError):
            out.append(reply.code)
        else:
            assert isinstance(reply, Reply)
            assert isinstance(reply.answer, ObjectAnswer)
            out.extend(reply.answer.scores or [])
    return out, sorted(agent.groups)


def test_the_order_is_kept_and_images_of_one_shape_go_together() -> None:
    found, groups = answered((51, 4), (102, 8), (153, 4), (153, 8), (25, 4))
    assert found == [0.2, 0.4, 0.6, 0.6, 0.098]
    assert groups == [2, 3]


def test_outputs_that_are_not_finite_fail_their_image_alone() -> None:
    assert answered((51, 4), (255, 4), (102, 4), (250, 4))[0] == [0.2, "bad_output", 0.4, "bad_output"]
    assert answered((255, 4), (255, 4))[0] == ["bad_output"] * 2


@pytest.mark.parametrize(
    ("weights", "match"),
    [
        ({"weight": torch.zeros(2, 3)}, r"1 weights are missing \(bias\)"),
        (
            {"weight": torch.zeros(2, 3), "bias": torch.zeros(2), "mask.w": torch.zeros(1)},
            r"none of the model's \(mask",
        ),
        ({"weight": torch.zeros(2, 4), "bias": torch.zeros(2)}, "size mismatch for weight"),
    ],
)
def test_weights_of_another_architecture_are_refused(weights: dict[str, torch.Tensor], match: str) -> None:
    with pytest.raises(UnavailableError, match=match):
        load_weights(nn.Linear(3, 2), weights, Path("a.pth"), ("extra.",))


def test_weights_that_are_not_used_may_be_there() -> None:
    model = nn.Linear(3, 2)
    given = {"weight": torch.ones(2, 3), "bias": torch.ones(2), "extra.w": torch.zeros(1)}
    load_weights(model, given, Path("a.pth"), ("extra.",))
    assert float(model.weight.sum().detach()) == 6.0
