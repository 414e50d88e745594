"""The forms of file that an import reads.

- The published benchmark's: ground truth, ``{stimulus: [{"response", "groundtruth": "human" | "machine",
  "human_groundtruth", "machine_groundtruth"}, …]}``, and a machine's submission, ``{stimulus: response}``.
- Tables of people's answers (``.csv``), and verdicts in jsPsych's data (CSV or a JSON list).
- Topical-Chat's ``{id: {"content": [{"agent", "message", …}, …], …}}``: two people each.
- The published Turing test's pages (``.html``), a conversation each: ``<p> A: … </p>``, ``<p> B: … </p>``.
- COCO's and nocaps's captions: people without names.
- COCO-Search18's list ``[{"name", "subject", "task", "condition", "X", "Y", "T", …}, …]``.

Nothing is corrected: points off the frame, the colour "none" and special tokens stay. What nobody recorded (seed,
timing, worker, time) is null.
"""

from __future__ import annotations

import hashlib
import math
import re
import stat
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StrictFloat,
    StrictInt,
    StrictStr,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from agents.answers import (
    CaptionAnswer,
    ColorAnswer,
    ConversationAnswer,
    Message,
    ObjectAnswer,
    ScanpathAnswer,
    VerdictAnswer,
    WordAnswer,
    plain,
)
from agents.errors import InputError, Problem
from agents.stimuli import Task
from serving.runs.csv_tables import by_line, read_table
from serving.runs.records import people_record
from serving.runs.row_problems import FieldProblem, as_problems, count, repeated_ids, strict_json
from serving.runs.run import PERSON

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
JSPSYCH = ("trial_type", "trial_index")  # columns that each of its rows has
SUBJECTS = ("subject", "participant", "subject_id", "participant_id", "worker", "worker_id")
STIMULI = ("stimulus", "cue", "image", "stimulus_id")  # columns that name a stimulus, the first that is there
NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
LONGEST = 40  # letters of a wrong value
_LABELLED = re.compile(r"\s*([AB])\s*:\s*(.*)", re.DOTALL)
_SURROGATES = re.compile("[\ud800-\udfff]")
_FIELDS = {"response", "groundtruth", "human_groundtruth", "machine_groundtruth", "imageID", "cueWord"}

Size = tuple[float, float]  # width, height
Responses = Mapping[str, str]
A = TypeVar("A")
_Coordinate = Annotated[StrictFloat, Field(gt=-(2**53), lt=2**53)]
_Scanpath = list[Annotated[list[_Coordinate], Field(min_length=2, max_length=2)]]


class _Row(BaseModel, Generic[A]):
    """An answer in a ground truth."""

    response: A
    groundtruth: Literal["human", "machine"]
    human_groundtruth: StrictStr | StrictInt = ""
    machine_groundtruth: StrictStr | StrictInt = ""


class _Utterance(BaseModel):
    agent: StrictStr
    message: StrictStr


class _Talk(BaseModel):
    content: list[_Utterance] = Field(min_length=1)


class _Picture(BaseModel):
    id: StrictInt
    file_name: StrictStr


class _Caption(BaseModel):
    image_id: StrictInt
    caption: StrictStr


class _Captions(BaseModel):
    images: list[_Picture]
    annotations: list[_Caption] = Field(min_length=1)


class _SearchPath(BaseModel):
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
    def _lengths_agree(self) -> _SearchPath:
        if len(self.X) != len(self.Y) or (self.T is not None and len(self.T) != len(self.X)):
            raise ValueError("X, Y and T must have as many numbers")
        return self


