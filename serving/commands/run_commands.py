"""The commands that read and write runs: schema, status, report, view, export, import; and history."""

import argparse

from agents.errors import printable
from serving.commands.command_line import (
    Commands,
    any_task,
    frame,
    minutes,
    number,
    path,
    port,
    responses,
    rows_rule,
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
    _add_history(commands)


def _add_schema(commands: Commands) -> None:
    summary = "print the JSON Schema of a record (an answer), or of a stimulus (a line of a stimulus set)"
    schema = commands.add("schema", _schema, summary, example="record")
    schema.add_argument("of", choices=("record", "stimulus"), help="what the printed schema describes")


def _add_status(commands: Commands) -> None:
    status = commands.add(
        "status",
        "serving.runs.status:print_status",
        "print how many answers a run has, and which answers failed",
        commands.as_json,
        example="run",
        doing="reading the records",
    )
    status.add_argument("path", type=path, metavar="RUN", help="the run folder")


def _add_report(commands: Commands) -> None:
    summary = "write web pages with all answers of one or several runs side by side, and with statistics"
    report = commands.add("report", _report, summary, example="run", doing="writing the report")
    add = report.add_argument
    add("runs", nargs="+", type=path, metavar="RUN", help="run folders")
    add(
        "-o",
        "--out",
        type=path,
        metavar="PATH",
        help="the folder or file to write (default: `report`, or with --single-file `report.html`, in the first RUN)",
    )
    add("--single-file", action="store_true", help="write one HTML file, with all pictures inside, instead of a folder")


def _add_view(commands: Commands) -> None:
    summary = "show the web pages of `report` in a browser, until Ctrl-C ends the command"
    view = commands.add("view", "serving.viewer.view:view", summary, example="run --open")
    add = view.add_argument
    add("paths", nargs="+", type=path, metavar="RUN", help="run folders, or one folder that contains run folders")
    add("--port", type=port, default=0, help="the port of the web pages (default: a free port)")
    add("--open", dest="open_browser", action="store_true", help="open the first page in the browser")


def _add_export(commands: Commands) -> None:
    export = commands.add(
        "export",
        "serving.exchange.exporting.command:export_run",
        "write the records of a run as a file for other programs, such as a CSV table",
        example="run --format csv -o answers.csv",
        doing="writing the export",
    )
    add = export.add_argument
    add("path", type=path, metavar="RUN", help="the run folder")
    add("--format", required=True, choices=FORMATS, help="the format to write")
    add("-o", "--out", required=True, type=path, help="the file or folder to write")
    add(
        "--sample",
        type=number,
        metavar="K",
        help="export only the sample K of each stimulus; the first sample is 0 (default: all samples; turingtest: 0)",
    )
    add("--include-rejected", action="store_true", help="also export answers that filters rejected")
    add(
        "--include-control",
        action="store_true",
        help="also export the answers of the agent `catch`, which are for catch trials",
    )
    add(
        "--allow-missing", action="store_true", help="with --format turingtest: export even if some answers are missing"
    )
    add("--force", action="store_true", help="replace the file or folder at --out, if there is one")


def _add_import(commands: Commands) -> None:
    importing = commands.add(
        "import",
        "serving.exchange.importing.command:import_files",
        "read answers of people, or published answers of machines, and keep the answers as records",
        example="words.json --task word -o people",
        doing="reading the files",
        resumes=True,
    )
    add = importing.add_argument
    add("paths", nargs="+", type=path, metavar="FILE", help="the files that contain the answers")
    add(
        "-o",
        "--out",
        required=True,
        type=path,
        metavar="DIR",
        help="the run folder: a new folder, or an existing run folder",
    )
    add(
        "--task",
        type=any_task,
        metavar="TASK",
        help="the task of the answers; needed if the name of the file does not contain the task",
    )
    add(
        "--name",
        help="for a file or a table with the answers of one machine: the name of this machine. For a page of the "
        "published Turing test (.html): both speakers, A~B. Give no name if FILE already says who gave each answer",
    )
    add(
        "--frame",
        type=frame,
        metavar="WxH",
        help="for scanpaths: width and height, in pixels, of the frame. The frame is the screen or window in which "
        "people saw the picture",
    )
    add(
        "--fit",
        choices=("bars", "stretch"),
        help="how the picture filled the frame. bars: the picture kept its shape, with empty bars on two sides. "
        "stretch: the picture was stretched to the shape of the frame",
    )
    add(
        "--origin",
        choices=("top-left", "bottom-left", "center", "center-down"),
        help="where in the frame x and y are 0. From bottom-left and center y counts upward, else downward (default: "
        "top-left)",
    )
    add(
        "--units",
        choices=("pixels", "height", "norm"),
        help="the unit of x and y. height: the height of the frame. norm: half of its width and half of its height, "
        "from the center (default: pixels, or shares of the frame if nearly all numbers are between 0 and 1)",
    )
    add(
        "--responses",
        type=responses,
        metavar="f=human,j=machine",
        help="the meaning of the keys or buttons with which people judged",
    )
    add(
        "--rows",
        action="append",
        type=rows_rule,
        metavar="COLUMN=VALUE",
        help="read only the rows of a table that have VALUE in COLUMN; COLUMN!=VALUE reads only the rows that do not "
        "have VALUE in COLUMN; may be repeated",
    )
    add(
        "--columns",
        type=table_columns,
        metavar="FIELD=COLUMN",
        help="the column of a table that contains a field; several pairs are separated by commas. Fields: subject, "
        "stimulus, response, rt, x, y, durations, verdict, truth, agent, confidence, meta",
    )
    add(
        "--wide",
        action="append",
        metavar="PATTERN",
        help="for a table with one row for each person: the columns that contain answers, one column for each "
        "stimulus; in word_* the stimulus is what * stands for; may be repeated",
    )
    add(
        "--color-words",
        metavar="LANGUAGE",
        help="for colours: the language of people's words, which become the English ones (rouge becomes red): ar, de, "
        "es, fr or zh",
    )
    add(
        "--sheet",
        metavar="NAME",
        help="the sheet of a workbook that is read (default: the only one whose columns fit)",
    )
    add(
        "--form",
        type=path,
        metavar="FORM.toml",
        help="a file in TOML that says what the tables of your lab look like: columns, rows, units, task",
    )
    add(
        "--rt",
        choices=("seconds", "ms"),
        help="the unit of the times (default: seconds if half of the times are below 20, else ms)",
    )
    add(
        "--unnamed",
        action="store_true",
        help="accept answers without the name of a person; all such answers count as answers of different people",
    )
    add(
        "--drop-equal",
        action="store_true",
        help="count rows that are equal in every column as one row; leave out an answer if an earlier file of the run "
        "contains the same answer of the same person to the same stimulus",
    )
    add(
        "--replace",
        action="store_true",
        help="if most answers of a file are also in another file: take the other file out (a corrected table)",
    )
    add(
        "--add",
        action="store_true",
        help="if most answers of a file are also in another file: count all answers of both files",
    )
    add(
        "--dry-run",
        action="store_true",
        help="print the first answers of each person and what is left out; write nothing",
    )
    add(
        "--undo",
        action="store_true",
        help="take the answers of the files out of the run folder again",
    )


def _add_history(commands: Commands) -> None:
    history = commands.add(
        "history",
        "serving.exchange.histories.command:write_history",
        "make a chat history of a person, or conversations, from chats that WhatsApp or Telegram exported",
        commands.as_json,
        example="_chat.txt --person Ann -o ann.jsonl",
        doing="reading the chats",
    )
    add = history.add_argument
    add(
        "files",
        nargs="+",
        type=path,
        metavar="FILE",
        help="exported chats: the text of WhatsApp, result.json of Telegram, or a history that this command wrote",
    )
    add(
        "--person",
        required=True,
        metavar="NAME",
        help="the person whose history it is: the name in the chat, or the `from_id` of Telegram",
    )
    add("-o", "--out", required=True, type=path, metavar="FILE", help="the file to write")
    add(
        "--conversations",
        action="store_true",
        help="write conversations of two people, which `turinglike import` reads, instead of a history",
    )
    add(
        "--pause",
        type=minutes,
        metavar="MINUTES",
        help="with --conversations: a new conversation begins after this time without a message (default 60)",
    )
    add(
        "--dates",
        choices=("dmy", "mdy", "ymd"),
        help="the order of day, month and year in the dates of WhatsApp; needed if the dates do not show it",
    )
    add("--force", action="store_true", help="replace the file at --out, if there is one")


# what the commands do


def _schema(options: argparse.Namespace) -> int:
    from serving.files.terminal import print_json
    from serving.runs.json_schemas import record_schema, stimulus_schema

    return print_json(record_schema() if options.of == "record" else stimulus_schema())


def _report(options: argparse.Namespace) -> int:
    from serving.viewer.report import write_report

    print(printable(str(write_report(options.runs, options.out, single_file=options.single_file))))
    return 0
