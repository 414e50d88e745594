"""What a browser is sent: a page's words, and the step that its judge is at, without whose answer it is."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import quote

from agents.errors import InputError, Problem
from judging.study.page_answers import OPTIONS
from judging.study.settings import StudySettings
from judging.study.state import ASKED, Judge
from judging.study.study import Study

STUDY_STATIC = Path(__file__).with_name("static")
KINDS = {"jpeg": "jpeg", "jpg": "jpeg", "png": "png", "gif": "gif", "webp": "webp", "bmp": "bmp", "tiff": "tiff"}
AHEAD = 3  # trials whose pictures are got before they are shown


def read_phrases(study: Path, settings: StudySettings) -> dict[str, str]:
    """The pages' phrases by name, of the study's file or in English. Raises InputError for a file that lacks some."""
    english = tomllib.loads(resources.files("judging.study").joinpath("phrases.toml").read_text("utf-8"))
    if not settings.phrases:
        return english
    path = study / settings.phrases
    try:
        phrases = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: {error}") from None
    problems = [Problem(str(path), None, name, "lacks") for name in english.keys() - phrases.keys()]
    problems += [Problem(str(path), None, name, "no page uses this") for name in phrases.keys() - english.keys()]
    problems += [
        Problem(str(path), None, name, "must be text") for name, text in phrases.items() if not isinstance(text, str)
    ]
    if problems:
        raise InputError(f"{path}: the phrases are not those that the pages use", sorted(problems, key=str))
    return phrases


def phrases_sent(settings: StudySettings, phrases: Mapping[str, str]) -> dict[str, Any]:
    """What a page gets before anything else: its language, title and words."""
    about = {"language": settings.language, "title": settings.texts.title, "worker": settings.judges.worker}
    return {**about, "phrases": dict(phrases), "options": OPTIONS}


def view(study: Study, judge: Judge, at: int | None = None) -> dict[str, Any]:
    """The step that is next to be answered, or step ``at``, as JSON."""
    step = judge.current if at is None else judge.steps[at]
    if step is None or study.state.closed:
        return {"step": judge.step, **_end(study, judge)}
    at = judge.step if at is None else at
    page: dict[str, Any] = {"step": at, "list": judge.list, "kind": step["kind"]}
    settings = study.settings
    match step["kind"]:
        case "consent":
            page["text"] = settings.texts.consent
        case "questions":
            page["fields"] = list(settings.questions.before)
        case "after":
            page["fields"] = list(settings.questions.after)
        case "instructions":
            page |= {"text": settings.texts.instructions, **study.material.instructions(judge)}
            page["ahead"] = _ahead(study, judge, at)
        case _:
            page |= {**study.material.show(judge, step), "number": judge.counted(at) + 1, "of": judge.counted()}
            page["ahead"] = _ahead(study, judge, at + 1)
    return page


def media_of(study: Study, judge: Judge) -> set[str]:
    """The names of files that a judge may have: those of their trials, and of the samples."""
    names = (name for step in judge.steps if step["kind"] in ASKED for name in study.material.files(step))
    return {*names, *study.material.common_files()}


def _ahead(study: Study, judge: Judge, begin: int) -> list[str]:
    following = [step for step in judge.steps[begin:] if step["kind"] in ASKED][:AHEAD]
    return [f"media/{name}" for step in following for name in study.material.files(step)]


def _end(study: Study, judge: Judge) -> dict[str, Any]:
    if judge.ended != "finished":
        return {"kind": judge.ended or "closed"}
    code, worker = quote(judge.end_code, safe=""), quote(study.worker(judge.code), safe="")
    address = study.settings.end.redirect
    return {
        "kind": "end",
        "text": study.settings.texts.thanks,
        "code": judge.end_code,
        "redirect": address.replace("{code}", code).replace("{worker}", worker) or None,
    }
