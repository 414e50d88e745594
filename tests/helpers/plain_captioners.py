"""The plain way of asking transformers for captions, as its documentation shows: a processor and ``generate``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from PIL import Image

MODELS = {
    "git": "GitForCausalLM",
    "blip": "BlipForConditionalGeneration",
    "blip2": "Blip2ForConditionalGeneration",
    "llava_next": "LlavaNextForConditionalGeneration",
}


class Plain:
    """One model of transformers, loaded from a folder."""

    def __init__(self, family: str, folder: Path) -> None:
        self.family = family
        self.images = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        self.model = getattr(transformers, MODELS[family]).from_pretrained(folder).eval()
        if family == "llava_next":
            self.processor = transformers.LlavaNextProcessor.from_pretrained(
                folder, image_processor=self.images, tokenizer=self.tokenizer
            )
        if family in ("git", "blip"):
            end = self.tokenizer.sep_token_id
        else:
            end = self.tokenizer.convert_tokens_to_ids({"blip2": "Ċ", "llava_next": "</s>"}[family])
        self.end = int(end)
        self.pad = int(self.tokenizer.pad_token_id)

    def tokens(self, pictures: Sequence[Image.Image], prompt: str, **options: Any) -> list[list[int]]:
        """The generated tokens of one batch, without the prompt's."""
        if self.family != "blip":  # its generate fixes these itself
            options = {"eos_token_id": self.end, "pad_token_id": self.pad, **options}
        with torch.inference_mode():
            found = getattr(self, f"_{self.family}")(list(pictures), prompt, options)
        return [[int(token) for token in row] for row in found.tolist()]

    def said(self, tokens: list[int]) -> tuple[str, int, str]:
        """The text up to its end with all special tokens, its number of tokens, and how it ended."""
        if self.end in tokens:
            tokens, finish = tokens[: tokens.index(self.end)], "end"
        else:
            tokens, finish = [token for token in tokens if token != self.pad], "length"
        return self.tokenizer.decode(tokens), len(tokens), finish

    def _prompts(self, start: list[int], prompt: str, count: int) -> torch.Tensor:
        return torch.tensor([start + self.tokenizer(prompt, add_special_tokens=False).input_ids] * count)

    def _git(self, pictures: list[Image.Image], prompt: str, options: dict[str, Any]) -> torch.Tensor:
        pixels = self.images(images=pictures, return_tensors="pt").pixel_values
        ids = self._prompts([self.tokenizer.cls_token_id], prompt, len(pictures))
        # Without its cache: with it, transformers numbers the text's positions wrongly.
        out = self.model.generate(pixel_values=pixels, input_ids=ids, **{"use_cache": False, **options})
        return out[:, ids.shape[1] :]

    def _blip(self, pictures: list[Image.Image], prompt: str, options: dict[str, Any]) -> torch.Tensor:
        processor = transformers.BlipProcessor(self.images, self.tokenizer)
        inputs = processor(pictures, [prompt] * len(pictures), return_tensors="pt")
        out = self.model.generate(**inputs, **options)
        return out[:, inputs.input_ids.shape[1] - 1 :]  # generate leaves the prompt's last token, [SEP], out

    def _blip2(self, pictures: list[Image.Image], prompt: str, options: dict[str, Any]) -> torch.Tensor:
        pixels = self.images(images=pictures, return_tensors="pt").pixel_values
        config = self.model.config
        start = [config.image_token_index] * config.num_query_tokens + [config.text_config.bos_token_id]
        ids = self._prompts(start, prompt, len(pictures))
        out = self.model.generate(pixel_values=pixels, input_ids=ids, **options)
        return out[:, ids.shape[1] :]

    def _llava_next(self, pictures: list[Image.Image], prompt: str, options: dict[str, Any]) -> torch.Tensor:
        text = [f"[INST] <image>\n{prompt} [/INST]"] * len(pictures)
        inputs = self.processor(images=pictures, text=text, padding=True, padding_side="left", return_tensors="pt")
        out = self.model.generate(**inputs, **options)
        return out[:, inputs.input_ids.shape[1] :]
