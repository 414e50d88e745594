"""How often judges of pairs of conversations take the machine's for people's.

**X-Turn pass rate** (X-Turing, arXiv 2408.09853): 1 less the mean over pairs and judges of whether the pair was told
rightly. Judges need not all judge every pair: the mean is over verdicts. Who cannot tell lets half of the machines
pass, so that 0.5 is a perfect imitator, and more says that people were taken for the machine.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.special import stdtrit

from agents.answer_numbers import rounding
from judging.agreement import krippendorff_alpha, said_by
from judging.candidates import PEOPLE_OF_PAIR
from judging.measures import ALL, CONFIDENCE, MISSING, Codes, share
from judging.verdicts import SAID, Answers, by_judge

if TYPE_CHECKING:
    import pandas as pd

EXACT, TWO_WAY = "exact", "pairs and judges"
PEOPLE = f"meta.{PEOPLE_OF_PAIR}"
Row = dict[str, Any]


def pass_rates(table: pd.DataFrame, by: Sequence[str], seed: int) -> dict[str, Any]:
    """``rates`` by judge (people are one), ``agent`` (of several, "all", too), ``turns`` and ``mode``; ``by`` the same
    of all agents by ``column`` and ``value``; ``controls``, pairs with two machines or none, of which there is nothing
    to tell but how often the first was named; and Krippendorff's ``alpha`` over all judges of the others.

    ``table`` are verdicts on pairs (:func:`judging.verdicts.read_verdicts`) that count. Pairs about one stimulus, or
    with one conversation of people, are one to the intervals. Of each row: the number of ``pairs`` and ``judges``,
    ``verdicts``, ``right`` ones, those that are missing by why, ``pass_rate`` with ``_low`` and ``_high`` (95 %), which
    ``interval`` that is, and ``first``, the share of verdicts that name the first.
    """
    mode = table["meta.mode"] if "meta.mode" in table.columns else None
    machine = table["agent"].where(table["truth"] == "machine", table["beside_agent"])
    table = table.assign(agent=machine, mode=mode, pair=table["truth"] != table["beside_truth"])
    pairs = table[table["pair"]]
    agents = sorted(pairs["agent"].unique())
    alpha = krippendorff_alpha(said_by(pairs).to_numpy()) if len(pairs) else None
    found: dict[str, Any] = {"rates": [], "by": [], "controls": [], "alpha": alpha}
    for judge, of_judge in by_judge(pairs):
        for agent in [*([ALL] if len(agents) > 1 else []), *agents]:
            of_agent = of_judge if agent == ALL else of_judge[of_judge["agent"] == agent]
            for (turns, mode), some in of_agent.groupby(["turns", "mode"], dropna=False):
                cell = {"turns": _known(turns, int), "mode": _known(mode, str)}
                found["rates"].append({"judge": judge, "agent": agent, **cell, **_rate(some, seed)})
        for column in by:
            for value, some in of_judge.groupby(column):
                told = {"column": column.removeprefix("meta."), "value": value}
                found["by"].append({"judge": judge, **told, **_rate(some, seed)})
    for judge, of_judge in by_judge(table[~table["pair"]]):
        for truth, some in of_judge.groupby("truth"):
            given = some[some["verdict"].isin(SAID)]
            row = {"judge": judge, "machines": 2 if truth == "machine" else 0, "verdicts": len(given)}
            found["controls"].append(row | {"first": _first(given)})
    return found


def words_per_message(answers: Answers) -> list[Row]:
    """By agent, turns and mode, over the conversations of a person with the machine among the pairs: ``agent_words``
    and ``person_words``, the mean words of a message, both means over conversations; where delays are known, of those
    messages alone that have one, which what was given or the machine wrote itself has not. And the ``difference`` with
    ``_low`` and ``_high`` (95 %, Student's t over conversations; None where fewer than two differ). ``answers`` are
    those of :func:`judging.verdicts.read_answers`."""
    cells: dict[tuple[Any, ...], list[tuple[float, float]]] = defaultdict(list)
    for one in answers:
        if one.get("beside_truth") is None or one["truth"] == one["beside_truth"]:
            continue
        side, letter, agent = ("answer", one["speaker"], one["agent"])
        if one["truth"] == "human":
            side, letter, agent = ("beside", one["beside_speaker"], one["beside_agent"])
        said = one[side]["messages"]
        delays = (one.get("delays") or {}).get(side) or [None] * len(said)
        words: dict[bool, list[tuple[int, bool]]] = {True: [], False: []}  # of the machine, of the person
        for line, delay in zip(said, delays, strict=True):
            words[line["speaker"] == letter].append((len(line["text"].split()), delay is not None))
        own, others = (
            [number for number, is_known in some if is_known] or [number for number, _ in some]
            for some in (words[True], words[False])
        )
        if letter is not None and own and others:
            cells[agent, one["turns"], one.get("meta.mode")].append((float(np.mean(own)), float(np.mean(others))))
    rows = []
    for (agent, turns, mode), means in sorted(cells.items(), key=_in_order):
        each = np.array(means)
        lengths = dict(zip(("agent_words", "person_words"), map(float, each.mean(axis=0)), strict=True))
        told = {"agent": agent, "turns": turns, "mode": mode, "conversations": len(each), **lengths}
        rows.append(told | _mean_interval(each[:, 0] - each[:, 1]))
    return rows


def _in_order(cell: tuple[tuple[Any, ...], Any]) -> tuple[str, int, str]:
    agent, turns, mode = cell[0]
    return agent, turns or 0, str(mode)


def _rate(some: pd.DataFrame, seed: int) -> Row:
    import pandas as pd

    given = some[some["verdict"].isin(SAID)]
    right = given["verdict"] == given["truth"]
    judges = pd.factorize(given["judge"])[0].astype(np.int64)
    rate, low, high, is_exact = share((~right).to_numpy(dtype=np.float64), judges, _in_common(given), seed)
    return {
        "pairs": int(given["trial"].nunique()),
        "judges": int(given["judge"].nunique()),
        "verdicts": len(given),
        "right": int(right.sum()),
        **{why: int((some["verdict"] == why).sum()) for why in MISSING},
        "pass_rate": rate,
        "pass_rate_low": low,
        "pass_rate_high": high,
        "interval": EXACT if is_exact else TWO_WAY,
        "first": _first(given),
    }


def _in_common(given: pd.DataFrame) -> Codes:
    """A number for each verdict, the same for pairs about one stimulus or with one conversation of people."""
    import pandas as pd

    stimuli, names = pd.factorize(given["stimulus"])
    if PEOPLE not in given.columns:
        return np.asarray(stimuli, dtype=np.int64)
    people, others = pd.factorize(given[PEOPLE])
    known = people >= 0
    size = len(names) + len(others)
    links = coo_array((np.ones(known.sum()), (stimuli[known], len(names) + people[known])), shape=(size, size))
    return np.asarray(connected_components(links, directed=False)[1][stimuli], dtype=np.int64)


def _first(given: pd.DataFrame) -> float:
    return float((given["verdict"] == "machine").mean()) if len(given) else math.nan


def _mean_interval(differences: np.ndarray[Any, np.dtype[np.float64]]) -> Row:
    number, mean = len(differences), float(differences.mean())
    found: Row = {"difference": mean, "difference_low": None, "difference_high": None}
    if number > 1 and np.ptp(differences) > rounding(differences):
        half = float(stdtrit(number - 1, (1 + CONFIDENCE) / 2)) * float(differences.std(ddof=1)) / math.sqrt(number)
        found |= {"difference_low": mean - half, "difference_high": mean + half}
    return found


def _known(value: Any, kind: Any) -> Any:
    return None if value is None or value != value else kind(value)
