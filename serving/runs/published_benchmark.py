"""The published benchmark's files, read row by row into records. See :mod:`serving.runs.importing`."""

from __future__ import annotations

import hashlib
import json
import re
import stat
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from agents.answers import CaptionAnswer, ColorAnswer, ObjectAnswer, ScanpathAnswer, WordAnswer, plain
from agents.errors import InputError, Problem
from agents.stimuli import TASKS, Task
from serving.runs.display_text import count
from serving.runs.schemas import RECORD

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
_ROW = {"response", "groundtruth", "human_groundtruth", "machine_groundtruth", "imageID", "cueWord"}
_TOKEN = re.compile(r"\[\s*\w+\s*\]|<\s*/?\s*\w+\s*>|##\w")
_SURROGATES = re.compile("[\ud800-\udfff]")

Report = Callable[[str | None, str], None]  # (field, message) of a problem
Form = Literal["ground truth", "submission"]


@dataclass(frozen=True, slots=True)
class Answered:
    """One answer of the file: to which stimulus, by whom, and what."""

    stimulus: str
    kind: Literal["human", "published"]
    agent: str
    response: Any


@dataclass(slots=True)
class Source:
    """One file that was read whole and found to be in order."""

    path: Path
    sha256: str
    task: Task
    form: Form
    name: str | None
    answers: list[Answered]
    noticed: Counter[str] = field(default_factory=Counter)

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
                "answer": _answer(self.task, answer.response),
                "raw": answer.response,
                "attempts": [],
                "error": None,
                "provenance": {"digest": self.sha256, "checkpoint": None, "revision": None},
                "timing": None,
                "worker": None,
                "created": None,
            }


def read_source(path: Path, task: str | None = None, name: str | None = None) -> Source:
    """Read one file. ``task`` where the file's name does not say it, ``name`` for a submission.

    Raises InputError, either with every problem (rows of another form), or with one sentence that says of the file
    what is wrong without naming it: it is missing, no plain file, too large, no JSON, its task is unknown.
    """
    data = _read(path)
    which = _task(path, task)
    content = _parse(data)
    wrong: list[Problem] = []

    def problem(where: str | None, message: str) -> None:
        wrong.append(Problem(str(path), None, where, message))

    source = Source(path.resolve(), hashlib.sha256(data).hexdigest(), which, _form(content, which), name, [])
    if source.form == "submission" and name is None:
        raise InputError("is a submission and does not say whose answers it holds; give the machine with --name")
    if source.form == "ground truth":
        source.name = None
    for stimulus, value in content.items():
        if not stimulus.strip():
            problem(None, "a stimulus has an empty id")
        elif source.form == "submission":
            answers = [(stimulus, Answered(stimulus, "published", f"published:{name}", value))]
            _take(source, answers, problem)
        elif not isinstance(value, list):
            problem(stimulus, "must be a list of answers, as with the other stimuli")
        else:
            _take(source, _ground_truth(stimulus, value, source.noticed, problem), problem)
    if not wrong and not source.answers:
        problem(None, "holds no answers")
    if wrong:
        raise InputError(f"has {count(len(wrong), 'problem')}", wrong)
    return source


def _read(path: Path) -> bytes:
    """The file's bytes. A device or a pipe could go on for ever, so it is looked at before it is opened."""
    try:
        about = path.stat()
        if stat.S_ISREG(about.st_mode) and about.st_size <= LARGEST:
            return path.read_bytes()
    except FileNotFoundError:
        raise InputError("there is no such file") from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}") from error
    if stat.S_ISREG(about.st_mode):
        raise InputError(
            f"has {about.st_size / 2**30:,.1f} GiB and is no file of the benchmark; at most {LARGEST >> 30} GiB is read"
        )
    raise InputError("is a folder; give the files in it" if stat.S_ISDIR(about.st_mode) else "is not a plain file")


