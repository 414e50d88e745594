"""SCST: features, LSTM and searches against plain restatements of self-critical.pytorch; bad files and pictures."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image as PILImage
from torch import Tensor

from agents.contract import Draw
from agents.errors import AnswerError, UnavailableError
from agents.images import Image
from agents.vision import scst
from tests.helpers import mixed_images, pickles, tiny_scst
from tests.helpers.mixed_images import captions, prepared
from tests.helpers.plain_captioners import resnet

LIMIT = 20
UNKNOWN = len(tiny_scst.WORDS)
Search = tuple[float, list[int]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Not to be changed by a test."""
    return tiny_scst.make(tmp_path_factory.mktemp("scst"), seed=7, ends=1.0)


def loaded(folder: Path, **settings: Any) -> Any:
    return mixed_images.loaded("scst", checkpoint=str(folder), **settings)


class Plain:
    """self-critical.pytorch in few words: captioning/utils/resnet*.py, NewFCModel and beam_search, picture by picture,
    beam by beam."""

    def __init__(self, folder: Path) -> None:
        self.seen = torch.load(folder / "resnet101.pth", weights_only=True)
        self.weights = torch.load(folder / "model-best.pth", weights_only=True)

    def features(self, pixels: Any) -> Tensor:
        x = torch.tensor(pixels).permute(2, 0, 1)[None].float() / 255
        x = (x - torch.tensor([[[0.485]], [[0.456]], [[0.406]]])) / torch.tensor([[[0.229]], [[0.224]], [[0.225]]])
        return resnet(self.seen, x, tiny_scst.BLOCKS, caffe=True)[0].mean(dim=(1, 2))

    def step(self, x: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        hidden, cell = state
        w = self.weights
        sums = w["_core.i2h.weight"] @ x + w["_core.i2h.bias"] + w["_core.h2h.weight"] @ hidden + w["_core.h2h.bias"]
        enter, keep, leave, one, other = sums.reshape(5, -1)
        cell = keep.sigmoid() * cell + enter.sigmoid() * torch.maximum(one, other)
        return leave.sigmoid() * cell.tanh(), cell

    def begin(self, features: Tensor) -> tuple[Tensor, Tensor]:
        nothing = torch.zeros(tiny_scst.WIDTH)
        return self.step(self.weights["fc_embed.weight"] @ features + self.weights["fc_embed.bias"], (nothing, nothing))

    def say(self, token: int, state: tuple[Tensor, Tensor]) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Log-probabilities of what follows ``token``, and the new state."""
        state = self.step(self.weights["embed.weight"][token], state)
        return (self.weights["logit.weight"] @ state[0] + self.weights["logit.bias"]).log_softmax(0), state

    def greedy(self, features: Tensor) -> list[int]:
        tokens = [0]
        state = self.begin(features)
        while len(tokens) <= LIMIT and (len(tokens) == 1 or tokens[-1] != 0):
            scores, state = self.say(tokens[-1], state)
            tokens.append(int(scores.argmax()))
        return tokens[1:]

    def search(self, features: Tensor, beams: int, penalty: float) -> list[list[int]]:
        """The texts of all ranks. Those that end leave their places, which are filled a step later."""
        live: list[tuple[float, list[int], Any]] = [(0.0, [], self.begin(features))]
        done: list[Search] = []
        for step in range(LIMIT):
            found = []
            for total, tokens, state in live:
                scores, after = self.say(tokens[-1] if tokens else 0, state)
                scores[UNKNOWN] -= 1000
                found += [(total + gained, [*tokens, token], after) for token, gained in enumerate(scores.tolist())]
            live = sorted(found, key=lambda one: -one[0])[:beams]
            ended = [one for one in live if one[1][-1] == 0 or step == LIMIT - 1]
            done += [(total / len(tokens) ** penalty, tokens) for total, tokens, _ in ended]
            live = [one for one in live if one not in ended]
        return [tokens for _, tokens in sorted(done, key=lambda one: -one[0])[:beams]]


def text(tokens: Sequence[int]) -> str:
    return " ".join(tiny_scst.WORDS[token - 1] for token in (tokens[: tokens.index(0)] if 0 in tokens else tokens))


@pytest.fixture(scope="module")
def plain(folder: Path) -> Plain:
    return Plain(folder)


@pytest.fixture(scope="module")
def features(plain: Plain, images: list[Path]) -> list[Tensor]:
    with torch.no_grad():
        return [plain.features(Image(path.name, root=path.parent).decode()) for path in images]


def test_features_are_those_of_caffes_resnet_at_full_size(
    folder: Path, images: list[Path], features: list[Tensor]
) -> None:
    agent = loaded(folder)
    with torch.no_grad():
        found = agent._encode(prepared(agent, images))
    torch.testing.assert_close(found, torch.stack(features), rtol=1e-3, atol=1e-3)
    assert found.std(dim=0).mean() > 0.1


def test_greedy_captions_are_those_of_a_plain_lstm(
    folder: Path, images: list[Path], plain: Plain, features: list[Tensor]
) -> None:
    """The published command's; an unknown word is a word there."""
    agent = loaded(folder)
    answers = captions(agent, prepared(agent, images))
    with torch.no_grad():
        wanted = [plain.greedy(one) for one in features]
    assert [answer.text for answer, _ in answers] == [text(tokens) for tokens in wanted]
    assert {answer.finish for answer, _ in answers} == {"end", "length"}
    assert len({answer.text for answer, _ in answers}) > 4
    assert any("UNK" in answer.text for answer, _ in answers)


@pytest.mark.parametrize(("beams", "penalty"), [(8, -0.5)])
def test_beams_of_all_ranks_are_those_of_a_plain_search(
    folder: Path, images: list[Path], plain: Plain, features: list[Tensor], beams: int, penalty: float
) -> None:
    agent = loaded(folder, beams=beams, length_penalty=penalty)
    items = [item for item in prepared(agent, images) for _ in range(beams)]
    draws = [Draw(seed=1, sample=rank) for _ in images for rank in range(beams)]
    answers = captions(agent, items, draws)
    with torch.no_grad():
        wanted = [tokens for one in features for tokens in plain.search(one, beams, penalty)]
    assert [answer.text for answer, _ in answers] == [text(tokens) for tokens in wanted]
    assert len({answer.tokens for answer, _ in answers}) > 4
    assert not any("UNK" in answer.text for answer, _ in answers)


def test_pictures_too_small_for_the_first_layers_or_too_large_for_memory_fail(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = loaded(folder)
    monkeypatch.setattr(scst, "MOST_PIXELS", 100)
    for size, code in (((2, 9), "image_too_narrow"), ((3, 33), None), ((11, 10), "image_too_large")):
        PILImage.new("RGB", size, "teal").save(tmp_path / "picture.png")
        if code is None:
            captions(agent, prepared(agent, [tmp_path / "picture.png"]))
            continue
        with pytest.raises(AnswerError, match=f"{size[0]} x {size[1]}") as raised:
            prepared(agent, [tmp_path / "picture.png"])
        assert raised.value.code == code


# what cannot be loaded


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (
            lambda proof: tiny_scst.infos(tiny_scst.WORDS, opt=pickles.Armed(proof)),
            "posix.mkdir, of which",
        ),
        (lambda proof: tiny_scst.infos(tiny_scst.WORDS)[:300], "cannot be read"),
        (lambda proof: tiny_scst.infos((), vocab={"1": "a", "3": "b"}), "holds no words by number under 'vocab'"),
        (lambda proof: tiny_scst.infos(tiny_scst.WORDS[1:]), f"has {UNKNOWN - 1} words"),
    ],
    ids=["code", "cut", "gap", "few"],
)
def test_a_pickle_that_is_not_of_words_is_refused_and_not_executed(
    tmp_path: Path, spoil: Callable[[Path], bytes], says: str
) -> None:
    path = tiny_scst.make(tmp_path / "scst") / "infos_fc_rl-best.pkl"
    path.write_bytes(spoil(tmp_path / "executed"))
    with pytest.raises(UnavailableError, match=re.escape(says)) as raised:
        loaded(path.parent)
    assert str(path) in str(raised.value)
    assert not (tmp_path / "executed").exists()
