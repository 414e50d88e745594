"""How fast the machinery is by itself: the no-op agent over many stimuli.

- ``generate`` over 100,000 stimuli beside Ray Data (read_json, map_batches in one actor, write_json) with the same
  input and output fields; both as commands that start Ray and one worker, less the same command over one stimulus;
- the same stimuli through ``scheduler.answer``, one awaited call each, records written too;
- with ``--large N``: peak memory of the driver at 10,000 and at N stimuli, and the time from the start of the command
  to the first new answer where all but a few of N records are there already.

    python scripts/bench_machinery.py [--rows 100000] [--repeats 3] [--large 1000000]

prints a table and, as the last line, one JSON object. Rates are stimuli per second.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

BATCH = 512
NEW = 1000  # stimuli that a resumed run has beside those already answered
QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def write_set(path: Path, count: int) -> Path:
    """A set of ``count`` cues."""
    with path.open("w") as file:
        for i in range(count):
            file.write(json.dumps({"id": f"w{i:07d}", "task": "word_association", "cue": f"cue{i}"}) + "\n")
    return path


def generate(source: Path, out: Path) -> list[str]:
    """Our command, with a worker of Ray's for a set of any size."""
    call = [sys.executable, "-m", "serving.cli", "generate", str(source), "--agents", "null", "--out", str(out)]
    return [*call, "--batch-size", str(BATCH), "--replicas", "1"]


def seconds(command: list[str]) -> float:
    """Time of a command, which must end well."""
    began = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{command} ended with {done.returncode}: {done.stderr[-2000:]}")
    return time.perf_counter() - began


def ray_data(source: Path, out: Path) -> None:
    """The peer: the same fields through Ray Data."""
    import hashlib
    from datetime import UTC, datetime

    import ray

    ray.init(include_dashboard=False, logging_level="ERROR", log_to_driver=False, object_store_memory=256 << 20)
    import ray.data

    ray.data.DataContext.get_current().enable_progress_bars = False

    class Null:
        def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
            count = len(batch["id"])
            seeds = [
                int.from_bytes(hashlib.sha256(f'[1,0,"null","{i}",0,null,0]'.encode()).digest()[:8], "big") >> 11
                for i in batch["id"]
            ]
            rows = zip(batch["cue"], batch["id"], batch["task"], strict=True)
            texts = [f'{{"cue":"{cue}","id":"{i}","task":"{task}"}}' for cue, i, task in rows]
            constant: dict[str, Any] = {
                "schema": "turinglike.record/1",
                "run": "0" * 12,
                "agent": "null",
                "kind": "machine",
                "sample": 0,
                "status": "ok",
                "attempts": [],
                "error": None,
                "provenance": {"digest": "0" * 64, "checkpoint": None, "revision": None},
                "timing": {"waiting": 0.0, "preparing": 0.0, "responding": 0.0},
                "worker": {"host": "h", "device": "cpu", "batch_size": count},
                "created": datetime.now(UTC).isoformat(),
            }
            return {
                **{name: [value] * count for name, value in constant.items()},
                "task": batch["task"],
                "stimulus": batch["id"],
                "stimulus_sha256": [hashlib.sha256(text.encode()).hexdigest() for text in texts],
                "seed": seeds,
                "answer": [{"word": f"{seed:x}", "candidates": None, "skipped": []} for seed in seeds],
                "raw": [f"{seed:x}" for seed in seeds],
            }

    rows = ray.data.read_json(str(source), lines=True)
    rows.map_batches(Null, batch_size=1024, concurrency=1).write_json(str(out))


