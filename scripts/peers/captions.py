"""Captions of pictures of mixed sizes, by GIT and BLIP with random weights, tiny and of their real size."""

from __future__ import annotations

import functools
import json
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from peers.measuring import (
    OURS,
    PROGRAMS,
    ROOT,
    Figures,
    Finished,
    Interpreters,
    Side,
    Work,
    WrongAnswer,
    environment,
    finished,
    json_lines,
    peers_environment,
)

WHOLE = "captions/s, loading included"
WHOLE_CPU = "captions/CPU s, loading included"
LOADED = "captions/CPU s, loaded"
LOADED_WALL = "captions/s, loaded"
SIZES = ((640, 480), (480, 640), (1024, 768), (333, 500), (800, 600), (256, 256), (1280, 720))
"""Width and height in pixels."""
BATCH = 16  # as the agents declare
COMPARED = 16  # pictures that tiny GIT captions once more without its cache; GIT of real size would take minutes each
OPTIONS: dict[str, dict[str, Any]] = {
    "git": {"prompt": "", "beams": 4, "length_penalty": 0.6, "min_tokens": 0, "max_tokens": 50},
    "blip": {"prompt": "a picture of ", "beams": 3, "length_penalty": 1.0, "min_tokens": 5, "max_tokens": 20},
}
"""How each family searches, as its agent does by default."""
AGENTS = {"git": "git-large-coco", "blip": "blip-large"}
REAL = {"git": "microsoft/git-large-coco", "blip": "Salesforce/blip-image-captioning-large"}


def works(folder: Path, pictures: int, large: int, interpreters: Interpreters) -> Iterator[Work]:
    """A work for each model; ``large`` is the number of pictures for those of real size."""
    for size, count in (("tiny", pictures), ("real size", large)):
        if not count:
            continue
        place = folder / size.replace(" ", "-")
        source = write_set(place, count)
        for family in AGENTS:
            checkpoint = functools.cache(functools.partial(MAKES[size], place / family, family))
            name = f"{size} {family.upper()}, {count} pictures"
            yield _work(name, family, checkpoint, source, count, interpreters, is_tiny=size == "tiny")


def _work(
    name: str,
    family: str,
    checkpoint: Callable[[], Path],
    source: Path,
    count: int,
    interpreters: Interpreters,
    *,
    is_tiny: bool,
) -> Work:
    agent = AGENTS[family]

    def settings() -> dict[str, Any]:
        return {"checkpoint": str(checkpoint()), "length_norm": "transformers"}

    def generate(place: Path) -> Figures:
        given = [word for field, value in settings().items() for word in ("--set", f"{agent}.{field}={value}")]
        out = place / "run"
        command = (*OURS, "generate", source, "--agents", agent, *given, "--here", "--device", "cpu", "--out", out)
        ran = finished(command, environment(), place / "log")
        texts = _captions((out / "records" / f"{agent}.jsonl"), count)
        expected().update(texts)
        return {WHOLE: count / ran.seconds, WHOLE_CPU: count / ran.cpu}

    def loaded(place: Path) -> Figures:
        out = place / "answers.jsonl"
        command = (OURS[0], PROGRAMS / "loaded.py", json.dumps({agent: settings()}), out, f"captions={agent}={source}")
        spent = finished(command, environment(), place / "log").times()["captions"]
        _captions(out, count)
        return {LOADED: count / spent["cpu"], LOADED_WALL: count / spent["seconds"]}

    @functools.cache
    def expected() -> dict[str, str]:
        """Turinglike's captions, by stimulus."""
        return {}

    @functools.cache
    def checked(python: str) -> None:
        """GIT's own cache numbers its text's positions otherwise; without it the captions are Turinglike's."""
        few = source.with_name("few.jsonl")
        few.write_bytes(b"".join(source.read_bytes().splitlines(keepends=True)[:COMPARED]))
        place = source.parent / f"{family}-checked"
        place.mkdir(exist_ok=True)
        _, texts = loop(python, place, few, cache=False)
        compare(texts, {name: expected()[name] for name in texts})

    def loop(python: str, place: Path, pictures: Path, *, cache: bool) -> tuple[Finished, dict[str, str]]:
        out = place / "captions.jsonl"
        out.unlink(missing_ok=True)
        told = json.dumps({**OPTIONS[family], "batch": BATCH, "cache": cache, "backend": "pil"})
        command = (python, PROGRAMS / "caption_loop.py", family, checkpoint(), pictures, out, told)
        ran = finished(command, peers_environment(), place / "log")
        return ran, {row["id"]: row["text"] for row in json_lines(out)}

    def plain(place: Path) -> Figures:
        python = interpreters.python("here", ("torch", "transformers"))
        ran, texts = loop(python, place, source, cache=True)
        if family == "git":
            if is_tiny:
                checked(python)
            if texts.keys() != expected().keys():
                raise WrongAnswer(f"{len(texts)} captions of {count}")
        else:
            compare(texts, expected())
        spent = ran.times()["captions"]
        whole = {WHOLE: count / ran.seconds, WHOLE_CPU: count / ran.cpu}
        return whole | {LOADED: count / spent["cpu"], LOADED_WALL: count / spent["seconds"]}

    sides = [
        Side("generate --here", f"turinglike generate SET --agents {agent} --here --out RUN", generate),
        Side("loaded", f'load("{agent}").answer(SET)', loaded),
        Side("plain loop", f"processor and model.generate of transformers, batches of {BATCH}, float32", plain),
    ]
    pairs = [(measure, "generate --here", "plain loop") for measure in (WHOLE, WHOLE_CPU)]
    pairs += [(measure, "loaded", "plain loop") for measure in (LOADED_WALL, LOADED)]
    return Work(name, sides, pairs)


