"""``turinglike set``: sets from what others publish.

- A Parquet table that has its pictures in itself: they become files.
- COCO's annotations ``{"images": [...], "annotations": [...], "categories": [...]}``: captions, instances, and nocaps.
  Instances say which objects are present.
- COCO-Search18's list ``[{"name", "task", "condition", "bbox", …}, …]``: a search, or free viewing, of each picture.
- The published benchmark's ``{stimulus: answers}``: its cues, or its pictures.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr, TypeAdapter, ValidationError, model_validator

from agents.errors import InputError, Problem
from agents.stimuli import IMAGES
from serving.runs.atomic_files import replacing
from serving.runs.checking import check_set, print_report
from serving.runs.csv_tables import repeated_columns
from serving.runs.output_paths import make_parent, new_folder, refuse_existing
from serving.runs.published_benchmark import read_bytes, task_of_file
from serving.runs.row_problems import as_problems, count, repeated_ids, shown, strict_json
from serving.runs.set_rows import ID_DIGITS, with_free_fields, with_meta
from serving.runs.stimulus_set import SUFFIXES, column_names, image_names, is_table, table_rows

NO_IMAGES = "say with --images in which folder the pictures are"
ROWS, PICTURES = "set.jsonl", "pictures"
ENDINGS = {b"\xff\xd8": ".jpg", b"\x89P": ".png", b"RI": ".webp", b"GI": ".gif", b"BM": ".bmp"}
DOMAINS = {"in-domain": "in", "near-domain": "near", "out-domain": "out"}
FREE = ""  # the target of free viewing
Size = tuple[float, float]  # width, height

Row = dict[str, Any]


class _Image(BaseModel):
    """A picture of COCO's or nocaps's."""

    id: StrictInt
    file_name: StrictStr
    domain: Literal["in-domain", "near-domain", "out-domain"] | None = None
    open_images_id: StrictStr | None = None


class _Annotation(BaseModel):
    image_id: StrictInt
    category_id: StrictInt | None = None


class _Category(BaseModel):
    id: StrictInt
    name: StrictStr


class _Coco(BaseModel):
    """COCO's annotations, as far as a set needs them."""

    images: list[_Image]
    annotations: list[_Annotation] = Field(default_factory=list)
    categories: list[_Category] = Field(default_factory=list)


class _Search(BaseModel):
    """An entry of COCO-Search18's list."""

    name: StrictStr
    task: StrictStr | None = None
    condition: StrictStr | None = None
    bbox: tuple[float, float, float, float] | None = None


_SEARCHES = TypeAdapter(list[_Search])


def make_set(source: Path, out: Path, *, images: Path | None, task: str | None, force: bool) -> int:
    """Make the set and print a report on it; returns 0, or 2 if it has problems. ``images`` is the folder of the
    pictures that annotations name. Raises InputError, UnavailableError and StorageError."""
    if not source.exists():
        raise InputError(f"{source}: no such file or folder")
    if is_table(source):
        if images is not None:
            raise InputError("--images is for annotations; this table has its pictures in itself")
        if twice := repeated_columns(column_names(source)):
            problems = [Problem(str(source), None, *problem) for problem in twice]
            raise InputError(f"{source}: the columns cannot be used", problems)
        with new_folder(out, marker=ROWS, force=force) as folder:
            _write(folder / ROWS, _unpacked(source, folder, out, task), source)
        return print_report(check_set(out / ROWS))
    refuse_existing([out], force=force)
    if source.is_dir() or source.suffix.lower() in (".jsonl", ".ndjson", ".csv", ".txt"):
        raise InputError(f"{source}: is a set as it is, which every command takes")
    make_parent(out)
    _write(out, _annotated(source, out.parent, images, task), source)
    return print_report(check_set(out))


def _write(path: Path, rows: Iterable[Row], source: Path) -> None:
    with replacing(path) as file:
        for row in rows:
            file.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE, default=str))
        if not file.tell():
            raise InputError(f"{source}: there is no stimulus in it")


