"""The six tasks, and the two modes of attention prediction."""

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

Mode = Literal["free", "search"]  # of attention prediction
ConversationType = Literal["HH", "HM", "MM"]  # people, a person and a machine, machines
Family = Literal["completion", "chat", "blenderbot", "other"]  # of agents that converse

MODES: tuple[Mode, ...] = get_args(Mode)
