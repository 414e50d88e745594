"""Do the borders add a tell? Answers of people and of a machine are drawn from one distribution. The machine's come in
as a benchmark's submissions, people's through one form after another. Judges who could tell them apart would judge the
form.

For each form two sets are drawn: `turinglike import`, `trials`. Then come two judges: `svm` (`turinglike judge`,
`score`) in both sets, and a logistic regression on character n-grams of what judges see, learnt from one set and asked
about the other. Both must stay at a detectability of 0.5. At the end one blank is planted behind people's answers,
where judges see them: the n-grams must find it. Nothing here asserts a time.

    python scripts/check_borders.py --trials 2000 --out borders
"""

import argparse
import contextlib
import csv
import io
import json
import random
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from serving.cli import main as turinglike
from serving.exchange.importing.table_columns import JUDGES, PARTICIPANTS

BOUND = 0.04  # of a figure around 0.5, and of an interval around its figure
PEOPLE = 20
NAMED = (
    *("subject", "judge", "PROLIFIC_PID", "WorkerId", "Subject", "subject_nr", "annotator", "participant.code"),
    *("Participant Private ID", "ResponseId", "participant_id", "RECORDING_SESSION_LABEL", "Prolific ID", "user"),
)
VOCABULARY = (
    "water tree house river moon night dog cat bread music stone fire light road friend summer winter happy strong "
    "cold walk think sleep build carry open bright heavy quiet green apple chair table window garden mountain ocean "
    "bird horse"
)
WORDS = VOCABULARY.split()
VARIANTS = {"cat": "Cats", "dog": "dogs", "walk": "walked", "think": "thinks", "tree": "trees ", "house": "house!"}
COLORS = ("red", "blue", "green", "gray", "grey", "black", "white", "brown", "Blue", "light grey")
Answer = Any  # a text, labels, or points
Drawn = Sequence[tuple[str, str, Answer]]  # who, which stimulus, what
Shown = Sequence[tuple[bool, str]]  # whether a machine's, and what judges see


@dataclass(frozen=True, slots=True)
class Form:
    """How people's answers are written: a function that writes files and returns them with the options of `import`."""

    name: str
    task: str
    write: Callable[[Path, Drawn], tuple[list[Path], list[str]]]


# what is drawn


def draw_answer(task: str, stimulus: int, chance: random.Random) -> Answer:
    """One answer of the distribution that people and the machine share; each stimulus prefers some answers."""
    likes = random.Random(stimulus)  # of the stimulus alone
    if task == "word":
        word = chance.choice(likes.sample(WORDS, 8))
        return VARIANTS.get(word, word) if chance.random() < 0.4 else word
    if task == "color":
        return chance.choice(likes.sample(COLORS, 5))
    if task == "object":
        return chance.sample(likes.sample(WORDS, 8), chance.choice((2, 3, 3)))
    if task == "caption":
        first, second = chance.sample(likes.sample(WORDS, 8), 2)
        text = chance.choice(("a {} beside a {}", "A {} is near the {}.", 'the {}, and "a {}" behind it'))
        return text.format(first, second)
    return [[round(chance.uniform(0, 639), 1), round(chance.uniform(0, 479), 1)] for _ in range(chance.randint(10, 15))]


def draw(task: str, number: int, chance: random.Random) -> tuple[Drawn, list[dict[str, Answer]]]:
    """``number`` answers of people, and as many of a machine as submissions with one answer to each stimulus."""
    stimuli = number // PEOPLE
    people = [
        (f"p{who:02}", f"{task}{stimulus}", draw_answer(task, stimulus, chance))
        for who in range(PEOPLE)
        for stimulus in range(stimuli)
    ]
    chance.shuffle(people)
    machines = [
        {f"{task}{stimulus}": draw_answer(task, stimulus, chance) for stimulus in range(stimuli)} for _ in range(PEOPLE)
    ]
    return people, machines


