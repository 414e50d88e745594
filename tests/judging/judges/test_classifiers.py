"""Judges that are classifiers: against scikit-learn itself, what leaks through folds, and single cues."""

import json
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import KFold
from sklearn.svm import SVC

from agents import catalogue
from judging.judges import features as of_trials
from judging.judges.built_in import JUDGE_PRESETS
from judging.judges.classifier import NUMBERS, ClassifierJudge, ClassifierSettings, CueJudge, CueSettings
from judging.judges.features import Features, path_features
from judging.statistics.ledger import detectability_difference
from judging.trial_sets import cues


def path_trials(number: int, tell: float, seed: int = 0) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Scanpath trials of people and two agents, with their keys; machines look ``tell`` pixels to the right."""
    chance = np.random.default_rng(seed)
    trials = []
    keys = []
    for at in range(number):
        truth = "human" if at % 2 else "machine"
        agent = "human:1" if at % 2 else "ab"[at // 2 % 2]
        points = chance.normal((320 + tell * (truth == "machine"), 240), 60, (12, 2)).round()
        answer = {"fixations": points.tolist(), "frame": [640, 480]}
        trials.append({"id": f"t{at}", "asked": "attention_prediction", "shown": f"s{at // 4}", "answer": answer})
        keys.append({"truth": truth, "agent": agent, "catch": False, "repeat_of": None, "said": str(at), "asked": "x"})
    return trials, keys


def judged(trials: Any, keys: Any, **settings: Any) -> dict[str, dict[str, Any]]:
    judge = ClassifierJudge(ClassifierSettings(**settings), "svm")
    inputs = path_features(trials, judge.settings.path)
    return judge.judge_trials(trials, keys, {"": inputs})


def share_right(result: Mapping[str, Any], trials: Any, keys: Any) -> float:
    spoken = [result[item["id"]]["margin"] > 0 for item in trials]
    truth = [key["truth"] == "machine" for key in keys[: len(spoken)]]
    return float(np.mean(np.array(spoken) == np.array(truth)))


def test_the_papers_code_is_scikit_learns_own() -> None:
    """KFold(10, shuffle, 42) and SVC() by themselves give the same margins."""
    trials, keys = path_trials(80, 40)
    result = judged(trials, keys, kernel="rbf", scaled=False, balanced=False, split="row", seed=42, path="padded15")
    rows = np.ones((80, 30))
    rows[:, :24] = [2 * np.ravel(t["answer"]["fixations"]) / np.tile([640, 480], 12) - 1 for t in trials]
    truth = np.array([key["truth"] == "machine" for key in keys])
    for number, (train, test) in enumerate(KFold(10, shuffle=True, random_state=42).split(rows)):
        margins = SVC().fit(rows[train], truth[train]).decision_function(rows[test])
        for at, margin in zip(test, margins, strict=True):
            assert result[f"t{at}"]["margin"] == pytest.approx(margin)
            assert result[f"t{at}"]["fold"] == number


@pytest.mark.parametrize("settings", [{}, {"kernel": "rbf"}, {"split": "agent"}, {"split": "other"}, {"train": 40}])
def test_a_difference_is_found_and_none_is_not(settings: dict[str, Any]) -> None:
    trials, keys = path_trials(240, 60)
    assert share_right(judged(trials, keys, **settings), trials, keys) > 0.75
    trials, keys = path_trials(240, 0)
    assert 0.35 < share_right(judged(trials, keys, **settings), trials, keys) < 0.65


def test_answers_said_alike_on_one_stimulus_leak_through_folds_of_rows_alone() -> None:
    """Two machines that always say the same, which says nothing of what another machine would say."""
    chance = np.random.default_rng(0)
    trials: list[dict[str, Any]] = []
    keys = []
    rows = []
    for at in range(100):
        shared = chance.normal(size=40)
        for agent in ("human:1", "human:2", "a", "b"):
            truth = "human" if agent.startswith("human") else "machine"
            rows.append(shared if truth == "machine" else chance.normal(size=40))
            trials.append({"id": f"t{len(trials)}", "shown": f"s{at}", "asked": "x"})
            spoken = f"m{at}" if truth == "machine" else f"h{len(trials)}"
            keys.append(
                {"truth": truth, "agent": agent, "catch": False, "repeat_of": None, "said": spoken, "asked": "x"}
            )
    inputs = Features(np.array(rows), np.arange(len(rows)))
    rates = {}
    for split in ("row", "stimulus"):
        judge = ClassifierJudge(ClassifierSettings(kernel="rbf", split=split), "svm")
        result = judge.judge_trials(trials, keys, {"": inputs})
        machines = [(item, key) for item, key in zip(trials, keys, strict=True) if key["truth"] == "machine"]
        rates[split] = np.mean([result[item["id"]]["margin"] > 0 for item, _ in machines])
    assert rates["row"] > 0.75
    assert rates["stimulus"] < 0.65


@pytest.mark.parametrize("split", ["agent", "other"])
def test_an_agents_answers_are_judged_by_who_has_not_met_it(split: str) -> None:
    """Agent a looks to the right, b to the left: who has met b alone takes a for a person, and the other way round."""
    trials, keys = path_trials(240, 0)
    for trial, key in zip(trials, keys, strict=True):
        step = {"a": 150, "b": -150}.get(key["agent"], 0)
        trial["answer"]["fixations"] = [[x + step, y] for x, y in trial["answer"]["fixations"]]
    result = judged(trials, keys, split=split, scaled=False, balanced=False)
    of_a = [result[trial["id"]] for trial, key in zip(trials, keys, strict=True) if key["agent"] == "a"]
    assert np.mean([item["margin"] > 0 for item in of_a]) < 0.1
    rows = np.array([np.ravel(trial["answer"]["fixations"][:10]) for trial in trials])
    rows = 2 * rows / np.tile([640, 480], 10) - 1
    agents = np.array([key["agent"] for key in keys])
    folds = np.array([result[trial["id"]]["fold"] for trial in trials])
    if split == "agent":
        assert {item["agent"] for item in of_a} == {"a"}
        return
    for met in ("a", "b"):  # each judges the people and the agent that it has not met, in ten folds
        for fold in range(10):
            train = (folds != fold) & np.isin(agents, ["human:1", met])
            model = SVC(kernel="linear").fit(rows[train], agents[train] == met)
            for at in np.flatnonzero((folds == fold) & (agents != met)):
                margins = {part["trained_on"]: part["margin"] for part in result[f"t{at}"]["parts"]}
                assert margins[met] == pytest.approx(model.decision_function(rows[[at]])[0], abs=1e-6)
                assert set(margins) == {"a", "b"} - {agents[at]}


def test_catch_trials_are_judged_and_not_trained_on() -> None:
    trials, keys = path_trials(80, 60)
    plain = judged(trials, keys)
    odd = [dict(item, id=f"c{at}", shown=item["shown"]) for at, item in enumerate(trials)]
    catch = [dict(key, catch=True, truth="machine") for key in keys]
    both = judged(trials + odd, keys + catch, split="stimulus")
    assert set(both) == {*plain, *(f"c{at}" for at in range(80))}
    assert share_right(both, trials, keys) > 0.75  # although as many catch trials say the opposite


def test_a_short_path_is_not_judged_by_ten_fixations() -> None:
    trials, keys = path_trials(80, 60)
    trials[3]["answer"]["fixations"] = trials[3]["answer"]["fixations"][:9]
    assert "t3" not in judged(trials, keys)
    assert "t3" in judged(trials, keys, path="padded15")


@pytest.mark.parametrize(("asked", "lacks"), [("word_association", False), ("color_estimation", True)])
def test_weights_for_pictures_are_needed_for_colours_alone(tmp_path: Path, asked: str, lacks: bool) -> None:
    trials = tmp_path / "trials.jsonl"
    trials.write_text(json.dumps({"id": "t1", "asked": asked}) + "\n")
    chosen = ClassifierSettings(pictures="deep", picture_weights=str(tmp_path / "none.pth"), trials=trials)
    output = ClassifierJudge(chosen, "svm-paper-code").missing()
    assert (output is not None and "ResNet18's weights" in output) == lacks


def _path(points: list[list[float]]) -> dict[str, Any]:
    return {"answer": {"fixations": points, "frame": [200, 100]}}


def _text(text: str, **more: Any) -> dict[str, Any]:
    return {"id": "t0", "shown": "s0", "answer": {"text": text}, **more}


def test_numbers_of_a_scanpath() -> None:
    trial = _path([[100, 50], [160, 130], [160, 50]])
    assert cues.length(trial) == [0, 0, 0, 3]
    assert NUMBERS["path-length"](trial) == pytest.approx([0.9, 0.45])  # steps of 100 and 80 pixels
    away = np.array([0, 100, 60]) / 200
    assert NUMBERS["center"](trial) == pytest.approx([away.mean(), away.std()])
    assert NUMBERS["path-length"](_path([[5, 5]])) == [0, 0]


def test_numbers_of_texts() -> None:
    assert cues.length(_text("A dog, 2 cats")) == [13, 4, 1, 0]
    assert cues.length(_text("我每天喝咖啡")) == [6, 6, 1, 0]
    assert cues.length(_text("मैं चाय पीता हूँ")) == [16, 4, 1, 0]
    assert cues.punctuation(_text("A Dog, 2 café!")) == [2, 2, 1, 1]
    messages = [{"speaker": "A", "text": "Hi!"}, {"speaker": "B", "text": "Hello there."}]
    assert cues.judged_texts({"answer": {"messages": messages}, "speaker": "B"}) == ["Hello there."]
    assert cues.judged_texts({"answer": {"labels": ["cat", "dog"]}}) == ["cat", "dog"]
    spoken = [{"speaker": "A", "text": "我每天早上喝咖啡。好。Yes. I like it a lot, too."}]
    trial = {"asked": "conversation", "speaker": "A", "answer": {"messages": spoken}}
    assert of_trials.embedded_texts(trial) == ["我每天早上喝咖啡。", "I like it a lot, too."]


def test_frequencies_are_wordfreqs_and_count_the_other_trials() -> None:
    from wordfreq import zipf_frequency

    rows = cues.frequencies([_text("the dog"), _text("zebra"), _text("the dog")])
    the, dog, zebra = (zipf_frequency(word, "en") for word in ("the", "dog", "zebra"))
    assert rows[0] == pytest.approx([(the + dog) / 2, dog, 1])
    assert rows[1] == pytest.approx([zebra, zebra, 0])


def _judged(cue: str, people: list[str], machines: list[str]) -> float:
    """The share that the cue's judge tells rightly."""
    trials = []
    keys = []
    for at, (text, truth) in enumerate(
        [*((item, "human") for item in people), *((item, "machine") for item in machines)]
    ):
        trials.append({**_text(text), "id": f"t{at}", "shown": f"s{at % len(people)}", "asked": "image_captioning"})
        keys.append({"truth": truth, "agent": "a", "catch": False, "repeat_of": None, "said": text, "asked": "x"})
    judge = CueJudge(CueSettings(cue=cue), "cue")
    inputs = judge.extract("image_captioning", trials, "cpu")
    result = judge.judge_trials(trials, keys, inputs)
    return share_right(result, trials, keys)


