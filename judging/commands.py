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
    """Add ``trials``, ``tells``, ``judge``, ``score``, ``rank``, ``study``, ``test`` and ``cards``."""
    trials = commands.add(
        "trials",
        _trials,
        "draw trials for judges from the answers in runs, and write the answer key beside the trials",
        example="run people -o trials",
        doing="making trials",
    )
    add = trials.add_argument
    add("runs", nargs="+", type=Path, metavar="RUN", help="run folders with answers from machines and people")
    add("-o", "--out", required=True, type=Path, metavar="TRIALS", help="the folder to write the trials to")
    add(
        "--people",
        action="append",
        default=[],
        type=_people,
        metavar="RUN:humans",
        help="one more run folder, from which only the answers of people are used; may be repeated",
    )
    add("--task", type=tasks, default=TASKS, metavar="A,B", help="use only answers to these tasks (default: all)")
    add("--agents", metavar="A,B", help="use only answers of these agents (default: all)")
    add(
        "--per-agent",
        type=positive,
        metavar="N",
        help="number of trials of each agent (default: the largest number for which the answers suffice; all agents "
        "together have as many trials as people)",
    )
    add("--lists", type=positive, default=1, metavar="N", help="make N lists of trials, one for each judge (default 1)")
    number = trials.add_mutually_exclusive_group()
    number.add_argument(
        "--per-judge", type=positive, metavar="N", help="put N trials in each list (default: all trials)"
    )
    number.add_argument(
        "--preset",
        choices=("2022", "2025"),
        help="put as many trials of each task in each list as the paper of 2022 or 2025 did",
    )
    add(
        "--lengths",
        type=sizes,
        metavar="3,6",
        help="where conversations are cut: 3,6 makes an excerpt of the first 3 messages and an excerpt of the first 6 "
        "messages (default 3,6,9,12,15,18,21,24). With --pairs the numbers are turns (default 3,10)",
    )
    add(
        "--pairs",
        action="store_true",
        help="make trials that show two conversations: one with a machine, and one between people",
    )
    add(
        "--show-pseudo",
        action="store_true",
        help="with --pairs: also show the pseudo-dialogue, which are turns that a machine invented for both speakers "
        "before the conversation began",
    )
    add(
        "--show-delays",
        action="store_true",
        help="show beside each message of a conversation how many seconds it took; leave out excerpts in which that is "
        "not known",
    )
    add("--common", action="store_true", help="use only stimuli that people and every agent answered")
    add(
        "--unique",
        action="store_true",
        help="if several answers to a stimulus are equal, use only one of them, drawn at random",
    )
    add(
        "--as-written",
        action="store_true",
        help="show answers as they were written; do not apply the rules that change answers, such as Cats to cat",
    )
    add(
        "--without",
        default="",
        metavar="A,B",
        help="of each answer make further trials in which a property is taken away from the answers of people and of "
        "agents: without A, without B, and without both; `turinglike tells` lists the properties",
    )
    add(
        "--plant",
        default="",
        metavar="A,B",
        help="of each answer make further trials in which agents' answers have people's form of a property",
    )
    add(
        "--every",
        action="store_true",
        help="make a trial of every answer, even if people and agents then have different numbers of trials",
    )
    add(
        "--catch",
        type=share,
        default=0.1,
        metavar="SHARE",
        help="add catch trials to each list: SHARE times the number of the list's trials (default 0.1). A catch trial "
        "shows an answer of the agent catch, which no attentive judge takes for a person's answer",
    )
    add(
        "--repeats",
        type=share,
        default=0.0,
        metavar="SHARE",
        help="show some trials of each list a second time: SHARE times the number of the list's trials (default 0)",
    )
    add(
        "--seed",
        type=seed,
        metavar="S",
        help="the seed of the random numbers (default: a random seed). Keep the seed secret: the seed reveals which "
        "answers are from machines",
    )
    add("--force", action="store_true", help="replace the trials that are at --out")

    summary = "list the properties of answers that `turinglike trials` can take away or plant"
    commands.add("tells", _tells, summary, example="", doing="listing tells")

    judge = commands.add(
        "judge",
        _judge,
        "let judges give verdicts on trials; run the same command again to continue",
        commands.settings,
        commands.workers,
        example="trials --judges svm,cues -o verdicts",
        uses_ray=True,
        check=_check_judges,
        resumes=True,
    )
    add = judge.add_argument
    add("trials", type=Path, metavar="TRIALS", help="a folder that `turinglike trials` wrote")
    add(
        "--judges",
        required=True,
        metavar="A,B",
        help="names of judges, as `turinglike agents --task judgement` lists them; the name `cues` stands for "
        "every judge, such as cue-length, that looks at no more than one property of an answer and can judge the tasks "
        "of the trials",
    )
    add(
        "-o",
        "--out",
        required=True,
        type=path,
        metavar="VERDICTS",
        help="the run folder for the verdicts: a new folder, or the folder of a run to resume",
    )
    add("--samples", type=positive, default=1, metavar="N", help="ask each judge N times about each trial (default 1)")
    add("--seed", type=seed, metavar="S", help="the seed of the run, from which all random choices follow (default 0)")
    add(
        "--replicas",
        type=replicas,
        metavar="N|auto",
        help="number of workers for each judge; a worker is a process that judges (default auto: as many as the GPUs, "
        "cores and memory of the machine allow)",
    )
    add(
        "--here",
        action="store_true",
        help="judge in this process, without Ray and without workers (default: only if there are few trials)",
    )
    add("--retry-failed", action="store_true", help="judge again the trials whose verdicts failed before")
    changed = (
        "resume the run although the source file of a judge has changed since the run began (only for judges that are "
        "not part of Turinglike)"
    )
    add("--accept-changed-code", action="store_true", help=changed)

    summary = "compute which agents pass as people, and write tables with intervals and tests, plots, and a web page"
    score = commands.add("score", _score, summary, example="verdicts -o scores", doing="computing scores")
    add = score.add_argument
    add(
        "verdicts",
        nargs="+",
        type=Path,
        metavar="VERDICTS",
        help="run folders of verdicts. You can also give run folders of answers: then the distribution of each agent's "
        "answers is compared with the distribution of people's answers",
    )
    add("-o", "--out", required=True, type=path, metavar="SCORES", help="the folder to write the scores to")
    add(
        "--key",
        type=path,
        metavar="FILE",
        help="the answer key of the trials (TRIALS.key.csv). Needed for imported verdicts without a column `truth`. "
        "Not needed for verdicts of `turinglike judge`, which notes in VERDICTS where the trials are",
    )
    add(
        "--as-written",
        action="store_true",
        help="with folders of answers: compare words as they were written; do not apply the papers' rules for words",
    )
    add(
        "--by",
        metavar="A,B",
        help="also compute scores for each value of these properties of a trial or judge: for example length, topic, "
        "place (in studies: the trial's position in the judge's list), or any extra column of the stimulus set (meta)",
    )
    add(
        "--against",
        choices=("2022", "2025", "x-turing"),
        help="also compare with the numbers that this paper printed: the paper of 2022 or of 2025, or X-Turing",
    )
    add(
        "--bounds",
        type=_bounds,
        default=0.05,
        metavar="B",
        help="an agent passes if the 90 %% interval of its detectability lies within 0.5 ± B (default 0.05). "
        "Detectability is the mean of p(H|H) and p(M|M)",
    )
    add(
        "--dprime-correction",
        choices=("log-linear", "1/2N"),
        default="log-linear",
        help="how rates are corrected before d' is computed, because d' of a rate of 0 or 1 is infinite: log-linear "
        "changes every rate (default); 1/2N changes only rates of 0 and 1, as the package metadpy does",
    )
    add(
        "--contamination",
        type=_contamination,
        metavar="RUN|RATE",
        help="also correct the scores for answers that participants did not write themselves. RUN is the export of a "
        "study with traces, from which the rate is estimated. RATE is a known rate: 0.1, or 0.05-0.2 for its bounds",
    )
    add(
        "--anchor",
        action="append",
        default=[],
        type=path,
        metavar="RUN",
        help="with --contamination RUN: a run folder with answers that people wrote under supervision, with traces; "
        "may be repeated",
    )
    add(
        "--pasted-like",
        metavar="A,B",
        help="with --contamination RATE: the agents whose answers are judged as answers from elsewhere are (default: "
        "all agents)",
    )
    add("--force", action="store_true", help="replace the scores that are at --out")

    summary = "compare the judges and agents of several studies on one scale, with a statistical model of all verdicts"
    rank = commands.add(
        "rank",
        _rank,
        summary,
        example="verdicts more-verdicts -o ranking",
        doing="fitting the models of judges and agents",
    )
    add = rank.add_argument
    add("verdicts", nargs="+", type=Path, metavar="VERDICTS", help="run folders of verdicts")
    add(
        "-o",
        "--out",
        type=path,
        metavar="RANKING",
        help="the folder for the tables, the plot and the verdicts (default: only print the tables)",
    )
    add(
        "--prior",
        type=path,
        metavar="OLD",
        help="the folder of an earlier ranking; the verdicts of that ranking and the new verdicts are ranked together",
    )
    add(
        "--key",
        type=path,
        metavar="FILE",
        help="the answer key of the trials (TRIALS.key.csv). Needed for imported verdicts without a column `truth`. "
        "Not needed for verdicts of `turinglike judge`, which notes in VERDICTS where the trials are",
    )
    add("--force", action="store_true", help="replace the ranking that is at --out")

    from judging.cards.commands import register as register_cards
    from judging.study.commands import register as register_study

    register_study(commands)
    register_cards(commands)


