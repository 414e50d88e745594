"""Captioners through transformers' classes: tiny models of the real architectures, loaded by the real path.

Every answer is compared with transformers' own ``generate``, called for one image as the models' documentation shows.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mixed_images
import orjson
import pytest
import tiny_captioners
import torch
from PIL import Image as PILImage
from plain_captioners import Plain

from agents.answers import CaptionAnswer
from agents.contract import Agent, Draw, Reply
from agents.errors import AnswerError, UnavailableError
from agents.stimuli import CaptionStimulus, Stimulus, parse_row
from agents.vision.blip import BlipAgent
from agents.vision.blip2 import Blip2Agent
from agents.vision.captioner import CaptionAgent
from agents.vision.git import GitAgent
from agents.vision.llava_next import LlavaNextAgent

FAMILIES: dict[str, type[CaptionAgent[Any]]] = {
    "git": GitAgent,
    "blip": BlipAgent,
    "blip2": Blip2Agent,
    "llava_next": LlavaNextAgent,
}
GREEDY = {"beams": 1, "max_tokens": 12}
BEAM = {"beams": 4, "length_penalty": 0.6, "min_tokens": 5, "max_tokens": 14, "no_repeat_ngram": 3}
DRAWN = {"decoding": "sample", "temperature": 0.9, "top_k": 30, "top_p": 0.95, "max_tokens": 12}
QUESTION = "a picture of"


@pytest.fixture(scope="module", params=list(FAMILIES))
def family(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def folder(family: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny checkpoint of one family. Not to be changed by a test."""
    return tiny_captioners.MAKERS[family](tmp_path_factory.mktemp(family) / "checkpoint")


@pytest.fixture(scope="module")
def stimuli(tmp_path_factory: pytest.TempPathFactory) -> list[CaptionStimulus]:
    """Eight images of every sort."""
    paths = mixed_images.make(tmp_path_factory.mktemp("images"))
    return [_stimulus(path) for path in paths]


def _stimulus(path: Path) -> CaptionStimulus:
    row = {"id": path.name, "task": "image_captioning", "image": str(path)}
    stimulus: Stimulus = parse_row(orjson.dumps(row))
    assert isinstance(stimulus, CaptionStimulus)
    return stimulus


def _loaded(family: str, folder: Path, **settings: Any) -> CaptionAgent[Any]:
    cls = FAMILIES[family]
    agent = cls(cls.Settings(checkpoint=str(folder), **settings), family)
    assert agent.missing() is None
    agent.open()
    agent.load("cpu")
    return agent


def _said(replies: Any) -> list[tuple[Any, ...]]:
    """What can be compared: the text with special tokens, its length and how it ended."""
    found = []
    for reply in replies:
        assert isinstance(reply, Reply), reply
        assert isinstance(reply.answer, CaptionAnswer)
        raw = reply.raw["text"] if isinstance(reply.raw, dict) else reply.raw
        found.append((raw, reply.answer.tokens, reply.answer.finish))
    return found


@pytest.fixture(scope="module")
def plain(family: str, folder: Path) -> Plain:
    return Plain(family, folder)


def _pictures(stimuli: list[CaptionStimulus]) -> list[PILImage.Image]:
    return [PILImage.fromarray(stimulus.image.decode()) for stimulus in stimuli]


@pytest.mark.parametrize("chosen", [GREEDY, BEAM, {**BEAM, "early_stopping": True}], ids=["greedy", "beam", "early"])
@pytest.mark.parametrize("prompt", ["", QUESTION], ids=["bare", "prompt"])
def test_a_batch_says_what_transformers_generate_says_of_each(
    family: str, folder: Path, plain: Plain, stimuli: list[CaptionStimulus], chosen: dict[str, Any], prompt: str
) -> None:
    agent = _loaded(family, folder, prompt=prompt, **chosen)
    prepared = [agent.prepare(stimulus) for stimulus in stimuli]
    together = _said(agent.respond(prepared, [Draw(seed=1)] * 8))
    alone = [_said(agent.respond([one], [Draw(seed=2)]))[0] for one in prepared]
    assert together == alone
    options = {
        "num_beams": chosen["beams"],
        "max_new_tokens": chosen["max_tokens"],
        "do_sample": False,
        **({"min_new_tokens": chosen["min_tokens"]} if "min_tokens" in chosen else {}),
        **({"no_repeat_ngram_size": chosen["no_repeat_ngram"]} if "no_repeat_ngram" in chosen else {}),
        **({name: chosen[name] for name in ("length_penalty", "early_stopping") if name in chosen}),
    }
    expected = [plain.said(plain.tokens([one], prompt, **options)[0]) for one in _pictures(stimuli)]
    assert together == expected
    assert len({text for text, _, _ in together}) > 4  # the model does look at the image