def compare(texts: dict[str, str], wanted: dict[str, str]) -> None:
    """Whether captions are Turinglike's. Raises WrongAnswer."""
    other = [name for name in wanted if texts.get(name) != wanted[name]]
    if other:
        first = other[0]
        raise WrongAnswer(f"{len(other)} of {len(wanted)} captions: {texts.get(first)!r} is {wanted[first]!r} of ours")


def _captions(records: Path, count: int) -> dict[str, str]:
    rows = list(json_lines(records))
    if len(rows) != count or any(row["status"] != "ok" for row in rows):
        raise WrongAnswer(f"{sum(row['status'] == 'ok' for row in rows)} captions of {count}")
    return {row["stimulus"]: row["answer"]["text"] for row in rows}


def write_set(folder: Path, count: int) -> Path:
    """Paints pictures of mixed sizes into ``folder`` and writes their set; returns its path."""
    from PIL import Image

    folder.mkdir(parents=True)
    rows = []
    for number in range(count):
        width, height = SIZES[number % len(SIZES)]
        drawn = random.Random(number)
        noise = Image.frombytes("RGB", (12, 9), drawn.randbytes(12 * 9 * 3))
        name = f"{number:04d}.jpg"
        noise.resize((width, height), Image.Resampling.BICUBIC).save(folder / name, quality=90)
        rows.append({"id": f"picture/{number:04d}", "task": "image_captioning", "image": name})
    path = folder / "set.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def _tiny(folder: Path, family: str) -> Path:
    """A checkpoint of two small layers, as the tests have it."""
    if str(ROOT) not in sys.path:
        sys.path.insert(0, str(ROOT))
    from tests.helpers import tiny_captioners

    makers: Sequence[Any] = [tiny_captioners.MAKERS[family]]
    path: Path = makers[0](folder)
    return path


def _real(folder: Path, family: str) -> Path:
    """A checkpoint of the published size with the random weights of ``checkpoint=random``."""
    import shutil

    import torch
    import transformers

    from agents.models import random_weights, weight_files

    made = random_weights.make_folder(random_weights.architecture(f"random:{REAL[family]}"))
    classes = {"git": "GitForCausalLM", "blip": "BlipForConditionalGeneration"}
    cls = getattr(transformers, classes[family])
    model = random_weights.load_random(cls, Path(made.name), torch.device("cpu"), torch.float32)
    shutil.copytree(made.name, folder, ignore=shutil.ignore_patterns(weight_files.MARKER))
    model.save_pretrained(folder)
    return folder


MAKES: dict[str, Callable[[Path, str], Path]] = {"tiny": _tiny, "real size": _real}
