"""The agent of the colour question: the dominant colour by modified median cut, then its name.

As in the published agents: the dominant colour of the image (:mod:`agents.vision.median_cut`), the nearest CSS3 colour
name, and a map from CSS3 names to the eleven words (:mod:`agents.vision.colors`, which says what is reconstructed).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from agents.answers import ColorAnswer, Swatch
from agents.contract import MIB, Agent, Draw, Reply
from agents.contract import Settings as BaseSettings
from agents.stimuli import ColorStimulus, Stimulus
from agents.vision import colors

Colors = list[tuple[colors.RGB, int]]


class MedianCutAgent(Agent["MedianCutAgent.Settings"]):
    """Median cut of the image's pixels; the first colour's name and word, and the whole palette as evidence.

    The same image always has the same answer: nothing is drawn. Transparent images are seen on white, as everything
    that decodes an image here sees them, and white pixels are not counted; a white image is "white".
    """

    class Settings(BaseSettings):
        """``colors``: how many boxes are asked for (the reference asks for 5 when it wants the dominant colour);
        ``quality``: every how manieth pixel is counted; ``order``: dominant by population times volume, as in the
        reference, or by population alone; ``naming``: the word of the nearest CSS3 colour ("css"), or the nearest
        word in CIELAB ("lab"); ``css_name`` is given either way."""

        quality: int = Field(1, ge=1, le=1_000_000)
        colors: int = Field(5, ge=2, le=256)
        order: Literal["population_volume", "population"] = "population_volume"
        naming: Literal["css", "lab"] = "css"

    tasks = ("color_estimation",)
    memory = 512 * MIB  # numpy and OpenCV, and a few photographs of a camera's size being decoded at once
    batch_size = 64

    settings: Settings

    def open(self) -> None:
        """Import what the threads use, once, before there are threads."""
        import cv2  # noqa: F401

        import agents.vision.median_cut  # noqa: F401

    def prepare(self, stimulus: Stimulus) -> Colors:
        """The palette, dominant first: small, wherever it travels. Raises ImageError."""
        from agents.vision.median_cut import get_palette

        assert isinstance(stimulus, ColorStimulus)
        pixels = stimulus.image.decode()
        return get_palette(pixels, self.settings.colors, self.settings.quality, self.settings.order)

    def respond(self, batch: Sequence[Colors], draws: Sequence[Draw]) -> Sequence[Reply]:
        return [self._reply(palette) for palette in batch]

    def _reply(self, palette: Colors) -> Reply:
        rgb = palette[0][0]
        name = colors.nearest_rgb(rgb)
        word = colors.word_of(name) if self.settings.naming == "css" else colors.nearest_word(rgb)
        swatches = [Swatch(rgb=list(color), population=population) for color, population in palette]
        return Reply(ColorAnswer(color=word, css_name=name, rgb=list(rgb), palette=swatches))
