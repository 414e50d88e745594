"""All versions of the answers to a task: which there are, what stays of all, and who is counted."""

import random
from itertools import combinations

import pytest

from agents.errors import InputError
from agents.stimuli import TASKS, Asked
from judging.tells.registry import TRANSFORMATIONS, check_names, in_order, version_sets
from judging.tells.seen import SeenAnswer
from judging.tells.transformation import PARTICIPANTS, AlteredError, Owner
from judging.tells.versions import leaves_nothing, make_versions
from tests.judging.tells.test_transformations import answer_of, caption, owned

ALL = tuple(TRANSFORMATIONS)


def drawn(task: Asked, seed: int = 0, number: int = 60) -> tuple[list[SeenAnswer], list[Owner]]:
    chance = random.Random(f"{seed} {task}")
    answers = [answer_of(task, chance) for _ in range(number)]
    usable = [seen for seen in answers if not leaves_nothing(seen, ALL)]
    return usable, owned([chance.choice([PARTICIPANTS, "a", "b"]) for _ in usable])


@pytest.mark.parametrize(
    ("names", "sets"),
    [
        ((), [()]),
        (("a",), [(), ("a",)]),
        (("a", "b"), [(), ("a",), ("b",), ("a", "b")]),
        (
            ("a", "b", "c"),
            [(), ("a",), ("b",), ("c",), ("a", "b", "c"), ("b", "c"), ("a", "c"), ("a", "b")],
        ),
    ],
)
def test_versions_are_each_alone_all_and_all_but_each(names: tuple[str, ...], sets: list[tuple[str, ...]]) -> None:
    assert version_sets(names) == sets


def test_names_stand_in_the_order_of_application() -> None:
    assert in_order(("length", "case", "path_length", "hedging"), "image_captioning") == ["hedging", "case", "length"]
    answers, owners = drawn("image_captioning")
    made = make_versions("image_captioning", answers, owners, ("length", "case"), ("length",), 1)
    assert list(made.answers) == ["", "case", "length", "case+length", "plant:length"]


