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
