"""The base of all captioners."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from agents.answers import CaptionAnswer
from agents.contract import GIB, Declaration, Draw, Finding, Reply
from agents.errors import AnswerError, UnavailableError
from agents.models import model_folders
from agents.models.loading import dtype_for, load_part, load_pretrained, told_of_values, use_full_float32
from agents.models.pretrained import PretrainedAgent
from agents.stimuli import CaptionStimulus, ColorStimulus, ObjectStimulus, Stimulus
from agents.vision.captions import C, Flag, flags
from agents.vision.pixels import Prepared, check_shape
from agents.word_boundaries import count_words

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor
    from transformers import GenerationConfig


@dataclass(frozen=True, slots=True)
class CaptionRow:
    """``limit`` in words, ``attempt`` from 0."""

    image: int
    prompt: str
    seed: int | None = None
    limit: int | None = None
    attempt: int = 0


class LengthNorm(float):
    """transformers' ``n ** p`` becomes ((n + more) / unit) ** p, n with the end token, which a text of ``cut`` tokens
    lacks."""

    more: float
    unit: float
    cut: int

    def __new__(cls, penalty: float, *, more: float = 0, unit: float = 1, cut: int = 0) -> LengthNorm:
        norm = super().__new__(cls, penalty)
        norm.more = more
        norm.unit = unit
        norm.cut = cut
        return norm

    def __rpow__(self, length: int) -> float:  # type: ignore[override]
        return float(((length + (length == self.cut) + self.more) / self.unit) ** float(self))


class CaptionAgent(PretrainedAgent[C]):
    """A family gives :meth:`_encode`, :meth:`_generate` and its model class."""

    declares = Declaration(
        tasks=("image_captioning",),
        extra="vision",
        packages=("torch", "torchvision", "transformers"),
        memory=6 * GIB,
        device_memory=6 * GIB,
        batch_size=16,
    )
    needs = ("config.json", model_folders.WEIGHTS, model_folders.PROCESSOR, model_folders.TOKENIZER)
    model_class: ClassVar[str]
    keeps_end: ClassVar[bool] = False
    _pixels: Callable[[NDArray[np.uint8]], Prepared]  # set by ``open``
    _positions: tuple[int, int] | None = None  # for text, and those that its start and the image take; None: no limit

    def __init__(self, settings: C, name: str) -> None:
        super().__init__(settings, name)
        self._drawn = settings.decoding == "sample"
        self.width = 1 if self._drawn else settings.beams
        self._length_penalty = settings.length_penalty

    def declaration(self) -> Declaration:
        """With as many samples as beams, and what makes a caption be drawn again."""
        declared = super().declaration().replace(max_samples=None if self._drawn else self.settings.beams)
        if self.random:  # whose texts nobody judges
            return declared
        filters = tuple(partial(self._reject, flag) for flag in self.settings.reject)
        return declared.replace(attempts=self.settings.attempts, filters=filters)

    def bytes_per_weight(self) -> int:
        return 4 if self.settings.precision == "fp32" else 2

    def open(self) -> None:
        from transformers import AutoImageProcessor, AutoTokenizer

        self._images = load_part(AutoImageProcessor, self.folder(), "image processor", backend="pil")
        self._pixels = self._process
        self._tokenizer = load_part(AutoTokenizer, self.folder(), "tokenizer")

    def load(self, device: str) -> None:
        import torch

        self._device = torch.device(device)
        self._dtype = dtype_for(self.settings.precision, self._device, self.folder())
        use_full_float32(self._device.type)
        with told_of_values(self.folder()):
            self._model = self._load_model(self.folder())
        if self._device.type == "cuda" and self._dtype != torch.float32:
            self._model.to(memory_format=torch.channels_last)  # as tensor cores take convolutions
        self._special = frozenset(self._tokenizer.all_special_ids)
        self._check_positions()
        self.drop_folder()

    def prepare(self, stimulus: Stimulus) -> Prepared:
        """Raises ImageError, and AnswerError for an image that is too thin."""
        assert isinstance(stimulus, CaptionStimulus | ColorStimulus | ObjectStimulus)
        return self._pixels(stimulus.image.decode())

    def respond(self, batch: Sequence[Prepared], draws: Sequence[Draw]) -> Sequence[Reply | Exception]:
        import torch

        groups: dict[tuple[int, ...], list[int]] = {}
        for index, prepared in enumerate(batch):
            groups.setdefault(self._group_key(prepared), []).append(index)
        replies: dict[int, Reply | Exception] = {}
        with torch.inference_mode():
            for indices in groups.values():
                items = [batch[index] for index in indices]
                distinct = list({id(item): item for item in items}.values())  # samples of a stimulus share their item
                features = self._encode(distinct)
                answers = self._describe(distinct, features, items, [draws[index] for index in indices])
                replies.update(zip(indices, answers, strict=True))
        return [replies[index] for index in range(len(batch))]

    def provenance(self) -> dict[str, Any]:
        return {**super().provenance(), "dtype": str(self._dtype).removeprefix("torch.")}

    def close(self) -> None:
        self._model = None
        super().close()

    # what a family gives

    @abstractmethod
    def _encode(self, images: Sequence[Prepared]) -> Any:
        """The encoder's features, each image once."""

    @abstractmethod
    def _generate(self, features: Any, rows: Sequence[CaptionRow], options: dict[str, Any]) -> tuple[Any, int]:
        """(output of ``generate``, number of prompt tokens)."""

    def _load_model(self, folder: Path) -> Any:
        import transformers

        return load_pretrained(getattr(transformers, self.model_class), folder, self._device, self._dtype)

    def _row(self, image: int, prepared: Prepared, draw: Draw) -> CaptionRow:
        if not self._drawn:
            return CaptionRow(image, self.settings.prompt)
        return CaptionRow(image, self.settings.prompt, draw.seed, attempt=draw.attempt)

    def _rules(self) -> list[Any]:
        return []

    def _group_key(self, prepared: Prepared) -> tuple[int, ...]:
        """Equal for images that are encoded together."""
        return tuple(prepared["pixel_values"].shape)

    # what all families share

    def _process(self, pixels: NDArray[np.uint8]) -> Prepared:
        if getattr(self._images.size, "shortest_edge", None):
            check_shape(pixels)
        inputs = self._images(images=[pixels], input_data_format="channels_last", return_tensors="pt")
        return {name: values[0] for name, values in inputs.items()}

    def _check_positions(self) -> None:
        if self._positions is None:
            return
        chosen = self.settings
        (positions, taken) = self._positions
        prompt = len(self._ids(chosen.prompt))
        longest = chosen.max_tokens if chosen.count_prompt else taken + prompt + chosen.max_tokens
        if longest > positions or (chosen.count_prompt and chosen.max_tokens <= prompt + 1):
            raise UnavailableError(
                f"max_tokens {chosen.max_tokens} and a prompt of {prompt} tokens do not go together: the model has "
                f"{positions} positions"
            )

    def _describe(
        self, distinct: Sequence[Prepared], features: Any, items: Sequence[Prepared], draws: Sequence[Draw]
    ) -> list[Reply | Exception]:
        from transformers import LogitsProcessorList, SuppressTokensLogitsProcessor

        from agents.models.sampling import Finite, Sampler, Warp
        from agents.models.transfer import downloaded

        chosen = self.settings
        width = self.width
        index_of = {id(item): index for index, item in enumerate(distinct)}
        wanted = [self._row(index_of[id(item)], item, draw) for item, draw in zip(items, draws, strict=True)]
        # A single beam search serves all samples of a stimulus.
        rows = wanted if self._drawn else list(dict.fromkeys(wanted))
        row_index = list(range(len(rows))) if self._drawn else [rows.index(row) for row in wanted]
        ranks = [0 if self._drawn else draw.sample for draw in draws]
        returned = min(max(ranks) + 1, width)

        finite = Finite(len(rows), normalised=width > 1)
        chain: list[Any] = [finite]
        if self.random:  # all texts are as long as the settings allow
            never = self._special | self._ends | {self._pad}
            chain.append(SuppressTokensLogitsProcessor(never, device=str(self._device)))
        chain += self._rules()
        if self._drawn:
            warp = Warp(chosen.temperature, chosen.top_k, chosen.top_p)
            chain.append(Sampler([row.seed or 0 for row in rows], [warp] * len(rows)))
        options = {"generation_config": self._config(returned), "logits_processor": LogitsProcessorList(chain)}
        generated, before = self._generate(features, rows, options)

        outputs = [generated.sequences[:, before:], finite.bad]
        if width > 1:
            outputs.append(generated.sequences_scores)
        tokens, bad, *scores = (output.tolist() for output in downloaded(outputs))
        replies: list[Reply | Exception] = []
        for row, at, rank in zip(wanted, row_index, ranks, strict=True):
            if bad[at]:
                replies.append(AnswerError("bad_logits", "the model's logits were no numbers (NaN or infinite)"))
            elif rank >= width:
                text = f"sample {rank} is a beam of rank {rank}; beams is {width}"
                replies.append(AnswerError("too_few_beams", text))
            else:
                place = at * returned + rank
                replies.append(self._reply(tokens[place], round(scores[0][place], 4) if scores else None, row))
        return replies

    def _config(self, returned: int) -> GenerationConfig:
        from transformers import GenerationConfig

        chosen = self.settings
        width = self.width
        least, most = ("min_length", "max_length") if chosen.count_prompt else ("min_new_tokens", "max_new_tokens")
        return GenerationConfig(
            do_sample=False,
            num_beams=width,
            num_return_sequences=returned,
            length_penalty=self._length_penalty if width > 1 else None,
            early_stopping=chosen.early_stopping if width > 1 else None,
            no_repeat_ngram_size=chosen.no_repeat_ngram or None,
            return_dict_in_generate=True,
            output_scores=width > 1,  # or the beams' scores are not returned either
            **{most: chosen.max_tokens} | ({least: chosen.min_tokens} if chosen.min_tokens else {}),
        )

    def _reply(self, tokens: list[int], score: float | None, row: CaptionRow) -> Reply:
        ends = [index for index, token in enumerate(tokens) if token in self._ends]
        tokens = tokens[: ends[0] + self.keeps_end] if ends else [token for token in tokens if token != self._pad]
        raw = str(self._tokenizer.decode(tokens, skip_special_tokens=False))
        kept = str(self._tokenizer.decode([token for token in tokens if token not in self._special]))
        text = self._clean(" ".join(kept.split()))
        known: list[Flag] = ["special_tokens"] if self._special.intersection(tokens) else []
        if row.limit is not None and count_words(text) > row.limit:
            known.append("too_many_words")
        finish: Literal["end", "length"] = "end" if ends else "length"
        answer = CaptionAnswer(text=text, tokens=len(tokens), score=score, finish=finish, flags=flags(text, known))
        if row.limit is None and not self.settings.keep_last:
            return Reply(answer, raw)
        about = {} if row.limit is None else {"max_words": row.limit}
        return Reply(answer, {"text": raw, "attempt": row.attempt, **about})

    def _reject(self, flag: Flag, stimulus: Stimulus, reply: Reply) -> Finding | None:
        if not isinstance(reply.answer, CaptionAnswer) or flag not in reply.answer.flags:
            return None
        is_kept = self.settings.keep_last and reply.raw["attempt"] + 1 >= self.settings.attempts
        return Finding(flag, not is_kept, reply.answer.text[:200])

    def _clean(self, text: str) -> str:
        prompt = " ".join(self.settings.prompt.split())
        return text[len(prompt) :].lstrip() if prompt and text.lower().startswith(prompt.lower()) else text

    def _ids(self, text: str) -> list[int]:
        return self._tokenizer(text, add_special_tokens=False)["input_ids"]  # type: ignore[no-any-return]

    def _prompts(self, rows: Sequence[CaptionRow], start: list[int]) -> list[Tensor]:
        return self._moved([start + self._ids(row.prompt) for row in rows], [row.image for row in rows])

    def _stack(self, images: Sequence[Prepared]) -> Tensor:
        import torch

        return torch.stack(self._moved(*(image["pixel_values"] for image in images))).to(self._dtype)

    def _moved(self, *values: Any) -> list[Tensor]:
        import torch

        from agents.models.transfer import uploaded

        tensors = [value if torch.is_tensor(value) else torch.tensor(value, dtype=torch.long) for value in values]
        return uploaded(tensors, self._device)

    def _use_tokens(self, model: Any, *, start: int, end: int | Sequence[int], pad: int | None) -> None:
        from transformers import GenerationConfig

        ends = [end] if isinstance(end, int) else list(end)
        self._ends = frozenset(ends)
        self._pad = ends[0] if pad is None else pad
        model.generation_config = GenerationConfig(bos_token_id=start, eos_token_id=ends, pad_token_id=self._pad)
