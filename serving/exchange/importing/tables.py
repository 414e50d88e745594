"""Tables of people's answers: a CSV, or a JSON list of rows such as jsPsych's data. ``docs/import.md`` describes them.

Scanpaths and verdicts have readers of their own, :mod:`serving.exchange.importing.paths` and
:mod:`serving.exchange.importing.verdicts`; the other tasks are read here.
"""

from collections.abc import Iterable, Mapping, Sequence
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
    table_of_json,
)
from serving.exchange.importing.recognising import refuse_other_table, tell_form, use_forms, with_form
from serving.exchange.importing.repeated_rows import tell_several_answers
from serving.exchange.importing.source import ImportOptions, Source, listed, refuse
from serving.exchange.importing.table_cells import NO_ANSWER_WITHOUT_TIME, CellText, is_whole, read_labels, read_text
from serving.exchange.importing.table_columns import FIELDS, unread_remarks
from serving.exchange.importing.table_reader import TableReader
from serving.exchange.importing.truth_column import machines_of
from serving.exchange.importing.verdicts import add_verdicts
from serving.exchange.importing.wide_tables import make_long
from serving.files.csv_tables import by_line
from serving.files.words import shown
from serving.sets.published_tasks import task_of_file

MOST_READ = 100_000  # different cells whose answers are held
OWN_VERDICTS = (  # columns of the tables of verdicts that `score` and `study export` write
    {"judge_kind", "trial", "truth", "beside_truth"},
    {"trial_index", "again", "control_right", "by_key"},
)


def add_rows(source: Source, content: Sequence[Any], options: ImportOptions) -> None:
    """Add the answers in a JSON list of objects to ``source``. Raises InputError with every problem."""
    add_table(source, table_of_json(source, content, options.columns), options)


def add_table(source: Source, table: PeopleTable, options: ImportOptions) -> None:
    """Add the answers in a table to ``source``. Raises InputError with every problem."""
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
    make_long(source, table, options.wide)
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
    source.remarks += unread_remarks(table.columns)
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


class _CellAnswer(NamedTuple):
    """What a cell says."""

    text: CellText
    labels: Sequence[str]  # () for other tasks than objects
    typed: Mapping[str, Any] | None  # the answer's fields; None where there is none


class _CellReader:
    """Reads the cells of a column. A cell that comes again is read once, and its answer is held once: people say the
    same words again and again."""

    def __init__(self, reader: TableReader, column: str) -> None:
        self._reader = reader
        self._task = reader.source.task
        self._column = column
        self._read: dict[tuple[str, bool, bool], _CellAnswer] = {}

    def answer(self, row: TableRow) -> _CellAnswer:
        """What a row's cell says."""
        cell = row.cells.get(self._column, "")
        is_text = self._column not in row.not_texts
        found = self._shared(cell, is_text=is_text, is_timed=False)
        if found.text.said_so in NO_ANSWER_WITHOUT_TIME and self._reader.is_timed(row):
            return self._shared(cell, is_text=is_text, is_timed=True)
        return found

    def _shared(self, cell: str, *, is_text: bool, is_timed: bool) -> _CellAnswer:
        key = (cell, is_text, is_timed)
        found = self._read.get(key)
        if found is None:
            found = self._answer(cell, is_text=is_text, is_timed=is_timed)
            if len(self._read) < MOST_READ:
                self._read[key] = found
        return found

    def _answer(self, cell: str, *, is_text: bool, is_timed: bool) -> _CellAnswer:
        labels: Sequence[str] = ()
        if not is_text and cell in ("true", "false"):
            text = CellText("wrong", fault=f"must be a text, not {cell}")
        elif self._task == "object_detection":
            text, labels = read_labels(cell, has_time=is_timed)
        else:
            text = read_text(cell, has_time=is_timed, is_long=self._task == "image_captioning")
        typed = typed_answer(self._task, text.text, labels) if text.state == "answer" else None
        return _CellAnswer(text, labels, typed)


def _refuse_numbers(source: Source, column: str, row_answers: Iterable[_CellAnswer]) -> None:
    """Raises InputError where all answers are numbers: jsPsych stores of a button its place, which is nobody's word."""
    texts: dict[str, None] = {}
    for answer in row_answers:
        said = answer.labels or [answer.text.text]
        if not all(map(is_whole, said)):
            return
        texts.update(dict.fromkeys(said))
    if texts:
        raise InputError(
            f"has numbers alone in column {shown(column)} ({listed(list(texts))}), as programs store the places of "
            "buttons; write the labels that people saw"
        )


def _add_answers(reader: TableReader) -> None:
    source = reader.source
    reader.name_stimuli()
    column = reader.response_column()
    read = _CellReader(reader, column)
    rows: list[TableRow] = []  # with an answer
    stimuli: list[str] = []  # of each of these rows
    answers: list[_CellAnswer] = []  # likewise
    for row in reader.table.rows:
        stimulus = reader.stimulus(row)
        answer = read.answer(row)
        text = answer.text
        if not stimulus:
            reader.leave_out(row, None)
        elif text.state == "missing":
            reader.leave_out(row, text)
        elif text.state == "answer":
            rows.append(row)
            stimuli.append(stimulus)
            answers.append(answer)
        else:
            reader.fault(row, column, text.fault)
    reader.tell_left_out(column, "rows_without_a_stimulus", "rows_without_an_answer")
    if not rows and not reader.problems:
        reader.refuse_nothing()
    _refuse_numbers(source, column, answers)
    machines = machines_of(reader, rows)
    reader.name_people([row for row in rows if id(row) not in machines])
    before = len(reader.table.rows)
    reader.drop_equal_rows()
    if len(reader.table.rows) < before:
        kept = {id(row) for row in reader.table.rows}
        places = [place for place, row in enumerate(rows) if id(row) in kept]
        rows = [rows[place] for place in places]
        stimuli = [stimuli[place] for place in places]
        answers = [answers[place] for place in places]
    tells_about_people = reader.tells_about_people()
    for row, stimulus, answer, time in zip(rows, stimuli, answers, reader.times(rows), strict=True):
        agent = machines.get(id(row)) if machines else None
        about = reader.about(row) if tells_about_people and agent is None else None
        source.add(stimulus, agent or reader.person(row), row.cells[column].strip(), answer.typed, time, about)
    del stimuli, answers
    tell_several_answers(source, reader.table, rows, "answer", counts_once=False)


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
