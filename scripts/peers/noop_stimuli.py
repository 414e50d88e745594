"""The no-op agent's answers to a set, by ``generate`` and by Ray Data's ``map_batches``."""

from __future__ import annotations

import datetime
import functools
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from peers.measuring import (
    OURS,
    PROGRAMS,
    Figures,
    Interpreters,
    Side,
    Work,
    WrongAnswer,
    environment,
    finished,
    json_lines,
    peers_environment,
)

OWN_TIMES = "answers/s by the records' own times"
WHOLE = "answers/s from start to end"
VARY = ("run", "timing", "worker", "created")
"""Fields of a record that differ from run to run."""
WARM_UP = 0.1  # of the records, in the order of their times
MARGIN = 0.02  # of the bytes of a record: digits of times, and how a slash is written


def works(folder: Path, sizes: Sequence[int], interpreters: Interpreters) -> Iterator[Work]:
    """A work for each size of the set; ``folder`` has the sets and a record to take fields from."""
    template = functools.cache(functools.partial(_template, folder))
    for size in sizes:
        source = write_set(folder / f"{size}.jsonl", size)
        generate = ("generate", source, "--agents", "null", "--batch-size", 512, "--replicas", 1, "--out")

        def ours(place: Path, generate: Sequence[object] = generate, size: int = size) -> Figures:
            out = place / "run"
            ran = finished([*OURS, *generate, out], environment(), place / "log")
            return rates(out / "records" / "null.jsonl", size, ran.seconds)

        def ray_data(place: Path, source: Path = source, size: int = size) -> Figures:
            python = interpreters.python("ray", ("ray.data", "pandas", "pyarrow"))
            record = template()
            program = (python, PROGRAMS / "ray_data.py", source, place / "out", record)
            ran = finished(program, peers_environment(), place / "log")
            together = place / "all.jsonl"
            with together.open("wb") as file:
                for part in sorted((place / "out").iterdir()):
                    file.write(part.read_bytes())
            compare(together, json.loads(record.read_bytes()))
            return rates(together, size, ran.seconds)

        command = "turinglike generate SET --agents null --batch-size 512 --replicas 1 --out RUN"
        sides = [Side("generate", command, ours)]
        peer = "read_json(SET).map_batches(f, batch_size=1024, concurrency=1).write_json(OUT)"
        sides.append(Side("Ray Data", peer, ray_data))
        pairs = [(measure, "generate", "Ray Data") for measure in (OWN_TIMES, WHOLE)]
        yield Work(f"{size:,} no-op stimuli", sides, pairs)


def write_set(path: Path, count: int) -> Path:
    """Writes a set of cues; returns ``path``."""
    with path.open("w") as file:
        for number in range(count):
            row = {"id": f"w{number:07d}", "task": "word_association", "cue": f"cue{number}"}
            file.write(json.dumps(row) + "\n")
    return path


def _template(folder: Path) -> Path:
    source = write_set(folder / "template.jsonl", 1)
    out = folder / "template"
    finished(
        [*OURS, "generate", source, "--agents", "null", "--here", "--out", out], environment(), folder / "template.log"
    )
    return out / "records" / "null.jsonl"


def rates(records: Path, size: int, seconds: float) -> Figures:
    """Answers per second by the records' own times, after a warm-up, and from start to end. Raises WrongAnswer where
    their number is another than ``size``."""
    times = sorted(map(_created, json_lines(records)))
    if len(times) != size:
        raise WrongAnswer(f"{len(times):,} records of {size:,}")
    first = int(WARM_UP * size)
    return {OWN_TIMES: (size - 1 - first) / max(times[-1] - times[first], 0.001), WHOLE: size / seconds}


def _created(record: dict[str, Any]) -> float:
    return datetime.datetime.fromisoformat(record["created"]).timestamp()


def compare(records: Path, template: dict[str, Any]) -> None:
    """Whether records of a peer are those of ``generate``: the same fields and answers, in as many bytes. The answers
    follow from the seeds, and these from the ids. Raises WrongAnswer."""
    from agents.draws import derive_seed
    from agents.stimuli import WordStimulus, sha256

    expected_bytes = 0
    fixed = {name: value for name, value in template.items() if name not in VARY}
    for record in json_lines(records):
        name = record["stimulus"]
        cue = f"cue{int(name[1:])}"
        digest = sha256(WordStimulus(id=name, task="word_association", cue=cue))
        seed = derive_seed(0, "null", name, 0, None, 0)
        changed = {"stimulus": name, "stimulus_sha256": digest, "seed": seed, "raw": f"{seed:x}"}
        answer: dict[str, Any] = {"word": f"{seed:x}", "candidates": None, "skipped": []}
        wanted = fixed | changed | {"answer": answer}
        if {field: value for field, value in record.items() if field not in VARY} != wanted:
            raise WrongAnswer(f"the record of {name} is {json.dumps(record)[:300]}")
        if record.keys() != template.keys():
            raise WrongAnswer(f"the record of {name} has other fields than those of generate")
        whole = {field: template[field] if field in VARY else wanted[field] for field in template}
        expected_bytes += len(json.dumps(whole, separators=(",", ":"))) + 1
    size = records.stat().st_size
    if abs(size - expected_bytes) > MARGIN * expected_bytes:
        raise WrongAnswer(f"{size:,} bytes, and generate writes {expected_bytes:,}")
