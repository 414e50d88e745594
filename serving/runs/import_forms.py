"""The forms of file that an import reads beside the published benchmark's: conversations, and scanpaths of people.

- Records of conversations as ours (``.jsonl``), one a line: of a run, of a server, of an export.
- Topical-Chat's ``{id: {"content": [{"agent", "message", …}, …], …}}``: two people each.
- The published Turing test's pages (``.html``), one conversation each: ``<p> A: … </p>``, ``<p> B: … </p>``. A page
  does not say who A and B were.
- A table (``.csv``) of people's answers, see :mod:`serving.runs.people_tables`;
  of verdicts also jsPsych's data (``.csv``, ``.json``), see :mod:`serving.runs.people_tables`.
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
from typing import Any, Literal

from pydantic import BaseModel, Field, StrictInt, StrictStr, TypeAdapter, ValidationError

from agents.answers import CaptionAnswer, ConversationAnswer, Message, ScanpathAnswer, plain
from agents.attention.scanpath_comparison import Size
from agents.errors import InputError, Problem
from agents.stimuli import Task
from serving.runs.people_tables import JSPSYCH, Responses, add_jspsych, add_table, refuse
from serving.runs.published_benchmark import (
    Answered,
    Form,
    Source,
    benchmark_source,
    person,
    read_whole,
    task_of_file,
    without_surrogates,
)
from serving.runs.records import KEYS, problems
from serving.runs.row_problems import as_problems, repeated_ids, strict_json
from serving.runs.scanpath_sets import CocoPath, searched_for, sidecar

PERSON = "human"
_LABELLED = re.compile(r"\s*([AB])\s*:\s*(.*)", re.DOTALL)
# What a record keeps of ours when it is imported; whose it is and where it came from is the import's to say.
_KEPT = frozenset(KEYS) - {"schema", "run", "task", "stimulus", "agent", "kind", "sample", "provenance"}


class _Said(BaseModel):
    """One message of Topical-Chat."""

    agent: StrictStr
    message: StrictStr


class _Picture(BaseModel):
    """One picture of COCO."""

    id: StrictInt
    file_name: StrictStr


class _Caption(BaseModel):
    """One caption of COCO."""

    image_id: StrictInt
    caption: StrictStr


class _Captions(BaseModel):
    """COCO's captions."""

    images: list[_Picture]
    annotations: list[_Caption] = Field(min_length=1)


class _Talk(BaseModel):
    """One conversation of Topical-Chat."""

    content: list[_Said] = Field(min_length=1)


_TALKS = TypeAdapter(dict[str, _Talk])
_PATHS = TypeAdapter(list[CocoPath])


def read_file(
    path: Path,
    task: str | None = None,
    name: str | None = None,
    frame: Size | None = None,
    responses: Responses | None = None,
) -> Source:
    """Read one file of any form. ``task`` where neither form nor file name say it; ``name`` for answers that do not say
    whose they are; ``frame`` (width, height) in pixels for scanpaths that do not say theirs; ``responses``: what
    the keys or buttons of verdicts mean, ``{"f": "human", "j": "machine"}``.

    Raises InputError, either with every problem found, or with one sentence about the file that does not name it.
    """
    is_page = path.suffix.lower() in (".html", ".htm")
    if name is not None and ("~" in name) != is_page:
        raise InputError("is a page of two speakers: --name A~B" if is_page else "is no page of two speakers: --name A")
    data = read_whole(path)
    source = Source(path.resolve(), hashlib.sha256(data).hexdigest(), "conversation", "submission", None, [])
    if is_page:
        _of_task(source, "page", "conversation", task)
        _add_page(source, data, name)
    elif path.suffix.lower() == ".jsonl":
        _of_task(source, "records", "conversation", task)
        _add_records(source, data)
    elif path.suffix.lower() == ".csv":
        source.form, source.task = "table", "judgement" if task == "judgement" else task_of_file(path, task)
        add_table(source, data, frame, responses or {})
    else:
        content = _parsed(data)
        if isinstance(content, list) and task == "judgement":
            source.form, source.task = "jspsych", "judgement"
            _add_screens(source, content, responses or {})
        elif isinstance(content, list):
            _of_task(source, "coco-search18", "attention_prediction", task)
            _add_paths(source, content, name, frame)
        elif isinstance(content, dict) and any(isinstance(one, dict) and "content" in one for one in content.values()):
            _of_task(source, "topical-chat", "conversation", task)
            _add_talks(source, content)
        elif isinstance(content, dict) and {"images", "annotations"} <= content.keys():
            _of_task(source, "coco-captions", "image_captioning", task)
            _add_captions(source, content)
        else:
            return benchmark_source(path, data, content, task, name)
    if not source.answers:
        raise InputError("holds no answers that can be imported")
    return source


def _of_task(source: Source, form: Form, holds: Task, task: str | None) -> None:
    """The form of a source, which says the task itself. Raises InputError where another was given."""
    if task not in (None, holds):
        raise InputError(f"holds answers to {holds}, not to {task}")
    source.form, source.task = form, holds


def _parsed(data: bytes | str) -> Any:
    try:
        return without_surrogates(strict_json(data))
    except ValueError as error:
        raise InputError(f"is not JSON in UTF-8: {error}") from None


# conversations


