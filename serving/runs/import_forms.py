"""Forms of published files, read without corrections; what nobody recorded is null.

- The published benchmark's ground truth, ``{stimulus: [{"response", "groundtruth": "human" | "machine",
  "human_groundtruth", "machine_groundtruth"}, …]}``, and a machine's submission, ``{stimulus: response}``.
- Topical-Chat's ``{id: {"content": [{"agent", "message", …}, …], …}}``: two people each.
- The published Turing test's pages, a conversation each: ``<p> A: … </p>``, ``<p> B: … </p>``.
- COCO's and nocaps's captions; COCO-Search18's ``[{"name", "subject", "task", "condition", "X", "Y", "T", …}, …]``.
"""

import html
import re
import stat
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, Field, StrictFloat, StrictInt, StrictStr, TypeAdapter, ValidationError

from agents.answers import (
    CaptionAnswer,
    ColorAnswer,
    ConversationAnswer,
    Message,
    ObjectAnswer,
    ScanpathAnswer,
    WordAnswer,
    plain,
)
from agents.errors import InputError, Problem
from agents.stimuli import Task
from serving.runs.coco_forms import PATHS, Coco
from serving.runs.records import people_record
from serving.runs.row_problems import as_problems, count, strict_json
from serving.runs.run import PERSON
from serving.scheduling.recovery import clean

SHORT: dict[str, Task] = {
    "caption": "image_captioning",
    "word": "word_association",
    "color": "color_estimation",
    "object": "object_detection",
    "fv": "attention_prediction",
}
FRAME = [1280, 1024]  # of the benchmark's scanpaths
UNKNOWN = "unknown"
LARGEST = 1 << 30  # bytes of a file, which is held in memory
_PARAGRAPH = re.compile(r"<p\b[^>]*>(.*?)(?=</p>|<p\b|\Z)", re.DOTALL | re.IGNORECASE)
_TAG = re.compile("</?[a-z][^>]*>", re.IGNORECASE)
_LABELLED = re.compile(r"\s*([AB])\s*:\s*(.*)", re.DOTALL)
_FIELDS = {"response", "groundtruth", "human_groundtruth", "machine_groundtruth", "imageID", "cueWord"}

Size = tuple[float, float]  # width, height
A = TypeVar("A")
_Coordinate = Annotated[StrictFloat, Field(gt=-(2**53), lt=2**53)]
_Scanpath = list[Annotated[list[_Coordinate], Field(min_length=2, max_length=2)]]


class _Row(BaseModel, Generic[A]):
    response: A
    groundtruth: Literal["human", "machine"]
    human_groundtruth: StrictStr | StrictInt = ""
    machine_groundtruth: StrictStr | StrictInt = ""


class _Utterance(BaseModel):
    agent: StrictStr
    message: StrictStr


class _Talk(BaseModel):
    content: list[_Utterance] = Field(min_length=1)


_BENCHMARK: dict[tuple[str, bool], TypeAdapter[Any]] = {  # by form and whether it is of scanpaths
    ("ground truth", False): TypeAdapter(dict[str, list[_Row[StrictStr]]]),
    ("ground truth", True): TypeAdapter(dict[str, list[_Row[_Scanpath]]]),
    ("submission", False): TypeAdapter(dict[str, StrictStr]),
    ("submission", True): TypeAdapter(dict[str, _Scanpath]),
}
_TALKS = TypeAdapter(dict[str, _Talk])
_COCO = TypeAdapter(Coco)


