"""The command ``turinglike``.

Exit codes: 0 all answered; 1 failed records or downloads; 2 wrong usage or input; 3 an agent stopped; 4 the run
folder cannot be written; 5 Ray failed; 70 an internal error, with a traceback; 130 and 143 Ctrl-C and SIGTERM."""

import argparse
import sys
from collections.abc import Sequence
from typing import get_args

from agents import __version__
from agents.catalogue.selection import Selection, resolve
from agents.errors import InputError, printable
from agents.frames import Fit
from agents.stimuli import MODES
from serving.commands.command_line import (
    Commands,
    Parser,
    add_registered,
    any_task,
    carry_out,
    frame,
    from_options,
    json_option,
    number,
    open_standard_streams,
    path,
    port,
    positive,
    replicas,
    responses,
    row_rule,
    seconds,
    seed,
    settings_options,
    sizes,
    source_options,
    table_columns,
    task,
    worker_options,
)
from serving.exchange.exporting import FORMATS
from serving.scheduling.interrupts import watched


def build_parser() -> argparse.ArgumentParser:
    parser = Parser(prog="turinglike", description="Answers of machine agents for Turing-like tests.")
    parser.add_argument("--version", action="version", version=f"turinglike {__version__}")
    parsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=Parser)
    source = source_options()
    settings = settings_options()
    workers = worker_options()
    as_json = json_option()
    commands = Commands(parsers, settings, workers, as_json)
    command = commands.add

    summary = "read a stimulus set and report every problem at once"
    check = command("check", _check, summary, source, settings, as_json, example="pictures --task color")
    about = "also whether these, and pairs, can be asked about it: what they lack, and what their templates refuse"
    check.add_argument("--agents", metavar="A,B,C~D", help=about)
    check.add_argument("--deep", action="store_true", help="decode every image, not only its header")

    summary = "make a set of annotations of COCO or COCO-Search18, or of the published benchmark"
    example = "captions_val2017.json --images val2017 -o set.jsonl"
    making = command("set", "serving.sets.set_making:make_set", summary, example=example)
    making.add_argument("source", type=path, help="a file of annotations")
    making.add_argument("-o", "--out", required=True, type=path, metavar="FILE", help="the set")
    making.add_argument("--images", type=path, metavar="DIR", help="the pictures that annotations name")
    making.add_argument("--task", type=task, metavar="TASK", help="what is asked (default: what was annotated)")
    about_boxes = "pixels of the frame in which the boxes of COCO-Search18's list are, often 1680x1050"
    making.add_argument("--frame", type=frame, metavar="WxH", help=about_boxes)
    how = "how pictures filled that frame: in its middle with bars, or stretched to its sides"
    making.add_argument("--fit", choices=get_args(Fit), help=how)
    making.add_argument("--force", action="store_true", help="replace what is at --out")

    summary = "answer a whole stimulus set; the same command again resumes"
    example = "pictures --task caption --agents git-large-coco,blip-large -o run"
    generate = command("generate", _generate, summary, source, settings, workers, example=example, uses_ray=True)
    generate.add_argument("--agents", required=True, metavar="A,B,C~D", help="agents, and pairs that converse")
    generate.add_argument("-o", "--out", required=True, type=path, metavar="DIR", help="the run folder")
    generate.add_argument("--samples", type=positive, default=1, metavar="N", help="answers per stimulus")
    generate.add_argument("--seed", type=seed, metavar="S", help="the run's seed (default 0)")
    generate.add_argument("--replicas", type=replicas, metavar="N|auto", help="workers per agent (default auto)")
    generate.add_argument("--here", action="store_true", help="answer in this process, without Ray, however much it is")
    generate.add_argument("--retry-failed", action="store_true", help="answer again what failed before")
    generate.add_argument("--skip-invalid", action="store_true", help="write failed records for invalid stimuli")
    changed = "go on though the file of an agent's class, which is not ours, has changed"
    generate.add_argument("--accept-changed-code", action="store_true", help=changed)
    generate.add_argument("--limit", type=positive, metavar="N", help="only the first N stimuli")

    summary = "answers to a few pictures, words or topics, at once"
    ask = command(
        "ask", "serving.library.asking:ask", summary, settings, as_json, example="mmcq,mmcq-lab --image a.jpg"
    )
    ask.add_argument("agents", metavar="AGENT", help="or several, A,B, or a pair that converses, A~B")
    ask.add_argument("material", nargs="*", metavar="FILE", help="pictures, or one set: as of generate")
    ask.add_argument("--image", action="append", metavar="FILE", help="a picture, once for each, or a folder")
    ask.add_argument("--cue", action="append", metavar="WORD", help="a cue for a word; once for each")
    ask.add_argument("--topic", action="append", metavar="TOPIC", help="what a pair talks about; once for each")
    ask.add_argument("--message", action="append", metavar="TEXT", help="what an agent replies to; once for each")
    ask.add_argument("--task", type=task, metavar="TASK", help="what is asked, where agents and columns do not say it")
    ask.add_argument("--samples", type=positive, default=1, metavar="N", help="answers to each (default 1)")
    ask.add_argument("--seed", type=seed, default=0, metavar="S", help="as of a run (default 0)")
    ask.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")

    summary = "the agents behind HTTP, for programs and a web page"
    example = "--agents mmcq,eliza --port 8000"
    serve = command("serve", "serving.commands.serve:serve", summary, settings, workers, example=example, uses_ray=True)
    serve.add_argument("--agents", required=True, metavar="A,B", help="agents that are loaded together")
    serve.add_argument("--host", default="127.0.0.1", help="the address to listen at (default: this machine alone)")
    serve.add_argument("--port", type=port, default=8000)
    serve.add_argument("-o", "--out", type=path, metavar="RUN", help="keep what is said and answered as records there")
    serve.add_argument("--accept-changed-code", action="store_true", help=changed)
    serve.add_argument("--key-file", type=path, metavar="FILE", help="the key; or the variable TURINGLIKE_API_KEY")
    serve.add_argument("--allow-host", action="append", default=[], metavar="NAME", help="a name that is this server's")
    serve.add_argument("--seed", type=seed, default=0, metavar="S", help="for requests that give none (default 0)")
    serve.add_argument("--lazy", action="store_true", help="load an agent when it is first asked")
    serve.add_argument("--queue", type=positive, default=256, metavar="N", help="answers of one agent at once (256)")
    serve.add_argument("--deadline", type=seconds, default=120.0, metavar="S", help="seconds for one answer (120)")
    serve.add_argument("--replicas", type=positive, default=1, metavar="N", help="workers per agent (default 1)")

    summary = "how fast agents are on this machine, and what limits them"
    example = "mmcq gbvs --seconds 2"
    bench = command("bench", "serving.bench.command:bench", summary, settings, example=example)
    bench.add_argument("agents", nargs="+", metavar="AGENT")
    doubling = "default: doubling while it brings anything"
    bench.add_argument("--batch-sizes", type=sizes, dest="sizes", metavar="1,2,4", help=doubling)
    bench.add_argument("--seconds", type=seconds, default=5.0, metavar="N", help="measured for each size (default 5)")
    bench.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    bench.add_argument("--task", type=task, metavar="TASK", help="of agents with several (default: an agent's first)")
    bench.add_argument("--mode", choices=MODES, help="of attention prediction (default: an agent's first)")
    bench.add_argument("-o", "--out", type=path, metavar="DIR", help="write bench.json there")

    summary = "list the agents, or tell about one"
    example = "--task word --here --sort size"
    agents = command("agents", "serving.commands.agent_list:print_agents", summary, as_json, example=example)
    agents.add_argument("name", nargs="?")
    about_task = "only those that answer it; judgement: the judges"
    agents.add_argument("--task", type=any_task, metavar="TASK", help=about_task)
    agents.add_argument("--here", action="store_true", help="only those that can run here, as it is")
    agents.add_argument("--sort", choices=("size", "name"), help="by the memory that they take, or by name")

    summary = "what runs here, and what the rest needs"
    doctor = command("doctor", "serving.commands.agent_list:doctor", summary, example="--task caption")
    doctor.add_argument("--task", type=any_task, metavar="TASK", help="only agents that answer it")

    schema = command("schema", _schema, "the JSON Schema of a record, or of a line of a set", example="record")
    schema.add_argument("of", choices=("record", "stimulus"))

    summary = "download the checkpoints that agents need, and tell size and licence"
    fetch = command("fetch", "serving.commands.fetch:fetch", summary, settings, example="git-large-coco")
    fetch.add_argument("agents", nargs="+", metavar="AGENT")

    summary = "how far a run is, and what failed"
    status = command("status", "serving.runs.status:print_status", summary, as_json, example="run")
    status.add_argument("path", type=path, metavar="dir")

    summary = "every answer of runs side by side, with statistics: a folder for a browser"
    report = command("report", _report, summary, example="run")
    report.add_argument("runs", nargs="+", type=path, metavar="RUN")
    report.add_argument("-o", "--out", type=path, metavar="DIR", help="default: RUN/report")

    summary = "the same as report, on this machine's own address until Ctrl-C"
    view = command("view", "serving.viewer.view:view", summary, example="run --open")
    view.add_argument("paths", nargs="+", type=path, metavar="RUN", help="or one folder of runs")
    view.add_argument("--port", type=port, default=0, help="default: a free one")
    view.add_argument("--open", dest="open_browser", action="store_true", help="open it in the browser")

    summary = "write a run's records in another format"
    example = "run --format csv -o answers.csv"
    export = command("export", "serving.exchange.exporting:export", summary, example=example)
    export.add_argument("path", type=path, metavar="dir")
    export.add_argument("--format", required=True, choices=FORMATS)
    export.add_argument("-o", "--out", required=True, type=path)
    export.add_argument("--sample", type=number, metavar="K", help="only this sample (turingtest: 0 unless given)")
    export.add_argument("--include-rejected", action="store_true", help="also answers that filters rejected")
    export.add_argument("--include-control", action="store_true", help="also catch trials")
    export.add_argument("--allow-missing", action="store_true", help="turingtest: the others where answers are missing")
    export.add_argument("--force", action="store_true", help="replace what is at --out")

    summary = "read published answers into the same records"
    example = "words.json --task word -o people"
    importing = command("import", "serving.exchange.importing:import_files", summary, example=example)
    importing.add_argument("paths", nargs="+", type=path, metavar="files")
    importing.add_argument("-o", "--out", required=True, type=path, metavar="DIR", help="a run folder, or a new one")
    importing.add_argument("--task", type=any_task, metavar="TASK", help="where the file's name does not say it")
    importing.add_argument("--name", help="whose answers a file holds that does not say it: a machine; of a page A~B")
    importing.add_argument("--frame", type=frame, metavar="WxH", help="pixels of scanpaths that do not say theirs")
    filling = "how the picture filled that frame: with bars beside it, its shape kept, or stretched"
    importing.add_argument("--fit", choices=("bars", "stretch"), help=filling)
    meaning = "what keys or buttons of verdicts mean"
    importing.add_argument("--responses", type=responses, metavar="f=human,j=machine", help=meaning)
    some = "only a table's rows whose cell is so (or, with !=, is not); may be given several times"
    importing.add_argument("--rows", action="append", type=row_rule, metavar="COLUMN=VALUE", help=some)
    where = "which column says what, where its name is another: subject, stimulus, response, rt, …"
    importing.add_argument("--columns", type=table_columns, metavar="FIELD=COLUMN,…", help=where)
    importing.add_argument("--rt", choices=("seconds", "ms"), help="the unit of times (default: told by their size)")
    each = "take answers that name nobody, each as another person's"
    importing.add_argument("--unnamed", action="store_true", help=each)
    once = "count equal rows once, and equal answers that another file of the run holds"
    importing.add_argument("--drop-equal", action="store_true", help=once)
    add_registered(commands)
    return parser


