"""What the page of scores shows: texts, tables and figures, section by section.

The template ``scores.html`` lays it out, and computes nothing: a table is changed in :mod:`judging.scores.page`, how it
looks in the template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from judging.statistics.tables import Estimate, Grid

FITS = "display:block;max-width:100%;height:auto"


@dataclass(frozen=True, slots=True)
class DescribedSvg:
    """An SVG with its description for those who do not see it."""

    svg: str
    """The file's text; what stands before ``<svg`` is left out."""
    label: str
    """The description, which also says where the figures stand as numbers."""
    files: Sequence[tuple[str, str]]
    """The forms in which the figure can be saved ("PNG"), each with its address beside the page."""

    def __html__(self) -> Markup:
        start = Markup('<svg role="img" aria-label="{}" style="{}"').format(self.label, FITS)
        return Markup(self.svg[self.svg.index("<svg") :].replace("<svg", start, 1))


@dataclass(frozen=True, slots=True)
class Tile:
    """What a judge's verdicts on an agent come to, at a glance."""

    judge: str
    """Who judged; "" where there is a single judge."""
    look: str
    """The tile's class in the styles: passes, open, above, fails or untested."""
    sign: str
    """The outcome as a sign, which is read beside the word."""
    word: str
    """The outcome as a word."""
    value: str
    """Detectability, 0 to 1; "" where it is not known."""
    interval: str
    """Its 95 % interval; "" where there is none."""
    at: float
    """Where detectability stands in the drawing, in percent of its width."""
    low: float
    """Where its interval begins, likewise."""
    high: float
    """Where its interval ends, likewise."""
    note: str
    """What would decide, or why there is a doubt; "" for none."""


@dataclass(frozen=True, slots=True)
class AgentTiles:
    """An agent's tiles, judge by judge."""

    agent: str
    """The agent's name."""
    tiles: Sequence[Tile]
    """People's first."""


@dataclass(frozen=True, slots=True)
class TaskResult:
    """The outcome of a task on the page's first tab."""

    task: str
    """The task's name in files, to which its link to the details goes."""
    name: str
    """Its name for readers, the heading."""
    sentence: str
    """How many agents pass, do not pass, or are undecided."""
    agents: Sequence[AgentTiles]
    """Who passes stands first."""
    judges: int
    """How many judges there are, the most tiles of an agent."""


@dataclass(frozen=True, slots=True)
class JudgeSection:
    """A judge's scores in a task."""

    judge: str
    """The judge's name, the section's heading."""
    of_people: str
    """How many verdicts on people's answers, with the noun: "120 verdicts"."""
    of_machines: str
    """How many on machines' answers, without the noun."""
    is_one_word: bool
    """Whether the judge said the same of every answer, so that the section warns."""
    figure: DescribedSvg | None
    """The rates of each agent; None where it was not drawn."""
    grid: Grid
    """By agent the rates, d', criterion and counts."""


@dataclass(frozen=True, slots=True)
class CaptionSection:
    """Captions by standard measures, and how these go with detectability."""

    note: str
    """A sentence on how many references there are."""
    figure: DescribedSvg | None
    """Detectability over BLEU and CIDEr-D; None where it was not drawn."""
    grid: Grid
    """The measures of people and of each agent."""
    correlations: Grid
    """The coefficients by judge and measure."""


@dataclass(frozen=True, slots=True)
class AgreementSection:
    """How far judges agree."""

    alpha: Estimate
    """Krippendorff's alpha of people; NaN without people."""
    fleiss: float | None
    """Fleiss' kappa of the other judges; None where it is not defined."""
    trials: str
    """How many trials these all judged, with the noun; "" for none, and kappa is not shown."""
    grid: Grid
    """Each two judges, with Cohen's kappa."""


@dataclass(frozen=True, slots=True)
class TaskSection:
    """All figures of a task; what is None, or has no entries, is not shown."""

    task: str
    """The task's name in files, which links within the page go to."""
    name: str
    """Its name for readers, the heading."""
    beside_people: Grid | None
    """The tests of each agent beside people, without judges that go by one cue."""
    best_cue: str | None
    """The judge whose single cue tells machines best; None where no cue was asked that depends on the answer."""
    worth: Grid | None
    """What scores are worth beside the best cue and grouped folds; None for a single judge."""
    judges: Sequence[JudgeSection]
    """The judges that go by no single cue."""
    instead: Mapping[str, str] | None
    """By classifier how it differs from the 2025 paper's, in words; None without classifiers."""
    by_agent: Grid | None
    """p(M|M), a row for each judge and a column for each agent; None with fewer than two of either."""
    cues: Sequence[JudgeSection]
    """The judges that go by one cue; the page folds them."""
    statistics: Grid | None
    """The answers themselves beside people's."""
    has_kappa: bool
    """Whether ``statistics`` hold Fleiss' kappa, so that a note explains it."""
    captions: CaptionSection | None
    """In the task of captions alone."""
    tests: Sequence[Grid]
    """The tests kind by kind, each with its caption."""
    agreement: AgreementSection | None
    """None without two judges and without people."""


