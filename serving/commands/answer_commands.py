"""The commands about stimuli, answers and agents: check, set, generate, ask, serve, bench, agents, doctor, fetch."""

import argparse
from typing import get_args

from agents.catalogue.selection import Selection, resolve
from agents.errors import InputError, printable
from agents.frames import Fit
from agents.stimuli import MODES
from serving.commands.command_line import (
    DEVICE,
    Commands,
    Parser,
    any_task,
    frame,
    from_options,
    path,
    port,
    positive,
    replicas,
    seconds,
    seed,
    sizes,
    source_options,
    task,
)

CHANGED_CODE = "go on though the file of an agent's class, of another package, has changed since the run began"


def register(commands: Commands) -> None:
    """Add the commands."""
    source = source_options()
    _add_check(commands, source)
    _add_set(commands)
    _add_generate(commands, source)
    _add_ask(commands)
    _add_serve(commands)
    _add_bench(commands)
    _add_agents(commands)
    _add_doctor(commands)
    _add_fetch(commands)


# stimuli


def _add_check(commands: Commands, source: Parser) -> None:
    check = commands.add(
        "check",
        _check,
        "read a stimulus set and report every problem at once",
        source,
        commands.settings,
        commands.as_json,
        example="pictures --task color",
    )
    add = check.add_argument
    add(
        "--agents",
        metavar="A,B,C~D",
        help="also check whether these agents and pairs can be asked: what they lack, and what their templates refuse",
    )
    add("--deep", action="store_true", help="decode every image, not only its header")


def _add_set(commands: Commands) -> None:
    making = commands.add(
        "set",
        "serving.sets.set_making:make_set",
        "make a stimulus set from annotations of COCO or COCO-Search18, or from the published benchmark",
        example="captions_val2017.json --images val2017 -o set.jsonl",
    )
    add = making.add_argument
    add("source", type=path, help="a file of annotations")
    add("-o", "--out", required=True, type=path, metavar="FILE", help="the file of the new set")
    add("--images", type=path, metavar="DIR", help="the folder of the pictures that the annotations name")
    add("--task", type=task, metavar="TASK", help="the task of the stimuli (default: the task of the annotations)")
    add(
        "--frame",
        type=frame,
        metavar="WxH",
        help="width and height in pixels of the frame (screen) that COCO-Search18's boxes are in, often 1680x1050",
    )
    add(
        "--fit",
        choices=get_args(Fit),
        help="how pictures filled that frame: bars keeps their shape, with bars beside them; stretch does not",
    )
    add("--force", action="store_true", help="replace what is at --out")


# answers


def _add_generate(commands: Commands, source: Parser) -> None:
    generate = commands.add(
        "generate",
        _generate,
        "let agents answer a whole stimulus set; the same command again resumes",
        source,
        commands.settings,
        commands.workers,
        example="pictures --task caption --agents git-large-coco,blip-large -o run",
        uses_ray=True,
    )
    add = generate.add_argument
    add("--agents", required=True, metavar="A,B,C~D", help="the agents that answer; C~D is a pair that converses")
    add("-o", "--out", required=True, type=path, metavar="DIR", help="the run folder, new or to be resumed")
    add("--samples", type=positive, default=1, metavar="N", help="answers of each agent to each stimulus (default 1)")
    add("--seed", type=seed, metavar="S", help="the run's seed (default 0)")
    add("--replicas", type=replicas, metavar="N|auto", help="workers for each agent (default auto)")
    add("--here", action="store_true", help="answer in this process, without Ray, however many stimuli there are")
    add("--retry-failed", action="store_true", help="answer again what failed before")
    add("--skip-invalid", action="store_true", help="write failed records for invalid stimuli, and answer the others")
    add("--accept-changed-code", action="store_true", help=CHANGED_CODE)
    add("--limit", type=positive, metavar="N", help="answer only the first N stimuli")


def _add_ask(commands: Commands) -> None:
    ask = commands.add(
        "ask",
        "serving.commands.ask:ask",
        "print agents' answers to a few pictures, words or topics at once",
        commands.settings,
        commands.as_json,
        example="mmcq,mmcq-lab --image a.jpg",
    )
    add = ask.add_argument
    add("agents", metavar="AGENT", help="an agent, several (A,B), or a pair that converses (A~B)")
    add("material", nargs="*", metavar="FILE", help="pictures, or a single set in a form that generate reads")
    add("--image", action="append", metavar="FILE", help="a picture, or a folder of pictures; may be repeated")
    add("--cue", action="append", metavar="WORD", help="a word to associate with; may be repeated")
    add("--topic", action="append", metavar="TOPIC", help="what a pair talks about; may be repeated")
    add("--message", action="append", metavar="TEXT", help="a message that an agent replies to; may be repeated")
    add("--task", type=task, metavar="TASK", help="the task, where the agents and the material leave a choice")
    add("--samples", type=positive, default=1, metavar="N", help="answers to each stimulus (default 1)")
    add("--seed", type=seed, default=0, metavar="S", help="the seed, as for generate (default 0)")
    add("--device", choices=("auto", "cpu", "cuda"), default="auto", help=DEVICE)


