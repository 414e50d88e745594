"""Padding, masks of attention for which no GPU waits, and sources that beams share.

Why models get masks of their own here. transformers takes a mask of ones and zeros, [rows, keys], and at every step
looks whether it has zeros (masking_utils: ``_ignore_causal_mask_sdpa``). For that look the host waits until the GPU has
done all its work, at every token. A mask that is bool [rows, 1, queries, keys] is passed on unread. So hooks before a
model's ``forward`` replace the first by the second (:func:`ready_masks`), and by None where nothing is padded.

What breaks otherwise:

- Without the hooks answers stay the same and a GPU idles; measure stimuli per second before and after a change.
- With a wrong mask answers change without an error: a row sees its padding, or tokens that come later. The test of
  batches (a batch is its single stimuli) finds the first, on models of every family.
- A model with a sliding window or chunks of attention makes masks that these do not know. It keeps its own as soon as a
  text is longer than the window (:func:`_for_decoder`).
- Some models make a mask of ones where they get None, and look into it (:data:`MAKES_ONES`).
- The hooks know arguments of transformers by name. A release that renames ``attention_mask`` or ``past_key_values``
  raises KeyError here.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from transformers import DynamicCache, EncoderDecoderCache

from agents.models.transfer import uploaded

MAKES_ONES = ("opt",)
"""Types of models that make a mask of ones, and look into it, where they get none."""


def padded(
    texts: Sequence[Sequence[int]], pad: int, device: torch.device, *, side: Literal["left", "right"] = "left"
) -> tuple[Tensor, Tensor, bool]:
    """Texts of different lengths as one batch on ``device``. The first result is tokens int64 [rows, longest], with
    ``pad`` at the ``side``; the second their mask int64 of the same shape (1: a token, 0: padding); the third says
    whether anything is padded."""
    rows = [torch.tensor(text, dtype=torch.long) for text in texts]
    mask = pad_sequence([torch.ones_like(row) for row in rows], batch_first=True, padding_side=side)
    tokens = pad_sequence(rows, batch_first=True, padding_value=pad, padding_side=side)
    tokens, mask = uploaded([tokens, mask], device)
    return tokens, mask, len({len(row) for row in rows}) > 1


def continued(model: Any, beginning: Sequence[int], rest: Tensor, mask: Tensor) -> dict[str, Any]:
    """Inputs of ``generate`` for rows with a common beginning, which the model reads once: ``beginning`` are its
    tokens, ``rest`` int64 [rows, length] with its ``mask`` what follows in each row. Returns keyword arguments."""
    start = torch.tensor([beginning], dtype=torch.long).to(rest.device)
    cache = model.base_model(input_ids=start, use_cache=True).past_key_values
    cache.batch_repeat_interleave(len(rest))
    start = start.expand(len(rest), -1)
    tokens = torch.cat([start, rest], dim=1)
    mask = torch.cat([torch.ones_like(start), mask], dim=1)
    return {"input_ids": tokens, "attention_mask": mask, "past_key_values": cache}


def causal_mask(queries: int, keys: int, device: torch.device) -> Tensor:
    """bool [1, 1, queries, keys]: which of ``keys`` tokens each of the last ``queries`` tokens sees."""
    return torch.ones(queries, keys, dtype=torch.bool, device=device).tril(keys - queries)[None, None]


def additive_mask(queries: int, keys: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """As :func:`causal_mask`, as numbers to be added to the scores: 0 where a token is seen, else the lowest number."""
    lowest = torch.full((queries, keys), torch.finfo(dtype).min, dtype=dtype, device=device)
    return lowest.triu(keys - queries + 1)[None, None]


def key_mask(mask: Tensor) -> Tensor:
    """A mask of ones and zeros, [rows, keys], as bool [rows, 1, 1, keys]: each query sees the same keys."""
    return mask[:, None, None, :].bool()


@contextmanager
def ready_masks(model: Any, *, padded: bool) -> Iterator[None]:
    """Within the block a model of transformers gets masks that it does not look into; ``padded``: whether the mask that
    it is called with has zeros. Both a decoder alone and an encoder with a decoder are known."""
    with ExitStack() as hooks:

        def replace(module: Any, change: Any) -> None:
            def hook(_: Any, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
                return args, change(kwargs)

            hooks.callback(module.register_forward_pre_hook(hook, with_kwargs=True).remove)

        config = model.config.get_text_config()
        is_sdpa = config._attn_implementation == "sdpa"
        if not config.is_encoder_decoder:
            replace(model, lambda kwargs: _for_decoder(kwargs, config, padded, is_sdpa))
        elif is_sdpa:
            replace(model.get_encoder(), lambda kwargs: _over_keys(kwargs, "attention_mask", padded))
            replace(model.get_decoder(), lambda kwargs: _across(kwargs, padded))
        yield


def _for_decoder(kwargs: dict[str, Any], config: Any, padded: bool, is_sdpa: bool) -> dict[str, Any]:
    mask = kwargs["attention_mask"]
    if not padded and config.model_type not in MAKES_ONES:
        return {**kwargs, "attention_mask": None}
    keys = mask.shape[1]
    windows = (getattr(config, "sliding_window", None), getattr(config, "attention_chunk_size", None))
    if not is_sdpa or keys > min(filter(None, windows), default=keys):
        return kwargs
    queries = _queries(kwargs)
    causal = causal_mask(queries, keys, mask.device)
    if padded:
        causal = key_mask(mask) & causal if queries > 1 else key_mask(mask)
    return {**kwargs, "attention_mask": causal}


def _over_keys(kwargs: dict[str, Any], name: str, padded: bool) -> dict[str, Any]:
    return {**kwargs, name: key_mask(kwargs[name]) if padded else None}


def _across(kwargs: dict[str, Any], padded: bool) -> dict[str, Any]:
    past = kwargs["past_key_values"].get_seq_length()
    queries = _queries(kwargs)
    device = kwargs["encoder_hidden_states"].device
    causal = causal_mask(queries, past + queries, device)
    return {**_over_keys(kwargs, "encoder_attention_mask", padded), "attention_mask": causal}


def _queries(kwargs: dict[str, Any]) -> int:
    embeddings = kwargs.get("inputs_embeds")
    return int((kwargs["input_ids"] if embeddings is None else embeddings).shape[1])


class _Sources(DynamicCache):
    """A row per item: beams change places within it."""

    def reorder_cache(self, beam_idx: Tensor) -> None:
        pass


def shared_cache(config: Any) -> EncoderDecoderCache:
    """An empty cache of keys and values for :func:`shared_sources`, whose sources stay as beams change places."""
    return EncoderDecoderCache(DynamicCache(config=config), _Sources(config=config))


@contextmanager
def shared_sources(attentions: Iterable[Any], source: str, beams: int) -> Iterator[None]:
    """Within the block the ``beams`` rows of an item attend to its source once, instead of to as many copies of it.

    ``attentions`` are the layers' modules of cross-attention, and ``source`` is the name of their argument with what is
    attended to, [rows, keys, width]. Rows of an item stand together, and its first row's source is taken. Queries of
    all beams become the queries of one row, so the masks over sources must be [rows, 1, 1, keys], or None.
    """

    def gather(module: Any, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        mask = kwargs.get("attention_mask")
        (states, *others) = args or (kwargs.pop("hidden_states"),)
        queries = states.unflatten(0, (-1, beams)).flatten(1, 2)
        mask = None if mask is None else mask[::beams]
        return (queries, *others), {**kwargs, source: kwargs[source][::beams], "attention_mask": mask}

    def part(module: Any, args: Any, output: tuple[Tensor, Any]) -> tuple[Tensor, Any]:
        mixed, weights = output
        return mixed.unflatten(1, (beams, -1)).flatten(0, 1), weights

    with ExitStack() as hooks:
        if beams > 1:
            for module in attentions:
                hooks.callback(module.register_forward_pre_hook(gather, with_kwargs=True).remove)
                hooks.callback(module.register_forward_hook(part).remove)
        yield