_BENCHMARK: dict[tuple[str, bool], TypeAdapter[Any]] = {  # by form and whether it is of scanpaths
    ("ground truth", False): TypeAdapter(dict[str, list[_Row[StrictStr]]]),
    ("ground truth", True): TypeAdapter(dict[str, list[_Row[_Scanpath]]]),
    ("submission", False): TypeAdapter(dict[str, StrictStr]),
    ("submission", True): TypeAdapter(dict[str, _Scanpath]),
}
_TALKS = TypeAdapter(dict[str, _Talk])
_CAPTIONS = TypeAdapter(_Captions)
_PATHS = TypeAdapter(list[_SearchPath])


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer of a file, and the response as it stood."""

    stimulus: str
    agent: str
    raw: Any
    answer: Mapping[str, Any] | None

    @property
    def kind(self) -> str:
        return "published" if self.agent.startswith("published:") else "human"


@dataclass(slots=True)
class Source:
    """A file that was read. ``noticed`` counts what is not imported, by why."""

    path: Path
    sha256: str
    task: Task = "conversation"
    form: str = "submission"
    name: str | None = None
    answers: list[Answered] = field(default_factory=list)
    noticed: Counter[str] = field(default_factory=Counter)

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
        }

    def records(self, run: str) -> Iterator[dict[str, Any]]:
        """The answers as records, in file order; each is sample 0."""
        for answer in self.answers:
            fields = {
                "task": self.task,
                "stimulus": answer.stimulus,
                "agent": answer.agent,
                "kind": answer.kind,
                "answer": answer.answer,
                "raw": answer.raw,
                "provenance": {"digest": self.sha256, "checkpoint": None, "revision": None},
            }
            yield people_record(run, fields)

    def add(self, stimulus: str, agent: str, raw: Any, answer: Mapping[str, Any] | None) -> None:
        """Add an answer of an agent ``human:…`` or ``published:…``."""
        self.answers.append(Answered(stimulus, agent, raw, answer))


def read_source(
    path: Path,
    task: str | None = None,
    name: str | None = None,
    frame: Size | None = None,
    responses: Responses | None = None,
) -> Source:
    """Read a file of any form; the options are those of :func:`serving.runs.importing.import_files`.

    Raises InputError, with every problem, or with a sentence about the file that does not name it.
    """
    is_page = path.suffix.lower() in (".html", ".htm")
    if name is not None and ("~" in name) != is_page:
        raise InputError("is a page of two speakers: --name A~B" if is_page else "is no page of two speakers: --name A")
    data = read_bytes(path)
    source = Source(path.resolve(), hashlib.sha256(data).hexdigest())
    if path.suffix.lower() == ".jsonl":
        raise InputError("is no file of answers that is imported; commands that read runs take several run folders")
    if is_page:
        _set_form(source, "page", "conversation", task)
        _add_page(source, data, name)
    elif path.suffix.lower() == ".csv":
        source.form, source.task = "table", "judgement" if task == "judgement" else task_of_file(path, task)
        _add_table(source, data, frame, responses or {})
    else:
        content = parse_json(data)
        if isinstance(content, list) and task == "judgement":
            source.form, source.task = "jspsych", "judgement"
            _add_screens(source, content, responses or {})
        elif isinstance(content, list):
            _set_form(source, "coco-search18", "attention_prediction", task)
            _add_paths(source, content, name, frame)
        elif _is_of_talks(content):
            _set_form(source, "topical-chat", "conversation", task)
            _add_talks(source, content)
        elif isinstance(content, dict) and {"images", "annotations"} <= content.keys():
            _set_form(source, "coco-captions", "image_captioning", task)
            _add_captions(source, content)
        else:
            _add_benchmark(source, content, task, name)
    if not source.answers:
        raise InputError("holds no answers that can be imported")
    return source


# files, their JSON and their task


def _is_of_talks(content: Any) -> bool:
    return isinstance(content, dict) and any(isinstance(talk, dict) and "content" in talk for talk in content.values())


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


def _set_form(source: Source, form: str, holds: Task, task: str | None) -> None:
    """Set the form of a file that says the task itself. Raises InputError for another ``task``."""
    if task not in (None, holds):
        raise InputError(f"holds answers to {holds}, not to {task}")
    source.form, source.task = form, holds


def _validated(adapter: TypeAdapter[A], content: Any, path: Path) -> A:
    """``content`` by its form. Raises InputError with every problem."""
    try:
        return adapter.validate_python(content)
    except ValidationError as error:
        wrong = as_problems(error, str(path))
    raise InputError(f"has {count(len(wrong), 'problem')}", wrong)


def _refuse(wrong: Sequence[Problem]) -> None:
    if wrong:
        raise InputError(f"has {count(len(wrong), 'problem')}", wrong)


# who answered, and what


def _person(subject: str) -> str:
    """The agent's name of a person. An accented letter is the same in composed and in decomposed form."""
    return f"human:{unicodedata.normalize('NFC', subject) if subject.strip() else UNKNOWN}"


