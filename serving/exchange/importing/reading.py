"""Which reader a file gets, by its ending and its content."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from agents.catalogue import NAME
from agents.errors import InputError, Problem
from serving.exchange.importing.inspect_logs import read_inspect_log
from serving.exchange.importing.json_forms import add_json, add_page
from serving.exchange.importing.languages import check_color_words, tell_language, translate_colors
from serving.exchange.importing.own_export import add_own_export, is_own_export
from serving.exchange.importing.people_table import table_of_file
from serving.exchange.importing.sheets import choose_sheet
from serving.exchange.importing.source import ImportOptions, Source, with_composed_names
from serving.exchange.importing.tables import add_rows, add_table
from serving.files.foreign_files import read_bytes
from serving.files.words import count
from serving.files.workbooks import WORKBOOKS

ASC_OR_EDF = (
    "is a recording of EyeLink; in its Data Viewer make a Fixation Report (Analysis, Reports) with the picture's "
    "variable, RECORDING_SESSION_LABEL, CURRENT_FIX_INDEX, CURRENT_FIX_X, CURRENT_FIX_Y and CURRENT_FIX_DURATION, and "
    "import that"
)
OF_OTHER_PROGRAMS = {  # what is wrong with files of other forms, and what to do, by their endings
    ".parquet": "is Parquet, which is not imported; export the run with --format csv, or give its folder",
    ".sav": "is a file of SPSS; save it as CSV in UTF-8, with commas between the cells",
    ".asc": ASC_OR_EDF,
    ".edf": ASC_OR_EDF,
    ".psydat": "is PsychoPy's own file; import the .csv beside it",
    ".zip": "is an archive; unpack it and import the files in it",
}
OF_JSON = (".json", ".jsonl", ".ndjson", ".eval")
TABLES = (".csv", ".tsv", ".tab", ".txt", ".xpd", *WORKBOOKS)  # a text begins otherwise than JSON does


def read_all(paths: Sequence[Path | str], options: ImportOptions) -> list[Source]:
    """The files' answers. Raises InputError with the problems of all files."""
    name = options.name
    if name is not None and not (name.count("~") < 2 and all(map(NAME.fullmatch, name.split("~")))):
        raise InputError(f"--name {name!r}: must be of the form [a-z0-9][a-z0-9._-]*, for two speakers A~B")
    if options.responses and options.task != "judgement":
        raise InputError("--responses are for verdicts: give --task judgement too")
    check_color_words(options)
    sources: list[Source] = []
    problems: list[Problem] = []
    for path in dict.fromkeys(map(Path, paths)):
        try:
            sources.append(read_source(path, options))
        except InputError as error:
            problems += error.problems or [Problem(str(path), None, None, str(error))]
    if problems:
        raise InputError(f"nothing was imported: {count(len(problems), 'problem')}", problems)
    if name is not None and not any(source.name == name for source in sources):
        raise InputError("--name is for files that do not say whose answers they contain; these files say it")
    used = set().union(*(source.used for source in sources))
    for option, is_given in (
        ("rows", bool(options.rows)),
        ("columns", bool(options.columns)),
        ("wide", bool(options.wide)),
        ("form", options.form is not None),
    ):
        if is_given and option not in used:
            raise InputError(f"--{option} is for tables, and these files are no tables")
    return sources


def read_source(path: Path, options: ImportOptions | None = None) -> Source:
    """The answers in a file of any form, which its ending and its content tell. Raises InputError, with a problem for
    each fault of a row; also where no answer is left."""
    options = with_composed_names(options or ImportOptions())
    suffix = path.suffix.lower()
    is_page = suffix in (".html", ".htm")
    if options.name is not None and "~" not in options.name and is_page:
        raise InputError("is a page of two speakers: --name A~B")
    data = read_bytes(path)
    is_table = suffix in TABLES and data[:100].lstrip()[:1] not in (b"[", b"{")
    if suffix in OF_OTHER_PROGRAMS:
        raise InputError(OF_OTHER_PROGRAMS[suffix])
    if not (is_table or is_page or suffix in OF_JSON) and data[:100].lstrip()[:1] not in (b"[", b"{"):
        raise InputError(
            f"{suffix or 'a name without an ending'} is no kind of file that import knows: tables are "
            f"{', '.join(TABLES)}; other files are JSON ({', '.join(OF_JSON)}) or pages (.html)"
        )
    source = Source(path.resolve(), hashlib.sha256(data).hexdigest())
    if is_page:
        add_page(source, data, options)
    elif suffix == ".csv" and is_own_export(data):
        add_own_export(source, data, options)
    elif is_table:
        table = table_of_file(source, data, options.columns, lambda headers: choose_sheet(headers, options))
        del data  # of a large table nothing is held twice
        try:
            add_table(source, table, options)
        except InputError as error:
            if error.problems or not table.other_sheets:
                raise
            raise InputError(f"{error}. {table.other_sheets}") from None
    elif suffix == ".eval":
        add_rows(source, [read_inspect_log(data)], options)
    else:
        add_json(source, data, options)
    if options.name is not None and ("~" in options.name) != (source.task == "conversation"):
        is_talk = source.task == "conversation"
        raise InputError("holds conversations: --name A~B" if is_talk else "holds no conversations: --name A")
    if not source.answers:
        raise InputError("contains no answers that can be imported")
    if options.color_words is not None and source.task == "color_estimation":
        translate_colors(source, options.color_words)
    tell_language(source)
    return source
