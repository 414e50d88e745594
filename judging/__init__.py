"""Trials, the judges that answer them, and scores of their verdicts.

For programs: :func:`trials` draws what judges see, and :func:`judge` lets judges answer. :func:`score` says who passes
as a person, and :func:`rank` sets judges and agents on one scale. :class:`Study` reads a study of people who judge. The
commands of these names stand on them, with the same defaults.

>>> from judging import judge, score, trials
>>> made = trials("run", "trials", seed=1)
>>> verdicts = judge(made, "svm,cues", "verdicts")
>>> scores = score(verdicts)
>>> print(*scores.sentences(), sep="\\n")
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from judging.judges.asking import judge
    from judging.ranking.common_scale import rank
    from judging.scores.score import score
    from judging.study.folder import Study
    from judging.trial_sets.composing import trials

__all__ = ["Study", "judge", "rank", "score", "trials"]

# Loaded when it is asked for: the commands that need no judge start without pandas and torch.
_HOME = {
    "Study": "judging.study.folder",
    "judge": "judging.judges.asking",
    "rank": "judging.ranking.common_scale",
    "score": "judging.scores.score",
    "trials": "judging.trial_sets.composing",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
