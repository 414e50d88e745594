"""vLLM's CPU operators in plain PyTorch, so that its real engine runs in tests on a machine without a GPU.

vLLM's published wheel is built for CUDA: told ``VLLM_TARGET_DEVICE=cpu`` it takes its CPU platform, and lacks the
compiled operators of a CPU build. This package supplies those that GPT-2 and Llama need, under the names and schemas of
vLLM's own CPU build, as a plugin (entry-point group ``vllm.general_plugins``), which vLLM loads in each of its
processes. It leans on vLLM's internals and fits one version (0.31.0); slow, and made to be read.

A schema is written out where ``torch.library`` could not infer it (in-place arguments, defaults of vLLM's calls).
"""

import itertools
import os
from collections.abc import Callable
from typing import Any

ATTENTION = {
    "init_cpu_memory_env": "(int[] nodes) -> ()",
    "get_scheduler_metadata": (
        "(int requests, int heads, int kv_heads, int head_size, Tensor lengths, ScalarType dtype, Tensor starts, "
        "bool causal, int window, str isa, bool split, Tensor? dynamic_causal, str cache_dtype='auto') -> Tensor"
    ),
    "cpu_attn_reshape_and_cache": (
        "(Tensor key, Tensor value, Tensor(a!) key_cache, Tensor(b!) value_cache, Tensor slots, str isa, "
        "float key_scale=1.0, float value_scale=1.0, str cache_dtype='auto') -> ()"
    ),
    "cpu_attention_with_kv_cache": (
        "(Tensor query, Tensor key_cache, Tensor value_cache, Tensor(a!) out, Tensor starts, Tensor lengths, "
        "float scale, bool causal, Tensor? alibi, SymInt window, Tensor blocks, float softcap, Tensor metadata, "
        "Tensor? sinks, Tensor? dynamic_causal, float key_scale=1.0, float value_scale=1.0, str cache_dtype='auto') "
        "-> ()"
    ),
    "compute_slot_mapping_kernel_impl": (
        "(Tensor starts, Tensor positions, Tensor blocks, Tensor(a!) slots, SymInt block_size) -> ()"
    ),
}
LAYERS = {
    "rms_norm": "(Tensor(a!) out, Tensor input, Tensor? weight, float epsilon) -> ()",
    "fused_add_rms_norm": "(Tensor(a!) input, Tensor(b!) residual, Tensor? weight, float epsilon) -> ()",
    "rotary_embedding": (
        "(Tensor positions, Tensor(a!) query, Tensor(b!)? key, int head_size, Tensor cos_sin, bool neox, "
        "int offset=0, bool inverse=False) -> ()"
    ),
}
ACTIVATION = "(Tensor(a!) out, Tensor input) -> ()"

_library: Any = None  # operators are there as long as the library is


def register() -> None:
    """vLLM calls this in each of its processes. Does nothing unless vLLM is told to run on the CPU without a build."""
    global _library
    import torch

    if os.environ.get("VLLM_TARGET_DEVICE") != "cpu" or hasattr(torch.ops._C, "cpu_attention_with_kv_cache"):
        return
    _library = torch.library.Library("_C", "FRAGMENT")
    schemas = {**ATTENTION, **LAYERS, **dict.fromkeys(_activations(), ACTIVATION)}
    functions = {**_attention(), **_layers(), **_activations()}
    for name, schema in schemas.items():
        _library.define(name + schema.replace("'", '"'))
        # Some have no tensor among their arguments by which a device's implementation could be found.
        _library.impl(name, functions[name], "CompositeExplicitAutograd")


