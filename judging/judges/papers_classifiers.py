"""The classifiers that the papers judged with, and how one of ours differs from them."""

from collections.abc import Iterator, Mapping
from typing import Any

from agents.language.minilm import PACKAGE
from serving.files.words import count

# What embedded the texts of the papers' classifiers. BERT is to be had, as a checkpoint; the others' service is gone.
EMBEDDED = {
    "color_estimation": "BERT",
    "object_detection": "BERT",
    "conversation": "BERT",
    "image_captioning": "OpenAI's text-similarity-curie-001, which is withdrawn",
    "word_association": "Word2vec, GPT-2 and OpenAI's davinci, the last withdrawn, by a judge each",
}
FOREST = ("2022", "color_estimation")
PARTITIONS = {"image_captioning": 3, "attention_prediction": 5}
# Judges of which a paper printed figures beside those of its main judge, by ``only`` of ``published_scores.json``.
FEW_EXAMPLES = "40 training examples"
OTHER_PICTURES = ("features of an early layer", "the colour's word alone")


def differences_from_paper(paper: str, task: str, settings: Mapping[str, Any], only: str = "") -> Iterator[str]:
    """How a classifier with ``settings`` differs from a ``paper``'s judge (2022, sections 3 and 4 and
    supplement; 2025, Methods; the authors' notebooks) on a task. ``only`` names one of its other judges, such as
    :data:`FEW_EXAMPLES`; "" is the main one."""
    model = "forest" if (paper, task) == FOREST else "svm"
    if settings.get("model", "svm") != model or settings.get("scaled", True):
        yield "another classifier than theirs"
    if task in EMBEDDED:
        checkpoint = str(settings.get("checkpoint", PACKAGE))
        words = tuple(settings.get("words", ())) if task == "word_association" else ()
        embedded = "Word2vec" if only == FEW_EXAMPLES else EMBEDDED[task]
        is_theirs = words == ("word2vec",) if only == FEW_EXAMPLES else embedded == "BERT" and _is_bert(checkpoint)
        if not is_theirs:
            name = ", ".join(words) or ("MiniLM" if checkpoint == PACKAGE else checkpoint)
            yield f"{name} where theirs had {embedded}"
    if task == "color_estimation" and only not in OTHER_PICTURES and settings.get("pictures", "none") != "deep":
        yield "no features of the picture by ResNet18's last layer"
    if task == "conversation" and not settings.get("sentences"):
        yield "the mean of a speaker's sentences where theirs judged single ones"
    has_fewer = settings.get("train") is not None and only != FEW_EXAMPLES
    if settings.get("split", "stimulus") not in ("stimulus", "row") or settings.get("unique") or has_fewer:
        yield "trained on a part of the trials"
    if (number := settings.get("partitions", 1)) not in (0, PARTITIONS.get(task, number)):
        yield f"{count(number, 'partition')} into folds where theirs were {PARTITIONS[task]}"


def _is_bert(checkpoint: str) -> bool:
    return "bert" in checkpoint.casefold()
