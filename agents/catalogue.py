"""The catalogue: every agent by name, without importing any of them.

A new agent is one file and one line here; a new checkpoint of a known family is one line. Somebody else's package adds
agents through the entry-point group ``understudy.agents``: the entry's name is the agent's, its value an
:class:`agents.contract.Agent` subclass or an :class:`Entry` ::

    [project.entry-points."understudy.agents"]
    echo = "echo_agent:Echo"
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import metadata
from typing import Any, Literal

from pydantic import ValidationError

from agents.contract import Agent
from agents.errors import InputError, bad_settings
from agents.stimuli import TASKS, Task

GROUP = "understudy.agents"
RESERVED = frozenset({"humans", "published"})  # what imported answers are kept under
NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")
InPaper = Literal["exact", "variant", "no"]
EXACT: InPaper = "exact"
VARIANT: InPaper = "variant"
NOT_IN_PAPER: InPaper = "no"
TALK: tuple[Task, ...] = ("conversation", "word_association")
# As the papers asked Llama 3.3: warmer by the turn, no penalties, nothing in small letters.
LLAMA: Mapping[str, Any] = {
    "rises_with": "turn",
    "ages": True,
    "plain": True,
    "frequency_penalty": 0.0,
    "presence_penalty": 0.0,
    "lower_case": 0.0,
    "min_words": 2,
    "greetings": ["Hi!", "Hey", "Hello, how are you?", "What's up?", "Hey, how is it going?"],
    "truncation": {"least": 7},
}


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the catalogue. ``agent`` is "module:Class"; ``settings`` are this entry's defaults.

    ``in_paper``: "exact" (the papers' agent), "variant" (the same family, another size or weights), "no".
    ``role`` "machine" for participants, "control" for catch trials; ``hidden`` entries are for testing the machinery.
    """

    name: str
    agent: str
    tasks: tuple[Task, ...]
    summary: str
    source: str
    in_paper: InPaper = "no"
    licence: str = "Apache-2.0"
    settings: Mapping[str, Any] = field(default_factory=dict)
    role: Literal["machine", "control"] = "machine"
    hidden: bool = False

    def load_class(self) -> type[Agent[Any]]:
        """Import the agent's class."""
        module, _, name = self.agent.partition(":")
        loaded = getattr(importlib.import_module(module), name)
        if not (isinstance(loaded, type) and issubclass(loaded, Agent)):
            raise InputError(f"agent {self.name}: {self.agent} is not an Agent")
        return loaded

    def make(self, overrides: Mapping[str, Any] | None = None) -> Agent[Any]:
        """The agent with its settings checked, nothing loaded. Raises InputError with every bad setting."""
        cls = self.load_class()
        try:
            settings = cls.Settings.model_validate({**self.settings, **(overrides or {})})
        except ValidationError as error:
            problems = bad_settings(self.name, cls.Settings.model_fields, error.errors(include_url=False))
            raise InputError(f"agent {self.name}: bad settings", problems) from None
        return cls(settings, self.name)


