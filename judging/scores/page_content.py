"""What the page of scores shows: texts, tables and figures, section by section.

The template ``scores.html`` lays it out, and computes nothing: a table is changed in :mod:`judging.scores.page`, how it
looks in the template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from judging.scores.conclusions import Reasons
from judging.statistics.tables import Estimate, Grid

FITS = "display:block;max-width:100%;height:auto"


@dataclass(frozen=True, slots=True)
class Picture:
    """An SVG with its description for those who do not see it."""

    svg: str
    label: str

    def __html__(self) -> Markup:
        start = Markup('<svg role="img" aria-label="{}" style="{}"').format(self.label, FITS)
        return Markup(self.svg[self.svg.index("<svg") :].replace("<svg", start, 1))


@dataclass(frozen=True, slots=True)
class JudgeSection:
    """A judge's scores in a task. ``of_people`` and ``of_machines`` say how many verdicts on whose answers there are;
    ``is_one_word``: the judge said the same of every answer."""

    judge: str
    of_people: str
    of_machines: str
    is_one_word: bool
    figure: Picture
    grid: Grid


@dataclass(frozen=True, slots=True)
class CaptionSection:
    """Captions by standard measures, and how these go with detectability."""

    note: str
    figure: Picture | None
    grid: Grid
    correlations: Grid


@dataclass(frozen=True, slots=True)
class AgreementSection:
    """How far judges agree: Krippendorff's ``alpha`` of people, Fleiss' kappa of the others on ``trials`` ("" for
    none), and each two judges."""

    alpha: Estimate
    fleiss: float | None
    trials: str
    grid: Grid


@dataclass(frozen=True, slots=True)
class TaskSection:
    """All figures of a task; what is None, or has no entries, is not shown. ``best_cue`` is the judge whose single cue
    tells machines best, ``instead`` has by classifier in what it differs from the paper's."""

    task: str
    name: str
    beside_people: Grid | None
    best_cue: str | None
    worth: Grid | None
    judges: Sequence[JudgeSection]
    instead: Mapping[str, str] | None
    by_agent: Grid | None
    cues: Sequence[JudgeSection]
    statistics: Grid | None
    has_kappa: bool
    captions: CaptionSection | None
    tests: Sequence[Grid]
    agreement: AgreementSection | None


@dataclass(frozen=True, slots=True)
class PairsSection:
    """Pairs of conversations: pass rates and what goes with them; None where there is nothing to show."""

    figure: Picture | None
    rates: Grid
    by: Grid | None
    tests: Grid | None
    words: Grid | None
    alpha: Estimate
    controls: Grid | None


@dataclass(frozen=True, slots=True)
class PopulationSection:
    """How the answers to a task are distributed: ``sentences`` agent by agent, and the figures."""

    name: str
    sentences: Sequence[str]
    grid: Grid


@dataclass(frozen=True, slots=True)
class PublishedSection:
    """A ``paper``'s figures beside ours, with its citation; those that have none of ours are ``alone``."""

    paper: str
    cite: str
    beside: Grid | None
    number_alone: str
    alone: Grid


@dataclass(frozen=True, slots=True)
class ColumnSection:
    """The scores by the values of a column."""

    column: str
    figure: Picture | None
    grid: Grid


@dataclass(frozen=True, slots=True)
class Page:
    """What the page of scores shows, in its order. ``links`` are addresses within it with their texts, ``conclusions``
    have a task's name and, agent by agent, headlines with their reasons."""

    links: Sequence[tuple[str, str]]
    correction: str
    conclusions: Sequence[tuple[str, Sequence[Reasons]]]
    scope: str
    overview: Picture | None
    bounds: str
    tasks: Sequence[TaskSection]
    pairs: PairsSection | None
    populations: Sequence[PopulationSection]
    published: PublishedSection | None
    columns: Sequence[ColumnSection]
    others: Sequence[Grid]
    who: Picture | None
    methods: str