@pytest.mark.parametrize("task", TASKS)
def test_after_all_each_again_changes_nothing(task: Asked) -> None:
    """But for a phrase that a cut leaves: "Well, I think so." has no hedge, and its first three words have one."""
    answers, _ = drawn(task, number=90)
    answers = answers[: len(answers) // 3 * 3]
    owners = owned([PARTICIPANTS, "a", "b"] * (len(answers) // 3))
    versions = make_versions(task, answers, owners, ALL, (), 1)
    names = in_order(ALL, task)
    last = versions.answers["+".join(names)]
    for name in names:
        transformation = TRANSFORMATIONS[name]
        but_this = versions.answers["+".join(other for other in names if other != name)]
        for seen, before in zip(last, but_this, strict=True):
            if transformation.is_matched:
                assert transformation.measure(seen) <= transformation.measure(before) + 1e-9
            elif name != "hedging" or "length" not in names:
                assert transformation.take_away(seen, ()) == seen
    if "length" in names and task != "conversation":  # of which the groups have other numbers of messages
        again, _ = TRANSFORMATIONS["length"].take_away_all(last, owners, random.Random(9))
        for seen, before in zip(again, last, strict=True):
            assert TRANSFORMATIONS["length"].measure(seen) <= TRANSFORMATIONS["length"].measure(before)
    without_length = versions.answers["+".join(name for name in names if name != "length")]
    if "hedging" in names:
        assert all(TRANSFORMATIONS["hedging"].take_away(seen, ()) == seen for seen in without_length)


@pytest.mark.parametrize("task", TASKS)
def test_what_is_taken_away_measures_the_same_in_all_answers(task: Asked) -> None:
    answers, owners = drawn(task)
    names = [name for name in in_order(ALL, task) if not TRANSFORMATIONS[name].is_matched]
    versions = make_versions(task, answers, owners, names, (), 1)
    for version, seen in versions.answers.items():
        for name in version.split("+") if version else ():
            values = {round(TRANSFORMATIONS[name].measure(one), 9) for one in seen}
            assert len(values) == 1 or (name == "first_fixation" and max(values) < 0.01)  # half a pixel


def test_lemmas_that_make_a_hedge_lose_it_too() -> None:
    seen = caption("I guessed it is a dog")
    made = make_versions("image_captioning", [seen], owned([PARTICIPANTS]), ("hedging", "inflection"), (), 0)
    assert made.answers["hedging"][0].texts() == ["I guessed it is a dog"]
    assert made.answers["inflection"][0].texts() == ["I guess it is a dog"]
    assert made.answers["hedging+inflection"][0].texts() == ["It is a dog"]


def test_answers_of_which_nothing_would_be_left_are_known_before() -> None:
    assert leaves_nothing(caption("Maybe!"), ("hedging", "punctuation"))
    assert leaves_nothing(caption("?!"), ("punctuation",))
    assert not leaves_nothing(caption("?!"), ("hedging", "case", "length"))
    assert not leaves_nothing(caption("Maybe!"), ("hedging",))  # a mark is left


def test_versions_follow_from_the_seed() -> None:
    answers, owners = drawn("attention_prediction")
    plant = ("first_fixation", "path_length")
    first = make_versions("attention_prediction", answers, owners, ("length",), plant, 1)
    assert first.answers == make_versions("attention_prediction", answers, owners, ("length",), plant, 1).answers
    other = make_versions("attention_prediction", answers, owners, ("length",), plant, 2)
    assert first.answers["plant:first_fixation"] != other.answers["plant:first_fixation"]


def test_changes_are_counted_by_group() -> None:
    answers = [caption(text) for text in ("A dog", "a dog", "A Cat", "the big cat")]
    owners = owned([PARTICIPANTS, PARTICIPANTS, "people", "people"])  # an agent may have any name
    made = make_versions("image_captioning", answers, owners, ("case", "length"), ("length",), 0)
    case, length, planted = [change.noted() for change in made.changes]
    assert case == {
        "version": "case",
        "task": "image_captioning",
        "answers": {"participants": 2, "agents": {"people": 2}},
        "changed": {"participants": 1, "agents": {"people": 1}},
        "unreached": {"participants": 0, "agents": {"people": 0}},
        "targets": [],
    }
    assert length["changed"] == {"participants": 0, "agents": {"people": 1}}
    assert length["targets"] == [2, 2, 2, 2, 2]
    assert planted["version"] == "plant:length"
    assert planted["unreached"] == {"participants": 0, "agents": {"people": 0}}


def test_a_transformation_that_changes_too_much_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(TRANSFORMATIONS["case"]), "take_away", lambda self, seen, target: seen.with_texts(["x"]))
    with pytest.raises(AlteredError, match="case changed"):
        make_versions("image_captioning", [caption("A dog")], owned([PARTICIPANTS]), ("case",), (), 0)


@pytest.mark.parametrize(
    ("without", "plant", "message"),
    [
        (("delay",), (), "without: delay needs trials that show delays: add --show-delays"),
        ((), ("delay",), "plant: delay needs trials that show delays: add --show-delays"),
        (("colour",), (), "without: there is no 'colour', but hedging, inflection"),
        ((), ("label_order",), "label_order cannot be planted: an order is one of certain labels"),
        (("case", "case"), (), "case stands there twice"),
        (("path_length",), (), "path_length is of other tasks: attention"),
        ((), ("inflection",), "plant: inflection is of other tasks: object, word"),
    ],
)
def test_names_that_cannot_be_are_refused(without: tuple[str, ...], plant: tuple[str, ...], message: str) -> None:
    tasks: list[Asked] = ["image_captioning"]
    if "label_order" in plant:
        tasks.append("object_detection")
    if "delay" in (*without, *plant):
        tasks.append("conversation")
    with pytest.raises(InputError, match=message):
        check_names(without, plant, tasks)


def test_all_problems_are_told_at_once() -> None:
    with pytest.raises(InputError) as caught:
        check_names(("delay", "colour"), ("label_order",), list(TASKS))
    assert all(name in str(caught.value) for name in ("delay", "colour", "label_order"))


def test_pairs_of_all_transformations_pass_their_checks() -> None:
    for task in TASKS:
        answers, owners = drawn(task, seed=2, number=20)
        for both in combinations(in_order(ALL, task), 2):
            made = make_versions(task, answers, owners, both, (), 0)
            assert [len(of_version) for of_version in made.answers.values()] == [len(answers)] * 4


def test_all_excerpts_of_a_conversation_have_one_donor() -> None:
    """A judge's list may show two excerpts of a conversation: the same messages must have the same form in both."""
    people = [answer_of("conversation", random.Random(number)) for number in range(40)]
    marks = [seen.with_texts([f"yes{'!' * (number % 7)}" for _ in seen.texts()]) for number, seen in enumerate(people)]
    machine = [seen.with_texts(["no" for _ in seen.texts()]) for seen in people[:20]]
    owners = [Owner(PARTICIPANTS, 1, ("people", number)) for number in range(40)]
    owners += [Owner("m", 1, ("m", number // 2)) for number in range(20)]  # two excerpts of each
    made = make_versions("conversation", [*marks, *machine], owners, (), ("punctuation",), 1)
    ends = [{text.removeprefix("no") for text in seen.texts()} for seen in made.answers["plant:punctuation"][40:]]
    assert ends[::2] == ends[1::2]
    assert len({tuple(sorted(of_answer)) for of_answer in ends}) > 2
