"""The command ``turinglike``.

Exit codes: 0 all answered; 1 finished with failed records, or failed downloads; 2 wrong usage or input; 3 an agent
stopped (it could not be loaded, or the circuit breaker opened); 4 the run folder cannot be written; 5 Ray could not be
started or was lost; 130 and 143 ended by Ctrl-C and SIGTERM.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, NoReturn

from agents import __version__
from agents.errors import InputError, TuringlikeError
from agents.tasks import MODES, TASKS
from serving.scheduling.interrupts import Interrupted

BATCH_SIZE = "instead of each agent's own; auto: the best that `turinglike bench` found here"
SHOWN = 50  # problems on a terminal; --json has them all


class _Parser(argparse.ArgumentParser):
    """argparse, with errors in the same form as ours."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"turinglike: {message}; `{self.prog} --help` tells more\n")


def _positive(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 10**9:
        raise argparse.ArgumentTypeError(f"must be a number from 1 to 1,000,000,000, not {text!r}")
    return int(text)


def _path(text: str) -> Path:
    if not text:
        raise argparse.ArgumentTypeError("must not be empty")
    return Path(text)


def _replicas(text: str) -> int | None:
    return None if text == "auto" else _positive(text)


def _batch_size(text: str) -> int | Literal["auto"]:
    return "auto" if text == "auto" else _positive(text)


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(sorted({_positive(part) for part in text.split(",")}))


def _seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < 1e9:
        raise argparse.ArgumentTypeError(f"must be a number of seconds above 0, not {text!r}")
    return number


def _seed(text: str) -> int:
    if not text.isdecimal() or not int(text) < 2**53:
        raise argparse.ArgumentTypeError(f"must be a whole number from 0 to 2**53 - 1, not {text!r}")
    return int(text)


def _port(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 65536:
        raise argparse.ArgumentTypeError(f"must be a port from 1 to 65535, not {text!r}")
    return int(text)


def build_parser() -> argparse.ArgumentParser:
    """The whole command line."""
    parser = _Parser(prog="turinglike", description="Answers of machine agents for Turing-like tests.")
    parser.add_argument("--version", action="version", version=f"turinglike {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_Parser)

    check = commands.add_parser("check", help="read a stimulus set and report every problem at once")
    check.add_argument("set", type=_path, help="a .jsonl or .csv file, or a folder of images with --task")
    check.add_argument("--task", choices=TASKS, help="for rows that name none; another one in a row is a problem")
    check.add_argument("--deep", action="store_true", help="decode every image, not only its header")
    check.add_argument("--json", action="store_true")
    check.set_defaults(run=_check)

    generate = commands.add_parser("generate", help="answer a whole stimulus set; the same command again resumes")
    generate.add_argument("set", type=_path, help="a .jsonl or .csv file, or a folder of images with --task")
    generate.add_argument("--agents", required=True, metavar="A,B,C~D", help="agents, and pairs that converse")
    generate.add_argument("--out", required=True, type=_path, metavar="DIR", help="the run folder")
    generate.add_argument("--task", choices=TASKS, help="for rows that name none; another one in a row is a problem")
    generate.add_argument("--samples", type=_positive, default=1, metavar="N", help="answers per stimulus")
    generate.add_argument("--seed", type=_seed, metavar="S", help="the run's seed (default 0)")
    generate.add_argument("--set", action="append", default=[], dest="settings", metavar="AGENT.FIELD=VALUE")
    generate.add_argument("--config", type=_path, metavar="FILE", help="TOML: settings and named variants of agents")
    generate.add_argument("--replicas", type=_replicas, metavar="N|auto", help="workers per agent (default auto)")
    generate.add_argument("--batch-size", type=_batch_size, metavar="N|auto", help=BATCH_SIZE)
    generate.add_argument("--retry-failed", action="store_true", help="answer again what failed before")
    generate.add_argument("--skip-invalid", action="store_true", help="write failed records for invalid stimuli")
    generate.add_argument("--address", metavar="A", help="a Ray cluster instead of a local Ray")
    generate.add_argument("--limit", type=_positive, metavar="N", help="only the first N stimuli")
    generate.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    generate.add_argument("--timeout", type=_seconds, default=600.0, metavar="S", help="seconds for one batch")
    generate.add_argument("--load-timeout", type=_seconds, default=1800.0, metavar="S", help="seconds to load an agent")
    generate.set_defaults(run=_generate)

    serve = commands.add_parser("serve", help="the agents behind HTTP, for programs and a web page")
    serve.add_argument("--agents", required=True, metavar="A,B", help="agents that are loaded together")
    serve.add_argument("--host", default="127.0.0.1", help="the address to listen at (default: this machine alone)")
    serve.add_argument("--port", type=_port, default=8000)
    serve.add_argument("--key-file", type=_path, metavar="FILE", help="the key; or the variable TURINGLIKE_API_KEY")
    serve.add_argument("--allow-host", action="append", default=[], metavar="NAME", help="a name that is this server's")
    serve.add_argument("--set", action="append", default=[], dest="settings", metavar="AGENT.FIELD=VALUE")
    serve.add_argument("--config", type=_path, metavar="FILE", help="TOML: settings and named variants of agents")
    serve.add_argument("--seed", type=_seed, default=0, metavar="S", help="for requests that give none (default 0)")
    serve.add_argument("--lazy", action="store_true", help="load an agent when it is first asked")
    serve.add_argument("--queue", type=_positive, default=256, metavar="N", help="answers of one agent at once (256)")
    serve.add_argument("--deadline", type=_seconds, default=120.0, metavar="S", help="seconds for one answer (120)")
    serve.add_argument("--replicas", type=_positive, default=1, metavar="N", help="workers per agent (default 1)")
    serve.add_argument("--batch-size", type=_batch_size, metavar="N|auto", help=BATCH_SIZE)
    serve.add_argument("--address", metavar="A", help="a Ray cluster instead of a local Ray")
    serve.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    serve.add_argument("--timeout", type=_seconds, default=600.0, metavar="S", help="seconds for one batch")
    serve.add_argument("--load-timeout", type=_seconds, default=1800.0, metavar="S", help="seconds to load an agent")
    serve.set_defaults(run=_serve)

    bench = commands.add_parser("bench", help="how fast agents are on this machine, and what limits them")
    bench.add_argument("agents", nargs="+", metavar="AGENT")
    bench.add_argument("--batch-sizes", type=_sizes, metavar="1,2,4", help="default: doubling while it brings anything")
    bench.add_argument("--seconds", type=_seconds, default=5.0, metavar="N", help="measured for each size (default 5)")
    bench.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    bench.add_argument("--set", action="append", default=[], dest="settings", metavar="AGENT.FIELD=VALUE")
    bench.add_argument("--config", type=_path, metavar="FILE", help="TOML: settings and named variants of agents")
    bench.add_argument("--task", choices=TASKS, help="of agents with several (default: an agent's first)")
    bench.add_argument("--mode", choices=MODES, help="of attention prediction (default: an agent's first)")
    bench.add_argument("--out", type=_path, metavar="DIR", help="write bench.json and bench.png there")
    bench.add_argument("--compare", type=_path, metavar="OLD.json", help="show ratios to an earlier result")
    bench.add_argument("--bare", action="store_true", help="only the agents themselves: no Ray, no other programs")
    bench.set_defaults(run=_bench)

    agents = commands.add_parser("agents", help="list the agents, or tell about one")
    agents.add_argument("name", nargs="?")
    agents.add_argument("--json", action="store_true")
    agents.set_defaults(run=_agents)

    fetch = commands.add_parser("fetch", help="download the checkpoints that agents need, and tell size and licence")
    fetch.add_argument("agents", nargs="+", metavar="AGENT")
    fetch.add_argument("--set", action="append", default=[], dest="settings", metavar="AGENT.FIELD=VALUE")
    fetch.add_argument("--config", type=_path, metavar="FILE", help="TOML: settings and named variants of agents")
    fetch.set_defaults(run=_fetch)

    status = commands.add_parser("status", help="how far a run is, and what failed")
    status.add_argument("dir", type=_path)
    status.add_argument("--json", action="store_true")
    status.set_defaults(run=_status)

    report = commands.add_parser("report", help="an HTML page of a run: every answer side by side")
    report.add_argument("dir", type=_path)
    report.add_argument("--out", type=_path, help="default: DIR/report.html")
    report.set_defaults(run=_report)

    export = commands.add_parser("export", help="write a run's records in another format")
    export.add_argument("dir", type=_path)
    formats = ("jsonl", "csv", "parquet", "turingtest", "coco-search18", "pysaliency", "judges", "conversations")
    export.add_argument("--format", required=True, choices=formats)
    export.add_argument("--out", required=True, type=_path)
    export.add_argument("--sample", type=int, metavar="K", help="only this sample (turingtest: 0 unless given)")
    export.add_argument("--allow-missing", action="store_true")
    export.add_argument("--include-rejected", action="store_true")
    export.add_argument("--include-control", action="store_true")
    export.add_argument("--force", action="store_true", help="replace what is at --out")
    clips = export.add_argument_group("how the clips look, for the format judges")
    clips.add_argument("--ring-radius", type=float, metavar="R", help="pixels of a frame 1280 wide (default 35)")
    clips.add_argument("--gap", choices=("image", "black", "grey"), help="shown for 1 s between rounds (default image)")
    clips.add_argument("--shown", type=_positive, metavar="N", help="the first N fixations (default 15)")
    clips.add_argument("--max-side", type=_positive, metavar="PX", help="longer side of a clip (default 1280)")
    cuts = export.add_argument_group("how conversations are cut, for the format conversations")
    cuts.add_argument("--step", type=_positive, metavar="N", help="the first N, 2 N, … exchanges (default 3)")
    cuts.add_argument("--longest", type=_positive, metavar="N", help="at most N exchanges (default 24)")
    export.set_defaults(run=_export)

    importing = commands.add_parser("import", help="read published answers into the same records")
    importing.add_argument("files", nargs="+", type=_path)
    importing.add_argument("--out", required=True, type=_path, metavar="DIR", help="a run folder, or a new one")
    importing.add_argument("--task", choices=TASKS, help="where the file's name does not say it")
    importing.add_argument("--name", help="whose answers a submission file holds")
    importing.set_defaults(run=_import)
    return parser


def _check(options: argparse.Namespace) -> int:
    from serving.runs.checking import check_set, print_report

    return print_report(check_set(options.set, task=options.task, deep=options.deep), json=options.json)


def _serve(options: argparse.Namespace) -> int:
    from serving.serve import serve

    return serve(options)


def _generate(options: argparse.Namespace) -> int:
    from agents.selection import resolve

    names = [name for name in options.agents.split(",") if name]
    if not names:
        raise InputError("--agents: no agent is given")
    if len(set(names)) != len(names):
        raise InputError("--agents: give each agent once")
    entries, settings = resolve(names, options.settings, options.config)

    from serving.generate import GenerateOptions, generate

    given = GenerateOptions(
        source=options.set,
        agents=names,
        out=options.out,
        entries=entries,
        task=options.task,
        samples=options.samples,
        seed=options.seed,
        settings=settings,
        replicas=options.replicas,
        batch_size=None if options.batch_size == "auto" else options.batch_size,
        auto_batch=options.batch_size == "auto",
        retry_failed=options.retry_failed,
        skip_invalid=options.skip_invalid,
        address=options.address,
        limit=options.limit,
        device=options.device,
        timeout=options.timeout,
        load_timeout=options.load_timeout,
    )
    return generate(given, print)


def _bench(options: argparse.Namespace) -> int:
    from agents.selection import read_names, resolve
    from serving.bench.command import Options, bench

    names = read_names("bench", ",".join(options.agents), "measured")
    entries, settings = resolve(names, options.settings, options.config, "bench")
    given = Options(
        entries=entries,
        settings=settings,
        sizes=options.batch_sizes,
        seconds=options.seconds,
        device=options.device,
        task=options.task,
        mode=options.mode,
        out=options.out,
        compare=options.compare,
        bare=options.bare,
    )
    return bench(given)


def _agents(options: argparse.Namespace) -> int:
    from serving.agent_list import print_agent, print_agents

    return print_agents(json=options.json) if options.name is None else print_agent(options.name, json=options.json)


def _fetch(options: argparse.Namespace) -> int:
    from serving.fetch import fetch

    names = [name for given in options.agents for name in given.split(",") if name]
    if not names:
        raise InputError("fetch: no agent is given")
    return fetch(names, options.settings, options.config, partial(print, flush=True))


def _status(options: argparse.Namespace) -> int:
    from serving.runs.status import print_status

    return print_status(options.dir, json=options.json)


def _report(options: argparse.Namespace) -> int:
    from serving.web.report import write_report

    print(write_report(options.dir, options.out))
    return 0


def _export(options: argparse.Namespace) -> int:
    from serving.export.clips import Clips
    from serving.export.excerpts import Excerpts
    from serving.export.registry import export

    def given(*names: str) -> dict[str, Any]:
        values = {name: getattr(options, name) for name in names}
        return {name: value for name, value in values.items() if value is not None}

    looks, cuts = given("ring_radius", "gap", "shown", "max_side"), given("step", "longest")
    export(
        options.dir,
        options.format,
        options.out,
        sample=options.sample,
        allow_missing=options.allow_missing,
        include_rejected=options.include_rejected,
        include_control=options.include_control,
        force=options.force,
        clips=Clips(**looks) if looks else None,
        excerpts=Excerpts(**cuts) if cuts else None,
    )
    return 0


def _import(options: argparse.Namespace) -> int:
    from serving.runs.importing import import_files

    import_files(options.files, options.out, task=options.task, name=options.name)
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line's entry point; returns the exit code."""
    options = build_parser().parse_args(arguments)
    # Pillow warns of odd metadata in stimuli; what matters of them becomes an error of that stimulus.
    warnings.filterwarnings("ignore", module="PIL")
    try:
        return int(options.run(options))
    except TuringlikeError as error:
        _complain(error)
        return error.exit_code
    except Interrupted as interrupted:
        more = "" if options.command == "serve" else "; what was written stays: run the same command again to resume"
        print(f"ended{more}", file=sys.stderr)
        return 128 + interrupted.number
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader of our output (head, less) has gone; what it did not read is no error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _complain(error: TuringlikeError) -> None:
    problems = error.problems if isinstance(error, InputError) else ()
    for problem in problems[:SHOWN]:
        print(problem, file=sys.stderr)
    if len(problems) > SHOWN:
        print(f"… and {len(problems) - SHOWN} more; `turinglike check --json` lists them all", file=sys.stderr)
    print(f"turinglike: {error}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
