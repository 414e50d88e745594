"""Captions by transformers as its documentation shows, a plain beam search, and a plain ResNet."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from PIL import Image
from torch.nn import functional

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
            tokens = tokens[: tokens.index(self.end)]
            finish = "end"
        else:
            tokens = [token for token in tokens if token != self.pad]
            finish = "length"
        return self.tokenizer.decode(tokens), len(tokens), finish

    def stepper(self, picture: Image.Image, prompt: str) -> tuple[list[int], Callable[[list[int]], torch.Tensor]]:
        """(the tokens that a text begins with, the next token's logits after some), without a cache: GIT and BLIP."""
        pixels = self.images(images=[picture], return_tensors="pt").pixel_values
        first = self.tokenizer.cls_token_id if self.family == "git" else self.model.config.text_config.bos_token_id
        seen = None if self.family == "git" else self.model.vision_model(pixel_values=pixels)[0]

        def next_logits(tokens: list[int]) -> torch.Tensor:
            ids = torch.tensor([tokens])
            with torch.inference_mode():
                if seen is None:
                    return self.model(input_ids=ids, pixel_values=pixels, use_cache=False).logits[0, -1]
                return self.model.text_decoder(ids, encoder_hidden_states=seen, use_cache=False).logits[0, -1]

        return [first, *self.tokenizer(prompt, add_special_tokens=False).input_ids], next_logits

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


def best_by_length(
    next_logits: Callable[[list[int]], torch.Tensor],
    start: list[int],
    width: int,
    most: int,
    end: int,
    divisor: Callable[[int], float],
    *,
    any_may_end: bool,
) -> list[int] | None:
    """The tokens between ``start`` and ``end`` of the best text by beam search, one beam and one token at a time.

    A text's log-probability, its end's included, is divided by ``divisor`` of its number of tokens, ``start`` among
    them, the end not. Of the ``2 * width`` best continuations those that end are finished: all down to the last beam
    that goes on (``any_may_end``, GIT), or those among the ``width`` best (transformers 4.15). Nothing ends but
    by ``end``, and no search before ``most`` tokens; None if no text has ended by then.
    """
    live: list[tuple[float, list[int]]] = [(0.0, start)]
    done: list[tuple[float, list[int]]] = []
    while live and len(live[0][1]) < most:
        found: list[tuple[float, list[int]]] = []
        for score, said in live:
            best_of = next_logits(said).double().log_softmax(0).topk(2 * width)
            values = best_of.values.tolist()
            tokens = best_of.indices.tolist()
            found += [(score + value, [*said, token]) for value, token in zip(values, tokens, strict=True)]
        best = sorted(found, key=lambda one: -one[0])[: 2 * width]
        live = []
        for rank, (score, said) in enumerate(best):
            if said[-1] != end:
                live.append((score, said))
            elif any_may_end or rank < width:
                done.append((score / divisor(len(said) - 1), said[:-1]))
            if len(live) == width:
                break
    return max(done)[1][len(start) :] if done else None


def resnet(
    weights: Mapping[str, torch.Tensor], x: torch.Tensor, blocks: Sequence[int], root: str = "", *, caffe: bool
) -> torch.Tensor:
    """What the last of the ResNet's stages gives for pictures. In Caffe's the first convolution of a block strides, in
    torchvision's the second, and the pool rounds up."""

    def layer(x: torch.Tensor, convolution: str, norm: str, **how: Any) -> torch.Tensor:
        x = functional.conv2d(x, weights[f"{root}{convolution}.weight"], **how)
        bias, mean, spread, scale = (
            weights[f"{root}{norm}.{name}"][:, None, None] for name in ("bias", "running_mean", "running_var", "weight")
        )
        return (x - mean) / (spread + 1e-5).sqrt() * scale + bias

    x = layer(x, "conv1", "bn1", stride=2, padding=3).clamp(min=0)
    if caffe:
        grow = [(max(-(-(side - 3) // 2), 0) * 2 + 3) - side for side in x.shape[:1:-1]]
        x = functional.max_pool2d(functional.pad(x, (0, grow[0], 0, grow[1]), value=-torch.inf), 3, 2)
    else:
        x = functional.max_pool2d(x, 3, 2, 1)
    for stage, count in enumerate(blocks, start=1):
        for block in range(count):
            name = f"layer{stage}.{block}."
            stride = 2 if stage > 1 and block == 0 else 1
            first, second = (stride, 1) if caffe else (1, stride)
            inner = layer(x, f"{name}conv1", f"{name}bn1", stride=first).clamp(min=0)
            inner = layer(inner, f"{name}conv2", f"{name}bn2", stride=second, padding=1).clamp(min=0)
            inner = layer(inner, f"{name}conv3", f"{name}bn3")
            if block == 0:
                x = layer(x, f"{name}downsample.0", f"{name}downsample.1", stride=stride)
            x = (x + inner).clamp(min=0)
    return x
