"""The settings that all captioners share."""

from __future__ import annotations

from typing import Annotated, Literal, TypeVar

from pydantic import Field, model_validator

from agents.pretrained import PretrainedSettings
from agents.vision.caption_rules import Flag


class CaptionSettings(PretrainedSettings):
    """How a caption is generated."""

    prompt: str = ""
    """Text that the caption continues, or the question that it answers; it is not part of the answer."""
    decoding: Literal["beam", "sample"] = "beam"
    """beam: beam search, greedy with 1 beam, sample k is the beam of rank k. sample: drawn by the seed."""
    beams: int = Field(1, ge=1, le=64)
    """Width of the beam search."""
    length_penalty: float = Field(1.0, ge=-10, le=10)
    """Beam scores are divided by the length to this power; below 0 favours short captions."""
    early_stopping: bool = False
    """Whether beam search ends as soon as there are as many finished beams as its width."""
    no_repeat_ngram: int = Field(0, ge=0, le=20)
    """No sequence of so many tokens occurs twice; 0: no such rule."""
    min_tokens: int = Field(0, ge=0, le=4096)
    """The least number of tokens before the text may end."""
    max_tokens: int = Field(50, ge=1, le=4096)
    """The largest number of tokens."""
    count_prompt: bool = False
    """Whether the two limits count the prompt's tokens and the start token too, as transformers' max_length does."""
    temperature: float = Field(1.0, ge=0, le=10)
    """For drawn captions: divides the logits; 0 takes the likeliest token."""
    top_k: int = Field(0, ge=0, le=1_000_000)
    """For drawn captions: only the so many likeliest tokens; 0: all."""
    top_p: Annotated[float, Field(gt=0, le=1)] = 1.0
    """For drawn captions: only the likeliest tokens that have this mass together."""
    image_processor: Literal["pil", "torchvision"] = "pil"
    """What resizes: Pillow, as for the published answers, or torchvision, which gives slightly other pixels."""
    precision: Literal["auto", "fp32", "bf16", "fp16"] = "auto"
    """fp32 gives the same answers for any batch; auto: fp32 on CPU, on CUDA bf16, or fp16 as weights are stored."""
    reject: tuple[Flag, ...] = ()
    """Flags that make an attempt be rejected; all flags are in the record anyway."""
    attempts: int = Field(1, ge=1, le=100)
    """How often a caption is asked for while it is rejected."""
    keep_last: bool = False
    """Whether the last attempt is kept whatever its flags."""

    @model_validator(mode="after")
    def _attempts_differ(self) -> CaptionSettings:
        if self.attempts > 1 and self.decoding == "beam":
            raise ValueError("attempts above 1 need decoding 'sample': beam search says the same each time")
        if self.min_tokens > self.max_tokens:
            raise ValueError(f"min_tokens {self.min_tokens} is more than max_tokens {self.max_tokens}")
        if 0 < self.temperature < 0.01:
            raise ValueError("temperature is 0, which takes the likeliest token, or at least 0.01")
        return self


C = TypeVar("C", bound=CaptionSettings)
