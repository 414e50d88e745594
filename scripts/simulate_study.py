"""A made-up study of conversations with known effects: what ``turinglike score`` recovers of them, and how often it
alarms where nothing differs.

People and three machines converse; judges of two platforms judge excerpts, first with the truth after each. How often
they are right goes, in a probit model, with their sex, education and platform, the phase, the speaker's partner, the
length and the agent, but neither with age nor with topic. Judges, conversations, people and answers also differ by
chance. ``--out`` writes such a study as the commands would; ``--studies`` draws so many on the same trials, with these
effects and without any.
"""

import argparse
import math
import tempfile
from collections import defaultdict, namedtuple
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from judging.scores.computing import compute_scores
from judging.scores.score_tables import ScoreTables
from judging.scores.verdicts import TASK, with_columns
from judging.statistics.contrasts import ByColumn
from judging.statistics.measures import ALL
from judging.statistics.tables import Table
from judging.statistics.verdict_table import AND, FEEDBACK, PEOPLE, TEST, counted
from judging.trial_sets.trial_set import TRIALS_FILE, VERDICTS, key_path, read_trial_key
from serving.cli import main as turinglike
from serving.commands.command_line import positive
from serving.runs.opening import new_people_run

AGENTS = ("alpha", "beta", "gamma")
SPEAKERS = 30
TOPICS = ("cooking", "music", "travel")
LENGTHS = (3, 6, 12, 24)
# judges, trials each, of which with feedback, judges in the lab
JUDGES = 60
PER_JUDGE = 40
WITH_FEEDBACK = 16
LAB = 20
ANSWERS = {
    "gender": ("female", "male"),
    "education": ("high school", "bachelor", "master", "pg"),
    "age": ("18-20", "21-25", "26-30"),
}
BY = ("gender", "education", "age", "phase", "type", "partner", "length", "gender*agent", "folder", "topic")
OF_NONE = ("age", "topic")  # columns that matter in no study
# Shifts of how often verdicts are right, in standard deviations of all that varies.
EFFECTS: dict[str, dict[Any, float]] = {
    "judge.gender": {"female": 0.2, "male": -0.2},
    "judge.education": {"high school": -0.4, "bachelor": -0.15, "master": 0.15, "pg": 0.4},
    "phase": {FEEDBACK: -0.2, TEST: 0.2},
    "meta.partner": {"a person": 0.2, "alpha": -0.3, "beta": -0.3, "gamma": -0.3},
    "length": dict(zip(LENGTHS, (-0.24, -0.16, 0, 0.32), strict=True)),
    "agent": {"alpha": 0.4, "beta": 0, "gamma": -0.4},
    "folder": {"online": -0.2, "lab": 0.2},
}
# standard deviations; noise: 1
OF_BIAS = 0.5
OF_SENSITIVITY = 0.3
OF_STIMULI = 0.3
OF_SPEAKERS = 0.2
OF_ANSWERS = 0.3
SD_OF_MACHINES = math.hypot(OF_BIAS, OF_SENSITIVITY, OF_STIMULI, OF_ANSWERS, 1)  # of all of it: an agent is not drawn
SD_OF_PEOPLE = math.hypot(SD_OF_MACHINES, OF_SPEAKERS)
MALE = 0.6  # the share of speakers who are taken for male
INSIDE = "0.93 at least"
POWER = "the power"
ALARMS = "0.02 to 0.08"
Share = namedtuple("Share", "effects table of wanted share number")


def main() -> None:
    parser = argparse.ArgumentParser(description="A made-up study with known effects.", allow_abbrev=False)
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="write it there: ONLINE and LAB, to be scored")
    parser.add_argument("--studies", type=positive, metavar="N", help="score so many, of each kind")
    options = parser.parse_args()
    if options.out is not None:
        write(options.out)
    if options.studies is not None:
        with tempfile.TemporaryDirectory() as folder:
            shares = calibration(trials(Path(folder)), options.studies)
        Table(shares).grid(" ".join(Share._fields), f"{options.studies:,} studies of each kind").print()


