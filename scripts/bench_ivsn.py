"""How fast is IVSN here, beside a plain version that takes one image, one tile and one position after the other?

    python scripts/bench_ivsn.py [--height 1024] [--width 1280] [--batch-size 8] [--target-layer pool5] [--rounds 1]
        [--plain-images 2] [--variant tiled] [--threads 1] [--device cpu]

Both start from decoded pixels and end with fixations, on the same images with the same weights; the plain version
stands in the tests, here with torch's convolutions. So those of VGG16 are the same multiplications in both, and the
stages are shown apart:
``images`` (cutting and scaling of search image and target), ``features`` (VGG16), ``modulation``, ``map`` (resizing,
pasting, bringing to 0..1) and ``fixations``. Weights are random, which changes no time but the number of fixations;
no target is ever found. Every figure is the best of the rounds, which take the two in turn. Both have one thread
unless more are asked for: with more, any other load on the machine decides the figures. The last line is one JSON
object.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
STAGES = ("images", "features", "modulation", "map", "fixations")
WINDOW = 200  # in pixels of a frame 1280 wide
MOST = 65


def load(path: Path) -> ModuleType:
    """A module of the tests by its path: tests are no package."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None or not path.is_file():
        sys.exit(f"{path} is needed: run this from a checkout")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def pictures(count: int, height: int, width: int) -> list[Any]:
    """Images with structure at every scale, from a fixed seed: uint8 [height, width, 3]."""
    import cv2
    import numpy as np

    rng = np.random.default_rng(0)
    found = []
    for _ in range(count):
        total = np.zeros((height, width, 3))
        for scale in (128, 64, 32, 16, 8, 4):
            small = rng.random((max(1, height // scale), max(1, width // scale), 3))
            total += cv2.resize(small, (width, height)) * scale**0.7
        found.append(((total - total.min()) / np.ptp(total) * 255).astype(np.uint8))
    return found


class Watch:
    """Adds up the seconds that functions take, by stage, and how often they were waited for."""

    def __init__(self, wait: Callable[[], object]) -> None:
        self.spent: Counter[str] = Counter()
        self.wait = wait

    def timed(self, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*values: Any, **named: Any) -> Any:
            self.wait()
            start = time.perf_counter()
            result = function(*values, **named)
            self.wait()
            self.spent[stage] += time.perf_counter() - start
            return result

        return wrapped


def run_batch(
    agent: Any, images: list[Any], targets: list[Any], wait: Callable[[], object]
) -> tuple[Counter[str], int]:
    """Seconds by stage, and the number of fixations, of the agent's way."""
    from agents.attention import scanpath
    from agents.attention.models import similarity

    watch = Watch(wait)
    plans = [scanpath.Plan((i.shape[1], i.shape[0]), max(1, round(WINDOW * i.shape[1] / 1280)), MOST) for i in images]
    ways = agent._ways
    stages = {
        (similarity, "_correlate"): "modulation",
        (similarity, "responses"): "features",
        (similarity, "paste"): "map",
        (scanpath, "scanpaths"): "fixations",
    }
    kept = {(module, name): getattr(module, name) for module, name in stages}
    for (module, name), stage in stages.items():
        setattr(module, name, watch.timed(stage, kept[module, name]))
    start = time.perf_counter()

    def prepare(image: Any, target: Any) -> tuple[Any, Any]:
        return similarity.search_image(image, ways), similarity.target_image(target, ways)

    try:
        prepared = list(map(watch.timed("images", prepare), images, targets))
        replies = agent.respond([(*each, plan) for each, plan in zip(prepared, plans, strict=True)], [])
    finally:
        for (module, name), function in kept.items():
            setattr(module, name, function)
    watch.spent["total"] = time.perf_counter() - start
    watch.spent["features"] -= watch.spent["modulation"]
    return watch.spent, sum(len(reply.answer.fixations) for reply in replies)


def run_plain(reference: ModuleType, features: Any, agent: Any, images: list[Any], targets: list[Any]) -> Any:
    """The same of the plain version, one image at a time."""
    watch = Watch(lambda: None)  # it brings everything back from the device by itself
    kept = {name: getattr(reference, name) for name in ("scale", "modulated", "both_axes", "unit")}
    reference.scale = watch.timed("images", kept["scale"])
    reference.modulated = watch.timed("modulation", kept["modulated"])
    reference.both_axes = watch.timed("map", kept["both_axes"])
    reference.unit = watch.timed("map", kept["unit"])
    seen, follow = watch.timed("features", features), watch.timed("fixations", reference.fixations)
    block, count = int(agent.settings.target_layer[-1]), 0
    make = reference.tiled_map if agent.settings.variant == "tiled" else reference.whole_map
    start = time.perf_counter()
    for image, target in zip(images, targets, strict=True):
        window = max(1, round(WINDOW * image.shape[1] / 1280))
        count += len(follow(make(seen, image, target, block, agent._ways.target_side), window, MOST))
    watch.spent["total"] = time.perf_counter() - start
    for name, function in kept.items():
        setattr(reference, name, function)
    return watch.spent, count


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--height", type=int, default=1024)
    parser.add_argument("--width", type=int, default=1280)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--variant", choices=("tiled", "whole"), default="tiled")
    parser.add_argument("--target-layer", choices=[f"pool{number}" for number in range(1, 6)], default="pool5")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--plain-images", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    for library in ("OMP", "OPENBLAS", "MKL"):  # read when numpy and torch are imported
        os.environ[f"{library}_NUM_THREADS"] = str(options.threads)
    import torch

    from agents.attention.ivsn import IVSNAgent

    torch.set_num_threads(options.threads)
    sys.path.append(str(ROOT / "tests" / "helpers"))
    reference = load(ROOT / "tests" / "agents" / "attention" / "ivsn_reference.py")
    images = pictures(options.batch_size, options.height, options.width)
    targets = [image[: max(1, options.height // 8), : max(1, options.width // 10)] for image in images[::-1]]
    wait = torch.cuda.synchronize if options.device.startswith("cuda") else lambda: None
    some = max(1, min(options.plain_images, len(images)))
    best: dict[str, Counter[str]] = {}
    fixations: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as folder:
        weights = load(ROOT / "tests" / "helpers" / "tiny_vgg.py").weights(Path(folder))
        agent = IVSNAgent(
            IVSNAgent.Settings(checkpoint=str(weights), variant=options.variant, target_layer=options.target_layer),
            "ivsn",
        )
        agent.open()
        agent.load(options.device)
        features = reference.Features(weights, reference.plain_convolution.by_torch(options.device))
        run_batch(agent, [images[0][:224, :224]], targets[:1], wait)  # to warm both up
        run_plain(reference, features, agent, [images[0][:224, :224]], targets[:1])
        for _ in range(options.rounds):
            for name, count, (spent, made) in (
                ("plain", some, run_plain(reference, features, agent, images[:some], targets[:some])),
                ("batch", len(images), run_batch(agent, images, targets, wait)),
            ):
                each = Counter({stage: spent[stage] / count for stage in (*STAGES, "total")})
                if name not in best or each["total"] < best[name]["total"]:
                    best[name], fixations[name] = each, made
    report(options, best, {"plain": fixations["plain"] / some, "batch": fixations["batch"] / len(images)}, agent)


def report(options: argparse.Namespace, best: dict[str, Counter[str]], fixations: dict[str, float], agent: Any) -> None:
    """A table for people, and one line of JSON."""
    import torch

    plain, batch = best["plain"], best["batch"]
    what = f"{options.variant}, {options.target_layer}, {options.height} x {options.width}, batch {options.batch_size}"
    print(f"{what}, {torch.get_num_threads()} threads, {agent.device}")
    print(f"{'ms per image':<22}{'plain':>12}{'batch':>12}{'times':>8}")
    for stage in (*STAGES, "total"):
        ratio = plain[stage] / batch[stage]
        print(f"{stage:<22}{plain[stage] * 1e3:>12.2f}{batch[stage] * 1e3:>12.2f}{ratio:>8.1f}")
    rest = {name: each["total"] - each["features"] for name, each in best.items()}
    ratios = {stage: round(plain[stage] / batch[stage], 2) for stage in (*STAGES, "total")}
    ratios["total_without_features"] = round(rest["plain"] / rest["batch"], 2)
    print(f"{'all but features':<22}{rest['plain'] * 1e3:>12.2f}{rest['batch'] * 1e3:>12.2f}", end="")
    print(f"{ratios['total_without_features']:>8.1f}")
    for name, per in (("images/s", dict.fromkeys(fixations, 1.0)), ("fixations/s", fixations)):
        print(f"{name:<22}{per['plain'] / plain['total']:>12.2f}{per['batch'] / batch['total']:>12.2f}")
    result = {
        "bench": "ivsn",
        "variant": options.variant,
        "target_layer": options.target_layer,
        "height": options.height,
        "width": options.width,
        "batch_size": options.batch_size,
        "threads": torch.get_num_threads(),
        "device": str(agent.device),
        "machine": platform.processor() or platform.machine(),
        "ratio": ratios,
        "ms_per_image": {
            name: {stage: round(each[stage] * 1e3, 3) for stage in (*STAGES, "total")} for name, each in best.items()
        },
        "images_per_s": {name: round(1 / each["total"], 4) for name, each in best.items()},
        "fixations_per_s": {name: round(fixations[name] / each["total"], 3) for name, each in best.items()},
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
