"""Every agent of the catalogue that answers here: settings for a tiny checkpoint, stimuli, and answers."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import misbehaving_server
import numpy as np
import orjson
import tiny_embeddings
import tiny_language
import tiny_vgg
import tiny_vision
from PIL import Image

from agents import catalogue
from agents.built_in import PROPRIETARY
from agents.catalogue import Entry
from agents.contract import Agent, Draw
from agents.language.words import vocabulary
from agents.stimuli import Stimulus, parse_row

SIZES = ((96, 72), (64, 90), (120, 80), (96, 72))  # of pictures: two are alike
TEXTS = ("I like music.", "Why do you say that?", "They are boring!", "Tell me more about science, please.")
CUES = ("dog", "sun", "house", "man", "woman", "tree", "water", "music")
QUICK = {"max_search": 4}
# Packages that no registry has, and so no extra installs; a machine without them skips their agents.
OUTSIDE = ("detectron2", "deepgaze_pytorch")
OF_CHECKPOINT = ("checkpoint", "revision", "dictionary", "image_size", "clip")  # settings that follow the checkpoint
WITH_PICTURE = ("color_estimation", "object_detection", "image_captioning", "attention_prediction")
# Slow: two stimuli do.
FULL_SIZE = ("agents.attention", "agents.vision.detector:Torchvision", "agents.vision.detectron2")
Maker = Callable[[Path, Entry, ExitStack], dict[str, Any]]


def _language(maker: str, folder: Path, entry: Entry, stack: ExitStack, **more: Any) -> dict[str, Any]:
    most = {"min_tokens": 8, "max_tokens": 12} if maker == "blenderbot" else {"max_tokens": 12}
    return {"checkpoint": str(tiny_language.MAKERS[maker](folder, **more)), **most}


def _vgg(folder: Path, entry: Entry, stack: ExitStack, **chosen: Any) -> dict[str, Any]:
    # A GPU takes many tiles at a time, whether it has so many or not, which would take a CPU long.
    from agents.attention.models import similarity

    stack.enter_context(mock.patch.object(similarity, "PIXELS_AT_ONCE", 3 * similarity.TILE**2))
    return {"checkpoint": str(tiny_vgg.weights(folder)), **QUICK, **chosen}


def _ivsn(folder: Path, entry: Entry, stack: ExitStack) -> dict[str, Any]:
    # The variant without a target sees the picture at once, the others in tiles.
    whole = {"variant": "whole", "search_size": 64} if entry.settings.get("modulation") == "none" else {}
    return _vgg(folder, entry, stack, **whole)


def _deepgaze(folder: Path, entry: Entry, stack: ExitStack) -> dict[str, Any]:
    return {"checkpoint": str(tiny_vgg.deepgaze(folder)), "center_bias": "uniform", "longer_side": 128, **QUICK}


def _vectors(folder: Path, entry: Entry, stack: ExitStack) -> dict[str, Any]:
    folder.mkdir(parents=True)
    words = dict.fromkeys([*vocabulary.most_frequent(500), *CUES])
    numbers = np.random.default_rng(0).normal(size=(len(words), 8))
    rows = [f"{word} {' '.join(map(str, row))}" for word, row in zip(words, numbers, strict=True)]
    (folder / "vectors.txt").write_text("\n".join(rows))
    return {"checkpoint": str(folder / "vectors.txt"), "vocabulary": 500}


def _embedding(maker: Callable[[Path], Path]) -> Maker:
    return lambda folder, entry, stack: {"checkpoint": str(maker(folder)), "vocabulary": 500}


def _server(folder: Path, entry: Entry, stack: ExitStack) -> dict[str, Any]:
    return {"base_url": stack.enter_context(misbehaving_server.running()).url, "vocabulary": 500}


def _vision(folder: Path, entry: Entry, stack: ExitStack) -> dict[str, Any]:
    most = {"max_tokens": 12} if "image_captioning" in entry.tasks else {}
    return {**tiny_vision.make(folder, entry), **most}


VIEW = {"long_side": 96, "radius": 64, "margin": 16, "deg2px": [8, 4, 3, 2, 2], "fovea": 2}
CASES: dict[str, Maker] = {
    **dict.fromkeys(tiny_vision.MAKERS, _vision),
    "agents.attention.gbvs:GraphSaliencyAgent": lambda folder, entry, stack: dict(QUICK),
    "agents.attention.ivsn:IVSNAgent": _ivsn,
    "agents.attention.return_fixations:ReturnFixations": _vgg,
    "agents.attention.eccnet:EccNetAgent": partial(_vgg, **VIEW),
    "agents.attention.deepgaze:DeepGazeAgent": _deepgaze,
    "agents.language.word_embeddings:VectorFileAgent": _vectors,
    "agents.language.word_embeddings:GPT2EmbeddingAgent": _embedding(tiny_language.gpt2),
    "agents.language.minilm:MiniLMAgent": _embedding(tiny_embeddings.sentence_bert),
    "agents.language.word_embeddings:OpenAIEmbeddingAgent": _server,
    "agents.language.chat:CompletionAgent": partial(_language, "gpt2", positions=512),
    "agents.language.dialogue_models:DialoGPTAgent": partial(_language, "gpt2"),
    "agents.language.dialogue_models:BlenderbotAgent": partial(_language, "blenderbot"),
    "agents.language.chat:ChatAgent": partial(_language, "llama", positions=1024),
}


def entries() -> dict[str, Entry]:
    """Every agent of ours that computes with torch, by name, whether its packages are here or not."""
    ours = (entry for entry in catalogue.BUILT_IN if "torch" in entry.load_class().packages)
    return {entry.name: entry for entry in ours}


def here() -> dict[str, Entry]:
    """Every agent of ours that answers on this machine, by name: all but those that ask a server for text."""
    return {
        entry.name: entry
        for entry in catalogue.BUILT_IN
        if not entry.hidden and (entry.agent in CASES or entry.licence != PROPRIETARY)
    }


def lacks(entry: Entry) -> str | None:
    """The package from outside the registries that the agent needs and this machine lacks, as a sentence."""
    needed = [name for name in OUTSIDE if name.partition("_")[0] in entry.agent]
    return next((f"{name} is not installed" for name in needed if importlib.util.find_spec(name) is None), None)


def settings(entry: Entry, folder: Path, stack: ExitStack) -> dict[str, Any]:
    """Settings under which ``entry`` is tiny; its files are in ``folder``, its server lives as long as ``stack``."""
    maker = CASES.get(entry.agent)
    return {} if maker is None else maker(folder, entry, stack)


def takes_precision(entry: Entry) -> bool:
    return "precision" in entry.load_class().Settings.model_fields


def says(entry: Entry) -> bool:
    """Whether the answer is a text that is generated token by token."""
    return "max_tokens" in entry.load_class().Settings.model_fields


def stimuli(entry: Entry, folder: Path, count: int, *, alike: bool = False) -> list[Stimulus]:
    """Stimuli of the agent's first task. Pictures are of several sizes and prompts of several lengths, or ``alike``."""
    task = entry.tasks[0]
    rows = []
    for index in range(count):
        row: dict[str, Any] = {"id": f"{index}", "task": task}
        text = TEXTS[index % len(TEXTS)]
        if task == "conversation":
            names = ["Ann", "Bob"]
            texts = [f"{text:<36} ({index})"] if alike else [f"{text} ({turn})" for turn in range(index % 4)]
            history = [{"speaker": names[turn % 2], "text": line} for turn, line in enumerate(texts)]
            row |= {"topic": "movies", "names": names, "history": history}
        elif task == "word_association":
            row |= {"cue": CUES[index % len(CUES)]}
        else:
            row |= {"image": str(_picture(folder / f"{index}.png", index, SIZES[0 if alike else index % len(SIZES)]))}
        if task == "attention_prediction":
            target = _picture(folder / "target.png", 99, (28, 28))
            row |= {"mode": "search", "target_image": str(target), "target_present": False}
        rows.append(parse_row(orjson.dumps(row)))
    return rows


