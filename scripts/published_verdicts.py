"""The published test's verdicts, people's or an AI judge's, as a run folder and a key for ``turinglike score``.

Files are those of kreimanlab/TuringTest's Plot/Data_all, and its ``compiled_*.json`` of conversations, whose truth
stands in a table of ``--speakers``. Workers become numbers, which begin with the files' own
letters, so that folders share no judge; verdicts without a worker are ``--judge``'s, those without
``page_name`` or ``imageID`` have a stimulus each; of a file that repeats a block of these several times the block
counts once.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import orjson
from pydantic import AliasChoices, BaseModel, Field, TypeAdapter, ValidationError, field_validator, model_validator

from agents.catalogue import NAME
from agents.errors import InputError, Problem, TuringlikeError
from agents.stimuli import Task
from judging.scores.verdicts import TASK
from judging.statistics.verdict_table import FEEDBACK, TEST
from judging.study.design.tables import ASKED_BEFORE
from judging.trial_sets.trial_set import COLUMNS, MOST_NAMED, SCHEMA, about_path, key_path
from serving.exchange.importing.merging import FILES
from serving.exchange.importing.source import Source
from serving.files.atomic_files import replacing
from serving.files.csv_tables import load_table, write_rows
from serving.files.foreign_files import read_bytes
from serving.files.output_paths import new_folder, refuse_existing
from serving.runs.run_json import new_run_json
from serving.sets.published_tasks import SHORT_IN_FILES

# As the benchmark's files have them; other names are as they are, in small letters and digits.
NAMES = {"deepgazeiii": "deepgaze3", "gpt3prcurie": "gpt3promptcurie", "gpt3prdavinci": "gpt3promptdav"}
CONVERSATION: Task = "conversation"
NAMES_OF_TASKS = SHORT_IN_FILES | {CONVERSATION: CONVERSATION}
SEXES = {"M": "male", "F": "female"}
LEAST_BLOCK = 20  # verdicts; fewer may be alike by chance
STIMULUS = re.compile(r"(\d+)_[a-z]_\d|.*_img(\d+)_")  # 78_e_0.html is of cue 78, ..._img35_nfix14.gif of picture 35


def main() -> int:
    parser = argparse.ArgumentParser(description="The published test's verdicts, to be scored.", allow_abbrev=False)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE.json")
    parser.add_argument("--task", required=True, choices=NAMES_OF_TASKS, help="what was judged")
    parser.add_argument("--out", required=True, type=Path, metavar="VERDICTS", help="a new folder")
    parser.add_argument("--judge", metavar="NAME", help="whose the verdicts without a worker are")
    parser.add_argument("--questions", action="store_true", help="with what the judges answered about themselves")
    speakers = "conversations' speakers in order, columns Alabel and Blabel (record_conversations_paper.xlsx as CSV)"
    parser.add_argument("--speakers", type=Path, metavar="TABLE.csv", help=speakers)
    options = parser.parse_args()
    try:
        task = NAMES_OF_TASKS[options.task]
        return write(options.files, task, options.out, options.judge, options.speakers, asked=options.questions)
    except TuringlikeError as error:
        problems = error.problems[:MOST_NAMED] if isinstance(error, InputError) else ()
        print(f"published_verdicts: {error}", *problems, sep="\n  ", file=sys.stderr)
        return error.exit_code


class Trial(BaseModel):
    response_speaker: Literal["human", "machine"]
    groundtruth: Literal["human", "machine"]
    machine_groundtruth: str | None = None
    page: str = Field("", validation_alias=AliasChoices("page_name", "imageID"))
    rt: Any = None

    @model_validator(mode="after")
    def _names_its_machine(self) -> Trial:
        if self.groundtruth == "machine" and not re.search("[A-Za-z0-9]", self.machine_groundtruth or ""):
            raise ValueError("machine_groundtruth does not say which machine")
        return self

    @field_validator("page")
    @classmethod
    def _without_folder(cls, page: str) -> str:
        return page.rstrip("/").rpartition("/")[2]


class Entry(BaseModel):
    worker: str | None = Field(None, alias="workerID")
    about: dict[str, Any] = Field(default_factory=dict, alias="workerData")
    trial: Trial = Field(alias="trialData")


class TrialOfConversation(BaseModel):
    """Of conversation ``hit`` the first ``hit_len`` messages; ``Aclass`` says what A and B are, HAI a person and a
    machine. An entry of conversation 0 is none."""

    hit: int
    length: int = Field(alias="hit_len")
    classes: str = Field(alias="Aclass", pattern="^(HH|HAI|AIH|AIAI)$")
    sex_of_a: str = Field("", alias="Agender")
    sex_of_b: str = Field("", alias="Bgender")
    rt: Any = None
    is_catch: bool = Field(False, alias="isCatch")
    has_feedback: bool = Field(False, alias="hasFeedback")


class Judge(BaseModel):
    about: dict[str, Any] = Field(alias="questiondata")
    trials: list[dict[Literal["trialdata"], TrialOfConversation]] = Field(alias="data")

    @field_validator("trials", mode="before")
    @classmethod
    def _without_none(cls, trials: list[Any]) -> list[Any]:
        return [trial for trial in trials if trial.get("trialdata", {}).get("hit") != 0]


class Platform(BaseModel):
    judges: list[Judge] = Field(alias="datastring")


class Verdict(NamedTuple):
    """``place`` is what is shown, ``judge`` a worker, ``name`` that of the entry."""

    name: str
    place: tuple[str, ...]
    row: dict[str, Any]
    judge: str | None
    verdict: str
    raw: dict[str, Any]
    about: Mapping[str, Any]


def write(
    files: Sequence[Path], task: str, out: Path, judge: str | None, speakers: Path | None = None, *, asked: bool = False
) -> int:
    """Write the folder and its key. Raises InputError with all that is wrong with the files, StorageError."""
    if judge is not None and not NAME.fullmatch(judge):
        raise InputError(f"--judge {judge!r}: must be of the form [a-z0-9][a-z0-9._-]*")
    if (task == CONVERSATION) is (speakers is None):
        raise InputError("--speakers: conversations need the table of their speakers, and other tasks have none")
    refuse_existing([key_path(out), about_path(out)], force=False)
    labels = _speakers(speakers) if speakers is not None else []
    trials: dict[tuple[str, ...], dict[str, Any]] = {}
    workers: dict[str, int] = {}
    sources = []
    problems = []
    unnamed = 0
    for path in dict.fromkeys(files):
        data = read_bytes(path)
        source = Source(path.resolve(), hashlib.sha256(data).hexdigest(), "judgement", "records")
        sources.append(source)
        try:
            verdicts = list(_of_conversations(path, data, labels) if labels else _of_answers(path, data))
        except ValidationError as error:
            problems += [Problem(str(path), None, ".".join(map(str, e["loc"])), e["msg"]) for e in error.errors()]
            continue
        for each in verdicts:
            if not each.judge and judge is None:
                problems.append(Problem(str(path), None, each.name, "has no workerID: give the judge with --judge"))
            unnamed += not each.row["stimulus"]
            stimulus = each.row["stimulus"] or f"{sources[0].sha256[:4]}-{len(trials) + 1:05}"
            row = trials.setdefault(each.place, _key_row(len(trials) + 1, task, each.row | {"stimulus": stimulus}))
            number = workers.setdefault(each.judge, len(workers) + 1) if each.judge else None
            by = f"human:{sources[0].sha256[:4]}-{number:03}" if number else f"published:{judge}"
            raw = each.raw | ({"questions": _questions(each.about)} if asked else {})
            source.add(row["trial"], by, raw, {"verdict": each.verdict, "confidence": None, "reason": None})
    if problems:
        raise InputError("the verdicts cannot be read", problems)
    _write(out, sources, list(trials.values()))
    number = sum(len(source.answers) for source in sources)
    print(f"{out}: {number:,} verdicts on {len(trials):,} trials; {len(workers):,} people")
    if unnamed:
        print(f"{unnamed:,} do not say what was shown; each counts as on a stimulus of its own")
    return 0


def _of_answers(path: Path, data: bytes) -> Iterator[Verdict]:
    entries = TypeAdapter(dict[str, Entry]).validate_json(data)
    block = len(entries) if any(entry.trial.page for entry in entries.values()) else _block([*entries.values()])
    if block < len(entries):
        times = len(entries) // block
        print(f"{path}: the same {block:,} verdicts stand there {times} times; they count once", file=sys.stderr)
        entries = dict(list(entries.items())[:block])
    for name, entry in entries.items():
        trial = entry.trial
        agent = _agent(trial.machine_groundtruth if trial.groundtruth == "machine" else None)
        match = STIMULUS.match(trial.page)
        stimulus = (match[1] or match[2]) if match else trial.page
        row = {"truth": trial.groundtruth, "agent": agent, "stimulus": stimulus, "catch": int("catch" in agent)}
        place = (trial.page, agent) if trial.page else (str(path), name)
        raw = {"response": trial.response_speaker, "rt": trial.rt}
        yield Verdict(name, place, row, entry.worker, trial.response_speaker, raw, entry.about)


def _of_conversations(path: Path, data: bytes, labels: Sequence[tuple[str, str]]) -> Iterator[Verdict]:
    """The verdicts on A and on B of each trial."""
    for name, platform in TypeAdapter(dict[str, Platform]).validate_json(data).items():
        for number, judge in enumerate(platform.judges):
            for [trial] in (each.values() for each in judge.trials):
                if trial.hit > len(labels):
                    if not trial.is_catch:
                        raise InputError(f"{path}: conversation {trial.hit} is none of the {len(labels)} of --speakers")
                    continue
                agents = [_agent(None if who.casefold() == "human" else who) for who in labels[trial.hit - 1]]
                verdicts = dict(zip("AB", re.findall("AI|H", trial.classes), strict=True))
                letters = sorted("H" if agent == "human" else "M" for agent in agents)
                sexes = {"A": trial.sex_of_a, "B": trial.sex_of_b}
                for speaker, agent, other in (("A", *agents), ("B", *reversed(agents))):
                    partner = "a person" if other == "human" else other
                    row = {
                        "truth": "human" if agent == "human" else "machine",
                        "agent": agent,
                        "stimulus": str(trial.hit),
                        "catch": int(trial.is_catch),
                        "speaker": speaker,
                        "length": trial.length,
                        "columns": orjson.dumps({"partner": partner, "type": "-".join(letters)}).decode(),
                    }
                    phase = FEEDBACK if trial.has_feedback else TEST
                    sex = SEXES.get(sexes[speaker])
                    raw = {"response": trial.classes, "rt": trial.rt, "phase": phase, "sex": sex}
                    place = (str(trial.hit), str(trial.length), speaker)
                    verdict = "human" if verdicts[speaker] == "H" else "machine"
                    about = judge.about | {"platform": name}
                    yield Verdict(name, place, row, f"{path} {name} {number}", verdict, raw, about)


def _speakers(path: Path) -> list[tuple[str, str]]:
    table = load_table(path)
    if lacking := {"Alabel", "Blabel"} - set(table.names):
        raise InputError(f"{path}: has no column {' and '.join(sorted(lacking))}")
    labels = [(cells["Alabel"].strip(), cells["Blabel"].strip()) for _, cells in table.rows]
    empty = [Problem(str(path), at + 2, None, "names no speaker") for at, pair in enumerate(labels) if not all(pair)]
    if empty or table.problems:
        raise InputError(f"{path}: is no table of speakers", [*table.problems, *empty])
    return labels


def _questions(about: Mapping[str, Any]) -> dict[str, Any]:
    names = {"native": "native_language", "ai-experience": "ai_experience"}
    kept = (*ASKED_BEFORE, "platform")
    return {names.get(name, name): value for name, value in about.items() if names.get(name, name) in kept and value}


def _agent(machine: str | None) -> str:
    if machine is None:
        return "human"
    name = re.sub("[^a-z0-9]", "", machine.casefold())
    return f"published:{NAMES.get(name, name)}"


def _block(entries: Sequence[Entry]) -> int:
    """The length of the block of verdicts, of 20 or more, that repeated makes the file; that of the file without."""
    rows = [(entry.worker, entry.trial.response_speaker, entry.trial.machine_groundtruth) for entry in entries]
    number = len(entries)
    period = next((at for at in range(1, number) if number % at == 0 and rows[at:] == rows[:-at]), number)
    return period if period >= LEAST_BLOCK else number


def _key_row(number: int, task: str, about: Mapping[str, Any]) -> dict[str, Any]:
    name = f"t{number:05}"
    row = {"trial": name, "sha256": hashlib.sha256(_stimulus(name, task)).hexdigest(), "asked": task}
    return {**dict.fromkeys(COLUMNS, ""), **row, **about}


def _stimulus(trial: str, task: str) -> bytes:
    return orjson.dumps({"id": trial, "task": TASK, "asked": task})


def _write(out: Path, sources: Sequence[Source], rows: Sequence[dict[str, Any]]) -> None:
    run = min(source.sha256 for source in sources)[:12]
    about = {"source": str(out.resolve() / "stimuli.jsonl"), "root": str(out.resolve()), "count": len(rows)}
    with new_folder(out, marker="run.json", force=False) as folder:
        meta = new_run_json(run, seed=0, samples=0) | {"imports_only": True, "set": about}
        (folder / "run.json").write_bytes(orjson.dumps(meta, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
        (folder / "stimuli.jsonl").write_bytes(b"".join(_stimulus(row["trial"], row["asked"]) + b"\n" for row in rows))
        (folder / "records").mkdir()
        samples: Counter[tuple[str, str]] = Counter()
        lines: dict[str, list[bytes]] = {"human": [], "published": []}
        for kind, kept in lines.items():
            for record in (record for source in sources for record in source.records(run, kind)):
                record["sample"] = samples[record["agent"], record["stimulus"]]
                samples[record["agent"], record["stimulus"]] += 1
                kept.append(orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE))
        for kind, name in FILES.items():
            if lines[kind]:
                (folder / "records" / f"{name}.jsonl").write_bytes(b"".join(lines[kind]))
        text = io.StringIO(newline="")
        write_rows(text, COLUMNS, ([row[name] for name in COLUMNS] for row in rows))
        written = text.getvalue().encode()
        with replacing(key_path(out)) as key:
            key.write(written)
        with replacing(about_path(out)) as file:
            file.write(orjson.dumps({"schema": SCHEMA, "key_sha256": hashlib.sha256(written).hexdigest()}))


if __name__ == "__main__":
    sys.exit(main())