def _add_serve(commands: Commands) -> None:
    serve = commands.add(
        "serve",
        "serving.commands.serve:serve",
        "let agents answer over HTTP, for programs and on a web page",
        commands.settings,
        commands.workers,
        example="--agents mmcq,eliza --port 8000",
        uses_ray=True,
    )
    add = serve.add_argument
    add("--agents", required=True, metavar="A,B", help="the agents that are served; they are loaded together")
    add("--host", default="127.0.0.1", help="the address to listen at (default 127.0.0.1: this machine alone)")
    add("--port", type=port, default=8000, help="the port to listen at (default 8000)")
    add("-o", "--out", type=path, metavar="RUN", help="keep what is said and answered as records in this run folder")
    add("--accept-changed-code", action="store_true", help=CHANGED_CODE)
    add("--key-file", type=path, metavar="FILE", help="a file with the key (default: the variable TURINGLIKE_API_KEY)")
    add(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="a host name under which clients reach this server; may be repeated",
    )
    add("--seed", type=seed, default=0, metavar="S", help="the seed of requests that give none (default 0)")
    add("--lazy", action="store_true", help="load an agent when it is first asked")
    add(
        "--queue",
        type=positive,
        default=256,
        metavar="N",
        help="answers of one agent that may be under way at once (default 256)",
    )
    add("--deadline", type=seconds, default=120.0, metavar="S", help="seconds that an answer may take (default 120)")
    add("--replicas", type=positive, default=1, metavar="N", help="workers for each agent (default 1)")


# agents


def _add_bench(commands: Commands) -> None:
    bench = commands.add(
        "bench",
        "serving.bench.command:bench",
        "measure how fast agents are on this machine, and what limits them",
        commands.settings,
        example="mmcq gbvs --seconds 2",
    )
    add = bench.add_argument
    add("agents", nargs="+", metavar="AGENT", help="the agents to measure, one after the other")
    add(
        "--batch-sizes",
        type=sizes,
        dest="sizes",
        metavar="1,2,4",
        help="stimuli in a batch (default: 1, 2, 4, …, as long as larger batches are faster)",
    )
    add("--seconds", type=seconds, default=5.0, metavar="N", help="seconds to measure each batch size (default 5)")
    add("--device", choices=("auto", "cpu", "cuda"), default="auto", help=DEVICE)
    add("--task", type=task, metavar="TASK", help="the task of agents with several (default: their first)")
    add("--mode", choices=MODES, help="the mode of attention prediction (default: the agent's first)")
    add("-o", "--out", type=path, metavar="DIR", help="write the figures to DIR/bench.json")


def _add_agents(commands: Commands) -> None:
    agents = commands.add(
        "agents",
        "serving.commands.agent_list:print_agents",
        "list the agents, or describe one",
        commands.as_json,
        example="--task word --here --sort size",
    )
    add = agents.add_argument
    add("name", nargs="?", help="the agent to describe (default: list all)")
    add("--task", type=any_task, metavar="TASK", help="list only agents of this task; judgement lists the judges")
    add("--here", action="store_true", help="list only agents that can run on this machine as it is")
    add("--sort", choices=("size", "name"), help="sort the list by memory, or by name")


def _add_doctor(commands: Commands) -> None:
    doctor = commands.add(
        "doctor",
        "serving.commands.agent_list:doctor",
        "tell which agents can run on this machine, and what the others need",
        example="--task caption",
    )
    doctor.add_argument("--task", type=any_task, metavar="TASK", help="only agents of this task")


def _add_fetch(commands: Commands) -> None:
    fetch = commands.add(
        "fetch",
        "serving.commands.fetch:fetch",
        "download the checkpoints that agents need, and tell their size and licence",
        commands.settings,
        example="git-large-coco",
    )
    fetch.add_argument("agents", nargs="+", metavar="AGENT", help="the agents whose checkpoints are downloaded")


# what the commands do


def _check(options: argparse.Namespace) -> int:
    from serving.sets.checking import check_unasked, print_report

    if options.agents is not None:
        from serving.generation.agent_check import check_agents

        selection = _selection(options)
        return check_agents(options.source, selection, task=options.task, deep=options.deep, json=options.json)
    if options.settings or options.config is not None:
        raise InputError("--set and --config are about agents: name them with --agents")
    return print_report(check_unasked(options.source, task=options.task, deep=options.deep), json=options.json)


def _generate(options: argparse.Namespace) -> int:
    from serving.generation.generate import GenerateOptions, generate

    selection = _selection(options)
    of_agents = {"agents": selection.names, "entries": selection.entries, "settings": selection.settings}
    return generate(from_options(GenerateOptions, options, **of_agents), _print)


def _selection(options: argparse.Namespace) -> Selection:
    """The agents and pairs of ``--agents``. Raises InputError."""
    names = [name for name in options.agents.split(",") if name]
    if not names:
        raise InputError("--agents: no agent is given")
    if len(set(names)) != len(names):
        raise InputError("--agents: give each agent once")
    return resolve(names, options.settings, options.config)


def _print(text: str) -> None:
    print(printable(text))
