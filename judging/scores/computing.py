"""From the table of verdicts to all tables of scores."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from agents.stimuli import TASKS
from judging.judges.papers_classifiers import differences_from_paper
from judging.scores.conclusions import OPEN, Conclusion, conclude, in_words
from judging.scores.papers.beside_published import OurFigures, beside_published
from judging.scores.papers.published import CLASSIFIER, Paper, PublishedFigure, kind
from judging.scores.papers.significance import Agreement, agreement, papers_tests
from judging.scores.papers.trends import TYPE
from judging.scores.score_tables import BOUNDS, EMPTY, Alike, CatchRate, PerceivedSex, ScoreTables
from judging.statistics.answer_statistics import answer_statistics, caption_measures
from judging.statistics.by_margin import ByMargin, rankings
from judging.statistics.contrasts import AgainstPeople, StatisticalTest, between_judges, judge_tests
from judging.statistics.jackknife import rates
from judging.statistics.ledger import LedgerRow, SettingsByJudge, ledger
from judging.statistics.measures import (
    ALL,
    LOG_LINEAR,
    Correction,
    Score,
    clusters,
    is_right,
    share,
    summarize,
)
from judging.statistics.needed import Needed, needed
from judging.statistics.pass_rate import pass_rates, verdicts_on_pairs
from judging.statistics.populations import Population
from judging.statistics.tables import Estimate, Table
from judging.statistics.tell_changes import TellChange, TellsLeft, has_versions, tell_changes
from judging.statistics.tell_properties import (
    NO_MEASURES,
    MeasuresByTask,
    TellProperties,
    changed_properties,
    correlated_properties,
    what_is_seen,
)
from judging.statistics.verdict_table import AND, ELSEWHERE, JudgedAnswers, as_drawn, by_judge, counted
from judging.statistics.versions import SEEN
from judging.trial_sets.trial_set import VERDICTS

if TYPE_CHECKING:
    import pandas as pd

DIGITS = 9  # of shares
# What no score of a single answer reads, unless one scores by it.
UNREAD = (
    "record",
    "said",
    "reason",
    "speaker",
    "excluded",
    "catch",
    "swapped",
    "repeat_of",
    "version",
    "version_of",
    "block",
    "moves",
)
OF_PAIRS = ("beside_truth", "beside_agent", "beside_speaker")


@dataclass(frozen=True, slots=True)
class _Choices:
    """What the caller chose: columns to score by, judges' settings, bounds, the correction of d', single-cue judges."""

    by: Sequence[str]
    settings: SettingsByJudge
    bounds: float
    correction: Correction
    cues: Collection[str]


@dataclass(slots=True)
class _Figures:
    """The rows of all tasks so far, by table."""

    scores: list[Score] = field(default_factory=list)
    by: list[Score] = field(default_factory=list)
    ledger: list[LedgerRow] = field(default_factory=list)
    rankings: list[ByMargin] = field(default_factory=list)
    sexes: list[PerceivedSex] = field(default_factory=list)
    agreement: dict[str, Agreement] = field(default_factory=dict)
    tests: dict[str, dict[str, Table[StatisticalTest]]] = field(default_factory=dict)
    conclusions: dict[str, Table[Conclusion]] = field(default_factory=dict)
    needed: list[Needed] = field(default_factory=list)
    tells: list[TellChange] = field(default_factory=list)
    tells_left: list[TellsLeft] = field(default_factory=list)


def compute_scores(
    table: pd.DataFrame,
    by: Sequence[str],
    settings: SettingsByJudge | None = None,
    bounds: float = BOUNDS,
    correction: Correction = LOG_LINEAR,
    *,
    cues: Collection[str] = (),
    answers: JudgedAnswers = (),
    answers_in_versions: JudgedAnswers = (),
    measures: MeasuresByTask = NO_MEASURES,
    catch: Table[CatchRate] = EMPTY,
    populations: Table[Population] = EMPTY,
    against: Paper | None = None,
    methods: str = "",
) -> ScoreTables:
    """All tables of the verdicts that count; of a judge's several verdicts on a trial the first counts.

    Where answers have several versions (:mod:`judging.statistics.versions`), all tables but those of tells are of the
    answers as drawn. ``table`` has a row per verdict (:func:`judging.scores.verdicts.read_verdicts`), without excluded
    ones; ``by`` are further columns to score by, ``settings`` those of trained and language models' judges, ``cues``
    the judges by a single cue. ``bounds`` are as in :func:`judging.statistics.contrasts.agent_tests`, ``correction`` is
    that of d' and the criterion. ``answers`` are the judged trials (:func:`judging.scores.verdicts.read_answers`);
    without them nothing is said of answers themselves. ``answers_in_versions`` are those of all versions, and
    ``measures`` the properties as numbers, by task and tell. ``against`` is a paper whose figures stand beside these.
    The others are put in as they are."""
    in_versions = table
    table = as_drawn(table)
    samples = _alike(table, table[table["sample"] > 0], "trial")
    table = table[table["sample"] == 0]  # a judge's further verdicts on a trial are no further trials
    repeats = _alike(table, table[table["repeat_of"].notna()], "repeat_of")
    main = table[~table["catch"] & table["repeat_of"].isna()]
    is_pair = main["beside_truth"].notna()
    pairs = pass_rates(main[is_pair], by, correction, answers) if is_pair.any() else None
    single = _with_read_columns(main[~is_pair], by)
    choices = _Choices(_with_phase(by, single), settings or {}, bounds, correction, cues)
    figures = _Figures()
    for task in (*TASKS, ELSEWHERE):
        _score_task(task, single[single["asked"] == task], choices, figures)
    properties = _score_tells(in_versions, answers_in_versions, measures, figures)
    single_answers = [answer for answer in answers if answer["beside_truth"] is None]
    scores = Table(figures.scores, omit=("column", "value"))
    published: Table[PublishedFigure] = EMPTY
    if against is not None:
        ours = OurFigures(
            scores=scores.data,
            settings=choices.settings,
            cues=cues,
            verdicts=main[~is_pair],
            catch=_scores_of_catch(catch),
            pairs=verdicts_on_pairs(main[is_pair]) if is_pair.any() else None,
            words=() if pairs is None else pairs.words.data,
            correction=correction,
        )
        published = beside_published(against, ours)
    return ScoreTables(
        scores=scores,
        by=Table(figures.by),
        repeats=Table(repeats),
        samples=Table(samples),
        ledger=Table(figures.ledger),
        agreement=figures.agreement,
        tests=figures.tests,
        conclusions=figures.conclusions,
        needed=Table(figures.needed),
        tells=Table(figures.tells),
        tells_left=Table(figures.tells_left),
        tells_changed=Table(properties.changed),
        tells_correlated=Table(properties.correlated),
        bounds=bounds,
        pairs=pairs,
        rankings=Table(figures.rankings),
        sexes=Table(figures.sexes),
        catch=catch,
        statistics=answer_statistics(single_answers),
        captions=caption_measures(single_answers, scores),
        instead=_instead(scores, choices),
        published=published,
        populations=populations,
        methods=methods,
        dprime_correction=correction,
    )


def _scores_of_catch(catch: Table[CatchRate]) -> dict[str, list[Score]]:
    """The rates of catch trials as scores, by their kind."""
    scores: dict[str, list[Score]] = {}
    for row in catch:
        score = Score(task=row.task, judge=row.judge)
        is_human = row.truth == "human"
        score = replace(score, p_human=row.estimate) if is_human else replace(score, p_machine=row.estimate)
        scores.setdefault(row.kind, []).append(score)
    return scores


def _with_read_columns(table: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """The verdicts on single answers, with the columns that scores are made of, and those of ``by``.

    Task by task, judge by judge and column by column the table is parted, which copies every column that it has."""
    chosen = {part for name in by for part in (name, *name.split(AND))} | {TYPE}
    unread = [
        name
        for name in table.columns
        if (name in (*UNREAD, *OF_PAIRS) or name.startswith(("meta.", "judge."))) and name not in chosen
    ]
    return table.drop(columns=unread)


def _with_phase(by: Sequence[str], table: pd.DataFrame) -> Sequence[str]:
    """The columns to score by; with the phase, where the verdicts were given with feedback and without."""
    has_phases = "phase" in table.columns and table["phase"].nunique() > 1
    return [*by, "phase"] if has_phases and "phase" not in by else by


def _score_task(task: str, of_phases: pd.DataFrame, choices: _Choices, figures: _Figures) -> None:
    """Add the figures of a task's verdicts, of all phases. Without a verdict that counts nothing is added."""
    of_task = counted(of_phases)
    if of_task.empty:
        return
    agents = sorted(of_task["agent"][of_task["truth"] == "machine"].unique())
    of_judges: list[Score] = []
    for judge, of_judge in by_judge(of_phases):
        verdicts = counted(of_judge)
        of_agents = summarize(verdicts, agents, correction=choices.correction)
        of_judges += [replace(row, task=task, judge=judge) for row in of_agents]
        figures.rankings += [replace(row, task=task, judge=judge) for row in rankings(verdicts)]
        figures.sexes += perceived_sexes(task, judge, verdicts)
        for column in choices.by:
            place: dict[str, Any] = {"task": task, "judge": judge, "column": column}
            whole = counted(of_judge, column)
            drawn = clusters(whole).drawn()
            for value, part in whole.groupby(column):
                of_value = summarize(part, agents, drawn, choices.correction)
                figures.by += [replace(row, **place, value=value) for row in of_value]
    figures.scores += of_judges
    figures.ledger += ledger(of_task, of_judges, choices.settings, choices.cues)
    figures.agreement[task] = agreement(of_task)
    tests: dict[str, Sequence[StatisticalTest]] = {
        **judge_tests(of_phases, agents, choices.by, choices.bounds),
        **papers_tests(of_phases, agents, choices.by),
        "between_judges": between_judges(of_task),
    }
    figures.tests[task] = {name: Table(of_kind) for name, of_kind in tests.items()}
    trained = {judge for judge, chosen in choices.settings.items() if "split" in chosen}
    concluded = _concluded(of_judges, tests["against_people"], trained, choices)
    more = _needed(task, of_phases, agents, concluded, trained, choices.bounds)
    figures.needed += more
    in_other_words = {(row.judge, row.agent): in_words(row) for row in more}
    figures.conclusions[task] = Table(
        [replace(row, more=in_other_words.get((row.judge, row.agent), "")) for row in concluded]
    )


