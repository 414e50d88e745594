"""Pseudo-dialogue: topics, turns for each, continued if fewer, cut if more; and who has it before them."""

from collections.abc import Mapping
from typing import Any

import pytest

from agents.answers import ConversationAnswer
from agents.language.filters.policies import Policy
from agents.stimuli import ConversationStimulus
from serving.conversations.scenario import PairSettings
from serving.scheduling.request import Outcome
from tests.helpers import scripted
from tests.helpers.scripted import Scripted, fresh, row

NAMES = ["Ann", "Bob"]


class Writer(Scripted):
    """Names ``topics`` a request, and writes so many ``turns`` a request whatever was asked."""

    def __init__(self, topics: int, turns: int, row_of: int = 1) -> None:
        super().__init__(fresh)
        self.topics = topics
        self.turns = turns
        self.row_of = row_of
        self.written = 0

    def text(self, stimulus: ConversationStimulus, options: Mapping[str, Any], turn: int, attempt: int) -> str:
        pseudo = options.get("pseudo")
        if pseudo is None:
            return f"Really said, after {len(stimulus.history)}."
        if "topics" in pseudo:
            first = len(pseudo["known"])
            return "\n".join(["topic 0", *(f"{at + 1}. topic {first + at}" for at in range(self.topics))])
        last = stimulus.history[-1].speaker if stimulus.history else "Bob"
        lines = []
        for _ in range(self.turns):
            last = NAMES[last == "Ann"]
            for _ in range(self.row_of):
                self.written += 1
                lines.append(f"{last}: number {self.written}")
        return "\n".join(lines)


def hold(writer: Writer, pseudo: Mapping[str, int], writers: tuple[bool, bool] = (True, False), **more: Any) -> Outcome:
    stimulus = row(pseudo=pseudo, names=NAMES, who_starts="A", **{"exchanges": 4, **more})
    return scripted.hold(writer, PairSettings(attempts=3), Policy(), stimulus, writers=writers)[0]


def answer_of(item: Outcome) -> ConversationAnswer:
    return ConversationAnswer.model_validate_json(item.answer or b"")


@pytest.mark.parametrize("writes", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("topics", [1, 2, 5])
def test_so_many_turns_are_written_about_each_topic_however_many_come_at_once(writes: int, topics: int) -> None:
    item = hold(Writer(topics, writes), {"topics": 4, "turns": 4})
    pseudo = answer_of(item).pseudo
    assert item.status == "ok"
    assert [one.topic for one in pseudo] == [f"topic {at // 4}" for at in range(16)]
    assert [one.speaker for one in pseudo] == NAMES * 8
    assert {one.agent for one in pseudo} == {"a"}
    # what is written beyond the turns is left out from its end
    numbers = [int(one.text.split()[1]) for one in pseudo]
    per_topic = -(-4 // writes) * writes
    expected = [topic * per_topic + at + 1 for topic in range(4) for at in range(4)]
    assert numbers == expected


class Fills(Writer):
    """Every other reply has a placeholder after two messages."""

    def text(self, stimulus: ConversationStimulus, options: Mapping[str, Any], turn: int, attempt: int) -> str:
        lines = super().text(stimulus, options, turn, attempt).split("\n")
        is_loop = "left" in options.get("pseudo", ()) and turn % 2 == 0
        return "\n".join([*lines[:2], "Ann: [your name] is here", *lines[2:]] if is_loop else lines)


def test_a_reply_ends_before_a_message_that_filters_flag() -> None:
    pseudo = answer_of(hold(Fills(1, 4), {"topics": 2, "turns": 4})).pseudo
    assert [one.speaker for one in pseudo] == NAMES * 4
    assert all(one.text.startswith("number") for one in pseudo)
    assert [int(one.text.split()[1]) for one in pseudo] != list(range(1, 9))


def test_in_a_burst_a_turn_is_all_that_one_says_in_a_row() -> None:
    item = hold(Writer(2, 3, row_of=2), {"topics": 2, "turns": 2}, mode="burst")
    pseudo = answer_of(item).pseudo
    assert [one.speaker for one in pseudo] == ["Ann", "Ann", "Bob", "Bob"] * 2
    assert [one.topic for one in pseudo] == ["topic 0"] * 4 + ["topic 1"] * 4


def test_both_speakers_have_it_before_them_and_judges_do_not() -> None:
    writer = Writer(2, 2)
    item = hold(writer, {"topics": 2, "turns": 2}, history=[{"speaker": "A", "text": "Long ago."}])
    answer = answer_of(item)
    pseudo = [one.text for one in answer.pseudo]
    assert [one.text for one in answer.messages] == [f"Really said, after {5 + turn}." for turn in range(4)]
    for agent, stimulus, _ in writer.seen[3:]:
        assert agent in ("a", "b")
        assert [one.text for one in stimulus.history][:5] == ["Long ago.", *pseudo]
    assert {agent for agent, _, _ in writer.seen[:3]} == {"a"}
    assert answer.pseudo[0].speaker == "Bob"  # who did not speak last


def test_the_second_writes_where_the_first_cannot_and_nobody_else() -> None:
    item = hold(Writer(1, 2), {"topics": 1, "turns": 2}, writers=(False, True))
    assert {one.agent for one in answer_of(item).pseudo} == {"b"}
    writer = Writer(1, 2)
    item = hold(writer, {"topics": 1, "turns": 2}, writers=(False, False))
    assert (item.status, item.answer, item.error and item.error[0]) == ("failed", None, "unsupported_pseudo")
    assert writer.asked == []


@pytest.mark.parametrize(("topics", "turns", "asked"), [(0, 2, 1 + 3), (1, 0, 2 + 3)])
def test_one_that_writes_nothing_is_asked_a_few_times_and_fails(topics: int, turns: int, asked: int) -> None:
    writer = Writer(topics, turns)
    item = hold(writer, {"topics": 2, "turns": 2})
    assert (item.status, item.error and item.error[0]) == ("failed", "no_pseudo_dialogue")
    assert len(writer.asked) == asked


@pytest.mark.parametrize("mode", ["ping-pong", "burst"])
def test_one_that_goes_on_as_the_same_speaker_for_ever_is_asked_a_few_times(mode: str) -> None:
    class Monologue(Writer):
        def text(self, stimulus: ConversationStimulus, options: Mapping[str, Any], turn: int, attempt: int) -> str:
            assert len(self.asked) < 20
            topics = super().text(stimulus, options, turn, attempt)
            return "Ann: And another thing." if "topic" in options["pseudo"] else topics

    writer = Monologue(1, 1)
    item = hold(writer, {"topics": 1, "turns": 2}, mode=mode)
    assert item.error is not None
    assert item.error[0] == "no_pseudo_dialogue"
    assert len(writer.asked) == 1 + 1 + 3  # a topic, Ann's turn, and three that bring no other
