"""A tiny checkpoint, with random weights, for every captioner and detector of the catalogue."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tiny_captioners
import tiny_clipcap
import tiny_detectors
import tiny_ofa
import tiny_openflamingo
import tiny_scst
from safetensors.torch import save_file

from agents import catalogue
from agents.built_in import PROPRIETARY
from agents.catalogue import Entry

SMALL = {"short_edge": tiny_detectors.SHORT, "long_edge": tiny_detectors.LONG}


def _captioner(maker: Callable[[Path], Path]) -> Callable[[Path, Entry], dict[str, Any]]:
    return lambda folder, entry: {"checkpoint": str(maker(folder))}


def _ofa(folder: Path, entry: Entry) -> dict[str, Any]:
    file = tiny_ofa.fairseq_file(folder / "caption_huge_best.pt")
    (folder / "RANDOM_WEIGHTS").touch()
    dictionary = tiny_ofa.dictionary(folder / "dictionary")
    return {"checkpoint": str(file), "dictionary": str(dictionary), "image_size": 64}


def _detr(folder: Path, entry: Entry) -> dict[str, Any]:
    made = tiny_detectors.detr(folder)
    (made / "RANDOM_WEIGHTS").touch()
    return {"checkpoint": str(made), **SMALL}


def _file(folder: Path, model: Any) -> dict[str, Any]:
    folder.mkdir(parents=True)
    save_file({name: value.contiguous() for name, value in model.state_dict().items()}, folder / "model.safetensors")
    (folder / "RANDOM_WEIGHTS").touch()
    return {"checkpoint": str(folder / "model.safetensors"), **SMALL}


MAKERS: dict[str, Callable[[Path, Entry], dict[str, Any]]] = {
    "agents.vision.git_and_blip:GitAgent": _captioner(tiny_captioners.git),
    "agents.vision.git_and_blip:BlipAgent": _captioner(tiny_captioners.blip),
    "agents.vision.git_and_blip:Blip2Agent": _captioner(tiny_captioners.blip2),
    "agents.vision.llava_next:LlavaNextAgent": _captioner(tiny_captioners.llava_next),
    "agents.vision.ofa:OFAAgent": _ofa,
    "agents.vision.clipcap:ClipCapAgent": lambda folder, entry: tiny_clipcap.make(folder, entry.settings["mapper"]),
    "agents.vision.openflamingo:OpenFlamingoAgent": lambda folder, entry: tiny_openflamingo.make(folder),
    "agents.vision.scst:SCSTAgent": _captioner(tiny_scst.make),
    "agents.vision.detector:DetrAgent": _detr,
    "agents.vision.detector:TorchvisionMaskRCNNAgent": lambda folder, entry: _file(
        folder, tiny_detectors.torchvision_model()
    ),
    "agents.vision.detectron2_maskrcnn:Detectron2Agent": lambda folder, entry: _file(
        folder, tiny_detectors.detectron2_model()
    ),
}


def entries() -> list[Entry]:
    """Every captioner and detector of the catalogue with a checkpoint that this machine has the packages for."""
    tasks = {"image_captioning", "object_detection"}
    found = [
        entry
        for entry in catalogue.entries().values()
        if tasks.intersection(entry.tasks) and entry.agent.startswith("agents.vision.") and entry.licence != PROPRIETARY
    ]
    has_detectron2 = importlib.util.find_spec("detectron2") is not None
    return [entry for entry in found if has_detectron2 or "detectron2" not in entry.agent]


def make(folder: Path, entry: Entry) -> dict[str, Any]:
    """Settings under which ``entry`` has a tiny checkpoint, made in ``folder``."""
    return MAKERS[entry.agent](folder, entry)
