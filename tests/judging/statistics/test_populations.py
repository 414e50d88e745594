"""Populations of answers: measures against SciPy, sacrebleu and cases by hand; the test and its intervals against
enumeration; the command."""

import csv
import json
import math
import re
from dataclasses import replace
from itertools import permutations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import simulate_populations
from sacrebleu import sentence_bleu
from scipy.spatial.distance import jensenshannon
from scipy.stats import energy_distance as energy_of_numbers
from scipy.stats import entropy as nats
from scipy.stats import t as student
from scipy.stats import ttest_1samp

from judging.statistics import as_participant
from judging.statistics import population_measures as measures
from judging.statistics.jackknife import Floats
from judging.statistics.populations import Population, population_sentences, populations
from judging.statistics.tables import Estimate, Table
from serving.cli import main

COLORS = ("red", "blue", "green", "white", "black", "gray")


def _answer(task: str, stimulus: str, agent: str, **answer: Any) -> dict[str, Any]:
    truth = "human" if agent.partition(":")[0] == "human" else "machine"
    about = {"asked": task, "stimulus": stimulus, "agent": agent, "truth": truth}
    return {**about, "speaker": answer.pop("speaker", None), "answer": answer}


def _colors(stimulus: str, agent: str, *colors: str) -> list[dict[str, Any]]:
    return [_answer("color_estimation", stimulus, agent, color=color) for color in colors]


def _row(rows: Table[Population], measure: str, agent: str = "machine") -> Population:
    [row] = [row for row in rows if (row.measure, row.agent) == (measure, agent)]
    return row


def _sets(first: str, second: str) -> tuple[Floats, Floats, Floats]:
    """The shares of letters as words, and which stand in either set."""
    answers = [_answer("word_association", "s", "human", word=letter) for letter in first + second]
    chosen = np.repeat([1.0, 0.0], [len(first), len(second)])[None]
    return measures.answer_shares(answers), chosen, 1 - chosen


def test_measures_of_words_are_those_of_scipy() -> None:
    relation, first, second = _sets("aabcd", "abbee")
    p = np.array([2, 1, 1, 1, 0]) / 5
    q = np.array([1, 2, 0, 0, 2]) / 5
    [divergence] = measures.jensen_shannon(relation, first, second)
    assert divergence == pytest.approx(jensenshannon(p, q, base=2) ** 2)
    assert measures.entropy(relation, first, second) == pytest.approx([nats(p, base=2)])
    assert measures.total_variation(relation, first, second) == pytest.approx([0.6])
    pairs = [one == other for one, other in product("aabcd", "abbee")]
    assert measures.probability_alike(relation, first, second) == pytest.approx([np.mean(pairs)])
    assert measures.rare_covered(relation, first, second) == pytest.approx([1])  # of a alone
    assert measures.rare_covered(relation, second, first) == pytest.approx([1 / 3])  # b, but neither c nor d
    assert math.isnan(measures.rare_covered(*_sets("ab", "cc"))[0])
    labels = [_answer("object_detection", "s", "human", labels=labels) for labels in (["cat", "dog"], ["cat"])]
    assert measures.answer_shares(labels).tolist() == [[0.5, 0.5], [1, 0]]


def test_energy_distance_is_that_of_scipy() -> None:
    chance = np.random.default_rng(0)
    first = chance.normal(0, 1, 7)
    second = chance.normal(1, 2, 5)
    vectors = {str(number): np.array([number], np.float32) for number in [*first, *second]}
    answers = [_answer("word_association", "s", "human", word=word) for word in vectors]
    chosen = np.repeat([1.0, 0.0], [7, 5])[None]
    [distance] = measures.energy_distance(measures.distances(vectors, answers), chosen, 1 - chosen)
    assert distance == pytest.approx(energy_of_numbers(first, second) ** 2, rel=1e-5)


def test_the_messages_of_a_speaker_are_compared_each_with_each() -> None:
    vectors = {name: np.array([place], np.float32) for name, place in (("a", 0.0), ("b", 2.0), ("c", 5.0))}
    spoken = [{"speaker": "A", "text": "a"}, {"speaker": "B", "text": "c"}, {"speaker": "A", "text": "b"}]
    answers = [_answer("conversation", "s", "human", messages=spoken, speaker=letter) for letter in "AB"]
    assert measures.distances(vectors, answers).tolist() == [[1, 4], [4, 0]]


