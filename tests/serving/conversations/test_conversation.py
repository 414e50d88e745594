"""A conversation over a scheduler that answers from a script: what is asked, rejected, journalled and replayed."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agents.contract import derive_seed
from agents.errors import InputError
from agents.language.filters.policies import COMPLETION, FilterSettings, Policy
from agents.stimuli import ConversationStimulus
from serving.conversations import scenario
from serving.conversations.journal import read_journal
from serving.conversations.scenario import PairSettings, read_pair_settings
from serving.conversations.transcript import no_instructions
from serving.scheduling.request import Outcome
from tests.helpers import scripted
from tests.helpers.scripted import Script, Scripted, fresh, row


def hold(
    script: Script, rules: PairSettings, turns: Any = None, told: Any = None, **fields: Any
) -> tuple[Outcome, Scripted, list[dict[str, Any]]]:
    scheduler = Scripted(script)
    settings = rules.model_copy(update={"thresholds": FilterSettings(repeated_sentence=2)})
    more = {"instructions": told or (no_instructions,) * 2, "journalled": turns or {}}
    item, lines = scripted.hold(scheduler, settings, rules.policy or Policy(), row(**fields), **more)
    return item, scheduler, [json.loads(line) for line in lines]


def texts(item: Outcome) -> list[str]:
    return [message["text"] for message in json.loads(item.answer or b"{}")["messages"]]


def test_what_is_open_is_drawn_from_the_attempts_seed_and_told() -> None:
    item, scheduler, _ = hold(fresh, PairSettings(attempts=1))
    expected = scenario.draw_scenario(
        ConversationStimulus(id="c", task="conversation", exchanges=6), derive_seed(7, "a~b", "c", 0, None, 0)
    )
    told = json.loads(item.raw or b"")
    for key in ("topic", "who_starts"):
        assert told[key] == getattr(expected, key)
    assert tuple(told["names"]) == expected.names
    assert {stimulus.topic for _, stimulus, _ in scheduler.seen} == {expected.topic}
    starts = "AB".index(told["who_starts"])
    for turn, (agent, stimulus, options) in enumerate(scheduler.seen):
        assert agent == "ab"[(starts + turn) % 2]
        assert options == {"speaker": "AB"[(starts + turn) % 2], "turn": turn}
        assert [one.text for one in stimulus.history] == texts(item)[:turn]


def test_what_the_history_repeats_rejects_nothing() -> None:
    given_ = [{"speaker": name, "text": "The same sentence comes again."} for name in ("Ann", "Bob", "Ann", "Bob")]
    item, scheduler, _ = hold(fresh, PairSettings(policy=COMPLETION, attempts=3), names=["Ann", "Bob"], history=given_)
    assert item.status == "ok"
    assert len(scheduler.asked) == 6
    [noted] = item.attempts
    assert {finding.filter: finding.rejected for finding in noted.findings} == {
        "repeated_sentence": False,
        "repeated_block": False,
    }


@pytest.mark.parametrize(
    "prompts", [None, "Both of them love to talk about the old lighthouse on the hill by the sea."]
)
def test_who_says_what_the_model_was_told_is_found_out(prompts: str | None) -> None:
    """Only side B's agent is told; side A says the same words, and that is no echo."""
    said = "Well, both of them love to talk about the old lighthouse, as you know."
    told = (lambda stimulus, draw: None, lambda stimulus, draw: prompts if draw.options["speaker"] == "B" else "wrong")
    item, _, _ = hold(
        lambda turn, attempt: said + "!" * turn, PairSettings(policy=Policy(), attempts=1), told=told, who_starts="A"
    )
    found = {finding.filter: finding.found for attempt in item.attempts for finding in attempt.findings}
    assert ("prompt_echo" in found) == (prompts is not None)
    turned, _, _ = hold(
        lambda turn, attempt: said,
        PairSettings(policy=Policy(prompt_echo="resample_turn"), attempts=1),
        told=told,
        who_starts="A",
    )
    assert turned.status == ("rejected" if prompts else "ok")
    assert {attempt.turn for attempt in turned.attempts if "prompt_echo" in str(attempt)} == (
        {None} if prompts else set()
    )


