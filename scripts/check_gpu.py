"""The promises of docs/gpu-node.md, agent by agent, on the first GPU, or with ``--pretend`` on wrapped CPU tensors.

Prints a table, JSON last. Exit code 1: a broken promise; 2: wrong usage, or no GPU.
"""

import argparse
import contextlib
import os
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import cycle, islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import orjson
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT))

LARGEST = 3 * 2**30  # bytes of weights of the real architectures that are tried
ALIKE = 8  # stimuli
SCORES = {"score", "scores", "boxes"}
Row = dict[str, Any]


@contextlib.contextmanager
def counted() -> Iterator[Any]:
    """Counts the host's waits for a real GPU, by torch's warnings."""
    import torch

    from tests.helpers.pretended_cuda import place

    waits: Counter[tuple[str, str]] = Counter()

    def note(message: Warning | str, *_: Any, **__: Any) -> None:
        if "called a synchronizing CUDA operation" in str(message):
            waits["a synchronizing operation", place()] += 1

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = note
        torch.cuda.set_sync_debug_mode("warn")
        try:
            yield SimpleNamespace(waits=waits, clear=waits.clear)
        finally:
            torch.cuda.set_sync_debug_mode("default")


def main() -> int:
    parser = argparse.ArgumentParser(description="What is promised of agents on a GPU.", allow_abbrev=False)
    parser.add_argument("--agents", metavar="A,B", help="only these (default: all that compute with torch)")
    parser.add_argument("--pretend", action="store_true", help="without a GPU and its memory")
    options = parser.parse_args()
    import torch

    if not options.pretend and not torch.cuda.is_available():
        print("check_gpu: there is no GPU that torch can use; --pretend does without one", file=sys.stderr)
        return 2
    from tests.helpers import device_cases

    known = device_cases.entries()
    names = options.agents.split(",") if options.agents else list(known)
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"check_gpu: {', '.join(unknown)}: no agent that computes with torch", file=sys.stderr)
        return 2
    torch.set_num_threads(1 if options.pretend else max(1, torch.get_num_threads()))
    rows = []
    with ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        stack.enter_context(mock.patch.dict(os.environ, {"XDG_CACHE_HOME": str(root / "cache")}))
        for number, name in enumerate(names):
            print(f"{name} ({number + 1} of {len(names)})", file=sys.stderr, flush=True)
            folder = root / str(number)
            folder.mkdir()
            try:
                rows.append(checked(known[name], folder, stack, pretend=options.pretend))
            except Exception as error:  # the others are still to be checked
                rows.append({"agent": name, "broken": [f"{type(error).__name__}: {error}"[:300]]})
    print_rows(rows)
    gpu = "pretended" if options.pretend else torch.cuda.get_device_name(0)
    print(orjson.dumps({"device": gpu, "torch": torch.__version__, "agents": rows}).decode())
    return int(any(row.get("broken") for row in rows))


def checked(entry: Any, folder: Path, stack: ExitStack, *, pretend: bool) -> Row:
    """The row of an agent; ``broken`` are the promises that do not hold, in words."""
    from tests.helpers import device_cases
    from tests.helpers.pretended_cuda import is_ours, pretended_cuda

    row: Row = {"agent": entry.name, "broken": []}
    if (why := device_cases.lacks(entry)) is not None:
        return row | {"left_out": why}
    settings = device_cases.settings(entry, folder / "checkpoint", stack)
    device: Callable[[], Any] = pretended_cuda if pretend else contextlib.nullcontext
    exact = {"precision": "fp32"} if device_cases.takes_precision(entry) else {}
    stimuli = device_cases.stimuli(entry, folder, ALIKE)
    on_cpu = answers(entry, settings | exact, stimuli, "cpu")
    with device():
        on_gpu = answers(entry, settings | exact, stimuli, "cuda:0")
        others = {"alone": answers(entry, settings | exact, stimuli, "cuda:0", size=1)}
        if exact:
            others["in_bf16"] = answers(entry, settings | {"precision": "bf16"}, stimuli, "cuda:0")
    row |= {"answers": len(stimuli), "other_than_cpu": differing(on_cpu, on_gpu)}
    row |= {f"other_{name}": differing(on_gpu, replies) for name, replies in others.items()}
    if row["other_than_cpu"]:
        row["broken"].append(f"{row['other_than_cpu']} of {len(stimuli)} answers in fp32 are not the CPU's")
    waits = device_cases.count_waits(entry, settings, folder, ALIKE, device=pretended_cuda if pretend else counted)
    for column, by_place in zip(("waits_step", "waits_batch"), waits, strict=True):
        row[column] = round(sum(by_place.values()), 2)
        row[f"{column}_ours"] = round(sum(number for place, number in by_place.items() if is_ours(place)), 2)
    if row["waits_step_ours"] > 0.01:
        row["broken"].append(f"{row['waits_step_ours']} waits of ours in every step")
    if not pretend:
        row |= of_real_size(entry)
        if row.get("memory_mib", 0) > row.get("declared_mib", 0):
            row["broken"].append(f"takes {row['memory_mib']} MiB and declares {row['declared_mib']}")
    return row


