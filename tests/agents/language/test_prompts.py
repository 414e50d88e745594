"""The prompts of text models: the papers' own words, and what holds for any conversation."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.contract import Draw
from agents.language import prompts
from agents.language.engines.text_request import ChatMessage, Sampling, TextRequest
from agents.stimuli import ConversationStimulus, Utterance, WordStimulus

Messages = list[tuple[str, str]]


def conversation(messages: Messages | None = None, **fields: Any) -> ConversationStimulus:
    history = [Utterance(speaker=speaker, text=text) for speaker, text in messages or []]
    row = {"id": "c", "task": "conversation", "history": history, **fields}
    return ConversationStimulus.model_validate(row, strict=False)


# models that continue a text


def continued(messages: Messages, left_out: int = 0, **options: Any) -> str:
    """The prompt for the next message of a completion model; Alice is A."""
    stimulus = conversation(messages, names=("Alice", "John"), topic="movies")
    request = prompts.completion_request(stimulus, Draw(1), stimulus.history[left_out:], Sampling(), **options)
    assert set(request.sampling.stops) == {"Alice:", "John:"}
    assert request.prompt is not None
    return request.prompt


def test_the_prompt_of_completion_models_is_the_papers() -> None:
    """2022 paper, S7.1.4; 2025 paper, Methods, lines 965 to 967."""
    assert continued([]) == (
        "John greets Alice. Alice starts to talk about movies. Both ask long questions, give long responses and often "
        "disagree. Then the topic changes. The conversation never ends. John: Hi! Alice:"
    )
    assert continued([], template="2025") == (
        "John greets Alice. Alice starts to talk about movies. Ask long questions, give long responses, and often "
        "disagree. Then the topic changes. The conversation never ends. John: Hi! Alice:"
    )


def test_the_prompt_grows_with_the_messages() -> None:
    opening = continued([])
    messages = [("Alice", "I like\nfilms."), ("John", "Why?")]
    assert continued(messages[:1]) == f"{opening} I like films. John:"
    assert continued(messages) == f"{opening} I like films. John: Why? Alice:"
    # As the papers' program, where a message that is generated begins with its own space.
    lines = continued(messages, separator="\n").split("\n")
    assert lines[0].endswith(" The conversation never ends. ")
    assert lines[1:] == ["John: Hi! ", "Alice: I like films.", "John: Why?", "Alice:"]
    # Who started stays so when the oldest messages are left out.
    assert continued(messages, 1) == f"{opening.removesuffix(' Alice:')} John: Why? Alice:"
    assert continued([("John", "Hm.")]).startswith("Alice greets John. John starts")


# word association


def test_word_association_is_asked_in_the_papers_words() -> None:
    """2022 paper, Table S6, with its stray semicolon."""
    examples = [("unfortunately", "too"), ("remember", "forget"), ("easy", "facilitate;")]
    free = WordStimulus(id="w", task="word_association", cue="dame")
    prompted = WordStimulus(id="w", task="word_association", cue="dame", version="prompted", examples=examples)
    pairs = (
        "Cue: unfortunately; Guess: too Cue: remember; Guess: forget Cue: easy; Guess: facilitate; Cue: dame; Guess:"
    )
    question = "Name a word that you associate with {}. Please provide your answer with only one word."
    assert prompts.completion_word(free, Sampling()).prompt == question.format("dame?").replace("?.", "?")
    assert prompts.chat_word(free, Sampling()).messages == (ChatMessage("user", question.format("[dame]")),)
    completion = prompts.completion_word(prompted, Sampling())
    assert (completion.prompt, completion.sampling.stops) == (pairs, ("Cue:",))
    chat = ChatMessage("user", f"Please complete the prompt below:\n{pairs}")
    assert prompts.chat_word(prompted, Sampling()).messages == (chat,)


# any conversation


def test_ages_are_the_programs_and_stay_while_a_conversation_goes_on() -> None:
    drawn, after = (
        [prompts.ages(conversation(messages), sample) for sample in range(2000)] for messages in ([], [("A", "x")])
    )
    assert drawn == after
    assert set(drawn) == {(a, b) for a in (18, 25, 32, 40, 50, 60, 70) for b in (max(18, a - 5), a, min(70, a + 5))}


# chat models, beside what the papers' programs send for the same messages

GREETER = (
    "John is sarcastic and witty and is having a natural conversation with a friend. They discuss food, but "
    "they don\u2019t always agree. Each person has their own perspective, and they challenge each other at times. They "
    "avoid excessive agreement and mutual praise. Be spare with punctuation. You can insert one spelling mistake. They "
    "ensure to change topics when the discussion slows down.  Keep answers short, text-like, and very informal."
    "**Do not ask a question at the end of your response. Conclude with a statement, reflection, or suggestion.**"
)
FRANK = [("Frank", "pasta again"), ("John", "why not Rice"), ("Frank", "no way")]
SYSTEM = (
    "Frank is pragmatic and reserved and is having a natural conversation with a friend. Avoid excessive agreement "
    "and looping. Keep answers under 20 tokens. Instead of repeating excitement, introduce new questions or "
    "challenge each other\u2019s views. If a topic has been discussed for too long, transition to a new subject "
    "smoothly.  Be spare with punctuation. You can insert one spelling mistake. Keep answers short, text-like, and "
    "very informal. DO NOT always end with questions."
)
ADDED = ["", "pasta again\nJohn:", "why not Rice\nFrank:", "no way\nJohn:"]


def friends(messages: Messages, **fields: Any) -> ConversationStimulus:
    """John greets, Frank says the first message."""
    personas = ("sarcastic and witty", "pragmatic and reserved")
    about = {"names": ("John", "Frank"), "personas": personas, "topic": "food", "who_starts": "B", **fields}
    return conversation(messages, **about)


def request(about: ConversationStimulus, program: prompts.Program, speaker: str, left_out: int = 0) -> TextRequest:
    draw = Draw(1, options={"speaker": speaker})
    return prompts.chat_request(about, draw, about.history[left_out:], Sampling(), program)


@pytest.mark.parametrize("count", range(4))
def test_both_friends_are_asked_with_the_same_two_texts(count: int) -> None:
    """Claude's are beside its requests."""
    asked = request(friends(FRANK[:count]), "gpt-4o", "BA"[count % 2])
    user = f"{GREETER}. \nA: Hi! \n:{''.join(ADDED[: count + 1])}"
    assert asked.messages == (ChatMessage("system", SYSTEM), ChatMessage("user", user))
    assert set(asked.sampling.stops) == {"John:", "Frank:"}


