"""What the detectors share: from boxes to words, and batches in which one image's outputs are not finite."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from torch import nn

from agents.answers import ObjectAnswer
from agents.contract import Draw, Reply
from agents.errors import AnswerError, UnavailableError
from agents.vision.detector import Detections, DetectionSettings, Detector, Prepared, pick
from agents.weights_file import load_weights

NAMES = ("__background__", "person", "dog", "N/A", "cat")


def found(*boxes: tuple[int, float, tuple[float, float, float, float]]) -> Detections:
    return Detections(
        torch.tensor([number for number, _, _ in boxes], dtype=torch.int64),
        torch.tensor([score for _, score, _ in boxes]),
        torch.tensor([corners for _, _, corners in boxes]).reshape(-1, 4),
    )


def answer(boxes: Detections, **settings: object) -> tuple[ObjectAnswer, dict[str, object]]:
    reply = pick(boxes, NAMES, (100, 200), DetectionSettings.model_validate(settings))
    assert isinstance(reply.answer, ObjectAnswer)
    return reply.answer, reply.raw


BOX = (10.0, 20.0, 60.0, 50.0)


def test_three_labels_of_the_highest_scores_with_repeats() -> None:
    boxes = found((2, 0.4, BOX), (1, 0.9, (0, 0, 5, 5)), (4, 0.3, BOX), (1, 0.8, BOX))
    said, raw = answer(boxes)
    assert said.labels == ["person", "person", "dog"]
    assert said.scores == [0.9, 0.8, 0.4]
    assert said.boxes == [[0.0, 0.0, 5.0, 5.0], [10.0, 20.0, 50.0, 30.0], [10.0, 20.0, 50.0, 30.0]]
    assert raw == {"detections": 4}


def test_distinct_labels_are_given_once() -> None:
    boxes = found((2, 0.4, BOX), (1, 0.9, BOX), (4, 0.3, BOX), (1, 0.8, BOX))
    assert answer(boxes, distinct=True)[0].labels == ["person", "dog", "cat"]
    said, raw = answer(boxes, distinct=True, top=4)
    assert said.labels == ["person", "dog", "cat"]
    assert raw == {"detections": 4, "note": "3 of 4 distinct labels scored above 0.05"}


def test_fewer_than_three_are_said_so() -> None:
    said, raw = answer(found((2, 0.4, BOX), (1, 0.05, BOX)), threshold=0.05)
    assert said.labels == ["dog"]
    assert raw == {"detections": 1, "note": "1 of 3 objects scored above 0.05"}


def test_an_image_without_objects_is_answered() -> None:
    said, raw = answer(found())
    assert said == ObjectAnswer(labels=[], scores=[], boxes=[])
    assert raw == {"detections": 0, "note": "0 of 3 objects scored above 0.05"}


def test_a_score_at_the_threshold_does_not_count() -> None:
    assert answer(found((1, 0.5, BOX), (2, 0.75, BOX)), threshold=0.5)[0].labels == ["dog"]


def test_classes_without_a_name_are_passed_over() -> None:
    said, raw = answer(found((3, 0.9, BOX), (0, 0.8, BOX), (4, 0.2, BOX)))
    assert said.labels == ["cat"]
    assert raw["detections"] == 1


def test_ties_do_not_depend_on_the_order_of_the_boxes() -> None:
    tied = [(4, 0.5, BOX), (1, 0.5 + 1e-7, (30, 0, 40, 9)), (1, 0.5, (20, 0, 40, 9)), (2, 0.5 - 1e-7, BOX)]
    said, _ = answer(found(*tied), top=4)
    assert said.labels == ["person", "person", "dog", "cat"]
    assert said.boxes is not None
    assert [box[0] for box in said.boxes[:2]] == [20.0, 30.0]
    assert answer(found(*reversed(tied)), top=4)[0] == said


def test_scores_that_differ_are_not_a_tie() -> None:
    assert answer(found((1, 0.5, BOX), (4, 0.50001, BOX)))[0].labels == ["cat", "person"]


def test_boxes_are_cut_at_the_image() -> None:
    said, _ = answer(found((1, 0.9, (-5.0, 30.0, 300.0, 120.0))))
    assert said.boxes == [[0.0, 30.0, 200.0, 70.0]]


class Brightest(Detector[DetectionSettings]):
    """Finds one object whose score is the image's mean; above 200 its head overflows."""

    Settings = DetectionSettings
    names = NAMES

    def load(self, device: str) -> None:
        self.head = nn.Identity()
        self._place(self.head, device, [self.head])
        self.groups: list[int] = []

    def detect(self, pixels: torch.Tensor, sizes: Sequence[tuple[int, int]]) -> Sequence[Detections]:
        self.groups.append(len(pixels))
        mean = pixels.float().mean((1, 2, 3))
        mean = self.head({"scores": [torch.where(mean > 200, torch.nan, mean)]})["scores"][0]
        kept = [one[one.isfinite()] / 255 for one in mean[:, None]]  # as the real ones drop what is not finite
        return [Detections(torch.ones_like(s).long(), s, torch.zeros(len(s), 4)) for s in kept]


def brightest() -> Brightest:
    agent = Brightest(DetectionSettings(), "brightest")
    agent.load("cpu")
    return agent


def grey(level: int, height: int = 4, width: int = 4) -> Prepared:
    return Prepared(torch.full((3, height, width), level, dtype=torch.uint8), (height, width))


def scores(replies: Sequence[Reply | Exception]) -> list[float | str]:
    out: list[float | str] = []
    for reply in replies:
        if isinstance(reply, AnswerError):
            out.append(reply.code)
        else:
            assert isinstance(reply, Reply)
            assert isinstance(reply.answer, ObjectAnswer)
            out.extend(reply.answer.scores or [])
    return out


def test_the_order_is_kept_and_images_of_one_shape_go_together() -> None:
    agent = brightest()
    batch = [grey(51), grey(102, 8), grey(153), grey(204 - 51, 8), grey(25)]
    assert scores(agent.respond(batch, [Draw(1)] * 5)) == [0.2, 0.4, 0.6, 0.6, 0.098]
    assert sorted(agent.groups) == [2, 3]


def test_outputs_that_are_not_finite_fail_their_image_alone() -> None:
    agent = brightest()
    replies = agent.respond([grey(51), grey(255), grey(102), grey(250)], [Draw(1)] * 4)
    assert scores(replies) == [0.2, "bad_output", 0.4, "bad_output"]


def test_a_batch_of_nothing_finite_fails_whole() -> None:
    assert scores(brightest().respond([grey(255)] * 3, [Draw(1)] * 3)) == ["bad_output"] * 3


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


def test_the_agents_are_listed_without_importing_torch() -> None:
    code = (
        "import sys; from agents.vision import detr, detectron2_maskrcnn, torchvision_maskrcnn, zoo_pickle;"
        "from agents.vision.torchvision_maskrcnn import TorchvisionMaskRCNNAgent as A; A(A.Settings(), 'a').missing();"
        "from agents.vision.detectron2_maskrcnn import Detectron2Agent as B; B(B.Settings(), 'b').missing();"
        "print([name for name in ('torch', 'torchvision', 'transformers', 'detectron2', 'cv2') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
