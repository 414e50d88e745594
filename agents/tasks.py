"""The six tasks."""

from __future__ import annotations

from typing import Literal, get_args

Task = Literal[
    "color_estimation",
    "object_detection",
    "attention_prediction",
    "image_captioning",
    "word_association",
    "conversation",
]
TASKS: tuple[Task, ...] = get_args(Task)