# forms


def write_csv(path: Path, rows: Sequence[Mapping[str, str]]) -> list[Path]:
    """A CSV as Python's own writer writes it."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return [path]


def as_text(task: str, answer: Answer, labels: Callable[[list[str]], str]) -> str:
    """An answer in a cell."""
    if task == "object":
        return labels(answer)
    return json.dumps(answer) if task == "attention" else str(answer)


def table(column: str = "subject", labels: Callable[[list[str]], str] = ", ".join, task: str = "word") -> Form:
    """A table in which `column` names people."""

    def write(folder: Path, drawn: Drawn) -> tuple[list[Path], list[str]]:
        rows = [
            {column: who, "stimulus": stimulus, "response": as_text(task, answer, labels), "rt": "700"}
            for who, stimulus, answer in drawn
        ]
        return write_csv(folder / "people.csv", rows), []

    return Form(f"table, {column}", task, write)


def jspsych(kind: str, task: str, *, survey: bool) -> Form:
    """jsPsych's data as CSV or JSON, of a survey plugin or with plain responses, between other screens."""

    def write(folder: Path, drawn: Drawn) -> tuple[list[Path], list[str]]:
        rows: list[dict[str, Any]] = []
        for who, stimulus, answer in drawn:
            shared = {"trial_index": len(rows), "time_elapsed": 900 * len(rows), "subject_id": who}
            rows.append({**shared, "trial_type": "html-keyboard-response", "response": None, "rt": None})
            response = answer if task != "object" else ", ".join(answer)
            if survey:
                names = [f"Q{at}" for at in range(len(answer))] if task == "object" else ["Q0"]
                response = dict(zip(names, answer if task == "object" else [answer], strict=True))
            shared["trial_index"] = len(rows)
            rows.append({**shared, "trial_type": "survey-text", "cue": stimulus, "response": response, "rt": 650})
        path = folder / f"people.{kind}"
        if kind == "json":
            path.write_text(json.dumps(rows), encoding="utf-8")
            return [path], []
        names = list(dict.fromkeys(name for row in rows for name in row))
        texts = []
        for row in rows:
            cells = {}
            for name in names:
                value = row.get(name, "")
                cells[name] = value if isinstance(value, str) else json.dumps(value)
            texts.append(cells)
        return write_csv(path, texts), []

    return Form(f"jsPsych {kind}, {'survey' if survey else 'plain'}", task, write)


def ground_truth(task: str) -> Form:
    """The published benchmark's ground truth."""

    def write(folder: Path, drawn: Drawn) -> tuple[list[Path], list[str]]:
        content: dict[str, list[dict[str, Any]]] = {}
        for who, stimulus, answer in drawn:
            response = ", ".join(answer) if task == "object" else answer
            row = {"response": response, "groundtruth": "human", "human_groundtruth": who}
            content.setdefault(stimulus, []).append(row)
        path = folder / f"people-{'fv' if task == 'attention' else task}.json"
        path.write_text(json.dumps(content), encoding="utf-8")
        return [path], ["--frame", "640x480"] if task == "attention" else []

    return Form("published ground truth", task, write)


def own_export(task: str) -> Form:
    """Our own `export --format csv` of people's answers, imported from a table before."""

    def write(folder: Path, drawn: Drawn) -> tuple[list[Path], list[str]]:
        paths, _ = table(task=task).write(folder, drawn)
        frame = ["--frame", "640x480"] if task == "attention" else []
        quietly("import", *paths, "--task", task, *frame, "--out", folder / "before")
        quietly("export", folder / "before", "--format", "csv", "--out", folder / "exported.csv")
        return [folder / "exported.csv"], []

    return Form("our own export", task, write)


