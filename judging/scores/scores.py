"""Scores of verdicts: what :func:`judging.score` gives, as tables, sentences, and a folder of files with a page."""

from __future__ import annotations

import html
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from judging.contamination.in_words import contamination_sentences, pair_sentences
from judging.scores.conclusions import SCOPE, Conclusion
from judging.scores.figures import figures, overview, who_judged, without_repetition
from judging.scores.other_sections import of_people_alone
from judging.scores.page import page
from judging.scores.papers.beside_published import compared
from judging.scores.score_tables import ScoreTables
from judging.scores.svg import drawn, svg
from judging.scores.tell_figure import tell_figures
from judging.scores.tell_sentences import tell_sentences
from judging.scores.verdicts import further_verdicts
from judging.statistics.populations import SCOPE as SCOPE_OF_POPULATIONS
from judging.statistics.populations import population_sentences
from judging.statistics.tables import Grid, Table, as_json
from judging.statistics.verdict_table import PEOPLE, TASK_NAMES
from serving.files.csv_tables import guarded, write_guarded
from serving.files.output_paths import new_folder
from serving.files.words import listed

if TYPE_CHECKING:
    import pandas as pd

SCORES_FILE = "scores.json"
# Parts of it that are there only where something was asked for.
ASKED_FOR = ("contamination", "contamination_pairs", "tells", "tells_left", "tells_changed", "tells_correlated")
Reasons = Sequence[tuple[str, str]]  # of an agent: a headline and its reasons for each outcome


@dataclass(frozen=True)
class Scores:
    """Who passes as a person: what :func:`judging.score` found.

    >>> scores = score("verdicts")
    >>> scores.to_pandas()["scores"].filter(["judge", "agent", "detectability"])
    >>> scores.write("scores")
    """

    tables: ScoreTables
    """All tables, as rows of typed fields."""
    verdicts: pd.DataFrame | None = None
    """A row per verdict with its row of the key, excluded ones too; None of answers alone."""
    remarks: Sequence[str] = ()
    """What the papers' rules changed in answers that were compared as populations."""
    languages: Sequence[str] = ()
    """Sentences on tasks in which people answered in another language than machines, for the page, too."""

    @cached_property
    def reasons(self) -> Mapping[str, Sequence[Reasons]]:
        """By task, agent by agent, each outcome as a headline with its reasons."""
        return {task: [*headlines(rows).values()] for task, rows in self.tables.conclusions.items()}

    @cached_property
    def differences(self) -> Mapping[str, Sequence[str]]:
        """By task, agent by agent, how the distribution of answers differs from people's."""
        populations = self.tables.populations
        return {task: [*population_sentences(populations.where(task=task))] for task in populations.distinct("task")}

    def sentences(self) -> list[str]:
        """What `turinglike score` says in words: who passes, by whom and how sure; what was excluded, and why."""
        lines = [*self.remarks]
        lines += [sentence for sentence in self.languages if sentence not in lines]
        for task, of_task in self.reasons.items():
            name = TASK_NAMES[task].lower()
            lines += [" ".join(f"{headline} ({name}): {why}." for headline, why in reasons) for reasons in of_task]
        if any(row.judge == PEOPLE for conclusions in self.tables.conclusions.values() for row in conclusions):
            lines.append(SCOPE)
        lines += [
            f"{sentence.headline} ({TASK_NAMES[sentence.task].lower()}). {sentence.why}."
            for sentence in tell_sentences(self.tables, self._cues())
        ]
        lines += [
            note for column in self.tables.by.distinct("column") if (note := of_people_alone(self.tables, column))
        ]
        for task, differences in self.differences.items():
            lines += [f"{TASK_NAMES[task]}: {sentence}" for sentence in differences]
        if self.differences:
            lines.append(SCOPE_OF_POPULATIONS)
        lines += contamination_sentences(self.tables.contamination, self._cues())
        lines += pair_sentences(self.tables.contamination_pairs, self._cues())
        if self.verdicts is not None:
            lines += _exclusions(self.verdicts)
            lines += further_verdicts(self.verdicts)
        return lines

    def compared(self) -> tuple[int, int]:
        """How many of the figures of the paper ``against`` have one of ours beside them, and how many it printed."""
        return compared(self.tables.published)

    def grids(self) -> list[Grid]:
        """The tables that `turinglike score` prints, if they have rows: scores, pass rates of pairs, populations."""
        return [grid for grid in (self._scores(), self._pass_rates(), self._populations()) if grid.rows]

    def _scores(self) -> Grid:
        of_judges = groupby(self.tables.scores, key=lambda row: (row.task, row.judge))
        rows = [row for _, of_judge in of_judges for row in without_repetition(of_judge)]
        view = {
            "task": "task",
            "judge": "judge",
            "agent": "name",
            "p(H|H)": "p_human.value",
            "p(M|M)": "p_machine.value",
            "detectability": "detectability",
            "d'": "dprime.value",
            "c": "criterion.value",
        }
        if any(row.missing for row in rows):
            view["missing"] = "missing"
        return Table(rows).grid(view)

    def _pass_rates(self) -> Grid:
        if self.tables.pairs is None:
            return Grid("", (), ())
        view = {
            "judge": "judge",
            "agent": "name",
            "mode": "mode",
            "turns": "turns",
            "pass rate": "pass_rate",
            "pairs": "pairs",
            "judges": "judges",
            "verdicts": "verdicts",
            "interval": "interval",
        }
        return self.tables.pairs.rates.grid(view)

    def _populations(self) -> Grid:
        return self.tables.populations.grid("task agent measure people beside_people itself difference interval holm")

    def to_pandas(self) -> dict[str, pd.DataFrame]:
        """The tables as frames, by name; those without rows are empty frames.

        The names and columns are those of the CSV files: ``scores``, ``by``, ``repeats``, ``samples``, ``ledger``,
        ``rankings``, ``sexes``, ``catch``, ``statistics``, ``published``, ``populations``, ``needed``, ``tells``,
        ``tells_left``, ``tells_changed``, ``tells_correlated``, ``contamination``, ``contamination_pairs``, and
        where there are any ``captions``, ``pass_rates``, ``pass_rates_by``, ``words``. An estimate has three columns:
        NAME, NAME_low and NAME_high, the ends of its 95 % interval. Further frames: ``tests`` (by ``asked`` and
        ``kind``), ``conclusions`` (by ``asked``) and ``verdicts``."""
        import pandas as pd

        frames = {name: pd.DataFrame(table.records()) for name, table in self.tables.by_name().items()}
        tests = []
        for task, kinds in self.tables.tests.items():
            for kind, rows in kinds.items():
                tests += [{"asked": task, "kind": kind, **row} for row in rows.records()]
        frames["tests"] = pd.DataFrame(tests)
        conclusions = []
        for task, of_task in self.tables.conclusions.items():
            conclusions += [{"asked": task, **row} for row in of_task.records()]
        frames["conclusions"] = pd.DataFrame(conclusions)
        frames["verdicts"] = pd.DataFrame() if self.verdicts is None else self.verdicts
        return frames

    def write(self, folder: str | PathLike[str], *, force: bool = False) -> None:
        """Write all files of `turinglike score` to a new ``folder``: CSV, ``scores.json``, figures, ``index.html``.

        ``force`` replaces earlier scores there. Raises InputError for a folder that is something else, and
        StorageError."""
        with new_folder(Path(folder), marker=SCORES_FILE, force=force) as made:
            if self.verdicts is not None:
                with (made / "verdicts.csv").open("w", encoding="utf-8", newline="") as file:
                    write_guarded(file, self.verdicts.columns, zip(*_columns(self.verdicts), strict=True))
            for name, table in self.tables.by_name().items():
                table.write_csv(made / f"{name}.csv")
            values = {name: {} if value is None else value for name, value in as_json(self.tables).items()}
            for name in ASKED_FOR:
                if not values[name]:
                    del values[name]
            form = orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_APPEND_NEWLINE
            (made / SCORES_FILE).write_bytes(orjson.dumps(values, option=form))
            to_draw = figures(self.tables, self._cues()) | tell_figures(self.tables, self._cues())
            if self.verdicts is not None:
                to_draw |= who_judged(self.verdicts[self.verdicts["excluded"].isna()])
            (made / "figures").mkdir()
            svgs = {}
            for name, draw in to_draw.items():
                files = drawn(draw)
                for ending, content in files.items():
                    (made / "figures" / f"{name}.{ending}").write_bytes(content)
                svgs[name] = files["svg"].decode("utf-8")
            text = page(self.tables, self.differences, svgs, self.languages)
            (made / "index.html").write_text(text, encoding="utf-8")

    def _cues(self) -> list[str]:
        """The judges that go by one cue."""
        return [row.judge for row in self.tables.ledger if row.is_cue]

    def _repr_html_(self) -> str:
        items = "".join(f"<li>{html.escape(sentence)}</li>" for sentence in self.sentences())
        drawings = [svg(draw) for draw in overview(self.tables, self._cues()).values()]
        shown = "".join(drawing[drawing.index("<svg") :] for drawing in drawings)
        tables = "".join(grid.html() for grid in self.grids())
        return f"<ul>{items}</ul>{shown}{tables}"


