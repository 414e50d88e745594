"""Statistics of answers: against SciPy, hand-made answers, and through the command."""

import math
import unicodedata
from typing import Any

import numpy as np
import pytest
from scipy.stats import mannwhitneyu, pearsonr, spearmanr
from statsmodels.stats.inter_rater import aggregate_raters, fleiss_kappa

from agents.answers import COLORS
from judging.statistics.answer_statistics import (
    CaptionMeasures,
    CiderD,
    Statistic,
    answer_statistics,
    bleu,
    caption_measures,
    consistency,
    parts_of_speech,
    plain_words,
)
from judging.statistics.measures import Score
from judging.statistics.tables import Estimate, Table
from serving.runs.answer_numbers import cliffs_delta, cohens_d


def _answer(asked: str, agent: str, stimulus: str = "s", **answer: Any) -> dict[str, Any]:
    truth = "human" if agent.startswith("human") else "machine"
    speaker = answer.pop("speaker", None)
    return {"asked": asked, "agent": agent, "truth": truth, "stimulus": stimulus, "speaker": speaker, "answer": answer}


def _by_name(rows: Table[Statistic]) -> dict[tuple[str, str], Statistic]:
    return {(row.statistic, row.of): row for row in rows}


def test_effects_are_those_of_scipy() -> None:
    chance = np.random.default_rng(0)
    item = chance.integers(0, 9, 30).astype(float)
    other = chance.integers(2, 12, 50).astype(float)
    superior = mannwhitneyu(item, other).statistic / (30 * 50)  # ties count half
    assert cliffs_delta(item, other) == pytest.approx(2 * superior - 1)
    pooled = math.sqrt((29 * item.var(ddof=1) + 49 * other.var(ddof=1)) / 78)
    assert cohens_d(item, other) == pytest.approx((item.mean() - other.mean()) / pooled)
    assert cohens_d(item[:1], other) is None
    assert cohens_d(np.ones(3), np.ones(4)) is None
    assert cliffs_delta(np.ones(3), np.ones(4)) == 0
    assert cohens_d(np.full(3, 0.1), np.full(7, 0.7)) is None  # numpy's deviation of either is 1e-17, not 0
    assert cliffs_delta(np.full(3, 0.1 + 0.2), np.full(4, 0.3)) == 0


def test_captions() -> None:
    people = [_answer("image_captioning", f"human:{at}", text=text) for at, text in enumerate(("A dog.", "Two Cats!"))]
    rows = _by_name(answer_statistics([*people, _answer("image_captioning", "blip", text="a man, a dog")]))
    assert [rows[name, "people"].mean for name in ("words", "letters", "capitals", "punctuation")] == [2, 5.5, 1.5, 1]
    assert rows["letters", "people"].sd == pytest.approx(math.sqrt(4.5))
    words = rows["words", "blip"]
    assert (words.number, words.mean, words.sd) == (1, 4, None)
    assert (words.d, words.delta, words.direction) == (None, 1, "more")
    assert rows["capitals", "blip"].delta == -1
    assert rows["capitals", "blip"].direction == "less"
    assert rows["punctuation", "blip"].direction == "as people"


def test_parts_of_speech_are_counted_in_captions() -> None:
    pytest.importorskip("textblob")
    assert parts_of_speech("A man is riding the brown horse very quickly on a beach. He doesn't stop.") == {
        "determiners": 3,
        "adjectives": 1,
        "nouns": 3,
        "adverbs": 3,
        "verbs": 4,
        "prepositions": 1,
    }
    rows = _by_name(answer_statistics([_answer("image_captioning", "blip", text=text) for text in ("a dog", "dogs")]))
    assert [rows[name, "blip"].mean for name in ("nouns", "determiners", "verbs")] == [1, 0.5, 0]


def test_a_message_of_several_excerpts_counts_once_and_of_the_judged_speaker_alone() -> None:
    spoken = [{"speaker": "AB"[at % 2], "text": "no " * (at + 1)} for at in range(6)]
    excerpts = [_answer("conversation", "curie", speaker="A", messages=spoken[:chosen]) for chosen in (3, 6)]
    other = _answer("conversation", "curie", "s2", speaker="A", messages=spoken[:3])
    rows = _by_name(answer_statistics([*excerpts, other]))
    words = rows["words", "curie"]
    assert (words.number, words.mean) == (5, pytest.approx((1 + 3 + 5 + 1 + 3) / 5))
    assert words.d is words.delta is None  # without people


