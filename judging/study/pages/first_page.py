"""What the first page of a study says, before somebody begins: who asks, how long it takes, what will happen.

The times are this project's assumptions, for a study in which nobody has taken part yet. ``study status`` measures.
"""

import math
from collections.abc import Mapping
from typing import Any

from agents.stimuli import Asked
from judging.study.design.settings import WRITTEN
from judging.study.pages.material import Material

READING_S = 30.0
"""Seconds for a page of text: the consent text, and the instructions."""
QUESTION_S = 6.0
"""Seconds for a question about oneself."""
JUDGED_S: Mapping[Asked, float] = {
    "color_estimation": 8.0,
    "object_detection": 10.0,
    "attention_prediction": 12.0,
    "image_captioning": 12.0,
    "word_association": 8.0,
    "conversation": 45.0,
}
"""Seconds for a verdict on an answer, by the task that was answered."""
PAIR_S = 60.0
"""Seconds for a verdict on two conversations beside each other."""
ANSWERED_S: Mapping[Asked, float] = {
    "color_estimation": 8.0,
    "object_detection": 25.0,
    "image_captioning": 45.0,
    "word_association": 8.0,
}
"""Seconds for an answer to a stimulus, by task."""
MESSAGE_S = 20.0
"""Seconds for a message of a conversation, or a question of an online test with its answers."""
MEETING_S = 60.0
"""Seconds in the lobby, and for what is read and answered around a conversation or test."""
UNITS: Mapping[Asked, str] = {
    "color_estimation": "pictures",
    "object_detection": "pictures",
    "attention_prediction": "clips",
    "image_captioning": "pictures",
    "word_association": "words",
    "conversation": "conversations",
}
"""What is shown on a page, by task. Each has a phrase, with ``first_`` before its name."""


def first_page(material: Material) -> dict[str, Any]:
    """The first page of the study that shows ``material``, as JSON.

    ``text`` are the study's own words about what will happen. Where it is empty, the page shows ``happens``: the
    phrases of what comes, in order, each with its numbers.
    """
    settings = material.settings
    texts = settings.texts
    extent = material.extent()
    happens: list[dict[str, Any]] = []
    if texts.consent:
        happens.append({"phrase": "first_consent"})
    if settings.questions.before:
        happens.append({"phrase": "first_questions"})
    happens.append({"phrase": "first_instructions"})
    if extent.practice:
        happens.append({"phrase": "first_practice", "number": extent.practice})
    happens.append({"phrase": extent.phrase})
    if 0 < settings.judges.break_every < extent.number:
        happens.append({"phrase": "first_breaks"})
    if settings.questions.after:
        happens.append({"phrase": "first_after"})
    return {
        "institution": texts.institution,
        "minutes": texts.duration_minutes or assumed_minutes(material),
        "what": f"first_{extent.unit}",
        "number": extent.number,
        "text": texts.welcome,
        "happens": [*happens, {"phrase": "first_end"}],
    }


def assumed_minutes(material: Material) -> int:
    """How long a participant takes, in whole minutes; above ten minutes in steps of five, rounded up."""
    settings = material.settings
    extent = material.extent()
    pages = 2 if settings.texts.consent else 1
    questions = len(settings.questions.before) + len(settings.questions.after)
    if isinstance(settings, WRITTEN):
        questions += len(settings.checks.questions)
    of_steps = (extent.number + extent.practice) * extent.seconds_each
    minutes = (pages * READING_S + questions * QUESTION_S + of_steps) / 60
    return math.ceil(minutes) if minutes <= 10 else 5 * math.ceil(minutes / 5)
