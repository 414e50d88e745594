"""The page of scores: for each task and judge the 2 x 2 table and the agents beside each other, with the tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from markupsafe import Markup

from judging.figures import PASS_RATES
from judging.measures import ALL, MISSING
from judging.pass_rate import EXACT
from judging.published import MEASURES as PUBLISHED_MEASURES
from judging.published import inside_word, published
from judging.verdicts import SAID
from serving.runs.display_text import count
from serving.web.rendering import render
from serving.web.viewer_provenance import TASK_NAMES

Row = Mapping[str, Any]
OVERVIEW = (
    "What was said of people's and of machines' answers, all agents together: shares of each row, and half of their "
    "95 % intervals."
)
TRAINED = (
    "The verdicts of a trained judge in one fold are one model's, and a single judge's on one stimulus are alike: its "
    "p values are somewhat too small. Its interval of detectability, over stimuli, is the safer guide."
)
FITS = "min-width:34rem;max-width:100%;height:auto"  # on a phone it is moved sideways, not made too small to read
AGREEMENTS = 200  # pairs of judges that are listed


class Table(NamedTuple):
    """A table of the page; the first cell of each row is its header."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]


def page(scores: Mapping[str, Any], figures: Mapping[str, str]) -> str:
    """The page as HTML, complete in itself. ``scores`` are those of :func:`judging.score.measure` and what
    :func:`judging.score.score` adds, ``figures`` SVGs by the names of :func:`judging.figures.figures`."""
    tasks = [_task(asked, list(rows), scores, figures) for asked, rows in _grouped(scores["scores"], "asked")]
    return render(
        "judging",
        "scores.html",
        title="Scores",
        overview=_figure(figures["overview"], OVERVIEW) if "overview" in figures else "",
        overview_label=OVERVIEW,
        tasks=tasks,
        pairs=_pairs(scores["pairs"], figures),
        published=_published(scores["published"]),
        others=[*_by_column(scores["by"]), *_others(scores)],
        methods=scores["methods"],
    )


def _grouped(rows: Sequence[Row], name: str) -> Iterator[tuple[Any, Iterator[Row]]]:
    return groupby(rows, key=lambda row: row[name])


def _task(asked: str, rows: Sequence[Row], scores: Mapping[str, Any], figures: Mapping[str, str]) -> dict[str, Any]:
    worth = [row for row in scores["ledger"] if row["asked"] == asked]
    cues = {row["judge"] for row in worth if row["is_cue"]}
    judges = [(judge, list(of_judge)) for judge, of_judge in _grouped(rows, "judge")]
    return {
        "name": TASK_NAMES[asked],
        "ledger": _ledger(worth),
        "best_cue": next((row["best_cue"] for row in sorted(worth, key=lambda row: bool(row["is_cue"]))), None),
        "judges": [_judge(judge, of_judge, figures) for judge, of_judge in judges if judge not in cues],
        "cues": [_judge(judge, of_judge, figures) for judge, of_judge in judges if judge in cues],
        "instead": _instead(scores["instead"].get(asked, {})),
        "by_agent": _judges_by_agents(rows),
        "statistics": _statistics([row for row in scores["statistics"] if row["asked"] == asked]),
        "captions": _captions(scores["captions"]) if asked == "image_captioning" else None,
        "tests": list(_tests(scores["tests"].get(asked, {}))),
        "agreement": _agreement(scores["agreement"].get(asked)),
    }


def _judge(judge: str, rows: Sequence[Row], figures: Mapping[str, str]) -> dict[str, Any]:
    people, machines = ([rows[0][f"{truth}_{verdict}"] for verdict in SAID] for truth in SAID)
    title = f"{judge}: {count(sum(people), 'verdict')} on people's answers, {sum(machines):,} on machines'"
    if 0 in map(sum, zip(people, machines, strict=True)):
        title += ", which was said of every answer: d' is the correction's alone"
    columns = ("agent", "p(H|H)", "p(M|M)", "detectability", "d'", "criterion", "said H, of H", "said M, of H",
               "said H, of M", "said M, of M", "missing")  # fmt: skip
    cells = [
        (
            _agent(row),
            *(_interval(row, name) for name in ("p_human", "p_machine", "detectability", "dprime", "criterion")),
            *(f"{row[name]:,}" for name in ("human_human", "human_machine", "machine_human", "machine_machine")),
            _missing(row) or "none",
        )
        for row in rows
    ]
    svg = figures[f"{rows[0]['asked']}-{judge}"]
    return {
        "title": title,
        "figure": _figure(svg, f"Scores by {judge}: the table below has the figures"),
        "table": Table(f"{judge}: estimates and 95 % intervals", columns, cells),
    }