def test_words_colors_labels() -> None:
    from wordfreq import zipf_frequency

    rows = _by_name(answer_statistics([_answer("word_association", "human:1", word="ice-cream")]))
    assert rows["letters", "people"].mean == 8
    assert rows["frequency", "people"].mean == zipf_frequency("ice-cream", "en")
    colors = [_answer("color_estimation", "human:1", color=word) for word in ("red", "red", "blue", "teal")]
    colors += [_answer("color_estimation", "mmcq", color=word) for word in ("red", "blue")]
    rows = _by_name(answer_statistics(colors))
    shares = {name: rows[f"share of {name}", "people"].mean for name in (*COLORS, "other words")}
    assert {name: share for name, share in shares.items() if share} == {"red": 0.5, "blue": 0.25, "other words": 0.25}
    assert rows["share of blue", "mmcq"].delta == 0.25  # of two values the difference of the shares
    rows = _by_name(answer_statistics([_answer("object_detection", "a", labels=["cat", "dog", "cat", "sofa"])]))
    assert [rows[name, "a"].mean for name in ("labels", "distinct labels", "letters of a label")] == [4, 3, 3.25]


def test_consistency_is_fleiss_kappa_where_stimuli_have_as_many_answers() -> None:
    chance = np.random.default_rng(3)
    usual = chance.integers(0, 4, 30)
    chosen = np.where(chance.random((30, 5)) < 0.7, usual[:, None], chance.integers(0, 4, (30, 5)))
    answers = [
        _answer("color_estimation", f"human:{who}", f"s{at}", color=COLORS[color])
        for at, of_picture in enumerate(chosen)
        for who, color in enumerate(of_picture)
    ]
    machine = [_answer("color_estimation", "mmcq", f"s{at}", color="red") for at in (1, 1, 2, 2, 3)]
    rows = _by_name(answer_statistics([*answers, *machine]))
    row = rows["consistency (Fleiss' kappa)", "people"]
    assert (row.number, row.mean) == (30, pytest.approx(fleiss_kappa(aggregate_raters(chosen)[0])))
    assert ("consistency (Fleiss' kappa)", "mmcq") not in rows  # always red: by chance as often
    assert consistency([["a", "a", "b"], ["b", "b"]]) == pytest.approx((2 / 3 - 13 / 25) / (1 - 13 / 25))
    assert consistency([["a", "b"], ["a", "b"]]) == pytest.approx(-1)


def test_scanpaths() -> None:
    square = [[64, 0], [0, 0], [0, 48], [0, 1], [64, 48]]
    paths = [_answer("attention_prediction", "ivsn", fixations=item, frame=[64, 48]) for item in (square, [[32, 24]])]
    rows = _by_name(answer_statistics(paths))
    assert rows["fixations", "ivsn"].mean == 3
    saccades = np.array([64, 48, 47, math.hypot(64, 47)]) / 64
    assert rows["saccade, widths", "ivsn"].mean == pytest.approx(saccades.mean())
    assert rows["saccade, widths", "ivsn"].number == 1  # one fixation has none
    assert rows["distance to the centre, widths", "ivsn"].mean == pytest.approx(
        np.mean([np.mean([40, 40, 40, math.hypot(32, 23), 40]) / 64, 0])
    )
    assert rows["share of returns", "ivsn"].mean == pytest.approx(1 / 3)  # the fourth, to the second


def _caption(agent: str, stimulus: str, text: str) -> dict[str, Any]:
    return _answer("image_captioning", agent, stimulus, text=text)


PEOPLE = [
    _caption("human:1", "s1", "A dog runs on the grass."),
    _caption("human:2", "s1", "a brown dog runs on grass"),
    _caption("human:3", "s2", "Two men ride a red bus"),
    _caption("human:4", "s2", "men sit in a red bus"),
    _caption("human:5", "s2", "people in a bus"),
]


