"""The base of all captioners: batches, beams and draws, and what becomes of a generated caption."""

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
from agents.vision.pixels import ProcessorInput, check_shape
from agents.word_boundaries import count_words

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor
    from transformers import GenerationConfig


@dataclass(frozen=True, slots=True)
class CaptionRow:
    """A text that is to be generated."""

    image: int
    """The number of its image among the images of the call."""
    prompt: str
    """The text that the caption continues, or the question that it answers."""
    seed: int | None = None
    """The seed of its draws; None in a beam search."""
    limit: int | None = None
    """The most words that the prompt allows, if it says so."""
    attempt: int = 0
    """How often it was drawn before, from 0."""


class LengthNorm(float):
    """A length penalty that divides a beam's score by ((n + more) / unit) ** penalty, as the authors' programs do.

    n counts a text's tokens with its end token. A text that reaches ``cut`` tokens was ended by the limit and has no
    end token, so that one more counts.

    Why so: transformers divides by ``n ** length_penalty`` and offers nothing else. ``int ** LengthNorm`` asks this
    class for the power, because an int does not know how to raise itself to it. So the published scores come out
    without a beam search of our own. The class is a float because a configuration takes numbers alone; its attributes
    survive the copies that transformers makes of a configuration.

    What breaks: if transformers counted n in a tensor, it would raise the tensor to the plain number, and scores would
    silently be its own again. tests/agents/vision/test_captioners.py compares the scores with the formulas.
    """

    more: float
    """Tokens that count beside the text's own."""
    unit: float
    """What the length is divided by."""
    cut: int
    """The length at which a text has no end token; 0: every text has one."""

    def __new__(cls, penalty: float, *, more: float = 0, unit: float = 1, cut: int = 0) -> LengthNorm:
        """A norm that divides a text of n tokens by ((n + ``more``) / ``unit``) to the power of ``penalty``."""
        norm = super().__new__(cls, penalty)
        norm.more = more
        norm.unit = unit
        norm.cut = cut
        return norm

    def __rpow__(self, length: int) -> float:  # type: ignore[override]
        with_end = length + 1 if length == self.cut else length
        return float(((with_end + self.more) / self.unit) ** float(self))


