"""A trial set: a folder with what judges may see, and beside it the key.

In ``TRIALS.key.csv`` ``sha256`` is the hash of the trial's canonical JSON, and ``catch`` is 1, ``swapped`` or 0. A pair
of conversations has two truths: ``truth`` and ``beside_truth`` are "machine" where a machine speaks in the first, and
in the second. In a control pair both are the same. A set with versions of its answers has more columns:
``version`` names the transformations that were applied, and ``version_of`` is the trial of the same answer as it was
drawn (:mod:`judging.tells`). A third, ``block``, numbers the stimuli whose answers were matched with each other."""

import hashlib
import io
import os
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from agents.errors import ImageError, InputError, Problem
from agents.stimuli import Asked, canonical, parse_row
from judging.trial_sets import blindness
from judging.trial_sets.candidates import AnsweredStimulus, Candidate
from serving.files.atomic_files import replacing
from serving.files.csv_tables import by_line, load_table, unguarded, write_rows
from serving.files.output_paths import MODIFIED, new_folder, refuse_existing
from serving.sets.targets import presence

KeyedTrial = tuple[dict[str, Any], dict[str, Any]]  # a trial, and its row of the key
SCHEMA = "turinglike.trials/1"
TRIALS_FILE = "trials.jsonl"
BESIDE = ("beside_agent", "beside_truth", "beside_speaker")
COLUMNS = (
    *("trial", "sha256", "asked", "truth", "agent", "catch", "repeat_of", "stimulus", "benchmark_id", "run", "record"),
    *("sample", "speaker", "length", "said", "columns", *BESIDE, "turns", "delays", "objects"),
)
VERSION_COLUMNS = ("version", "version_of", "block")  # of sets that have versions of their answers
TEXTS = ("trial", "sha256", "asked", "truth", "agent", "stimulus", "speaker", "repeat_of", "record", "said", *BESIDE)
NUMBERS = ("length", "turns", "block")
OBJECTS = ("columns", "delays", "objects")
SWAPPED = "swapped"  # in `catch`: a scanpath on another picture
STIMULUS_COLUMNS = ("topic", "domain", "word_class", "version", "mode")  # that scores may be told by, beside meta's
QUESTIONS: Mapping[Asked, str] = {  # those of colours and scanpaths are the papers'; the others follow them
    "color_estimation": "Was the color description made by a human or a machine?",
    "object_detection": "Were the three objects named by a human or a machine?",
    "attention_prediction": "Is the path of eye movements from a human or a machine?",
    "image_captioning": "Was the caption written by a human or a machine?",
    "word_association": "Was the association made by a human or a machine?",
    "conversation": "Is {speaker} a human or a machine?",
}
QUESTION_OF_PAIRS = "In which of the two conversations does a machine speak?"
WITHOUT_PICTURE: tuple[Asked, ...] = ("word_association", "conversation")  # tasks whose stimuli have none
VERDICTS = ("human", "machine")  # any other word says why there is none
MOST_NAMED = 20
KeyRow = Mapping[str, Any]
Keys = Mapping[str, KeyRow]  # by trial


@dataclass(frozen=True, slots=True)
class JudgesList:
    """Trials, each with whether it comes for the second time."""

    name: str
    """Such as "pairs-002", or "word_association-all" where one list has all trials."""
    task: Asked
    """What those who are judged were asked."""
    trials: Sequence[tuple[Candidate, bool]]
    """In the order in which the judge sees them."""


def key_path(folder: Path) -> Path:
    """Where the key of a trial set lies: beside its folder, so that who gets the folder does not get the key."""
    return folder.with_name(f"{folder.name}.key.csv")


def about_path(folder: Path) -> Path:
    """Where it stands how a trial set was made: beside its folder, as its seed would tell the key."""
    return folder.with_name(f"{folder.name}.trials.json")


def about_of_key(key: Path) -> Path:
    """The file beside a key that says how the trial set was made."""
    return key.with_name(f"{key.name.removesuffix('.key.csv')}.trials.json")


