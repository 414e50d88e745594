"""What every reader of answers shares: the options of ``turinglike import``, and a file with the answers read from
it."""

import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from agents.errors import InputError, Problem
from agents.frames import Fit
from agents.stimuli import Task
from serving.files.words import count
from serving.runs.records import UNKNOWN, people_record

LINES_SHOWN = 8  # of the lines that a remark names

Size = tuple[float, float]  # width, height
TimeUnit = Literal["seconds", "ms"]


@dataclass(frozen=True, slots=True)
class RowRule:
    """A rule of ``--rows``: the rows whose cell in ``column`` is (or, ``unlike``, is not) ``value``."""

    column: str
    value: str
    unlike: bool = False

    def __str__(self) -> str:
        return f"{self.column}{'!=' if self.unlike else '='}{self.value}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions:
    """The options of ``turinglike import``, which hold for all files of a command.

    ``task`` is needed where the file does not say it. ``name`` is the machine whose answers a file holds, or a page's
    two speakers ``A~B``. ``frame`` (width, height, in pixels) is what scanpaths are in, and ``fit`` how the picture
    filled it. ``responses`` maps keys or buttons, in small letters, to ``human`` or ``machine``. ``rows`` are rules
    that a table's rows must obey. ``columns`` gives the column of a field (``subject``, ``stimulus``, ``response``,
    ``rt``, …). ``rt`` is the unit of times. ``unnamed`` takes answers that name no person, each as another person's.
    ``drop_equal`` counts rows that are equal in all cells, and answers that an earlier file holds, once.
    """

    task: str | None = None
    name: str | None = None
    frame: Size | None = None
    fit: Fit | None = None
    responses: Mapping[str, str] = field(default_factory=dict)
    rows: Sequence[RowRule] = ()
    columns: Mapping[str, str] = field(default_factory=dict)
    rt: TimeUnit | None = None
    unnamed: bool = False
    drop_equal: bool = False


@dataclass(slots=True)
class Source:
    """A file and the answers in it.

    ``noticed`` counts by reason what was left out or is odd; ``remarks`` are sentences about the whole file, such as
    the columns that nobody read. Both are printed and stand in ``import.json``. ``notes`` are sentences about earlier
    imports, which are printed alone. ``used`` names the options that had a
    meaning for this file, so that none is ignored in silence. ``same_as`` is a file with the same bytes that was
    imported before.
    """

    path: Path
    sha256: str
    task: Task = "conversation"
    form: str = "submission"
    name: str | None = None
    answers: list[dict[str, Any]] = field(default_factory=list)
    noticed: Counter[str] = field(default_factory=Counter)
    remarks: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    used: set[str] = field(default_factory=set)
    same_as: str | None = None

    def add(self, stimulus: str, agent: str, raw: Any, answer: Mapping[str, Any] | None) -> None:
        """Add an answer of ``agent`` ("human:05", "published:gpt2"); ``raw`` is the response as it stood."""
        kind = "published" if agent.startswith("published:") else "human"
        stimulus = unicodedata.normalize("NFC", stimulus)  # as people's names are: both forms look alike
        self.answers.append({"stimulus": stimulus, "agent": agent, "kind": kind, "answer": answer, "raw": raw})

    def records(self, run: str) -> Iterator[dict[str, Any]]:
        """The records of the answers in the run of that id."""
        provenance = {"digest": self.sha256, "checkpoint": None, "revision": None}
        for answer in self.answers:
            yield people_record(run, {**answer, "task": self.task, "provenance": provenance})

    def summary(self) -> dict[str, Any]:
        """The file's entry in ``import.json``."""
        agents = Counter((answer["kind"], answer["agent"]) for answer in self.answers)
        people = [number for (kind, _), number in agents.items() if kind == "human"]
        machines = [number for (kind, _), number in agents.items() if kind == "published"]
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
            "remarks": list(self.remarks),
        }


def refuse(problems: Sequence[Problem]) -> None:
    """Raises InputError if there are any."""
    if problems:
        raise InputError(f"has {count(len(problems), 'problem')}", problems)


def person(subject: str) -> str:
    """The agent's name of a person, in composed Unicode (NFC), so that é is one letter however it was typed."""
    if not subject.strip():
        return f"human:{UNKNOWN}"
    return f"human:{unicodedata.normalize('NFC', subject)}"


def listed(places: Sequence[str], most: int = LINES_SHOWN) -> str:
    """The first ``most`` of some lines or names, and how many more there are: "4, 9, 12 and 7 more"."""
    text = ", ".join(places[:most])
    more = len(places) - most
    return f"{text} and {more:,} more" if more > 0 else text
