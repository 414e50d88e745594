"""What scoring found: the tables of :class:`Scores`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from judging.scores.conclusions import Conclusion
from judging.scores.papers.published import PublishedFigure
from judging.scores.papers.significance import Agreement
from judging.statistics.answer_statistics import CaptionMeasures, Statistic
from judging.statistics.by_margin import Ranking
from judging.statistics.contrasts import Test
from judging.statistics.measures import (
    LOG_LINEAR,
    Correction,
    Score,
    Worth,
)
from judging.statistics.pass_rate import PassRates
from judging.statistics.populations import Population
from judging.statistics.tables import Estimate, Table

if TYPE_CHECKING:
    pass
BOUNDS = 0.05  # around a detectability of 0.5: of 0.45 to 0.55, as the papers have it


@dataclass(frozen=True, slots=True)
class Alike:
    """The share of further verdicts on trials that are as the first."""

    task: str
    judge: str
    verdicts: int
    alike: float


@dataclass(frozen=True, slots=True)
class CatchRate:
    """The share of catch trials, or swapped scanpaths, judged rightly (2025 paper, Table S3)."""

    task: str
    kind: str
    truth: str
    judge: str
    judges: int
    trials: int
    right: float


@dataclass(frozen=True, slots=True)
class PerceivedSex:
    """The share of answers whose speaker was taken for male (2022 paper, Table S8)."""

    task: str
    judge: str
    of: str
    verdicts: int
    male: Estimate


EMPTY: Table[Any] = Table(())


@dataclass(slots=True)
class Scores:
    """``repeats`` are of trials that came twice, ``samples`` of further verdicts."""

    scores: Table[Score] = EMPTY
    by: Table[Score] = EMPTY
    repeats: Table[Alike] = EMPTY
    samples: Table[Alike] = EMPTY
    ledger: Table[Worth] = EMPTY
    agreement: dict[str, Agreement] = field(default_factory=dict)
    tests: dict[str, dict[str, Table[Test]]] = field(default_factory=dict)
    conclusions: dict[str, Table[Conclusion]] = field(default_factory=dict)
    bounds: float = BOUNDS
    pairs: PassRates | None = None
    rankings: Table[Ranking] = EMPTY
    sexes: Table[PerceivedSex] = EMPTY
    catch: Table[CatchRate] = EMPTY
    statistics: Table[Statistic] = EMPTY
    captions: CaptionMeasures | None = None
    instead: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    published: Table[PublishedFigure] = EMPTY
    populations: Table[Population] = EMPTY
    methods: str = ""
    dprime_correction: Correction = LOG_LINEAR
