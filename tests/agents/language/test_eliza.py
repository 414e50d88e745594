"""The agent ``eliza``: its engine against rules worked by hand, and conversations against what may never happen."""

import json
import re
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from agents.contract import Draw
from agents.language.eliza import SCRIPT, TOPICS, ElizaAgent
from agents.language.eliza_engine import CLAUSE_WORDS, Engine, Pattern, Reassembly
from agents.language.eliza_past import Past, next_side, past, sentences
from agents.language.eliza_subjects import Table
from agents.language.filters.policies import judge_conversation
from agents.language.filters.settings import MEASURE, FilterSettings
from agents.stimuli import ConversationStimulus, Utterance

PAPERS_TOPICS = [
    "fashion", "politics", "books", "sports", "general entertainment", "music", "science", "technology", "movies",
    "food",
]  # fmt: skip
SHARED = json.loads(SCRIPT.read_text("utf-8"))
LINES = [
    line
    for entry in json.loads(TOPICS.read_text("utf-8")).values()
    for subject in entry["subjects"]
    for line in subject["lines"]
]


def agent(**chosen):
    made = ElizaAgent(ElizaAgent.Settings(**chosen), "eliza")
    made.open()
    made.load("cpu")
    return made


CHAT, DOCTOR = agent(), agent(script="doctor")
BOTH = pytest.mark.parametrize("made", [CHAT, DOCTOR], ids=["chat", "doctor"])


def stimulus(said=(), **fields):
    history = [Utterance(speaker=speaker, text=text, at=None) for speaker, text in said]
    return ConversationStimulus(**{"id": "c", "task": "conversation", "meta": {}, "history": history, **fields})


def ask(made, said=(), speaker=None, seed=1, **fields):
    options = {} if speaker is None else {"speaker": speaker, "turn": len(said)}
    [reply] = made.respond([made.prepare(stimulus(said, **fields))], [Draw(seed=seed, options=options)])
    assert reply.answer.finish == "stop"
    return reply.answer.text


def play(made, partner, exchanges, seed=1, **fields):
    """A's messages are the agent's, B's those of ``partner``: another agent or a function of what was said."""
    said = []
    for turn in range(exchanges):
        side = "AB"[turn % 2]
        who = made if side == "A" else partner
        text = ask(who, said, side, seed * 1000 + turn, **fields) if isinstance(who, ElizaAgent) else who(said)
        said.append((side, text))
    return said


def plainly(text):
    return re.sub(r"[\W_]+", " ", text.casefold()).strip()


def engine(*keywords, **shared):
    entries = [{"words": words, "rank": rank, "rules": rules} for words, rank, rules in keywords]
    return Engine({"keywords": entries}, {**SHARED, **shared})


def first(made, text):
    """The reply of a fresh engine: the first clause, its first keyword that replies, each list as written."""
    [clause] = made.clauses(text)
    for keyword in made.found(clause):
        for reply in made.replies(clause, keyword, list):
            return reply
    return None


# The engine.


@pytest.mark.parametrize(
    ("pattern", "text", "parts"),
    [
        # "It seems that you hate me", the example of the 1966 paper, page 37, as the answerer turns it round.
        ("0 I 0 you", "it seems that I hate you", ["it seems that", "I", "hate", "you"]),
        ("0 1 0", "one two three", ["", "one", "two three"]),
        ("0 2", "one two three", ["one", "two three"]),
        ("0 2", "one", None),
        ("0 a 0 a 0", "x a y z a", ["x", "a", "y z", "a", ""]),
        ("0 a 0 a", "a a a", ["", "a", "a", "a"]),
        ("0 a b 0", "a a b", ["a", "a", "b", ""]),
        ("a 0", "b a", None),
        ("a b", "a b", ["a", "b"]),
        ("a b", "a b c", None),
        ("0 (a|b) 1", "x b y", ["x", "b", "y"]),
        ("0 your /family 0", "your old sister your aunt sings", ["your old sister", "your", "aunt", "sings"]),
        ("0", "", [""]),
        ("1", "", None),
    ],
)
def test_decomposition_by_hand(pattern, text, parts):
    found = Pattern(pattern.casefold(), {"family": frozenset(["sister", "aunt"])}).match(text.split())
    assert (found and [" ".join(part) for part in found]) == parts


