"""Populations of answers: measures against SciPy, sacrebleu and cases by hand; the test and its intervals against
enumeration; the command."""

import csv
import json
import math
from dataclasses import replace
from itertools import permutations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sacrebleu import sentence_bleu
from scipy.spatial.distance import jensenshannon
from scipy.stats import energy_distance as energy_of_numbers
from scipy.stats import entropy as nats
from scipy.stats import ttest_1samp

from judging.statistics import population_measures as measures
from judging.statistics.jackknife import Floats
from judging.statistics.populations import Population, population_sentences, populations
from judging.statistics.tables import Estimate, Table
from serving.cli import main

COLORS = ("red", "blue", "green", "white", "black", "gray")


def _answer(task: str, stimulus: str, agent: str, **answer: Any) -> dict[str, Any]:
    truth = "human" if agent == "human" else "machine"
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


@pytest.mark.parametrize("stimuli", [2, 3, 4])
def test_the_probability_is_that_of_all_permutations(stimuli: int) -> None:
    """Of two people and an agent each may be the agent, and of two and two each pair: of either 1 in 3 is as far."""
    named = {"human": ["red", "red"], "single": ["blue"], "several": ["blue", "blue"]}
    answers = []
    for at, (agent, colors) in product(range(stimuli), named.items()):
        answers += _colors(str(at), agent, *colors)
    rows = populations(answers)
    single = _row(rows, "answers alike", "single")
    several = _row(rows, "total variation", "several")
    assert (single.people.value, single.beside_people.value, single.difference.value) == (1, 0, -1)
    assert math.isnan(single.itself.value)
    assert (several.people.value, several.beside_people.value, several.itself.value) == (0, 1, 0)
    assert math.isnan(several.difference.low)  # too few stimuli, and four that do not vary
    [sentence] = population_sentences([replace(several, holm=0.01)])
    assert sentence.startswith(
        "On these stimuli several differs from these people in total variation 1.00, people 0.00"
    )
    error = 3.0**-stimuli / 2  # of the permutations that are drawn
    assert single.p == pytest.approx(2 * 3.0**-stimuli, abs=2 * error)  # to either side
    assert several.p == pytest.approx(3.0**-stimuli, abs=error)


def test_intervals_are_those_of_t_over_stimuli() -> None:
    answers = []
    for at, (*people, machine) in enumerate([("red", "red", "blue")] * 4 + [("red", "blue", "green")] * 3):
        answers += [*_colors(str(at), "human", *people), *_colors(str(at), "machine", machine)]
    difference = _row(populations(answers), "answers alike").difference
    interval = ttest_1samp([-1] * 4 + [0] * 3, 0).confidence_interval()
    assert interval.low < -1  # no difference of probabilities
    assert (difference.low, difference.high) == pytest.approx((-1, interval.high))


def test_the_commonest_answer_is_told_from_people_and_people_are_not() -> None:
    chance = np.random.default_rng(1)
    answers = []
    for at in map(str, range(25)):
        shares = np.sort(chance.dirichlet(np.full(len(COLORS), 0.8)))[::-1]
        for agent, number, of_agent in (("human", 6, shares), ("alike", 4, shares), ("modal", 4, np.eye(6)[0])):
            answers += _colors(at, agent, *chance.choice(COLORS, number, p=of_agent))
    rows = populations(answers)
    assert [row for row in rows if row.agent == "alike" and row.holm is not None and row.holm < 0.05] == []
    modal = {row.measure: row for row in rows if row.agent == "modal"}
    assert modal["answers alike"].difference.low > 0
    assert modal["entropy (bits)"].beside_people.value == 0
    assert modal["total variation"].p < 0.01
    assert modal["total variation"].itself.value == 0
    alike, common = population_sentences(rows)
    assert alike == "alike: no difference from these people was seen, which does not prove that there is none."
    assert common.startswith("modal does not answer as these people do: total variation ")
    assert populations(answers).records() == rows.records()


def _found(difference: Estimate, holm: float, measure: str = "total variation") -> Population:
    none = Estimate(0.5)
    return Population("color_estimation", "x", measure, 8, 40, 40, none, none, none, difference, holm, holm, 4)


