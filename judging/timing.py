"""How well whose conversation it is, and what judges said of it, can be told from delays and lengths alone.

A logistic regression is given numbers of letters, then also delays, and nothing that was said; it is asked by
cross-validation in folds that share no topic or stimulus, so no conversation. What it tells of truth, a judge can know
without reading; what it tells of verdicts, judges may have gone by. Of speakers who type by one model of delays
nothing can be told, unless their messages differ in length.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from judging.blindness import detected
from judging.verdicts import SAID, Answers, by_judge

if TYPE_CHECKING:
    import pandas as pd

LEAST = 20  # of each kind of what is told; below that nothing could be
LEAST_GROUPS = 5
TRUTH = "truth"
Floats = NDArray[np.float64]


def timing_channel(table: pd.DataFrame, answers: Answers, seed: int) -> list[dict[str, Any]]:
    """Of ``shown`` (speakers, or pairs of conversations) and what is ``told`` (truth, or a judge's verdicts), ``by``
    lengths alone, and delays and lengths: the ``number`` of trials or verdicts and, with ``_low`` and ``_high`` (95 %),
    ``rate``, the mean of the shares of both kinds that are told rightly; 0.5 is chance.

    ``answers`` are those of :func:`judging.verdicts.read_answers`, ``table`` verdicts that count. Nothing where no
    delays are known, or too little is there to be told.
    """
    rows = []
    for shown, is_pair in (("speakers", False), ("pairs", True)):
        some = {
            one["trial"]: (one, _numbers(one))
            for one in answers
            if one["asked"] == "conversation"
            and (one.get("beside_truth") is not None) == is_pair
            and one["truth"] != one.get("beside_truth")
        }
        known = {trial: (one, numbers) for trial, (one, numbers) in some.items() if numbers is not None}
        told = [(TRUTH, list(known), [one["truth"] for one, _ in known.values()])]
        of_these = table[table["trial"].isin(known) & table["verdict"].isin(SAID)]
        for judge, given in by_judge(of_these):
            told.append((judge, given["trial"].tolist(), given["verdict"].tolist()))
        for what, trials, said in told:
            is_machine = np.array([one == "machine" for one in said], dtype=np.bool_)
            groups = [_group(known[trial][0]) for trial in trials]
            if min(is_machine.sum(), (~is_machine).sum()) < LEAST or len(set(groups)) < LEAST_GROUPS:
                continue
            numbers = np.array([known[trial][1] for trial in trials])
            for by, columns in (("lengths", numbers[:, 0]), ("delays and lengths", numbers.reshape(len(trials), -1))):
                found = detected(columns, is_machine, groups, seed)
                low, high = max(0.0, found["low"]), min(1.0, found["high"])
                row = {"shown": shown, "told": what, "by": by, "number": len(trials), "topics": len(set(groups))}
                rows.append(row | {"rate": found["detectability"], "rate_low": low, "rate_high": high})
    return rows


def _numbers(one: Mapping[str, Any]) -> Floats | None:
    """[2, features]: of lengths and of delays; None where no delay is known. Of a pair what the answer has more than
    the conversation beside it."""
    delays = one.get("delays") or {}
    if one.get("beside_truth") is None:
        return _of_messages(one["answer"]["messages"], delays.get("answer", ()), [one["speaker"]])
    sides = [_of_messages(one[side]["messages"], delays.get(side, ()), ["A", "B"]) for side in ("answer", "beside")]
    return sides[0] - sides[1] if sides[0] is not None and sides[1] is not None else None


def _of_messages(
    messages: Sequence[Mapping[str, str]], delays: Sequence[float | None], speakers: Sequence[str]
) -> Floats | None:
    """The mean and deviation of the logarithms of letters, then of seconds, over the messages of ``speakers`` whose
    delay is known, and how far apart the two speakers' means are."""
    if len(delays) != len(messages):
        return None
    by = {
        speaker: np.array(
            [
                (np.log1p(len(message["text"])), np.log1p(max(0.0, delay)))
                for message, delay in zip(messages, delays, strict=True)
                if message["speaker"] == speaker and delay is not None
            ]
        ).reshape(-1, 2)
        for speaker in speakers
    }
    if not all(len(one) for one in by.values()):
        return None
    rows = []
    for column in (0, 1):
        every = np.concatenate([one[:, column] for one in by.values()])
        means = [one[:, column].mean() for one in by.values()]
        rows.append([every.mean(), every.std(), max(means) - min(means)])
    return np.array(rows, dtype=np.float64)


def _group(one: Mapping[str, Any]) -> str:
    return str(one.get("meta.topic") or one["stimulus"])
