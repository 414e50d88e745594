"""Judges that are trained by cross-validation on the trials that they judge.

``split`` says how folds are made. "row" deals single rows, as the papers' public judge does. "agent" leaves the judged
agent out, and "speaker" the person. "other" trains on one agent alone and judges the others (2025 paper, Fig. S8).
"""

from __future__ import annotations

import hashlib
import random
from abc import abstractmethod
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
import orjson
from pydantic import Field

from agents.answers import VerdictAnswer
from agents.contract import Agent, Declaration, Draw, Reply
from agents.contract import Settings as BaseSettings
from agents.errors import AnswerError, UnavailableError
from agents.stimuli import Asked, JudgementStimulus, Stimulus
from judging.judges.features import Features
from judging.judges.moves import LEAST_MODELS, moves_of_margins
from judging.judges.papers_classifiers import PARTITIONS
from judging.trial_sets.cues import Trial, grouped_folds
from judging.trial_sets.trial_set import KeyRow, Keys, read_trial_key

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Marks = NDArray[np.bool_]
    Rows = NDArray[np.int64]


FOLDS = 10
PARTS_OF_PEOPLE = 5
NO_TRAINING = "the other folds have no answers of people, or none of machines, to train on"


class TrainedSettings(BaseSettings):
    """What is judged, and how its folds are made."""

    trials: Path | None = None
    """The trials, TRIALS/trials.jsonl: `turinglike judge` fills it in."""
    key: Path | None = None
    """Their key, TRIALS.key.csv: `turinglike judge` fills it in."""
    split: Literal["stimulus", "row", "agent", "speaker", "other"] = "stimulus"
    """Folds without a common stimulus; of single rows; the first, without the agent judged, or without the person, or
    trained on each agent alone to judge the others (`score --by trained_on`)."""
    partitions: int = Field(1, ge=0)
    """The number of partitions into folds, by seeds that follow ``seed``; each has its verdict, and scores are their
    mean. 0: the papers' number, for captions 3, for scanpaths 5."""
    sentences: bool = False
    """Whether each sentence of a conversation has a verdict, once however many excerpts hold it (2025 paper, L996)."""
    equal: bool = False
    """Whether as many rows of people as of machines are trained on, drawn (2025 paper, L1005, L1184)."""
    unique: bool = False
    """Whether answers of which another speaker said the same about the same stimulus are left out of training."""
    train: int | None = Field(None, ge=2)
    """The number of trials, drawn, that are trained on in each fold; none: all others (the papers' feedback: 16, 24,
    40)."""
    seed: int = Field(0, ge=0)
    """The seed of the folds and of all that is drawn."""


T = TypeVar("T", bound=TrainedSettings)