def _figure(svg: str, label: str) -> Markup:
    start = Markup('<svg role="img" aria-label="{}" style="{}"').format(label, FITS)
    return Markup(svg[svg.index("<svg") :].replace("<svg", start, 1))


def _agent(row: Row) -> str:
    return "all agents" if row["agent"] == ALL else str(row["agent"])


def _missing(row: Row) -> str:
    return ", ".join(f"{row[why]:,} {why}" for why in MISSING if row[why])


def _interval(row: Row, name: str, form: Callable[[float], str] | None = None) -> str:
    """ "0.50 (0.40 to 0.60)", a dash where there is no value, the value alone where it has no interval."""
    form = form or (lambda value: f"{round(value, 2) + 0.0:.2f}")  # no -0.00
    value, low, high = (row[key] for key in (name, f"{name}_low", f"{name}_high"))
    if value is None or value != value:
        return "–"
    if low is None or low != low:
        return form(value)
    return Markup("{} <small>({} to {})</small>").format(*map(form, (value, low, high)))


def _signed(value: float) -> str:
    return f"{value:+.1f}"


def _instead(judges: Mapping[str, Sequence[str]]) -> Table | None:
    """In what our classifiers differ from the judge of the 2025 paper."""
    cells = [(judge, "; ".join(why) or "nothing that is known") for judge, why in judges.items()]
    return Table("Classifiers beside the papers'", ("judge", "other than the 2025 paper's"), cells) if cells else None


def _ledger(rows: Sequence[Row]) -> Table | None:
    if len(rows) < 2:
        return None
    columns = ("judge", "folds", "detectability", "above the best cue", "above grouped folds", "accuracy",
               "always human")  # fmt: skip
    cells = [
        (
            row["judge"],
            row["split"],
            row["detectability"],
            _interval(row, "above_cue", _signed),
            _interval(row, "above_grouped", _signed),
            row["accuracy"],
            row["always_human"],
        )
        for row in rows
    ]
    return Table("Cues and leakage", columns, cells)


def _judges_by_agents(rows: Sequence[Row]) -> Table | None:
    """Which judge recognizes which agent: a language model's own family beside the others."""
    agents = list(dict.fromkeys(row["agent"] for row in rows if row["agent"] != ALL))
    judges = list(dict.fromkeys(row["judge"] for row in rows))
    if len(agents) < 2 or len(judges) < 2:
        return None
    rate = {(row["judge"], row["agent"]): row["p_machine"] for row in rows}
    cells = [(judge, *(rate.get((judge, agent)) for agent in agents)) for judge in judges]
    return Table("p(M|M) by judge and agent", ["judge", *agents], cells)


def _statistics(rows: Sequence[Row]) -> Table | None:
    columns = ("statistic", "of", "answers", "mean ± standard deviation", "Cohen's d", "Cliff's delta", "than people")
    cells = []
    for row in sorted(rows, key=lambda row: [other["statistic"] for other in rows].index(row["statistic"])):
        mean = f"{row['mean']:.3g}" + ("" if row["sd"] is None else f" ± {row['sd']:.3g}")
        effects = [None if row[name] is None else f"{row[name]:+.2f}" for name in ("d", "delta")]
        cells.append((row["statistic"], row["of"], f"{row['number']:,}", mean, *effects, row["direction"]))
    return Table("Statistics of the answers, beside people's", columns, cells) if cells else None