def test_self_bleu_is_the_mean_of_sacrebleu_over_pairs() -> None:
    texts = ["a man rides a brown horse", "a man rides a white horse on a beach", "two dogs run", "a man rides a bike"]
    answers = [_answer("image_captioning", "s", "human", text=f"{text.capitalize()}.") for text in texts]
    chosen = np.array([[1.0, 1, 1, 0], [1, 1, 0, 0]])
    for value, kept in zip(measures.self_bleu(measures.pairwise_bleu(answers), chosen, chosen), (3, 2), strict=True):
        pairs = [
            sentence_bleu(text, [reference], tokenize="none", use_effective_order=True).score
            for text, reference in permutations(texts[:kept], 2)
        ]
        assert value == pytest.approx(np.mean(pairs))


def test_information_gain_of_paths_by_hand() -> None:
    width = 1280
    height = 1024
    points = {"here": (650.0, 520.0), "far": (30.0, 30.0)}

    def path(agent: str, place: str) -> dict[str, Any]:
        fixations = [(640.0, 512.0), points[place]]  # the first is forced
        return _answer("attention_prediction", "s", agent, fixations=fixations, frame=(width, height))

    answers = [path("human", "here"), path("machine", "here"), path("machine", "far")]
    relation = measures.fixation_maps(
        measures.centres(answers), answers
    )  # no other picture: people look anywhere else alike
    first = np.array([[0.0, 1, 0], [0, 0, 1]])
    second = np.array([[1.0, 0, 0]] * 2)
    near, far = measures.information_gain(relation, first, second)
    degree = 43 / 1280 * width
    peak = width * height / (2 * math.pi * degree**2)  # a Gaussian's density beside the even one
    assert near == pytest.approx(math.log2(0.7 * peak + 0.3), rel=0.01)
    assert far == pytest.approx(math.log2(0.3))
    apart = math.hypot(620, 490) / width
    assert measures.path_distances(answers) == pytest.approx(
        np.array([[0, 0, apart], [0, 0, apart], [apart, apart, 0]])
    )


def test_people_look_at_the_centre_of_other_pictures() -> None:
    answers = [
        _answer("attention_prediction", picture, "human", fixations=[(0.0, 0.0), place], frame=(64, 64))
        for picture, place in (("one", (10.5, 20.5)), ("two", (50.5, 40.5)), ("three", (50.5, 40.5)))
    ]
    centre = measures.centres(answers)["one"].reshape(64, 64)
    assert centre.sum() == pytest.approx(1)
    assert np.unravel_index(centre.argmax(), centre.shape) == (40, 50)
    assert centre[20, 10] == pytest.approx(0.01 / 1.01 / 64**2)  # what is even


def _values_by_hand(answers: dict[str, list[str]]) -> tuple[float, list[float], np.ndarray]:
    """By name each one's colours, stimulus by stimulus: how often the agent's and each participant's are alike to those
    of all others, and the differences by stimulus of the agent and the mean participant."""
    stimuli = len(answers["machine"])
    alike = {
        name: [
            np.mean([colors[at] == other[at] for whose, other in answers.items() if whose != name])
            for at in range(stimuli)
        ]
        for name, colors in answers.items()
    }
    people = np.array([values for name, values in alike.items() if name != "machine"])
    by_stimulus = np.array(alike["machine"]) - people.mean(axis=0)
    return float(np.mean(alike["machine"])), people.mean(axis=1).tolist(), by_stimulus


def _named(answers: dict[str, list[str]]) -> list[dict[str, Any]]:
    return [
        _answer("color_estimation", str(at), name, color=color)
        for name, colors in answers.items()
        for at, color in enumerate(colors)
    ]