class TrainedJudge(Agent[T]):
    """A judge that learns from the trials of the other folds, and so judges each trial without having seen it.

    A subclass gives :meth:`extract`, the numbers that a classifier gets of a trial, and may give :meth:`new_model`. All
    trials are judged at once, in :meth:`load`."""

    declares = Declaration(
        tasks=("judgement",),
        extra="judging",
        batch_size=1 << 16,  # one worker judges all trials at once
        max_samples=1,
    )

    @abstractmethod
    def extract(self, task: Asked, trials: Sequence[dict[str, Any]], device: str) -> Mapping[str, Features]:
        """What classifiers get of trials of a task, by what embedded it. Raises UnavailableError."""

    def new_model(self) -> Any:
        """An untrained classifier of scikit-learn's; with a radial kernel, as people may be in the middle."""
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        from sklearn.svm import SVC

        return make_pipeline(StandardScaler(), SVC(class_weight="balanced"))

    def load(self, device: str) -> None:
        """Read the trials and their key, and judge them all: :meth:`respond` looks the verdicts up. Raises
        UnavailableError."""
        settings = self.settings
        if settings.trials is None or settings.key is None:
            raise UnavailableError(f"{self.name} is trained on the trials that it judges: use `turinglike judge`")
        key = read_trial_key(settings.key)
        self._replies: dict[str, Reply] = {}
        self._lacks: dict[str, AnswerError] = {}
        for task, trials in self.read_trials().items():
            known: dict[bytes, list[dict[str, Any] | None]] = {}
            for of_version, judged in in_versions(trials, key):
                self._judge(task, of_version, judged, key, device, known)
            for trial in trials:
                self._judge_as_first(trial["id"], key[trial["id"]])

    def _judge(
        self,
        task: Asked,
        trials: Sequence[dict[str, Any]],
        judged: Collection[str],
        key: Keys,
        device: str,
        known: dict[bytes, list[dict[str, Any] | None]],
    ) -> None:
        """Learn from trials, and keep the verdicts on those whose ids are ``judged``.

        ``known`` has what was found before, trial by trial, by a digest of the features. Many versions change no
        answer, and to learn the same again would take as long as the first time."""
        keys = [key[trial["id"]] for trial in trials]
        inputs = self.extract(task, trials, device)
        digest = _digest(inputs, keys)
        if digest not in known:
            found = self.judge_trials(trials, keys, inputs)
            known[digest] = [found.get(trial["id"]) for trial in trials]
        for trial, raw in zip(trials, known[digest], strict=True):
            if raw is not None and trial["id"] in judged:
                verdict = VerdictAnswer(verdict="machine" if raw["margin"] > 0 else "human")
                self._replies[trial["id"]] = Reply(verdict, raw)
        with_features = {place for of_embedding in inputs.values() for place in of_embedding.trial.tolist()}
        for place, trial in enumerate(trials):
            if trial["id"] not in judged:
                continue
            if place not in with_features:
                self._lacks[trial["id"]] = AnswerError("no_features", self.why_no_features(trial))
            elif trial["id"] not in self._replies:
                self._lacks[trial["id"]] = AnswerError("no_training", NO_TRAINING)

    def _judge_as_first(self, trial: str, row: KeyRow) -> None:
        """In a set with versions, give a repeat the verdict on the trial that it repeats."""
        first = row.get("repeat_of")
        if first is None or row.get("version") is None:
            return
        if first in self._replies:
            self._replies[trial] = self._replies[first]
        elif first in self._lacks:
            self._lacks[trial] = self._lacks[first]

    def why_no_features(self, trial: Trial) -> str:
        """Why :meth:`extract` gives a trial no row, in words for whoever reads the failed verdict."""
        return f"{self.name} gets no features of this answer"

    def read_trials(self) -> dict[Asked, list[dict[str, Any]]]:
        """The trials that it judges, by task; none before they are known."""
        judges = self.declaration().judges
        by_task: dict[Asked, list[dict[str, Any]]] = defaultdict(list)
        path = self.settings.trials
        for trial in map(orjson.loads, path.read_bytes().splitlines() if path else ()):
            if trial["asked"] in judges:
                by_task[trial["asked"]].append(trial)
        return by_task

    def prepare(self, stimulus: Stimulus) -> str:
        """The trial's id."""
        assert isinstance(stimulus, JudgementStimulus)
        return stimulus.id

    def respond(self, batch: Sequence[str], draws: Sequence[Draw]) -> Sequence[Reply | Exception]:
        """The verdicts on the trials of these ids, or why there is none, as :meth:`load` found them."""
        others = AnswerError("no_features", f"{self.name} judges {', '.join(self.declaration().judges)} alone")
        return [self._replies.get(trial) or self._lacks.get(trial, others) for trial in batch]

    def provenance(self) -> dict[str, Any]:
        """The version of scikit-learn, on which the classifier's margins depend."""
        import sklearn

        return {"scikit-learn": sklearn.__version__}

    def judge_trials(
        self, trials: Sequence[Trial], keys: Sequence[KeyRow], inputs: Mapping[str, Features]
    ) -> dict[str, dict[str, Any]]:
        """By trial, if it could be judged, its mean ``margin`` (above 0: a machine) and the first ``fold`` and held-out
        ``agent``; in a set of several versions of answers, the first ``moves`` (:mod:`judging.judges.moves`), None
        where they are not known. Where verdicts are several, ``parts`` are those that count: of each of ``inputs``,
        partition, agent trained on, and sentence. Raises UnavailableError."""
        settings = self.settings
        of_task = PARTITIONS.get(trials[0]["asked"], 1)
        verdicts_by_place: dict[int, list[tuple[bool, dict[str, Any]]]] = defaultdict(list)
        for embedding, partition in product(inputs, range(settings.partitions or of_task)):
            of_part = settings.model_copy(update={"seed": settings.seed + partition})
            source: dict[str, Any] = {"partition": partition}
            if embedding:
                source["embedding"] = embedding
            for place, counts, part in self._parts(trials, keys, inputs[embedding], of_part):
                verdicts_by_place[place].append((counts, source | part))
        has_versions = any(key.get("version") is not None for key in keys)
        is_several = settings.sentences or any(len(of_trial) > 1 for of_trial in verdicts_by_place.values())
        raw: dict[str, dict[str, Any]] = {}
        for place, of_trial in verdicts_by_place.items():
            margin = float(np.mean([part["margin"] for _, part in of_trial]))
            first = of_trial[0][1]
            of_first = {"fold": first["fold"], "split": settings.split, "agent": first.get("agent")}
            raw[trials[place]["id"]] = {"margin": margin, **of_first}
            if has_versions:
                moves = [part.pop("moves") for _, part in of_trial]
                raw[trials[place]["id"]]["moves"] = moves[0]
            if is_several:
                raw[trials[place]["id"]]["parts"] = [part for counts, part in of_trial if counts]
        return raw

    def _parts(
        self, trials: Sequence[Trial], keys: Sequence[KeyRow], inputs: Features, settings: TrainedSettings
    ) -> Iterator[tuple[int, bool, dict[str, Any]]]:
        """The verdicts of a single partition, each as (place of its trial, whether it counts, verdict).

        A verdict is a dict with ``margin`` (above 0: a machine), ``fold``, and the held-out ``agent``; in a set of
        several versions of answers also ``moves``, None where models are held out by something else than folds. With
        the setting ``sentences`` each row of ``inputs`` has one; else the mean margin of a trial's rows is one.

        All masks are over trials, but for those whose name has ``rows``: these are places in ``inputs``, of which a
        trial may have several. A verdict does not count where an equal answer of the same trial has one. Who trains on
        a trial that ``may_train`` leaves out, as catch trials and repeats, teaches the judge the answers that it is
        tested on.
        """
        is_machine = np.array([key["truth"] == "machine" for key in keys])
        may_train = np.array([not key["catch"] and not key["repeat_of"] for key in keys])
        counts = ~may_train[inputs.trial]
        counts[_distinct(np.flatnonzero(may_train), inputs, trials)] = True
        if settings.unique:
            may_train &= ~_repeated(keys)
        agents = np.array([key["agent"] if key["truth"] == "machine" else "" for key in keys])
        if settings.split == "speaker":
            agents = _people(keys, settings.seed)
        met = "trained_on" if settings.split == "other" else "agent"
        has_versions = any(key.get("version") is not None for key in keys)
        number_of_rows = np.maximum(np.bincount(inputs.trial, minlength=len(trials)), 1)
        of_models: dict[int, NDArray[np.float64]] = {}  # by fold; of the last model, where a fold has several
        own = np.full(len(trials), -1)
        found: list[tuple[int, bool, dict[str, Any]]] = []
        folds = _folds(trials, keys, settings)
        for fold, agent, test, others in _splits(folds, agents, settings):
            train = np.flatnonzero(others & may_train)
            rows_test = np.flatnonzero(test[inputs.trial])
            if settings.train is not None:
                train = _drawn(train, is_machine, settings.train, f"{settings.seed} {fold}")
            rows_train = _distinct(train, inputs, trials)
            of_machine = is_machine[inputs.trial]
            fewest = np.bincount(of_machine[rows_train], minlength=2).min()
            if not len(rows_test) or not fewest:
                continue
            if settings.equal:
                rows_train = _drawn(rows_train, of_machine, 2 * fewest, f"{settings.seed} {fold}")
            tested = inputs.rows if has_versions else inputs.rows[rows_test]
            margins = self._margins(inputs.rows[rows_train], of_machine[rows_train], tested)
            if has_versions:
                own[test] = len(of_models)
                of_models[fold] = np.bincount(inputs.trial, margins, len(trials)) / number_of_rows
                margins = margins[rows_test]
            owners = inputs.trial[rows_test]
            is_counted = counts[rows_test]
            if not settings.sentences:
                owners, places = np.unique(owners, return_inverse=True)
                margins = np.bincount(places, margins) / np.bincount(places)
                is_counted = np.ones(len(owners), dtype=bool)
            for place, counted, margin in zip(owners.tolist(), is_counted.tolist(), margins.tolist(), strict=True):
                found.append((place, counted, {"margin": margin, "fold": fold, met: agent or None}))
        if has_versions:
            moves = np.zeros((int(folds.max()) + 1, len(trials)))  # a fold that judges nothing moves nothing
            are_known = settings.split in ("stimulus", "row") and len(of_models) >= LEAST_MODELS
            if are_known:
                moves[list(of_models)] = moves_of_margins(np.array(list(of_models.values())), own)
            for place, _, verdict in found:
                verdict["moves"] = None
                if are_known:  # four digits are enough for a variance, and records stay short
                    verdict["moves"] = [float(f"{move:.4g}") for move in moves[:, place].tolist()]
        yield from found

    def _margins(self, rows: NDArray[np.float64], truth: Marks, tested: NDArray[np.float64]) -> NDArray[np.float64]:
        if np.ptp(rows, axis=0).max(initial=0) == 0:  # nothing varies: no answer is a machine's
            return np.zeros(len(tested))
        model = self.new_model().fit(rows, truth)
        if hasattr(model, "decision_function"):
            return np.asarray(model.decision_function(tested))
        return np.asarray(model.predict_proba(tested)[:, 1] - 0.5)