def in_words(element):
    if element.isdigit():
        return r"((?:\w )*?)" if element == "0" else rf"((?:\w ){{{element}}})"
    return f"({element.replace('(a|b)', '[ab]')} )"


@given(
    st.lists(st.sampled_from(["0", "0", "1", "2", "a", "b", "(a|b)"]), min_size=1, max_size=6),
    st.text("abc", max_size=9),
)
def test_decomposition_as_a_regular_expression_does_it(elements, letters):
    said = list(letters)
    wanted = re.fullmatch("".join(map(in_words, elements)), "".join(f"{word} " for word in said))
    found = Pattern(" ".join(elements), {}).match(said)
    assert (found and ["".join(f"{word} " for word in part) for part in found]) == (wanted and list(wanted.groups()))


@pytest.mark.parametrize(
    ("text", "turned"),
    [
        ("I'm sure you're wrong", "you are sure I am wrong"),
        ("You hate me", "I hate you"),
        ("I gave you my coat", "you gave me your coat"),
        ("are you cold", "am I cold"),
        ("I was there when you were", "you were there when I was"),
        ("is that yours or mine", "is that mine or yours"),
        ("Ask yourself what I think of you", "ask myself what you think of me"),
        ("does it come to you often", "does it come to me often"),
        ("I’ve seen Paris", "you have seen Paris"),
        ("MY dog can't swim", "your dog can not swim"),
        ("how are you", "how am I"),
    ],
)
def test_a_clause_is_turned_round(text, turned):
    [clause] = engine().clauses(text)
    assert " ".join(clause.turned) == turned


@pytest.mark.parametrize(
    ("text", "clauses"),
    [
        ("Well, I am ill. And you?", [("well", False), ("i am ill", False), ("and you", True)]),
        ("I like it but it is far", [("i like it", False), ("it is far", False)]),
        ("why do you ask", [("why do you ask", True)]),
        ("When I was young", [("when i was young", False)]),
        ("你好吗？", [("你好吗", True)]),
        ("... ?!", []),
        ("", []),
    ],
)
def test_clauses(text, clauses):
    assert [(" ".join(clause.heard), clause.asked) for clause in engine().clauses(text)] == clauses


def test_the_highest_rank_goes_first_and_others_in_the_order_of_1966():
    made = engine(("low", 1, []), ("mid other", 3, []), ("high", 7, []), ("last", 3, []))
    [clause] = made.clauses("low mid last high other")
    # low; mid goes on top; last is not above mid: to the bottom; high on top; "other" is mid's own.
    assert [made.keywords[word] for word in ["high", "mid", "low", "last"]] == made.found(clause)


def test_reassembly_links_newkey_and_missing_components():
    made = engine(
        ("hate", 5, [["0 i hate (you|me) 0", ["Why would I hate (4)?"]], ["0", ["newkey", "Never said."]]]),
        ("love", 9, [["0 love", ["=hate"]]]),
        ("round", 4, [["0", ["=round"]]]),
        ("tea", 1, [["0 tea 0", ["After (3)?", "Tea, then."]]]),
    )
    assert first(made, "you hate me") == "Why would I hate you?"
    assert first(made, "you hate me and love") == "Why would I hate you?"
    assert first(made, "they hate tea at night") == "After at night?"  # newkey: the next keyword
    assert first(made, "they hate tea") == "Tea, then."  # nothing follows "tea"
    assert first(made, "they hate tea " + "very " * 11) == "Tea, then."  # too much follows it
    assert first(made, "round") is None
    assert first(made, "nothing") is None


def test_words_of_a_keyword_are_the_partners_own():
    """A keyword is looked up before words are turned round, a pattern is matched after."""
    made = engine(("my", 2, [["0 your 0", ["Your (3)?"]]]), ("your", 2, [["0 my 0", ["My (3)?"]]]))
    assert (first(made, "my cat"), first(made, "your cat")) == ("Your cat?", "My cat?")


