"""The tables that scoring fills, as ``scores.json`` and the CSV files have them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from judging.contamination.corrected_scores import Contamination
from judging.contamination.pairs import ContaminatedPairs
from judging.scores.conclusions import Conclusion
from judging.scores.papers.published import PublishedFigure
from judging.scores.papers.significance import Agreement
from judging.statistics.answer_statistics import CaptionMeasures, Statistic
from judging.statistics.by_margin import ByMargin
from judging.statistics.contrasts import StatisticalTest
from judging.statistics.ledger import LedgerRow
from judging.statistics.measures import LOG_LINEAR, Correction, Score
from judging.statistics.needed import Needed
from judging.statistics.pass_rate import PassRates
from judging.statistics.populations import Population
from judging.statistics.tables import NO_FIGURE, Estimate, Table
from judging.statistics.tell_changes import TellChange, TellsLeft
from judging.statistics.tell_properties import ChangedProperty, CorrelatedProperty

BOUNDS = 0.05  # around a detectability of 0.5: of 0.45 to 0.55, as the papers have it


@dataclass(frozen=True, slots=True)
class Alike:
    """How consistent a judge is on trials that it judged before."""

    task: str
    """The task that was answered."""
    judge: str
    """The judge's name; of people, each by themselves."""
    verdicts: int
    """How many verdicts are on trials judged before."""
    alike: float
    """The share of them that is equal to the first, 0 to 1."""


@dataclass(frozen=True, slots=True)
class PerceivedSex:
    """How often speakers were taken for male (2022 paper, Table S8)."""

    task: str
    """The task that was answered."""
    judge: str
    """Who judged; "people" are all people together."""
    of: str
    """Which answers: "all", by whose they are ("human", "machine"), or by the verdict ("judged human", …)."""
    verdicts: int
    """How many of these answers' verdicts name a sex."""
    male: Estimate
    """The share that names male, 0 to 1."""


@dataclass(frozen=True, slots=True)
class CatchRate:
    """How often catch trials were judged rightly (2025 paper, Table S3); a trial counts once for each judge."""

    task: str
    """The task that was answered."""
    kind: str
    """Either "catch", or "swapped" for scanpaths on another picture."""
    truth: str
    """Whose the answers are: "human" or "machine"."""
    judge: str
    """Who judged; "people" are all people together, excluded ones too."""
    judges: int
    """How many judges that is."""
    trials: int
    """How many trials they judged."""
    right: float
    """The share that was judged rightly, 0 to 1."""
    estimate: Estimate = NO_FIGURE
    """The same with its 95 % interval, which the papers' figures stand beside; files lack it."""


EMPTY: Table[Any] = Table(())


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreTables:
    """What scoring found; the fields are the keys of ``scores.json``, in this order.

    Most are tables with a row per task and judge, whose CSV file has the field's name. ``tests``, ``agreement``,
    ``conclusions`` and ``instead`` (in what a classifier differs from the papers') are by task."""

    scores: Table[Score] = EMPTY
    """By task, judge and agent: counts, p(H|H), p(M|M), detectability, d', criterion."""
    by: Table[Score] = EMPTY
    """The same for each value of each column of ``by``."""
    repeats: Table[Alike] = EMPTY
    """Trials that came twice in a list."""
    samples: Table[Alike] = EMPTY
    """Further verdicts of a judge on a trial."""
    ledger: Table[LedgerRow] = EMPTY
    """What each judge's score is worth beside single cues and other folds."""
    agreement: Mapping[str, Agreement] = field(default_factory=dict)
    """By task how far judges agree."""
    tests: Mapping[str, Mapping[str, Table[StatisticalTest]]] = field(default_factory=dict)
    """By task and kind the tests, with the papers' own."""
    conclusions: Mapping[str, Table[Conclusion]] = field(default_factory=dict)
    """By task who passes, in words."""
    needed: Table[Needed] = EMPTY
    """What more would decide about agents that are undecided."""
    tells: Table[TellChange] = EMPTY
    """How detectability changes when a property is taken away of all answers."""
    tells_left: Table[TellsLeft] = EMPTY
    """What judges still find when all these properties are gone."""
    tells_changed: Table[ChangedProperty] = EMPTY
    """What taking each property away, or planting it, changed in the answers."""
    tells_correlated: Table[CorrelatedProperty] = EMPTY
    """What correlation says of the same properties, beside the intervention."""
    bounds: float = BOUNDS
    """An agent passes if the 90 % interval of its detectability lies within 0.5 ± this."""
    pairs: PassRates | None = None
    """Pass rates, where conversations were judged in pairs."""
    rankings: Table[ByMargin] = EMPTY
    """How margins and confidence rank answers."""
    sexes: Table[PerceivedSex] = EMPTY
    """Whom judges took for male."""
    catch: Table[CatchRate] = EMPTY
    """Catch trials, before anybody is excluded."""
    statistics: Table[Statistic] = EMPTY
    """Means and deviations of the answers themselves."""
    captions: CaptionMeasures | None = None
    """BLEU and CIDEr-D of captions, where captions were judged."""
    instead: Mapping[str, Mapping[str, list[str]]] = field(default_factory=dict)
    """By task and classifier, in what it differs from the 2025 paper's."""
    published: Table[PublishedFigure] = EMPTY
    """The figures that a paper printed, beside ours."""
    populations: Table[Population] = EMPTY
    """How the distribution of an agent's answers compares with people's."""
    contamination: Table[Contamination] = EMPTY
    """Figures corrected for answers that participants did not write; empty where that was not asked for."""
    contamination_pairs: Table[ContaminatedPairs] = EMPTY
    """Pass rates of pairs of conversations, corrected likewise."""
    methods: str = ""
    """A paragraph for a section on methods."""
    dprime_correction: Correction = LOG_LINEAR
    """The correction of d' and of the criterion."""

    def by_name(self) -> dict[str, Table[Any]]:
        """The tables by the names of their CSV files."""
        values = ((entry.name, getattr(self, entry.name)) for entry in fields(self))
        tables: dict[str, Table[Any]] = {name: value for name, value in values if isinstance(value, Table)}
        if self.captions is not None:
            tables["captions"] = self.captions.agents
        if self.pairs is not None:
            tables["pass_rates"] = self.pairs.rates
            tables["pass_rates_by"] = self.pairs.by
            tables["words"] = self.pairs.words
        return tables
