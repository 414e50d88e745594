"""Records as Python objects, as tables, and as cards in a notebook. ::

run = open_run("RUN")
for record in run.of(agent="gbvs", status="ok"):
    print(record.stimulus, record.answer.fixations, record.shown().image.name)
table = run.to_pandas()
"""

from __future__ import annotations

import base64
import html
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
from pydantic import PrivateAttr, model_validator

from agents.answers import BY_TASK, ConversationAnswer, ObjectAnswer, ScanpathAnswer
from agents.errors import AnswerError
from agents.frames import as_text, lacks_fit, to_picture
from agents.images import Image
from agents.stimuli import ConversationStimulus, Stimulus, WordStimulus, as_dict, parse_row
from serving.runs.records import Record
from serving.runs.run import Run
from serving.runs.stimulus_lookup import StimulusLookup

if TYPE_CHECKING:
    import pandas
    import pyarrow

IN_A_NOTEBOOK = 24  # records that a notebook shows of a list
WIDE = 160  # characters of an answer that ``repr`` shows
PICTURE = 320  # the longer side of a picture in a notebook, in pixels
LONGEST = 2_000  # characters of a text that a notebook shows
MARK = "#ffd400"  # the colour of fixations and boxes


class TypedRecord(Record):
    """A record whose ``answer`` is an object of its task's class: ``record.answer.color`` for colour estimation.

    The other fields are those of :class:`serving.runs.records.Record`.
    """

    answer: Any
    """An object of ``agents.answers.BY_TASK[record.task]``, or None where there is no answer."""
    _shown: Callable[[], Stimulus | None] | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _typed(self) -> TypedRecord:
        if isinstance(self.answer, dict):
            self.answer = BY_TASK[self.task].model_validate(self.answer)
        return self

    def shown(self) -> Stimulus | None:
        """The stimulus that was answered, with its image where it has one; None where the run does not know it."""
        return None if self._shown is None else self._shown()

    def text(self) -> str:
        """The answer as people read it: a word, ``mug, lamp``, fixations ``x,y x,y``, a line for each message. Without
        an answer it is the status and the error: ``failed: timeout: …``."""
        match self.answer:
            case None:
                reason = "no answer" if self.error is None else f"{self.error.code}: {self.error.message}"
                return f"{self.status}: {reason}"
            case ObjectAnswer() as objects:
                text = ", ".join(objects.labels)
            case ScanpathAnswer() as path:
                text = " ".join(f"{x:g},{y:g}" for x, y in path.fixations)
            case ConversationAnswer() as conversation:
                text = "\n".join(f"{message.speaker}: {message.text}" for message in conversation.messages)
            case answer:  # its first field is a text
                text = str(getattr(answer, next(iter(BY_TASK[self.task].model_fields))))
        return text if self.status == "ok" else f"{text} ({self.status})"

    def __repr__(self) -> str:
        text = self.status if self.answer is None else repr(self.answer)
        return f"<{self.agent} of {self.stimulus!r}: {text if len(text) <= WIDE else text[:WIDE] + '…'}>"

    def _repr_html_(self) -> str:
        return records_html([self])


def typed(record: bytes | dict[str, Any], shown: Callable[[], Stimulus | None] | None = None) -> TypedRecord:
    """The record in the bytes of a line of JSON, or in the dictionary that such a line holds.

    ``shown`` returns its stimulus when :meth:`TypedRecord.shown` is called. Raises ``pydantic.ValidationError`` for
    what is no record.
    """
    if isinstance(record, bytes):
        typed_record = TypedRecord.model_validate_json(record)
    else:
        typed_record = TypedRecord.model_validate(record)
    typed_record._shown = shown
    return typed_record