def test_only_the_beginning_of_an_endless_clause_is_read():
    [clause] = engine().clauses("word " * 5000)
    assert len(clause.heard) == CLAUSE_WORDS


# The scripts.


@pytest.mark.parametrize("name", ["doctor", "chat"])
def test_a_script_holds_together(name):
    made = Engine(SHARED[name], SHARED)
    memory = [made.rule(pattern, texts) for pattern, texts in SHARED[name]["memory"]["rules"]]
    rules = [*memory, *(rule for keyword in made.keywords.values() for rule in keyword.rules)]
    for rule in rules:
        for reply in rule.replies:
            assert all(1 <= slot <= len(rule.pattern.elements) for slot in reply.slots), reply.text
            assert reply.goto is None or reply.goto in made.keywords, reply.text
            assert reply.newkey or reply.goto or reply.trace.split(), reply.text


def test_no_line_is_too_long_or_says_what_another_says():
    assert max(len(line.split()) for line in LINES) <= 30
    said = [plainly(sentence) for line in LINES for sentence in sentences(line)]
    long = [sentence for sentence in said if len(sentence.split()) >= 4]
    assert len(set(long)) == len(long)


# One reply.


def doctor(*texts):
    """What the doctor says to the last of A's texts, having answered the earlier ones; A begins."""
    said = []
    for text in texts:
        said.append(("A", text))
        said.append(("B", ask(DOCTOR, said, "B")))
    return [text for speaker, text in said if speaker == "B"]


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
        ("If only it snowed", "How likely is it, in your view, that only it snowed?"),
        ("Why don't you help?", "Do you suppose that I do not help?"),
        ("xyzzy", "I am not certain that I follow you fully."),
        ("", "I am not certain that I follow you fully."),
    ],
)
def test_the_doctor_by_hand(text, reply):
    assert doctor(text) == [reply]


def test_rules_are_used_in_turn_and_then_links():
    assert doctor("I remember it.", "I remember rain.", "I remember her.", "I remember you.", "I remember Ann.")[
        :4
    ] == [
        "Does it come back to you often?",
        "What else comes back along with rain?",
        "What has brought her to mind today?",
        "Does anything about our talk recall me?",
    ]


def test_the_memory_is_looked_into_in_the_fourth_reply_without_a_keyword():
    said = doctor("My boat is lost", "hm", "hm", "hm", "hm", "hm", "hm", "hm")
    recalled = [number for number, text in enumerate(said) if "boat" in text]
    assert recalled == [0, 3]  # its own keyword, and once from memory
    assert "your boat is lost" in said[3]
    assert "boat" not in " ".join(doctor("The boat is lost", "hm", "hm", "hm", "hm"))


def test_a_question_with_my_is_not_remembered():
    assert "boat" not in " ".join(doctor("Is my boat lost?", "hm", "hm", "hm", "hm")[1:])


def test_what_was_said_just_now_is_not_remembered_yet():
    used_up = [f"{begin}boat sinks{end}" for begin, end in [("Your ", "?"), ("What makes you speak of your ", "?")]]
    used_up += ["Does that bring to mind something else that is yours?", "Is your boat sinks of importance to you?"]
    said = [("A", text) for text in [*used_up, "My boat sinks"]]
    assert "boat" not in ask(DOCTOR, said, "B")


def test_the_chat_remembers_what_was_said_with_my():
    said = play(CHAT, lambda said: "My sister sings" if len(said) == 1 else "hm", 40)
    assert any("your sister" in text for _, text in said[4::2])
    said = play(CHAT, lambda said: "A sister sings" if len(said) == 1 else "hm", 40)
    assert not any("your sister" in text for _, text in said[4::2])


@pytest.mark.parametrize("seed", range(5))
def test_the_seed_only_decides_between_equals(seed):
    said = [("A", "I am sad"), ("B", "Since when?"), ("A", "Since my sister left")]
    assert ask(DOCTOR, said, "B", seed) == ask(DOCTOR, said, "B", 99)
    assert ask(CHAT, [("A", "I am sad")], "B", seed).endswith(
        ("What made you sad?", "help when you're sad?", "mostly on Sundays.")
    )