def test_a_cue_tells_what_it_is_about_and_nothing_else() -> None:
    chance = np.random.default_rng(0)
    words = ["dog", "cat", "cow", "hen", "fox", "owl"]
    people = [" ".join(chance.choice(words, chance.integers(2, 9))) for _ in range(60)]
    longer = [" ".join(chance.choice(words, 5)) for _ in range(60)]  # always in the middle
    assert _judged("length", people, longer) > 0.7
    assert _judged("punctuation", people, longer) == 0.5
    assert _judged("constant", people, longer) == 0.5
    assert _judged("punctuation", people, [f"{item}." for item in people]) == 1
    assert 0.3 < _judged("length", people, [*people[1:], people[0]]) < 0.7


def test_the_difference_of_two_judges_is_that_of_their_detectabilities() -> None:
    chance = np.random.default_rng(0)
    rows = []
    for at in range(400):
        truth = ("human", "machine")[at % 2]
        for judge, skill in (("good", 0.8), ("poor", 0.6)):
            other = "machine" if truth == "human" else "human"
            verdict = truth if chance.random() < skill else other
            rows.append((judge, "machine", f"t{at}", f"s{at // 2}", truth, verdict, "human"))
    table = pd.DataFrame(rows, columns=["judge", "judge_kind", "trial", "stimulus", "truth", "verdict", "agent"])
    right = (table["verdict"] == table["truth"]).groupby([table["judge"], table["truth"]]).mean()
    result = detectability_difference(table, "good", "poor")
    assert result.value == pytest.approx(100 * (right["good"].mean() - right["poor"].mean()))
    # Two independent judges of 400 trials: the standard error is that of the difference of two proportions.
    error = np.sqrt((0.8 * 0.2 + 0.6 * 0.4) / 400)
    assert result.high - result.low == pytest.approx(100 * 2 * 1.96 * error, rel=0.15)
    assert np.isnan(detectability_difference(table, "good", "good").value)
    assert np.isnan(detectability_difference(table[table["judge"] == "good"], "good", "poor").value)