def _attention() -> dict[str, Callable[..., Any]]:
    import torch

    def init_cpu_memory_env(nodes: list[int]) -> None:
        """A CPU build binds its memory to these nodes."""

    def get_scheduler_metadata(*about: Any) -> torch.Tensor:
        """A CPU build plans here which thread attends to what; the loop below needs no plan."""
        return torch.zeros(1, dtype=torch.int64)

    def cpu_attn_reshape_and_cache(
        key: torch.Tensor,
        value: torch.Tensor,
        key_cache: torch.Tensor,
        value_cache: torch.Tensor,
        slots: torch.Tensor,
        *more: Any,
    ) -> None:
        """Write [tokens, heads, size] into caches of [blocks, heads, block size, size]; a slot below 0 is padding."""
        real = slots >= 0
        block = slots[real].long() // key_cache.shape[2]
        offset = slots[real].long() % key_cache.shape[2]
        key_cache[block, :, offset] = key[: len(slots)][real].to(key_cache.dtype)
        value_cache[block, :, offset] = value[: len(slots)][real].to(value_cache.dtype)

    def cpu_attention_with_kv_cache(
        query: torch.Tensor,
        key_cache: torch.Tensor,
        value_cache: torch.Tensor,
        out: torch.Tensor,
        starts: torch.Tensor,
        lengths: torch.Tensor,
        scale: float,
        causal: bool,
        alibi: Any,
        window: int,
        blocks: torch.Tensor,
        softcap: float,
        metadata: Any,
        sinks: Any,
        dynamic_causal: Any,
        *more: Any,
    ) -> None:
        """Each request attends to what it has in the cache: the newest queries of ``lengths`` tokens."""
        if alibi is not None or sinks is not None or dynamic_causal is not None or softcap or window >= 0:
            raise NotImplementedError("alibi, sinks, windows and soft caps")
        out = out.view(query.shape)
        block_size = key_cache.shape[2]
        bounds = starts.tolist()
        for request, length in enumerate(lengths.tolist()):
            first = bounds[request]
            last = bounds[request + 1]
            if last <= first:
                continue
            own = blocks[request, : -(-length // block_size)].long()
            keys, values = (
                cache[own].transpose(1, 2).flatten(0, 1)[:length].transpose(0, 1) for cache in (key_cache, value_cache)
            )
            seen = None
            if causal and last - first > 1:
                seen = torch.arange(length) <= torch.arange(length - (last - first), length)[:, None]
            said = torch.nn.functional.scaled_dot_product_attention(
                query[first:last].transpose(0, 1)[None],
                keys[None],
                values[None],
                attn_mask=seen,
                scale=scale,
                enable_gqa=query.shape[1] != keys.shape[0],
            )
            out[first:last] = said[0].transpose(0, 1)

    def compute_slot_mapping_kernel_impl(
        starts: torch.Tensor, positions: torch.Tensor, blocks: torch.Tensor, slots: torch.Tensor, block_size: int
    ) -> None:
        """Where each token's keys and values are: its block's number times the block size, and its place in it."""
        bounds = starts.tolist()
        for request, (first, last) in enumerate(itertools.pairwise(bounds)):
            own = positions[first:last].long()
            slots[first:last] = blocks[request][own // block_size].long() * block_size + own % block_size

    return {
        function.__name__: function
        for function in (
            init_cpu_memory_env,
            get_scheduler_metadata,
            cpu_attn_reshape_and_cache,
            cpu_attention_with_kv_cache,
            compute_slot_mapping_kernel_impl,
        )
    }


def _layers() -> dict[str, Callable[..., Any]]:
    import torch

    def rms_norm(out: torch.Tensor, value: torch.Tensor, weight: torch.Tensor | None, epsilon: float) -> None:
        scale = None if weight is None else weight.float()
        out.copy_(torch.nn.functional.rms_norm(value.float(), value.shape[-1:], scale, epsilon))

    def fused_add_rms_norm(
        value: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor | None, epsilon: float
    ) -> None:
        residual.add_(value)
        rms_norm(value, residual, weight, epsilon)

    def rotary_embedding(
        positions: torch.Tensor,
        query: torch.Tensor,
        key: torch.Tensor | None,
        head_size: int,
        cos_sin: torch.Tensor,
        neox: bool,
        offset: int = 0,
        inverse: bool = False,
    ) -> None:
        """Turn each pair of numbers of a head, halves of it apart (neox) or neighbours, by its position's angle."""
        if offset or inverse:
            raise NotImplementedError("rotary offsets and inverses")
        turned = cos_sin.shape[-1]
        cos, sin = cos_sin[positions.flatten()][:, None].float().chunk(2, -1)
        for part in (query, key):
            if part is None:
                continue
            heads = part.view(positions.numel(), -1, head_size)[..., :turned]
            one, other = heads.float().chunk(2, -1) if neox else heads.float().unflatten(-1, (-1, 2)).unbind(-1)
            pair = (one * cos - other * sin, other * cos + one * sin)
            heads.copy_(torch.cat(pair, -1) if neox else torch.stack(pair, -1).flatten(-2))

    return {function.__name__: function for function in (rms_norm, fused_add_rms_norm, rotary_embedding)}


def _activations() -> dict[str, Callable[..., None]]:
    from torch.nn import functional

    def gated(curve: Callable[..., Any]) -> Callable[..., None]:
        def apply(out: Any, value: Any) -> None:
            gate, rest = value.chunk(2, -1)
            out.copy_(curve(gate) * rest)

        return apply

    def plain(curve: Callable[..., Any]) -> Callable[..., None]:
        return lambda out, value: out.copy_(curve(value)) and None

    def gelu_tanh(value: Any) -> Any:
        return functional.gelu(value, approximate="tanh")

    return {
        "silu_and_mul": gated(functional.silu),
        "gelu_and_mul": gated(functional.gelu),
        "gelu_tanh_and_mul": gated(gelu_tanh),
        "gelu_tanh": plain(gelu_tanh),
        "gelu_new": plain(gelu_tanh),
        "gelu_fast": plain(gelu_tanh),
        "gelu_quick": plain(lambda value: value * (1.702 * value).sigmoid()),
    }
