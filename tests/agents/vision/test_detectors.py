"""The detectors that need no compiler, on random weights, and the way from boxes to words."""

import shutil
import urllib.error
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from torch import nn

from agents import catalogue
from agents.answers import ObjectAnswer
from agents.contract import Draw
from agents.errors import AnswerError, UnavailableError
from agents.vision.detector import Detections, DetectionSettings, Detector, PreparedImage, pick
from tests.helpers import tiny_detectors as tiny

Made = dict[str, Path]
NAMES = ("__background__", "person", "dog", "N/A", "cat")
BOX = (10.0, 20.0, 60.0, 50.0)
Box = tuple[int, float, tuple[float, float, float, float]]


# from boxes to words


def answer(boxes: Sequence[Box], settings: DetectionSettings) -> ObjectAnswer:
    detections = Detections(
        torch.tensor([number for number, _, _ in boxes], dtype=torch.int64),
        torch.tensor([score for _, score, _ in boxes]),
        torch.tensor([corners for _, _, corners in boxes]).reshape(-1, 4),
    )
    reply = pick(detections, NAMES, (100, 200), settings)
    assert isinstance(reply.answer, ObjectAnswer)
    return reply.answer


FOUR = [(2, 0.4, BOX), (1, 0.9, BOX), (4, 0.3, BOX), (1, 0.8, BOX)]


@pytest.mark.parametrize(
    ("boxes", "settings", "labels"),
    [
        (FOUR, {}, ["person", "person", "dog"]),
        (FOUR, {"distinct": True, "top": 4}, ["person", "dog", "cat"]),
        ([(2, 0.4, BOX), (1, 0.05, BOX)], {}, ["dog"]),
        ([], {}, []),
        ([(1, 0.5, BOX), (2, 0.75, BOX)], {"threshold": 0.5, "top": 1}, ["dog"]),
        ([(3, 0.9, BOX), (0, 0.8, BOX), (4, 0.2, BOX)], {"top": 1}, ["cat"]),
        ([(1, 0.5, BOX), (4, 0.50001, BOX)], {"top": 2}, ["cat", "person"]),
    ],
    ids=["repeats", "distinct", "few", "none", "at the threshold", "nameless", "no tie"],
)
def test_labels_of_the_highest_scores(boxes: list[Box], settings: dict[str, Any], labels: list[str]) -> None:
    picked = answer(boxes, DetectionSettings(**settings))
    assert picked.labels == labels
    assert picked.scores == sorted(picked.scores or [], reverse=True)


def test_detectron2_names_each_thing_above_a_half_once_as_the_published_answers_do() -> None:
    """The papers' notebook sets SCORE_THRESH_TEST to 0.5; of 43 published answers none has a label twice."""
    chosen = catalogue.get("detectron2-maskrcnn").make().settings
    assert answer(FOUR, chosen).labels == ["person"]


def test_boxes_are_cut_at_the_image_and_ties_do_not_depend_on_their_order() -> None:
    cut = answer([(1, 0.9, BOX), (1, 0.8, (-5.0, 30.0, 300.0, 120.0))], DetectionSettings())
    assert cut.boxes == [[10.0, 20.0, 50.0, 30.0], [0.0, 30.0, 200.0, 70.0]]
    tied: list[Box] = [(4, 0.5, BOX), (1, 0.5 + 1e-7, (30, 0, 40, 9)), (1, 0.5, (20, 0, 40, 9)), (2, 0.5 - 1e-7, BOX)]
    first = answer(tied, DetectionSettings(top=4))
    assert first.labels == ["person", "person", "dog", "cat"]
    assert first.boxes is not None
    assert [box[0] for box in first.boxes[:2]] == [20.0, 30.0]
    assert answer(tied[::-1], DetectionSettings(top=4)) == first


class Brightest(Detector[DetectionSettings]):
    """Finds an object whose score is the image's mean; above 200 its head overflows."""

    Settings = DetectionSettings
    names = NAMES

    def load(self, device: str) -> None:
        self.head = nn.Identity()
        self._install(self.head, device, [self.head])
        self.groups: list[int] = []

    def detect(self, pixels: torch.Tensor, sizes: Sequence[tuple[int, int]]) -> Sequence[Detections]:
        self.groups.append(len(pixels))
        mean = pixels.float().mean((1, 2, 3))
        mean = self.head({"scores": [torch.where(mean > 200, torch.nan, mean)]})["scores"][0]
        return [Detections(torch.ones(1).long(), each / 255, torch.zeros(1, 4)) for each in mean[:, None]]


def test_images_of_a_shape_go_together_and_outputs_that_are_not_finite_fail_their_image_alone() -> None:
    agent = Brightest(DetectionSettings(), "brightest")
    agent.load("cpu")
    images = [(51, 4), (255, 4), (102, 8), (153, 4), (250, 4), (25, 8)]  # of a level and a height
    batch = [
        PreparedImage(torch.full((3, height, 4), level, dtype=torch.uint8), (height, 4)) for level, height in images
    ]
    replies = agent.respond(batch, [Draw(1)] * len(batch))
    scores = [reply.code if isinstance(reply, AnswerError) else reply.answer.scores[0] for reply in replies]
    assert scores == [0.2, "bad_output", 0.4, 0.6, "bad_output", 0.098]
    assert sorted(agent.groups) == [1, 1, 1, 1, 2, 4]