@dataclass(slots=True)
class Source:
    """``noticed`` counts what is not imported, by reason, and fixations outside their frame."""

    path: Path
    sha256: str
    task: Task = "conversation"
    form: str = "submission"
    name: str | None = None
    answers: list[dict[str, Any]] = field(default_factory=list)
    noticed: Counter[str] = field(default_factory=Counter)

    def add(self, stimulus: str, agent: str, raw: Any, answer: Mapping[str, Any] | None) -> None:
        kind = "published" if agent.startswith("published:") else "human"
        width, height = (answer or {}).get("frame", (0, 0))
        for x, y in (answer or {}).get("fixations", ()):
            self.noticed["fixations_outside_their_frame"] += not (0 <= x <= width and 0 <= y <= height)
        self.answers.append({"stimulus": stimulus, "agent": agent, "kind": kind, "answer": answer, "raw": raw})

    def records(self, run: str) -> Iterator[dict[str, Any]]:
        provenance = {"digest": self.sha256, "checkpoint": None, "revision": None}
        for answer in self.answers:
            yield people_record(run, {**answer, "task": self.task, "provenance": provenance})

    def about(self) -> dict[str, Any]:
        agents = Counter((answer["kind"], answer["agent"]) for answer in self.answers)
        people, machines = (
            [number for (kind, _), number in agents.items() if kind == wanted] for wanted in ("human", "published")
        )
        return {
            "path": str(self.path),
            "sha256": self.sha256,
            "task": self.task,
            "form": self.form,
            "name": self.name,
            "stimuli": len({answer["stimulus"] for answer in self.answers}),
            "human": sum(people),
            "subjects": len(people),
            "published": sum(machines),
            "machines": len(machines),
            "noticed": dict(sorted((+self.noticed).items())),
        }


def read_bytes(path: Path) -> bytes:
    """A file's bytes; a device or a pipe is refused."""
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
    """``task``, else the task in the file's name. Raises InputError."""
    name = (task or path.stem).lower()
    known = SHORT | {task: task for task in SHORT.values()}
    if name not in known:
        raise InputError(f"{name!r} says no task; say with --task which: {', '.join(SHORT)}")
    return known[name]


def refuse(wrong: Sequence[Problem]) -> None:
    if wrong:
        raise InputError(f"has {count(len(wrong), 'problem')}", wrong)


def person(subject: str) -> str:
    """The agent's name of a person, in composed Unicode (NFC)."""
    return f"human:{unicodedata.normalize('NFC', subject) if subject.strip() else UNKNOWN}"


def answer_to(task: Task, response: Any) -> dict[str, Any]:
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


def add_json(source: Source, data: bytes, task: str | None, name: str | None, frame: Size | None) -> None:
    """Add the answers of a JSON file other than jsPsych's."""
    content = parse_json(data)
    if isinstance(content, list):
        _set_form(source, "coco-search18", "attention_prediction", task)
        _add_paths(source, content, name, frame)
    elif isinstance(content, dict) and any(isinstance(talk, dict) and "content" in talk for talk in content.values()):
        _set_form(source, "topical-chat", "conversation", task)
        for stimulus, talk in _validated(_TALKS, content, source.path).items():
            lines = [(utterance.agent, utterance.message) for utterance in talk.content]
            agents = dict.fromkeys((speaker for speaker, _ in lines), PERSON)
            _add_conversation(source, stimulus, lines, agents, content[stimulus])
    elif isinstance(content, dict) and {"images", "annotations"} <= content.keys():
        _set_form(source, "coco-captions", "image_captioning", task)
        _add_captions(source, content)
    else:
        _add_benchmark(source, content, task, name)


def parse_json(data: bytes) -> Any:
    """Strict JSON with lone surrogates replaced. Raises InputError."""
    try:
        return clean(strict_json(data))
    except ValueError as error:
        raise InputError(f"is not JSON in UTF-8: {error}") from None


def _set_form(source: Source, form: str, holds: Task, task: str | None) -> None:
    if task not in (None, holds):
        raise InputError(f"holds answers to {holds}, not to {task}")
    source.form, source.task = form, holds


def _validated(adapter: TypeAdapter[A], content: Any, path: Path) -> A:
    try:
        return adapter.validate_python(content)
    except ValidationError as error:
        refuse(as_problems(error, str(path)))
        raise