def test_the_test_is_that_of_a_single_case_beside_few_controls() -> None:
    """Six participants and an agent, each beside six others: Crawford and Howell's t, and Student's over stimuli."""
    chance = np.random.default_rng(3)
    answers = {f"human:{at}": chance.choice(COLORS[:3], 12).tolist() for at in range(6)}
    answers["machine"] = ["red"] * 12
    row = _row(populations(_named(answers)), "answers alike")
    agent, people, by_stimulus = _values_by_hand(answers)
    error = np.std(people, ddof=1) * math.sqrt(1 + 1 / 6)
    assert row.p == pytest.approx(2 * student.sf(abs(agent - np.mean(people)) / error, 5))
    assert (row.participants, row.interval) == (6, "participants and stimuli")
    assert (row.beside_people.value, row.people.value) == pytest.approx((agent, np.mean(people)))
    over_people = student.ppf(0.975, 5) * error
    over_stimuli = student.ppf(0.975, 11) * by_stimulus.std(ddof=1) / math.sqrt(12)
    half = max(over_people, over_stimuli)
    assert row.difference.value == pytest.approx(agent - np.mean(people))
    assert row.difference.low == pytest.approx(row.difference.value - half)
    assert row.difference.high == pytest.approx(row.difference.value + half)
    interval = ttest_1samp(people, 0).confidence_interval()
    assert (row.people.low, row.people.high) == pytest.approx((interval.low, interval.high))


def test_only_the_first_of_several_answers_stands_beside_participants() -> None:
    chance = np.random.default_rng(4)
    answers = {f"human:{at}": chance.choice(COLORS[:3], 8).tolist() for at in range(5)}
    answers["machine"] = chance.choice(COLORS[:3], 8).tolist()
    once = _row(populations(_named(answers)), "answers alike")
    again = _named(answers) + [_answer("color_estimation", str(at), "machine", color="gray") for at in range(8)]
    twice = _row(populations(again), "answers alike")
    assert (twice.difference, twice.p) == (once.difference, once.p)
    assert twice.answers == 16
    assert _row(populations(again), "total variation").interval == "stimuli"


def test_participants_who_answered_a_part_leave_their_other_answers_out_of_the_error() -> None:
    """A further participant with all stimuli varies less than these with a third of them: in normal values, of which
    half of the variance is a participant's own, the error is that of this model, not that of their means."""
    chance = np.random.default_rng(5)
    people = 400
    stimuli = 12
    is_there = np.array([chance.permutation(stimuli) < 4 for _ in range(people)])
    values = chance.normal(0, 1, (people, 1)) + chance.normal(0, 1, (people, stimuli))
    values = np.where(is_there, values, np.nan)
    error, freedom = as_participant.of_a_further_participant(values - np.nanmean(values, axis=0), is_there)
    assert error**2 == pytest.approx(1 + 1 / stimuli, rel=0.15)
    assert values[is_there].std() > 1.2 * error
    assert 100 < freedom < people
    everywhere = np.ones_like(is_there)
    full = chance.normal(0, 1, (people, stimuli))
    deviations = full - full.mean(axis=0)
    error, freedom = as_participant.of_a_further_participant(deviations, everywhere)
    assert error == pytest.approx(deviations.mean(axis=1).std(ddof=1) * math.sqrt(1 + 1 / people))
    assert freedom == people - 1


def test_a_further_participant_with_tastes_is_seldom_told_from_people_with_tastes() -> None:
    """Of 300 studies 15 are due; the former test, of single answers, told two thirds of such participants."""
    alarms = []
    design = simulate_populations.Design(20, 12, 12)
    for seed in range(300):
        study = simulate_populations.color_study(design, np.random.default_rng(seed))
        alarms.append(_row(populations(study), "answers alike", simulate_populations.FURTHER).p)
    number = sum(p is not None and p < 0.05 for p in alarms)
    assert 4 <= number <= 28  # by the binomial distribution, 99.9 %


def test_the_commonest_answer_is_told_from_people_and_people_are_not() -> None:
    chance = np.random.default_rng(1)
    answers = []
    for at in map(str, range(25)):
        shares = np.sort(chance.dirichlet(np.full(len(COLORS), 0.8)))[::-1]
        for number in range(8):
            answers += _colors(at, f"human:{number}", chance.choice(COLORS, p=shares))
        for agent, of_agent in (("alike", shares), ("modal", np.eye(6)[0])):
            answers += _colors(at, agent, *chance.choice(COLORS, 4, p=of_agent))
    rows = populations(answers)
    assert [row for row in rows if row.agent == "alike" and row.holm is not None and row.holm < 0.05] == []
    modal = {row.measure: row for row in rows if row.agent == "modal"}
    assert modal["answers alike"].difference.low > 0
    assert modal["entropy (bits)"].beside_people.value == 0
    assert modal["total variation"].p is None
    assert modal["total variation"].itself.value == 0
    assert modal["answers alike"].family == 4  # of two agents the two measures of single answers
    alike, common = population_sentences(rows)
    assert alike == "alike: no difference from these people was seen, which does not prove that there is none."
    assert common.startswith("modal does not answer as people like these do: ")
    assert populations(answers).records() == rows.records()


