"""The page of scores: for each task and judge the 2 x 2 table and the agents beside each other, with the tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from judging.answers_page import captions_section, published_section, statistics_section
from judging.figures import PASS_RATES
from judging.measures import ALL, MISSING
from judging.pairs_page import pairs_section, timing_section
from judging.verdicts import SAID
from serving.runs.display_text import count, details, esc, table
from serving.web.document import head
from serving.web.viewer_provenance import TASK_NAMES

Row = Mapping[str, Any]
TRAINED = (
    "The verdicts of a trained judge in one fold are one model's, and a single judge's on one stimulus are alike: its "
    "p values are somewhat too small. Its interval of detectability, over stimuli, is the safer guide."
)
FITS = "min-width:34rem;max-width:100%;height:auto"  # on a phone it is moved sideways, not made too small to read


def page(found: Mapping[str, Any], drawn: Mapping[str, str]) -> str:
    """The page as HTML, whole: nothing is loaded from anywhere. ``drawn`` are :func:`judging.figures.figures`."""
    parts = [head("Scores"), "<header><h1>Who passes as a person</h1></header><main id='answers'>"]
    if "overview" in drawn:
        said = (
            "What was said of people's and of machines' answers, all agents together: shares of each row, and half of "
        )
        said += "their 95 % intervals."
        parts.append(f"<section><p>{said}</p>{_shown(drawn['overview'], said)}</section>")
    for asked, rows in groupby(found["scores"], key=lambda row: row["asked"]):
        parts.append(f"<section><h2>{esc(TASK_NAMES[asked])}</h2>")
        of_task = list(rows)
        worth = [row for row in found["ledger"] if row["asked"] == asked]
        cues = {row["judge"] for row in worth if row["is_cue"]}
        parts += _ledger(worth)
        of_cues: list[str] = []
        for judge, some in groupby(of_task, key=lambda row: row["judge"]):
            if judge in cues:
                of_cues += _judge(str(judge), list(some), drawn)
            else:
                parts += _judge(str(judge), list(some), drawn)
        parts += _instead(found["instead"].get(asked, {}))
        parts += _judges_by_agents(of_task)
        if of_cues:
            parts.append(details("Judges that go by one cue", "".join(of_cues)))
        parts += statistics_section([row for row in found["statistics"] if row["asked"] == asked])
        if asked == "image_captioning":
            parts += captions_section(found["captions"])
        parts += _tests(found["tests"].get(asked, {}))
        parts += _agreement(found["agreement"].get(asked))
        parts.append("</section>")
    figure = _shown(drawn[PASS_RATES], "Pass rates by turns: the table below has them") if PASS_RATES in drawn else ""
    parts += pairs_section(found["pairs"], figure)
    parts += timing_section(found["timing"])
    parts += published_section(found["published"])
    parts += _by(found["by"])
    parts += _others(found)
    parts.append(f"<section><h2>How it was scored</h2><p>{esc(found['methods'], 5000)}</p></section>")
    parts.append("</main></body></html>\n")
    return "\n".join(parts)


def _judge(judge: str, rows: Sequence[Row], drawn: Mapping[str, str]) -> list[str]:
    of_people = count(rows[0]["human_human"] + rows[0]["human_machine"], "verdict")
    said = f"{judge}: {of_people} on people's answers, "
    said += f"{rows[0]['machine_human'] + rows[0]['machine_machine']:,} on machines'"
    head_row = ("agent", "p(H|H)", "p(M|M)", "detectability", "d'", "criterion", "said H, of H", "said M, of H",
                "said H, of M", "said M, of M", "missing")  # fmt: skip
    cells = [
        (
            esc("all agents" if row["agent"] == ALL else row["agent"]),
            *(_interval(row, name) for name in ("p_human", "p_machine", "detectability", "dprime", "criterion")),
            *(f"{row[name]:,}" for name in ("human_human", "human_machine", "machine_human", "machine_machine")),
            _missing(row),
        )
        for row in rows
    ]
    of_each = [rows[0][f"human_{one}"] + rows[0][f"machine_{one}"] for one in SAID]
    note = ", which was said of every answer: d' is the correction's alone" if 0 in of_each else ""
    return [
        f"<h3 style='margin-top:2rem'>{esc(said + note)}</h3>",
        _shown(drawn[f"{rows[0]['asked']}-{judge}"], f"Scores by {judge}: the table below has the figures"),
        table(head_row, cells, f"{judge}: estimates and 95 % intervals"),
    ]


def _instead(judges: Mapping[str, Sequence[str]]) -> list[str]:
    """In what our classifiers differ from the judge of the 2025 paper."""
    cells = [[esc(judge), esc("; ".join(why) or "nothing that is known")] for judge, why in judges.items()]
    return [table(("judge", "other than the 2025 paper's"), cells, "Classifiers beside the papers'")] if cells else []


def _interval(row: Row, name: str) -> str:
    if row[name] != row[name]:
        return "–"
    value, low, high = (f"{round(row[one], 2) + 0.0:.2f}" for one in (name, f"{name}_low", f"{name}_high"))  # no -0.00
    return f"{value} <small>({low} to {high})</small>"


def _missing(row: Row) -> str:
    return ", ".join(f"{row[why]:,} {why}" for why in MISSING if row[why]) or "none"


def _shown(svg: str, label: str) -> str:
    svg = svg[svg.index("<svg") :].replace("<svg", f'<svg role="img" aria-label="{esc(label)}" style="{FITS}"', 1)
    return f'<div style="background:white;border-radius:.4rem;overflow-x:auto">{svg}</div>'


def _ledger(rows: Sequence[Row]) -> list[str]:
    if len(rows) < 2:
        return []
    columns = ("judge", "folds", "detectability", "above the best cue", "above grouped folds", "accuracy",
               "always human")  # fmt: skip
    cells = [
        [
            esc(row["judge"]),
            esc(row["split"] or "–"),
            _cell(row["detectability"]),
            _points(row, "above_cue"),
            _points(row, "above_grouped"),
            _cell(row["accuracy"]),
            _cell(row["always_human"]),
        ]
        for row in rows
    ]
    rows = sorted(rows, key=lambda row: bool(row["is_cue"]))
    best = rows[0]["best_cue"]
    said = f"Points (hundredths of detectability) with 95 % intervals. The best cue here: {best or 'none was asked'}."
    return [f"<h3>What the scores are worth</h3><p>{esc(said)}</p>", table(columns, cells, "Cues and leakage")]


def _points(row: Row, name: str) -> str:
    if row[name] is None:
        return "–"
    return f"{row[name]:+.1f} <small>({row[f'{name}_low']:+.1f} to {row[f'{name}_high']:+.1f})</small>"


def _judges_by_agents(rows: Sequence[Row]) -> list[str]:
    """Which judge tells which agent: a language model's own family beside the others."""
    agents = list(dict.fromkeys(row["agent"] for row in rows if row["agent"] != ALL))
    judges = list(dict.fromkeys(row["judge"] for row in rows))
    if len(agents) < 2 or len(judges) < 2:
        return []
    rate = {(row["judge"], row["agent"]): row["p_machine"] for row in rows}
    cells = [[esc(judge), *(_cell(rate.get((judge, agent))) for agent in agents)] for judge in judges]
    shown = table(["judge", *agents], cells, "p(M|M) by judge and agent")
    return [details("Judges by agents: p(M|M)", shown)]


