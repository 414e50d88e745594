"""Pictures, stimuli and answers for the tests of the attention agents."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image as PILImage

from agents.answers import plain
from agents.contract import Draw, Reply
from agents.stimuli import AttentionStimulus

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


def blots(rng: np.random.Generator, height: int, width: int, grain: int = 16) -> NDArray[Any]:
    """Random smooth pixels; a blot has about ``grain`` pixels."""
    small = rng.integers(0, 256, (max(1, height // grain), max(1, width // grain), 3), np.uint8)
    return cv2.resize(small, (width, height), interpolation=cv2.INTER_LINEAR).reshape(height, width, 3)


def files(folder: Path, sizes: Sequence[tuple[int, int]], seed: int = 0, grain: int = 16) -> list[Path]:
    """A picture for each (height, width), as files."""
    rng = np.random.default_rng(seed)
    paths = [folder / f"{seed}-{index}.png" for index in range(len(sizes))]
    for path, size in zip(paths, sizes, strict=True):
        PILImage.fromarray(blots(rng, *size, grain)).save(path)
    return paths


def pixels(path: Path) -> NDArray[Any]:
    with PILImage.open(path) as image:
        return np.asarray(image.convert("RGB"))


def stimulus(path: Path, **fields: Any) -> AttentionStimulus:
    row = {"id": path.stem, "task": "attention_prediction", "image": str(path), **fields}
    return AttentionStimulus.model_validate(row)


def search(path: Path, target: Path, **fields: Any) -> AttentionStimulus:
    return stimulus(path, mode="search", target_image=str(target), **fields)


def answers(
    agent: Any, stimuli: Sequence[AttentionStimulus], seeds: Sequence[int] | None = None
) -> list[dict[str, Any]]:
    """The answers to one batch."""
    draws = [Draw(seed=seed) for seed in seeds or [1] * len(stimuli)]
    replies = agent.respond([agent.prepare(item) for item in stimuli], draws)
    assert all(isinstance(reply, Reply) for reply in replies), replies
    return [plain(reply.answer) for reply in replies]


def loaded(cls: Any, name: str, device: str = "cpu", **chosen: Any) -> Any:
    agent = cls(cls.Settings(**chosen), name)
    agent.open()
    agent.load(device)
    return agent
