"""Texts of several lengths in one batch, and attention masks at which transformers need not look.

Before it makes its own masks, transformers asks at every step whether a mask of ones and zeros hides anything, and the
host waits for the device's answer (masking_utils: ``_ignore_causal_mask_sdpa``). Here the answer is known beforehand:
where nothing is padded there is no mask, and otherwise one of the form [rows, heads, queries, keys], which transformers
takes as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from agents.transfer import uploaded

MAKES_ONES = ("opt",)  # models that make a mask of ones, and ask it, where they are given none


def padded(
    texts: Sequence[Sequence[int]], pad: int, device: torch.device, *, side: Literal["left", "right"] = "left"
) -> tuple[Tensor, Tensor, bool]:
    """Tokens of texts as [rows, longest] on ``device``, the mask of ones and zeros over them, and whether the mask has
    any zeros."""
    rows = [torch.tensor(text, dtype=torch.long) for text in texts]
    shown = pad_sequence([torch.ones_like(row) for row in rows], batch_first=True, padding_side=side)
    tokens = pad_sequence(rows, batch_first=True, padding_value=pad, padding_side=side)
    tokens, shown = uploaded([tokens, shown], device)
    return tokens, shown, len({len(row) for row in rows}) > 1


def causal_mask(queries: int, keys: int, device: torch.device) -> Tensor:
    """bool [1, 1, queries, keys]: the last ``queries`` of ``keys`` tokens see what is not behind them."""
    return torch.ones(queries, keys, dtype=torch.bool, device=device).tril(keys - queries)[None, None]


def additive_mask(queries: int, keys: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """The same for models that add their mask to the scores: 0, or the lowest number."""
    lowest = torch.full((queries, keys), torch.finfo(dtype).min, dtype=dtype, device=device)
    return lowest.triu(keys - queries + 1)[None, None]


def key_mask(shown: Tensor) -> Tensor:
    """bool [rows, 1, 1, keys] of a mask of ones and zeros [rows, keys]."""
    return shown[:, None, None, :].bool()


@contextmanager
def ready_masks(model: Any, *, padded: bool) -> Iterator[None]:
    """While it lasts, a model of transformers that generates is given such masks instead of its ``attention_mask`` of
    ones and zeros; ``padded`` says whether this has any zeros.

    Models with attention that only sees a window, or of another implementation than SDPA, make theirs themselves.
    """
    with ExitStack() as hooks:

        def before(module: Any, give: Any) -> None:
            hooks.callback(module.register_forward_pre_hook(give, with_kwargs=True).remove)

        config = model.config.get_text_config()
        takes = config._attn_implementation == "sdpa"
        if not config.is_encoder_decoder:
            before(model, lambda _, args, named: (args, _decoders(named, config, padded, takes)))
        elif takes:
            before(model.get_encoder(), lambda _, args, named: (args, _encoders(named, "attention_mask", padded)))
            before(model.get_decoder(), lambda _, args, named: (args, _across(named, padded)))
        yield


def _decoders(named: dict[str, Any], config: Any, padded: bool, takes: bool) -> dict[str, Any]:
    """The arguments of a model that goes on with its prompt."""
    shown = named["attention_mask"]
    if not padded and config.model_type not in MAKES_ONES:
        return {**named, "attention_mask": None}
    keys, window = shown.shape[1], getattr(config, "sliding_window", None)
    if not takes or (window is not None and keys > window):
        return named
    queries = _queries(named)
    mask = key_mask(shown) if padded else causal_mask(queries, keys, shown.device)
    if padded and queries > 1:
        mask = mask & causal_mask(queries, keys, shown.device)
    return {**named, "attention_mask": mask}


def _encoders(named: dict[str, Any], name: str, padded: bool) -> dict[str, Any]:
    """Arguments with a mask over an encoder's tokens."""
    return {**named, name: key_mask(named[name]) if padded else None}


def _across(named: dict[str, Any], padded: bool) -> dict[str, Any]:
    """The arguments of a decoder beside an encoder: none of its own tokens is padding."""
    past = named["past_key_values"].get_seq_length()
    queries, device = _queries(named), named["encoder_hidden_states"].device
    own = causal_mask(queries, past + queries, device)
    return {**_encoders(named, "encoder_attention_mask", padded), "attention_mask": own}


def _queries(named: dict[str, Any]) -> int:
    given = named.get("inputs_embeds")
    return int((named["input_ids"] if given is None else given).shape[1])