def in_versions(trials: Sequence[dict[str, Any]], key: Keys) -> list[tuple[list[dict[str, Any]], set[str]]]:
    """What a judge learns from and judges at once: all ``trials``, with the ids of all, where the set has no versions.

    In a set with versions there is an entry for each: the trials as they were drawn, in which each answer is replaced
    by the one in this version, with the ids of those that were replaced. So all versions have the same answers and
    catch trials in the same order, and with them the same folds and the same draws: a change from version to version is
    one of the answers alone. Repeats are left out."""
    if all(key[trial["id"]].get("version") is None for trial in trials):
        return [(list(trials), {trial["id"] for trial in trials})]
    firsts: list[dict[str, Any]] = []
    by_version: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
    for trial in trials:
        row = key[trial["id"]]
        if row["repeat_of"] is not None:
            continue
        if row["version_of"] is None:
            firsts.append(trial)
        else:
            by_version[row["version"]][row["version_of"]] = trial
    found = [(firsts, {trial["id"] for trial in firsts})]
    for of_version in by_version.values():
        replaced = [of_version.get(trial["id"], trial) for trial in firsts]
        found.append((replaced, {trial["id"] for trial in of_version.values()}))
    return found


def _digest(inputs: Mapping[str, Features], keys: Sequence[KeyRow]) -> bytes:
    """Of all that verdicts on a version depend on: the features, and which answers are equal."""
    digest = hashlib.sha256(orjson.dumps([key["said"] for key in keys]))
    for name, features in inputs.items():
        digest.update(orjson.dumps([name, features.rows.shape]))
        digest.update(np.ascontiguousarray(features.rows).tobytes())
        digest.update(features.trial.tobytes())
    return digest.digest()


