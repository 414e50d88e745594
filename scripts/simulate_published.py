"""A made-up study with all parts of which the papers of 2022 and 2025 printed figures, to be set beside these.

People and the papers' agents answer the six tasks; people judge online and in the laboratory, some of them after
feedback, in lists of the 2025 paper's lengths with catch trials and swapped scanpaths; classifiers and language models
judge everything, with the settings of the papers' other judges too. How often a verdict is right goes with the agent,
the part and the judge, so that a figure of another part is another figure. ``turinglike score`` then has no reason to
leave out a figure of ``--against 2025``, and few of ``--against 2022``.
"""

import argparse
import hashlib
import zlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from agents import catalogue
from agents.attention.scanpath_files import OTHER_IMAGE
from agents.stimuli import TASKS
from judging.judges.classifier import ClassifierSettings
from judging.scores.papers.published import published
from judging.scores.verdicts import TASK
from judging.statistics.verdict_table import FEEDBACK, TEST
from judging.trial_sets.trial_set import TRIALS_FILE, key_path, read_trial_key
from serving.cli import main as turinglike
from serving.commands.command_line import positive
from serving.runs.opening import new_people_run
from serving.runs.run import Run
from serving.runs.run_json import new_run_json

STIMULI = 16  # of a task, but for conversations
PEOPLE = 4  # who answer each
TOPICS = ("technology", "music", "cooking")
LENGTHS = (3, 12, 24)
FRAME = [1280, 1024]
FEEDBACK_TRIALS = 0.3  # the share of a list, at its start, of judges with feedback
GENDERS = ("female", "male")
EDUCATION = ("middle school", "high school", "bachelor", "master", "pg")
CREATED = "2026-01-01T00:00:00.000Z"
SVM = ClassifierSettings(**catalogue.get("svm").settings).model_dump()
JUDGES: Mapping[str, Mapping[str, Any]] = {
    "svm": SVM,
    "svm-40": SVM | {"train": 40, "words": ["word2vec"]},
    "svm-early": SVM | {"pictures": "early"},
    "llm-papers": {"prompt": "papers", "grid": True, "example": None},
    "llm-one-shot": {"prompt": "papers", "grid": False, "example": "example.txt"},
}


def main() -> None:
    parser = argparse.ArgumentParser(description="A made-up study beside the papers' figures.", allow_abbrev=False)
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="a new folder")
    parser.add_argument("--judges", type=positive, default=40, metavar="N", help="people who judge (40)")
    options = parser.parse_args()
    folders = write(options.out, options.judges)
    for paper in ("2022", "2025"):
        turinglike(["score", *map(str, folders), "--against", paper, "--out", str(options.out / f"against-{paper}")])


def write(folder: Path, judges: int, seed: int = 0) -> list[Path]:
    """Write answers, trials and verdicts to a new ``folder``; return the folders of verdicts: ``online``, ``lab`` and
    ``ai``."""
    chance = np.random.default_rng(seed)
    folder.mkdir(parents=True)
    _write_answers(folder / "answers")
    _write_conversations(folder)
    runs = [str(folder / "answers"), str(folder / "conversations")]
    lists = ["--preset", "2025", "--lists", str(judges), "--lengths", ",".join(map(str, LENGTHS))]
    drawn = ["--catch", "0.1", "--as-written", "--seed", str(seed), "--out", str(folder / "trials")]
    if turinglike(["trials", *runs, *lists, *drawn]) != 0:
        raise SystemExit("the trials cannot be drawn")
    key = {row["trial"]: row for row in read_trial_key(key_path(folder / "trials")).values()}
    listed = [orjson.loads(line) for line in (folder / "trials" / "lists.jsonl").read_bytes().splitlines()]
    verdicts: dict[str, list[dict[str, Any]]] = {"online": [], "lab": []}
    for number in range(judges):
        platform = "lab" if number % 4 == 3 else "online"
        mine = [one["trials"] for one in listed[number::judges]]  # a list of each task
        verdicts[platform] += _verdicts_of_person(number, platform, mine, key, chance)
    for platform, records in verdicts.items():
        run = new_people_run(folder / platform, folder / "trials" / TRIALS_FILE, TASK)
        run.write_records("humans", records)
        run.save()
    _write_machines(folder, key, chance)
    return [folder / name for name in ("online", "lab", "ai")]


