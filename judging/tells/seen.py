"""An answer as judges see it, which is what transformations change."""

from __future__ import annotations

import string
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from agents.answers import is_blank
from agents.stimuli import Asked, ShownAnswer

Point = tuple[float, float]
PICTURE_TEXTS: tuple[Asked, ...] = ("color_estimation", "object_detection", "image_captioning")
TEXTS: tuple[Asked, ...] = (*PICTURE_TEXTS, "word_association", "conversation")
"""Tasks whose answers are texts."""
SENTENCES: tuple[Asked, ...] = ("image_captioning", "conversation")
"""Tasks whose answers are sentences."""
PATHS: tuple[Asked, ...] = ("attention_prediction",)
"""Tasks whose answers are scanpaths."""


@dataclass(frozen=True, slots=True)
class SeenAnswer:
    """What a judge sees of an answer. Of a conversation only the judged speaker's messages are changed and measured:
    the other speaker's are what this one answered to."""

    task: Asked
    """What was asked."""
    answer: ShownAnswer
    """What the judge sees."""
    speaker: str | None = None
    """The judged speaker of a conversation, "A" or "B"; None for other tasks."""

    def texts(self) -> list[str]:
        """The judged texts: the word, colour or caption, the labels, or the judged speaker's messages; [] for a
        scanpath."""
        answer = self.answer
        if answer.messages is not None:
            return [message.text for message in answer.messages if message.speaker == self.speaker]
        if answer.labels is not None:
            return list(answer.labels)
        return [text for text in (answer.text, answer.word, answer.color) if text is not None]

    def with_texts(self, texts: Sequence[str]) -> SeenAnswer:
        """The same answer with other judged texts, as many as :meth:`texts` gives; ValueError for another number."""
        answer = self.answer
        if len(texts) != len(self.texts()):
            raise ValueError(f"{len(texts)} texts for {len(self.texts())}")
        if answer.messages is not None:
            left = iter(texts)
            messages = [
                message.model_copy(update={"text": next(left)}) if message.speaker == self.speaker else message
                for message in answer.messages
            ]
            return self._with(messages=messages)
        if answer.labels is not None:
            return self._with(labels=list(texts))
        if not texts:
            return self
        [text] = texts
        [field] = [name for name in ("text", "word", "color") if getattr(answer, name) is not None]
        return self._with(**{field: text})

    def delays(self) -> list[float | None]:
        """How many seconds each of the judged speaker's messages took, None where no delay is shown; [] for other
        tasks."""
        return [message.delay_s for message in self.answer.messages or () if message.speaker == self.speaker]

    def with_delays(self, delays: Sequence[float | None]) -> SeenAnswer:
        """The same conversation with other delays of the judged speaker's messages, as many as :meth:`delays` gives;
        ValueError for another number."""
        if len(delays) != len(self.delays()):
            raise ValueError(f"{len(delays)} delays for {len(self.delays())}")
        left = iter(delays)
        messages = [
            message.model_copy(update={"delay_s": next(left)}) if message.speaker == self.speaker else message
            for message in self.answer.messages or ()
        ]
        return self._with(messages=messages)

    def labels(self) -> list[str]:
        """The labels of an object detection; [] for other tasks."""
        return list(self.answer.labels or ())

    def with_labels(self, labels: Sequence[str]) -> SeenAnswer:
        """The same answer with other labels, of any number."""
        return self._with(labels=list(labels))

    def fixations(self) -> list[Point]:
        """[x, y] of each fixation in pixels of :meth:`frame`; [] for other tasks."""
        return list(self.answer.fixations or ())

    def with_fixations(self, fixations: Sequence[Point]) -> SeenAnswer:
        """The same answer with other fixations."""
        return self._with(fixations=list(fixations))

    def frame(self) -> tuple[int, int]:
        """(width, height) in pixels of what was looked at. Raises ValueError for an answer that is no scanpath."""
        if self.answer.frame is None:
            raise ValueError("the answer is no scanpath")
        return self.answer.frame

    def is_empty(self) -> bool:
        """Whether nothing is left of one of its texts."""
        return any(is_blank(text) for text in self.texts())

    def _with(self, **fields: Any) -> SeenAnswer:
        return SeenAnswer(self.task, self.answer.model_copy(update=fields), self.speaker)


def seen_in(trial: Mapping[str, Any]) -> SeenAnswer:
    """The answer of a trial, which is a line of ``trials.jsonl`` in parsed JSON."""
    return SeenAnswer(
        trial["asked"], ShownAnswer.model_validate_json(orjson.dumps(trial["answer"])), trial.get("speaker")
    )


def is_mark(character: str) -> bool:
    """Whether a character is a punctuation mark: of one of Unicode's categories P, or of ASCII's marks."""
    return character in string.punctuation or unicodedata.category(character).startswith("P")


def end_mark(text: str) -> str:
    """The marks at the end of a text's last word: "!?" of "What!?"; "" where that word is of marks alone."""
    stripped = text.rstrip()
    bare = without_end_mark(stripped)
    return stripped[len(bare) :]


def without_end_mark(text: str) -> str:
    """A text without :func:`end_mark`, and without blanks at its end."""
    stripped = text.rstrip()
    end = len(stripped)
    while end and is_mark(stripped[end - 1]):
        end -= 1
    is_alone = end == 0 or stripped[end - 1].isspace()
    return stripped if is_alone else stripped[:end]
