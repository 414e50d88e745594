"""An agent that notes what it is asked, in a file that outlives its process: was it asked for anything twice?"""

import json
import os
from collections.abc import Sequence

from agents.contract import Draw, Reply
from agents.language.completion import CompletionAgent
from agents.stimuli import Stimulus


class CountedSettings(CompletionAgent.Settings):
    """``log`` is the file."""

    log: str


class Counted(CompletionAgent):
    """A completion model of the catalogue's kind."""

    Settings = CountedSettings
    settings: CountedSettings

    def respond(self, batch: Sequence[Stimulus], draws: Sequence[Draw]) -> Sequence[Reply | Exception]:
        noted = [
            json.dumps([stimulus.id, draw.options["turn"], draw.seed])
            for stimulus, draw in zip(batch, draws, strict=True)
        ]
        log = os.open(self.settings.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(log, "".join(f"{line}\n" for line in noted).encode())
        os.close(log)
        return super().respond(batch, draws)
