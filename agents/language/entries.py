"""The catalogue's lines of agents that use words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agents.entry import EXACT, NOT_IN_PAPER, VARIANT, Entry
from agents.stimuli import Task

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

ENTRIES: tuple[Entry, ...] = (
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
)
