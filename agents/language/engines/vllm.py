"""The text engine that runs models with vLLM: it batches by itself, so texts are asked for one at a time.

What a model is given are the tokens that the transformers engine would give it. Each text is drawn by vLLM with a seed
of its own; in bfloat16 and float16 rounding depends on what else is in the batch, and so may a draw.

vLLM runs the model in a process of its own, which ends with this one; see ``vllm_processes``.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal

from pydantic import ConfigDict, Field

from agents.contract import GIB, NO_ANSWER, Settings
from agents.errors import AnswerError, UnavailableError
from agents.language.engines import vllm_processes
from agents.language.engines.local import LocalEngine
from agents.language.engines.request import Finish, GeneratedText, Sampling, TextRequest
from agents.loading import dtype_for, load_part

if TYPE_CHECKING:
    from pathlib import Path

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


GONE = 60.0  # seconds for killed processes to end
GRACE = 2.0  # seconds for vLLM to end its processes by itself
CPU_TOKENS = 8192  # of the prompts of one step, on the CPU
# What is true of every process of vLLM that we start; what the caller's environment says of the first goes before it.
ENVIRONMENT = {
    "VLLM_LOGGING_LEVEL": "WARNING",
    "VLLM_NO_USAGE_STATS": "1",  # it would tell its makers of each engine
    "HF_HUB_OFFLINE": "1",  # the model is a local folder
    "VLLM_WORKER_MULTIPROC_METHOD": "spawn",  # a process with threads, as a worker is, cannot be forked
}


class VLLMSettings(Settings):
    """How vLLM runs a model."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    tensor_parallel: int = Field(1, ge=1, le=64)
    """Among how many GPUs of one machine each layer is shared out, at least: a model too large for them gets more."""
    sequences: int = Field(256, ge=1, le=4096, json_schema_extra=NO_ANSWER)
    """How many texts are generated at once."""
    positions: int = Field(8192, ge=32, le=10_000_000)
    """The most tokens of a prompt and its reply together, where the model has positions for more."""
    cache_gib: float = Field(8.0, gt=0, le=2048, json_schema_extra=NO_ANSWER)
    """Memory for the keys and values of the texts at hand, in GiB, on the GPU or the CPU, beside that for the model."""
    load_format: Literal["auto", "dummy"] = "auto"
    """What the weights are: the checkpoint's, or random numbers (dummy), to measure speed."""
    enforce_eager: bool = False
    """Whether nothing is compiled and no CUDA graph recorded: loaded sooner, slower afterwards."""

    def cache(self) -> int:
        """Bytes for keys and values."""
        return int(self.cache_gib * GIB)


def missing() -> str | None:
    """What keeps vLLM from running here, as a sentence, or None."""
    if find_spec("vllm") is None:
        return "the package vllm is not installed: pip install 'turinglike[vllm]'"
    return None


