"""Answers of other programs as records, and the published benchmark's files, of two forms:

- ground truth, ``{stimulus id: [{"response": …, "groundtruth": "human" | "machine", "human_groundtruth": subject,
  "machine_groundtruth": model, …}, …]}``;
- a submission, ``{stimulus id: response}``, with the name of the machine that made it.

Nothing is corrected: points off the frame, the colour "none" and special tokens stay. Nobody recorded seed, timing,
worker and time, which are null.
"""

from __future__ import annotations

import hashlib
import re
import stat
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, Field, StrictFloat, StrictInt, StrictStr, TypeAdapter, ValidationError

from agents.answers import CaptionAnswer, ColorAnswer, ObjectAnswer, ScanpathAnswer, WordAnswer, plain
from agents.errors import InputError, Problem
from agents.stimuli import Task
from serving.runs.records import people_record
from serving.runs.row_problems import as_problems, count, strict_json

SHORT: dict[str, Task] = {
    "caption": "image_captioning",
    "word": "word_association",
    "color": "color_estimation",
    "object": "object_detection",
    "fv": "attention_prediction",
}
FRAME = [1280, 1024]
UNKNOWN = "unknown"
LARGEST = 1 << 30  # bytes of one file, which is held in memory
_FIELDS = {"response", "groundtruth", "human_groundtruth", "machine_groundtruth", "imageID", "cueWord"}
_SURROGATES = re.compile("[\ud800-\udfff]")

Kind = Literal["human", "published"]
Form = Literal[
    "ground truth",
    "submission",
    "records",
    "topical-chat",
    "page",
    "table",
    "jspsych",
    "coco-captions",
    "coco-search18",
]
A = TypeVar("A")
_Coordinate = Annotated[StrictFloat, Field(gt=-(2**53), lt=2**53)]
_Scanpath = list[Annotated[list[_Coordinate], Field(min_length=2, max_length=2)]]


class _Row(BaseModel, Generic[A]):
    """An answer in a ground truth."""

    response: A
    groundtruth: Literal["human", "machine"]
    human_groundtruth: StrictStr | StrictInt = ""
    machine_groundtruth: StrictStr | StrictInt = ""


_CONTENT: dict[tuple[Form, bool], TypeAdapter[Any]] = {  # of a file, by its form and whether it is of scanpaths
    ("ground truth", False): TypeAdapter(dict[str, list[_Row[StrictStr]]]),
    ("ground truth", True): TypeAdapter(dict[str, list[_Row[_Scanpath]]]),
    ("submission", False): TypeAdapter(dict[str, StrictStr]),
    ("submission", True): TypeAdapter(dict[str, _Scanpath]),
}


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer of a file: the stimulus, who answered, the response as it stood, and other fields of its record."""

    stimulus: str
    kind: Kind
    agent: str
    raw: Any
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Source:
    """A file that was read. ``noticed`` counts what is not imported, by why; ``left_out`` are such columns."""

    path: Path
    sha256: str
    task: Task
    form: Form
    name: str | None
    answers: list[Answered]
    noticed: Counter[str] = field(default_factory=Counter)
    left_out: list[str] = field(default_factory=list)

    def about(self) -> dict[str, Any]:
        """Its entry in ``import.json``."""
        people = [answer.agent for answer in self.answers if answer.kind == "human"]
        machines = [answer.agent for answer in self.answers if answer.kind == "published"]
        return {
            "path": str(self.path),
            "sha256": self.sha256,
            "task": self.task,
            "form": self.form,
            "name": self.name,
            "stimuli": len({answer.stimulus for answer in self.answers}),
            "human": len(people),
            "subjects": len(set(people)),
            "published": len(machines),
            "machines": len(set(machines)),
            "noticed": dict(sorted((+self.noticed).items())),
            **({"columns_left_out": self.left_out} if self.left_out else {}),
        }

    def records(self, run: str) -> Iterator[dict[str, Any]]:
        """The answers as records, in file order; each is sample 0."""
        for answer in self.answers:
            fields = {
                "task": self.task,
                "stimulus": answer.stimulus,
                "agent": answer.agent,
                "kind": answer.kind,
                "raw": answer.raw,
                "provenance": {"digest": self.sha256, "checkpoint": None, "revision": None},
            }
            yield people_record(run, {**fields, **answer.fields})


def refuse(problems: Sequence[Problem]) -> None:
    """Raise InputError with the problems of a file, if there are any."""
    if problems:
        raise InputError(f"has {count(len(problems), 'problem')}", problems)


def person(subject: str) -> str:
    """The agent's name of a person. An accented letter is the same, be it written as one character or as two."""
    return f"human:{unicodedata.normalize('NFC', subject) if subject.strip() else UNKNOWN}"