def _scores(**of: float) -> list[Score]:
    values = {"all": 0.5, **of}.items()
    return [
        Score(task="image_captioning", judge="svm", agent=name, detectability=Estimate(value)) for name, value in values
    ]


def test_of_unequal_numbers_of_answers_chance_is_of_all_answers_together() -> None:
    """irrCAC 0.4.4 has 0.18919 of three answers each, and 0.12207 where some are missing: it takes the mean of each
    stimulus's shares for chance, those of a single answer too."""
    equal = ["aab", "abb", "cca", "bbb", "cac"]
    assert consistency([list(answers) for answers in equal]) == pytest.approx(0.18919, abs=1e-5)
    unequal = ["aab", "ab", "c", "bbb", "cac"]
    shares = [[answers.count(letter) / len(answers) for letter in "abc"] for answers in unequal]
    observed = (1 / 3 + 0 + 1 + 1 / 3) / 4
    chance = np.square(np.mean(shares, axis=0)).sum()
    assert (observed - chance) / (1 - chance) == pytest.approx(0.12207, abs=1e-5)
    pooled = (4**2 + 5**2 + 2**2) / 11**2  # a, b, c of the stimuli with two answers at least
    several = [list(answers) for answers in unequal if len(answers) > 1]
    assert consistency(several) == pytest.approx((observed - pooled) / (1 - pooled))


def test_captions_of_fewer_than_four_words_have_no_bleu() -> None:
    """They hold no 4-gram; equal captions would have 0."""
    answers = [_caption(name, at, "A red bus.") for at in ("s1", "s2") for name in ("human:1", "human:2", "git")]
    people, git = caption_measures(answers, []).agents
    assert people.bleu_one_left_out is git.bleu is git.bleu_one_left_out is None
    assert people.why == git.why == "no BLEU-4: every caption has fewer than 4 words"
    assert git.cider_d is not None
    longer = [*answers, _caption("git", "s1", "a red bus stops")]
    [_, git] = caption_measures(longer, []).agents
    assert git.bleu is not None
    assert git.why is None
    assert "why" in CaptionMeasures("", Table([git]), Table([])).agents.records()[0]


def test_a_letter_and_its_marks_are_compared_as_one() -> None:
    """An accent that stands alone, and vowel signs of Hindi; a caption that is another's in every word has 10."""
    composed = plain_words("Un café très noir")
    decomposed = plain_words(unicodedata.normalize("NFD", "un café très noir"))
    assert composed == decomposed == ["un", "café", "très", "noir"]
    hindi = plain_words("एक आदमी कुत्ते को घुमा रहा है।")
    assert len(hindi) == 7
    cider = CiderD([[hindi], [composed]])
    assert cider.score(hindi, [hindi]) == pytest.approx(10)
    assert cider.score(decomposed, [composed]) == pytest.approx(10)
    numbers = plain_words("3.5 of 1,000 men at 5:30, it’s late")
    assert " ".join(numbers) == "3.5 of 1,000 men at 5:30 it's late"


def test_cider_d_in_closed_form() -> None:
    """Two pictures; every n-gram stands in one of them, so that all weights are log 2, which the cosine cancels."""
    cider = CiderD([[["a", "b", "c", "d"]], [["p", "q"]]])
    assert cider.score(["a", "b", "c", "d"], [["a", "b", "c", "d"]]) == pytest.approx(10)
    assert cider.score(["p", "q"], [["a", "b", "c", "d"]]) == 0
    # "a b x", one word shorter: 2, 1, 0, 0 n-grams in common of lengths sqrt(3) sqrt(4), sqrt(2) sqrt(3); x is unseen
    near = math.exp(-1 / 72)
    assert cider.score(["a", "b", "x"], [["a", "b", "c", "d"]]) == pytest.approx(
        10 / 4 * near * (2 / math.sqrt(12) + 1 / math.sqrt(6))
    )
    # "a a a a" is clipped: min(4, 1) 1 / (4 . 2)
    assert cider.score(["a"] * 4, [["a", "b", "c", "d"]]) == pytest.approx(10 / 4 / 8)
    # an n-gram of every picture weighs nothing
    assert CiderD([[["a"]], [["a"]]]).score(["a"], [["a"]]) == 0