def _answer_to(task: Task, response: Any) -> dict[str, Any]:
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


def _verdict(response: str, responses: Responses) -> dict[str, Any] | None:
    """The answer that a response means; None where it is neither human nor machine."""
    verdict = responses.get(response.lower(), response.lower())
    return plain(VerdictAnswer.model_validate({"verdict": verdict})) if verdict in ("human", "machine") else None


def _wrong_verdict(response: Any) -> str:
    return f"must be human or machine, or what --responses give a meaning, not {str(response)[:LONGEST]!r}"


def _cell(value: Any) -> str | None:
    """A cell as text, None of an empty cell. To JSON 1 and 1.0 are the same number."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = "" if value is None else str(value).strip()
    return None if text in ("", "null") else text


def _milliseconds(value: Any) -> tuple[float | None, list[FieldProblem]]:
    """A reaction time, None where there is none; and its problem."""
    text = _cell(value)
    if text is None:
        return None, []
    time = float(text) if NUMBER.fullmatch(text) else math.nan
    is_good = math.isfinite(time) and time >= 0
    return time, [] if is_good else [("rt", f"must be milliseconds, not {str(value)[:LONGEST]!r}")]


# the forms


def _add_benchmark(source: Source, content: Any, task: str | None, name: str | None) -> None:
    source.task = task_of_file(source.path, task)
    if not isinstance(content, dict):
        raise InputError("must be a JSON object of stimuli")
    source.form = _benchmark_form(content, source.task)
    if source.form == "submission":
        if name is None:
            raise InputError("is a submission and does not say whose answers it holds; give the machine with --name")
        source.name = name
    if not all(stimulus.strip() for stimulus in content):
        _refuse([Problem(str(source.path), None, None, "a stimulus has an empty id")])
    _validated(_BENCHMARK[source.form, source.task == "attention_prediction"], content, source.path)
    for stimulus, value in content.items():
        rows = value if source.form == "ground truth" else [{"response": value, "machine_groundtruth": name}]
        for row in rows:
            for other in row.keys() - _FIELDS:
                source.noticed[f"field_{other}_not_imported"] += 1
            machine = str(row.get("machine_groundtruth", ""))
            agent = f"published:{machine if machine.strip() else UNKNOWN}"
            if row.get("groundtruth") == "human":
                agent = _person(str(row.get("human_groundtruth", "")))
            source.add(stimulus, agent, row["response"], _answer_to(source.task, row["response"]))


def _benchmark_form(content: dict[str, Any], task: Task) -> str:
    """A ground truth holds lists of objects. An empty list alone says nothing, except that it is no text."""
    for value in content.values():
        if isinstance(value, list) and value:
            return "ground truth" if isinstance(value[0], dict) else "submission"
        if not isinstance(value, list):
            return "submission"
    return "submission" if task == "attention_prediction" else "ground truth"


def _add_table(source: Source, data: bytes, frame: Size | None, responses: Responses) -> None:
    table = read_table(data, str(source.path))
    if source.task == "judgement" and set(JSPSYCH) <= set(table.names):
        source.form = "jspsych"
        rows = ((line, "", cells) for line, cells in table.rows)
        _refuse(by_line([*table.problems, *_add_jspsych(source, rows, table.names, responses)]))
        return
    stimulus, subject = (next((name for name in names if name in table.names), "") for names in (STIMULI, SUBJECTS))
    absent = [*([] if stimulus else ["stimulus (cue or image)"]), *([] if "response" in table.names else ["response"])]
    if absent:
        raise InputError(f"has no column {' and no column '.join(absent)}; `subject` says whose an answer is")
    wrong = [*table.problems]
    for line, cells in table.rows:
        name, response = cells[stimulus].strip(), cells["response"].strip()
        raw, answer, faults = _table_answer(source, response, frame, responses)
        if empty := [column for column, text in ((stimulus, name), ("response", response)) if not text]:
            faults = [(column, "is empty") for column in empty]
        else:
            rt, wrong_rt = _milliseconds(cells.get("rt"))
            faults += wrong_rt
            raw = raw if rt is None else {"response": raw, "rt": rt}
        wrong += [Problem(str(source.path), line, column, message) for column, message in faults]
        source.add(name, _person(cells.get(subject, "").strip()), raw, answer)
    _refuse(by_line(wrong))


def _table_answer(
    source: Source, response: str, frame: Size | None, responses: Responses
) -> tuple[Any, dict[str, Any] | None, list[FieldProblem]]:
    if source.task == "judgement":
        answer = _verdict(response, responses)
        return response, answer, [] if answer else [("response", _wrong_verdict(response))]
    if source.task != "attention_prediction":
        return response, _answer_to(source.task, response), []
    if frame is None:
        raise InputError("does not say of which frame its paths are; give --frame WIDTHxHEIGHT")
    try:
        points = strict_json(response)
        return points, plain(ScanpathAnswer(fixations=points, frame=list(frame))), []
    except ValueError:  # pydantic's among them
        return response, None, [("response", "must be a list of points, [[x, y], …]")]


def _add_screens(source: Source, content: list[Any], responses: Responses) -> None:
    if not all(isinstance(row, dict) and set(JSPSYCH) <= row.keys() for row in content):
        raise InputError("is a list, but not jsPsych's data: that has trial_type and trial_index in every row")
    columns = list(dict.fromkeys(name for row in content for name in row))
    rows = ((None, f"[{at}].", row) for at, row in enumerate(content))
    _refuse(_add_jspsych(source, rows, columns, responses))


def _add_jspsych(
    source: Source,
    rows: Iterable[tuple[int | None, str, Mapping[str, Any]]],
    columns: Sequence[str],
    responses: Responses,
) -> list[Problem]:
    """Add the verdicts of ``rows``, each with its line and a prefix of its fields' names; returns all problems.

    jsPsych keeps a row for every screen. A verdict is a row that names a trial of ours (in a column ``trial``, else in
    ``stimulus``) and has a response. The verdict is the column ``verdict``, else the response: human, machine, or what
    ``responses`` say that a key or a button means.
    """
    judges = next((name for name in SUBJECTS if name in columns), None)
    if judges is None:
        raise InputError(f"does not say who judged: it has no column {', '.join(SUBJECTS[:-1])} or {SUBJECTS[-1]}")
    named = "trial" if "trial" in columns else "stimulus"
    wrong: list[Problem] = []
    for line, prefix, row in rows:
        trial, response = _cell(row.get(named)), row.get("response")
        if trial is None or not trial.isprintable() or set(trial) & set("<[{ "):  # a screen's content is no name
            source.noticed["screens_that_name_no_trial"] += 1
            continue
        verdict, judge = _cell(row.get("verdict")), _cell(row.get(judges))
        if verdict is None and _cell(response) is None:
            source.noticed["trials_without_a_response"] += 1
            continue
        rt, faults = _milliseconds(row.get("rt"))
        answer = _verdict(verdict, {}) if verdict is not None else _verdict(_cell(response) or "", responses)
        if answer is None:
            column, value = ("response", response) if verdict is None else ("verdict", verdict)
            faults.append((column, _wrong_verdict(value)))
        if judge is None:
            faults.append((judges, "is empty"))
        elif not isinstance(row[judges], str | int | float) or isinstance(row[judges], bool):
            faults.append((judges, f"must be a name or a number, not {str(row[judges])[:LONGEST]!r}"))
        wrong += [Problem(str(source.path), line, f"{prefix}{column}", message) for column, message in faults]
        source.add(trial, _person(judge or ""), {"response": response, "rt": rt}, answer)
    return wrong


def _add_talks(source: Source, content: dict[str, Any]) -> None:
    for stimulus, talk in _validated(_TALKS, content, source.path).items():
        lines = [(utterance.agent, utterance.message) for utterance in talk.content]
        agents = dict.fromkeys((speaker for speaker, _ in lines), PERSON)
        _add_conversation(source, stimulus, lines, agents, content[stimulus])


class _Paragraphs(HTMLParser):
    """The text of each paragraph of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self._is_within = False

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag == "p":
            self.texts.append("")
            self._is_within = True

    def handle_endtag(self, tag: str) -> None:
        self._is_within = self._is_within and tag != "p"

    def handle_data(self, data: str) -> None:
        if self._is_within:
            self.texts[-1] += data


