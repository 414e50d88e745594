"""The commands about stimuli, answers and agents: check, set, generate, ask, serve, bench, agents, doctor, fetch."""

import argparse
from typing import get_args

from agents.catalogue.selection import Selection, checked_agents, resolve
from agents.errors import InputError, printable
from agents.frames import Fit
from serving.commands import bench_command
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
    price,
    replicas,
    seconds,
    seed,
    source_options,
    task,
)

CHANGED_CODE = (
    "resume the run although the source file of an agent has changed since the run began (only for agents that are "
    "not part of Turinglike)"
)
CHANGED_CODE_SERVED = (
    "continue the run folder at --out although the source file of an agent has changed since that run began (only for "
    "agents that are not part of Turinglike)"
)


def register(commands: Commands) -> None:
    """Add the commands."""
    source = source_options()
    _add_check(commands, source)
    _add_set(commands)
    _add_generate(commands, source)
    _add_ask(commands)
    _add_serve(commands)
    bench_command.register(commands)
    _add_agents(commands)
    _add_doctor(commands)
    _add_fetch(commands)


# stimuli


def _add_check(commands: Commands, source: Parser) -> None:
    check = commands.add(
        "check",
        _check,
        "read a stimulus set and print all problems of the set",
        source,
        commands.settings,
        commands.as_json,
        example="pictures --task color",
        doing="checking the set",
    )
    add = check.add_argument
    add(
        "--agents",
        metavar="A,B,C~D",
        help="also check whether these agents can answer: what is missing on this machine, and which conversations "
        "the chat template of a model refuses. C~D is a pair of agents that converse",
    )
    add(
        "--deep",
        action="store_true",
        help="decode every image completely (default: read only the header of each image)",
    )


def _add_set(commands: Commands) -> None:
    making = commands.add(
        "set",
        "serving.sets.set_making:make_set",
        "make a stimulus set from annotations of COCO or COCO-Search18, or from a file of the published benchmark",
        example="captions_val2017.json --images val2017 -o set.jsonl",
        doing="making the set",
    )
    add = making.add_argument
    add("source", type=path, metavar="ANNOTATIONS", help="the file of annotations, or a file of the benchmark")
    add("-o", "--out", required=True, type=path, metavar="FILE", help="the file of the new stimulus set")
    add("--images", type=path, metavar="DIR", help="the folder with the pictures that ANNOTATIONS names")
    add(
        "--task",
        type=task,
        metavar="TASK",
        help="the task of the stimuli (default: the task of ANNOTATIONS)",
    )
    add(
        "--frame",
        type=frame,
        metavar="WxH",
        help="for COCO-Search18: width and height, in pixels, of the screen on which people saw the pictures; often "
        "1680x1050. The boxes of targets are in pixels of this screen",
    )
    add(
        "--fit",
        choices=get_args(Fit),
        help="how the pictures filled the frame. bars: a picture kept its shape, with empty bars on two sides. "
        "stretch: a picture was stretched to the shape of the frame",
    )
    add("--force", action="store_true", help="replace the file at --out, if there is one")


# answers


def _add_generate(commands: Commands, source: Parser) -> None:
    generate = commands.add(
        "generate",
        _generate,
        "let agents answer a whole stimulus set; run the same command again to resume",
        source,
        commands.settings,
        commands.workers,
        example="pictures --task caption --agents git-large-coco,blip-large -o run",
        uses_ray=True,
        check=_check_selection,
        resumes=True,
    )
    add = generate.add_argument
    add(
        "--agents",
        required=True,
        metavar="A,B,C~D",
        help="the agents that answer; C~D is a pair of agents that converse; A=caption lets A answer this task alone",
    )
    add(
        "-o",
        "--out",
        required=True,
        type=path,
        metavar="DIR",
        help="the run folder: a new folder, or the folder of a run to resume",
    )
    add(
        "--samples",
        type=positive,
        default=1,
        metavar="N",
        help="number of answers of each agent to each stimulus (default 1)",
    )
    add("--seed", type=seed, metavar="S", help="the seed of the run, from which all random choices follow (default 0)")
    add(
        "--replicas",
        type=replicas,
        metavar="N|auto",
        help="number of workers for each agent; a worker is a process that answers (default auto: as many as the "
        "GPUs, cores and memory of the machine allow)",
    )
    add("--here", action="store_true", help="answer in this process, without Ray and without workers")
    add("--retry-failed", action="store_true", help="ask again for the answers that failed before")
    add(
        "--skip-invalid",
        action="store_true",
        help="write a failed record for each invalid stimulus, and answer all valid stimuli",
    )
    add("--accept-changed-code", action="store_true", help=CHANGED_CODE)
    add("--limit", type=positive, metavar="N", help="answer only the first N stimuli of the set")
    dry = generate.add_argument_group("what a run would take")
    add = dry.add_argument
    add(
        "--dry-run",
        action="store_true",
        help="check the set and the agents, answer and write nothing, and print how many answers are missing, and how "
        "long they take by the speed so far (of the records in DIR, or of --measured)",
    )
    add("--measured", type=path, metavar="FILE", help="with --dry-run: a bench.json of `turinglike bench STIMULI`")
    add(
        "--for",
        type=positive,
        dest="for_answers",
        metavar="N",
        help="with --dry-run: what N answers of each agent would take, to stimuli like those of the set",
    )
    add(
        "--price-hour",
        type=price,
        metavar="P",
        help="with --dry-run: price of an hour of a GPU, or of the machine without a GPU",
    )
    add("--price-token", type=price, metavar="P", help="with --dry-run: price of a token that the agent writes")


