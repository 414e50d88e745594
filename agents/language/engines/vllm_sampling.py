"""How a text is drawn, in the words of vLLM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agents.language.engines.request import Sampling

if TYPE_CHECKING:
    from vllm import SamplingParams

SEEDS = 1 << 63  # vLLM takes seeds of torch's generators, and no negative one


def sampling_params(
    sampling: Sampling,
    seed: int,
    ends: Sequence[int],
    schema: Mapping[str, Any] | None = None,
    *,
    streams: bool = False,
) -> SamplingParams:
    """``sampling`` for one request with its own ``seed``; ``ends`` are the tokens that end a text, which is to be JSON
    of the ``schema``. With ``streams`` the text comes as it is generated, too.

    All that can change a text is given, and nothing is left to the checkpoint's generation_config.json. vLLM draws from
    logits divided by a temperature of at least 0.01.
    """
    from vllm import SamplingParams
    from vllm.sampling_params import RequestOutputKind, StructuredOutputsParams

    return SamplingParams(
        temperature=sampling.temperature,
        top_p=sampling.top_p,
        top_k=sampling.top_k,
        frequency_penalty=sampling.frequency_penalty,
        presence_penalty=sampling.presence_penalty,
        repetition_penalty=1.0,
        seed=seed % SEEDS,
        max_tokens=sampling.max_tokens,
        min_tokens=min(sampling.min_tokens, sampling.max_tokens),
        stop=sampling.outright(),
        stop_token_ids=list(ends),
        skip_special_tokens=True,
        output_kind=RequestOutputKind.CUMULATIVE if streams else RequestOutputKind.FINAL_ONLY,
        structured_outputs=StructuredOutputsParams(json=dict(schema)) if schema is not None else None,
    )
