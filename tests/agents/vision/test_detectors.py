"""The detectors that need no compiler, torchvision's Mask R-CNN and DETR, on random weights."""

from __future__ import annotations

import shutil
import urllib.error
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import tiny_detectors as tiny
import torch
from PIL import Image

from agents import catalogue
from agents.answers import ObjectAnswer
from agents.contract import Draw, Reply
from agents.errors import AnswerError, UnavailableError
from agents.pretrained import TORCHVISION
from agents.stimuli import ObjectStimulus
from agents.vision.detector import Detections, Detector, pick
from agents.vision.detr import DetrAgent
from agents.vision.torchvision_maskrcnn import FILES, TorchvisionMaskRCNNAgent

pytestmark = pytest.mark.usefixtures("one_thread")

EDGES = {"short_edge": tiny.SHORT, "long_edge": tiny.LONG}
Made = dict[str, Path]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    """A checkpoint of each kind, on disk as published ones are."""
    found: Made = {}
    for variant in ("v1", "v2"):
        folder = tmp_path_factory.mktemp(variant)
        torch.save(tiny.torchvision_model(variant).state_dict(), folder / "weights.pth")
        (folder / "RANDOM_WEIGHTS").touch()
        found[f"torchvision {variant}"] = folder / "weights.pth"
    found["detr"] = tiny.detr(tmp_path_factory.mktemp("detr"))
    yield found
    for path in found.values():
        shutil.rmtree(path if path.is_dir() else path.parent)


@pytest.fixture(scope="module")
def photographs(tmp_path_factory: pytest.TempPathFactory) -> list[ObjectStimulus]:
    return tiny.photographs(tmp_path_factory.mktemp("photographs"))


def make(kind: str, path: Path, **settings: Any) -> Detector[Any]:
    family, _, variant = kind.partition(" ")
    values = {"checkpoint": str(path), **EDGES, **settings}
    if family == "torchvision":
        chosen = TorchvisionMaskRCNNAgent.Settings.model_validate({"variant": variant, **values})
        return TorchvisionMaskRCNNAgent(chosen, "torchvision-maskrcnn")
    return DetrAgent(DetrAgent.Settings.model_validate(values), "detr-resnet-50")


def loaded(kind: str, path: Path, **settings: Any) -> Detector[Any]:
    agent = make(kind, path, **settings)
    assert agent.missing() is None
    agent.open()
    agent.load("cpu")
    return agent


def answers(agent: Detector[Any], shown: list[ObjectStimulus], batch: int) -> list[ObjectAnswer]:
    prepared = [agent.prepare(one) for one in shown]
    out: list[ObjectAnswer] = []
    for start in range(0, len(prepared), batch):
        part = prepared[start : start + batch]
        for reply in agent.respond(part, [Draw(1)] * len(part)):
            assert isinstance(reply, Reply), reply
            assert isinstance(reply.answer, ObjectAnswer)
            out.append(reply.answer)
    return out


def assert_same(found: ObjectAnswer, wanted: ObjectAnswer) -> None:
    """The same words; scores within 1e-3, boxes within a pixel."""
    assert found.labels == wanted.labels
    assert found.scores == pytest.approx(wanted.scores, abs=1e-3)
    assert found.boxes is not None
    assert wanted.boxes is not None
    for one, other in zip(found.boxes, wanted.boxes, strict=True):
        assert one == pytest.approx(other, abs=1.0)


def words(classes: Any, scores: Any, corners: Any, names: Any, size: tuple[int, ...]) -> ObjectAnswer:
    """The first three of a reference's detections, which are sorted by score, with its own class names."""
    kept = [index for index, number in enumerate(classes.tolist()) if names[number] != "N/A"][:3]
    height, width = size
    boxes = []
    for index in kept:
        left, top, right, bottom = corners[index].tolist()
        left, right = max(left, 0.0), min(right, width)
        top, bottom = max(top, 0.0), min(bottom, height)
        boxes.append([left, top, right - left, bottom - top])
    return ObjectAnswer(
        labels=[names[int(classes[index])] for index in kept],
        scores=[float(scores[index]) for index in kept],
        boxes=boxes,
    )


