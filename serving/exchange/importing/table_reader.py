"""What answers, scanpaths and verdicts of a people's table share: who answered, about which stimulus, how fast, and
which rows are left out.

The order of the calls matters, because each takes rows out or chooses a column: ``name_stimuli``, ``leave_out`` for
each row, ``tell_left_out``, ``name_people``, ``drop_equal_rows``, then ``person``, ``stimulus`` and ``times`` of the
rows that stay.
"""

import re
from collections.abc import Mapping, Sequence
from statistics import median

from agents.answers import is_blank
from agents.errors import InputError, Problem
from serving.exchange.importing.about_people import AboutPeople
from serving.exchange.importing.json_columns import put_together
from serving.exchange.importing.people_table import PeopleTable, TableRow, whole_numbers
from serving.exchange.importing.repeated_rows import drop_equal_rows, tell_rows
from serving.exchange.importing.source import ImportOptions, Source, listed, person
from serving.exchange.importing.table_cells import (
    EMPTY_WORDS,
    NO_ANSWER_WITHOUT_TIME,
    CellText,
    has_time,
    is_empty,
    read_time,
    shortened,
    without_decimals,
)
from serving.exchange.importing.table_columns import (
    STIMULI,
    TIMES,
    WIDE,
    find_person,
    find_response,
    no_person,
    numbered_siblings,
    plain_column,
)
from serving.files.words import count, shown
from serving.runs.records import UNKNOWN

SECONDS_BELOW = 20  # a median time below it is in seconds: nobody answers within 20 milliseconds
PLAUSIBLE = (100, 300_000)  # milliseconds: a median time outside is told
NOBODY = frozenset({UNKNOWN, "none", "anonymous"})
CUT_NUMBER = re.compile(r"[0-9]\.[0-9]+[Ee]\+?[0-9]+")  # what a spreadsheet, or the number in its file, makes of an id
MIXED = 0.1  # more times than this part below SECONDS_BELOW are two units in one column
MARKUP = frozenset("<{")  # of a screen's content, which is no name of a stimulus


def middle_of(times: Sequence[float]) -> float | None:
    """The median of the times that are not zero; None where there are none. A single slow answer does not move it."""
    filled = [time for time in times if time > 0]
    return median(filled) if filled else None


def are_seconds(times: Sequence[float]) -> bool:
    """Whether times of response, or durations of fixations, can only be seconds."""
    middle = middle_of(times)
    return middle is not None and middle < SECONDS_BELOW


def _names_nobody(cell: str) -> bool:
    """Whether a cell of who answered says nothing: it is blank, ``NA``, or "unknown", which would join strangers."""
    return is_empty(cell) or cell.casefold() in NOBODY


