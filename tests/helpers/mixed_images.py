"""Eight images of every sort that captioners meet, and captions of them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from agents import catalogue
from agents.answers import CaptionAnswer
from agents.contract import Agent, Draw, Reply
from agents.images import Image as StimulusImage
from agents.stimuli import CaptionStimulus


def make(folder: Path) -> list[Path]:
    """Write the images: sizes, orientation, grey, palette, transparency; each shows something else."""
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(7)

    def picture(width: int, height: int) -> Image.Image:
        coarse = random.integers(0, 256, (4, 5, 3), dtype=np.uint8)
        return Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)

    turned = Image.Exif()
    turned[0x0112] = 6
    made: dict[str, tuple[Image.Image, dict[str, Any]]] = {
        "wide.png": (picture(200, 60), {}),
        "tall.jpg": (picture(61, 190), {"quality": 95}),
        "turned.jpg": (picture(120, 80), {"exif": turned}),
        "grey.png": (picture(90, 90).convert("L"), {}),
        "alpha.png": (picture(64, 48), {}),
        "palette.gif": (picture(100, 75).convert("P"), {}),
        "small.png": (picture(9, 7), {}),
        "large.webp": (picture(640, 480), {"lossless": True}),
    }
    made["alpha.png"][0].putalpha(Image.fromarray(random.integers(0, 256, (48, 64), dtype=np.uint8)))
    for name, (image, options) in made.items():
        image.save(folder / name, **options)
    return [folder / name for name in made]


def stimulus(path: Path) -> CaptionStimulus:
    return CaptionStimulus(id=path.name, task="image_captioning", image=StimulusImage(path.name, root=path.parent))


def loaded(name: str, **settings: Any) -> Any:
    """The agent of the catalogue by its real path, in fp32 on the CPU."""
    agent = catalogue.get(name).make({"precision": "fp32", **settings})
    assert agent.missing() is None
    agent.open()
    agent.load("cpu")
    return agent


def prepared(agent: Agent[Any], images: Sequence[Path]) -> list[Any]:
    return [agent.prepare(stimulus(path)) for path in images]


def captions(agent: Agent[Any], items: Sequence[Any], draws: Sequence[Draw] = ()) -> list[tuple[CaptionAnswer, Any]]:
    """(answer, raw) of each item; none may fail."""
    captions = []
    for reply in agent.respond(items, draws or [Draw(seed=n + 1) for n in range(len(items))]):
        assert isinstance(reply, Reply), reply
        assert isinstance(reply.answer, CaptionAnswer)
        captions.append((reply.answer, reply.raw))
    return captions
