"""What every reader of answers shares: the options of ``turinglike import``, and :class:`Source`, a file with the
answers that were read from it.

A reader gets a :class:`Source` without answers and adds them. To add a form of files, write a reader
``add_FORM(source, data, options)`` and let :func:`serving.exchange.importing.reading.read_source` choose it.
"""

import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from agents.errors import InputError, Problem
from agents.frames import Fit
from agents.stimuli import Task
from serving.exchange.importing.form_files import Form, Origin, PlaceUnit, TimeUnit
from serving.exchange.importing.row_rules import RowRule
from serving.files.words import count
from serving.runs.records import UNKNOWN, people_record

PUBLISHED = "published:"  # begins the names of machines
LINES_SHOWN = 8  # of the lines that a remark names

Size = tuple[float, float]  # width and height in pixels


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions:
    """The options of ``turinglike import``, which hold for all files of a command.

    - ``task``: the full name of the task; needed where the file does not say it.
    - ``name``: the machine whose answers a file holds, or the two speakers ``A~B`` of a page.
    - ``frame``: width and height in pixels of the screen or window that scanpaths are in; ``fit``: how the picture
      filled it.
    - ``origin``, ``units``: where in the frame the coordinates of scanpaths are 0, and their unit; None: pixels, or
      shares where their size says so, from the top left.
    - ``responses``: what keys or buttons mean, ``{"f": "human", "j": "machine"}``; keys are in small letters.
    - ``rows``: rules that a table's rows must all obey.
    - ``columns``: the column of a field, ``{"subject": "participant.code"}``; fields are
      :data:`serving.exchange.importing.table_columns.FIELDS`.
    - ``wide``: patterns of columns that hold the answers to one stimulus each, where a row is a person.
    - ``rt``: the unit of times; None: told by their size.
    - ``color_words``: the language of people's words for colours, which become the English ones; None: they stay.
    - ``sheet``: the name of the sheet of a workbook; None: the only one whose columns fit.
    - ``form``: a lab's own form, which says what the other options do not.
    - ``unnamed``: answers that name no person are taken, each as another person's.
    - ``drop_equal``: rows that are equal in all cells, and answers that an earlier file holds, count once.
    """

    task: str | None = None
    name: str | None = None
    frame: Size | None = None
    fit: Fit | None = None
    origin: Origin | None = None
    units: PlaceUnit | None = None
    responses: Mapping[str, str] = field(default_factory=dict)
    rows: Sequence[RowRule] = ()
    columns: Mapping[str, str] = field(default_factory=dict)
    wide: Sequence[str] = ()
    rt: TimeUnit | None = None
    color_words: str | None = None
    sheet: str | None = None
    form: Form | None = None
    unnamed: bool = False
    drop_equal: bool = False


def composed(text: str) -> str:
    """A text in composed Unicode (NFC): é is one letter, however it was typed. Nobody sees the difference."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def with_composed_names(options: ImportOptions) -> ImportOptions:
    """The options with the names of columns in composed Unicode, as those of tables are."""
    return replace(
        options,
        rows=[replace(rule, column=composed(rule.column), value=composed(rule.value)) for rule in options.rows],
        columns={field: composed(column) for field, column in options.columns.items()},
        wide=[composed(pattern) for pattern in options.wide],
    )


@dataclass(slots=True, eq=False)
class ImportedAnswer:
    """An answer in a file. Nobody changes one. A file may have a million, so that it is kept small, smaller than a
    tuple with names."""

    stimulus: str
    """The id of the stimulus, in composed Unicode (NFC)."""
    agent: str
    """Who answered: "human:05", "published:gpt2"."""
    raw: Any
    """The response as it stood in the file."""
    answer: Mapping[str, Any] | None
    """The values of the task's answer by its fields, as JSON. Equal answers may share them, so do not change them."""
    rt: float | None
    """The time of response in milliseconds; None where the file has none, or where ``raw`` has it."""
    meta: Mapping[str, str] | None = None
    """What the file tells about who answered, ``{"age": "31"}``; None where it tells nothing. Answers may share it."""

    @property
    def kind(self) -> str:
        """The record's ``kind``: "published" for a machine, else "human"."""
        return "published" if self.agent.startswith(PUBLISHED) else "human"

    def whole_raw(self) -> Any:
        """The record's ``raw``: the response, with its time and what is told about who answered where there is any."""
        whole = self.raw if self.rt is None else {"response": self.raw, "rt": self.rt}
        if self.meta is None:
            return whole
        fields = whole if isinstance(whole, dict) else {"response": whole}
        return {**fields, "meta": self.meta}


