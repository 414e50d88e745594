"""What agents said through /v1/responses, by the message's id, which some clients send back in the text's place."""

import secrets
import time
from collections import OrderedDict
from collections.abc import Callable

SECONDS = 3600.0
MOST_CHARACTERS = 10_000_000  # of all texts together


class SaidHere:
    """Texts in memory, by the random ids of their messages.

    A text is forgotten after ``seconds``; where all texts together have more than ``most`` characters, the oldest go
    first. ``clock`` returns seconds. Vercel's AI SDK needs this by default: it takes for granted that a server stores
    what it answers.
    """

    def __init__(
        self, most: int = MOST_CHARACTERS, seconds: float = SECONDS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._most = most
        self.seconds = seconds
        self._clock = clock
        self._texts: OrderedDict[str, tuple[str, float]] = OrderedDict()  # with the time, the oldest first
        self._characters = 0

    @staticmethod
    def new_id() -> str:
        """An id that is not to be guessed: who has it can have an agent read the text."""
        return f"msg_{secrets.token_hex(16)}"

    def remember(self, key: str, text: str) -> None:
        """Keep a text under ``key``, which :meth:`new_id` made."""
        self._texts[key] = (text, self._clock())
        self._characters += len(text)
        self._forget()

    def text(self, key: str) -> str | None:
        """The text under an id; None for one that was never given or is forgotten."""
        self._forget()
        found = self._texts.get(key)
        return None if found is None else found[0]

    def _forget(self) -> None:
        since = self._clock() - self.seconds
        while self._texts:
            text, said = next(iter(self._texts.values()))
            if said > since and self._characters <= self._most:
                return
            self._texts.popitem(last=False)
            self._characters -= len(text)
