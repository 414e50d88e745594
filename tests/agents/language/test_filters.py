"""Each filter at its threshold and against a plain, slow account of it; what they never do, on any text."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.language.filters.policies import (
    CHAT,
    COMPLETION,
    FILTERS,
    MEASURE,
    FilterSettings,
    Policy,
    judge_conversation,
    papers_policy,
)
from agents.language.filters.texts import disclosures, farewell
from agents.sentence_boundaries import sentences
from agents.stimuli import Family
from agents.word_boundaries import words

# Any text at all, lone surrogates included, and texts that are full of what the filters look for.
ANY = st.text(st.characters(exclude_categories=()), max_size=200)
TOKENS = (
    "A: B: bye I'm an AI as a bot , . ... ? ! … 。 Dr. e.g. J.D. 1. 2) - * : “ ” ' # <|end|> I have to go "
    "see you later language model 3.14 no 我"
)
RICH = st.lists(st.sampled_from([*TOKENS.split(), "\n"]), max_size=30).map(" ".join)
Messages = list[tuple[str, str]]


def only(name: str) -> Policy:
    return Policy.model_validate(dict.fromkeys(FILTERS, "off") | {name: "flag"})


def finding(name: str, text: str, speaker: str = "B", prompt: str = "", **thresholds: int) -> str | None:
    """What one filter finds in one message of a conversation of A and B."""
    limits = FilterSettings.model_validate(thresholds)
    names = ["A", "B"]
    prompts = {speaker: prompt}
    judged = judge_conversation([(speaker, text)], only(name), limits, names=names, prompts=prompts)
    return judged[0].found if judged else None


def turns(name: str, messages: Messages, **thresholds: int) -> dict[int, str]:
    """The findings of one filter by message, each judged in its turn."""
    limits = FilterSettings.model_validate(thresholds)
    findings = {}
    for i in range(len(messages)):
        for judgement in judge_conversation(messages[: i + 1], only(name), limits, last_only=True):
            findings[i] = judgement.found
    return findings


# words and sentences


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hi! How are you?", ["Hi!", "How are you?"]),
        ("Well... my son was accepted", ["Well... my son was accepted"]),
        ("Dr. Smith met Mrs. Jones. They spoke.", ["Dr. Smith met Mrs. Jones.", "They spoke."]),
        ("by J.D. Salinger. Or J. R. R. Tolkien.", ["by J.D. Salinger.", "Or J. R. R. Tolkien."]),
        ("pets, e.g. cats, i.e. Tom. ok", ["pets, e.g. cats, i.e. Tom.", "ok"]),
        ("it is 5 p.m. now. At 6 p.m. We go", ["it is 5 p.m. now.", "At 6 p.m.", "We go"]),
        ("cats, dogs etc. are fun. Cats etc. They", ["cats, dogs etc. are fun.", "Cats etc.", "They"]),
        ("No. I am not. See no. 5 there", ["No.", "I am not.", "See no. 5 there"]),
        ("pi is 3.14, see a.example.org! ok", ["pi is 3.14, see a.example.org!", "ok"]),
        ('He said "Stop!" Then left. (Really.) Yes', ['He said "Stop!"', "Then left.", "(Really.)", "Yes"]),
        ("今天很好。你呢？我也是！", ["今天很好。", "你呢？", "我也是！"]),
        ("one line\nanother\r\n\n third", ["one line", "another", "third"]),
    ],
)
def test_sentences(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It’s a well-known 'fact', isn't it?", ["it's", "a", "well-known", "fact", "isn't", "it"]),
        ("STRASSE straße Ｆｕｌｌ cafe\u0301", ["strasse", "strasse", "full", "café"]),
        ("at 10:30, $1,000.50 or 3.14. 5", ["at", "10:30", "1,000.50", "or", "3.14", "5"]),
        (":) ... __ 👍", []),
    ],
)
def test_words(text: str, expected: list[str]) -> None:
    assert words(text) == expected


# repetition


def test_repeated_sentence_at_its_thresholds() -> None:
    texts = ["I like it a lot. Absolutely.", "Absolutely! Why?", "well, I LIKE it", "i like it, a lot!!", "Absolutely."]
    said = [("A", text) for text in texts]
    assert turns("repeated_sentence", said, repeated_sentence=2) == {3: "“i like it, a lot!!” in 2 messages from A"}
    assert turns("repeated_sentence", said, repeated_sentence=3) == {}
    assert turns("repeated_sentence", said, repeated_sentence=2, sentence_words=6) == {}
    assert list(turns("repeated_sentence", said, repeated_sentence=3, sentence_words=1)) == [4]
    assert turns("repeated_sentence", [("A", "I like it a lot. I like it a lot.")], repeated_sentence=2) == {}


def test_repetitions_of_the_other_do_not_count() -> None:
    texts = ["I like it a lot.", "Do you like it too?"]
    alternating = [("AB"[i % 2], texts[i // 2 % 2]) for i in range(6)]
    assert list(turns("repeated_sentence", alternating, repeated_sentence=2)) == [4, 5]
    exchanged = [("A", "a"), ("B", "b"), ("A", "c"), ("B", "a"), ("A", "b")]
    assert turns("repeated_block", exchanged) == {}
    assert list(turns("repeated_block", [*exchanged, ("B", "x"), *exchanged[:2]])) == [7]


@given(st.lists(st.tuples(st.sampled_from("AB"), st.sampled_from("abc")), max_size=12), st.integers(1, 4))
def test_repeated_block_is_what_comparing_all_blocks_finds(said: Messages, length: int) -> None:
    def block(end: int) -> Messages:
        return said[end - length + 1 : end + 1]

    assert sorted(turns("repeated_block", said, repeated_block=length)) == [
        end
        for end in range(length - 1, len(said))
        if any(block(earlier) == block(end) for earlier in range(length - 1, end - length + 1))
    ]


def test_same_message_counts_one_speaker_whatever_the_length() -> None:
    said = [("A", "Ok."), ("B", "ok"), ("A", "ok!"), ("B", "..."), ("A", "OK"), ("B", "..."), ("B", " ...")]
    assert turns("same_message", said) == {4: "“OK” 3 times from A", 6: "“...” 3 times from B"}
    assert turns("same_message", said, same_message=4) == {}


# one message


def test_empty() -> None:
    for text in ("", "  \n", "...", "…", " . . ", "—", '"..."', "\u200b", "\u3000。", "*", "\ufeff\u2800"):
        assert finding("empty", text) is not None, text
    for text in ("?", ":)", "k", "...ok", "👍", "#####", "5"):
        assert finding("empty", text) is None, text
    assert finding("empty", "...ok", empty=2) is None
    assert finding("empty", "...ok", empty=3) == "“...ok”"


FIVE = "one two, three - four five!"
PROMPT = "John greets Alice. Both ask long questions, give long responses and often disagree."


@pytest.mark.parametrize(
    ("name", "text", "limit", "expected"),
    [
        ("too_long", FIVE, 5, None),
        ("too_long", FIVE, 4, "5 words, of at most 4"),
        ("too_short", FIVE, 5, None),
        ("too_short", "ok", 2, "1 word, of at least 2"),
        ("word_loop", "I am, i AM, I am. So", 3, "“i am” 3 times in a row"),
        ("word_loop", "a b c a b c a b c", 3, "“a b c” 3 times in a row"),
        ("word_loop", " ".join([*"abcdefghijklmnopqrstu"] * 2), 2, None),
        ("word_loop", "哈哈哈哈", 4, "“哈” 4 times in a row"),
        ("word_loop", "हाहाहाहा", 4, None),  # laughter, a word
        ("word_loop", "नानी ने ना ना कहा", 4, None),
        ("word_loop", "हाँ हाँ हाँ हाँ", 4, "“हाँ” 4 times in a row"),
        ("too_long", " ".join(["मुझे चाय बहुत पसंद है और तुम क्या पीते हो"] * 5), 50, None),
        ("too_long", "كِتَابٌ جَمِيلٌ جِدًّا", 2, "3 words, of at most 2"),
        ("too_short", "தமிழ் பேசுகிறேன்", 3, "2 words, of at least 3"),
        ("list", "Sure:\n- apples\n- pears\n* plums", None, "3 lines with bullets or numbers"),
        ("list", "1. apples\n2) pears\n(3) plums", None, "3 lines with bullets or numbers"),
        ("list", "Kinds:\n\napples\npears\n...\nplums", None, "3 items on lines of their own"),
        ("list", "try 1. apples 2. pears 3. plums", None, "items numbered from 1 to 3"),
        ("list", "apples, pears, plums, cherries, figs, dates, nuts, and kiwis", None, "8 things named in a row"),
        ("list", "apples, pears, plums, cherries, figs, dates, nuts and kiwis", None, None),
        ("list", "apples, pears, plums, I really do not like figs, dates, nuts, kiwis, limes", None, None),
        ("list", "苹果、梨、李子、樱桃、枣、橙、桃、杏", None, "8 things named in a row"),
        ("other_speaker", "I am fine. A: Great! A: And you?", 2, "“A:” 2 times"),
        ("other_speaker", "I am fine. A: Great! A: And you?", 3, None),
        ("other_speaker", "A: hi", 1, "“A:” once"),
        ("other_speaker", "B: hi", 1, None),
        (
            "prompt_echo",
            "both ASK long questions: give long jokes",
            6,
            "“both ask long questions give long” of the prompt",
        ),
        ("prompt_echo", "both ASK long questions: give long jokes", 7, None),
        ("prompt_echo", PROMPT, 14, None),
        ("prompt_echo", "B: I am fine", 8, "the label “B:”"),
        ("prompt_echo", "fine <|im_end|>", 8, "“<|im_end|>” of a chat template"),
        ("prompt_echo", "### Response: hi", 8, "“### Response:” of a chat template"),
        ("prompt_echo", "I live in [your city]", 8, "the placeholder “[your city]”"),
        ("prompt_echo", "well.\nUser: hi", 8, "the label “user:”"),
        ("prompt_echo", "a <3 for you", 8, None),
    ],
)
def test_a_message_at_its_limits(name: str, text: str, limit: int | None, expected: str | None) -> None:
    limits: dict[str, Any] = {} if limit is None else {name: limit}
    assert finding(name, text, prompt=PROMPT, **limits) == expected


def split(texts: str) -> list[str]:
    return [text.strip() for text in texts.split("|")]


DISCLOSURES = """
As an AI language model, I cannot eat. What about you? | well, I’m just a chatbot |
I am a large language model trained by Google | im actually a bot lol | As a machine I never sleep |
I'm not human, but I try | I was created by OpenAI to help | I'm ChatGPT! |
I don't have personal opinions on that | my knowledge cutoff is 2023 |
I am Claude, an AI assistant made by Anthropic
"""
NO_DISCLOSURES = """
I'm an AI researcher | I'm Tom, an AI researcher from Ohio | as a machine operator I know |
As a machine, it is great | do you think I'm a bot? | wait, I'm a bot? | what if I'm an AI |
I feel like I'm a robot at work | I'm not a bot | my training is going well |
I am not a person who likes rain
"""


def test_partner_echo() -> None:
    line = "However, I must say that I am no specialist of reefs, sorry."
    talk = [("Ann", line), ("Bob", "Oh."), ("Ann", "Yes."), ("Bob", f"Hm, {line.upper()}")]
    [echo] = judge_conversation(talk, Policy(**dict.fromkeys(FILTERS, "off") | {"partner_echo": "flag"}))
    assert (echo.turns, echo.found) == ((3,), "“however i must say that i am no” of the other speaker")
    for other in ([*talk[:3], ("Ann", line)], [*talk[:3], ("Bob", "However, I must say that I am")], talk[:1]):
        assert "partner_echo" not in [each.filter for each in judge_conversation(other, MEASURE)]
    far = [*talk[:3], *[("Ann", "Yes."), ("Bob", "Oh.")] * 2, talk[3]]
    assert "partner_echo" not in [each.filter for each in judge_conversation(far, MEASURE)]


def test_cut_off() -> None:
    talk = [("Ann", "It is late. I'm al"), ("Bob", "Is it?!"), ("Ann", "yes"), ("Bob", "“Well, it is.” (laughs)")]
    judged = {each.filter: each for each in judge_conversation(talk, MEASURE, ended_at_limit=[0, 1, 3])}
    assert (judged["cut_off"].turns, judged["cut_off"].found) == ((0,), "“I'm al” at the limit of tokens")
    assert "cut_off" not in [each.filter for each in judge_conversation(talk, MEASURE)]


def test_self_disclosure() -> None:
    for text in split(DISCLOSURES):
        assert disclosures(text), text
    for text in split(NO_DISCLOSURES):
        assert not disclosures(text), text
    twice = "I'm an AI. I have no body. I am a chatbot."
    assert finding("self_disclosure", twice, self_disclosure=2) == "“i'm an ai”"
    assert finding("self_disclosure", twice, self_disclosure=3) is None


FAREWELLS = """
you win. I'm done. Bye. | thanks for the chat, bye :D | Well, I should probably get going. |
It was great talking to you. | sorry, gotta run | Have a great day! | talk to you soon | I'm leaving. |
good night | let's end this conversation here. | I have to go see you tomorrow |
Well, it's been great chatting! | anyway its been fun chatting with you today, I learned a lot |
same here, take care | Same to you, I hope you have a good night. | thanks for chatting, enjoy your evening! |
I enjoyed chatting! | I had a good time chatting with you | It was a nice chat | You too bye |
I have to say goodbye
"""
NO_FAREWELLS = """
I have to go to work every day | I have to go talk to my boss | he said goodbye and left |
do you think I have to go? | I hope to see you there at five | have you had a good day |
good night's sleep is important | it was great talking to my mother | well, take care of my dog |
do you have a good one to recommend? | we had a great day and a good night |
they play 16 games, bye weeks and all | they took so long | I enjoyed talking about dogs with her |
nice talking points! | I enjoyed the conversation between the two actors |
we saw them on the farewell tour, good night sleep after it | Great chat!
"""


def test_farewell() -> None:
    for text in split(FAREWELLS):
        assert farewell(text) is not None, text
    for text in split(NO_FAREWELLS):
        assert farewell(text) is None, text


@pytest.mark.parametrize(
    ("last", "total", "early"), [(2, 5, (2,)), (1, 5, (2, 3)), (2, 6, (2, 3, 4)), (2, 9, (2, 3, 4)), (5, 5, ())]
)
def test_a_farewell_is_early_before_the_last_messages_only(last: int, total: int, early: tuple[int, ...]) -> None:
    messages = [("AB"[i % 2], text) for i, text in enumerate(["hi", "ho", "Bye!", "Bye!", "Bye!"])]
    judged = judge_conversation(messages, only("early_exit"), FilterSettings(early_exit=last), total=total)
    assert [turn for judgement in judged for turn in judgement.turns] == [*early]


# policies


@pytest.mark.parametrize(
    ("kind", "first", "second", "policy", "sampled_again"),
    [
        ("MM", "completion", "completion", COMPLETION, {"repeated_sentence", "repeated_block", "early_exit"}),
        ("MM", "chat", "chat", CHAT, {"empty"}),
        ("MM", "blenderbot", "blenderbot", MEASURE, set()),
        ("MM", "completion", "chat", MEASURE, set()),
        ("HM", "completion", "completion", MEASURE, set()),
    ],
)
def test_policies_of_the_papers(
    kind: Any, first: Family, second: Family, policy: Policy, sampled_again: set[str]
) -> None:
    assert papers_policy(kind, first, second) is policy
    expected = dict.fromkeys(FILTERS, "flag") | dict.fromkeys(sampled_again, "resample_conversation")
    assert policy.model_dump() == expected


def test_missing_messages_are_an_early_exit() -> None:
    said = [("A", "hi"), ("B", "what is up?"), ("A", "bye")]
    assert judge_conversation([("A", "bye")], MEASURE, total=3, last_only=True) == []
    assert judge_conversation(said, COMPLETION) == judge_conversation(said, COMPLETION, total=3) == []
    [judgement] = judge_conversation(said, COMPLETION, total=6)
    assert (judgement.found, judgement.turns) == ("“bye”, 3 messages before the end; 3 of 6 messages", (2,))
    assert judgement.rejected
    assert [each.found for each in judge_conversation([], MEASURE, total=1)] == ["0 of 1 messages"]


def test_a_prompt_belongs_to_one_speaker() -> None:
    text = "you are a careful and rather reserved person"
    for speaker, is_echo in (("A", True), ("B", False)):
        assert bool(judge_conversation([("A", text)], only("prompt_echo"), prompts={speaker: text})) == is_echo


TEXT = ANY | RICH | st.sampled_from(["", "One two three four.", "ok", "Bye!", "A: no no no no"])


@given(st.lists(st.tuples(st.sampled_from("AB"), TEXT), max_size=8), ANY | st.just("I have to go see you later bye"))
@settings(max_examples=100)
def test_any_conversation_is_judged_as_its_turns_are(messages: Messages, prompt: str) -> None:
    limits = FilterSettings(prompt_echo=3)
    about: Any = {"names": ["A", "B", prompt], "prompts": {"A": prompt, "B": prompt}, "total": len(messages)}
    findings: dict[str, dict[int, str]] = {}
    for i in range(len(messages)):
        for judgement in judge_conversation(messages[: i + 1], MEASURE, limits, last_only=True, **about):
            findings.setdefault(judgement.filter, {})[i] = judgement.found
    judged = judge_conversation(messages, MEASURE, limits, **about)
    assert {each.filter: each.turns for each in judged} == {name: tuple(turns) for name, turns in findings.items()}
    assert all(each.found in findings[each.filter].values() for each in judged)
    assert all(each.found and len(each.found) < 200 and len(each.found.splitlines()) == 1 for each in judged)
