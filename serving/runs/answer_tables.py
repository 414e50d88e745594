"""A table (``.csv``) of people's answers, one a row. Its columns are ``stimulus`` (or ``cue``, ``image``), ``response``
and, if they are known, ``subject`` (or ``participant``, ``worker`` …) and ``rt``, the milliseconds that it took. With
``rt`` a record's ``raw`` is ``{"response", "rt"}``, without it the response.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agents.answers import ScanpathAnswer, plain
from agents.attention.scanpath_comparison import Size
from agents.errors import InputError, Problem
from serving.runs.columns import meant
from serving.runs.csv_tables import by_line, read_table
from serving.runs.display_text import count
from serving.runs.published_benchmark import Answered, Source, answer_to, notice, person
from serving.runs.row_problems import Found, strict_json
from serving.runs.verdict_forms import (
    JSPSYCH,
    SUBJECTS,
    Responses,
    add_jspsych,
    is_duration,
    milliseconds,
    verdict,
    wrong_rt,
    wrong_verdict,
)

STIMULI = ("stimulus", "cue", "image", "stimulus_id")  # columns that name one, the first that is there
RESPONSES = ("answer", "word", "caption", "color", "colour", "reply", "text", "verdict")  # what people call a response


@dataclass(frozen=True, slots=True)
class _Answered:
    """A row of a table of people's answers, without the spaces around its cells."""

    stimulus: str
    subject: str
    response: str


def refuse(wrong: Sequence[Problem]) -> None:
    """Raise InputError with the problems of a file, if there are any."""
    if wrong:
        raise InputError(f"has {count(len(wrong), 'problem')}", list(wrong))


def add_table(source: Source, data: bytes, frame: Size | None, responses: Responses) -> None:
    """Add the answers of a table's bytes to the source. Raises InputError with every problem."""
    table = read_table(data, str(source.path))
    if source.task == "judgement" and set(JSPSYCH) <= set(table.names):
        source.form = "jspsych"
        rows = ((line, "", cells) for line, cells in table.rows)
        refuse(by_line([*table.problems, *add_jspsych(source, rows, table.names, responses)]))
        return
    stimulus, subject = (next((name for name in given if name in table.names), "") for given in (STIMULI, SUBJECTS))
    absent = [*([] if stimulus else ["stimulus (cue or image)"]), *([] if "response" in table.names else ["response"])]
    if absent:
        hints = {
            name: "stimulus" if meant(name, ("cue", "image")) else "response"
            for name in table.names
            if (not stimulus and meant(name, ("cue", "image"))) or name.lower() in RESPONSES
        }
        told = "".join(f"; did you mean `{field}` by `{name}`?" for name, field in hints.items())
        raise InputError(f"has no column {' and no column '.join(absent)}; `subject` says whose an answer is{told}")
    source.left_out += [name for name in table.names if name and name not in (stimulus, subject, "response", "rt")]
    wrong: list[Problem] = []
    for line, cells in table.rows:
        row = _Answered(cells[stimulus].strip(), cells.get(subject, "").strip(), cells["response"].strip())
        found = _add_row(source, row, cells.get("rt"), frame, responses)
        wrong += [
            Problem(str(source.path), line, stimulus if name == "stimulus" else name, message)
            for name, message in found
        ]
    refuse(by_line([*table.problems, *wrong]))
    source.noticed["human_answers_without_a_name"] = sum(one.agent == person("") for one in source.answers)


def _add_row(source: Source, row: _Answered, time: str | None, frame: Size | None, responses: Responses) -> list[Found]:
    """Add the answer of one row, which took ``time`` in milliseconds; what is wrong with it, if anything is."""
    said: Any = row.response
    found: list[Found] = [(name, "is empty") for name in ("stimulus", "response") if not getattr(row, name)]
    if found:
        return found
    fields: dict[str, Any] = {}
    if source.task == "attention_prediction":
        if frame is None:
            raise InputError("does not say of which frame its paths are; give --frame WIDTHxHEIGHT")
        try:
            said = strict_json(row.response)
            fields = {"answer": plain(ScanpathAnswer(fixations=said, frame=list(frame)))}
        except ValueError:  # pydantic's among them
            found.append(("response", "must be a list of points, [[x, y], …]"))
    elif source.task == "judgement":
        answer = verdict(row.response, responses)
        if answer is None:
            found.append(("response", wrong_verdict(row.response)))
        fields = {"answer": answer}
    else:
        notice(source.task, row.response, source.noticed)
        fields = {"answer": answer_to(source.task, row.response)}
    raw, rt = said, milliseconds(time)
    if rt is not None:
        raw = {"response": said, "rt": rt}
        found += [] if is_duration(rt) else [("rt", wrong_rt(time))]
    if not found:
        source.answers.append(Answered(row.stimulus, "human", person(row.subject), raw, fields))
    return found