def test_seeds_make_different_conversations():
    assert len({tuple(play(CHAT, CHAT, 6, seed, topic="music")) for seed in range(10)}) > 3


def test_the_partners_line_is_answered_by_the_line_after_it():
    subject = json.loads(TOPICS.read_text("utf-8"))["music"]["subjects"][0]["lines"]
    said = [("A", subject[0])]
    assert ask(CHAT, said, "B").endswith(subject[1])
    said += [("B", subject[1])]
    assert ask(CHAT, said, "A") == subject[2]
    # Somebody who says neither of them is not waited for.
    said = [("A", subject[0]), ("B", "1 2 3")]
    assert sum(ask(CHAT, said, "A", seed).endswith(subject[2]) for seed in range(20)) > 5


@pytest.mark.parametrize(
    ("mine", "theirs", "line"),
    [
        ([], [], 0),
        ([], [0], 1),
        ([0], [1], 2),
        ([0], [], 2),  # the partner goes its own way
        ([0, 2], [1], None),  # the partner's line 3 is waited for
        ([1], [0, 2], 3),
        ([1, 3], [0, 2, 4], None),  # the end
    ],
)
def test_whose_line_is_next(mine, theirs, line):
    [subject, *_], _ = Table(json.loads(TOPICS.read_text("utf-8"))).subjects("music")
    texts = [one.text for one in subject.lines]
    said = Past([(number in mine, texts[number]) for number in sorted(mine + theirs)])
    assert subject.next(said) == (None if line is None else subject.lines[line])


def test_a_subject_is_not_begun_again():
    """Each of the topic's subjects was touched a while ago, by its fourth line."""
    music = [subject["lines"] for subject in json.loads(TOPICS.read_text("utf-8"))["music"]["subjects"]]
    said = [*[("B", lines[3]) for lines in music], *[("A", str(number)) for number in range(4)], ("B", "so")]
    texts = [ask(CHAT, said, "A", seed, topic="music") for seed in range(20)]
    assert any(text.endswith(tuple(LINES)) for text in texts)
    assert not any(text.endswith(lines[0]) for text in texts for lines in music)


def test_a_line_is_followed_by_a_line_or_by_a_question():
    """So that nobody loses the thread; lines may have something before them."""
    for topic in PAPERS_TOPICS:
        texts = [text for _, text in play(CHAT, CHAT, 24, topic=topic)]
        scripted = [any(plainly(line) in plainly(text) for line in LINES) for text in texts]
        for number in range(1, 24):
            assert not scripted[number - 1] or scripted[number] or texts[number].endswith("?"), texts[number]


def test_a_question_is_answered_before_anything_else():
    for text in ["Do you like cheese?", "do you like cheese"]:
        assert "cheese" in ask(CHAT, [("A", text)], "B") or "that your thing" in ask(CHAT, [("A", text)], "B")


# How a conversation begins, and who is who.


@BOTH
@pytest.mark.parametrize("topic", [*PAPERS_TOPICS, "beekeeping", "日本"])
def test_the_first_message_greets_and_names_the_topic(made, topic):
    text = ask(made, speaker="A", topic=topic, names=("Ann", "Bo"), seed=3)
    assert topic in text
    assert text.startswith(("Hi", "Hello", "Hey", "How do you do", "Good day"))
    assert made is DOCTOR or "Bo" in text


@pytest.mark.parametrize("topic", PAPERS_TOPICS)
def test_the_first_message_ends_with_a_whole_line(topic):
    for seed in range(20):
        assert ask(CHAT, speaker="A", topic=topic, seed=seed).endswith(tuple(LINES))


@BOTH
@pytest.mark.parametrize("topic", [None, "x" * 200, "a\nb", "{topic} {0}", "?"])
def test_an_unspeakable_topic_does_no_harm(made, topic):
    said = play(made, made, 30, topic=topic)
    assert all("xxx" not in text and "\n" not in text for _, text in said)


