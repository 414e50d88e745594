"""The engine of transformers: tiny models of the real architectures, loaded by the real path.

What it says is compared with transformers' own ``generate``, called for one prompt.
"""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoTokenizer

from agents.errors import UnavailableError
from agents.language.chat import LocalChatAgent
from agents.language.engines.text_request import ChatMessage, GeneratedText, Sampling, TextRequest
from agents.language.engines.transformers import TransformersEngine
from tests.helpers import tiny_language
from tests.helpers.text_requests import DRAWN, PROMPTS

FAMILIES = ("gpt2", "llama")  # whose texts are drawn

GREEDY = Sampling(temperature=0.0, max_tokens=24)
NO_REPEATS = {"no_repeat_ngram_size": 3}
OWN = {"num_beams": 10, "length_penalty": 0.65, "forced_eos_token_id": True, **NO_REPEATS}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The tiny checkpoints. Not to be changed by a test."""
    root = tmp_path_factory.mktemp("language")
    return {name: make(root / name) for name, make in tiny_language.MAKERS.items()}


@pytest.fixture(scope="module")
def engines(folders: dict[str, Path]) -> dict[str, TransformersEngine]:
    return {name: _loaded(folder) for name, folder in folders.items()}


def _loaded(folder: Path, *, chat: bool = False, **options: Any) -> TransformersEngine:
    engine = TransformersEngine(folder, **options)
    engine.open(chat=chat)
    engine.load("cpu")
    return engine


def _say(
    engine: TransformersEngine, asked: Sequence[TextRequest], seeds: Sequence[int] | None = None
) -> list[GeneratedText]:
    said = engine.generate_batch(asked, list(range(len(asked))) if seeds is None else seeds)
    assert all(isinstance(one, GeneratedText) for one in said), said
    return cast(list[GeneratedText], said)


# a batch and its rows


@pytest.mark.parametrize("family", FAMILIES)
def test_a_row_says_what_it_says_alone(engines: dict[str, TransformersEngine], family: str) -> None:
    asked = [TextRequest(PROMPTS[i % 8], sampling=DRAWN[(i + i // 8) % 8]) for i in range(24)]
    seeds = [1000 + index for index in range(24)]
    engine = engines[family]
    together = _say(engine, asked, seeds)
    assert [_say(engine, [one], [seed])[0] for one, seed in zip(asked, seeds, strict=True)] == together
    sevens = [one for at in range(0, 24, 7) for one in _say(engine, asked[at : at + 7], seeds[at : at + 7])]
    assert sevens == together
    assert {one.finish for one in together} == {"stop", "length"}
    assert len({one.text for one in together}) > 15


@pytest.mark.parametrize("width", [1, 4])
def test_beams_of_a_row_are_those_it_has_alone(folders: dict[str, Path], width: int) -> None:
    engine = _loaded(folders["blenderbot"], beams={"num_beams": width, **NO_REPEATS})
    limits = [(5, 16), (0, 16), (5, 9)]
    asked = [
        TextRequest(
            prompt, sampling=Sampling(min_tokens=limits[i % 3][0], max_tokens=limits[i % 3][1], stops=("q",) * (i % 2))
        )
        for i, prompt in enumerate(PROMPTS * 2)
    ]
    together = _say(engine, asked)
    assert [_say(engine, [one], [99])[0] for one in asked] == together
    assert len({one.text for one in together}) > 5


def test_padding_is_no_part_of_a_prompt_that_may_not_be_repeated(folders: dict[str, Path], tmp_path: Path) -> None:
    """A model that likes to say the padding token may say it three times, however much the prompt is padded."""
    weights = load_file(folders["blenderbot"] / "model.safetensors")
    weights["final_logits_bias"][0, 0] = 20
    engine = _loaded(_changed(folders["blenderbot"], tmp_path, weights), beams={"num_beams": 3, **NO_REPEATS})
    sampling = Sampling(min_tokens=8, max_tokens=8)
    asked = [TextRequest(" ".join(["x"] * count), sampling=sampling) for count in (24, 26)]
    together = _say(engine, asked)
    assert [_say(engine, [one])[0] for one in asked] == together
    assert all("<pad><pad><pad>" in (one.raw or "") for one in together)


def _changed(folder: Path, to: Path, weights: dict[str, torch.Tensor]) -> Path:
    """A copy of a checkpoint with other weights."""
    copy = Path(shutil.copytree(folder, to / "changed"))
    save_file(weights, copy / "model.safetensors", metadata={"format": "pt"})
    return copy


# transformers' own generation


@pytest.mark.parametrize("family", FAMILIES)
def test_greedy_texts_are_those_of_transformers_generate(
    folders: dict[str, Path], engines: dict[str, TransformersEngine], family: str
) -> None:
    plain = Plain(folders[family])
    said = _say(engines[family], [TextRequest(prompt, sampling=GREEDY) for prompt in PROMPTS])
    expected = [plain.said(prompt, num_beams=1, max_new_tokens=24) for prompt in PROMPTS]
    assert [(one.raw, one.tokens, one.finish) for one in said] == expected


def test_blenderbots_beams_are_those_of_its_own_generation_config(folders: dict[str, Path]) -> None:
    """As its documentation shows: the tokenizer, ``generate`` without any option, one prompt."""
    plain = Plain(folders["blenderbot"])
    engine = _loaded(folders["blenderbot"], beams=OWN)
    sampling = Sampling(min_tokens=19, max_tokens=59)
    said = _say(engine, [TextRequest(prompt, sampling=sampling) for prompt in PROMPTS])
    assert [(one.raw, one.tokens, one.finish) for one in said] == [plain.said(prompt, own=True) for prompt in PROMPTS]


class Plain:
    """The plain way of asking transformers for one text."""

    def __init__(self, folder: Path) -> None:
        import transformers

        self.config = transformers.AutoConfig.from_pretrained(folder)
        kind = "AutoModelForSeq2SeqLM" if self.config.is_encoder_decoder else "AutoModelForCausalLM"
        self.model = getattr(transformers, kind).from_pretrained(folder).eval()
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        ends = torch.tensor(self.model.generation_config.eos_token_id).flatten().tolist()
        self.ends = {self.tokenizer.eos_token_id, *ends}

    def ids(self, prompt: str) -> list[int]:
        found: list[int] = self.tokenizer(prompt)["input_ids"]
        return [*found, self.tokenizer.eos_token_id] if self.config.is_encoder_decoder else found

    def said(self, prompt: str | list[int], *, own: bool = False, **options: Any) -> tuple[str, int, str]:
        """The text with special tokens up to its end, its number of tokens, and how it ended; ``own``: as the
        checkpoint's own configuration has it."""
        import transformers

        if not own:
            self.model.generation_config = transformers.GenerationConfig(
                bos_token_id=self.tokenizer.bos_token_id,
                eos_token_id=sorted(self.ends),
                pad_token_id=min(self.ends),
                decoder_start_token_id=getattr(self.config, "decoder_start_token_id", None),
                do_sample=False,
            )
        ids = torch.tensor([self.ids(prompt) if isinstance(prompt, str) else prompt])
        with torch.inference_mode():
            out = self.model.generate(input_ids=ids, attention_mask=torch.ones_like(ids), **options)[0].tolist()
        tokens = out[1:] if self.config.is_encoder_decoder else out[ids.shape[1] :]
        end = next((place for place, token in enumerate(tokens) if token in self.ends), None)
        tokens = tokens if end is None else tokens[:end]
        return self.tokenizer.decode(tokens), len(tokens), "length" if end is None else "stop"


