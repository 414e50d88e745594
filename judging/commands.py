"""The commands of judging (entry-point group ``turinglike.commands``)."""

import argparse
from pathlib import Path

from agents.errors import printable
from agents.stimuli import TASKS
from serving.commands.command_line import (
    Commands,
    arguments,
    from_options,
    path,
    positive,
    replicas,
    seed,
    share,
    sizes,
    tasks,
)
from serving.files.output_paths import check_new_folder


def register(commands: Commands) -> None:
    """Add ``trials``, ``judge``, ``score``, ``rank`` and ``study`` to the command line."""
    trials = commands.add(
        "trials",
        _trials,
        "draw balanced, blinded trials from runs, and write their key beside them",
        example="run people:humans -o trials",
    )
    add = trials.add_argument
    add("runs", nargs="+", type=Path, metavar="RUN", help="run folders with answers of machines and people")
    add("-o", "--out", required=True, type=Path, metavar="TRIALS", help="the folder to write the trials to")
    add(
        "--people",
        action="append",
        default=[],
        type=_people,
        metavar="RUN:humans",
        help="a run folder of which only people's answers are used; may be repeated",
    )
    add("--task", type=tasks, default=TASKS, metavar="A,B", help="use only answers to these tasks (default: all)")
    add("--agents", metavar="A,B", help="use only answers of these agents (default: all)")
    add(
        "--per-agent",
        type=positive,
        metavar="N",
        help="trials of each agent (default: as many as can be balanced with people's)",
    )
    add("--lists", type=positive, default=1, metavar="N", help="lists of trials, one for each judge (default 1)")
    number = trials.add_mutually_exclusive_group()
    number.add_argument("--per-judge", type=positive, metavar="N", help="trials in each list (default: all)")
    number.add_argument(
        "--preset",
        choices=("2022", "2025"),
        help="trials in each list: as many of each task as in the paper of that year",
    )
    add(
        "--lengths",
        type=sizes,
        metavar="3,6",
        help="lengths of conversations: messages of excerpts (default 3,6,9,…,24), turns of pairs (default 3,10)",
    )
    add(
        "--pairs",
        action="store_true",
        help="each trial shows a conversation with a machine beside one of people; --lengths are turns",
    )
    add("--show-pseudo", action="store_true", help="in pairs, also show what a machine wrote beforehand")
    add("--common", action="store_true", help="use only stimuli that people and every agent answered")
    add("--unique", action="store_true", help="of equal answers to one stimulus, use a single one, which is drawn")
    add(
        "--as-written",
        action="store_true",
        help="show words and colours as they were written, without the papers' rules",
    )
    add("--every", action="store_true", help="make every answer a trial, balanced or not")
    add(
        "--catch",
        type=share,
        default=0.1,
        metavar="SHARE",
        help="the part of catch trials in each list, where the runs have any (default 0.1)",
    )
    add(
        "--repeats",
        type=share,
        default=0.0,
        metavar="SHARE",
        help="the part of trials that come twice in their list (default 0)",
    )
    add(
        "--seed",
        type=seed,
        metavar="S",
        help="the seed of all that is drawn (default: drawn). Keep it secret: it tells which answers are machines'",
    )
    add("--force", action="store_true", help="replace the trial set at --out")

    judge = commands.add(
        "judge",
        _judge,
        "let judges answer trials; the same command again resumes",
        commands.settings,
        commands.workers,
        example="trials --judges svm,cues -o verdicts",
        uses_ray=True,
    )
    add = judge.add_argument
    add("trials", type=Path, metavar="TRIALS", help="a folder that `turinglike trials` wrote")
    add(
        "--judges",
        required=True,
        metavar="A,B",
        help="judges that `turinglike agents --task judgement` lists; cues is short for all cue-… judges",
    )
    add(
        "-o",
        "--out",
        required=True,
        type=path,
        metavar="VERDICTS",
        help="the run folder for the verdicts, new or to be resumed",
    )
    add("--samples", type=positive, default=1, metavar="N", help="verdicts of each judge on each trial (default 1)")
    add("--seed", type=seed, metavar="S", help="the run's seed (default 0)")
    add("--replicas", type=replicas, metavar="N|auto", help="workers for each judge (default auto)")
    add("--here", action="store_true", help="judge in this process, without Ray, however many trials there are")
    add("--retry-failed", action="store_true", help="judge again what failed before")
    changed = "go on though the file of a judge's class, of another package, has changed since the run began"
    add("--accept-changed-code", action="store_true", help=changed)

    summary = "compute who passes as a person: tables with intervals, tests, plots, a page"
    score = commands.add("score", _score, summary, example="verdicts -o scores")
    add = score.add_argument
    add("verdicts", nargs="+", type=Path, metavar="VERDICTS", help="run folders of verdicts, or of answers")
    add("-o", "--out", required=True, type=path, metavar="SCORES", help="the folder to write the scores to")
    add("--key", type=path, metavar="FILE", help="the key of the trials, where VERDICTS do not name their folder")
    add(
        "--as-written",
        action="store_true",
        help="count words of answers as they were written, without the papers' rules",
    )
    add(
        "--by",
        metavar="A,B",
        help="also compute scores for each value of these columns: length, place (in a study), topic, columns of meta",
    )
    add("--against", choices=("2022", "2025"), help="also compare with the figures that the paper of that year printed")
    add(
        "--bounds",
        type=_bounds,
        default=0.05,
        metavar="B",
        help="an agent passes if its detectability is surely within 0.5 ± B (default 0.05)",
    )
    add(
        "--dprime-correction",
        choices=("log-linear", "1/2N"),
        default="log-linear",
        help="how rates of 0 and 1 are corrected for d': log-linear changes all rates (default), 1/2N only these two, "
        "as metadpy does",
    )
    add("--force", action="store_true", help="replace the scores at --out")

    summary = "put judges and agents of all studies on a common scale, by a mixed model"
    rank = commands.add("rank", _rank, summary, example="verdicts more-verdicts -o ranking")
    add = rank.add_argument
    add("verdicts", nargs="+", type=Path, metavar="VERDICTS", help="run folders of verdicts")
    add(
        "-o",
        "--out",
        type=path,
        metavar="RANKING",
        help="the folder to write tables, figure and verdicts to (default: only print)",
    )
    add("--prior", type=path, metavar="OLD", help="an earlier ranking of other verdicts; these are added to it")
    add("--key", type=path, metavar="FILE", help="the key of the trials, where VERDICTS do not name their folder")
    add("--force", action="store_true", help="replace the ranking at --out")

    from judging.study.commands import register as register_study

    register_study(commands)


