"""Tables of people's answers (``.csv``), and verdicts in jsPsych's data."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agents.answers import ScanpathAnswer, VerdictAnswer, plain
from agents.errors import InputError, Problem
from serving.runs.csv_tables import by_line, read_table
from serving.runs.import_forms import UNKNOWN, Size, Source, answer_to, parse_json, person, refuse, task_of_file
from serving.runs.row_problems import FieldProblem, strict_json

JSPSYCH = ("trial_type", "trial_index")  # columns that each of its rows has
SUBJECTS = ("subject", "participant", "subject_id", "participant_id", "worker", "worker_id")
STIMULI = ("stimulus", "cue", "image", "stimulus_id")  # columns that name a stimulus, the first that is there
NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
CHOICES = (("machine", "human"), ("first", "second"))  # of one interval and of two
LONGEST = 40  # letters of a wrong value

Responses = Mapping[str, str]


def add_table(source: Source, data: bytes, task: str | None, frame: Size | None, responses: Responses) -> None:
    """Add the answers of a table, or jsPsych's verdicts."""
    source.form, source.task = "table", "judgement" if task == "judgement" else task_of_file(source.path, task)
    table = read_table(data, str(source.path))
    if source.task == "judgement" and set(JSPSYCH) <= set(table.names):
        source.form = "jspsych"
        rows = ((line, "", cells) for line, cells in table.rows)
        refuse(by_line([*table.problems, *_add_jspsych(source, rows, table.names, responses)]))
        return
    if source.task == "judgement" and {"truth", "verdict"} & {*table.names}:
        source.form = "judgements"
        refuse(by_line([*table.problems, *_add_judgements(source, table.rows, table.names)]))
        return
    stimulus, subject = (next((name for name in names if name in table.names), "") for names in (STIMULI, SUBJECTS))
    absent = [*([] if stimulus else ["stimulus (cue or image)"]), *([] if "response" in table.names else ["response"])]
    if absent:
        raise InputError(f"has no column {' and no column '.join(absent)}; `subject` says whose an answer is")
    wrong = [*table.problems]
    for line, cells in table.rows:
        name, response = cells[stimulus].strip(), cells["response"].strip()
        raw, answer, faults = _table_answer(source, response, frame, responses)
        if empty := [column for column, text in ((stimulus, name), ("response", response)) if not text]:
            faults = [(column, "is empty") for column in empty]
        else:
            rt, wrong_rt = _milliseconds(cells.get("rt"))
            faults += wrong_rt
            raw = raw if rt is None else {"response": raw, "rt": rt}
        wrong += [Problem(str(source.path), line, column, message) for column, message in faults]
        source.add(name, person(cells.get(subject, "").strip()), raw, answer)
    refuse(by_line(wrong))


def _add_judgements(
    source: Source, rows: Iterable[tuple[int, Mapping[str, str]]], columns: Sequence[str]
) -> list[Problem]:
    """Add verdicts on stimuli of others, each with its truth in ``raw``; returns all problems. Of two intervals truth
    and verdict are the machine's, ``first`` or ``second``."""
    judges = next((name for name in ("judge", *SUBJECTS) if name in columns), "judge")
    if absent := [name for name in (judges, "stimulus", "truth", "verdict") if name not in columns]:
        raise InputError(f"has no column {' and no column '.join(absent)}")
    wrong: list[Problem] = []
    for line, cells in rows:
        row = {name: cells.get(name, "").strip() for name in ("stimulus", "truth", "verdict", "agent", "confidence")}
        needed = {judges: cells[judges].strip(), **{name: row[name] for name in ("stimulus", "truth", "verdict")}}
        faults = [(name, "is empty") for name, text in needed.items() if not text]
        words = next((pair for pair in CHOICES if row["truth"] in pair), CHOICES[0])
        faults += [(name, f"must be {' or '.join(words)}, not {row[name][:LONGEST]!r}")
                   for name in ("truth", "verdict") if row[name] and row[name] not in words]  # fmt: skip
        sure = float(row["confidence"]) if NUMBER.fullmatch(row["confidence"]) else None
        if row["confidence"] and (sure is None or not 0 <= sure <= 1):
            faults.append(("confidence", f"must be from 0 to 1, not {row['confidence'][:LONGEST]!r}"))
        wrong += [Problem(str(source.path), line, column, message) for column, message in faults]
        if not faults:
            is_machine, says_machine = (row[name] == words[0] for name in ("truth", "verdict"))
            agent = row["agent"] or (UNKNOWN if is_machine or words == CHOICES[1] else "human")
            raw = {**row, "agent": agent, "truth": "machine" if is_machine else "human", "pair": words == CHOICES[1]}
            answer = VerdictAnswer(verdict="machine" if says_machine else "human", confidence=sure)
            source.add(" ".join((row["stimulus"], agent, row["truth"])), person(needed[judges]), raw, plain(answer))
    return wrong


