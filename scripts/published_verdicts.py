"""The published test's verdicts, people's or an AI judge's, as a run folder and a key for ``turinglike score``.

Files are those of kreimanlab/TuringTest's Plot/Data_all, not conversations. Workers become numbers; verdicts without a
worker are ``--judge``'s, those without ``page_name`` or ``imageID`` have a stimulus each; of a file that repeats a
block of these several times the block counts once.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import re
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import orjson
from pydantic import AliasChoices, BaseModel, Field, TypeAdapter, ValidationError, field_validator, model_validator

from agents.catalogue import NAME
from agents.errors import InputError, Problem, TuringlikeError
from judging.trial_set import COLUMNS, MOST_NAMED, SCHEMA, about_path, key_path
from judging.verdicts import TASK
from serving.runs.atomic_files import replacing
from serving.runs.csv_tables import write_rows
from serving.runs.import_forms import SHORT, Source, read_bytes
from serving.runs.importing import FILES
from serving.runs.output_paths import new_folder, refuse_existing
from serving.runs.run_json import new_run_json

# As the benchmark's files have them; other names are as they are, in small letters and digits.
NAMES = {"deepgazeiii": "deepgaze3", "gpt3prcurie": "gpt3promptcurie", "gpt3prdavinci": "gpt3promptdav"}
LEAST_BLOCK = 20  # verdicts; fewer may be alike by chance
STIMULUS = re.compile(r"(\d+)_[a-z]_\d|.*_img(\d+)_")  # 78_e_0.html is of cue 78, ..._img35_nfix14.gif of picture 35


def main() -> int:
    parser = argparse.ArgumentParser(description="The published test's verdicts, to be scored.", allow_abbrev=False)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE.json")
    parser.add_argument("--task", required=True, choices=SHORT, help="what was judged")
    parser.add_argument("--out", required=True, type=Path, metavar="VERDICTS", help="a new folder")
    parser.add_argument("--judge", metavar="NAME", help="whose the verdicts without a worker are")
    options = parser.parse_args()
    try:
        return write(options.files, SHORT[options.task], options.out, options.judge)
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

    @property
    def agent(self) -> str:
        if self.groundtruth == "human":
            return "human"
        name = re.sub("[^a-z0-9]", "", str(self.machine_groundtruth).casefold())
        return f"published:{NAMES.get(name, name)}"


class Entry(BaseModel):
    worker: str | None = Field(None, alias="workerID")
    trial: Trial = Field(alias="trialData")


def write(files: Sequence[Path], task: str, out: Path, judge: str | None) -> int:
    """Write the folder and its key. Raises InputError with all that is wrong with the files, StorageError."""
    if judge is not None and not NAME.fullmatch(judge):
        raise InputError(f"--judge {judge!r}: must be of the form [a-z0-9][a-z0-9._-]*")
    refuse_existing([key_path(out), about_path(out)], force=False)
    trials: dict[tuple[str, ...], dict[str, Any]] = {}
    workers: dict[str, int] = {}
    sources, problems, unnamed = [], [], 0
    for path in dict.fromkeys(files):
        data = read_bytes(path)
        source = Source(path.resolve(), hashlib.sha256(data).hexdigest(), TASK, "records")
        sources.append(source)
        try:
            entries = TypeAdapter(dict[str, Entry]).validate_json(data)
        except ValidationError as error:
            problems += [Problem(str(path), None, ".".join(map(str, e["loc"])), e["msg"]) for e in error.errors()]
            continue
        block = len(entries) if any(entry.trial.page for entry in entries.values()) else _block([*entries.values()])
        if block < len(entries):
            times = len(entries) // block
            print(f"{path}: the same {block:,} verdicts stand there {times} times; they count once", file=sys.stderr)
            entries = dict(list(entries.items())[:block])
        for name, entry in entries.items():
            trial = entry.trial
            if not entry.worker and judge is None:
                problems.append(Problem(str(path), None, name, "has no workerID: give the judge with --judge"))
            unnamed += not trial.page
            key = (trial.page, trial.agent) if trial.page else (str(path), name)
            row = trials.setdefault(key, _key_row(len(trials) + 1, task, trial))
            number = workers.setdefault(entry.worker, len(workers) + 1) if entry.worker else None
            by = f"human:{number:03}" if number else f"published:{judge}"
            raw = {"response": trial.response_speaker, "rt": trial.rt}
            source.add(row["trial"], by, raw, {"verdict": trial.response_speaker, "confidence": None, "reason": None})
    if problems:
        raise InputError("the verdicts cannot be read", problems)
    _write(out, sources, list(trials.values()))
    number = sum(len(source.answers) for source in sources)
    print(f"{out}: {number:,} verdicts on {len(trials):,} trials; {len(workers):,} people")
    if unnamed:
        print(f"{unnamed:,} do not say what was shown; each counts as on a stimulus of its own")
    return 0


def _block(entries: Sequence[Entry]) -> int:
    """The length of the block of verdicts, of 20 or more, that repeated makes the file; that of the file without."""
    rows, number = [(entry.worker, entry.trial.response_speaker, entry.trial.agent) for entry in entries], len(entries)
    period = next((at for at in range(1, number) if number % at == 0 and rows[at:] == rows[:-at]), number)
    return period if period >= LEAST_BLOCK else number


def _key_row(number: int, task: str, trial: Trial) -> dict[str, Any]:
    name = f"t{number:05}"
    match = STIMULUS.match(trial.page)
    row = {
        "trial": name,
        "sha256": hashlib.sha256(_stimulus(name, task)).hexdigest(),
        "asked": task,
        "truth": trial.groundtruth,
        "agent": trial.agent,
        "stimulus": (match[1] or match[2]) if match else trial.page or name,
        "catch": int("catch" in trial.agent),
    }
    return dict.fromkeys(COLUMNS, "") | row


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
        for record in (record for source in sources for record in source.records(run)):
            record["sample"] = samples[record["agent"], record["stimulus"]]
            samples[record["agent"], record["stimulus"]] += 1
            lines[record["kind"]].append(orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE))
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
