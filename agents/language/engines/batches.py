"""Which prompts are generated together: groups of similar length, as padding costs time."""

from collections.abc import Sequence
from typing import Protocol, TypeVar

from agents.language.engines.text_request import TextRequest

CHUNK = 64
"""The most rows of a call; beams are not counted."""
TOKENS_PER_STEP = {"cpu": 32, "cuda": 400}
"""How many tokens of a prompt take as long as a step's reading of all weights, by device. The CPU's was measured."""
MOST_TOKENS = {"cpu": 8 * (2048 + 80), "cuda": 1 << 31}
"""The most tokens of a call, with padding and replies, by device. On a CPU they are eight long prompts with replies:
agents declare no memory for more keys and values. On a GPU the batch's size is chosen by its memory."""


class GroupedText(Protocol):
    """What grouping needs to know of a text."""

    @property
    def place(self) -> int:
        """Its index in the batch, by which rows of equal length are ordered: groups are the same in each run."""

    @property
    def request(self) -> TextRequest:
        """What is asked, and with it the most tokens of the reply."""

    @property
    def prompt(self) -> list[int]:
        """The prompt's tokens."""


R = TypeVar("R", bound=GroupedText)


def cheapest(rows: Sequence[R], per_step: int, most_tokens: int) -> list[list[R]]:
    """``rows`` in groups of at most :data:`CHUNK` rows and ``most_tokens`` tokens, so that all together cost least.

    A group costs its prompts' tokens, padded to the longest, and for each step of its longest reply the weights
    (``per_step`` tokens) and a token of each row. The best cut of the rows by length is found by dynamic programming. A
    row with more than ``most_tokens`` is a group by itself.
    """
    rows = sorted(rows, key=lambda row: (len(row.prompt), row.place))
    best: list[tuple[int, int]] = [(0, 0)]  # of the first rows: the cost, and where the last group begins
    for end in range(1, len(rows) + 1):
        longest = len(rows[end - 1].prompt)
        steps = 0
        options: list[tuple[int, int]] = []
        for start in range(end - 1, max(-1, end - 1 - CHUNK), -1):
            steps = max(steps, rows[start].request.sampling.limit)
            size = end - start
            if options and size * (longest + steps) > most_tokens:
                break
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
    """With how many equal tokens all ``prompts`` begin, so that each has a token after them."""
    first = min(prompts)
    last = max(prompts)
    shortest = min(map(len, prompts)) - 1
    return next((index for index in range(shortest) if first[index] != last[index]), shortest)
