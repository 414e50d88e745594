"""The texts of a batch while they are generated, for those who listen."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import Tensor
from transformers.generation.streamers import BaseStreamer

from agents.language.engines.request import Sampling
from agents.language.engines.stopping import Decode, first_stop


class Streamer(BaseStreamer):
    """Tells each row's listener the row's text, as far as it will not change, after each of its tokens.

    Held back are a character whose last bytes are not said, and what may be the beginning of a stop.
    """

    def __init__(
        self,
        says: Sequence[Callable[[str], None] | None],
        samplings: Sequence[Sampling],
        ends: Sequence[int],
        decode: Decode,
    ) -> None:
        self._listeners = {row: say for row, say in enumerate(says) if say is not None}
        self._samplings, self._ends, self._decode = samplings, frozenset(ends), decode
        self._tokens: dict[int, list[int]] = {row: [] for row in self._listeners}
        self._is_prompt = True

    def put(self, value: Tensor) -> None:
        """``value``: int64 on the host, first the prompts [rows, tokens], then each row's next token [rows]."""
        if self._is_prompt:
            self._is_prompt = False
            return
        for row, token in enumerate(value.tolist()):
            if (say := self._listeners.get(row)) is None:
                continue
            tokens, sampling = self._tokens[row], self._samplings[row]
            if token not in self._ends:
                tokens.append(token)
                text = self._decode(tokens)
                if (stop := first_stop(tokens, sampling, self._decode)) is None:
                    say(settled(text.rstrip("\ufffd"), sampling.stops))
                    if len(tokens) < sampling.max_tokens:
                        continue
                else:
                    say(text[:stop])
            del self._listeners[row]  # the row is over

    def end(self) -> None:
        """Nothing: the whole texts are the engine's."""


def settled(text: str, stops: Sequence[str]) -> str:
    """``text`` without what may be the beginning of one of ``stops``."""
    begun = [size for stop in stops for size in range(1, len(stop)) if text.endswith(stop[:size])]
    return text[: len(text) - max(begun, default=0)]