def _score_tells(
    table: pd.DataFrame, answers: JudgedAnswers, measures: MeasuresByTask, figures: _Figures
) -> TellProperties:
    """Add the changes of all tasks of which answers have several versions; what is known of their properties."""
    if not has_versions(table):
        return TellProperties()
    is_single = ~table["catch"] & table["repeat_of"].isna() & table["beside_truth"].isna() & (table["sample"] == 0)
    single = counted(table[is_single])
    seen = {answer["trial"]: what_is_seen(answer) for answer in answers}
    single = single.assign(**{SEEN: single["trial"].map(seen)})
    properties = TellProperties()
    for task in TASKS:
        of_task = single[single["asked"] == task]
        if not has_versions(of_task):
            continue
        changes, left = tell_changes(task, of_task)
        figures.tells += changes
        figures.tells_left += left
        of_answers = [answer for answer in answers if answer["asked"] == task]
        properties.changed += changed_properties(task, of_answers, measures.get(task, {}))
        properties.correlated += correlated_properties(task, of_task, of_answers, measures.get(task, {}), changes)
    return properties


def _concluded(
    scores: Sequence[Score], tests: Sequence[StatisticalTest], trained: Collection[str], choices: _Choices
) -> list[Conclusion]:
    """What the tests of agents beside people come to. A judge that goes by one cue concludes nothing of answers."""
    beside_people = [test for test in tests if isinstance(test, AgainstPeople) and test.judge not in choices.cues]
    able = [score for score in scores if score.judge not in choices.cues]
    return conclude(able, beside_people, trained, choices.bounds)


