"""Images per second of each captioner through ``turinglike generate`` beside a plain loop over ``generate``.

Tiny models of the real architectures with random weights, made here: what is compared is everything around the model,
and the passes of the image encoder that beams share. For each captioner, on the CPU and in one run:

- ``turinglike generate`` over many photographs, from its first batch of records to its last (so without its start);
- a plain loop that opens the same files, prepares them with the model's image processor and calls transformers'
  ``generate`` with the same options, at the same batch size and one image at a time. For OFA and ClipCap, which are in
  no version of transformers, it is our model's ``generate``, called the same way.

    python scripts/bench_captioners.py [--images 384] [--batch-size 16] [--repeats 3] [--replicas auto] [--only git,ofa]

prints a table and, as the last line, one JSON object.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "helpers"))

LLAVA = {"reject": [], "attempts": 1, "max_tokens": 24}  # one attempt each: random weights would need all eleven
# family: agent, its settings here, what the peer's generate is asked for
CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "git": ("git-large-coco", {}, {"num_beams": 4, "length_penalty": 0.6, "max_length": 50, "use_cache": True}),
    "blip": ("blip-large", {}, {"num_beams": 3, "min_length": 5, "max_length": 20}),
    "blip2": ("blip2-opt-2.7b", {}, {"num_beams": 5, "max_new_tokens": 30}),
    "llava_next": (
        "llava-v1.6-mistral-7b",
        LLAVA,
        {"do_sample": True, "temperature": 0.2, "top_k": 0, "max_new_tokens": 24},
    ),
    "ofa": (
        "ofa-huge",
        {},
        {"num_beams": 5, "no_repeat_ngram_size": 3, "early_stopping": True, "max_new_tokens": 17},
    ),
    "clipcap": ("clipcap-transformer", {}, {"num_beams": 5, "max_new_tokens": 67}),
}


def photographs(folder: Path, count: int) -> list[Path]:
    """Crops of the example photographs as JPEG files of 480 x 360, no two alike."""
    sources = [path for path in sorted((ROOT / "examples" / "images").iterdir()) if path.name != "broken.jpg"]
    opened = [Image.open(path).convert("RGB").resize((640, 480)) for path in sources]
    folder.mkdir()
    paths = []
    for index in range(count):
        left, top = index * 7 % 160, index * 11 % 120
        path = folder / f"{index:04d}.jpg"
        opened[index % len(opened)].crop((left, top, left + 480, top + 360)).save(path, quality=92)
        paths.append(path)
    return paths


def write_set(path: Path, images: list[Path]) -> Path:
    rows = [{"id": image.stem, "task": "image_captioning", "image": str(image)} for image in images]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def generate(source: Path, out: Path, agent: str, settings: dict[str, Any], batch_size: int, replicas: str) -> float:
    """Images per second of the command, which must answer everything, after its first batch."""
    command = [sys.executable, "-m", "serving.cli", "generate", str(source), "--agents", agent, "--out", str(out)]
    command += ["--batch-size", str(batch_size), "--replicas", replicas]
    for name, value in settings.items():
        command += ["--set", f"{agent}.{name}={json.dumps(value)}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}: {done.stderr[-2000:]}")
    records = [json.loads(line) for line in (out / "records" / f"{agent}.jsonl").read_bytes().splitlines()]
    times = sorted(datetime.fromisoformat(record["created"]).timestamp() for record in records)
    later = [time for time in times if time > times[0] + 0.001]  # a batch's records are made at once
    return len(later) / (times[-1] - times[0])


def plain_loop(family: str, checkpoint: dict[str, Any], images: list[Path], batch_size: int) -> float:
    """Seconds of the peer's loop in this process, loading and a first batch left out."""
    agent, _, options = CASES[family]
    prompt = _prompt(agent, checkpoint)
    ask = {"ofa": _plain_ofa, "clipcap": _plain_clipcap}.get(family, _plain_transformers)
    answer = ask(family, checkpoint, prompt, options)

    def answer_files(paths: list[Path]) -> None:
        answer([Image.open(path).convert("RGB") for path in paths])

    answer_files(images[:batch_size])
    began = time.perf_counter()
    for start in range(0, len(images), batch_size):
        answer_files(images[start : start + batch_size])
    return time.perf_counter() - began


Answer = Callable[[list[Image.Image]], Any]


def _plain_transformers(family: str, checkpoint: dict[str, Any], prompt: str, options: dict[str, Any]) -> Answer:
    from plain_captioners import Plain

    plain = Plain(family, Path(checkpoint["checkpoint"]))
    return lambda pictures: [plain.said(tokens) for tokens in plain.tokens(pictures, prompt, **options)]


