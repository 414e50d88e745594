"""What becomes of a generated message: its label, its length, small letters. Most labels are a real model's."""

import json
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from agents.answers import TurnAnswer
from agents.contract import Draw, Reply
from agents.errors import InputError
from agents.language.engines.text_request import Sampling, settled
from agents.language.filters import policies
from agents.language.filters.policies import MEASURE
from agents.language.sent_messages import (
    TruncationSettings,
    draw_length,
    leading_label,
    length_check,
    may_change,
    read_message_lengths,
    sent_message,
    short_names,
    spoken,
    too_short,
    truncate,
)
from agents.stimuli import ConversationStimulus

NAMES = ("Ella", "Oscar")
TALK = ConversationStimulus(id="c", task="conversation", type="MM")


# labels


@pytest.mark.parametrize(
    ("text", "whose", "left"),
    [
        ("Oscar: hi there", "own", "hi there"),
        ("**Oscar:** hi there", "own", "hi there"),
        ("oscar : hi there", "own", "hi there"),
        ("O: hi there", "own", "hi there"),
        ("B:I’ll be happy", "own", "I’ll be happy"),
        ("B: B: hi", "own", "hi"),
        ("B:", "own", ""),
        ('Oscar: "Bienvenue!"', "own", "Bienvenue!"),
        ("Ella: hi there", "other", "hi there"),
        ("E:I’m glad to hear", "other", "I’m glad to hear"),
        ("A:Ella is **not a word.**", "other", "Ella is **not a word.**"),
        ("1:*I am thrilled", "nobody", "I am thrilled"),
        (":Excellent, excellent.", "nobody", "Excellent, excellent."),
        (":i'm not sure what to say.", "nobody", "i'm not sure what to say."),
        ("D:Brad, Good day", "nobody", "Brad, Good day"),
        ("“Bienvenue!”", None, "Bienvenue!"),
        ('"Yes" and "no".', None, '"Yes" and "no".'),
        (":) hello", None, ":) hello"),
        (":D that is great", None, ":D that is great"),
        ("D: oh no", None, "D: oh no"),
        ("12:30 is fine", None, "12:30 is fine"),
        ("I say: no", None, "I say: no"),
        ("Oscar is my name", None, "Oscar is my name"),
    ],
)
def test_no_label_goes_to_a_person_and_the_others_stay_between_machines(
    text: str, whose: str | None, left: str
) -> None:
    label = leading_label(text, *short_names(NAMES, "Oscar"))
    assert (label and label.whose) == whose
    kinds: tuple[Literal["HM", "MM"], ...] = ("HM", "MM")
    to_person, to_machine = (
        spoken(ConversationStimulus(id="c", task="conversation", type=kind, names=NAMES), text, "Oscar", "Ella")
        for kind in kinds
    )
    assert to_person == left
    filters = {
        judgement.filter for judgement in policies.judge_conversation([("Oscar", to_machine)], MEASURE, names=NAMES)
    }
    if whose in ("other", "nobody"):
        assert to_machine == text
        assert "other_speaker" in filters
    else:
        assert to_machine == left
        assert filters <= {"empty", "too_short"}


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("B: Hello there A: hi", "B: Hello there "),
        ("**B: Hello** B: more", "**B: Hello** "),
        ("B: B: Hello", "B: B: Hello"),
        ("A: hi", ""),
        ("Hello B: more", "Hello "),
    ],
)
def test_the_speakers_label_ends_nothing_at_the_beginning(text: str, kept: str) -> None:
    sampling = Sampling(stops=("A:", "B:"), label="B:")
    assert text[: sampling.stop_in(text)] == kept
    assert sampling.unconditional_stops() == ["A:"]
    assert Sampling(stops=("A:",), label="B:").stop_in("Hello B: more") is None  # as in a burst


def test_the_beginning_of_a_stream_is_held_back() -> None:
    assert all(map(may_change, ("", "B", "B:", "Oscar: ", "**", "Hello", '"Hello there', "“Hello there")))
    assert not any(map(may_change, ("Hello th", "Oscar: hi there", "no, I am")))
    assert all(map(may_change, ("हिंदी", "हिंदी:", "தமிழ்", "कविता: ", "cafe\u0301")))  # a name with vowel signs
    assert not may_change("हिंदी में")


