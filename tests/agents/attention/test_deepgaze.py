"""The agent ``deepgaze3`` beside its authors' own class; what needs their package is skipped where that is not."""

import importlib.util
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from agents import catalogue
from agents.attention.deepgaze import DeepGazeAgent
from agents.contract import Draw
from agents.errors import AnswerError, UnavailableError
from tests.agents.attention.gaze_cases import answers, files, loaded, pixels, stimulus
from tests.helpers import tiny_vgg

needs_package = pytest.mark.skipif(
    importlib.util.find_spec("deepgaze_pytorch") is None, reason="deepgaze_pytorch is not installed"
)
SIZES = [(90, 120), (120, 90), (90, 120), (150, 200), (64, 64)]  # height, width
SIDE = 128


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Random weights and a centre bias."""
    folder = tiny_vgg.deepgaze(tmp_path_factory.mktemp("deepgaze")).parent
    rows, columns = np.mgrid[-1:1:40j, -1:1:50j]
    np.save(folder / "bias.npy", -2 * (rows**2 + columns**2))
    return folder


@pytest.fixture(scope="module")
def authors(weights: Path) -> Any:
    """Their class as they write it, but for the network that its DenseNet would come over."""
    from deepgaze_pytorch import deepgaze3
    from safetensors.torch import load_file
    from torchvision.models import densenet201

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.hub, "load", lambda *given, **more: densenet201(weights=None))
        model = deepgaze3.DeepGazeIII(pretrained=False)
    model.load_state_dict(load_file(weights / "w.safetensors"))
    return model.eval()


def agent(weights: Path, **chosen: Any) -> Any:
    chosen = {"longer_side": SIDE, "center_bias": str(weights / "bias.npy"), **chosen}
    return loaded(DeepGazeAgent, "deepgaze3", checkpoint=str(weights / "w.safetensors"), **chosen)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return files(tmp_path_factory.mktemp("pictures"), SIZES)


def plain_path(model: Any, path: Path, bias: NDArray[Any], window: int, maximum: int) -> list[Any]:
    """One picture, one fixation after the other, every map computed anew; by the method's description."""
    shown = pixels(path)
    height, width, _ = shown.shape
    scale = SIDE / max(height, width)
    columns = round(width * scale)
    rows = round(height * scale)
    resized = cv2.resize(shown, (columns, rows), interpolation=cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR)
    near = np.array(
        [[bias[int((r + 0.5) * 40 / rows), int((c + 0.5) * 50 / columns)] for c in range(columns)] for r in range(rows)]
    )
    near -= np.log(np.exp(near).sum())
    fixations = [(width // 2, height // 2)]
    while len(fixations) < maximum:
        latest = [*reversed(fixations)][:4]
        xs = [(x + 0.5) * columns / width - 0.5 for x, _ in latest] + [np.nan] * (4 - len(latest))
        ys = [(y + 0.5) * rows / height - 0.5 for _, y in latest] + [np.nan] * (4 - len(latest))
        with torch.no_grad():
            density = model(
                torch.tensor(resized.transpose(2, 0, 1)[None]).float(),
                torch.tensor(near[None]).float(),
                torch.tensor([xs]).float(),
                torch.tensor([ys]).float(),
            )[0, 0].numpy()
        best = -np.inf
        chosen = None
        for r in range(rows):
            y = int((r + 0.5) * height / rows)
            for c in range(columns):
                x = int((c + 0.5) * width / columns)
                free = all(max(abs(x - px), abs(y - py)) > window // 2 for px, py in fixations)
                if free and density[r, c] > best:
                    best = density[r, c]
                    chosen = (x, y)
        if chosen is None:
            break
        fixations.append(chosen)
    return fixations


@needs_package
def test_paths_are_those_of_the_authors_model_in_any_batch(weights: Path, authors: Any, pictures: list[Path]) -> None:
    made = agent(weights, window_pixels=24, max_free=9)
    bias = np.load(weights / "bias.npy")
    together = answers(made, [stimulus(path) for path in pictures])
    alone = [answers(made, [stimulus(path)])[0] for path in pictures]
    assert together == alone
    for path, answer in zip(pictures, together, strict=True):
        expected = plain_path(authors, path, bias, 24, 9)
        assert [tuple(point) for point in answer["fixations"]] == expected
        assert len(expected) > 5
        assert answer["selection"] == "maximum, square inhibition"


@needs_package
def test_draws_follow_the_density(weights: Path, authors: Any, pictures: list[Path]) -> None:
    """The second fixation of 1,000 paths on one picture, by sixteen parts of it, against the authors' density."""
    made = agent(weights, choice="sample", max_free=2, center_bias="uniform")
    many = 1000
    made.settings = made.settings.model_copy(update={"longer_side": 64})
    item = made.prepare(stimulus(pictures[4]))
    found = np.zeros((4, 4))
    for start in range(0, many, 100):
        for reply in made.respond([item] * 100, [Draw(seed=start + n) for n in range(100)]):
            x, y = reply.answer.fixations[1]
            found[y // 16, x // 16] += 1
    picture = item[0][None]
    nowhere = [float("nan")] * 3
    with torch.no_grad():
        flat = torch.full((1, 64, 64), -np.log(64 * 64))
        density = authors(picture, flat, torch.tensor([[32.0, *nowhere]]), torch.tensor([[32.0, *nowhere]]))[0, 0].exp()
    expected = many * density.view(4, 16, 4, 16).sum((1, 3)).double().numpy()
    assert expected.min() > 5
    assert expected.max() > 1.3 * expected.min()  # a uniform draw would be found out
    assert ((found - expected) ** 2 / expected).sum() < 37.7  # chi-square with 15 degrees: one sample in a thousand
    assert answers(made, [stimulus(pictures[4])])[0]["selection"] == "drawn from the density"


@needs_package
def test_the_pictures_scale_is_the_stimulus_or_assumed(weights: Path, pictures: list[Path]) -> None:
    made = agent(weights)
    known = made.prepare(stimulus(pictures[3], pixels_per_degree=70.0))
    assert tuple(known[0].shape) == (3, 75, 100)
    assert known[2] == {"pixels_per_degree": 70.0, "assumed": False}
    assumed = made.prepare(stimulus(pictures[3]))
    assert tuple(assumed[0].shape) == (3, 96, 128)
    assert assumed[2] == {"pixels_per_degree": pytest.approx(35 * 200 / 128, abs=1e-3), "assumed": True}
    for impossible in (3500.0, 0.1):
        with pytest.raises(AnswerError, match="64 to 4096") as error:
            made.prepare(stimulus(pictures[3], pixels_per_degree=impossible))
        assert error.value.code == "image_too_narrow"


@pytest.mark.parametrize(("chosen", "message"), [("mit1003", "center_bias=uniform"), ("./no.npy", "./no.npy: no such")])
def test_a_centre_bias_that_is_not_there_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chosen: str, message: str
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    (tmp_path / "hub" / "checkpoints").mkdir(parents=True)
    (tmp_path / "hub" / "checkpoints" / "deepgaze3.pth").touch()
    assert message in catalogue.get("deepgaze3").make({"center_bias": chosen}).missing()


def test_published_files_are_fetched_from_the_authors_releases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    asked = []

    def fake(url: str, path: str, hash_prefix: str | None = None) -> None:
        asked.append(url)
        with open(path, "wb") as file:
            file.write(b"x")

    monkeypatch.setattr(torch.hub, "download_url_to_file", fake)
    catalogue.get("deepgaze3").make().fetch()
    site = "https://github.com/matthias-k/DeepGaze/releases/download/"
    assert sorted(asked) == [site + "v1.0.0/centerbias_mit1003.npy", site + "v1.1.0/deepgaze3.pth"]


@pytest.mark.parametrize(
    "bad", [np.zeros(5), np.zeros((2, 2), np.int64), np.array([[np.nan, 0.0]]), np.array([[{}]], object), None]
)
def test_a_bad_centre_bias_is_refused(tmp_path: Path, bad: Any) -> None:
    path = tmp_path / "bias.npy"
    if bad is None:
        path.write_bytes(b"\x93NUMPY junk")
    else:
        np.save(path, bad, allow_pickle=True)
    made = catalogue.get("deepgaze3").make({"center_bias": str(path)})
    with pytest.raises(UnavailableError, match=r"bias\.npy"):
        made.open()
