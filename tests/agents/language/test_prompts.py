"""What text models are asked: the papers' own words, and what holds for any conversation."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.contract import Draw
from agents.language import prompts
from agents.language.engines.text_request import ChatMessage, Sampling
from agents.stimuli import ConversationStimulus, Utterance, WordStimulus


def _conversation(**fields: Any) -> ConversationStimulus:
    return ConversationStimulus.model_validate({"id": "c", "task": "conversation", **fields}, strict=False)


def _said(*texts: tuple[str, str]) -> list[Utterance]:
    return [Utterance(speaker=speaker, text=text) for speaker, text in texts]


# the papers' prompts


def _continued(history: list[Utterance], left_out: int = 0, separator: str = " ") -> str:
    """The prompt for the next message of a completion model after ``history``; Alice is A."""
    stimulus = _conversation(names=("Alice", "John"), topic="movies", history=history)
    request = prompts.completion_request(stimulus, Draw(1), history[left_out:], Sampling(), separator)
    assert set(request.sampling.stops) == {"Alice:", "John:"}
    assert request.prompt is not None
    return request.prompt


def test_the_prompt_of_completion_models_is_the_papers_example() -> None:
    """2022 paper, S7.1.4."""
    assert _continued([]) == (
        "John greets Alice. Alice starts to talk about movies. Both ask long questions, give long responses and often "
        "disagree. Then the topic changes. The conversation never ends. John: Hi! Alice:"
    )


def test_the_template_that_the_2025_paper_prints() -> None:
    """2025 paper, Methods, lines 965 to 967."""
    asked = prompts.completion_request(
        _conversation(names=("Alice", "John"), topic="movies"), Draw(1), (), Sampling(), template="2025"
    )
    assert asked.prompt == (
        "John greets Alice. Alice starts to talk about movies. Ask long questions, give long responses, and often "
        "disagree. Then the topic changes. The conversation never ends. John: Hi! Alice:"
    )


def test_the_prompt_grows_with_what_is_said() -> None:
    opening = _continued([])
    history = _said(("Alice", "I like\nfilms."), ("John", "Why?"))
    assert _continued(history[:1]) == f"{opening} I like films. John:"
    assert _continued(history) == f"{opening} I like films. John: Why? Alice:"
    # As the papers' program, where a message that is generated begins with its own space.
    lines = _continued(history, separator="\n").split("\n")
    assert lines[0].endswith(" The conversation never ends. ")
    assert lines[1:] == ["John: Hi! ", "Alice: I like films.", "John: Why?", "Alice:"]
    # Who started stays so when the oldest messages are left out.
    assert _continued(history, 1) == f"{opening.removesuffix(' Alice:')} John: Why? Alice:"
    other = _continued(_said(("John", "Hm.")))
    assert other.startswith("Alice greets John. John starts")
    assert other.endswith("Alice: Hi! John: Hm. Alice:")


@pytest.mark.parametrize(
    ("cue", "examples", "expected"),
    [
        (
            "puppy",
            [("future", "past"), ("second", "first"), ("remember", "recall")],
            "Cue: future; Guess: past Cue: second; Guess: first Cue: remember; Guess: recall Cue: puppy; Guess:",
        ),
        # With its stray semicolon.
        (
            "discretion",
            [("unfortunately", "too"), ("remember", "forget"), ("easy", "facilitate;")],
            "Cue: unfortunately; Guess: too Cue: remember; Guess: forget Cue: easy; Guess: facilitate; "
            "Cue: discretion; Guess:",
        ),
    ],
)
def test_example_pairs_are_those_of_the_papers_table(cue: str, examples: list[tuple[str, str]], expected: str) -> None:
    """2022 paper, Table S6."""
    stimulus = WordStimulus(id="w", task="word_association", cue=cue, version="prompted", examples=examples)
    assert prompts.word_examples(stimulus) == expected


def test_the_question_is_the_papers() -> None:
    stimulus = WordStimulus(id="w", task="word_association", cue="dame")
    question = "Name a word that you associate with dame? Please provide your answer with only one word."
    assert prompts.completion_word(stimulus, Sampling()).prompt == question
    asked = "Name a word that you associate with [dame]. Please provide your answer with only one word."
    assert prompts.chat_word(stimulus, Sampling()).messages == (ChatMessage("user", asked),)


# templates


def test_a_line_that_names_something_unknown_is_left_out() -> None:
    template = "You are {name}.\nYou are {age} years old.\nTalk about {topic} with {other}, {name}."
    assert prompts.filled(template, name="Al", age=None, topic="{name}", other="B") == (
        "You are Al.\nTalk about {name} with B, Al."
    )
    assert prompts.filled(template, name="", age=3, topic="", other="B") == "You are 3 years old."
    assert prompts.filled("{unknown} {name}", name="x") == "{unknown} x"


# who speaks


@pytest.mark.parametrize(
    ("names", "history", "options", "expected"),
    [
        (None, [], {"speaker": "A", "turn": 0}, ("A", "B")),
        (None, [], {"speaker": "B", "turn": 0}, ("B", "A")),
        (("Ann", "Bob"), [], {"speaker": "B"}, ("Bob", "Ann")),
        (("Ann", "Bob"), [], {}, ("Ann", "Bob")),
        (("Ann", "Bob"), [("Ann", "x")], {}, ("Bob", "Ann")),
        (("Ann", "Bob"), [("Bob", "x")], {}, ("Ann", "Bob")),
        (("Ann", "Bob"), [("Ann", "x")], {"speaker": "A"}, ("Ann", "Bob")),
    ],
)
def test_who_is_asked(
    names: tuple[str, str] | None, history: list[tuple[str, str]], options: dict[str, Any], expected: tuple[str, str]
) -> None:
    stimulus = _conversation(names=names, history=_said(*history))
    assert prompts.speakers(stimulus, options) == expected


HISTORIES = st.lists(st.tuples(st.sampled_from(["Ann", "Bob"]), st.text("xyz .", min_size=1, max_size=5)), max_size=12)


@settings(max_examples=100)
@given(HISTORIES, st.sampled_from(["Ann", "Bob"]))
def test_a_chat_begins_with_the_user_and_takes_turns(history: list[tuple[str, str]], asked: str) -> None:
    messages = prompts.chat(asked, _said(*history), "Hello.")
    assert [one.role for one in messages] == [("user", "assistant")[i % 2] for i in range(len(messages))]
    own = not history or history[0][0] == asked
    assert (messages[0].text == "Hello.") if own else messages[0].text.startswith(history[0][1])
    whole = [one.text for one in messages[1 if own else 0 :]]
    assert "\n".join(whole) == "\n".join(text for _, text in history)
    for role, name in (("assistant", asked), ("user", ({"Ann", "Bob"} - {asked}).pop())):
        mine = "\n".join(one.text for one in messages[1 if own else 0 :] if one.role == role)
        assert mine == "\n".join(text for speaker, text in history if speaker == name)


# what is drawn once for a conversation


def test_what_is_drawn_for_a_conversation_stays_while_it_goes_on() -> None:
    choices = [f"Hi {number}" for number in range(50)]
    drawn = set()
    for sample in range(30):
        before = _conversation(names=("Ann", "Bob"))
        after = before.model_copy(update={"history": _said(("Ann", "x"))})
        assert prompts.ages(before, sample) == prompts.ages(after, sample)
        assert prompts.greeting(before, sample, choices) == prompts.greeting(after, sample, choices)
        drawn.add((prompts.ages(before, sample), prompts.greeting(before, sample, choices)))
    assert len(drawn) > 25


def test_a_greeting_has_the_topic_if_there_is_one() -> None:
    choices = ("Hi!\nDo you like {topic}?",)
    assert prompts.greeting(_conversation(topic="books"), 0, choices) == "Hi! Do you like books?"
    assert prompts.greeting(_conversation(), 0, choices) == "Hi!"
