"""Detectron2: its model zoo's pickles, and Detectron2 itself, on random weights, where it is installed."""

import importlib.util
import pickle
import shutil
import warnings
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from safetensors.numpy import save_file

from agents.capabilities import provenance_of
from agents.errors import UnavailableError
from agents.vision.detectron2_maskrcnn import Detectron2Agent, read_arrays
from tests.helpers import pickles
from tests.helpers import tiny_detectors as tiny

pytestmark = [
    pytest.mark.filterwarnings("ignore:torch.meshgrid:UserWarning"),  # of its anchors
]
needs_detectron2 = pytest.mark.skipif(
    importlib.util.find_spec("detectron2") is None,
    reason="detectron2 is not installed: it has to be built from its repository",
)

ARRAYS: dict[str, NDArray[Any]] = {
    "backbone.weight": np.linspace(-1, 1, 24, dtype=np.float32).reshape(2, 3, 4),
    "half": np.array([[1.5, -2.25]], dtype=np.float16),
    "by columns": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "big-endian": np.arange(3, dtype=">i4"),
    "count": np.array(7, dtype=np.int64),
    "flags": np.array([True, False]),
}


def read(content: Any, folder: Path) -> dict[str, NDArray[Any]]:
    path = folder / "weights.pkl"
    path.write_bytes(content if isinstance(content, bytes) else pickle.dumps(content, 3))
    return read_arrays(path)


def test_arrays_come_out_of_a_pickle_as_they_went_in(tmp_path: Path) -> None:
    arrays = read({"model": OrderedDict(ARRAYS), "__author__": "Detectron2 Model Zoo"}, tmp_path)
    assert list(arrays) == list(ARRAYS)
    for name, value in ARRAYS.items():
        assert arrays[name].dtype == value.dtype.newbyteorder("=")
        assert arrays[name].shape == value.shape
        np.testing.assert_array_equal(arrays[name], value)


def test_a_file_of_python_2_and_an_old_numpy_is_read(tmp_path: Path) -> None:
    """Written by hand: text where there are bytes now, and numpy.core where there is numpy._core now."""
    values = np.array([1.0, -128.5], dtype="<f4")
    parts = [
        b"\x80\x02}U\x05model}U\x01w",
        b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\nK\x00\x85U\x01btR",
        b"(K\x01K\x02\x85cnumpy\ndtype\n(U\x02f4K\x00K\x01tR(K\x03U\x01<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb",
        b"\x89U\x08" + values.tobytes() + b"tbss.",
    ]
    np.testing.assert_array_equal(read(b"".join(parts), tmp_path)["w"], values)


def test_code_in_a_pickle_is_refused_and_not_executed(tmp_path: Path) -> None:
    mark = tmp_path / "executed"
    content = {"model": dict(ARRAYS), "optimizer": pickles.Armed(mark)}
    with pytest.raises(UnavailableError, match=r"weights.pkl asks for [\w.]+, .*nothing was executed$"):
        read(content, tmp_path)
    assert not mark.exists()


@pytest.mark.parametrize(
    ("content", "match"),
    [
        ({"blobs": {}}, "no arrays by name under 'model'"),
        ({"model": {"w": [1.0, 2.0]}}, "no arrays by name"),
        ({"model": {3: ARRAYS["half"]}}, "no arrays by name"),
        ({"model": {"w": np.array([{}, None])}}, "no arrays by name"),
        (pickle.dumps({"model": ARRAYS}, 3)[:150], "cannot be read"),
    ],
)
def test_other_files_are_refused_in_a_sentence(content: Any, match: str, tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match=match) as caught:
        read(content, tmp_path)
    assert "\n" not in str(caught.value)


# Detectron2 itself


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A pickle in the zoo's form, masks included."""
    folder = tmp_path_factory.mktemp("zoo")
    yield tiny.zoo_pickle(tiny.detectron2_model(), folder / "weights.pkl")
    shutil.rmtree(folder)


def make(**settings: Any) -> Detectron2Agent:
    """All boxes of random weights score low: the threshold is Detectron2's default."""
    values = {"short_edge": tiny.SHORT, "long_edge": tiny.LONG, "threshold": 0.05, "distinct": False, **settings}
    return Detectron2Agent(Detectron2Agent.Settings.model_validate(values), "detectron2-maskrcnn")


@needs_detectron2
def test_labels_are_those_of_the_default_predictor(made: Path) -> None:
    """With the same pickle, read by Detectron2's loader, and pixels in the order that cv2.imread gives."""
    checkpoint = made.with_suffix(".safetensors")
    save_file(read_arrays(made), checkpoint)
    with warnings.catch_warnings():  # of what it imports; it is older than the torch it runs on
        warnings.simplefilter("ignore")
        import detectron2.engine

        about = tiny.detectron2_config()
        about.MODEL.WEIGHTS = str(made)
        about.MODEL.MASK_ON = False
        predictor = detectron2.engine.DefaultPredictor(about)
    names = predictor.metadata.thing_classes
    chosen = tiny.photographs()[:4]
    for stimulus, answer in zip(chosen, tiny.answers(make(checkpoint=str(checkpoint)), chosen), strict=True):
        instances = predictor(stimulus.image.decode()[..., ::-1])["instances"]
        assert len(instances) >= 3
        assert answer.labels == [names[number] for number in instances.pred_classes[:3].tolist()]
        assert answer.scores == pytest.approx(instances.scores[:3].tolist(), abs=1e-3)
        corners = instances.pred_boxes.tensor[:3]
        wanted = torch.cat([corners[:, :2], corners[:, 2:] - corners[:, :2]], 1)
        torch.testing.assert_close(torch.tensor(answer.boxes), wanted, atol=1.0, rtol=0)


@needs_detectron2
def test_fetch_converts_the_zoos_pickle_and_leaves_none(
    made: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import detectron2
    import detectron2.model_zoo

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    addresses: list[str] = []

    def download(url: str, target: str, hash_prefix: str | None) -> None:
        addresses.append(url)
        shutil.copy(made, target)

    monkeypatch.setattr(torch.hub, "download_url_to_file", download)
    agent = make()
    assert "run `turinglike fetch detectron2-maskrcnn`" in str(agent.missing())
    for _ in range(2):
        [brought] = agent.fetch()
        assert brought.licence == "CC-BY-SA-3.0"
    assert addresses == [detectron2.model_zoo.get_checkpoint_url(tiny.ZOO_CONFIG)]
    files = [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()]
    assert files == ["turinglike/detectron2/COCO-InstanceSegmentation/mask_rcnn_R_50_FPN_3x.safetensors"]
    agent.open()
    agent.load("cpu")
    assert provenance_of(agent)["detectron2"] == detectron2.__version__
