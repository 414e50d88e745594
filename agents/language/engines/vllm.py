"""The engine of vLLM. In bfloat16 and float16 a draw may depend on the rest of the batch."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from agents.contract import GIB, NO_ANSWER, Settings
from agents.errors import AnswerError, UnavailableError
from agents.language.engines import reasoning, vllm_processes
from agents.language.engines.local import LocalEngine
from agents.language.engines.text_request import Finish, GeneratedText, Sampling, TextRequest, settled
from agents.loading import dtype_for, load_part

if TYPE_CHECKING:
    from pathlib import Path

    from vllm import SamplingParams

SEEDS = 1 << 63  # vLLM takes seeds of torch's generators, and no negative number
ENDS_WITHIN = 60.0  # seconds for killed processes
GRACE = 2.0  # seconds for vLLM to end its processes by itself
CPU_TOKENS = 8192  # of the prompts of a step, on the CPU
ENVIRONMENT = {
    "VLLM_LOGGING_LEVEL": "WARNING",  # unless the caller's environment has another
    "VLLM_NO_USAGE_STATS": "1",  # it would report each engine to its makers
    "HF_HUB_OFFLINE": "1",  # the model is a local folder
    "VLLM_WORKER_MULTIPROC_METHOD": "spawn",  # a process with threads, as a worker is, cannot be forked
}


class VLLMSettings(Settings):
    """How vLLM runs a model."""

    tensor_parallel: int = Field(1, ge=1, le=64)
    """Among how many GPUs of a machine each layer is shared out, at least: a model too large for them gets more."""
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


def sampling_params(request: TextRequest, seed: int, ends: Sequence[int]) -> SamplingParams:
    """vLLM's parameters; ``ends`` are the tokens that end a text."""
    from vllm import SamplingParams
    from vllm.sampling_params import RequestOutputKind, StructuredOutputsParams

    sampling, schema = request.sampling, request.schema
    return SamplingParams(
        temperature=sampling.temperature,
        top_p=sampling.top_p,
        top_k=sampling.top_k,
        frequency_penalty=sampling.frequency_penalty,
        presence_penalty=sampling.presence_penalty,
        seed=seed % SEEDS,
        max_tokens=sampling.limit,
        min_tokens=min(sampling.min_tokens, sampling.max_tokens),
        stop=sampling.unconditional_stops(),
        stop_token_ids=list(ends),
        output_kind=RequestOutputKind.FINAL_ONLY if request.say is None else RequestOutputKind.CUMULATIVE,
        structured_outputs=None if schema is None else StructuredOutputsParams(json=dict(schema)),
    )


