"""What the pages of a study say by themselves: in a language that is shipped, or in the words of a study's own file."""

import tomllib
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from agents.errors import InputError
from judging.study.design.settings import StudySettings
from judging.trial_sets.about_judges import OPTIONS
from serving.files.written_texts import read_written

LATER_PHRASES = frozenset(
    {
        "bad_address",
        "begin_again",
        "check_title",
        "codewords",
        "consent_traces",
        "copied",
        "copied_instruction",
        "copy_code",
        "copy_selected",
        "debriefing_copied",
        "debriefing_questions",
        "debriefing_twice",
        "delay",
        "delays",
        "delete_answers",
        "delete_finished_sure",
        "deletion_code",
        "end_fault",
        "end_uncounted",
        "first_after",
        "first_answer",
        "first_breaks",
        "first_by",
        "first_clips",
        "first_consent",
        "first_conversations",
        "first_end",
        "first_happens",
        "first_instructions",
        "first_judge",
        "first_judge_pairs",
        "first_leave",
        "first_meet",
        "first_minutes",
        "first_pairs",
        "first_pictures",
        "first_practice",
        "first_questions",
        "first_tests",
        "first_words",
        "instructions_answers",
        "instructions_talk",
        "instructions_talks",
        "kit_full",
        "kit_next_sure",
        "no_new",
        "not_sent",
        "talk_away",
        "talk_failed",
        "talk_question",
        "test_away",
        "test_failed",
        "told_wait",
    }
)
"""Phrases that came after version 0.2.0. A file of an older study may lack them: such a study opens as before, and the
pages take these from the shipped words, which ``phrase_warnings`` tells. A new phrase is added here, or older studies
no longer open."""
PLURAL_FORMS = ("zero", "one", "two", "few", "many")
"""The plural categories of Unicode (CLDR) beside "other". A phrase with a number, such as ``talk_left``, may have a
form of its own for each: ``talk_left_one``. The phrase itself is for all other numbers."""
RIGHT_TO_LEFT = frozenset({"ar", "ckb", "dv", "fa", "he", "ps", "sd", "ug", "ur", "yi"})
"""Languages that are written from right to left."""
ENGLISH = "en"
UNVERIFIED = frozenset({"ar", "de", "es", "fr", "zh"})
"""Shipped languages that no native reader has checked yet; ``study check`` says so."""


def languages() -> list[str]:
    """The languages whose words are shipped, as ``language`` of ``study.toml`` names them."""
    files = (path.name for path in resources.files("judging.study.pages").iterdir())
    translated = [name.split(".")[1] for name in files if name.startswith("phrases.") and name.count(".") == 2]
    return sorted([ENGLISH, *translated])


SENT_WITH_STEPS = frozenset(
    {
        "codewords",
        "consent_traces",
        "copied_instruction",
        "debriefing_copied",
        "debriefing_questions",
        "debriefing_twice",
    }
)
"""Phrases that nobody gets but with the step that they are for: whoever reads them before knows of the checks."""


def read_phrases(study: Path, settings: StudySettings) -> dict[str, str]:
    """The pages' phrases by name, those of the study's own file before the shipped ones.

    Raises InputError for a file that lacks any but those of ``LATER_PHRASES``, or that has others.
    """
    general = _shipped(_language(settings.language))
    own = _own(study, settings)
    if own is None:
        return dict(general)
    names = {name for name in general if phrase_of(name) == name}
    problems = _problems(own, names)
    if problems:
        raise InputError(f"{study / settings.phrases}: {'; '.join(problems)}")
    return {name: text for name, text in general.items() if phrase_of(name) not in own} | own


def phrase_of(name: str) -> str:
    """The phrase of which a name is a plural form, ``talk_left`` for ``talk_left_few``; the name itself for others."""
    stem, _, form = name.rpartition("_")
    return stem if form in PLURAL_FORMS and f"{stem}_one" in _shipped(ENGLISH) else name


def phrase_warnings(study: Path, settings: StudySettings) -> list[str]:
    """What readers of the pages may not expect: another language than the study's, or words that nobody has checked."""
    own = _own(study, settings)
    language = _language(settings.language)
    lacking = [] if own is None else sorted(LATER_PHRASES - own.keys())
    if lacking:
        shown = "English" if language == ENGLISH else f'the shipped words of "{language}"'
        return [
            f"{study / settings.phrases}: this file lacks {', '.join(lacking)}; the pages show these phrases in {shown}"
        ]
    if own is not None:
        return []
    if language == ENGLISH and _primary(settings.language) != ENGLISH:
        return [
            f'language = "{settings.language}": the pages show their own words (buttons and so on) in English. There '
            f"are words in {', '.join(languages())}; `phrases` names a file with yours"
        ]
    if language in UNVERIFIED:
        return [
            f'language = "{settings.language}": no native reader has checked the words of the pages yet. Read all '
            "pages before people do; `phrases` names a file with your own words"
        ]
    return []


def phrases_sent(settings: StudySettings, phrases: Mapping[str, str], study: str) -> dict[str, Any]:
    """What a page is sent before its first step; ``study`` tells studies apart that a browser has at one address."""
    return {
        "language": settings.language,
        "direction": "rtl" if _primary(settings.language) in RIGHT_TO_LEFT else "ltr",
        "title": settings.texts.title,
        "study": study,
        **settings.judges.model_dump(include={"worker", "parameters", "screen"}),
        "phrases": {name: text for name, text in phrases.items() if name not in SENT_WITH_STEPS},
        "options": OPTIONS,
    }


def _problems(own: Mapping[str, Any], names: Collection[str]) -> list[str]:
    missing = sorted({*names} - own.keys() - LATER_PHRASES)
    unknown = [name for name in own if phrase_of(name) not in names]
    no_text = [name for name, text in own.items() if not isinstance(text, str)]
    problems = []
    if missing:
        problems.append(f"these phrases are missing: {', '.join(missing)}")
    if unknown:
        problems.append(f"these phrases are unknown: {', '.join(_with_guess(name, names) for name in unknown)}")
    if no_text:
        problems.append(f"these phrases are not a text: {', '.join(no_text)}")
    return problems


def _with_guess(name: str, names: Collection[str]) -> str:
    near = get_close_matches(name, names, n=1)
    return f"{name} (did you mean {near[0]}?)" if near else name


def _primary(language: str) -> str:
    return language.partition("-")[0].casefold()


def _language(language: str) -> str:
    """The shipped language for a study's: "de" for "de-AT"; English where there is none."""
    primary = _primary(language)
    return primary if primary in languages() else ENGLISH


@cache
def _shipped(language: str) -> Mapping[str, str]:
    name = "phrases.toml" if language == ENGLISH else f"phrases.{language}.toml"
    return tomllib.loads(resources.files("judging.study.pages").joinpath(name).read_text("utf-8"))


def _own(study: Path, settings: StudySettings) -> dict[str, Any] | None:
    if not settings.phrases:
        return None
    path = study / settings.phrases
    try:
        return tomllib.loads(read_written(path))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: {error}") from None