def _unpacked(source: Path, folder: Path, out: Path, task: str | None) -> Iterator[Row]:
    """Rows of a table; the pictures that it holds become files in ``folder``, which becomes ``out``."""
    (folder / PICTURES).mkdir()
    for row in table_rows(source):
        fields = with_meta(with_free_fields(row))
        for name in IMAGES:
            if isinstance(image := fields.get(name), dict):
                digest, data = hashlib.sha256(image["bytes"]).hexdigest()[:ID_DIGITS], image["bytes"]
                fields[name] = f"{PICTURES}/{digest}{ENDINGS.get(data[:2], '')}"
                (folder / fields[name]).write_bytes(data)
                fields = {"id": digest, **fields}
            elif isinstance(image, str):
                path = source.parent / image
                fields = {"id": path.name, **fields, name: os.path.relpath(path, out)}
        if "id" in fields:
            fields["id"] = str(fields["id"])
        yield fields if task is None else {"task": task, **fields}


def _annotated(source: Path, beside: Path, images: Path | None, task: str | None) -> Iterator[Row]:
    try:
        content = strict_json(read_bytes(source))
    except InputError as error:
        raise InputError(f"{source} {error}") from None
    except ValueError as error:
        raise InputError(f"{source}: is not JSON in UTF-8: {error}") from None
    place = None if images is None else os.path.relpath(images, beside)
    try:
        if _is_of_benchmark(content):
            yield from _benchmark(content, place, images, task_of_file(source, task))
        elif images is None or place is None:
            raise InputError(NO_IMAGES)
        elif isinstance(content, list):
            yield from _searches(_SEARCHES.validate_python(content), place, images, task)
        else:
            yield from _coco(_Coco.model_validate(content), str(source), place, task)
    except ValidationError as error:
        what = f"{source}: neither annotations of COCO's form, nor COCO-Search18's list, nor the published benchmark's"
        raise InputError(what, as_problems(error, str(source))) from None


def _is_of_benchmark(content: Any) -> bool:
    """Whether a file is the published benchmark's: answers by stimulus, each a text or a list."""
    return (
        isinstance(content, dict)
        and "images" not in content
        and all(isinstance(answers, str | list) for answers in content.values())
    )


def _benchmark(content: dict[str, Any], place: str | None, images: Path | None, task: str) -> Iterator[Row]:
    """A row for each stimulus; ids have the task in front, as the files use the same names."""
    is_word = task == "word_association"
    if images is None and not is_word:
        raise InputError(NO_IMAGES)
    files = {} if images is None or is_word else _pictures(content, images)
    for name in content:
        row = {"id": f"{task}/{name}", "benchmark_id": name, "task": task}
        yield row | ({"cue": name} if is_word else {"image": f"{place}/{files[name]}"})


def _pictures(names: Iterable[str], images: Path) -> dict[str, str]:
    """The file of each picture: of exactly its name, else the only file of its name with another ending, or with an
    ending. A picture that is not there keeps its name. Raises InputError where several could be meant."""
    by_stem: dict[str, list[str]] = {}
    for file in image_names(images):
        if "/" not in file:
            by_stem.setdefault(os.path.splitext(file)[0], []).append(file)
    files: dict[str, str] = {}
    problems: list[Problem] = []
    for name in names:
        stem, ending = os.path.splitext(name)
        fitting = [name] if (images / name).is_file() else by_stem.get(name, [])
        if not fitting and ending.lower() in SUFFIXES:
            fitting = by_stem.get(stem, [])
        if len(fitting) > 1:
            problems.append(Problem(str(images), None, shown(name), f"may be any of {', '.join(fitting)}"))
        files[name] = fitting[0] if fitting else name
    for file, number in Counter(files.values()).items():
        if number > 1:
            same = shown(", ".join(name for name in files if files[name] == file))
            problems.append(Problem(str(images), None, file, f"would be the picture of {same}"))
    if problems:
        raise InputError(f"{images}: the pictures cannot be told apart by their names", problems)
    return files


