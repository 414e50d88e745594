"""Tables of people's answers: a CSV, or a JSON list of rows such as jsPsych's data. ``docs/import.md`` describes them.

Scanpaths and verdicts have readers of their own, :mod:`serving.exchange.importing.paths` and
:mod:`serving.exchange.importing.verdicts`; the other tasks are read here.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from agents.answers import CaptionAnswer, ColorAnswer, ObjectAnswer, WordAnswer, plain
from agents.errors import InputError
from agents.stimuli import SHORT, Task
from serving.exchange.importing.decimal_commas import read_decimal_commas
from serving.exchange.importing.json_columns import fill_columns
from serving.exchange.importing.kept_rows import keep_rows
from serving.exchange.importing.paths import add_paths
from serving.exchange.importing.people_table import (
    PeopleTable,
    TableRow,
    note_empty_columns,
    table_of_file,
    table_of_json,
)
from serving.exchange.importing.recognising import refuse_other_table, tell_form, use_forms, with_form
from serving.exchange.importing.repeated_rows import tell_several_answers
from serving.exchange.importing.source import ImportOptions, Source, listed, person, refuse
from serving.exchange.importing.table_cells import CellText, is_whole, read_labels, read_text
from serving.exchange.importing.table_columns import FIELDS, unread_remark
from serving.exchange.importing.table_reader import TableReader
from serving.exchange.importing.truth_column import machines_of
from serving.exchange.importing.verdicts import add_verdicts
from serving.files.csv_tables import by_line
from serving.files.words import shown
from serving.sets.published_tasks import task_of_file

OWN_VERDICTS = (  # columns of the tables of verdicts that `score` and `study export` write
    {"judge_kind", "trial", "truth", "beside_truth"},
    {"trial_index", "again", "control_right", "by_key"},
)


def add_table(source: Source, data: bytes, options: ImportOptions) -> None:
    """Add the answers in the bytes of a text or a workbook to ``source``. Raises InputError with every problem."""
    _add(source, table_of_file(source, data, options.columns), options)


def add_rows(source: Source, content: Sequence[Any], options: ImportOptions) -> None:
    """Add the answers in a JSON list of objects to ``source``. Raises InputError with every problem."""
    _add(source, table_of_json(source, content, options.columns), options)


def _add(source: Source, table: PeopleTable, options: ImportOptions) -> None:
    if options.name is not None:
        source.name = options.name
    forms = [form for form in (options.form, None if table.form is None else table.form.form) if form is not None]
    source.form = "table"
    if options.form is not None:
        refuse_other_table(options.form, table.columns.names)
        source.remarks.append(f"read with the form {shown(options.form.name)}")
        source.used.add("form")
    if table.form is not None:
        source.form = table.form.key
        tell_form(source, table.form.form)
        options = with_form(options, table.form.form)
    source.task = "judgement" if options.task == "judgement" else task_of_file(source.path, options.task)
    if options.columns:
        source.used.add("columns")
        unknown = [name for name in options.columns if name not in FIELDS]
        if unknown:
            raise InputError(f"--columns: there is no field {', '.join(unknown)}; there are {', '.join(FIELDS)}")
    fill_columns(source, table)
    keep_rows(source, table, options.rows)
    use_forms(source, table, forms, options)
    fill_columns(source, table)
    _refuse_other_tasks(source, table)
    note_empty_columns(table)
    read_decimal_commas(source, table)
    reader = TableReader(source, table, options)
    if any(names <= {*table.columns.names} for names in OWN_VERDICTS):
        raise InputError(
            "is a table of verdicts that `score` or `study export` wrote. It holds practice, controls and excluded "
            "verdicts too: score the folder beside it, which knows them"
        )
    if source.task == "judgement":
        add_verdicts(reader)
    elif source.task == "attention_prediction":
        add_paths(reader)
    else:
        _add_answers(reader)
    source.remarks += unread_remark(table.columns)
    refuse(by_line(reader.problems))


def _refuse_other_tasks(source: Source, table: PeopleTable) -> None:
    """Raises InputError where a column ``task`` says that rows answer another task."""
    short_of = {name: short for short, name in SHORT.items()}
    for column in table.columns.named(("task",)):
        words = {row.cells.get(column, "").strip() for row in table.rows} - {""}
        tasks = {SHORT.get(word, word) for word in words}
        if tasks and tasks <= short_of.keys() and tasks != {source.task}:
            example = next((word for word in sorted(words) if SHORT.get(word, word) == source.task), "")
            way_out = f"--rows {shown(column)}={example}" if example else "--task"
            raise InputError(
                f"holds answers to {', '.join(sorted(words))} (column {shown(column)}); take one with {way_out}"
            )


class _RowAnswer(NamedTuple):
    """What a row answers."""

    text: str
    labels: Sequence[str]  # () for other tasks than objects
    stimulus: str


def _refuse_numbers(source: Source, column: str, row_answers: Iterable[_RowAnswer]) -> None:
    """Raises InputError where all answers are numbers: jsPsych stores of a button its place, which is nobody's word."""
    answers = [answer.labels or [answer.text] for answer in row_answers]
    texts = list(dict.fromkeys(text for texts in answers for text in texts))
    if texts and all(map(is_whole, texts)):
        raise InputError(
            f"has numbers alone in column {shown(column)} ({listed(texts)}), as programs store the places of buttons; "
            "write the labels that people saw"
        )


