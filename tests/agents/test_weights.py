"""How weights are read: safetensors and torch files, whole, damaged, and with code in them."""

from __future__ import annotations

import json
import os
import pickle
import random
import re
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tiny_captioners
import torch
import transformers
from safetensors.torch import save_file

from agents import checkpoints
from agents.errors import UnavailableError
from agents.loading import dtype_for, load_pretrained

TENSORS = {"a": torch.arange(6.0).reshape(2, 3), "b.c": torch.tensor([1, 2]), "half": torch.ones(2, dtype=torch.half)}


def saved(path: Path, content: object, *, legacy: bool = False) -> Path:
    torch.save(content, path, _use_new_zipfile_serialization=not legacy)
    return path


def assert_same(found: dict[str, torch.Tensor]) -> None:
    assert found.keys() == TENSORS.keys()
    for name, value in TENSORS.items():
        assert found[name].dtype == value.dtype
        assert torch.equal(found[name], value)


@pytest.mark.parametrize("legacy", [False, True])
def test_torch_files(legacy: bool, tmp_path: Path) -> None:
    assert_same(checkpoints.read_weights(saved(tmp_path / "a.bin", TENSORS, legacy=legacy)))
    assert_same(checkpoints.read_weights(saved(tmp_path / "b.pt", OrderedDict(TENSORS), legacy=legacy)))
    path = saved(tmp_path / "c.pt", {**TENSORS, "epoch": 3, "p": torch.nn.Parameter(torch.ones(1))}, legacy=legacy)
    assert checkpoints.read_weights(path).keys() == {*TENSORS, "p"}
    nested = saved(tmp_path / "d.pt", {"model": TENSORS, "epoch": 3}, legacy=legacy)
    assert_same(checkpoints.read_torch(nested)["model"])
    with pytest.raises(UnavailableError, match=r"d\.pt holds no weights by name$"):
        checkpoints.read_weights(nested)
    with pytest.raises(UnavailableError, match=r"e\.pt holds a list, not weights by name$"):
        checkpoints.read_torch(saved(tmp_path / "e.pt", [torch.ones(1)], legacy=legacy))


def test_safetensors_files(tmp_path: Path) -> None:
    save_file(TENSORS, tmp_path / "a.safetensors")
    assert_same(checkpoints.read_weights(tmp_path / "a.safetensors"))
    save_file({}, tmp_path / "none.safetensors")
    with pytest.raises(UnavailableError, match="holds no weights by name"):
        checkpoints.read_weights(tmp_path / "none.safetensors")


class Touch:
    """Pickled, it asks for a call that would make a file."""

    def __init__(self, call: Callable[..., object], *arguments: object) -> None:
        self.call, self.arguments = call, arguments

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return self.call, self.arguments


@pytest.mark.parametrize("form", ["zip", "legacy", "plain"])
@pytest.mark.parametrize(
    ("call", "argument", "named"),
    [(os.system, "touch {}", r"posix\.system"), (os.mkdir, "{}", r"posix\.mkdir")],
)
def test_code_is_refused_and_not_executed(
    form: str, call: Callable[[str], object], argument: str, named: str, tmp_path: Path
) -> None:
    made = tmp_path / "made"
    argument = argument.format(made)
    call(argument)  # what the file asks for does make something
    assert made.exists()
    made.rmdir() if made.is_dir() else made.unlink()
    path = tmp_path / "pytorch_model.bin"
    if form == "plain":
        path.write_bytes(pickle.dumps({"b": Touch(call, argument)}, protocol=2))
    else:
        saved(path, {"a": torch.ones(2), "b": Touch(call, argument)}, legacy=form == "legacy")
    for read in (checkpoints.read_weights, checkpoints.read_torch):
        with pytest.raises(UnavailableError) as caught:
            read(path)
        assert re.fullmatch(
            rf"{path} is damaged, or holds code or objects \({named}\) beside weights; it was not executed\. "
            "Save its tensors alone, as safetensors",
            str(caught.value),
        )
    assert not made.exists()


@pytest.mark.parametrize("form", ["zip", "legacy", "safetensors"])
def test_whatever_is_damaged_is_one_sentence_or_weights(form: str, tmp_path: Path) -> None:
    """Files cut, and with bytes changed, at random places: nothing but an UnavailableError comes out."""
    path = tmp_path / ("x.safetensors" if form == "safetensors" else "x.bin")
    if form == "safetensors":
        save_file(TENSORS, path)
    else:
        saved(path, TENSORS, legacy=form == "legacy")
    whole = path.read_bytes()
    draw = random.Random(form)
    refused = []
    for _ in range(150):
        content = bytearray(whole)
        for _ in range(draw.randint(1, 8)):
            content[draw.randrange(min(len(content), 900))] = draw.randrange(256)
        path.write_bytes(content[: draw.randrange(len(whole))] if draw.random() < 0.2 else content)
        try:
            checkpoints.read_weights(path)
        except UnavailableError as error:
            refused.append(str(error))
    assert len(refused) > 75
    assert all(says.startswith(f"{path} ") and "\n" not in says for says in refused)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (tiny_captioners.git, "GitForCausalLM"),
        (tiny_captioners.llava_next, "LlavaNextForConditionalGeneration"),
    ],
    ids=["git", "llava"],
)
def test_a_configuration_does_not_choose_what_computes_attention(
    make: Callable[[Path], Path], name: str, tmp_path: Path
) -> None:
    """It may name a kernel that transformers would download and run."""

    def chosen(folder: Path) -> set[str]:
        model = load_pretrained(getattr(transformers, name), folder, torch.device("cpu"), torch.float32)
        parts = [part for part in model.modules() if isinstance(part, transformers.PreTrainedModel)]
        return {f"{type(part).__name__} {part.config._attn_implementation}" for part in parts}

    def poisoned(config: dict[str, Any]) -> dict[str, Any]:
        parts = {key: poisoned(value) for key, value in config.items() if key.endswith("_config")}
        return {**config, **parts, "_attn_implementation": EVIL, "attn_implementation": EVIL}

    folder = make(tmp_path / "model")
    before = chosen(folder)
    path = folder / "config.json"
    path.write_text(json.dumps(poisoned(json.loads(path.read_text()))))
    assert chosen(folder) == before
    assert not any(EVIL in one for one in before)


EVIL = "kernels-community/evil"


@pytest.mark.parametrize(
    ("precision", "device", "stored", "computed"),
    [
        ("auto", "cpu", torch.float16, torch.float32),
        ("auto", "cuda", torch.float16, torch.float16),
        ("auto", "cuda", torch.bfloat16, torch.bfloat16),
        ("auto", "cuda", torch.float32, torch.bfloat16),
        ("auto", "cuda", None, torch.bfloat16),
        ("fp32", "cuda", torch.float16, torch.float32),
        ("bf16", "cuda", torch.float16, torch.bfloat16),
    ],
)
def test_what_is_computed_in_follows_the_setting_then_the_checkpoint(
    precision: str, device: str, stored: torch.dtype | None, computed: torch.dtype, tmp_path: Path
) -> None:
    if stored is not None:
        transformers.GPT2Config(dtype=stored).save_pretrained(tmp_path)
    assert dtype_for(precision, torch.device(device), tmp_path) == computed
