"""The pages' own words. English is packaged; a study may bring a file with the same names in another language."""

from __future__ import annotations

import tomllib
from importlib import resources
from pathlib import Path

from agents.errors import InputError, Problem
from judging.study.settings import StudySettings


def read_phrases(study: Path, settings: StudySettings) -> dict[str, str]:
    """The phrases by name, of the study's file or in English. Raises InputError where one lacks or is unknown."""
    english = tomllib.loads(resources.files("judging.study").joinpath("phrases.toml").read_text("utf-8"))
    if not settings.phrases:
        return english
    path = study / settings.phrases
    try:
        found = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: {error}") from None
    problems = [Problem(str(path), None, name, "lacks") for name in english.keys() - found.keys()]
    problems += [Problem(str(path), None, name, "no page uses this") for name in found.keys() - english.keys()]
    problems += [Problem(str(path), None, name, "must be text") for name in found if not isinstance(found[name], str)]
    if problems:
        raise InputError(f"{path}: the phrases are not those that the pages use", sorted(problems, key=str))
    return found