# the models


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    """A checkpoint of each, on disk as the published ones are."""
    folder = tmp_path_factory.mktemp("detectors")
    torch.save(tiny.torchvision_model().state_dict(), folder / "weights.pth")
    yield {"torchvision-maskrcnn": folder / "weights.pth", "detr-resnet-50": tiny.detr(folder / "detr")}
    shutil.rmtree(folder)


def make(name: str, path: Path, **settings: Any) -> Any:
    values = {"checkpoint": str(path), "short_edge": tiny.SHORT, "long_edge": tiny.LONG, **settings}
    return catalogue.get(name).make(values)


def assert_same(picked: ObjectAnswer, detections: Detections, names: Any, size: Sequence[int]) -> None:
    """Against a reference's detections: the same words; scores within 1e-3, boxes within a pixel."""
    order = detections.scores.argsort(descending=True)
    kept = [index for index in order.tolist() if names[int(detections.classes[index])] != "N/A"][:3]
    assert picked.labels == [names[int(detections.classes[index])] for index in kept]
    assert picked.scores == pytest.approx(detections.scores[kept].tolist(), abs=1e-3)
    assert picked.boxes is not None
    limits = torch.tensor([size[1], size[0]] * 2)
    corners = detections.corners[kept].clamp(min=0).minimum(limits).tolist()
    for (left, top, width, height), wanted in zip(picked.boxes, corners, strict=True):
        assert [left, top, left + width, top + height] == pytest.approx(wanted, abs=1.0)


def test_boxes_are_those_of_torchvisions_whole_model(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    """Built by torchvision's function with its published weights, for which ours are passed off; masks included."""
    from torchvision.models import detection

    path = made["torchvision-maskrcnn"]
    published = detection.MaskRCNN_ResNet50_FPN_Weights
    monkeypatch.setattr(published, "get_state_dict", lambda self, **kwargs: torch.load(path, weights_only=True))
    model = detection.maskrcnn_resnet50_fpn(
        weights=published.COCO_V1,
        box_score_thresh=0.05,
        box_detections_per_img=10,
        min_size=tiny.SHORT,
        max_size=tiny.LONG,
    ).eval()
    chosen = tiny.photographs()[1:3]
    for shown, picked in zip(chosen, tiny.answers(make("torchvision-maskrcnn", path), chosen), strict=True):
        with torch.inference_mode():
            [whole] = model([torch.from_numpy(shown.image.decode()).permute(2, 0, 1).float() / 255])
        assert len(whole["masks"]) == len(whole["boxes"]) > 3
        boxes = Detections(whole["labels"], whole["scores"], whole["boxes"])
        assert_same(picked, boxes, published.COCO_V1.meta["categories"], shown.image.decode().shape)


def test_boxes_are_those_of_transformers_singly(made: Made) -> None:
    import transformers

    folder = made["detr-resnet-50"]
    photographs = tiny.photographs()
    model = transformers.DetrForObjectDetection.from_pretrained(folder).eval()
    processor = transformers.DetrImageProcessorPil.from_pretrained(folder)
    for shown, picked in zip(photographs, tiny.answers(make("detr-resnet-50", folder), photographs), strict=True):
        pixels = shown.image.decode()
        with torch.inference_mode():
            output = model(**processor(images=pixels, return_tensors="pt"))
        [whole] = processor.post_process_object_detection(output, 0.05, [pixels.shape[:2]])
        boxes = Detections(whole["labels"], whole["scores"], whole["boxes"])
        assert_same(picked, boxes, model.config.id2label, pixels.shape)


@pytest.mark.parametrize("name", ["torchvision-maskrcnn", "detr-resnet-50"])
def test_a_picture_may_be_narrow_but_not_a_line(name: str, made: Made, tmp_path: Path) -> None:
    agent = make(name, made[name], long_edge=96)
    for width, file in ((60, "narrow.png"), (61, "line.png")):
        Image.new("RGB", (width * 48, 60), (200, 30, 30)).save(tmp_path / file)
    assert len(tiny.answers(agent, [tiny.stimulus(tmp_path / "narrow.png")])) == 1
    with pytest.raises(AnswerError, match="too narrow") as caught:
        agent.prepare(tiny.stimulus(tmp_path / "line.png"))
    assert caught.value.code == "image_too_narrow"


def test_fetch_brings_torchvisions_file_once(made: Made, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from torchvision.models import detection

    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    calls: list[tuple[str, str]] = []

    def download(url: str, target: str, hash_prefix: str) -> None:
        calls.append((url, hash_prefix))
        if len(calls) == 1:
            raise urllib.error.URLError("no network")
        shutil.copy(made["torchvision-maskrcnn"], target)

    monkeypatch.setattr(torch.hub, "download_url_to_file", download)
    agent = catalogue.get("torchvision-maskrcnn").make()
    assert agent.published().parents[1] == Path(torch.hub.get_dir())
    assert "run `turinglike fetch torchvision-maskrcnn`" in str(agent.missing())
    with pytest.raises(UnavailableError, match="could not be downloaded"):
        agent.fetch()
    for _ in range(2):
        [brought] = agent.fetch()
        assert brought.licence == "BSD-3-Clause"
    assert calls == [(detection.MaskRCNN_ResNet50_FPN_Weights.COCO_V1.url, "bf2d0c1e")] * 2
    assert agent.missing() is None
