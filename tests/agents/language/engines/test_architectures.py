"""Models of many architectures, tiny and random: a batch is what its prompts are alone, and greedy text is that of the
model's own ``generate`` on what its own tokenizer or processor makes."""

import asyncio
import io
from collections.abc import Iterable, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
import transformers
from PIL import Image

from agents.contract import GIB
from agents.language.engines import batches, probing
from agents.language.engines.text_request import ChatMessage, GeneratedText, Sampling, TextRequest
from agents.language.engines.transformers import PromptRow, TransformersEngine
from agents.language.engines.vllm import VLLMEngine, VLLMSettings
from tests.helpers import tiny_architectures as tiny
from tests.helpers import tiny_vllm

TEXTS = (
    "Hi",
    "What is it?",
    "Alice: I like long books. John: Why?",
    "Tell me more about music and movies, please.",
    "x",
    "The technology of sports and fashion is changing, and politics too. Why?",
    "é 世界",
    "what do you think",
)
SIZES = ((64, 48), (100, 40), (40, 100), (56, 56), (120, 60), (70, 90), (30, 30), (64, 48))
QUICK = {"gpt_oss", "llama4_text", "falcon_h1", "recurrent_gemma", "qwen3_vl", "gemma3", "llava_next", "mllama"}
ONLY_PICTURED = {"paligemma"}  # whose processor takes no text alone


def kinds(names: Iterable[str]) -> list[Any]:
    return [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in names]


def picture(number: int) -> bytes:
    content = io.BytesIO()
    width, height = SIZES[number]
    noise = np.random.default_rng(number).integers(0, 255, (height, width, 3), dtype=np.uint8)
    Image.fromarray(noise).save(content, "PNG")
    return content.getvalue()


def loaded(folder: Path) -> TransformersEngine:
    engine = TransformersEngine(folder)
    engine.open(chat=True)
    engine.load("cpu")
    return engine


def generated(engine: TransformersEngine, requests: list[TextRequest], seeds: Iterable[int]) -> list[GeneratedText]:
    texts = engine.generate_batch(requests, list(seeds))
    assert all(isinstance(text, GeneratedText) for text in texts), texts
    return cast(list[GeneratedText], texts)


def check(folder: Path, pictures: list[bytes | None]) -> TransformersEngine:
    engine = loaded(folder)
    chats = [(ChatMessage("user", text, image),) for text, image in zip(TEXTS, pictures, strict=True)]
    drawn = [
        TextRequest(messages=chat, sampling=Sampling(float(place % 2), max_tokens=10))
        for place, chat in enumerate(chats)
    ]
    together = generated(engine, drawn, range(8))
    assert [generated(engine, [request], [seed])[0] for seed, request in enumerate(drawn)] == together
    likeliest = [TextRequest(messages=chat, sampling=Sampling(0.0, max_tokens=10)) for chat in chats]
    greedy = generated(engine, likeliest, [0] * 8)
    joins = engine._joining
    engine._joining = probing.Joining()
    assert generated(engine, likeliest, [0] * 8) == greedy  # by nothing that would be joined
    engine._joining = joins
    plain = Plain(folder, any(pictures))
    assert [text.raw for text in greedy] == [plain.text(chat[0]) for chat in chats]
    assert [text.prompt_tokens for text in greedy] == [plain.inputs(chat[0])["input_ids"].shape[1] for chat in chats]
    assert len({text.raw for text in together}) > 1
    return engine


