"""What runs an agent's model: this machine, by transformers or vLLM (:class:`LocalAgent`), or a server
(:class:`ServerAgent`)."""

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar, Literal, TypeVar

from pydantic import Field

from agents.contract import GIB, LATER, Declaration, Draw, Reply
from agents.errors import AnswerError, UnavailableError
from agents.language.engines.chat_template import DATE, SWITCHES
from agents.language.engines.clients import ServerEngine, ServerModel
from agents.language.engines.local import LocalEngine
from agents.language.engines.openai import OpenAIEngine
from agents.language.engines.server_settings import ClientSettings
from agents.language.engines.text_request import GeneratedText, TextRequest
from agents.language.engines.transformers import TransformersEngine
from agents.language.engines.vllm import NOT_INSTALLED, VLLMEngine, VLLMSettings, vllm_program
from agents.language.text_agent import EngineAgent
from agents.models import model_folders
from agents.models.loading import chat_template, missing_quantizer, told_of_values, unusable_template
from agents.models.pretrained import BESIDE_GPU, LIBRARIES, ON_HOST, PretrainedAgent, PretrainedSettings
from agents.stimuli import ConversationStimulus

MOST_DEVICES = 16
"""The most GPUs that a model is spread over."""
MERGED = "its chat template drops instructions where it begins a conversation: they are the first user message there"
"""The limit that is told of a model whose chat template drops instructions where the model begins."""
UNEVEN = 1.1
"""How much more than its share the fullest GPU needs: layers are whole, and the embeddings lie on the first or the
last."""


class EngineSettings(PretrainedSettings):
    """How a model is run on this machine."""

    precision: Literal["auto", "fp32", "bf16", "fp16"] = "auto"
    """fp32 gives the same answers for any batch; auto: fp32 on CPU, on CUDA bf16, or fp16 as weights are stored."""


class EngineChoice(EngineSettings):
    """For models that either engine can run."""

    engine: Literal["transformers", "vllm"] = "transformers"
    """What runs the model."""
    vllm: VLLMSettings = VLLMSettings()
    """How vLLM runs it, where that is the engine."""


class TemplateSettings(EngineChoice):
    """For models that chat by their own template."""

    date: datetime.date = Field(DATE, json_schema_extra=LATER)
    """The day that a prompt names, if its chat template names one: prompts are the same on any day."""


L = TypeVar("L", bound=EngineSettings)


