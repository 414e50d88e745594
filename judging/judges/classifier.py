"""Judges that are classifiers: of features like the papers' (:mod:`judging.judges.features`), or of a single cue."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import Field

from agents import catalogue
from agents.capabilities import Keyed, checkpoint_of
from agents.contract import GIB, Declaration, Download
from agents.errors import InputError, UnavailableError
from agents.language import embedder
from agents.language.minilm import PACKAGE
from agents.language.word_embeddings import EmbeddingAgent
from agents.models import checkpoints, hub
from agents.models.pretrained import download_torchvision, torch_hub_path
from agents.stimuli import TASKS, Asked
from judging.judges import features
from judging.judges.features import Features
from judging.judges.papers_classifiers import differences_from_paper
from judging.judges.trained import TrainedJudge, TrainedSettings
from judging.trial_sets import cues
from judging.trial_sets.cues import Trial
from serving.files.words import count
from serving.runs import answer_numbers

Cue = Literal["constant", "length", "punctuation", "frequency", "path-length", "center", "delay", "metadata"]
PATHS: tuple[Asked, ...] = ("attention_prediction",)
TEXTS: tuple[Asked, ...] = tuple(task for task in TASKS if task not in PATHS)
TASKS_OF_CUES: Mapping[str, tuple[Asked, ...]] = {
    **dict.fromkeys(("constant", "length"), TASKS),
    **dict.fromkeys(("punctuation", "frequency"), TEXTS),
    **dict.fromkeys(("path-length", "center"), PATHS),
    "delay": ("conversation",),
    "metadata": TASKS,
}
NUMBERS: Mapping[str, Callable[[Trial], list[float]]] = {
    "constant": lambda trial: [0.0],
    "length": cues.length,
    "punctuation": cues.punctuation,
    "delay": cues.delays,
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
    words: tuple[str, ...] = ()
    """Agents whose vectors words have, as word2vec: a classifier each, whose verdicts are pooled (2025 paper, L862);
    none: as texts."""
    vectors: dict[str, dict[str, Any]] = Field({})
    """Settings of such agents, by name."""
    pooling: embedder.Pooling = "mean"
    """How the text's states become its embedding: their mean, or the first (BERT's [CLS])."""
    pictures: Literal["none", "deep", "early"] = "none"
    """For colours, the features of the picture beside the word, by ResNet18's last layer or its first block."""
    picture_weights: str = "published"
    """ResNet18's weights: torchvision's on ImageNet ("published"), or a local .pth or .safetensors file."""
    path: features.ScanpathPart = "first10"
    """For scanpaths, the first ten fixations, shorter ones not being judged; or fifteen, what lacks being (1, 1)."""