def _captions(captions: Mapping[str, Any]) -> dict[str, Any] | None:
    """Standard measures of captions, and their correlation with detectability."""
    if not captions:
        return None
    names = ("bleu", "cider_d", "bleu_one_left_out", "cider_d_one_left_out")
    columns = ("of", "captions", "BLEU-4", "CIDEr-D", "BLEU-4, one reference left out", "CIDEr-D, one left out")
    cells = [(row["of"], f"{row['captions']:,}", *(row[name] for name in names)) for row in captions["agents"]]
    tables = [Table("Standard measures of captions", columns, cells)]
    if any(row["agents"] for row in captions["correlations"]):
        values = ("pearson", "pearson_p", "spearman", "spearman_p")
        measures = {"bleu": "BLEU-4", "cider_d": "CIDEr-D"}
        correlations = [
            (
                row["judge"],
                measures[row["measure"]],
                count(row["agents"], "agent"),
                *(row[name] for name in values),
                row["why"] or "",
            )
            for row in captions["correlations"]
        ]
        tested = ("judge", "measure", "over", "Pearson", "p", "Spearman", "p", "")
        tables.append(Table("Correlation with detectability (three agents at least)", tested, correlations))
    return {"note": captions["note"], "tables": tables}


TESTS = {
    "against_chance": ("Against chance", ("judge", "of", "measure", "rate", "direction", "test")),
    "by_equations": (
        "What was said, by truth (generalized estimating equations)",
        ("judge", "unit", "clusters", "test", "odds_ratio", "low", "high"),
    ),
    "among_agents": ("All agents (Friedman)", ("judge", "judges", "agents", "test", "chi2", "kendall_w")),
    "between_values": (
        "By the values of a column",
        ("judge", "column", "unit", "values", "test", "statistic", "effect", "effect_is"),
    ),
    "between_agents": ("Agents beside each other", ("judge", "first", "second", "difference", "test")),
    "between_judges": (
        "Judges on the same trials",
        ("first", "second", "trials", "difference", "first_alone", "second_alone", "test"),
    ),
}


def _tests(tests: Mapping[str, Sequence[Row]]) -> Iterator[dict[str, Any]]:
    for name, (title, columns) in TESTS.items():
        if rows := tests.get(name):
            columns = (*columns, "p", "holm")
            cells = [[row.get(column) for column in columns] for row in rows]
            table = Table(title, [column.replace("_", " ") for column in columns], cells)
            yield {"table": table, "note": TRAINED if name == "against_chance" else ""}


def _agreement(agreement: Row | None) -> dict[str, Any] | None:
    if not agreement or (agreement["alpha"] is None and not agreement["pairs"]):
        return None
    alpha, fleiss = ("–" if agreement[name] is None else f"{agreement[name]:.3g}" for name in ("alpha", "fleiss"))
    note = f"Krippendorff's alpha over all judges, people too: {alpha}. Fleiss' kappa of the others {fleiss} over "
    note += f"{count(agreement['trials_of_all'], 'trial')} that all of them judged."
    columns = ("first", "second", "trials", "alike", "kappa")
    cells = [[row[column] for column in columns] for row in agreement["pairs"][:AGREEMENTS]]
    return {"note": note, "table": Table("Each two judges", columns, cells)}


def _pairs(pairs: Mapping[str, Any], figures: Mapping[str, str]) -> dict[str, Any] | None:
    """Pairs of conversations; ``pairs`` are :func:`judging.pass_rate.pass_rates` with ``words``."""
    if not pairs:
        return None
    modes = sorted({str(row["mode"] or "") for row in pairs["rates"]}, reverse=True)
    cells: dict[tuple[str, str, Any], dict[str, Row]] = {}
    for row in pairs["rates"]:
        cells.setdefault((row["judge"], _agent(row), row["turns"]), {})[str(row["mode"] or "")] = row
    rates = [(*cell, *(_pass_rate(rows.get(mode)) for mode in modes)) for cell, rows in cells.items()]
    columns = ["judge", "agent", "turns", *(mode or "pass rate" for mode in modes)]
    tables = [Table("X-Turn pass rates with 95 % intervals", columns, rates)]
    if pairs["by"]:
        rates = [(row["judge"], row["column"], row["value"], _pass_rate(row)) for row in pairs["by"]]
        tables.append(Table("By a column, all agents", ("judge", "column", "value", "pass rate"), rates))
    if pairs["words"]:
        tables.append(_words(pairs["words"]))
    sentences = []
    if pairs["alpha"] is not None:
        sentences.append(f"Krippendorff's alpha over all judges of pairs: {pairs['alpha']:.2f}.")
    for row in pairs["controls"]:
        speakers = "two machines" if row["machines"] else "no machine"
        share = f", the first named in {row['first']:.2f} of them" if row["verdicts"] else ""
        sentences.append(
            f"{row['judge']}: {count(row['verdicts'], 'verdict')} on control pairs with {speakers}{share}."
        )
    label = "Pass rates by turns: the table below has them"
    figure = _figure(figures[PASS_RATES], label) if PASS_RATES in figures else ""
    return {"figure": figure, "tables": tables, "sentences": sentences}


