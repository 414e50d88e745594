"""Text for the report: every word that a model, a person or a file said passes through here on its way into HTML."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping
from typing import Any

import orjson

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


def said(value: object, limit: int = LIMIT) -> str:
    """What somebody said, kept apart from the writing direction of the text around it."""
    return f'<bdi class="said">{esc(value, limit)}</bdi>'


def code(value: object, limit: int = 300) -> str:
    return f"<code>{esc(value, limit)}</code>"


def as_json(value: object, limit: int = LIMIT) -> str:
    """Any JSON value in a block of its own; strings as they are."""
    if isinstance(value, str):
        text = value
    else:
        text = orjson.dumps(value, default=str, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS).decode()
    return f"<pre>{esc(text, limit)}</pre>"


def details(summary: str, body: str) -> str:
    """A part that is folded away. ``summary`` and ``body`` are HTML already."""
    return f"<details><summary>{summary}</summary>{body}</details>"


def pairs(rows: Iterable[tuple[str, str]]) -> str:
    """A definition list of (plain name, HTML)."""
    return "<dl>" + "".join(f"<div><dt>{esc(name)}</dt><dd>{body}</dd></div>" for name, body in rows) + "</dl>"


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


def plain_fields(row: Mapping[str, Any], skip: Iterable[str]) -> list[tuple[str, str]]:
    """The fields of ``row`` that are not in ``skip`` and not empty, for :func:`pairs`."""
    skipped = set(skip)
    shown = []
    for name, value in row.items():
        if name in skipped or value is None or value in ("", [], {}):
            continue
        text = value if isinstance(value, str) else orjson.dumps(value, default=str).decode()
        shown.append((name.replace("_", " "), said(text, 600)))
    return shown


def count(number: int, one: str, many: str | None = None) -> str:
    """ "1 picture", "1,200 pictures"."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def share(part: float, whole: float) -> str:
    """ "48 %"; "<1 %" for what would round to nothing; a dash where there is no whole."""
    if not whole:
        return "–"
    percent = 100 * part / whole
    return "&lt;1 %" if 0 < percent < 0.5 else f"{percent:.0f} %"
