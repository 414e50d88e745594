"""Agents over an engine: transformers gets batches, others single requests."""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal, TypeVar

from pydantic import Field, model_validator

from agents import checkpoints
from agents.answers import TurnAnswer
from agents.contract import Agent, Draw, Reply, Verdict, is_installed
from agents.contract import Settings as BaseSettings
from agents.errors import AnswerError
from agents.language import prompts, pseudo_dialogue
from agents.language.engines.clients import ServerText
from agents.language.engines.local import LocalEngine
from agents.language.engines.text_request import Engine, GeneratedText, Sampling, TextRequest
from agents.language.engines.transformers import TransformersEngine
from agents.language.engines.vllm import VLLMEngine, VLLMSettings
from agents.language.sent_messages import may_change, spoken, too_short
from agents.language.words.replies import word_answer
from agents.language.words.rules import RuleSettings
from agents.pretrained import BESIDE_GPU, LIBRARIES, PretrainedAgent, PretrainedSettings
from agents.stimuli import ConversationStimulus, Stimulus, Task, Utterance, WordStimulus

MOST_DEVICES = 16
UNEVEN = 1.1  # whole layers on each GPU, and the embeddings on the first or last

S = TypeVar("S", bound=BaseSettings)


class EngineAgent(Agent[S]):
    """Base of the agents whose texts an engine generates."""

    _engine: Engine
    random: bool = False

    @abstractmethod
    def fitted_request(self, stimulus: Any, draw: Draw) -> TextRequest:
        """The request, fitted to the model's positions. Raises AnswerError."""

    @abstractmethod
    def _reply(self, stimulus: Any, draw: Draw, request: TextRequest, text: GeneratedText) -> Reply: ...

    def _fixed_reply(self, stimulus: Any, draw: Draw) -> Reply | None:
        return None

    def _adapted(self, stimulus: Any, request: TextRequest) -> TextRequest:
        return request

    async def respond_one(self, prepared: Any, draw: Draw) -> Reply:
        if (fixed := self._fixed_reply(prepared, draw)) is not None:
            return fixed
        request = self.fitted_request(prepared, draw)
        text = await self._engine.generate(request, draw.seed)
        if text.finish == "filtered" and not text.text.strip():
            raise AnswerError("filtered", "the server's own filter withheld the reply")
        return self._reply(prepared, draw, request, text)

    def provenance(self) -> dict[str, Any]:
        return {**super().provenance(), **self._engine.provenance()}


class EngineSettings(PretrainedSettings):
    """How a model is run here."""

    precision: Literal["auto", "fp32", "bf16", "fp16"] = "auto"
    """fp32 gives the same answers for any batch; auto: fp32 on CPU, on CUDA bf16, or fp16 as weights are stored."""


class EngineChoice(BaseSettings):
    """What runs a model that either engine can run."""

    engine: Literal["transformers", "vllm"] = "transformers"
    """What runs the model."""
    vllm: VLLMSettings = VLLMSettings()
    """How vLLM runs it, where that is the engine."""


L = TypeVar("L", bound=EngineSettings)


