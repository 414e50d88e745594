"""Draws of tokens that depend on a row's seed alone: the argmax of logits plus Gumbel noise, an exact draw from their
softmax (Gumbel 1954; Maddison, Tarlow and Minka 2014, "A* sampling", section 2)."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import LogitsProcessor

from agents.models.transfer import uploaded

FEW = 512
"""Among how many of the likeliest tokens top-p is looked for at first; torch finds these without sorting the others."""


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


# splitmix64 (Steele, Lea and Flood 2014, "Fast splittable pseudorandom number generators", figure 15); torch has no
# unsigned 64-bit arithmetic, and two's complement gives the same bits.
_GAMMA = _signed(0x9E3779B97F4A7C15)
_MIX_1 = _signed(0xBF58476D1CE4E5B9)
_MIX_2 = _signed(0x94D049BB133111EB)


def uniform(seeds: Tensor, step: int, tokens: Tensor) -> Tensor:
    """Noise in (0, 1), float64, of the shape that ``seeds`` and ``tokens`` (int64) broadcast to. It is the upper 52
    bits of output ``token + 1`` of splitmix64, which starts from a hash of seed and ``step``. A row's noise depends on
    nothing else, so a batch cannot change it."""
    key = _mix(_mix(seeds * _GAMMA) + _signed(step * 0x9E3779B97F4A7C15 % (1 << 64)))
    bits = _mix(key + (tokens + 1) * _GAMMA)
    return (_shift_right(bits, 12).double() + 0.5) * 2.0**-52


def gumbel(seeds: Tensor, step: int, tokens: Tensor) -> Tensor:
    """Standard Gumbel noise, float32: -log(-log(:func:`uniform`))."""
    return -torch.log(-torch.log(uniform(seeds, step, tokens))).float()


def _mix(bits: Tensor) -> Tensor:
    bits = (bits ^ _shift_right(bits, 30)) * _MIX_1
    bits = (bits ^ _shift_right(bits, 27)) * _MIX_2
    return bits ^ _shift_right(bits, 31)


def _shift_right(bits: Tensor, count: int) -> Tensor:
    return (bits >> count) & ((1 << (64 - count)) - 1)  # torch's >> on int64 repeats the sign


@dataclass(frozen=True, slots=True)
class Warp:
    """How the logits of a row are bent before a token is drawn. A token that was generated n > 0 times loses
    n * ``frequency`` + ``presence``; then comes the temperature, then ``top_k``, then ``top_p``."""

    temperature: float = 1.0
    """Divides the logits; 0 takes the likeliest token."""
    top_k: int = 0
    """Keeps this many of the likeliest tokens; 0 keeps all."""
    top_p: float = 1.0
    """Keeps the likeliest tokens that have this share of the mass; 1 keeps all."""
    frequency: float = 0.0
    """Taken from a logit for each time that the token was generated."""
    presence: float = 0.0
    """Taken from a logit once the token was generated."""


class Sampler(LogitsProcessor):
    """Penalties, temperature, top-k, top-p, Gumbel noise in float32; for ``do_sample=False`` and a single beam. Ties at
    the edge of top-k are kept; at that of top-p the lowest token."""

    def __init__(self, seeds: Sequence[int], warps: Sequence[Warp]) -> None:
        self._seeds = torch.tensor(list(seeds), dtype=torch.int64)
        self._warps = list(warps)
        self._start: int | None = None

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """``input_ids`` int64 [rows, length], at first the prompt; ``scores`` [rows, vocabulary]."""
        if self._start is None:
            self._start = input_ids.shape[1]
            self._to(scores.device)
        step = input_ids.shape[1] - self._start
        scores = self._penalised(scores.float(), input_ids[:, self._start :])
        scores = scores / self._temperature
        if scores.is_cuda:  # all tokens: to count the kept ones, the host would wait for the device
            kept = self._kept(scores) & (scores > -torch.inf)
            tokens = torch.arange(scores.shape[1], device=scores.device)
            noise = gumbel(self._seeds[:, None], step, tokens) * self._drawn[:, None]
            return torch.where(kept, scores + noise, -torch.inf)
        if not self._most_k and not self._has_top_p:
            return self._noisy(scores, step)
        kept = self._kept(scores) & (scores > -torch.inf)
        noisy = scores.masked_fill(~kept, -torch.inf)
        if self._draws:
            rows, tokens = (kept & (self._drawn[:, None] > 0)).nonzero(as_tuple=True)
            noisy[rows, tokens] += gumbel(self._seeds[rows], step, tokens)
        return noisy

    def _noisy(self, scores: Tensor, step: int) -> Tensor:
        """``scores`` with noise on every token, changed in place. It goes row by row: a row of 50,000 tokens stays in a
        core's cache while the noise is made, and all rows do not."""
        tokens = torch.arange(scores.shape[1])
        for row in self._drawn.nonzero().flatten().tolist():
            scores[row] += gumbel(self._seeds[row], step, tokens)
        return scores

    def _to(self, device: torch.device) -> None:
        numbers = [(warp.temperature, warp.top_p, warp.frequency, warp.presence) for warp in self._warps]
        top_k = torch.tensor([warp.top_k for warp in self._warps])
        rows = [self._seeds, torch.tensor(numbers, dtype=torch.float32), top_k]
        self._seeds, columns, self._top_k = uploaded(rows, device)
        temperature, self._top_p, self._frequency, self._presence = columns.unsqueeze(2).unbind(1)
        self._drawn = (temperature[:, 0] > 0).float()
        self._temperature = torch.where(temperature > 0, temperature, 1.0)
        self._draws = any(warp.temperature > 0 for warp in self._warps)
        self._penalises = any(warp.frequency or warp.presence for warp in self._warps)
        self._most_k = max((warp.top_k for warp in self._warps), default=0)
        self._has_top_p = any(warp.top_p < 1 for warp in self._warps)

    def _penalised(self, scores: Tensor, generated: Tensor) -> Tensor:
        if not self._penalises or not generated.shape[1]:
            return scores
        ones = torch.ones_like(generated, dtype=scores.dtype)
        counts = torch.zeros_like(scores).scatter_add_(1, generated, ones).gather(1, generated)
        bent = scores.gather(1, generated) - counts * self._frequency - self._presence
        return scores.scatter(1, generated, bent)  # a token that stands twice gets the same score twice

    def _kept(self, scores: Tensor) -> Tensor:
        """bool [rows, vocabulary] after top-k, then top-p."""
        kept = torch.ones_like(scores, dtype=torch.bool)
        if self._most_k:
            best = scores.topk(min(self._most_k, scores.shape[1]), dim=1).values
            edge = best.gather(1, (self._top_k.clamp(1, best.shape[1]) - 1)[:, None])
            kept = (scores >= edge) | (self._top_k == 0)[:, None]
        if not self._has_top_p:
            return kept
        left = scores.masked_fill(~kept, -torch.inf)
        nucleus = self._nucleus_of_all(left) if scores.is_cuda else self._nucleus_of_few(left)
        return kept & (nucleus | (self._top_p >= 1))

    def _nucleus_of_all(self, left: Tensor) -> Tensor:
        """Top-p of all tokens, sorted: bool [rows, vocabulary]. For a GPU, whose host would wait for a number."""
        values, tokens = left.sort(dim=1, descending=True, stable=True)
        return self._nucleus(left, values, tokens)[1]

    def _nucleus_of_few(self, left: Tensor) -> Tensor:
        """The same of as many of the likeliest tokens as hold the mass: sorting these is much cheaper than sorting the
        vocabulary. Of equal scores the last one found may be any, so the mass must be full before these."""
        size = left.shape[1]
        count = min(FEW, size)
        while True:
            tokens = left.topk(count, dim=1).indices.sort(dim=1).values
            values, by_value = left.gather(1, tokens).sort(dim=1, descending=True, stable=True)
            inside, nucleus = self._nucleus(left, values, tokens.gather(1, by_value))
            if count == size or not bool((inside & (values == values[:, -1:]) & (values > -torch.inf)).any()):
                return nucleus
            count = min(8 * count, size)

    def _nucleus(self, left: Tensor, values: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Which of the likeliest ``tokens`` have the mass, bool [rows, tokens] and bool [rows, vocabulary]. ``values``
        are their scores, in order; ``left`` are all scores. In float64 and over the whole vocabulary, so that a batch's
        other rows do not tip the edge."""
        most = values[:, :1].double()
        total = (left.double() - most).exp().sum(1, keepdim=True)
        mass = (values.double() - most).exp() / total
        before = mass.cumsum(1) - mass  # the mass of all that are likelier
        inside = (before < self._top_p) & (self._top_p < 1)  # rows without top-p need no more tokens
        inside[:, 0] = True
        return inside, torch.zeros_like(left, dtype=torch.bool).scatter_(1, tokens, inside)


class Finite(LogitsProcessor):
    """Notes in ``bad`` the items with logits NaN, +inf, or all -inf; first in the chain. ``normalised``: of beam
    search."""

    def __init__(self, items: int, *, normalised: bool) -> None:
        self.bad: Tensor = torch.zeros(items, dtype=torch.bool)
        self._normalised = normalised

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """The logits [rows, vocabulary], unchanged; items with bad ones are noted. An item has one row or more."""
        # A few columns show a row of NaN, of which transformers' rules may have masked some; amax is NaN beside a NaN.
        bad = scores[:, :64].isnan().any(1) if self._normalised else ~scores.amax(1).isfinite()
        bad = bad.view(len(self.bad), -1).any(1)
        self.bad = self.bad | bad if self.bad.device == bad.device else bad
        return scores