def test_answers_without_names_have_measures_and_no_test() -> None:
    answers = []
    for at, (*people, machine) in enumerate([("red", "red", "blue")] * 4 + [("red", "blue", "green")] * 3):
        answers += [*_colors(str(at), "human", *people), *_colors(str(at), "machine", machine)]
    rows = populations(answers)
    row = _row(rows, "answers alike")
    assert (row.p, row.holm, row.participants, row.interval) == (None, None, 0, "stimuli")
    interval = ttest_1samp([-1] * 4 + [0] * 3, 0).confidence_interval()
    assert interval.low < -1  # no difference of probabilities
    assert (row.difference.low, row.difference.high) == pytest.approx((-1, interval.high))
    [sentence] = population_sentences(rows)
    assert sentence.startswith("machine was not tested: a test takes 4 named participants")


def test_what_is_seen_without_a_test_is_said_of_these_people() -> None:
    answers = []
    for at in range(9):
        people = ("red", "red", "blue", "green") if at % 2 else ("red", "blue", "blue", "green")
        answers += [*_colors(str(at), "human", *people), *_colors(str(at), "machine", "white")]
    [sentence] = population_sentences(populations(answers))
    assert "machine was not tested" in sentence
    assert "With these people alone, the interval leaves 0 out in answers alike 0.00, people 0.1" in sentence
    assert sentence.endswith("; a further participant may differ as much from them.")


def test_participants_with_a_single_stimulus_each_have_no_test() -> None:
    """Who answered once has a style and an answer that nobody can tell apart."""
    answers = []
    for at in range(12):
        for place in range(3):
            answers += _colors(str(at), f"human:{at}-{place}", COLORS[place])
        answers += _colors(str(at), "machine", "red")
    assert {row.p for row in populations(answers)} == {None}


def test_participants_who_do_not_vary_give_the_probability_of_a_rank() -> None:
    answers = {f"human:{at}": ["red"] * 6 for at in range(4)}
    rows = populations(_named(answers | {"machine": ["blue"] * 6}))
    row = _row(rows, "answers alike")
    assert row.p == pytest.approx(1 / 5)
    assert math.isnan(row.difference.low)
    assert _row(populations(_named(answers | {"machine": ["red"] * 6})), "answers alike").p == 1


def _found(difference: Estimate, holm: float, measure: str = "answers alike") -> Population:
    none = Estimate(0.5)
    about = ("color_estimation", "x", measure, 8, 40, 40, 5)
    return Population(*about, none, none, Estimate(), difference, "participants and stimuli", holm, holm, 4)


def test_a_sentence_says_no_more_than_its_interval_and_its_p() -> None:
    """The p is of these stimuli; the interval is of others, too, and never narrower."""
    holds_0 = Estimate(0.15, -0.01, 0.32)
    leaves_0_out = Estimate(0.15, 0.0049, 0.3)
    [both] = population_sentences([_found(leaves_0_out, 0.01)])
    assert both == (
        "x does not answer as people like these do: answers alike 0.50, people 0.50, difference 0.150 (0.005 to 0.300)."
    )
    [of_these] = population_sentences([_found(holds_0, 0.01)])
    assert of_these == (
        "On these stimuli x differs from people like these in answers alike 0.50, people 0.50, difference 0.15 "
        "(-0.01 to 0.32); the interval holds 0, so that on other stimuli it may not."
    )
    [unsure] = population_sentences([_found(leaves_0_out, 0.2)])
    assert unsure == (
        "x may differ from people like these in answers alike 0.50, people 0.50, difference 0.150 (0.005 to 0.300); "
        "the interval leaves 0 out, but that is not sure among 4 tests."
    )
    [none] = population_sentences([_found(holds_0, 0.2), _found(Estimate(1.0), 0.2)])
    assert none == "x: no difference from these people was seen, which does not prove that there is none."
    [all_kinds] = population_sentences(
        [_found(leaves_0_out, 0.01, "a"), _found(holds_0, 0.01, "b"), _found(leaves_0_out, 0.2, "c")]
    )
    assert all_kinds.index("x does not answer as people like these do: a ") == 0
    assert all_kinds.index("On these stimuli x also differs from people like these in b ") > 0
    assert all_kinds.index("in b ") < all_kinds.index("in c ")
    [other_side] = population_sentences([_found(Estimate(-0.2, -0.3, -0.001), 0.01)])
    assert other_side.endswith("difference -0.200 (-0.300 to -0.001).")


