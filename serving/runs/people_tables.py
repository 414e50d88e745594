"""People's verdicts on trials in the forms of other programs: what a response means, and jsPsych's data.

jsPsych keeps a row for every screen, as CSV or as a JSON list: ``trial_type, trial_index, time_elapsed, rt, response,
stimulus``, plus what an experiment adds. A verdict is a row that names one of our trials (in a column ``trial``, else
in ``stimulus``) and has a response. What was said is in a column ``verdict``, else it is the response: human, machine,
or what ``responses`` say that a key or a button means. Where keys change from judge to judge, ``verdict`` alone can
tell.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agents.answers import ScanpathAnswer, VerdictAnswer, plain
from agents.attention.scanpath_comparison import Size
from agents.errors import InputError, Problem
from serving.runs.csv_tables import by_line, read_table
from serving.runs.display_text import count
from serving.runs.published_benchmark import Answered, Source, answer_to, notice, person
from serving.runs.row_problems import FieldProblem, strict_json
from serving.runs.set_rows import meant

JSPSYCH = ("trial_type", "trial_index")  # columns that every row of it has
SUBJECTS = ("subject", "participant", "subject_id", "participant_id", "worker", "worker_id")
NONE = ("", "null")  # nothing, as its CSV has it
NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
SHOWN = 40  # letters of a wrong value
Responses = Mapping[str, str]


def verdict(said: str, responses: Responses) -> dict[str, Any] | None:
    """The answer of a response: what it means by ``responses``, else human or machine; None where it is neither."""
    meant = responses.get(said.lower(), said.lower())
    return plain(VerdictAnswer.model_validate({"verdict": meant})) if meant in ("human", "machine") else None


def wrong_verdict(said: Any) -> str:
    """What a problem says of a response that is no verdict."""
    return f"must be human or machine, or what --responses give a meaning, not {str(said)[:SHOWN]!r}"


def add_jspsych(
    source: Source,
    rows: Iterable[tuple[int | None, str, Mapping[str, Any]]],
    columns: Sequence[str],
    responses: Responses,
) -> list[Problem]:
    """Add the verdicts of ``rows``, each with its line and what is put before a field's name, to the source; returns
    what is wrong. Raises InputError where no column says who judged."""
    judges = next((name for name in SUBJECTS if name in columns), None)
    if judges is None:
        raise InputError(f"does not say who judged: it has no column {', '.join(SUBJECTS[:-1])} or {SUBJECTS[-1]}")
    named = "trial" if "trial" in columns else "stimulus"
    known = {*JSPSYCH, "time_elapsed", "rt", "response", "stimulus", "verdict", judges, named}
    source.left_out += [name for name in columns if name and name not in known]
    problems = []
    for line, before, row in rows:
        trial, response = _text(row.get(named)), row.get("response")
        if trial is None or not trial.isprintable() or set(trial) & set("<[{ "):  # what a screen showed is no name
            source.noticed["screens_that_name_no_trial"] += 1
            continue
        meant, judge = _text(row.get("verdict")), _text(row.get(judges))
        if meant is None and _text(response) is None:
            source.noticed["trials_without_a_response"] += 1
            continue
        answer = verdict(meant, {}) if meant is not None else verdict(_text(response) or "", responses)
        rt, found = milliseconds(row.get("rt")), []
        if answer is None:
            found.append(
                ("response" if meant is None else "verdict", wrong_verdict(response if meant is None else meant))
            )
        if judge is None:
            found.append((judges, "is empty"))
        elif not isinstance(row[judges], str | int | float) or isinstance(row[judges], bool):
            found.append((judges, f"must be a name or a number, not {str(row[judges])[:SHOWN]!r}"))
        if rt is not None and not is_duration(rt):
            found.append(("rt", wrong_rt(row.get("rt"))))
        problems += [Problem(str(source.path), line, f"{before}{name}", message) for name, message in found]
        raw = {"response": response, "rt": rt}
        source.answers.append(Answered(trial, "human", person(judge or ""), raw, {"answer": answer}))
    return problems


def _text(value: Any) -> str | None:
    """A cell as text, None of one that says nothing. To JSON 1 and 1.0 are the same number."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = "" if value is None else str(value).strip()
    return None if text in NONE else text


def is_duration(rt: float) -> bool:
    return math.isfinite(rt) and rt >= 0


def wrong_rt(value: Any) -> str:
    """What a problem says of a reaction time that is none."""
    return f"must be milliseconds, not {str(value)[:SHOWN]!r}"


def milliseconds(value: Any) -> float | None:
    """A reaction time, None where there is none, NaN of what is no number."""
    text = _text(value)
    if text is None:
        return None
    return float(text) if NUMBER.fullmatch(text) else math.nan


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


def _add_row(
    source: Source, row: _Answered, time: str | None, frame: Size | None, responses: Responses
) -> list[FieldProblem]:
    """Add the answer of one row, which took ``time`` in milliseconds; what is wrong with it, if anything is."""
    said: Any = row.response
    found: list[FieldProblem] = [(name, "is empty") for name in ("stimulus", "response") if not getattr(row, name)]
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
