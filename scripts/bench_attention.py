"""Every attention agent beside a plain version of it: images and fixations per second, on the CPU, in one run.

Ours takes eight images in a batch, from files to fixations. Beside it stand two versions that take one image after the
other, with loops over pixels, cells, positions and past fixations, and that look at the whole view anew wherever the
method says that the model looks again:

"plain" is the reference that the tests compare with, plain all the way: numpy in float64, the network's convolutions
too, as a loop over a kernel's taps with a sum over channels. Of DeepGaze III it is its authors' model, asked anew for
each fixation, with each of its convolutions replaced by that one.

"torch" is the same with torch's convolutions, in float32. DeepGaze III's own are torch's too, so what is left to gain
there is what is around them, and what need not be computed twice; those of VGG16 multiply less besides, by Winograd's
filtering. gbvs has no network, and no such version.

All have the same images, settings, weights (random, at the networks' real sizes) and threads. Sizes are reduced so
that the plain versions come to an end, and printed. A table, and as the last line one JSON object.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "helpers"), str(ROOT / "tests" / "agents" / "attention")]

HEIGHT, WIDTH, WINDOW = 256, 320, 50
Convolve = Callable[..., Any]  # as plain_convolution.convolved is called
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


def plain_gbvs(agent: Any, weights: str, most: int, convolve: Convolve) -> Plain:
    import cv2
    import gbvs_reference
    import ivsn_reference

    def look(image: Any, target: Any) -> int:
        plane = cv2.resize(gbvs_reference.saliency(image), (WIDTH, HEIGHT))
        return len(ivsn_reference.fixations(plane, WINDOW, most))

    return look


def plain_ivsn(agent: Any, weights: str, most: int, convolve: Convolve) -> Plain:
    import ivsn_reference

    features, block = ivsn_reference.Features(weights, convolve), int(agent.settings.target_layer[-1])
    bottom_up = {"relu4_3": 4, "relu5_3": 5}[agent.settings.bottom_up] if agent._ways.bottom_up else None

    def look(image: Any, target: Any) -> int:
        plane = ivsn_reference.tiled_map(features, image, target, block, agent._ways.target_side, bottom_up)
        return len(ivsn_reference.fixations(plane, WINDOW, most))

    return look


def plain_return(agent: Any, weights: str, most: int, convolve: Convolve) -> Plain:
    import return_reference

    def look(image: Any, target: Any) -> int:
        plane = return_reference.saliency(image, weights, agent.settings.sizes, agent.settings.border, convolve)
        return len(return_reference.choose(plane, agent._prior.tolist(), 0.02, 0.5, most)[0])

    return look


def plain_eccnet(agent: Any, weights: str, most: int, convolve: Convolve) -> Plain:
    import eccnet_reference

    model = eccnet_reference.EccNet(weights, agent.settings, convolve)

    def look(image: Any, target: Any) -> int:
        from agents.stimuli import AttentionStimulus  # only to resize image and target as the agent does

        shown, wanted, task = agent.prepare(AttentionStimulus.model_validate(stimulus(image, target, most)))
        return len(model.path(shown, wanted, task.frame, WINDOW, most)[0])

    return look


def with_convolutions(model: Any, convolve: Convolve) -> Any:
    """A DeepGaze III of the same weights, each of whose ``nn.Conv2d`` calls ``convolve`` on its one image."""
    import torch

    from agents.attention.models import deepgaze as deepgaze_model

    def forward(own: torch.nn.Conv2d, maps: torch.Tensor) -> torch.Tensor:
        bias = None if own.bias is None else own.bias.numpy()
        found = convolve(maps[0].numpy(), own.weight.numpy(), bias, own.stride[0], own.padding[0])
        return torch.from_numpy(found)[None].float()

    other = deepgaze_model.build()
    other.load_state_dict(model.state_dict())
    for part in other.eval().requires_grad_(False).modules():
        if isinstance(part, torch.nn.Conv2d):
            part.forward = partial(forward, part)  # type: ignore[method-assign]
    return other


def plain_deepgaze(agent: Any, weights: str, most: int, convolve: Convolve) -> Plain:
    import numpy as np
    import plain_convolution
    import torch

    model = with_convolutions(agent._model, convolve) if convolve is plain_convolution.convolved else agent._model

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


PLAIN: dict[str, Callable[[Any, str, int, Convolve], Plain]] = {
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

    from agents.attention.models import deepgaze as deepgaze_model

    state = deepgaze_model.build().state_dict()
    save_file({key: value.contiguous().clone() for key, value in state.items()}, folder / "deepgaze.safetensors")
    return str(folder / "deepgaze.safetensors")


def timed(look: Plain, images: Sequence[Any], targets: Sequence[Any]) -> tuple[float, int]:
    """Seconds and fixations of a version that takes one image after the other."""
    began = time.perf_counter()
    count = sum(look(image, target) for image, target in zip(images, targets, strict=True))
    return time.perf_counter() - began, count


def positive(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"must be a whole number above 0, not {text!r}")
    return int(text)


def names(text: str) -> list[str]:
    found = text.split(",")
    if unknown := [name for name in found if name not in CASES]:
        raise argparse.ArgumentTypeError(f"there is no {unknown[0]!r} here; there are {', '.join(CASES)}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--only", type=names, default=list(CASES), metavar="NAMES", help=f"of {','.join(CASES)} (default: all)")
    add("--images", type=positive, default=8, metavar="N", help="in the agent's batch (default 8)")
    add("--plain-images", type=positive, default=1, metavar="N", help="for the other two versions (default 1)")
    add("--fixations", type=positive, default=15, metavar="N", help="most of a path (default 15)")
    cores = len(os.sched_getaffinity(0))
    add(
        "--threads",
        type=positive,
        default=cores,
        metavar="N",
        help="of torch and of numpy's products (default: all cores)",
    )
    options = parser.parse_args()
    for library in ("OMP", "OPENBLAS", "MKL"):  # read when numpy and torch are imported
        os.environ[f"{library}_NUM_THREADS"] = str(options.threads)
    import plain_convolution
    import torch

    from agents import catalogue

    torch.set_num_threads(options.threads)
    images = pictures(options.images)
    targets = [image[100:132, 100:132].copy() for image in images]
    some = min(options.plain_images, options.images)
    found: dict[str, Any] = {
        "images": options.images,
        "plain_images": some,
        "threads": options.threads,
        "frame": [WIDTH, HEIGHT],
        "fixations": options.fixations,
    }
    print(
        f"a batch of {options.images} images of {WIDTH} x {HEIGHT} (the other two versions: {some}, one by one), "
        f"at most {options.fixations} fixations each"
    )
    print(f"{'':18}{'images/s':^29} {'fixations/s':^26} {'times as fast as':^15}")
    heads = ("agent", "ours", "plain", "torch", "ours", "plain", "torch", "plain", "torch")
    print("{:18}{:>9} {:>9} {:>9} {:>8} {:>8} {:>8} {:>7} {:>7}  settings".format(*heads))
    with tempfile.TemporaryDirectory(prefix="attention-") as name:
        global FOLDER
        FOLDER = Path(name)
        for agent_name in options.only:
            weights = weights_for(agent_name, FOLDER)
            if weights is None:
                print(f"{agent_name:18}left out: its package is not installed")
                continue
            agent = catalogue.get(agent_name).make(
                {**CASES[agent_name], **({"checkpoint": weights} if weights else {})}
            )
            agent.open()
            agent.load("cpu")
            seconds, count = ours(agent, images, targets, options.fixations)
            rates = {"ours": [options.images / seconds, count / seconds]}
            ways = {"plain": plain_convolution.convolved, "torch": plain_convolution.by_torch()}
            for way, convolve in list(ways.items())[: 1 if agent_name == "gbvs" else 2]:
                look = PLAIN.get(agent_name, plain_ivsn)(agent, weights, options.fixations, convolve)
                seconds, count = timed(look, images[:some], targets[:some])
                rates[way] = [some / seconds, count / seconds]
            show(agent_name, rates)
            found[agent_name] = {
                way: {"images_per_s": round(per[0], 4), "fixations_per_s": round(per[1], 4)}
                for way, per in rates.items()
            }
            agent.close()
    print(json.dumps(found))


def show(name: str, rates: dict[str, list[float]]) -> None:
    """One line of the table; ``rates`` are images and fixations per second by version."""
    cells = [f"{rates[way][0]:9.3f}" if way in rates else f"{'-':>9}" for way in ("ours", "plain", "torch")]
    cells += [f"{rates[way][1]:8.2f}" if way in rates else f"{'-':>8}" for way in ("ours", "plain", "torch")]
    cells += [f"{rates['ours'][1] / rates[way][1]:7.1f}" if way in rates else f"{'-':>7}" for way in ("plain", "torch")]
    print(f"{name:18}{' '.join(cells)}  {CASES[name] or ''}", flush=True)


if __name__ == "__main__":
    main()
