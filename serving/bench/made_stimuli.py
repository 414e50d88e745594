"""Stimuli to measure with, the same on every machine."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from agents.contract import Agent
from agents.errors import InputError
from agents.language.words import vocabulary
from agents.stimuli import Mode, Stimulus, Task, parse_row
from serving.conversations.scenario import NAMES, PERSONAS, SIDES, TOPICS

if TYPE_CHECKING:
    from PIL import Image as PILImage

PICTURES = 64  # different pictures; further stimuli show them again
CUES = 4096  # different cues
SIZES = ((640, 480), (480, 640), (640, 427), (1024, 768))  # of pictures: width, height in pixels
SCALE = 16  # the pixels from one value of the noise to the next
TARGET = 96  # the side of a target in pixels
COMMONEST = 300  # the most frequent words are hardly ever cues: the, of, and
MESSAGES = (
    "I have been thinking about {topic} a lot lately, and I am not sure that I like where it is going.",
    "Really? I thought you did not care about {topic} at all!",
    "People always say so. What would you change about {topic} if you could?",
    "I would make it simpler, and I would let more people take part in it.",
    "That is a good point. I once tried to learn more about it, but I gave up after a week.",
) * 2


def first_task(name: str, agent: Agent[Any], task: Task | None, mode: Mode | None) -> tuple[Task, Mode | None]:
    """The task and viewing mode in which an agent is measured: ``task`` and ``mode`` if given, else its first. Raises
    InputError for what it does not answer."""
    declared = agent.declaration()
    tasks = [own for own in declared.tasks if task in (None, own)]
    if not tasks:
        raise InputError(f"--task {task}: {name} answers {', '.join(declared.tasks)}")
    if tasks[0] != "attention_prediction":
        return tasks[0], None
    modes = [own for own in declared.modes if mode in (None, own)]
    if not modes:
        raise InputError(f"--mode {mode}: {name} answers {', '.join(declared.modes)}")
    return tasks[0], modes[0]


def write(path: Path, task: Task, mode: Mode | None, count: int) -> Path:
    """Write ``count`` stimuli of a task (for attention prediction: and a mode) to the set ``path``, and their pictures
    to the folder ``images`` beside it; returns ``path``."""
    if task == "word_association":
        words = vocabulary.most_frequent(COMMONEST + 2 * CUES)[COMMONEST:]
        rows = [{"cue": word} for word in words if len(word) > 3][:CUES]
    elif task == "conversation":
        rows = [_conversation(number) for number in range(min(count, CUES))]
    else:
        (path.parent / "images").mkdir(exist_ok=True)
        rows = [_picture(path.parent, number, mode) for number in range(min(count, PICTURES))]
    kind = task if mode is None else f"{task}-{mode}"
    with path.open("wb") as file:
        for number in range(count):
            row = {"id": f"bench/{kind}/{number:06d}", "task": task, **rows[number % len(rows)]}
            file.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))
    return path


def read(path: Path) -> list[Stimulus]:
    """The stimuli of a set that :func:`write` wrote."""
    return [parse_row(row, root=path.parent) for row in path.read_bytes().splitlines()]


def _conversation(number: int) -> dict[str, Any]:
    drawn = random.Random(number)
    topic = drawn.choice(TOPICS)
    names = [drawn.choice(names) for names in NAMES]
    texts = [text.format(topic=topic) for text in MESSAGES[: 2 + number % (len(MESSAGES) - 1)]]
    return {
        "topic": topic,
        "names": names,
        "personas": [drawn.choice(personas) for personas in PERSONAS],
        "who_starts": SIDES[len(texts) % 2],
        "exchanges": 1,
        "history": [{"speaker": names[turn % 2], "text": text} for turn, text in enumerate(texts)],
    }


def _picture(folder: Path, number: int, mode: Mode | None) -> dict[str, Any]:
    width, height = SIZES[number % len(SIZES)]
    name = f"images/{number:04d}.jpg"
    target = f"images/{number:04d}-target.jpg"
    drawn = random.Random(number)
    left = drawn.randrange(width - TARGET)
    top = drawn.randrange(height - TARGET)
    picture = _paint(width, height, drawn)
    picture.save(folder / name, quality=90)
    picture.crop((left, top, left + TARGET, top + TARGET)).save(folder / target, quality=90)
    row: dict[str, Any] = {"image": name} if mode is None else {"image": name, "mode": mode}
    if mode == "search":
        row |= {"target_image": target, "target_box": [left, top, TARGET, TARGET], "target_present": True}
    return row


def _paint(width: int, height: int, drawn: random.Random) -> PILImage.Image:
    from PIL import Image

    across = width // SCALE + 2
    down = height // SCALE + 2
    noise = Image.frombytes("RGB", (across, down), drawn.randbytes(3 * across * down))
    return noise.resize((width, height), Image.Resampling.BICUBIC)
