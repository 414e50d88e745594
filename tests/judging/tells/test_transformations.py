"""Each transformation alone: what it takes away, what stays, and that its check sees what may not change."""

import itertools
import random
import string
import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.language.words.vocabulary import lemma
from agents.stimuli import SHOWN, Asked, ShownAnswer
from agents.word_boundaries import count_words, counted_words
from judging.tells.hedges import hedges, without_hedges
from judging.tells.matching import matched, matched_to
from judging.tells.registry import TRANSFORMATIONS
from judging.tells.seen import SeenAnswer
from judging.tells.transformation import PARTICIPANTS, AlteredError, Owner, Transformation

CHANCE = random.Random(0)
PIECES = (
    "I think",
    "maybe",
    "It's",
    "a kind of",
    "is kind of",
    "dogs",
    "Running,",
    "the U.S.",
    "men's",
    "e.g.",
    "well-known",
    "Ärger!",
    "it seems that",
    "there",
    "“quoted”",
    "3.5",
    "3,",
    "—",
    "🙂",
    "don’t",
    "I guessed",
    "kinds of",
    "DOGS",
    "boxes.",
    "犬が走る。",
    "I, maybe,",
    "so",
    "that",
)
phrases = st.lists(st.sampled_from(PIECES), min_size=1, max_size=12).map(" ".join)
printable = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=40)
texts = st.one_of(phrases, printable).map(lambda text: " ".join(text.split())).filter(bool)


def caption(text: str) -> SeenAnswer:
    return SeenAnswer("image_captioning", ShownAnswer(text=text))


def owned(groups: Sequence[str], blocks: Sequence[int] | None = None) -> list[Owner]:
    """Whose answers are, in one block where there are no ``blocks``."""
    return [Owner(group, block) for group, block in zip(groups, blocks or [1] * len(groups), strict=True)]


def word(text: str) -> SeenAnswer:
    return SeenAnswer("word_association", ShownAnswer(word=text))


def labels(*names: str) -> SeenAnswer:
    return SeenAnswer("object_detection", ShownAnswer(labels=list(names)))


def talk(*said: str, speaker: str = "A") -> SeenAnswer:
    messages = [{"speaker": "AB"[turn % 2], "text": text} for turn, text in enumerate(said)]
    return SeenAnswer("conversation", ShownAnswer.model_validate({"messages": messages}), speaker)


def timed(*said: tuple[str, float | None], speaker: str = "A") -> SeenAnswer:
    """A conversation by turns whose messages show these delays, in seconds."""
    messages = [{"speaker": "AB"[turn % 2], "text": text, "delay_s": delay} for turn, (text, delay) in enumerate(said)]
    return SeenAnswer("conversation", ShownAnswer.model_validate({"messages": messages}), speaker)


def path(*points: tuple[float, float], frame: tuple[int, int] = (320, 240)) -> SeenAnswer:
    return SeenAnswer("attention_prediction", ShownAnswer(fixations=list(points), frame=frame))


def drawn_path(chance: random.Random) -> SeenAnswer:
    frame = chance.choice([(320, 240), (640, 480), (1280, 800)])
    number = chance.randint(1, 15)
    points = [(float(chance.randrange(frame[0])), float(chance.randrange(frame[1]))) for _ in range(number)]
    return path(*points, frame=frame)


def of(name: str) -> Transformation:
    return TRANSFORMATIONS[name]


def taken(name: str, seen: SeenAnswer) -> SeenAnswer:
    after = of(name).take_away(seen, ())
    of(name).check(seen, after)
    return after


@settings(deadline=None)
@given(texts)
def test_small_letters_are_the_only_change_of_case(text: str) -> None:
    [after] = taken("case", caption(text)).texts()
    assert after.casefold() == text.casefold()
    assert not any(letter != letter.lower() for letter in after)
    assert taken("case", caption(after)).texts() == [after]


