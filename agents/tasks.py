"""The six tasks."""

from __future__ import annotations

from typing import Literal

Task = Literal[
    "color_estimation",
    "object_detection",
    "attention_prediction",
    "image_captioning",
    "word_association",
    "conversation",
]
TASKS: tuple[Task, ...] = (
    "color_estimation",
    "object_detection",
    "attention_prediction",
    "image_captioning",
    "word_association",
    "conversation",
)
