"""What chat models are asked in a conversation, beside what the papers' programs send for the same messages."""

from __future__ import annotations

from typing import Any

import pytest

from agents.answers import TurnAnswer
from agents.contract import Draw
from agents.language import prompts
from agents.language.engines.text_request import Sampling, TextRequest
from agents.stimuli import ConversationStimulus, Utterance

GREETER = (
    "{0} is sarcastic and witty and is having a natural conversation with a friend. They discuss food, but "
    "they don\u2019t always agree. Each person has their own perspective, and they challenge each other at times. They "
    "avoid excessive agreement and mutual praise. Be spare with punctuation. You can insert one spelling mistake. They "
    "ensure to change topics when the discussion slows down. {1}Keep answers short, text-like, and very informal.{1}"
    "**Do not ask a question at the end of your response. Conclude with a statement, reflection, or suggestion.**"
)
SAID = [("Frank", "pasta again"), ("John", "why not Rice"), ("Frank", "no way")]
JOINED = {
    "gpt-4o": GREETER.format("John", " ").replace("informal. **", "informal.**") + ". \nA: Hi! \n:",
    "claude": GREETER.format("B", "").replace("informal.**", "informal. **") + "\nA: Hi!\n:",
}


def stimulus(said: list[tuple[str, str]], **fields: Any) -> ConversationStimulus:
    """John greets, Frank says the first message."""
    history = [Utterance(speaker=name, text=text) for name, text in said]
    given = {
        "names": ("John", "Frank"),
        "personas": ("sarcastic and witty", "pragmatic and reserved"),
        "topic": "food",
        "who_starts": "B",
        "history": history,
    }
    return ConversationStimulus(id="c", task="conversation", **{**given, **fields})


def asked(program: prompts.Program, count: int, **fields: Any) -> TextRequest:
    """The request for message number ``count``."""
    about = stimulus(SAID[:count], **fields)
    side = "BA"[count % 2]
    return prompts.chat_request(about, Draw(1, options={"speaker": side}), about.history, Sampling(), program)


@pytest.mark.parametrize("count", range(4))
def test_gpt_4o_is_asked_with_two_texts_that_are_the_same_for_both(count: int) -> None:
    request = asked("gpt-4o", count)
    system, user = request.messages
    assert (system.role, user.role) == ("system", "user")
    assert system.text == (
        "Frank is pragmatic and reserved and is having a natural conversation with a friend. Avoid excessive agreement "
        "and looping. Keep answers under 20 tokens. Instead of repeating excitement, introduce new questions or "
        "challenge each other\u2019s views. If a topic has been discussed for too long, transition to a new subject "
        "smoothly.  Be spare with punctuation. You can insert one spelling mistake. Keep answers short, text-like, and "
        "very informal. DO NOT always end with questions."
    )
    said = ["", "pasta again\nJohn:", "why not Rice\nFrank:", "no way\nJohn:"]
    assert user.text == JOINED["gpt-4o"] + "".join(said[: count + 1])
    assert set(request.sampling.stops) == {"John:", "Frank:"}


@pytest.mark.parametrize("count", range(4))
def test_claude_is_asked_about_a_and_b(count: int) -> None:
    request = asked("claude", count)
    system, user = request.messages
    assert system.text == (
        "A is pragmatic and reserved and is having a natural conversation with a friend. Avoid excessive agreement "
        "and looping. Keep answers under 20 tokens. If a topic has been discussed for too long, transition to a new "
        "subject smoothly. Be spare with punctuation. You can insert one spelling mistake. Keep answers short, "
        "text-like, and very informal. DO NOT always end with questions. No skipped turns."
    )
    said = ["", "pasta again\nB:", "why not Rice\nA:", "no way\nB:"]
    assert user.text == JOINED["claude"] + "".join(said[: count + 1])
    assert request.sampling.stops == ()


BURST = [("John", "wait"), ("John", "pasta again?"), ("Frank", "why"), ("Frank", "not Rice"), ("John", "no way")]
IN_BURST = {
    "gpt-4o": ["wait\nJohn:pasta again?\nFrank:why\nFrank:not Rice\nJohn:no way\nFrank:"],
    "claude": ["wait\nA:pasta again?\nB:why\nB:not Rice\nA:no way\nB:"],
    "llama-3.3": ["wait", "A: pasta again?", "B: why", "B: not Rice", "A: no way"],
    "gpt-3.5": ["wait\npasta again?", "why\nnot Rice", "no way"],
}
STOPS = {"gpt-4o": ("John:",), "claude": (), "llama-3.3": ("A:",), "gpt-3.5": ()}