def test_the_second_speaker_greets_back_once():
    said = play(CHAT, CHAT, 6, topic="books", names=None)
    greeted = [text.startswith(("Hi", "Hello", "Hey", "Good day")) for _, text in said]
    assert greeted == [True, True, False, False, False, False]


def test_an_unknown_topic_is_spoken_of():
    said = play(CHAT, CHAT, 12, topic="beekeeping")
    assert sum("beekeeping" in text for _, text in said) >= 3


@pytest.mark.parametrize(
    ("fields", "side", "mine"),
    [
        ({}, "A", [True, False]),
        ({}, "B", [False, True]),
        ({"names": ("Ann", "Bo")}, "A", [False, False]),
        ({"names": ("B", "A")}, "A", [False, True]),  # names that are the other's letters
        ({"opener": "Hi!"}, "A", [False, True, False]),
        ({"opener": "Hi!", "who_starts": "A"}, "A", [True, True, False]),
        ({"opener": "mine"}, "A", [True, False]),  # the history holds it
    ],
)
def test_who_said_what(fields, side, mine):
    said = [("A", "mine"), ("B", "yours")]
    if fields.get("names") == ("Ann", "Bo"):
        said = [("Bo", "mine"), ("Bo", "yours")]
    assert [message.mine for message in past(stimulus(said, **fields), side).messages] == mine


@pytest.mark.parametrize(
    ("said", "fields", "side"),
    [
        ([], {}, "A"),
        ([], {"who_starts": "B"}, "B"),
        ([("A", "x")], {}, "B"),
        ([("A", "x"), ("B", "y")], {}, "A"),
        ([("Ann", "x")], {"names": ("Ann", "Bo")}, "B"),
        ([("A", "x")], {"names": ("B", "A")}, "A"),
    ],
)
def test_whose_turn_it_is_when_nobody_says_so(said, fields, side):
    assert next_side(stimulus(said, **fields)) == side


def test_an_opener_is_answered_and_not_said_again():
    fields = {"opener": "I am sad today.", "topic": "music"}
    assert ask(DOCTOR, speaker="B", **fields) == "It pains me to hear that you are sad."
    played = [("A", "I am sad today.")]
    assert ask(CHAT, played, "B", **fields) == ask(CHAT, [], "B", **fields)


# What may never happen.

PARTNERS = {
    "itself": None,
    "one sentence": lambda said: "I am sad because my sister always hates music.",
    "an echo": lambda said: said[-1][1],
    "nothing": lambda said: "",
    "punctuation": lambda said: "?!... --- ,,,",
    "German": lambda said: "Ich verstehe das nicht, kannst du das erklären?",
    "Chinese": lambda said: "你好吗？我喜欢音乐。",
    "a question": lambda said: "Why?",
    "the first line again": lambda said: said[0][1],
}


def repeated(said):
    """A's messages that were said before, and its sentences of at least four words that were, by anyone."""
    found, messages, spoken = [], set(), set()
    for speaker, text in said:
        parts = [plainly(sentence) for sentence in sentences(text)]
        long = {part for part in parts if len(part.split()) >= 4}
        if speaker == "A" and (plainly(text) in messages or long & spoken):
            found.append(text)
        messages.add(plainly(text))
        spoken |= long
    return found


@BOTH
@pytest.mark.parametrize("partner", PARTNERS)
@pytest.mark.parametrize("topic", ["music", "beekeeping"])
def test_nothing_is_said_twice_in_100_exchanges(made, partner, topic):
    said = play(made, PARTNERS[partner] or made, 100, topic=topic)
    assert repeated(said) == []
    assert all(text.strip() and len(text.split()) <= 30 for _, text in said[::2])


