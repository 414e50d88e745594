"""How fast is graph-based saliency on this CPU, beside a plain numpy version that finds its equilibria by iterating?

    python scripts/bench_gbvs.py [--height 480] [--width 640] [--batch-size 8] [--rounds 7] [--threads 1]

Two comparisons: the equilibria alone (24 chains of 768 nodes for an image of 480 x 640, building the weights
included, the distances known beforehand in both), and the whole way from decoded pixels to a map. The numpy version
stands in the tests. It is timed twice: stopping when the changes sum to less than 1e-4, and at 1e-12, which is as
accurate as the closed form. Every figure is the best of the rounds, which take the steps in turn. Both sides have one
thread unless more are asked for: with more, any other load on the machine decides the figures. The last line is one
JSON object.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

REFERENCE = Path(__file__).resolve().parent.parent / "tests" / "agents" / "attention" / "gbvs_reference.py"
REST_S = 0.5  # the threads of numpy and of torch spin for a while after their work


def load_reference() -> ModuleType:
    """The numpy version, by its path: tests are no package."""
    spec = importlib.util.spec_from_file_location("gbvs_reference", REFERENCE)
    if spec is None or spec.loader is None or not REFERENCE.is_file():
        sys.exit(f"{REFERENCE} is needed: run this from a checkout")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def pictures(count: int, height: int, width: int) -> torch.Tensor:
    """Images with structure at every scale, from a fixed seed: uint8 [count, height, width, 3]."""
    import cv2
    import numpy as np
    import torch

    rng = np.random.default_rng(0)
    total = np.zeros((count, height, width, 3))
    for index in range(count):
        for scale in (64, 32, 16, 8, 4, 1):
            small = rng.random((max(1, height // scale), max(1, width // scale), 3))
            total[index] += cv2.resize(small, (width, height)) * scale**0.7
    low, high = total.min((1, 2, 3), keepdims=True), total.max((1, 2, 3), keepdims=True)
    return torch.from_numpy(((total - low) / (high - low) * 255).astype(np.uint8))


def seconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--height", type=int, default=480)
    parser.add_argument("--width", type=int, default=640)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    for library in ("OMP", "OPENBLAS", "MKL"):  # read when numpy and torch are imported
        os.environ[f"{library}_NUM_THREADS"] = str(options.threads)
    import torch

    from agents.attention import scanpath
    from agents.attention.models import graph_saliency

    torch.set_num_threads(options.threads)
    reference = load_reference()
    batch, height, width = options.batch_size, options.height, options.width
    images = pictures(batch, height, width)
    chains = graph_saliency.features(images)[0].flatten(0, 1)
    first = chains[: len(chains) // batch].numpy()  # the chains of one image
    near = reference.nearness(*first.shape[1:], 0.15)

    def iterated(tolerance: float) -> None:
        for values in first:
            reference.equilibrium(reference.chain_activation(values.ravel(), near), tolerance)

    plans = [scanpath.Plan((width, height), max(1, round(200 * width / 1280)), 15)] * batch
    maps = graph_saliency.saliency(images)
    steps: dict[str, tuple[Callable[[], Any], int]] = {
        "equilibrium, numpy, to 1e-4": (lambda: iterated(1e-4), 1),
        "equilibrium, numpy, to 1e-12": (lambda: iterated(1e-12), 1),
        "equilibrium, closed form": (lambda: graph_saliency.activation(chains), batch),
        "image to map, numpy": (lambda: reference.saliency(images[0].numpy()), 1),
        "image to map": (lambda: graph_saliency.saliency(images), batch),
        "map to 15 fixations": (lambda: scanpath.scanpaths(maps, plans), batch),
        "image to 15 fixations": (lambda: scanpath.scanpaths(graph_saliency.saliency(images), plans), batch),
    }
    for work, _ in steps.values():
        work()
    best = dict.fromkeys(steps, float("inf"))
    for _ in range(options.rounds):
        for name, (work, count) in steps.items():
            time.sleep(REST_S if options.threads > 1 else 0)
            best[name] = min(best[name], seconds(work) / count)

    size = f"{len(first)} chains of {len(near)} nodes"
    print(f"{height} x {width}, batch {batch}, {torch.get_num_threads()} threads, {size}")
    print(f"{'step':<36}{'ms/image':>10}{'images/s':>10}")
    for name, value in best.items():
        print(f"{name:<36}{value * 1e3:>10.2f}{1 / value:>10.1f}")
    closed = best["equilibrium, closed form"]
    equilibrium, converged = (best[f"equilibrium, numpy, to {to}"] / closed for to in ("1e-4", "1e-12"))
    whole = best["image to map, numpy"] / best["image to map"]
    print(f"the closed form is {equilibrium:.1f} times faster than numpy to 1e-4, {converged:.1f} times than to 1e-12;")
    print(f"the whole pipeline is {whole:.1f} times faster than with numpy to 1e-4")
    result = {
        "bench": "gbvs",
        "height": height,
        "width": width,
        "batch_size": batch,
        "threads": torch.get_num_threads(),
        "machine": platform.processor() or platform.machine(),
        "equilibrium_ratio": round(equilibrium, 2),
        "equilibrium_ratio_converged": round(converged, 2),
        "pipeline_ratio": round(whole, 2),
        "ms_per_image": {name: round(value * 1e3, 3) for name, value in best.items()},
        "images_per_s": round(1 / best["image to 15 fixations"], 2),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