def answers(entry: Any, settings: Row, stimuli: list[Any], device: str, size: int = ALIKE) -> list[Row]:
    """The answers in batches of ``size``, without scores."""
    from tests.helpers import device_cases

    agent = device_cases.loaded(entry, settings, device)
    draws = device_cases.draws(stimuli)
    replies: list[Any] = []
    for at in range(0, len(stimuli), size):
        prepared = [agent.prepare(stimulus) for stimulus in stimuli[at : at + size]]
        replies += agent.respond(prepared, draws[at : at + size])
    agent.close()
    return [
        {"failed": repr(reply)} if isinstance(reply, Exception) else reply.answer.model_dump(exclude=SCORES)
        for reply in replies
    ]


def differing(some: list[Row], others: list[Row]) -> int:
    return sum(first != second for first, second in zip(some, others, strict=True))


def of_real_size(entry: Any) -> Row:
    """Memory of the real architecture on the GPU, with drawn weights; empty where it cannot be had."""
    import torch

    from agents.capabilities import device_bytes
    from tests.helpers import device_cases

    agent = entry.make({"checkpoint": "random"} if entry.takes_random_weights() else {})
    stimuli = list(islice(cycle(examples(entry)), ALIKE))
    if (
        agent.missing() is not None
        or getattr(agent, "weights", 0) > LARGEST
        or agent.declaration().batches_by_itself
        or not stimuli
    ):
        return {}
    agent.open()
    torch.cuda.reset_peak_memory_stats()
    agent.load("cuda:0")
    agent.respond([agent.prepare(stimulus) for stimulus in stimuli], device_cases.draws(stimuli))
    row = {"memory_mib": torch.cuda.max_memory_allocated() >> 20, "declared_mib": device_bytes(agent, ALIKE) >> 20}
    agent.close()
    torch.cuda.empty_cache()
    return row


def examples(entry: Any) -> list[Any]:
    """The stimuli of the agent's first task among the examples."""
    from agents.stimuli import parse_row

    folder = ROOT / "examples"
    lines = [line for name in ("demo", "vision", "search") for line in (folder / f"{name}.jsonl").open("rb")]
    stimuli = [parse_row(line, root=folder) for line in lines if b"broken" not in line]
    modes = entry.load_class().declares.modes
    return [
        stimulus
        for stimulus in stimuli
        if stimulus.task == entry.tasks[0] and getattr(stimulus, "mode", "free") in modes
    ]


def print_rows(rows: list[Row]) -> None:
    columns = dict.fromkeys(name for row in rows for name, value in row.items() if isinstance(value, int | float))
    table = Table("agent", *(name.replace("_", " ") for name in columns), "")
    for row in rows:
        cells = ["" if row.get(name) is None else f"{row[name]:g}" for name in columns]
        table.add_row(row["agent"], *cells, "; ".join(row["broken"]) or row.get("left_out", ""))
    Console(width=160).print(table)


if __name__ == "__main__":
    sys.exit(main())