def _pass_rate(row: Row | None) -> str | None:
    if row is None:
        return None
    notes = [count(row[f"{name}s"], name) for name in ("pair", "judge", "verdict")]
    notes += [missing] if (missing := _missing(row)) else []
    notes += ["exact"] if row["interval"] == EXACT else []
    notes += [f"the first named in {row['first']:.2f}"] if row["verdicts"] else []
    return Markup("{}<br><small>{}</small>").format(_interval(row, "pass_rate"), ", ".join(notes))


def _words(rows: Sequence[Row]) -> Table:
    columns = ("agent", "turns", "mode", "conversations", "agent", "person", "difference")
    cells = [
        (
            row["agent"],
            row["turns"],
            row["mode"],
            f"{row['conversations']:,}",
            f"{row['agent_words']:.1f}",
            f"{row['person_words']:.1f}",
            _interval(row, "difference", _signed),
        )
        for row in rows
    ]
    return Table("Words per message of agent and person", columns, cells)


def _published(rows: Sequence[Row]) -> dict[str, Any] | None:
    """A paper's figures beside ours, and apart from them those that have none of ours."""
    if not rows:
        return None
    theirs = ("task", "their judge", "their agent", "figure", "theirs")
    sources = ("source", "of the figure itself")
    beside, alone = [], []
    for row in rows:
        agent = f"{row['agent']}, {row['only']}" if row["only"] else row["agent"]
        figure = (TASK_NAMES[row["asked"]], row["kind"], agent, PUBLISHED_MEASURES[row["measure"]],
                  f"{row['published']:.2f}")  # fmt: skip
        source = (row["source"], row["note"])
        if row["ours"] is None:
            alone.append((*figure, row["why"], *source))
            continue
        ours = Markup("{:.2f} <small>{:.2f} to {:.2f}</small>").format(row["ours"], row["low"], row["high"])
        beside.append((*figure, ours, inside_word(row), row["judge"], row["our_agent"], row["why"] or None, *source))
    columns = (*theirs, "ours, 95 %", "theirs is", "our judge", "our agent", "but", *sources)
    return {
        "paper": rows[0]["paper"],
        "cite": published()["papers"][rows[0]["paper"]]["cite"],
        "beside": Table("Published figures and ours", columns, beside),
        "alone_title": f"{count(len(alone), 'figure')} without any of ours",
        "alone": Table("Published figures without ours", (*theirs, "why", *sources), alone),
    }


def _by_column(rows: Sequence[Row]) -> Iterator[Table]:
    rates = ("p_human", "p_machine", "detectability")
    for column, of_column in _grouped(sorted(rows, key=lambda row: str(row["column"])), "column"):
        cells = [
            (row["asked"], row["judge"], row["value"], *(_interval(row, name) for name in rates))
            for row in of_column
            if row["agent"] == ALL
        ]
        columns = ("task", "judge", str(column), "p(H|H)", "p(M|M)", "detectability")
        yield Table(f"By {column}, all agents", columns, cells)


def _others(scores: Mapping[str, Any]) -> Iterator[Table]:
    alike = ("asked", "judge", "verdicts", "alike")
    for name, title, columns in (
        (
            "catch",
            "Catch trials, before anybody is excluded",
            ("asked", "kind", "truth", "judge", "judges", "trials", "right"),
        ),
        ("repeats", "Trials shown twice", alike),
        ("samples", "Further verdicts on a trial, of which the first counts", alike),
    ):
        if rows := scores[name]:
            yield Table(title, columns, [[row[column] for column in columns] for row in rows])
