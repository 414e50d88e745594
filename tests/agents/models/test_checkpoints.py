"""Checkpoints on this machine: where they are, what they are, what is wrong with them, and how weights are read."""

import hashlib
import json
import os
import random
import shutil
import socket
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest
import torch
import transformers
from huggingface_hub import constants
from safetensors.torch import save_file

from agents.errors import UnavailableError
from agents.models import checkpoints, hub, model_folders, weight_files
from agents.models.loading import dtype_for, load_pretrained
from agents.models.pretrained import PretrainedAgent, PretrainedSettings
from tests.helpers import pickles, tiny_captioners

COMMIT = "0123456789abcdef0123456789abcdef01234567"
NEEDS = ("config.json", model_folders.WEIGHTS)
INDEX = "model.safetensors.index.json"


class Tiny(PretrainedAgent[PretrainedSettings]):
    needs = NEEDS


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whatever opens a socket fails; the hub's cache is empty."""

    def refuse(*arguments: Any, **named: Any) -> NoReturn:
        raise AssertionError("a socket was opened")

    for name in ("socket", "create_connection", "getaddrinfo"):
        monkeypatch.setattr(socket, name, refuse)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))


def model(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps({"model_type": "tiny"}))
    save_file({"a": torch.arange(6.0).reshape(2, 3), "b": torch.ones(1)}, folder / "model.safetensors")
    return folder


def cached(tmp_path: Path, name: str = "owner/tiny") -> Path:
    """A model in the hub's cache, made by hand as huggingface.co documents it: links into blobs."""
    root = tmp_path / "hub" / f"models--{name.replace('/', '--')}"
    folder = root / "snapshots" / COMMIT
    folder.mkdir(parents=True)
    (root / "blobs").mkdir()
    for file in model(tmp_path / "made").iterdir():
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        shutil.copy(file, root / "blobs" / digest)
        (folder / file.name).symlink_to(Path("..", "..", "blobs", digest))
    for ref in ("main", "refs/pr/1"):
        (root / "refs" / ref).parent.mkdir(parents=True, exist_ok=True)
        (root / "refs" / ref).write_text(COMMIT)
    return folder


# where they are


def test_a_checkpoint_of_the_cache_by_branch_tag_and_commit(tmp_path: Path) -> None:
    folder = cached(tmp_path)
    for revision in (None, "main", "refs/pr/1", COMMIT):
        assert checkpoints.find("owner/tiny", revision) == folder
        assert checkpoints.identity("owner/tiny", revision) == ("owner/tiny", COMMIT)
    assert model_folders.problem(folder, NEEDS, ("tiny",)) is None
    for revision in ("v2", "f" * 40, "../../../made"):
        with pytest.raises(UnavailableError, match=r"^owner/tiny at revision .* is not on this machine$"):
            checkpoints.find("owner/tiny", revision)
        assert checkpoints.identity("owner/tiny", revision) == ("owner/tiny", revision)


