"""Judges that are classifiers: of features like the papers' (:mod:`judging.features`), or of a single cue."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import orjson

from agents import answer_numbers, checkpoints
from agents.contract import GIB
from agents.errors import UnavailableError
from agents.language.minilm import PACKAGE
from agents.pretrained import download_torchvision, torch_hub_path
from agents.stimuli import TASKS, Asked
from judging import embeddings, features
from judging.features import Features, Trial
from judging.published import differences_from_paper
from judging.trained import TrainedJudge, TrainedSettings

Cue = Literal["constant", "length", "punctuation", "frequency", "path-length", "center", "metadata"]
PATHS: tuple[Asked, ...] = ("attention_prediction",)
TEXTS: tuple[Asked, ...] = tuple(task for task in TASKS if task not in PATHS)
TASKS_OF_CUES: Mapping[Cue, tuple[Asked, ...]] = {
    "constant": TASKS,
    "length": TASKS,
    "punctuation": TEXTS,
    "frequency": TEXTS,
    "path-length": PATHS,
    "center": PATHS,
    "metadata": TASKS,
}
NUMBERS: Mapping[str, Callable[[Trial], list[float]]] = {
    "length": features.length,
    "punctuation": features.punctuation,
    "path-length": lambda trial: list(answer_numbers.path_length(trial["answer"])),
    "center": lambda trial: list(answer_numbers.center(trial["answer"])),
}


class ClassifierSettings(TrainedSettings):
    """What the classifier is, what it gets, and how its folds are made."""

    model: Literal["svm", "forest"] = "svm"
    """A support vector machine (C = 1), or a random forest of 100 trees; as scikit-learn has them."""
    kernel: Literal["linear", "rbf"] = "linear"
    """The kernel of the support vector machine."""
    scaled: bool = True
    """Whether features have mean 0 and deviation 1 in the training part."""
    balanced: bool = True
    """Whether people and machines weigh the same in training, however many there are."""
    checkpoint: str = PACKAGE
    """What embeds texts: the packaged sentence model, or a BERT, RoBERTa, MPNet or GPT-2 of the hub or a folder."""
    pooling: embeddings.Pooling = "mean"
    """What of the text's states is its embedding: their mean, or the first (BERT's [CLS])."""
    pictures: Literal["none", "deep", "early"] = "none"
    """Of colours: the features of the picture beside the word, by ResNet18's last layer or its first block."""
    picture_weights: str = "published"
    """ResNet18's weights: torchvision's on ImageNet ("published"), or a local .pth or .safetensors file."""
    path: features.ScanpathPart = "first10"
    """Of scanpaths the first ten fixations, shorter ones not being judged; or fifteen, what lacks being (1, 1)."""


class ClassifierJudge(TrainedJudge[ClassifierSettings]):
    judges = TASKS
    Settings = ClassifierSettings
    packages = ("sklearn", "torch", "transformers")
    memory = 3 * GIB
    settings: ClassifierSettings
    _embedder: embeddings.Embedder | None = None

    def checkpoint(self) -> tuple[str | None, str | None]:
        return self.settings.checkpoint, None

    def missing(self) -> str | None:
        if (lacking := self.missing_packages()) is not None:
            return lacking
        try:
            wrong = embeddings.problem(self.settings.checkpoint)
        except UnavailableError as error:
            return str(error)
        if wrong is not None:
            return f"{self.settings.checkpoint} {wrong}"
        if self._needs_pictures() and not self._picture_weights().is_file():
            return (
                f"ResNet18's weights {self._picture_weights().name} are not on this machine: run `turinglike fetch "
                f"{self.name}`, or do without pictures by --set {self.name}.pictures=none"
            )
        return None

    def _needs_pictures(self) -> bool:
        chosen = self.settings
        if chosen.pictures == "none" or chosen.trials is None:
            return chosen.pictures != "none"
        with chosen.trials.open("rb") as file:
            return any(orjson.loads(line)["asked"] == "color_estimation" for line in file)

    def provenance(self) -> dict[str, Any]:
        chosen = self.settings.model_dump()
        why = {task: list(differences_from_paper("2025", task, chosen)) for task in TASKS}
        return {**super().provenance(), "instead_of_the_papers": {task: why[task] for task in TASKS if why[task]}}

    def _picture_weights(self) -> Path:
        path = self.settings.picture_weights
        return torch_hub_path(embeddings.RESNET) if path == "published" else Path(path).expanduser()

    def fetch(self) -> Sequence[checkpoints.Download]:
        path = self._picture_weights()
        if self.settings.pictures == "none" or path != torch_hub_path(embeddings.RESNET):
            return ()
        if not path.is_file():
            path.parent.mkdir(parents=True, exist_ok=True)
            download_torchvision(path)
        return [checkpoints.Download(path.name, path, path.stat().st_size, None, "BSD-3-Clause")]

    def features(self, task: Asked, trials: Sequence[dict[str, Any]], device: str) -> Features:
        chosen = self.settings
        if task == "attention_prediction":
            return features.features(trials, None, None, chosen.path)
        if self._embedder is None:
            self._embedder = embeddings.Embedder(chosen.checkpoint, chosen.pooling, device)
        pictures = None
        if task == "color_estimation" and chosen.pictures != "none":
            assert chosen.trials is not None
            root = chosen.trials.parent
            pictures = embeddings.PictureFeatures(self._picture_weights(), chosen.pictures, root, device)
        return features.features(trials, self._embedder, pictures, chosen.path)

    def new_model(self) -> Any:
        from sklearn.ensemble import RandomForestClassifier
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        from sklearn.svm import SVC

        chosen = self.settings
        weight = "balanced" if chosen.balanced else None
        if chosen.model == "forest":
            model: Any = RandomForestClassifier(class_weight=weight, random_state=chosen.seed)
        else:
            model = SVC(kernel=chosen.kernel, class_weight=weight)
        return make_pipeline(StandardScaler(), model) if chosen.scaled else model


class CueSettings(TrainedSettings):
    """Which cue, and how its folds are made."""

    cue: Cue
    """What the judge goes by."""


class CueJudge(TrainedJudge[CueSettings]):
    """A classifier of a single cue, with a radial kernel: people may be in the middle."""

    Settings = CueSettings
    packages = ("sklearn", "wordfreq")
    memory = GIB
    settings: CueSettings

    def __init__(self, settings: CueSettings, name: str) -> None:
        super().__init__(settings, name)
        self.judges = TASKS_OF_CUES[settings.cue]

    def features(self, task: Asked, trials: Sequence[dict[str, Any]], device: str) -> Features:
        match self.settings.cue:
            case "constant":
                rows = [[0.0] for _ in trials]
            case "metadata":
                assert self.settings.trials is not None
                folder = self.settings.trials.parent
                rows = [features.metadata(folder, trial, at) for at, trial in enumerate(trials)]
            case "frequency":
                rows = features.frequencies(trials)
            case cue:
                rows = [NUMBERS[cue](trial) for trial in trials]
        return Features(np.array(rows, dtype=np.float64), np.arange(len(rows)))

    def new_model(self) -> Any:
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        from sklearn.svm import SVC

        return make_pipeline(StandardScaler(), SVC(class_weight="balanced"))
