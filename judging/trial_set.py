"""A trial set: a folder with what judges may see, and beside it the key that says whose answers they are.

``TRIALS/trials.jsonl`` is a stimulus set of the task ``judgement``; ``TRIALS/media`` has its pictures, and a GIF for
each scanpath; ``TRIALS/lists.jsonl`` has for each judge the ids of its trials in order. Nothing there tells a person's
answer from a machine's but what was answered: ids and names of files are numbers in an order drawn by the seed, all
files have one time, a picture is the same for all answers to it.

``TRIALS.key.csv`` has one row per trial (:data:`COLUMNS`; ``sha256`` is of the trial's canonical JSON, so that a key is
never taken for another set's). ``TRIALS.trials.json`` has the seed, what was asked for, and what was found.

Of two conversations beside each other ``truth`` is ``machine`` if a machine speaks in the answer, ``beside_truth`` if
one speaks in the conversation beside it. Where the two are alike there is nothing to find out: a control pair.
``agent`` and ``beside_agent`` are the machine that speaks in each, or else its people; ``speaker`` and
``beside_speaker`` the machine's letter, empty where no machine or only machines speak. ``turns`` are those of the
machine's conversation, with those that it wrote itself beforehand. ``delays`` is a JSON object: for ``answer`` and
``beside`` the seconds before each message that is shown, null where they are not known.

``catch`` is 1 of catch trials, ``swapped`` of scanpaths on another picture, whose ``truth`` is who looked, else 0.
``objects`` is a JSON object: what the stimulus says is ``present`` in its picture, and ``absent``, for control
questions.
"""

from __future__ import annotations

import hashlib
import io
import os
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from agents.errors import ImageError, InputError, Problem
from agents.stimuli import Asked, canonical, parse_row
from judging import blindness
from judging.candidates import Candidate, Shown
from serving.runs.atomic_files import replacing
from serving.runs.csv_tables import write_rows
from serving.runs.output_paths import MODIFIED, new_folder, refuse_existing

Row = tuple[dict[str, Any], dict[str, Any]]
SCHEMA = "turinglike.trials/1"
MARKER = "trials.jsonl"
COLUMNS = (
    "trial",
    "sha256",
    "asked",
    "truth",
    "agent",
    "catch",
    "repeat_of",
    "stimulus",
    "benchmark_id",
    "run",
    "record",
    "sample",
    "speaker",
    "length",
    "said",
    "columns",
    "beside_agent",
    "beside_truth",
    "beside_speaker",
    "turns",
    "delays",
    "objects",
)
FEWEST = COLUMNS.index("beside_agent")  # columns: keys that are older have no others
COLUMNS_OF_STIMULI = ("topic", "domain", "word_class", "version", "mode")  # by which scores may be told, beside meta's
QUESTIONS: Mapping[Asked, str] = {
    "color_estimation": "Was the color description made by a human or a machine?",
    "object_detection": "Were the three objects named by a human or a machine?",
    "attention_prediction": "Is the path of eye movements from a human or a machine?",
    "image_captioning": "Was the caption written by a human or a machine?",
    "word_association": "Was the association made by a human or a machine?",
    "conversation": "Is {speaker} a human or a machine?",
}
"""Those of colours and scanpaths are the papers' (their pages); the others follow them."""
QUESTION_OF_PAIRS = "In which of the two conversations does a machine speak?"


@dataclass(frozen=True, slots=True)
class JudgesList:
    """The trials of one judge, in their order, each with whether it comes for the second time."""

    name: str
    asked: Asked
    trials: Sequence[tuple[Candidate, bool]]


def key_path(folder: Path) -> Path:
    """Where the key of a trial set is."""
    return folder.with_name(f"{folder.name}.key.csv")


def about_path(folder: Path) -> Path:
    """Where it stands how a trial set was made."""
    return folder.with_name(f"{folder.name}.trials.json")


