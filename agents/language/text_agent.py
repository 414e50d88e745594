"""What agents have in common that run a language model here: a stimulus becomes a request, an engine generates a text,
the text becomes a reply.

A family's file says which request is made of a conversation (:meth:`TextAgent._turn`) and of a cue word
(:meth:`TextAgent._word`). transformers is asked in batches (``respond``); vLLM, which batches by itself, one at a time
(``respond_one``).
"""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, TypeVar

from pydantic import Field, model_validator

from agents import checkpoints
from agents.answers import TurnAnswer
from agents.contract import Draw, Reply, Verdict
from agents.errors import AnswerError
from agents.language.engines.local import LocalEngine
from agents.language.engines.request import GeneratedText, Sampling, TextRequest
from agents.language.engines.transformers import TransformersEngine
from agents.language.engines.vllm import VLLMEngine, VLLMSettings
from agents.language.engines.vllm import missing as missing_vllm
from agents.language.truncation import says_too_little
from agents.language.words.replies import word_answer
from agents.language.words.rules import RuleSettings
from agents.pretrained import PretrainedAgent, PretrainedSettings
from agents.stimuli import ConversationStimulus, Stimulus, Task, Utterance, WordStimulus


class TextSettings(PretrainedSettings):
    """How a model is run, and which replies are asked for again."""

    precision: Literal["auto", "fp32", "bf16", "fp16"] = "auto"
    """fp32 gives the same answers for any batch; auto: fp32 on CPU, bf16 on CUDA."""
    min_words: int = Field(1, ge=0, le=1000)
    """A message of fewer words is asked for again while attempts are left."""
    attempts: int = Field(6, ge=1, le=100)
    """How often a message or a word is asked for; the last short message is kept, unless it has no word at all."""


class DrawnSettings(TextSettings):
    """How text is drawn, in the words of OpenAI and vLLM."""

    temperature: float = Field(1.0, ge=0, le=2)
    """Divides the logits; 0 takes the likeliest token."""
    top_p: float = Field(1.0, gt=0, le=1)
    """Only the likeliest tokens that have this mass together."""
    top_k: int = Field(0, ge=0, le=1_000_000)
    """Only the so many likeliest tokens; 0: all."""
    frequency_penalty: float = Field(0.0, ge=-2, le=2)
    """Taken from the logit of a token for each time that the message has it."""
    presence_penalty: float = Field(0.0, ge=-2, le=2)
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
        """These settings for one text, with a temperature and a limit of its own."""
        return Sampling(
            temperature=temperature,
            top_p=self.top_p,
            top_k=self.top_k,
            frequency_penalty=self.frequency_penalty,
            presence_penalty=self.presence_penalty,
            max_tokens=max_tokens,
        )


class PromptedSettings(DrawnSettings):
    """What runs a model that is told what to do, how it is asked for words, and which words may be answers."""

    engine: Literal["transformers", "vllm"] = "transformers"
    """What runs the model."""
    vllm: VLLMSettings = VLLMSettings()
    """How vLLM runs it, where that is the engine."""
    word_tokens: int = Field(10, ge=1, le=4096)
    """The most tokens of a reply in word association."""
    word_rules: RuleSettings = RuleSettings()
    """Which words of a reply may be the answer."""


T = TypeVar("T", bound=TextSettings)


@dataclass(frozen=True, slots=True)
class FittedRequest:
    """A request for which the model has positions. ``left_out``: so many of the oldest messages are not in it;
    ``cut``: so many tokens of its beginning are dropped, if even the newest message alone is too long."""

    request: TextRequest
    left_out: int = 0
    cut: int = 0