def _add_ask(commands: Commands) -> None:
    ask = commands.add(
        "ask",
        "serving.commands.ask:ask",
        "print the answers of agents to a few pictures, words, topics or messages",
        commands.settings,
        commands.as_json,
        example="mmcq,mmcq-lab --image a.jpg",
        doing="loading and asking the agents",
    )
    add = ask.add_argument
    add("agents", metavar="AGENT", help="an agent, several agents (A,B), or a pair of agents that converse (A~B)")
    add("material", nargs="*", metavar="FILE", help="pictures, or one stimulus set in a form that `generate` reads")
    add("--image", action="append", metavar="FILE", help="a picture, or a folder of pictures; may be repeated")
    add(
        "--cue",
        action="append",
        metavar="WORD",
        help="a word to which an agent answers with another word; may be repeated",
    )
    add("--topic", action="append", metavar="TOPIC", help="a topic that a pair talks about; may be repeated")
    add("--message", action="append", metavar="TEXT", help="a message to which an agent replies; may be repeated")
    add("--task", type=task, metavar="TASK", help="the task; needed if an agent has several tasks for these stimuli")
    add("--samples", type=positive, default=1, metavar="N", help="number of answers to each stimulus (default 1)")
    add("--seed", type=seed, default=0, metavar="S", help="the seed, from which all random choices follow (default 0)")
    add("--device", choices=("auto", "cpu", "cuda"), default="auto", help=DEVICE)


def _add_serve(commands: Commands) -> None:
    serve = commands.add(
        "serve",
        "serving.commands.serve:serve",
        "start a server with agents: programs ask the agents over HTTP, and people ask them on a web page",
        commands.settings,
        commands.workers,
        example="--agents mmcq,eliza --port 8000",
        uses_ray=True,
    )
    add = serve.add_argument
    add(
        "--agents",
        required=True,
        metavar="A,B",
        help="the agents that answer; the machine needs memory for all of them together",
    )
    add(
        "--host",
        default="127.0.0.1",
        help="the address of the server (default 127.0.0.1: only programs on this machine can connect)",
    )
    add("--port", type=port, default=8000, help="the port of the server (default 8000)")
    add("-o", "--out", type=path, metavar="RUN", help="keep all messages and answers as records in this run folder")
    add("--accept-changed-code", action="store_true", help=CHANGED_CODE_SERVED)
    add(
        "--key-file",
        type=path,
        metavar="FILE",
        help="a file with the key that clients must send (default: the environment variable TURINGLIKE_API_KEY)",
    )
    add(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="a host name that clients use for this server; may be repeated",
    )
    add("--seed", type=seed, default=0, metavar="S", help="the seed of requests that contain no seed (default 0)")
    add(
        "--log-format",
        choices=("text", "json"),
        default="text",
        help="the form of the lines on stderr: text for people, or json for programs, an object on each line (default "
        "text)",
    )
    add("--lazy", action="store_true", help="load each agent only when the first request for this agent comes")
    add(
        "--queue",
        type=positive,
        default=256,
        metavar="N",
        help="largest number of unfinished requests to one agent; further requests are refused (default 256)",
    )
    add(
        "--deadline",
        type=seconds,
        default=120.0,
        metavar="S",
        help="largest number of seconds for one answer (default 120)",
    )
    add(
        "--replicas",
        type=positive,
        default=1,
        metavar="N",
        help="number of workers for each agent; a worker is a process that answers (default 1)",
    )


# agents


def _add_agents(commands: Commands) -> None:
    agents = commands.add(
        "agents",
        "serving.commands.agent_list:print_agents",
        "list all agents, or describe one agent",
        commands.as_json,
        example="--task word --here --sort size",
    )
    add = agents.add_argument
    add("name", nargs="?", metavar="NAME", help="the agent to describe (default: list all agents)")
    add(
        "--task",
        type=any_task,
        metavar="TASK",
        help="list only agents of this task; the task `judgement` lists the judges",
    )
    add("--here", action="store_true", help="list only agents that can run on this machine now")
    add("--sort", choices=("size", "name"), help="sort the list by memory (size) or by name")


def _add_doctor(commands: Commands) -> None:
    doctor = commands.add(
        "doctor",
        "serving.commands.agent_list:doctor",
        "print which agents can run on this machine, and what is missing for agents that cannot run",
        commands.as_json,
        example="--task caption",
    )
    doctor.add_argument("--task", type=any_task, metavar="TASK", help="print only agents of this task")


def _add_fetch(commands: Commands) -> None:
    fetch = commands.add(
        "fetch",
        "serving.commands.fetch:fetch",
        "download the checkpoints (model weights) that agents need, and print the size and licence of each checkpoint",
        commands.settings,
        example="git-large-coco",
        doing="downloading",
    )
    fetch.add_argument("agents", nargs="+", metavar="AGENT", help="the agents whose checkpoints are downloaded")


# what the commands do


def _check(options: argparse.Namespace) -> int:
    from serving.sets.checking import check_unasked, print_report

    if options.agents is not None:
        from serving.generation.agent_check import check_agents

        selection = _selection(options)
        return check_agents(options.source, selection, tasks=options.tasks, deep=options.deep, json=options.json)
    if options.settings or options.config is not None:
        raise InputError("--set and --config are about agents: name them with --agents")
    return print_report(check_unasked(options.source, tasks=options.tasks, deep=options.deep), json=options.json)


def _generate(options: argparse.Namespace) -> int:
    from serving.generation.generate import GenerateOptions, generate

    selection = _selection(options)
    return generate(
        from_options(
            GenerateOptions,
            options,
            agents=selection.names,
            entries=selection.entries,
            settings=selection.settings,
            narrowed=selection.narrowed,
        ),
        _print,
    )


def _check_selection(options: argparse.Namespace) -> None:
    selection = _selection(options)
    checked_agents(selection.entries, selection.settings)


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
