"""Dialogues that a model writes alone: what it is asked, and how its text is read."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.contract import Draw
from agents.language import pseudo_dialogue
from agents.language.engines.text_request import Sampling
from agents.language.pseudo_dialogue import read_messages, read_topics
from agents.stimuli import ConversationStimulus, Utterance

NAMES = ("Ann", "Bob")


@pytest.mark.parametrize(
    ("text", "topics"),
    [
        (
            "1. the sea\n2) Old films\n(3) a bicycle\n- tea\n* the SEA\n\u2022 snow\n",
            "the sea|Old films|a bicycle|tea|snow",
        ),
        ('Here are five topics:\n\n**1. the sea**\n"tea"\n***\n4.\n', "the sea|tea"),
        ("1984 as a novel\n3.5 litres\n24/7 shops", "1984 as a novel|3.5 litres|24/7 shops"),
        ("", ""),
        (" \n\t\n...\n", ""),
        ("x" * 1000, "x" * 200),
    ],
)
def test_topics_are_read_without_numbers_and_bullets(text: str, topics: str) -> None:
    assert read_topics(text) == [topic for topic in topics.split("|") if topic]


@pytest.mark.parametrize(
    ("text", "ping_pong", "burst"),
    [
        ("Ann: hi\nBob: hello\nAnn: so", "Ann:hi|Bob:hello|Ann:so", "Ann:hi|Bob:hello|Ann:so"),
        ("Ann: hi\nwho\n\nBob: me\nBob: you", "Ann:hi who|Bob:me you", "Ann:hi|Ann:who|Bob:me|Bob:you"),
        ("a  b\nann : c\n**Bob:** d\n- [12:03] Ann: e", "Bob:a b|Ann:c|Bob:d|Ann:e", "Bob:a b|Ann:c|Bob:d|Ann:e"),
        ("Ann:\nlate\nBob:\nAnn:", "Ann:late", "Ann:late"),
        ("note: Ann: hi\n- tea\nAnna: x", "Bob:note: Ann: hi - tea Anna: x", "Bob:note: Ann: hi|Bob:- tea|Bob:Anna: x"),
        ("", "", ""),
        (" \n\r\n\x0b", "", ""),
    ],
)  # fmt: skip
def test_messages_are_read_by_their_names(text: str, ping_pong: str, burst: str) -> None:
    for mode, expected in (("ping-pong", ping_pong), ("burst", burst)):
        found = read_messages(text, NAMES, "Bob", mode)  # type: ignore[arg-type]
        assert [(one.speaker, one.text) for one in found] == [
            tuple(one.split(":", 1)) for one in expected.split("|") if one
        ], mode


@given(
    st.lists(
        st.sampled_from(["Ann", "bob", ":", " ", "\n", "\u2028", "\x1c", "[", "]", "*", "- ", "hi", "\U0001f600"])
    ),
    st.sampled_from(NAMES),
    st.sampled_from(["ping-pong", "burst"]),
)
def test_whatever_random_weights_write_can_be_read(parts: list[str], speaker: str, mode: Any) -> None:
    text = "".join(parts)
    found = read_messages(text, NAMES, speaker, mode)
    assert {one.speaker for one in found} <= set(NAMES)
    assert all(one.text == " ".join(one.text.split()) != "" for one in found)
    if mode == "ping-pong":
        assert all(first.speaker != second.speaker for first, second in pairwise(found))
    assert sum(one.text.count("hi") for one in found) <= text.count("hi")
    topics = read_topics(text)
    assert len({topic.casefold() for topic in topics}) == len(topics)
    assert all(any(map(str.isalnum, topic)) for topic in topics)


def test_a_name_is_no_pattern_and_the_longer_one_is_meant() -> None:
    found = read_messages("A.: x\nAB: y\nA. B: z", ("A.", "A. B"), "A. B")
    assert [(one.speaker, one.text) for one in found] == [("A.", "x AB: y"), ("A. B", "z")]


def _asked(pseudo: dict[str, Any], said: str = "", **fields: Any) -> Any:
    history = [Utterance(speaker={"a": "Ann", "b": "Bob"}[who], text=f"message {who}") for who in said]
    stimulus = ConversationStimulus(id="c", task="conversation", names=NAMES, history=history, **fields)
    draw = Draw(1, options={"speaker": "B", "pseudo": pseudo})
    sampling = Sampling(0.7, frequency_penalty=2.0, presence_penalty=1.0, max_tokens=5, stops=("Ann:",))
    chat = pseudo_dialogue.chat_request(stimulus, draw, history, sampling, "Bob is a cook.")
    return chat, pseudo_dialogue.completion_request(stimulus, draw, history, sampling)


def test_names_that_differ_in_capitals_alone_are_two() -> None:
    found = read_messages("Ann: one\nann: two\nAnn: three", ("Ann", "ann"), "Ann")
    assert [(one.speaker, one.text) for one in found] == [("Ann", "one"), ("ann", "two"), ("Ann", "three")]


def test_topics_are_asked_for_beside_the_known_ones() -> None:
    chat, continued = _asked({"topics": 7, "known": ["tea", "the sea"]})
    for text in (chat.messages[-1].text, continued.prompt):
        assert "7 different topics" in text
        assert "tea; the sea" in text
    assert chat.messages[0].text == "Bob is a cook."
    assert continued.prompt.endswith("\n\n1.")
    first, _ = _asked({"topics": 7, "known": []})
    assert "other than" not in first.messages[-1].text


@pytest.mark.parametrize(("said", "begins"), [("", "Bob"), ("ab", "Ann"), ("abbba", "Bob")])
def test_a_dialogue_goes_on_with_the_other_speaker(said: str, begins: str) -> None:
    for mode in ("ping-pong", "burst"):
        chat, continued = _asked({"topic": "snow", "left": 11}, said, mode=mode)
        for text in (chat.messages[-1].text, continued.prompt):
            assert "next 11 turns, in which they talk about snow. " in text
            assert f"{begins} begins." in text
            assert ("several short messages" in text) == (mode == "burst")
            assert ("Ann: message a" in text) == ("a" in said)
        assert continued.prompt.endswith(f"\n\n{begins}:")
        found = read_messages(pseudo_dialogue.written(continued, " brr\nAnn: yes"), NAMES, "Ann", mode)  # type: ignore[arg-type]
        assert found[0].speaker == begins


def test_who_starts_begins_the_first_dialogue() -> None:
    chat, continued = _asked({"topic": "snow", "left": 11}, who_starts="A")
    assert "Ann begins." in chat.messages[-1].text
    assert continued.prompt.endswith("\n\nAnn:")


def test_there_is_room_for_what_is_asked_and_no_penalty_on_names() -> None:
    for pseudo, least in (({"topics": 10, "known": []}, 100), ({"topic": "t", "left": 11}, 500)):
        for request in _asked(pseudo):
            sampling = request.sampling
            assert (sampling.temperature, sampling.frequency_penalty, sampling.presence_penalty) == (0.7, 0.0, 0.0)
            assert sampling.stops == ()
            assert least <= sampling.max_tokens <= 4096
    assert _asked({"topic": "t", "left": 100})[0].sampling.max_tokens == 4096