def test_pictures_may_have_unequal_numbers_of_references() -> None:
    """Every n-gram of both captions stands in a reference, and each is as long as its closest reference."""
    pairs = [
        (["a", "b", "c", "d", "e"], [["a", "b", "c", "d", "x"], ["b", "c", "d", "e"], ["a", "b", "c", "d", "e"]]),
        (["p", "q", "r", "s"], [["p", "q", "r", "s"]]),
    ]
    assert bleu(pairs) == pytest.approx(100)


def test_people_are_measured_beside_the_others_and_agents_both_ways() -> None:
    output = caption_measures([*PEOPLE, _caption("git", "s1", "A dog runs on grass"), _caption("git", "s9", "a")], [])
    people, git = output.agents
    assert (people.captions, people.bleu, git.captions) == (5, None, 1)  # of s9 no person wrote
    words = {item["agent"]: plain_words(item["answer"]["text"]) for item in PEOPLE}
    first = words["human:1"]
    second = words["human:2"]
    cider = CiderD([[first, second], [words[f"human:{at}"] for at in (3, 4, 5)]])
    own = plain_words("a dog runs on grass")
    assert git.cider_d == pytest.approx(cider.score(own, [first, second]))
    assert git.cider_d_one_left_out == pytest.approx((cider.score(own, [first]) + cider.score(own, [second])) / 2)
    assert git.bleu == pytest.approx(bleu([(own, [first, second])]))
    assert git.bleu_one_left_out == pytest.approx(bleu([(own, [first]), (own, [second])]))
    third, fourth, fifth = (words[f"human:{at}"] for at in (3, 4, 5))
    pairs = [
        (first, [second]),
        (second, [first]),
        (third, [fourth, fifth]),
        (fourth, [third, fifth]),
        (fifth, [third, fourth]),
    ]
    assert people.bleu_one_left_out == pytest.approx(bleu(pairs))
    assert people.cider_d_one_left_out == pytest.approx(sum(cider.score(*pair) for pair in pairs) / 5)
    assert "5 captions by people of 2 pictures, 2 to 3 of each." in output.note


def test_correlations_are_scipys_over_three_agents_at_least() -> None:
    texts = {"a": "a dog runs on the grass", "b": "a dog on the street", "c": "a cat", "d": "men in a red bus"}
    answers = [*PEOPLE, *(_caption(name, stimulus, text) for name, text in texts.items() for stimulus in ("s1", "s2"))]
    of = {"a": 0.6, "b": 0.55, "c": 0.9, "d": 0.5}
    output = caption_measures(answers, _scores(**of))
    values = {row.of: row.cider_d for row in output.agents.data[1:]}
    row = next(item for item in output.correlations if item.measure == "cider_d")
    assert row.agents == 4
    assert row.pearson == pytest.approx(pearsonr(list(values.values()), [of[item] for item in values]).statistic)
    assert row.spearman_p == pytest.approx(spearmanr(list(values.values()), [of[item] for item in values]).pvalue)
    few = caption_measures(answers, _scores(a=0.6, b=0.55))
    assert [(item.agents, item.pearson) for item in few.correlations] == [(2, None), (2, None)]
    assert few.correlations.data[0].why == "no test: it needs 3 agents"
    alike = caption_measures(answers, _scores(a=0.1 + 0.2, b=0.3, c=0.3, d=0.3)).correlations
    assert {(item.spearman, item.why) for item in alike} == {(None, "no test: all agents have the same value")}
    line = {name: 0.5 + 0.05 * at for at, name in enumerate(sorted(values, key=lambda item: float(values[item] or 0)))}
    row = next(item for item in caption_measures(answers, _scores(**line)).correlations if item.measure == "cider_d")
    assert row.spearman == pytest.approx(1)
    assert row.spearman_p is None  # which is no 0
    assert row.pearson_p == pytest.approx(pearsonr([values[item] for item in line], list(line.values())).pvalue)
    assert "one line" in row.why
