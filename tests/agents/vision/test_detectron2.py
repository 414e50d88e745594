"""Detectron2 itself, on random weights of its zoo's models. Skipped, with the reason, where it is not installed."""

from __future__ import annotations

import pickle
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tiny_detectors as tiny
import torch

from agents.answers import ObjectAnswer
from agents.contract import Draw, Reply
from agents.errors import UnavailableError
from agents.stimuli import ObjectStimulus
from agents.vision.detectron2_maskrcnn import Detectron2Agent

with warnings.catch_warnings():  # of what it imports; it is older than the torch it runs on
    warnings.simplefilter("ignore")
    pytest.importorskip("detectron2", reason="detectron2 is not installed: it has to be built from its repository")
    import detectron2.engine
    import detectron2.model_zoo

pytestmark = pytest.mark.filterwarnings("ignore:torch.meshgrid:UserWarning")  # of its anchors

RETINANET = "COCO-Detection/retinanet_R_50_FPN_3x.yaml"
CASCADE = "Misc/cascade_mask_rcnn_R_50_FPN_1x.yaml"
Made = dict[str, Path]


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(autouse=True)
def _tidy(tmp_path: Path) -> Iterator[None]:
    """Weights take 180 MB a file: they are not left behind."""
    yield
    shutil.rmtree(tmp_path)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    """Pickles in the zoo's form, masks included, by config."""
    folder = tmp_path_factory.mktemp("zoo")
    yield {
        config: tiny.zoo_pickle(tiny.detectron2_model(config), folder / f"{number}.pkl")
        for number, config in enumerate((tiny.ZOO_CONFIG, RETINANET))
    }
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def photographs(tmp_path_factory: pytest.TempPathFactory) -> list[ObjectStimulus]:
    return tiny.photographs(tmp_path_factory.mktemp("photographs"))


def make(**settings: Any) -> Detectron2Agent:
    """All boxes of random weights score low: the threshold is Detectron2's own."""
    values = {"short_edge": tiny.SHORT, "long_edge": tiny.LONG, "threshold": 0.05, "distinct": False, **settings}
    return Detectron2Agent(Detectron2Agent.Settings.model_validate(values), "detectron2-maskrcnn")


def converted(path: Path, **settings: Any) -> Detectron2Agent:
    agent = make(checkpoint=str(path), **settings)
    agent.fetch()
    return agent


def loaded(path: Path, **settings: Any) -> Detectron2Agent:
    agent = converted(path, **settings)
    assert agent.missing() is None
    agent.open()
    agent.load("cpu")
    return agent


def answers(agent: Detectron2Agent, shown: list[ObjectStimulus], batch: int) -> list[ObjectAnswer]:
    prepared = [agent.prepare(one) for one in shown]
    out: list[ObjectAnswer] = []
    for start in range(0, len(prepared), batch):
        part = prepared[start : start + batch]
        for reply in agent.respond(part, [Draw(1)] * len(part)):
            assert isinstance(reply, Reply), reply
            assert isinstance(reply.answer, ObjectAnswer)
            out.append(reply.answer)
    return out


def test_a_batch_of_four_is_four_single_runs(made: Made, photographs: list[ObjectStimulus]) -> None:
    agent = loaded(made[tiny.ZOO_CONFIG])
    chosen = [photographs[index] for index in (1, 2, 4, 6)]
    shapes = [tuple(agent.prepare(one).pixels.shape) for one in chosen]
    assert len(set(shapes[:3])) == 1  # three of one size, and a turned one
    assert shapes[3] != shapes[0]
    alone = answers(agent, chosen, 1)
    assert all(len(one.labels) == 3 for one in alone)
    assert len({tuple(one.labels) for one in alone}) > 1
    for one, other in zip(answers(agent, chosen, 4), alone, strict=True):
        assert one.labels == other.labels
        assert one.scores == pytest.approx(other.scores, abs=1e-3)


@pytest.mark.parametrize("config", [tiny.ZOO_CONFIG, RETINANET])
def test_labels_are_those_of_the_default_predictor(config: str, made: Made, photographs: list[ObjectStimulus]) -> None:
    """With the same pickle, read by Detectron2's own loader, and pixels in the order that cv2.imread gives."""
    about = tiny.detectron2_config(config)
    about.MODEL.WEIGHTS = str(made[config])
    about.MODEL.MASK_ON = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        predictor = detectron2.engine.DefaultPredictor(about)
    names = predictor.metadata.thing_classes
    chosen = photographs[:4]
    for shown, said in zip(chosen, answers(loaded(made[config], config=config), chosen, 4), strict=True):
        found = predictor(tiny.rgb(shown)[..., ::-1])["instances"]
        assert len(found) >= 3
        assert said.labels == [names[number] for number in found.pred_classes[:3].tolist()]
        assert said.scores == pytest.approx(found.scores[:3].tolist(), abs=1e-3)
        corners = found.pred_boxes.tensor[:3]
        wanted = torch.cat([corners[:, :2], corners[:, 2:] - corners[:, :2]], 1)
        torch.testing.assert_close(torch.tensor(said.boxes), wanted, atol=1.0, rtol=0)


def test_fetch_converts_the_zoos_pickle_and_leaves_none(
    made: Made, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    asked: list[str] = []

    def download(url: str, target: str) -> None:
        asked.append(url)
        shutil.copy(made[tiny.ZOO_CONFIG], target)

    monkeypatch.setattr(torch.hub, "download_url_to_file", download)
    agent = make()
    assert "run `turinglike fetch detectron2-maskrcnn`" in str(agent.missing())
    for _ in range(2):
        [brought] = agent.fetch()
        assert brought.licence == "CC-BY-SA-3.0"
    assert asked == [detectron2.model_zoo.get_checkpoint_url(tiny.ZOO_CONFIG)]
    assert agent.missing() is None
    files = [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()]
    assert files == ["turinglike/detectron2/COCO-InstanceSegmentation/mask_rcnn_R_50_FPN_3x.safetensors"]
    agent.open()
    agent.load("cpu")
    assert agent.provenance()["detectron2"] == detectron2.__version__
    (brought.path.parent / "RANDOM_WEIGHTS").touch()
    assert agent.provenance()["random_weights"] is True
    assert str(agent.checkpoint()[1]).startswith("sha256:")


def test_a_pickle_is_not_opened_to_answer(tmp_path: Path) -> None:
    path = tmp_path / "weights.pkl"
    path.write_bytes(pickle.dumps({"model": {}}))
    agent = make(checkpoint=str(path))
    assert "is a pickle, which no agent opens" in str(agent.missing())
    agent.open()
    with pytest.raises(UnavailableError, match="is a pickle"):
        agent.load("cpu")


@pytest.mark.parametrize(
    ("config", "match"),
    [
        ("COCO-PanopticSegmentation/panoptic_fpn_R_50_3x.yaml", "PanopticFPN does not find objects by itself"),
        ("COCO-Detection/fast_rcnn_R_50_FPN_1x.yaml", "does not find objects by itself"),
        ("COCO-Detection/no_such_model.yaml", "no such config"),
    ],
)
def test_configs_that_cannot_answer_are_refused(config: str, match: str) -> None:
    with pytest.raises(UnavailableError, match=match):
        make(config=config).open()