class Records(list[TypedRecord]):
    """A list of records, agent by agent, each agent's in the order of the stimuli and then of the samples. ::

    records = answer(["gbvs", "center"], "stimuli.jsonl")
    records.to_pandas().groupby("agent")["stimulus"].count()
    """

    def to_arrow(self) -> pyarrow.Table:
        """A table with a row for each record, in which lists and objects keep their types. Columns that are empty in
        all rows are left out; fields of an answer are ``answer.color``, of a stimulus ``stimulus.image``. Raises
        UnavailableError without pyarrow."""
        from serving.exchange.exporting.tables import arrow_table

        pairs = []
        for record in self:
            stimulus = record.shown()
            row = {} if stimulus is None else as_dict(stimulus)
            pairs.append((record.model_dump(mode="json", by_alias=True), row))
        return arrow_table(pairs)

    def to_pandas(self) -> pandas.DataFrame:
        """The table of :meth:`to_arrow` as a DataFrame. Raises UnavailableError without pyarrow."""
        return self.to_arrow().to_pandas()

    def _repr_html_(self) -> str:
        return records_html(self[:IN_A_NOTEBOOK], len(self))


class OpenRun:
    """The records of a run folder: of each key (task, stimulus, agent, sample) the last one, agent by agent, then
    imports.

    Nothing is held in memory: each iteration, ``len`` and table reads the files again, so that a run that goes on
    grows. ``folder`` is the run.
    """

    def __init__(self, folder: Run, criteria: dict[str, str] | None = None) -> None:
        self.folder = folder
        self._stimuli = StimulusLookup(folder)
        self._criteria = criteria or {}

    def of(self, *, agent: str | None = None, task: str | None = None, status: str | None = None) -> OpenRun:
        """Only the records of this agent ("gbvs", "human:05", "published:gpt2"), task (its full name) and status ("ok",
        "rejected", "failed"), as far as they are given. Several calls narrow further."""
        given = {"agent": agent, "task": task, "status": status}
        criteria = {key: value for key, value in given.items() if value is not None}
        return OpenRun(self.folder, self._criteria | criteria)

    def __fspath__(self) -> str:
        """The run's folder, so that a run may stand where a path is wanted."""
        return str(self.folder.path)

    def _records(self) -> Iterator[dict[str, Any]]:
        for name in [*self.folder.agents(), *self.folder.imports()]:
            for record in self.folder.latest(name):
                if all(record[key] == value for key, value in self._criteria.items()):
                    yield record

    def __iter__(self) -> Iterator[TypedRecord]:
        for record in self._records():
            yield typed(record, partial(self._shown, record))

    def __len__(self) -> int:
        return sum(1 for _ in self._records())

    def to_arrow(self) -> pyarrow.Table:
        """As :meth:`Records.to_arrow`. Raises InputError for a record with a value of another type than its column."""
        from serving.exchange.exporting.tables import arrow_table

        return arrow_table([(record, self._stimuli.get(record) or {}) for record in self._records()])

    def to_pandas(self) -> pandas.DataFrame:
        """The table of :meth:`to_arrow` as a DataFrame. Raises UnavailableError without pyarrow."""
        return self.to_arrow().to_pandas()

    def _shown(self, record: dict[str, Any]) -> Stimulus | None:
        row = self._stimuli.get(record)
        return None if row is None else parse_row(orjson.dumps(row), root=self.folder.root)

    def _repr_html_(self) -> str:
        return records_html([*islice(self, IN_A_NOTEBOOK)], len(self))


def open_run(path: Path | str) -> OpenRun:
    """The records of the run folder ``path``. Raises InputError where there is none, or a damaged one."""
    return OpenRun(Run(path))


# HTML for notebooks: the picture with the answer drawn on it, or the text. No script, no request.


def records_html(records: Sequence[TypedRecord], total: int | None = None) -> str:
    """HTML with a card for each record, and how many more there are of ``total`` (None: no more). All texts are
    escaped."""
    left = (total or len(records)) - len(records)
    more = f'<p style="flex-basis:100%">… and {left:,} more</p>' if left > 0 else ""
    cards = "".join(_card(record) for record in records)
    return f'<div style="display:flex;flex-wrap:wrap;gap:12px;align-items:flex-start">{cards}{more}</div>'