@pytest.mark.parametrize("variant", ["v1", "v2"])
def test_boxes_are_those_of_torchvisions_whole_model(
    variant: str, made: Made, photographs: list[ObjectStimulus], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Built by torchvision's own function with its published weights, for which ours are passed off; masks included."""
    from torchvision.models import detection

    path = made[f"torchvision {variant}"]
    published, build = (
        (detection.MaskRCNN_ResNet50_FPN_Weights, detection.maskrcnn_resnet50_fpn)
        if variant == "v1"
        else (detection.MaskRCNN_ResNet50_FPN_V2_Weights, detection.maskrcnn_resnet50_fpn_v2)
    )
    monkeypatch.setattr(published, "get_state_dict", lambda self, **kwargs: torch.load(path, weights_only=True))
    sizes = {"min_size": tiny.SHORT, "max_size": tiny.LONG}
    model = build(weights=published.COCO_V1, box_score_thresh=0.05, box_detections_per_img=10, **sizes).eval()
    names = published.COCO_V1.meta["categories"]
    chosen = photographs[1:3] if variant == "v1" else photographs[1:2]
    for shown, said in zip(chosen, answers(loaded(f"torchvision {variant}", path), chosen, 2), strict=True):
        pixels = tiny.rgb(shown)
        with torch.inference_mode():
            [whole] = model([torch.from_numpy(pixels).permute(2, 0, 1).float() / 255])
        assert len(whole["masks"]) == len(whole["boxes"]) > 3
        assert_same(said, words(whole["labels"], whole["scores"], whole["boxes"], names, pixels.shape[:2]))


@pytest.mark.parametrize("timm", [False, True], ids=["", "timm"])
def test_boxes_are_those_of_transformers_one_by_one(
    timm: bool, made: Made, photographs: list[ObjectStimulus], tmp_path: Path
) -> None:
    """The main revision of the published checkpoint has a backbone of timm's."""
    import transformers

    if timm:
        pytest.importorskip("timm")
    folder = tiny.detr(tmp_path / "timm", timm=True) if timm else made["detr"]
    model = transformers.DetrForObjectDetection.from_pretrained(folder).eval()
    processor = transformers.DetrImageProcessorPil.from_pretrained(folder)
    for shown, said in zip(photographs, answers(loaded("detr", folder), photographs, 8), strict=True):
        pixels = tiny.rgb(shown)
        given = processor(images=pixels, return_tensors="pt")
        with torch.inference_mode():
            output = model(**given)
        [whole] = processor.post_process_object_detection(output, 0.05, [pixels.shape[:2]])
        order = whole["scores"].argsort(descending=True)
        whole = {key: value[order] for key, value in whole.items()}
        assert_same(
            said, words(whole["labels"], whole["scores"], whole["boxes"], model.config.id2label, pixels.shape[:2])
        )


@pytest.mark.parametrize("kind", ["torchvision v1", "detr"])
def test_a_picture_may_be_narrow_but_not_a_line(kind: str, made: Made, tmp_path: Path) -> None:
    agent = loaded(kind, made[kind], long_edge=96)
    for width, name in ((60, "narrow.png"), (61, "line.png")):
        Image.new("RGB", (width * 48, 60), (200, 30, 30)).save(tmp_path / name)
    with pytest.raises(AnswerError, match="too narrow") as caught:
        agent.prepare(tiny.stimulus(tmp_path / "line.png"))
    assert caught.value.code == "image_too_narrow"
    [said] = answers(agent, [tiny.stimulus(tmp_path / "narrow.png")], 1)
    assert len(said.labels) <= 3


def test_files_that_are_not_the_models_are_refused(made: Made, tmp_path: Path) -> None:
    damaged, other = tmp_path / "damaged.pth", tmp_path / "other.pth"
    damaged.write_bytes(made["torchvision v1"].read_bytes()[:100_000])
    torch.save(torch.nn.Linear(3, 2).state_dict(), other)
    for kind, path, match in (
        ("torchvision v1", damaged, "damaged"),
        ("torchvision v1", other, "not a checkpoint of this architecture"),
        ("torchvision v2", made["torchvision v1"], "not a checkpoint of this architecture"),
    ):
        agent = make(kind, path)
        agent.open()
        with pytest.raises(UnavailableError, match=match):
            agent.load("cpu")


@pytest.mark.parametrize(
    ("spoil", "match"),
    [
        (lambda folder: (folder / "preprocessor_config.json").unlink(), "lacks preprocessor_config.json"),
        (lambda folder: (folder / "model.safetensors").unlink(), "lacks model.safetensors"),
        (lambda folder: (folder / "config.json").write_text('{"model_type": "yolos"}'), "'yolos', not 'detr'"),
    ],
)
def test_a_detr_folder_that_is_not_whole_is_refused(
    spoil: Callable[[Path], None], match: str, made: Made, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(made["detr"], tmp_path / "detr"))
    spoil(folder)
    agent = make("detr", folder)
    assert match in str(agent.missing())
    with pytest.raises(UnavailableError, match=match):
        agent.open()


def test_torchvisions_own_files_are_named_as_it_names_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from torchvision.models import detection

    assert TORCHVISION + FILES["v1"] == detection.MaskRCNN_ResNet50_FPN_Weights.COCO_V1.url
    assert TORCHVISION + FILES["v2"] == detection.MaskRCNN_ResNet50_FPN_V2_Weights.COCO_V1.url
    agent = TorchvisionMaskRCNNAgent(TorchvisionMaskRCNNAgent.Settings(), "torchvision-maskrcnn")
    for variable in ("TORCH_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / variable))
        assert agent.published().parents[1] == Path(torch.hub.get_dir())
        monkeypatch.delenv(variable)


def test_fetch_brings_torchvisions_file_once(made: Made, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    asked: list[tuple[str, str]] = []

    def download(url: str, target: str, hash_prefix: str) -> None:
        asked.append((url, hash_prefix))
        shutil.copy(made["torchvision v1"], target)

    monkeypatch.setattr(torch.hub, "download_url_to_file", download)
    agent = TorchvisionMaskRCNNAgent(TorchvisionMaskRCNNAgent.Settings(), "torchvision-maskrcnn")
    assert "run `turinglike fetch torchvision-maskrcnn`" in str(agent.missing())
    with pytest.raises(UnavailableError, match="turinglike fetch"):
        agent.load("cpu")
    for _ in range(2):
        [brought] = agent.fetch()
        assert brought.licence == "BSD-3-Clause"
        assert brought.size == made["torchvision v1"].stat().st_size
    assert asked == [(TORCHVISION + FILES["v1"], "bf2d0c1e")]
    assert agent.missing() is None

    def fail(url: str, target: str, hash_prefix: str) -> None:
        raise urllib.error.URLError("no network")

    monkeypatch.setattr(torch.hub, "download_url_to_file", fail)
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "empty"))
    with pytest.raises(UnavailableError, match="could not be downloaded"):
        agent.fetch()
    assert agent.missing() is not None


def test_detectron2_names_each_thing_above_a_half_once_as_the_published_answers_do() -> None:
    """The papers' notebook sets SCORE_THRESH_TEST to 0.5; of 43 published answers none has a label twice."""
    boxes = [(0, 0.99), (0, 0.98), (0, 0.97), (2, 0.6), (1, 0.4)]
    found = Detections(
        torch.tensor([number for number, _ in boxes]),
        torch.tensor([score for _, score in boxes]),
        torch.tensor([[0.0, 0.0, 9.0, 9.0]] * len(boxes)),
    )
    chosen = catalogue.get("detectron2-maskrcnn").make().settings
    said = pick(found, ("person", "bicycle", "car"), (10, 10), chosen)
    assert isinstance(said.answer, ObjectAnswer)
    assert said.answer.labels == ["person", "car"]
    assert said.raw["note"] == "2 of 3 distinct labels scored above 0.5"
    nothing = pick(
        Detections(*(part[4:] for part in (found.classes, found.scores, found.corners))), ("",) * 3, (10, 10), chosen
    )
    assert isinstance(nothing.answer, ObjectAnswer)
    assert nothing.answer.labels == []