def test_llama_has_its_own_part_and_every_message_is_the_users() -> None:
    about = friends([("John", "ciao :)"), ("Frank", "hey"), ("John", "so food")], who_starts="A")
    asked = request(about, "llama-3.3", "B")
    system, *messages = asked.messages
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
    assert {message.role for message in messages} == {"user"}
    assert [message.text for message in messages] == ["ciao :)", "B: hey", "A: so food"]
    assert asked.sampling.stops == ("A:", "B:")
    cut = request(about, "llama-3.3", "B", left_out=1)
    assert [message.text for message in cut.messages[1:]] == ["B: hey", "A: so food"]
    assert "plays devil's advocate" in request(about, "llama-3.3", "A").messages[0].text


def test_a_judge_reads_both_answers_and_asks_first() -> None:
    messages = [("John", "how are you"), ("Frank", "1: fine, thank you\n2: I'm doing well")]
    first = request(friends([], who_starts="A"), "judge", "A")
    begin = ChatMessage("user", "Ask your first question.")
    assert first.messages[1:] == (begin,)
    assert "one is a human, the other a machine" in first.messages[0].text
    second = request(friends(messages, who_starts="A"), "judge", "A")
    chat = (ChatMessage("assistant", messages[0][1]), ChatMessage("user", messages[1][1]))
    assert second.messages[1:] == (begin, *chat)


BURST = [("John", "wait"), ("John", "pasta again?"), ("Frank", "why"), ("Frank", "not Rice"), ("John", "no way")]


@pytest.mark.parametrize(
    ("program", "texts", "stops"),
    [
        ("gpt-4o", [":wait\nJohn:pasta again?\nFrank:why\nFrank:not Rice\nJohn:no way\nFrank:"], ("John:",)),
        ("claude", [":wait\nA:pasta again?\nB:why\nB:not Rice\nA:no way\nB:"], ()),
        ("llama-3.3", ["wait", "A: pasta again?", "B: why", "B: not Rice", "A: no way"], ("A:",)),
        ("gpt-3.5", ["wait\npasta again?", "why\nnot Rice", "no way"], ()),
        ("persona", ["wait\npasta again?", "why\nnot Rice", "no way"], ()),
    ],
)
def test_a_burst_may_have_several_messages_in_a_row(
    program: prompts.Program, texts: list[str], stops: tuple[str, ...]
) -> None:
    about = friends(BURST, who_starts="A", mode="burst")
    asked = request(about, program, "B")
    assert asked.messages[0].text.endswith("You may send several short messages in a row. Each line is a message.")
    assert all(message.text.endswith(text) for message, text in zip(asked.messages[1:], texts, strict=True))
    assert asked.sampling.stops == stops
    ping_pong = request(about.model_copy(update={"mode": "ping-pong"}), program, "B")
    assert "several" not in ping_pong.messages[0].text


@pytest.mark.parametrize("program", ["gpt-4o", "claude", "llama-3.3"])
def test_nothing_unknown_stands_in_a_prompt(program: prompts.Program) -> None:
    about = conversation([("A", "hm")])
    texts = [message.text for message in request(about, program, "B").messages]
    assert "{" not in "".join(texts)
    assert "None" not in "".join(texts)
    assert any("something" in text for text in texts)
    assert " is having a natural conversation with a friend" in texts[0]


def test_a_user_may_give_other_parts() -> None:
    parts = ("{name} met {other}.", "{name} ({persona}, {age}) talks of {topic}.")
    about = friends([])
    draw = Draw(1, options={"speaker": "B"})
    system, begins = prompts.chat_instructions(about, draw, "gpt-4o", parts)
    assert begins == "John met Frank."
    assert system == f"Frank (pragmatic and reserved, {prompts.ages(about, 0)[1]}) talks of food."


HISTORIES = st.lists(st.tuples(st.sampled_from(["Ann", "Bob"]), st.text("xyz .", min_size=1, max_size=5)), max_size=12)


@settings(max_examples=100)
@given(HISTORIES, st.sampled_from(["Ann", "Bob"]))
def test_a_chat_begins_with_the_user_and_takes_turns(messages: Messages, assistant: str) -> None:
    about = conversation(messages, names=("Ann", "Bob"))
    chat = prompts.chat(about, assistant, about.history, "Hello.")
    assert [message.role for message in chat] == [("user", "assistant")[i % 2] for i in range(len(chat))]
    is_greeted = not messages or messages[0][0] == assistant
    assert (chat[0].text == "Hello.") if is_greeted else chat[0].text.startswith(messages[0][1])
    turns = chat[1 if is_greeted else 0 :]
    for role in ("assistant", "user"):
        texts = [text for speaker, text in messages if (speaker == assistant) == (role == "assistant")]
        assert "\n".join(turn.text for turn in turns if turn.role == role) == "\n".join(texts)