def agents_of(task: str) -> list[str]:
    """The papers' agents of a task, as imports call them."""
    names = published()["papers"]["2025"]["agents"][task]
    imported = {entry["name"]: entry["imported"][0] for entry in published()["agents"]}
    return [f"published:{imported[name]}" for name in names]


def _write_answers(folder: Path) -> None:
    """The answers to all tasks but conversations, of people, of the papers' agents and of catch trials."""
    (folder / "records").mkdir(parents=True)
    run = Run(folder, new_run_json("0123456789ab", 0, 1))
    run.save()
    humans = list[dict[str, Any]]()
    machines = list[dict[str, Any]]()
    controls = list[dict[str, Any]]()
    for task, number in product([task for task in TASKS if task != "conversation"], range(STIMULI)):
        about = {"task": task, "stimulus": f"{task}-{number:02}", "created": CREATED}
        who = [f"human:h{(number + place) % (2 * PEOPLE)}" for place in range(PEOPLE)]
        humans += [{**about, "agent": name, "answer": _answer(task, number, name)} for name in who]
        machines += [
            {**about, "agent": name, "kind": "published", "answer": _answer(task, number, name)}
            for name in agents_of(task)
        ]
        controls.append({**about, "agent": "catch", "kind": "control", "answer": _answer(task, number, "catch")})
        if task == "attention_prediction":
            for sample, whose in enumerate(("human", "machine"), start=1):
                swapped = _answer(task, number, f"swapped {whose}") | {"selection": OTHER_IMAGE}
                control = {"agent": "swapped", "kind": "control", "sample": sample, "raw": {"whose": whose}}
                controls.append({**about, **control, "answer": swapped})
    run.write_records("humans", humans)
    run.write_records("published", machines)
    run.write_records("catch", controls)


def _answer(task: str, number: int, who: str) -> dict[str, Any]:
    name = who.rpartition(":")[2].replace(".", "-")
    match task:
        case "color_estimation":
            return {"color": ("red", "blue", "green", "gray")[(number + zlib.crc32(name.encode())) % 4]}
        case "object_detection":
            return {"labels": [f"{name} thing {number}", "table"]}
        case "image_captioning":
            return {"text": f"a picture of things {number} as {name} sees them"}
        case "word_association":
            return {"word": f"word{number}{name}"}
    places = np.random.default_rng(zlib.crc32(f"{number} {who}".encode())).integers(0, 1024, (12, 2))
    return {"fixations": places.tolist(), "frame": FRAME, "forced_first": True}


def _write_conversations(folder: Path) -> None:
    """Conversations of people (H-H), of people with each agent (H-M), and of each agent with itself (M-M)."""
    rows = []
    records = []
    for copy, agent, topic in product(range(2), agents_of("conversation"), TOPICS):
        people = [f"human:s{(copy + place + zlib.crc32(agent.encode())) % 12}" for place in (0, 6)]
        for kind, speakers in (("HH", people), ("HM", [people[0], agent]), ("MM", [agent, agent])):
            name = f"{agent}-{topic}-{kind}-{copy}".replace(":", "-")
            rows.append({"id": name, "task": "conversation", "meta": {"topic": topic}})
            records.append(_conversation(name, speakers))
    for copy in range(6):
        rows.append({"id": f"catch-{copy}", "task": "conversation", "meta": {"topic": TOPICS[0]}})
        records.append(_conversation(f"catch-{copy}", ["catch", "catch"]) | {"kind": "control"})
    source = folder / "conversations.jsonl"
    source.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    run = new_people_run(folder / "conversations", source, "conversation")
    run.write_records("humans", records)
    run.save()