class TextAgent(PretrainedAgent[T]):
    """Base of the agents that converse. A family gives :meth:`_turn`, and :meth:`_word` if it answers cue words."""

    tasks: ClassVar[tuple[Task, ...]] = ("conversation",)
    extra = "language"
    packages = ("torch", "transformers")
    needs = ("config.json", checkpoints.WEIGHTS, checkpoints.TOKENIZER)
    chats: ClassVar[bool] = True  # whether a request is messages, for the template, or a text to be continued

    def __init__(self, settings: T, name: str) -> None:
        super().__init__(settings, name)
        if not self.random:  # whose texts nobody judges
            self.attempts = settings.attempts
            self.filters = (self._says_too_little,)
        vllm = self._vllm()
        if vllm is not None:
            self.max_in_flight = vllm.sequences
            self.memory += vllm.cache()
            weights = max(0, self.device_memory - self.working_memory)
            self.devices = vllm.tensor_parallel
            self.device_memory += vllm.cache() - weights + weights // vllm.tensor_parallel  # of each GPU

    def _vllm(self) -> VLLMSettings | None:
        """How vLLM is to run the model; None where it does not."""
        settings = self.settings
        if not isinstance(settings, PromptedSettings) or settings.engine != "vllm":
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

    def respond(self, batch: Sequence[Stimulus], draws: Sequence[Draw]) -> Sequence[Reply | Exception]:
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
            return VLLMEngine(self.folder(), vllm, device_memory=self.device_memory, precision=self.settings.precision)
        return TransformersEngine(self.folder(), precision=self.settings.precision)

    @abstractmethod
    def _turn(self, stimulus: ConversationStimulus, draw: Draw, history: Sequence[Utterance]) -> TextRequest:
        """The request for the next message after ``history``, the newest part of the stimulus's."""

    def _word(self, stimulus: WordStimulus, draw: Draw) -> TextRequest:
        """The request for a word."""
        raise TypeError(f"{type(self).__name__} answers no cue words")

    def _unasked(self, stimulus: Stimulus, draw: Draw) -> Reply | None:
        """The reply, where the model is not asked for it."""
        return None

    def _message(self, stimulus: ConversationStimulus, text: str, draw: Draw) -> str:
        """The message that is sent, made from what the model said."""
        return " ".join(text.split())

    # requests and replies

    def fitted_request(self, stimulus: Stimulus, draw: Draw) -> FittedRequest:
        """The request, without the oldest messages if the model has no room for all. Raises AnswerError."""
        if isinstance(stimulus, WordStimulus):
            return FittedRequest(self._fixed_length(self._word(stimulus, draw)))
        assert isinstance(stimulus, ConversationStimulus)
        history = stimulus.history

        def request(left_out: int) -> TextRequest:
            return self._fixed_length(self._turn(stimulus, draw, history[left_out:]))

        def fits(left_out: int) -> bool:
            return self._engine.excess(request(left_out)) == 0

        most = max(len(history) - 1, 0)
        left_out = 0 if fits(0) else bisect_left(range(most), True, key=fits)
        fitted = request(left_out)
        return FittedRequest(fitted, left_out, self._engine.excess(fitted) if left_out == most else 0)

    def _fixed_length(self, request: TextRequest) -> TextRequest:
        """Of random weights all texts have the most tokens, so that speed can be measured."""
        if not self.random:
            return request
        sampling = replace(request.sampling, min_tokens=request.sampling.max_tokens, stops=())
        return replace(request, sampling=sampling)

    def _reply(self, stimulus: Stimulus, draw: Draw, fitted: FittedRequest, text: GeneratedText) -> Reply:
        if isinstance(stimulus, WordStimulus):
            assert isinstance(self.settings, PromptedSettings)
            return Reply(word_answer(stimulus, text.text, self.settings.word_rules), text.text)
        assert isinstance(stimulus, ConversationStimulus)
        is_cut = bool(fitted.left_out or fitted.cut)
        answer = TurnAnswer(
            text=self._message(stimulus, text.text, draw),
            raw=text.raw,
            finish=f"{text.finish}; prompt cut" if is_cut else text.finish,
        )
        about = {
            "text": text.text,
            "attempt": draw.attempt,
            "temperature": round(fitted.request.sampling.temperature, 4),
            "prompt_tokens": text.prompt_tokens,
            "tokens": text.tokens,
            "messages_left_out": fitted.left_out,
            "tokens_cut": fitted.cut,
        }
        return Reply(answer, about)

    def _says_too_little(self, stimulus: Stimulus, reply: Reply) -> Verdict | None:
        return says_too_little(stimulus, reply, self.settings.min_words, self.attempts)