def _add_page(source: Source, data: bytes, name: str | None) -> None:
    if name is None:
        raise InputError("does not say who its speakers are; give them with --name A~B, a person as human")
    page = _Paragraphs()
    try:
        page.feed(data.decode())
    except UnicodeDecodeError as error:
        raise InputError(f"is not text in UTF-8: {error}") from None
    page.close()
    texts = [text for text in page.texts if text.strip()]
    lines = [(match[1], match[2].strip()) for text in texts if (match := _LABELLED.fullmatch(text))]
    source.noticed["paragraphs_without_a_speaker"] = len(texts) - len(lines)
    source.name = name
    if lines:
        agents = dict(zip("AB", name.split("~"), strict=True))
        _add_conversation(source, source.path.stem, lines, agents, texts)


def _add_conversation(
    source: Source, stimulus: str, lines: Sequence[tuple[str, str]], agents: Mapping[str, str], raw: Any
) -> None:
    """Add a conversation of (speaker, text); ``agents`` say who the speakers are, in order."""
    messages = [
        Message(turn=turn, speaker=speaker, agent=agents[speaker], text=text)
        for turn, (speaker, text) in enumerate(lines)
    ]
    pair = "~".join(agents.values())
    agent = pair if {*agents.values()} == {PERSON} else f"published:{pair}"
    source.add(stimulus, agent, raw, plain(ConversationAnswer(messages=messages)))


