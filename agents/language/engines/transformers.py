"""The engine of transformers. In float32 a batch changes a row's logits by about 1e-6, which changes no draw but by
chance."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from agents.errors import AnswerError
from agents.language.engines.batches import MOST_TOKENS, TOKENS_PER_STEP, cheapest, common_start
from agents.language.engines.chat_template import DATE
from agents.language.engines.local import LocalEngine
from agents.language.engines.pictures import joined, samples
from agents.language.engines.text_request import GeneratedText, Sampling, TextRequest
from agents.models.loading import dtype_for, load_pretrained

if TYPE_CHECKING:
    import datetime
    from pathlib import Path

    from torch import Tensor
    from transformers import GenerationConfig

    from agents.language.engines.probing import Joining


class PromptRow(NamedTuple):
    """A text of a batch on its way to the model."""

    place: int
    """Its place in the batch."""
    seed: int
    """The seed of its draws."""
    request: TextRequest
    """What is asked."""
    prompt: list[int]
    """The prompt's tokens."""
    inputs: dict[str, Tensor] | None = None
    """The model's inputs, where the prompt has pictures."""


class TransformersEngine(LocalEngine):
    """A model that transformers knows, also one of pictures with text. ``devices`` GPUs hold its layers in turn.

    ``beams`` are options of a beam search. Such a search has no temperature, top-k, top-p and penalties, and its stops
    only cut the text.
    """

    sees = True

    def __init__(
        self,
        folder: Path,
        *,
        precision: str = "auto",
        beams: Mapping[str, Any] | None = None,
        template: str | None = None,
        devices: int = 1,
        date: datetime.date = DATE,
    ) -> None:
        super().__init__(folder, template=template, date=date)
        self._precision = precision
        self._beams = beams
        self._devices = devices
        self._model: Any = None
        self._generate: Any = None

    def load(self, device: str) -> None:
        """Load the model, and measure which prompts it may read together. Raises UnavailableError.

        Nothing of the checkpoint's generation_config.json counts but the tokens that begin and end a text: every choice
        is a setting of the agent's.
        """
        import torch
        from transformers import GenerationConfig

        self._device = torch.device(device)
        kind = "cpu" if self._device.type == "cpu" else "cuda"
        self._per_step = TOKENS_PER_STEP[kind]
        self._most_tokens = MOST_TOKENS[kind]
        self._dtype = dtype_for(self._precision, self._device, self.folder)
        model = load_pretrained(self._auto_class(), self.folder, self._device, self._dtype, self._devices)
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
        self._joining = self._measured()

    def _auto_class(self) -> Any:
        import transformers as library

        kinds = [(library.AutoModelForCausalLM, library.MODEL_FOR_CAUSAL_LM_MAPPING)]
        if self._encodes:
            kinds = [(library.AutoModelForSeq2SeqLM, library.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING)]
        pictured = (library.AutoModelForImageTextToText, library.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING)
        kinds = [*kinds, pictured] if self._reader is None else [pictured]
        return next((cls for cls, configurations in kinds if type(self._config) in configurations), kinds[0][0])

    def generate_batch(self, batch: Sequence[TextRequest], seeds: Sequence[int]) -> list[GeneratedText | Exception]:
        """For each request a text, or the AnswerError that came of it."""
        import torch

        texts: dict[int, GeneratedText | Exception] = {}
        rows: list[PromptRow] = []
        for index, (request, seed) in enumerate(zip(batch, seeds, strict=True)):
            try:
                rows.append(self._row(index, seed, request))
            except AnswerError as error:
                texts[index] = error
        with torch.inference_mode():
            for group in self._grouped(rows):
                texts.update(zip([row.place for row in group], self._generate_together(group), strict=True))
        self._forget()
        return [texts[index] for index in range(len(batch))]

    def _row(self, place: int, seed: int, request: TextRequest) -> PromptRow:
        """What the model reads for ``request``: its tokens and pictures. Raises AnswerError."""
        tokens = self.fitted_tokens(request)
        pictures = request.pictures()
        inputs = self._reader.inputs(self._chat_text(request), pictures) if self._reader and pictures else None
        return PromptRow(place, seed, request, tokens, inputs)

    def _forget(self) -> None:
        if self._reader is not None:
            self._reader.forget()

    def provenance(self) -> dict[str, Any]:
        """The classes of model and tokenizer, the type of numbers, the way of attention, and what is not batched."""
        provenance = {
            "engine": "transformers",
            "model": type(self._model).__name__,
            "tokenizer": type(self._tokenizer).__name__,
            "dtype": str(self._dtype).removeprefix("torch."),
            "attention": self._model.config._attn_implementation,
        }
        if self._devices > 1:
            provenance["gpus"] = self._devices
        if not self._joining.pads:
            provenance["batches"] = "of prompts of equal length"
        if self._reader and not self._joining.pictures:
            provenance["pictures"] = "singly"
        return provenance

    def close(self) -> None:
        """Let the model go."""
        self._model = self._generate = None

    # batches

    def _grouped(self, rows: Iterable[PromptRow]) -> list[list[PromptRow]]:
        """Rows of a group have equal least tokens."""
        alike: dict[tuple[int, ...], list[PromptRow]] = {}
        for row in rows:
            sampling = row.request.sampling
            joins = self._joining
            most = 0 if self._beams is None else sampling.limit
            if row.inputs is None:
                apart = 0 if joins.pads else len(row.prompt)
            else:
                apart = -1 if joins.pictures else -2 - row.place
            alike.setdefault((sampling.min_tokens, most, apart), []).append(row)
        parts = [cheapest(rows, self._per_step, self._most_tokens) for rows in alike.values()]
        return list(chain.from_iterable(parts))

    def _inputs(self, rows: Sequence[PromptRow], shared: int = 0) -> tuple[dict[str, Any], bool]:
        """A model's inputs, and whether they are padded; what it makes of the first ``shared`` tokens is among them."""
        from agents.models.padding import continued, padded

        parts = [row.inputs for row in rows if row.inputs is not None]
        if parts:
            return joined(parts, self._ends[0], self._device, self._dtype), len({len(row.prompt) for row in rows}) > 1
        # An encoder's positions count from the first token, padded or not; a decoder's are counted by the mask.
        side: Literal["left", "right"] = "right" if self._encodes else "left"
        rest = [row.prompt[shared:] for row in rows]
        prompts, mask, is_padded = padded(rest, self._ends[0], self._device, side=side)
        if shared:
            return continued(self._model, rows[0].prompt[:shared], prompts, mask), is_padded
        return {"input_ids": prompts, "attention_mask": mask}, is_padded

    def _shared(self, rows: Sequence[PromptRow]) -> int:
        """How many first tokens the prompts share and the model reads once; 0 where that does not pay."""
        config = self._config.get_text_config(decoder=True)
        rope = getattr(config, "rope_parameters", None) or {}
        rotations = "original_max_position_embeddings"
        limits = [getattr(config, name, None) for name in ("sliding_window", "attention_chunk_size", rotations)]
        longest = max(len(row.prompt) + row.request.sampling.limit for row in rows)
        # Padding within a prompt makes its distances longer, and rotations may change with the length.
        if longest > min(filter(None, [*limits, rope.get(rotations)]), default=longest):
            return 0
        shared = common_start([row.prompt for row in rows])
        return shared if shared * (len(rows) - 1) > self._per_step else 0

    def _measured(self) -> Joining:
        from transformers import GenerationConfig, GenerationMixin, LogitsProcessorList

        from agents.language.engines.probing import STEPS, Joining, joining

        config = GenerationConfig(do_sample=False, max_new_tokens=STEPS)

        def generate(rows: Sequence[PromptRow], is_ready: bool, shares: bool, reader: Any) -> None:
            inputs, is_padded = self._inputs(rows, common_start([row.prompt for row in rows]) if shares else 0)
            with self._masks(is_padded, is_ready):
                self._generate(**inputs, generation_config=config, logits_processor=LogitsProcessorList([reader]))

        sampling = Sampling(max_tokens=STEPS)
        texts = self._rows([TextRequest(text, sampling=sampling) for text in ("Well, how are you today?", "Well, how")])
        chats = [TextRequest(messages=(message,), sampling=sampling) for message in samples()]
        pictures = [] if self._reader is None else self._rows(chats)
        # Janus's own method drops what reads the logits.
        for method in (self._model.generate, partial(GenerationMixin.generate, self._model)):
            self._generate = method
            result = joining(generate, texts, pictures, self._dtype)
            if result != Joining():
                break
        self._forget()
        return result

    def _rows(self, requests: Sequence[TextRequest]) -> list[PromptRow]:
        """The rows of all requests; none where one of them cannot be made."""
        try:
            return [self._row(place, 0, request) for place, request in enumerate(requests)]
        except AnswerError:
            return []

    def _generate_together(self, rows: Sequence[PromptRow]) -> list[GeneratedText | Exception]:
        """Texts of a group, in order, by one call of ``generate``; an AnswerError in place of a text that failed."""
        from transformers import LogitsProcessorList, StoppingCriteriaList

        from agents.language.engines.stopping import RowEnds
        from agents.models.sampling import Finite
        from agents.models.transfer import downloaded

        shares = self._joining.shares and self._beams is None and self._reader is None
        inputs, is_padded = self._inputs(rows, self._shared(rows) if shares else 0)
        start = 1 if self._encodes else inputs["input_ids"].shape[1]
        begun = [self._begun(row.prompt) for row in rows]
        requests = [row.request for row in rows]

        def answer(row: int, tokens: Sequence[int]) -> tuple[str, bool]:
            return self._settled(begun[row], tokens)

        row_ends = RowEnds(requests, self._ends, start, answer, self._device, reads_all=bool(self._form.ends))
        finite = Finite(len(rows), normalised=self._width() > 1)
        is_ready = self._joining.ready_masks and rows[0].inputs is None
        with self._masks(is_padded, is_ready), self._shared_sources() as cached:
            generated = self._generate(
                **inputs,
                **cached,
                generation_config=self._config_of(rows),
                logits_processor=LogitsProcessorList([finite, *self._rules(rows, inputs["input_ids"])]),
                stopping_criteria=StoppingCriteriaList([row_ends] if self._beams is None else []),
            )
        tokens, bad = downloaded([generated[:, start:], finite.bad])
        texts: list[GeneratedText | Exception] = []
        for index, row in enumerate(rows):
            if bool(bad[index]):
                texts.append(AnswerError("bad_logits", "the model's logits were no numbers (NaN or infinite)"))
            else:
                kept = row_ends.kept(index, tokens[index].tolist())
                texts.append(self._text(row, begun[index], kept))
        return texts

    def _width(self) -> int:
        """How many beams a search keeps; 1 where texts are drawn."""
        width: int = (self._beams or {}).get("num_beams", 1)
        return width

    def _config_of(self, rows: Sequence[PromptRow]) -> GenerationConfig:
        """The options of a group's call. Sampling is this project's own rule, so ``do_sample`` is off."""
        from transformers import GenerationConfig

        search: dict[str, Any] = dict(self._beams or {})
        search.pop("no_repeat_ngram_size", None)  # a rule of this project does it, for the prompt's tokens too
        search["forced_eos_token_id"] = self._ends if search.get("forced_eos_token_id") else None
        samplings = [row.request.sampling for row in rows]
        return GenerationConfig(
            do_sample=False,
            max_new_tokens=max(sampling.limit for sampling in samplings),
            min_new_tokens=samplings[0].min_tokens or None,
            **search,
        )

    def _rules(self, rows: Sequence[PromptRow], prompts: Tensor) -> list[Any]:
        """What changes the logits of a group's call: the draws of a sampling, or a beam search's rule on repetition."""
        from agents.language.engines.stopping import NoRepeats
        from agents.models.sampling import Sampler, Warp

        rules: list[Any] = []
        if self._beams is None:
            samplings = [row.request.sampling for row in rows]
            warps = [
                Warp(
                    sampling.temperature,
                    sampling.top_k,
                    sampling.top_p,
                    sampling.frequency_penalty,
                    sampling.presence_penalty,
                )
                for sampling in samplings
            ]
            rules.append(Sampler([row.seed for row in rows], warps))
        if (size := (self._beams or {}).get("no_repeat_ngram_size", 0)) > 0:
            rules.append(NoRepeats(size, prompts))
        return rules

    def _masks(self, is_padded: bool, is_ready: bool) -> AbstractContextManager[None]:
        from agents.models.padding import ready_masks

        return ready_masks(self._model, padded=is_padded) if is_ready else nullcontext()

    @contextmanager
    def _shared_sources(self) -> Iterator[dict[str, Any]]:
        """Arguments by which beams share a source."""
        from agents.models.padding import shared_cache, shared_sources

        width = self._width()
        if not self._encodes or width == 1:
            yield {}
            return
        layers = [layer.encoder_attn for layer in self._model.get_decoder().layers]
        with shared_sources(layers, "key_value_states", width):
            yield {"past_key_values": shared_cache(self._model.config)}

    def _text(self, row: PromptRow, begun: str, tokens: list[int]) -> GeneratedText | AnswerError:
        end = next((index for index, token in enumerate(tokens) if token in self._ends), None)
        sampling = row.request.sampling
        is_full = end is None and len(tokens) >= sampling.limit
        try:
            return self._generated(tokens[:end], begun, sampling, len(row.prompt), is_full=is_full)
        except AnswerError as error:
            return error
