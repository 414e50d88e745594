"""The agent ``eliza``: its rules worked by hand, and conversations against what may never happen."""

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.contract import Draw
from agents.language.eliza import SCRIPT, ElizaAgent, Script
from agents.language.filters.policies import FILTERS, MEASURE, FilterSettings, Policy, judge_conversation
from agents.stimuli import ConversationStimulus, Utterance
from serving.conversations.scenario import TOPICS

WRITTEN = json.loads(SCRIPT.read_text("utf-8"))


REPETITIONS = Policy.model_validate(
    dict.fromkeys(FILTERS, "off") | {"repeated_sentence": "flag", "same_message": "flag"}
)
ELIZA = ElizaAgent(ElizaAgent.Settings(), "eliza")
ELIZA.open()
ELIZA.load("cpu")


def stimulus(history: Sequence[tuple[str, str]] = (), **fields: Any) -> ConversationStimulus:
    messages = [Utterance(speaker=speaker, text=text, at=None) for speaker, text in history]
    return ConversationStimulus(**{"id": "c", "task": "conversation", "meta": {}, "history": messages, **fields})


def ask(history: Sequence[tuple[str, str]] = (), speaker: str | None = None, seed: int = 1, **fields: Any) -> str:
    options = {} if speaker is None else {"speaker": speaker, "turn": len(history)}
    [reply] = ELIZA.respond([ELIZA.prepare(stimulus(history, **fields))], [Draw(seed=seed, options=options)])
    assert reply.answer.finish == "stop"
    return reply.answer.text


def play(partner: Callable[..., str] | None, exchanges: int, seed: int = 1, **fields: Any) -> list[tuple[str, str]]:
    """A's messages are the agent's, B's those of ``partner``: a function of the history, or the agent too (None)."""
    history: list[tuple[str, str]] = []
    for turn in range(exchanges):
        side = "AB"[turn % 2]
        is_ours = side == "A" or partner is None
        said = ask(history, side, seed * 1000 + turn, **fields) if is_ours else partner(history)
        history.append((side, said))
    return history


def answers(*texts: str) -> list[str]:
    """The replies to each of A's texts; A begins."""
    history = []
    for text in texts:
        history.append(("A", text))
        history.append(("B", ask(history, "B")))
    return [text for speaker, text in history if speaker == "B"]


def test_the_script_holds_together() -> None:
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
        ("Why don't you help?", "Do you suppose that I do not help?"),
        ("xyzzy", "I am not certain that I follow you fully."),
        ("", "I am not certain that I follow you fully."),
    ],
)
def test_replies_by_hand(text: str, reply: str) -> None:
    assert answers(text) == [reply]


def test_reassemblies_are_used_in_turn() -> None:
    replies = answers("I remember it.", "I remember rain.", "I remember her.", "I remember you.", "I remember Ann.")
    assert replies[:4] == [
        "Does it come back to you often?",
        "What else comes back along with rain?",
        "What has brought her to mind today?",
        "Does anything about our talk recall me?",
    ]


def test_the_memory_is_looked_into_in_the_fourth_reply_without_a_keyword() -> None:
    replies = answers("My boat is lost", "hm", "hm", "hm", "hm", "hm", "hm", "hm")
    assert [number for number, text in enumerate(replies) if "boat" in text] == [0, 3]  # its keyword, once recalled
    assert "your boat is lost" in replies[3]
    assert "boat" not in " ".join(answers("The boat is lost", "hm", "hm", "hm", "hm"))


@pytest.mark.parametrize("topic", ["general entertainment", "beekeeping", "日本"])
def test_the_first_message_greets_and_names_the_topic(topic: str) -> None:
    texts = {ask(speaker="A", topic=topic, seed=seed) for seed in range(20)}
    assert len(texts) > 1
    assert all(topic in text and text.startswith(("How do you do", "Good day")) for text in texts)


@pytest.mark.parametrize("topic", [None, "x" * 200, "a\nb", "{topic} {0}", "?"])
def test_an_unspeakable_topic_does_no_harm(topic: str) -> None:
    assert all("xxx" not in text and "\n" not in text for _, text in play(None, 30, topic=topic))


@pytest.mark.parametrize(
    ("history", "fields", "speaker", "answers_sad"),
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
def test_the_partners_last_message_is_answered(
    history: Sequence[tuple[str, str]], fields: dict[str, Any], speaker: str | None, answers_sad: bool
) -> None:
    assert ("to hear that you are sad" in ask(history, speaker, **fields)) == answers_sad


# What may never happen.

PARTNERS: dict[str, Callable[..., str] | None] = {
    "itself": None,
    "one sentence": lambda history: "I am sad because my sister always hates music.",
    "an echo": lambda history: history[-1][1],
    "nothing": lambda history: "",
    "Chinese": lambda history: "你好吗？我喜欢音乐。",
}


@pytest.mark.parametrize("partner", PARTNERS)
def test_nothing_is_repeated_in_100_exchanges(partner: str) -> None:
    history = play(PARTNERS[partner], 100, topic="music")
    assert all(text.strip() and len(text.split()) <= 30 for _, text in history[::2])
    limits = FilterSettings(repeated_sentence=2, same_message=2)
    turns = {turn for each in judge_conversation(history, REPETITIONS, limits) for turn in each.turns}
    assert [history[turn] for turn in sorted(turns) if turn % 2 == 0] == []


@settings(max_examples=40)
@given(text=st.text(max_size=300), topic=st.none() | st.text(min_size=1, max_size=40).filter(str.strip))
def test_any_text_is_answered(text: str, topic: str) -> None:
    assert ask([("A", "Hello"), ("B", text)], "A", topic=topic).strip()


def test_a_turn_is_a_function_of_the_history_and_the_seed_alone() -> None:
    """Each turn asked in a batch with others and backwards, as it was played."""
    history = play(None, 24, topic="science")
    turns = list(reversed(range(24)))
    draws = [Draw(seed=1000 + turn, options={"speaker": "AB"[turn % 2], "turn": turn}) for turn in turns]
    replies = ELIZA.respond([stimulus(history[:turn], topic="science") for turn in turns], draws)
    assert [reply.answer.text for reply in replies] == [history[turn][1] for turn in turns]


@pytest.mark.parametrize("topic", TOPICS)
def test_the_papers_filters_find_nothing_in_a_conversation_with_itself(topic: str) -> None:
    history = play(None, 48, topic=topic)
    assert judge_conversation(history, MEASURE.model_copy(update={"partner_echo": "off"}), total=48) == []
