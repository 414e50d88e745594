"""What agents have in common that run a language model here: a stimulus becomes a request, an engine generates a text,
the text becomes a reply.

transformers is asked in batches (``respond``); vLLM, which batches by itself, one at a time (``respond_one``).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, TypeVar

from pydantic import ConfigDict

from agents import checkpoints
from agents.contract import Draw, Reply
from agents.contract import Settings as BaseSettings
from agents.errors import AnswerError
from agents.language.engines.local import LocalEngine
from agents.language.engines.request import GeneratedText, TextRequest
from agents.language.engines.transformers import TransformersEngine
from agents.language.engines.vllm import VLLMEngine, VLLMSettings
from agents.language.engines.vllm import missing as missing_vllm
from agents.pretrained import BESIDE_GPU, LIBRARIES, PretrainedAgent, PretrainedSettings

MOST_DEVICES = 16
UNEVEN = 1.1  # whole layers on each GPU, and the embeddings on the first or last


class EngineSettings(PretrainedSettings):
    """How a model is run."""

    precision: Literal["auto", "fp32", "bf16", "fp16"] = "auto"
    """fp32 gives the same answers for any batch; auto: fp32 on CPU, on CUDA bf16, or fp16 as weights are stored."""


class EngineChoice(BaseSettings):
    """What runs a model that either engine can run."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    engine: Literal["transformers", "vllm"] = "transformers"
    """What runs the model."""
    vllm: VLLMSettings = VLLMSettings()
    """How vLLM runs it, where that is the engine."""


@dataclass(frozen=True, slots=True)
class FittedRequest:
    """A request for which the model has positions. ``left_out``: so many of the oldest messages are not in it;
    ``cut``: so many tokens of its beginning are dropped, if even the newest message alone is too long."""

    request: TextRequest
    left_out: int = 0
    cut: int = 0


T = TypeVar("T", bound=EngineSettings)


class EngineAgent(PretrainedAgent[T]):
    """Base of the agents whose language model runs here."""

    extra = "language"
    packages = ("torch", "transformers")
    needs = ("config.json", checkpoints.WEIGHTS, checkpoints.TOKENIZER)
    prompt_tokens = 2048  # a long conversation
    chats: ClassVar[bool] = True  # whether a request is messages, for the template, or a text to be continued

    def __init__(self, settings: T, name: str) -> None:
        super().__init__(settings, name)
        vllm = self._vllm()
        if vllm is not None:
            self.max_in_flight = vllm.sequences
            self.memory += vllm.cache()
        self._whole, self._beside_gpu = self.device_memory, self.memory_beside_gpu  # on one GPU
        if isinstance(settings, EngineChoice):
            self.most_devices = MOST_DEVICES
            self.use_devices(1 if vllm is None else vllm.tensor_parallel)

    def use_devices(self, count: int) -> None:
        self.devices = count
        vllm, working = self._vllm(), self.working_memory
        if vllm is not None:
            self.device_memory = working + vllm.cache() + max(0, self._whole - working) // count  # of each GPU
            if self._beside_gpu is not None:
                self.memory_beside_gpu = self._beside_gpu + count * BESIDE_GPU  # vLLM has a process for each
        elif count > 1:
            self.device_memory = self.device_bytes(1)

    def device_bytes(self, batch_size: int) -> int:
        item = self.item_memory() if self.devices > 1 and not self.continuous() else None
        if item is None:
            return super().device_bytes(batch_size)
        beside = LIBRARIES * self.devices + max(self.working_memory, batch_size * item)
        return int(UNEVEN * (self.weights + beside) / self.devices)

    def _vllm(self) -> VLLMSettings | None:
        """How vLLM is to run the model; None where it does not."""
        settings = self.settings
        if not isinstance(settings, EngineChoice) or settings.engine != "vllm":
            return None
        return settings.vllm.model_copy(update={"load_format": "dummy"}) if self.random else settings.vllm

    def continuous(self) -> bool:
        return self._vllm() is not None

    def missing(self) -> str | None:
        return super().missing() or (missing_vllm() if self.continuous() else None)

    def bytes_per_weight(self) -> int:
        return 4 if self.settings.precision == "fp32" else 2

    def open(self) -> None:
        self._engine = self.make_engine()
        self._engine.open(chat=self.chats)

    def load(self, device: str) -> None:
        self._engine.load(device)
        self.drop_folder()

    def respond(self, batch: Sequence[Any], draws: Sequence[Draw]) -> Sequence[Reply | Exception]:
        replies: dict[int, Reply | Exception] = {}
        requests: dict[int, FittedRequest] = {}
        for index, (stimulus, draw) in enumerate(zip(batch, draws, strict=True)):
            if (said := self._unasked(stimulus, draw)) is not None:
                replies[index] = said
                continue
            try:
                requests[index] = self.fitted_request(stimulus, draw)
            except AnswerError as error:
                replies[index] = error
        assert isinstance(self._engine, TransformersEngine)
        texts = self._engine.generate(
            [fitted.request for fitted in requests.values()], [draws[index].seed for index in requests]
        )
        for (index, fitted), text in zip(requests.items(), texts, strict=True):
            replies[index] = (
                self._reply(batch[index], draws[index], fitted, text) if isinstance(text, GeneratedText) else text
            )
        return [replies[index] for index in range(len(batch))]

    async def respond_one(self, prepared: Any, draw: Draw) -> Reply:
        if (said := self._unasked(prepared, draw)) is not None:
            return said
        fitted = self.fitted_request(prepared, draw)
        assert isinstance(self._engine, VLLMEngine)
        return self._reply(prepared, draw, fitted, await self._engine.generate(fitted.request, draw.seed))

    def provenance(self) -> dict[str, Any]:
        return {**super().provenance(), **self._engine.provenance()}

    def close(self) -> None:
        self._engine.close()
        super().close()

    # what a family gives

    def make_engine(self) -> LocalEngine:
        vllm = self._vllm()
        if vllm is not None:
            vllm = vllm.model_copy(update={"tensor_parallel": self.devices})
            return VLLMEngine(self.folder(), vllm, device_memory=self.device_memory, precision=self.settings.precision)
        return TransformersEngine(self.folder(), precision=self.settings.precision, devices=self.devices)

    @abstractmethod
    def fitted_request(self, stimulus: Any, draw: Draw) -> FittedRequest:
        """The request for a prepared stimulus. Raises AnswerError."""

    @abstractmethod
    def _reply(self, stimulus: Any, draw: Draw, fitted: FittedRequest, text: GeneratedText) -> Reply:
        """The reply that a text is."""

    def _unasked(self, stimulus: Any, draw: Draw) -> Reply | None:
        """The reply, where the model is not asked for it."""
        return None

    def _fixed_length(self, request: TextRequest) -> TextRequest:
        """Of random weights all texts have the most tokens, so that speed can be measured."""
        if not self.random:
            return request
        sampling = replace(request.sampling, min_tokens=request.sampling.max_tokens, stops=())
        return replace(request, sampling=sampling)
