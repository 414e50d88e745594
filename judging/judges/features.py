"""What classifiers get of a trial: single cues, or features like the papers'. Texts are embedded; a word is the squared
difference to its cue's embedding; a scanpath is x and y, -1 to 1, of ten fixations (papers) or fifteen (the public
benchmark), filled with (1, 1). Folds keep trials of a stimulus together
(:func:`judging.trial_sets.cues.grouped_folds`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from agents.errors import AnswerError, UnavailableError
from agents.images import Image
from agents.language.embedder import Embedder
from agents.language.word_embeddings import EmbeddingAgent
from agents.models import weight_files
from agents.models.loading import load_weights
from agents.sentence_boundaries import sentences
from agents.word_boundaries import count_words
from judging.trial_sets.cues import Trial, judged_texts

if TYPE_CHECKING:
    from numpy.typing import NDArray

ScanpathPart = Literal["first10", "padded15"]
LENGTHS: Mapping[ScanpathPart, int] = {"first10": 10, "padded15": 15}
LEAST_WORDS = 2  # of a sentence of a conversation
Layer = Literal["deep", "early"]
PICTURES_TOGETHER = 32
RESNET = "resnet18-f37072fd.pth"  # torchvision's IMAGENET1K_V1


@dataclass(frozen=True, slots=True)
class Features:
    """What a classifier learns from: vectors, of which a trial may have several, as a conversation does."""

    rows: NDArray[np.float64]
    """[rows, dimensions] the vectors."""
    trial: NDArray[np.int64]
    """[rows] whose vector it is: the place of the trial in the sequence that was given."""


def path_features(trials: Sequence[Trial], part: ScanpathPart) -> Features:
    """The fixations of scanpaths; who cannot be judged has no row."""
    return _stacked([_fixations(trial, part) for trial in trials])


def text_features(
    trials: Sequence[Trial], embedder: Embedder | WordVectors, pictures: PictureFeatures | None = None
) -> Features:
    """The embeddings of a task's answers; who cannot be judged has no row."""
    texts = [embedded_texts(trial) for trial in trials]
    vectors = embedder.vectors([text for of_trial in texts for text in of_trial])
    rows = [[vectors[text].astype(np.float64) for text in of_trial if text in vectors] for of_trial in texts]
    if trials and trials[0]["asked"] == "word_association":
        rows = [[(of_trial[0] - of_trial[1]) ** 2] if len(of_trial) == 2 else [] for of_trial in rows]
    if pictures is not None:
        seen = pictures.vectors([trial["image"] for trial in trials if "image" in trial])
        rows = [
            [np.concatenate([seen[trial["image"]], row]) for row in of_trial] if "image" in trial else []
            for trial, of_trial in zip(trials, rows, strict=True)
        ]
    return _stacked(rows)


def _stacked(rows: Sequence[Sequence[NDArray[np.float64]]]) -> Features:
    owner = np.repeat(np.arange(len(rows)), [len(of_trial) for of_trial in rows])
    return Features(np.array([row for of_trial in rows for row in of_trial], dtype=np.float64), owner)


def embedded_texts(trial: Trial) -> list[str]:
    """The texts of a trial that are embedded: labels in one, a word and its cue, sentences of a speaker, a caption."""
    answered = judged_texts(trial)
    match trial["asked"]:
        case "object_detection":
            return [", ".join(answered)]
        case "word_association":
            return [*answered, trial["cue"]]
        case "conversation":
            spoken = [sentence for text in answered for sentence in sentences(text)]
            return [sentence for sentence in spoken if count_words(sentence) >= LEAST_WORDS]
    return answered


def _fixations(trial: Trial, part: ScanpathPart) -> list[NDArray[np.float64]]:
    points = trial["answer"]["fixations"][: LENGTHS[part]]
    scaled = np.ones((LENGTHS[part], 2))
    if part == "first10" and len(points) < len(scaled):
        return []
    scaled[: len(points)] = 2 * np.array(points, dtype=np.float64) / trial["answer"]["frame"] - 1
    return [scaled.ravel()]


class WordVectors:
    """The vectors by which an agent answers with the nearest word. Raises UnavailableError."""

    def __init__(self, agent: EmbeddingAgent[Any], device: str) -> None:
        agent.open()
        agent.load_model(device)
        self._agent = agent

    def vectors(self, texts: Sequence[str]) -> dict[str, NDArray[np.floating]]:
        """The vector of each text that has one. Raises UnavailableError for a server's failure."""
        distinct = sorted(set(texts))
        found = {}
        for text, vector in zip(distinct, self._agent.cue_vectors(distinct), strict=True):
            if not isinstance(vector, AnswerError):
                found[text] = vector
            elif vector.code != "unknown_cue":
                raise UnavailableError(f"{self._agent.name}: {vector}")
        return found


class PictureFeatures:
    """ResNet18 (He et al. 2016): its last pooling ("deep", 512), or the mean of its first block ("early", 64)."""

    def __init__(self, weights: Path, layer: Layer, root: Path, device: str) -> None:
        import torch
        from torchvision.models import ResNet18_Weights, resnet18

        model = resnet18(weights=None)
        load_weights(model, weight_files.read_weights(weights), weights)
        stages = list(model.children())[: 5 if layer == "early" else 8]
        self._net = torch.nn.Sequential(*stages, torch.nn.AdaptiveAvgPool2d(1)).eval().requires_grad_(False).to(device)
        self._pixels = ResNet18_Weights.IMAGENET1K_V1.transforms()
        self._root = root
        self._device = torch.device(device)

    def vectors(self, names: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """The features of each picture. Raises ImageError."""
        import torch
        from PIL import Image as PILImage

        distinct = list(dict.fromkeys(names))
        by_name: dict[str, NDArray[np.float32]] = {}
        for begin in range(0, len(distinct), PICTURES_TOGETHER):
            part = distinct[begin : begin + PICTURES_TOGETHER]
            pictures = [PILImage.fromarray(Image(name, root=self._root).decode()) for name in part]
            batch = torch.stack(list(map(self._pixels, pictures))).to(self._device)
            with torch.inference_mode():
                by_name |= dict(zip(part, self._net(batch).flatten(1).cpu().numpy(), strict=True))
        return by_name