class CaptionAgent(PretrainedAgent[C]):
    """Base of the captioners. A family of models gives ``_encode`` (features of images), ``_generate`` (texts from
    features) and ``model_class`` or ``_load_model``."""

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
    """The name of the model's class in transformers."""
    keeps_end: ClassVar[bool] = False
    """Whether the token that ends a caption is a part of it, as a full stop is."""
    _pixels: Callable[[NDArray[np.uint8]], ProcessorInput]  # set by ``open``
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
        """4 in fp32, else 2."""
        return 4 if self.settings.precision == "fp32" else 2

    def open(self) -> None:
        """Open the image processor and the tokenizer. Raises UnavailableError."""
        from transformers import AutoImageProcessor, AutoTokenizer

        self._images = load_part(AutoImageProcessor, self.folder(), "image processor", backend="pil")
        self._pixels = self._process
        self._tokenizer = load_part(AutoTokenizer, self.folder(), "tokenizer")

    def load(self, device: str) -> None:
        """Load the model, and check that prompt and caption fit its positions. Raises UnavailableError."""
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

    def prepare(self, stimulus: Stimulus) -> ProcessorInput:
        """The image's tensors. Raises ImageError, and AnswerError for an image that is too thin."""
        assert isinstance(stimulus, CaptionStimulus | ColorStimulus | ObjectStimulus)
        return self._pixels(stimulus.image.decode())

    def respond(self, batch: Sequence[ProcessorInput], draws: Sequence[Draw]) -> Sequence[Reply | Exception]:
        """A caption of each image. Images of one shape are encoded together, and samples of an image share its
        features."""
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
        """What the base class says; also the type of numbers."""
        return {**super().provenance(), "dtype": str(self._dtype).removeprefix("torch.")}

    def close(self) -> None:
        """Release the model."""
        self._model = None
        super().close()

    # what a family gives

    @abstractmethod
    def _encode(self, images: Sequence[ProcessorInput]) -> Any:
        """The encoder's features, each image once."""

    @abstractmethod
    def _generate(self, features: Any, rows: Sequence[CaptionRow], options: dict[str, Any]) -> tuple[Any, int]:
        """(output of ``generate``, number of prompt tokens)."""

    def _load_model(self, folder: Path) -> Any:
        import transformers

        return load_pretrained(getattr(transformers, self.model_class), folder, self._device, self._dtype)

    def _row(self, image: int, prepared: ProcessorInput, draw: Draw) -> CaptionRow:
        if not self._drawn:
            return CaptionRow(image, self.settings.prompt)
        return CaptionRow(image, self.settings.prompt, draw.seed, attempt=draw.attempt)

    def _rules(self) -> list[Any]:
        return []

    def _group_key(self, prepared: ProcessorInput) -> tuple[int, ...]:
        """Equal for images that are encoded together."""
        return tuple(prepared["pixel_values"].shape)

    # what all families share

    def _process(self, pixels: NDArray[np.uint8]) -> ProcessorInput:
        if getattr(self._images.size, "shortest_edge", None):
            check_shape(pixels)
        inputs = self._images(images=[pixels], input_data_format="channels_last", return_tensors="pt")
        return {name: values[0] for name, values in inputs.items()}

    def _check_positions(self) -> None:
        if self._positions is None:
            return
        settings = self.settings
        positions, taken = self._positions
        prompt = len(self._ids(settings.prompt))
        longest = settings.max_tokens if settings.count_prompt else taken + prompt + settings.max_tokens
        if longest > positions or (settings.count_prompt and settings.max_tokens <= prompt + 1):
            raise UnavailableError(
                f"max_tokens {settings.max_tokens} and a prompt of {prompt} tokens do not go together: the model has "
                f"{positions} positions"
            )

    def _describe(
        self, distinct: Sequence[ProcessorInput], features: Any, items: Sequence[ProcessorInput], draws: Sequence[Draw]
    ) -> list[Reply | Exception]:
        from transformers import LogitsProcessorList

        from agents.models.sampling import Finite
        from agents.models.transfer import downloaded

        width = self.width
        index_of = {id(item): index for index, item in enumerate(distinct)}
        wanted = [self._row(index_of[id(item)], item, draw) for item, draw in zip(items, draws, strict=True)]
        # A single beam search serves all samples of a stimulus.
        rows = wanted if self._drawn else list(dict.fromkeys(wanted))
        row_numbers = list(range(len(rows))) if self._drawn else [rows.index(row) for row in wanted]
        ranks = [0 if self._drawn else draw.sample for draw in draws]
        returned = min(max(ranks) + 1, width)

        finite = Finite(len(rows), normalised=width > 1)
        processors = LogitsProcessorList([finite, *self._processors(rows)])
        options = {"generation_config": self._config(returned), "logits_processor": processors}
        generated, prompt_length = self._generate(features, rows, options)

        outputs = [generated.sequences[:, prompt_length:], finite.bad]
        if width > 1:
            outputs.append(generated.sequences_scores)
        on_host = downloaded(outputs)
        tokens = on_host[0].tolist()
        bad = on_host[1].tolist()
        scores = on_host[2].tolist() if width > 1 else None
        replies: list[Reply | Exception] = []
        for row, number, rank in zip(wanted, row_numbers, ranks, strict=True):
            if bad[number]:
                replies.append(AnswerError("bad_logits", "the model's logits were no numbers (NaN or infinite)"))
            elif rank >= width:
                text = f"sample {rank} is a beam of rank {rank}; beams is {width}"
                replies.append(AnswerError("too_few_beams", text))
            else:
                beam = number * returned + rank
                score = None if scores is None else round(scores[beam], 4)
                replies.append(self._reply(tokens[beam], score, row))
        return replies

    def _processors(self, rows: Sequence[CaptionRow]) -> list[Any]:
        """What changes the logits, in order: the endless texts of random weights, a family's rules, draws."""
        from transformers import SuppressTokensLogitsProcessor

        from agents.models.sampling import Sampler, Warp

        processors: list[Any] = []
        if self.random:  # all texts are as long as the settings allow
            never = self._special | self._ends | {self._pad}
            processors.append(SuppressTokensLogitsProcessor(never, device=str(self._device)))
        processors += self._rules()
        if self._drawn:
            settings = self.settings
            warp = Warp(settings.temperature, settings.top_k, settings.top_p)
            processors.append(Sampler([row.seed or 0 for row in rows], [warp] * len(rows)))
        return processors

    def _config(self, returned: int) -> GenerationConfig:
        from transformers import GenerationConfig

        settings = self.settings
        width = self.width
        if settings.count_prompt:
            limits = {"max_length": settings.max_tokens}
            least = {"min_length": settings.min_tokens}
        else:
            limits = {"max_new_tokens": settings.max_tokens}
            least = {"min_new_tokens": settings.min_tokens}
        if settings.min_tokens:
            limits |= least
        return GenerationConfig(
            do_sample=False,
            num_beams=width,
            num_return_sequences=returned,
            length_penalty=self._length_penalty if width > 1 else None,
            early_stopping=settings.early_stopping if width > 1 else None,
            no_repeat_ngram_size=settings.no_repeat_ngram or None,
            return_dict_in_generate=True,
            output_scores=width > 1,  # or the beams' scores are not returned either
            **limits,
        )

    def _reply(self, tokens: list[int], score: float | None, row: CaptionRow) -> Reply:
        ends = [index for index, token in enumerate(tokens) if token in self._ends]
        if not ends:
            tokens = [token for token in tokens if token != self._pad]
        elif self.keeps_end:
            tokens = tokens[: ends[0] + 1]
        else:
            tokens = tokens[: ends[0]]
        raw = str(self._tokenizer.decode(tokens, skip_special_tokens=False))
        kept = str(self._tokenizer.decode([token for token in tokens if token not in self._special]))
        text = self._clean(" ".join(kept.split()))
        noticed: list[Flag] = ["special_tokens"] if self._special.intersection(tokens) else []
        if row.limit is not None and count_words(text) > row.limit:
            noticed.append("too_many_words")
        finish: Literal["end", "length"] = "end" if ends else "length"
        answer = CaptionAnswer(text=text, tokens=len(tokens), score=score, finish=finish, flags=flags(text, noticed))
        if row.limit is None and not self.settings.keep_last:
            return Reply(answer, raw)
        record: dict[str, Any] = {"text": raw, "attempt": row.attempt}
        if row.limit is not None:
            record["max_words"] = row.limit
        return Reply(answer, record)

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

    def _stack(self, images: Sequence[ProcessorInput]) -> Tensor:
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