@pytest.mark.parametrize(
    ("checkpoint", "message"),
    [
        ("a/b/c", "a/b/c: no such file or folder"),
        ("./x", "./x: no such file or folder"),
        ("a--b", "a--b: no such file or folder"),  # else the folder of a/b
        ("weights.pt", "weights.pt: no such file or folder"),
        ("owner/tiny", "owner/tiny is not on this machine"),
        ("gpt2", "gpt2 is not on this machine"),
        ("https://huggingface.co/owner/tiny", "https://huggingface.co/owner/tiny: web addresses are not fetched"),
        ("x" * 5000, "x" * 200 + " cannot be read"),
    ],
)
def test_names_of_nothing(checkpoint: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    cached(tmp_path, "a/b")
    with pytest.raises(UnavailableError) as failure:
        checkpoints.find(checkpoint)
    assert str(failure.value).startswith(message)
    assert checkpoints.identity(checkpoint, "v1") == (checkpoint, "v1")
    missing = Tiny(PretrainedSettings(checkpoint=checkpoint), "tiny").missing()
    assert missing is not None
    assert missing.startswith(message)
    if message.endswith("is not on this machine"):
        assert "run `turinglike fetch tiny`" in missing
    else:  # no try either: a socket would be opened
        with pytest.raises(UnavailableError):
            hub.fetch(checkpoint)


# what they are


def revision(path: Path) -> str:
    return str(checkpoints.identity(str(path))[1])


def test_the_identity_of_a_folder_is_what_an_agent_reads_in_it(tmp_path: Path) -> None:
    first = revision(model(tmp_path / "one"))
    folder = (tmp_path / "one").rename(tmp_path / "two")
    weights = folder / "model.safetensors"
    os.utime(weights, (1, 1))
    names = "RANDOM_WEIGHTS README.txt LICENSE .git/HEAD .cache/huggingface/x tf_model.h5 modeling_x.py sub/.DS_Store"
    for name in [*names.split(), "pytorch_model.bin"]:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")
    assert revision(folder) == first
    assert weight_files.random_weights(folder)
    about = weights.stat()
    weights.write_bytes(weights.read_bytes()[:-1] + b"x")
    os.utime(weights, ns=(about.st_atime_ns, about.st_mtime_ns))  # of the same size and age
    changed = revision(folder)
    (folder / "sub" / "vocab.txt").write_text("a")
    added = revision(folder)
    (folder / "sub" / "vocab.txt").rename(folder / "sub" / "merges.txt")
    assert len({first, changed, added, revision(folder)}) == 4
    assert revision(weights) == f"sha256:{hashlib.sha256(weights.read_bytes()).hexdigest()}"


# what is wrong with them


def shard(folder: Path, *names: str) -> None:
    (folder / "model.safetensors").unlink()
    (folder / INDEX).write_text(json.dumps({"weight_map": dict(enumerate(names))}))


def write_weights(change: Callable[[bytes], bytes]) -> Callable[[Path], object]:
    def write(folder: Path) -> None:
        weights = folder / "model.safetensors"
        weights.write_bytes(change(weights.read_bytes()))

    return write


def write_config(text: str) -> Callable[[Path], object]:
    return lambda folder: (folder / "config.json").write_text(text)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / "config.json").unlink(), "lacks config.json"),
        (lambda folder: (folder / "model.safetensors").unlink(), "lacks model.safetensors or model.safetensors.index"),
        (write_weights(lambda old: old[:-1]), "has a damaged model.safetensors, which may be cut"),
        (write_weights(lambda old: b"version https://git-lfs.github.com/spec/v1\noid"), "has a pointer of Git LFS"),
        (write_config("{}"), "has a config.json without a model_type"),
        (write_config("{"), "has a damaged config.json (Expecting property name"),
        (write_config("[" * 100_000), "has a damaged config.json ("),
        (write_config("[1]"), "has a damaged config.json (not an object)"),
        (write_config('{"model_type": "clip"}'), "holds a model of type 'clip', not 'tiny' or 'small'"),
        (lambda folder: shard(folder, "b-1.safetensors", "config.json"), f"lacks b-1.safetensors, which {INDEX} lists"),
        (shutil.rmtree, "is not a folder"),
    ],
)
def test_what_a_folder_lacks(damage: Callable[[Path], object], message: str, tmp_path: Path) -> None:
    folder = model(tmp_path / "made")
    (folder / "pytorch_model.bin.index.json").write_text("{}")  # of a form that is not read
    assert model_folders.problem(folder, NEEDS, ("tiny", "small")) is None
    (folder / "pytorch_model.bin.index.json").unlink()
    damage(folder)
    assert str(model_folders.problem(folder, NEEDS, ("tiny", "small"))).startswith(message)


# how weights are read

TENSORS = {"a": torch.arange(6.0).reshape(2, 3), "b.c": torch.tensor([1, 2]), "half": torch.ones(2, dtype=torch.half)}


def saved(path: Path, content: object, form: str) -> Path:
    if form == "safetensors":
        save_file(TENSORS, path)
    else:
        torch.save(content, path, _use_new_zipfile_serialization=form == "zip")
    return path


