"""From folders of verdicts, or of answers, to scores: :func:`score`, on which ``turinglike score`` stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import get_args

from agents.contract import is_installed
from agents.errors import InputError, UnavailableError
from judging.contamination.asked import Contaminated, read_asked
from judging.contamination.corrected_scores import contamination as contamination_rows
from judging.scores.computing import catch_rates, compute_scores
from judging.scores.methods import methods
from judging.scores.papers.published import PAPERS, Paper
from judging.scores.score_tables import BOUNDS, ScoreTables
from judging.scores.scores import Scores
from judging.scores.tell_measures import measures_of_tells
from judging.scores.verdicts import (
    holds_answers,
    open_verdicts,
    read_answers,
    read_verdicts,
    settings_of,
    single_cues,
    with_columns,
)
from judging.statistics.measures import LOG_LINEAR, Correction
from judging.statistics.populations import read_populations
from judging.statistics.tables import Table
from judging.trial_sets.drawn_from import changed_answers
from judging.trial_sets.same_rules import SameRules, language_sentences
from judging.trial_sets.trial_set import VERDICTS

Folder = str | PathLike[str]
PACKAGES = ("matplotlib", "pandas", "sacrebleu", "sklearn", "statsmodels")


def score(
    verdicts: Folder | Sequence[Folder],
    *,
    key: Folder | None = None,
    by: str | Sequence[str] | None = None,
    against: Paper | None = None,
    bounds: float = BOUNDS,
    dprime_correction: Correction = LOG_LINEAR,
    as_written: bool = False,
    contamination: Contaminated | None = None,
    anchor: Folder | Sequence[Folder] = (),
    pasted_like: str | None = None,
) -> Scores:
    """Who passes as a person: tables, intervals and tests of verdicts.

    >>> scores = score(["verdicts", "people"], by=["length"], bounds=0.1)
    >>> print(*scores.sentences(), sep="\\n")

    ``verdicts`` are run folders of verdicts: what :func:`judging.judge` gave, exports of a study, imports. Folders of
    answers, people's among them, are compared as populations: is an agent's distribution of answers like people's?

    ``key`` is the trials' key, where the folders do not say where the trials are. ``by`` are columns to score by, as a
    list or as "length,place"; "a*b" has the values of both. ``against`` sets the figures that a paper ("2022",
    "2025", "x-turing") printed beside these. An agent passes if the 90 % interval of its detectability lies within
    0.5 ± ``bounds``.
    ``dprime_correction`` is "log-linear" (all rates move a little) or "1/2N" (those of 0 and 1 alone do).
    ``as_written`` compares answers without the papers' rules for words.
    ``contamination`` corrects for answers that participants did not write: a run folder with their traces, or a known
    rate (0.1), or its bounds ((0.05, 0.2) or "0.05-0.2"). ``anchor`` are run folders with answers that were written
    under supervision, with traces. ``pasted_like`` are the agents, with commas, whose answers are judged as foreign
    ones are, for a known rate; by default all agents.

    Raises InputError for folders without verdicts, records or keys that were changed, and columns that no verdict has;
    UnavailableError without the extra ``judging``."""
    for name in PACKAGES:
        if not is_installed(name):
            raise UnavailableError(f"the package {name} is not installed: pip install 'turinglike[judging]'")
    if not 0 < bounds < 0.5:
        raise InputError(f"bounds are between 0 and 0.5, not {bounds:g}")
    if dprime_correction not in get_args(Correction):
        raise InputError(f"dprime_correction is {' or '.join(get_args(Correction))}, not {dprime_correction!r}")
    if against is not None and against not in PAPERS:
        raise InputError(f"against is {' or '.join(PAPERS)}, not {against!r}")
    folders = [Path(verdicts)] if isinstance(verdicts, str | PathLike) else [Path(folder) for folder in verdicts]
    answered = [folder for folder in folders if holds_answers(folder)]
    judged = [folder for folder in folders if folder not in answered]
    if not judged and (by or key or against):
        raise InputError("by, key and against are for verdicts, and these folders hold answers alone")
    if as_written and not answered:
        raise InputError(
            "as_written changes answers only; these folders hold verdicts, whose trials were fixed by `trials`"
        )
    asked = read_asked(contamination, anchor, pasted_like)
    if asked is not None and not judged:
        raise InputError("contamination is for verdicts, and these folders hold answers alone")
    rules = SameRules(as_written=as_written)
    populations = read_populations(answered, rules)
    if answered and not populations:
        raise InputError(f"{answered[0]}: no stimulus has answers of an agent and of two people")
    if not judged:
        told = language_sentences(rules.languages())
        return Scores(ScoreTables(populations=populations), remarks=rules.sentences(), languages=told)

    runs = open_verdicts(judged, None if key is None else Path(key))
    table, columns = with_columns(read_verdicts(runs), by if isinstance(by, str) else ",".join(by or ()))
    if not table["verdict"].isin(VERDICTS).any():
        counts = ", ".join(f"{number:,} {why}" for why, number in table["verdict"].value_counts().items())
        raise InputError(f"no verdict can be scored: {counts}")
    counted = table[table["excluded"].isna()]
    if not counted["verdict"].isin(VERDICTS).any():
        raise InputError("the study's rules exclude every verdict; `turinglike study status` says which and when")
    settings = settings_of(runs)
    cues = single_cues(runs)
    constant = [judge for judge in cues if settings.get(judge, {}).get("cue") == "constant"]  # which catches nothing
    sets = {run.key.resolve(): run.notes for run in runs}
    tables = compute_scores(
        counted,
        columns,
        settings,
        bounds,
        dprime_correction,
        cues=cues,
        answers=read_answers(runs),
        answers_in_versions=read_answers(runs, in_versions=True),
        measures=measures_of_tells(),
        catch=catch_rates(table[~table["judge"].isin(constant)]),
        populations=populations,
        against=against,
        methods=methods(table, settings, list(sets.values()), bounds, dprime_correction),
    )
    if asked is not None:
        keys = [(run.prefix, run.key) for run in runs if run.trials]
        rows, of_pairs = contamination_rows(counted, tables.scores, asked, keys, bounds)
        tables = replace(tables, contamination=Table(rows), contamination_pairs=Table(of_pairs))
    changed: list[str] = []
    for path, notes in sets.items():
        changed += changed_answers(notes, path.name.removesuffix(".key.csv"))
    by_set = [notes.get("same_rules", {}).get("languages", {}) for notes in sets.values()]
    languages = {task: language for of_set in by_set for task, language in of_set.items()}
    languages.update(rules.languages())
    return Scores(tables, table, [*changed, *rules.sentences()], language_sentences(languages))
