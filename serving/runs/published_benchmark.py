"""The published benchmark's files as records. Two forms of file, both one JSON object:

- ground truth, ``{stimulus id: [{"response": …, "groundtruth": "human" | "machine", "human_groundtruth": subject,
  "machine_groundtruth": model, …}, …]}``;
- a submission, ``{stimulus id: response}``, with the name of the machine that made it.

Nothing is corrected: points off the frame, the colour "none" and special tokens stay and are counted, and ``raw`` is
the response as it stood. Seed, timing, worker and time are null, as nobody recorded them.
"""

from __future__ import annotations

import hashlib
import re
import stat
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, Field, StrictFloat, StrictInt, StrictStr, TypeAdapter, ValidationError

from agents.answers import CaptionAnswer, ColorAnswer, ObjectAnswer, ScanpathAnswer, WordAnswer, plain
from agents.errors import InputError, Problem
from agents.stimuli import Task
from serving.runs.display_text import count
from serving.runs.records import RECORD
from serving.runs.row_problems import shown, strict_json

SHORT: dict[str, Task] = {
    "caption": "image_captioning",
    "word": "word_association",
    "color": "color_estimation",
    "object": "object_detection",
    "fv": "attention_prediction",
}
FRAME = [1280, 1024]
COLORS = {"red", "pink", "orange", "yellow", "purple", "green", "blue", "brown", "gray", "black", "white"}
UNKNOWN = "unknown"
LARGEST = 1 << 30  # bytes of one file: it is held in memory whole
_FIELDS = {"response", "groundtruth", "human_groundtruth", "machine_groundtruth", "imageID", "cueWord"}
_TOKEN = re.compile(r"\[\s*\w+\s*\]|<\s*/?\s*\w+\s*>|##\w")
_SURROGATES = re.compile("[\ud800-\udfff]")

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
_Coordinate = Annotated[StrictInt | StrictFloat, Field(gt=-(2**53), lt=2**53)]


class _Row(BaseModel, Generic[A]):
    """One answer in a ground truth."""

    response: A
    groundtruth: Literal["human", "machine"]
    human_groundtruth: StrictStr | StrictInt = ""
    machine_groundtruth: StrictStr | StrictInt = ""


_Scanpath = list[Annotated[list[_Coordinate], Field(min_length=2, max_length=2)]]
_CONTENT: dict[tuple[Form, bool], TypeAdapter[Any]] = {  # what a file holds, by its form and whether of scanpaths
    ("ground truth", False): TypeAdapter(dict[str, list[_Row[StrictStr]]]),
    ("ground truth", True): TypeAdapter(dict[str, list[_Row[_Scanpath]]]),
    ("submission", False): TypeAdapter(dict[str, StrictStr]),
    ("submission", True): TypeAdapter(dict[str, _Scanpath]),
}


@dataclass(frozen=True, slots=True)
class Answered:
    """One answer of the file: to which stimulus, by whom, and what. ``fields`` are those of its record that the file
    says itself, ``answer`` among them where the response is not one of the benchmark's."""

    stimulus: str
    kind: Literal["human", "published"]
    agent: str
    response: Any
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Source:
    """One file that was read whole and found to be in order. ``left_out`` are its columns that are not imported."""

    path: Path
    sha256: str
    task: Task
    form: Form
    name: str | None
    answers: list[Answered]
    noticed: Counter[str] = field(default_factory=Counter)
    left_out: list[str] = field(default_factory=list)

    def about(self) -> dict[str, Any]:
        """What ``import.json`` says of it."""
        agents: dict[str, set[str]] = {"human": set(), "published": set()}
        counts: Counter[str] = Counter()
        for answer in self.answers:
            agents[answer.kind].add(answer.agent)
            counts[answer.kind] += 1
        return {
            "path": str(self.path),
            "sha256": self.sha256,
            "task": self.task,
            "form": self.form,
            "name": self.name,
            "stimuli": len({answer.stimulus for answer in self.answers}),
            "human": counts["human"],
            "subjects": len(agents["human"]),
            "published": counts["published"],
            "machines": len(agents["published"]),
            "noticed": dict(sorted((+self.noticed).items())),
            **({"columns_left_out": self.left_out} if self.left_out else {}),
        }

    def records(self, run: str) -> Iterator[dict[str, Any]]:
        """The answers as records, in file order; samples are left at 0."""
        for answer in self.answers:
            yield {
                "schema": RECORD,
                "run": run,
                "task": self.task,
                "stimulus": answer.stimulus,
                "stimulus_sha256": None,
                "agent": answer.agent,
                "kind": answer.kind,
                "sample": 0,
                "seed": None,
                "status": "ok",
                "answer": None if "answer" in answer.fields else answer_to(self.task, answer.response),
                "raw": answer.response,
                "attempts": [],
                "error": None,
                "provenance": {"digest": self.sha256, "checkpoint": None, "revision": None},
                "timing": None,
                "worker": None,
                "created": None,
                **answer.fields,
            }


def read_source(path: Path, task: str | None = None, name: str | None = None) -> Source:
    """Read one file of the benchmark. ``task`` where the file's name does not say it, ``name`` for a submission.

    Raises InputError, either with every problem of its rows, or with one sentence about the file that does not name it.
    """
    data = read_whole(path)
    try:
        content = without_surrogates(strict_json(data))
    except ValueError as error:
        raise InputError(f"is not JSON in UTF-8: {error}") from None
    return benchmark_source(path, data, content, task, name)