class LocalAgent(EngineAgent[L], PretrainedAgent[L]):
    """Base of the agents whose model runs on this machine.

    How much memory the agent needs depends on its settings: the engine, the number of GPUs, and vLLM's cache. So
    :meth:`declaration` reckons it, in bytes.
    """

    declares = Declaration(
        extra="language",
        packages=("torch", "transformers"),
        memory=36 * GIB,  # 8 thousand million weights in fp32
        device_memory=24 * GIB,
        batch_size=16,
    )
    needs = ("config.json", model_folders.WEIGHTS, model_folders.TOKENIZER)
    working_memory = 6 * GIB  # long prompts' caches
    template: ClassVar[str | None] = None
    """A chat's form (Jinja) in place of the checkpoint's; None: the checkpoint's."""
    _engine: LocalEngine
    _effects: Mapping[str, Any] | None = None

    def __init__(self, settings: L, name: str) -> None:
        super().__init__(settings, name)
        vllm = self._vllm()
        self._devices = 1 if vllm is None else vllm.tensor_parallel

    def declaration(self) -> Declaration:
        """With the memory of the engine that the settings name, on as many GPUs as it is spread over."""
        declared = super().declaration()
        if isinstance(self.settings, EngineChoice):
            declared = declared.replace(most_devices=MOST_DEVICES, devices=self._devices)
        vllm = self._vllm()
        return self._in_transformers(declared) if vllm is None else self._in_vllm(declared, vllm)

    def _in_transformers(self, declared: Declaration) -> Declaration:
        if self._item_on_host is not None:
            spare = max(0, self.working_memory - ON_HOST - declared.batch_size * self._item_on_host)
            declared = declared.replace(memory=declared.memory - spare)
        if self._devices > 1 and (item := self.item_memory()) is not None:
            declared = declared.replace(device_memory=self._spread_bytes(1, item))
        return declared

    def _in_vllm(self, declared: Declaration, vllm: VLLMSettings) -> Declaration:
        working = self.working_memory
        weights = max(0, declared.device_memory - working)
        beside = declared.memory_beside_gpu
        return declared.replace(
            max_in_flight=vllm.sequences,
            memory=declared.memory + vllm.cache(),
            device_memory=working + vllm.cache() + weights // self._devices,  # of each GPU
            # vLLM has a process for each GPU.
            memory_beside_gpu=None if beside is None else beside + self._devices * BESIDE_GPU,
        )

    @cached_property
    def _item_on_host(self) -> int | None:
        """Bytes of a stimulus in fp32, as on the CPU, where the model is here."""
        is_known = self.weights > 0 and not self.random and self.declares.missing_package() is None
        return self.item_memory(4) if is_known else None

    def use_devices(self, count: int) -> None:
        """Spread the model over ``count`` GPUs, before ``open``; the memory in :meth:`declaration` follows. vLLM has a
        process, and so its own libraries, on each of them."""
        self._devices = count

    def device_bytes(self, batch_size: int) -> int:
        """Bytes on each GPU with ``batch_size`` texts at a time. Where transformers spreads a model over several GPUs,
        weights and the texts' caches are shared out; the libraries are not."""
        item = self.item_memory() if self._devices > 1 and self._vllm() is None else None
        return super().device_bytes(batch_size) if item is None else self._spread_bytes(batch_size, item)

    def _spread_bytes(self, batch_size: int, item: int) -> int:
        beside = LIBRARIES * self._devices + max(self.working_memory, batch_size * item)
        return int(UNEVEN * (self.weights + beside) / self._devices)

    def _vllm(self) -> VLLMSettings | None:
        settings = self.settings
        if not isinstance(settings, EngineChoice) or settings.engine != "vllm":
            return None
        return settings.vllm.model_copy(update={"load_format": "dummy"}) if self.random else settings.vllm

    def missing(self) -> str | None:
        """What the base class says; also what the engine or the model's quantisation needs, and a chat model's missing
        or unusable template."""
        is_in_vllm = self._vllm() is not None
        if is_in_vllm and vllm_program() is None:
            return NOT_INSTALLED
        missing = super().missing()
        if missing is None and not (self.random or is_in_vllm):
            missing = missing_quantizer(self.folder())
        if missing is None and self.chats and not (self.random or self.template):
            missing = unusable_template(self.folder())
        return missing

    def reads_pictures(self) -> bool:
        """Whether the checkpoint has an image processor and the engine takes pictures; False where the checkpoint is
        not here."""
        engine = TransformersEngine if self._vllm() is None else VLLMEngine
        try:
            return engine.sees and not self.random and model_folders.has_image_processor(self.folder())
        except UnavailableError:  # as far as is known
            return False

    def limits(self) -> Sequence[str]:
        """What the base class says; also that the template drops instructions, and that the model reads no
        pictures."""
        is_blind = self.typed and not self.reads_pictures()
        limits = [*super().limits()]
        if self.begins_chats() and self._engine.chat_template.begins == "merged":
            limits.append(MERGED)
        if is_blind:
            limits.append("reads no pictures: tasks about them are for other agents")
        return limits

    def template_effects(self) -> Mapping[str, Any]:
        """How prompts differ from those of version 0.2 by the model's own template: the date, where instructions stand,
        and the switches that close its reasoning. Found once, as it means opening the tokenizer."""
        if self._effects is None:
            self._effects = self._found_effects()
        return self._effects

    def _found_effects(self) -> Mapping[str, Any]:
        settings = self.settings
        if not isinstance(settings, TemplateSettings) or self.random or self.missing() is not None:
            return {}
        source, _ = chat_template(self.folder())
        is_plain = source is not None and not any(name in source for name in ("strftime_now", *SWITCHES))
        if is_plain and not self.begins_chats() and not self.reads_pictures():
            return {}  # opening a tokenizer takes a second
        engine = self.make_engine()
        try:
            engine.open(chat=True)
        except UnavailableError:  # which the worker says, too
            return {}
        template = engine.chat_template
        effects: dict[str, Any] = {}
        if template.asks_for_the_time:
            effects["date"] = settings.date.isoformat()
        if self.begins_chats() and template.begins == "merged":
            effects["instructions"] = "first user message where the agent begins"
        if switches := template.switches(getattr(settings, "reasoning_tokens", 0) > 0):
            effects["switches"] = dict(switches)
        return effects

    def template_adds(self) -> str | None:
        """What the checkpoint's template writes around a message; None where the agent brings its own template."""
        return self._engine.chat_template.adds() if self.chats and self.template is None else None

    def bytes_per_weight(self) -> int:
        """4 in fp32, else 2."""
        return 4 if self.settings.precision == "fp32" else 2

    def make_engine(self) -> LocalEngine:
        """The engine that the settings name, with nothing loaded."""
        vllm = self._vllm()
        precision = self.settings.precision
        date = self.settings.date if isinstance(self.settings, TemplateSettings) else DATE
        if vllm is None:
            return TransformersEngine(
                self.folder(), precision=precision, template=self.template, devices=self._devices, date=date
            )
        vllm = vllm.model_copy(update={"tensor_parallel": self._devices})
        device_memory = self.declaration().device_memory
        return VLLMEngine(self.folder(), vllm, device_memory=device_memory, precision=precision, date=date)

    def open(self) -> None:
        """Open the tokenizer and the template. Raises UnavailableError."""
        self._engine = self.make_engine()
        with told_of_values(self.folder()):
            self._engine.open(chat=self.chats)

    def load(self, device: str) -> None:
        """Load the model onto ``device``, and forget a folder of random weights. Raises UnavailableError."""
        with told_of_values(self.folder()):
            self._engine.load(device)
        self.drop_folder()

    def respond(self, batch: Sequence[Any], draws: Sequence[Draw]) -> Sequence[Reply | Exception]:
        """All requests of the batch in one call of the engine. Replies that no model writes take no place in
        that call."""
        items = [*zip(batch, draws, strict=True)]
        replies: list[Any] = [_tried(self._begun, *item) for item in items]
        places = [place for place, begun in enumerate(replies) if isinstance(begun, TextRequest)]
        requests = [replies[place] for place in places]
        seeds = [self._seed(*items[place]) for place in places]
        for place, request, text in zip(places, requests, self._texts(requests, seeds), strict=True):
            is_text = isinstance(text, GeneratedText)
            replies[place] = _tried(self._answered, *items[place], request, text) if is_text else text
        return replies

    async def aclose(self) -> None:
        """Close the engine's connections."""
        await self._engine.aclose()

    def close(self) -> None:
        """Release the engine's model."""
        self._engine.close()
        super().close()

    def _adapted(self, stimulus: Any, request: TextRequest) -> TextRequest:
        """With random weights all texts have the most tokens."""
        if not self.random:
            return request
        return replace(request, sampling=replace(request.sampling, min_tokens=request.sampling.max_tokens, stops=()))


def _tried(act: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return act(*arguments)
    except AnswerError as error:
        return error


V = TypeVar("V", bound=ClientSettings)


class ServerAgent(ServerModel[V], EngineAgent[V]):
    """Base of the agents whose model is on a server."""

    declares = Declaration(parallel=False)
    engine: ClassVar[type[ServerEngine[Any]]] = OpenAIEngine
    """The class of the client."""
    _engine: ServerEngine[Any]

    def declaration(self) -> Declaration:
        """With as many requests under way as the settings allow."""
        return super().declaration().replace(max_in_flight=self.settings.concurrency)

    def _adapted(self, stimulus: Any, request: TextRequest) -> TextRequest:
        """Between machines the stops are the papers'."""
        sampling = replace(request.sampling, temperature=round(request.sampling.temperature, 6))
        if isinstance(stimulus, ConversationStimulus) and stimulus.type == "MM":
            sampling = replace(sampling, label="")
        return replace(request, sampling=sampling)