def _conversation(name: str, speakers: Sequence[str]) -> dict[str, Any]:
    messages = [
        {"turn": turn, "speaker": "AB"[turn % 2], "agent": speakers[turn % 2], "text": f"{name}, line {turn}"}
        for turn in range(max(LENGTHS))
    ]
    about = {"task": "conversation", "stimulus": name, "agent": "~".join(speakers), "created": CREATED}
    return {**about, "answer": {"messages": messages}}


def _verdicts_of_person(
    number: int, platform: str, lists: Sequence[Sequence[str]], key: Mapping[str, Any], chance: np.random.Generator
) -> Iterator[dict[str, Any]]:
    questions = {
        "gender": GENDERS[number // 2 % len(GENDERS)],
        "education": EDUCATION[number % len(EDUCATION)],
    }
    has_feedback = number % 2 == 0
    place = 0
    skill = chance.normal(0, 0.1)
    for trials in lists:
        trained = round(FEEDBACK_TRIALS * len(trials)) if has_feedback else 0
        for at, trial in enumerate(trials):
            is_told = at < trained
            shift = skill + 0.1 * (platform == "lab") + 0.1 * (has_feedback and not is_told)
            shift += 0.04 * EDUCATION.index(questions["education"]) + 0.1 * GENDERS.index(questions["gender"])
            row = key[trial]
            raw = {"rules": [], "trial_index": place, "questions": questions, "phase": FEEDBACK if is_told else TEST}
            verdict = _verdict(row, shift, chance)
            about = {"task": TASK, "stimulus": trial, "agent": f"human:j{number:03}", "created": CREATED}
            yield {**about, "answer": {"verdict": verdict}, "raw": raw}
            place += 1


def _verdict(row: Mapping[str, Any], shift: float, chance: np.random.Generator) -> str:
    """A verdict on a trial, right with a probability that goes with the agent, the type, the topic and ``shift``."""
    of_agent = zlib.crc32(f"{row['asked']} {row['agent'] if row['truth'] == 'machine' else 'people'}".encode()) % 100
    probability = 0.35 + 0.003 * of_agent + shift + 0.15 * row["catch"]
    probability += {"H-H": 0.15, "H-M": 0.05}.get(str(row.get("meta.type")), 0)
    probability += {"technology": 0.1, "music": -0.05}.get(str(row.get("meta.topic")), 0)
    other = {"human": "machine", "machine": "human"}[row["truth"]]
    return str(row["truth"] if chance.random() < probability else other)


def _write_machines(folder: Path, key: Mapping[str, Any], chance: np.random.Generator) -> None:
    """The verdicts of classifiers and language models on every trial."""
    run = new_people_run(folder / "ai", folder / "trials" / TRIALS_FILE, TASK)
    for number, (judge, settings) in enumerate(JUDGES.items()):
        entry = {"task": [TASK], "kind": "machine", "settings": dict(settings), "samples": 1}
        digest = hashlib.sha256(orjson.dumps(settings, option=orjson.OPT_SORT_KEYS)).hexdigest()
        run.meta["agents"][judge] = entry | {"digest": digest, "checkpoint": None, "revision": None}
        records = list[dict[str, Any]]()
        for trial, row in key.items():
            verdict = _verdict(row, 0.05 * number, chance)
            about = {"task": TASK, "stimulus": trial, "agent": judge, "kind": "machine", "created": CREATED}
            raw = None
            if "split" in settings:
                margin = abs(chance.normal()) if verdict == "machine" else -abs(chance.normal())
                raw = {"margin": margin, "fold": len(records) % 5}
            records.append({**about, "answer": {"verdict": verdict}, "raw": raw})
        run.write_records(judge, records)
    run.save()


if __name__ == "__main__":
    main()
