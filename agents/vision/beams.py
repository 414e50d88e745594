"""The scores of a beam search's beams, for rules that must know them."""

import torch
from torch import Tensor


class BeamSums:
    """The log-probability of each beam of a search, which transformers does not tell to what changes its scores.

    At each step a rule asks :meth:`before` what its beams have so far, and gives :meth:`keep` what each could become.
    At the next step the beams are recognised by their tokens.
    """

    def __init__(self, beams: int) -> None:
        self._beams = beams
        self._tokens: Tensor | None = None  # of the last step's beams, and their continuations' scores
        self._totals: Tensor
        self._scores: Tensor

    def before(self, input_ids: Tensor) -> Tensor | None:
        """Log-probabilities [rows * beams] of the beams with the tokens ``input_ids`` [rows * beams, step]; None at the
        first step."""
        if self._tokens is None:
            return None
        begun = input_ids[:, :-1].unflatten(0, (-1, self._beams))
        same = (begun[:, :, None] == self._tokens.unflatten(0, (-1, self._beams))[:, None]).all(dim=-1)
        first = torch.arange(0, len(input_ids), self._beams, device=input_ids.device)
        continued = (same.int().argmax(dim=-1) + first[:, None]).flatten()
        return self._totals[continued] + self._scores[continued, input_ids[:, -1]]

    def keep(self, input_ids: Tensor, totals: Tensor, scores: Tensor) -> None:
        """Remember a step: its beams' tokens [rows * beams, step], their log-probabilities ``totals`` [rows * beams],
        and what each token would add, ``scores`` [rows * beams, vocabulary]."""
        self._tokens = input_ids
        self._totals = totals
        self._scores = scores
