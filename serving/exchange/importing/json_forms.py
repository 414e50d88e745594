"""Forms of JSON files and pages, read without corrections; what nobody recorded is null.

- The published benchmark's ground truth, ``{stimulus: [{"response", "groundtruth": "human" | "machine",
  "human_groundtruth", "machine_groundtruth"}, …]}``, and a machine's submission, ``{stimulus: response}``.
- Topical-Chat's ``{id: {"content": [{"agent", "message", …}, …], …}}``: two people each.
- The published Turing test's pages, a conversation each: ``<p> A: … </p>``, ``<p> B: … </p>``.
- COCO's and nocaps's captions; COCO-Search18's ``[{"name", "subject", "task", "condition", "X", "Y", "T", …}, …]``.

Lists of rows with other columns are tables (:mod:`serving.exchange.importing.tables`).
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, TypeVar

import orjson
from pydantic import BaseModel, Field, StrictFloat, StrictInt, StrictStr, TypeAdapter, ValidationError

from agents.answers import is_blank
from agents.errors import InputError, Problem
from agents.stimuli import Task
from serving.exchange.importing.conversations import add_conversation, add_conversations
from serving.exchange.importing.form_files import recognised
from serving.exchange.importing.page_paragraphs import paragraphs
from serving.exchange.importing.path_units import Path as Scanpath
from serving.exchange.importing.path_units import add_scaled
from serving.exchange.importing.source import ImportOptions, Size, Source, person, refuse
from serving.exchange.importing.table_cells import read_labels
from serving.exchange.importing.tables import add_rows, typed_answer
from serving.files.foreign_files import parse_json
from serving.files.row_problems import as_problems
from serving.files.words import shown
from serving.runs.records import UNKNOWN
from serving.runs.run import PERSON
from serving.sets.coco_forms import PATHS, Coco, CocoAnnotation
from serving.sets.published_tasks import task_of_file

LINES = (".jsonl", ".ndjson")  # files with JSON on each line
FRAME: Size = (1280, 1024)  # of the benchmark's scanpaths
_LABELLED = re.compile(r"\s*([AB])\s*:\s*(.*)", re.DOTALL)
_FIELDS = {"response", "groundtruth", "human_groundtruth", "machine_groundtruth", "imageID", "cueWord"}

A = TypeVar("A")
_Coordinate = Annotated[StrictFloat, Field(gt=-(2**53), lt=2**53)]
_Scanpath = list[Annotated[list[_Coordinate], Field(min_length=2, max_length=2)]]


class _BenchmarkAnswer(BaseModel, Generic[A]):
    response: A
    groundtruth: Literal["human", "machine"]
    human_groundtruth: StrictStr | StrictInt = ""
    machine_groundtruth: StrictStr | StrictInt = ""


class _Utterance(BaseModel):
    agent: StrictStr
    message: StrictStr


class _TopicalChat(BaseModel):
    content: list[_Utterance] = Field(min_length=1)


_BENCHMARK: dict[tuple[str, bool], TypeAdapter[Any]] = {  # by form and whether it is of scanpaths
    ("ground truth", False): TypeAdapter(dict[str, list[_BenchmarkAnswer[StrictStr]]]),
    ("ground truth", True): TypeAdapter(dict[str, list[_BenchmarkAnswer[_Scanpath]]]),
    ("submission", False): TypeAdapter(dict[str, StrictStr]),
    ("submission", True): TypeAdapter(dict[str, _Scanpath]),
}
_TOPICAL_CHATS = TypeAdapter(dict[str, _TopicalChat])
_COCO = TypeAdapter(Coco)


def add_json(source: Source, data: bytes, options: ImportOptions) -> None:
    """Add the answers in the bytes of a JSON file of any form to ``source``. Raises InputError."""
    content = _parsed(source.path, data)
    _refuse_own_file(content)
    if isinstance(content, list):
        _add_list(source, content, options)
    elif isinstance(content, dict) and (known := recognised([*content])) is not None and known.form.rows_in:
        add_rows(source, [content], options)
    elif options.task == "judgement":
        if not isinstance(content, dict):
            raise InputError("is no table: it must be a list of rows, each an object, as jsPsych's data are")
        add_rows(source, [content], options)
    elif isinstance(content, dict) and any(isinstance(chat, dict) and "content" in chat for chat in content.values()):
        _set_form(source, "topical-chat", "conversation", options.task)
        for stimulus, chat in _validated(_TOPICAL_CHATS, content, source.path).items():
            lines = [(utterance.agent, utterance.message) for utterance in chat.content]
            agents = dict.fromkeys((speaker for speaker, _ in lines), PERSON)
            add_conversation(source, stimulus, lines, agents, content[stimulus])
    elif isinstance(content, dict) and {"images", "annotations"} <= content.keys():
        _set_form(source, "coco-captions", "image_captioning", options.task)
        _add_captions(source, content)
    else:
        _add_benchmark(source, content, options)


def _parsed(path: Path, data: bytes) -> Any:
    """The content of a JSON file. Lines of JSON are a list of what is on them; of a list on a line, as JATOS writes one
    for each participant, the entries. Raises InputError."""
    if path.suffix.lower() not in LINES:
        try:
            return parse_json(data)
        except InputError:
            first = data.strip().split(b"\n", 1)[0].strip()
            if first[:1] + first[-1:] not in (b"[]", b"{}"):
                raise
    rows: list[Any] = []
    problems = []
    for number, line in enumerate(data.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            value = parse_json(line)
        except InputError as error:
            problems.append(Problem(str(path), number, None, str(error)))
            continue
        rows += value if isinstance(value, list) else [value]
    refuse(problems)
    return rows


def _refuse_own_file(content: Any) -> None:
    """Raises InputError for a JSON file of ours that holds no answers, and for a kit's, which its study takes in."""
    first = content[0] if isinstance(content, list) and content else content
    schema = first.get("schema") if isinstance(first, dict) else None
    if not isinstance(schema, str) or not schema.startswith("turinglike."):
        return
    if schema.startswith("turinglike.kit/"):
        raise InputError("is what a judge's kit saved; take it in with: turinglike study import STUDY FILE")
    if schema.startswith("turinglike.record/"):
        raise InputError("holds records of a run; commands that read runs take several run folders")
    raise InputError(f"is a file of Turinglike's own ({shown(schema)}), which holds no answers to import")