class LocalAgent(EngineAgent[L], PretrainedAgent[L]):
    """Base of the agents whose language model runs here."""

    extra = "language"
    packages = ("torch", "transformers")
    needs = ("config.json", checkpoints.WEIGHTS, checkpoints.TOKENIZER)
    prompt_tokens = 2048  # a long conversation
    chats: ClassVar[bool] = True  # whether a request is messages, for the template, or a text to be continued
    _engine: LocalEngine

    def __init__(self, settings: L, name: str) -> None:
        super().__init__(settings, name)
        vllm = self._vllm()
        if vllm is not None:
            self.max_in_flight = vllm.sequences
            self.memory += vllm.cache()
        self._on_one_gpu, self._beside_one_gpu = self.device_memory, self.memory_beside_gpu
        if isinstance(settings, EngineChoice):
            self.most_devices = MOST_DEVICES
            self.use_devices(1 if vllm is None else vllm.tensor_parallel)

    def use_devices(self, count: int) -> None:
        self.devices = count
        vllm, working = self._vllm(), self.working_memory
        if vllm is not None:
            self.device_memory = working + vllm.cache() + max(0, self._on_one_gpu - working) // count  # of each GPU
            if self._beside_one_gpu is not None:
                self.memory_beside_gpu = self._beside_one_gpu + count * BESIDE_GPU  # vLLM has a process for each
        elif count > 1:
            self.device_memory = self.device_bytes(1)

    def device_bytes(self, batch_size: int) -> int:
        item = self.item_memory() if self.devices > 1 and not self.continuous() else None
        if item is None:
            return super().device_bytes(batch_size)
        beside = LIBRARIES * self.devices + max(self.working_memory, batch_size * item)
        return int(UNEVEN * (self.weights + beside) / self.devices)

    def _vllm(self) -> VLLMSettings | None:
        settings = self.settings
        if not isinstance(settings, EngineChoice) or settings.engine != "vllm":
            return None
        return settings.vllm.model_copy(update={"load_format": "dummy"}) if self.random else settings.vllm

    def continuous(self) -> bool:
        return self._vllm() is not None

    def missing(self) -> str | None:
        if self.continuous() and not is_installed("vllm"):
            return "the package vllm is not installed: pip install 'turinglike[vllm]'"
        return super().missing()

    def bytes_per_weight(self) -> int:
        return 4 if self.settings.precision == "fp32" else 2

    def make_engine(self) -> LocalEngine:
        """The settings' engine."""
        vllm, precision = self._vllm(), self.settings.precision
        if vllm is None:
            return TransformersEngine(self.folder(), precision=precision, devices=self.devices)
        vllm = vllm.model_copy(update={"tensor_parallel": self.devices})
        return VLLMEngine(self.folder(), vllm, device_memory=self.device_memory, precision=precision)

    def open(self) -> None:
        self._engine = self.make_engine()
        self._engine.open(chat=self.chats)

    def load(self, device: str) -> None:
        self._engine.load(device)
        self.drop_folder()

    def respond(self, batch: Sequence[Any], draws: Sequence[Draw]) -> Sequence[Reply | Exception]:
        replies: dict[int, Reply | Exception] = {}
        requests: dict[int, TextRequest] = {}
        for index, (stimulus, draw) in enumerate(zip(batch, draws, strict=True)):
            try:
                if (fixed := self._fixed_reply(stimulus, draw)) is not None:
                    replies[index] = fixed
                else:
                    requests[index] = self.fitted_request(stimulus, draw)
            except AnswerError as error:
                replies[index] = error
        assert isinstance(self._engine, TransformersEngine)
        texts = self._engine.generate_batch([*requests.values()], [draws[index].seed for index in requests])
        for (index, request), text in zip(requests.items(), texts, strict=True):
            if isinstance(text, GeneratedText):
                replies[index] = self._reply(batch[index], draws[index], request, text)
            else:
                replies[index] = text
        return [replies[index] for index in range(len(batch))]

    def close(self) -> None:
        self._engine.close()
        super().close()

    def _adapted(self, stimulus: Any, request: TextRequest) -> TextRequest:
        """With random weights all texts have the most tokens."""
        if not self.random:
            return request
        return replace(request, sampling=replace(request.sampling, min_tokens=request.sampling.max_tokens, stops=()))


# agents that converse


class TextSettings(BaseSettings):
    """Which replies are drawn again."""

    min_words: int = Field(1, ge=0, le=1000)
    """A message of fewer words is drawn again while attempts are left."""
    attempts: int = Field(6, ge=1, le=100)
    """How often a message or a word is drawn; the last short message is kept, unless it has no word."""


class DrawnSettings(TextSettings):
    """How text is drawn; the papers' choices."""

    top_p: float = Field(1.0, gt=0, le=1)
    """Only the likeliest tokens that have this mass together."""
    top_k: int = Field(0, ge=0, le=1_000_000)
    """Only the so many likeliest tokens; 0: all."""
    frequency_penalty: float = Field(2.0, ge=-2, le=2)
    """Taken from the logit of a token for each time that the message has it."""
    presence_penalty: float = Field(2.0, ge=-2, le=2)
    """Taken from the logit of a token that the message has."""
    max_tokens: int = Field(60, ge=1, le=4096)
    """The most tokens of a message."""

    @model_validator(mode="after")
    def _temperature_divides(self) -> DrawnSettings:
        for name in type(self).model_fields:
            if name.endswith("temperature") and 0 < getattr(self, name) < 0.01:
                raise ValueError(f"{name} is 0, which takes the likeliest token, or at least 0.01")
        return self

    def sampling(self, temperature: float, max_tokens: int) -> Sampling:
        """These settings with a temperature and a limit."""
        return Sampling(
            temperature=temperature,
            top_p=self.top_p,
            top_k=self.top_k,
            frequency_penalty=self.frequency_penalty,
            presence_penalty=self.presence_penalty,
            max_tokens=max_tokens,
        )


class WordSettings(BaseSettings):
    """How a model answers cue words."""

    word_tokens: int = Field(10, ge=1, le=4096)
    """The most tokens of a reply in word association; models that reason before they answer need many more."""
    word_rules: RuleSettings = RuleSettings()
    """Which words of a reply may be the answer."""