def test_a_sentence_says_no_more_than_its_interval_and_its_p() -> None:
    """The p is of these stimuli, and of a distance one-sided; the interval is of others, and to both sides."""
    holds_0 = Estimate(0.15, -0.01, 0.32)
    leaves_0_out = Estimate(0.15, 0.0049, 0.3)
    [both] = population_sentences([_found(leaves_0_out, 0.01)])
    assert both == (
        "x does not answer as these people do: total variation 0.50, people 0.50, difference 0.150 (0.005 to 0.300)."
    )
    [of_these] = population_sentences([_found(holds_0, 0.01)])
    assert of_these == (
        "On these stimuli x differs from these people in total variation 0.50, people 0.50, difference 0.15 "
        "(-0.01 to 0.32); no interval leaves 0 out, so that on other stimuli it may not."
    )
    [unsure] = population_sentences([_found(leaves_0_out, 0.2)])
    assert unsure == (
        "x may differ from these people in total variation 0.50, people 0.50, difference 0.150 (0.005 to 0.300); "
        "the interval leaves 0 out, but that is not sure among 4 tests."
    )
    [none] = population_sentences([_found(holds_0, 0.2), _found(Estimate(1.0), 0.2)])
    assert none == "x: no difference from these people was seen, which does not prove that there is none."
    [all_kinds] = population_sentences(
        [_found(leaves_0_out, 0.01, "a"), _found(holds_0, 0.01, "b"), _found(leaves_0_out, 0.2, "c")]
    )
    assert all_kinds.index("x does not answer as these people do: a ") == 0
    assert 0 < all_kinds.index("On these stimuli x also differs from these people in b ") < all_kinds.index("in c ")
    [other_side] = population_sentences([_found(Estimate(-0.2, -0.3, -0.001), 0.01)])
    assert other_side.endswith("difference -0.200 (-0.300 to -0.001).")


def test_one_picture_unlike_the_others_makes_no_claim_of_other_pictures() -> None:
    """Of eight pictures an agent's colours are people's on seven, and never on one: these answers surely differ, which
    says nothing of an average picture."""
    answers = []
    for at in range(8):
        of_agent = "blue" if at == 0 else "red"
        answers += [*_colors(str(at), "human", *["red"] * 40), *_colors(str(at), "machine", *[of_agent] * 40)]
    rows = populations(answers)
    row = _row(rows, "total variation")
    assert row.holm is not None
    assert row.holm < 0.05
    assert row.difference.low < 0 < row.difference.high
    [sentence] = population_sentences(rows)
    assert "does not answer as these people do" not in sentence
    assert sentence.startswith("On these stimuli machine differs from these people in total variation ")


def test_where_there_is_no_interval_the_sentence_says_why() -> None:
    """Three pictures on which the agent never answers as people do: there is no interval that could hold 0."""
    answers = []
    for at in range(3):
        people = ["red"] * (40 - at) + ["pink"] * at
        answers += [*_colors(str(at), "human", *people), *_colors(str(at), "machine", *["blue"] * 40)]
    [sentence] = population_sentences(populations(answers))
    assert sentence.startswith("On these stimuli machine differs from these people in ")
    assert sentence.endswith(
        "; there is no interval of 3 stimuli, as it takes 4, so that nothing is said of other stimuli."
    )
    assert "leaves 0 out" not in sentence
    alike = [replace(row, stimuli=9) for row in populations(answers)]
    [of_nine] = population_sentences(alike)
    assert "; there is no interval, as it takes 4 stimuli, or groups of them, that vary, so that nothing" in of_nine
    both = [_found(Estimate(0.15, -0.01, 0.32), 0.01, "a"), _found(Estimate(1.0), 0.01, "b")]
    [of_both] = population_sentences(both)
    assert "in a 0.50, people 0.50, difference 0.15 (-0.01 to 0.32); no interval leaves 0 out" in of_both
    assert "On these stimuli x also differs from these people in b 0.50" in of_both


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
        for number, agent in enumerate(("human", "human", "same")):
            text = texts[0] if agent == "same" else texts[(at + 2 * number) % 5]
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
    assert float(rows["published:modal", "energy distance"]["holm"]) < 0.05
    assert float(rows["published:random", "energy distance"]["p"]) > 0.05
    page = (tmp_path / "S" / "index.html").read_text()
    assert "published:modal does not answer as these people do" in page
    assert page.count('scope="row">published:modal</th>') == 5
    assert "published:modal does not answer as these people do" in capsys.readouterr().out
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