def _plain_ofa(family: str, checkpoint: dict[str, Any], prompt: str, options: dict[str, Any]) -> Answer:
    import numpy as np
    import torch
    from transformers import LogitsProcessorList

    from agents.vision.models import ofa_checkpoint
    from agents.vision.models.ofa import Limits
    from agents.vision.models.ofa_processing import OFAImageProcessor, load_tokenizer

    model = ofa_checkpoint.load(Path(checkpoint["checkpoint"]))
    tokenizer = load_tokenizer(Path(checkpoint["dictionary"]))
    resize = OFAImageProcessor(checkpoint["image_size"])
    question = tokenizer(prompt)["input_ids"]

    @torch.inference_mode()
    def answer(pictures: list[Image.Image]) -> Any:
        pixels = torch.stack([torch.from_numpy(resize(np.asarray(picture))) for picture in pictures])
        encoded = model.encode(torch.tensor([question] * len(pictures)), pixels)
        rules = LogitsProcessorList([Limits(1, 16, 2, 1)])
        tokens = model.generate(encoder_outputs=encoded, logits_processor=rules, **options)
        return tokenizer.batch_decode(tokens, skip_special_tokens=True)

    return answer


def _plain_clipcap(family: str, checkpoint: dict[str, Any], prompt: str, options: dict[str, Any]) -> Answer:
    import numpy as np
    import torch
    from transformers import AutoTokenizer, GenerationConfig

    from agents.vision.models.clip_resnet import ClipPixels
    from agents.vision.models.clipcap import input_size, load

    authors, clip, gpt = (Path(checkpoint[part]) for part in ("checkpoint", "clip", "language_model"))
    tokenizer = AutoTokenizer.from_pretrained(gpt)
    stop = tokenizer(".")["input_ids"][0]
    model = load(authors, clip, gpt, "transformer", normalise=True, stop=stop, averaged=True)
    resize = ClipPixels(input_size(clip))

    @torch.inference_mode()
    def answer(pictures: list[Image.Image]) -> Any:
        prefix = model.prefix(torch.stack([resize(np.array(picture)) for picture in pictures]))
        tokens, _ = model.generate(prefix, GenerationConfig(**options, return_dict_in_generate=True))
        return [tokenizer.decode([token for token in row if token >= 0]) for row in tokens.tolist()]

    return answer


def _prompt(agent: str, checkpoint: dict[str, Any]) -> str:
    from agents import catalogue

    return str(catalogue.get(agent).make(checkpoint).settings.prompt).replace("{words}", "11")


def peer(family: str, checkpoint: dict[str, Any], images: list[Path], batch_size: int) -> float:
    """The plain loop in a process of its own, as the command has one."""
    command = [sys.executable, __file__, "--peer", family, json.dumps(checkpoint), str(images[0].parent)]
    command += [str(batch_size)]
    command += [str(len(images))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"the plain loop of {family} ended with {done.returncode}: {done.stderr[-2000:]}")
    return float(done.stdout.split()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=384)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--replicas", default="auto", metavar="N|auto", help="workers of `generate`")
    parser.add_argument("--only", default=",".join(CASES))
    parser.add_argument("--peer", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peer:
        family, checkpoint, images, size, count = options.peer
        print(plain_loop(family, json.loads(checkpoint), sorted(Path(images).iterdir())[: int(count)], int(size)))
        return
    import tiny_vision

    from agents import catalogue

    size = options.batch_size
    found: dict[str, Any] = {"images": options.images, "batch_size": size, "replicas": options.replicas}
    print(f"{'captioner':12} {'generate/s':>10} {'plain/s':>10} {'ratio':>6} {'one by one/s':>12} {'ratio':>6}")
    with tempfile.TemporaryDirectory(prefix="captioners-") as name:
        folder = Path(name)
        images = photographs(folder / "images", options.images)
        source = write_set(folder / "set.jsonl", images)
        for family in options.only.split(","):
            agent, settings, _ = CASES[family]
            checkpoint = tiny_vision.make(folder / family, catalogue.get(agent))
            chosen = {**checkpoint, **settings}
            rates: dict[str, list[float]] = {"generate": [], "plain": [], "single": []}
            for turn in range(options.repeats):
                rates["generate"].append(
                    generate(source, folder / f"{family}-{turn}", agent, chosen, size, options.replicas)
                )
                rates["plain"].append(len(images) / peer(family, checkpoint, images, size))
            rates["single"].append(len(images) / 4 / peer(family, checkpoint, images[: len(images) // 4], 1))
            ours, plain, single = (statistics.median(rates[key]) for key in ("generate", "plain", "single"))
            print(f"{family:12} {ours:10.1f} {plain:10.1f} {ours / plain:6.2f} {single:12.1f} {ours / single:6.2f}")
            found[family] = {key: [round(rate, 2) for rate in values] for key, values in rates.items()}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
