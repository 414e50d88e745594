"""The offline kit: a study's pages with the trials of some judges, in one HTML file for a machine without a network.

``turinglike study kit`` enlists the judges and puts what they will be shown in the file, pictures and clips too; who
judges is kept by the browser, and saved as a file with a checksum, which ``turinglike study import`` takes in. Truth is
in the file for practice and for the feedback phase alone, which tell it anyway; no code that says that somebody has
finished is in it: only who imports the answers knows that.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from agents.errors import InputError
from judging.study.material import TrialMaterial
from judging.study.page_answers import BadAnswer
from judging.study.pages import KINDS, STUDY_STATIC, media_of, phrases_sent, view
from judging.study.state import ASKED, Judge
from judging.study.study import Study
from serving.http.page import STATIC
from serving.runs.atomic_files import replacing

SCHEMA = "turinglike.kit/1"
LINK = re.compile(r'<link rel="stylesheet" href="static/([\w.]+)">|<script defer src="static/([\w.]+)"></script>')
MOST_BYTES = 256 << 20  # of a file of answers
POLICY = (
    "default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; "
    "form-action 'none'"
)


async def write_kit(study: Study, phrases: Mapping[str, str], number: int, out: Path) -> None:
    """Enlist ``number`` judges and write their kit. Raises InputError for participants, whose answers are checked as
    they are given, and Refused; StorageError."""
    if not isinstance(study.material, TrialMaterial):
        raise InputError("a kit is for judges: participants' answers are checked by the server")
    kit = secrets.token_hex(8)
    judges = [await study.enlist(kit) for _ in range(number)]
    files = sorted(set[str]().union(*(media_of(study, judge) for judge in judges)))
    about = {
        "kit": kit,
        **phrases_sent(study.settings, phrases),
        "judges": [_judge(study, judge) for judge in judges],
        "files": {f"media/{name}": _data(study, name) for name in files},
    }
    scripts: list[str] = []
    page = LINK.sub(lambda link: _inside(link, scripts), (STUDY_STATIC / "study.html").read_text("utf-8"))
    page = page.replace('<link rel="icon" href="static/icon.svg" type="image/svg+xml">\n', "")
    hashes = " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(one.encode()).digest()).decode()}'" for one in scripts)
    meta = f'<meta http-equiv="Content-Security-Policy" content="{POLICY.format(scripts=hashes)}">'
    data = orjson.dumps(about).replace(b"<", b"\\u003c").decode()  # no tag may end the element
    start, rest = page.split("<title>")
    head, body = rest.split("</head>")
    inside = f'<script type="application/json" id="kit">{data}</script>\n'
    with replacing(out) as file:
        file.write(f"{start}{meta}\n<title>{head}{inside}</head>{body}".encode())


def _judge(study: Study, judge: Judge) -> dict[str, Any]:
    steps = []
    for at, step in enumerate(judge.steps):
        truth = study.material.truth(step) if step["kind"] in ASKED else None
        steps.append({"view": view(study, judge, at), "truth": truth})
    # The judge's own code: whatever stands in a file can be read without a single answer, and proves nothing.
    end = {"kind": "end", "step": len(steps), "text": study.settings.texts.thanks, "code": judge.code}
    return {"judge": judge.code, "steps": steps, "end": end}


def _data(study: Study, name: str) -> str:
    kind = KINDS.get(name.rpartition(".")[2], "octet-stream")
    return f"data:image/{kind};base64,{base64.b64encode(study.material.path(name).read_bytes()).decode()}"


def _inside(link: re.Match[str], scripts: list[str]) -> str:
    name = link[1] or link[2]
    text = (STUDY_STATIC / name if (STUDY_STATIC / name).is_file() else STATIC / name).read_text("utf-8")
    if link[1]:
        return f"<style>{text}</style>"
    scripts.append(text)
    return f"<script>{text}</script>"  # after what it needs: the page has its scripts at its end


async def import_answers(study: Study, paths: Sequence[Path]) -> dict[str, int]:
    """Take files of answers in; by judge, how many were new. What is there already is passed over, and so are judges
    who were forgotten: the file of their kit has the others' answers, too.

    Raises InputError, and then takes nothing in, for a file that is damaged, of another study, or whose answers no page
    sends, follow a refusal to take part, or differ from those that are there or in another file.
    """
    longest: dict[str, list[dict[str, Any]]] = {}
    kits, forgotten = {judge.kit for judge in study.state.judges.values()}, dict[str, int]()
    for path in paths:
        for part in _read(path):
            judge = study.state.judges.get(part["judge"])
            if judge is None and part["kit"] in kits:
                forgotten[part["judge"]] = 0
                continue
            if judge is None or judge.kit != part["kit"]:
                raise InputError(f"{path}: judge {part['judge']} is not of a kit of this study")
            answers = part["answers"]
            _check(study, judge, answers, path)
            former = longest.setdefault(judge.code, [])
            for answer, other in zip(answers, former, strict=False):
                if answer["answer"] != other["answer"]:
                    raise InputError(f"{path}: judge {judge.code}, step {answer['step']}: differs between the files")
            longest[judge.code] = max(former, answers, key=len)
    if study.state.closed and any(len(answers) > study.state.judges[code].step for code, answers in longest.items()):
        raise InputError(f"{study.folder} is closed: it takes no answers any more")
    judges = [(study.state.judges[code], answers) for code, answers in longest.items()]
    calls = [
        study.answer(judge, part["step"], part["answer"], at=part["at"])
        for judge, answers in judges
        for part in answers
    ]
    before = {judge.code: judge.step for judge, _ in judges}
    await asyncio.gather(*calls)  # at once, that is in order and in one write
    return {judge.code: judge.step - before[judge.code] for judge, _ in judges} | forgotten


def _check(study: Study, judge: Judge, answers: Sequence[dict[str, Any]], path: Path) -> None:
    """Whether all of a judge's answers can be taken in. Raises InputError."""
    for step, answer in enumerate(answers):
        where = f"{path}: judge {judge.code}, step {step}"
        if step == len(judge.steps):
            raise InputError(f"{where}: there is no such step")
        try:
            kept, _ = study.checked(judge, judge.steps[step], answer["answer"])
        except BadAnswer as error:
            raise InputError(f"{where}: {error}") from None
        if step < judge.step and not kept.items() <= judge.answers[step].items():
            raise InputError(f"{where}: is there already, and differs")
        if kept.get("agree") is False and step + 1 < len(answers):
            raise InputError(f"{where}: who does not agree answers nothing more")


def _read(path: Path) -> list[dict[str, Any]]:
    """The judges of a file with what they answered, steps from 0 on. Raises InputError."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise InputError(f"{path}: is too large to be a kit's answers")
        whole = orjson.loads(path.read_bytes())
        body = whole["body"]
        if whole["schema"] != SCHEMA or hashlib.sha256(body.encode()).hexdigest() != whole["sha256"]:
            raise InputError(f"{path}: is damaged: its checksum is another")
        found = orjson.loads(body)
        for one in found["judges"]:
            one["kit"] = found["kit"]
            if not isinstance(one["judge"], str) or not isinstance(one["answers"], list):
                raise ValueError("a judge lacks")
            for number, answer in enumerate(one["answers"]):
                if datetime.fromisoformat(answer["at"]).tzinfo is None:
                    raise ValueError(f"step {number}: its time has no zone")
                if (
                    type(answer["step"]) is not int
                    or answer["step"] != number
                    or not isinstance(answer["answer"], dict)
                ):
                    raise ValueError(f"step {number} lacks")
        return list(found["judges"])
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise InputError(f"{path}: is no file of a kit's answers: {error}") from None