def trials(folder: Path) -> pd.DataFrame:
    """The trials of conversations of people (H-H), of people and machines and of machines, by the commands; a row for
    each judge's trial, in the judge's order."""
    stimuli = []
    pairs = list[str]()
    for at, (kind, agent, topic, copy) in enumerate(product(range(3), range(3), TOPICS, range(3))):
        people = [f"human:s{(at + 7 * half + copy) % SPEAKERS + 1}" for half in (0, 1)]
        pairs.append("~".join((*people[kind:], *[AGENTS[agent]] * kind)))
        stimuli.append({"id": f"talk{at:02}", "task": "conversation", "meta": {"topic": topic}})
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / "conversations.jsonl"
    source.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in stimuli))
    run = new_people_run(folder / "conversations", source, "conversation")
    run.write_records("humans", map(_conversation, stimuli, pairs))
    run.save()
    lists = ["--lists", str(JUDGES), "--per-judge", str(PER_JUDGE), "--lengths", ",".join(map(str, LENGTHS))]
    turinglike(["trials", str(folder / "conversations"), *lists, "--seed", "0", "--out", str(folder / "trials")])
    key = pd.DataFrame(read_trial_key(key_path(folder / "trials")).values())
    listed = [orjson.loads(line)["trials"] for line in (folder / "trials" / "lists.jsonl").read_bytes().splitlines()]
    rows = pd.DataFrame(
        [(f"human:j{judge:02}", place, trial) for judge, of in enumerate(listed) for place, trial in enumerate(of)],
        columns=["judge", "place", "trial"],
    )
    return rows.merge(key, on="trial", how="left")


def _conversation(stimulus: dict[str, Any], pair: str) -> dict[str, Any]:
    speakers = pair.split("~")
    messages = [
        {"turn": turn, "speaker": "AB"[turn % 2], "agent": speakers[turn % 2], "text": f"{stimulus['id']}, line {turn}"}
        for turn in range(max(LENGTHS))
    ]
    about = {"task": "conversation", "stimulus": stimulus["id"], "agent": pair, "sample": 0}
    return {**about, "answer": {"messages": messages}, "created": "2026-01-01T00:00:00Z"}


def drawn(table: pd.DataFrame, study: int, *, has_effects: bool) -> pd.DataFrame:
    """The judges' answers about themselves, their verdicts, and in ``right`` how probable a right one was, of all such
    judges, conversations and speakers."""
    chance = np.random.default_rng([study, has_effects])
    judge, _ = pd.factorize(table["judge"])
    stimulus, _ = pd.factorize(table["stimulus"])
    speaker, _ = pd.factorize(table["agent"])
    answer, _ = pd.factorize(table["stimulus"] + table["speaker"])
    whose = chance.permutation(JUDGES)  # so that answers and platforms do not go with lists
    columns: dict[str, Any] = {
        f"judge.{name}": np.array(values, dtype=object)[chance.permutation(JUDGES) % len(values)][judge]
        for name, values in ANSWERS.items()
    }
    columns["folder"] = np.where(whose < LAB, "lab", "online")[judge]
    columns["phase"] = np.where(table["place"] < WITH_FEEDBACK, FEEDBACK, TEST)
    table = table.assign(**columns)
    shift = sum(table[name].map(of).fillna(0).to_numpy() for name, of in EFFECTS.items()) * has_effects
    is_machine = (table["truth"] == "machine").to_numpy()
    varies = _normal(chance, OF_SENSITIVITY, judge) + np.where(is_machine, -1, 1) * _normal(chance, OF_BIAS, judge)
    varies += _normal(chance, OF_STIMULI, stimulus) + np.where(is_machine, 0, _normal(chance, OF_SPEAKERS, speaker))
    varies += _normal(chance, OF_ANSWERS, answer) + chance.normal(size=len(table))
    says_machine = (np.where(is_machine, SD_OF_MACHINES, SD_OF_PEOPLE) * shift + varies > 0) == is_machine
    seems_male = _normal(chance, 0.5, judge) + _normal(chance, 0.5, stimulus) + chance.normal(size=len(table))
    return table.assign(
        verdict=np.where(says_machine, "machine", "human"),
        sex=np.where(seems_male < math.hypot(0.5, 0.5, 1) * ndtri(MALE), "male", "female"),
        right=ndtr(shift + np.zeros(len(table))),
    )


def _normal(chance: np.random.Generator, deviation: float, of: NDArray[np.int64]) -> NDArray[np.float64]:
    effects: NDArray[np.float64] = chance.normal(0, deviation, of.max() + 1)
    return effects[of]


def write(folder: Path) -> None:
    """The trials, and the verdicts of each platform's judges as a study's export has them."""
    table = drawn(trials(folder), 0, has_effects=True)
    for platform, part in table.groupby("folder"):
        run = new_people_run(folder / str(platform), folder / "trials" / TRIALS_FILE, TASK)
        run.write_records("humans", map(_verdict, part.to_dict("records")))
        run.save()
    print(f"turinglike score {folder}/online {folder}/lab --by '{','.join(BY)}' --out {folder}/scores")


def _verdict(row: dict[str, Any]) -> dict[str, Any]:
    about = {"task": TASK, "stimulus": row["trial"], "agent": row["judge"], "sample": 0}
    raw = {"rules": [], "trial_index": row["place"], "sex": row["sex"], "phase": row["phase"]}
    raw["questions"] = {name: row[f"judge.{name}"] for name in ANSWERS}
    return {**about, "answer": {"verdict": row["verdict"]}, "raw": raw, "created": "2026-01-01T00:00:00Z"}


