"""The agent of OFA: images, texts, whole answers, and what is missing."""

from __future__ import annotations

import io
import json
import math
import string
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_ofa
import torch
from PIL import Image as PILImage
from plain_ofa import BOS, END, PAD, plain, plain_beams
from torch import Tensor

from agents import catalogue
from agents.answers import CaptionAnswer
from agents.contract import Draw, Reply
from agents.errors import UnavailableError
from agents.images import Image
from agents.stimuli import CaptionStimulus
from agents.vision.ofa_network import OFAModel
from agents.vision.ofa_fairseq import load_tokenizer
from agents.vision.ofa import OFAAgent

SIDE = 64  # pixels: 4 x 4 patches
MOST = 16


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    """Threads cost more than they bring for models this small."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def model() -> OFAModel:
    return tiny_ofa.model(1)


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory, model: OFAModel) -> Path:
    return tiny_ofa.folder(tmp_path_factory.mktemp("ofa") / "hub", model)


@pytest.fixture(scope="module")
def fairseq(tmp_path_factory: pytest.TempPathFactory, model: OFAModel) -> Path:
    return tiny_ofa.fairseq_file(tmp_path_factory.mktemp("ofa") / "caption_huge_best.pt", model)


def test_texts_are_tokens_of_the_dictionary_and_back(hub: Path) -> None:
    tokenizer = load_tokenizer(hub)
    vocabulary = json.loads((hub / "vocab.json").read_text())
    assert len(tokenizer) == tiny_ofa.ROWS == len(vocabulary) + 9192
    for text in (" what does the image describe?", " a man", "Größe: 5 µm 🙂"):
        ids = tokenizer(text)["input_ids"]
        assert (ids[0], ids[-1]) == (BOS, END)
        assert tokenizer.decode(ids[1:-1]) == text
        assert max(ids) < len(vocabulary)
    assert tokenizer(" a man")["input_ids"] != tokenizer("a man")["input_ids"]
    named = {
        token: tokenizer.convert_tokens_to_ids(token) for token in ("<code_0>", "<code_8191>", "<bin_0>", "<bin_999>")
    }
    first = len(vocabulary)
    assert list(named.values()) == [first, first + 8191, first + 8192, first + 9191]
    assert tokenizer.decode([first + 3]) == "<code_3>"


def test_a_bad_dictionary_is_one_sentence(tmp_path: Path, hub: Path) -> None:
    with pytest.raises(UnavailableError, match=r"lacks vocab\.json and merges\.txt"):
        load_tokenizer(tmp_path)
    (tmp_path / "merges.txt").write_bytes((hub / "merges.txt").read_bytes())
    (tmp_path / "vocab.json").write_text('{"<s>": 0')
    with pytest.raises(UnavailableError, match="damaged"):
        load_tokenizer(tmp_path)
    (tmp_path / "merges.txt").write_text("#version: 0.2\n")
    (tmp_path / "vocab.json").write_text('{"<s>": 0, "a": 1}')
    with pytest.raises(UnavailableError, match="no token '<pad>'"):
        load_tokenizer(tmp_path)


def make(checkpoint: Path, **settings: Any) -> OFAAgent:
    agent = OFAAgent(OFAAgent.Settings(checkpoint=str(checkpoint), image_size=SIDE, **settings), "ofa-tiny-pretrained")
    agent.open()
    agent.load("cpu")
    return agent


def stimulus(number: int) -> CaptionStimulus:
    squares = np.random.default_rng(number).integers(0, 256, (4, 4, 3), dtype=np.uint8)
    pixels = np.kron(squares, np.ones((20 + number, 30, 1), dtype=np.uint8))
    file = io.BytesIO()
    PILImage.fromarray(pixels).save(file, "PNG")
    image = Image(f"{number}.png", data=file.getvalue())
    return CaptionStimulus(id=str(number), task="image_captioning", image=image)


def answers(replies: Sequence[Reply | Exception]) -> list[CaptionAnswer]:
    found = []
    for reply in replies:
        assert isinstance(reply, Reply)
        assert isinstance(reply.answer, CaptionAnswer)
        found.append(reply.answer)
    return found


def respond(agent: OFAAgent, numbers: Sequence[int], **draw: Any) -> list[CaptionAnswer]:
    draws = [Draw(seed=100 + number, **draw) for number in numbers]
    return answers(agent.respond([agent.prepare(stimulus(number)) for number in numbers], draws))


@pytest.mark.parametrize("settings", [{}, {"beams": 1}, {"decoding": "sample", "top_p": 0.9}], ids=str)
def test_a_batch_of_eight_says_what_each_says_alone(hub: Path, settings: dict[str, Any]) -> None:
    agent = make(hub, precision="fp32", **settings)
    together = respond(agent, range(8))
    alone = [respond(agent, [number])[0] for number in range(8)]
    assert [answer.text for answer in together] == [answer.text for answer in alone]
    assert [answer.tokens for answer in together] == [answer.tokens for answer in alone]
    assert len({answer.text for answer in together}) > 4, "images must matter"


def test_the_answer_is_the_plain_models(hub: Path, model: OFAModel) -> None:
    """From the image file to the words, with nothing but Pillow, the dictionary and the plain model; greedy."""
    agent = make(hub, beams=1, no_repeat_ngram=0)
    shown = stimulus(5)
    [answer] = answers(agent.respond([agent.prepare(shown)], [Draw(seed=1)]))
    tokenizer = load_tokenizer(hub)
    squeezed = PILImage.fromarray(shown.image.decode()).resize((SIDE, SIDE), PILImage.Resampling.BICUBIC)
    pixels = torch.from_numpy(np.asarray(squeezed) / 127.5 - 1).permute(2, 0, 1)
    slow = plain(model)
    source = slow.encode(tokenizer(" what does the image describe?")["input_ids"], pixels)
    said: list[int] = []
    while len(said) < MOST:
        logits = slow.decode([BOS, *said], source)[-1]
        logits[PAD] = -math.inf
        if not said:
            logits[END] = -math.inf
        token = int(logits.argmax())
        if token == END:
            break
        said.append(token)
    assert answer.tokens == len(said)
    assert answer.finish == ("length" if len(said) == MOST else "end")
    kept = tokenizer.decode([token for token in said if token not in tokenizer.all_special_ids])
    assert answer.text == " ".join("".join(c for c in kept if c not in string.punctuation).split())


@pytest.mark.parametrize(("temperature", "penalty"), [(0.98, 0.98), (0.5, 1.5)])
def test_the_script_beside_the_checkpoint_divides_logits_in_beam_search(
    temperature: float, penalty: float, hub: Path, model: OFAModel
) -> None:
    """Ten beams, temperature and length penalty 0.98, as fairseq searches; and values that change more."""
    preset = catalogue.get("ofa-huge-beam10").settings
    assert (preset["beams"], preset["temperature"], preset["length_penalty"]) == (10, 0.98, 0.98)
    agent = make(hub, beams=10, temperature=temperature, length_penalty=penalty, strip_punctuation=False)
    as_before = respond(make(hub, beams=10, strip_punctuation=False), range(6))
    tokenizer = load_tokenizer(hub)
    question = torch.tensor([tokenizer(" what does the image describe?")["input_ids"]])
    for number, answer in enumerate(respond(agent, range(6))):
        pixels = agent.prepare(stimulus(number))["pixel_values"][None]
        with torch.inference_mode():
            encoded = model.encode(question, pixels)

            def next_logits(tokens: tuple[int, ...], encoded: Any = encoded) -> Tensor:
                return model(encoder_outputs=encoded, decoder_input_ids=torch.tensor([tokens])).logits[0, -1].double()

            score, said = plain_beams(next_logits, 10, MOST, 3, temperature, penalty)[0]
        assert answer.score == pytest.approx(score, abs=2e-4)
        kept = tokenizer.decode([token for token in said if token not in tokenizer.all_special_ids])
        assert answer.text == " ".join(kept.split())
        assert answer.score != pytest.approx(as_before[number].score, abs=2e-4)


def test_local_copies_are_found_and_files_are_on_no_hub(tmp_path: Path, hub: Path, fairseq: Path) -> None:
    def fetch(checkpoint: Path) -> list[Path]:
        agent = OFAAgent(OFAAgent.Settings(checkpoint=str(checkpoint), dictionary=str(hub)), "ofa-huge")
        return [found.path for found in agent.fetch()]

    assert fetch(fairseq) == [fairseq, hub]
    with pytest.raises(UnavailableError, match=r"on no hub; .*checkpoints\.md"):
        fetch(tmp_path / "caption_huge_best.pt")


def test_samples_in_beam_search_are_ranks(hub: Path) -> None:
    agent = make(hub)
    prepared = agent.prepare(stimulus(1))
    said = answers(agent.respond([prepared] * 3, [Draw(seed=1, sample=sample) for sample in range(3)]))
    assert len({answer.text for answer in said}) > 1
    assert said[0].text == respond(agent, [1])[0].text


def test_punctuation_is_taken_out_unless_it_is_to_stay(hub: Path) -> None:
    clean, kept = respond(make(hub), range(8)), respond(make(hub, strip_punctuation=False), range(8))
    bare = [answer.text.translate(str.maketrans("", "", string.punctuation)) for answer in kept]
    assert [answer.text for answer in clean] == [" ".join(text.split()) for text in bare]
    assert [answer.tokens for answer in clean] == [answer.tokens for answer in kept]


def test_what_is_missing_is_said(tmp_path: Path, hub: Path, fairseq: Path) -> None:
    def missing(**settings: Any) -> str | None:
        return OFAAgent(OFAAgent.Settings(**settings), "ofa-huge").missing()

    assert missing(checkpoint=str(hub)) is None
    assert missing(checkpoint=str(fairseq), dictionary=str(hub)) is None
    assert "vocab.json" in (missing(checkpoint=str(fairseq)) or "")
    assert "checkpoints.md" in (missing(checkpoint=str(tmp_path / "caption_huge_best.pt")) or "")
    assert "turinglike fetch ofa-huge" in (missing(checkpoint="OFA-Sys/ofa-nowhere") or "")
    assert "config.json" in (missing(checkpoint=str(tmp_path), dictionary=str(hub)) or "")


def test_a_dictionary_of_another_size_is_refused(tmp_path: Path, fairseq: Path, hub: Path) -> None:
    vocabulary = json.loads((hub / "vocab.json").read_text())
    (tmp_path / "merges.txt").write_bytes((hub / "merges.txt").read_bytes())
    (tmp_path / "vocab.json").write_text(json.dumps({**vocabulary, "more": len(vocabulary)}))
    agent = OFAAgent(OFAAgent.Settings(checkpoint=str(fairseq), dictionary=str(tmp_path)), "ofa-huge")
    agent.open()
    with pytest.raises(UnavailableError, match=f"has {tiny_ofa.ROWS + 1} tokens, .* {tiny_ofa.ROWS}"):
        agent.load("cpu")
