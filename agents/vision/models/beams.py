"""What a rule for beam search has to find out for itself: transformers tells it no beam's past."""

from __future__ import annotations

from torch import Tensor, arange


def continued(before: Tensor, now: Tensor, beams: int) -> Tensor:
    """Which row of ``before`` [rows * beams, step] each row of ``now`` [rows * beams, step + 1] continues, as indices
    [rows * beams]. No two beams of a row are alike, but for those of the first step, of which the first counts."""
    begun = now[:, :-1].unflatten(0, (-1, beams))
    same = (begun[:, :, None] == before.unflatten(0, (-1, beams))[:, None]).all(dim=-1)
    first = arange(0, len(now), beams, device=now.device)
    rows: Tensor = (same.int().argmax(dim=-1) + first[:, None]).flatten()
    return rows