def a_fixation_a_row() -> Form:
    """Rows of one fixation, as of EyeLink's Data Viewer."""

    def write(folder: Path, drawn: Drawn) -> tuple[list[Path], list[str]]:
        rows = []
        for who, stimulus, points in drawn:
            for at, (x, y) in enumerate(points, start=1):
                cells = {"RECORDING_SESSION_LABEL": who, "image": stimulus, "CURRENT_FIX_INDEX": str(at)}
                rows.append({**cells, "CURRENT_FIX_X": str(x), "CURRENT_FIX_Y": str(y)})
        return write_csv(folder / "people.csv", rows), ["--frame", "640x480"]

    return Form("a fixation a row", "attention", write)


def all_forms() -> list[Form]:
    """Every form that is read, with the tasks that it may hold."""
    forms = [table(column) for column in NAMED]
    for task in ("word", "object", "caption"):
        forms += [jspsych(kind, task, survey=survey) for kind in ("csv", "json") for survey in (True, False)]
    forms += [table(task=task) for task in ("color", "object", "caption")]
    forms += [table("participant", json.dumps, "object"), table("worker", "; ".join, "object")]
    forms += [table("vp", str, "object"), a_fixation_a_row()]
    for task in ("word", "color", "object", "caption", "attention"):
        forms += [ground_truth(task), own_export(task)]
    return forms


# judges