def read_bytes(path: Path) -> bytes:
    """The file's bytes. A device or a pipe, which could go on for ever, is refused before it is opened."""
    try:
        about = path.stat()
        if not stat.S_ISREG(about.st_mode):
            raise InputError("is not a plain file")
        if about.st_size > LARGEST:
            raise InputError(f"has {about.st_size / 2**30:,.1f} GiB; at most {LARGEST >> 30} GiB is read")
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}") from error


def parse_json(data: bytes | str) -> Any:
    """Strict JSON with lone surrogates replaced. Raises InputError."""
    try:
        return _without_surrogates(strict_json(data))
    except ValueError as error:
        raise InputError(f"is not JSON in UTF-8: {error}") from None


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return _SURROGATES.sub("\ufffd", value)
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
    return value


def task_of_file(path: Path, task: str | None) -> Task:
    """``task``, else the task that the file's name stands for. Raises InputError."""
    name = (task or path.stem).lower()
    known = SHORT | {task: task for task in SHORT.values()}
    if name not in known:
        raise InputError(f"{name!r} says no task; say with --task which: {', '.join(SHORT)}")
    return known[name]


def read_source(path: Path, task: str | None = None, name: str | None = None) -> Source:
    """Read a file of the benchmark. ``task`` where the file's name does not say it, ``name`` for a submission.

    Raises InputError, with every problem of its rows, or with a sentence about the file that does not name it.
    """
    data = read_bytes(path)
    return benchmark_source(path, data, parse_json(data), task, name)


def benchmark_source(path: Path, data: bytes, content: Any, task: str | None, name: str | None) -> Source:
    """The file whose bytes are ``data``, parsed ``content``. Raises as :func:`read_source`."""
    of_task = task_of_file(path, task)
    if not isinstance(content, dict):
        raise InputError("must be a JSON object of stimuli")
    form = _form(content, of_task)
    if form == "submission" and name is None:
        raise InputError("is a submission and does not say whose answers it holds; give the machine with --name")
    if not all(stimulus.strip() for stimulus in content):
        refuse([Problem(str(path), None, None, "a stimulus has an empty id")])
    try:
        _CONTENT[form, of_task == "attention_prediction"].validate_python(content)
    except ValidationError as error:
        refuse(as_problems(error, str(path)))
    sha256 = hashlib.sha256(data).hexdigest()
    source = Source(path.resolve(), sha256, of_task, form, name if form == "submission" else None, [])
    for stimulus, value in content.items():
        for row in value if form == "ground truth" else [{"response": value, "machine_groundtruth": name}]:
            source.answers.append(_answered(stimulus, row, source))
    if not source.answers:
        raise InputError("holds no answers")
    return source


def _answered(stimulus: str, row: dict[str, Any], source: Source) -> Answered:
    for other in row.keys() - _FIELDS:
        source.noticed[f"field_{other}_not_imported"] += 1
    fields = {"answer": answer_to(source.task, row["response"])}
    if row.get("groundtruth") == "human":
        return Answered(stimulus, "human", person(str(row.get("human_groundtruth", ""))), row["response"], fields)
    machine = str(row.get("machine_groundtruth", ""))
    name = f"published:{machine if machine.strip() else UNKNOWN}"
    return Answered(stimulus, "published", name, row["response"], fields)


def _form(content: dict[str, Any], task: Task) -> Form:
    """A ground truth holds lists of objects. An empty list alone says nothing, except that it is no text."""
    for value in content.values():
        if isinstance(value, list) and value:
            return "ground truth" if isinstance(value[0], dict) else "submission"
        if not isinstance(value, list):
            return "submission"
    return "submission" if task == "attention_prediction" else "ground truth"


def answer_to(task: Task, response: Any) -> dict[str, Any]:
    """The answer to a task that a response of the benchmark's form is."""
    match task:
        case "attention_prediction":
            return plain(ScanpathAnswer(fixations=response, frame=FRAME))
        case "color_estimation":
            return plain(ColorAnswer(color=response))
        case "object_detection":
            labels = [label for part in response.split(",") if (label := part.strip())]
            return plain(ObjectAnswer(labels=labels))
        case "image_captioning":
            return plain(CaptionAnswer(text=response))
        case _:
            return plain(WordAnswer(word=response))
