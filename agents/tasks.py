"""The six tasks that are asked of participants, the task of judges, and the two modes of attention prediction."""

from __future__ import annotations

from typing import Literal, get_args

Asked = Literal[
    "color_estimation",
    "object_detection",
    "attention_prediction",
    "image_captioning",
    "word_association",
    "conversation",
]
Task = Literal[Asked, "judgement"]
TASKS: tuple[Asked, ...] = get_args(Asked)
ALL_TASKS: tuple[Task, ...] = get_args(Task)
SHORT: dict[str, Asked] = {  # what a task may be called where one is named
    "color": "color_estimation",
    "object": "object_detection",
    "attention": "attention_prediction",
    "caption": "image_captioning",
    "word": "word_association",
    "conversation": "conversation",
}

Mode = Literal["free", "search"]  # of attention prediction
ConversationType = Literal["HH", "HM", "MM"]  # people, a person and a machine, machines
Family = Literal["completion", "chat", "blenderbot", "other"]  # of agents that converse

MODES: tuple[Mode, ...] = get_args(Mode)
