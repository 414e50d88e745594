"""What agents that say text have in common: a request is made, an engine is asked, what it said becomes a reply.

``_request`` turns a stimulus and a draw into what an engine is asked, ``_reply`` what it said into a reply. An engine
in batches is asked in ``respond``; vLLM, which batches by itself, in ``respond_one`` with the same two.
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
from agents.language import turns
from agents.language.engines.local import LocalEngine
from agents.language.engines.request import Asked, Said
from agents.language.engines.transformers import TransformersEngine
from agents.language.engines.vllm import VLLMEngine, VLLMSettings
from agents.language.engines.vllm import missing as missing_vllm
from agents.pretrained import PretrainedAgent, PretrainedSettings
from agents.stimuli import ConversationStimulus, Stimulus, Task, Utterance


class TextSettings(PretrainedSettings):
    """How a model is run, and which replies are asked for again."""

    precision: Literal["auto", "fp32", "bf16", "fp16"] = "auto"
    """fp32 gives the same answers for any batch; auto: fp32 on CPU, bf16 on CUDA."""
    min_words: int = Field(1, ge=0, le=1000)
    """A message of fewer words is asked for again while attempts are left."""
    attempts: int = Field(7, ge=1, le=100)
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
        if 0 < self.temperature < 0.01:
            raise ValueError("temperature is 0, which takes the likeliest token, or at least 0.01")
        return self


T = TypeVar("T", bound=TextSettings)


@dataclass(frozen=True, slots=True)
class Request:
    """What an engine is asked. ``left_out``: so many of the oldest messages, for which the model has no positions;
    ``cut``: so many tokens of the prompt's beginning, if even the newest message alone is too long."""

    asked: Asked
    left_out: int = 0
    cut: int = 0


class TextAgent(PretrainedAgent[T]):
    """Base of the agents that converse. One gives :meth:`_turn`."""

    tasks: ClassVar[tuple[Task, ...]] = ("conversation",)
    extra = "language"
    packages = ("torch", "transformers")
    needs = ("config.json", checkpoints.WEIGHTS, checkpoints.TOKENIZER)
    chats: ClassVar[bool] = True  # whether what is asked are messages, for the template, or a text to be continued

    def __init__(self, settings: T, name: str) -> None:
        super().__init__(settings, name)
        if not self.random:  # whose texts nobody judges
            self.attempts = settings.attempts
            self.filters = (self._too_few_words,)
        vllm = self._vllm()
        if vllm is not None:
            self.max_in_flight = vllm.sequences
            self.memory += vllm.cache()
            weights = max(0, self.device_memory - self.working_memory)
            self.devices = vllm.tensor_parallel
            self.device_memory += vllm.cache() - weights + weights // vllm.tensor_parallel  # of each GPU

    def _vllm(self) -> VLLMSettings | None:
        """How vLLM is to run the model; None where it does not, or the agent has no such choice."""
        chosen: VLLMSettings | None = getattr(self.settings, "vllm", None)
        if chosen is None or getattr(self.settings, "engine", None) != "vllm":
            return None
        return chosen.model_copy(update={"load_format": "dummy"}) if self.random else chosen

    def continuous(self) -> bool:
        return self._vllm() is not None

    def missing(self) -> str | None:
        return super().missing() or (missing_vllm() if self.continuous() else None)

    def bytes_per_weight(self) -> int:
        return 4 if self.settings.precision == "fp32" else 2

    # what runs, in the order of the contract

    def open(self) -> None:
        self._engine = self._make_engine()
        self._engine.open(chat=self.chats)

    def load(self, device: str) -> None:
        self._engine.load(device)
        self.drop_folder()

    def respond(self, batch: Sequence[Stimulus], draws: Sequence[Draw]) -> Sequence[Reply | Exception]:
        replies: dict[int, Reply | Exception] = {}
        requests: dict[int, Request] = {}
        for place, (stimulus, draw) in enumerate(zip(batch, draws, strict=True)):
            try:
                requests[place] = self._asked(stimulus, draw)
            except AnswerError as error:
                replies[place] = error
        asked = [request.asked for request in requests.values()]
        assert isinstance(self._engine, TransformersEngine)
        said = self._engine.generate(asked, [draws[place].seed for place in requests])
        for (place, request), one in zip(requests.items(), said, strict=True):
            replies[place] = self._reply(batch[place], draws[place], request, one) if isinstance(one, Said) else one
        return [replies[place] for place in range(len(batch))]

    async def respond_one(self, prepared: Any, draw: Draw) -> Reply:
        request = self._asked(prepared, draw)
        assert isinstance(self._engine, VLLMEngine)
        said = await self._engine.generate(request.asked, draw.seed)
        return self._reply(prepared, draw, request, said)

    def provenance(self) -> dict[str, Any]:
        return {**super().provenance(), **self._engine.provenance()}

    def close(self) -> None:
        self._engine.close()
        super().close()

    # what a family gives

    def _make_engine(self) -> LocalEngine:
        vllm = self._vllm()
        if vllm is not None:
            return VLLMEngine(self.folder(), vllm, device_memory=self.device_memory, precision=self.settings.precision)
        return TransformersEngine(self.folder(), precision=self.settings.precision)

    @abstractmethod
    def _turn(self, stimulus: ConversationStimulus, draw: Draw, history: Sequence[Utterance]) -> Asked:
        """What is asked for the next message after ``history``, the newest part of the stimulus's."""

    def _message(self, text: str, draw: Draw) -> str:
        """The message that is sent, made from what the model said."""
        return " ".join(text.split())

    # requests and replies

    def _asked(self, stimulus: Stimulus, draw: Draw) -> Request:
        """The request as it is put to the engine: of random weights all texts have the most tokens."""
        request = self._request(stimulus, draw)
        if not self.random:
            return request
        sampling = request.asked.sampling
        fixed = replace(sampling, min_tokens=sampling.max_tokens, stops=())
        return replace(request, asked=replace(request.asked, sampling=fixed))

    def _request(self, stimulus: Stimulus, draw: Draw) -> Request:
        """What is asked, without the oldest messages if the model has no room for all. Raises AnswerError."""
        assert isinstance(stimulus, ConversationStimulus)
        history = stimulus.history

        def fits(left_out: int) -> bool:
            return self._engine.excess(self._turn(stimulus, draw, history[left_out:])) == 0

        most = max(len(history) - 1, 0)
        left_out = 0 if fits(0) else bisect_left(range(most), True, key=fits)
        asked = self._turn(stimulus, draw, history[left_out:])
        return Request(asked, left_out, self._engine.excess(asked) if left_out == most else 0)

    def _reply(self, stimulus: Stimulus, draw: Draw, request: Request, said: Said) -> Reply:
        is_cut = bool(request.left_out or request.cut)
        answer = TurnAnswer(
            text=self._message(said.text, draw),
            raw=said.raw,
            finish=f"{said.finish}; prompt cut" if is_cut else said.finish,
        )
        about = {
            "text": said.text,
            "attempt": draw.attempt,
            "temperature": round(request.asked.sampling.temperature, 4),
            "prompt_tokens": said.prompt_tokens,
            "tokens": said.tokens,
            "messages_left_out": request.left_out,
            "tokens_cut": request.cut,
        }
        return Reply(answer, about)

    def _too_few_words(self, stimulus: Stimulus, reply: Reply) -> Verdict | None:
        """The filter of replies that say too little; how many words a message has counts before it is cut."""
        return turns.too_few_words(reply, self.settings.min_words, self.attempts)