def _table_answer(
    source: Source, response: str, frame: Size | None, responses: Responses
) -> tuple[Any, dict[str, Any] | None, list[FieldProblem]]:
    if source.task == "judgement":
        answer = _verdict(response, responses)
        return response, answer, [] if answer else [("response", _wrong_verdict(response))]
    if source.task != "attention_prediction":
        return response, answer_to(source.task, response), []
    if frame is None:
        raise InputError("does not say of which frame its paths are; give --frame WIDTHxHEIGHT")
    try:
        points = strict_json(response)
        return points, plain(ScanpathAnswer(fixations=points, frame=list(frame))), []
    except ValueError:  # pydantic's among them
        return response, None, [("response", "must be a list of points, [[x, y], …]")]


def add_screens(source: Source, data: bytes, responses: Responses) -> None:
    source.form, source.task = "jspsych", "judgement"
    content = parse_json(data)
    rows = content if isinstance(content, list) else [content]
    if not all(isinstance(row, dict) and set(JSPSYCH) <= row.keys() for row in rows):
        raise InputError("is not jsPsych's data: that is a list with trial_type and trial_index in every row")
    columns = list(dict.fromkeys(name for row in rows for name in row))
    screens = ((None, f"[{at}].", row) for at, row in enumerate(rows))
    refuse(_add_jspsych(source, screens, columns, responses))


def _add_jspsych(
    source: Source,
    rows: Iterable[tuple[int | None, str, Mapping[str, Any]]],
    columns: Sequence[str],
    responses: Responses,
) -> list[Problem]:
    """Add verdicts from ``rows`` of (line, prefix of field names, screen); returns all problems.
    A verdict is a row with a response that names a trial of ours in column ``trial``, else ``stimulus``."""
    judges = next((name for name in SUBJECTS if name in columns), None)
    if judges is None:
        raise InputError(f"does not say who judged: it has no column {', '.join(SUBJECTS[:-1])} or {SUBJECTS[-1]}")
    named = "trial" if "trial" in columns else "stimulus"
    wrong: list[Problem] = []
    for line, prefix, row in rows:
        trial, response = _cell(row.get(named)), row.get("response")
        if trial is None or not trial.isprintable() or set(trial) & set("<[{ "):  # a screen's content is no name
            source.noticed["screens_that_name_no_trial"] += 1
            continue
        verdict, judge = _cell(row.get("verdict")), _cell(row.get(judges))
        if verdict is None and _cell(response) is None:
            source.noticed["trials_without_a_response"] += 1
            continue
        rt, faults = _milliseconds(row.get("rt"))
        answer = _verdict(verdict, {}) if verdict is not None else _verdict(_cell(response) or "", responses)
        if answer is None:
            column, value = ("response", response) if verdict is None else ("verdict", verdict)
            faults.append((column, _wrong_verdict(value)))
        if judge is None:
            faults.append((judges, "is empty"))
        elif not isinstance(row[judges], str | int | float) or isinstance(row[judges], bool):
            faults.append((judges, f"must be a name or a number, not {str(row[judges])[:LONGEST]!r}"))
        wrong += [Problem(str(source.path), line, f"{prefix}{column}", message) for column, message in faults]
        source.add(trial, person(judge or ""), {"response": response, "rt": rt}, answer)
    return wrong


def _verdict(response: str, responses: Responses) -> dict[str, Any] | None:
    verdict = responses.get(response.lower(), response.lower())
    return plain(VerdictAnswer.model_validate({"verdict": verdict})) if verdict in ("human", "machine") else None


def _wrong_verdict(response: Any) -> str:
    return f"must be human or machine, or what --responses give a meaning, not {str(response)[:LONGEST]!r}"


def _cell(value: Any) -> str | None:
    """A cell as text; 1 and 1.0 are the same number."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = "" if value is None else str(value).strip()
    return None if text in ("", "null") else text


def _milliseconds(value: Any) -> tuple[float | None, list[FieldProblem]]:
    text = _cell(value)
    if text is None:
        return None, []
    time = float(text) if NUMBER.fullmatch(text) else math.nan
    is_good = math.isfinite(time) and time >= 0
    return time, [] if is_good else [("rt", f"must be milliseconds, not {str(value)[:LONGEST]!r}")]
