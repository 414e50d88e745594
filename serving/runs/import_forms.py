"""The forms of file that an import reads beside tables and the published benchmark's files.

- Records of conversations as ours (``.jsonl``), one a line: of a run, of a server, of an export.
- Topical-Chat's ``{id: {"content": [{"agent", "message", …}, …], …}}``: two people each.
- The published Turing test's pages (``.html``), a conversation each: ``<p> A: … </p>``, ``<p> B: … </p>``.
- COCO's captions, ``{"images": [{"id", "file_name", …}, …], "annotations": [{"image_id", "caption", …}, …]}``, and
  nocaps's: people who are not told apart.
- COCO-Search18's list ``[{"name", "subject", "task", "condition", "X", "Y", "T", …}, …]``: people, or the machines that
  the side-car of our own export names.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, Field, StrictInt, StrictStr, TypeAdapter, ValidationError

from agents.answers import CaptionAnswer, ConversationAnswer, Message, ScanpathAnswer, plain
from agents.errors import InputError, Problem
from agents.stimuli import Task
from serving.runs.people_tables import JSPSYCH, Responses, add_jspsych, add_table
from serving.runs.published_benchmark import (
    Answered,
    Form,
    Kind,
    Source,
    benchmark_source,
    parse_json,
    person,
    read_bytes,
    refuse,
    task_of_file,
)
from serving.runs.records import KEYS, problems
from serving.runs.row_problems import as_problems, repeated_ids
from serving.runs.run import PERSON
from serving.runs.set_making import CocoPath, Size, searched_for, sidecar

_LABELLED = re.compile(r"\s*([AB])\s*:\s*(.*)", re.DOTALL)
# The keys of our records that an import keeps; whose the record is and where it came from is the import's to say.
_KEPT = frozenset(KEYS) - {"schema", "run", "task", "stimulus", "agent", "kind", "sample", "provenance"}
T = TypeVar("T")


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


_TALKS = TypeAdapter(dict[str, _Talk])
_CAPTIONS = TypeAdapter(_Captions)
_PATHS = TypeAdapter(list[CocoPath])


def read_file(
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
    source = Source(path.resolve(), hashlib.sha256(data).hexdigest(), "conversation", "submission", None, [])
    if is_page:
        _set_form(source, "page", "conversation", task)
        _add_page(source, data, name)
    elif path.suffix.lower() == ".jsonl":
        _set_form(source, "records", "conversation", task)
        _add_records(source, data)
    elif path.suffix.lower() == ".csv":
        source.form, source.task = "table", "judgement" if task == "judgement" else task_of_file(path, task)
        add_table(source, data, frame, responses or {})
    else:
        content = parse_json(data)
        if isinstance(content, list) and task == "judgement":
            source.form, source.task = "jspsych", "judgement"
            _add_screens(source, content, responses or {})
        elif isinstance(content, list):
            _set_form(source, "coco-search18", "attention_prediction", task)
            _add_paths(source, content, name, frame)
        elif isinstance(content, dict) and any(isinstance(one, dict) and "content" in one for one in content.values()):
            _set_form(source, "topical-chat", "conversation", task)
            _add_talks(source, content)
        elif isinstance(content, dict) and {"images", "annotations"} <= content.keys():
            _set_form(source, "coco-captions", "image_captioning", task)
            _add_captions(source, content)
        else:
            return benchmark_source(path, data, content, task, name)
    if not source.answers:
        raise InputError("holds no answers that can be imported")
    return source


def _set_form(source: Source, form: Form, holds: Task, task: str | None) -> None:
    """Set the form of a file that says the task itself. Raises InputError for another ``task``."""
    if task not in (None, holds):
        raise InputError(f"holds answers to {holds}, not to {task}")
    source.form, source.task = form, holds


def _validated(adapter: TypeAdapter[T], content: Any, path: Path) -> T:
    """``content`` by its form. Raises InputError with every problem."""
    try:
        return adapter.validate_python(content)
    except ValidationError as error:
        problems = as_problems(error, str(path))
    refuse(problems)
    raise AssertionError("a ValidationError has problems")


def _conversation(stimulus: str, lines: Sequence[tuple[str, str]], agents: Mapping[str, str], raw: Any) -> Answered:
    """A conversation of (speaker, text); ``agents`` say who the speakers are, in order."""
    messages = [
        Message(turn=turn, speaker=speaker, agent=agents[speaker], text=text)
        for turn, (speaker, text) in enumerate(lines)
    ]
    kind: Kind = "human" if set(agents.values()) == {PERSON} else "published"
    pair = "~".join(agents.values())
    name = pair if kind == "human" else f"published:{pair}"
    return Answered(stimulus, kind, name, raw, {"answer": plain(ConversationAnswer(messages=messages))})


def _add_records(source: Source, data: bytes) -> None:
    last: dict[tuple[str, str, int], dict[str, Any]] = {}
    wrong: list[Problem] = []
    for number, line in enumerate(data.splitlines(), start=1):
        try:
            row = parse_json(line)
        except InputError as error:
            wrong.append(Problem(str(source.path), number, None, str(error)))
            continue
        if faults := problems(row, str(source.path), number):
            wrong += faults
        elif row["task"] != source.task:
            source.noticed["records_of_other_tasks_not_imported"] += 1
        else:
            last[row["agent"], row["stimulus"], row["sample"]] = row
    refuse(wrong)
    for row in last.values():
        if row["kind"] == "control" or row["status"] != "ok":
            reason = "control" if row["kind"] == "control" else row["status"]
            source.noticed[f"{reason}_records_not_imported"] += 1
            continue
        kind: Kind = "human" if row["kind"] == "human" else "published"
        name = f"published:{row['agent']}" if row["kind"] == "machine" else row["agent"]
        fields = {key: row[key] for key in _KEPT}
        source.answers.append(Answered(row["stimulus"], kind, name, row["raw"], fields))


def _add_talks(source: Source, content: dict[str, Any]) -> None:
    for stimulus, talk in _validated(_TALKS, content, source.path).items():
        lines = [(utterance.agent, utterance.message) for utterance in talk.content]
        agents = dict.fromkeys((speaker for speaker, _ in lines), PERSON)
        source.answers.append(_conversation(stimulus, lines, agents, content[stimulus]))


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
        source.answers.append(_conversation(source.path.stem, lines, agents, texts))


def _add_captions(source: Source, content: dict[str, Any]) -> None:
    captions = _validated(_CAPTIONS, content, source.path)
    pictures = [(picture.id, picture.file_name) for picture in captions.images]
    refuse(repeated_ids(str(source.path), "images", pictures))
    names = dict(pictures)
    for caption in captions.annotations:
        if caption.image_id not in names:
            source.noticed["captions_of_pictures_that_are_not_listed"] += 1
            continue
        answer = plain(CaptionAnswer(text=caption.caption))
        name = names[caption.image_id]
        source.answers.append(Answered(name, "human", person(""), caption.caption, {"answer": answer}))


def _add_screens(source: Source, content: list[Any], responses: Responses) -> None:
    if not all(isinstance(row, dict) and set(JSPSYCH) <= row.keys() for row in content):
        raise InputError("is a list, but not jsPsych's data: that has trial_type and trial_index in every row")
    columns = list(dict.fromkeys(name for row in content for name in row))
    rows = ((None, f"[{at}].", row) for at, row in enumerate(content))
    refuse(add_jspsych(source, rows, columns, responses))


def _add_paths(source: Source, content: list[Any], name: str | None, frame: Size | None) -> None:
    entries = _validated(_PATHS, content, source.path)
    frames, agents = sidecar(source.path.with_name(f"{source.path.name}.export.json"))
    source.name = None if agents else name
    without = 0
    for entry, raw in zip(entries, content, strict=True):
        subject = str(entry.subject)
        size = frames.get((entry.name, subject)) or frames.get((entry.name, None)) or frame
        if size is None:
            without += 1
            continue
        target = searched_for(entry.condition, entry.task)
        machine = agents[subject][0] if subject in agents else source.name
        answer = ScanpathAnswer(
            fixations=[[x, y] for x, y in zip(raw["X"], raw["Y"], strict=True)],
            frame=list(size),
            durations_ms=raw.get("T"),
            found=bool(raw["correct"]) if entry.condition == "present" and raw.get("correct") in (0, 1) else None,
        )
        stimulus = f"{target}/{entry.name}" if target else entry.name
        kind: Kind = "human" if machine is None else "published"
        agent = person(subject.zfill(2)) if machine is None else f"published:{machine}"
        source.answers.append(Answered(stimulus, kind, agent, raw, {"answer": plain(answer)}))
    if without:
        raise InputError(
            f"does not say of which frame {without:,} of its paths are; give --frame WIDTHxHEIGHT "
            "(COCO-Search18's own is 1680x1050)"
        )