def _needed(
    task: str,
    of_phases: pd.DataFrame,
    agents: Sequence[str],
    concluded: Sequence[Conclusion],
    trained: Collection[str],
    bounds: float,
) -> list[Needed]:
    """What more would decide about the agents that are undecided, judge by judge."""
    rows = []
    for judge, of_judge in by_judge(of_phases):
        undecided = [row.agent for row in concluded if row.judge == judge and row.outcome == OPEN]
        if undecided:
            found = needed(counted(of_judge), agents, undecided, bounds, is_trained=judge in trained)
            rows += [replace(row, task=task, judge=judge) for row in found]
    return rows


def _instead(scores: Table[Score], choices: _Choices) -> dict[str, dict[str, list[str]]]:
    """By task and classifier, in what it differs from the 2025 paper's."""
    instead: dict[str, dict[str, list[str]]] = {}
    for row in scores.where(agent=ALL):
        if kind(row.judge, choices.settings, choices.cues) == CLASSIFIER:
            differences = list(differences_from_paper("2025", row.task, choices.settings[row.judge]))
            instead.setdefault(row.task, {})[row.judge] = differences
    return instead


def perceived_sexes(task: str, judge: str, verdicts: pd.DataFrame) -> list[PerceivedSex]:
    """How often speakers were taken for male: all, people and machines, and those who were taken for either."""
    if "sex" not in verdicts.columns or (with_sex := verdicts[verdicts["sex"].notna()]).empty:
        return []
    kinds = {"all": with_sex["truth"].notna()}
    for column, word in (("truth", "{}"), ("verdict", "judged {}")):
        kinds |= {word.format(kind): with_sex[column] == kind for kind in VERDICTS}
    result = rates((with_sex["sex"] == "male").to_numpy(float), np.array(list(kinds.values())), clusters(with_sex))
    ends = result.interval(np.arange(len(kinds))[:, None], np.ones(1))
    figures = np.array([result.value, *ends]).T.round(DIGITS).tolist()
    return [
        PerceivedSex(task, judge, whose, int(number), Estimate(*of_kind))
        for whose, number, of_kind in zip(kinds, result.number, figures, strict=True)
    ]


