"""Engines of models in a local folder. In float32 a batch changes a row's logits by about 1e-6."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from agents.errors import AnswerError, UnavailableError
from agents.language.engines import reasoning
from agents.language.engines.text_request import UNLIMITED, Engine, Finish, GeneratedText, Sampling, TextRequest
from agents.loading import dtype_for, load_part, load_pretrained

if TYPE_CHECKING:
    from pathlib import Path

CHUNK = 64  # rows of a call, beams not counted
PROMPT_END = 8  # tokens that may begin the reasoning
TODAY = "26 Jul 2024"  # Llama's templates take this date by default: a prompt is the same tomorrow


class LocalEngine(Engine):
    """A local model. ``template`` (Jinja) is for chats; ``positions`` limits prompt and reply together."""

    _size: int  # of the vocabulary that has embeddings

    def __init__(self, folder: Path, *, template: str | None = None, positions: int | None = None) -> None:
        self.folder = folder
        self._template = template
        self._limit = positions

    def open(self, *, chat: bool = False) -> None:
        """Load the tokenizer. Raises UnavailableError, for ``chat`` without a chat template."""
        from transformers import AutoConfig, AutoTokenizer

        self._config = load_part(AutoConfig, self.folder, "configuration")
        self._tokenizer = load_part(AutoTokenizer, self.folder, "tokenizer")
        self._encodes = bool(self._config.is_encoder_decoder)
        limits = (getattr(self._config, "max_position_embeddings", None), self._limit)
        self._positions: int | None = min(filter(None, limits), default=None)
        added = {token: piece for token, piece in self._tokenizer.added_tokens_decoder.items() if piece.special}
        self._special = frozenset(added) | frozenset(self._tokenizer.all_special_ids)
        self._marks = sorted({piece.content for piece in added.values()} | set(self._tokenizer.all_special_tokens))
        if chat and not (self._template or self._tokenizer.chat_template):
            raise UnavailableError(
                f"the tokenizer in {self.folder} has no chat template: the model was not trained to chat; use it as a "
                "completion model, or name a checkpoint that was"
            )
        self._takes_system = chat and self._writes_system()

    @abstractmethod
    def load(self, device: str) -> None:
        """Load the model. Raises UnavailableError."""

    @abstractmethod
    def close(self) -> None:
        """Release the model."""

    def half_of_positions(self) -> int:
        return (self._positions or UNLIMITED) // 2

    def excess(self, request: TextRequest) -> int:
        return max(0, len(self.tokens(request)) - self._room(request.sampling))

    def fitted_tokens(self, request: TextRequest) -> list[int]:
        """The prompt's newest tokens that fit the model. Raises AnswerError."""
        tokens = self.tokens(request)
        if max(tokens) >= self._size:
            raise AnswerError("bad_prompt", "the tokenizer has tokens that the model has no embedding for")
        most, room = request.sampling.limit, self._room(request.sampling)
        if room < 1 or (self._encodes and self._positions and most > self._positions):
            raise AnswerError("no_room", f"the model has {self._positions} positions, too few for {most} tokens")
        return tokens[max(0, len(tokens) - room) :]

    def tokens(self, request: TextRequest) -> list[int]:
        """The prompt's tokens, without special tokens in texts. Raises AnswerError."""
        is_chat = request.prompt is None
        text = self._chat_text(request) if is_chat else self._plain(request.prompt or "")
        with_special = not is_chat and not self._encodes
        tokens: list[int] = self._tokenizer(text, add_special_tokens=with_special, verbose=False)["input_ids"]
        if not is_chat and self._encodes:
            tokens = [*tokens, self._tokenizer.eos_token_id]
        start = self._tokenizer.bos_token_id
        return tokens or [self._tokenizer.eos_token_id if start is None else start]

    def _end_tokens(self, model_ends: int | Sequence[int] | None) -> list[int]:
        ends: Iterable[int | None] = model_ends if isinstance(model_ends, Sequence) else [model_ends]
        known = {self._tokenizer.eos_token_id, *ends} - {None}
        if not known:
            raise UnavailableError(f"{self.folder}: neither the tokenizer nor the model names an end token")
        return sorted(known)

    def _room(self, sampling: Sampling) -> int:
        if not self._positions:
            return UNLIMITED
        return self._positions if self._encodes else self._positions - sampling.limit

    def _chat_text(self, request: TextRequest) -> str:
        if any(message.image is not None for message in request.messages):
            raise AnswerError("no_images", "this engine reads no images")
        messages = [{"role": message.role, "content": self._plain(message.text)} for message in request.messages]
        if not self._takes_system and messages and messages[0]["role"] == "system":
            system, *messages = messages
            if messages:
                messages[0]["content"] = f"{system['content']}\n\n{messages[0]['content']}"
            else:
                messages = [{**system, "role": "user"}]
        return self._template_text(messages, thinks=request.sampling.reasoning_tokens > 0)

    def _template_text(self, messages: list[dict[str, str]], *, thinks: bool = False) -> str:
        from jinja2 import TemplateError

        try:
            text: str = self._tokenizer.apply_chat_template(
                messages,
                chat_template=self._template,
                add_generation_prompt=True,
                tokenize=False,
                date_string=TODAY,
                enable_thinking=thinks,
                thinking=thinks,  # as DeepSeek's and Granite's templates call it
            )
        except (TemplateError, ValueError, TypeError) as error:
            raise AnswerError("bad_prompt", f"the chat template refuses this chat: {error}") from None
        return text

    def _writes_system(self) -> bool:
        try:
            text = self._template_text([{"role": "system", "content": "PROBE"}, {"role": "user", "content": "Hi"}])
        except AnswerError:
            return False
        return "PROBE" in text

    def _plain(self, text: str) -> str:
        before = None
        while before != text:  # removing a mark may join the halves of another
            before = text
            for mark in self._marks:
                text = text.replace(mark, "")
        return text

    def _begun(self, prompt: Sequence[int]) -> str:
        return reasoning.begun(self._decode_all(prompt[-PROMPT_END:]))

    def _parted(self, begun: str, tokens: Sequence[int]) -> tuple[str | None, str | None]:
        """(reasoning or None, answer or None within the reasoning), without special tokens."""
        raw = self._decode_all(tokens)
        thought, answer = reasoning.parted(begun + raw)
        if thought is not None:
            return self._plain(thought).strip() or None, None if answer is None else self._plain(answer).lstrip()
        if self._special.isdisjoint(tokens):
            return None, raw
        return None, self._decode_all([token for token in tokens if token not in self._special])

    def _settled_answer(self, begun: str, tokens: Sequence[int]) -> str:
        """The answer so far, for listeners and stops."""
        _, answer = self._parted(begun, tokens)
        return "" if answer is None or reasoning.may_begin(answer) else answer

    def _decode_all(self, tokens: Sequence[int]) -> str:
        return str(self._tokenizer.decode(list(tokens), clean_up_tokenization_spaces=False))


