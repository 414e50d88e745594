"""The X-Turn pass rate, beside what it should be: scipy, and truths that are put in."""

from itertools import combinations
from statistics import NormalDist
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import binomtest

from judging.statistics.pass_rate import ControlPairs, pass_rates, words_per_message

GPT_4 = {3: 0.519, 10: 0.389, 110: 0.133}  # X-Turing's, by turns


def verdict(judge: str, pair: int, turns: int, passes: bool, **more: Any) -> dict[str, Any]:
    """A verdict on a pair of which every other has the machine in the first."""
    truth, other = ("machine", "human") if pair % 2 else ("human", "machine")
    row = {"judge": judge, "judge_kind": "human", "trial": f"{turns}-{pair}", "stimulus": f"s{pair}", "sample": 0}
    row |= {"truth": truth, "beside_truth": other, "agent": "bot", "beside_agent": "bot", "turns": turns}
    return row | {"meta.mode": "burst", "verdict": other if passes else truth} | more


def test_a_known_pass_rate_is_recovered_by_two_hundred_judges() -> None:
    """Judges and pairs differ, in a probit model; each judges six of 25 pairs of each length."""
    chance = np.random.default_rng(0)
    judges = chance.normal(0, 0.4, 200)
    pairs = chance.normal(0, 0.2, 25)
    rows = []
    for turns, rate in GPT_4.items():
        middle = ndtri(rate) * np.sqrt(1 + 0.4**2 + 0.2**2)
        for at, judge in enumerate(judges):
            for pair in chance.permutation(25)[:6]:
                passes = chance.random() < ndtr(middle + judge + pairs[pair])
                rows.append(verdict(f"human:{at}", int(pair), turns, bool(passes)))
    result = pass_rates(pd.DataFrame(rows), [])
    assert [row.turns for row in result.rates] == [*GPT_4]
    [slope] = result.tests  # the more turns, the more often the machine is recognized
    assert (slope.column, slope.value, slope.judges, slope.stimuli) == ("turns", "slope", 200, 12)
    assert slope.difference.low > 0
    assert slope.holm < 1e-6
    for row in result.rates:
        assert (row.judge, row.agent, row.mode) == ("people", "bot", "burst")
        assert (row.pairs, row.judges, row.verdicts) == (25, 200, 1200)
        assert row.pass_rate.value == pytest.approx(1 - row.right / 1200)
        assert row.interval == "pairs and judges"
        assert row.pass_rate.low < GPT_4[row.turns or 0] < row.pass_rate.high
        # More than if all verdicts were independent, and of use.
        alone = binomtest(1200 - row.right, 1200).proportion_ci(method="exact")
        assert alone.high - alone.low < row.pass_rate.high - row.pass_rate.low < 0.2