@dataclass(slots=True)
class Source:
    """A file and the answers in it. ``noticed`` and ``remarks`` are printed and stand in ``import.json``."""

    path: Path
    """The file's absolute path."""
    sha256: str
    """The SHA-256 of the file's bytes, in hexadecimal digits. It is the ``digest`` of the records' provenance."""
    task: Task = "conversation"
    """The task of all answers in the file. Its reader sets it."""
    form: str = "submission"
    """The form that the file was read as: "table", "jspsych", "page", "ground truth", …"""
    name: str | None = None
    """The machine or the two speakers of ``--name``; None where the file says it itself."""
    answers: list[ImportedAnswer] = field(default_factory=list)
    """The answers as :meth:`add` keeps them, in the order of the file."""
    noticed: Counter[str] = field(default_factory=Counter)
    """How often something was left out or is odd, by reason: ``{"rows_without_an_answer": 3}``."""
    remarks: list[str] = field(default_factory=list)
    """Sentences about the whole file, such as the columns that nobody read."""
    notes: list[str] = field(default_factory=list)
    """Sentences about earlier imports. They are printed, and not kept."""
    used: set[str] = field(default_factory=set)
    """The options that had a meaning for this file, so that none is ignored in silence."""
    equal_in: list[str] = field(default_factory=list)
    """The paths of earlier files with equal answers, which ``--drop-equal`` left out of this file."""
    replaced: list[str] = field(default_factory=list)
    """The paths of earlier files whose place this file took by ``--replace``."""
    same_as: str | None = None
    """The path of a file with the same bytes that was imported before."""

    def add(
        self,
        stimulus: str,
        agent: str,
        raw: Any,
        answer: Mapping[str, Any] | None,
        rt: float | None = None,
        meta: Mapping[str, str] | None = None,
    ) -> None:
        """Add an answer of ``agent`` ("human:05", "published:gpt2"). ``raw`` is the response as it stood in the file,
        ``answer`` its values by the fields of the task's answer, or None; ``rt`` its time in milliseconds; ``meta``
        what is told about who answered."""
        stimulus = composed(stimulus)  # as people's names are: both forms look alike
        self.answers.append(ImportedAnswer(stimulus, agent, raw, answer, rt, meta))

    def records(self, run: str, kind: str) -> Iterator[dict[str, Any]]:
        """The answers of a ``kind``, "human" or "published", as records of the run with the id ``run``. ``sample`` is
        set by who writes them."""
        provenance = {"digest": self.sha256, "checkpoint": None, "revision": None}
        common = people_record(run, {"task": self.task, "kind": kind, "provenance": provenance})
        is_published = kind == "published"
        for answer in self.answers:
            if answer.agent.startswith(PUBLISHED) == is_published:
                record = common.copy()
                record["stimulus"] = answer.stimulus
                record["agent"] = answer.agent
                record["answer"] = answer.answer
                record["raw"] = answer.whole_raw()
                yield record

    def summary(self) -> dict[str, Any]:
        """The file's entry in ``import.json``."""
        agents = Counter(answer.agent for answer in self.answers)
        machines = [number for agent, number in agents.items() if agent.startswith(PUBLISHED)]
        people = [number for agent, number in agents.items() if not agent.startswith(PUBLISHED)]
        summary: dict[str, Any] = {
            "path": str(self.path),
            "sha256": self.sha256,
            "task": self.task,
            "form": self.form,
            "name": self.name,
            "stimuli": len({answer.stimulus for answer in self.answers}),
            "human": sum(people),
            "subjects": len(people),
            "published": sum(machines),
            "machines": len(machines),
            "noticed": dict(sorted((+self.noticed).items())),
            "remarks": list(self.remarks),
        }
        if self.equal_in:
            summary["equal_in"] = list(self.equal_in)
        if self.replaced:
            summary["replaced"] = list(dict.fromkeys(self.replaced))
        return summary


def refuse(problems: Sequence[Problem]) -> None:
    """Raises InputError if there are any."""
    if problems:
        raise InputError(f"has {count(len(problems), 'problem')}", problems)


def person(subject: str) -> str:
    """The agent's name of a person, in composed Unicode (NFC), so that é is one letter however it was typed."""
    if not subject.strip():
        return f"human:{UNKNOWN}"
    return f"human:{composed(subject)}"


def listed(places: Sequence[str], most: int = LINES_SHOWN) -> str:
    """The first ``most`` of some lines or names, and how many more there are: "4, 9, 12 and 7 more"."""
    text = ", ".join(places[:most])
    more = len(places) - most
    return f"{text} and {more:,} more" if more > 0 else text