def _add_captions(source: Source, content: dict[str, Any]) -> None:
    captions = _validated(_CAPTIONS, content, source.path)
    pictures = [(picture.id, picture.file_name) for picture in captions.images]
    _refuse(repeated_ids(str(source.path), "images", pictures))
    names = dict(pictures)
    for caption in captions.annotations:
        if caption.image_id in names:
            answer = _answer_to("image_captioning", caption.caption)
            source.add(names[caption.image_id], _person(""), caption.caption, answer)
        else:
            source.noticed["captions_of_pictures_that_are_not_listed"] += 1


def searched_for(condition: Any, task: str | None) -> str | None:
    """What an entry of COCO-Search18's list says was searched for; None in free viewing."""
    return None if condition == "freeview" or task in (None, "", "none") else str(task).lower()


def _add_paths(source: Source, content: list[Any], name: str | None, frame: Size | None) -> None:
    if source.path.with_name(f"{source.path.name}.export.json").exists():
        raise InputError("is an export of a run; its answers are in that run's folder already")
    entries = _validated(_PATHS, content, source.path)
    source.name = name
    for entry, raw in zip(entries, content, strict=True):
        if frame is None:
            raise InputError("does not say of which frame its paths are; give --frame WIDTHxHEIGHT (often 1680x1050)")
        target = searched_for(entry.condition, entry.task)
        answer = ScanpathAnswer(
            fixations=[[x, y] for x, y in zip(raw["X"], raw["Y"], strict=True)],
            frame=list(frame),
            durations_ms=raw.get("T"),
            found=bool(raw["correct"]) if entry.condition == "present" and raw.get("correct") in (0, 1) else None,
        )
        agent = _person(str(entry.subject).zfill(2)) if name is None else f"published:{name}"
        source.add(f"{target}/{entry.name}" if target else entry.name, agent, raw, plain(answer))