@settings(deadline=None)
@given(texts)
def test_only_marks_and_blanks_go_with_punctuation(text: str) -> None:
    [after] = taken("punctuation", caption(text)).texts()

    def is_mark(letter: str) -> bool:
        return letter in string.punctuation or unicodedata.category(letter)[0] == "P"

    assert not any(map(is_mark, after))
    assert after == " ".join(after.split())
    assert "".join(after.split()) == "".join(letter for letter in text if not is_mark(letter) and not letter.isspace())
    assert taken("punctuation", caption(after)).texts() == [after]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Don't stop, it’s a well-known dog...", "Dont stop its a well known dog"),
        ("The U.S. has 1,000 dogs; e.g. Rex", "The US has 1 000 dogs eg Rex"),
        ('(and/or) -- "so"', "and or so"),
        ("end.Start", "end Start"),
    ],
)
def test_marks_between_words_become_a_blank(before: str, after: str) -> None:
    assert taken("punctuation", caption(before)).texts() == [after]


@settings(deadline=None)
@given(texts)
def test_inflection_goes_once_and_for_all(text: str) -> None:
    once = taken("inflection", caption(text))
    assert taken("inflection", once) == once
    assert of("inflection").measure(once) == 0


def test_words_become_lemmas_in_their_case_and_stop_words_stay() -> None:
    before = "Two DOGS were chased by dog's cats; she's got boxes of Études."
    [after] = taken("inflection", caption(before)).texts()
    assert after == "Two DOG were chase by dog cat; she's get box of Études."
    assert [lemma(one) for one in ("dogs", "chased", "cats", "boxes")] == ["dog", "chase", "cat", "box"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("I think it's a dog.", "It's a dog."),
        ("i think it's a dog", "it's a dog"),
        ("I think that it is a dog, maybe.", "It is a dog."),
        ("It is, I think, a dog.", "It is a dog."),
        ("Well, perhaps, we could go.", "Well we could go."),
        ("It's a dog, I guess.", "It's a dog."),
        ("It is kind of blue.", "It is blue."),
        ("A kind of dog. What kind of dog?", "A kind of dog. What kind of dog?"),
        ("I think so. I think of dogs. What I think is this.", "I think so. I think of dogs. What I think is this."),
        ("Do I think it is? As far as I know, yes!", "Do I think it is? Yes!"),
        ("It seems that they left. It seems nice.", "They left. It seems nice."),
        ("It may be a dog.", "It may be a dog."),
        ("Maybe", ""),
    ],
)
def test_hedges_go_where_a_sentence_is_left(before: str, after: str) -> None:
    assert taken("hedging", caption(before)).texts() == [after]


@settings(deadline=None)
@given(texts)
def test_without_hedges_there_are_none(text: str) -> None:
    after = taken("hedging", caption(text))
    assert of("hedging").measure(after) == 0
    assert taken("hedging", after) == after


def test_only_the_judged_speakers_messages_change() -> None:
    before = talk("Hi THERE!", "YES, maybe.", "I think it's Dogs.", speaker="A")
    for name, after in {
        "case": ["hi there!", "YES, maybe.", "i think it's dogs."],
        "punctuation": ["Hi THERE", "YES, maybe.", "I think its Dogs"],
        "hedging": ["Hi THERE!", "YES, maybe.", "It's Dogs."],
        "inflection": ["Hi THERE!", "YES, maybe.", "I think it's Dog."],
    }.items():
        assert [message.text for message in taken(name, before).answer.messages or ()] == after
    cut = of("length").take_away(before, (1, 2))
    assert [message.text for message in cut.answer.messages or ()] == ["Hi!", "YES, maybe.", "I think."]


def test_labels_stand_in_the_order_of_the_alphabet() -> None:
    after = taken("label_order", labels("dog", "Cat", "ant", "Cat"))
    assert after.labels() == ["ant", "Cat", "Cat", "dog"]
    assert of("label_order").measure(after) == 0
    assert of("label_order").measure(labels("c", "b", "a")) == 1


def test_paths_begin_at_the_pixel_of_the_centre() -> None:
    after = taken("first_fixation", path((3, 4), (10, 20), frame=(321, 240)))
    assert after.fixations() == [(160, 120), (10, 20)]
    assert of("first_fixation").measure(path((0, 120), (5, 5))) == pytest.approx(0.5)


