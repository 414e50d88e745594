"""The page of scores: which tables and figures stand in which section, and under which heading."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from judging.scores.conclusions import SCOPE, Conclusion
from judging.scores.figures import CAPTION_TASK, CAPTIONS, OVERVIEW, figure_of, without_repetition
from judging.scores.glossary import words_of_details, words_of_result
from judging.scores.other_sections import (
    by_column,
    contamination_sections,
    headings,
    of_people_alone,
    others,
    pairs_section,
    picture,
    population_section,
    published_section,
    unless_empty,
)
from judging.scores.page_content import (
    AgreementSection,
    CaptionSection,
    ColumnSection,
    JudgeSection,
    ScorePage,
    TaskSection,
)
from judging.scores.score_tables import ScoreTables
from judging.scores.tell_section import tell_sections
from judging.scores.tiles import results
from judging.statistics.answer_statistics import KAPPA
from judging.statistics.measures import ALL, Score
from judging.statistics.tables import Grid, Table
from judging.statistics.verdict_table import PEOPLE, TASK_NAMES
from serving.files.words import count
from serving.pages.rendering import render

OF_PAPERS = "As in the papers, for these answers only"
TESTS = {  # by kind the heading of a table of tests, and its columns
    "against_half": ("Rates compared with a half", "judge of measure rate p holm family result test"),
    "between_agents": ("Agents compared with each other: p(M|M)", "judge first second difference p holm family test"),
    "between_judges": (
        "Judges on the same trials: detectability",
        "first second trials difference p holm family test",
    ),
    "by_columns": ("Detectability by columns", "judge column value beside difference p holm family test"),
    "papers_over_judges": (
        f"{OF_PAPERS}: Wilcoxon over judges, against 0.5",
        "judge of measure judges rate p holm family test",
    ),
    "papers_among_agents": (f"{OF_PAPERS}: Friedman, all agents", "judge judges agents chi2 kendall_w p test"),
    "papers_between_agents": (
        f"{OF_PAPERS}: permutation, agents compared with each other",
        "judge first second difference p holm family test",
    ),
    "papers_trends": (
        f"{OF_PAPERS}: correctness over an ordered column",
        "judge column measure type change judges p holm family test",
    ),
    "papers_between_values": (
        f"{OF_PAPERS}: raw correctness by columns; of two columns with agent, detectability",
        "judge column unit values statistic freedom effect effect_is p holm family test",
    ),
    "papers_t_tests": (
        f"{OF_PAPERS}: raw correctness of two sets of verdicts",
        "judge column unit values effect statistic freedom p holm family test",
    ),
}


def page(
    tables: ScoreTables,
    differences: Mapping[str, Sequence[str]],
    figures: Mapping[str, str],
    languages: Sequence[str] = (),
) -> str:
    """The HTML of the page of scores.

    ``differences`` are by task the sentences on populations, ``languages`` those on the language of people's answers.
    ``figures`` are SVGs by name, of which those that are
    there are shown."""
    columns = [
        ColumnSection(
            column,
            picture(
                figures,
                figure_of(column),
                f"Detectability by {column}, and how often answers were judged human: by.csv has the figures",
            ),
            by_column(tables, column),
            of_people_alone(tables, column),
        )
        for column in sorted(tables.by.distinct("column"))
    ]
    content = ScorePage(
        links=_links(tables),
        results=results(tables),
        words_of_result=words_of_result(tables),
        words=words_of_details(tables),
        conclusions=[(TASK_NAMES[task], _sentences(rows)) for task, rows in tables.conclusions.items() if rows],
        scope=SCOPE if any(tables.conclusions.values()) else "",
        languages=[f"{sentence[0].upper()}{sentence[1:]}." for sentence in languages],
        overview=picture(
            figures,
            OVERVIEW,
            "Detectability of each agent by each judge, with 95 % intervals; the details have the figures",
        ),
        low=50 - 100 * tables.bounds,
        high=50 + 100 * tables.bounds,
        needed=_needed(tables),
        tasks=[_task_section(tables, task, figures) for task in tables.scores.distinct("task")],
        tells=tell_sections(tables, figures, [row.judge for row in tables.ledger if row.is_cue]),
        pairs=pairs_section(tables, figures),
        populations=[
            population_section(tables, task, differences[task]) for task in tables.populations.distinct("task")
        ],
        contamination=contamination_sections(tables),
        published=published_section(tables),
        columns=columns,
        others=others(tables),
        who=picture(figures, "who", "How many judges gave each answer about themselves: verdicts.csv has them"),
        methods=tables.methods,
    )
    return render("judging.scores", "scores.html", title="Scores", page=content)


def _sentences(conclusions: Table[Conclusion]) -> list[tuple[str, str]]:
    """A bullet for each agent and judge, so that none is long."""
    bullets = []
    for row in conclusions:
        more = f" {row.more[0].upper()}{row.more[1:]}." if row.more else ""
        bullets.append((f"{row.agent} {row.in_words()}", f"{row.why}.{more}"))
    return bullets


def _needed(tables: ScoreTables) -> Grid | None:
    view = {
        "task": "task",
        "judge": "judge",
        "agent": "agent",
        "times as large": "times",
        "more judges": "more_judges",
        "more stimuli": "more_stimuli",
        "more participants": "more_people",
        "or more judges alone": "judges_alone",
        "or more stimuli alone": "stimuli_alone",
        "or more participants alone": "people_alone",
        "not known": "why",
    }
    used = {
        name: of_row
        for name, of_row in view.items()
        if any(getattr(row, of_row) not in (None, "") for row in tables.needed)
    }
    return unless_empty(tables.needed, used, "What more would decide, in 4 of 5 such studies")


def _links(tables: ScoreTables) -> list[tuple[str, str]]:
    links = [("#needed", "What more would decide")] if tables.needed else []
    links += [(f"#{task}", TASK_NAMES[task]) for task in tables.scores.distinct("task")]
    if tables.tells:
        links.append(("#tells", "Tells"))
    if tables.pairs is not None:
        links.append(("#pairs", "Pairs"))
    if tables.populations:
        links.append(("#populations", "Populations"))
    if tables.contamination or tables.contamination_pairs:
        links.append(("#contamination", "Is the human human?"))
    if tables.published:
        links.append(("#published", "The paper's figures"))
    links += [(f"#by-{column}", f"By {column}") for column in sorted(tables.by.distinct("column"))]
    if tables.methods:
        links.append(("#methods", "Methods"))
    return links


def _task_section(tables: ScoreTables, task: str, figures: Mapping[str, str]) -> TaskSection:
    rows = tables.scores.where(task=task)
    worth = tables.ledger.where(task=task)
    cues = worth.where(is_cue=True).distinct("judge")
    beside_people = Table([test for test in tables.tests[task]["against_people"] if test.judge not in cues])
    statistics = tables.statistics.where(task=task)
    instead = tables.instead.get(task)
    tests = tables.tests[task]
    return TaskSection(
        task=task,
        name=TASK_NAMES[task],
        beside_people=unless_empty(
            beside_people,
            "judge agent difference p holm family bounds test",
            "Agents compared with people, with 95 % intervals",
        ),
        best_cue=worth.data[0].best_cue if worth else None,
        worth=_worth(worth) if len(worth) > 1 else None,
        judges=[
            _judge_section(rows.where(judge=judge), figures) for judge in rows.distinct("judge") if judge not in cues
        ],
        instead=None if instead is None else {judge: _in_words(why) for judge, why in instead.items()},
        by_agent=_judges_by_agents(rows),
        cues=[_judge_section(rows.where(judge=judge), figures) for judge in cues],
        statistics=_statistics(statistics) if statistics else None,
        has_kappa=any(row.statistic == KAPPA for row in statistics),
        captions=_caption_section(tables, figures) if task == CAPTION_TASK else None,
        tests=[tests[kind].grid(headings(names), title) for kind, (title, names) in TESTS.items() if tests.get(kind)],
        agreement=_agreement_section(tables, task),
    )


def _in_words(differences: Sequence[str]) -> str:
    return "; ".join(differences) or "nothing that is known differs"


def _worth(worth: Table[Any]) -> Grid:
    view = {
        "judge": "judge",
        "folds": "split",
        "detectability": "detectability",
        "above the best cue": "above_cue",
        "above grouped folds": "above_grouped",
        "accuracy": "accuracy",
        "always human": "always_human",
    }
    return worth.grid(view, "Cues and leakage")


def _judge_section(rows: Table[Score], figures: Mapping[str, str]) -> JudgeSection:
    first = rows.data[0]
    view = {
        "agent": "name",
        "p(H|H)": "p_human",
        "p(M|M)": "p_machine",
        "detectability": "detectability",
        "d'": "dprime",
        "criterion": "criterion",
        "said H, of H": "human_human",
        "said M, of H": "human_machine",
        "said H, of M": "machine_human",
        "said M, of M": "machine_machine",
    }
    if first.judge == PEOPLE:
        view |= {"mean of judges": "detectability_judges", "mean of judges' d'": "dprime_judges"}
    if any(row.missing for row in rows):
        view["missing"] = "missing"
    return JudgeSection(
        judge=first.judge,
        of_people=count(first.of_people, "verdict"),
        of_machines=f"{first.of_machines:,}",
        is_one_word=first.is_one_word,
        figure=picture(
            figures, f"{first.task}-{first.judge}", f"Scores by {first.judge}: the table below has the figures"
        ),
        grid=Table(without_repetition(rows)).grid(view, f"{first.judge}: estimates and 95 % intervals"),
    )


def _judges_by_agents(scores: Table[Score]) -> Grid | None:
    agents = [agent for agent in scores.distinct("agent") if agent != ALL]
    judges = scores.distinct("judge")
    if len(agents) < 2 or len(judges) < 2:
        return None
    values = {(score.judge, score.agent): score.p_machine.value for score in scores}
    rates = {pair: value for pair, value in values.items() if value == value}  # no NaN of a judge without verdicts
    rows = [[judge, *(rates.get((judge, agent)) for agent in agents)] for judge in judges]
    return Grid("p(M|M) by judge and agent", ["judge", *agents], rows)


def _statistics(statistics: Table[Any]) -> Grid:
    view = {
        "statistic": "statistic",
        "of": "of",
        "answers": "number",
        "mean": "mean",
        "standard deviation": "sd",
        "Cohen's d": "d",
        "Cliff's delta": "delta",
        "than people": "direction",
    }
    return statistics.grid(view, "Statistics of the answers, compared with people's")


def _caption_section(tables: ScoreTables, figures: Mapping[str, str]) -> CaptionSection | None:
    if tables.captions is None:
        return None
    view = {
        "of": "of",
        "captions": "captions",
        "BLEU-4": "bleu",
        "CIDEr-D": "cider_d",
        "BLEU-4, one reference left out": "bleu_one_left_out",
        "CIDEr-D, one left out": "cider_d_one_left_out",
        "but": "why",
    }
    return CaptionSection(
        note=tables.captions.note,
        figure=picture(figures, CAPTIONS, "Detectability plotted against BLEU and CIDEr-D: the table below has them"),
        grid=tables.captions.agents.grid(view, "Standard measures of captions"),
        correlations=tables.captions.correlations.grid(
            "judge measure agents pearson pearson_p spearman spearman_p why",
            "Correlation with detectability (three agents at least)",
        ),
    )


def _agreement_section(tables: ScoreTables, task: str) -> AgreementSection | None:
    agreement = tables.agreement[task]
    has_alpha = agreement.alpha.value == agreement.alpha.value  # NaN without people
    if not agreement.pairs and not has_alpha:
        return None
    return AgreementSection(
        alpha=agreement.alpha,
        fleiss=agreement.fleiss,
        trials=count(agreement.trials_of_all, "trial") if agreement.trials_of_all else "",
        grid=agreement.pairs.grid("first second trials alike kappa", "Each two judges"),
    )
