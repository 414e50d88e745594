"""Our own judges: lines of the catalogue of agents (entry-point group ``turinglike.agents``)."""

from __future__ import annotations

from typing import Any

from agents.contract import NOT_IN_PAPER, VARIANT, Entry, InPaper


def _classifier(name: str, summary: str, in_paper: InPaper, **settings: Any) -> Entry:
    return Entry(
        name, "judging.classifier:ClassifierJudge", ("judgement",), summary, "scikit-learn", in_paper,
        "BSD-3-Clause", settings,
    )  # fmt: skip


svm = _classifier("svm", "linear support vector machine, in folds without a common stimulus", NOT_IN_PAPER)
svm_paper_text = _classifier(
    "svm-paper-text",
    "the papers' judge by their text, but with MiniLM's embeddings: linear, unscaled; colours with the picture",
    VARIANT,
    scaled=False,
    balanced=False,
    pictures="deep",
)
svm_paper_code = _classifier(
    "svm-paper-code",
    "the papers' judge by their code, but with MiniLM's embeddings: radial kernel, unscaled, folds of single rows",
    VARIANT,
    kernel="rbf",
    scaled=False,
    balanced=False,
    split="row",
    seed=42,
    path="padded15",
    pictures="deep",
)
forest = _classifier(
    "forest",
    "random forest, as the 2022 paper judged colours, but with MiniLM's embeddings and without the picture",
    VARIANT,
    model="forest",
    scaled=False,
)


# The same judge, on the same features, in other folds: how much of a score is leakage.
svm_rows = _classifier("svm-rows", "svm, in folds of single rows, whatever their stimulus", NOT_IN_PAPER, split="row")
svm_unique = _classifier(
    "svm-unique", "svm, not trained on what several speakers said alike", NOT_IN_PAPER, unique=True
)
svm_held_out = _classifier(
    "svm-held-out", "svm, not trained on the agent that it judges", NOT_IN_PAPER, split="agent"
)  # fmt: skip


def _cue(cue: str, summary: str) -> Entry:
    return Entry(
        f"cue-{cue}", "judging.cues:CueJudge", ("judgement",), summary, "scikit-learn", NOT_IN_PAPER, "BSD-3-Clause",
        {"cue": cue},
    )  # fmt: skip


cue_constant = _cue("constant", "always says human")
cue_length = _cue("length", "goes by the answer's length alone")
cue_punctuation = _cue("punctuation", "goes by capitals, punctuation and digits alone")
cue_frequency = _cue("frequency", "goes by how common the answer's words are, and the answer among the trials")
cue_path_length = _cue("path-length", "goes by a scanpath's length and mean saccade alone")
cue_center = _cue("center", "goes by a scanpath's distance from the centre alone")
cue_metadata = _cue("metadata", "goes by order, ids, files and sizes, which should tell nothing")


def _language(name: str, agent: str, summary: str, source: str, licence: str, **settings: Any) -> Entry:
    paper = VARIANT if settings.get("prompt") == "papers" else NOT_IN_PAPER
    return Entry(
        name, f"judging.llm_judge:{agent}", ("judgement",), summary, source, paper, licence, settings, ran=False
    )


llm = _language(
    "llm-judge",
    "LocalJudge",
    "a chat model that runs here, Qwen 2.5 7B, asked about one word or speaker at a time",
    "Qwen 2024, arXiv 2412.15115",
    "Apache-2.0",
    checkpoint="Qwen/Qwen2.5-7B-Instruct",
)
llm_openai = _language(
    "llm-judge-openai",
    "OpenAIJudge",
    "a chat model on an OpenAI-compatible server, asked about one answer at a time",
    "OpenAI 2024, GPT-4o",
    "proprietary",
    model="gpt-4o",
)
# The papers' chatgpt-4o-latest is withdrawn.
llm_openai_papers = _language(
    "llm-judge-openai-papers",
    "OpenAIJudge",
    "the same, asked as the 2025 paper asked: its prompts, all answers to a stimulus in one",
    "OpenAI 2024, GPT-4o",
    "proprietary",
    model="gpt-4o",
    prompt="papers",
    grid=True,
    temperature=1.0,
    attempts=3,
)
