"""The agent ``return-fixations``: its choice of fixations against hand and a plain loop, its maps, its answers."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from PIL import Image as PILImage

from agents.attention.models import return_fixations as return_model
from agents.attention.models import similarity
from agents.attention.models.fixations import Plan
from agents.attention.return_fixations import ReturnFixations
from tests.agents.attention import return_reference as reference
from tests.agents.attention.gaze_cases import answers, files, loaded, pixels, search, stimulus

FRAME = (1280, 1024)
SIZES = (48, 32, 16)


def cells(path: Any) -> list[tuple[int, int]]:
    """The cells of a scanpath on FRAME, whose cells are 20 x 16 pixels."""
    assert all((x - 10) % 20 == 0 and (y - 8) % 16 == 0 for x, y in path.fixations)
    return [(y // 16, x // 20) for x, y in path.fixations]


# --- the choice of fixations ------------------------------------------------------------------------------------------


@st.composite
def fields(draw: st.DrawFn) -> Any:
    """A map of plateaus (many ties) or of noise, and a prior likewise."""
    coarse = draw(hnp.arrays(np.float64, (8, 8), elements=st.sampled_from([0.0, 0.25, 0.3, 0.9, 1.0])))
    noise = draw(st.sampled_from([0.0, 1e-9, 0.01, 0.3]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    saliency = np.kron(coarse, np.ones((8, 8))) + noise * rng.random((64, 64))
    prior = np.zeros((128, 128)) if draw(st.booleans()) else rng.integers(0, 5, (128, 128)) / 4
    return np.minimum(saliency, 1.0), prior


@settings(max_examples=25)
@given(
    st.lists(st.tuples(fields(), st.sampled_from(sorted(reference.SETS)), st.integers(1, 12)), min_size=1, max_size=2),
    st.sampled_from([(1.0, 0.2346, 0.93, 0.92), (0.5, 1.0, 0.3, 0.6), (1.0, 0.0, 2.0, 1.0)]),
)
def test_every_path_is_the_plain_loops(items: Any, weights: Any) -> None:
    prior = items[0][0][1]
    paths = return_model.returning_scanpaths(
        torch.from_numpy(np.stack([saliency for (saliency, _), _, _ in items])),
        [Plan(FRAME, 200, maximum) for _, _, maximum in items],
        [return_model.MEMORIES[name] for _, name, _ in items],
        torch.from_numpy(prior).expand(len(items), -1, -1),
        return_model.TermWeights(*weights),
    )
    for path, ((saliency, _), name, maximum) in zip(paths, items, strict=True):
        expected, _ = reference.choose(
            saliency, prior.tolist(), *reference.SETS[name], maximum, weights=weights[:3], decay=weights[3]
        )
        assert cells(path) == [divmod(cell, 64) for cell in expected]


def test_the_published_fixations_of_one_picture() -> None:
    """gray004 of kreimanlab/RefixationModel (MIT, (c) 2020 Kreiman Lab): the authors' map is in the file beside this
    one, and the last of their fixations, 3675, is not ours."""
    with PILImage.open(Path(__file__).with_name("gray004_map.png")) as picture:
        saliency = np.asarray(picture) / 255
    published = [2016, 2650, 3206, 2703, 3209, 2664, 1457, 353, 1246, 2076, 2841, 3547, 3553, 3936]
    prior = torch.as_tensor(return_model.saccade_prior("free"))
    memory = return_model.MEMORIES["natural"]
    weights = return_model.TermWeights()
    [path] = return_model.returning_scanpaths(
        torch.as_tensor(saliency)[None], [Plan(FRAME, 200, 15)], [memory], prior[None], weights
    )
    assert [64 * row + column for row, column in cells(path)[:14]] == published


# What the authors' program reads of its pictures (kreimanlab/RefixationModel, IOR_NC/Figures, MIT), in 0..255: each
# picture at 128 x 128 by Pillow's nearest pixel, (rows, columns) from the cell that is fixated.
PLACES = [(0, 0), (1, 1), (0, 3), (-3, 4), (-4, -3), (10, 0), (0, 20), (31, -31), (-63, 60)]
AUTHORS = {
    "free": [0, 0, 58, 253, 244, 182, 117, 19, 0],
    "natural": [0, 0, 48, 251, 251, 173, 71, 10, 0],
    "waldo": [0, 0, 49, 252, 248, 159, 58, 6, 0],
}


@pytest.mark.parametrize("viewing", AUTHORS)
def test_the_saccade_priors_are_the_authors_pictures(viewing: str) -> None:
    prior = return_model.saccade_prior(viewing)
    assert prior.shape == (128, 128)
    levels = [255 * prior[64 + rows, 64 + columns] for rows, columns in PLACES]
    assert levels == pytest.approx(AUTHORS[viewing], abs=6)  # theirs are JPEG files
    assert "Copyright (c) 2020 Kreiman Lab" in return_model.AMPLITUDES.read_text(encoding="utf-8")


# --- the agent --------------------------------------------------------------------------------------------------------

SHAPES = [(120, 160), (96, 128), (200, 90)]


@pytest.fixture(scope="module")
def make(vgg_weights: Path) -> Callable[..., Any]:
    """Agents by their settings, each loaded once."""
    return functools.cache(
        lambda **chosen: loaded(
            ReturnFixations, "return-fixations", **{"checkpoint": str(vgg_weights), "sizes": SIZES, **chosen}
        )
    )


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return files(tmp_path_factory.mktemp("pictures"), SHAPES, seed=1, grain=12)


@pytest.mark.parametrize("shown", [0, 1])
def test_free_viewing_is_the_plain_model(
    make: Callable[..., Any], pictures: list[Path], vgg_weights: Path, shown: int
) -> None:
    height, width = SHAPES[shown]
    prior = return_model.saccade_prior("free").tolist()
    [answer] = answers(make(), [stimulus(pictures[shown])])
    saliency = reference.saliency(pixels(pictures[shown]), vgg_weights, SIZES)
    expected, lead = reference.choose(saliency, prior, 0.02, 0.5, 15)
    assert lead > 1e-5  # between float64 and float32 the maps differ by less
    assert answer["fixations"] == [list(reference.pixel(cell, width, height)) for cell in expected]


def test_every_setting_of_the_score_counts(make: Callable[..., Any], pictures: list[Path], vgg_weights: Path) -> None:
    weights = {"map_weight": 0.5, "saccade_weight": 1.0, "memory_weight": 0.3, "decay": 0.6}
    made = make(**weights, spread=0.05, floor=0.2, border=400, sizes=(32,))
    [answer] = answers(made, [stimulus(pictures[0])])
    saliency = reference.saliency(pixels(pictures[0]), vgg_weights, (32,), border=400)
    prior = return_model.saccade_prior("free").tolist()
    expected, lead = reference.choose(saliency, prior, 0.05, 0.2, 15, weights=(0.5, 1.0, 0.3), decay=0.6)
    assert lead > 1e-5
    assert answer["fixations"] == [list(reference.pixel(cell, 160, 120)) for cell in expected]


def test_what_an_answer_says(make: Callable[..., Any], pictures: list[Path]) -> None:
    picture = pictures[0]
    found, lost, unknown = answers(
        make(max_search=4),
        [
            search(picture, picture, target_box=(80.0, 55.0, 4.0, 4.0)),
            search(picture, picture, target_present=False),
            search(picture, picture),
        ],
    )
    assert (found["fixations"], found["frame"], found["forced_first"]) == ([[81, 59]], [160, 120], True)
    assert (found["stop"], found["found_at"], found["selection"]) == ("target", 0, "maximum, fading inhibition")
    assert [answer["found"] for answer in (found, lost, unknown)] == [True, False, None]
    assert [answer["window"] for answer in (found, lost, unknown)] == [25, None, None]


@pytest.mark.parametrize(
    ("about", "given", "name"),
    [
        ({"dataset": "FindingWaldo"}, {}, "waldo"),
        ({"source": "object-arrays"}, {}, "array"),
        ({"dataset": "natural", "source": "waldo"}, {}, "natural"),
        ({"dataset": "waldo"}, {"parameters": "array"}, "array"),
    ],
)
def test_search_is_the_plain_choice_on_the_similarity_map(
    make: Callable[..., Any], pictures: list[Path], about: dict[str, Any], given: dict[str, Any], name: str
) -> None:
    made = make(max_search=16, max_waldo=16, **given)
    scene = pixels(pictures[2])
    target = pixels(pictures[1])
    method = similarity.Method(made.settings.variant)
    shown = similarity.search_image(scene, method)
    wanted = similarity.target_image(target, method)
    height, width = scene.shape[:2]
    with torch.inference_mode():
        parts = similarity.responses(made.features, [shown], [wanted], method)
    [found] = similarity.paste(parts, shown.frame, method).tolist()
    pixel = [reference.pixel(cell, width, height) for cell in range(4096)]
    saliency = np.array([found[y][x] for x, y in pixel]).reshape(64, 64)
    prior = return_model.saccade_prior("waldo" if name == "waldo" else "natural").tolist()
    reach = 3 if about.get("dataset", "") in ("waldo", "FindingWaldo") else 7  # 100 or 200 x 90 / 1280, halved
    x = 80
    y = 180
    side = 5

    def touches(cell: int) -> bool:
        across, down = pixel[cell]
        return x - reach <= across < x + side + reach and y - reach <= down < y + side + reach

    expected, _ = reference.choose(saliency, prior, *reference.SETS[name], 16, found=touches)
    [answer] = answers(made, [search(pictures[2], pictures[1], target_box=(x, y, side, side), **about)])
    assert answer["fixations"] == [list(pixel[cell]) for cell in expected]
