"""Records as HTML for a notebook: the picture with what was answered on it, or the text. No script, no request."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from agents.answers import BY_TASK, ColorAnswer, ConversationAnswer, ObjectAnswer, ScanpathAnswer
from agents.errors import AnswerError
from agents.images import Image
from agents.stimuli import ConversationStimulus, WordStimulus

if TYPE_CHECKING:
    from serving.typed_records import TypedRecord

WIDE = 320  # pixels of a picture's longer side
LONGEST = 2_000  # characters of one text
FIRST, LAST = "#ffd400", "#ff3b30"  # of a scanpath's fixations; those between are white


def records_html(records: Sequence[TypedRecord], total: int | None = None) -> str:
    """Records beside each other; ``total`` is how many there are, where these are the first."""
    left = (total or len(records)) - len(records)
    more = f'<p style="flex-basis:100%">… and {left:,} more</p>' if left > 0 else ""
    cards = "".join(_card(record) for record in records)
    return f'<div style="display:flex;flex-wrap:wrap;gap:12px;align-items:flex-start">{cards}{more}</div>'


def _card(record: TypedRecord) -> str:
    status = "" if record.status == "ok" else f" · {record.status}"
    head = f"<b>{_esc(record.agent)}</b> · {_esc(record.stimulus)}{status}"
    return (
        f'<figure style="margin:0;max-width:{WIDE}px;overflow-wrap:anywhere">{_picture(record)}'
        f'<figcaption><small style="opacity:.7">{head}</small><br>{_said(record)}</figcaption></figure>'
    )


def _said(record: TypedRecord) -> str:
    """What was answered, in words."""
    if record.error is not None and record.answer is None:
        return f"<code>{_esc(record.error.code)}</code> {_esc(record.error.message)}"
    match record.answer:
        case ColorAnswer() as color:
            swatches = [] if color.palette is None else [tuple(one.rgb) for one in color.palette]
            return f"{_esc(color.color)}<br>{''.join(map(_swatch, swatches))}"
        case ObjectAnswer() as objects:
            return _esc(", ".join(objects.labels))
        case ScanpathAnswer() as path:
            return f"{len(path.fixations)} fixations"
        case ConversationAnswer() as talk:
            return "".join(
                f"<p style='margin:2px 0'><b>{_esc(one.speaker)}</b> {_esc(one.text)}</p>" for one in talk.messages
            )
        case None:
            return ""
        case answer:  # one text, which is the first field of the other answers
            text = _esc(str(getattr(answer, next(iter(BY_TASK[record.task].model_fields)))))
            shown = record.shown()
            return f"{_esc(shown.cue)} → {text}" if isinstance(shown, WordStimulus) else text


def _swatch(rgb: tuple[int, ...]) -> str:
    return f'<span style="display:inline-block;width:22px;height:14px;background:rgb{rgb}"></span>'


def _picture(record: TypedRecord) -> str:
    """The picture that was shown, with a scanpath or boxes on it; empty where there is none to be had."""
    shown = record.shown()
    image = None if shown is None or isinstance(shown, ConversationStimulus) else getattr(shown, "image", None)
    if not isinstance(image, Image):
        return ""
    try:
        source, width, height = _thumbnail(image)
    except (AnswerError, MemoryError):
        return ""
    across, down = width, height
    if isinstance(record.answer, ScanpathAnswer):  # drawn in its own frame, whatever the picture's size
        across, down = record.answer.frame
    name = _esc(record.stimulus)
    scale = WIDE / max(width, height)
    size = f'width="{width * scale:.0f}" height="{height * scale:.0f}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {across} {down}" role="img" aria-label="{name}">'
        f'<image href="{source}" width="{across}" height="{down}" preserveAspectRatio="none"/>'
        f"{_marks(record.answer, max(across, down) / WIDE)}</svg>"
    )


def _thumbnail(image: Image) -> tuple[str, int, int]:
    """The picture as a data address, small, and its own width and height. Raises ImageError and MemoryError."""
    from PIL import Image as PILImage

    small = PILImage.fromarray(image.decode())
    width, height = small.size
    small.thumbnail((3 * WIDE // 2, 3 * WIDE // 2))  # some more pixels, for screens that have them
    buffer = io.BytesIO()
    small.save(buffer, "JPEG", quality=75)
    return f"data:image/jpeg;base64,{base64.b64encode(buffer.getvalue()).decode()}", width, height


def _marks(answer: Any, unit: float) -> str:
    """A scanpath, or boxes with their labels; ``unit`` is a pixel of the screen."""
    if isinstance(answer, ScanpathAnswer):
        points = answer.fixations
        line = " ".join(f"{x:g},{y:g}" for x, y in points)
        found = f'<polyline points="{line}" fill="none" stroke="white" stroke-width="{2 * unit:g}" opacity=".8"/>'
        for number, (x, y) in enumerate(points, start=1):
            color = FIRST if number == 1 else LAST if number == len(points) else "white"
            found += f'<circle cx="{x:g}" cy="{y:g}" r="{8 * unit:g}" fill="{color}" stroke="black" opacity=".85"/>'
            found += _label(x, y + 3.5 * unit, str(number), unit, anchor="middle", fill="black")
        return found
    found = ""
    if isinstance(answer, ObjectAnswer):
        for label, (x, y, width, height) in zip(answer.labels, answer.boxes or (), strict=False):
            place = f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"'
            found += f'<rect {place} fill="none" stroke="{FIRST}" stroke-width="{2 * unit:g}"/>'
            found += _label(x + 4 * unit, y + 12 * unit, label, unit, anchor="start", fill="black", halo=FIRST)
    return found


def _label(x: float, y: float, text: str, unit: float, *, anchor: str, fill: str, halo: str = "none") -> str:
    return (
        f'<text x="{x:g}" y="{y:g}" font-size="{10 * unit:g}" font-family="sans-serif" text-anchor="{anchor}" '
        f'fill="{fill}" stroke="{halo}" stroke-width="{3 * unit:g}" paint-order="stroke">{_esc(text)}</text>'
    )


def _esc(text: str) -> str:
    cut = text if len(text) <= LONGEST else text[:LONGEST] + "…"
    return html.escape("".join(one if one.isprintable() or one == "\n" else "\ufffd" for one in cut))