def _add_benchmark(source: Source, content: Any, task: str | None, name: str | None) -> None:
    source.task = task_of_file(source.path, task)
    if not isinstance(content, dict):
        raise InputError("must be a JSON object of stimuli")
    is_gaze = source.task == "attention_prediction"
    lists = [value for value in content.values() if isinstance(value, list)]  # of a ground truth hold objects
    is_truth = any(value and isinstance(value[0], dict) for value in lists) if is_gaze else bool(lists)
    source.form = "ground truth" if is_truth else "submission"
    if not is_truth:
        if name is None:
            raise InputError("is a submission and does not say whose answers it holds; give the machine with --name")
        source.name = name
    if not all(stimulus.strip() for stimulus in content):
        refuse([Problem(str(source.path), None, None, "a stimulus has an empty id")])
    _validated(_BENCHMARK[source.form, is_gaze], content, source.path)
    for stimulus, value in content.items():
        rows = value if is_truth else [{"response": value, "machine_groundtruth": name}]
        for row in rows:
            for other in row.keys() - _FIELDS:
                source.noticed[f"field_{other}_not_imported"] += 1
            machine = str(row.get("machine_groundtruth", ""))
            agent = f"published:{machine if machine.strip() else UNKNOWN}"
            if row.get("groundtruth") == "human":
                agent = person(str(row.get("human_groundtruth", "")))
            source.add(stimulus, agent, row["response"], answer_to(source.task, row["response"]))


def add_page(source: Source, data: bytes, task: str | None, name: str | None) -> None:
    _set_form(source, "page", "conversation", task)
    if name is None:
        raise InputError("does not say who its speakers are; give them with --name A~B, a person as human")
    try:
        page = data.decode()
    except UnicodeDecodeError as error:
        raise InputError(f"is not text in UTF-8: {error}") from None
    paragraphs = (html.unescape(_TAG.sub("", text)) for text in _PARAGRAPH.findall(page))
    texts = [text for text in paragraphs if text.strip()]
    lines = [(match[1], match[2].strip()) for text in texts if (match := _LABELLED.fullmatch(text))]
    source.noticed["paragraphs_without_a_speaker"] = len(texts) - len(lines)
    source.name = name
    if lines:
        agents = dict(zip("AB", name.split("~"), strict=True))
        _add_conversation(source, source.path.stem, lines, agents, texts)


def _add_conversation(
    source: Source, stimulus: str, lines: Sequence[tuple[str, str]], agents: Mapping[str, str], raw: Any
) -> None:
    messages = [
        Message(turn=turn, speaker=speaker, agent=agents[speaker], text=text)
        for turn, (speaker, text) in enumerate(lines)
    ]
    pair = "~".join(agents.values())
    agent = pair if {*agents.values()} == {PERSON} else f"published:{pair}"
    source.add(stimulus, agent, raw, plain(ConversationAnswer(messages=messages)))


def _add_captions(source: Source, content: dict[str, Any]) -> None:
    coco = _validated(_COCO, content, source.path)
    refuse(coco.repeated_ids(str(source.path)))
    names = {image.id: image.file_name for image in coco.images}
    for annotation in coco.annotations:
        if annotation.caption is None:
            raise InputError("has annotations without a caption; `turinglike set` makes a set of them")
        if annotation.image_id in names:
            answer = answer_to("image_captioning", annotation.caption)
            source.add(names[annotation.image_id], person(""), annotation.caption, answer)
        else:
            source.noticed["captions_of_pictures_that_are_not_listed"] += 1


def _add_paths(source: Source, content: list[Any], name: str | None, frame: Size | None) -> None:
    if source.path.with_name(f"{source.path.name}.export.json").exists():
        raise InputError("is an export of a run; its answers are in that run's folder already")
    entries = _validated(PATHS, content, source.path)
    source.name = name
    for entry, raw in zip(entries, content, strict=True):
        if frame is None:
            raise InputError("does not say of which frame its paths are; give --frame WIDTHxHEIGHT (often 1680x1050)")
        answer = ScanpathAnswer(
            fixations=[[x, y] for x, y in zip(raw["X"], raw["Y"], strict=True)],
            frame=list(frame),
            durations_ms=raw.get("T"),
            found=bool(raw["correct"]) if entry.condition == "present" and raw.get("correct") in (0, 1) else None,
        )
        agent = person(str(entry.subject).zfill(2)) if name is None else f"published:{name}"
        source.add(entry.stimulus, agent, raw, plain(answer))