BUILT_IN: tuple[Entry, ...] = (
    Entry(
        "mmcq",
        "agents.vision.mmcq:MedianCutAgent",
        ("color_estimation",),
        "modified median cut; nearest CSS3 colour, mapped to eleven words",
        "Leptonica's modified median cut quantisation, as ColorThief does it",
        "variant",
    ),
    Entry(
        "mmcq-lab",
        "agents.vision.mmcq:MedianCutAgent",
        ("color_estimation",),
        "modified median cut; nearest of the eleven words by CIELAB distance",
        "Leptonica's modified median cut quantisation; CIELAB 1976",
        "no",
        settings={"naming": "lab"},
    ),
    Entry(
        "gbvs",
        "agents.attention.gbvs:GraphSaliencyAgent",
        ("attention_prediction",),
        "graph-based visual saliency; maximum with inhibition of return",
        "Harel, Koch, Perona 2006",
        "exact",
    ),
    *(
        Entry(
            name,
            "agents.attention.ivsn:IVSNAgent",
            ("attention_prediction",),
            summary,
            "Zhang et al. 2018",
            VARIANT,  # torchvision's weights, where the authors had Caffe's; early layer and bottom-up map unstated
            "BSD-3-Clause",
            settings=settings,
        )
        for name, summary, settings in (
            ("ivsn", "invariant visual search: VGG16's features of the scene that resemble the target's", {}),
            ("ivsn-notarget", "invariant visual search without its target", {"modulation": "none"}),
            ("ivsn-layer", "invariant visual search by features of an early layer", {"target_layer": "pool2"}),
        )
    ),
    Entry(
        "return-fixations",
        "agents.attention.return_fixations:ReturnFixations",
        ("attention_prediction",),
        "saliency or similarity, people's saccades, and a memory that fades, so that places are looked at again",
        "Zhang et al. 2022",
        EXACT,
        "BSD-3-Clause; saccades MIT",
        settings={"saccades": "amplitudes"},  # as the authors' program draws its prior
    ),
    Entry(
        "eccnet",
        "agents.attention.eccnet:EccNetAgent",
        ("attention_prediction",),
        "EccNet: search with vision that fades from the fixation",
        "Gupta et al. 2021",
        VARIANT,  # torchvision's weights, where the authors had Keras's
        "BSD-3-Clause",
    ),
    Entry(
        "deepgaze3",
        "agents.attention.deepgaze:DeepGazeAgent",
        ("attention_prediction",),
        "DeepGaze III; maximum of its density with inhibition of return",
        "Kümmerer, Bethge, Wallis 2022",
        EXACT,
        "none given",
    ),
    Entry(
        "center",
        "agents.attention.baselines:CenterAgent",
        ("attention_prediction",),
        "baseline: a Gaussian about the centre, whatever the picture",
        "Clarke, Tatler 2014",
    ),
    Entry(
        "random",
        "agents.attention.baselines:RandomAgent",
        ("attention_prediction",),
        "baseline: any pixel as likely as any other",
        "the baseline of every scanpath study",
    ),
    *(
        Entry(
            name,
            "agents.vision.git:GitAgent",
            ("image_captioning",),
            f"GIT, {size}, fine-tuned on COCO captions",
            "Wang et al. 2022, arXiv 2205.14100",
            in_paper,
            "MIT",
            settings={
                "checkpoint": f"microsoft/{name}",
                "beams": 4,
                "length_penalty": 0.6,
                "max_tokens": 50,
                "count_prompt": True,
            },
        )
        for name, size, in_paper in (("git-large-coco", "large", EXACT), ("git-base-coco", "base", VARIANT))
    ),
    *(
        Entry(
            f"blip-{size}",
            "agents.vision.blip:BlipAgent",
            ("image_captioning",),
            f"BLIP, {size}, fine-tuned on COCO captions",
            "Li et al. 2022, arXiv 2201.12086",
            in_paper,
            "BSD-3-Clause",
            settings={
                "checkpoint": f"Salesforce/blip-image-captioning-{size}",
                "prompt": "a picture of ",
                "beams": 3,
                "min_tokens": 5,
                "max_tokens": 20,
                "count_prompt": True,
            },
        )
        for size, in_paper in (("large", EXACT), ("base", VARIANT))
    ),
    Entry(
        "blip2-opt-2.7b",
        "agents.vision.blip2:Blip2Agent",
        ("image_captioning",),
        "BLIP-2 with OPT 2.7B",
        "Li et al. 2023, arXiv 2301.12597",
        licence="MIT",
        settings={"checkpoint": "Salesforce/blip2-opt-2.7b", "beams": 5, "max_tokens": 30},
    ),
    Entry(
        "llava-v1.6-mistral-7b",
        "agents.vision.llava_next:LlavaNextAgent",
        ("image_captioning",),
        "LLaVA-NeXT with Mistral 7B, instructed as people were",
        "Liu et al. 2024, LLaVA-NeXT",
        EXACT,
        settings={
            "checkpoint": "llava-hf/llava-v1.6-mistral-7b-hf",
            "decoding": "sample",
            "temperature": 0.2,
            "max_tokens": 512,
            "reject": ["too_few_words", "too_many_words"],
            "attempts": 11,
        },
    ),
    Entry(
        "ofa-huge",
        "agents.vision.ofa:OFAAgent",
        ("image_captioning",),
        "OFA, huge, fine-tuned on COCO captions; fairseq's file by local path",
        "Wang et al. 2022, arXiv 2202.03052",
        EXACT,
        settings={"checkpoint": "./caption_huge_best.pt", "dictionary": "OFA-Sys/ofa-tiny"},
    ),
    *(
        Entry(
            f"ofa-{size}-pretrained",
            "agents.vision.ofa:OFAAgent",
            ("image_captioning",),
            f"OFA, {size}, pretrained only",
            "Wang et al. 2022, arXiv 2202.03052",
            settings={"checkpoint": f"OFA-Sys/ofa-{size}", "image_size": pixels},
        )
        for size, pixels in (("tiny", 256), ("medium", 256), ("base", 384), ("large", 480), ("huge", 480))
    ),
    Entry(
        "clipcap-transformer",
        "agents.vision.clipcap:ClipCapAgent",
        ("image_captioning",),
        "CLIP RN50x4, a transformer mapper, GPT-2 unchanged; local checkpoint",
        "Mokady, Hertz, Bermano 2021, arXiv 2111.09734",
        EXACT,
        "MIT",
        settings={
            "checkpoint": "./transformer_weights.pt",
            "mapper": "transformer",
            "clip": "timm/resnet50x4_clip.openai",
        },
    ),
    Entry(
        "clipcap-mlp",
        "agents.vision.clipcap:ClipCapAgent",
        ("image_captioning",),
        "CLIP ViT-B/32, a perceptron as mapper, GPT-2 tuned; local checkpoint",
        "Mokady, Hertz, Bermano 2021, arXiv 2111.09734",
        VARIANT,
        "MIT",
        settings={"checkpoint": "./coco_weights.pt", "mapper": "mlp", "clip": "openai/clip-vit-base-patch32"},
    ),
    Entry(
        "detectron2-maskrcnn",
        "agents.vision.detectron2_maskrcnn:Detectron2Agent",
        ("object_detection",),
        "Detectron2's Mask R-CNN R50-FPN 3x: labels of the top three boxes",
        "He et al. 2017; Wu et al. 2019, Detectron2",
        EXACT,
        "Apache-2.0; weights CC-BY-SA-3.0",
    ),
    Entry(
        "torchvision-maskrcnn",
        "agents.vision.torchvision_maskrcnn:TorchvisionMaskRCNNAgent",
        ("object_detection",),
        "torchvision's Mask R-CNN R50-FPN: labels of the top three boxes",
        "He et al. 2017; torchvision",
        VARIANT,
        "BSD-3-Clause",
    ),
    Entry(
        "detr-resnet-50",
        "agents.vision.detr:DetrAgent",
        ("object_detection",),
        "DETR with ResNet-50: labels of the top three boxes",
        "Carion et al. 2020, arXiv 2005.12872",
        # The main revision has a backbone of timm's, a package that nothing else here needs.
        settings={"revision": "no_timm"},
    ),
    Entry(
        "word2vec",
        "agents.language.vector_files:VectorFileAgent",
        ("word_association",),
        "nearest word by word2vec; local file of vectors",
        "Mikolov et al. 2013",
        EXACT,
        settings={"checkpoint": "./GoogleNews-vectors-negative300.bin.gz"},
    ),
    Entry(
        "glove",
        "agents.language.vector_files:VectorFileAgent",
        ("word_association",),
        "nearest word by GloVe; local file of vectors",
        "Pennington et al. 2014",
        VARIANT,
        "PDDL-1.0",
        settings={"checkpoint": "./glove.6B.300d.txt"},
    ),
    Entry(
        "gpt2-embedding",
        "agents.language.gpt2_embedding:GPT2EmbeddingAgent",
        ("word_association",),
        "nearest word by GPT-2's input embeddings",
        "Radford et al. 2019",
        EXACT,
        "MIT",
    ),
    Entry(
        "minilm",
        "agents.language.minilm:MiniLMAgent",
        ("word_association",),
        "nearest word by sentence embeddings whose weights come as a package",
        "Reimers, Gurevych 2019",
    ),
    Entry(
        "eliza",
        "agents.language.eliza:ElizaAgent",
        ("conversation",),
        "keywords, decomposition and reassembly rules; no weights",
        "Weizenbaum 1966",
    ),
    Entry(
        "gpt2-completion",
        "agents.language.completion:CompletionAgent",
        TALK,
        "GPT-2 large continues the papers' prompt for GPT-3",
        "Radford et al. 2019",
        licence="MIT",
        settings={"checkpoint": "openai-community/gpt2-large"},
    ),
    Entry(
        "dialogpt",
        "agents.language.dialogpt:DialoGPTAgent",
        ("conversation",),
        "DialoGPT, large",
        "Zhang et al. 2020, arXiv 1911.00536",
        licence="MIT",
        settings={"checkpoint": "microsoft/DialoGPT-large"},
    ),
    *(
        Entry(
            name,
            "agents.language.blenderbot:BlenderbotAgent",
            ("conversation",),
            f"BlenderBot, {weights} weights",
            "Roller et al. 2021, arXiv 2004.13637",
            VARIANT,
            settings={"checkpoint": checkpoint},
        )
        for name, checkpoint, weights in (
            ("blenderbot-400m", "facebook/blenderbot-400M-distill", "400 million"),
            ("blenderbot-3b", "facebook/blenderbot-3B", "3 thousand million"),
        )
    ),
    *(
        Entry(
            name,
            "agents.language.chat:ChatAgent",
            TALK,
            summary,
            "Grattafiori et al. 2024, arXiv 2407.21783",
            in_paper,
            licence,
            settings={"checkpoint": checkpoint, **LLAMA},
        )
        for name, checkpoint, summary, in_paper, licence in (
            ("llama-3.3-70b", "meta-llama/Llama-3.3-70B-Instruct", "Llama 3.3 70B", EXACT, "Llama 3.3 Community"),
            ("llama-3.1-8b", "meta-llama/Llama-3.1-8B-Instruct", "Llama 3.1 8B", NOT_IN_PAPER, "Llama 3.1 Community"),
        )
    ),
    Entry(
        "qwen2.5-7b",
        "agents.language.chat:ChatAgent",
        TALK,
        "Qwen 2.5 7B",
        "Qwen 2024, arXiv 2412.15115",
        settings={"checkpoint": "Qwen/Qwen2.5-7B-Instruct"},
    ),
    Entry(
        "openai-universal",
        "agents.universal:UniversalAgent",
        TASKS,
        "one multimodal model on an OpenAI-compatible server, asked as people were",
        "OpenAI 2024, GPT-4o",
        EXACT,
        "proprietary",
        settings={"model": "gpt-4o"},
    ),
    Entry(
        "openai-chat",
        "agents.language.openai_chat:OpenAIChatAgent",
        TALK,
        "a chat model on an OpenAI-compatible server",
        "OpenAI 2024, GPT-4o",
        EXACT,
        "proprietary",
        settings={"model": "gpt-4o"},
    ),
    Entry(
        "openai-completion",
        "agents.language.openai_chat:OpenAICompletionAgent",
        TALK,
        "a model that continues texts, on a server, with the papers' GPT-3 prompt",
        "Brown et al. 2020",
        VARIANT,
        "proprietary",
        settings={"model": "davinci-002"},
    ),
    Entry(
        "openai-embedding",
        "agents.language.openai_embedding:OpenAIEmbeddingAgent",
        ("word_association",),
        "nearest word by a server's embeddings",
        "OpenAI 2024",
        VARIANT,
        "proprietary",
    ),
    Entry(
        "catch",
        "agents.catch:CatchAgent",
        TASKS,
        "catch trials: answers that no attentive judge takes for a person's",
        "the 2025 paper, Table S3",
        EXACT,
        role="control",
    ),
    Entry("null", "agents.null:NullAgent", TASKS, "no operation, in batches", "for measuring", hidden=True),
    Entry(
        "null-one",
        "agents.null:ContinuousNullAgent",
        TASKS,
        "no operation, one at a time",
        "for measuring",
        hidden=True,
    ),
)


