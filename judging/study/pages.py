"""What a browser is sent: a page's words, and the judge's step."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import quote

from agents.errors import InputError
from judging.study.events import ASKED, Judge
from judging.study.page_answers import OPTIONS
from judging.study.settings import StudySettings
from judging.study.study import Study

STUDY_STATIC = Path(__file__).with_name("static")
AHEAD = 3  # trials whose pictures are got before they are shown


def read_phrases(study: Path, settings: StudySettings) -> dict[str, str]:
    """The pages' phrases by name. Raises InputError for a file that lacks any."""
    english = tomllib.loads(resources.files("judging.study").joinpath("phrases.toml").read_text("utf-8"))
    if not settings.phrases:
        return english
    path = study / settings.phrases
    try:
        phrases = tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: {error}") from None
    wrong = sorted(english.keys() ^ phrases.keys())
    wrong += [name for name, text in phrases.items() if not isinstance(text, str)]
    if wrong:
        raise InputError(f"{path}: a page's phrase lacks, or none is called so, or it is no text: {', '.join(wrong)}")
    return phrases


def phrases_sent(settings: StudySettings, phrases: Mapping[str, str]) -> dict[str, Any]:
    about = {"language": settings.language, "title": settings.texts.title, "worker": settings.judges.worker}
    return {**about, "phrases": dict(phrases), "options": OPTIONS}


def view(study: Study, judge: Judge, at: int | None = None) -> dict[str, Any]:
    """The next step, or step ``at``, as JSON."""
    step = judge.current if at is None else judge.steps[at]
    if step is None or study.state.closed:
        return {"step": judge.step, **_end(study, judge)}
    at = judge.step if at is None else at
    page: dict[str, Any] = {"step": at, "list": judge.code, "kind": step["kind"]}
    settings = study.settings
    match step["kind"]:
        case "consent":
            return page | {"text": settings.texts.consent}
        case "questions":
            return page | {"fields": list(settings.questions.before)}
        case "after":
            return page | {"fields": list(settings.questions.after)}
        case "instructions":
            page |= {"text": settings.texts.instructions, **study.material.instructions(judge)}
        case _:
            page |= {**study.material.show(judge, step), "number": judge.counted(at) + 1, "of": judge.counted()}
    following = [step for step in judge.steps[at + 1 :] if step["kind"] in ASKED][:AHEAD]
    return page | {"ahead": [f"media/{name}" for step in following for name in study.material.files(step)]}


def media_of(study: Study, judge: Judge) -> dict[str, Path]:
    files = dict(study.material.files(None))
    for step in judge.steps:
        if step["kind"] in ASKED:
            files |= study.material.files(step)
    return files


def _end(study: Study, judge: Judge) -> dict[str, Any]:
    if judge.ended != "finished":
        return {"kind": judge.ended or "closed"}
    code, worker = quote(judge.end_code, safe=""), quote(study.worker(judge.code), safe="")
    address = study.settings.end.redirect.replace("{code}", code).replace("{worker}", worker)
    about = {"text": study.settings.texts.thanks, "code": judge.end_code, "redirect": address or None}
    return {"kind": "end", **about}
