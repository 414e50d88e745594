"""What the viewer makes of a record: its answer in a line, its flags, whether it is well formed, what statistics
compare."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from agents import answers
from serving.files.words import count
from serving.runs.answer_numbers import texts
from serving.runs.words_by_rules import word_by_rules
from serving.viewer.statistics import Labelled


def answer_line(record: Mapping[str, Any]) -> str:
    """A record's answer in a line of text, or why there is none: "3 fixations", "red", "timeout: …"."""
    answer = record["answer"]
    if record["status"] == "failed":
        return f"{record['error'].get('code')}: {record['error'].get('message')}"
    if answer is None:
        return "no answer"
    try:
        if record["task"] == "attention_prediction":
            return count(len(answer["fixations"]), "fixation")
        if record["task"] == "judgement":
            return " – ".join(str(answer[name]) for name in ("verdict", "reason") if answer[name])
        text = (" / " if record["task"] == "conversation" else ", ").join(texts(answer))
        return " ".join(text.split()) or "nothing"
    except (KeyError, TypeError, AttributeError):
        return "an answer of another form"


def as_compared(labelled: Labelled, row: Mapping[str, Any]) -> Labelled:
    """The well-formed records on the stimulus ``row`` as statistics compare them. Words are written after the papers'
    rules, as judges see them; words that the rules drop are left out."""
    compared = []
    for name, record in labelled:
        by_rules = word_by_rules(record, row)
        if by_rules is None:
            compared.append((name, record))
        elif by_rules["rule"] is None:
            compared.append((name, {**record, "answer": {**record["answer"], "word": by_rules["word"]}}))
    return compared


def flags_of(record: Mapping[str, Any]) -> list[str]:
    """The flags of a record's answer, and "FILTER rejected" or "FILTER noted" for each finding of a filter; sorted,
    each once."""
    answer_flags = (record["answer"] or {}).get("flags")
    flags = []
    if isinstance(answer_flags, list):
        flags = [flag for flag in answer_flags if isinstance(flag, str)]
    for attempt in record["attempts"]:
        for verdict in attempt["verdicts"]:
            flags.append(f"{verdict['filter']} {'rejected' if verdict['rejected'] else 'noted'}"[:100])
    return sorted(set(flags))


def well_formed(record: Mapping[str, Any]) -> bool:
    """Whether a record has an accepted answer of its task's form. Others are shown, and not counted in statistics."""
    model = answers.BY_TASK.get(record["task"])
    if record["status"] != "ok" or model is None:
        return False
    try:
        model.model_validate(record["answer"])
    except ValidationError:
        return False
    return bool(record["task"] != "attention_prediction" or min(record["answer"]["frame"]) > 0)
