"""Judges that are classifiers, trained by cross-validation on the trials that they judge: of features like the papers'
(:mod:`judging.features`), or of a single cue. ``split`` "row" deals single rows (papers' public judge), "agent" leaves
the judged agent out, "speaker" the person, "other" trains on another agent alone (2025 paper, Fig. S8)."""

from __future__ import annotations

import random
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
import orjson
from pydantic import Field

from agents import answer_numbers, checkpoints
from agents.answers import VerdictAnswer
from agents.contract import GIB, Agent, Draw, Reply
from agents.contract import Settings as BaseSettings
from agents.errors import AnswerError, UnavailableError
from agents.language.minilm import PACKAGE
from agents.pretrained import download_torchvision, torch_hub_path
from agents.stimuli import TASKS, Asked, JudgementStimulus, Stimulus
from judging import features
from judging.features import Features, Trial, grouped_folds
from judging.published import differences_from_paper
from judging.trial_set import KeyRow, read_trial_key

if TYPE_CHECKING:
    from numpy.typing import NDArray

FOLDS = 10
PARTS_OF_PEOPLE = 5
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


class TrainedSettings(BaseSettings):
    """What is judged, and how its folds are made."""

    trials: Path | None = None
    """The trials, TRIALS/trials.jsonl: `turinglike judge` fills it in."""
    key: Path | None = None
    """Their key, TRIALS.key.csv: `turinglike judge` fills it in."""
    split: Literal["stimulus", "row", "agent", "speaker", "other"] = "stimulus"
    """Folds without a common stimulus; of single rows; the first, without the agent judged, or without the person, or
    with one other agent alone."""
    partitions: int = Field(1, ge=1)
    """So many partitions into folds, by seeds that follow ``seed``; a margin is their mean (the papers: 3 or 5)."""
    unique: bool = False
    """Whether answers of which another speaker said the same about the same stimulus are left out of training."""
    train: int | None = Field(None, ge=2)
    """So many trials, drawn, are trained on in each fold; none: all others (the papers' feedback: 16, 24, 40)."""
    seed: int = Field(0, ge=0)
    """Of the folds and of all that is drawn."""


T = TypeVar("T", bound=TrainedSettings)


