"""How far a run came in which too little was answered to be measured, and how long it should take."""

import math
from dataclasses import dataclass
from pathlib import Path

import orjson

from agents.stimuli import ConversationStimulus
from serving.files.words import count, duration

NONE_KNOWN = 4.0
"""Times as long to try, where no answer ended and nothing tells how far the first ones came."""
EXCHANGES: int = ConversationStimulus.model_fields["exchanges"].default
"""Messages of a conversation, unless its row says another number."""
ENDS = 3.0
"""Times as long as the first answer takes: after the warm-up there must be two moments at which answers end."""


@dataclass(frozen=True, slots=True)
class Progress:
    """What was there when a run ended too early."""

    seconds: float
    """How long it answered."""
    answers: int
    """The answers that ended."""
    talks: int = 0
    """Conversations that had begun."""
    share: float = 0.0
    """How far the conversation came that came farthest, as a share of its messages."""

    def text(self) -> str:
        """What is there, in words."""
        if self.answers:
            ended = f"only {count(self.answers, 'answer')} ended"
        elif self.talks:
            ended = f"none of {count(self.talks, 'conversation')} ended"
        else:
            ended = "no answer ended"
        return f"too little was answered to be measured: {ended} in {duration(self.seconds)}"

    def minutes(self, repeats: int) -> int:
        """The minutes for all ``repeats`` in which enough should end."""
        times = NONE_KNOWN
        if self.answers:
            times = ENDS
        elif self.share:
            times = ENDS / self.share
        return max(1, math.ceil(repeats * self.seconds * times / 60))


def progress_of(records: Path, journal: Path, rows: list[bytes], seconds: float) -> Progress:
    """How far a run came in a number of ``seconds``, by its files of records and of turns, one of which may be absent.

    ``rows`` are its stimuli as JSON.
    """
    answers = len(_lines(records))
    messages: dict[str, int] = {}
    for line in _lines(journal):
        turn = orjson.loads(line)
        messages[turn["stimulus"]] = max(messages.get(turn["stimulus"], 0), turn["turn"] + 1)
    wanted = {}
    if messages:
        stimuli = map(orjson.loads, rows)
        wanted = {stimulus["id"]: stimulus.get("exchanges", EXCHANGES) for stimulus in stimuli}
    share = max((number / wanted.get(name, EXCHANGES) for name, number in messages.items()), default=0.0)
    return Progress(seconds, answers, len(messages), min(1.0, share))


def _lines(path: Path) -> list[bytes]:
    """The whole lines of a file; none where there is no file."""
    try:
        return path.read_bytes().split(b"\n")[:-1]
    except FileNotFoundError:
        return []