def test_draws_are_a_rows_own_and_samples_of_one_stimulus_differ(
    family: str, folder: Path, stimuli: list[CaptionStimulus]
) -> None:
    agent = _loaded(family, folder, **DRAWN)
    prepared = [agent.prepare(stimulus) for stimulus in stimuli]
    draws = [Draw(seed=1000 + index, sample=index % 3) for index in range(24)]
    items = [prepared[index // 3] for index in range(24)]
    together = _said(agent.respond(items, draws))
    assert [_said(agent.respond([item], [draw]))[0] for item, draw in zip(items, draws, strict=True)] == together
    sevens = [_said(agent.respond(items[at : at + 7], draws[at : at + 7])) for at in range(0, 24, 7)]
    assert [one for part in sevens for one in part] == together
    assert len({text for text, _, _ in together}) > 20


def test_samples_in_beam_search_are_the_beams_by_rank(
    family: str, folder: Path, plain: Plain, stimuli: list[CaptionStimulus]
) -> None:
    agent = _loaded(family, folder, beams=4, max_tokens=10)
    prepared = agent.prepare(stimuli[0])
    replies = agent.respond([prepared] * 4, [Draw(seed=9, sample=rank) for rank in (2, 0, 3, 1)])
    ranks = _said(replies)
    asked = agent.settings.prompt.replace("{words}", "11")
    found = plain.tokens(
        _pictures(stimuli[:1]), asked, num_beams=4, num_return_sequences=4, max_new_tokens=10, do_sample=False
    )
    expected = [plain.said(one) for one in found]
    assert ranks == [expected[rank] for rank in (2, 0, 3, 1)]
    scores = [reply.answer.score for reply in replies]
    assert 0 > scores[1] >= scores[3] >= scores[0] >= scores[2]
    [reply] = agent.respond([prepared], [Draw(seed=9, sample=4)])
    assert isinstance(reply, AnswerError)
    assert reply.code == "too_few_beams"


def test_an_image_is_encoded_once_for_all_samples_and_beams(
    family: str, folder: Path, stimuli: list[CaptionStimulus], monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = _loaded(family, folder, **DRAWN)
    seen: list[int] = []
    encode = agent._encode
    monkeypatch.setattr(agent, "_encode", lambda images: (seen.append(len(images)), encode(images))[1])
    two = [agent.prepare(stimulus) for stimulus in (stimuli[0], stimuli[0])]  # prepared twice: two images to the engine
    agent.respond([two[0]] * 5 + [two[1]] * 2, [Draw(seed=index) for index in range(7)])
    assert sum(seen) == 2


@pytest.mark.parametrize("chosen", [GREEDY, BEAM, DRAWN], ids=["greedy", "beam", "drawn"])
def test_logits_that_are_no_numbers_fail_their_own_item_only(
    family: str, folder: Path, stimuli: list[CaptionStimulus], chosen: dict[str, Any]
) -> None:
    agent = _loaded(family, folder, **chosen)
    prepared = [agent.prepare(stimulus) for stimulus in stimuli[:4]]
    draws = [Draw(seed=index) for index in range(4)]
    whole = _said(agent.respond(prepared, draws))
    spoiled = [*prepared[:2], {**prepared[2], "pixel_values": prepared[2]["pixel_values"] * torch.nan}, prepared[3]]
    replies = agent.respond(spoiled, draws)
    assert isinstance(replies[2], AnswerError)
    assert replies[2].code == "bad_logits"
    assert _said([replies[index] for index in (0, 1, 3)]) == [whole[index] for index in (0, 1, 3)]


def test_the_provenance_names_what_ran_and_that_its_weights_are_random(family: str, folder: Path) -> None:
    about = _loaded(family, folder).provenance()
    assert about["random_weights"] is True
    assert about["model"] == FAMILIES[family].model_class
    assert about["image_processor"].endswith("Pil")
    assert about["dtype"] == "float32"
    other = _loaded(family, folder, image_processor="torchvision").provenance()
    assert other["image_processor"] != about["image_processor"]


# bad checkpoints


@pytest.fixture
def copy(folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(folder, tmp_path / "copy"))


@pytest.mark.parametrize("lost", ["config.json", "model.safetensors", "tokenizer.json", "processor"])
def test_a_missing_file_is_named(family: str, copy: Path, lost: str) -> None:
    for name in ("preprocessor_config.json", "processor_config.json") if lost == "processor" else (lost,):
        (copy / name).unlink(missing_ok=True)
    said = _agent(family, copy).missing()
    assert said is not None
    assert str(copy) in said
    assert {"processor": "preprocessor_config.json"}.get(lost, lost) in said


def test_another_architecture_is_named(family: str, copy: Path) -> None:
    tiny_captioners.rename_model_type(copy, "bert")
    said = _agent(family, copy).missing()
    assert said is not None
    assert "'bert'" in said


def test_weights_that_are_not_all_there_are_refused(family: str, copy: Path) -> None:
    from safetensors.torch import load_file, save_file

    weights = load_file(copy / "model.safetensors")
    name = sorted(name for name in weights if "layer" in name and weights[name].ndim > 1)[0]
    del weights[name]
    save_file(weights, copy / "model.safetensors", metadata={"format": "pt"})
    agent = _agent(family, copy)
    agent.open()
    with pytest.raises(UnavailableError, match="weights are missing"):
        agent.load("cpu")


def test_weights_of_another_size_are_refused(family: str, copy: Path) -> None:
    from safetensors.torch import load_file, save_file

    weights = load_file(copy / "model.safetensors")
    name = sorted(name for name in weights if "layer" in name and weights[name].ndim > 1)[0]
    weights[name] = weights[name][:, :-1].contiguous()
    save_file(weights, copy / "model.safetensors", metadata={"format": "pt"})
    agent = _agent(family, copy)
    agent.open()
    with pytest.raises(
        UnavailableError, match=rf"1 weights are of another shape \(.*{name.removeprefix('language_model.')}"
    ):
        agent.load("cpu")


@pytest.mark.parametrize("left", [0, 1000])
def test_a_damaged_weights_file_is_refused(family: str, copy: Path, left: int) -> None:
    path = copy / "model.safetensors"
    path.write_bytes(path.read_bytes()[:left])
    agent = _agent(family, copy)
    agent.open()
    with pytest.raises(UnavailableError, match="cannot be loaded"):
        agent.load("cpu")


class Bomb:
    """Unpickling this would make a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


def test_a_pickle_with_code_is_refused_and_not_executed(family: str, copy: Path, tmp_path: Path) -> None:
    (copy / "model.safetensors").unlink()
    made = tmp_path / "made"
    torch.save({"weight": torch.zeros(2), "bomb": Bomb(made)}, copy / "pytorch_model.bin")
    agent = _agent(family, copy)
    assert agent.missing() is None
    agent.open()
    with pytest.raises(UnavailableError, match="it was not executed") as raised:
        agent.load("cpu")
    assert str(copy) in str(raised.value)
    assert not made.exists()


def _agent(family: str, folder: Path, **settings: Any) -> Agent[Any]:
    cls = FAMILIES[family]
    return cls(cls.Settings(checkpoint=str(folder), **settings), family)


# what one family alone does


def test_blip_counts_the_prompt_and_cuts_it_off(tmp_path: Path, stimuli: list[CaptionStimulus]) -> None:
    """Limits that count the prompt are those of the authors' program: max_length of ``generate``."""
    folder = tiny_captioners.blip(tmp_path / "blip")
    plain = Plain("blip", folder)
    agent = _loaded("blip", folder, prompt=QUESTION, beams=3, min_tokens=8, max_tokens=12, count_prompt=True)
    said = _said(agent.respond([agent.prepare(one) for one in stimuli], [Draw(seed=1)] * 8))
    expected = [
        plain.said(plain.tokens([one], QUESTION, num_beams=3, min_length=8, max_length=12)[0])
        for one in _pictures(stimuli)
    ]
    assert said == expected
    assert max(length for _, length, _ in said) <= 12 - 4


def test_llava_asks_for_the_drawn_number_of_words(
    tmp_path: Path, stimuli: list[CaptionStimulus], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tiny_captioners.llava_next(tmp_path / "llava")
    agent = _loaded("llava_next", folder, lengths=[4, 12, 15], least_words=10, **DRAWN)
    asked: list[str] = []
    complete = LlavaNextAgent._asked
    monkeypatch.setattr(
        LlavaNextAgent, "_asked", lambda self, prompt: (asked.append(prompt), complete(self, prompt))[1]
    )
    prepared = [agent.prepare(stimuli[0])] * 3
    replies = agent.respond(prepared, [Draw(seed=seed) for seed in (3, 4, 5)])
    assert [reply.raw["max_words"] for reply in replies if isinstance(reply, Reply)] == [10, 12, 15]
    assert [text.splitlines()[-1] for text in asked] == [
        f"The description should contain at most {words} words." for words in (10, 12, 15)
    ]


@pytest.fixture(autouse=True)
def one_thread_less() -> Iterator[None]:
    """Tiny models are quicker on one thread."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_more_samples_than_beams_are_refused_before_anything_is_loaded() -> None:
    from agents import catalogue
    from agents.errors import InputError
    from serving.generate import check_samples

    entry = catalogue.get("git-large-coco")
    agents = {"git": entry.make(), "drawn": entry.make({"decoding": "sample"}), "wide": entry.make({"beams": 9})}
    check_samples(4, agents)
    with pytest.raises(InputError) as raised:
        check_samples(5, agents)
    assert [(problem.field, problem.where) for problem in raised.value.problems] == [("git", "--samples")]


@pytest.mark.parametrize("chosen", [{"max_tokens": 4096}, {"prompt": "a cat " * 2000}], ids=["text", "prompt"])
def test_more_text_than_the_model_has_positions_for_is_refused_at_load(
    family: str, folder: Path, chosen: dict[str, Any]
) -> None:
    agent = _agent(family, folder, **chosen)
    agent.open()
    if family == "llava_next":  # rotary positions have no end
        agent.load("cpu")
        return
    with pytest.raises(UnavailableError, match=r"positions, too few for a prompt of .* tokens"):
        agent.load("cpu")


def test_a_prompt_that_leaves_no_room_is_refused(family: str, folder: Path) -> None:
    agent = _agent(family, folder, prompt="a cat " * 10, max_tokens=12, count_prompt=True)
    agent.open()
    if family == "llava_next":
        agent.load("cpu")
        return
    with pytest.raises(UnavailableError, match="leave none of max_tokens 12"):
        agent.load("cpu")


@pytest.mark.parametrize("name", ["tokenizer.json", "preprocessor_config.json", "processor_config.json"])
def test_a_damaged_text_file_is_named(family: str, copy: Path, name: str) -> None:
    if not (copy / name).exists():
        pytest.skip(f"{family} has no {name}")
    (copy / name).write_text("{broken")
    agent = _agent(family, copy)
    with pytest.raises(UnavailableError, match=rf"the .* in {copy} cannot be loaded"):
        agent.open()


def test_an_image_that_is_a_mere_line_is_refused_where_its_short_side_would_be_enlarged(tmp_path: Path) -> None:
    PILImage.new("RGB", (1, 500)).save(tmp_path / "line.png")
    agent = _loaded("git", tiny_captioners.git(tmp_path / "git"))
    with pytest.raises(AnswerError, match="1 x 500") as raised:
        agent.prepare(_stimulus(tmp_path / "line.png"))
    assert raised.value.code == "image_too_narrow"
