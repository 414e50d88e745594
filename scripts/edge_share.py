"""The share of saccades that land on the edge of an earlier window, for each attention agent.

A maximum with a hard square window puts the next fixation on the window's border wherever the map slopes there: a mark
of the method, no property of the picture, and one by which a judge could know a machine. This measures it on the
example pictures, with square and with Gaussian inhibition where an agent has both; how it is counted is said in
:func:`agents.attention.scanpath.edge_share`.

    python scripts/edge_share.py [--only gbvs,ivsn] [--fixations 15] [--pictures 100] [--vgg FILE]

Weights that are not on this machine are drawn at random, at the real size, and the table says so: the maps are then
those of an untrained network. DeepGaze III is left out where its weights or its package are not here. Prints a table
and, as the last line, one JSON object.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from statistics import fmean
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "helpers")]

from agents import catalogue  # noqa: E402
from agents.attention.models.vgg import VGGAgent  # noqa: E402
from agents.attention.scanpath import edge_share  # noqa: E402
from agents.catalogue import Entry  # noqa: E402
from agents.contract import Draw, Reply  # noqa: E402
from agents.stimuli import AttentionStimulus, parse_row  # noqa: E402

SETS = {"free": "demo.jsonl", "search": "search.jsonl"}


def stimuli(mode: str, fixations: int) -> Iterator[AttentionStimulus]:
    """The examples of one mode; in search without the target's place, so that no path ends because it is found."""
    for line in (ROOT / "examples" / SETS[mode]).read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["task"] != "attention_prediction" or row["id"].endswith("broken"):
            continue
        row.pop("target_box", None)
        found = parse_row(json.dumps({**row, "max_fixations": fixations}), root=ROOT / "examples")
        assert isinstance(found, AttentionStimulus)
        yield found


def shares(entry: Entry, settings: dict[str, Any], fixations: int, pictures: int) -> dict[str, float]:
    """The mean share over the pictures, by mode."""
    agent = entry.make(settings)
    agent.open()
    agent.load("cpu")
    found = {}
    for mode in agent.modes:
        values = []
        for stimulus in islice(stimuli(mode, fixations), pictures):
            [reply] = agent.respond([agent.prepare(stimulus)], [Draw(seed=1)])
            if not isinstance(reply, Reply):
                raise SystemExit(f"{entry.name}, {stimulus.id}: {reply}")
            # An agent whose window inhibits nothing does not name it; it is compared by the others'.
            window = reply.answer.window or max(1, round(200 * reply.answer.frame[0] / 1280))
            share = edge_share(reply.answer.fixations, window)
            values += [] if share is None else [share]
        found[mode] = fmean(values)
    agent.close()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="agents, parted by commas")
    parser.add_argument("--fixations", type=int, default=15)
    parser.add_argument("--pictures", type=int, default=100, help="at most so many of each mode")
    parser.add_argument("--vgg", type=Path, help="a file of VGG16's weights")
    options = parser.parse_args()
    entries = [e for e in catalogue.entries().values() if "attention_prediction" in e.tasks and not e.hidden]
    if options.only:
        entries = [catalogue.get(name) for name in options.only.split(",")]
    print(f"{'agent':18} {'weights':8} {'inhibition':10} {'free':>6} {'search':>6}")
    results: dict[str, Any] = {"fixations": options.fixations}
    with tempfile.TemporaryDirectory(prefix="edge-share-") as name:
        for entry in entries:
            settings: dict[str, Any] = {}
            weights = "none"
            if issubclass(entry.load_class(), VGGAgent):
                weights = "given"
                if options.vgg is not None:
                    settings["checkpoint"] = str(options.vgg)
                elif entry.make().missing() is not None:
                    import tiny_vgg

                    weights, settings["checkpoint"] = "random", str(tiny_vgg.weights(Path(name)))
            elif (lacking := entry.make().missing()) is not None:
                print(f"{entry.name:18} left out: {lacking[:90]}")
                continue
            ways = ("square", "gaussian") if "inhibition" in entry.load_class().Settings.model_fields else (None,)
            for way in ways:
                found = shares(
                    entry, {**settings, **({"inhibition": way} if way else {})}, options.fixations, options.pictures
                )
                cells = [f"{found[mode]:6.1%}" if mode in found else f"{'-':>6}" for mode in SETS]
                print(f"{entry.name:18} {weights:8} {way or 'its own':10} {' '.join(cells)}", flush=True)
                results.setdefault(entry.name, {})[way or "own"] = found
    print(json.dumps(results))


if __name__ == "__main__":
    main()