class TrainedJudge(Agent[T]):
    tasks = ("judgement",)
    extra = "judging"
    batch_size = 1 << 16  # one worker judges all trials at once
    max_samples = 1

    @abstractmethod
    def extract(self, task: Asked, trials: Sequence[dict[str, Any]], device: str) -> Features:
        """What the classifier gets of trials of a task."""

    @abstractmethod
    def new_model(self) -> Any:
        """An untrained classifier of scikit-learn's."""

    def load(self, device: str) -> None:
        """Read the trials and their key, and judge them all: :meth:`respond` looks the verdicts up. Raises
        UnavailableError."""
        chosen = self.settings
        if chosen.trials is None or chosen.key is None:
            raise UnavailableError(f"{self.name} is trained on the trials that it judges: use `turinglike judge`")
        key = read_trial_key(chosen.key)
        by_task: dict[Asked, list[dict[str, Any]]] = defaultdict(list)
        for line in chosen.trials.read_bytes().splitlines():
            trial = orjson.loads(line)
            if trial["asked"] in self.judges:
                by_task[trial["asked"]].append(trial)
        self._judged: dict[str, dict[str, Any]] = {}
        for task, trials in by_task.items():
            keys = [key[trial["id"]] for trial in trials]
            self._judged |= judge_trials(trials, keys, self.extract(task, trials, device), chosen, self.new_model)

    def prepare(self, stimulus: Stimulus) -> str:
        assert isinstance(stimulus, JudgementStimulus)
        return stimulus.id

    def respond(self, batch: Sequence[str], draws: Sequence[Draw]) -> Sequence[Reply | Exception]:
        return [self._reply(trial) for trial in batch]

    def _reply(self, trial: str) -> Reply | Exception:
        raw = self._judged.get(trial)
        if raw is None:
            return AnswerError("no_features", "the answer is too short to be judged, or its fold could not be trained")
        return Reply(VerdictAnswer(verdict="machine" if raw["margin"] > 0 else "human"), raw)

    def provenance(self) -> dict[str, Any]:
        import sklearn

        return {"scikit-learn": sklearn.__version__}


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
    pooling: features.Pooling = "mean"
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
    _embedder: features.Embedder | None = None

    def checkpoint(self) -> tuple[str | None, str | None]:
        return self.settings.checkpoint, None

    def missing(self) -> str | None:
        if (lacking := self.missing_packages()) is not None:
            return lacking
        try:
            wrong = features.problem(self.settings.checkpoint)
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
        return torch_hub_path(features.RESNET) if path == "published" else Path(path).expanduser()

    def fetch(self) -> Sequence[checkpoints.Download]:
        path = self._picture_weights()
        if self.settings.pictures == "none" or path != torch_hub_path(features.RESNET):
            return ()
        if not path.is_file():
            path.parent.mkdir(parents=True, exist_ok=True)
            download_torchvision(path)
        return [checkpoints.Download(path.name, path, path.stat().st_size, None, "BSD-3-Clause")]

    def extract(self, task: Asked, trials: Sequence[dict[str, Any]], device: str) -> Features:
        chosen = self.settings
        if task == "attention_prediction":
            return features.trial_features(trials, None, None, chosen.path)
        if self._embedder is None:
            self._embedder = features.Embedder(chosen.checkpoint, chosen.pooling, device)
        pictures = None
        if task == "color_estimation" and chosen.pictures != "none":
            assert chosen.trials is not None
            root = chosen.trials.parent
            pictures = features.PictureFeatures(self._picture_weights(), chosen.pictures, root, device)
        return features.trial_features(trials, self._embedder, pictures, chosen.path)

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

    def extract(self, task: Asked, trials: Sequence[dict[str, Any]], device: str) -> Features:
        match self.settings.cue:
            case "constant":
                rows = [[0.0] for _ in trials]
            case "metadata":
                assert self.settings.trials is not None
                folder = self.settings.trials.parent
                rows = [features.metadata(folder, trial) for trial in trials]
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


def judge_trials(
    trials: Sequence[Trial],
    keys: Sequence[KeyRow],
    inputs: Features,
    chosen: TrainedSettings,
    new_model: Callable[[], Any],
) -> dict[str, dict[str, Any]]:
    """By trial, if it could be judged, its mean ``margin`` (above 0: a machine) and, of the first partition, fold."""
    settings = [chosen.model_copy(update={"seed": chosen.seed + at}) for at in range(chosen.partitions)]
    parts = [_judged_once(trials, keys, inputs, of_part, new_model) for of_part in settings]
    return {
        trial: {**entry, "margin": float(np.mean([part[trial]["margin"] for part in parts if trial in part]))}
        for trial, entry in parts[0].items()
    }


def _judged_once(
    trials: Sequence[Trial],
    keys: Sequence[KeyRow],
    inputs: Features,
    chosen: TrainedSettings,
    new_model: Callable[[], Any],
) -> dict[str, dict[str, Any]]:
    is_machine = np.array([key["truth"] == "machine" for key in keys])
    may_train = np.array([not key["catch"] and not key["repeat_of"] for key in keys])
    if chosen.unique:
        may_train &= ~_repeated(keys)
    agents = np.array([key["agent"] if key["truth"] == "machine" else "" for key in keys])
    if chosen.split == "speaker":
        agents = _people(keys, chosen.seed)
    fold, met = _folds(trials, keys, chosen), _met(agents, chosen)
    margins: dict[int, list[float]] = defaultdict(list)
    for number, agent in sorted(set(zip(fold.tolist(), met.tolist(), strict=True))):
        test = (fold == number) & (met == agent)
        is_met = agents == agent if chosen.split == "other" else agents != agent
        train = may_train & (fold != number) & (is_met | (agents == ""))
        train = _drawn(train, is_machine, chosen, number)
        rows_train, rows_test = _distinct(train, inputs, trials), test[inputs.trial]
        owners = inputs.trial[rows_test]
        truth = is_machine[inputs.trial[rows_train]]
        if not rows_test.any() or len(set(truth)) < 2:
            continue
        if np.ptp(inputs.rows[rows_train], axis=0).max(initial=0) == 0:  # nothing varies: no answer is a machine's
            values = np.zeros(len(owners))
        else:
            model = new_model().fit(inputs.rows[rows_train], truth)
            if hasattr(model, "decision_function"):
                values = model.decision_function(inputs.rows[rows_test])
            else:
                values = model.predict_proba(inputs.rows[rows_test])[:, 1] - 0.5
        for owner, margin in zip(owners, values, strict=True):
            margins[int(owner)].append(float(margin))
    return {
        trials[at]["id"]: {
            "margin": sum(of_trial) / len(of_trial),
            "fold": int(fold[at]),
            "rows": len(of_trial),
            "split": chosen.split,
            "agent": str(met[at]) or None,
        }
        for at, of_trial in margins.items()
    }


