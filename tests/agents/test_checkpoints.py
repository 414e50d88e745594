"""Checkpoints on this machine: where they are, what they are, what is wrong with them, and how weights are read."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest
import torch
from huggingface_hub import constants
from safetensors.torch import save_file

from agents import checkpoints, hub
from agents.errors import UnavailableError
from agents.pretrained import PretrainedAgent, PretrainedSettings

COMMIT = "0123456789abcdef0123456789abcdef01234567"
NEEDS = ("config.json", checkpoints.WEIGHTS)


class Tiny(PretrainedAgent[PretrainedSettings]):
    needs = NEEDS


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whatever opens a socket fails; the hub's cache is empty."""

    def refuse(*arguments: Any, **named: Any) -> NoReturn:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))


def model(folder: Path, **config: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps({"model_type": "tiny", **config}))
    save_file({"a": torch.arange(6.0).reshape(2, 3), "b": torch.ones(1)}, folder / "model.safetensors")
    return folder


def cached(tmp_path: Path, name: str = "owner/tiny", commit: str = COMMIT, ref: str | None = "main") -> Path:
    """A model in the hub's cache, made by hand as huggingface.co documents it: links into blobs."""
    root = tmp_path / "hub" / f"models--{name.replace('/', '--')}"
    whole = model(tmp_path / "made")
    folder = root / "snapshots" / commit
    folder.mkdir(parents=True)
    (root / "blobs").mkdir(exist_ok=True)
    for file in whole.iterdir():
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        shutil.copy(file, root / "blobs" / digest)
        (folder / file.name).symlink_to(Path("..", "..", "blobs", digest))
    if ref is not None:
        (root / "refs" / ref).parent.mkdir(parents=True, exist_ok=True)
        (root / "refs" / ref).write_text(commit)
    return folder


# where they are


def test_a_checkpoint_of_the_cache_by_branch_tag_and_commit(tmp_path: Path) -> None:
    folder = cached(tmp_path)
    (folder.parent.parent / "refs" / "refs" / "pr").mkdir(parents=True)
    (folder.parent.parent / "refs" / "refs" / "pr" / "1").write_text(COMMIT)
    for revision in (None, "main", "refs/pr/1", COMMIT):
        assert checkpoints.find("owner/tiny", revision) == folder
        assert checkpoints.identity("owner/tiny", revision) == ("owner/tiny", COMMIT)
    assert checkpoints.problem(folder, NEEDS, ("tiny",)) is None


@pytest.mark.parametrize("revision", ["v2", "f" * 40, "../../../made", "/etc/passwd", "\0", "x" * 5000])
def test_a_revision_that_is_not_here(revision: str, tmp_path: Path) -> None:
    cached(tmp_path)
    with pytest.raises(UnavailableError, match=r"^owner/tiny at revision (.|\n)* is not on this machine$"):
        checkpoints.find("owner/tiny", revision)
    assert checkpoints.identity("owner/tiny", revision) == ("owner/tiny", revision)


@pytest.mark.parametrize("written", ["", "../../../..", "\ud800"])
def test_a_damaged_reference(written: str, tmp_path: Path) -> None:
    root = cached(tmp_path).parent.parent
    (root / "refs" / "main").write_bytes(written.encode("utf-8", "surrogatepass"))
    with pytest.raises(UnavailableError, match=r"^owner/tiny is not on this machine$"):
        checkpoints.find("owner/tiny")