def quietly(*arguments: object) -> str:
    """Run a command; returns what it printed. Raises SystemExit where it fails."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        code = turinglike([str(argument) for argument in arguments])
    if code:
        raise SystemExit(f"turinglike {' '.join(map(str, arguments))}: exit code {code}\n{printed.getvalue()}")
    return printed.getvalue()


def make_trials(folder: Path, form: Form, number: int, seed: int) -> Shown:
    """A trial set of ``number`` trials; returns of each whether it is a machine's, and what judges see."""
    chance = random.Random(f"{seed} {form.task} {form.name}")
    people, machines = draw(form.task, number // 2, chance)
    folder.mkdir(parents=True)
    paths, options = form.write(folder, people)
    frame = ["--frame", "640x480"] if form.task == "attention" and "--frame" not in options else []
    quietly("import", *paths, "--task", form.task, *options, *frame, "--out", folder / "people")
    submissions = folder / "machines"
    for at, answers in enumerate(machines):
        path = folder / f"m{at}" / f"{'fv' if form.task == 'attention' else form.task}.json"
        path.parent.mkdir()
        texts = {name: ", ".join(answer) if form.task == "object" else answer for name, answer in answers.items()}
        path.write_text(json.dumps(texts), encoding="utf-8")
        of_paths = ["--frame", "640x480"] if form.task == "attention" else []
        quietly("import", path, "--name", f"drawn{at}", *of_paths, "--out", submissions)
    runs = [folder / "people", submissions]
    quietly("trials", *runs, "--every", "--seed", seed, "--out", folder / "trials")
    with (folder / "trials.key.csv").open(encoding="utf-8", newline="") as file:
        keys = {row["trial"]: row for row in csv.DictReader(file)}
    shown = []
    for line in (folder / "trials" / "trials.jsonl").read_text(encoding="utf-8").splitlines():
        trial = json.loads(line)
        key = keys[trial["id"]]
        shown.append((key["truth"] == "machine", json.dumps(trial["answer"], ensure_ascii=False)))
    return shown


def by_svm(folder: Path) -> tuple[float, float, float]:
    """Detectability by `svm` within a trial set and its 95 % interval, as `score` tells them."""
    quietly("judge", folder / "trials", "--judges", "svm", "--here", "--quiet", "--out", folder / "verdicts")
    quietly("score", folder / "verdicts", "--out", folder / "scores")
    rows = json.loads((folder / "scores" / "scores.json").read_bytes())["scores"]
    [row] = [row for row in rows if row["agent"] == "all"]
    return row["detectability"], row["detectability_low"], row["detectability_high"]


def by_svm_of_two(folders: Sequence[Path]) -> tuple[float, float, float]:
    """The mean of :func:`by_svm` over two draws, and its 95 % interval. `svm` learns and judges within a set, so that
    of one draw its figure scatters more than the interval says, as where answers are one of ten colours."""
    values = []
    halves = []
    for folder in folders:
        value, low, high = by_svm(folder)
        values.append(value)
        halves.append((high - low) / 2)
    value = sum(values) / len(values)
    half = sum(one**2 for one in halves) ** 0.5 / len(halves)
    return value, value - half, value + half


def by_ngrams(known: Shown, held: Shown) -> tuple[float, float, float]:
    """Detectability by character 1- to 3-grams, learnt from ``known`` and measured on ``held``, another draw; and its
    95 % interval. Cross-validated within one draw the figure would scatter more than an interval of it says: a word
    that one side has more often by chance is learnt from the very trials that are judged."""
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression

    reader = CountVectorizer(analyzer="char", ngram_range=(1, 3), lowercase=False)
    model = LogisticRegression(C=0.1, max_iter=2000)
    model.fit(reader.fit_transform([text for _, text in known]), [machine for machine, _ in known])
    is_machine = np.array([machine for machine, _ in held])
    right = model.predict(reader.transform([text for _, text in held])) == is_machine
    rates = [float(right[is_machine == side].mean()) for side in (False, True)]
    numbers = [int((is_machine == side).sum()) for side in (False, True)]
    variance = sum(rate * (1 - rate) / number for rate, number in zip(rates, numbers, strict=True))
    value = sum(rates) / 2
    half = 1.96 * variance**0.5 / 2
    return value, value - half, value + half


def with_blank(shown: Shown) -> Shown:
    """The same trials with one blank behind people's answers."""
    return [(machine, text if machine else f"{text} ") for machine, text in shown]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0], allow_abbrev=False)
    parser.add_argument("--trials", type=int, default=2000, metavar="N", help="of each form (2000)")
    parser.add_argument("--seed", type=int, default=1, metavar="S")
    parser.add_argument("--form", default="", metavar="TEXT", help="only forms whose name or task has this text")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="a new folder")
    options = parser.parse_args()
    unknown = [name for name in NAMED if "".join(filter(str.isalnum, name.lower())) not in (*JUDGES, *PARTICIPANTS)]
    print(f"{len(NAMED)} namings of people, of them only ids of submissions: {', '.join(unknown)}")
    beyond = 0
    judged = 0
    outside = 0
    for at, form in enumerate(all_forms()):
        if options.form not in f"{form.name} {form.task}":
            continue
        folder = options.out / str(at)
        shown = make_trials(folder / "judged", form, options.trials, options.seed)
        known = make_trials(folder / "learnt", form, options.trials, options.seed + 1)
        figures = {
            "svm": by_svm_of_two([folder / "judged", folder / "learnt"]),
            "n-grams": by_ngrams(known, shown),
            "planted": by_ngrams(with_blank(known), with_blank(shown)),
        }
        texts = [f"{name} {value:.3f} ({low:.3f} to {high:.3f})" for name, (value, low, high) in figures.items()]
        is_wrong = figures["planted"][1] < 0.9
        for name in ("svm", "n-grams"):
            value, low, high = figures[name]
            is_wrong |= abs(value - 0.5) > BOUND or high - value > BOUND or value - low > BOUND
            judged += 1
            outside += not low <= 0.5 <= high
        beyond += is_wrong
        print(f"{form.task}, {form.name}, {len(shown):,} trials: {'; '.join(texts)}{' <- beyond' if is_wrong else ''}")
        sys.stdout.flush()
        shutil.rmtree(folder)
    print(f"0.5 is outside of the 95 % interval in {outside} of {judged} (by chance 1 in 20)")
    print(f"forms beyond 0.5 ± {BOUND}, or with a wider interval, or whose planted blank was not found: {beyond}")
    return 1 if beyond else 0


if __name__ == "__main__":
    sys.exit(main())