def calibration(table: pd.DataFrame, studies: int) -> list[Share]:
    """Of studies with and without effects, by table and column the share of ``number`` intervals that hold the truth,
    the mean of the studies', or of tests whose p is below 0.05."""
    estimates = []
    tests = []
    for effects, study in product(("with", "without"), range(studies)):
        verdicts = judged(drawn(table, study, has_effects=effects == "with"))
        scores = compute_scores(verdicts, BY)
        estimates += [(effects, *row) for row in _estimates(scores, verdicts)]
        tests += [(effects, *row) for row in _tests(scores, effects)]
    figure = ["effects", "table", "of", "what"]
    cell = ["effects", "table", "of", "wanted"]
    inside = pd.DataFrame(estimates, columns=[*figure, "low", "high", "truth"])
    truth = inside.groupby(figure)["truth"].transform("mean")
    inside = inside.assign(wanted=INSIDE, holds=(inside["low"] <= truth) & (truth <= inside["high"]))
    outcomes = pd.concat([inside[[*cell, "holds"]], pd.DataFrame(tests, columns=[*cell, "holds"])])
    shares = outcomes.sort_values("effects", kind="stable").groupby(cell, sort=False)["holds"].agg(["mean", "size"])
    return list(map(Share._make, shares.reset_index().itertuples(index=False)))


def judged(table: pd.DataFrame) -> pd.DataFrame:
    """What :func:`judging.scores.verdicts.read_verdicts` makes of the records, with the columns of BY."""
    none = dict.fromkeys(("confidence", "reason", "margin", "fold", "excluded"))
    return with_columns(table.assign(judge_kind="human", sample=0, **none), ",".join(BY))[0]


def _estimates(scores: ScoreTables, verdicts: pd.DataFrame) -> Iterator[tuple[str, str, str, float, float, float]]:
    """(table, column, what, low, high, truth of this study)"""
    for row in scores.by.where(agent=ALL):
        table = counted(verdicts, row.column)
        means = table[table[row.column] == row.value].groupby("truth")["right"].mean()
        human = float(means.get("human", math.nan))
        machine = float(means.get("machine", math.nan))
        for name, truth in (("p_human", human), ("p_machine", machine), ("detectability", (human + machine) / 2)):
            if not math.isnan(truth):
                end = getattr(row, name)
                yield "by", str(row.column), f"{row.value} {name}", end.low, end.high, truth
    for test in scores.tests["conversation"]["by_columns"]:
        assert isinstance(test, ByColumn)
        truth = _truth_of(test, counted(verdicts, test.column))
        if not math.isnan(truth):
            yield "by_columns", test.column, test.value, test.difference.low, test.difference.high, truth
    for sexes in scores.sexes.where(judge=PEOPLE):
        if not sexes.of.startswith("judged"):
            yield "sexes", "male", sexes.of, sexes.male.low, sexes.male.high, MALE


def _truth_of(test: ByColumn, table: pd.DataFrame) -> float:
    """Of each agent beside itself; NaN where none is on both sides."""
    sides: dict[str, list[float]] = defaultdict(list)
    for (truth, _), part in table.groupby(["truth", table["agent"].where(table["truth"] == "machine", PEOPLE)]):
        if test.value == "slope":
            sides[truth].append(np.polyfit(part[test.column].astype(float), part["right"], 1)[0])
        elif part[test.column].notna().any():
            is_it = part[test.column].astype(str) == test.value
            difference = part["right"][is_it].mean() - part["right"][~is_it & part[test.column].notna()].mean()
            sides[truth] += [] if math.isnan(difference) else [difference]
    return float(np.mean([np.mean(sides[truth]) if sides[truth] else math.nan for truth in VERDICTS]))


def _tests(scores: ScoreTables, effects: str) -> Iterator[tuple[str, str, str, bool]]:
    """(table, column or measure, wanted, p below 0.05) of the tests by columns; without effects of all tests."""
    for name, tests in scores.tests["conversation"].items():
        for test in tests:
            about = [str(getattr(test, field)) for field in ("column", "measure") if hasattr(test, field)]
            if test.p is not None and (effects == "without" or hasattr(test, "column")):
                column = getattr(test, "column", "")
                is_null = column in OF_NONE or (name == "papers_between_values" and AND in column)
                about += [test.test] if name.startswith("papers") else []
                yield name, ", ".join(about), ALARMS if is_null or effects == "without" else POWER, test.p < 0.05


if __name__ == "__main__":
    main()
