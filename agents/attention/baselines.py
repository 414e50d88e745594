"""The agents ``center`` and ``random``: after the forced first fixation, independent draws."""

import random
from abc import abstractmethod
from collections.abc import Sequence
from statistics import NormalDist
from typing import Annotated, ClassVar, TypeVar

from pydantic import Field

from agents.attention import scanpath
from agents.attention.models.fixations import Paths, Pixel, Plan
from agents.contract import MIB, Agent, Declaration, Draw, Reply
from agents.stimuli import AttentionStimulus, Stimulus

P = TypeVar("P", bound=scanpath.PathSettings)


class _Drawn(Agent[P]):
    """Base of the agents that draw each fixation from one distribution, whatever the picture shows."""

    declares = Declaration(
        tasks=("attention_prediction",),
        memory=256 * MIB,
    )
    selection: ClassVar[str]
    """How records call the distribution."""

    @abstractmethod
    def pixel(self, frame: Pixel, noise: random.Random) -> Pixel:
        """A pixel (x, y) of a frame (width, height)."""

    def prepare(self, stimulus: Stimulus) -> Plan:
        assert isinstance(stimulus, AttentionStimulus)
        height, width, _ = stimulus.image.decode().shape
        return scanpath.plan_scanpath(stimulus, (width, height), self.settings)

    def respond(self, batch: Sequence[Plan], draws: Sequence[Draw]) -> Sequence[Reply | Exception]:
        plans = [plan.drawn(draw.seed) for plan, draw in zip(batch, draws, strict=True)]
        paths = Paths(plans, self.selection)
        noises = [random.Random(draw.seed) for draw in draws]
        while going := paths.going():
            for index in going:
                paths.fixations[index].append(self.pixel(batch[index].frame, noises[index]))
        return [scanpath.reply(path) for path in paths.results()]


class RandomAgent(_Drawn["RandomAgent.Settings"]):
    """Every pixel of the frame is as likely as any other."""

    class Settings(scanpath.PathSettings):
        """How far a scanpath goes."""

    selection = "drawn, uniform"

    def pixel(self, frame: Pixel, noise: random.Random) -> Pixel:
        """Any pixel of the frame, drawn from ``noise``."""
        return noise.randrange(frame[0]), noise.randrange(frame[1])


class CenterAgent(_Drawn["CenterAgent.Settings"]):
    """A Gaussian about the centre, cut off at the edge, as wide as in Clarke and Tatler 2014 (Vision Research 102)."""

    class Settings(scanpath.PathSettings):
        variance: Annotated[float, Field(gt=0, le=100)] = 0.23
        """Horizontal variance; the unit of length is half the frame's width."""
        ratio: Annotated[float, Field(gt=0, le=100)] = 0.45
        """Vertical variance as a share of the horizontal one."""

    selection = "drawn, Gaussian about the centre"

    def pixel(self, frame: Pixel, noise: random.Random) -> Pixel:
        """A pixel by the Gaussian of the settings, cut off at the edges of the frame."""
        width, height = frame
        across = (self.settings.variance**0.5) * width / 2
        return _normal(width, across, noise), _normal(height, across * self.settings.ratio**0.5, noise)


def _normal(side: int, deviation: float, noise: random.Random) -> int:
    curve = NormalDist(side / 2, deviation)
    low = curve.cdf(0)
    high = curve.cdf(side)
    share = low + (high - low) * noise.random()
    # A share of exactly 0 or 1 has no inverse; it can come only where the Gaussian lies wholly within the frame.
    return min(max(int(curve.inv_cdf(min(max(share, 2**-53), 1 - 2**-53))), 0), side - 1)