def _add_list(source: Source, content: list[Any], options: ImportOptions) -> None:
    """Scanpaths in COCO-Search18's form, else rows of a table."""
    if not content:
        raise InputError("contains no answers that can be imported: it is an empty list")
    firsts = [row for row in content if isinstance(row, dict)]
    if firsts and len(firsts) == len(content) and {"name", "X", "Y"} <= firsts[0].keys():
        _set_form(source, "coco-search18", "attention_prediction", options.task)
        _add_search_paths(source, content, options)
        return
    if any(isinstance(row, list) for row in content):
        raise InputError("is a list of lists; each entry must be a row, an object with the columns' names")
    names = [name for name in content[0] if all(name in row for row in firsts)] if len(firsts) == len(content) else []
    known = recognised(names)
    if known is not None and known.form.conversations is not None and options.task in (None, "conversation"):
        _set_form(source, known.key, "conversation", options.task)
        add_conversations(source, content, known.form, options)
        return
    add_rows(source, content, options)


def _set_form(source: Source, form: str, holds: Task, task: str | None) -> None:
    if task not in (None, holds):
        raise InputError(f"holds answers to {holds}, not to {task}")
    source.form = form
    source.task = holds


def _validated(adapter: TypeAdapter[A], content: Any, path: Path) -> A:
    try:
        return adapter.validate_python(content)
    except ValidationError as error:
        refuse(as_problems(error, str(path)))
        raise


def _refuse_pandas(content: Mapping[str, Any]) -> None:
    """Raises InputError for a table as pandas writes it by columns, and for rows that stand under a name."""
    way_out = "write it as a list of rows: in pandas, to_json(orient='records')"
    by_column = [value for value in content.values() if isinstance(value, dict) and "0" in value]
    if content and len(by_column) == len(content):
        raise InputError(f"is a table by columns; {way_out}")
    if {"columns", "data"} <= content.keys():
        raise InputError(f"is a table of columns and data; {way_out}")
    rows = next(iter(content.values()), None)
    is_table = isinstance(rows, list) and bool(rows) and isinstance(rows[0], dict) and "groundtruth" not in rows[0]
    if len(content) == 1 and is_table and next(iter(content)) in ("data", "rows", "results", "trials"):
        raise InputError(f"has its rows under the name {next(iter(content))!r}; {way_out}")