class PromptRow(NamedTuple):
    """A text's place in the batch, and its prompt's tokens."""

    place: int
    seed: int
    request: TextRequest
    prompt: list[int]


class TransformersEngine(LocalEngine):
    """A model in turn on ``devices`` GPUs. ``beams`` are options of a beam search, without temperature, top-k, top-p
    and penalties; its stops only cut the text."""

    def __init__(
        self,
        folder: Path,
        *,
        precision: str = "auto",
        beams: Mapping[str, Any] | None = None,
        template: str | None = None,
        devices: int = 1,
    ) -> None:
        super().__init__(folder, template=template)
        self._precision = precision
        self._beams = beams
        self._devices = devices
        self._model: Any = None

    def load(self, device: str) -> None:
        import torch
        from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM, GenerationConfig

        self._device = torch.device(device)
        self._dtype = dtype_for(self._precision, self._device, self.folder)
        cls = AutoModelForSeq2SeqLM if self._encodes else AutoModelForCausalLM
        model = load_pretrained(cls, self.folder, self._device, self._dtype, self._devices)
        stored = model.generation_config
        self._ends = self._end_tokens(stored.eos_token_id)
        self._size = int(model.get_input_embeddings().weight.shape[0])
        # Nothing else of the checkpoint's generation_config.json counts: every choice is a setting. Padding is an end
        # token, which no text has before its end: rules on repetition never meet it.
        model.generation_config = GenerationConfig(
            bos_token_id=stored.bos_token_id,
            eos_token_id=self._ends,
            pad_token_id=self._ends[0],
            decoder_start_token_id=stored.decoder_start_token_id,
        )
        self._model = model

    def generate_batch(self, batch: Sequence[TextRequest], seeds: Sequence[int]) -> list[GeneratedText | Exception]:
        """A text, or the AnswerError, for each request."""
        import torch

        texts: dict[int, GeneratedText | Exception] = {}
        rows: list[PromptRow] = []
        for index, (request, seed) in enumerate(zip(batch, seeds, strict=True)):
            try:
                rows.append(PromptRow(index, seed, request, self.fitted_tokens(request)))
            except AnswerError as error:
                texts[index] = error
        with torch.inference_mode():
            for group in self._grouped(rows):
                texts.update(zip([row.place for row in group], self._generate_together(group), strict=True))
        return [texts[index] for index in range(len(batch))]

    def provenance(self) -> dict[str, Any]:
        return {
            "engine": "transformers",
            "model": type(self._model).__name__,
            "tokenizer": type(self._tokenizer).__name__,
            "dtype": str(self._dtype).removeprefix("torch."),
            "attention": self._model.config._attn_implementation,
            **({"gpus": self._devices} if self._devices > 1 else {}),
        }

    def close(self) -> None:
        self._model = None

    # batches

    def _grouped(self, rows: Iterable[PromptRow]) -> list[list[PromptRow]]:
        """At most :data:`CHUNK` rows a group, with equal least tokens."""
        groups: dict[tuple[int, ...], list[PromptRow]] = {}
        for row in sorted(rows, key=lambda row: (len(row.prompt), row.place)):
            sampling = row.request.sampling
            most = 0 if self._beams is None else sampling.limit
            length = 0 if self._device.type == "cuda" else int(math.log(len(row.prompt), 1.25))
            groups.setdefault((length, sampling.min_tokens, most), []).append(row)
        return [
            group[start : start + CHUNK] for _, group in sorted(groups.items()) for start in range(0, len(group), CHUNK)
        ]

    def _generate_together(self, rows: Sequence[PromptRow]) -> list[GeneratedText | Exception]:
        from transformers import GenerationConfig, LogitsProcessorList, StoppingCriteriaList

        from agents.language.engines.stopping import NoRepeats, RowEnds
        from agents.padding import padded, ready_masks
        from agents.sampling import Finite, Sampler, Warp
        from agents.transfer import downloaded

        # An encoder's positions count from the first token, padded or not; a decoder's are counted by the mask.
        side: Literal["left", "right"] = "right" if self._encodes else "left"
        prompts, mask, is_padded = padded([row.prompt for row in rows], self._ends[0], self._device, side=side)
        positions = {} if self._encodes else {"position_ids": (mask.cumsum(1) - 1).clamp(min=0)}
        start = 1 if self._encodes else prompts.shape[1]
        samplings = [row.request.sampling for row in rows]
        least, most = samplings[0].min_tokens, max(sampling.limit for sampling in samplings)
        search: dict[str, Any] = dict(self._beams or {})
        search["forced_eos_token_id"] = self._ends if search.get("forced_eos_token_id") else None
        begun = [self._begun(row.prompt) for row in rows]
        requests = [row.request for row in rows]

        def answer(row: int, tokens: Sequence[int]) -> str:
            return self._settled_answer(begun[row], tokens)

        row_ends = RowEnds(requests, self._ends, start, answer, self._device)
        finite = Finite(len(rows), normalised=search.get("num_beams", 1) > 1)
        processors: list[Any] = [finite]
        if self._beams is None:
            warps = [
                Warp(each.temperature, each.top_k, each.top_p, each.frequency_penalty, each.presence_penalty)
                for each in samplings
            ]
            processors.append(Sampler([row.seed for row in rows], warps))
        if (size := search.pop("no_repeat_ngram_size", 0)) > 0:
            processors.append(NoRepeats(size, prompts))
        with ready_masks(self._model, padded=is_padded), self._shared_sources() as cached:
            generated = self._model.generate(
                input_ids=prompts,
                attention_mask=mask,
                **positions,
                **cached,
                generation_config=GenerationConfig(
                    do_sample=False, max_new_tokens=most, min_new_tokens=least or None, **search
                ),
                logits_processor=LogitsProcessorList(processors),
                stopping_criteria=StoppingCriteriaList([row_ends] if self._beams is None else []),
            )
        tokens, bad = downloaded([generated[:, start:], finite.bad])
        return [
            AnswerError("bad_logits", "the model's logits were no numbers (NaN or infinite)")
            if is_bad
            else self._text(row, begun[place], row_ends.kept(place, generated_tokens))
            for place, (row, generated_tokens, is_bad) in enumerate(
                zip(rows, tokens.tolist(), bad.tolist(), strict=True)
            )
        ]

    @contextmanager
    def _shared_sources(self) -> Iterator[dict[str, Any]]:
        """Arguments by which beams share a source."""
        from agents.padding import shared_cache, shared_sources

        width = (self._beams or {}).get("num_beams", 1)
        if not self._encodes or width == 1:
            yield {}
            return
        layers = [layer.encoder_attn for layer in self._model.get_decoder().layers]
        with shared_sources(layers, "key_value_states", width):
            yield {"past_key_values": shared_cache(self._model.config)}

    def _text(self, row: PromptRow, begun: str, tokens: list[int]) -> GeneratedText | AnswerError:
        end = next((index for index, token in enumerate(tokens) if token in self._ends), None)
        tokens = tokens[:end]
        thought, text = self._parted(begun, tokens)
        if text is None:
            return reasoning.unfinished(row.request.sampling.limit)
        stop = row.request.sampling.stop_in(text)
        # Without a stop, a character whose last bytes are missing is dropped.
        text = text.rstrip("\ufffd") if stop is None else text[:stop]
        finish: Finish = "length" if end is None and stop is None else "stop"
        return GeneratedText(text, finish, self._decode_all(tokens), len(row.prompt), len(tokens), thought)
