"""The words nearest to a vector: one matrix product per batch, and an order that the batch has no part in.

Products are in float64 and distances rounded to 2**-20 of the largest that two such vectors can have, so that what a
batch of another size changes in the last bits decides nothing. Among equal distances the more frequent word is nearer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

Metric = Literal["euclidean", "cosine"]

STEPS = 2**20
FIRST = 256  # so many are sorted for every vector; a search that goes farther sorts all


class NearestWords:
    """Words in the order of their frequency, with their vectors [words, dimensions] (finite, of any float type)."""

    def __init__(self, words: Sequence[str], vectors: NDArray[np.floating], metric: Metric, device: str) -> None:
        import torch

        self.words = tuple(words)
        self._device = torch.device(device)
        self._metric = metric
        self._vectors = self._scaled(torch.from_numpy(vectors).to(self._device, torch.float64))
        self._squares = (self._vectors**2).sum(dim=1)
        self._longest = self._squares.max().sqrt()

    def around(self, vectors: NDArray[np.floating]) -> list[Iterator[tuple[str, float]]]:
        """For each of ``vectors`` [batch, dimensions] (finite) all words with their distances, the nearest first.

        A cosine distance is 1 minus the cosine; a vector of zeros is 1 away from all.
        """
        import torch

        from agents.transfer import downloaded, uploaded

        [queries] = uploaded([torch.from_numpy(vectors)], self._device)
        queries = self._scaled(queries.double())
        products = queries @ self._vectors.T
        if self._metric == "cosine":
            distances, largest = 1 - products, torch.full_like(products[:, :1], 2)
        else:
            squares = (queries**2).sum(dim=1, keepdim=True)
            distances = (squares + self._squares - 2 * products).clamp(min=0).sqrt()
            largest = squares.sqrt() + self._longest
        steps = (distances / largest.clamp(min=1e-300) * STEPS).round().long()
        # One whole number says both, the rounded distance and the rank, so that no two words are equal.
        keys = steps * len(self.words) + torch.arange(len(self.words), device=self._device)
        first = torch.topk(keys, min(FIRST, len(self.words)), dim=1, largest=False).indices
        indices, near = (one.tolist() for one in downloaded([first, distances.gather(1, first)]))
        return [self._walk(*row) for row in zip(indices, near, keys, distances, strict=True)]

    def _walk(
        self, first: list[int], near: list[float], keys: Tensor, distances: Tensor
    ) -> Iterator[tuple[str, float]]:
        from agents.transfer import downloaded

        for index, distance in zip(first, near, strict=True):
            yield self.words[index], distance
        order = keys.argsort()[len(first) :]
        for index, distance in zip(*(one.tolist() for one in downloaded([order, distances[order]])), strict=True):
            yield self.words[index], distance

    def _scaled(self, vectors: Tensor) -> Tensor:
        if self._metric == "euclidean":
            return vectors
        scaled: Tensor = vectors / vectors.norm(dim=1, keepdim=True).clamp(min=1e-300)
        return scaled