class VLLMEngine(LocalEngine):
    """A model in ``device_memory`` bytes of a GPU, or on the CPU beside the settings' cache."""

    def __init__(self, folder: Path, settings: VLLMSettings, *, device_memory: int, precision: str = "auto") -> None:
        super().__init__(folder, positions=settings.positions)
        self._settings = settings
        self._device_memory = device_memory
        self._precision = precision
        self._numbers = itertools.count()
        self._llm: Any = None
        # vLLM's processes end with the thread that starts them.
        self._thread: ThreadPoolExecutor | None = None

    def open(self, *, chat: bool = False) -> None:
        from transformers import GenerationConfig

        super().open(chat=chat)
        if (self.folder / "generation_config.json").exists():
            stored = load_part(GenerationConfig, self.folder, "generation_config.json")
        else:
            stored = GenerationConfig.from_model_config(self._config)
        self._ends = self._end_tokens(stored.eos_token_id)
        self._size = int(self._config.get_text_config().vocab_size)

    def load(self, device: str) -> None:
        left = vllm_processes.end_orphans(ENDS_WITHIN)
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
            if current_platform.device_type != kind or device not in ("cpu", "cuda", "cuda:0"):
                raise UnavailableError(
                    f"vLLM {vllm.__version__} as it is installed here runs on the first device of the kind "
                    f"{current_platform.device_type or 'none'}, not on {device}; use the transformers engine"
                )
            try:
                return AsyncLLM.from_engine_args(vllm.AsyncEngineArgs(**self.engine_arguments(device)))
            except Exception as error:  # of a hundred kinds
                text = " ".join(str(error).split()) or type(error).__name__
                raise UnavailableError(f"vLLM cannot load {self.folder}: {text[:300]}") from None

    def engine_arguments(self, device: str) -> dict[str, Any]:
        """Every choice that can change a text."""
        import torch
        from vllm.platforms import current_platform

        self._dtype = str(dtype_for(self._precision, torch.device(device), self.folder)).removeprefix("torch.")
        settings = self._settings
        assert self._positions is not None
        memory: dict[str, Any]
        if device == "cpu":
            memory = {
                "kv_cache_memory_bytes": settings.cache(),
                # After a part of a prompt vLLM rewinds a request's generator, which the CPU's cannot do: the whole
                # engine would die of the first prompt that it splits.
                "enable_chunked_prefill": False,
                "max_num_batched_tokens": max(self._positions, CPU_TOKENS),
            }
        else:
            memory = {"gpu_memory_utilization": self._device_memory / int(current_platform.get_device_total_memory())}
        return {
            "model": str(self.folder),
            "dtype": self._dtype,
            "max_model_len": self._positions,
            "max_num_seqs": settings.sequences,
            "tensor_parallel_size": settings.tensor_parallel,
            # In a worker of Ray's vLLM would hand its processes to Ray.
            **({"distributed_executor_backend": "mp"} if settings.tensor_parallel > 1 else {}),
            "load_format": settings.load_format,
            "enforce_eager": settings.enforce_eager,
            "enable_prefix_caching": True,
            "generation_config": "vllm",  # nothing of the checkpoint's generation_config.json
            "seed": 0,  # for dummy weights
            "trust_remote_code": False,
            "disable_log_stats": True,
            **memory,
        }

    async def generate(self, request: TextRequest, seed: int) -> GeneratedText:
        """Raises AnswerError, and EngineDeadError once vLLM's process has died."""
        from vllm.exceptions import VLLMClientError
        from vllm.v1.engine.exceptions import EngineDeadError

        prompt, say = self.fitted_tokens(request), request.say
        parameters, number = sampling_params(request, seed, self._ends), f"text-{next(self._numbers)}"
        begun = "" if request.schema is not None else self._begun(prompt)  # a schema leaves no room for reasoning
        outputs = self._llm.generate({"type": "token", "prompt_token_ids": prompt}, parameters, number)
        try:
            async for output in outputs:
                if say is not None:
                    text = self._settled_answer(begun, self._without_end(output.outputs[0].token_ids))
                    end = request.sampling.stop_in(text)
                    say(settled(text, request.sampling.stops) if end is None else text[:end])
        except VLLMClientError as error:
            raise AnswerError("bad_prompt", f"vLLM refuses this request: {error}") from None
        except Exception as error:
            if self._llm.errored:
                raise EngineDeadError from error
            raise
        return self._text(output.outputs[0], len(prompt), begun, request.sampling)

    def _without_end(self, tokens: Sequence[int]) -> list[int]:
        return list(tokens[:-1] if tokens and tokens[-1] in self._ends else tokens)

    def _text(self, output: Any, prompt_tokens: int, begun: str, sampling: Sampling) -> GeneratedText:
        if output.finish_reason not in ("stop", "length"):
            raise AnswerError("no_text", f"vLLM ended the text early: {output.finish_reason}")
        tokens = self._without_end(output.token_ids)
        thought, text = self._parted(begun, tokens)
        if text is None:
            raise reasoning.unfinished(sampling.limit)
        end = sampling.stop_in(text)
        # Without a stop, a character whose last bytes are missing is dropped, as in the transformers engine.
        text = text.rstrip("\ufffd") if end is None else text[:end]
        finish: Finish = output.finish_reason if end is None else "stop"
        return GeneratedText(text, finish, self._decode_all(tokens), prompt_tokens, len(tokens), thought)

    def provenance(self) -> dict[str, Any]:
        import vllm

        parallel = self._settings.tensor_parallel
        return {
            "engine": "vllm",
            "vllm": vllm.__version__,
            "model": str(self._llm.model_config.architecture),
            "tokenizer": type(self._tokenizer).__name__,
            "dtype": self._dtype,
            "positions": self._positions,
            **({"tensor_parallel": parallel} if parallel > 1 else {}),
            **({"random_weights": True} if self._settings.load_format == "dummy" else {}),
        }

    def close(self) -> None:
        """End vLLM's processes. Raises UnavailableError if a process stays."""
        if self._llm is not None:
            self._llm.shutdown(timeout=GRACE)
            self._llm = None
            left = vllm_processes.end(self._processes, ENDS_WITHIN)
            if left:
                raise UnavailableError(f"processes of vLLM do not end: {', '.join(left)}")
        if self._thread is not None:
            self._thread.shutdown()
            self._thread = None


@contextmanager
def _environment(owner: str) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update({**ENVIRONMENT, vllm_processes.OWNER: owner})
    os.environ["VLLM_LOGGING_LEVEL"] = before.get("VLLM_LOGGING_LEVEL", ENVIRONMENT["VLLM_LOGGING_LEVEL"])
    if "VLLM_PLUGINS" in before:
        os.environ["VLLM_PLUGINS"] = f"{before['VLLM_PLUGINS']},{vllm_processes.PLUGIN}"
    try:
        yield
    finally:
        for name in os.environ.keys() - before.keys():  # vLLM sets some more, for its processes
            del os.environ[name]
        os.environ.update(before)
