"""Which sheet of a workbook is the table of people's answers: the first is often a page of remarks on the others."""

import unicodedata
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from agents.errors import InputError
from serving.exchange.importing.form_files import absent_columns, recognised
from serving.exchange.importing.json_columns import inside
from serving.exchange.importing.source import ImportOptions, listed
from serving.exchange.importing.table_columns import (
    ACROSS,
    JUDGES,
    PARTICIPANTS,
    RESPONSES,
    STIMULI,
    SUBMISSIONS,
    TRIALS,
    Columns,
)
from serving.files.words import count, shown


def choose_sheet(headers: Mapping[str, Sequence[str]], options: ImportOptions) -> str:
    """The name of the sheet to read, of those by name with their headers.

    It is that of ``--sheet``; else the only one whose columns fit the other options; else the only one with columns of
    known names; else the first. Raises InputError where several fit, or none has the name.
    """
    names = listed([shown(name) for name in headers])
    if options.sheet is not None:
        wanted = unicodedata.normalize("NFC", options.sheet.strip())
        for name in headers:
            if unicodedata.normalize("NFC", name.strip()) == wanted:
                return name
        raise InputError(
            f"--sheet {shown(options.sheet)}: there is no such sheet with a filled cell; there are {names}"
        )
    fitting = [name for name, header in headers.items() if _fits_what_was_said(header, options)]
    if not fitting:
        fitting = [name for name, header in headers.items() if _has_known_columns(header)]
    if len(fitting) > 1:
        raise InputError(
            f"is a workbook with {count(len(fitting), 'sheet')} that may be the table: "
            f"{listed([shown(name) for name in fitting])}. Say which with --sheet {shown(fitting[0])!r}; several are "
            "imported one after the other, each saved as a file of its own"
        )
    return fitting[0] if fitting else next(iter(headers))


def _fits_what_was_said(header: Sequence[str], options: ImportOptions) -> bool:
    """Whether a sheet with this header has the columns of ``--form``, ``--columns`` or ``--wide``; False without
    any."""
    if options.form is not None and options.form.recognised_by:
        return not absent_columns(options.form, header)
    if options.columns:
        parts = [part.strip() for column in options.columns.values() for part in column.split("+")]
        return all(part in header or "*" in part or inside(header, part) is not None for part in parts)
    wide = [pattern for pattern in options.wide if pattern != "*"]
    return bool(wide) and all(any(fnmatchcase(name, pattern) for name in header) for pattern in wide)


def _has_known_columns(header: Sequence[str]) -> bool:
    """Whether a header is a known program's, or has known names of a stimulus, and of an answer or a person."""
    if recognised(header) is not None:
        return True
    columns = Columns(header)
    answers = [name for names in RESPONSES.values() for name in names]
    stimuli = columns.named((*STIMULI, *TRIALS))
    others = columns.named(("response", *answers, *ACROSS, *PARTICIPANTS, *JUDGES, *SUBMISSIONS))
    return bool(stimuli) and any(name not in stimuli for name in others)
