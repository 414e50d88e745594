"""Replies cut to drawn lengths: where, and to which lengths."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.contract import Draw
from agents.errors import InputError
from agents.language.sent_messages import TruncationSettings, draw_length, read_lengths, sent_message, spoken, truncate
from agents.stimuli import ConversationStimulus

# Two, four (six) and nine words.
REPLY = "Oh no! That is too bad. Have you, by the way, asked your mother?"


@pytest.mark.parametrize(
    ("text", "length", "expected"),
    [
        (REPLY, 1, ""),
        (REPLY, 2, "Oh no!"),
        (REPLY, 5, "Oh no!"),
        (REPLY, 6, "Oh no! That is too bad."),
        (REPLY, 13, "Oh no! That is too bad."),
        (REPLY, 14, REPLY),
        (REPLY, 100, REPLY),
        ("yeah they pack so much in", 3, ""),
        ("so it costs 3.50 or more I think", 5, "so it costs 3."),
        ("what?! you... no way he did", 3, "what?! you..."),
    ],
)
def test_the_last_mark_within_the_length(text: str, length: int, expected: str) -> None:
    assert truncate(text, length) == expected
    assert truncate(text, length, "whole") == (expected or text)


@given(
    st.lists(st.sampled_from(["yes", "so", "no.", "what?!", "...", "3.14", "-", "oh!no"]), max_size=25),
    st.integers(1, 12),
)
def test_the_cut_meets_the_length(parts: list[str], length: int) -> None:
    """Beside a walk back from the end of the words, one character at a time."""
    text = " ".join(parts)
    kept = parts[:length]
    plain = " ".join(kept)
    while len(parts) > length and plain and plain[-1] not in ".!?":
        plain = plain[:-1]
    assert truncate(text, length) == plain
    assert len(truncate(text, length).split()) <= length
    assert truncate(text, length, "whole") in (plain, text)


def test_a_long_message_without_a_mark_used_to_be_far_longer_than_its_length() -> None:
    said = " ".join(["word"] * 23) + " end."
    assert truncate(said, 3) == ""


def test_drawn_lengths_have_the_mean_and_the_spread_of_people() -> None:
    drawn = [draw_length(seed * 7_919 + 2**40, TruncationSettings()) for seed in range(20_000)]
    mean = sum(drawn) / len(drawn)
    spread = math.sqrt(sum((length - mean) ** 2 for length in drawn) / len(drawn))
    # Gamma(2.09, 7.0): mean 14.63, standard deviation 10.12; four standard errors of each.
    assert abs(mean - 14.63) < 0.29
    assert abs(spread - 10.12) < 0.35
    assert min(drawn) == 1
    # Its distribution function, by the series of the incomplete Gamma function.
    for length in (5, 12, 28):
        share = sum(each <= length for each in drawn) / len(drawn)
        assert abs(share - gamma_cdf(2.09, (length + 0.5) / 7.0)) < 0.015


def gamma_cdf(shape: float, x: float) -> float:
    """The regularised lower incomplete Gamma function."""
    term = total = 1.0 / shape
    for n in range(1, 200):
        term *= x / (shape + n)
        total += term
    return total * math.exp(-x + shape * math.log(x) - math.lgamma(shape))


def test_a_seed_draws_one_length() -> None:
    settings = TruncationSettings()
    seeds = [0, 1, 2**53 - 1, 123_456_789]
    assert [draw_length(seed, settings) for seed in seeds] == [draw_length(seed, settings) for seed in seeds]
    assert len({draw_length(seed, settings) for seed in range(200)}) > 20


def test_the_settings_of_a_draw() -> None:
    seeds = range(500)
    longer = [draw_length(seed, TruncationSettings(scale=70.0)) for seed in seeds]
    assert sum(longer) > 8 * sum(draw_length(seed, TruncationSettings()) for seed in seeds)
    assert min(draw_length(seed, TruncationSettings(least=5)) for seed in seeds) == 5
    assert max(draw_length(seed, TruncationSettings(shape=10_000, scale=10_000)) for seed in range(5)) == 100_000


def test_lengths_of_a_file_are_drawn_alike() -> None:
    drawn = [draw_length(seed, TruncationSettings(), (0, 3, 3, 50)) for seed in range(8_000)]
    counts = {length: drawn.count(length) for length in set(drawn)}
    assert set(counts) == {1, 3, 50}
    assert abs(counts[3] - 4_000) < 180
    assert abs(counts[1] - counts[50]) < 250


TALK = ConversationStimulus(id="c", task="conversation", type="MM")


def test_a_sent_message_is_cut_and_half_of_them_in_small_letters() -> None:
    text = "  I do not know. Why do you\nask me THAT? Nobody else does! Well then, let us see about it some day."
    plain = " ".join(text.split())
    text = spoken(TALK, text, "A", "B")
    sent = {seed: sent_message(TALK, text, Draw(seed), TruncationSettings(), (), 0.5) for seed in range(2000)}
    assert 900 < sum(one == one.lower() for one in sent.values()) < 1100
    for seed, one in sent.items():
        cut = truncate(plain, draw_length(seed, TruncationSettings()))
        assert one in (cut, cut.lower())
    assert len(set(sent.values())) >= 6
    assert {sent_message(TALK, text, Draw(seed), None, (), 0) for seed in range(20)} == {plain}
    assert sent_message(TALK, "One Two. Three", Draw(1), TruncationSettings(), (2,), 1) == "one two."


def test_the_messages_of_a_burst_are_lines_up_to_where_the_other_speaks() -> None:
    burst = TALK.model_copy(update={"mode": "burst"})
    text = spoken(burst, " One Two.  Three\n\nAnn: Four\n five six\nBob: never\nAnn: nor this", "Ann", "Bob")
    assert text == "One Two. Three\nFour\nfive six"
    assert spoken(burst, "Bob: never", "Ann", "Bob") == ""
    assert sent_message(burst, text, Draw(1), TruncationSettings(), (2,), 1) == "one two.\nfour\nfive six"
    assert sent_message(burst, "a b c\nFour", Draw(1), TruncationSettings(), (2,), 0) == "Four"
    long = spoken(burst, "\n".join(["so. " * 100] * 20), "Ann", "Bob")
    lengths = {len(one.split()) for one in sent_message(burst, long, Draw(1), TruncationSettings(), (), 0).split("\n")}
    assert len(lengths) > 5


@pytest.mark.parametrize(("kind", "people", "cut"), [("MM", False, True), ("HM", False, False), ("HM", True, True)])
def test_what_is_said_to_people_is_cut_only_on_demand(kind: Literal["MM", "HM"], people: bool, cut: bool) -> None:
    about = ConversationStimulus(id="c", task="conversation", type=kind)
    sent = sent_message(about, "One Two. Three", Draw(1), TruncationSettings(people=people), (2,), 0)
    assert sent == ("One Two." if cut else "One Two. Three")


def test_read_lengths(tmp_path: Path) -> None:
    path = tmp_path / "lengths.txt"
    path.write_bytes(b"\xef\xbb\xbf3\r\n 14 \n\n100000\n0\n")
    assert read_lengths(TruncationSettings(lengths=path)) == (3, 14, 100_000, 0)
    assert read_lengths(TruncationSettings()) == read_lengths(None) == ()


@pytest.mark.parametrize(
    ("content", "lines"),
    [(b"3\nfour\n5\n-1\n", [2, 4]), (b"3.5\n", [1]), (b"100001\n", [1]), ("３\n".encode(), [1]), (b"9" * 5000, [1])],
)
def test_lines_that_hold_no_length_are_named(content: bytes, lines: list[int], tmp_path: Path) -> None:
    path = tmp_path / "lengths.txt"
    path.write_bytes(content)
    with pytest.raises(InputError, match="hold no length") as caught:
        read_lengths(TruncationSettings(lengths=path))
    assert [problem.line for problem in caught.value.problems] == lines


@pytest.mark.parametrize("content", [b"", b"\n \n", b"\xff\xfe3", None])
def test_files_without_lengths(content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "lengths.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=r"lengths\.txt"):
        read_lengths(TruncationSettings(lengths=path))


def test_lengths_of_peoples_messages_in_records(tmp_path: Path) -> None:
    said = [("human", "Hi there you"), ("eliza", "HOW DO YOU DO TODAY"), ("human:05", "fine!"), (None, "what is it")]
    messages = [{"agent": agent, "text": text} for agent, text in said]
    path = tmp_path / "people.jsonl"
    lines = [{"task": "conversation", "answer": {"messages": messages}}, {"answer": None}, {"answer": {"word": "a"}}]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert read_lengths(TruncationSettings(lengths=path)) == (3, 1)
    path.write_text(path.read_text() + "7\n")
    with pytest.raises(InputError, match="hold no length") as caught:
        read_lengths(TruncationSettings(lengths=path))
    assert [problem.line for problem in caught.value.problems] == [4]