def benchmark_source(path: Path, data: bytes, content: Any, task: str | None, name: str | None) -> Source:
    """The file whose bytes are ``data``, parsed ``content``. Raises as :func:`read_source`."""
    which = task_of_file(path, task)
    if not isinstance(content, dict):
        raise InputError("must be a JSON object of stimuli")
    form = _form(content, which)
    if form == "submission" and name is None:
        raise InputError("is a submission and does not say whose answers it holds; give the machine with --name")
    wrong = _problems(path, content, which, form)
    if wrong:
        raise InputError(f"has {count(len(wrong), 'problem')}", wrong)
    sha256 = hashlib.sha256(data).hexdigest()
    source = Source(path.resolve(), sha256, which, form, name if form == "submission" else None, [])
    for stimulus, value in content.items():
        if form == "submission":
            source.answers.append(Answered(stimulus, "published", f"published:{name}", value))
        else:
            source.answers += [_answered(stimulus, row, source.noticed) for row in value]
    if not source.answers:
        raise InputError("holds no answers")
    for answer in source.answers:
        notice(which, answer.response, source.noticed)
    return source


def _problems(path: Path, content: dict[str, Any], task: Task, form: Form) -> list[Problem]:
    """One problem for every field that is not what it should be."""
    found = {} if all(stimulus.strip() for stimulus in content) else {"": "a stimulus has an empty id"}
    try:
        _CONTENT[form, task == "attention_prediction"].validate_python(content)
    except ValidationError as error:
        for item in error.errors(include_url=False, include_input=False):
            stimulus, *rest = item["loc"][: 3 if form == "ground truth" else 1]
            field = str(stimulus) + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in rest)
            found.setdefault(shown(field), item["msg"])
    return [Problem(str(path), None, field or None, message) for field, message in found.items()]


def _answered(stimulus: str, row: dict[str, Any], noticed: Counter[str]) -> Answered:
    """One row of a ground truth, which has been found in order."""
    said_by = row["groundtruth"]
    subject = str(row.get(f"{said_by}_groundtruth", ""))
    noticed[f"{said_by}_answers_without_a_name"] += not subject.strip()
    for other in row.keys() - _FIELDS:
        noticed[f"field_{other}_not_imported"] += 1
    if said_by == "human":
        return Answered(stimulus, "human", person(subject), row["response"])
    return Answered(stimulus, "published", f"published:{subject if subject.strip() else UNKNOWN}", row["response"])


def person(subject: str) -> str:
    """The agent's name of a person. An accented letter is the same, be it written as one character or as two."""
    return f"human:{unicodedata.normalize('NFC', subject) if subject.strip() else UNKNOWN}"


def read_whole(path: Path) -> bytes:
    """The file's bytes. A device or a pipe could go on for ever, so it is looked at before it is opened."""
    try:
        about = path.stat()
        if not stat.S_ISREG(about.st_mode):
            raise InputError("is not a plain file")
        if about.st_size > LARGEST:
            raise InputError(f"has {about.st_size / 2**30:,.1f} GiB; at most {LARGEST >> 30} GiB is read")
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}") from error


def task_of_file(path: Path, task: str | None) -> Task:
    """The task that was given, else the one that the file's name stands for. Raises InputError."""
    given = (task or path.stem).lower()
    known = SHORT | {name: name for name in SHORT.values()}
    if given not in known:
        raise InputError(f"{given!r} says no task; say with --task which: {', '.join(SHORT)}")
    return known[given]


def without_surrogates(value: Any) -> Any:
    """``value`` with lone surrogates replaced."""
    if isinstance(value, str):
        return _SURROGATES.sub("\ufffd", value)
    if isinstance(value, list):
        return [without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {without_surrogates(key): without_surrogates(item) for key, item in value.items()}
    return value


def _form(content: dict[str, Any], task: Task) -> Form:
    """A ground truth holds lists of objects. An empty list alone says nothing, except that it is no text."""
    for value in content.values():
        if isinstance(value, list) and value:
            return "ground truth" if isinstance(value[0], dict) else "submission"
        if not isinstance(value, list):
            return "submission"
    return "submission" if task == "attention_prediction" else "ground truth"


def notice(task: Task, response: Any, noticed: Counter[str]) -> None:
    """Count what is odd about a response. It is kept as it is."""
    match task:
        case "attention_prediction":
            outside = sum(not (0 <= x < FRAME[0] and 0 <= y < FRAME[1]) for x, y in response)
            noticed["points_off_the_frame"] += outside
            noticed["scanpaths_that_end_in_one_point_again_and_again"] += (
                len(response) > 2 and response[-1] == response[-2] == response[-3]
            )
        case "color_estimation":
            noticed["colors_that_are_none_of_the_eleven"] += response not in COLORS
        case "object_detection":
            noticed["answers_with_fewer_than_three_labels"] += len(_labels(response)) < 3
        case "image_captioning":
            noticed["captions_with_special_tokens"] += _TOKEN.search(response) is not None
        case _:
            noticed["empty_words"] += not response.strip()


def _labels(response: str) -> list[str]:
    return [label for part in response.split(",") if (label := part.strip())]


def answer_to(task: Task, response: Any) -> dict[str, Any]:
    """The answer to a task that a response of the benchmark's form is."""
    match task:
        case "attention_prediction":
            return plain(ScanpathAnswer(fixations=response, frame=FRAME))
        case "color_estimation":
            return plain(ColorAnswer(color=response))
        case "object_detection":
            return plain(ObjectAnswer(labels=_labels(response)))
        case "image_captioning":
            return plain(CaptionAnswer(text=response))
        case _:
            return plain(WordAnswer(word=response))
