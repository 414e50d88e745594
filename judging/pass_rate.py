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
    rates: dict[str, Any] = {"rates": [], "by": [], "controls": [], "alpha": alpha}
    for judge, of_judge in by_judge(pairs):
        for agent in [*([ALL] if len(agents) > 1 else []), *agents]:
            of_agent = of_judge if agent == ALL else of_judge[of_judge["agent"] == agent]
            for (turns, mode), part in of_agent.groupby(["turns", "mode"], dropna=False):
                cell = {"turns": _known(turns, int), "mode": _known(mode, str)}
                rates["rates"].append({"judge": judge, "agent": agent, **cell, **_rate(part, seed)})
        for column in by:
            for value, part in of_judge.groupby(column):
                value_of = {"column": column.removeprefix("meta."), "value": value}
                rates["by"].append({"judge": judge, **value_of, **_rate(part, seed)})
    for judge, of_judge in by_judge(table[~table["pair"]]):
        for truth, part in of_judge.groupby("truth"):
            judged = part[part["verdict"].isin(SAID)]
            row = {"judge": judge, "machines": 2 if truth == "machine" else 0, "verdicts": len(judged)}
            rates["controls"].append(row | {"first": _first(judged)})
    return rates


def words_per_message(answers: Answers) -> list[Row]:
    """By agent, turns and mode, over the conversations of a person with the machine among the pairs: ``agent_words``
    and ``person_words``, the mean words of a message, both means over conversations; where delays are known, of those
    messages alone that have one, which what was given or the machine wrote itself has not. And the ``difference`` with
    ``_low`` and ``_high`` (95 %, Student's t over conversations; None where fewer than two differ). ``answers`` are
    those of :func:`judging.verdicts.read_answers`."""
    cells: dict[tuple[Any, ...], list[tuple[float, float]]] = defaultdict(list)
    for answer in answers:
        if answer.get("beside_truth") is None or answer["truth"] == answer["beside_truth"]:
            continue
        side, letter, agent = ("answer", answer["speaker"], answer["agent"])
        if answer["truth"] == "human":
            side, letter, agent = ("beside", answer["beside_speaker"], answer["beside_agent"])
        messages = answer[side]["messages"]
        delays = (answer.get("delays") or {}).get(side) or [None] * len(messages)
        words: dict[bool, list[tuple[int, bool]]] = {True: [], False: []}  # of the machine, of the person
        for line, delay in zip(messages, delays, strict=True):
            words[line["speaker"] == letter].append((len(line["text"].split()), delay is not None))
        machine_words, person_words = (
            [number for number, is_known in of_speaker if is_known] or [number for number, _ in of_speaker]
            for of_speaker in (words[True], words[False])
        )
        if letter is not None and machine_words and person_words:
            cells[agent, answer["turns"], answer.get("meta.mode")].append(
                (float(np.mean(machine_words)), float(np.mean(person_words)))
            )
    rows = []
    for (agent, turns, mode), means in sorted(cells.items(), key=_in_order):
        each = np.array(means)
        lengths = dict(zip(("agent_words", "person_words"), map(float, each.mean(axis=0)), strict=True))
        row = {"agent": agent, "turns": turns, "mode": mode, "conversations": len(each), **lengths}
        rows.append(row | _mean_interval(each[:, 0] - each[:, 1]))
    return rows


def _in_order(cell: tuple[tuple[Any, ...], Any]) -> tuple[str, int, str]:
    agent, turns, mode = cell[0]
    return agent, turns or 0, str(mode)


def _rate(verdicts: pd.DataFrame, seed: int) -> Row:
    import pandas as pd

    judged = verdicts[verdicts["verdict"].isin(SAID)]
    right = judged["verdict"] == judged["truth"]
    judges = pd.factorize(judged["judge"])[0].astype(np.int64)
    rate, low, high, is_exact = share((~right).to_numpy(dtype=np.float64), judges, _in_common(judged), seed)
    return {
        "pairs": int(judged["trial"].nunique()),
        "judges": int(judged["judge"].nunique()),
        "verdicts": len(judged),
        "right": int(right.sum()),
        **{why: int((verdicts["verdict"] == why).sum()) for why in MISSING},
        "pass_rate": rate,
        "pass_rate_low": low,
        "pass_rate_high": high,
        "interval": EXACT if is_exact else TWO_WAY,
        "first": _first(judged),
    }


def _in_common(verdicts: pd.DataFrame) -> Codes:
    """A number for each verdict, the same for pairs about one stimulus or with one conversation of people."""
    import pandas as pd

    stimuli, names = pd.factorize(verdicts["stimulus"])
    if PEOPLE not in verdicts.columns:
        return np.asarray(stimuli, dtype=np.int64)
    people, others = pd.factorize(verdicts[PEOPLE])
    known = people >= 0
    size = len(names) + len(others)
    links = coo_array((np.ones(known.sum()), (stimuli[known], len(names) + people[known])), shape=(size, size))
    return np.asarray(connected_components(links, directed=False)[1][stimuli], dtype=np.int64)


def _first(verdicts: pd.DataFrame) -> float:
    return float((verdicts["verdict"] == "machine").mean()) if len(verdicts) else math.nan


def _mean_interval(differences: np.ndarray[Any, np.dtype[np.float64]]) -> Row:
    number, mean = len(differences), float(differences.mean())
    row: Row = {"difference": mean, "difference_low": None, "difference_high": None}
    if number > 1 and np.ptp(differences) > rounding(differences):
        half = float(stdtrit(number - 1, (1 + CONFIDENCE) / 2)) * float(differences.std(ddof=1)) / math.sqrt(number)
        row |= {"difference_low": mean - half, "difference_high": mean + half}
    return row


def _known(value: Any, kind: Any) -> Any:
    return None if value is None or value != value else kind(value)