class VLLMEngine(LocalEngine):
    """One model, run by vLLM's asynchronous engine.

    On a GPU it takes ``device_memory`` bytes of it for everything, on the CPU the settings' cache beside the weights.
    """

    def __init__(self, folder: Path, chosen: VLLMSettings, *, device_memory: int, precision: str = "auto") -> None:
        super().__init__(folder, positions=chosen.positions)
        self._chosen = chosen
        self._device_memory = device_memory
        self._precision = precision
        self._numbers = itertools.count()
        self._llm: Any = None
        # vLLM's processes end with the thread that starts them, so it has to stay as long as they are wanted.
        self._thread: ThreadPoolExecutor | None = None

    def open(self, *, chat: bool = False) -> None:
        """Load the tokenizer. Raises UnavailableError, also where vLLM or an end token is missing."""
        from transformers import GenerationConfig

        lacking = missing()
        if lacking is not None:
            raise UnavailableError(lacking)
        super().open(chat=chat)
        if self._encodes:
            raise UnavailableError(f"{self.folder}: vLLM runs no models with an encoder; use the transformers engine")
        if (self.folder / "generation_config.json").exists():
            own = load_part(GenerationConfig, self.folder, "generation_config.json")
        else:
            own = GenerationConfig.from_model_config(self._about)
        self._ends = self._end_tokens(own.eos_token_id)
        self._size = int(self._about.get_text_config().vocab_size)

    def load(self, device: str) -> None:
        """Start vLLM with the model; takes its processes' import and the weights' reading. Raises UnavailableError."""
        left = vllm_processes.end_orphans(GONE)
        if left:
            raise UnavailableError(f"processes of an engine that was killed do not end: {', '.join(left)}")
        owner = vllm_processes.identity(os.getpid()) or ""
        others = vllm_processes.owned(owner)
        self._thread = ThreadPoolExecutor(1, "vllm")
        self._llm = self._thread.submit(self._start, device, owner).result()
        self._processes = set(vllm_processes.owned(owner)).difference(others)

    def _start(self, device: str, owner: str) -> Any:
        with _environment(owner):
            import vllm
            from vllm.platforms import current_platform
            from vllm.v1.engine.async_llm import AsyncLLM

            kind = "cpu" if device == "cpu" else "cuda"
            if current_platform.device_type != kind:
                raise UnavailableError(
                    f"vLLM {vllm.__version__} as it is installed here runs on {current_platform.device_type or 'no'} "
                    f"device, not on {device}; use the transformers engine, or a build of vLLM for {kind}"
                )
            if device not in ("cpu", "cuda", "cuda:0"):
                raise UnavailableError(f"vLLM takes the first GPU that it sees, not {device}: set CUDA_VISIBLE_DEVICES")
            try:
                return AsyncLLM.from_engine_args(vllm.AsyncEngineArgs(**self.engine_arguments(device)))
            except Exception as error:  # of a hundred kinds; what failed in the engine's own process stands in its log
                text = " ".join(str(error).split()) or type(error).__name__
                raise UnavailableError(f"vLLM cannot load {self.folder}: {text[:300]}") from None

    def engine_arguments(self, device: str) -> dict[str, Any]:
        """What vLLM is told; every choice that can change a text is among them."""
        import torch

        dtype = dtype_for(self._precision, torch.device(device), self.folder)
        self._dtype = str(dtype).removeprefix("torch.")
        chosen = self._chosen
        assert self._positions is not None
        if device == "cpu":
            special: dict[str, Any] = {
                "kv_cache_memory_bytes": chosen.cache(),
                # After a part of a prompt vLLM winds a request's generator back, which no generator on the CPU can do:
                # there its whole engine would die of the first prompt that it splits.
                "enable_chunked_prefill": False,
                "max_num_batched_tokens": max(self._positions, CPU_TOKENS),
            }
        else:
            special = {"gpu_memory_utilization": self._memory_share()}
        return {
            "model": str(self.folder),
            "dtype": self._dtype,
            "max_model_len": self._positions,
            "max_num_seqs": chosen.sequences,
            "tensor_parallel_size": chosen.tensor_parallel,
            # Ours are the processes; in a worker of Ray's vLLM would hand them to Ray.
            **({"distributed_executor_backend": "mp"} if chosen.tensor_parallel > 1 else {}),
            "load_format": chosen.load_format,
            "enforce_eager": chosen.enforce_eager,
            "enable_prefix_caching": True,
            "generation_config": "vllm",  # nothing of the checkpoint's generation_config.json
            "seed": 0,  # for dummy weights; each text has its own
            "trust_remote_code": False,
            "disable_log_stats": True,
            **special,
        }

    def _memory_share(self) -> float:
        """The declared memory as a share of the GPU's."""
        from vllm.platforms import current_platform

        total = int(current_platform.get_device_total_memory())
        if self._device_memory > total:
            raise UnavailableError(
                f"{self.folder} needs {self._device_memory / GIB:.1f} GiB of GPU memory, this one has "
                f"{total / GIB:.1f} GiB: choose a smaller cache_gib, or more GPUs by tensor_parallel"
            )
        return self._device_memory / total

    async def generate(self, request: TextRequest, seed: int) -> GeneratedText:
        """The text for one request. Raises AnswerError if the model cannot be asked this; vLLM's EngineDeadError once
        its process has died, after which there will be no text."""
        from vllm.exceptions import VLLMClientError
        from vllm.v1.engine.exceptions import EngineDeadError

        from agents.language.engines.stopping import settled
        from agents.language.engines.vllm import sampling_params

        prompt = self.fitted_tokens(request)
        parameters = sampling_params(
            request.sampling, seed, self._ends, request.schema, streams=request.say is not None
        )
        texts = self._llm.generate(
            {"type": "token", "prompt_token_ids": prompt}, parameters, f"text-{next(self._numbers)}"
        )
        try:
            async for done in texts:  # one, when all of it is said, unless somebody listens
                if request.say is not None:
                    text = done.outputs[0].text.rstrip("\ufffd")
                    end = request.sampling.stop_in(text)
                    request.say(settled(text, [request.sampling.label]) if end is None else text[:end])
        except VLLMClientError as error:
            raise AnswerError("bad_prompt", f"vLLM refuses this request: {error}") from None
        except Exception as error:  # whatever a request is told when the engine dies, it is that the engine is dead
            if self._llm.errored:
                raise EngineDeadError from error
            raise
        return self._said(done.outputs[0], len(prompt), request.sampling)

    def _said(self, said: Any, prompt_tokens: int, sampling: Sampling) -> GeneratedText:
        if said.finish_reason not in ("stop", "length"):
            raise AnswerError("no_text", f"vLLM ended the text early: {said.finish_reason}")
        finish: Finish = said.finish_reason
        tokens = list(said.token_ids)
        if tokens and tokens[-1] in self._ends:
            tokens.pop()
        # A character whose last bytes were not said is left out, as in the transformers engine.
        text = said.text if isinstance(said.stop_reason, str) else said.text.rstrip("\ufffd")
        end = sampling.stop_in(text) if sampling.label else None
        if end is not None:
            text, finish = text[:end], "stop"
        return GeneratedText(text, finish, self._decode_all(tokens), prompt_tokens, len(tokens))

    def provenance(self) -> dict[str, Any]:
        """What ran."""
        import vllm

        about = {
            "engine": "vllm",
            "vllm": vllm.__version__,
            "model": str(self._llm.model_config.architecture),
            "tokenizer": type(self._tokenizer).__name__,
            "dtype": self._dtype,
            "positions": self._positions,
            **({"tensor_parallel": self._chosen.tensor_parallel} if self._chosen.tensor_parallel > 1 else {}),
        }
        return {**about, "random_weights": True} if self._chosen.load_format == "dummy" else about

    def close(self) -> None:
        """End vLLM's processes and wait until they are gone. Raises UnavailableError if one stays."""
        if self._llm is not None:
            self._llm.shutdown(timeout=GRACE)
            self._llm = None
            left = vllm_processes.end(self._processes, GONE)
            if left:
                raise UnavailableError(f"processes of vLLM do not end: {', '.join(left)}")
        if self._thread is not None:
            self._thread.shutdown()
            self._thread = None


@contextmanager
def _environment(owner: str) -> Iterator[None]:
    """The environment in which vLLM starts its processes; afterwards it is as it was."""
    before = dict(os.environ)
    for name, value in {**ENVIRONMENT, vllm_processes.OWNER: owner}.items():
        os.environ[name] = value
    os.environ["VLLM_LOGGING_LEVEL"] = before.get("VLLM_LOGGING_LEVEL", ENVIRONMENT["VLLM_LOGGING_LEVEL"])
    if "VLLM_PLUGINS" in before:
        os.environ["VLLM_PLUGINS"] = f"{before['VLLM_PLUGINS']},{vllm_processes.PLUGIN}"
    try:
        yield
    finally:
        for name in {*before, *os.environ}:  # vLLM sets some more, for its processes
            if name in before:
                os.environ[name] = before[name]
            else:
                del os.environ[name]
