"""What every reader of answers shares: the options of ``turinglike import``, and a file with the answers read from
it."""

import stat
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from agents.attention.frames import Fit
from agents.errors import InputError, Problem
from agents.stimuli import Task
from serving.runs.records import people_record
from serving.runs.row_problems import count, strict_json
from serving.scheduling.recovery import clean

SHORT: dict[str, Task] = {  # the published benchmark's names of tasks
    "caption": "image_captioning",
    "word": "word_association",
    "color": "color_estimation",
    "object": "object_detection",
    "fv": "attention_prediction",
}
UNKNOWN = "unknown"  # in "human:unknown": a person without a name
LARGEST = 1 << 30  # bytes of a file, which is held in memory
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


def read_bytes(path: Path) -> bytes:
    """A file's bytes. Raises InputError for a device, a pipe, and more than 1 GiB."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise InputError("is not a plain file")
        if status.st_size > LARGEST:
            raise InputError(f"has {status.st_size / 2**30:,.1f} GiB; at most {LARGEST >> 30} GiB is read")
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}") from error


def parse_json(data: bytes) -> Any:
    """Strict JSON with lone surrogates replaced. Raises InputError."""
    try:
        return clean(strict_json(data))
    except ValueError as error:
        raise InputError(f"is not JSON in UTF-8: {error}") from None


def task_of_file(path: Path, task: str | None) -> Task:
    """``task``, else the task in the file's name. Raises InputError where neither says it, and for conversations, of
    which no table and no benchmark's file holds any."""
    known: dict[str, Task] = {**SHORT, "attention": "attention_prediction"}
    known |= {name: name for name in SHORT.values()}
    name = (task or path.stem).lower()
    if name in known:
        return known[name]
    names = ", ".join([*SHORT, "attention"] if task is None else ["caption", "word", "color", "object", "attention"])
    if task is None:
        names += ", judgement"
        raise InputError(f"the file's name, {path.stem!r}, says no task; say with --task which: {names}")
    raise InputError(
        f"holds no {task} in a form that is read: a table or a benchmark's file has answers to {names}. Conversations "
        "are read from Topical-Chat's JSON and from pages, `import page.html --name A~B`"
    )


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
