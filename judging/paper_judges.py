"""What the papers' trained judges were given, and what ours take instead: the one place that says so.

Sources: the 2022 paper, sections 3 and 4 and its supplement; the 2025 paper, Methods (lines 776, 859, 996, 1180, 1231
and 1307); the authors' notebooks for the kernel.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agents.language.minilm import PACKAGE

# What embedded the texts, by task. BERT is to be had, as a checkpoint; the others' service is gone.
EMBEDDED: Mapping[str, str] = {
    "color_estimation": "BERT",
    "object_detection": "BERT",
    "conversation": "BERT",
    "image_captioning": "OpenAI's text-similarity-curie-001, which is withdrawn",
    "word_association": "Word2vec, GPT-2 and OpenAI's davinci, the last withdrawn, by a judge each",
}
FOREST = ("2022", "color_estimation")
SEEDS: Mapping[str, int] = {"image_captioning": 3, "attention_prediction": 5}


def instead(paper: str, asked: str, chosen: Mapping[str, Any]) -> Iterator[str]:
    """In what a classifier of the settings ``chosen`` differs from the judge of a ``paper`` (2022 or 2025) on a task,
    a phrase for each. Settings that are not told are the defaults. Nobody's cues are the papers'."""
    if "cue" in chosen:
        yield "goes by one cue alone"
        return
    model = "forest" if (paper, asked) == FOREST else "svm"
    if chosen.get("model", "svm") != model or chosen.get("scaled", True):
        yield "another classifier than theirs"
    if asked in EMBEDDED:
        checkpoint = str(chosen.get("checkpoint", PACKAGE))
        if EMBEDDED[asked] != "BERT" or "bert" not in checkpoint.casefold():
            name = "MiniLM" if checkpoint == PACKAGE else checkpoint
            yield f"{name} where theirs had {EMBEDDED[asked]}"
    if asked == "color_estimation" and chosen.get("pictures", "none") != "deep":
        yield "no features of the picture by ResNet18's last layer"
    if asked == "conversation":
        yield "the mean of a speaker's sentences where theirs judged single ones"
    if chosen.get("split", "stimulus") not in ("stimulus", "row") or chosen.get("unique") or chosen.get("train"):
        yield "trained on a part of the trials"
    if asked in SEEDS:
        yield f"one partition into folds where theirs were {SEEDS[asked]}"