def _check(options: argparse.Namespace) -> int:
    from serving.sets.checking import check_unasked, print_report

    if options.agents is not None:
        from serving.generation.agent_check import check_agents

        chosen = _chosen(options)
        return check_agents(options.source, chosen, task=options.task, deep=options.deep, json=options.json)
    if options.settings or options.config is not None:
        raise InputError("--set and --config are about agents: name them with --agents")
    return print_report(check_unasked(options.source, task=options.task, deep=options.deep), json=options.json)


def _generate(options: argparse.Namespace) -> int:
    from serving.generation.generate import GenerateOptions, generate

    chosen = _chosen(options)
    about = {"agents": chosen.names, "entries": chosen.entries, "settings": chosen.settings}
    return generate(from_options(GenerateOptions, options, **about), _print)


def _chosen(options: argparse.Namespace) -> Selection:
    """The agents and pairs of ``--agents``. Raises InputError."""
    names = [name for name in options.agents.split(",") if name]
    if not names:
        raise InputError("--agents: no agent is given")
    if len(set(names)) != len(names):
        raise InputError("--agents: give each agent once")
    return resolve(names, options.settings, options.config)


def _schema(options: argparse.Namespace) -> int:
    from serving.files.terminal import print_json
    from serving.runs.json_schemas import record_schema, stimulus_schema

    return print_json(record_schema() if options.of == "record" else stimulus_schema())


def _report(options: argparse.Namespace) -> int:
    from serving.viewer.report import write_report

    _print(str(write_report(options.runs, options.out)))
    return 0


def main(arguments: Sequence[str]) -> int:
    return carry_out(_parsed(arguments))


def _parsed(arguments: Sequence[str]) -> argparse.Namespace:
    parser = build_parser()
    options, unknown = parser.parse_known_args(arguments)
    if options.command == "ask" and not any(text.startswith("-") for text in unknown):
        options.material += unknown  # files that stand behind an option
    elif unknown:
        about = f"unrecognized arguments: {' '.join(unknown)}"
        parser.exit(2, f"turinglike: {printable(about)}; `turinglike {options.command} --help` tells more\n")
    return options


def command() -> int:
    """The shell's entry point: :func:`main`, watched from another process where it uses Ray."""
    open_standard_streams()
    options = _parsed(sys.argv[1:])
    if options.uses_ray:
        return watched(lambda: carry_out(options))
    return carry_out(options)


def _print(text: str) -> None:
    print(printable(text))


if __name__ == "__main__":
    sys.exit(command())
