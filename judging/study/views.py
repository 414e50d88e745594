"""What a browser is sent: the step that its judge or participant is at, and nothing that tells whose an answer is."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from judging.study.state import ASKED, Judge
from judging.study.study import Study

AHEAD = 3  # trials whose pictures are got before they are shown


def view(study: Study, judge: Judge, at: int | None = None) -> dict[str, Any]:
    """The step that is next to be answered, or step ``at``, as JSON: ``step`` of ``list``, ``kind``, for a trial
    ``number`` of ``of``, and what is to be shown."""
    step = judge.current if at is None else judge.steps[at]
    if step is None or study.state.closed:
        return {"step": judge.step, **_end(study, judge)}
    at = judge.step if at is None else at
    found: dict[str, Any] = {"step": at, "list": judge.list, "kind": step["kind"]}
    settings = study.settings
    match step["kind"]:
        case "consent":
            found["text"] = settings.texts.consent
        case "questions":
            found["fields"] = list(settings.questions.before)
        case "after":
            found["fields"] = list(settings.questions.after)
        case "instructions":
            found |= {"text": settings.texts.instructions, **study.material.instructions(judge)}
            found["ahead"] = _ahead(study, judge, at)
        case _:
            found |= {
                **study.material.show(judge, step),
                "number": judge.counted(at) + 1,
                "of": judge.counted(),
            }
            found["ahead"] = _ahead(study, judge, at + 1)
    return found


def media_of(study: Study, judge: Judge) -> set[str]:
    """The names of files that a judge may have: those of their own trials, and of the samples."""
    own = (name for step in judge.steps if step["kind"] in ASKED for name in study.material.files(step))
    return {*own, *study.material.common_files()}


def _ahead(study: Study, judge: Judge, begin: int) -> list[str]:
    """The files of the next trials, to be got while this step is shown."""
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
