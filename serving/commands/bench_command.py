"""The command ``bench`` and its options."""

import argparse

from agents.stimuli import MODES
from serving.commands.command_line import (
    DEVICE,
    Commands,
    from_options,
    minutes,
    path,
    positive,
    price,
    seconds,
    sizes,
    task,
)


def register(commands: Commands) -> None:
    """Add the command."""
    bench = commands.add(
        "bench",
        _bench,
        "measure how fast agents are on this machine, and what limits their speed",
        commands.settings,
        example="photos --agents git-large-coco,mmcq --replicas 1,2",
        uses_ray=True,
    )
    add = bench.add_argument
    what = (
        "with --agents: the stimulus set (default: stimuli that the program makes). Without it: agents to measure alone"
    )
    add("what", nargs="*", metavar="STIMULI|AGENT", help=what)
    add("--device", choices=("auto", "cpu", "cuda"), default="auto", help=DEVICE)
    add(
        "--task",
        type=task,
        metavar="TASK",
        help="the task to measure (default: the first task of each agent; of a set: what its rows say)",
    )
    add(
        "--mode",
        choices=MODES,
        help="free viewing or search, for agents that predict attention (default: the first mode of each agent)",
    )
    add("--compare", type=path, metavar="FILE", help="say what is faster or slower than in FILE, an older bench.json")
    add("-o", "--out", type=path, metavar="DIR", help="write the results to DIR/bench.json")
    over = bench.add_argument_group("over a set, by the way of `generate` or `serve`")
    add = over.add_argument
    add("--agents", metavar="A,B", help="the agents and pairs (A~B) to measure over the set, one after the other")
    add("--replicas", type=sizes, metavar="1,2,4", help="numbers of workers of each agent (default 1)")
    add(
        "--minutes",
        type=minutes,
        metavar="M",
        help="minutes of answering for each agent and number of workers, in three runs (default 1)",
    )
    add(
        "--batch-size",
        type=positive,
        metavar="N",
        help="number of answers in a batch (default: as each agent declares)",
    )
    add("--address", metavar="A", help="the address of a running Ray cluster (default: start Ray on this machine)")
    add("--http", action="store_true", help="ask a server (`turinglike serve --out`) by HTTP, in place of `generate`")
    add("--connections", type=positive, metavar="N", help="with --http: requests under way at once (default 64)")
    add(
        "--for",
        type=positive,
        dest="for_answers",
        metavar="N",
        help="compute what N answers would take, to stimuli like those of the set (default: the whole set)",
    )
    add("--price-hour", type=price, metavar="P", help="price of an hour of a GPU, or of the machine without a GPU")
    add("--price-token", type=price, metavar="P", help="price of a token that the agent writes")
    alone = bench.add_argument_group("agents alone, without Ray, queue and records")
    add = alone.add_argument
    add(
        "--batch-sizes",
        type=sizes,
        dest="sizes",
        metavar="1,2,4",
        help="numbers of stimuli in a batch (default: begin with 1, and double the number as long as larger batches "
        "are faster)",
    )
    add("--seconds", type=seconds, metavar="N", help="seconds of measuring for each batch size (default 5)")


def _bench(options: argparse.Namespace) -> int:
    from serving.bench.command import bench
    from serving.bench.options import BenchOptions

    return bench(from_options(BenchOptions, options))
