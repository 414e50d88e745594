"""Every attention agent beside a plain version of it: images and fixations per second, on the CPU, in one run.

Ours takes eight images in a batch, from decoded pixels to fixations; the plain version takes one after the other, with
loops over pixels, cells, positions and past fixations, and looks at the whole view anew wherever the method says that
the model looks again. The plain versions are those that the tests compare with (of DeepGaze III: its authors' model,
asked anew for each fixation). Both have the same images, settings, weights (random, at VGG16's real size) and one
thread. For an agent that is dominated by VGG16 the convolutions of both are the same multiplications: there the ratio
says how little else it costs. Sizes are reduced so that the plain versions come to an end, and printed.

    python scripts/bench_attention.py [--only gbvs,ivsn] [--images 8] [--plain-images 1] [--fixations 15]

prints a table and, as the last line, one JSON object.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "helpers"), str(ROOT / "tests" / "agents" / "attention")]

HEIGHT, WIDTH, WINDOW = 256, 320, 50
Plain = Callable[[Any, Any], int]  # an image and a target -> the number of fixations
CASES: dict[str, dict[str, Any]] = {
    "gbvs": {},
    "ivsn": {},
    "ivsn-notarget": {},
    "ivsn-layer": {},
    "return-fixations": {"sizes": [256, 128, 64]},
    "eccnet": {"long_side": 320, "radius": 144, "margin": 16},
    "deepgaze3": {"longer_side": 320, "center_bias": "uniform"},
}


def pictures(count: int) -> list[Any]:
    """Images with structure at every scale, uint8 [height, width, 3]."""
    import cv2
    import numpy as np

    rng = np.random.default_rng(0)
    found = []
    for _ in range(count):
        total = np.zeros((HEIGHT, WIDTH, 3))
        for scale in (64, 32, 16, 8, 4):
            total += cv2.resize(rng.random((HEIGHT // scale, WIDTH // scale, 3)), (WIDTH, HEIGHT)) * scale**0.7
        found.append(((total - total.min()) / np.ptp(total) * 255).astype(np.uint8))
    return found


def plain_gbvs(agent: Any, weights: str, most: int) -> Plain:
    import cv2
    import gbvs_reference
    import ivsn_reference

    def look(image: Any, target: Any) -> int:
        plane = cv2.resize(gbvs_reference.saliency(image), (WIDTH, HEIGHT))
        return len(ivsn_reference.fixations(plane, WINDOW, most))

    return look


def plain_ivsn(agent: Any, weights: str, most: int) -> Plain:
    import ivsn_reference

    features, block = ivsn_reference.Features(weights), int(agent.settings.target_layer[-1])
    bottom_up = {"relu4_3": 4, "relu5_3": 5}[agent.settings.bottom_up] if agent._ways.bottom_up else None

    def look(image: Any, target: Any) -> int:
        plane = ivsn_reference.tiled_map(features, image, target, block, agent._ways.target_side, bottom_up)
        return len(ivsn_reference.fixations(plane, WINDOW, most))

    return look


def plain_return(agent: Any, weights: str, most: int) -> Plain:
    import return_reference

    def look(image: Any, target: Any) -> int:
        plane = return_reference.saliency(image, weights, agent.settings.sizes, agent.settings.border)
        return len(return_reference.choose(plane, agent._prior.tolist(), 0.02, 0.5, most)[0])

    return look


def plain_eccnet(agent: Any, weights: str, most: int) -> Plain:
    import eccnet_reference

    model = eccnet_reference.EccNet(weights, agent.settings)

    def look(image: Any, target: Any) -> int:
        from agents.stimuli import AttentionStimulus  # only to resize image and target as the agent does

        shown, wanted, task = agent.prepare(AttentionStimulus.model_validate(stimulus(image, target, most)))
        return len(model.path(shown, wanted, task.frame, WINDOW, most)[0])

    return look


def plain_deepgaze(agent: Any, weights: str, most: int) -> Plain:
    import numpy as np
    import torch

    model = agent._model

    def look(image: Any, target: Any) -> int:
        planes = torch.from_numpy(image).permute(2, 0, 1)[None].float()
        bias = torch.full((1, HEIGHT, WIDTH), -float(np.log(HEIGHT * WIDTH)))
        path, free = [(WIDTH // 2, HEIGHT // 2)], np.ones((HEIGHT, WIDTH), bool)
        while len(path) < most:
            x, y = path[-1]
            reach = WINDOW // 2
            free[max(0, y - reach) : y + reach + 1, max(0, x - reach) : x + reach + 1] = False
            latest = [*reversed(path)][:4]
            history = torch.tensor([[*point] for point in latest] + [[float("nan")] * 2] * (4 - len(latest))).T[None]
            with torch.inference_mode():
                density = model(planes, bias, history[:, 0].float(), history[:, 1].float())[0, 0].numpy()
            row, column = divmod(int(np.where(free, density, -np.inf).argmax()), WIDTH)
            path.append((column, row))
        return len(path)

    return look


PLAIN: dict[str, Callable[[Any, str, int], Plain]] = {
    "gbvs": plain_gbvs,
    "return-fixations": plain_return,
    "eccnet": plain_eccnet,
    "deepgaze3": plain_deepgaze,
}
FOLDER = Path(tempfile.gettempdir())


def stimulus(image: Any, target: Any, most: int) -> dict[str, Any]:
    """A row whose pictures are these pixels, for agents that read files."""
    from PIL import Image as PILImage

    paths = []
    for pixels in (image, target):
        path = FOLDER / f"{abs(hash(pixels.tobytes())):x}.png"
        if not path.exists():
            PILImage.fromarray(pixels).save(path)
        paths.append(str(path))
    row = {"id": "a", "task": "attention_prediction", "image": paths[0], "window": WINDOW, "max_fixations": most}
    return {**row, "mode": "search", "target_image": paths[1]}


def ours(agent: Any, images: Sequence[Any], targets: Sequence[Any], most: int) -> tuple[float, int]:
    """Seconds and fixations of one batch after a smaller one, preparation included."""
    from agents.contract import Draw
    from agents.stimuli import AttentionStimulus

    rows = [stimulus(image, target, most) for image, target in zip(images, targets, strict=True)]
    if "search" not in agent.modes or agent.name == "return-fixations":
        rows = [{k: v for k, v in row.items() if k not in ("mode", "target_image")} for row in rows]
    items = [AttentionStimulus.model_validate(row) for row in rows]
    agent.respond([agent.prepare(items[0])], [Draw(seed=1)])
    began = time.perf_counter()
    replies = agent.respond([agent.prepare(item) for item in items], [Draw(seed=1)] * len(items))
    return time.perf_counter() - began, sum(len(reply.answer.fixations) for reply in replies)


def weights_for(name: str, folder: Path) -> str | None:
    """A file of random weights at real size, if the agent needs one; None where its package is not here."""
    if name == "gbvs":
        return ""
    if name != "deepgaze3":
        import tiny_vgg

        return str(tiny_vgg.weights(folder))
    if importlib.util.find_spec("deepgaze_pytorch") is None:
        return None
    from safetensors.torch import save_file

    from agents.attention import deepgaze_model

    state = deepgaze_model.build().state_dict()
    save_file({key: value.contiguous().clone() for key, value in state.items()}, folder / "deepgaze.safetensors")
    return str(folder / "deepgaze.safetensors")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(CASES))
    parser.add_argument("--images", type=int, default=8)
    parser.add_argument("--plain-images", type=int, default=1)
    parser.add_argument("--fixations", type=int, default=15)
    options = parser.parse_args()
    import torch

    from agents import catalogue

    torch.set_num_threads(1)
    images = pictures(options.images)
    targets = [image[100:132, 100:132].copy() for image in images]
    found: dict[str, Any] = {"images": options.images, "frame": [WIDTH, HEIGHT], "fixations": options.fixations}
    print(f"{'agent':18} {'images/s':>9} {'plain':>9} {'fixations/s':>12} {'plain':>9} {'ratio':>7}  settings")
    with tempfile.TemporaryDirectory(prefix="attention-") as name:
        global FOLDER
        FOLDER = Path(name)
        for agent_name in options.only.split(","):
            weights = weights_for(agent_name, FOLDER)
            if weights is None:
                print(f"{agent_name:18} left out: its package is not installed")
                continue
            agent = catalogue.get(agent_name).make(
                {**CASES[agent_name], **({"checkpoint": weights} if weights else {})}
            )
            agent.open()
            agent.load("cpu")
            seconds, count = ours(agent, images, targets, options.fixations)
            look = PLAIN.get(agent_name, plain_ivsn)(agent, weights, options.fixations)
            began, plain_count = time.perf_counter(), 0
            for image, target in list(zip(images, targets, strict=True))[: options.plain_images]:
                plain_count += look(image, target)
            plain_seconds = time.perf_counter() - began
            rates = [options.images / seconds, options.plain_images / plain_seconds]
            rates += [count / seconds, plain_count / plain_seconds]
            ratio = rates[2] / rates[3]
            print(
                f"{agent_name:18} {rates[0]:9.3f} {rates[1]:9.3f} {rates[2]:12.2f} {rates[3]:9.2f} {ratio:7.1f}  "
                f"{CASES[agent_name] or ''}",
                flush=True,
            )
            found[agent_name] = [round(rate, 4) for rate in rates]
            agent.close()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
