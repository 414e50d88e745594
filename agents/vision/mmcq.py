"""The agent of the colour question: the dominant colour by modified median cut, then its name.

As in the published agents: the dominant colour of the image (``models.median_cut``), the nearest CSS3 colour
name, and a map from CSS3 names to the eleven words (:mod:`agents.vision.colors`, which says what is reconstructed).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import ConfigDict, Field

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
        """How the palette is made, and how its first colour is named."""

        model_config = ConfigDict(use_attribute_docstrings=True)

        quality: int = Field(1, ge=1, le=1_000_000)
        """1 counts every pixel, 2 every second in row order, and so on."""
        colors: int = Field(5, ge=2, le=256)
        """How many boxes the median cut is asked for; the reference asks for 5 for the dominant colour."""
        order: Literal["population_volume", "population"] = "population_volume"
        """What the dominant box has most of: pixels times volume, as in the reference, or pixels alone."""
        naming: Literal["css", "lab"] = "css"
        """The word: that of the nearest CSS3 colour, or the one nearest in CIELAB; the CSS3 name stands beside it."""
        names: Literal["without_pale", "all"] = "without_pale"
        """Which CSS3 names may be nearest: all, or not those that the published program leaves out, by our guess."""

    tasks = ("color_estimation",)
    extra = "vision"
    packages = ("cv2",)
    memory = 512 * MIB  # numpy and OpenCV, and a few photographs of a camera's size being decoded at once
    batch_size = 64

    settings: Settings

    def open(self) -> None:
        """Import what the threads use, once, before there are threads."""
        import cv2  # noqa: F401

        import agents.vision.models.median_cut  # noqa: F401

    def prepare(self, stimulus: Stimulus) -> Colors:
        """The palette, dominant first: small, wherever it travels. Raises ImageError."""
        from agents.vision.models.median_cut import get_palette

        assert isinstance(stimulus, ColorStimulus)
        pixels = stimulus.image.decode()
        return get_palette(pixels, self.settings.colors, self.settings.quality, self.settings.order)

    def respond(self, batch: Sequence[Colors], draws: Sequence[Draw]) -> Sequence[Reply]:
        return [self._reply(palette) for palette in batch]

    def _reply(self, palette: Colors) -> Reply:
        rgb = palette[0][0]
        name = colors.nearest_rgb(rgb, colors.PALE if self.settings.names == "without_pale" else frozenset())
        word = colors.word_of(name) if self.settings.naming == "css" else colors.nearest_word(rgb)
        swatches = [Swatch(rgb=list(color), population=population) for color, population in palette]
        return Reply(ColorAnswer(color=word, css_name=name, rgb=list(rgb), palette=swatches))