def _splits(fold: Rows, agents: NDArray[np.str_], settings: TrainedSettings) -> Iterator[tuple[int, str, Marks, Marks]]:
    """(fold, agent, trials to judge, trials that may be trained on): the agent is held out, or alone trained on."""
    is_person = agents == ""
    names = [""]
    met = np.full_like(agents, "")
    if settings.split in ("agent", "speaker", "other"):
        names = sorted(set(agents.tolist()) - {""})
        if len(names) < 2:
            raise UnavailableError(f"split={settings.split} needs two that answer, to train on one and judge another")
        chance = random.Random(settings.seed)
        met = np.array([agent or chance.choice(names) for agent in agents.tolist()], dtype=agents.dtype)
    for number, agent in product(np.unique(fold).tolist(), names):
        in_fold = fold == number
        is_agent = agents == agent
        if settings.split == "other":
            yield number, agent, in_fold & ~is_agent, ~in_fold & (is_agent | is_person)
        else:
            yield number, agent, in_fold & (met == agent), ~in_fold & (~is_agent | is_person)


def _distinct(among: Rows, inputs: Features, trials: Sequence[Trial]) -> Rows:
    """The rows of the trials ``among`` these; of conversations each sentence once.

    Excerpts of 3, 6, … 24 messages hold the first sentences of a conversation up to eight times. Counted as often,
    these would outweigh the last ones in training, and in scores they would count as new verdicts. So of rows with the
    same conversation, speaker and features the first stays."""
    rows = np.flatnonzero(np.isin(inputs.trial, among))
    if trials[0]["asked"] != "conversation":
        return rows
    seen = set[tuple[str, str, bytes]]()
    firsts = []
    for row in rows:
        trial = trials[inputs.trial[row]]
        sentence = (trial["shown"], trial["speaker"], inputs.rows[row].tobytes())
        if sentence not in seen:
            seen.add(sentence)
            firsts.append(row)
    return np.array(firsts, dtype=np.int64)