def test_words_of_scripts_without_spaces_are_counted() -> None:
    """A message of eight characters has enough words, and one of a single sign has none."""
    stimulus = ConversationStimulus(id="c", task="conversation", type="MM")
    for text, found in (("我今天早上喝咖啡", None), ("मैं चाय पीता हूँ", None), ("好", "1 words: 好"), ("…", "0 words: …")):
        reply = Reply(TurnAnswer(text=text, finish="stop"), {"text": text, "attempt": 0})
        verdict = too_short(stimulus, reply, 4, 2)
        assert (verdict and verdict.found) == found


# lengths

REPLY = "Oh no! That is too bad. Have you, by the way, asked your mother?"  # 2, 4 and 8 words


@pytest.mark.parametrize(
    ("text", "length", "expected"),
    [
        (REPLY, 1, ""),
        (REPLY, 5, "Oh no!"),
        (REPLY, 6, "Oh no! That is too bad."),
        (REPLY, 13, "Oh no! That is too bad."),
        (REPLY, 14, REPLY),
        ("yeah they pack so much in", 3, ""),
        ("so it costs 3.50 or more I think", 5, "so it costs 3."),
        ("what?! you... no way he did", 3, "what?! you..."),
    ],
)
def test_a_message_is_cut_at_the_last_mark_within_the_length(text: str, length: int, expected: str) -> None:
    assert truncate(text, length) == expected
    assert truncate(text, length, "whole") == (expected or text)


@given(
    st.lists(st.sampled_from(["yes", "so", "no.", "what?!", "...", "3.14", "-", "oh!no"]), max_size=25),
    st.integers(1, 12),
)
def test_the_cut_is_that_of_a_walk_back_from_the_end(parts: list[str], length: int) -> None:
    text = " ".join(parts)
    plain = " ".join(parts[:length])
    while len(parts) > length and plain and plain[-1] not in ".!?":
        plain = plain[:-1]
    assert truncate(text, length) == plain
    assert truncate(text, length, "whole") in (plain, text)


def test_drawn_lengths_have_the_distribution_of_people() -> None:
    """The 2025 paper's Gamma distribution: a shape of 2.09, a scale of 7.0 words."""
    lengths = [draw_length(seed * 7_919 + 2**40, TruncationSettings()) for seed in range(20_000)]
    assert min(lengths) == 1
    for limit in (5, 12, 28):
        share = sum(length <= limit for length in lengths) / len(lengths)
        assert abs(share - stats.gamma.cdf(limit + 0.5, 2.09, scale=7.0)) < 0.015


@pytest.mark.parametrize("lengths", [(), (2, 3, 3, 8, 8, 9, 20)])
def test_lengths_that_can_pass_have_the_distribution_of_those_that_passed(lengths: tuple[int, ...]) -> None:
    """Against draws that are rejected below five words, as all of a drawn message's attempts were."""
    settings = TruncationSettings()
    drawn = [draw_length(seed * 7_919, settings, lengths, 5) for seed in range(4000)]
    before = [draw_length(seed * 104_729 + 2**40, settings, lengths) for seed in range(8000)]
    passed = [length for length in before if length >= 5]
    assert min(drawn) >= 5 > min(before)
    assert stats.ks_2samp(drawn, passed).pvalue > 1e-3
    assert abs(sum(drawn) / len(drawn) - sum(passed) / len(passed)) < 0.6
    for seed in range(200):  # a length that could pass stays the same
        first = draw_length(seed, settings, lengths)
        assert first < 5 or draw_length(seed, settings, lengths, 5) == first
    assert draw_length(1, settings, (2, 3), 5) in (2, 3)


PIECES = [
    "Oscar",
    "Ella:",
    "B:",
    ":",
    " ",
    " ",
    "\n",
    '"',
    "“",
    "**",
    "hello",
    "oh no!",
    "yes.",
    "3.14",
    "D",
    "Mary",
    "1",
]


