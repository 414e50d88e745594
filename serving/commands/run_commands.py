"""The commands that read and write runs: schema, status, report, view, export, import."""

import argparse

from agents.errors import printable
from serving.commands.command_line import (
    Commands,
    any_task,
    frame,
    number,
    path,
    port,
    responses,
    row_rule,
    table_columns,
)
from serving.exchange.exporting.command import FORMATS


def register(commands: Commands) -> None:
    """Add the commands."""
    _add_schema(commands)
    _add_status(commands)
    _add_report(commands)
    _add_view(commands)
    _add_export(commands)
    _add_import(commands)


def _add_schema(commands: Commands) -> None:
    summary = "print the JSON Schema of a record, or of a stimulus (a line of a set)"
    schema = commands.add("schema", _schema, summary, example="record")
    schema.add_argument("of", choices=("record", "stimulus"), help="what the schema describes")


def _add_status(commands: Commands) -> None:
    status = commands.add(
        "status",
        "serving.runs.status:print_status",
        "tell how far a run is, and what failed",
        commands.as_json,
        example="run",
    )
    status.add_argument("path", type=path, metavar="dir", help="the run folder")


def _add_report(commands: Commands) -> None:
    summary = "write a folder for a browser: all answers of runs side by side, with statistics"
    report = commands.add("report", _report, summary, example="run")
    add = report.add_argument
    add("runs", nargs="+", type=path, metavar="RUN", help="run folders")
    add("-o", "--out", type=path, metavar="DIR", help="the folder to write (default: RUN/report)")


def _add_view(commands: Commands) -> None:
    summary = "show the pages of report at an address of this machine, until Ctrl-C"
    view = commands.add("view", "serving.viewer.view:view", summary, example="run --open")
    add = view.add_argument
    add("paths", nargs="+", type=path, metavar="RUN", help="run folders, or one folder that has runs in it")
    add("--port", type=port, default=0, help="the port to listen at (default: a free one)")
    add("--open", dest="open_browser", action="store_true", help="open the page in the browser")


def _add_export(commands: Commands) -> None:
    export = commands.add(
        "export",
        "serving.exchange.exporting.command:export_run",
        "write a run's records in another format",
        example="run --format csv -o answers.csv",
    )
    add = export.add_argument
    add("path", type=path, metavar="dir", help="the run folder")
    add("--format", required=True, choices=FORMATS, help="the format to write")
    add("-o", "--out", required=True, type=path, help="the file or folder to write")
    add(
        "--sample",
        type=number,
        metavar="K",
        help="export only the sample K, from 0 (default: all samples; for turingtest 0)",
    )
    add("--include-rejected", action="store_true", help="export answers that filters rejected, too")
    add("--include-control", action="store_true", help="export answers to catch trials, too")
    add("--allow-missing", action="store_true", help="turingtest: export the other answers where some are missing")
    add("--force", action="store_true", help="replace what is at --out")


def _add_import(commands: Commands) -> None:
    importing = commands.add(
        "import",
        "serving.exchange.importing.command:import_files",
        "read answers of people, or published answers of machines, into records",
        example="words.json --task word -o people",
    )
    add = importing.add_argument
    add("paths", nargs="+", type=path, metavar="files", help="the files that hold the answers")
    add("-o", "--out", required=True, type=path, metavar="DIR", help="the run folder, new or existing")
    add("--task", type=any_task, metavar="TASK", help="the task, where the file's name does not say it")
    add("--name", help="the machine whose answers a file holds, or the two speakers A~B of a page, if it does not say")
    add(
        "--frame",
        type=frame,
        metavar="WxH",
        help="width and height in pixels of the frame (screen or window) of scanpaths, where the file does not say it",
    )
    add(
        "--fit",
        choices=("bars", "stretch"),
        help="how the picture filled that frame: bars keeps its shape, with bars beside it; stretch does not",
    )
    add(
        "--responses",
        type=responses,
        metavar="f=human,j=machine",
        help="what the keys or buttons of verdicts mean",
    )
    add(
        "--rows",
        action="append",
        type=row_rule,
        metavar="COLUMN=VALUE",
        help="read only a table's rows with this value in the column; != reads the other rows; may be repeated",
    )
    add(
        "--columns",
        type=table_columns,
        metavar="FIELD=COLUMN,…",
        help="a table's columns of other names, for the fields subject, stimulus, response, rt, …",
    )
    add("--rt", choices=("seconds", "ms"), help="the unit of times (default: told by their size)")
    add("--unnamed", action="store_true", help="take answers that name nobody, each as another person's")
    add(
        "--drop-equal",
        action="store_true",
        help="count equal rows once, and count no answer that an earlier file of the run holds",
    )


# what the commands do


def _schema(options: argparse.Namespace) -> int:
    from serving.files.terminal import print_json
    from serving.runs.json_schemas import record_schema, stimulus_schema

    return print_json(record_schema() if options.of == "record" else stimulus_schema())


def _report(options: argparse.Namespace) -> int:
    from serving.viewer.report import write_report

    print(printable(str(write_report(options.runs, options.out))))
    return 0
