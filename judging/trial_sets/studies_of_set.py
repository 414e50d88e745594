"""Which studies show a trial set: a note beside the set, which ``trials --force`` reads before it replaces the set.

A study's verdicts name trials by their ids, and every trial set has the same ids. So a set that is replaced under a
study would give the verdicts of its judges the truths of other answers. The study lies elsewhere, and nothing in the
set leads to it without this note.
"""

import hashlib
from pathlib import Path

import orjson

from agents.errors import InputError
from judging.trial_sets.trial_set import key_path
from serving.files.atomic_files import repair_tail, writing

LOG_OF_STUDY = "events.jsonl"
"""What a study has as long as it keeps what its judges did."""


def studies_path(folder: Path) -> Path:
    """Where the studies of the trial set in ``folder`` are noted: beside it, as judges get the folder."""
    return folder.with_name(f"{folder.name}.studies.jsonl")


def note_study(folder: Path, study: Path, key_sha256: str) -> None:
    """Note that people judge the trials in ``folder``, whose key has this SHA-256, in the study in ``study``.

    Raises StorageError where nothing can be written beside the set.
    """
    row = {"study": str(study.resolve()), "key_sha256": key_sha256}
    path = studies_path(folder)
    if row in _noted(path):
        return
    with writing(path):
        repair_tail(path)
        with path.open("ab") as file:
            file.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))


def refuse_set_of_study(folder: Path) -> None:
    """Raises InputError where a study has verdicts on the trials in ``folder``, or may have: one that is not where it
    was may have been moved."""
    key = key_path(folder)
    if not key.is_file():
        return
    digest = hashlib.sha256(key.read_bytes()).hexdigest()
    studies = [Path(row["study"]) for row in _noted(studies_path(folder)) if row["key_sha256"] == digest]
    if there := [study for study in studies if (study / LOG_OF_STUDY).is_file()]:
        raise InputError(
            f"{folder} is not replaced: judges of the study {there[0]} began with these trials, and with others their "
            "verdicts would count for other answers. Give the new trials another folder (--out), or delete the study "
            "first"
        )
    if studies:
        raise InputError(
            f"{folder} is not replaced: judges of the study {studies[0]} began with these trials, and it is not there. "
            "If it was moved, its verdicts need these trials: give the new ones another folder (--out). If it was "
            f"deleted, remove {studies_path(folder)}"
        )


def _noted(path: Path) -> list[dict[str, str]]:
    """The rows of the note; what is no such row is passed over, as a torn last line is."""
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        return []
    rows = []
    for line in lines:
        try:
            row = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        if isinstance(row, dict) and row.keys() >= {"study", "key_sha256"}:
            rows.append(row)
    return rows
