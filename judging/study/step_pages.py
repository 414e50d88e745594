"""What the page of a step shows, as JSON, and the end page. The truth is never in it, nor who answered."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from judging.study.log.state import Judge
from judging.study.log.steps import CheckStep, Instructions, MaterialStep
from judging.study.results.verdict_rows import completion_code
from judging.study.serving_study import ServedStudy

AHEAD = 3
"""Steps whose pictures a page gets before they are shown."""
STUDY_STATIC = Path(__file__).with_name("static")
"""The pages' scripts and styles."""


def view(study: ServedStudy, judge: Judge, number: int | None = None) -> dict[str, Any]:
    """The page of the next step, or of the step of a ``number``, as JSON; the end where there is none."""
    step = judge.current if number is None else judge.steps[number]
    if step is None or study.state.closed:
        return {"step": judge.step, "list": judge.code, **_end(study, judge)}
    position = judge.step if number is None else number
    page: dict[str, Any] = {"step": position, "list": judge.code, "kind": step.kind}
    settings = study.settings
    if isinstance(step, Instructions):
        page |= {"text": settings.texts.instructions, **study.material.instructions(judge, step)}
    elif isinstance(step, MaterialStep):
        page |= {
            **study.material.show(judge, step),
            **_place(judge, position, step),
            **study.writing.shown(judge, step),
        }
    elif isinstance(step, CheckStep):
        page |= {"text": step.text, **study.writing.shown(judge, step)}
    elif step.kind == "consent":
        return page | {"text": study.consent.text, "consent": study.consent.sha256}
    elif step.kind == "break":
        page |= {"number": judge.counted(position), "of": judge.counted()}
    else:
        before = step.kind == "questions"
        fields: Sequence[str] = settings.questions.before if before else settings.questions.after
        return page | {"fields": fields, "required": settings.questions.required}
    following = [step for step in judge.steps[position + 1 :] if isinstance(step, MaterialStep)][:AHEAD]
    return page | {"ahead": [f"media/{name}" for step in following for name in study.material.files(step)]}


def media_of(study: ServedStudy, judge: Judge) -> dict[str, Path]:
    """The pictures and clips of all steps of a participant, by the name that a page asks for."""
    return {name: path for step in judge.steps for name, path in study.material.files(step).items()}


def _place(judge: Judge, position: int, step: MaterialStep) -> dict[str, int]:
    """Which a step is among those that count, or among those of practice, and how many there are of these."""
    others = [(at, other) for at, other in enumerate(judge.steps) if isinstance(other, MaterialStep)]
    alike = [at for at, other in others if other.is_counted == step.is_counted]
    return {"number": alike.index(position) + 1, "of": len(alike)}


def _end(study: ServedStudy, judge: Judge) -> dict[str, Any]:
    settings = study.settings
    personal = study.log.personal.get(judge.code, {})
    code = completion_code(judge, settings)
    address = settings.end.redirect if code else ""
    values = {name: personal.get(name, "") for name in ("worker", *settings.judges.parameters)}
    for name, value in {**values, "code": code}.items():
        address = address.replace(f"{{{name}}}", quote(value, safe=""))
    kind = "end" if judge.ended == "finished" else judge.ended or "closed"
    text = settings.texts.thanks if kind == "end" else ""
    page: dict[str, Any] = {"kind": kind, "text": text, "code": code, "redirect": address or None}
    page |= study.writing.told(judge)
    if kind == "end" and not study.state.has_finished(judge):  # what they took part in does not count: they are told
        causes = {meeting.cause() for meeting in study.state.met(judge) if meeting is not None}
        page["note"] = "end_fault" if "fault" in causes else "end_uncounted"
    return page
