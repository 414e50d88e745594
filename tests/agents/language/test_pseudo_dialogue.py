"""Dialogues that a model writes alone: their requests, and how its text is read."""

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
        (" \n\t\n...\n", ""),
        ("x" * 1000, "x" * 200),
        ("ann: her cats\nJohn: I'll talk about phones.\nFood: what I like", "Food: what I like"),
    ],
)
def test_topics_are_read_without_numbers_and_bullets(text: str, topics: str) -> None:
    assert read_topics(text, NAMES) == [topic for topic in topics.split("|") if topic]


@pytest.mark.parametrize(
    ("text", "ping_pong", "burst"),
    [
        ("Ann: hi\nwho\n\nBob: me\nBob: you", "Ann:hi who|Bob:me you", "Ann:hi|Ann:who|Bob:me|Bob:you"),
        ("a  b\nann : c\n**Bob:** d\n- [12:03] Ann: e", "Bob:a b|Ann:c|Bob:d|Ann:e", "Bob:a b|Ann:c|Bob:d|Ann:e"),
        ("Ann:\nlate\nBob:\nAnn:", "Ann:late", "Ann:late"),
        ("note: Ann: hi\n- tea\nAnna: x", "Bob:note: Ann: hi - tea Anna: x", "Bob:note: Ann: hi|Bob:- tea|Bob:Anna: x"),
        ("[2024-03-19 18:56] EMMA: I\n2024-12-31 08:56 Ann: b\n[2017-03 14]", "Bob:EMMA: I|Ann:b", "Bob:EMMA: I|Ann:b"),
        ("[sic] 2024 is near", "Bob:[sic] 2024 is near", "Bob:[sic] 2024 is near"),
        (" \n\r\n\x0b", "", ""),
    ],
)
def test_messages_are_read_by_their_names(text: str, ping_pong: str, burst: str) -> None:
    for mode, expected in (("ping-pong", ping_pong), ("burst", burst)):
        messages = read_messages(text, NAMES, "Bob", mode)  # type: ignore[arg-type]
        assert "|".join(f"{message.speaker}:{message.text}" for message in messages) == expected, mode


@given(
    st.lists(
        st.sampled_from(["Ann", "bob", ":", " ", "\n", "\u2028", "\x1c", "[", "]", "*", "- ", "hi", "\U0001f600"])
    ),
    st.sampled_from(NAMES),
    st.sampled_from(["ping-pong", "burst"]),
)
def test_whatever_random_weights_write_can_be_read(parts: list[str], speaker: str, mode: Any) -> None:
    text = "".join(parts)
    messages = read_messages(text, NAMES, speaker, mode)
    assert {message.speaker for message in messages} <= set(NAMES)
    assert all(message.text == " ".join(message.text.split()) != "" for message in messages)
    if mode == "ping-pong":
        assert all(first.speaker != second.speaker for first, second in pairwise(messages))
    read_topics(text)


def requests(pseudo: dict[str, Any], speakers: str = "", **fields: Any) -> Any:
    """The requests to a chat model and to a completion model, after messages of Ann (a) and Bob (b)."""
    history = [Utterance(speaker={"a": "Ann", "b": "Bob"}[who], text=f"message {who}") for who in speakers]
    stimulus = ConversationStimulus(id="c", task="conversation", names=NAMES, history=history, **fields)
    draw = Draw(1, options={"speaker": "B", "pseudo": pseudo})
    sampling = Sampling(0.7, frequency_penalty=2.0, presence_penalty=1.0, max_tokens=5, stops=("Ann:",))
    chat = pseudo_dialogue.pseudo_chat_request(stimulus, draw, history, sampling, "Bob is a cook.")
    return chat, pseudo_dialogue.pseudo_completion_request(stimulus, draw, history, sampling)


def test_topics_are_requested_beside_the_known() -> None:
    chat, continued = requests({"topics": 7, "known": ["tea", "the sea"]})
    for text in (chat.messages[-1].text, continued.prompt):
        assert "7 different topics" in text
        assert "tea; the sea" in text
    assert chat.messages[0].text == "Bob is a cook."
    assert continued.prompt.endswith("\n\n1.")


@pytest.mark.parametrize(
    ("speakers", "fields", "begins"),
    [("", {}, "Bob"), ("ab", {}, "Ann"), ("abbba", {}, "Bob"), ("", {"who_starts": "A"}, "Ann")],
)
def test_a_dialogue_goes_on_with_the_other_speaker(speakers: str, fields: dict[str, str], begins: str) -> None:
    for mode in ("ping-pong", "burst"):
        chat, continued = requests({"topic": "snow", "left": 11}, speakers, mode=mode, **fields)
        for text in (chat.messages[-1].text, continued.prompt):
            assert "next 11 turns, in which they talk about snow. " in text
            assert f"{begins} begins." in text
            assert ("several short messages" in text) == (mode == "burst")
            assert ("Ann: message a" in text) == ("a" in speakers)
        assert continued.prompt.endswith(f"\n\n{begins}:")
        messages = read_messages(pseudo_dialogue.written(continued, " brr\nAnn: yes"), NAMES, "Ann", mode)
        assert messages[0].speaker == begins


def test_there_is_room_for_the_dialogue_and_no_penalty_on_names() -> None:
    for left, tokens in ((11, 704), (100, 4096)):
        assert {request.sampling for request in requests({"topic": "t", "left": left})} == {
            Sampling(0.7, max_tokens=tokens)
        }
