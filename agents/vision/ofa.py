"""OFA (Wang et al. 2022, arXiv 2202.03052), by :mod:`agents.vision.models.ofa`: it is in no version of transformers.

Defaults are those of the authors' evaluation on COCO (run_scripts/caption/evaluate_caption.sh, utils/eval_utils.py).
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from agents import checkpoints, hub, random_weights
from agents.answers import CaptionAnswer
from agents.contract import GIB, Reply
from agents.errors import UnavailableError
from agents.stimuli import CaptionStimulus, Stimulus
from agents.vision.caption_settings import CaptionSettings
from agents.vision.captioner import CaptionAgent, CaptionRow, Generated, Prepared

if TYPE_CHECKING:
    from transformers import GenerationConfig, LogitsProcessorList

    from agents.vision.models.ofa import OFAEncoderOutput

FILES = "fairseq's files are on no hub; github.com/OFA-Sys/OFA lists them in checkpoints.md"
DICTIONARY = ("vocab.json", "merges.txt")
PUNCTUATION = str.maketrans("", "", string.punctuation)


class OFAAgent(CaptionAgent["OFAAgent.Settings"]):
    """Encoder and decoder; the encoder reads the image and a question, the decoder answers from its start token."""

    class Settings(CaptionSettings):
        """As for every captioner; ``max_tokens`` does not count the end token."""

        prompt: str = " what does the image describe?"
        """The question; the space before it is part of it."""
        beams: int = Field(5, ge=1, le=64)
        """Width of the beam search."""
        early_stopping: bool = True
        """Whether beam search ends as soon as there are as many finished beams as its width, as fairseq's does."""
        temperature: float = Field(1.0, ge=0, le=10)
        """Divides the logits, in beam search too, as in fairseq; 0 (drawn captions only) takes the likeliest token."""
        no_repeat_ngram: int = Field(3, ge=0, le=20)
        """No sequence of so many tokens occurs twice; 0: no such rule."""
        min_tokens: int = Field(1, ge=0, le=4096)
        """The least number of tokens before the text may end."""
        max_tokens: int = Field(16, ge=1, le=1023)
        """The largest number of tokens; a text that reaches it is ended, and its score counts that."""
        image_size: int = Field(480, ge=16, le=672)
        """Side of the square, in pixels, that images are squeezed to; 256 for tiny, 384 for base."""
        image_processor: Literal["pil"] = "pil"
        """What resizes."""
        dictionary: str | None = None
        """Hub id or local folder of vocab.json and merges.txt (the same for all sizes); none: the checkpoint's own."""
        strip_punctuation: bool = True
        """Whether punctuation is taken out of the caption, as the authors' evaluation does."""

    memory = 12 * GIB  # huge is 3.7 GB in fp32, read while the model is built
    device_memory = 10 * GIB
    needs = ("config.json", "model.safetensors|pytorch_model.bin")
    model_types = ("ofa",)

    settings: Settings

    def missing(self) -> str | None:
        """A checkpoint is a folder of transformers' form, or one file of fairseq's and a dictionary."""
        if self.random or self.missing_packages() is not None:
            return super().missing()
        fetch = f"run `turinglike fetch {self.name}` where there is a network"
        try:
            found = self.folder()
        except UnavailableError as error:
            how = FILES if self._is_file() else fetch
            return f"{error}: {how}, or give a local copy with --set {self.name}.checkpoint=PATH"
        try:
            texts = self._dictionary()
        except UnavailableError as error:
            return f"the dictionary {error}: {fetch}, or give a local copy with --set {self.name}.dictionary=PATH"
        if lacks := checkpoints.problem(texts, DICTIONARY):
            return f"{texts} {lacks}; name a folder of vocab.json and merges.txt with --set {self.name}.dictionary=PATH"
        return None if found.is_file() else super().missing()

    def fetch(self) -> Sequence[checkpoints.Download]:
        if self.random:
            return ()
        if self._is_file() and not Path(self.settings.checkpoint).expanduser().exists():
            raise UnavailableError(f"{self.settings.checkpoint}: {FILES}; then --set {self.name}.checkpoint=PATH")
        given = self.settings.dictionary
        return [*super().fetch(), *([] if given is None else [hub.fetch(given)])]

    def _is_file(self) -> bool:
        return self.settings.checkpoint.endswith(".pt")

    def _dictionary(self) -> Path:
        given = self.settings.dictionary
        return self.folder() if given is None or self.random else checkpoints.find(given)

    def open(self) -> None:
        from agents.vision.models.ofa_checkpoint import OFAImageProcessor, load_tokenizer

        self._images = OFAImageProcessor(self.settings.image_size)
        self._tokenizer = load_tokenizer(self._dictionary())

    def load(self, device: str) -> None:
        from agents.vision.models.ofa_checkpoint import OWN_TOKENS

        super().load(device)
        known = len(self._tokenizer)
        self._special |= frozenset(range(known - OWN_TOKENS, known))  # codes and coordinates are no words

    def prepare(self, stimulus: Stimulus) -> Prepared:
        assert isinstance(stimulus, CaptionStimulus)
        return {"pixel_values": self._images(stimulus.image.decode())}

    def _load_model(self, folder: Path) -> Any:
        from agents.vision.models import ofa_checkpoint
        from agents.vision.models.ofa import OFAModel

        if self.random:
            model: Any = random_weights.load(OFAModel, folder, self._device, self._dtype)
        else:
            model = ofa_checkpoint.load(folder)
            model.to(self._device, self._dtype)
        config, known = model.config, len(self._tokenizer)
        if known != config.vocab_size:
            raise UnavailableError(
                f"the dictionary in {self._dictionary()} has {known} tokens, {folder} {config.vocab_size}"
            )
        self._use_tokens(model, start=config.bos_token_id, end=config.eos_token_id, pad=config.pad_token_id)
        heat = self.settings.temperature
        if not self._drawn and heat not in (0, 1):  # drawn ones are warped later
            model.register_forward_hook(lambda _, given, found: replace(found, logits=found.logits / heat))
        return model

    def _room(self) -> tuple[int, int]:
        """Question and caption are on two sides: the longer one is what counts."""
        config = self._model.config
        question = len(self._tokenizer(self.settings.prompt)["input_ids"])
        side = config.image_bucket_size * 16
        if self.settings.image_size > side:
            raise UnavailableError(f"image_size {self.settings.image_size} is more than the model's {side} pixels")
        positions = int(config.max_position_embeddings)
        if question > positions:
            raise UnavailableError(f"the prompt has {question} tokens, the model {positions} positions")
        return positions + len(self._ids(self.settings.prompt)), 2

    def _encode(self, images: Sequence[Prepared]) -> OFAEncoderOutput:
        question = self._tokenizer(self.settings.prompt)["input_ids"]
        [tokens] = self._moved([question] * len(images))
        encoded: OFAEncoderOutput = self._model.encode(tokens, self._stack(images))
        return encoded

    def _generate(
        self,
        features: OFAEncoderOutput,
        rows: Sequence[CaptionRow],
        config: GenerationConfig,
        processors: LogitsProcessorList,
    ) -> Generated:
        [images] = self._moved([row.image for row in rows])
        generated = self._model.generate(
            encoder_outputs=features.rows(images), generation_config=config, logits_processor=processors
        )
        return Generated(generated.sequences[:, 1:], generated.get("sequences_scores"))

    def _config(self, width: int, returned: int) -> GenerationConfig:
        config = super()._config(width, returned)
        if not self.settings.count_prompt:
            config.min_new_tokens = None  # see FairseqEnd
            config.max_new_tokens = self.settings.max_tokens + (not self.random)  # and the end
        return config

    def _rules(self) -> list[Any]:
        from agents.vision.models.ofa import FairseqEnd

        chosen = self.settings
        if self.random:  # there is no end to be forced
            return []
        least, most = (0, None) if chosen.count_prompt else (chosen.min_tokens, chosen.max_tokens)
        beams = 1 if self._drawn or not chosen.early_stopping else chosen.beams
        return [FairseqEnd(least, most, min(self._ends), self._pad, beams)]

    def _reply(self, tokens: list[int], score: float | None, row: CaptionRow) -> Reply:
        reply = super()._reply(tokens, score, row)
        assert isinstance(reply.answer, CaptionAnswer)
        if reply.answer.tokens == self.settings.max_tokens:
            reply.answer.finish = "length"  # the end came of the limit
        return reply

    def _clean(self, text: str) -> str:
        return " ".join(text.translate(PUNCTUATION).split()) if self.settings.strip_punctuation else text