def _people(keys: Sequence[KeyRow], seed: int) -> NDArray[np.str_]:
    """The part of people, of five, whose the answer is; nothing of a machine's."""
    names = sorted({str(key["record"]) for key in keys if key["truth"] == "human"})
    random.Random(seed).shuffle(names)
    part = {name: f"people {number % PARTS_OF_PEOPLE + 1}" for number, name in enumerate(names)}
    return np.array([part[str(key["record"])] if key["truth"] == "human" else "" for key in keys])


def _folds(trials: Sequence[Trial], keys: Sequence[KeyRow], settings: TrainedSettings) -> Rows:
    if settings.split == "row":
        from sklearn.model_selection import KFold

        fold = np.zeros(len(trials), dtype=np.int64)
        folds = KFold(min(FOLDS, len(trials)), shuffle=True, random_state=settings.seed)
        for number, (_, test) in enumerate(folds.split(fold)):
            fold[test] = number
        return fold
    # Answers of a block were matched with each other, and so they are held out together. Catch trials are in no block.
    blocks = {trial["shown"]: key["block"] for trial, key in zip(trials, keys, strict=True) if key.get("block")}
    groups = [blocks.get(trial["shown"], trial["shown"]) for trial in trials]
    return grouped_folds(groups, [key["truth"] for key in keys], min(FOLDS, len(set(groups))), settings.seed)


def _repeated(keys: Sequence[KeyRow]) -> Marks:
    answers = [(key["asked"], key["said"], key["truth"], key["agent"]) for key in keys]
    speakers = Counter(answer[:2] for answer in set(answers))
    return np.array([speakers[answer[:2]] > 1 for answer in answers])


def _drawn(places: Rows, is_machine: Marks, number: int, seed: str) -> Rows:
    """``number`` of the places, half machines', or as many as there are."""
    chance = random.Random(seed)
    machines = is_machine[places]
    of_machines = places[machines].tolist()
    of_people = places[~machines].tolist()
    drawn = chance.sample(of_machines, min(number // 2, len(of_machines)))
    drawn += chance.sample(of_people, min(number - number // 2, len(of_people)))
    return np.array(sorted(drawn), dtype=np.int64)
