"""Every agent of the catalogue that answers here: settings for a tiny checkpoint, stimuli, and answers."""

import importlib.util
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import orjson
from PIL import Image
from safetensors.torch import save_file

from agents import catalogue
from agents.catalogue import Entry
from agents.catalogue.built_in import PROPRIETARY
from agents.contract import Agent, Draw
from agents.language.words import vocabulary
from agents.stimuli import Stimulus, parse_row
from tests.helpers import (
    misbehaving_server,
    tiny_captioners,
    tiny_clipcap,
    tiny_detectors,
    tiny_embeddings,
    tiny_language,
    tiny_ofa,
    tiny_openflamingo,
    tiny_scst,
    tiny_vgg,
)
from tests.helpers.pretended_cuda import pretended_cuda

SIZES = ((96, 72), (64, 90), (120, 80), (96, 72))  # of pictures: two are alike
TEXTS = ("I like music.", "Why do you say that?", "They are boring!", "Tell me more about science, please.")
CUES = ("dog", "sun", "house", "man", "woman", "tree", "water", "music")
QUICK = {"max_search": 4}
FEW = {"vocabulary": 500}
SMALL = {"short_edge": tiny_detectors.SHORT, "long_edge": tiny_detectors.LONG}
# Packages that no registry has, and so no extra installs; a machine without them skips their agents.
OUTSIDE = ("detectron2", "deepgaze_pytorch")
OF_CHECKPOINT = ("checkpoint", "revision", "dictionary", "image_size", "clip")  # settings that follow the checkpoint
WITH_PICTURE = ("color_estimation", "object_detection", "image_captioning", "attention_prediction")
# Slow: two stimuli do.
FULL_SIZE = ("agents.attention", "agents.vision.detector:Torchvision", "agents.vision.detectron2")
# How often the host waits is counted in two batches, of texts of so many tokens or of so many fixations.
LENGTHS = {"image_captioning": "max_tokens", "conversation": "max_tokens", "attention_prediction": "max_search"}
SHORT = 8
LONG = 12
SEEDS = range(11, 31)  # the first by whose draws the longer batch has more steps is taken
Waits = dict[str, float]  # by place
Maker = Callable[[Path, Entry, ExitStack], dict[str, Any]]


def _checkpoint(maker: Callable[..., Path], *, more: Mapping[str, Any] | None = None, **how: Any) -> Maker:
    """``how`` goes to the maker of the checkpoint, ``more`` are the agent's other settings."""
    return lambda folder, entry, stack: {"checkpoint": str(maker(folder, **how)), **(more or {})}


def _ofa(folder: Path, entry: Entry, stack: ExitStack) -> dict[str, Any]:
    file = tiny_ofa.fairseq_file(folder / "caption_huge_best.pt")
    (folder / "RANDOM_WEIGHTS").touch()
    return {"checkpoint": str(file), "dictionary": str(tiny_ofa.dictionary(folder / "dictionary")), "image_size": 64}


def _detector(make: Callable[[], Any]) -> Maker:
    def maker(folder: Path) -> Path:
        folder.mkdir(parents=True)
        weights = {name: value.contiguous() for name, value in make().state_dict().items()}
        save_file(weights, folder / "model.safetensors")
        (folder / "RANDOM_WEIGHTS").touch()
        return folder / "model.safetensors"

    return _checkpoint(maker, more=SMALL)


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
    return {"checkpoint": str(folder / "vectors.txt"), **FEW}


def _server(folder: Path, entry: Entry, stack: ExitStack) -> dict[str, Any]:
    return {"base_url": stack.enter_context(misbehaving_server.running()).url, **FEW}