async def one_at_a_time(source: Path, out: Path) -> float:
    """Every stimulus through ``answer`` and into a record; returns the seconds that took, loading left out."""
    from agents import catalogue
    from agents.stimuli import parse_row
    from serving.runs.records import RecordHeader
    from serving.runs.store import Store
    from serving.scheduling.cluster import Cluster
    from serving.scheduling.dispatch import Dispatcher
    from serving.scheduling.ray_workers import RemoteWorker
    from serving.scheduling.scheduler import Scheduler
    from serving.scheduling.worker import WorkerSpec

    cluster, scheduler, store = Cluster(), Scheduler(), Store()
    await cluster.start()
    entry = catalogue.get("null")
    spec = WorkerSpec(entry, {}, "/")
    dispatcher = Dispatcher(entry.make(), lambda number: RemoteWorker(spec, {}, {}), batch_size=BATCH)
    scheduler.add(dispatcher)
    await dispatcher.start()
    store.open(out)
    writer = asyncio.create_task(store.run())
    header = RecordHeader("0" * 12, "machine", "0" * 64, None, None)
    began = time.perf_counter()

    async def client(rows: Iterator[bytes]) -> None:
        for row in rows:
            item = await scheduler.answer("null", parse_row(row))
            store.put(out, header.line(item, "word_association"), item.status)

    with source.open("rb") as rows:
        await asyncio.gather(*(client(rows) for _ in range(4 * BATCH)))
    await store.finish(writer)
    took = time.perf_counter() - began
    await scheduler.close()
    await cluster.stop()
    return took


def peak_memory(command: list[str]) -> float:
    """Peak resident megabytes of the command's largest process."""
    process = subprocess.Popen(command, **QUIET)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{command} ended with {os.waitstatus_to_exitcode(status)}")
    return usage.ru_maxrss * 1024 / 1e6


def first_new_answer(command: list[str], records: Path) -> float:
    """Seconds until a resumed run has a new record on disk; it goes on to the end."""
    size = records.stat().st_size
    began = time.perf_counter()
    process = subprocess.Popen(command, **QUIET)
    while process.poll() is None and records.stat().st_size == size:
        time.sleep(0.01)
    took = time.perf_counter() - began
    if process.wait():
        raise SystemExit(f"resume ended with {process.returncode}")
    return took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--large", type=int, default=0)
    parser.add_argument("--peer", nargs=2, type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--single", nargs=2, type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peer:
        return ray_data(*options.peer)
    if options.single:
        return print(asyncio.run(one_at_a_time(*options.single)))
    figures: dict[str, float] = {"rows": options.rows}
    with tempfile.TemporaryDirectory(prefix="machinery-") as name:
        folder = Path(name)
        many, single = write_set(folder / "many.jsonl", options.rows), write_set(folder / "single.jsonl", 1)
        ours, peers = [], []
        peer = [sys.executable, __file__, "--peer"]
        for i in range(options.repeats):
            ours.append(seconds(generate(many, folder / f"many{i}")) - seconds(generate(single, folder / f"one{i}")))
            start_up = seconds([*peer, str(single), str(folder / f"peer-one{i}")])
            peers.append(seconds([*peer, str(many), str(folder / f"peer{i}")]) - start_up)
            print(f"round {i + 1}: generate {ours[-1]:.2f} s, Ray Data {peers[-1]:.2f} s", flush=True)
        figures["generate_per_s"] = options.rows / statistics.median(ours)
        figures["ray_data_per_s"] = options.rows / statistics.median(peers)
        call = [sys.executable, __file__, "--single", str(many), str(folder / "answers.jsonl")]
        done = subprocess.run(call, capture_output=True, text=True, check=True)
        figures["answer_per_s"] = options.rows / float(done.stdout.split()[-1])
        if options.large:
            small = write_set(folder / "small.jsonl", 10_000)
            large = write_set(folder / "large.jsonl", options.large - NEW)
            command = generate(large, folder / "large")
            figures["peak_mb_10000"] = peak_memory(generate(small, folder / "small"))
            figures[f"peak_mb_{options.large}"] = peak_memory(command)
            write_set(large, options.large)  # a run may grow
            figures["resume_first_answer_s"] = first_new_answer(command, folder / "large" / "records" / "null.jsonl")
    for key, value in figures.items():
        print(f"{key:28} {value:12,.1f}")
    print(json.dumps({key: round(value, 2) for key, value in figures.items()}))
    return None


if __name__ == "__main__":
    main()