@pytest.mark.parametrize("sentences", [False, True])
def test_a_sentence_is_trained_on_once_and_judged_once(sentences: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Excerpts of 3, 6 and 9 messages of ten conversations, whose early sentences they share."""
    trials: list[dict[str, Any]] = []
    keys = []
    rows = []
    owner = []
    said = np.random.default_rng(0).normal(size=(10, 2, 9, 4))
    for talk, speaker, length in product(range(10), (0, 1), (3, 6, 9)):
        trial = {"id": f"t{len(trials)}", "asked": "conversation", "shown": f"s{talk}", "speaker": "AB"[speaker]}
        rows += list(said[talk, speaker, :length])
        owner += [len(trials)] * length
        trials.append(trial)
        truth = "machine" if speaker else "human"
        key = {"truth": truth, "agent": "a", "catch": False, "repeat_of": None, "said": trial["id"], "asked": "x"}
        keys.append(key)
    judge = ClassifierJudge(ClassifierSettings(scaled=False, balanced=False, sentences=sentences), "svm")
    inputs = Features(np.array(rows), np.array(owner))
    trained = []
    new_model = judge.new_model

    class Recorded:
        def fit(self, rows: Any, truth: Any) -> Any:
            trained.append((len(rows), len(np.unique(rows, axis=0))))
            return new_model().fit(rows, truth)

    monkeypatch.setattr(judge, "new_model", Recorded)
    result = judge.judge_trials(trials, keys, {"": inputs})
    assert trained == [(9 * 18, 9 * 18)] * 10
    counted = [part for entry in result.values() for part in entry.get("parts", [])]
    assert len(counted) == (10 * 2 * 9 if sentences else 0)
    for talk in range(10):
        fold = result[f"t{6 * talk}"]["fold"]
        others = [at for at in range(10) if result[f"t{6 * at}"]["fold"] != fold]
        model = SVC(kernel="linear").fit(said[others].reshape(-1, 4), np.tile(np.repeat([0, 1], 9), len(others)))
        for speaker in (0, 1):
            expected = model.decision_function(said[talk, speaker])
            excerpts = [result[f"t{6 * talk + 3 * speaker + at}"] for at in range(3)]
            assert [entry["margin"] for entry in excerpts] == pytest.approx([expected[:n].mean() for n in (3, 6, 9)])
            if sentences:
                parts = [[part["margin"] for part in entry["parts"]] for entry in excerpts]
                assert parts == [pytest.approx(expected[begin : begin + 3]) for begin in (0, 3, 6)]


def test_as_many_rows_of_people_as_of_machines_are_trained_on() -> None:
    """Three machines' answers to one of people's: a judge of unequal training calls all machines'."""
    trials, keys = path_trials(400, 20)
    kept = [at for at in range(400) if at % 2 == 0 or at % 6 == 1]
    trials = [trials[at] for at in kept]
    keys = [keys[at] for at in kept]
    plain, equal = (
        judged(trials, keys, kernel="rbf", scaled=False, balanced=False, equal=equal) for equal in (False, True)
    )
    called = [np.mean([entry["margin"] > 0 for entry in result.values()]) for result in (plain, equal)]
    assert called[0] > 0.9 > 0.7 > called[1] > 0.3


def test_a_person_is_judged_by_who_has_not_met_the_person() -> None:
    """Each of ten people looks where nobody else does: a radial machine knows only whom it has met."""
    trials, keys = path_trials(400, 0)
    for at, (trial, key) in enumerate(zip(trials, keys, strict=True)):
        key["record"] = f"human:{at // 2 % 10}"
        if key["truth"] == "human":
            angle = 2 * np.pi * (at // 2 % 10) / 10
            step = 250 * np.array([np.cos(angle), np.sin(angle)])
            trial["answer"]["fixations"] = (np.array(trial["answer"]["fixations"]) + step).tolist()
    people = [trial["id"] for trial, key in zip(trials, keys, strict=True) if key["truth"] == "human"]
    middle = {}
    for split, parts in (("stimulus", {None}), ("speaker", {f"people {at}" for at in range(1, 6)})):
        result = judged(trials, keys, kernel="rbf", split=split)
        assert {result[name]["agent"] for name in people} == parts
        middle[split] = np.mean([result[name]["margin"] for name in people])
    assert middle["stimulus"] < middle["speaker"] - 0.1


def test_margins_of_several_partitions_are_their_mean() -> None:
    trials, keys = path_trials(80, 20)
    each = [judged(trials, keys, seed=seed) for seed in (3, 4)]
    both = judged(trials, keys, seed=3, partitions=2)
    for name, entry in both.items():
        margins = [part[name]["margin"] for part in each]
        assert entry["margin"] == pytest.approx(np.mean(margins))
        assert entry["fold"] == each[0][name]["fold"]
        assert [part["margin"] for part in entry["parts"]] == pytest.approx(margins)
    papers = judged(trials, keys, partitions=0)  # the papers have five for scanpaths
    assert {tuple(part["partition"] for part in entry["parts"]) for entry in papers.values()} == {(0, 1, 2, 3, 4)}


def test_every_judge_of_the_list_can_be_named() -> None:
    assert {about["name"] for about in JUDGE_PRESETS.values()} <= set(catalogue.names())