@settings(deadline=None)
@given(texts, st.integers(1, 15))
def test_a_cut_text_has_its_first_words_and_its_end_mark(text: str, number: int) -> None:
    before = caption(text)
    after = of("length").take_away(before, (number,))
    of("length").check(before, after)
    [cut] = after.texts()
    if text.isascii():  # where a digit joins no Chinese
        assert len(counted_words(cut)) == min(number, len(counted_words(text)))
    assert of("length").take_away(after, (number,)) == after
    first = text[: counted_words(text)[:number][-1][1]]
    assert [letter for letter in cut if letter.isalnum()] == [letter for letter in first if letter.isalnum()]


@settings(deadline=None)
@given(texts)
def test_words_are_those_that_are_counted(text: str) -> None:
    spans = counted_words(text)
    assert "".join(text[start:end] for start, end in spans) == "".join(text.split())
    if unicodedata.is_normalized("NFKC", text):
        assert len(spans) == count_words(text)


def test_end_marks_stay_at_the_end() -> None:
    [after] = of("length").take_away(caption("A dog runs, and jumps!?"), (3,)).texts()
    assert after == "A dog runs!?"
    assert of("length").take_away(caption("A dog — and"), (3,)).texts() == ["A dog —"]
    assert of("length").take_away(caption("A dog runs"), (2,)).texts() == ["A dog"]


def test_groups_are_samples_of_one_distribution_afterwards() -> None:
    """By the test of Kolmogorov and Smirnov, which finds the difference before."""
    chance = random.Random(3)
    sizes = {PARTICIPANTS: (1, 9), "a": (4, 12), "b": (2, 30)}
    answers = []
    groups = []
    for group, (least, most) in sizes.items():
        for _ in range(300):
            answers.append(caption(" ".join(["word"] * chance.randint(least, most))))
            groups.append(group)
    after, targets = of("length").take_away_all(answers, owned(groups), random.Random(0))
    before = lengths_of("length", answers, groups)
    lengths = lengths_of("length", after, groups)
    for first, second in itertools.combinations(sizes, 2):
        assert scipy.stats.ks_2samp(before[first], before[second]).pvalue < 1e-6
        assert scipy.stats.ks_2samp(lengths[first], lengths[second]).pvalue > 0.05
    assert len(set(lengths["a"])) > 3  # and not all of one length
    assert np.mean(lengths[PARTICIPANTS]) > np.mean(before[PARTICIPANTS]) - 0.5  # the shortest lose little
    for uncut, changed, target in zip(answers, after, targets, strict=True):
        assert of("length").measure(changed) == min(of("length").measure(uncut), target[0])


def test_what_training_answers_have_too_much_of_the_others_do_not_lack() -> None:
    """Were all answers matched at once, the difference of means in one half of the answers would be that of the other
    half with the other sign: their correlation would be -1, and a classifier that learns it is wrong elsewhere."""
    halves = []
    for seed in range(300):
        chance = random.Random(seed)
        values = [chance.gauss(10, 3) + (place >= 80) for place in range(160)]
        blocks = [place % 20 for place in range(160)]
        lengths = matched(values, [PARTICIPANTS] * 80 + ["a"] * 80, blocks, chance)
        means = []
        for is_first in (True, False):
            in_half = [(block < 10) is is_first for block in blocks]
            sides = [np.mean([lengths[place] for place in range(at, at + 80) if in_half[place]]) for at in (0, 80)]
            means.append(sides[0] - sides[1])
        halves.append(means)
    correlation = np.corrcoef(np.array(halves).T)[0, 1]
    assert abs(correlation) < 0.15  # 2.6 standard errors
    assert abs(np.mean(halves)) < 0.02  # and neither group stays longer


