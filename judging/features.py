"""What classifiers are given of a trial, by task, as the papers' judges were (2025 paper, Methods; in brackets what the
authors' programs have).

- captions: the embedding of the text; objects: that of the three words in one sentence.
- words: the squared difference of the answer's and the cue's embedding, number by number.
- colours: the embedding of the word, with or without the picture's features by ResNet18 [512 numbers of its last
  pooling, or 64 of its first block].
- scanpaths: x and y of the first fixations, from -1 to 1 over the frame: ten, and shorter paths are not judged
  (papers), or fifteen, what lacks being (1, 1) [the public benchmark].
- conversations: the embedding of each sentence that the judged speaker says; a verdict is on their mean margin.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from agents.language.filters.texts import sentences

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from judging.embeddings import Embedder
    from judging.pictures import PictureFeatures

Trial = Mapping[str, Any]
Path = Literal["first10", "padded15"]
LENGTHS: Mapping[Path, int] = {"first10": 10, "padded15": 15}
LEAST_WORDS = 2  # of a sentence of a conversation


@dataclass(frozen=True, slots=True)
class Features:
    """Rows of features, [rows, dimensions], and the trial that each belongs to: a conversation has several rows."""

    rows: NDArray[np.float64]
    trial: NDArray[np.int64]


def features(
    trials: Sequence[Trial], embedder: Embedder | None, pictures: PictureFeatures | None, path: Path
) -> Features:
    """The features of trials of one task. A trial that cannot be judged has no row."""
    parts = [texts(trial) for trial in trials]
    if parts and parts[0] is None:
        found = [_path(trial, path) for trial in trials]
    else:
        assert embedder is not None
        vectors = embedder.vectors([text for part in parts for text in part or ()])
        found = [_vectors(trial, part or (), vectors) for trial, part in zip(trials, parts, strict=True)]
    if pictures is not None:
        seen = pictures.vectors([trial["image"] for trial in trials if "image" in trial])
        found = [
            [np.concatenate([seen[trial["image"]], one]) for one in rows] if "image" in trial else []
            for trial, rows in zip(trials, found, strict=True)
        ]
    owner = [at for at, rows in enumerate(found) for _ in rows]
    stacked = [one for rows in found for one in rows]
    return Features(np.array(stacked, dtype=np.float64), np.array(owner, dtype=np.int64))


def texts(trial: Trial) -> list[str] | None:
    """The texts that are embedded of a trial; None for a scanpath, which has none."""
    answer = trial["answer"]
    match trial["asked"]:
        case "color_estimation":
            return [answer["color"]]
        case "object_detection":
            return [", ".join(answer["labels"])]
        case "image_captioning":
            return [answer["text"]]
        case "word_association":
            return [answer["word"], trial["cue"]]
        case "conversation":
            said = [one["text"] for one in answer["messages"] if one["speaker"] == trial["speaker"]]
            return [one for text in said for one in sentences(text) if len(one.split()) >= LEAST_WORDS]
    return None


def _vectors(
    trial: Trial, part: Sequence[str], vectors: Mapping[str, NDArray[np.float32]]
) -> list[NDArray[np.float64]]:
    found = [vectors[text].astype(np.float64) for text in part]
    return [(found[0] - found[1]) ** 2] if trial["asked"] == "word_association" else found


def _path(trial: Trial, path: Path) -> list[NDArray[np.float64]]:
    answer, number = trial["answer"], LENGTHS[path]
    points = np.array(answer["fixations"][:number], dtype=np.float64)
    scaled = 2 * points / np.array(answer["frame"], dtype=np.float64) - 1
    if len(scaled) < number:
        if path == "first10":
            return []
        scaled = np.concatenate([scaled, np.ones((number - len(scaled), 2))])
    return [scaled.ravel()]