def test_an_interval_that_leaves_0_out_has_a_p_below_its_level() -> None:
    """In fifty studies of people and agents that are and are not like them: no sentence contradicts its interval."""
    seen = set()
    for seed in range(50):
        chance = np.random.default_rng(seed)
        answers = {f"human:{at}": chance.choice(COLORS[:3], 9, p=(0.5, 0.3, 0.2)).tolist() for at in range(6)}
        shares = chance.dirichlet(np.ones(3) * 0.5)
        answers["machine"] = chance.choice(COLORS[:3], 9, p=shares).tolist()
        rows = populations(_named(answers))
        for row in rows:
            leaves_0_out = row.difference.low > 0 or row.difference.high < 0
            assert row.p is None or row.p < 0.05 or not leaves_0_out
            seen.add((row.p is not None and row.p < 0.05, leaves_0_out))
        for sentence in population_sentences(rows):
            for low, high in re.findall(r"does not answer.*?difference \S+ \((\S+) to (\S+)\)", sentence):
                assert float(low) > 0 or float(high) < 0
    assert seen >= {(False, False), (True, True)}


def test_one_picture_unlike_the_others_makes_no_claim_of_other_pictures() -> None:
    """Of eight pictures an agent's colours are people's on seven, and never on one: these answers surely differ, which
    says nothing of an average picture."""
    answers = {f"human:{at}": ["red"] * 8 for at in range(30)}
    for name in list(answers)[:2]:
        answers[name] = ["pink", *["red"] * 7]
    answers["machine"] = ["red"] * 7 + ["blue"]
    row = _row(populations(_named(answers)), "answers alike")
    assert row.p is not None
    assert row.p < 0.05
    assert row.difference.low < 0 < row.difference.high
    [sentence] = population_sentences([replace(row, holm=row.p)])
    assert "does not answer as people like these do" not in sentence
    assert sentence.startswith("On these stimuli machine differs from people like these in answers alike ")


def test_where_there_is_no_interval_the_sentence_says_why() -> None:
    """Three pictures on which the agent never answers as people do: there is no interval that could hold 0."""
    answers = {f"human:{at}": ["red", "red", "pink" if at < 2 else "red"] for at in range(40)}
    rows = populations(_named(answers | {"machine": ["blue"] * 3}))
    row = _row(rows, "answers alike")
    [sentence] = population_sentences([row])
    assert sentence.startswith("On these stimuli machine differs from people like these in ")
    assert sentence.endswith(
        "; there is no interval of 3 stimuli, as it takes 4, so that nothing is said of other stimuli."
    )
    [of_nine] = population_sentences([replace(row, stimuli=9)])
    assert "; there is no interval, as it takes 4 stimuli, or groups of them, and participants who vary, so" in of_nine
    both = [_found(Estimate(0.15, -0.01, 0.32), 0.01, "a"), _found(Estimate(1.0), 0.01, "b")]
    [of_both] = population_sentences(both)
    assert "in a 0.50, people 0.50, difference 0.15 (-0.01 to 0.32); the interval holds 0" in of_both
    assert "On these stimuli x also differs from people like these in b 0.50" in of_both


def test_stimuli_that_do_not_vary_have_no_interval() -> None:
    answers = []
    for at in range(9):
        answers += [*_colors(str(at), "human", "red", "red"), *_colors(str(at), "machine", "blue", "blue")]
    difference = _row(populations(answers), "total variation").difference
    assert difference.value == 1
    assert math.isnan(difference.low)