def _people(text: str) -> Path:
    folder, colon, name = text.rpartition(":")
    if colon and name != "humans":
        raise argparse.ArgumentTypeError(f"must be RUN or RUN:humans, not {text!r}")
    return Path(folder if colon else text)


def _bounds(text: str) -> float:
    if not 0 < (bounds := float(text)) < 0.5:
        raise argparse.ArgumentTypeError(f"must be between 0 and 0.5, not {text}")
    return bounds


def _trials(options: argparse.Namespace) -> int:
    from judging.trial_sets.composing import trials

    for sentence in trials(**arguments(trials, options)).sentences():
        _print(sentence)
    return 0


def _judge(options: argparse.Namespace) -> int:
    from judging.judges.asking import ask_judges, judge_trials
    from serving.generation.generate import GenerateOptions

    asked = ask_judges(options.trials, options.judges, assignments=options.settings, config=options.config)
    return judge_trials(asked, from_options(GenerateOptions, options, **asked.choices()), _print)


def _score(options: argparse.Namespace) -> int:
    from judging.scores.score import score

    scores = score(**arguments(score, options))
    scores.write(options.out, force=options.force)
    for grid in scores.grids():
        grid.print()
    for sentence in scores.sentences():
        _print(sentence)
    if options.against:
        figures = len(scores.tables.published)
        _print(f"beside the paper's {figures:,} figures: {options.out / 'published.csv'}")
    _print(f"scores: {options.out / 'index.html'}")
    return 0


def _rank(options: argparse.Namespace) -> int:
    from judging.ranking.common_scale import rank
    from judging.ranking.ranking import RANKING_FILE

    if options.out is not None:
        check_new_folder(options.out, marker=RANKING_FILE, force=options.force)
    ranking = rank(**arguments(rank, options), report=_print)
    for grid in ranking.grids():
        grid.print()
    if ranking.agents and options.out is not None:
        ranking.write(options.out, force=options.force)
        _print(f"ranking: {options.out / 'ranking.svg'}")
    return 0 if ranking.is_converged else 1


def _print(text: str) -> None:
    print(printable(text), flush=True)
