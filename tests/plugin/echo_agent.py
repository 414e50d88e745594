"""A tiny package of somebody else's: two agents, found through their entry points."""

import time
from collections.abc import Sequence

from agents.answers import ScanpathAnswer, WordAnswer
from agents.contract import Agent, Draw, Reply, Settings
from agents.stimuli import Stimulus, WordStimulus


class EchoSettings(Settings):
    """``device_error_on`` raises as torch does when the device is gone; ``unlike`` makes a reply of a wrong type."""

    suffix: str = "!"
    device_error_on: str = ""
    unlike: str = ""


class Echo(Agent[EchoSettings]):
    """Says the cue again; to those who listen before it is done."""

    tasks = ("word_association",)
    Settings = EchoSettings

    def prepare(self, stimulus: Stimulus) -> str:
        assert isinstance(stimulus, WordStimulus)
        return stimulus.cue

    def respond(self, batch: Sequence[str], draws: Sequence[Draw]) -> Sequence[Reply | Exception]:
        if self.settings.device_error_on in batch:
            raise RuntimeError("CUDA error: an illegal memory access was encountered")
        for cue, draw in zip(batch, draws, strict=True):
            if draw.say is not None:
                draw.say(cue)
                time.sleep(0.1)
        return [self._reply(cue) for cue in batch]

    def _reply(self, cue: str) -> Reply:
        if cue == self.settings.unlike:
            return Reply(self.settings)
        return Reply(WordAnswer(word=cue + self.settings.suffix), {"surrogate": "\ud800", "nan": float("nan")})


class SeekerSettings(Settings):
    """Nothing to choose."""


class Seeker(Agent[SeekerSettings]):
    """Looks at the top left corner, and only where there is something to be found."""

    tasks = ("attention_prediction",)
    modes = ("search",)
    Settings = SeekerSettings

    def respond(self, batch: Sequence[Stimulus], draws: Sequence[Draw]) -> Sequence[Reply | Exception]:
        return [Reply(ScanpathAnswer(fixations=[[0, 0]], frame=[1, 1])) for _ in batch]
