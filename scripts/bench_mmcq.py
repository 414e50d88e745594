"""Images per second of the colour agent beside ColorThief at quality 1, at 640 x 480, in one run.

Three pictures: a photograph; noise, which fills the histogram; one colour, which crowds one bin. Each once from decoded
pixels (ColorThief is given its decoded image as well) and once from JPEG bytes. The colours must be equal.
Prints a table, and the same as one line of JSON last.

    python scripts/bench_mmcq.py [--image FILE] [--seconds S]
"""

from __future__ import annotations

import argparse
import io
import json
import os
import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import colorthief
import cv2
import numpy as np
from PIL import Image as PILImage

from agents import catalogue
from agents.contract import Draw
from agents.images import Image
from agents.stimuli import ColorStimulus
from agents.vision.models.median_cut import get_color, histogram, palette

SIZE = (640, 480)
PHOTOGRAPH = Path(__file__).parents[1] / "examples" / "images" / "china.jpg"


def seconds_per_call(call: Callable[[], Any], budget: float) -> float:
    """The median time of one call, over as many as the budget allows, three at least."""
    call()
    times: list[float] = []
    while sum(times) < budget or len(times) < 3:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def measure(name: str, picture: PILImage.Image, budget: float) -> dict[str, Any]:
    """One row: milliseconds per image of every way, and how many times faster ours is."""
    file = io.BytesIO()
    picture.save(file, "JPEG", quality=90)
    jpeg = file.getvalue()
    decoded = Image(name, data=jpeg).decode()
    counts = histogram(decoded)
    thief = colorthief.ColorThief(io.BytesIO(jpeg))
    thief.image.load()

    agent = catalogue.get("mmcq").make()
    agent.open()
    stimulus = ColorStimulus(id=name, task="color_estimation", image=Image(name, data=jpeg))

    if get_color(decoded) != thief.get_color(quality=1):
        raise SystemExit(f"{name}: the colours differ: {get_color(decoded)}, ColorThief {thief.get_color(quality=1)}")
    seconds = {
        "histogram": seconds_per_call(lambda: histogram(decoded), budget),
        "cut": seconds_per_call(lambda: palette(counts), budget),
        "pixels": seconds_per_call(lambda: get_color(decoded), budget),
        "pixels_colorthief": seconds_per_call(lambda: thief.get_color(quality=1), budget),
        "jpeg": seconds_per_call(lambda: get_color(Image(name, data=jpeg).decode()), budget),
        "jpeg_colorthief": seconds_per_call(
            lambda: colorthief.ColorThief(io.BytesIO(jpeg)).get_color(quality=1), budget
        ),
        "jpeg_to_answer": seconds_per_call(lambda: agent.respond([agent.prepare(stimulus)], [Draw(seed=0)]), budget),
    }
    row: dict[str, Any] = {"image": name} | {f"{key}_ms": round(1e3 * value, 3) for key, value in seconds.items()}
    for way in ("pixels", "jpeg"):
        row[f"{way}_per_s"] = round(1 / seconds[way], 1)
        row[f"{way}_colorthief_per_s"] = round(1 / seconds[f"{way}_colorthief"], 2)
        row[f"{way}_times_faster"] = round(seconds[f"{way}_colorthief"] / seconds[way], 1)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--image", type=Path, default=PHOTOGRAPH, help="a photograph (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=2.0, help="time for each measurement (default: %(default)s)")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore", ".*getdata.*", DeprecationWarning)  # ColorThief's call into newer Pillow

    cv2.setNumThreads(1)  # one core against one core
    rng = np.random.default_rng(0)
    pictures = {
        "noise": PILImage.fromarray(rng.integers(0, 256, (SIZE[1], SIZE[0], 3), dtype=np.uint8)),
        "one colour": PILImage.new("RGB", SIZE, (70, 120, 200)),
    }
    if arguments.image.is_file():
        with PILImage.open(arguments.image) as opened:
            pictures = {"photograph": opened.convert("RGB").resize(SIZE), **pictures}
    elif arguments.image != PHOTOGRAPH:
        parser.error(f"no such file: {arguments.image}")

    rows = [measure(name, picture, arguments.seconds) for name, picture in pictures.items()]
    print(f"{SIZE[0]} x {SIZE[1]}, one thread, median milliseconds per image; {os.cpu_count()} cores")
    columns = [
        ("from pixels", "pixels_ms"),
        ("ColorThief", "pixels_colorthief_ms"),
        ("times", "pixels_times_faster"),
        ("from JPEG", "jpeg_ms"),
        ("ColorThief", "jpeg_colorthief_ms"),
        ("times", "jpeg_times_faster"),
        ("to answer", "jpeg_to_answer_ms"),
        ("histogram", "histogram_ms"),
        ("cut", "cut_ms"),
    ]
    print(f"{'':12}" + "".join(f"{title:>12}" for title, _ in columns))
    for row in rows:
        print(f"{row['image']:12}" + "".join(f"{row[key]:12.2f}" for _, key in columns))
    print(json.dumps({"benchmark": "mmcq", "size": SIZE, "rows": rows}))


if __name__ == "__main__":
    main()
