"""The agent ``eliza``: its rules worked by hand, and conversations against what may never happen."""

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.contract import Draw
from agents.language.eliza import SCRIPT, ElizaAgent, Script
from agents.language.filters.policies import MEASURE, FilterSettings, judge_conversation
from agents.stimuli import ConversationStimulus, Utterance

PAPERS_TOPICS = [
    "fashion", "politics", "books", "sports", "general entertainment", "music", "science", "technology", "movies",
    "food",
]  # fmt: skip
WRITTEN = json.loads(SCRIPT.read_text("utf-8"))


def agent():
    made = ElizaAgent(ElizaAgent.Settings(), "eliza")
    made.open()
    made.load("cpu")
    return made


ELIZA = agent()


def stimulus(said=(), **fields):
    history = [Utterance(speaker=speaker, text=text, at=None) for speaker, text in said]
    return ConversationStimulus(**{"id": "c", "task": "conversation", "meta": {}, "history": history, **fields})


def ask(said=(), speaker=None, seed=1, made=ELIZA, **fields):
    options = {} if speaker is None else {"speaker": speaker, "turn": len(said)}
    [reply] = made.respond([made.prepare(stimulus(said, **fields))], [Draw(seed=seed, options=options)])
    assert reply.answer.finish == "stop"
    return reply.answer.text


def play(partner, exchanges, seed=1, **fields):
    """A's messages are the agent's, B's those of ``partner``: a function of what was said, or the agent too (None)."""
    said = []
    for turn in range(exchanges):
        side = "AB"[turn % 2]
        is_eliza = side == "A" or partner is None
        said.append((side, ask(said, side, seed * 1000 + turn, **fields) if is_eliza else partner(said)))
    return said


def answers(*texts):
    """What is said to each of A's texts; A begins."""
    said = []
    for text in texts:
        said.append(("A", text))
        said.append(("B", ask(said, "B")))
    return [text for speaker, text in said if speaker == "B"]


def plainly(text):
    return re.sub(r"[\W_]+", " ", text.casefold()).strip()


@pytest.mark.parametrize(
    ("pattern", "text", "parts"),
    [
        # "It seems that you hate me", the example of the 1966 paper, page 37, as the answerer turns it round.
        ("0 I 0 you", "it seems that I hate you", ["it seems that", "I", "hate", "you"]),
        ("0 1 0", "one two three", ["", "one", "two three"]),
        ("0 2", "one two three", ["one", "two three"]),
        ("0 2", "one", None),
        ("0 a 0 a 0", "x a y z a", ["x", "a", "y z", "a", ""]),
        ("a b", "a b c", None),
        ("0 (a|b) 1", "x b y", ["x", "b", "y"]),
        ("0 your 0 /family 0", "your old sister your aunt sings", ["", "your", "old", "sister", "your aunt sings"]),
        ("0", "", [""]),
        ("1", "", None),
    ],
)
def test_decomposition_by_hand(pattern, text, parts):
    match = Script(WRITTEN).decomposition(pattern).fullmatch("".join(f"{word} " for word in text.split()))
    assert (match and [part.strip() for part in match.groups()]) == parts


@pytest.mark.parametrize(
    ("text", "turned"),
    [
        ("I'm sure you're wrong", "you are sure I am wrong"),
        ("You hate me", "I hate you"),
        ("are you cold", "am I cold"),
        ("I was there when you were", "you were there when I was"),
        ("is that yours or mine", "is that mine or yours"),
        ("does it come to you often", "does it come to me often"),
        ("I’ve seen Paris", "you have seen Paris"),
        ("MY dog can't swim", "your dog can not swim"),
    ],
)
def test_a_clause_is_turned_round(text, turned):
    script = Script(WRITTEN)
    [clause] = script.clauses(text)
    assert script.turned(clause).strip() == turned


def test_the_script_holds_together():
    """Every slot is an element, every link leads to a keyword, every class is there."""
    script = Script(WRITTEN)
    rules = [rule for entry in WRITTEN["keywords"] for rule in entry["rules"]] + WRITTEN["memory"]["rules"]
    for pattern, texts in rules:
        elements = script.decomposition(pattern).groups
        for text in texts:
            assert all(1 <= int(slot) <= elements for slot in re.findall(r"\((\d+)\)", text)), text
            assert not text.startswith("=") or text[1:] in script.keywords


@pytest.mark.parametrize(
    ("text", "reply"),
    [
        ("Men are all alike.", "In which way, exactly?"),  # alike (10) before are (0)
        ("They are always late.", "Could you give me one particular instance?"),  # always (1)
        ("I am unhappy, it is true.", "It pains me to hear that you are unhappy."),  # to the first comma; class
        ("Well, my mother takes care of me.", "Let me hear more of your family."),  # what stands before goes
        ("My mother says that I dreamed of computers", "Are machines something that troubles you?"),  # 50
        ("You are not very friendly", "On what grounds do you take me to be not very friendly?"),
        ("I remember the sea", "Does the sea come back to you often?"),
        ("You remind me of her.", "In which way, exactly?"),  # a link to alike
        ("Perhaps you remind me of her.", "You do not sound quite certain."),  # of equal ranks the first
        ("I can't sleep", "How do you know that you can not sleep?"),
        ("Why don't you help?", "Do you suppose that I do not help?"),
        ("I remember " + "very " * 11, "What else comes back along with very?"),
        ("xyzzy", "I am not certain that I follow you fully."),
        ("", "I am not certain that I follow you fully."),
    ],
)
def test_replies_by_hand(text, reply):
    [found] = answers(text)
    assert found == reply or "very very" in text  # too much is not said again
    assert "very very" not in found