def _tests(tests: Mapping[str, Sequence[Row]]) -> list[str]:
    corrected = ("p", "holm", "bonferroni")
    two = ("first", "second")
    titles = {
        "against_chance": ("Against chance", ("judge", "of", "measure", "rate", "direction", "test", *corrected)),
        "by_equations": (
            "What was said, by truth (generalized estimating equations)",
            ("judge", "unit", "clusters", "test", "odds_ratio", "low", "high", *corrected),
        ),
        "among_agents": (
            "All agents (Friedman)",
            ("judge", "judges", "agents", "test", "chi2", "kendall_w", *corrected),
        ),
        "between_values": (
            "By the values of a column",
            ("judge", "column", "unit", "values", "test", "statistic", "effect", "effect_is", *corrected),
        ),
        "between_agents": ("Agents beside each other", ("judge", *two, "difference", "test", *corrected)),
        "between_judges": (
            "Judges on the same trials",
            (*two, "trials", "difference", "first_alone", "second_alone", "test", *corrected),
        ),
    }
    parts = []
    for name, (title, columns) in titles.items():
        if rows := tests.get(name):
            cells = [[_cell(row.get(column)) for column in columns] for row in rows]
            note = f"<p>{TRAINED}</p>" if name == "against_chance" else ""
            parts.append(details(esc(title), note + table([one.replace("_", " ") for one in columns], cells, title)))
    return parts


def _agreement(found: Row | None) -> list[str]:
    if not found or (found["alpha"] is None and not found["pairs"]):
        return []
    told = f"Krippendorff's alpha over all judges, people too: {_cell(found['alpha'])}. Fleiss' kappa of the others "
    told += f"{_cell(found['fleiss'])} over {count(found['trials_of_all'], 'trial')} that all of them judged."
    columns = ("first", "second", "trials", "alike", "kappa")
    cells = [[_cell(row[column]) for column in columns] for row in found["pairs"][:200]]
    return [details("Agreement of judges", f"<p>{told}</p>" + table(columns, cells, "Each two judges"))]


def _by(rows: Sequence[Row]) -> list[str]:
    parts = []
    for column, some in groupby(sorted(rows, key=lambda row: str(row["column"])), key=lambda row: row["column"]):
        rates = ("p_human", "p_machine", "detectability")
        cells = [
            [esc(row["asked"]), esc(row["judge"]), esc(row["value"]), *(_interval(row, one) for one in rates)]
            for row in some
            if row["agent"] == ALL
        ]
        names = ("task", "judge", str(column), "p(H|H)", "p(M|M)", "detectability")
        parts.append(f"<section><h2>By {esc(column)}</h2>{table(names, cells, f'By {column}, all agents')}</section>")
    return parts


def _others(found: Mapping[str, Any]) -> list[str]:
    parts = []
    caught = ("asked", "kind", "truth", "judge", "judges", "trials", "right")
    alike = ("asked", "judge", "verdicts", "alike")
    for name, title, columns in (
        ("catch", "Catch trials, before anybody is excluded", caught),
        ("repeats", "Trials shown twice", alike),
        ("samples", "Further verdicts on a trial, of which the first counts", alike),
    ):
        if rows := found[name]:
            cells: Iterable[list[str]] = [[_cell(row[column]) for column in columns] for row in rows]
            parts.append(f"<section><h2>{title}</h2>{table(columns, cells, title)}</section>")
    return parts


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.3g}" if isinstance(value, float) else esc(value)