def _coco(coco: _Coco, source: str, place: str, task: str | None) -> Iterator[Row]:
    names = {category.id: category.name for category in coco.categories}
    _print_unlisted(coco, names)
    problems = repeated_ids(source, "images", ((image.id, image.file_name) for image in coco.images))
    problems += repeated_ids(source, "categories", ((category.id, category.name) for category in coco.categories))
    if problems:
        raise InputError(f"{source}: {count(len(problems), 'problem')}; no set was made", problems)
    task = task or ("object_detection" if coco.categories else "image_captioning")
    present: dict[int, set[str]] = {}
    for annotation in coco.annotations:
        if annotation.category_id in names:
            present.setdefault(annotation.image_id, set()).add(names[annotation.category_id])
    for image in sorted(coco.images, key=lambda image: image.file_name):
        row: Row = {"id": image.file_name, "task": task, "image": f"{place}/{image.file_name}"}
        row |= {"source": "coco" if image.domain is None else "nocaps"}
        row |= {"source_id": str(image.id) if image.open_images_id is None else image.open_images_id}
        if task == "image_captioning":
            row["domain"] = "coco" if image.domain is None else DOMAINS[image.domain]
        elif names:
            here = present.get(image.id, set())
            row |= {"present": sorted(here), "absent": sorted({*names.values()} - here)}
        yield row


def _print_unlisted(coco: _Coco, names: dict[int, str]) -> None:
    """Print the images and categories that annotations name and the file does not list."""
    listed = {image.id for image in coco.images}
    images = {each.image_id: None for each in coco.annotations if each.image_id not in listed}
    categories = {each.category_id: None for each in coco.annotations if each.category_id not in {*names, None}}
    for unlisted, *what in ((images, "image", "images"), (categories if names else {}, "category", "categories")):
        if unlisted:
            ids = shown(", ".join(map(str, unlisted)))
            print(f"not listed, but named by annotations: {count(len(unlisted), *what)} ({ids})")


def _searches(entries: list[_Search], place: str, images: Path, task: str | None) -> Iterator[Row]:
    """A row for each picture and what was searched for on it, however many people searched."""
    if task not in (None, "attention_prediction"):
        raise InputError(f"COCO-Search18 has scanpaths, which are no answers to {task}")
    without = others = 0
    rows: dict[str, Row] = {}
    for entry in entries:
        target = searched_for(entry.condition, entry.task) or ""
        name = f"{target}/{entry.name}" if target else entry.name
        if name in rows:
            others += entry.bbox not in (None, rows[name].get("target_box"))
            continue
        folder = f"{entry.task}/" if (images / (entry.task or "") / entry.name).is_file() else ""
        row: Row = {"id": name, "task": "attention_prediction", "image": f"{place}/{folder}{entry.name}"}
        row |= {"dataset": "coco-search18"}
        if target:
            if entry.bbox is None:
                without += 1
                continue
            row |= {"mode": "search", "target_box": entry.bbox, "target_present": entry.condition == "present"}
            row |= {"meta": {"target": target}}
        rows[name] = row
    if without:
        print(f"left out: {count(without, 'entry', 'entries')} without a box: nothing says what the target looks like")
    if others:
        print(f"{count(others, 'entry has', 'entries have')} another box than the first of the search, which counts")
    yield from rows.values()


class CocoPath(BaseModel):
    """An entry of COCO-Search18's list."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)

    name: str
    subject: int | str
    X: list[float]
    Y: list[float]
    T: list[float] | None = None
    task: str | None = None
    condition: Any = None

    @model_validator(mode="after")
    def _lengths_agree(self) -> CocoPath:
        if len(self.X) != len(self.Y) or (self.T is not None and len(self.T) != len(self.X)):
            raise ValueError("X, Y and T must have one number for each fixation")
        return self


def searched_for(condition: Any, task: str | None) -> str | None:
    """What an entry of COCO-Search18's list says was searched for: nothing in free viewing; None if it does not say."""
    if condition == "freeview":
        return FREE
    return None if task in (None, "", "none") else str(task).lower()


def sidecar(path: Path) -> tuple[Mapping[tuple[str, str | None], Size], Mapping[str, tuple[str, int]]]:
    """Frames by (name, subject), and (agent, sample) by subject, from the side-car of an export; maybe none."""
    if not path.is_file():
        return {}, {}
    try:
        content = orjson.loads(path.read_bytes())
        frames: dict[tuple[str, str | None], Size] = {
            (name, None): (size[0], size[1]) for name, size in content.get("frames", {}).items()
        }
        for other in content.get("other_frames", ()):
            frames[other["name"], str(other["subject"])] = (other["frame"][0], other["frame"][1])
        return frames, {number: (who["agent"], who["sample"]) for number, who in content.get("subjects", {}).items()}
    except (orjson.JSONDecodeError, AttributeError, KeyError, IndexError, TypeError) as error:
        raise InputError(f"{path} is not the side-car of an export: {error!r}") from None
