"""Which texts of a study in another language are still the English ones that ``study new`` wrote."""

import tomllib

from judging.study.design import presets
from judging.study.design.settings import AnswersSettings, JudgesSettings, StudySettings

TEXTS = ("title", "consent", "instructions", "thanks")
"""The keys of ``[texts]`` that ``study new`` fills with English."""
PRESETS = ("plain", "2022", "2025", "feedback")


def english_texts(settings: StudySettings) -> list[str]:
    """The keys of ``[texts]`` that are as ``study new`` writes them, in English, although the study's language is
    another; [] of a study in English."""
    if settings.language.partition("-")[0].casefold() == "en":
        return []
    return [key for key in TEXTS if is_template(settings, key)]


def is_template(settings: StudySettings, key: str) -> bool:
    """Whether a text of a study, by its key of ``[texts]``, is as ``study new`` writes it; not where it is empty."""
    text = getattr(settings.texts, key).strip()
    shipped = [tomllib.loads(made)["texts"] for made in _as_made(settings)]
    return bool(text) and any(text == texts.get(key, "").strip() for texts in shipped)


def sentence_on(settings: StudySettings) -> str:
    """A sentence on :func:`english_texts`; "" where there are none."""
    found = english_texts(settings)
    if not found:
        return ""
    return (
        f'language = "{settings.language}": these texts of study.toml are still the English ones: {", ".join(found)}. '
        "Write them in the language of the participants"
    )


def _as_made(settings: StudySettings) -> list[str]:
    if isinstance(settings, JudgesSettings):
        texts = [presets.study_of_judges("", settings.task, name) for name in PRESETS]
        return [*texts, presets.study_of_judges("", settings.task, "plain", of_pairs=True)]
    if isinstance(settings, AnswersSettings):
        return [presets.study_of_participants("", settings.task)]
    return [presets.study_of_tests(name) for name in presets.OF_TESTS]