@settings(max_examples=15, deadline=None)
@given(
    st.integers(0, 2**53 - 1),
    st.sampled_from(PAPERS_TOPICS),
    st.sampled_from(["chat", "doctor"]),
    st.lists(st.one_of(st.text(max_size=30), st.sampled_from([*LINES, "I am sad", "my dog", "why?"])), max_size=5),
)
def test_nothing_is_said_twice_whatever_the_seed_and_the_partner(seed, topic, script, texts):
    made = CHAT if script == "chat" else DOCTOR
    partner = (lambda said: texts[len(said) // 2 % len(texts)]) if texts else made
    assert repeated(play(made, partner, 48, seed, topic=topic)) == []


@pytest.mark.parametrize("script", ["chat", "doctor"])
def test_words_are_limited_and_never_run_out(script):
    made = agent(script=script, max_words=10)
    said = play(made, made, 200, topic="food")
    assert max(len(text.split()) for _, text in said) <= 10
    assert repeated(said) == []
    whole = "\n".join(plainly(text) for _, text in said)
    assert max(whole.count(plainly(line)[:40]) for line in LINES) <= 1  # after other words neither
    with pytest.raises(ValidationError):
        agent(max_words=9)


def test_what_is_counted_is_fresh_even_when_it_was_foretold():
    """With every other reply used up, the number goes on until it is new."""
    everything = SHARED["doctor"]["none"] + [
        SHARED["doctor"]["joined"].format(begin=begin, end=end)
        for begin in SHARED["doctor"]["begin"]
        for end in SHARED["doctor"]["end"]
    ]
    said = [("A", text) for text in [*everything, "hm"]]
    number = len(said) + 1
    assert ask(DOCTOR, said, "B") == f"Matter {number}, then: please continue."
    said[0] = ("A", f"{everything[0]} Matter {number}, then: please continue.")
    assert ask(DOCTOR, said, "B") == f"Matter {number + 1}, then: please continue."


@BOTH
@settings(max_examples=60, deadline=None)
@given(text=st.text(max_size=300), topic=st.none() | st.text(min_size=1, max_size=40).filter(str.strip))
def test_any_text_is_answered(made, text, topic):
    assert ask(made, [("A", "Hello"), ("B", text)], "A", topic=topic).strip()


@BOTH
@pytest.mark.parametrize(
    "text",
    ["a", "a'", "my ", ".", "I am, ", "you are ", "?a", "because ", "'", "é\u0301", "my sister ", "0 ", "\n"],
)
def test_the_longest_messages_are_answered(made, text):
    message = (text * 100_000)[:100_000]
    assert len(ask(made, [("A", message), ("B", "Go on"), ("A", message)], "B").split()) <= 30


@BOTH
def test_a_turn_is_a_function_of_the_history_alone(made):
    """Each turn asked alone, of another instance, in a batch with others and backwards, as it was played."""
    said = play(made, made, 24, topic="science")
    again = agent(script=made.settings.script)
    turns = list(reversed(range(24)))
    draws = [Draw(seed=1000 + turn, options={"speaker": "AB"[turn % 2], "turn": turn}) for turn in turns]
    replies = again.respond([stimulus(said[:turn], topic="science") for turn in turns], draws)
    assert [reply.answer.text for reply in replies] == [said[turn][1] for turn in turns]


def test_a_conversation_with_itself_has_two_sides():
    """Questions are answered, with at most one more question in their place, and both speak of themselves."""
    for topic in PAPERS_TOPICS:
        said = play(CHAT, CHAT, 24, topic=topic)
        assert sum(one.endswith("?") and two.endswith("?") for (_, one), (_, two) in pairwise(said)) <= 1
        for side in "AB":
            assert sum(bool(re.search(r"\b(I|my|mine)\b", text)) for who, text in said if who == side) >= 4


@pytest.mark.parametrize("script", ["chat", "doctor"])
@pytest.mark.parametrize("exchanges", [24, 48])
def test_the_papers_filters_find_nothing(script, exchanges):
    """Repeated sentences and blocks, early exits, lists, empty and short replies."""
    made = CHAT if script == "chat" else DOCTOR
    for topic in PAPERS_TOPICS:
        said = play(made, made, exchanges, topic=topic)
        assert judge_conversation(said, MEASURE, FilterSettings(), total=exchanges) == []


def test_a_reassembly_is_known_by_its_longest_fixed_part():
    assert Reassembly("My (3)? Stubborn, and kind.").trace == " stubborn and kind "
    assert Past([(True, "My aunt? STUBBORN and kind!")]).mine.count(" stubborn and kind ") == 1