def test_few_answers_have_no_measures() -> None:
    answers = [*_colors("one", "human", "red"), *_colors("one", "machine", "red", "blue")]
    assert len(populations(answers)) == 0
    answers += _colors("one", "human", "blue")
    assert {row.measure for row in populations(answers)} == {"total variation", "answers alike", "entropy (bits)"}


def test_a_text_that_is_always_the_same_is_told_over_stimuli() -> None:
    texts = (
        "a man rides a bike",
        "two dogs run past",
        "an old red car",
        "the sea at night",
        "children play with a ball",
    )
    answers = []
    for at in range(20):
        for number, agent in enumerate((*map("human:{}".format, range(6)), "same")):
            text = texts[0] if agent == "same" else texts[(at + 2 * number + at // 5 * number) % 5]
            spoken = [{"speaker": "A", "text": text}, {"speaker": "B", "text": "hello"}]
            answers.append(_answer("image_captioning", str(at), agent, text=text))
            answers.append(_answer("conversation", str(at), agent, speaker="A", messages=spoken))
    rows = populations(answers)
    for task in ("image_captioning", "conversation"):
        by_name = {row.measure: row for row in rows if row.task == task}
        assert list(by_name) == ["energy distance", "energy distance over stimuli", "self-BLEU"]
        assert by_name["energy distance over stimuli"].p < 0.05
        assert by_name["self-BLEU"].beside_people.value == pytest.approx(100)
        assert by_name["self-BLEU"].difference.low > 0


def test_score_has_the_populations_of_run_folders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chance = np.random.default_rng(0)
    words = ["apple", "river", "stone", "cloud", "music"]

    def response(who: str, name: str) -> dict[str, str]:
        word = words[0] if name == "modal" else str(chance.choice(words))
        return {"response": word, "groundtruth": who, f"{who}_groundtruth": name}

    speakers = [*(("human", f"0{at}") for at in range(4)), *[("machine", "modal"), ("machine", "random")] * 2]
    answers = {f"cue{at}": [response(*speaker) for speaker in speakers] for at in range(12)}
    (tmp_path / "word.json").write_text(json.dumps(answers))
    assert main(["import", str(tmp_path / "word.json"), "--out", str(tmp_path / "run")]) == 0
    assert main(["score", str(tmp_path / "run"), "--out", str(tmp_path / "S")]) == 0
    with (tmp_path / "S" / "populations.csv").open(newline="") as file:
        rows = {(row["agent"], row["measure"]): row for row in csv.DictReader(file)}
    assert {agent for agent, _ in rows} == {"published:modal", "published:random"}
    assert float(rows["published:modal", "entropy (bits)"]["beside_people"]) == 0
    assert float(rows["published:modal", "energy distance over stimuli"]["holm"]) < 0.05
    assert float(rows["published:random", "energy distance over stimuli"]["holm"]) > 0.05
    assert rows["published:modal", "energy distance"]["participants"] == "4"
    assert rows["published:modal", "entropy (bits)"]["p"] == ""
    page = (tmp_path / "S" / "index.html").read_text()
    assert "published:modal does not answer as people like these do" in page
    assert page.count('scope="row">published:modal</th>') == 6
    assert "published:modal does not answer as people like these do" in capsys.readouterr().out
    scores = json.loads((tmp_path / "S" / "scores.json").read_bytes())
    assert len(scores["populations"]) == len(rows)
    assert main(["score", str(tmp_path / "run"), "--out", str(tmp_path / "S2"), "--by", "length"]) == 2
    assert "by, key and against are for verdicts" in capsys.readouterr().err


def test_answers_without_people_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    machine = {"response": "apple", "groundtruth": "machine", "machine_groundtruth": "alpha"}
    (tmp_path / "word.json").write_text(json.dumps({"cue": [machine]}))
    assert main(["import", str(tmp_path / "word.json"), "--out", str(tmp_path / "run")]) == 0
    assert main(["score", str(tmp_path / "run"), "--out", str(tmp_path / "S")]) == 2
    assert "no stimulus has answers of an agent and of two people" in capsys.readouterr().err
    assert not (tmp_path / "S").exists()