def _conversation(stimulus: str, said: Sequence[tuple[str, str]], agents: Mapping[str, str], raw: Any) -> Answered:
    """A conversation of (speaker, text); ``agents`` say who the speakers are, in order."""
    messages = [
        Message(turn=turn, speaker=speaker, agent=agents[speaker], text=text)
        for turn, (speaker, text) in enumerate(said)
    ]
    kind: Literal["human", "published"] = "human" if set(agents.values()) == {PERSON} else "published"
    pair = "~".join(agents.values())
    name = pair if kind == "human" else f"published:{pair}"
    return Answered(stimulus, kind, name, raw, {"answer": plain(ConversationAnswer(messages=messages))})


def _add_records(source: Source, data: bytes) -> None:
    last: dict[tuple[str, str, int], dict[str, Any]] = {}
    wrong: list[Problem] = []
    for number, line in enumerate(data.splitlines(), start=1):
        try:
            row = _parsed(line)
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
        if row["status"] != "ok" or row["kind"] == "control":
            source.noticed[f"{row['kind'] if row['kind'] == 'control' else row['status']}_records_not_imported"] += 1
            continue
        theirs = row["kind"] == "machine"
        kind: Literal["human", "published"] = "human" if row["kind"] == "human" else "published"
        fields = {key: row[key] for key in _KEPT}
        name = f"published:{row['agent']}" if theirs else row["agent"]
        source.answers.append(Answered(row["stimulus"], kind, name, row["raw"], fields))


def _add_talks(source: Source, content: dict[str, Any]) -> None:
    try:
        talks = _TALKS.validate_python(content)
    except ValidationError as error:
        refuse(as_problems(error, str(source.path)))
        raise
    for stimulus, talk in talks.items():
        said = [(one.agent, one.message) for one in talk.content]
        agents = dict.fromkeys((speaker for speaker, _ in said), PERSON)
        source.noticed["conversations_that_are_not_of_two"] += len(agents) != 2
        source.answers.append(_conversation(stimulus, said, agents, content[stimulus]))


class _Paragraphs(HTMLParser):
    """The text of each paragraph of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._within = False

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag == "p":
            self.found.append("")
            self._within = True

    def handle_endtag(self, tag: str) -> None:
        self._within = self._within and tag != "p"

    def handle_data(self, data: str) -> None:
        if self._within:
            self.found[-1] += data


def _add_page(source: Source, data: bytes, name: str | None) -> None:
    if name is None:
        raise InputError("does not say who its speakers are; give them with --name A~B, a person as human")
    page = _Paragraphs()
    try:
        page.feed(data.decode())
    except UnicodeDecodeError as error:
        raise InputError(f"is not text in UTF-8: {error}") from None
    page.close()
    labelled = [match for text in page.found if (match := _LABELLED.fullmatch(text)) is not None]
    source.noticed["paragraphs_without_a_speaker"] = sum(bool(text.strip()) for text in page.found) - len(labelled)
    said = [(match.group(1), match.group(2).strip()) for match in labelled]
    source.noticed["empty_messages"] = sum(not text for _, text in said)
    source.name = name
    if said:
        agents = dict(zip("AB", name.split("~"), strict=True))
        source.answers.append(
            _conversation(source.path.stem, said, agents, [text for text in page.found if text.strip()])
        )


# captions


def _add_captions(source: Source, content: dict[str, Any]) -> None:
    try:
        captions = _Captions.model_validate(content)
    except ValidationError as error:
        refuse(as_problems(error, str(source.path)))
        raise
    pictures = [(one.id, one.file_name) for one in captions.images]
    refuse(repeated_ids(str(source.path), "images", pictures))
    names = dict(pictures)
    for one in captions.annotations:
        if one.image_id not in names:
            source.noticed["captions_of_pictures_that_are_not_listed"] += 1
            continue
        answer = plain(CaptionAnswer(text=one.caption))
        source.answers.append(Answered(names[one.image_id], "human", person(""), one.caption, {"answer": answer}))


# verdicts


def _add_screens(source: Source, content: list[Any], responses: Responses) -> None:
    if not all(isinstance(row, dict) and set(JSPSYCH) <= row.keys() for row in content):
        raise InputError("is a list, but not jsPsych's data: that has trial_type and trial_index in every row")
    columns = list(dict.fromkeys(name for row in content for name in row))
    rows = ((None, f"[{at}].", row) for at, row in enumerate(content))
    refuse(add_jspsych(source, rows, columns, responses))


# scanpaths


def _add_paths(source: Source, content: list[Any], name: str | None, frame: Size | None) -> None:
    try:
        entries = _PATHS.validate_python(content)
    except ValidationError as error:
        refuse(as_problems(error, str(source.path)))
        raise
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
        source.noticed["points_off_the_frame"] += sum(
            not (0 <= x < size[0] and 0 <= y < size[1]) for x, y in answer.fixations
        )
        source.answers.append(
            Answered(
                f"{target}/{entry.name}" if target else entry.name,
                "human" if machine is None else "published",
                person(subject.zfill(2)) if machine is None else f"published:{machine}",
                raw,
                {"answer": plain(answer)},
            )
        )
    if without:
        raise InputError(
            f"does not say of which frame {without:,} of its paths are; give --frame WIDTHxHEIGHT "
            "(COCO-Search18's own is 1680x1050)"
        )
