"""Stimuli to measure with, made here: the same on every machine, and nothing has to be at hand.

Pictures are JPEG files of four sizes with structure at every scale, as photographs have (so that decoding, resizing and
saliency have their usual work), and things with edges on them; search has a target that is cut from its picture. Cues
are frequent English words; conversations have a history of two to ten messages.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from agents.language.words import vocabulary
from agents.stimuli import ConversationStimulus, Stimulus, parse_row
from agents.tasks import Mode, Task
from serving.conversations.scenario import NAMES, PERSONAS, SIDES, TOPICS

if TYPE_CHECKING:
    from PIL import Image as PILImage

PICTURES = 64  # different ones; more stimuli show them again
SIZES = ((640, 480), (480, 640), (640, 427), (1024, 768))  # width, height
OCTAVES = (4, 8, 16, 32, 64, 128, 256)  # pixels that one value of the noise spans
TARGET = 96  # pixels of a target's side
COMMONEST = 300  # words that are hardly ever cues: the, of, and
SHORTEST = 4  # letters of a cue
SAID = (
    "I have been thinking about {topic} a lot lately, and I am not sure that I like where it is going.",
    "Really? I thought you did not care about {topic} at all!",
    "It depends. My sister talks of nothing else, so I hear about it every day.",
    "Ha, that sounds like my family. What did she tell you this time?",
    "Mostly that everything was better ten years ago, which I find hard to believe.",
    "People always say so. What would you change about {topic} if you could?",
    "I would make it simpler, and I would let more people take part in it.",
    "That is a good point. I once tried to learn more about it, but I gave up after a week.",
    "Why did you give up so soon?",
    "Too many rules, and nobody who could explain them to me.",
)


def write(folder: Path, task: Task, mode: Mode | None, count: int) -> Path:
    """Write a set of ``count`` stimuli that differ in their ids, as ``generate`` reads it, and the pictures that it
    shows, into ``folder``. Returns the set's file."""
    name = task if mode is None else f"{task}-{mode}"
    if task == "word_association":
        rows = [{"cue": cue} for cue in _cues(count)]
    elif task == "conversation":
        rows = [_conversation(number) for number in range(count)]
    else:
        shown = [_picture(folder / "images", number, mode) for number in range(min(count, PICTURES))]
        rows = [dict(shown[number % PICTURES]) for number in range(count)]
    path = folder / f"{name}.jsonl"
    with path.open("wb") as file:
        for number, row in enumerate(rows):
            whole = {"id": f"bench/{name}/{number:04d}", "task": task, **row}
            file.write(orjson.dumps(whole, option=orjson.OPT_APPEND_NEWLINE))
    return path


def read(path: Path) -> list[Stimulus]:
    """The stimuli of a set that :func:`write` wrote."""
    return [parse_row(row, root=path.parent) for row in path.read_bytes().splitlines()]


def options(stimulus: Stimulus) -> Mapping[str, Any]:
    """A draw's options: of a conversation whose turn it is."""
    if not isinstance(stimulus, ConversationStimulus):
        return {}
    turn = len(stimulus.history)
    return {"speaker": SIDES[turn % 2], "turn": turn}


def _cues(count: int) -> list[str]:
    words = [
        word for word in vocabulary.most_frequent(COMMONEST + 4 * count + 1000)[COMMONEST:] if len(word) >= SHORTEST
    ]
    return words[:count]


def _conversation(number: int) -> dict[str, Any]:
    drawn = random.Random(number)
    topic, names = drawn.choice(TOPICS), drawn.sample(NAMES, 2)
    said = [text.format(topic=topic) for text in SAID[: 2 + number % (len(SAID) - 1)]]
    return {
        "topic": topic,
        "names": names,
        "personas": [drawn.choice(those) for those in PERSONAS],
        "who_starts": "A",
        "history": [{"speaker": names[turn % 2], "text": text} for turn, text in enumerate(said)],
    }


def _picture(folder: Path, number: int, mode: Mode | None) -> dict[str, Any]:
    """Write a picture, and for search its target; returns the part of a row that names them."""
    folder.mkdir(exist_ok=True)
    drawn = random.Random(number)
    width, height = SIZES[number % len(SIZES)]
    picture = _paint(width, height, drawn)
    name = f"images/{number:04d}.jpg"
    picture.save(folder.parent / name, quality=90)
    if mode is None:
        return {"image": name}
    if mode == "free":
        return {"image": name, "mode": mode}
    left, top = drawn.randrange(width - TARGET), drawn.randrange(height - TARGET)
    target = f"images/{number:04d}-target.jpg"
    picture.crop((left, top, left + TARGET, top + TARGET)).save(folder.parent / target, quality=90)
    box = [left, top, TARGET, TARGET]
    return {"image": name, "mode": mode, "target_image": target, "target_box": box, "target_present": True}


def _paint(width: int, height: int, drawn: random.Random) -> PILImage.Image:
    """Noise of every scale, the coarser the stronger, and on it a dozen things with edges."""
    import numpy as np
    from PIL import Image as PILImage
    from PIL import ImageDraw

    noise = np.random.default_rng(drawn.getrandbits(32))
    total = np.full((height, width, 3), 127.0)
    for octave in OCTAVES:
        coarse = noise.integers(0, 256, (height // octave + 2, width // octave + 2, 3), dtype=np.uint8)
        smooth = PILImage.fromarray(coarse).resize((width, height), PILImage.Resampling.BICUBIC)
        total += (np.asarray(smooth, dtype=np.float64) - 127.0) * (octave / OCTAVES[-1]) ** 0.5 * 0.6
    picture = PILImage.fromarray(total.clip(0, 255).astype(np.uint8))
    brush = ImageDraw.Draw(picture)
    for _ in range(12):
        left, top = drawn.randrange(width), drawn.randrange(height)
        box = (left, top, left + drawn.randrange(16, width // 3), top + drawn.randrange(16, height // 3))
        colour = tuple(drawn.randrange(256) for _ in range(3))
        shape = drawn.choice((brush.ellipse, brush.rectangle))
        shape(box, fill=colour, outline=tuple(255 - part for part in colour))
    return picture