def _people(text: str) -> Path:
    folder, colon, name = text.rpartition(":")
    if colon and name != "humans":
        raise argparse.ArgumentTypeError(f"must be RUN or RUN:humans, not {text!r}")
    return Path(folder if colon else text)


def _contamination(text: str) -> Path | tuple[float, float]:
    """A known rate by its bounds, or the path of a run folder."""
    from judging.contamination.asked import bounds_of

    bounds = bounds_of(text)
    return path(text) if bounds is None else bounds


def _bounds(text: str) -> float:
    if not 0 < (bounds := float(text)) < 0.5:
        raise argparse.ArgumentTypeError(f"must be between 0 and 0.5, not {text}")
    return bounds


def _trials(options: argparse.Namespace) -> int:
    from judging.trial_sets.composing import trials

    for sentence in trials(**arguments(trials, options)).sentences():
        _print(sentence)
    return 0


def _tells(options: argparse.Namespace) -> int:
    from judging.tells.listing import print_tells

    print_tells()
    return 0


def _check_judges(options: argparse.Namespace) -> None:
    from judging.judges.asking import check_judges

    check_judges(options.judges, options.settings, options.config)


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
        with_ours, numbers = scores.compared()
        _print(
            f"{with_ours:,} of {numbers:,} numbers that the paper printed stand beside yours; each other number has "
            f"its reason: {options.out / 'published.csv'}"
        )
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