def test_what_was_said_after_a_lost_turn_counts_no_more_once_that_is_asked_anew(tmp_path: Path) -> None:
    """A line is lost, the run goes on from before it and is killed again: what follows is of the second time."""
    path = tmp_path / "turns.jsonl"
    _, _, first = hold(fresh, PairSettings(attempts=1))
    _, _, second = hold(lambda turn, attempt: f"Said anew {turn}", PairSettings(attempts=1))
    kept = [*(line for line in first if line["turn"] != 2), *second[2:4]]
    path.write_text("".join(json.dumps(line) + "\n" for line in kept))
    assert read_journal(path, lambda stimulus, sample: sample == 1) == {}
    turns = read_journal(path, lambda stimulus, sample: True)["c", 0]
    assert turns == {(0, line["turn"]): line for line in [*first[:2], *second[2:4]]}
    item, scheduler, _ = hold(fresh, PairSettings(attempts=1), turns)
    assert [turn for turn, _ in scheduler.asked] == [4, 5]
    assert texts(item)[1:5] == [fresh(1, 0), "Said anew 2", "Said anew 3", fresh(4, 0)]


@pytest.mark.parametrize(
    "damage",
    [
        lambda line: line[: len(line) // 2],
        lambda line: "rubbish",
        lambda line: "",
        lambda line: "[1, 2]",
        *(
            lambda line, change=change: json.dumps({**json.loads(line), **change})
            for change in (
                {"turn": "1"},
                {"status": "failed"},
                {"answer": None},
            )
        ),
    ],
)
def test_a_line_that_is_no_turn_is_named(tmp_path: Path, damage: Callable[[str], str]) -> None:
    path = tmp_path / "turns.jsonl"
    _, _, lines = hold(fresh, PairSettings(attempts=1))
    written = [json.dumps(line) for line in lines]
    path.write_text("\n".join([written[0], damage(written[1]), *written[2:], ""]))
    with pytest.raises(InputError, match=r"turns\.jsonl:2 is not a turn of a conversation; take the line out"):
        read_journal(path, lambda stimulus, sample: True)


@pytest.mark.parametrize("given_", [{"topic": "tea"}, {"names": ("Ann", "Bob")}, {"who_starts": "B"}, {}])
@pytest.mark.parametrize("seed", range(20))
def test_casting_fills_in_what_is_open_and_nothing_else(given_: dict[str, Any], seed: int) -> None:
    bare = ConversationStimulus(id="c", task="conversation")
    full = scenario.draw_scenario(bare, seed)
    found = scenario.draw_scenario(bare.model_copy(update=given_), seed)
    assert found == full.model_copy(update=given_)
    assert full.topic in scenario.TOPICS
    assert full.names is not None
    assert full.names[0] != full.names[1]
    assert full.personas is not None
    assert all(one in those for one, those in zip(full.personas, scenario.PERSONAS, strict=True))


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (None, None),
        (["Ann", "Bob"], ["Ann", "Bob", "Ann"]),
        (["B", "Ann"], ["A", "B", "A"]),  # B is a name, and who A is is not known
    ],
)
def test_sides_in_a_history_get_the_names(names: Any, expected: Any) -> None:
    given_ = [{"speaker": side, "text": f"said {place}"} for place, side in enumerate("ABA")]
    _, scheduler, _ = hold(
        fresh, PairSettings(attempts=1), history=given_, **({} if names is None else {"names": names})
    )
    for _, seen, _ in scheduler.seen:
        assert seen.names is not None
        wanted = expected or [seen.names[0], seen.names[1], seen.names[0]]
        assert [(one.speaker, one.text) for one in seen.history[:3]] == [
            (name, f"said {place}") for place, name in enumerate(wanted)
        ]


def test_every_topic_name_and_side_is_drawn() -> None:
    drawn = [scenario.draw_scenario(ConversationStimulus(id="c", task="conversation"), seed) for seed in range(2000)]
    assert {one.topic for one in drawn} == set(scenario.TOPICS)
    assert {one.names and one.names[0] for one in drawn} == set(scenario.NAMES[0])
    assert {one.names and one.names[1] for one in drawn} == set(scenario.NAMES[1])
    assert "food" in scenario.TOPICS
    starts = sum(one.who_starts == "A" for one in drawn)
    assert 900 < starts < 1100  # 4.5 standard deviations


def test_a_pairs_settings_are_checked() -> None:
    assert read_pair_settings("a~b", {"attempts": 2, "policy": {"empty": "resample_turn"}}).attempts == 2
    with pytest.raises(InputError) as error:
        read_pair_settings("a~b", {"attempts": 0, "polcy": {}})
    said = " ".join(map(str, error.value.problems))
    assert "a~b.attempts" in said
    assert "a~b.polcy: no such setting; there are policy, thresholds, attempts" in said