def read_about(key: Path) -> dict[str, Any]:
    """How the trial set was made; empty if unknown."""
    path = about_of_key(key)
    try:
        notes = orjson.loads(path.read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return {}
    return notes if isinstance(notes, dict) else {}


def read_trial_key(path: Path) -> dict[str, dict[str, Any]]:
    """The rows of a key by trial; the stimuli's columns as ``meta.NAME``. Raises InputError."""
    if not path.is_file():
        raise InputError(f"there is no key {path}: give it as key")
    table = load_table(path)
    if tuple(table.names) not in (COLUMNS, COLUMNS + VERSION_COLUMNS):
        raise InputError(f"{path} is no key of trials: its columns are others")
    rows: dict[str, dict[str, Any]] = {}
    wrong = table.problems
    for line, cells in table.rows:
        row, not_read = _typed(cells)
        if not_read:
            wrong += [Problem(str(path), line, name, why) for name, why in not_read.items()]
            continue
        if row["truth"] not in VERDICTS or row["beside_truth"] not in (None, *VERDICTS):
            wrong.append(Problem(str(path), line, "truth", f"{row['truth']!r} is neither human nor machine"))
        if rows.setdefault(cells["trial"], row) is not row:
            wrong.append(Problem(str(path), line, "trial", f"{cells['trial']!r} stands in two rows"))
    if wrong:
        raise InputError(f"{path} is no key of trials", by_line(wrong)[:MOST_NAMED])
    return rows


def _typed(cells: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, str]]:
    """A row of the key, and by column what in it cannot be read."""
    read: dict[str, Any] = {}
    wrong: dict[str, str] = {}
    for name in NUMBERS:
        cell = cells.get(name) or None
        try:
            read[name] = None if cell is None else int(cell)
        except ValueError:
            wrong[name] = f"{cell!r} is no whole number"
    for name in OBJECTS:
        cell = cells[name] or "{}"
        try:
            read[name] = orjson.loads(cell)
        except ValueError:
            read[name] = None
        if not isinstance(read[name], dict):
            wrong[name] = f"{cell!r} is no JSON object"
    if wrong:
        return {}, wrong
    columns = read.pop("columns")
    row = {
        **{name: unguarded(cells[name]) or None for name in TEXTS},
        "catch": cells["catch"] in ("1", SWAPPED),
        "swapped": cells["catch"] == SWAPPED,
        "version": unguarded(cells["version"]) if "version" in cells else None,
        "version_of": unguarded(cells.get("version_of", "")) or None,
        **read,
        **{f"meta.{name}": value for name, value in columns.items()},
    }
    return row, wrong


def check_trials(source: Path, trials: Iterable[tuple[int | None, str, bytes]], keys: Keys, path: Path) -> None:
    """Raises InputError unless all ``trials`` (line, id, canonical JSON) are in the key."""
    problems = [
        Problem(str(source), number, name, f"is no trial of {path}")
        for number, name, trial in trials
        if name not in keys or keys[name]["sha256"] != hashlib.sha256(trial).hexdigest()
    ]
    if problems:
        raise refused(f"{path} is the key of other trials", problems)


def refused(message: str, problems: Sequence[Problem]) -> InputError:
    """An error with the first problems, and the number of the others."""
    more = f"; {len(problems) - MOST_NAMED:,} more" if len(problems) > MOST_NAMED else ""
    return InputError(f"{message}{more}", problems[:MOST_NAMED])


