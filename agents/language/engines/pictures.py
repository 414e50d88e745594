"""Prompts with pictures, made by a checkpoint's own processor."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agents.errors import AnswerError, short_text
from agents.images import Image
from agents.language.engines.text_request import ChatMessage
from agents.models import model_folders
from agents.models.loading import load_part

if TYPE_CHECKING:
    from pathlib import Path

    import torch
    from torch import Tensor


def load_reader(folder: Path, config: Any) -> PictureReader | None:
    """The reader of a checkpoint's pictures, or None where it reads none. Raises UnavailableError."""
    from transformers import MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING, AutoProcessor

    names = model_folders.PROCESSOR.split("|")
    if type(config) not in MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING or not any((folder / name).exists() for name in names):
        return None
    processor = load_part(AutoProcessor, folder, "processor")
    is_complete = hasattr(processor, "image_processor") and hasattr(processor, "tokenizer")
    return PictureReader(processor) if is_complete else None


class PictureReader:
    """Turns a prompt with pictures into a model's inputs.

    The inputs are wanted twice, to count tokens and to generate; they are kept until :meth:`forget`.
    """

    def __init__(self, processor: Any) -> None:
        self.tokenizer = processor.tokenizer
        self.template: str | None = processor.chat_template or processor.tokenizer.chat_template
        self._processor = processor
        self._kept: dict[tuple[str, tuple[bytes, ...]], dict[str, Tensor]] = {}

    def marks(self) -> set[str]:
        """What stands for pictures in prompts, and must not stand in anybody's message."""
        values = [value for name, value in vars(self._processor).items() if name.endswith("_token")]
        return {str(value) for value in values if len(str(value or "")) > 2}

    def adds_special_tokens(self, text: str) -> bool:
        """Whether a prompt still lacks its first special token; the checkpoints' processors decide so for chats."""
        bos = self.tokenizer.bos_token
        return bos is None or not text.startswith(bos)

    def inputs(self, text: str, pictures: Sequence[bytes]) -> dict[str, Tensor]:
        """The model's inputs for a batch of this prompt alone: tensors by name. Raises AnswerError if the processor
        refuses a picture."""
        from PIL import Image as PILImage

        key = (text, tuple(pictures))
        if key not in self._kept:
            images = [PILImage.fromarray(Image("picture", data=data).decode()) for data in pictures]
            try:
                inputs = self._processor(
                    text=[text],
                    images=[images],
                    return_tensors="pt",
                    add_special_tokens=self.adds_special_tokens(text),
                )
            except (ValueError, TypeError, RuntimeError, LookupError) as error:  # too narrow, too small
                reason = short_text(error)
                raise AnswerError("bad_image", f"the checkpoint's processor refuses this picture: {reason}") from None
            self._kept[key] = dict(inputs)
        return self._kept[key]

    def forget(self) -> None:
        """Drop the kept inputs."""
        self._kept.clear()


def samples() -> list[ChatMessage]:
    """Two questions about pictures of unlike size, by which it is measured what batches change; the second is the
    shorter."""
    from PIL import Image as PILImage

    messages = []
    for text, size in (("What do you see in this picture?", (300, 100)), ("What is it?", (100, 120))):
        content = io.BytesIO()
        PILImage.radial_gradient("L").resize(size).convert("RGB").save(content, "PNG")
        messages.append(ChatMessage("user", text, content.getvalue()))
    return messages


def contents(messages: Sequence[ChatMessage]) -> list[dict[str, Any]]:
    """Messages as a template takes them that wants lists of parts: the picture first, then the text."""
    listed = []
    for message in messages:
        parts = [{"type": "text", "text": message.text}]
        if message.image is not None:
            parts.insert(0, {"type": "image"})
        listed.append({"role": message.role, "content": parts})
    return listed


def joined(
    rows: Sequence[Mapping[str, Tensor]], pad: int, device: torch.device, dtype: torch.dtype
) -> dict[str, Tensor]:
    """The inputs of single prompts as a batch on ``device``.

    What is as long as its prompt is padded on the left, with ``pad`` for tokens and zeros for all else. Other sides are
    filled with zeros at the end. Numbers with fractions become ``dtype``.
    """
    import torch

    names = dict.fromkeys(name for row in rows for name in row)
    longest = max(row["input_ids"].shape[1] for row in rows)
    batch: dict[str, Tensor] = {}
    for name in names:
        parts = []
        for row in rows:
            part = row[name]
            length = row["input_ids"].shape[1]
            if part.ndim > 1 and part.shape[:2] == (1, length):
                empty = part.new_full((1, longest - length, *part.shape[2:]), pad if name == "input_ids" else 0)
                part = torch.cat([empty, part], dim=1)
            parts.append(part.to(dtype) if part.is_floating_point() else part)
        sides = [max(sizes) for sizes in zip(*(part.shape[1:] for part in parts), strict=True)]
        batch[name] = torch.cat([_grown(part, sides) for part in parts]).to(device)
    return batch


def _grown(part: Tensor, sides: Sequence[int]) -> Tensor:
    import torch

    missing = [number for side, size in zip(sides, part.shape[1:], strict=True) for number in (side - size, 0)]
    return torch.nn.functional.pad(part, missing[::-1]) if any(missing) else part