def test_reassemblies_are_used_in_turn():
    assert answers("I remember it.", "I remember rain.", "I remember her.", "I remember you.", "I remember Ann.")[
        :4
    ] == [
        "Does it come back to you often?",
        "What else comes back along with rain?",
        "What has brought her to mind today?",
        "Does anything about our talk recall me?",
    ]


def test_the_memory_is_looked_into_in_the_fourth_reply_without_a_keyword():
    said = answers("My boat is lost", "hm", "hm", "hm", "hm", "hm", "hm", "hm")
    assert [number for number, text in enumerate(said) if "boat" in text] == [0, 3]  # its own keyword, once recalled
    assert "your boat is lost" in said[3]
    assert "boat" not in " ".join(answers("The boat is lost", "hm", "hm", "hm", "hm"))


@pytest.mark.parametrize("topic", [*PAPERS_TOPICS, "beekeeping", "日本"])
def test_the_first_message_greets_and_names_the_topic(topic):
    text = ask(speaker="A", topic=topic, seed=3)
    assert topic in text
    assert text.startswith(("How do you do", "Good day"))
    assert len({ask(speaker="A", topic=topic, seed=seed) for seed in range(20)}) > 1


@pytest.mark.parametrize("topic", [None, "x" * 200, "a\nb", "{topic} {0}", "?"])
def test_an_unspeakable_topic_does_no_harm(topic):
    said = play(None, 30, topic=topic)
    assert all("xxx" not in text and "\n" not in text for _, text in said)


@pytest.mark.parametrize(
    ("said", "fields", "speaker", "answers_sad"),
    [
        ([("A", "I am sad"), ("B", "hm")], {}, "A", False),
        ([("A", "I am sad"), ("B", "hm"), ("A", "I am sad")], {}, "B", True),
        ([("A", "I am sad")], {}, None, True),  # whose turn it is when nobody says so
        ([("Ann", "I am sad")], {"names": ("Ann", "Bo")}, "B", True),
        ([("A", "I am sad")], {"names": ("Ann", "Bo")}, "B", True),  # by letter
        ([("A", "I am sad")], {"names": ("B", "A")}, "A", True),  # names that are the other's letters
        ([], {"opener": "I am sad"}, "B", True),
        ([], {"opener": "I am sad", "who_starts": "B"}, "B", False),
        ([("A", "I am sad")], {"opener": "I am sad"}, "B", True),  # which the history holds
    ],
)
def test_the_partners_last_message_is_answered(said, fields, speaker, answers_sad):
    assert ("to hear that you are sad" in ask(said, speaker, **fields)) == answers_sad


# What may never happen.

PARTNERS = {
    "itself": None,
    "one sentence": lambda said: "I am sad because my sister always hates music.",
    "an echo": lambda said: said[-1][1],
    "nothing": lambda said: "",
    "Chinese": lambda said: "你好吗？我喜欢音乐。",
    "a question": lambda said: "Why?",
}


def repeated(said):
    """A's messages that were said before, and its sentences of at least four words that were, by anyone."""
    found, messages, spoken = [], set(), set()
    for speaker, text in said:
        parts = [plainly(sentence) for sentence in re.split(r"[.!?…\n。！？]+", text)]
        long = {part for part in parts if len(part.split()) >= 4}
        if speaker == "A" and (plainly(text) in messages or long & spoken):
            found.append(text)
        messages.add(plainly(text))
        spoken |= long
    return found


@pytest.mark.parametrize("partner", PARTNERS)
def test_nothing_is_said_twice_in_100_exchanges(partner):
    said = play(PARTNERS[partner], 100, topic="music")
    assert repeated(said) == []
    assert all(text.strip() and len(text.split()) <= 30 for _, text in said[::2])


def test_words_never_run_out():
    assert repeated(play(lambda said: "hm", 700, topic="food")) == []


@settings(max_examples=40)
@given(text=st.text(max_size=300), topic=st.none() | st.text(min_size=1, max_size=40).filter(str.strip))
def test_any_text_is_answered(text, topic):
    assert ask([("A", "Hello"), ("B", text)], "A", topic=topic).strip()


@pytest.mark.parametrize(
    "text", ["a", "a'", "my ", ".", "I am, ", "you are ", "because ", "é\u0301", "my sister ", "\n"]
)
def test_the_longest_messages_are_answered(text):
    message = (text * 100_000)[:100_000]
    assert len(ask([("A", message), ("B", "Go on"), ("A", message)], "B").split()) <= 30


def test_a_turn_is_a_function_of_the_history_and_the_seed_alone():
    """Each turn asked of another instance, in a batch with others and backwards, as it was played."""
    said = play(None, 24, topic="science")
    turns = list(reversed(range(24)))
    draws = [Draw(seed=1000 + turn, options={"speaker": "AB"[turn % 2], "turn": turn}) for turn in turns]
    replies = agent().respond([stimulus(said[:turn], topic="science") for turn in turns], draws)
    assert [reply.answer.text for reply in replies] == [said[turn][1] for turn in turns]


@pytest.mark.parametrize("topic", PAPERS_TOPICS)
def test_the_papers_filters_find_nothing_in_a_conversation_with_itself(topic):
    """Repeated sentences and blocks, early exits, lists, empty and short replies."""
    said = play(None, 48, topic=topic)
    assert judge_conversation(said, MEASURE, FilterSettings(), total=48) == []