def test_answers_of_another_block_change_nothing() -> None:
    groups = [PARTICIPANTS, "a", "a"] * 8
    blocks = [place // 12 for place in range(24)]
    chance = random.Random(7)
    values = [chance.gauss(10, 3) for _ in groups]
    others = values[:12] + [value + 100 for value in values[12:]]
    first = matched(values, groups, blocks, random.Random(1))
    assert matched(others, groups, blocks, random.Random(1))[:12] == first[:12] != values[:12]
    planted = matched_to(values, groups, blocks, PARTICIPANTS, random.Random(1))
    assert matched_to(others, groups, blocks, PARTICIPANTS, random.Random(1))[:12] == planted[:12] != values[:12]


@given(
    st.lists(st.tuples(st.integers(0, 5), st.sampled_from("abc"), st.integers(0, 3)), min_size=1, max_size=60),
    st.integers(0, 9),
)
def test_a_matched_value_is_of_its_block_and_no_larger(answers: list[tuple[int, str, int]], seed: int) -> None:
    values = [float(value) for value, _, _ in answers]
    groups = [group for _, group, _ in answers]
    blocks = [block for _, _, block in answers]
    for (value, _, block), target in zip(answers, matched(values, groups, blocks, random.Random(seed)), strict=True):
        assert target <= value
        assert target in [other for other, _, its_block in answers if its_block == block]


def test_groups_of_other_sizes_have_the_same_moments() -> None:
    """Three answers of a participant to a stimulus beside one of an agent: in the long run both are as long."""
    chance = random.Random(11)
    groups = [PARTICIPANTS, PARTICIPANTS, PARTICIPANTS, "a"] * 4000
    blocks = [place // 16 for place in range(len(groups))]
    values = [chance.gauss(10, 3) for _ in groups]
    found: dict[str, list[float]] = {}
    for group, target in zip(groups, matched(values, groups, blocks, chance), strict=True):
        found.setdefault(group, []).append(target)
    for power in (1, 2):
        both = [np.array(of_group) ** power for of_group in found.values()]
        error = np.sqrt(sum(of_group.var() / len(of_group) for of_group in both))
        assert abs(both[0].mean() - both[1].mean()) < 4 * error


def test_groups_of_other_sizes_are_samples_of_one_distribution() -> None:
    chance = random.Random(4)
    sizes = {PARTICIPANTS: 90, "a": 40, "b": 25}
    groups = [group for group, number in sizes.items() for _ in range(number)]
    answers = [drawn_path(chance) for _ in groups]
    for name in ("length", "path_length"):
        after, _ = of(name).take_away_all(answers, owned(groups), random.Random(0))
        values = lengths_of(name, after, groups)
        for first, second in itertools.combinations(sizes, 2):
            assert scipy.stats.ks_2samp(values[first], values[second]).pvalue > 0.05


def lengths_of(name: str, answers: Sequence[SeenAnswer], groups: Sequence[str]) -> dict[str, list[float]]:
    values: dict[str, list[float]] = {}
    for seen, group in zip(answers, groups, strict=True):
        values.setdefault(group, []).append(of(name).measure(seen))
    return values


def test_each_message_of_a_conversation_is_matched_by_itself() -> None:
    people = [talk("one two three", "x", "one two"), talk("one", "x")]
    machines = [talk("a b c d e", "x", "a b c d"), talk("a b c d e f", "x")]
    owners = owned([PARTICIPANTS] * 2 + ["m"] * 2)
    after, targets = of("length").take_away_all([*people, *machines], owners, random.Random(0))
    assert [len(target) for target in targets] == [2, 1, 2, 1]
    assert [seen.texts() for seen in after[:2]] == [["one two three", "one two"], ["one"]]
    assert [seen.texts() for seen in after[2:]] == [["a b", "a"], ["a b c"]]  # in the order of their lengths


@pytest.mark.parametrize("seed", range(30))
def test_a_shortened_path_keeps_its_beginning_and_its_directions(seed: int) -> None:
    before = drawn_path(random.Random(seed))
    own = of("path_length").measure(before)
    after = of("path_length").take_away(before, (own * 0.6,))
    of("path_length").check(before, after)
    assert after.fixations()[0] == before.fixations()[0]
    scaled = np.array(before.fixations()[0]) + 0.6 * (np.array(before.fixations()) - before.fixations()[0])
    assert np.abs(np.array(after.fixations()) - scaled).max() <= 0.5
    width, height = before.frame()
    assert all(0 <= x < width and 0 <= y < height and x == int(x) and y == int(y) for x, y in after.fixations())
    assert of("path_length").take_away(after, (own * 0.6,)) == after
    assert of("path_length").take_away(before, (own * 2,)) == before


WRONG: list[tuple[str, SeenAnswer, SeenAnswer]] = [
    ("case", caption("A dog"), caption("a dot")),
    ("case", caption("A dog"), caption("a  dog")),
    ("punctuation", caption("a dog."), caption("dog a")),
    ("punctuation", caption("a dog."), caption("a do")),
    ("punctuation", caption("A dog."), caption("a dog")),
    ("inflection", caption("two dogs"), caption("two cat")),
    ("inflection", caption("two dogs"), caption("dog two")),
    ("inflection", caption("two dogs"), caption("two, dog")),
    ("hedging", caption("maybe a dog"), caption("dog a")),
    ("hedging", caption("maybe a dog"), caption("maybe a")),
    ("hedging", caption("maybe a dog"), caption("a the dog")),
    ("label_order", labels("b", "a"), labels("a")),
    ("label_order", labels("b", "a"), labels("a", "a")),
    ("delay", timed(("a", 1.0), ("b", 2.0)), timed(("a", None), ("c", 2.0))),
    ("delay", timed(("a", 1.0), ("b", 2.0)), timed(("a", None), ("b", None))),
    ("delay", timed(("a", 1.0), ("b", 2.0)), timed(("a", None), ("b", 3.0))),
    ("delay", timed(("a", 1.0), ("b", 2.0), ("c", 3.0)), timed(("a", None), ("b", 2.0), ("c", 3.0))),
    ("delay", timed(("a", None), ("b", 2.0), ("c", 3.0)), timed(("a", 3.0), ("b", 2.0), ("c", 3.0))),
    ("first_fixation", path((1, 1), (2, 2)), path((1, 1), (3, 3))),
    ("first_fixation", path((1, 1), (2, 2)), path((1, 1))),
    ("length", caption("a big dog."), caption("big dog.")),
    ("length", caption("a big dog."), caption("a dog.")),
    ("length", labels("a", "b"), labels("b")),
    ("length", path((1, 1), (2, 2)), path((2, 2))),
    ("path_length", path((0, 0), (100, 0), (100, 100)), path((0, 0), (50, 0), (50, 60))),
    ("path_length", path((0, 0), (100, 0)), path((1, 0), (50, 0))),
    ("path_length", path((0, 0), (100, 0)), path((0, 0), (120, 0))),
    ("path_length", path((50, 50), (100, 50)), path((50, 50), (30, 50))),
]


@pytest.mark.parametrize(("name", "before", "after"), WRONG)
def test_the_check_sees_what_may_not_change(name: str, before: SeenAnswer, after: SeenAnswer) -> None:
    with pytest.raises(AlteredError, match=f"^{name} changed what it may not change"):
        of(name).check(before, after)


def test_every_transformation_has_a_wrong_example() -> None:
    assert {name for name, _, _ in WRONG} == set(TRANSFORMATIONS)


def answer_of(task: Asked, chance: random.Random) -> SeenAnswer:
    text = " ".join(chance.choices(PIECES, k=chance.randint(1, 8)))
    if task == "attention_prediction":
        return drawn_path(chance)
    if task == "conversation":
        said = [" ".join(chance.choices(PIECES, k=4)) for _ in range(3)]
        delays = [None, *(float(len(text)) for text in said[1:])]
        return timed(*zip(said, delays, strict=True), speaker=chance.choice("AB"))
    fields: dict[str, Any] = {"labels": text.split()[:3]} if task == "object_detection" else {SHOWN[task][0]: text}
    return SeenAnswer(task, ShownAnswer(**fields))


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_planting_changes_machines_alone_and_passes_the_check(name: str) -> None:
    chance = random.Random(5)
    for task in of(name).plant_tasks:
        answers = [answer_of(task, chance) for _ in range(300)]
        groups = [chance.choice([PARTICIPANTS, "a", "b"]) for _ in answers]
        planted, _ = of(name).plant_all(answers, owned(groups), random.Random(0))
        again, _ = of(name).plant_all(answers, owned(groups), random.Random(0))
        assert again == planted
        for before, group, after in zip(answers, groups, planted, strict=True):
            of(name).check(before, after.seen)
            if group == PARTICIPANTS:
                assert after.seen == before
        assert any(before != after.seen for before, after in zip(answers, planted, strict=True))


def test_planted_case_end_marks_and_hedges_are_distributed_as_participants() -> None:
    people = [caption(text) for text in ("a dog.", "A dog", "A DOG!", "maybe a dog")] * 5
    machines = [caption(f"The cat sits {number}, here;") for number in range(1000)]
    groups = [PARTICIPANTS] * 20 + ["m"] * 1000
    for name, form in {
        "case": lambda text: (text[0].isupper(), text.isupper()),
        "punctuation": lambda text: text.rstrip(string.punctuation) != text and text[-1],
        "hedging": lambda text: hedges(text),
    }.items():
        planted, _ = of(name).plant_all([*people, *machines], owned(groups), random.Random(1))
        texts = [one.seen.texts()[0] for one in planted]
        of_machines = Counter(map(str, map(form, texts[20:])))
        of_people = Counter(map(str, map(form, texts[:20])))
        assert of_machines.keys() == of_people.keys()
        for found, number in of_people.items():
            assert of_machines[found] / 1000 == pytest.approx(number / 20, abs=0.05)  # 3 standard errors
        assert all(one.is_reached for one in planted)
    assert without_hedges(texts[-1]).casefold() == machines[-1].texts()[0].casefold()


def test_planted_plurals_are_plurals() -> None:
    people = [word("dogs"), word("cat")] * 10
    machines = [
        word(one) for one in ("box", "city", "mouse", "dog", "child", "man", "happiness", "tables", "xqzt", "leaf")
    ]
    owners = owned([PARTICIPANTS] * 20 + ["m"] * 10)
    planted, _ = of("inflection").plant_all([*people, *machines], owners, random.Random(0))
    for before, after in zip(machines, planted[20:], strict=True):
        assert lemma(after.seen.texts()[0]) == lemma(before.texts()[0])
    both = {
        lemma(one.seen.texts()[0]): of("inflection").plant(one.seen, word("dogs")).seen.texts() for one in planted[20:]
    }
    assert both["box"] == ["boxes"]
    assert both["city"] == ["cities"]
    assert both["mouse"] == ["mice"]
    assert both["child"] == ["children"]
    assert both["xqzt"] == ["xqzt"]
    assert not of("inflection").plant(word("xqzt"), word("dogs")).is_reached
    assert of("inflection").plant(word("tables"), word("cat")).seen == word("table")


def test_planted_lengths_are_participants_where_they_can_be() -> None:
    people = [caption(" ".join("x" * number)) for number in (2, 4, 6)]
    machines = [caption(" ".join("y" * number)) for number in (1, 9, 9)]
    owners = owned([PARTICIPANTS] * 3 + ["m"] * 3)
    planted, targets = of("length").plant_all([*people, *machines], owners, random.Random(0))
    assert {target[0] for target in targets[3:]} <= {2, 4, 6}
    for one, before, target in zip(planted[3:], machines, targets[3:], strict=True):
        assert of("length").measure(one.seen) == min(of("length").measure(before), target[0])
        assert one.is_reached == (of("length").measure(before) >= target[0])
    assert not planted[3].is_reached


def test_a_planted_first_fixation_is_at_the_donors_place() -> None:
    donor = path((319, 0), frame=(320, 240))
    after = of("first_fixation").plant(path((1, 1), (2, 2), frame=(640, 480)), donor).seen
    assert after.fixations() == [(639, 1), (2, 2)]
    assert of("first_fixation").plant(path((1, 1)), donor).seen.fixations() == [(319, 0)]