def headlines(conclusions: Iterable[Conclusion]) -> dict[str, Reasons]:
    """By agent a headline and its reasons for each outcome."""
    by_agent: dict[str, dict[str, list[Conclusion]]] = defaultdict(lambda: defaultdict(list))
    for row in conclusions:
        by_agent[row.agent][row.outcome].append(row)
    return {
        agent: [_headline(agent, rows, len(outcomes)) for rows in outcomes.values()]
        for agent, outcomes in by_agent.items()
    }


def _headline(agent: str, rows: Sequence[Conclusion], outcomes: int) -> tuple[str, str]:
    """An outcome of an agent as a headline, with its reasons; the judges are named where there are several
    ``outcomes``."""
    headline = f"{agent} {rows[0].in_words()}"
    if outcomes > 1:
        headline = f"Judged by {listed([row.judge for row in rows])}, {headline}"
    reasons = "; ".join(row.why for row in rows)
    judges_by_more: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        if row.more:
            judges_by_more[row.more].append(row.judge)
    for more, judges in judges_by_more.items():
        by_whom = f" by {listed(judges)}" if len(judges_by_more) > 1 else ""
        reasons += f". {more[0].upper()}{more[1:]}{by_whom}"
    return headline, reasons


def _exclusions(verdicts: pd.DataFrame) -> list[str]:
    """A sentence on how many verdicts a study's rules exclude, by rule; none where none is."""
    excluded = verdicts["excluded"].value_counts()
    if not excluded.any():
        return []
    counts = ", ".join(f"{rules.replace(' ', ' and ')} {number:,}" for rules, number in excluded.items())
    counted = int(verdicts["excluded"].isna().sum())
    return [f"{counted:,} of {len(verdicts):,} verdicts count; excluded by the study's rules: {counts}"]


def _columns(frame: pd.DataFrame) -> Iterator[Sequence[Any]]:
    """The cells of each column of a table. Names, tasks and words stand in it thousands of times: they are guarded, and
    taken out of the table, once each."""
    for _, column in frame.items():
        if column.dtype == "str":
            codes, texts = column.factorize()
            cells = [*map(guarded, texts), None]  # a missing value has the code -1
            yield np.array(cells, dtype=object)[codes]
        else:
            yield [guarded(value) for value in column]
