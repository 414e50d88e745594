"""The text engine that runs models of transformers: in batches, every row as if it were alone.

Each row has its own seed, temperature, penalties, stops and limits. Rows are drawn by :class:`agents.sampling.Sampler`;
beam search, greedy with one beam, is transformers' own, without any draw. Rows of a batch are padded, on the left where
the model goes on with its prompt and on the right where it encodes it, and masked. On the CPU only prompts within a
quarter of each other's length are padded together; on a GPU, to which a step costs the same for any of them, all are.
What is left of the batch in float32 is rounding: sums over a padded length are taken in another order, which moves a
logit by some 1e-6 of its size and turns a draw about as often.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from agents.errors import AnswerError, UnavailableError
from agents.language.engines.local import LocalEngine
from agents.language.engines.request import Finish, GeneratedText, Sampling, TextRequest
from agents.loading import dtype_for, load_pretrained

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor
    from transformers import GenerationConfig

    from agents.language.engines.stopping import Streamer

CHUNK = 64  # rows of one call, beams not counted


@dataclass(frozen=True, slots=True)
class Beams:
    """Beam search, in transformers' words. ``no_repeat_ngram``: no sequence of so many tokens stands twice in the text,
    nor in the text and the prompt; for models with an encoder. ``forced_end``: a text that reaches its limit ends with
    the end token there."""

    width: int
    length_penalty: float = 1.0
    early_stopping: bool = False
    no_repeat_ngram: int = 0
    forced_end: bool = False


@dataclass(frozen=True, slots=True)
class PromptRow:
    """One text to generate: its index in the batch, its seed, the prompt's tokens, which fit the model, and who
    listens."""

    index: int
    seed: int
    sampling: Sampling
    prompt: list[int]
    say: Callable[[str], None] | None = None


class TransformersEngine(LocalEngine):
    """One model of transformers, its layers one after the other on ``devices`` GPUs. With ``beams`` a row's
    temperature, top-k, top-p and penalties have no part, and its stops only cut the text."""

    def __init__(
        self,
        folder: Path,
        *,
        precision: str = "auto",
        beams: Beams | None = None,
        template: str | None = None,
        devices: int = 1,
    ) -> None:
        super().__init__(folder, template=template)
        self._precision = precision
        self._beams = beams
        self._devices = devices
        self._model: Any = None

    def open(self, *, chat: bool = False) -> None:
        super().open(chat=chat)
        if self._beams is not None and self._beams.no_repeat_ngram and not self._encodes:
            raise UnavailableError(f"{self.folder}: only models with an encoder take no_repeat_ngram")

    def load(self, device: str) -> None:
        """Load the model. Raises UnavailableError."""
        import torch
        from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM, GenerationConfig

        self._device = torch.device(device)
        self._dtype = dtype_for(self._precision, self._device, self.folder)
        cls = AutoModelForSeq2SeqLM if self._encodes else AutoModelForCausalLM
        model = load_pretrained(cls, self.folder, self._device, self._dtype, self._devices)
        own = model.generation_config
        self._ends = self._end_tokens(own.eos_token_id)
        self._size = int(model.get_input_embeddings().weight.shape[0])
        pad = self._tokenizer.pad_token_id
        self._pad: int = self._ends[0] if pad is None or pad >= self._size else pad
        # What else the checkpoint's generation_config.json says is dropped: every choice is a setting.
        model.generation_config = GenerationConfig(
            bos_token_id=own.bos_token_id,
            eos_token_id=self._ends,
            pad_token_id=self._pad,
            decoder_start_token_id=own.decoder_start_token_id,
        )
        self._model = model

    def generate(self, batch: Sequence[TextRequest], seeds: Sequence[int]) -> list[GeneratedText | Exception]:
        """One text for each; an AnswerError in its place for one that the model cannot be asked or has no answer to."""
        import torch

        found: dict[int, GeneratedText | Exception] = {}
        rows: list[PromptRow] = []
        for index, (request, seed) in enumerate(zip(batch, seeds, strict=True)):
            try:
                rows.append(PromptRow(index, seed, request.sampling, self.fitted_tokens(request), request.say))
            except AnswerError as error:
                found[index] = error
        with torch.inference_mode():
            for alike in self._grouped(rows):
                texts = self._generate_together(alike)
                found.update({row.index: text for row, text in zip(alike, texts, strict=True)})
        return [found[index] for index in range(len(batch))]

    def provenance(self) -> dict[str, Any]:
        """What ran."""
        return {
            "engine": "transformers",
            "model": type(self._model).__name__,
            "tokenizer": type(self._tokenizer).__name__,
            "dtype": str(self._dtype).removeprefix("torch."),
            "attention": self._model.config._attn_implementation,
            **({"gpus": self._devices} if self._devices > 1 else {}),
        }

    def close(self) -> None:
        """Release the model."""
        self._model = None

    # batches

    def _grouped(self, rows: Iterable[PromptRow]) -> list[list[PromptRow]]:
        """Rows that go through the model together: at most :data:`CHUNK`, sorted so that little is padded, on the CPU
        of similar length; in beam search of the same limits, which there are the search's own."""
        alike: dict[tuple[int, ...], list[PromptRow]] = {}
        for row in sorted(rows, key=lambda row: (len(row.prompt), row.index)):
            limits = () if self._beams is None else (row.sampling.min_tokens, row.sampling.max_tokens)
            length = 0 if self._device.type == "cuda" else int(math.log(len(row.prompt), 1.25))
            alike.setdefault((length, *limits), []).append(row)
        return [
            group[start : start + CHUNK] for _, group in sorted(alike.items()) for start in range(0, len(group), CHUNK)
        ]

    def _generate_together(self, rows: Sequence[PromptRow]) -> list[GeneratedText | Exception]:
        """Texts drawn by their rows' seeds (the likeliest tokens at temperature 0), or each row's best beam."""
        from transformers import LogitsProcessorList, StoppingCriteriaList

        from agents.language.engines.stopping import MinTokens, RowEnds
        from agents.padding import padded, ready_masks
        from agents.sampling import Finite, Sampler
        from agents.transfer import downloaded

        # An encoder's positions count from the first token, padded or not; a decoder's are counted by the mask.
        side: Literal["left", "right"] = "right" if self._encodes else "left"
        prompts, mask, is_padded = padded([row.prompt for row in rows], self._pad, self._device, side=side)
        positions = {} if self._encodes else {"position_ids": (mask.cumsum(1) - 1).clamp(min=0)}
        start = 1 if self._encodes else prompts.shape[1]
        samplings = [row.sampling for row in rows]
        row_ends = RowEnds(samplings, self._ends, start, self._decode, self._device)
        finite = Finite(len(rows), normalised=self._beams is not None and self._beams.width > 1)
        if self._beams is None:
            sampler = Sampler([row.seed for row in rows], [_warp(sampling) for sampling in samplings])
            chain: list[Any] = [finite, MinTokens(samplings, self._ends, start, self._device), sampler]
        else:
            chain = [finite, *self._no_repeats(prompts.masked_fill(mask == 0, -1))]
        with ready_masks(self._model, padded=is_padded), self._shared_sources() as cached:
            generated = self._model.generate(
                input_ids=prompts,
                attention_mask=mask,
                **positions,
                **cached,
                generation_config=self._config(samplings),
                logits_processor=LogitsProcessorList(chain),
                stopping_criteria=StoppingCriteriaList([row_ends] if self._beams is None else []),
                streamer=self._streamer(rows),
            )
        tokens, failed = downloaded([generated[:, start:], finite.bad])
        return [
            AnswerError("bad_logits", "the model's logits were no numbers (NaN or infinite)")
            if bad
            else self._text(row, row_ends.text(place, said))
            for place, (row, said, bad) in enumerate(zip(rows, tokens.tolist(), failed.tolist(), strict=True))
        ]

    def _streamer(self, rows: Sequence[PromptRow]) -> Streamer | None:
        """What tells the texts as they are generated, if anybody listens; a beam is known at its end alone."""
        if self._beams is not None or not any(row.say for row in rows):
            return None
        from agents.language.engines.stopping import Streamer

        return Streamer([row.say for row in rows], [row.sampling for row in rows], self._ends, self._decode)

    @contextmanager
    def _shared_sources(self) -> Iterator[dict[str, Any]]:
        """Arguments of ``generate`` by which a row's beams attend to one source, where the model has an encoder."""
        from agents.padding import shared_cache, shared_sources

        beams = 1 if self._beams is None else self._beams.width
        if not self._encodes or beams == 1:
            yield {}
            return
        across = [layer.encoder_attn for layer in self._model.get_decoder().layers]
        with shared_sources(across, "key_value_states", beams):
            yield {"past_key_values": shared_cache(self._model.config)}

    def _no_repeats(self, prompts: Tensor) -> list[Any]:
        """What keeps a beam from repeating its prompt, of ``prompts`` padded with -1, where the settings ask for it."""
        from agents.language.engines.stopping import NoPromptNGrams

        assert self._beams is not None
        size = self._beams.no_repeat_ngram
        return [NoPromptNGrams(size, prompts)] if size else []

    def _config(self, samplings: Sequence[Sampling]) -> GenerationConfig:
        from transformers import GenerationConfig

        beams, most = self._beams, max(sampling.max_tokens for sampling in samplings)
        if beams is None:
            return GenerationConfig(do_sample=False, num_beams=1, max_new_tokens=most)
        wide, least = beams.width > 1, samplings[0].min_tokens
        return GenerationConfig(
            do_sample=False,
            num_beams=beams.width,
            length_penalty=beams.length_penalty if wide else None,
            early_stopping=beams.early_stopping if wide else None,
            no_repeat_ngram_size=beams.no_repeat_ngram or None,
            forced_eos_token_id=self._ends if beams.forced_end else None,
            max_new_tokens=most,
            **({"min_new_tokens": least} if least else {}),
        )

    def _text(self, row: PromptRow, tokens: list[int]) -> GeneratedText:
        """The text of a row's tokens, up to its end token or its first stop."""
        from agents.language.engines.stopping import first_stop

        end = next((index for index, token in enumerate(tokens) if token in self._ends), None)
        tokens = tokens[:end]
        text = self._decode(tokens)
        stop = first_stop(tokens, row.sampling, self._decode)
        # Without a stop, a character whose last bytes were not said is left out.
        text = text.rstrip("\ufffd") if stop is None else text[:stop]
        is_over = end is not None or stop is not None
        finish: Finish = "stop" if is_over else "length"
        return GeneratedText(text, finish, self._decode_all(tokens), len(row.prompt), len(tokens))


def _warp(sampling: Sampling) -> Any:
    from agents.sampling import Warp

    return Warp(
        sampling.temperature,
        sampling.top_k,
        sampling.top_p,
        sampling.frequency_penalty,
        sampling.presence_penalty,
    )
