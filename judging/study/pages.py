"""What the pages of a study are made of, however they reach a browser."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from judging.study.questionnaire import OPTIONS
from judging.study.settings import StudySettings

OWN = Path(__file__).with_name("static")
KINDS = {"jpeg": "jpeg", "jpg": "jpeg", "png": "png", "gif": "gif", "webp": "webp", "bmp": "bmp", "tiff": "tiff"}


def phrases_sent(settings: StudySettings, phrases: Mapping[str, str]) -> dict[str, Any]:
    """What a page is told before anything else: its language, title and words."""
    about = {"language": settings.language, "title": settings.texts.title, "worker": settings.judges.worker}
    return {**about, "phrases": dict(phrases), "options": OPTIONS}
