"""``turinglike set``: sets from COCO, nocaps, COCO-Search18 and the published benchmark."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import orjson
from pydantic import ValidationError

from agents.errors import InputError, Problem
from agents.frames import Fit
from serving.files.atomic_files import replacing
from serving.files.foreign_files import parse_json, read_bytes
from serving.files.output_paths import make_parent, refuse_existing
from serving.files.row_problems import as_problems
from serving.files.terminal import print_line
from serving.files.words import count, shown
from serving.sets.checking import check_rows, print_report
from serving.sets.coco_forms import SEARCHES, Coco
from serving.sets.coco_objects import AnnotatedObjects
from serving.sets.coco_searches import Frame, Searches
from serving.sets.published_tasks import task_of_file
from serving.sets.stimulus_set import SUFFIXES, image_names, read_rows

DOMAINS = {"in-domain": "in", "near-domain": "near", "out-domain": "out"}

StimulusFields = dict[str, Any]
"""A stimulus to write, as JSON."""


def make_set(
    source: Path,
    out: Path,
    *,
    images: Path | None,
    task: str | None,
    force: bool,
    frame: Frame | None = None,
    fit: Fit | None = None,
) -> int:
    """Make the set and print a report; returns 0, or 2 for problems. ``frame`` (width, height) is that of the boxes of
    COCO-Search18's list, which the picture filled as ``fit`` says. Raises InputError and StorageError."""
    if fit is not None and frame is None:
        raise InputError("--fit says how a picture filled the frame of its box: give --frame WIDTHxHEIGHT, too")
    if not source.exists():
        raise InputError(f"{source}: no such file or folder")
    if source.is_dir() or source.suffix.lower() in (".jsonl", ".ndjson", ".csv", ".txt", ".parquet"):
        raise InputError(f"{source}: is a stimulus set already; every command reads it")
    refuse_existing([out], force=force)
    make_parent(out)
    with replacing(out) as file:
        for row in _rows(source, out.parent, images, task, frame, fit):
            file.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))
        if not file.tell():
            raise InputError(f"{source}: there is no stimulus in it")
    return print_report(check_rows(read_rows(out)))


def _rows(
    source: Path, beside: Path, images: Path | None, task: str | None, frame: Frame | None, fit: Fit | None
) -> Iterator[StimulusFields]:
    try:
        content = parse_json(read_bytes(source))
    except InputError as error:
        raise InputError(f"{source} {error}") from None
    is_of_benchmark = (
        isinstance(content, dict)
        and "images" not in content
        and all(isinstance(answers, str | list) for answers in content.values())
    )
    if frame is not None and not isinstance(content, list):
        raise InputError(f"--frame is for the boxes of COCO-Search18's list, and {source} is another file")
    of_task = task_of_file(source, task) if is_of_benchmark else task
    if is_of_benchmark and of_task == "word_association":
        yield from ({"id": f"{of_task}/{cue}", "benchmark_id": cue, "task": of_task, "cue": cue} for cue in content)
        return
    if images is None:
        raise InputError("say with --images in which folder the pictures are")
    place = os.path.relpath(images, beside)
    try:
        if is_of_benchmark:
            for name, file in _pictures(content, images).items():
                # ids have the task in front, as the benchmark's files use the same names
                yield {"id": f"{of_task}/{name}", "benchmark_id": name, "task": of_task, "image": f"{place}/{file}"}
        elif isinstance(content, list):
            yield from Searches(SEARCHES.validate_python(content), source, images, frame, fit).rows(place, task)
        else:
            yield from _coco(Coco.model_validate(content), str(source), place, images, task)
    except ValidationError as error:
        what = f"{source}: neither annotations of COCO's form, nor COCO-Search18's list, nor the published benchmark's"
        raise InputError(what, as_problems(error, str(source))) from None


def _pictures(names: Iterable[str], images: Path) -> dict[str, str]:
    """Each picture's file: of its name, else the only file with another ending. Raises InputError."""
    by_stem: dict[str, list[str]] = {}
    for file in image_names(images):
        by_stem.setdefault(os.path.splitext(file)[0], []).append(file)
    files: dict[str, str] = {}
    names_of: dict[str, list[str]] = {}
    problems: list[Problem] = []
    for name in names:
        stem, ending = os.path.splitext(name)
        fitting = [name] if (images / name).is_file() else by_stem.get(name, [])
        if not fitting and ending.lower() in SUFFIXES:
            fitting = by_stem.get(stem, [])
        if len(fitting) > 1:
            problems.append(Problem(str(images), None, shown(name), f"may be any of {', '.join(fitting)}"))
        files[name] = fitting[0] if fitting else name
        names_of.setdefault(files[name], []).append(name)
    for file, several in names_of.items():
        if len(several) > 1:
            message = f"would be the picture of {shown(', '.join(several))}"
            problems.append(Problem(str(images), None, file, message))
    if problems:
        raise InputError(f"{images}: the pictures have no names of their own", problems)
    return files


def _coco(coco: Coco, source: str, place: str, images: Path, task: str | None) -> Iterator[StimulusFields]:
    if problems := coco.repeated_ids(source):
        raise InputError(f"{source}: {count(len(problems), 'problem')}; no set was made", problems)
    objects = AnnotatedObjects.of(coco)
    if objects.unlisted:
        print_line(
            f"left out: {count(objects.unlisted, 'annotation')} of images or categories that the file does not list"
        )
    task = task or ("object_detection" if coco.categories else "image_captioning")
    for image in sorted(coco.images, key=lambda image: image.file_name):
        file = image.file_name
        if image.url_folder and (images / image.url_folder / file).is_file():
            file = f"{image.url_folder}/{file}"
        row: StimulusFields = {"id": image.file_name, "task": task, "image": f"{place}/{file}"}
        row |= {"source": "coco" if image.domain is None else "nocaps"}
        row |= {"source_id": str(image.id) if image.open_images_id is None else image.open_images_id}
        if task == "image_captioning":
            row["domain"] = "coco" if image.domain is None else DOMAINS[image.domain]
        elif objects.named:
            row |= objects.fields(image)
        yield row
    if task != "image_captioning" and objects.named:
        for remark in objects.remarks(coco.images):
            print_line(remark)
