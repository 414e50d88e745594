"""Replies cut to drawn lengths: where, and to which lengths."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.contract import Draw
from agents.errors import InputError
from agents.language.filters.texts import WORD, words
from agents.language.truncation import Fallback, TruncationSettings, draw_length, read_lengths, sent_message, truncate

FALLBACKS: list[Fallback] = ["sentence", "clause", "words"]
# Two, four (six) and nine words.
REPLY = "Oh no! That is too bad. Have you, by the way, asked your mother?"


@pytest.mark.parametrize(
    ("length", "expected"),
    [
        (2, "Oh no!"),
        (5, "Oh no!"),
        (6, "Oh no! That is too bad."),
        (13, "Oh no! That is too bad."),
        (14, REPLY),
        (100, REPLY),
    ],
)
@pytest.mark.parametrize("fallback", FALLBACKS)
def test_the_last_sentence_end_within_the_length(length: int, expected: str, fallback: Fallback) -> None:
    assert truncate(REPLY, length, fallback) == expected


@pytest.mark.parametrize(
    ("text", "length", "sentence", "clause", "plain"),
    [
        (REPLY, 1, "Oh no!", "Oh", "Oh"),
        ("yeah, they pack so much in", 4, "yeah, they pack so much in", "yeah", "yeah, they pack so"),
        ("well, so: it is - go home. Now", 4, "well, so: it is - go home.", "well, so: it is", "well, so: it is"),
        ("well, you know: it is late", 5, "well, you know: it is late", "well, you know", "well, you know: it is"),
        ("one two three, four", 3, "one two three, four", "one two three", "one two three"),
        ("it costs 1,000 or 10:30 euros", 4, "it costs 1,000 or 10:30 euros", "it costs 1,000 or", "it costs 1,000 or"),
        ("... so what is it? I ask", 2, "... so what is it?", "... so what", "... so what"),
        ("?! So what is it? I ask", 2, "?! So what is it?", "?! So what", "?! So what"),
        ("he said (loudly) that", 3, "he said (loudly) that", "he said (loudly", "he said (loudly"),
        ("my son was accepted", 3, "my son was accepted", "my son was", "my son was"),
    ],
)  # fmt: skip
def test_without_a_sentence_end_within_the_length(
    text: str, length: int, sentence: str, clause: str, plain: str
) -> None:
    assert [truncate(text, length, fallback) for fallback in FALLBACKS] == [sentence, clause, plain]


@pytest.mark.parametrize(
    ("text", "length", "expected"),
    [
        ("I met Dr. Smith today. He is well.", 6, "I met Dr. Smith today."),
        ("Well... my son was accepted! He is glad", 7, "Well... my son was accepted!"),
        ('She said "Stop!" Then she left.', 4, 'She said "Stop!"'),
        ("Really?! Yes... No. ok ok", 3, "Really?! Yes... No."),
        ("今天很好。你呢？我也是。", 7, "今天很好。你呢？"),
        ("Fine. 👍 I think so too", 2, "Fine."),
    ],
)
def test_sentences_end_where_readers_see_it(text: str, length: int, expected: str) -> None:
    assert truncate(text, length) == expected


TEXT = st.text(st.characters(exclude_categories=()), max_size=120) | st.lists(
    st.sampled_from(
        ["yes", "so", "I", "Dr.", "no.", "what?!", "...", ",", ":", "-", "—", "\n", "”", "3.14", "我。", "！"]
    ),
    max_size=25,
).map(" ".join)


@given(TEXT, st.integers(1, 12), st.sampled_from(FALLBACKS))
@settings(max_examples=300)
def test_what_is_kept_is_a_beginning_that_says_something(text: str, length: int, fallback: Fallback) -> None:
    kept = truncate(text, length, fallback)
    assert text.startswith(kept)
    assert (kept == text) or kept == kept.rstrip()
    if len(plain_words(text)) <= length:
        assert kept == text
    else:
        assert plain_words(kept)
        if fallback != "sentence" or re.search(r"[.!?…。！？][\"'”’»)\]」』）]*$", kept) is None:
            assert len(plain_words(kept)) <= length or kept == text
    assert truncate(kept, length, fallback) == kept


def plain_words(text: str) -> list[str]:
    return WORD.findall(text)


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


def test_a_sent_message_is_cut_and_half_of_them_in_small_letters() -> None:
    text = "  I do not know. Why do you\nask me THAT? Nobody else does! Well then, let us see about it some day."
    plain = " ".join(text.split())
    sent = {seed: sent_message(text, Draw(seed), TruncationSettings(), (), 0.5) for seed in range(2000)}
    assert 900 < sum(one == one.lower() for one in sent.values()) < 1100
    for seed, one in sent.items():
        cut = truncate(plain, draw_length(seed, TruncationSettings()))
        assert one in (cut, cut.lower())
    assert len(set(sent.values())) >= 6
    assert {sent_message(text, Draw(seed), None, (), 0) for seed in range(20)} == {plain}
    assert sent_message("One Two Three", Draw(1), TruncationSettings(fallback="words"), (2,), 1) == "one two"


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


def test_a_hundred_thousand_characters() -> None:
    text = "a word or two, " * 6_000 + "and an end. More"
    assert truncate(text, 4, "clause") == "a word or two"
    assert len(words(truncate(text, 4))) == 4 * 6_000 + 3