def _task(path: Path, task: str | None) -> Task:
    """The task that was given, else the one that the file's name stands for."""
    given = (task if task is not None else path.stem).lower()
    for known in TASKS:
        if given == known and known != "conversation":
            return known
    if given in SHORT:
        return SHORT[given]
    names = ", ".join(SHORT)
    if task is None:
        raise InputError(f"its name does not say its task ({names}); give it with --task")
    raise InputError(f"--task: there is no published format for {task!r}; there are {names}")


def _parse(data: bytes) -> dict[str, Any]:
    """The file's JSON object, keys in order. Lone surrogates are replaced; NaN and repeated keys are refused."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            twice = [key for key, count in Counter(key for key, _ in pairs).items() if count > 1]
            raise ValueError(f"the key {twice[0]!r} stands there twice")
        return {_clean(key): _clean(value) for key, value in found.items()}

    def constant(text: str) -> Any:
        raise ValueError(f"{text} is no JSON number")

    try:
        content = json.loads(data, object_pairs_hook=unique, parse_constant=constant)
    except (ValueError, RecursionError) as error:
        raise InputError(f"is not JSON in UTF-8: {error}") from None
    if not isinstance(content, dict):
        raise InputError("must be a JSON object of stimuli")
    return content


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return _SURROGATES.sub("\ufffd", value)
    return [_clean(item) for item in value] if isinstance(value, list) else value


def _form(content: dict[str, Any], task: Task) -> Form:
    """A ground truth holds lists of objects. An empty list alone says nothing, except that it is no text."""
    for value in content.values():
        if isinstance(value, list) and value:
            return "ground truth" if isinstance(value[0], dict) else "submission"
        if not isinstance(value, list):
            return "submission"
    return "submission" if task == "attention_prediction" else "ground truth"


def _ground_truth(stimulus: str, rows: list[Any], noticed: Counter[str], problem: Report) -> list[tuple[str, Answered]]:
    """The answers of one stimulus, with the place of each in the file."""
    found = []
    for place, row in enumerate(rows):
        where = f"{stimulus}[{place}]"
        if not isinstance(row, dict):
            problem(where, "must be an object")
            continue
        said_by = row.get("groundtruth")
        if said_by not in ("human", "machine"):
            problem(f"{where}.groundtruth", f"must be 'human' or 'machine', is {said_by!r}")
            continue
        if "response" not in row:
            problem(f"{where}.response", "is missing")
            continue
        subject = row.get(f"{said_by}_groundtruth", "")
        if not isinstance(subject, str | int) or isinstance(subject, bool):
            problem(f"{where}.{said_by}_groundtruth", f"must be text, is {subject!r}")
            continue
        named = bool(str(subject).strip())
        noticed[f"{said_by}_answers_without_a_name"] += not named
        for other in row.keys() - _ROW:
            noticed[f"field_{other}_not_imported"] += 1
        kind: Literal["human", "published"] = "human" if said_by == "human" else "published"
        found.append(
            (f"{where}.response", Answered(stimulus, kind, f"{kind}:{subject if named else UNKNOWN}", row["response"]))
        )
    return found


def _take(source: Source, answers: list[tuple[str, Answered]], problem: Report) -> None:
    for where, answer in answers:
        fault = _fault(source.task, answer.response)
        if fault is not None:
            problem(where, fault)
        else:
            _notice(source.task, answer.response, source.noticed)
            source.answers.append(answer)


def _fault(task: Task, response: Any) -> str | None:
    """Why a response cannot be an answer to the task, or None."""
    if task != "attention_prediction":
        return None if isinstance(response, str) else f"must be text, is {type(response).__name__}"
    whole = isinstance(response, list) and all(
        isinstance(point, list)
        and len(point) == 2
        and all(type(number) in (int, float) and abs(number) < 2**53 for number in point)
        for point in response
    )
    return None if whole else "must be a list of [x, y]"


def _notice(task: Task, response: Any, noticed: Counter[str]) -> None:
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


def _answer(task: Task, response: Any) -> dict[str, Any]:
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