# ends


@pytest.mark.parametrize("family", FAMILIES)
def test_a_text_ends_before_its_first_stop(engines: dict[str, TransformersEngine], family: str) -> None:
    """Whatever part of the text is its stop, within tokens or across them."""
    engine = engines[family]
    sampling = Sampling(temperature=1.0, max_tokens=24, min_tokens=1)
    whole = _say(engine, [TextRequest(prompt, sampling=sampling) for prompt in PROMPTS])
    asked = []
    expected = []
    for prompt, one in zip(PROMPTS, whole, strict=True):
        for start in range(0, len(one.text) - 3, 3):
            stop = one.text[start : start + 3]
            if not stop.isascii():
                continue
            stops = ("never said", stop)
            asked.append(TextRequest(prompt, sampling=Sampling(temperature=1.0, max_tokens=24, stops=stops)))
            expected.append((one.text.partition(stop)[0], PROMPTS.index(prompt)))
    said = _say(engine, asked, [seed for _, seed in expected])
    assert [one.text for one in said] == [text for text, _ in expected]
    assert all(one.finish == "stop" for one in said)
    assert len(asked) > 20


@pytest.mark.parametrize("family", FAMILIES)
def test_limits_are_a_rows_own(engines: dict[str, TransformersEngine], family: str) -> None:
    engine = engines[family]
    drawn = [TextRequest(PROMPTS[0], sampling=Sampling(temperature=1.2, max_tokens=most)) for most in range(1, 40)]
    said = _say(engine, drawn, [7] * len(drawn))
    lengths = [one.tokens or 0 for one in said]
    assert lengths == [min(most, lengths[-1]) for most in range(1, 40)]
    held = [TextRequest(PROMPTS[0], sampling=Sampling(temperature=1.2, min_tokens=i, max_tokens=40)) for i in range(40)]
    for least, one in enumerate(_say(engine, held * 3, [seed for seed in range(3) for _ in held])):
        assert (one.tokens or 0) >= least % 40
    early = _say(engine, [held[0]] * 40)
    assert any(one.finish == "stop" and (one.tokens or 0) < 40 for one in early)


