"""The offline kit: a study's pages and its judges' trials in an HTML file, which saves answers as a file."""

import asyncio
import base64
import hashlib
import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from agents.errors import InputError
from judging.study.design.settings import StudySettings
from judging.study.log.codes import draw_code
from judging.study.log.participant_events import ConsentAnswered, StepAnswer
from judging.study.log.state import Judge
from judging.study.pages.first_page import first_page
from judging.study.pages.material import MEDIA_TYPES
from judging.study.pages.page_answers import BadAnswer, visible
from judging.study.pages.phrases import phrases_sent
from judging.study.serving_study import ServedStudy
from judging.study.step_pages import STUDY_STATIC, media_of, view
from serving.files.atomic_files import replacing
from serving.pages.rendering import STATIC, with_files_inside

SCHEMA = "turinglike.kit/1"
"""The form of a file of answers."""
POLICY = (
    "default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; "
    "form-action 'none'"
)
LEFT = "left"
"""Stands in a file in place of answers: the judge has left, and what earlier files had of them is deleted."""
KitAnswers = list[dict[str, Any]]
"""The answers of a judge in a file: ``step``, ``answer`` as the page sends it, and the time ``at``."""


async def write_kit(study: ServedStudy, phrases: Mapping[str, str], number: int, out: Path) -> None:
    """Enlist ``number`` judges and write their kit to ``out``: an HTML file with all that they see.

    ``phrases`` are the pages' words. Raises InputError for a study that no kit can hold, and StorageError.
    """
    if study.material.kind != "trial":
        raise InputError("a kit is for judges only: answers of participants are checked by the server")
    if study.settings.questions.out:
        raise InputError("a kit cannot screen people out: leave questions.out empty")
    kit = f"kit-{draw_code()}"
    judges = [await study.enlist(secrets.token_urlsafe(24), kit=kit) for _ in range(number)]
    files = {name: path for judge in judges for name, path in media_of(study, judge).items()}
    content = {
        "kit": kit,
        **phrases_sent(study.settings, phrases, kit),
        "first_page": first_page(study.material),
        "judges": [_judge(study, judge) for judge in judges],
        "files": {f"media/{name}": _data_address(path) for name, path in sorted(files.items())},
    }
    page, hashes = with_files_inside((STUDY_STATIC / "study.html").read_text("utf-8"), [STUDY_STATIC, STATIC])
    meta = f'<meta http-equiv="Content-Security-Policy" content="{POLICY.format(scripts=hashes)}">'
    data = orjson.dumps(content).replace(b"<", b"\\u003c").decode()  # no tag may end the element
    page = page.replace("<title>", f"{meta}\n<title>", 1)
    page = page.replace("</head>", f'<script type="application/json" id="kit">{data}</script>\n</head>', 1)
    with replacing(out) as file:
        file.write(page.encode())


def unused_in_kits(settings: StudySettings) -> list[str]:
    """The choices of ``study.toml`` that a kit cannot keep, for it has no server and no panel."""
    judges = settings.judges
    end = settings.end
    choices = {
        "judges.entry": judges.entry == "links",
        "judges.reload": judges.reload == "block",
        "judges.worker": judges.worker,
        "judges.parameters": judges.parameters,
        "end.code": end.code,
        "end.failed_checks": end.failed_checks,
        "end.no_consent": end.no_consent,
        "end.redirect": end.redirect,
    }
    return [name for name, is_made in choices.items() if is_made]


def _judge(study: ServedStudy, judge: Judge) -> dict[str, Any]:
    steps = [
        {"view": view(study, judge, number), "truth": study.material.truth(step)}
        for number, step in enumerate(judge.steps)
    ]
    # The judge's code, which proves nothing: a file can be read without a single answer.
    code = judge.code
    text = study.settings.texts.thanks
    return {
        "judge": code,
        "steps": steps,
        "end": {"kind": "end", "step": len(steps), "list": code, "text": text, "code": code},
    }


def _data_address(path: Path) -> str:
    kind = MEDIA_TYPES.get(path.suffix[1:], "octet-stream")
    return f"data:image/{kind};base64,{base64.b64encode(path.read_bytes()).decode()}"


async def import_answers(study: ServedStudy, paths: Sequence[Path]) -> dict[str, int]:
    """Take files of answers in, each in full or not at all, and delete who has left.

    Returns, by judge, how many answers were new: a file may come again, with more answers than before. Raises
    InputError for a file that is damaged, of another study, or at odds with what is there; and StorageError.
    """
    added: dict[str, int] = {}
    for path in paths:
        kit, judges, left = _read(path)
        if not any(judge.kit == kit for judge in study.state.judges.values()):
            raise InputError(f"{path}: these answers are not from a kit of this study")
        people = study.state.judges
        there = {code: people[code] for code in judges if code in people and people[code].ended != LEFT}
        for code, judge in there.items():
            _check(study, judge, judges[code], path)
            if study.state.closed and len(judges[code]) > judge.step:
                raise InputError(f"{study.folder} is closed, and takes no more answers")
        for code in left & people.keys():
            await study.leave(people[code])
        before = {code: judge.step for code, judge in there.items()}
        calls = [
            study.answer(judge, answer["step"], answer["answer"], at=answer["at"])
            for code, judge in there.items()
            for answer in judges[code]
        ]
        await asyncio.gather(*calls)  # at once, that is in order and in a single write
        for code in (*judges, *sorted(left)):
            new = there[code].step - before[code] if code in there else 0
            added[code] = added.get(code, 0) + new
    return added


def _check(study: ServedStudy, judge: Judge, answers: KitAnswers, path: Path) -> None:
    for step, answer in enumerate(answers):
        where = f"{path}: judge {judge.code}, step {step}"
        if step == len(judge.steps):
            raise InputError(f"{where}: there is no such step")
        try:
            event, _ = study.checked(judge, step, answer["answer"], answer["at"])
        except BadAnswer as error:
            raise InputError(f"{where}: {error}") from None
        if step < judge.step and not _said(event).items() <= _said(judge.answers[step]).items():
            raise InputError(f"{where}: is there already, and differs")
        declines = isinstance(event, ConsentAnswered) and not event.agree
        if declines and step + 1 < len(answers):
            raise InputError(f"{where}: who does not agree answers nothing more")


def _said(answer: StepAnswer) -> dict[str, Any]:
    """What a judge said, as it is read now: older versions kept a reason that shows nothing as it was sent."""
    answered = answer.model_dump(exclude_unset=True, exclude={"event", "judge", "at", "step", "consent", "seconds"})
    return {**answered, "reason": visible(answered["reason"])} if "reason" in answered else answered


def _read(path: Path) -> tuple[str, dict[str, KitAnswers], set[str]]:
    try:
        saved = orjson.loads(path.read_bytes())
        body = saved["body"]
        if saved["schema"] != SCHEMA or hashlib.sha256(body.encode()).hexdigest() != saved["sha256"]:
            raise ValueError("it is damaged: its checksum is another")
        content = orjson.loads(body)
        both = {str(judge["judge"]): judge["answers"] for judge in content["judges"]}
        judges: dict[str, KitAnswers] = {code: answers for code, answers in both.items() if answers != LEFT}
        for answers in judges.values():
            for number, answer in enumerate(answers):
                has_zone = datetime.fromisoformat(answer["at"]).tzinfo is not None
                if answer["step"] != number or type(answer["answer"]) is not dict or not has_zone:
                    raise ValueError(f"step {number} lacks, or its time has no zone")
        return str(content["kit"]), judges, both.keys() - judges.keys()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise InputError(f"{path}: is no file of a kit's answers: {error}") from None