def catch_rates(table: pd.DataFrame) -> Table[CatchRate]:
    """By task, kind and truth, of all people together, excluded ones too, and of each other judge."""
    catch = table[table["catch"] & (table["sample"] == 0) & table["verdict"].isin(VERDICTS)]
    rows = []
    for (task, swapped, truth), verdicts in catch.groupby(["asked", "swapped", "truth"]):
        name = "swapped" if swapped else "catch"
        for judge, part in by_judge(verdicts):
            estimate, _ = share(is_right(part), clusters(part))
            trials = int(part.groupby("judge")["trial"].nunique().sum())
            rows.append(
                CatchRate(task, name, truth, judge, int(part["judge"].nunique()), trials, estimate.value, estimate)
            )
    return Table(rows, omit=("estimate",))


def _alike(table: pd.DataFrame, again: pd.DataFrame, first: str) -> list[Alike]:
    import pandas as pd

    before = table[(table["sample"] == 0) & table["verdict"].isin(VERDICTS)].drop_duplicates(["judge", "trial"])
    again = again[again["verdict"].isin(VERDICTS)].drop_duplicates(["judge", "trial", "sample"])
    both = pd.merge(again, before, left_on=["judge", first], right_on=["judge", "trial"], suffixes=("", "_first"))
    is_alike = both["verdict"] == both["verdict_first"]
    return [
        Alike(task, judge, len(part), float(is_alike[part.index].mean()))
        for (task, judge), part in both.groupby(["asked", "judge"])
    ]
