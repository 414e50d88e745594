"""Text for pages: every word that a model, a person or a file said passes through here on its way into HTML."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

LIMIT = 2_000  # characters of one text that are shown
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def esc(value: object, limit: int = LIMIT) -> str:
    """``value`` as HTML text, safe inside an element and inside a quoted attribute, cut after ``limit`` characters."""
    text = value if isinstance(value, str) else str(value)
    rest = len(text) - limit
    if rest > 0:
        text = text[:limit]
    text = html.escape(_UNPRINTABLE.sub("\ufffd", text), quote=True)
    return f"{text}… ({rest:,} more characters)" if rest > 0 else text


def details(summary: str, body: str) -> str:
    """A part that is folded away. ``summary`` and ``body`` are HTML already."""
    return f"<details><summary>{summary}</summary>{body}</details>"


def table(head: Iterable[str], rows: Iterable[Iterable[str]], caption: str) -> str:
    """A table of HTML cells; the first cell of each row is its header. On a narrow screen each row becomes a block of
    "column: cell" lines (the roles keep it a table for a screen reader when its cells are no longer laid out as one).
    """
    names = [esc(name) for name in head]
    body = []
    for row in rows:
        first, *others = row
        cells = "".join(
            f'<td role="cell" data-column="{name}">{cell}</td>' for name, cell in zip(names[1:], others, strict=True)
        )
        body.append(f'<tr role="row"><th role="rowheader" scope="row">{first}</th>{cells}</tr>')
    top = "".join(f'<th role="columnheader" scope="col">{name}</th>' for name in names)
    label = esc(caption)
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{label}"><table role="table">'
        f'<caption>{label}</caption><thead role="rowgroup"><tr role="row">{top}</tr></thead>'
        f'<tbody role="rowgroup">{"".join(body)}</tbody></table></div>'
    )


def count(number: int, one: str, many: str | None = None) -> str:
    """ "1 picture", "1,200 pictures"."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