def _card(record: TypedRecord) -> str:
    status = "" if record.status == "ok" else f" · {record.status}"
    head = f"<b>{_esc(record.agent)}</b> · {_esc(record.stimulus)}{status}"
    stimulus = record.shown()
    cue = f"{_esc(stimulus.cue)} → " if isinstance(stimulus, WordStimulus) else ""
    is_path = isinstance(record.answer, ScanpathAnswer)
    text = f"{len(record.answer.fixations)} fixations" if is_path else _esc(record.text()).replace("\n", "<br>")
    return (
        f'<figure style="margin:0;max-width:{PICTURE}px;overflow-wrap:anywhere">{_picture(record, stimulus)}'
        f'<figcaption><small style="opacity:.7">{head}</small><br>{cue}{text}</figcaption></figure>'
    )


def _picture(record: TypedRecord, stimulus: Stimulus | None) -> str:
    from serving.pages.thumbnails import thumbnail

    image = None if isinstance(stimulus, ConversationStimulus) else getattr(stimulus, "image", None)
    if not isinstance(image, Image):
        return ""
    try:
        small = thumbnail(image, 3 * PICTURE // 2)  # more pixels for dense screens
        header = image.header()
    except (AnswerError, MemoryError):
        return ""
    width = header.width
    height = header.height
    answer = record.answer
    note = ""
    if isinstance(answer, ScanpathAnswer):
        answer, note = _on_picture(answer, (width, height))
    scale = PICTURE / max(width, height)
    source = f"data:image/jpeg;base64,{base64.b64encode(small).decode()}"
    size = f'width="{width * scale:.0f}" height="{height * scale:.0f}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {width} {height}" role="img">'
        f'<image href="{source}" width="{width}" height="{height}" preserveAspectRatio="none"/>'
        f"{_marks(answer, max(width, height) / PICTURE)}</svg>{note}"
    )


def _on_picture(answer: ScanpathAnswer, size: tuple[int, int]) -> tuple[ScanpathAnswer | None, str]:
    """The path in pixels of its picture of ``size`` (None where its frame has no pixels), and a note in HTML, or ""."""
    if min(answer.frame) < 1:
        return None, ""
    fit = answer.fit
    note = ""
    if lacks_fit(answer.frame, fit, size):
        fit = "stretch"
        note = f"<br><small>drawn as if the picture had been stretched to {as_text(answer.frame)}: not said</small>"
    points = to_picture(answer.fixations, answer.frame, fit, size)
    return answer.model_copy(update={"fixations": points, "frame": [*size]}), note


def _marks(answer: Any, unit: float) -> str:
    line = f'fill="none" stroke="{MARK}" stroke-width="{2 * unit:g}"'
    text = f'font-size="{10 * unit:g}" font-family="sans-serif"'
    marks = ""
    if isinstance(answer, ScanpathAnswer):
        marks = f'<polyline points="{" ".join(f"{x:g},{y:g}" for x, y in answer.fixations)}" {line}/>'
        for number, (x, y) in enumerate(answer.fixations, start=1):
            marks += f'<circle cx="{x:g}" cy="{y:g}" r="{8 * unit:g}" fill="{MARK}" stroke="black"/>'
            marks += f'<text x="{x:g}" y="{y + 3.5 * unit:g}" {text} text-anchor="middle">{number}</text>'
    elif isinstance(answer, ObjectAnswer):
        for label, (x, y, width, height) in zip(answer.labels, answer.boxes or (), strict=False):
            marks += f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" {line}/>'
            marks += f'<text x="{x + 4 * unit:g}" y="{y + 12 * unit:g}" {text} fill="{MARK}">{_esc(label)}</text>'
    return marks


def _esc(text: str) -> str:
    cut = text if len(text) <= LONGEST else text[:LONGEST] + "…"
    return html.escape("".join(char if char.isprintable() or char == "\n" else "\ufffd" for char in cut))