def _add_answers(reader: TableReader) -> None:
    source = reader.source
    reader.name_stimuli()
    column = reader.response_column()
    answers: dict[int, _RowAnswer] = {}  # by id(row)
    for row in reader.table.rows:
        stimulus = reader.stimulus(row)
        text, labels = _read(source.task, row, column, is_timed=reader.is_timed(row))
        if not stimulus:
            reader.leave_out(row, None)
        elif text.state == "missing":
            reader.leave_out(row, text)
        elif text.state == "answer":
            answers[id(row)] = _RowAnswer(text.text, labels, stimulus)
        else:
            reader.fault(row, column, text.fault)
    reader.tell_left_out(column, "rows_without_a_stimulus", "rows_without_an_answer")
    if not answers and not reader.problems:
        reader.refuse_nothing()
    _refuse_numbers(source, column, answers.values())
    machines = machines_of(reader, [row for row in reader.table.rows if id(row) in answers])
    reader.name_people([row for row in reader.table.rows if id(row) in answers and id(row) not in machines])
    reader.drop_equal_rows()
    rows = [row for row in reader.table.rows if id(row) in answers]
    times = reader.times(rows)
    answered = []
    for place, row in enumerate(rows):
        answer = answers[id(row)]
        agent = machines.get(id(row)) or reader.person(row)
        written = row.cells[column].strip()
        raw: Any = written
        if place in times:
            raw = {"response": written, "rt": times[place]}
        source.add(answer.stimulus, agent, raw, typed_answer(source.task, answer.text, answer.labels))
        if agent != person("") and id(row) not in machines:
            answered.append((agent, answer.stimulus, row))
    tell_several_answers(source, reader.table, answered, "answer", counts_once=False)


def _read(task: Task, row: TableRow, column: str, *, is_timed: bool) -> tuple[CellText, Sequence[str]]:
    cell = row.cells.get(column, "")
    if column in row.not_texts and cell in ("true", "false"):
        return CellText("wrong", fault=f"must be a text, not {cell}"), ()
    if task == "object_detection":
        return read_labels(cell, has_time=is_timed)
    return read_text(cell, has_time=is_timed, is_long=task == "image_captioning"), ()


def typed_answer(task: Task, text: str, labels: Sequence[str] = ()) -> dict[str, Any]:
    """The JSON values of the answer ``text`` (``labels`` for objects) to a task other than scanpaths, conversations and
    verdicts."""
    match task:
        case "color_estimation":
            return plain(ColorAnswer(color=text))
        case "object_detection":
            return plain(ObjectAnswer(labels=list(labels)))
        case "image_captioning":
            return plain(CaptionAnswer(text=text))
        case _:
            return plain(WordAnswer(word=text))
