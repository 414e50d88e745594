"""Stimuli that a program gives: pictures, words, rows, or the path of a set; checked as a set's file is.

A picture is a path, bytes, a Pillow image or an array. The id of one that is given by its path alone is the path below
the folder that all of them share; whatever else has no id has its content for one
(:func:`serving.runs.stimulus_set.content_id`).
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from agents.errors import InputError
from agents.stimuli import IMAGES, SHORT, Stimulus, as_dict, parse_row
from serving.runs.checking import check_rows
from serving.runs.display_text import count
from serving.runs.eligibility import Kind, kind_of
from serving.runs.set_rows import ID_DIGITS, PICTURE_TASKS, Choose, Row, RowReader, repeated_names, with_free_fields
from serving.runs.stimulus_set import present, read_rows


@dataclass(frozen=True, slots=True)
class GivenStimulus:
    """One stimulus: its id, its canonical JSON and its kind."""

    id: str
    row: bytes
    kind: Kind


@dataclass(slots=True)
class GivenStimuli:
    """Checked stimuli. ``root`` is the folder that image names are relative to; ``files`` has the bytes of images that
    are no files; ``where`` they stand, for a person."""

    where: str
    root: str
    files: dict[str, bytes] = field(default_factory=dict)
    stimuli: list[GivenStimulus] = field(default_factory=list)

    def kinds(self) -> Counter[Kind]:
        return Counter(one.kind for one in self.stimuli)

    def parsed(self, row: bytes) -> Stimulus:
        """A stimulus from its canonical JSON, with its images."""
        return parse_row(row, root=self.root, files=self.files)


def given_stimuli(
    stimuli: str | Path | Iterable[Any] | None,
    images: Any,
    cues: str | Iterable[str] | None,
    topics: str | Iterable[str] | None,
    messages: str | Iterable[str] | None,
    task: str | None,
    asked: Mapping[str, Sequence[str]],
) -> GivenStimuli:
    """What was given, read and checked. ``asked`` are the tasks of each agent, by which the ``task`` is found where
    only one is meant. Raises InputError with every problem."""
    if sum(one is not None for one in (stimuli, images, cues, topics, messages)) != 1:
        raise InputError("give one of stimuli, images, cues, topics and messages")
    task = None if task is None else SHORT.get(task, task)
    if isinstance(images, str | os.PathLike) and os.path.isdir(images):
        stimuli = Path(images)
    if isinstance(stimuli, str | Path):
        return _from_set(Path(stimuli), task, asked)
    found = GivenStimuli("stimuli", os.getcwd())
    rows: Iterable[Any] = ()
    if images is not None:
        found.where, rows = "images", _image_rows(images)
    elif cues is not None:
        found.where, rows = "cues", _word_rows("cue", cues)
    elif topics is not None:
        found.where, rows = "topics", _word_rows("topic", topics)
    elif messages is not None:
        said = [messages] if isinstance(messages, str) else messages
        found.where = "messages"
        rows = [{"type": "HM", "history": [{"speaker": "A", "text": text}]} for text in said]
    elif stimuli is not None:
        rows = [stimuli] if isinstance(stimuli, Mapping) else stimuli
        if hasattr(stimuli, "column_names"):  # a Dataset of Hugging Face, or another table
            rows = map(with_free_fields, map(present, rows))
    _check(found, _rows(found, rows, task, asked))
    return found


def _from_set(path: Path, task: str | None, asked: Mapping[str, Sequence[str]]) -> GivenStimuli:
    found = GivenStimuli(str(path), str(path.resolve() if path.is_dir() else path.resolve().parent))
    _check(found, read_rows(path, task, choose=chosen_by(asked)))
    return found


def chosen_by(asked: Mapping[str, Sequence[str]]) -> Choose:
    """Which tasks agents are asked of rows that name none, by the tasks of each agent: about pictures those of
    :func:`image_tasks`; words are cues where one agent associates, and topics where all converse."""

    def choose(tasks: Sequence[str]) -> Sequence[str]:
        if PICTURE_TASKS.issuperset(tasks):
            return [task for task in image_tasks(asked) if task in tasks]
        is_answered = any("word_association" in answers for answers in asked.values())
        return [task for task in tasks if (task == "word_association") == is_answered]

    return choose


def image_tasks(asked: Mapping[str, Sequence[str]]) -> list[str]:
    """What the agents are asked about images: the one task that all answer, or each the only one that it answers.
    Raises InputError where that is not said by the agents alone."""
    shown = [[task for task in tasks if task in PICTURE_TASKS and task != "judgement"] for tasks in asked.values()]
    common = [task for task in shown[0] if all(task in tasks for tasks in shown)]
    if len(common) == 1:
        return common
    if any(shown) and all(len(tasks) <= 1 for tasks in shown):
        return [*dict.fromkeys(task for tasks in shown for task in tasks)]
    told = "; ".join(f"{name} answers {', '.join(tasks) or 'in conversations'}" for name, tasks in asked.items())
    if not any(shown):
        raise InputError(f"these agents answer nothing about images: {told}")
    raise InputError(f"say with task (--task) what is asked about the images: {told}")


def _check(found: GivenStimuli, rows: Iterator[Row]) -> None:
    def keep(row: Row, *_: object) -> None:
        if row.canonical is not None and row.id is not None:
            found.stimuli.append(GivenStimulus(row.id, row.canonical, kind_of(vars(row.stimulus))))

    result = check_rows(rows, on_row=keep)
    if result.total_problems:
        said = count(result.total_problems, "problem")
        raise InputError(f"{found.where}: {said}; nothing was started", result.problems)
    if not result.count:
        raise InputError(f"{found.where}: an empty set: there is no stimulus in it")


def _rows(
    found: GivenStimuli, rows: Iterable[Any], task: str | None, asked: Mapping[str, Sequence[str]]
) -> Iterator[Row]:
    reader = RowReader(found.where, Path(found.root), task, chosen_by(asked), found.files)
    filled: list[dict[str, Any]] = []
    for row in rows:
        fields = present(_fields(row))
        for name in IMAGES:
            if name in fields:
                fields[name] = _named(fields[name], found.files)
        filled.append(fields)
    reader.repeated = repeated_names(filled)
    for number, fields in enumerate(filled, start=1):
        yield from reader.from_values(fields, number, unnamed="id" not in fields)


def _fields(row: Any) -> dict[str, Any]:
    if isinstance(row, Mapping):
        return dict(row)
    try:
        return as_dict(row) | {name: _place(image) for name, image in row.images_by_field().items()}
    except AttributeError:
        raise InputError(f"a stimulus is a mapping of its fields, not a {type(row).__name__}") from None


def _place(image: Any) -> Any:
    return image.read() if image.path is None else image.path.resolve()


def _word_rows(field: str, words: str | Iterable[str]) -> list[dict[str, Any]]:
    return [{field: word} for word in ([words] if isinstance(words, str) else words)]


def _image_rows(images: Any) -> list[dict[str, Any]]:
    """A row for each picture: one, or a list of them."""
    several = images if isinstance(images, Iterable) and not _is_one(images) else [images]
    shown = [os.fspath(one) if isinstance(one, str | os.PathLike) else one for one in several]
    folders = [os.path.dirname(os.path.abspath(one)) for one in shown if isinstance(one, str)]
    above = os.path.commonpath(folders) if folders else ""
    name = partial(os.path.relpath, start=above)
    return [{"image": one} | ({"id": Path(name(one)).as_posix()} if isinstance(one, str) else {}) for one in shown]


def _is_one(image: Any) -> bool:
    return isinstance(image, str | bytes | os.PathLike | Mapping) or hasattr(image, "__array_interface__")


def _named(image: Any, files: dict[str, bytes]) -> Any:
    """What a row calls an image; the bytes of one that is no file are kept under the name."""
    if isinstance(image, str | os.PathLike):
        return os.fspath(image)
    if isinstance(image, Mapping):  # as Parquet files of pictures have it
        if image.get("bytes") is None:
            return image.get("path")
        image = image["bytes"]
    if isinstance(image, bytes):
        name, data = _digest(image), image
    elif hasattr(image, "__array_interface__"):
        name, data = _encoded(image)
    else:
        return image
    files[name] = data
    return name


def _encoded(picture: Any) -> tuple[str, bytes]:
    """A name that stands for the pixels of a Pillow image or an array, and the picture as a PNG."""
    import io

    from PIL import Image, ImageOps

    shown = ImageOps.exif_transpose(picture) if isinstance(picture, Image.Image) else Image.fromarray(picture)
    if shown.mode not in ("1", "L", "LA", "I;16", "P", "RGB", "RGBA"):
        shown = shown.convert("RGB")
    buffer = io.BytesIO()
    shown.save(buffer, "PNG")
    return _digest(f"{shown.mode} {shown.size}".encode() + shown.tobytes()), buffer.getvalue()


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:ID_DIGITS]
