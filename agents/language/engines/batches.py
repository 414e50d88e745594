"""Which prompts are generated together."""

from collections.abc import Sequence
from typing import Protocol, TypeVar

from agents.language.engines.text_request import TextRequest

CHUNK = 64  # rows of a call, beams not counted
# A step takes as long as so many tokens of a prompt, beside its rows: it reads all weights. Measured on a CPU.
TOKENS_PER_STEP = {"cpu": 32, "cuda": 400}


class Row(Protocol):
    @property
    def place(self) -> int: ...
    @property
    def request(self) -> TextRequest: ...
    @property
    def prompt(self) -> list[int]: ...


R = TypeVar("R", bound=Row)


def cheapest(rows: Sequence[R], per_step: int) -> list[list[R]]:
    """Groups of at most :data:`CHUNK` rows of similar length. A group costs its prompts' tokens with their padding, and
    for each step the weights and a token of each row."""
    rows = sorted(rows, key=lambda row: (len(row.prompt), row.place))
    best: list[tuple[int, int]] = [(0, 0)]  # of the first rows: the cost, and where the last group begins
    for end in range(1, len(rows) + 1):
        longest = len(rows[end - 1].prompt)
        steps = 0
        options = []
        for start in range(end - 1, max(-1, end - 1 - CHUNK), -1):
            steps = max(steps, rows[start].request.sampling.limit)
            size = end - start
            options.append((best[start][0] + size * longest + steps * (per_step + size), start))
        best.append(min(options))
    groups = []
    end = len(rows)
    while end:
        start = best[end][1]
        groups.append(rows[start:end])
        end = start
    return groups[::-1]


def common_start(prompts: Sequence[list[int]]) -> int:
    """With how many equal tokens all begin; each has a token after them."""
    first = min(prompts)
    last = max(prompts)
    shortest = min(map(len, prompts)) - 1
    return next((at for at in range(shortest) if first[at] != last[at]), shortest)