# prompts


@pytest.mark.parametrize("family", FAMILIES)
def test_what_looks_like_a_special_token_in_a_text_is_none(engines: dict[str, TransformersEngine], family: str) -> None:
    engine = engines[family]
    mark = tokenizer(engine).eos_token
    nested = mark[:2] + mark + mark[2:]
    for spoiled in (f"Hi! {mark}How are you", f"Hi! {nested}How are you", f"{mark}Hi! How are you{mark}{mark}"):
        assert engine.tokens(TextRequest(spoiled)) == engine.tokens(TextRequest("Hi! How are you"))


def tokenizer(engine: TransformersEngine) -> Any:
    return AutoTokenizer.from_pretrained(engine.folder)


def written(engine: TransformersEngine, *chat: ChatMessage) -> str:
    return str(tokenizer(engine).decode(engine.tokens(TextRequest(messages=chat))))


def test_a_chat_is_written_by_the_template(folders: dict[str, Path]) -> None:
    engine = _loaded(folders["llama"], chat=True)
    chat = (ChatMessage("system", "Be short."), ChatMessage("user", "Hi"), ChatMessage("assistant", "Yo<|eot|>"))
    tokens = engine.tokens(TextRequest(messages=chat))
    own = tokenizer(engine)
    assert written(engine, *chat) == (
        "<|begin|><|start|>system<|end|>\nBe short.<|eot|><|start|>user<|end|>\nHi<|eot|>"
        "<|start|>assistant<|end|>\nYo<|eot|><|start|>assistant<|end|>\n"
    )
    assert tokens.count(own.bos_token_id) == 1  # the template's, none of the tokenizer's own
    assert engine.tokens(TextRequest("Hi"))[0] == own.bos_token_id
    assert tokens[:2] == own.convert_tokens_to_ids(["<|begin|>", "<|start|>"])  # tokens, not letters


def test_a_template_without_a_system_role_has_it_in_the_first_message(tmp_path: Path) -> None:
    engine = _loaded(tiny_language.llama(tmp_path, template=tiny_language.STRICT_TEMPLATE), chat=True)
    chat = (ChatMessage("system", "Be short."), ChatMessage("user", "Hi"), ChatMessage("assistant", "Yo"))
    assert written(engine, *chat, ChatMessage("user", "Why?")) == (
        "<|begin|><|start|>user<|end|>Be short.\n\nHi<|eot|><|start|>assistant<|end|>Yo<|eot|>"
        "<|start|>user<|end|>Why?<|eot|><|start|>assistant<|end|>"
    )
    assert written(engine, chat[0]) == "<|begin|><|start|>user<|end|>Be short.<|eot|><|start|>assistant<|end|>"


def test_a_chat_that_the_template_refuses_fails_alone(tmp_path: Path) -> None:
    engine = _loaded(tiny_language.llama(tmp_path, template=tiny_language.STRICT_TEMPLATE), chat=True)
    fine = TextRequest(messages=(ChatMessage("user", "Hi"),), sampling=GREEDY)
    wrong = TextRequest(messages=(ChatMessage("assistant", "Hi"),), sampling=GREEDY)
    seen = TextRequest(messages=(ChatMessage("user", "Hi", b"picture"),), sampling=GREEDY)
    replies = engine.generate_batch([fine, wrong, seen, fine], [0, 1, 2, 3])
    assert [getattr(one, "code", "said") for one in replies] == ["said", "bad_prompt", "no_images", "said"]
    assert "Roles must alternate" in str(replies[1])
    assert replies[0] == replies[3] == engine.generate_batch([fine], [0])[0]