class Plain:
    """As documentation of transformers shows it."""

    def __init__(self, folder: Path, is_pictured: bool) -> None:
        name = "AutoModelForImageTextToText" if is_pictured else "AutoModelForCausalLM"
        self.model = getattr(transformers, name).from_pretrained(folder).eval()
        self.processor = (transformers.AutoProcessor if is_pictured else transformers.AutoTokenizer).from_pretrained(
            folder
        )
        self.is_pictured = is_pictured

    def inputs(self, message: ChatMessage) -> Any:
        content: Any = message.text
        if self.is_pictured:
            content = [{"type": "text", "text": message.text}]
            if message.image is not None:
                content.insert(0, {"type": "image", "image": Image.open(io.BytesIO(message.image))})
        chat = [{"role": message.role, "content": content}]
        inputs = self.processor.apply_chat_template(
            chat, add_generation_prompt=True, tokenize=True, return_dict=True, return_tensors="pt"
        )
        return inputs.to(torch.float32) if self.is_pictured else inputs

    def text(self, message: ChatMessage) -> str:
        inputs = self.inputs(message)
        with torch.inference_mode():
            output = self.model.generate(**inputs, max_new_tokens=10, do_sample=False, eos_token_id=4, pad_token_id=0)
        tokens = output[0, inputs["input_ids"].shape[1] :].tolist()
        tokens = tokens[: tokens.index(4)] if 4 in tokens else tokens
        return str(self.processor.decode(tokens, clean_up_tokenization_spaces=False))


@pytest.mark.parametrize("kind", kinds(tiny.TEXT))
def test_texts_of_an_architecture(kind: str, tmp_path: Path) -> None:
    engine = check(tiny.text(kind, tmp_path), [None] * 8)
    # Of the many with a state only this model's state does not leave out padding.
    assert ("batches" in engine.provenance()) == (kind == "recurrent_gemma")
    assert engine._joining.shares == (kind not in tiny.STATES)


def test_what_prompts_begin_with_is_read_once(tmp_path: Path) -> None:
    engine = loaded(tiny.text("llama", tmp_path))
    read = []
    embeddings = engine._model.get_input_embeddings()
    embeddings.register_forward_pre_hook(lambda _, arguments: read.append(arguments[0].numel()))
    sampling = Sampling(1.0, max_tokens=1)
    requests = [TextRequest("It was long ago, and far away. " * 8 + text, sampling=sampling) for text in TEXTS]
    together = generated(engine, requests, range(8))
    assert 2 * sum(read) < sum(text.prompt_tokens or 0 for text in together)
    assert [generated(engine, [request], [seed])[0] for seed, request in enumerate(requests)] == together


@pytest.mark.filterwarnings("ignore:`hidden_state` is deprecated")  # transformers' own call of mllama
@pytest.mark.filterwarnings("ignore:__array")  # transformers reads tensors by NumPy
@pytest.mark.parametrize("kind", kinds(tiny.PICTURES))
def test_pictures_of_an_architecture(kind: str, tmp_path: Path) -> None:
    """With prompts that have none between."""
    pictures = [picture(number) if number % 4 or kind in ONLY_PICTURED else None for number in range(8)]
    engine = check(tiny.pictured(kind, tmp_path), pictures)
    assert "pictures" not in engine.provenance()
    # Nobody can write what stands for a picture.
    [plain, spoiled] = [
        engine.tokens(TextRequest(messages=(ChatMessage("user", text, pictures[1]),)))
        for text in ("What?", "Wh<|im<image>age|><image>at<|patch|>[IMG]?<boi>")
    ]
    assert spoiled == plain
    no_room = TextRequest(messages=(ChatMessage("user", "x " * 2000, pictures[1]),))
    assert engine.excess(no_room) > 900
    [failed] = engine.generate_batch([no_room], [0])
    assert failed.code == "no_room"