class ClassifierJudge(TrainedJudge[ClassifierSettings]):
    """A support vector machine or a random forest over features like the papers'."""

    declares = Declaration(
        judges=TASKS,
        packages=("sklearn", "torch", "transformers"),
        memory=3 * GIB,
    )
    Settings = ClassifierSettings
    settings: ClassifierSettings
    _embedder: embedder.Embedder | None = None

    def checkpoint(self) -> tuple[str | None, str | None]:
        """The name and revision of what embeds texts."""
        return checkpoints.identity(self.settings.checkpoint)

    def environment(self) -> tuple[str, ...]:
        """The variables that the agents of ``words`` read, as for a server's key."""
        agents = self._word_agents().values()
        return tuple(name for agent in agents if isinstance(agent, Keyed) for name in agent.environment())

    def missing(self) -> str | None:
        """What is not on this machine of packages, checkpoints and weights that the trials need; None if all is."""
        if (lacking := self.declares.missing_package()) is not None:
            return lacking
        needs = self._needs()
        try:
            if "texts" in needs:
                embedder.folder_of(self.settings.checkpoint)
        except checkpoints.NotFetchedError as error:
            fetch = f"run `turinglike fetch {self.name}` where there is a network"
            return f"{error}: {fetch}, or give a local copy by the setting {self.name}.checkpoint=PATH (--set)"
        except UnavailableError as error:
            return str(error)
        if "words" in needs:
            for agent in self._word_agents().values():
                if (lacking := agent.missing()) is not None:
                    return lacking
        if "pictures" in needs and not self._picture_weights().is_file():
            return (
                f"ResNet18's weights {self._picture_weights().name} are not on this machine: run `turinglike fetch "
                f"{self.name}`, or do without pictures by the setting {self.name}.pictures=none (--set)"
            )
        return None

    def _needs(self) -> set[str]:
        """Which of texts, words and pictures the trials' features are made of; before trials are known, those of
        all."""
        settings = self.settings
        tasks = set(self.read_trials() or TASKS)
        needs = {"words" if task == "word_association" and settings.words else "texts" for task in tasks - {*PATHS}}
        if settings.pictures != "none" and "color_estimation" in tasks:
            needs.add("pictures")
        return needs

    def _word_agents(self) -> dict[str, EmbeddingAgent[Any]]:
        """The agents of ``words``; in messages their settings are called as on the command line. Raises InputError."""
        agents = {}
        for name in self.settings.words:
            entry = replace(catalogue.get(name), name=f"{self.name}.vectors.{name}", typed=name)
            agent = entry.make(self.settings.vectors.get(name))
            if not isinstance(agent, EmbeddingAgent):
                raise InputError(f"{self.name}.words: {name} does not go by vectors of words")
            agents[name] = agent
        return agents

    def provenance(self) -> dict[str, Any]:
        """Also in what the judge differs from the papers' by task, and by which checkpoints words became vectors."""
        settings = self.settings.model_dump()
        why = {task: list(differences_from_paper("2025", task, settings)) for task in TASKS}
        words = {name: checkpoint_of(agent) for name, agent in self._word_agents().items()}
        instead = {"instead_of_the_papers": {task: why[task] for task in TASKS if why[task]}}
        provenance = {**super().provenance(), **instead}
        if words:
            provenance["words"] = words
        return provenance

    def _picture_weights(self) -> Path:
        path = self.settings.picture_weights
        return torch_hub_path(features.RESNET) if path == "published" else Path(path).expanduser()

    def fetch(self) -> Sequence[Download]:
        """Bring the checkpoint and ResNet18's weights onto this machine; returns what was brought."""
        settings = self.settings
        path = self._picture_weights()
        brought = [] if settings.checkpoint == PACKAGE else [hub.fetch(settings.checkpoint, needs=embedder.NEEDS)]
        if settings.pictures == "none" or path != torch_hub_path(features.RESNET):
            return brought
        if not path.is_file():
            path.parent.mkdir(parents=True, exist_ok=True)
            download_torchvision(path)
        return [*brought, Download(path.name, path, path.stat().st_size, None, "BSD-3-Clause")]

    def extract(self, task: Asked, trials: Sequence[dict[str, Any]], device: str) -> Mapping[str, Features]:
        """Embeddings or fixations by "", and of words by the agent whose vectors they are. Raises UnavailableError."""
        settings = self.settings
        if task in PATHS:
            return {"": features.path_features(trials, settings.path)}
        if task == "word_association" and settings.words:
            agents = self._word_agents().items()
            return {name: features.text_features(trials, features.WordVectors(agent, device)) for name, agent in agents}
        if self._embedder is None:
            self._embedder = embedder.Embedder(settings.checkpoint, settings.pooling, device)
        pictures = None
        if task == "color_estimation" and settings.pictures != "none" and settings.trials is not None:
            root = settings.trials.parent
            pictures = features.PictureFeatures(self._picture_weights(), settings.pictures, root, device)
        return {"": features.text_features(trials, self._embedder, pictures)}

    def why_no_features(self, trial: Trial) -> str:
        """Why a trial has no row: too few fixations or words, an unknown word, no picture."""
        match trial["asked"]:
            case "attention_prediction":
                fixations = count(len(trial["answer"]["fixations"]), "fixation")
                least = features.LENGTHS["first10"]
                wider = f"with the setting {self.name}.path=padded15 (--set) it judges shorter ones too"
                return f"a scanpath of {fixations}: {self.name} judges those of {least} at least; {wider}"
            case "conversation":
                return f"no sentence of {features.LEAST_WORDS} words at least"
            case "word_association":
                return "the word or its cue has no vector"
            case "color_estimation" if "image" not in trial:
                return (
                    f"the trial has no picture; the setting {self.name}.pictures=none (--set) judges by the word alone"
                )
        return "the answer has no text"

    def new_model(self) -> Any:
        """The untrained classifier that the settings describe."""
        from sklearn.ensemble import RandomForestClassifier
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        from sklearn.svm import SVC

        settings = self.settings
        weight = "balanced" if settings.balanced else None
        if settings.model == "forest":
            model: Any = RandomForestClassifier(class_weight=weight, random_state=settings.seed)
        else:
            model = SVC(kernel=settings.kernel, class_weight=weight)
        return make_pipeline(StandardScaler(), model) if settings.scaled else model


class CueSettings(TrainedSettings):
    """Which cue, and how its folds are made."""

    cue: Cue
    """What the judge goes by."""


class CueJudge(TrainedJudge[CueSettings]):
    """A classifier of a single cue."""

    Settings = CueSettings
    declares = Declaration(
        single_cue=True,
        packages=("sklearn", "wordfreq"),
        memory=GIB,
    )
    settings: CueSettings

    def declaration(self) -> Declaration:
        """With the tasks whose answers have the cue."""
        return super().declaration().replace(judges=TASKS_OF_CUES[self.settings.cue])

    def extract(self, task: Asked, trials: Sequence[dict[str, Any]], device: str) -> Mapping[str, Features]:
        """The numbers of the cue, a row per trial."""
        match self.settings.cue:
            case "metadata":
                assert self.settings.trials is not None
                folder = self.settings.trials.parent
                rows = [cues.metadata(folder, trial) for trial in trials]
            case "frequency":
                rows = cues.frequencies(trials)
            case cue:
                rows = [NUMBERS[cue](trial) for trial in trials]
        return {"": Features(np.array(rows, dtype=np.float64), np.arange(len(rows)))}
