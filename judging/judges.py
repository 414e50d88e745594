"""Our own judges: lines of the catalogue of agents (entry-point group ``turinglike.agents``)."""

from __future__ import annotations

from typing import Any

from agents.entry import NOT_IN_PAPER, VARIANT, Entry, InPaper


def _classifier(name: str, summary: str, in_paper: InPaper, **settings: Any) -> Entry:
    return Entry(
        name, "judging.classifier:ClassifierJudge", ("judgement",), summary, "scikit-learn", in_paper,
        "BSD-3-Clause", settings,
    )  # fmt: skip


svm = _classifier("svm", "linear support vector machine, in folds without a common stimulus", NOT_IN_PAPER)
svm_paper_text = _classifier(
    "svm-paper-text",
    "the papers' judge by their text: linear, unscaled; of colours with the picture's features",
    VARIANT,
    scaled=False,
    balanced=False,
    pictures="deep",
)
svm_paper_code = _classifier(
    "svm-paper-code",
    "the papers' judge by their code: radial kernel, unscaled, folds of single rows",
    VARIANT,
    kernel="rbf",
    scaled=False,
    balanced=False,
    split="row",
    seed=42,
    path="padded15",
    pictures="deep",
)
forest = _classifier("forest", "random forest, as the 2022 paper judged colours", VARIANT, model="forest", scaled=False)


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