def write_trial_set(
    out: Path, lists: Sequence[JudgesList], notes: Mapping[str, Any], seed: int, *, force: bool
) -> tuple[list[KeyedTrial], list[dict[str, Any]]]:
    """Write all or nothing; returns the rows and what :mod:`judging.trial_sets.blindness` found.

    Raises InputError and StorageError."""
    refuse_existing([key_path(out), about_path(out)], force=force)
    with new_folder(out, marker=TRIALS_FILE, force=force) as folder:
        writer = _Writer(folder, random.Random(seed))
        names = writer.trials(lists)
        rows = writer.rows
        _write_lines(folder / TRIALS_FILE, [trial for trial, _ in rows])
        entries = [
            {"list": entry.name, "asked": entry.task, "trials": ids} for entry, ids in zip(lists, names, strict=True)
        ]
        _write_lines(folder / "lists.jsonl", entries)
        text = io.StringIO(newline="")
        has_versions = any(key["version"] is not None for _, key in rows)
        columns = (*COLUMNS, *VERSION_COLUMNS) if has_versions else COLUMNS
        write_rows(text, columns, ([key.get(name) for name in columns] for _, key in rows))
        key = text.getvalue().encode()
        with replacing(key_path(out)) as file:
            file.write(key)
        blind = blindness.measure_blindness(folder, rows, seed, names)
        content = {"schema": SCHEMA, "seed": seed, **notes, "trials": len(rows), "blindness": blind}
        content["key_sha256"] = hashlib.sha256(key).hexdigest()
        with replacing(about_path(out)) as file:
            file.write(orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
    return rows, blind


class _Writer:
    def __init__(self, folder: Path, chance: random.Random) -> None:
        self.folder = folder
        self.chance = chance
        self.rows: list[KeyedTrial] = []
        self._fields: dict[int, dict[str, Any]] = {}  # of each stimulus
        self._clips: dict[tuple[int, tuple[tuple[float, float], ...]], Path] = {}  # by stimulus and fixations
        (folder / "media").mkdir()

    def trials(self, lists: Sequence[JudgesList]) -> list[list[str]]:
        """The ids of each list's trials, which it makes."""
        distinct = {  # by candidate and, of a second showing, its list
            (id(candidate), entry.name if again else ""): candidate
            for entry in lists
            for candidate, again in entry.trials
        }
        keys = list(distinct)
        self.chance.shuffle(keys)
        digits = max(4, len(str(len(keys))))
        ids = {key: f"t{number:0{digits}}" for number, key in enumerate(keys, start=1)}
        self._pictures({id(candidate.stimulus): candidate.stimulus for candidate in distinct.values()})
        for key in keys:
            candidate = distinct[key]
            trial = self._trial(distinct[key], ids[key])
            stimulus = parse_row(orjson.dumps(trial), root=self.folder)  # what is no trial must not be written
            digest = hashlib.sha256(canonical(stimulus)).hexdigest()
            row = {"trial": ids[key], "sha256": digest, **_key_row(candidate, ids[key[0], ""] if key[1] else "")}
            if candidate.version_of is not None:
                row["version_of"] = ids[id(candidate.version_of), ""]
            self.rows.append((trial, row))
        return [
            [ids[id(candidate), entry.name if again else ""] for candidate, again in entry.trials] for entry in lists
        ]

    def _pictures(self, stimuli: Mapping[int, AnsweredStimulus]) -> None:
        order = list(stimuli)
        self.chance.shuffle(order)
        digits = max(4, len(str(len(order))))
        for number, place in enumerate(order, start=1):
            stimulus = stimuli[place]
            name = f"s{number:0{digits}}"
            fields: dict[str, Any] = {"shown": name}
            for field in ("image", "target_image"):
                image = stimulus.image(field)
                if image is None:
                    continue
                try:
                    ending = image.header().format.lower()
                    fields[field] = self._save(f"{name}{field.removeprefix('image')}.{ending}", image.read())
                except ImageError as error:
                    problem = Problem(str(stimulus.folder), None, stimulus.id, str(error))
                    raise InputError("a picture cannot be shown as it was to the agents", [problem]) from None
            if stimulus.task == "word_association":
                fields["cue"] = stimulus.row["cue"]
                if examples := stimulus.row.get("examples"):
                    fields["examples"] = examples
            self._fields[place] = fields

    def _trial(self, candidate: Candidate, name: str) -> dict[str, Any]:
        task = candidate.stimulus.task
        trial: dict[str, Any] = {"id": name, "task": "judgement", "asked": task}
        trial |= self._fields[id(candidate.stimulus)]
        trial["question"] = QUESTIONS[task].format(speaker=candidate.speaker)
        trial["answer"] = candidate.answer.model_dump(mode="json", exclude_none=True)
        if candidate.beside is not None:
            trial["question"] = QUESTION_OF_PAIRS
            trial["beside"] = candidate.beside.answer.model_dump(mode="json", exclude_none=True)
        elif candidate.speaker is not None:
            trial["speaker"] = candidate.speaker
        if task == "attention_prediction" and "image" in trial:
            trial["clip"] = self._save(f"{name}.gif", self._clip(candidate, f"{name}.gif"))
        return trial

    def _clip(self, candidate: Candidate, name: str) -> bytes:
        """The scanpath as an animation, for the file ``name``. To draw one takes long, and versions of an answer may be
        equal: their clips are copies."""
        path = (id(candidate.stimulus), tuple(candidate.answer.fixations or ()))
        first = self._clips.setdefault(path, self.folder / "media" / name)
        return first.read_bytes() if first.is_file() else _clip(candidate)

    def _save(self, name: str, data: bytes) -> str:
        path = self.folder / "media" / name
        path.write_bytes(data)
        os.utime(path, (MODIFIED, MODIFIED))
        return f"media/{name}"


def _clip(candidate: Candidate) -> bytes:
    from agents.attention.painting import judges_clip

    image = candidate.stimulus.image()
    target = candidate.stimulus.image("target_image")
    fixations = candidate.answer.fixations
    assert image is not None and fixations is not None  # noqa: PT018
    return judges_clip(image.decode(), fixations, target=target.decode() if target is not None else None, max_side=1280)


def _key_row(candidate: Candidate, repeat_of: str) -> dict[str, Any]:
    stimulus = candidate.stimulus
    (run, record, sample) = candidate.record
    beside = candidate.beside
    columns = {name: stimulus.row[name] for name in STIMULUS_COLUMNS if name in stimulus.row}
    delays = {"answer": candidate.delays, "beside": beside.delays if beside is not None else ()}
    timed = {name: seconds for name, seconds in delays.items() if any(delay is not None for delay in seconds)}
    return {
        "asked": stimulus.task,
        "truth": candidate.truth,
        "agent": candidate.agent,
        "catch": SWAPPED if candidate.is_swapped else int(candidate.is_catch),
        "repeat_of": repeat_of,
        "stimulus": stimulus.id,
        "benchmark_id": stimulus.row.get("benchmark_id"),
        "run": run,
        "record": record,
        "sample": sample,
        "speaker": candidate.speaker,
        "length": candidate.length,
        "said": hashlib.sha256(candidate.content()).hexdigest()[:16],
        "columns": orjson.dumps({**candidate.columns, **(stimulus.row.get("meta") or {}), **columns}).decode(),
        "beside_agent": beside and beside.agent,
        "beside_truth": beside and beside.truth,
        "beside_speaker": beside and beside.speaker,
        "turns": candidate.turns,
        "delays": orjson.dumps(timed).decode(),
        "objects": orjson.dumps(_objects(stimulus.row)).decode(),
        "version": candidate.version,
        "version_of": None,
        "block": candidate.block,
    }


def _objects(row: Mapping[str, Any]) -> dict[str, list[str]]:
    """``present`` and ``absent``, as far as they are known; what is not known has no key."""
    objects = {name: row[name] for name in ("present", "absent") if row.get(name)}
    target = (row.get("meta") or {}).get("target")
    if isinstance(target, str) and presence(row) == 1:
        objects.setdefault("present", [target])  # which COCO-Search18 names
    return objects


def _write_lines(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    with path.open("wb") as file:
        file.writelines(orjson.dumps(row) + b"\n" for row in rows)
        file.flush()
        os.fsync(file.fileno())
    os.utime(path, (MODIFIED, MODIFIED))
