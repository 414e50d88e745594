"""Records as Python objects and tables."""

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

IN_A_NOTEBOOK = 24  # records that a list of them shows
WIDE = 160  # characters of an answer in a line of text
PICTURE = 320  # pixels of a picture's longer side in a notebook
LONGEST = 2_000  # characters of a text in a notebook
MARK = "#ffd400"  # of fixations and boxes


class TypedRecord(Record):
    """A record with a typed ``answer`` (``agents.answers.BY_TASK``) or None."""

    answer: Any
    _shown: Callable[[], Stimulus | None] | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _typed(self) -> TypedRecord:
        if isinstance(self.answer, dict):
            self.answer = BY_TASK[self.task].model_validate(self.answer)
        return self

    def shown(self) -> Stimulus | None:
        """The stimulus, where known."""
        return None if self._shown is None else self._shown()

    def text(self) -> str:
        """The answer for people, or why there is none."""
        match self.answer:
            case None:
                reason = "no answer" if self.error is None else f"{self.error.code}: {self.error.message}"
                return f"{self.status}: {reason}"
            case ObjectAnswer() as objects:
                text = ", ".join(objects.labels)
            case ScanpathAnswer() as path:
                text = " ".join(f"{x:g},{y:g}" for x, y in path.fixations)
            case ConversationAnswer() as talk:
                text = "\n".join(f"{message.speaker}: {message.text}" for message in talk.messages)
            case answer:  # its first field is a text
                text = str(getattr(answer, next(iter(BY_TASK[self.task].model_fields))))
        return text if self.status == "ok" else f"{text} ({self.status})"

    def __repr__(self) -> str:
        text = self.status if self.answer is None else repr(self.answer)
        return f"<{self.agent} of {self.stimulus!r}: {text if len(text) <= WIDE else text[:WIDE] + '…'}>"

    def _repr_html_(self) -> str:
        return records_html([self])


def typed(record: bytes | dict[str, Any], shown: Callable[[], Stimulus | None] | None = None) -> TypedRecord:
    """A record from JSON; ``shown`` returns its stimulus. Raises ``pydantic.ValidationError``."""
    load = TypedRecord.model_validate_json if isinstance(record, bytes) else TypedRecord.model_validate
    typed_record = load(record)  # type: ignore[arg-type]
    typed_record._shown = shown
    return typed_record


class Records(list[TypedRecord]):
    """Records in the order of the request."""

    def to_arrow(self) -> pyarrow.Table:
        """One row per record, nested values typed. Raises UnavailableError without pyarrow."""
        from serving.exchange.exporting.tables import arrow_table

        pairs = []
        for record in self:
            stimulus = record.shown()
            row = {} if stimulus is None else as_dict(stimulus)
            pairs.append((record.model_dump(mode="json", by_alias=True), row))
        return arrow_table(pairs)

    def to_pandas(self) -> pandas.DataFrame:
        """:meth:`to_arrow` in pandas."""
        return self.to_arrow().to_pandas()

    def _repr_html_(self) -> str:
        return records_html(self[:IN_A_NOTEBOOK], len(self))


class OpenRun:
    """A run's latest record of each key, by agent, imports last; read at each iteration."""

    def __init__(self, folder: Run, chosen: dict[str, str] | None = None) -> None:
        self.folder = folder
        self._stimuli = StimulusLookup(folder)
        self._chosen = chosen or {}

    def of(self, *, agent: str | None = None, task: str | None = None, status: str | None = None) -> OpenRun:
        """The records of this agent, task, status."""
        criteria = {"agent": agent, "task": task, "status": status}
        return OpenRun(self.folder, self._chosen | {key: value for key, value in criteria.items() if value is not None})

    def _rows(self) -> Iterator[dict[str, Any]]:
        for name in [*self.folder.agents(), *self.folder.imports()]:
            for record in self.folder.latest(name):
                if all(record[key] == value for key, value in self._chosen.items()):
                    yield record

    def __iter__(self) -> Iterator[TypedRecord]:
        for record in self._rows():
            yield typed(record, partial(self._shown, record))

    def __len__(self) -> int:
        return sum(1 for _ in self._rows())

    def to_arrow(self) -> pyarrow.Table:
        """As :meth:`Records.to_arrow`; raises InputError for an unfit record."""
        from serving.exchange.exporting.tables import arrow_table

        return arrow_table([(record, self._stimuli.get(record) or {}) for record in self._rows()])

    def to_pandas(self) -> pandas.DataFrame:
        """:meth:`to_arrow` in pandas."""
        return self.to_arrow().to_pandas()

    def _shown(self, record: dict[str, Any]) -> Stimulus | None:
        row = self._stimuli.get(record)
        return None if row is None else parse_row(orjson.dumps(row), root=self.folder.root)

    def _repr_html_(self) -> str:
        return records_html([*islice(self, IN_A_NOTEBOOK)], len(self))


def open_run(path: Path | str) -> OpenRun:
    """The run in ``path``. Raises InputError if missing or damaged."""
    return OpenRun(Run(path))


# HTML for notebooks: the picture with the answer drawn on it, or the text. No script, no request.


def records_html(records: Sequence[TypedRecord], total: int | None = None) -> str:
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
    told = ""
    if isinstance(answer, ScanpathAnswer):
        answer, told = _on_picture(answer, (width, height))
    scale = PICTURE / max(width, height)
    source = f"data:image/jpeg;base64,{base64.b64encode(small).decode()}"
    size = f'width="{width * scale:.0f}" height="{height * scale:.0f}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {width} {height}" role="img">'
        f'<image href="{source}" width="{width}" height="{height}" preserveAspectRatio="none"/>'
        f"{_marks(answer, max(width, height) / PICTURE)}</svg>{told}"
    )


def _on_picture(answer: ScanpathAnswer, size: tuple[int, int]) -> tuple[ScanpathAnswer | None, str]:
    """The path in pixels of its picture, and what a reader must know; None of a frame without pixels."""
    if min(answer.frame) < 1:
        return None, ""
    fit = answer.fit
    told = ""
    if lacks_fit(answer.frame, fit, size):
        fit = "stretch"
        told = f"<br><small>drawn as if the picture had been stretched to {as_text(answer.frame)}: not said</small>"
    points = to_picture(answer.fixations, answer.frame, fit, size)
    return answer.model_copy(update={"fixations": points, "frame": [*size]}), told


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
