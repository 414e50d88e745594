"""How fast the machinery is: ``generate`` with the no-op agent beside Ray Data. Prints stimuli per second as JSON,
last, less the time over a single stimulus."""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

BATCH = 512


def write_set(path: Path, count: int) -> Path:
    with path.open("w") as file:
        for i in range(count):
            file.write(json.dumps({"id": f"w{i:07d}", "task": "word_association", "cue": f"cue{i}"}) + "\n")
    return path


def generate(source: Path, out: Path) -> list[str]:
    call = [sys.executable, "-m", "serving.cli", "generate", str(source), "--agents", "null", "--out", str(out)]
    return [*call, "--batch-size", str(BATCH), "--replicas", "1"]


def seconds(command: list[str]) -> float:
    began = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{command} ended with {done.returncode}: {done.stderr[-2000:]}")
    return time.perf_counter() - began


def ray_data(source: Path, out: Path, written: Path) -> None:
    """The same fields through Ray Data: what ``generate`` has ``written``, with other stimuli and answers."""
    import hashlib

    import ray

    ray.init(include_dashboard=False, logging_level="ERROR", log_to_driver=False, object_store_memory=256 << 20)
    import ray.data

    ray.data.DataContext.get_current().enable_progress_bars = False

    record = json.loads(written.read_text())

    class Null:
        def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
            count = len(batch["id"])
            seeds = [
                int.from_bytes(hashlib.sha256(f'[1,0,"null","{i}",0,null,0]'.encode()).digest()[:8], "big") >> 11
                for i in batch["id"]
            ]
            rows = zip(batch["cue"], batch["id"], batch["task"], strict=True)
            texts = [f'{{"cue":"{cue}","id":"{i}","task":"{task}"}}' for cue, i, task in rows]
            return {
                **{name: [value] * count for name, value in record.items()},
                "stimulus": batch["id"],
                "stimulus_sha256": [hashlib.sha256(text.encode()).hexdigest() for text in texts],
                "seed": seeds,
                "answer": [{"word": f"{seed:x}", "candidates": None, "skipped": []} for seed in seeds],
                "raw": [f"{seed:x}" for seed in seeds],
            }

    rows = ray.data.read_json(str(source), lines=True)
    rows.map_batches(Null, batch_size=1024, concurrency=1).write_json(str(out))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--peer", nargs=3, type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peer:
        return ray_data(*options.peer)
    peer = [sys.executable, __file__, "--peer"]
    ours, peers = [], []
    with tempfile.TemporaryDirectory(prefix="machinery-") as name:
        folder = Path(name)
        many, single = write_set(folder / "many.jsonl", options.rows), write_set(folder / "single.jsonl", 1)
        for i in range(options.repeats):
            ours.append(seconds(generate(many, folder / f"many{i}")) - seconds(generate(single, folder / f"one{i}")))
            written = str(folder / f"one{i}" / "records" / "null.jsonl")
            start_up = seconds([*peer, str(single), str(folder / f"peer-one{i}"), written])
            peers.append(seconds([*peer, str(many), str(folder / f"peer{i}"), written]) - start_up)
            print(f"round {i + 1}: generate {ours[-1]:.2f} s, Ray Data {peers[-1]:.2f} s", flush=True)
    rates = {"generate": options.rows / statistics.median(ours), "ray_data": options.rows / statistics.median(peers)}
    print(json.dumps({"rows": options.rows, **{key: round(value, 2) for key, value in rates.items()}}))
    return None


if __name__ == "__main__":
    main()