@pytest.mark.parametrize("number", [3, 7, 9])
def test_verdicts_that_vary_by_rounding_alone_count_for_as_many_as_there_are_judges(number: int) -> None:
    """Each judge passes a share of the pairs that no float holds, each pair is passed by as many: neither varies."""
    passed = max(1, number // 3)
    rows = [
        verdict(f"human:{judge}", pair, 3, (judge + pair) % number < passed)
        for judge in range(number)
        for pair in range(number)
    ]
    [row] = pass_rates(pd.DataFrame(rows), []).rates
    wanted = binomtest(passed, number).proportion_ci(method="exact")
    assert (row.pass_rate.low, row.pass_rate.high) == pytest.approx((wanted.low, wanted.high))


def test_pairs_with_one_conversation_of_people_are_one_to_the_interval() -> None:
    """Twenty pairs with five conversations of people, each passed or told as the conversation is."""
    rows = [verdict("judge", at, 3, at % 5 < 2, **{"meta.people": f"p{at % 5}"}) for at in range(20)]
    [row] = pass_rates(pd.DataFrame(rows), []).rates
    alone = binomtest(8, 20).proportion_ci(method="exact")
    assert (row.interval, row.pairs, row.pass_rate.value) == ("pairs and judges", 20, 0.4)
    assert row.pass_rate.high - row.pass_rate.low > 1.5 * (alone.high - alone.low)


@pytest.mark.parametrize("together", [1, 2])
def test_people_who_speak_in_several_pairs_are_drawn(together: int) -> None:
    """Eight people who differ, alone or each two of them: 80 % of intervals held the rate while pairs alone counted."""
    held = []
    groups = [*combinations(range(8), together)]
    for study in range(40):
        chance = np.random.default_rng(study)
        of_people = chance.normal(0, 0.6, 8)
        of_pairs = chance.normal(0, 0.2, 40)
        rows = []
        for judge, lean in enumerate(chance.normal(0, 0.2, 12)):
            for pair in range(40):
                group = list(groups[pair % len(groups)])
                passes = lean + of_people[group].sum() / together**0.5 + of_pairs[pair] + chance.normal() > 0
                row = verdict(f"human:{judge}", pair, 3, bool(passes))
                names = "~".join(map("human:{}".format, group))
                rows.append(row | {"beside_agent" if row["truth"] == "machine" else "agent": names})
        [rate] = pass_rates(pd.DataFrame(rows), []).rates
        held.append(rate.pass_rate.low < 0.5 < rate.pass_rate.high)
    assert sum(held) >= 36


@pytest.mark.parametrize("judges", [1, 23])
@pytest.mark.parametrize("passed", [0, 9, 23])
def test_one_verdict_on_each_pair_has_scipys_exact_interval(judges: int, passed: int) -> None:
    rows = [verdict(f"human:{at % judges}", at, 3, at < passed) for at in range(23)]
    [row] = pass_rates(pd.DataFrame(rows), []).rates
    wanted = binomtest(passed, 23).proportion_ci(method="exact")
    assert (row.interval, row.pass_rate.value) == ("exact", passed / 23)
    assert row.pass_rate.low == pytest.approx(wanted.low)
    assert row.pass_rate.high == pytest.approx(wanted.high)


def test_of_one_judge_on_one_pair_there_is_no_interval() -> None:
    rows = [verdict("human:0", 0, 3, passes) for passes in (True, False)]
    [row] = pass_rates(pd.DataFrame(rows), []).rates
    assert str(row.pass_rate) == "0.50"


def test_what_is_missing_and_what_controls_say_is_apart() -> None:
    control = {"truth": "machine", "beside_truth": "machine", "verdict": "machine"}
    rows = [
        verdict("llm", 1, 3, False, judge_kind="machine"),
        verdict("llm", 2, 3, False, judge_kind="machine", verdict="refused"),
        verdict("llm", 3, 3, False, judge_kind="machine", **control),
        verdict("llm", 4, 10, True, judge_kind="machine", agent="other", beside_agent="other", topic="tea"),
    ]
    result = pass_rates(pd.DataFrame(rows), ["topic"])
    rates = {(row.agent, row.turns): (row.pairs, row.pass_rate.value, row.refused) for row in result.rates}
    assert rates == {
        ("all", 3): (1, 0.0, 1),
        ("all", 10): (1, 1.0, 0),
        ("bot", 3): (1, 0.0, 1),
        ("other", 10): (1, 1.0, 0),
    }
    assert [(test.column, test.value, test.beside) for test in result.tests] == [
        ("agent", "bot", "other"),
        ("turns", "3", "10"),
    ]
    assert [*result.controls] == [ControlPairs("llm", machines=2, verdicts=1, first=1.0)]
    assert [(row.column, row.value, row.verdicts) for row in result.by] == [("topic", "tea", 1)]


def pair(at: int, words: tuple[int, int], delays: Any = None) -> dict[str, Any]:
    """A pair whose machine, B in the one where it speaks, has so many words a message beside so many of all people."""
    truth, other = ("machine", "human") if at % 2 else ("human", "machine")
    sides = {}
    for name, whose in (("answer", truth), ("beside", other)):
        number = {"A": words[1], "B": words[0] if whose == "machine" else words[1]}
        sides[name] = [{"speaker": letter, "text": " ".join(["word"] * number[letter])} for letter in "ABABAB"]
    row = {"trial": f"t{at}", "asked": "conversation", "truth": truth, "beside_truth": other, "turns": 6}
    row |= {"agent": "bot", "beside_agent": "bot", "stimulus": f"s{at}", "meta.mode": "burst", "delays": delays or {}}
    row |= {"speaker": "B" if truth == "machine" else None, "beside_speaker": "B" if other == "machine" else None}
    return row | {name: {"messages": spoken} for name, spoken in sides.items()}


def test_words_per_message_are_of_the_machine_and_of_the_person_it_speaks_with() -> None:
    [alike] = words_per_message([pair(0, (8, 5)), pair(1, (7, 4))])
    assert str(alike.difference) == "+3.0"  # no interval
    [row] = words_per_message([pair(0, (8, 5)), pair(1, (7, 4)), pair(2, (9, 3))])
    assert (row.agent, row.turns, row.mode) == ("bot", 6, "burst")
    assert row.conversations == 3
    assert (row.agent_words, row.person_words) == (8, 4)
    wanted = 4.303 * np.std([3, 3, 6], ddof=1) / np.sqrt(3)  # Student's t of two
    assert row.difference.value == 4
    assert row.difference.high - 4 == pytest.approx(wanted, rel=1e-3)


def test_words_per_message_of_scripts_without_spaces() -> None:
    item = pair(0, (1, 1))
    for side in ("answer", "beside"):
        item[side]["messages"] = [
            {"speaker": line["speaker"], "text": "我喝咖啡" if line["speaker"] == "A" else "मैं चाय पीता हूँ जी"}
            for line in item[side]["messages"]
        ]
    [row] = words_per_message([item])
    assert (row.agent_words, row.person_words) == (5, 4)


def test_words_that_the_machine_wrote_itself_are_not_the_persons() -> None:
    item = pair(0, (8, 5))
    side = "answer" if item["truth"] == "machine" else "beside"
    spoken = item[side]["messages"]
    before = [{"speaker": letter, "text": "word " * 40} for letter in "AB"]
    item |= {side: {"messages": [*before, *spoken]}, "delays": {side: [None, None, *[1.5] * len(spoken)]}}
    [row] = words_per_message([item])
    assert (row.agent_words, row.person_words) == (8, 5)


def test_two_alternatives_have_their_dprime_and_the_bias_of_place() -> None:
    """Of 100 pairs 84 are judged rightly: with d' 1.41 (Macmillan and Creelman 2005)."""
    rows = [verdict("llm", at, 3, at >= 84, judge_kind="machine", stimulus=str(at)) for at in range(100)]
    for row in rows[:70]:
        row |= {"truth": "machine", "beside_truth": "human", "verdict": "machine"}
    [rate] = pass_rates(pd.DataFrame(rows), []).rates
    z = NormalDist().inv_cdf
    assert rate.dprime.value == pytest.approx(2**0.5 * z(84.5 / 101))
    ends = binomtest(84, 100).proportion_ci(method="exact")
    assert (rate.dprime.low, rate.dprime.high) == pytest.approx([2**0.5 * z(end) for end in ends])
    [uncorrected] = pass_rates(pd.DataFrame(rows), [], "1/2N").rates
    assert uncorrected.dprime.value == pytest.approx(2**0.5 * z(0.84))
    right = [{**row, "verdict": row["truth"]} for row in rows]
    [perfect] = pass_rates(pd.DataFrame(right), [], "1/2N").rates
    assert perfect.dprime.value == pytest.approx(2**0.5 * z(1 - 1 / 200))
    named = sum(row["verdict"] == "machine" for row in rows)
    assert rate.first.value == named / 100
    assert (rate.first.low, rate.first.high) == pytest.approx(binomtest(named, 100).proportion_ci(method="exact"))