def _distinct(train: NDArray[np.bool_], inputs: Features, trials: Sequence[Trial]) -> NDArray[np.int64]:
    """The rows that are trained on: a sentence once, however many excerpts of a conversation have it."""
    rows = np.flatnonzero(train[inputs.trial])
    if trials[0].get("asked") != "conversation":
        return rows
    owners = (trials[at] for at in inputs.trial[rows])
    keys = [(of["shown"], of["speaker"], inputs.rows[row].tobytes()) for row, of in zip(rows, owners, strict=True)]
    return rows[sorted(dict(zip(reversed(keys), reversed(range(len(keys))), strict=True)).values())]


def _people(keys: Sequence[KeyRow], seed: int) -> NDArray[np.str_]:
    """The part of people, of five, whose the answer is; nothing of a machine's."""
    names = sorted({str(key["record"]) for key in keys if key["truth"] == "human"})
    random.Random(seed).shuffle(names)
    part = {name: f"people {at % PARTS_OF_PEOPLE + 1}" for at, name in enumerate(names)}
    return np.array([part[str(key["record"])] if key["truth"] == "human" else "" for key in keys])


def _folds(trials: Sequence[Trial], keys: Sequence[KeyRow], chosen: TrainedSettings) -> NDArray[np.int64]:
    if chosen.split == "row":
        from sklearn.model_selection import KFold

        fold = np.zeros(len(trials), dtype=np.int64)
        folds = KFold(min(FOLDS, len(trials)), shuffle=True, random_state=chosen.seed)
        for at, (_, test) in enumerate(folds.split(fold)):
            fold[test] = at
        return fold
    groups = [trial["shown"] for trial in trials]
    return grouped_folds(groups, [key["truth"] for key in keys], min(FOLDS, len(set(groups))), chosen.seed)


def _met(agents: NDArray[np.str_], chosen: TrainedSettings) -> NDArray[np.str_]:
    if chosen.split not in ("agent", "speaker", "other"):
        return np.full_like(agents, "")
    names = sorted(set(agents.tolist()) - {""})
    if len(names) < 2:
        raise UnavailableError(f"split={chosen.split} needs two that answer, to train on one and judge another")
    chance = random.Random(chosen.seed)
    if chosen.split != "other":
        met = [agent or chance.choice(names) for agent in agents.tolist()]
    else:
        met = [chance.choice([name for name in names if name != agent]) for agent in agents.tolist()]
    return np.array(met, dtype=agents.dtype)


def _repeated(keys: Sequence[KeyRow]) -> NDArray[np.bool_]:
    speakers: dict[tuple[str, str], set[tuple[str, str]]] = defaultdict(set)
    for key in keys:
        speakers[key["asked"], key["said"]].add((key["truth"], key["agent"]))
    return np.array([len(speakers[key["asked"], key["said"]]) > 1 for key in keys])


def _drawn(
    train: NDArray[np.bool_], is_machine: NDArray[np.bool_], chosen: TrainedSettings, fold: int
) -> NDArray[np.bool_]:
    if chosen.train is None:
        return train
    chance = random.Random(f"{chosen.seed} {fold}")
    kept = np.zeros_like(train)
    for truth, number in ((True, chosen.train // 2), (False, chosen.train - chosen.train // 2)):
        places = np.flatnonzero(train & (is_machine == truth)).tolist()
        kept[chance.sample(places, min(number, len(places)))] = True
    return kept
