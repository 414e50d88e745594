"""Texts per second on the CPU: one process whose operations share all cores, beside a process with one thread per core.

Models of GPT-2's architecture with random weights, from 7 to 92 million of them, each going on with 16 prompts of 40
tokens for 16 more. What ``--replicas auto`` does on the CPU rests on this.

    python scripts/bench_threads.py [--seconds 10] [--repeats 3]

prints a table and, as the last line, one JSON object.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
import time
from multiprocessing.synchronize import Barrier
from typing import Any

BATCH, PROMPT, NEW, WORDS = 16, 40, 16, 8000
SIZES = [(256, 6), (512, 8), (768, 12)]  # width, layers


def weights(width: int, layers: int) -> int:
    """The number of weights of the model."""
    return width * (WORDS + 1024 + 2) + layers * (12 * width * width + 13 * width)


def texts(width: int, layers: int, threads: int, seconds: float, ready: Barrier, rates: Any) -> None:
    """Put the rate of one process into ``rates``; all begin at once."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    shape = {"n_embd": width, "n_layer": layers, "n_head": width // 64, "vocab_size": WORDS}
    model = GPT2LMHeadModel(GPT2Config(**shape, bos_token_id=0, eos_token_id=0)).eval()
    prompts = torch.randint(1, WORDS, (BATCH, PROMPT))
    count, start = 0, 0.0
    with torch.inference_mode():
        while not start or time.perf_counter() - start < seconds:
            model.generate(
                prompts,
                attention_mask=torch.ones_like(prompts),
                max_new_tokens=NEW,
                min_new_tokens=NEW,
                do_sample=False,
                pad_token_id=0,
            )
            if start:
                count += BATCH
            else:
                ready.wait()
                start = time.perf_counter()
    rates.put(count / (time.perf_counter() - start))


def rate(width: int, layers: int, processes: int, threads: int, seconds: float) -> float:
    """Texts per second of ``processes`` together."""
    context = multiprocessing.get_context("spawn")
    ready, rates = context.Barrier(processes), context.Queue()
    started = [
        context.Process(target=texts, args=(width, layers, threads, seconds, ready, rates)) for _ in range(processes)
    ]
    for process in started:
        process.start()
    total = sum(rates.get() for _ in started)
    for process in started:
        process.join()
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    print(f"{'weights':>12} {'1 x ' + str(cores) + ' threads':>14} {str(cores) + ' x 1 thread':>14} {'ratio':>7}")
    found = []
    for width, layers in SIZES:
        shared, alone = [], []
        for _ in range(args.repeats):
            shared.append(rate(width, layers, 1, cores, args.seconds))
            alone.append(rate(width, layers, cores, 1, args.seconds))
        row = {
            "weights": weights(width, layers),
            "shared": round(statistics.median(shared), 2),
            "alone": round(statistics.median(alone), 2),
        }
        row["ratio"] = round(row["alone"] / row["shared"], 2)
        found.append(row)
        print(f"{row['weights']:>12,} {row['shared']:>14} {row['alone']:>14} {row['ratio']:>7}", flush=True)
    print(json.dumps({"cores": cores, "load": os.getloadavg()[0], "repeats": args.repeats, "texts_per_s": found}))


if __name__ == "__main__":
    main()
