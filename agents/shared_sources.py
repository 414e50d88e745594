"""Cross-attention in beam search: the beams of an item attend to one source.

transformers repeats what an encoder gives for all beams, projects keys and values of every copy, and at each step
puts them in the beams' new order, which changes nothing. Here the beams of an item are so many more queries to one row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from torch import Tensor
from transformers import DynamicCache, EncoderDecoderCache


class _Sources(DynamicCache):
    """Keys and values of the sources, one row for each item: beams change places, their item stays."""

    def reorder_cache(self, beam_idx: Tensor) -> None:
        pass


def cache(config: Any) -> EncoderDecoderCache:
    """An empty cache for :func:`shared_sources`."""
    return EncoderDecoderCache(DynamicCache(config=config), _Sources(config=config))


@contextmanager
def shared_sources(attentions: Iterable[Any], source: str, beams: int) -> Iterator[None]:
    """While it lasts, modules of cross-attention let every ``beams`` rows that stand together attend to the first of
    their sources. ``source`` is the argument's name. Masks over the sources are [rows, 1, 1, keys], or None."""

    def gather(module: Any, args: Any, named: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        mask, (states, *others) = named.get("attention_mask"), args or (named.pop("hidden_states"),)
        queries = states.unflatten(0, (-1, beams)).flatten(1, 2)
        mask = None if mask is None else mask[::beams]
        return (queries, *others), {**named, source: named[source][::beams], "attention_mask": mask}

    def part(module: Any, args: Any, found: tuple[Tensor, Any]) -> tuple[Tensor, Any]:
        mixed, weights = found
        return mixed.unflatten(1, (beams, -1)).flatten(0, 1), weights

    with ExitStack() as hooks:
        for module in attentions if beams > 1 else ():
            hooks.callback(module.register_forward_pre_hook(gather, with_kwargs=True).remove)
            hooks.callback(module.register_forward_hook(part).remove)
        yield