def read_about(key: Path) -> dict[str, Any]:
    """How the trial set of a ``key`` was made, where that stands beside it. Raises InputError where it is damaged."""
    path = key.with_name(f"{key.name.removesuffix('.key.csv')}.trials.json")
    try:
        found = orjson.loads(path.read_bytes()) if path.is_file() else {}
    except (OSError, orjson.JSONDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from None
    if not isinstance(found, dict):
        raise InputError(f"{path} does not say how trials were made")
    return found


def write_trial_set(
    out: Path, lists: Sequence[JudgesList], about: Mapping[str, Any], seed: int, *, force: bool
) -> tuple[list[Row], list[dict[str, Any]]]:
    """Write the folder, its key and what is known of it; returns (trial, row of the key) of every trial, and what
    :mod:`judging.blindness` says of the set.

    A trial stands once however many lists have it; shown a second time in a list it is a trial of its own. Raises
    InputError that names every picture that is missing or damaged, and where something is in the way; StorageError.
    Then nothing has changed.
    """
    refuse_existing([key_path(out), about_path(out)], force=force)
    with new_folder(out, marker=MARKER, force=force) as folder:
        made = _Set(folder, random.Random(seed))
        named = made.trials(lists)
        rows = made.rows
        _write_lines(folder / "trials.jsonl", [trial for trial, _ in rows])
        _write_lines(
            folder / "lists.jsonl",
            [{"list": one.name, "asked": one.asked, "trials": ids} for one, ids in zip(lists, named, strict=True)],
        )
        text = io.StringIO(newline="")
        write_rows(text, COLUMNS, ([key.get(name) for name in COLUMNS] for _, key in rows))
        key = text.getvalue().encode()
        with replacing(key_path(out)) as file:
            file.write(key)
        blind = blindness.tell(folder, rows, seed)
        told = {"schema": SCHEMA, "seed": seed, **about, "trials": len(rows), "blindness": blind}
        told["key_sha256"] = hashlib.sha256(key).hexdigest()
        with replacing(about_path(out)) as file:
            file.write(orjson.dumps(told, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
    return rows, blind


class _Set:
    """A trial set as it is made in ``folder``."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self.folder = folder
        self.chance = chance
        self.rows: list[Row] = []
        self._shown: dict[int, dict[str, Any]] = {}
        (folder / "media").mkdir()

    def trials(self, lists: Sequence[JudgesList]) -> list[list[str]]:
        """Make every trial; returns the ids of each list's."""
        every: dict[tuple[int, str], tuple[Candidate, str]] = {}  # a second showing belongs to its list
        for one in lists:
            for candidate, again in one.trials:
                every[id(candidate), one.name if again else ""] = (candidate, one.name if again else "")
        keys = list(every)
        self.chance.shuffle(keys)
        digits = max(4, len(str(len(keys))))
        ids = {key: f"t{number:0{digits}}" for number, key in enumerate(keys, start=1)}
        self._pictures({id(shown): shown for shown in (candidate.shown for candidate, _ in every.values())})
        for key in keys:
            candidate, second = every[key]
            trial = self._trial(candidate, ids[key])
            first = ids[id(candidate), ""] if second else ""
            stimulus = parse_row(orjson.dumps(trial), root=self.folder)  # what is no trial must not be written
            digest = hashlib.sha256(canonical(stimulus)).hexdigest()
            self.rows.append((trial, {"trial": ids[key], "sha256": digest, **_key_row(candidate, first)}))
        return [[ids[id(candidate), one.name if again else ""] for candidate, again in one.trials] for one in lists]

    def _pictures(self, shown: Mapping[int, Shown]) -> None:
        """Copy every stimulus's pictures, under numbers in a drawn order."""
        order = list(shown)
        self.chance.shuffle(order)
        digits = max(4, len(str(len(order))))
        problems = []
        for number, place in enumerate(order, start=1):
            one, name = shown[place], f"s{number:0{digits}}"
            fields: dict[str, Any] = {"shown": name}
            for field in ("image", "target_image"):
                image = one.image(field)
                if image is None:
                    continue
                try:
                    ending = image.header().format.lower()
                    fields[field] = self._save(f"{name}{field.removeprefix('image')}.{ending}", image.read())
                except ImageError as error:
                    problems.append(Problem(str(one.folder), None, one.id, str(error)))
            if one.asked == "word_association":
                fields["cue"] = one.row["cue"]
                if examples := one.row.get("examples"):
                    fields["examples"] = examples
            self._shown[place] = fields
        if problems:
            raise InputError("pictures cannot be shown as they were to the agents", problems)

    def _trial(self, candidate: Candidate, name: str) -> dict[str, Any]:
        asked = candidate.shown.asked
        trial: dict[str, Any] = {
            "id": name,
            "task": "judgement",
            "asked": asked,
            **self._shown[id(candidate.shown)],
            "question": QUESTIONS[asked].format(speaker=candidate.speaker),
            "answer": candidate.answer.model_dump(mode="json", exclude_none=True),
        }
        if candidate.beside is not None:
            trial["question"] = QUESTION_OF_PAIRS
            trial["beside"] = candidate.beside.answer.model_dump(mode="json", exclude_none=True)
        elif candidate.speaker is not None:
            trial["speaker"] = candidate.speaker
        if asked == "attention_prediction" and "image" in trial:
            trial["clip"] = self._save(f"{name}.gif", self._clip(candidate, trial))
        return trial

    def _clip(self, candidate: Candidate, trial: Mapping[str, Any]) -> bytes:
        from agents.attention.drawing import judges_clip

        image, target = candidate.shown.image(), candidate.shown.image("target_image")
        assert image is not None
        assert candidate.answer.fixations is not None
        return judges_clip(
            image.decode(),
            candidate.answer.fixations,
            target=target.decode() if target is not None else None,
            max_side=1280,
        )

    def _save(self, name: str, data: bytes) -> str:
        path = self.folder / "media" / name
        path.write_bytes(data)
        os.utime(path, (MODIFIED, MODIFIED))
        return f"media/{name}"


def _key_row(candidate: Candidate, repeat_of: str) -> dict[str, Any]:
    shown, (run, record, sample) = candidate.shown, candidate.record
    columns = {name: shown.row[name] for name in COLUMNS_OF_STIMULI if name in shown.row}
    beside = candidate.beside
    delays = {"answer": candidate.delays, "beside": beside.delays if beside is not None else ()}
    known = {name: some for name, some in delays.items() if any(one is not None for one in some)}
    return {
        "asked": shown.asked,
        "truth": candidate.truth,
        "agent": candidate.agent,
        "catch": "swapped" if candidate.is_swapped else int(candidate.is_catch),
        "repeat_of": repeat_of,
        "stimulus": shown.id,
        "benchmark_id": shown.row.get("benchmark_id"),
        "run": run,
        "record": record,
        "sample": sample,
        "speaker": candidate.speaker,
        "length": candidate.length,
        "said": hashlib.sha256(candidate.said()).hexdigest()[:16],
        "columns": orjson.dumps({**candidate.columns, **(shown.row.get("meta") or {}), **columns}).decode(),
        "beside_agent": beside and beside.agent,
        "beside_truth": beside and beside.truth,
        "beside_speaker": beside and beside.speaker,
        "turns": candidate.turns,
        "delays": orjson.dumps(known).decode(),
        "objects": orjson.dumps(_objects(shown.row)).decode(),
    }


def _objects(row: Mapping[str, Any]) -> dict[str, list[str]]:
    found = {name: row[name] for name in ("present", "absent") if row.get(name)}
    target = (row.get("meta") or {}).get("target")
    if isinstance(target, str) and row.get("mode") == "search" and row.get("target_present") is not False:
        found.setdefault("present", [target])  # which COCO-Search18 names
    return found


def _write_lines(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    with path.open("wb") as file:
        for row in rows:
            file.write(orjson.dumps(row) + b"\n")
        file.flush()
        os.fsync(file.fileno())
    os.utime(path, (MODIFIED, MODIFIED))