def _add_benchmark(source: Source, content: Any, options: ImportOptions) -> None:
    source.task = task_of_file(source.path, options.task)
    if not isinstance(content, dict):
        raise InputError("must be a JSON object of stimuli, or a list of rows")
    _refuse_pandas(content)
    is_gaze = source.task == "attention_prediction"
    lists = [value for value in content.values() if isinstance(value, list)]  # of a ground truth hold objects
    is_truth = any(value and isinstance(value[0], dict) for value in lists) if is_gaze else bool(lists)
    source.form = "ground truth" if is_truth else "submission"
    if not is_truth:
        if options.name is None:
            raise InputError("is a submission and does not say whose answers it holds; give the machine with --name")
        source.name = options.name
    if not all(stimulus.strip() for stimulus in content):
        refuse([Problem(str(source.path), None, None, "a stimulus has an empty id")])
    _validated(_BENCHMARK[source.form, is_gaze], content, source.path)
    paths = []
    for stimulus, value in content.items():
        rows = value if is_truth else [{"response": value, "machine_groundtruth": options.name}]
        for row in rows:
            for other in row.keys() - _FIELDS:
                source.noticed[f"field_{other}_not_imported"] += 1
            agent = _agent_of(row)
            if agent == person(""):
                source.noticed["answers_without_a_name"] += 1
            if is_gaze:
                paths.append(Scanpath(stimulus, agent, row["response"], raw=row["response"]))
            else:
                answer = published_answer(source.task, row["response"])
                source.add(stimulus, agent, row["response"], answer)
    if is_gaze:
        add_scaled(source, paths, options, options.frame or FRAME)


def _agent_of(row: Mapping[str, Any]) -> str:
    if row.get("groundtruth") == "human":
        return person(str(row.get("human_groundtruth", "")))
    machine = str(row.get("machine_groundtruth", ""))
    return f"published:{machine if machine.strip() else UNKNOWN}"


def published_answer(task: Task, response: str) -> dict[str, Any]:
    """The answer in a response of the benchmark's files. Odd ones stay as they are: ``none`` is a colour, and no labels
    are an answer."""
    labels = read_labels(response)[1] if task == "object_detection" else []
    return typed_answer(task, response, labels)


def add_page(source: Source, data: bytes, options: ImportOptions) -> None:
    """Add the conversation in the bytes of a page of the published Turing test, ``<p>A: …</p> <p>B: …</p>``. Raises
    InputError."""
    _set_form(source, "page", "conversation", options.task)
    if options.name is None:
        raise InputError("does not say who its speakers are; give them with --name A~B, a person as human")
    try:
        page = data.decode()
    except UnicodeDecodeError as error:
        raise InputError(f"is not text in UTF-8: {error}") from None
    texts = [text for text in paragraphs(page) if text.strip()]
    lines = [(match[1], match[2].strip()) for text in texts if (match := _LABELLED.fullmatch(text))]
    source.noticed["paragraphs_without_a_speaker"] = len(texts) - len(lines)
    source.name = options.name
    if lines:
        agents = dict(zip("AB", options.name.split("~"), strict=True))
        add_conversation(source, source.path.stem, lines, agents, texts)


def _add_captions(source: Source, content: dict[str, Any]) -> None:
    coco = _validated(_COCO, content, source.path)
    refuse(coco.repeated_ids(str(source.path)))
    names = {image.id: image.file_name for image in coco.images}
    first: dict[int, CocoAnnotation] = {}
    for annotation in coco.annotations:
        if annotation.id is not None and (before := first.setdefault(annotation.id, annotation)) is not annotation:
            if before != annotation:
                raise InputError(f"the id {annotation.id} stands in two annotations that differ")
            source.noticed["annotations_that_stand_twice"] += 1
            continue
        if annotation.caption is None:
            raise InputError("has annotations without a caption; `turinglike set` makes a set of them")
        if is_blank(annotation.caption):
            source.noticed["annotations_without_words"] += 1
        elif annotation.image_id in names:
            answer = typed_answer("image_captioning", annotation.caption)
            source.add(names[annotation.image_id], person(""), annotation.caption, answer)
        else:
            source.noticed["captions_of_pictures_that_are_not_listed"] += 1


def _add_search_paths(source: Source, content: list[Any], options: ImportOptions) -> None:
    if source.path.with_name(f"{source.path.name}.export.json").exists():
        raise InputError("is an export of a run; its answers are in that run's folder already")
    entries = _validated(PATHS, content, source.path)
    source.name = options.name
    if options.frame is None and entries:
        raise InputError("does not say of which frame its paths are; give --frame WIDTHxHEIGHT (often 1680x1050)")
    paths = []
    seen = set()
    for entry, raw in zip(entries, content, strict=True):
        whole = orjson.dumps(raw, option=orjson.OPT_SORT_KEYS)
        if whole in seen:
            source.noticed["equal_rows_counted_once"] += 1  # nobody looks at the same pixels for the same times again
            continue
        seen.add(whole)
        agent = f"published:{options.name}"
        if options.name is None:
            agent = person(str(entry.subject).zfill(2))
        found = bool(raw["correct"]) if entry.condition == "present" and raw.get("correct") in (0, 1) else None
        points = [[x, y] for x, y in zip(raw["X"], raw["Y"], strict=True)]
        paths.append(Scanpath(entry.stimulus, agent, points, raw.get("T"), found, raw))
    if paths and options.frame is not None:
        add_scaled(source, paths, options, options.frame)