def _picture(path: Path, seed: int, size: tuple[int, int]) -> Path:
    coarse = np.random.default_rng(seed).integers(0, 256, (5, 6, 3), dtype=np.uint8)
    Image.fromarray(coarse).resize(size, Image.Resampling.BICUBIC).save(path)
    return path


def draws(stimuli: Sequence[Stimulus], seed: int = 11) -> list[Draw]:
    """A draw for each stimulus: the speaker of a conversation's next turn, and a seed."""
    turns = [len(getattr(stimulus, "history", ())) for stimulus in stimuli]
    return [Draw(seed=seed + at, options={"speaker": "AB"[turn % 2], "turn": turn}) for at, turn in enumerate(turns)]


def loaded(entry: Entry, chosen: dict[str, Any], device: str) -> Agent[Any]:
    """The agent by its real path. Raises AssertionError if it cannot run."""
    agent = entry.make(chosen)
    assert agent.missing() is None
    agent.open()
    agent.load(device)
    return agent


def answers(
    agent: Agent[Any], stimuli: Sequence[Stimulus], drawn: Sequence[Draw] | None = None
) -> list[dict[str, Any]]:
    """The agent's answers in a single batch, as plain data. Raises the failure of any stimulus."""
    replies = agent.respond([agent.prepare(stimulus) for stimulus in stimuli], drawn or draws(stimuli))
    for reply in replies:
        if isinstance(reply, Exception):
            raise reply
    return [reply.answer.model_dump() for reply in replies if not isinstance(reply, Exception)]