@pytest.mark.parametrize(
    ("checkpoint", "says"),
    [
        ("", "no checkpoint is named"),
        ("a/b/c", "a/b/c: no such file or folder"),
        ("./x", "./x: no such file or folder"),
        ("../..no", "../..no: no such file or folder"),
        ("a--b", "a--b: no such file or folder"),  # else the folder of a/b
        ("weights.pt", "weights.pt: no such file or folder"),
        ("owner/name.git", "owner/name.git: no such file or folder"),
        ("ówner/name", "ówner/name: no such file or folder"),
        ("owner/tiny", "owner/tiny is not on this machine"),
        ("gpt2", "gpt2 is not on this machine"),
    ],
)
def test_names_of_nothing(checkpoint: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    cached(tmp_path, "a/b")
    with pytest.raises(UnavailableError) as caught:
        checkpoints.find(checkpoint)
    assert str(caught.value) == says
    assert checkpoints.identity(checkpoint, "v1") == (checkpoint, "v1")
    missing = Tiny(PretrainedSettings.model_construct(checkpoint=checkpoint, revision=None), "tiny").missing()
    how = ": run `turinglike fetch tiny` where there is a network, or give a local copy with --set tiny.checkpoint=PATH"
    assert missing == says + how * says.endswith("is not on this machine")
    if "on this machine" not in says:  # no try either: a socket would be opened
        with pytest.raises(UnavailableError) as caught:
            hub.fetch(checkpoint)
        assert str(caught.value) == says


@pytest.mark.parametrize("address", ["https://huggingface.co/owner/tiny", "file:///etc"])
def test_web_addresses(address: str) -> None:
    for verb in (checkpoints.find, hub.fetch):
        with pytest.raises(UnavailableError, match=f"^{address}: web addresses are not fetched; name a model"):
            verb(address)


@pytest.mark.parametrize("checkpoint", ["~nobody-of-this-name/x", "x" * 5000, "a\0b"])
def test_names_that_no_path_can_have(checkpoint: str) -> None:
    with pytest.raises(UnavailableError) as caught:
        checkpoints.find(checkpoint)
    assert len(str(caught.value)) < 500


def test_a_local_folder_goes_before_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cached(tmp_path)
    monkeypatch.chdir(tmp_path)
    local = model(tmp_path / "owner" / "tiny")
    assert checkpoints.find("owner/tiny") == local
    assert str(checkpoints.identity("owner/tiny")[1]).startswith("sha256:")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert checkpoints.find("~/owner/tiny") == local


# what they are


def revision(path: Path) -> str:
    name, found = checkpoints.identity(str(path))
    assert name == str(path)
    assert found is not None
    return found


def test_the_identity_of_a_folder_is_what_it_holds(tmp_path: Path) -> None:
    folder = model(tmp_path / "one")
    before = revision(folder)
    assert revision(folder.rename(tmp_path / "two")) == before
    folder = tmp_path / "two"
    weights = folder / "model.safetensors"
    os.utime(weights, (1, 1))
    assert revision(folder) == before
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    about = weights.stat()
    weights.write_bytes(content)
    os.utime(weights, ns=(about.st_atime_ns, about.st_mtime_ns))  # of the same size and age
    changed = revision(folder)
    assert changed != before
    (folder / "vocab.txt").write_text("a")
    more = revision(folder)
    (folder / "vocab.txt").rename(folder / "merges.txt")
    assert len({before, changed, more, revision(folder)}) == 4


def test_what_no_agent_reads_is_no_part_of_the_identity(tmp_path: Path) -> None:
    folder = model(tmp_path / "one")
    before = revision(folder)
    names = "RANDOM_WEIGHTS README.txt LICENSE .gitattributes .git/HEAD .cache/huggingface/x tf_model.h5 modeling_x.py"
    for name in [*names.split(), "sub/.DS_Store", "pytorch_model.bin"]:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")
    assert revision(folder) == before
    assert checkpoints.random_weights(folder)
    (folder / "sub" / "tokenizer.json").write_text("x")
    assert revision(folder) != before


def test_the_identity_of_a_file_is_its_sha256(tmp_path: Path) -> None:
    file = tmp_path / "weights.pt"
    file.write_bytes(b"abc")
    assert revision(file) == f"sha256:{hashlib.sha256(b'abc').hexdigest()}"


# what is wrong with them


def sharded(folder: Path, index: object) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def shards(*names: str) -> dict[str, dict[str, str]]:
    return {"weight_map": {f"weight{index}": name for index, name in enumerate(names)}}


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda folder: (folder / "config.json").unlink(), "lacks config.json"),
        (
            lambda folder: (folder / "model.safetensors").unlink(),
            "lacks model.safetensors or model.safetensors.index.json or pytorch_model.bin or "
            "pytorch_model.bin.index.json",
        ),
        (lambda folder: (folder / "config.json").write_text("{"), "has a damaged config.json (Expecting property name"),
        (lambda folder: (folder / "config.json").write_text("[" * 100_000), "has a damaged config.json ("),
        (lambda folder: (folder / "config.json").write_text("[1]"), "has a damaged config.json (not an object)"),
        (
            lambda folder: (folder / "config.json").write_text('{"model_type": "clip"}'),
            "holds a model of type 'clip', not 'tiny' or 'small'",
        ),
        (lambda folder: (folder / "config.json").write_text("{}"), "holds a model of type None, not"),
        (
            lambda folder: sharded(folder, shards("b-1.safetensors", "b-2.safetensors")),
            "lacks b-1.safetensors, b-2.safetensors, which model.safetensors.index.json lists",
        ),
        (
            lambda folder: sharded(folder, shards("../made/model.safetensors", "config.json")),
            "lacks ../made/model.safetensors, which",
        ),
        (lambda folder: sharded(folder, {"weight_map": []}), "has a damaged model.safetensors.index.json (no weight"),
        (lambda folder: shutil.rmtree(folder), "is not a folder"),
    ],
)
def test_what_a_folder_lacks(damage: Callable[[Path], object], says: str, tmp_path: Path) -> None:
    folder = model(tmp_path / "made")
    assert checkpoints.problem(folder, NEEDS, ("tiny", "small")) is None
    damage(folder)
    found = checkpoints.problem(folder, NEEDS, ("tiny", "small"))
    assert found is not None
    assert found.startswith(says)


def test_the_index_of_a_form_that_is_not_read_does_not_matter(tmp_path: Path) -> None:
    folder = model(tmp_path / "made")
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps(shards("pytorch_model-00001-of-00002.bin")))
    (folder / "tf_model.h5.index.json").write_text("damaged")
    (folder / ".lock").symlink_to("gone")
    assert checkpoints.problem(folder, NEEDS, ("tiny",)) is None
    sharded(folder, shards("part.safetensors"))
    save_file({"a": torch.ones(1)}, folder / "part.safetensors")
    assert checkpoints.problem(folder, NEEDS, ("tiny",)) is None


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "."])
def test_what_is_no_file_is_not_opened(tmp_path: Path, name: str) -> None:
    folder = model(tmp_path / "made")
    path = (folder / name).resolve()
    if name == ".":
        shutil.rmtree(folder)
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    with pytest.raises(UnavailableError, match=f"{path.name} is neither a file nor a folder"):
        checkpoints.local_path(str(folder))


def test_names_of_weights(tmp_path: Path) -> None:
    checkpoints.check_names(tmp_path, [])
    with pytest.raises(UnavailableError) as caught:
        checkpoints.check_names("x", ["d", "c", "b", "a"], ["e"])
    assert str(caught.value) == (
        "x is not a checkpoint of this architecture: 4 weights are missing (a, b, c …) and 1 weights are none of the "
        "model's (e)"
    )