class TableReader:
    """Reads a table into ``source``. ``problems`` gathers all faults, so that a user sees them at once; who reads the
    table refuses it in the end if there are any."""

    def __init__(self, source: Source, table: PeopleTable, options: ImportOptions) -> None:
        self.source = source
        self.table = table
        self.columns = table.columns
        self.options = options
        self.problems: list[Problem] = list(table.problems)
        self._stimulus_columns: Sequence[str] = ()
        self._stimuli_are_numbers = False
        self._named_stimuli: dict[str, str] = {}  # by the cell that names one, whatever else is in its row
        self._time_column = self.columns.find("rt", TIMES)
        self._person: str | None = None
        self._numbers = False
        self._names: dict[str, str] = {}  # of people, by their cells
        self._about: AboutPeople | None = None
        self._without_answer: list[TableRow] = []
        self._without_stimulus: list[TableRow] = []
        self._with_word: dict[str, list[TableRow]] = {}

    def fault(self, row: TableRow, column: str, message: str) -> None:
        """Note that ``message`` is wrong with the cell of a row in ``column``."""
        self.problems.append(Problem(str(self.source.path), row.line, f"{row.prefix}{column}", message))

    # stimuli

    def name_stimuli(self, columns: Sequence[str] | None = None) -> None:
        """Choose the columns that name the stimulus: of ``--columns``, else ``columns``, else those of known names.

        The first of several counts; in jsPsych's data each row has its first filled one. Raises InputError where there
        is none.
        """
        if "stimulus" in self.columns.given:
            self._stimulus_columns = [self.columns.given["stimulus"]]
        elif columns is not None:
            self._stimulus_columns = columns
        else:
            screens = self.table.screens
            self._stimulus_columns = self.columns.named(STIMULI if screens is None else screens.stimuli)
        if not self._stimulus_columns and not self.columns.names:
            raise InputError("is empty: it has no row of names for the columns")
        if not self._stimulus_columns:
            raise InputError(
                "has no column that names the stimulus, such as stimulus, cue or image; its columns are "
                f"{self.columns.listed()}. Say which with --columns stimulus=NAME. {WIDE}"
            )
        if self.table.screens is None:
            self._stimulus_columns = self._stimulus_columns[:1]
            self._stimuli_are_numbers = whole_numbers(self.table.rows, self._stimulus_columns[0])
        elif columns is None and len(self._stimulus_columns) > 1:
            # Where a column such as `cue` names stimuli, `stimulus` alone is a screen: instructions, a fixation cross.
            named = [name for name in self._stimulus_columns if plain_column(name) != "stimulus"]
            if any(not is_empty(row.cells.get(name, "")) for row in self.table.rows for name in named):
                self._stimulus_columns = named
        for column in self._stimulus_columns:
            self.columns.use(column)

    def stimulus(self, row: TableRow) -> str:
        """The stimulus that a row names, or "". The content of a screen (HTML, a list of pictures) is no name."""
        if self.table.screens is None:
            cell = row.cells.get(self._stimulus_columns[0], "")
            named = self._named_stimuli.get(cell)  # cues come again and again
            if named is not None and not row.not_texts:
                return named
        for column in self._stimulus_columns:
            text = row.cells.get(column, "").strip()
            if text == "null" or is_blank(text) or text in EMPTY_WORDS or column in row.not_texts:
                continue
            if text in NO_ANSWER_WITHOUT_TIME and not self.is_timed(row):
                continue
            if self.table.screens is None:
                name = without_decimals(text) if self._stimuli_are_numbers else text
                if text not in NO_ANSWER_WITHOUT_TIME:
                    self._named_stimuli[row.cells[column]] = name
                return name
            if text.isprintable() and not MARKUP & set(text) and not text.startswith("["):
                return text
        return ""

    def response_column(self) -> str:
        """Choose the column of the answers, and return its name.

        Labels of objects may stand in several columns (``object1``, ``object2``), which are put together. Raises
        InputError where there is none, and where answers to another task stand in several columns.
        """
        task = self.source.task
        column = find_response(self.columns, task)
        siblings = [] if "response" in self.columns.given else numbered_siblings(self.columns, task, column)
        parts = siblings if column is None else [column, *siblings]
        if len(parts) > 1 and task == "object_detection":
            together = " + ".join(parts)
            put_together(self.table, together, parts)
            self.source.remarks.append(f"the labels are those of columns {', '.join(map(shown, parts))}")
            return together
        if len(parts) > 1:
            raise InputError(
                f"has several answers in a row, in columns {', '.join(map(shown, parts))}; say which to take with "
                f"--columns response={shown(parts[0])}. {WIDE}"
            )
        if not parts:
            raise InputError(
                f"has no column response; its columns are {self.columns.listed()}. Say which holds the answers with "
                f"--columns response=NAME. {WIDE}"
            )
        if parts[0] != "response" and "response" not in self.columns.given:
            self.source.remarks.append(f"the answers are those of column {shown(parts[0])}")
        return self.columns.use(parts[0])

    # people

    def name_people(self, rows: Sequence[TableRow]) -> None:
        """Choose the column of who answered in ``rows``, and note those in which it names nobody. Raises InputError
        where no column does, unless ``--unnamed`` allows it; verdicts without a judge are never taken."""
        if not rows:
            return
        is_allowed = self.options.unnamed and self.source.task != "judgement"
        self._person, remarks = find_person(self.columns, [row.cells for row in rows], self.source.task)
        self.source.remarks += remarks
        if self._person is None and not is_allowed:
            raise no_person(self.columns, self.source.task)
        nameless = 0
        named: set[str] = set()  # cells that name somebody: a person has many rows
        for row in rows:
            cell = "" if self._person is None else row.cells.get(self._person, "").strip()
            if cell in named and not row.not_texts:
                continue
            if self._person is not None and self._person in row.not_texts:
                self.fault(row, self._person, f"must be a name or a number, not {cell!r}")
            elif CUT_NUMBER.fullmatch(cell) and self._person is not None:
                rule = "a spreadsheet has rounded it, and several people may have become one. Save names as text"
                self.fault(row, self._person, f"is {shortened(cell)!r}: {rule}")
            elif not _names_nobody(cell):
                named.add(cell)
            elif is_allowed:
                nameless += 1
            elif self._person is not None:
                what = "is empty" if is_blank(cell) else f"is {shortened(cell)!r}, which names nobody"
                self.fault(row, self._person, f"{what}, so that nobody knows whose answer this is")
        if nameless:
            self.source.used.add("unnamed")
            self.source.noticed["answers_without_a_name"] += nameless
        if self._person is not None:
            self._numbers = whole_numbers(rows, self._person)

    def has_people(self) -> bool:
        """Whether a column names who answered."""
        return self._person is not None

    def person(self, row: TableRow) -> str:
        """The agent that answered in a row: "human:05"; "human:unknown" where the row names nobody."""
        cell = "" if self._person is None else row.cells.get(self._person, "").strip()
        if cell not in self._names:
            name = without_decimals(cell) if self._numbers else cell
            self._names[cell] = person("" if _names_nobody(cell) else name)
        return self._names[cell]

    def about(self, row: TableRow) -> Mapping[str, str] | None:
        """What the table tells about who answered in a row, such as ``{"age": "31"}``; None where it tells nothing. It
        is asked after all other columns are chosen: a column that is read as something else tells nothing."""
        return self._about_people().of(row)

    def tells_about_people(self) -> bool:
        """Whether the table tells anything about who answered. It is asked when :meth:`about` may be asked."""
        return self._about_people().tells

    def _about_people(self) -> AboutPeople:
        if self._about is None:
            self._about = AboutPeople(self.source, self.columns, self.table.rows, self.person)
        return self._about

    # times

    def is_timed(self, row: TableRow) -> bool:
        """Whether a row has a time of response."""
        return self._time_column is not None and has_time(row.cells.get(self._time_column))

    def times(self, rows: Sequence[TableRow]) -> list[float | None]:
        """The time of response of each of ``rows`` in milliseconds; None where a row has none.

        The unit is ``--rt``; without it a file whose middle time is below 20 has them in seconds: they are converted,
        and a remark says so.
        """
        column = self._time_column
        if column is None:
            return [None] * len(rows)
        times: list[float | None] = []
        unclear = []
        for row in rows:
            cell = row.cells.get(column, "")
            time, fault = read_time(cell)
            times.append(time)
            if fault:
                self.fault(row, column, fault)
            elif time is None and cell.strip().startswith("["):
                unclear.append(row)
        tell_rows(
            self.source, unclear, "rows_with_several_times", "{rows} (at {places}) with several times: no rt is kept"
        )
        unit = self.milliseconds(column, [time for time in times if time is not None])
        if unit == 1:
            return times
        return [None if time is None else round(time * unit, 6) for time in times]

    def milliseconds(self, column: str, times: Sequence[float]) -> float:
        """How many milliseconds the unit of the times of a column has: 1 for milliseconds, 1,000 for seconds."""
        if self.options.rt is not None:
            self.source.used.add("rt")
            return 1000.0 if self.options.rt == "seconds" else 1.0
        middle = middle_of(times)
        if middle is None:
            return 1.0
        if are_seconds(times):
            if not self.source.noticed["times_taken_as_seconds"]:
                self.source.noticed["times_taken_as_seconds"] = len(times)
                self.source.remarks.append(
                    f"column {shown(column)}: half of the times are at most {middle:g}, so they are taken as seconds; "
                    "--rt ms takes them as milliseconds"
                )
                long = [time for time in times if 1000 * time > PLAUSIBLE[1]]
                if long:
                    self.source.remarks.append(
                        f"column {shown(column)}: {count(len(long), 'time')} of more than {PLAUSIBLE[1] // 60_000} "
                        f"minutes, the longest {max(long):g} s: look at its unit, and at points that part thousands"
                    )
            return 1000.0
        small = sum(0 < time < SECONDS_BELOW for time in times)
        if small > MIXED * len(times):
            self.source.remarks.append(
                f"column {shown(column)}: {small:,} of {count(len(times), 'time')} are below {SECONDS_BELOW}, as if in "
                "seconds, and the others are not; all count as milliseconds"
            )
        if not PLAUSIBLE[0] <= middle <= PLAUSIBLE[1]:
            self.source.remarks.append(
                f"column {shown(column)}: half of the times are at most {middle:g} ms, which is odd for people; "
                "they must be milliseconds, or seconds with --rt seconds"
            )
        return 1.0

    # rows that are left out, or stand twice

    def leave_out(self, row: TableRow, text: CellText | None) -> None:
        """Leave a row out: with ``text`` None because it names no stimulus, else because its cell has no answer."""
        if text is None:
            self._without_stimulus.append(row)
        elif text.said_so:
            self._with_word.setdefault(text.said_so, []).append(row)
        else:
            self._without_answer.append(row)

    def tell_left_out(self, column: str, no_stimulus: str, no_answer: str) -> None:
        """Count the rows that were left out, and add remarks with their places. ``no_stimulus`` and ``no_answer`` are
        the reasons in ``source.noticed``, ``column`` is that of the answers."""
        sentence = "{rows} (at {places}) without an answer"
        tell_rows(self.source, self._without_answer, no_answer, sentence)
        sentence = "{rows} (at {places}) name no stimulus, and are left out"
        tell_rows(self.source, self._without_stimulus, no_stimulus, sentence)
        for word, rows in self._with_word.items():
            sentence = (
                "{rows} (at {places}) with " + f"`{word}` in column {shown(column)}, a program's word for no answer"
            )
            tell_rows(self.source, rows, no_answer, sentence)

    def refuse_nothing(self) -> None:
        """Raises InputError where no answer is left, with the reasons."""
        unanswered = [*self._without_answer, *(row for rows in self._with_word.values() for row in rows)]
        reasons = []
        for rows, what in ((self._without_stimulus, "name no stimulus"), (unanswered, "have no answer")):
            if rows:
                reasons.append(f"{count(len(rows), 'row')} (at {listed([row.place for row in rows])}) {what}")
        raise InputError(f"contains no answers that can be imported: {'; '.join(reasons) or 'it has no rows'}")

    def drop_equal_rows(self, *, are_fixations: bool = False) -> None:
        """Take rows that stand twice out of the table, as
        :func:`serving.exchange.importing.repeated_rows.drop_equal_rows` says."""
        before = len(self.table.rows)
        is_wanted = self.options.drop_equal
        drop_equal_rows(self.source, self.table, self._person, drop=is_wanted, are_fixations=are_fixations)
        if is_wanted and len(self.table.rows) < before:
            self.source.used.add("drop_equal")