@cache
def entries() -> dict[str, Entry]:
    """Every agent known on this machine by name: ours, then those of installed packages (which cannot replace ours).

    An installed entry that cannot be read is an InputError that names its package.
    """
    found = {entry.name: entry for entry in BUILT_IN}
    for point in metadata.entry_points(group=GROUP):
        package = point.dist.name if point.dist is not None else point.value
        if not NAME.fullmatch(point.name):
            raise InputError(f"package {package}: bad agent name {point.name!r}: [a-z0-9][a-z0-9._-]*")
        if point.name in found or point.name in RESERVED:
            raise InputError(f"package {package}: the agent name {point.name!r} is already taken")
        try:
            found[point.name] = _from_entry_point(point)
        except Exception as error:
            raise InputError(f"package {package}: agent {point.name!r} cannot be imported: {error}") from error
    return found


def _from_entry_point(point: metadata.EntryPoint) -> Entry:
    value = point.load()
    if isinstance(value, Entry):
        return replace(value, name=point.name)
    if isinstance(value, type) and issubclass(value, Agent):
        summary = (value.__doc__ or "").strip().splitlines()
        package = point.dist.name if point.dist is not None else point.value
        return Entry(
            point.name, point.value, value.tasks, summary[0] if summary else "", f"package {package}", licence="unknown"
        )
    raise TypeError("neither an Agent class nor an Entry")


def get(name: str) -> Entry:
    """The entry called ``name``; InputError with the nearest names otherwise."""
    known = entries()
    if name not in known:
        import difflib

        near = difflib.get_close_matches(name, known, 3)
        hint = f"did you mean {', '.join(near)}?" if near else "`understudy agents` lists them all"
        raise InputError(f"there is no agent {name!r}: {hint}")
    return known[name]


def pair(name: str) -> tuple[str, ...]:
    """The agents that ``name`` stands for: ("a",), or ("a", "b") for the pair ``a~b``."""
    parts = tuple(name.split("~"))
    if len(parts) > 2 or not all(NAME.fullmatch(part) for part in parts):
        raise InputError(f"bad agent name {name!r}: [a-z0-9][a-z0-9._-]*, or a pair a~b")
    return parts
