"""The text engine that runs models of transformers: in batches, every row as if it were alone.

Each row has its own seed, temperature, penalties, stops and limits. Rows are drawn by :class:`agents.sampling.Sampler`;
beam search, greedy with one beam, is transformers' own, without any draw. Rows of a batch are padded, on the left where
the model goes on with its prompt and on the right where it encodes it, and masked; only prompts within a quarter of
each other's length are padded together. What is left of the batch in float32 is rounding: sums over a padded length
are taken in another order, which moves a logit by some 1e-6 of its size and turns a draw about as often.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agents.errors import AnswerError, UnavailableError
from agents.language.engines.local import LocalEngine
from agents.language.engines.request import Asked, Said, Sampling
from agents.loading import dtype_for, load_pretrained

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor
    from transformers import GenerationConfig

    from agents.language.engines.stopping import Ending

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
class Row:
    """One text to generate: its place in the batch, its seed, and the prompt's tokens, which fit the model."""

    place: int
    seed: int
    sampling: Sampling
    prompt: list[int]


class TransformersEngine(LocalEngine):
    """One model of transformers. With ``beams`` a row's temperature, top-k, top-p and penalties have no part, and its
    stops only cut the text."""

    def __init__(
        self, folder: Path, *, precision: str = "auto", beams: Beams | None = None, template: str | None = None
    ) -> None:
        super().__init__(folder, template=template)
        self._precision = precision
        self._beams = beams
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
        self._dtype = dtype_for(self._precision, self._device)
        cls = AutoModelForSeq2SeqLM if self._encodes else AutoModelForCausalLM
        model = load_pretrained(cls, self.folder, self._device, self._dtype)
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

    def generate(self, batch: Sequence[Asked], seeds: Sequence[int]) -> list[Said | Exception]:
        """One text for each; an AnswerError in its place for one that the model cannot be asked or has no answer to."""
        import torch

        found: dict[int, Said | Exception] = {}
        rows: list[Row] = []
        for place, (asked, seed) in enumerate(zip(batch, seeds, strict=True)):
            try:
                rows.append(self._row(place, asked, seed))
            except AnswerError as error:
                found[place] = error
        with torch.inference_mode():
            for alike in self._grouped(rows):
                said = self._search(alike) if self._beams is not None else self._draw(alike)
                found.update({row.place: one for row, one in zip(alike, said, strict=True)})
        return [found[place] for place in range(len(batch))]

    def provenance(self) -> dict[str, Any]:
        """What ran."""
        return {
            "engine": "transformers",
            "model": type(self._model).__name__,
            "tokenizer": type(self._tokenizer).__name__,
            "dtype": str(self._dtype).removeprefix("torch."),
        }

    def close(self) -> None:
        """Release the model."""
        self._model = None

    # batches

    def _row(self, place: int, asked: Asked, seed: int) -> Row:
        return Row(place, seed, asked.sampling, self._fitted(asked))

    def _grouped(self, rows: Iterable[Row]) -> list[list[Row]]:
        """Rows that go through the model together: of similar length, at most :data:`CHUNK`, sorted so that little is
        padded; in beam search of the same limits, which there are the search's own."""
        alike: dict[tuple[int, ...], list[Row]] = {}
        for row in sorted(rows, key=lambda row: (len(row.prompt), row.place)):
            limits = () if self._beams is None else (row.sampling.min_tokens, row.sampling.max_tokens)
            alike.setdefault((int(math.log(len(row.prompt), 1.25)), *limits), []).append(row)
        return [
            group[start : start + CHUNK] for _, group in sorted(alike.items()) for start in range(0, len(group), CHUNK)
        ]

    def _inputs(self, rows: Sequence[Row]) -> dict[str, Tensor]:
        import torch
        from torch.nn.utils.rnn import pad_sequence

        # An encoder's positions count from the first token, padded or not; a decoder's are counted by the mask.
        side = "right" if self._encodes else "left"
        prompts = [torch.tensor(row.prompt, device=self._device) for row in rows]
        mask = pad_sequence([torch.ones_like(prompt) for prompt in prompts], batch_first=True, padding_side=side)
        inputs = {
            "input_ids": pad_sequence(prompts, batch_first=True, padding_value=self._pad, padding_side=side),
            "attention_mask": mask,
        }
        if not self._encodes:
            inputs["position_ids"] = (mask.cumsum(1) - 1).clamp(min=0)
        return inputs

    def _draw(self, rows: Sequence[Row]) -> list[Said | Exception]:
        """Texts drawn by their rows' seeds; the likeliest tokens where the temperature is 0."""
        from transformers import LogitsProcessorList, StoppingCriteriaList

        from agents.language.engines.stopping import AtLeast, Ending
        from agents.sampling import Finite, Sampler

        inputs = self._inputs(rows)
        start = 1 if self._encodes else inputs["input_ids"].shape[1]
        finite = Finite(len(rows), normalised=False)
        least = AtLeast([row.sampling.min_tokens for row in rows], self._ends, start)
        sampler = Sampler([row.seed for row in rows], [_warp(row.sampling) for row in rows])
        ending = Ending([row.sampling for row in rows], self._ends, start, self._decode)
        done = self._model.generate(
            **inputs,
            generation_config=self._config(max(row.sampling.max_tokens for row in rows)),
            logits_processor=LogitsProcessorList([finite, least, sampler]),
            stopping_criteria=StoppingCriteriaList([ending]),
        )
        return self._said(rows, done[:, start:].tolist(), finite.bad.tolist(), ending)

    def _search(self, rows: Sequence[Row]) -> list[Said | Exception]:
        """The best beam of each row; all have the same limits."""
        import torch
        from torch.nn.utils.rnn import pad_sequence
        from transformers import EncoderNoRepeatNGramLogitsProcessor, LogitsProcessorList

        from agents.language.engines.stopping import Ending
        from agents.sampling import Finite

        assert self._beams is not None
        inputs = self._inputs(rows)
        start = 1 if self._encodes else inputs["input_ids"].shape[1]
        finite = Finite(len(rows), normalised=self._beams.width > 1)
        chain: list[Any] = [finite]
        if self._beams.no_repeat_ngram:
            # Padding is no part of the prompt: -1 is no token.
            prompts: Any = pad_sequence([torch.tensor(row.prompt) for row in rows], batch_first=True, padding_value=-1)
            chain.append(EncoderNoRepeatNGramLogitsProcessor(self._beams.no_repeat_ngram, prompts))
        sampling = rows[0].sampling
        done = self._model.generate(
            **inputs,
            generation_config=self._config(sampling.max_tokens, sampling.min_tokens, self._beams),
            logits_processor=LogitsProcessorList(chain),
        )
        tokens = done[:, start:].tolist()
        ending = Ending([row.sampling for row in rows], self._ends, 0, self._decode)
        ending.read(tokens)
        return self._said(rows, tokens, finite.bad.tolist(), ending)

    def _config(self, most: int, least: int = 0, beams: Beams | None = None) -> GenerationConfig:
        from transformers import GenerationConfig

        if beams is None:
            return GenerationConfig(do_sample=False, num_beams=1, max_new_tokens=most)
        wide = beams.width > 1
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

    # texts

    def _said(
        self, rows: Sequence[Row], tokens: list[list[int]], bad: Sequence[bool], ending: Ending
    ) -> list[Said | Exception]:
        return [
            AnswerError("bad_logits", "the model's logits were no numbers (NaN or infinite)")
            if bad[index]
            else self._text(row, tokens[index], ending, index)
            for index, row in enumerate(rows)
        ]

    def _text(self, row: Row, tokens: list[int], ending: Ending, index: int) -> Said:
        from agents.language.engines.stopping import first_stop

        length, finish = ending.lengths[index], ending.finishes[index]
        text = self._decode(tokens[:length])
        cut = first_stop(text, row.sampling.stops, ending.floor(index, tokens))
        if cut is not None:
            text, finish = text[:cut], "stop"
        else:
            text = text.rstrip("\ufffd")  # a character whose last bytes were not said
        return Said(text, finish, self._raw(tokens[:length]), len(row.prompt), length)


def _warp(sampling: Sampling) -> Any:
    from agents.sampling import Warp

    return Warp(
        sampling.temperature,
        sampling.top_k,
        sampling.top_p,
        sampling.frequency_penalty,
        sampling.presence_penalty,
    )