@pytest.mark.parametrize("form", ["zip", "legacy", "safetensors"])
def test_weights_files(form: str, tmp_path: Path) -> None:
    path = tmp_path / ("x.safetensors" if form == "safetensors" else "x.bin")
    weights = weight_files.read_weights(saved(path, OrderedDict(TENSORS) | {"epoch": 3}, form))
    assert weights.keys() == TENSORS.keys()
    assert all(weights[name].dtype == value.dtype and weights[name].equal(value) for name, value in TENSORS.items())
    if form != "safetensors":
        nested = saved(path, {"model": TENSORS}, form)
        assert weight_files.read_torch(nested)["model"].keys() == TENSORS.keys()
        with pytest.raises(UnavailableError, match="holds no weights by name"):
            weight_files.read_weights(nested)
        with pytest.raises(UnavailableError, match="holds a list, not weights by name"):
            weight_files.read_torch(saved(path, [torch.ones(1)], form))


@pytest.mark.parametrize("form", ["zip", "legacy"])
def test_code_is_refused_and_not_executed(form: str, tmp_path: Path) -> None:
    path = saved(tmp_path / "x.bin", {"a": torch.ones(2), "b": pickles.Armed(tmp_path / "made")}, form)
    with pytest.raises(UnavailableError, match=r"code or objects \(posix\.mkdir\) beside weights; it was not executed"):
        weight_files.read_weights(path)
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("form", ["zip", "legacy", "safetensors"])
def test_a_damaged_file_is_one_sentence_or_weights(form: str, tmp_path: Path) -> None:
    """Files cut, and with bytes changed, at random places: nothing but an UnavailableError comes out."""
    path = tmp_path / ("x.safetensors" if form == "safetensors" else "x.bin")
    whole = saved(path, TENSORS, form).read_bytes()
    draw = random.Random(form)
    messages = []
    for _ in range(100):
        content = bytearray(whole)
        for _ in range(draw.randint(1, 8)):
            content[draw.randrange(min(len(content), 900))] = draw.randrange(256)
        path.write_bytes(content[: draw.randrange(len(whole))] if draw.random() < 0.2 else content)
        try:
            weight_files.read_weights(path)
        except UnavailableError as error:
            messages.append(str(error))
    assert len(messages) > 50
    assert all(message.startswith(f"{path} ") and "\n" not in message for message in messages)


@pytest.mark.parametrize(
    ("make", "name"),
    [(tiny_captioners.git, "GitForCausalLM"), (tiny_captioners.llava_next, "LlavaNextForConditionalGeneration")],
)
def test_a_configuration_does_not_choose_what_computes_attention(
    make: Callable[[Path], Path], name: str, tmp_path: Path
) -> None:
    """It may name a kernel that transformers would download and run."""
    evil = "kernels-community/evil"

    def kernels(folder: Path) -> set[str]:
        loaded = load_pretrained(getattr(transformers, name), folder, torch.device("cpu"), torch.float32)
        parts = [part for part in loaded.modules() if isinstance(part, transformers.PreTrainedModel)]
        return {f"{type(part).__name__} {part.config._attn_implementation}" for part in parts}

    def poisoned(config: dict[str, Any]) -> dict[str, Any]:
        parts = {key: poisoned(value) for key, value in config.items() if key.endswith("_config")}
        return {**config, **parts, "_attn_implementation": evil, "attn_implementation": evil}

    folder = make(tmp_path / "model")
    before = kernels(folder)
    path = folder / "config.json"
    path.write_text(json.dumps(poisoned(json.loads(path.read_text()))))
    assert kernels(folder) == before
    assert not any(evil in kernel for kernel in before)


@pytest.mark.parametrize(
    ("precision", "device", "stored", "computed"),
    [
        ("auto", "cpu", torch.float16, torch.float32),
        ("auto", "cuda", torch.float16, torch.float16),
        ("auto", "cuda", torch.float32, torch.bfloat16),
        ("auto", "cuda", None, torch.bfloat16),
        ("fp32", "cuda", torch.float16, torch.float32),
    ],
)
def test_precision_follows_the_setting_then_the_checkpoint(
    precision: str, device: str, stored: torch.dtype | None, computed: torch.dtype, tmp_path: Path
) -> None:
    if stored is not None:
        transformers.GPT2Config(dtype=stored).save_pretrained(tmp_path)
    assert dtype_for(precision, torch.device(device), tmp_path) == computed