VIEW: dict[str, Any] = {"long_side": 96, "radius": 64, "margin": 16, "deg2px": [8, 4, 3, 2, 2], "fovea": 2}
CASES: dict[str, Maker] = {
    "agents.vision.git_and_blip:GitAgent": _checkpoint(tiny_captioners.git),
    "agents.vision.git_and_blip:BlipAgent": _checkpoint(tiny_captioners.blip),
    "agents.vision.git_and_blip:Blip2Agent": _checkpoint(tiny_captioners.blip2),
    "agents.vision.llava_next:LlavaNextAgent": _checkpoint(tiny_captioners.llava_next),
    "agents.vision.ofa:OFAAgent": _ofa,
    "agents.vision.clipcap:ClipCapAgent": lambda folder, entry, _: tiny_clipcap.make(folder, entry.settings["mapper"]),
    "agents.vision.openflamingo:OpenFlamingoAgent": lambda folder, entry, _: tiny_openflamingo.make(folder),
    "agents.vision.scst:SCSTAgent": _checkpoint(tiny_scst.make),
    "agents.vision.detector:DetrAgent": _checkpoint(tiny_detectors.detr, more=SMALL),
    "agents.vision.detector:TorchvisionMaskRCNNAgent": _detector(tiny_detectors.torchvision_model),
    "agents.vision.detectron2_maskrcnn:Detectron2Agent": _detector(tiny_detectors.detectron2_model),
    "agents.attention.gbvs:GraphSaliencyAgent": lambda folder, entry, stack: dict(QUICK),
    "agents.attention.ivsn:IVSNAgent": _ivsn,
    "agents.attention.return_fixations:ReturnFixations": _vgg,
    "agents.attention.eccnet:EccNetAgent": partial(_vgg, **VIEW),
    "agents.attention.deepgaze:DeepGazeAgent": _deepgaze,
    "agents.language.word_embeddings:VectorFileAgent": _vectors,
    "agents.language.word_embeddings:GPT2EmbeddingAgent": _checkpoint(tiny_language.gpt2, more=FEW),
    "agents.language.minilm:MiniLMAgent": _checkpoint(tiny_embeddings.sentence_bert, more=FEW),
    "agents.language.word_embeddings:OpenAIEmbeddingAgent": _server,
    "agents.language.chat:LocalCompletionAgent": _checkpoint(tiny_language.gpt2, positions=512),
    "agents.language.dialogue_models:DialoGPTAgent": _checkpoint(tiny_language.gpt2),
    "agents.language.dialogue_models:BlenderbotAgent": _checkpoint(tiny_language.blenderbot, more={"min_tokens": 8}),
    "agents.language.chat:LocalChatAgent": _checkpoint(tiny_language.llama, positions=1024),
    "agents.language.chat:SmallChatAgent": _checkpoint(tiny_language.llama, positions=1024),
}


def entries() -> dict[str, Entry]:
    """Every agent of ours that computes with torch, by name, whether its packages are here or not."""
    ours = (entry for entry in catalogue.BUILT_IN if "torch" in entry.load_class().declares.packages)
    return {entry.name: entry for entry in ours}


def here() -> dict[str, Entry]:
    """Every agent of ours that answers on this machine, by name: all but those that ask a server for text."""
    return {entry.name: entry for entry in catalogue.BUILT_IN if entry.agent in CASES or entry.licence != PROPRIETARY}


def lacks(entry: Entry) -> str | None:
    """The package from outside the registries that the agent needs and this machine lacks, as a sentence."""
    needed = [name for name in OUTSIDE if name.partition("_")[0] in entry.agent]
    return next((f"{name} is not installed" for name in needed if importlib.util.find_spec(name) is None), None)


def settings(entry: Entry, folder: Path, stack: ExitStack) -> dict[str, Any]:
    """Settings under which ``entry`` is tiny; its files are in ``folder``, its server lives as long as ``stack``."""
    maker = CASES.get(entry.agent)
    most = {"max_tokens": 12} if says(entry) else {}
    return {} if maker is None else {**maker(folder, entry, stack), **most}


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


def count_waits(
    entry: Entry, chosen: dict[str, Any], folder: Path, size: int, *, alike: bool = True, device: Any = pretended_cuda
) -> tuple[Waits, Waits]:
    """The waits of a step (a pass of the decoder, or a fixation), and those of a batch of ``size`` stimuli beside its
    steps, once the agent is warm.

    ``device`` is a context whose value counts ``waits`` by (why, place).
    """
    from agents.models.sampling import Finite

    length = next((LENGTHS[task] for task in entry.tasks if task in LENGTHS), None)
    shown = stimuli(entry, folder, size, alike=alike)
    passes = 0
    check = Finite.__call__

    def counted(self: Any, *arguments: Any) -> Any:
        nonlocal passes
        passes += 1
        return check(self, *arguments)

    with device() as cuda, mock.patch.object(Finite, "__call__", counted):
        agent: Any = loaded(entry, chosen, "cuda:0")

        def batch(most: int, seed: int) -> tuple[Counter[str], int]:
            nonlocal passes
            if length:
                agent.settings = agent.settings.model_copy(update={length: most})
            prepared = [agent.prepare(stimulus) for stimulus in shown]
            passes = 0
            cuda.clear()
            replies = agent.respond(prepared, draws(shown, seed))
            waits: Counter[str] = Counter()
            for (_, place), number in cuda.waits.items():
                waits[place] += number
            fixations = max((len(getattr(reply.answer, "fixations", ())) for reply in replies), default=0)
            return waits, passes or max(fixations - 1, 0)  # the first is not chosen

        batch(SHORT, SEEDS[0])
        for seed in SEEDS:
            (few, short) = batch(SHORT, seed)
            (many, long) = batch(LONG, seed)
            if long > short or length is None:
                break
        else:
            raise AssertionError(f"{entry.name}: no text is longer than {SHORT} tokens")
    steps = max(long - short, 1)
    per_step = {place: (many[place] - few[place]) / steps for place in many}
    return per_step, {place: many[place] - each * long for place, each in per_step.items()}
