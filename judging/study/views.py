"""What a judge's browser is sent: the step that they are at, and nothing that tells whose an answer is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from judging.study.state import Judge, Step
from judging.study.study import Study

MEDIA = ("image", "target_image", "clip")
AHEAD = 3  # trials whose pictures are got before they are shown


def view(study: Study, judge: Judge) -> dict[str, Any]:
    """The step as JSON: ``step`` of ``list``, ``kind``, for a trial ``number`` of ``of``, and what is to be shown."""
    step = judge.current
    if step is None or study.state.closed:
        return {"step": judge.step, **_end(study, judge)}
    found: dict[str, Any] = {"step": judge.step, "list": judge.list, "kind": step["kind"]}
    settings = study.settings
    match step["kind"]:
        case "consent":
            found["text"] = settings.texts.consent
        case "questions":
            found["fields"] = list(settings.questions.before)
        case "after":
            found["fields"] = list(settings.questions.after)
        case "instructions":
            asked = settings.trials
            found |= {
                "text": settings.texts.instructions,
                "trials": sum(1 for one in judge.steps if one["kind"] == "trial" and one["phase"] != "practice"),
                "practice": asked.practice,
                "feedback": asked.feedback,
                "keys": judge.keys,
                "four": asked.choices == "four",
                "prior_told": asked.prior_told,
                "samples": [
                    {**_shown(study, page.trials), "truth": [study.pool.key[name]["truth"] for name in page.trials]}
                    for page in study.pool.sample
                ],
                "ahead": list(_ahead(study, judge)),
            }
        case "trial":
            found |= _trial(study, judge, step)
    return found


def feedback(study: Study, step: Step) -> list[str] | None:
    """What was right, for a page of practice or of the feedback phase; None in the test."""
    if step["kind"] != "trial" or step["phase"] == "test":
        return None
    return [study.pool.key[name]["truth"] for name in step["trials"]]


def media_of(study: Study, judge: Judge) -> set[str]:
    """The files that a judge may have: those of their own trials, and of the samples."""
    pages = [step["trials"] for step in judge.steps if step["kind"] == "trial"]
    pages += [list(page.trials) for page in study.pool.sample]
    return {name for trials in pages for name in _files(study, trials)}


def _trial(study: Study, judge: Judge, step: Step) -> dict[str, Any]:
    asked = study.settings.trials
    counted = [one for one in judge.steps[: judge.step] if one["kind"] == "trial" and one["phase"] != "practice"]
    every = [one for one in judge.steps if one["kind"] == "trial" and one["phase"] != "practice"]
    control = study.control(step)
    return {
        **_shown(study, step["trials"]),
        "practice": step["phase"] == "practice",
        "number": len(counted) + 1,
        "of": len(every),
        "options": _options(study, judge),
        "choices": asked.choices,
        "confidence": asked.confidence,
        "reason": asked.reason,
        "seconds_before": asked.seconds_before,
        "play_once": asked.play_once,
        "control": None if control is None else {"question": control.question, "options": list(control.options)},
        "ahead": list(_ahead(study, judge)),
    }


def _options(study: Study, judge: Judge) -> list[tuple[str, str]]:
    """The two verdicts with their keys, in the order of the keys: it is each judge's own."""
    pairs = [("human", judge.keys[0]), ("machine", judge.keys[1])]
    return sorted(pairs, key=lambda pair: pair[1] != study.settings.trials.keys[0])


def _shown(study: Study, trials: list[str] | tuple[str, ...]) -> dict[str, Any]:
    one = study.pool.trials[trials[0]]
    found: dict[str, Any] = {
        "asked": one.asked,
        "speakers": [study.pool.trials[name].speaker for name in trials],
        "answer": one.answer.model_dump(mode="json", exclude_none=True),
    }
    if one.cue is not None:
        found |= {"cue": one.cue, "examples": [list(pair) for pair in one.examples]}
    if one.asked == "attention_prediction":
        del found["answer"]  # the clip shows it
    return found | {field: f"media/{name}" for field, name in _named(study, trials[0])}


def _named(study: Study, trial: str) -> Iterator[tuple[str, str]]:
    images = study.pool.trials[trial].images_by_field()
    wanted = ("clip",) if "clip" in images else MEDIA  # the clip shows the picture and the target
    for field in wanted:
        if field in images:
            yield field, images[field].name.rpartition("/")[2]


def _files(study: Study, trials: list[str] | tuple[str, ...]) -> Iterator[str]:
    for trial in trials:
        yield from (name for _, name in _named(study, trial))


def _ahead(study: Study, judge: Judge) -> Iterator[str]:
    """The files of the next trials, to be got while this step is shown."""
    begin = judge.step + (judge.steps[judge.step]["kind"] == "trial")
    pages = [step["trials"] for step in judge.steps[begin:] if step["kind"] == "trial"][:AHEAD]
    for trials in pages:
        yield from (f"media/{name}" for name in _files(study, trials))


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
