"""What the pages of a study say by themselves, in English or in the language of a study's own file."""

import tomllib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from agents.errors import InputError
from judging.study.design.settings import StudySettings
from judging.trial_sets.about_judges import OPTIONS

LATER_PHRASES = frozenset(
    {
        "bad_address",
        "begin_again",
        "delete_answers",
        "delete_finished_sure",
        "deletion_code",
        "end_fault",
        "end_uncounted",
        "instructions_answers",
        "instructions_talk",
        "instructions_talks",
        "kit_full",
        "kit_next_sure",
        "talk_away",
        "talk_failed",
        "talk_question",
        "test_away",
        "test_failed",
    }
)
"""Phrases that came after version 0.2.0. A file of an older study may lack them: such a study opens as before, and the
pages say these in English, which ``phrase_warnings`` tells. A new phrase is added here, or older studies no longer
open."""


def read_phrases(study: Path, settings: StudySettings) -> dict[str, str]:
    """The pages' phrases by name. Raises InputError for a file that lacks any but those of ``LATER_PHRASES``."""
    english = _english()
    own = _own(study, settings)
    if own is None:
        return english
    wrong = sorted((english.keys() ^ own.keys()) - (LATER_PHRASES - own.keys()))
    wrong += [name for name, text in own.items() if not isinstance(text, str)]
    if wrong:
        raise InputError(
            f"{study / settings.phrases}: these phrases are missing, or unknown, or not a text: {', '.join(wrong)}"
        )
    return {name: own.get(name, text) for name, text in english.items()}


def phrase_warnings(study: Path, settings: StudySettings) -> list[str]:
    """Which phrases the pages say in English because the study's file lacks them."""
    own = _own(study, settings)
    lacking = [] if own is None else sorted(LATER_PHRASES - own.keys())
    if not lacking:
        return []
    return [
        f"{study / settings.phrases}: this file lacks {', '.join(lacking)}; the pages show these phrases in English"
    ]


def phrases_sent(settings: StudySettings, phrases: Mapping[str, str], study: str) -> dict[str, Any]:
    """What a page is sent before its first step; ``study`` tells studies apart that a browser has at one address."""
    return {
        "language": settings.language,
        "title": settings.texts.title,
        "study": study,
        **settings.judges.model_dump(include={"worker", "parameters", "screen"}),
        "phrases": dict(phrases),
        "options": OPTIONS,
    }


def _english() -> dict[str, str]:
    return tomllib.loads(resources.files("judging.study.pages").joinpath("phrases.toml").read_text("utf-8"))


def _own(study: Path, settings: StudySettings) -> dict[str, Any] | None:
    if not settings.phrases:
        return None
    path = study / settings.phrases
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: {error}") from None