@pytest.mark.parametrize("program", IN_BURST)
def test_in_a_burst_one_may_say_several_messages_in_a_row(program: prompts.Program) -> None:
    about = stimulus(BURST, who_starts="A", mode="burst")
    request = prompts.chat_request(about, Draw(1, options={"speaker": "B"}), about.history, Sampling(), program)
    system, *messages = request.messages
    assert system.text.endswith("You may send several short messages in a row. Each line is a message.")
    begins = {"gpt-4o": ":wait", "claude": ":wait"}.get(program)
    texts = [one.text if begins is None else one.text[one.text.rindex(begins) + 1 :] for one in messages]
    assert texts == IN_BURST[program]
    assert request.sampling.stops == STOPS[program]
    ping_pong = about.model_copy(update={"mode": "ping-pong"})
    request = prompts.chat_request(ping_pong, Draw(1, options={"speaker": "B"}), about.history, Sampling(), program)
    assert "several" not in request.messages[0].text


def test_a_judge_is_shown_both_answers_and_asks_first() -> None:
    said = [("John", "how are you"), ("Frank", "1: fine, thank you\n2: I'm doing well"), ("John", "what is ai")]
    for count in (0, 2):
        about = stimulus(said[:count], who_starts="A")
        request = prompts.chat_request(about, Draw(1, options={"speaker": "A"}), about.history, Sampling(), "judge")
        assert [(one.role, one.text) for one in request.messages[1:]] == [
            ("user", "Ask your first question."),
            *[("assistant", said[0][1]), ("user", said[1][1])][:count],
        ]
        assert "one is a human, the other a machine" in request.messages[0].text
        assert request.sampling.stops == ()


def test_llama_has_its_own_part_and_every_message_is_the_users() -> None:
    about = stimulus([("John", "ciao :)"), ("Frank", "hey"), ("John", "so food")], who_starts="A")
    request = prompts.chat_request(about, Draw(1, options={"speaker": "B"}), about.history, Sampling(), "llama-3.3")
    system, *messages = request.messages
    age = prompts.ages(about, 0)[1]
    assert system.text.split("\n") == [
        "",
        f"        B is {age} years old and is pragmatic and reserved. B is having a natural conversation with a friend "
        "about food. ",
        "        B speaks naturally, responds informally, and does NOT announce persona. ",
        "        B is opinionated and occasionally disagrees, but in a friendly way.",
        "        Do NOT restart the conversation or summarize past dialogue.",
        "        Do NOT use asterisks (`*`) to indicate actions or commentary. Keep answers under 20 tokens. Use "
        "abbreviations and punctuations as is representative of your age.",
        "        Do NOT use emojis",
        "        ONLY respond as B.",
        "        ",
    ]
    assert [(one.role, one.text) for one in messages] == [
        ("user", "ciao :)"),
        ("user", "B: hey"),
        ("user", "A: so food"),
    ]
    assert request.sampling.stops == ("A:", "B:")
    cut = prompts.chat_request(about, Draw(1, options={"speaker": "B"}), about.history[1:], Sampling(), "llama-3.3")
    assert [one.text for one in cut.messages[1:]] == ["B: hey", "A: so food"]
    other, _ = prompts.chat_instructions(about, Draw(1, options={"speaker": "A"}), "llama-3.3", None)
    assert "sometimes challenges opinions or plays devil's advocate" in other
    assert "occasionally disagrees" not in other


def test_llamas_greeting_is_message_1() -> None:
    greetings = [prompts.llama_greeting(stimulus([]), Draw(seed)) for seed in range(300)]
    texts = {one.answer.text for one in greetings if one is not None and isinstance(one.answer, TurnAnswer)}
    assert len(texts) == 20
    assert {"ciao :)", "Hi!Hi there", "Morning!"} < texts
    assert prompts.llama_greeting(stimulus(SAID[:1]), Draw(1)) is None


def test_ages_are_the_programs() -> None:
    found = {prompts.ages(stimulus([]), sample) for sample in range(2000)}
    expected = {(a, b) for a in (18, 25, 32, 40, 50, 60, 70) for b in (max(18, a - 5), a, min(70, a + 5))}
    assert found == expected


@pytest.mark.parametrize("program", ["gpt-4o", "claude", "llama-3.3"])
def test_what_is_not_known_is_not_said(program: prompts.Program) -> None:
    about = ConversationStimulus(id="c", task="conversation", history=[Utterance(speaker="A", text="hm")])
    texts = [one.text for one in prompts.chat_request(about, Draw(1), about.history, Sampling(), program).messages]
    assert "{" not in "".join(texts)
    assert "None" not in "".join(texts)
    assert any("something" in text for text in texts)
    assert all(
        " is having a natural conversation with a friend" in text for text in texts[: 1 + (program != "llama-3.3")]
    )


def test_parts_may_be_ones_own() -> None:
    parts = ("{name} met {other}.", "{name} ({persona}, {age}) talks of {topic}.")
    about, draw = stimulus([]), Draw(1, options={"speaker": "B"})
    system, begins = prompts.chat_instructions(about, draw, "gpt-4o", parts)
    assert begins == "John met Frank."
    assert system == f"Frank (pragmatic and reserved, {prompts.ages(about, 0)[1]}) talks of food."