@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join), st.sampled_from([1, 5, 7]), st.booleans())
def test_what_follows_a_text_that_is_enough_is_never_sent(text: str, length: int, is_whole: bool) -> None:
    fallback: Literal["empty", "whole"] = "whole" if is_whole else "empty"
    settings = TruncationSettings(fallback=fallback)
    sampling = Sampling(stops=("Oscar:", "Ella:"), label="Oscar:")
    stimulus = TALK.model_copy(update={"names": NAMES})
    is_enough = length_check(stimulus, length, fallback, 0, "Oscar", "Ella")

    def sent(text: str) -> str:
        message = spoken(stimulus, text[: sampling.stop_in(text)], "Oscar", "Ella")
        return sent_message(stimulus, message, Draw(1), settings, (length,), 0, 0)

    for end in range(len(text)):
        if is_enough(settled(text[:end], sampling.stops)):
            assert sent(text[:end]) == sent(text)
            return


def test_a_long_text_is_enough_at_the_first_word_too_many() -> None:
    for fallback, text, expected in (
        ("empty", "a b. c d e f", 10),
        ("whole", "a b. c d e f", 10),
        ("whole", "a b c d e. f", 99),
    ):
        is_enough = length_check(TALK, 4, fallback, 2, "Oscar", "Ella")  # type: ignore[arg-type]
        ends = [end for end in range(len(text)) if is_enough(text[:end])]
        assert min(ends, default=99) == expected


def test_read_lengths(tmp_path: Path) -> None:
    path = tmp_path / "lengths.txt"
    path.write_bytes(b"\xef\xbb\xbf3\r\n 14 \n\n100000\n0\n")
    assert read_message_lengths(TruncationSettings(lengths=path)) == (3, 14, 100_000, 0)
    assert read_message_lengths(TruncationSettings()) == read_message_lengths(None) == ()
    messages = [("human", "Hi there you"), ("eliza", "HOW DO YOU"), ("human:05", "fine!"), (None, "what is it")]
    answer = {"messages": [{"agent": agent, "text": text} for agent, text in messages]}
    lines = [{"task": "conversation", "answer": answer}, {"answer": None}, {"answer": {"word": "a"}}]
    records = tmp_path / "people.jsonl"
    records.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert read_message_lengths(TruncationSettings(lengths=records)) == (3, 1)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.txt", b"3\nfour\n5\n-1\n"),
        ("a.txt", b"100001\n"),
        ("a.jsonl", b'{"answer": null}\n7\n'),
        ("a.txt", b"\n \n"),
        ("a.txt", b"\xff\xfe3"),
        ("a.txt", None),
    ],
)
def test_bad_files_of_lengths_are_refused(name: str, content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=name):
        read_message_lengths(TruncationSettings(lengths=path))


# what is sent


def test_a_sent_message_is_cut_and_half_of_them_in_small_letters() -> None:
    sent = [
        sent_message(TALK, "One Two. Three", Draw(seed), TruncationSettings(), (2,), 1, 0.5) for seed in range(2000)
    ]
    assert set(sent) == {"One Two.", "one two."}
    assert 900 < sent.count("one two.") < 1100
    assert sent_message(TALK, "One Two. Three", Draw(1), None, (), 1, 0) == "One Two. Three"


def test_the_messages_of_a_burst_are_lines_up_to_where_the_other_speaks() -> None:
    burst = TALK.model_copy(update={"mode": "burst"})
    text = spoken(burst, " One Two.  Three\n\nAnn: Four\n five six\nBob: never\nAnn: nor this", "Ann", "Bob")
    assert text == "One Two. Three\nFour\nfive six"
    assert spoken(burst, "Bob: never", "Ann", "Bob") == ""
    assert sent_message(burst, text, Draw(1), TruncationSettings(), (2,), 1, 1) == "one two.\nfour\nfive six"
    assert sent_message(burst, "a b c\nFour", Draw(1), TruncationSettings(), (2,), 1, 0) == "Four"


@pytest.mark.parametrize(("kind", "people", "cut"), [("MM", False, True), ("HM", False, False), ("HM", True, True)])
def test_messages_to_people_are_cut_only_on_demand(kind: Literal["MM", "HM"], people: bool, cut: bool) -> None:
    about = ConversationStimulus(id="c", task="conversation", type=kind)
    sent = sent_message(about, "One Two. Three", Draw(1), TruncationSettings(people=people), (2,), 1, 0)
    assert sent == ("One Two." if cut else "One Two. Three")