def test_a_model_without_a_template_is_refused_for_chats_and_another_is_told_one_day(folders: dict[str, Path]) -> None:
    with pytest.raises(UnavailableError, match="has no chat template"):
        TransformersEngine(folders["gpt2"]).open(chat=True)
    template = "{{ date_string }}: {{ messages[-1]['content'] }}"
    engine = _loaded(folders["gpt2"], template=template, chat=True)
    assert written(engine, ChatMessage("user", "Hi")) == "26 Jul 2024: Hi"


def test_a_quantised_checkpoint_says_what_to_install(folders: dict[str, Path], tmp_path: Path) -> None:
    copy = Path(shutil.copytree(folders["llama"], tmp_path / "copy"))
    config = json.loads((copy / "config.json").read_text())
    config["quantization_config"] = {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True}
    (copy / "config.json").write_text(json.dumps(config))
    agent = LocalChatAgent(LocalChatAgent.Settings(checkpoint=str(copy)), "quantised")
    assert "has weights quantised by awq" in agent.missing()
    assert "pip install gptqmodel" in agent.missing()
    with pytest.raises(UnavailableError, match="gptqmodel"):  # as transformers itself has it
        _loaded(copy)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_prompt_too_long_loses_its_beginning(tmp_path: Path, family: str) -> None:
    engine = _loaded(tiny_language.MAKERS[family](tmp_path, positions=40))  # type: ignore[call-arg]
    plain = Plain(tmp_path)
    sampling = Sampling(temperature=0, min_tokens=10, max_tokens=10)
    for words in (1, 8, 9, 10, 30, 60):
        prompt = " ".join(["music", "books", "dog"][i % 3] for i in range(words))
        ids = plain.ids(prompt)
        asked = TextRequest(prompt, sampling=sampling)
        assert engine.excess(asked) == max(0, len(ids) - 30)
        [said] = _say(engine, [asked])
        assert said.prompt_tokens == min(len(ids), 30)
        assert said.raw == plain.said(ids[-30:], num_beams=1, min_new_tokens=10, max_new_tokens=10)[0]
    [full] = engine.generate_batch([TextRequest("Hi", sampling=Sampling(max_tokens=41))], [0])
    assert full.code == "no_room"


def test_tokens_without_an_embedding_fail_their_row(folders: dict[str, Path], tmp_path: Path) -> None:
    copy = Path(shutil.copytree(folders["gpt2"], tmp_path / "copy"))
    changed = AutoTokenizer.from_pretrained(copy)
    changed.add_tokens(["zebra"])
    changed.add_special_tokens({"pad_token": "[PAD]"})  # as many do, which is fine: nothing reads padding
    changed.save_pretrained(copy)
    engine = _loaded(copy)
    prompts = [" ".join(["x"] * count) for count in (24, 26)]
    asked = [TextRequest(prompt, sampling=GREEDY) for prompt in (*prompts, "Hi zebra")]
    replies = engine.generate_batch(asked, [0, 1, 2])
    assert replies[:2] == _say(_loaded(folders["gpt2"]), asked[:2])
    assert replies[2].code == "bad_prompt"


@pytest.mark.parametrize("beams", [None, {"num_beams": 3}], ids=["drawn", "beams"])
def test_logits_that_are_no_numbers_fail_their_own_row_only(
    folders: dict[str, Path], tmp_path: Path, beams: dict[str, int] | None
) -> None:
    engine = _loaded(folders["llama"], beams=beams)
    sampling = Sampling(temperature=1.0, max_tokens=10)
    asked = [TextRequest(prompt, sampling=sampling) for prompt in PROMPTS]
    whole = _say(engine, asked)
    weights = load_file(folders["llama"] / "model.safetensors")
    weights["model.embed_tokens.weight"][engine.tokens(TextRequest("q"))[-1]] = torch.nan
    asked[2] = TextRequest("xq", sampling=sampling)
    replies = _loaded(_changed(folders["llama"], tmp_path, weights), beams=beams).generate_batch(asked, list(range(8)))
    assert replies[2].code == "bad_logits"
    kept = [index for index in range(8) if index != 2 and "q" not in (whole[index].raw or "")]
    assert len(kept) >= 5
    assert [replies[index] for index in kept] == [whole[index] for index in kept]
