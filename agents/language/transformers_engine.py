"""The text engine that runs models of transformers: in batches, every row as if it were alone.

Each row has its own seed, temperature, penalties, stops and limits. Rows are drawn by :class:`agents.sampling.Sampler`;
beam search, greedy with one beam, is transformers' own, without any draw. Rows of a batch are padded, on the left where
the model goes on with its prompt and on the right where it encodes it, and masked; only prompts within a quarter of
each other's length are padded together. What is left of the batch in float32 is rounding: sums over a padded length
are taken in another order, which moves a logit by some 1e-6 of its size and turns a draw about as often.

A prompt that is too long for the model loses its beginning; :meth:`TransformersEngine.excess` tells beforehand.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agents.errors import AnswerError, UnavailableError
from agents.language.asking import Asked, Said, Sampling
from agents.loading import dtype_for, load_part, load_pretrained

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor
    from transformers import GenerationConfig

    from agents.language.endings import Ending

CHUNK = 64  # rows of one call, beams not counted
# What Llama's templates take for today where they are told nothing, so that a prompt is the same tomorrow.
TODAY = "26 Jul 2024"


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


class TransformersEngine:
    """One model of transformers from a local ``folder``.

    ``template`` (Jinja) says how a chat is written where it is not to be the tokenizer's own. With ``beams`` a row's
    temperature, top-k, top-p and penalties have no part, and its stops only cut the text.
    """

    def __init__(
        self, folder: Path, *, precision: str = "auto", beams: Beams | None = None, template: str | None = None
    ) -> None:
        self.folder = folder
        self._precision = precision
        self._beams = beams
        self._template = template
        self._model: Any = None

    def open(self, *, chat: bool = False) -> None:
        """Load the tokenizer. Raises UnavailableError; for ``chat`` also if nothing says how a chat is written."""
        from transformers import AutoConfig, AutoTokenizer

        config = load_part(AutoConfig, self.folder, "configuration")
        self._tokenizer = load_part(AutoTokenizer, self.folder, "tokenizer")
        self._encodes = bool(config.is_encoder_decoder)
        self._positions: int | None = getattr(config, "max_position_embeddings", None)
        added = {token: piece for token, piece in self._tokenizer.added_tokens_decoder.items() if piece.special}
        self._special = frozenset(added) | frozenset(self._tokenizer.all_special_ids)
        self._marks = sorted({piece.content for piece in added.values()} | set(self._tokenizer.all_special_tokens))
        if self._beams is not None and self._beams.no_repeat_ngram and not self._encodes:
            raise UnavailableError(f"{self.folder}: only models with an encoder take no_repeat_ngram")
        if chat and not (self._template or self._tokenizer.chat_template):
            raise UnavailableError(
                f"the tokenizer in {self.folder} has no chat template: the model was not trained to chat; use it as a "
                "completion model, or name a checkpoint that was"
            )
        self._takes_system = chat and self._shows_system()

    def load(self, device: str) -> None:
        """Load the model. Raises UnavailableError."""
        import torch
        from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM, GenerationConfig

        self._device = torch.device(device)
        self._dtype = dtype_for(self._precision, self._device)
        cls = AutoModelForSeq2SeqLM if self._encodes else AutoModelForCausalLM
        model = load_pretrained(cls, self.folder, self._device, self._dtype)
        own = model.generation_config
        ends = {self._tokenizer.eos_token_id, *_several(own.eos_token_id)} - {None}
        if not ends:
            raise UnavailableError(f"{self.folder}: neither the tokenizer nor the model names an end token")
        self._ends = sorted(ends)
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

    def excess(self, asked: Asked) -> int:
        """How many tokens the prompt has that the model has no position for (0: it fits), beside ``max_tokens``."""
        return max(0, len(self._tokens(asked)) - self._room(asked.sampling))

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

    # prompts

    def _row(self, place: int, asked: Asked, seed: int) -> Row:
        tokens = self._tokens(asked)
        if max(tokens) >= self._size:
            raise AnswerError("bad_prompt", "the tokenizer has tokens that the model has no embedding for")
        room = self._room(asked.sampling)
        if room < 1 or (self._encodes and self._positions and asked.sampling.max_tokens > self._positions):
            raise AnswerError(
                "no_room", f"the model has {self._positions} positions, too few for {asked.sampling.max_tokens} tokens"
            )
        if len(tokens) > room:
            tokens = tokens[len(tokens) - room :]
        return Row(place, seed, asked.sampling, tokens)

    def _room(self, sampling: Sampling) -> int:
        """How many tokens a prompt may have."""
        if not self._positions:
            return 1 << 31
        return self._positions if self._encodes else self._positions - sampling.max_tokens

    def _tokens(self, asked: Asked) -> list[int]:
        """The prompt's tokens, at least one. Special ones are the template's and the tokenizer's own: what looks like
        one in the text is taken out, as it could end a message or begin another speaker's."""
        if asked.prompt is not None:
            text = self._plain(asked.prompt)
            tokens: list[int] = self._tokenizer(text, add_special_tokens=not self._encodes, verbose=False)["input_ids"]
            if self._encodes:
                tokens = [*tokens, self._tokenizer.eos_token_id]
        else:
            tokens = self._tokenizer(self._written(asked), add_special_tokens=False, verbose=False)["input_ids"]
        if tokens:
            return tokens
        start = self._tokenizer.bos_token_id
        return [self._tokenizer.eos_token_id if start is None else start]

    def _written(self, asked: Asked) -> str:
        """A chat as the template writes it, up to where the model begins."""
        if any(message.image is not None for message in asked.messages):
            raise AnswerError("no_images", "this engine reads no images")
        messages = [{"role": one.role, "content": self._plain(one.text)} for one in asked.messages]
        if not self._takes_system and len(messages) > 1 and messages[0]["role"] == "system":
            system, first, *others = messages
            messages = [{"role": first["role"], "content": f"{system['content']}\n\n{first['content']}"}, *others]
        elif not self._takes_system and messages and messages[0]["role"] == "system":
            messages[0]["role"] = "user"
        return self._template_text(messages)

    def _template_text(self, messages: list[dict[str, str]]) -> str:
        from jinja2 import TemplateError

        try:
            text: str = self._tokenizer.apply_chat_template(
                messages,
                chat_template=self._template,
                add_generation_prompt=True,
                tokenize=False,
                date_string=TODAY,
            )
        except (TemplateError, ValueError, TypeError) as error:
            raise AnswerError("bad_prompt", f"the chat template refuses this chat: {error}") from None
        return text

    def _shows_system(self) -> bool:
        """Whether the template takes a system message and writes it."""
        try:
            text = self._template_text([{"role": "system", "content": "PROBE"}, {"role": "user", "content": "Hi"}])
        except AnswerError:
            return False
        return "PROBE" in text

    def _plain(self, text: str) -> str:
        """The text without anything that the tokenizer would read as a special token."""
        before = None
        while before != text:
            before = text
            for mark in self._marks:
                text = text.replace(mark, "")
        return text

    # batches

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

        from agents.language.endings import AtLeast, Ending
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

        from agents.language.endings import Ending
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
        from agents.language.endings import first_stop

        length, finish = ending.lengths[index], ending.finishes[index]
        text = self._decode(tokens[:length])
        cut = first_stop(text, row.sampling.stops, ending.floor(index, tokens))
        if cut is not None:
            text, finish = text[:cut], "stop"
        elif finish == "length":
            text = text.rstrip("\ufffd")  # a character whose last bytes were not said
        raw = str(self._tokenizer.decode(tokens[:length], clean_up_tokenization_spaces=False))
        return Said(text, finish, raw, len(row.prompt), length)

    def _decode(self, tokens: Sequence[int]) -> str:
        kept = [token for token in tokens if token not in self._special]
        return str(self._tokenizer.decode(kept, clean_up_tokenization_spaces=False))


def _warp(sampling: Sampling) -> Any:
    from agents.sampling import Warp

    return Warp(
        sampling.temperature,
        sampling.top_k,
        sampling.top_p,
        sampling.frequency_penalty,
        sampling.presence_penalty,
    )


def _several(value: int | Sequence[int] | None) -> list[int]:
    if value is None:
        return []
    return [value] if isinstance(value, int) else list(value)
