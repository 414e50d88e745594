"""A program's stimuli: pictures (path, bytes, Pillow image, array), words, rows or the path of a set."""

import hashlib
import io
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agents.errors import InputError
from agents.stimuli import SHORT, as_dict
from agents.stimulus_parts import IMAGES
from serving.files.words import count
from serving.sets.checking import check_rows
from serving.sets.kinds import Kind
from serving.sets.set_rows import ID_DIGITS, Row, RowReader, TasksByAgent, chosen_by, without_nested
from serving.sets.stimulus_row import StimulusRow
from serving.sets.stimulus_set import present, read_rows

ROW_OF: dict[str, Callable[[str], dict[str, Any]]] = {
    "cues": lambda text: {"cue": text},
    "topics": lambda text: {"topic": text},
    "messages": lambda text: {"type": "HM", "history": [{"speaker": "A", "text": text}]},
}


@dataclass(slots=True)
class CheckedStimuli:
    """What a program gave, as rows that are fit to be asked."""

    where: str
    """What messages call them: "stimuli", "images", or the path of a set."""
    root: str
    """The folder in which the paths of pictures begin."""
    files: dict[str, bytes] = field(default_factory=dict)
    """The bytes of pictures that are no files, by the name that rows give them."""
    stimuli: list[StimulusRow] = field(default_factory=list)
    """The valid rows, in their order."""

    def kinds(self) -> Counter[Kind]:
        """How many stimuli there are of each kind."""
        return Counter(stimulus.kind for stimulus in self.stimuli)

    def add_all(self, rows: Iterator[Row]) -> None:
        """Check ``rows`` and keep them, if all are valid and there is one. Raises InputError with every problem."""
        result = check_rows(rows, on_row=self._keep)
        if result.total_problems:
            problems = count(result.total_problems, "problem")
            raise InputError(f"{self.where}: {problems}; nothing was started", result.problems)
        if not result.count:
            raise InputError(f"{self.where}: an empty set: there is no stimulus in it")

    def _keep(self, row: Row, *_: object) -> None:
        if row.stimulus is not None:
            checked = StimulusRow.of(row.stimulus, self.files or None)
            checked.position = len(self.stimuli)
            self.stimuli.append(checked)


def check_stimuli(
    stimuli: str | Path | Iterable[Any] | None,
    images: Any,
    cues: str | Iterable[str] | None,
    topics: str | Iterable[str] | None,
    messages: str | Iterable[str] | None,
    task: str | None,
    tasks: TasksByAgent,
) -> CheckedStimuli:
    """Check stimuli; exactly one of the first five arguments is set. Raises InputError with every problem."""
    if sum(source is not None for source in (stimuli, images, cues, topics, messages)) != 1:
        raise InputError("give one of stimuli, images, cues, topics and messages")
    task = None if task is None else SHORT.get(task, task)
    if isinstance(images, str | os.PathLike) and os.path.isdir(images):
        stimuli = Path(images)
    if isinstance(stimuli, str | Path):
        path = Path(stimuli)
        checked = CheckedStimuli(str(path), str(path.resolve() if path.is_dir() else path.resolve().parent))
        checked.add_all(read_rows(path, task, choose=chosen_by(tasks)))
        return checked
    checked = CheckedStimuli("stimuli", os.getcwd())
    rows: Iterable[Any] = ()
    if images is not None:
        checked.where = "images"
        rows = _image_rows(images)
    elif stimuli is not None:
        rows = [stimuli] if isinstance(stimuli, Mapping) else stimuli
        if hasattr(stimuli, "column_names"):  # a Dataset of Hugging Face, or another table
            rows = map(without_nested, map(present, rows))
    for name, texts in (("cues", cues), ("topics", topics), ("messages", messages)):
        if texts is not None:
            checked.where = name
            rows = map(ROW_OF[name], [texts] if isinstance(texts, str) else texts)
    checked.add_all(_rows(checked, rows, task, tasks))
    return checked


def _rows(checked: CheckedStimuli, rows: Iterable[Any], task: str | None, tasks: TasksByAgent) -> Iterator[Row]:
    reader = RowReader(checked.where, Path(checked.root), task, chosen_by(tasks), checked.files)
    for number, row in enumerate(rows, start=1):
        fields = present(_fields(row))
        for name in IMAGES:
            if name in fields:
                fields[name] = _image_name(fields[name], checked.files)
        yield from reader.from_values(fields, number, unnamed="id" not in fields)


def _fields(row: Any) -> dict[str, Any]:
    if isinstance(row, Mapping):
        return dict(row)
    try:
        images = row.images_by_field().items()
        return as_dict(row) | {
            name: image.read() if image.path is None else image.path.resolve() for name, image in images
        }
    except AttributeError:
        raise InputError(f"a stimulus is a mapping of its fields, not a {type(row).__name__}") from None


def _image_rows(images: Any) -> list[dict[str, Any]]:
    is_picture = isinstance(images, str | bytes | os.PathLike | Mapping) or hasattr(images, "__array_interface__")
    if is_picture or not isinstance(images, Iterable):
        images = [images]
    rows = [{"image": image} for image in images]
    on_disk = [row for row in rows if isinstance(row["image"], str | os.PathLike)]
    above = os.path.commonpath([os.path.dirname(os.path.abspath(row["image"])) for row in on_disk] or [os.sep])
    for row in on_disk:
        row["id"] = Path(os.path.relpath(row["image"], above)).as_posix()
    return rows


def _image_name(image: Any, files: dict[str, bytes]) -> Any:
    if isinstance(image, str | os.PathLike):
        return os.fspath(image)
    if isinstance(image, Mapping):  # as Parquet files of pictures have it
        if image.get("bytes") is None:
            return image.get("path")
        image = image["bytes"]
    if isinstance(image, bytes):
        name = _digest(image)
        data = image
    elif hasattr(image, "__array_interface__"):
        name, data = _encoded(image)
    else:
        return image
    files[name] = data
    return name


def _encoded(picture: Any) -> tuple[str, bytes]:
    from PIL import Image, ImageOps

    upright = ImageOps.exif_transpose(picture) if isinstance(picture, Image.Image) else Image.fromarray(picture)
    if upright.mode not in ("1", "L", "LA", "I;16", "P", "RGB", "RGBA"):
        upright = upright.convert("RGB")
    buffer = io.BytesIO()
    upright.save(buffer, "PNG")
    return _digest(f"{upright.mode} {upright.size}".encode() + upright.tobytes()), buffer.getvalue()


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:ID_DIGITS]