T = TypeVar("T", bound=TextSettings)


class TextAgent(EngineAgent[T]):
    """Base of the agents that converse, by :meth:`_turn`, and :meth:`_word` for cue words."""

    tasks: ClassVar[tuple[Task, ...]] = ("conversation",)

    def __init__(self, settings: T, name: str) -> None:
        super().__init__(settings, name)
        if not self.random:  # whose texts nobody judges
            self.attempts = settings.attempts
            self.filters = (self._too_short,)

    @abstractmethod
    def _turn(self, stimulus: ConversationStimulus, draw: Draw, history: Sequence[Utterance]) -> TextRequest:
        """The request for the next message."""

    def _word(self, stimulus: WordStimulus, draw: Draw) -> TextRequest:
        raise TypeError(f"{type(self).__name__} answers no cue words")

    def _dialogue(self, stimulus: ConversationStimulus, draw: Draw, history: Sequence[Utterance]) -> TextRequest:
        raise TypeError(f"{type(self).__name__} writes no dialogues")

    def _earlier(self, stimulus: ConversationStimulus, draw: Draw) -> Sequence[Utterance]:
        return stimulus.history

    def _message(self, stimulus: ConversationStimulus, text: str, draw: Draw) -> str:
        return spoken(stimulus, text, *prompts.speakers(stimulus, draw.options))

    def _cuts(self, stimulus: ConversationStimulus) -> bool:
        return False

    def _too_short(self, stimulus: Stimulus, reply: Reply) -> Verdict | None:
        return too_short(stimulus, reply, self.settings.min_words, self.settings.attempts)

    def fitted_request(self, stimulus: Stimulus, draw: Draw) -> TextRequest:
        """Without the oldest messages if there is no room. Raises AnswerError."""
        if isinstance(stimulus, WordStimulus):
            return self._adapted(stimulus, self._word(stimulus, draw))
        assert isinstance(stimulus, ConversationStimulus)
        history, say = self._earlier(stimulus, draw), self._listener(stimulus, draw)
        is_dialogue = "pseudo" in draw.options

        def without(left_out: int) -> TextRequest:
            request = (self._dialogue if is_dialogue else self._turn)(stimulus, draw, history[left_out:])
            if is_dialogue:
                most = min(request.sampling.max_tokens, self._engine.half_of_positions())
                request = replace(request, sampling=replace(request.sampling, max_tokens=most))
            return replace(self._adapted(stimulus, request), say=say, left_out=left_out)

        def fits(left_out: int) -> bool:
            return self._engine.excess(without(left_out)) == 0

        most, request = max(len(history) - 1, 0), without(0)
        excess = self._engine.excess(request)
        if excess and most:
            request = without(bisect_left(range(most), True, lo=1, key=fits))
            excess = self._engine.excess(request) if request.left_out == most else 0
        return replace(request, cut=excess)

    def _listener(self, stimulus: ConversationStimulus, draw: Draw) -> Callable[[str], None] | None:
        """None where a filter, cut or burst may change the message."""
        say = draw.say
        is_whole = stimulus.type == "MM" or stimulus.mode == "burst" or "pseudo" in draw.options
        if say is None or is_whole or self._cuts(stimulus):
            return None

        def listen(text: str) -> None:
            if not may_change(text):
                # What a capital sigma is in small letters depends on the next letter.
                say(self._message(stimulus, text.rstrip("\u03a3"), draw))

        return listen

    def _reply(self, stimulus: Stimulus, draw: Draw, request: TextRequest, text: GeneratedText) -> Reply:
        raw: dict[str, Any] | None = text.record() if isinstance(text, ServerText) else None
        if isinstance(stimulus, WordStimulus):
            assert isinstance(self.settings, WordSettings)
            word = word_answer(stimulus, text.text, self.settings.word_rules, cut=text.finish == "length")
            return Reply(word, raw or text.text)
        assert isinstance(stimulus, ConversationStimulus)
        if raw is None:
            raw = {
                "text": text.text,
                "temperature": round(request.sampling.temperature, 4),
                "prompt_tokens": text.prompt_tokens,
                "tokens": text.tokens,
                "messages_left_out": request.left_out,
                "tokens_cut": request.cut,
            }
        raw["attempt"] = draw.attempt
        if "pseudo" not in draw.options:
            message = self._message(stimulus, text.text, draw)
        else:
            message, raw["pseudo"] = pseudo_dialogue.written(request, text.text), True
        finish = f"{text.finish}; prompt cut" if request.left_out or request.cut else text.finish
        return Reply(TurnAnswer(text=message, raw=text.raw, finish=finish), raw)