@dataclass(frozen=True, slots=True)
class PairsSection:
    """Pairs of conversations: pass rates and what goes with them; None where there is nothing to show."""

    figure: DescribedSvg | None
    """Pass rates over turns."""
    rates: Grid
    """Pass rates by judge, agent, turns and mode."""
    by: Grid | None
    """Pass rates by the values of columns."""
    tests: Grid | None
    """Tests of the same columns."""
    words: Grid | None
    """Words per message of agent and person."""
    alpha: Estimate
    """Krippendorff's alpha of people who judged pairs."""
    controls: Grid | None
    """Verdicts on pairs of two machines or none."""


@dataclass(frozen=True, slots=True)
class PopulationSection:
    """How the answers to a task are distributed."""

    name: str
    """The task's name for readers, the heading."""
    sentences: Sequence[str]
    """What is said of each agent, one text each."""
    grid: Grid
    """The figures by agent and measure."""


@dataclass(frozen=True, slots=True)
class PublishedSection:
    """A paper's figures beside ours."""

    paper: str
    """Which: "2022" or "2025"."""
    cite: str
    """Its citation, without a full stop."""
    beside: Grid | None
    """Its figures with ours; None where we have none of these."""
    number_alone: str
    """How many figures are in ``alone``, with the noun."""
    alone: Grid
    """Its figures without ours, and why there is none."""


@dataclass(frozen=True, slots=True)
class ColumnSection:
    """The scores by the values of a column."""

    column: str
    """The column's name, which links within the page go to."""
    figure: DescribedSvg | None
    """Detectability at each value; None where it was not drawn."""
    grid: Grid
    """By task, judge and value the rates of all agents together."""
    note: str = ""
    """Why a rate is missing at every value; "" where none is."""


@dataclass(frozen=True, slots=True)
class TellSection:
    """What taking properties away of the answers to a task shows."""

    task: str
    """The task's name in files, which links within the page go to."""
    name: str
    """The task's name for readers, the heading."""
    sentences: Sequence[tuple[str, str]]
    """For each judge and agent a headline with its figures."""
    figure: DescribedSvg | None
    """The changes; None where none is known."""
    changes: Grid
    """The changes by judge, agent and property, without judges that go by one cue, unless there are no others."""
    of_cues: Grid | None
    """Those of judges that go by one cue; None without any, or where ``changes`` has them."""
    left: Grid | None
    """What remains when all are gone; None where nothing was taken away."""
    correlated: Grid | None
    """What correlation says of the same properties."""
    changed: Grid | None
    """What else each transformation changed."""
    is_trained: bool
    """Whether a judge was trained on each version."""


@dataclass(frozen=True, slots=True)
class ContaminationSection:
    """Whether participants wrote their answers themselves, task by task."""

    name: str
    """The task's name for readers, the heading."""
    sentences: Sequence[str]
    """The rate, and corrected figures, one text each."""
    grid: Grid | None
    """The figures by judge and agent; None where nothing could be estimated."""
    counts: str
    """How many answers have traces, and how many seem foreign; "" of a known rate."""


@dataclass(frozen=True, slots=True)
class ScorePage:
    """What the page of scores shows, in its order."""

    links: Sequence[tuple[str, str]]
    """The addresses of sections within the details ("#pairs"), with their texts."""
    results: Sequence[TaskResult]
    """By task the sentence and the tiles of the first tab."""
    words_of_result: Mapping[str, str]
    """The words of the first tab with what they mean."""
    words: Mapping[str, str]
    """Those of the details, likewise."""
    conclusions: Sequence[tuple[str, Sequence[tuple[str, str]]]]
    """By task its name for readers and, for each agent and judge, a headline with its reason."""
    scope: str
    """A sentence on whom the conclusions hold for; "" without conclusions."""
    languages: Sequence[str]
    """Sentences on tasks in which people answered in another language than machines."""
    overview: DescribedSvg | None
    """Detectability of each agent by each judge; None where it was not drawn."""
    low: float
    """From which detectability on an agent passes, in percent."""
    high: float
    """Up to which, likewise."""
    needed: Grid | None
    """What more would decide about agents that are undecided; None where there are none."""
    tasks: Sequence[TaskSection]
    """Tables and figures, task by task in the order of the papers."""
    tells: Sequence[TellSection]
    """A section for each task of whose answers properties were taken away."""
    pairs: PairsSection | None
    """None where no pairs of conversations were judged."""
    populations: Sequence[PopulationSection]
    """A section for each task whose answers were compared as populations."""
    contamination: Sequence[ContaminationSection]
    """A section for each task whose scores were corrected for foreign answers."""
    published: PublishedSection | None
    """None where no paper was asked for."""
    columns: Sequence[ColumnSection]
    """A section for each column that scores were asked by."""
    others: Sequence[Grid]
    """Tables of their own at the end: confidence, catch trials, trials shown twice and the like."""
    who: DescribedSvg | None
    """What the people who judged say about themselves; None where they were not asked."""
    methods: str
    """A paragraph for a section on methods; "" for none."""
