"""OFA's checkpoints in both published forms, and what may not pass for one."""

from __future__ import annotations

import argparse
import json
import os
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_ofa
import torch
from plain_ofa import BOS
from tiny_ofa import images, questions
from torch import Tensor

from agents.errors import UnavailableError
from agents.vision import ofa_fairseq as ofa_checkpoint
from agents.vision.ofa_network import OFAModel


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


def logits_of(model: OFAModel) -> Tensor:
    with torch.inference_mode():
        return model(questions(2), images(2), torch.tensor([[BOS, 270, 9, 301]] * 2)).logits


def test_both_forms_are_the_same_model(model: OFAModel, hub: Path, fairseq: Path) -> None:
    first, second = ofa_checkpoint.load(hub), ofa_checkpoint.load(fairseq)
    assert torch.equal(logits_of(first), logits_of(model))
    assert torch.equal(logits_of(second), logits_of(model))
    assert first.generation_config.decoder_start_token_id == BOS
    assert not first.training


def test_a_saved_model_is_read_again(tmp_path: Path, model: OFAModel) -> None:
    model.save_pretrained(tmp_path)
    assert (tmp_path / "model.safetensors").is_file()
    assert torch.equal(logits_of(ofa_checkpoint.load(tmp_path)), logits_of(model))
    assert torch.equal(logits_of(OFAModel.from_pretrained(tmp_path).eval()), logits_of(model))


def change(hub: Path, to: Path, weights: Callable[[dict[str, Tensor]], object] | None = None, **values: Any) -> Path:
    """A copy of the folder with other weights or config values."""
    to.mkdir()
    config = json.loads((hub / "config.json").read_text()) | values
    (to / "config.json").write_text(json.dumps(config))
    found = torch.load(hub / "pytorch_model.bin", weights_only=True)
    if weights is not None:
        weights(found)
    torch.save(found, to / "pytorch_model.bin")
    return to


def test_missing_and_foreign_weights_are_named(tmp_path: Path, hub: Path) -> None:
    def lose(weights: dict[str, Tensor]) -> None:
        del weights["decoder.layers.1.cross_attn.k_proj.weight"]
        weights["decoder.layers.1.stranger"] = torch.ones(1)

    with pytest.raises(UnavailableError, match=r"decoder\.layers\.1\.cross_attn\.k_proj\.weight.*stranger"):
        ofa_checkpoint.load(change(hub, tmp_path / "lost", lose))


def test_sizes_must_fit(tmp_path: Path, hub: Path) -> None:
    with pytest.raises(UnavailableError, match=r"fc1\.\w+ \[.*\] for \["):
        ofa_checkpoint.load(change(hub, tmp_path / "sizes", encoder_ffn_dim=50))


def test_unknown_variants_are_refused(tmp_path: Path, hub: Path) -> None:
    for number, (values, said) in enumerate(
        (
            ({"encoder_normalize_before": False}, "encoder_normalize_before = False"),
            ({"entangle_position_embedding": True}, "entangle_position_embedding = True"),
            ({"resnet_type": "resnet18"}, "resnet18"),
            ({"d_model": "wide"}, "bad sizes"),
        )
    ):
        with pytest.raises(UnavailableError, match=said):
            ofa_checkpoint.load(change(hub, tmp_path / str(number), **values))


def test_a_bad_config_is_one_sentence(tmp_path: Path, hub: Path) -> None:
    folder = change(hub, tmp_path / "bad")
    for content in (b"[]", b"{", b"\xff"):
        (folder / "config.json").write_bytes(content)
        with pytest.raises(UnavailableError, match=r"config\.json"):
            ofa_checkpoint.load(folder)


def test_another_output_matrix_is_refused(tmp_path: Path, hub: Path) -> None:
    def untie(weights: dict[str, Tensor]) -> None:
        weights["decoder.output_projection.weight"] = weights["decoder.output_projection.weight"] + 1

    with pytest.raises(UnavailableError, match=r"decoder\.output_projection\.weight is not"):
        ofa_checkpoint.load(change(hub, tmp_path / "untied", untie))


class Trap:
    """Unpickling one runs a command, if anything is run."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
        return os.mkdir, (str(self.mark),)


@pytest.mark.parametrize("form", ["folder", "file", "older file", "inside the arguments"])
def test_code_in_a_file_is_refused_and_not_run(tmp_path: Path, hub: Path, model: OFAModel, form: str) -> None:
    mark = tmp_path / "was-run"
    if form == "folder":
        path = change(hub, tmp_path / "trap", lambda weights: weights.update(trap=Trap(mark)))  # type: ignore[arg-type]
    elif form == "older file":
        path = tmp_path / "trap.pt"
        torch.save({"args": Trap(mark), "model": {}}, path, _use_new_zipfile_serialization=False)
    else:
        args = Trap(mark) if form == "file" else argparse.Namespace(inner=[Trap(mark)])
        path = tiny_ofa.fairseq_file(tmp_path / "trap.pt", model, args=args)
    with pytest.raises(UnavailableError):
        ofa_checkpoint.load(path)
    assert not mark.exists()
    (path / "pytorch_model.bin" if path.is_dir() else path).read_bytes().index(b"was-run")  # the trap is set


def test_the_training_programs_objects_are_not_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: OFAModel
) -> None:
    """A class of a package that is here while the file is read, and would notice being made."""
    made: list[object] = []

    class Settings:
        def __init__(self) -> None:
            self.content = {"beam": 5}

        def __setstate__(self, state: object) -> None:
            made.append(state)

    package = types.ModuleType("fairseq.dataclass.configs")
    Settings.__module__, Settings.__qualname__ = package.__name__, "Settings"
    package.Settings = Settings  # type: ignore[attr-defined]
    for name in ("fairseq", "fairseq.dataclass"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, package.__name__, package)
    numbers = {"loss": np.float64(1.5), "steps": np.arange(3)}
    path = tiny_ofa.fairseq_file(tmp_path / "left.pt", model, cfg=Settings(), task_state=numbers)
    assert torch.equal(logits_of(ofa_checkpoint.load(path)), logits_of(model))
    assert made == []
    assert isinstance(torch.load(path, weights_only=False)["cfg"], Settings)
    assert made, "unpickled otherwise, the class does notice"


def test_damaged_and_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.pt"
    for damaged in (b"", b"no file of torch", b"PK\x03\x04 cut off"):
        path.write_bytes(damaged)
        with pytest.raises(UnavailableError, match="cannot be read"):
            ofa_checkpoint.load(path)
    for content in ({"weights": {}}, {"model": [1]}, {"model": {"a": torch.ones(1)}}):
        torch.save(content, path)
        with pytest.raises(UnavailableError, match=r"no tensors by name|weights are missing"):
            ofa_checkpoint.load(path)
