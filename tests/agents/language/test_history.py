"""Chat histories: the file, its turns, and how somebody writes in them."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from agents.errors import InputError
from agents.language.person import (
    EMOJI,
    HistoryMessage,
    Speaker,
    burstiness,
    history_lines,
    measure,
    read_history,
    turns,
)

START = datetime.fromisoformat("2024-03-01T18:00:00")


def said(*messages: tuple[str, str, float | None]) -> list[HistoryMessage]:
    """(p or o, text, seconds from the start) of each."""
    speakers: dict[str, Speaker] = {"p": "person", "o": "other"}
    return [
        HistoryMessage(None if at is None else START + timedelta(seconds=at), speakers[who], text)
        for who, text, at in messages
    ]


def test_what_is_written_is_read(tmp_path: Path) -> None:
    messages = said(("p", "on my way\nsoon", 0), ("o", "\u00e9 \U0001f600", None))
    path = tmp_path / "h.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + history_lines(messages) + b"\n")
    assert read_history(path) == messages
    assert json.loads(history_lines(messages).splitlines()[0]) == {
        "at": "2024-03-01T18:00:00",
        "speaker": "person",
        "text": "on my way\nsoon",
    }


def test_every_bad_line_is_named_and_none_is_quoted(tmp_path: Path) -> None:
    bad = {
        1: "secret",
        2: '["secret"]',
        4: '{"speaker": "person", "text": 7, "at": "secret"}',
        5: '{"speaker": "secret", "text": "secret"}',
        6: '{"speaker": "person", "text": "secret", "at": "yesterday secret"}',
        7: '{"speaker": "person", "text": "  "}',
        8: '{"speaker": "person", "text": "secret", "secret": 1}',
        9: '{"speaker": "person", "text": "secret", "at": 1700000000}',
        10: "\udcff{",
    }
    lines = [bad.get(number, '{"speaker": "other", "text": "fine"}') for number in range(1, 11)]
    path = tmp_path / "h.jsonl"
    path.write_bytes("\n".join(lines).encode("utf-8", "surrogateescape"))
    with pytest.raises(InputError) as caught:
        read_history(path)
    assert [one.line for one in caught.value.problems] == list(bad)
    assert "secret" not in str(caught.value) + "".join(map(str, caught.value.problems))


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "holds no message"),
        (b"\n \n", "holds no message"),
        (b'{"at": "2024-03-01T18:00:00Z", "speaker": "person", "text": "a"}\n'
         b'{"at": "2024-03-01T18:00:00", "speaker": "other", "text": "a"}', "offset"),
    ],
)  # fmt: skip
def test_files_that_are_no_history(content: bytes, told: str, tmp_path: Path) -> None:
    (tmp_path / "h.jsonl").write_bytes(content)
    with pytest.raises(InputError, match=told):
        read_history(tmp_path / "h.jsonl")
    for path in (tmp_path / "absent.jsonl", tmp_path):
        with pytest.raises(InputError, match="cannot be read"):
            read_history(path)


def test_a_file_that_is_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agents.language.person.read_bytes.__defaults__", (2**20,))
    (tmp_path / "h.jsonl").write_bytes(b" " * (2**20 + 1))
    with pytest.raises(InputError, match="more than 1 MiB"):
        read_history(tmp_path / "h.jsonl")


def test_a_turn_is_what_one_says_before_the_other() -> None:
    messages = said(*((who, str(number), None) for number, who in enumerate("ppoopppo")))
    for count, kept in ((1, "7"), (2, "4567"), (3, "234567"), (4, "01234567"), (99, "01234567")):
        assert "".join(one.text for turn in turns(messages)[-count:] for one in turn) == kept


def test_style_of_messages_whose_numbers_are_known() -> None:
    messages = said(
        ("p", "Hi", 0), ("p", "how are YOU?", 10), ("o", "Never counted!!!", 20), ("p", "ok, fine.", 40),
        ("p", "\u4f60\u597d \U0001f600\U0001f44d\U0001f3fd", 46), ("o", "x", None), ("p", "1 2 3 4 5", None),
    )  # fmt: skip
    style = measure(messages)
    assert (style.messages, style.turns, style.messages_per_turn) == (5, 3, 5 / 3)
    assert (style.words_mean, style.words_median) == ((1 + 3 + 2 + 2 + 5) / 5, 2)
    assert (style.letters_mean, style.letters_median) == ((2 + 12 + 9 + 6 + 9) / 5, 9)
    assert style.punctuation == 3 / 5  # ? , .
    assert style.ends_with_mark == 2 / 5
    assert style.begins_with_capital == pytest.approx(1 / 3)  # of Hi, how and ok
    assert style.capitals == 4 / (2 + 9 + 6)
    assert style.emoji == 2 / 5
    assert style.gap_s == 8  # of 10 and 6
    gaps = [10, 30, 6]
    mean = sum(gaps) / 3
    spread = (sum((gap - mean) ** 2 for gap in gaps) / 3) ** 0.5
    assert style.burstiness == pytest.approx((spread - mean) / (spread + mean))
    assert measure(messages, "other").messages == 2


def test_style_of_nothing() -> None:
    nothing = measure([])
    assert (nothing.messages, nothing.turns) == (0, 0)
    assert {getattr(nothing, name) for name in ("words_mean", "emoji", "burstiness", "gap_s", "capitals")} == {None}
    assert measure(said(("p", "a", 5), ("p", "b", 1), ("p", "c", 1))).burstiness is None  # back in time, then 0


@pytest.mark.parametrize(("short", "long"), [(1.0, 1.0), (1.0, 3.0), (0.5, 50.0), (0.0, 2.0)])
def test_burstiness_of_two_gaps_has_a_closed_form(short: float, long: float) -> None:
    """Of a and b, a below b: (b - a - (a + b)) / (b - a + a + b) = -a / b."""
    assert burstiness([short, long]) == pytest.approx(-short / long)


def test_burstiness_of_regular_and_of_bursty_times() -> None:
    assert burstiness([7.0] * 9) == -1
    many = [0.0] * 9999 + [1.0]  # sd is sqrt(9999) times the mean
    assert burstiness(many) == pytest.approx((9999**0.5 - 1) / (9999**0.5 + 1))
    assert burstiness([5.0]) is None
    assert burstiness([0.0, 0.0]) is None


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("no: (c) 1 # *", 0),
        ("\U0001f600", 1),
        ("\U0001f600\U0001f600", 2),
        ("\u2764\ufe0f", 1),
        ("\U0001f44d\U0001f3fd", 1),  # with a tone of skin
        ("\U0001f468\u200d\U0001f469\u200d\U0001f467", 1),  # a family
        ("\U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7", 2),  # two flags
        ("1\ufe0f\u20e3 2", 1),
    ],
)
def test_an_emoji_counts_once(text: str, count: int) -> None:
    assert len(EMOJI.findall(text)) == count