# The operators of tests/plugin have no sliding windows, attention sinks or states.
BY_VLLM = [
    "qwen3",
    "phi3",
    "granite",
    "olmo2",
    "smollm3",
    "qwen2_vl",
    "qwen2_5_vl",
    "qwen3_vl",
    "internvl",
    "idefics3",
    "lighton_ocr",
]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:__array")  # transformers reads tensors by NumPy
@tiny_vllm.needed
@pytest.mark.parametrize("kind", BY_VLLM)
def test_architectures_by_vllm(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight at once, prompts without a picture between, and each alone."""
    # The operators take no smaller heads.
    for name, size in {"head_dim": 32, "num_attention_heads": 2, "num_heads": 2, "hidden_size": 64}.items():
        monkeypatch.setitem(tiny.SMALL, name, size)
    monkeypatch.setitem(tiny.SMALL, "out_hidden_size", 64)
    for rope in (tiny.MROPE, tiny.INTERLEAVED):
        monkeypatch.setitem(rope["rope_parameters"], "mrope_section", [4, 6, 6])
    for variable, value in tiny_vllm.ENVIRONMENT.items():
        monkeypatch.setenv(variable, value)
    is_pictured = kind in tiny.PICTURES
    folder = (tiny.pictured if is_pictured else tiny.text)(kind, tmp_path)
    pictures = [picture(number) if is_pictured and number % 4 else None for number in range(8)]
    chats = [ChatMessage("user", text, image) for text, image in zip(TEXTS, pictures, strict=True)]
    requests = [TextRequest(messages=(chat,), sampling=Sampling(0.0, max_tokens=10)) for chat in chats]
    engine = VLLMEngine(folder, VLLMSettings(**{**tiny_vllm.SMALL, "positions": 1024}), device_memory=GIB)
    engine.open(chat=True)

    async def work() -> tuple[list[GeneratedText], list[GeneratedText]]:
        together = await asyncio.gather(*(engine.generate(request, 0) for request in requests))
        alone = [await engine.generate(request, 0) for request in requests]
        await engine.aclose()
        return together, alone

    try:
        engine.load("cpu")
        together, alone = asyncio.run(work())
    finally:
        engine.close()
    assert together == alone
    plain = Plain(folder, is_pictured)
    assert [text.raw for text in together] == [plain.text(chat) for chat in chats]


def test_no_other_groups_cost_less() -> None:
    random = np.random.default_rng(0)
    for _ in range(20):
        rows = [
            PromptRow(place, 0, TextRequest(sampling=Sampling(max_tokens=int(most))), [0] * int(length))
            for place, (length, most) in enumerate(random.integers(1, 60, (8, 2)))
        ]
        per_step = int(random.integers(1, 40))
        ordered = sorted(rows, key=lambda row: len(row.prompt))

        def cost(groups: list[list[PromptRow]], per_step: int = per_step) -> int:
            lengths = [max(len(row.prompt) for row in group) * len(group) for group in groups]
            steps = [max(row.request.sampling.limit for row in group) * (per_step + len(group)) for group in groups]
            return sum(lengths) + sum(steps)

        every = [
            [ordered[start:end] for start, end in zip((0, *cuts), (*cuts, 8), strict=True)]
            for count in range(8)
            for cuts in combinations(range(1, 8), count)
        ]
        chosen = batches.cheapest(rows, per_step, 10_000)
        assert sorted(row.place for group in chosen for row in group) == list(range(8))
        assert cost(chosen) == min(map(cost, every))
        most = int(random.integers(100, 300))

        def is_small(group: list[PromptRow], most: int = most) -> bool:
            longest = max(len(row.prompt) for row in group) + max(row.request.sampling.limit for row in group)
            return len(group) == 1 or len(group) * longest <= most

        small = [groups for groups in every if all(map(is_small, groups))]
        chosen = batches.cheapest(rows, per_step, most)
        assert all(map(is_small, chosen))
        assert cost(chosen) == min(map(cost, small))


@pytest.mark.parametrize(
    "kept", [(), ("pads",), ("pads", "ready"), ("pads", "pictures"), ("pads", "shares"), ("pictures",)]
)
def test_a_batch_that_changes_the_logits_is_measured(kept: tuple[str, ...]) -> None:
    """A model that is stable only in what is ``kept``."""

    def generate(rows: Sequence[str], is_ready: bool, shares: bool, reader: Any) -> None:
        kind = "shares" if shares else "pictures" if "picture" in rows[-1] else "pads"
        if is_ready and "ready" not in kept:
            raise ValueError("masks of another form")
        logits = torch.arange(50.0).roll(0 if (len(rows) == 1 and not shares) or kind in kept else 1)
        for _ in range(probing.STEPS):
            reader(None, logits.repeat(len(rows), 1))

    joins = probing.joining(generate, ["a longer text", "text"], ["a longer picture", "picture"], torch.float32)
    assert joins == tuple(kind in kept for kind in ("pads", "ready", "pictures", "shares"))
