"""Labels before messages: whose they are, and what is left of the message. Most texts are a real model's."""

from __future__ import annotations

from typing import Literal

import pytest

from agents.language.engines.text_request import Sampling
from agents.language.filters import policies
from agents.language.filters.policies import MEASURE
from agents.language.sent_messages import leading_label, may_change, short_names, spoken
from agents.stimuli import ConversationStimulus

NAMES = ("Ella", "Oscar")


@pytest.mark.parametrize(
    ("text", "whose", "left"),
    [
        ("Oscar: hi there", "own", "hi there"),
        ("**Oscar:** hi there", "own", "hi there"),
        ("[Oscar]: hi there", "own", "hi there"),
        ("oscar : hi there", "own", "hi there"),
        ("O: hi there", "own", "hi there"),
        ("B:I’ll be happy", "own", "I’ll be happy"),
        ("B: B: hi", "own", "hi"),
        ("B:", "own", ""),
        ("Ella: hi there", "other", "hi there"),
        ("E:I’m glad to hear", "other", "I’m glad to hear"),
        ("A:Ella is **not a word.**", "other", "Ella is **not a word.**"),
        ("a : hi!!", "other", "hi!!"),
        ("1:*I am thrilled", "nobody", "I am thrilled"),
        (":Excellent, excellent.", "nobody", "Excellent, excellent."),
        (": hello", "nobody", "hello"),
        ("D:Brad, Good day", "nobody", "Brad, Good day"),
        ("s:you're set!", "nobody", "you're set!"),
        ('Oscar: "Bienvenue!"', "own", "Bienvenue!"),
        ("“Bienvenue!”", None, "Bienvenue!"),
        ('"Yes" and "no".', None, '"Yes" and "no".'),
        (":) hello", None, ":) hello"),
        (":D that is great", None, ":D that is great"),
        (":p and so on", None, ":p and so on"),
        ("D: oh no", None, "D: oh no"),
        ("12:30 is fine", None, "12:30 is fine"),
        ("3:45 then", None, "3:45 then"),
        ("I say: no", None, "I say: no"),
        ("Oscar is my name", None, "Oscar is my name"),
    ],
)
def test_labels_and_what_is_sent(text: str, whose: str | None, left: str) -> None:
    label = leading_label(text, *short_names(NAMES, "Oscar"))
    assert (label and label.whose) == whose
    kinds: tuple[Literal["HM", "MM"], ...] = ("HM", "MM")
    to_person, to_machine = (
        spoken(ConversationStimulus(id="c", task="conversation", type=kind, names=NAMES), text, "Oscar", "Ella")
        for kind in kinds
    )
    assert to_person == left
    found = {one.filter for one in policies.judge_turn([], "Oscar", to_machine, MEASURE, names=NAMES)}
    if whose in ("other", "nobody"):
        assert to_machine == text
        assert "other_speaker" in found
    else:
        assert to_machine == left
        assert found <= {"empty", "too_short"}


@pytest.mark.parametrize(
    "text",
    [
        "[your name] has lots of friends",
        "Dear [Name], hello",
        "hi <name>!",
        "I like {topic} too",
        "I am [insert name here]",
        "hello {{user}}",
        "I live in [Your City]",
    ],
)
def test_placeholders_are_an_echo_of_the_prompt(text: str) -> None:
    assert [one.filter for one in policies.judge_turn([], "Oscar", text, MEASURE, names=NAMES)] == ["prompt_echo"]


def test_brackets_of_people_are_no_placeholders() -> None:
    for text in ("I <3 you", "he [sic] said so", "List<String> names", "a {b} c", "<b>bold</b> words"):
        assert policies.judge_turn([], "Oscar", text, MEASURE, names=NAMES) == []


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("B: Hello there A: hi", "B: Hello there "),
        ("**B: Hello** B: more", "**B: Hello** "),
        ("B: B: Hello", "B: B: Hello"),
        ("A: hi", ""),
        ("Hello B: more", "Hello "),
        ("B:", "B:"),
    ],
)
def test_ones_own_label_ends_nothing_at_the_beginning(text: str, kept: str) -> None:
    sampling = Sampling(stops=("A:", "B:"), label="B:")
    assert text[: sampling.stop_in(text)] == kept
    assert sampling.unconditional_stops() == ["A:"]
    assert Sampling(stops=("A:",), label="B:").stop_in("Hello B: more") is None  # as in a burst


def test_the_beginning_of_a_stream_is_held_back() -> None:
    assert all(map(may_change, ("", "B", "B:", "Oscar: ", "**", "Hello", '"Hello there', "“Hello there")))
    assert not any(map(may_change, ("Hello th", "Oscar: hi there", "no, I am")))
