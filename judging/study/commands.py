"""The command line of ``turinglike study``."""

import argparse

from agents.errors import InputError
from serving.commands.command_line import Commands, arguments, path, port, positive, share, task


def register(commands: Commands) -> None:
    """Add ``study`` with its actions."""
    study = commands.add(
        "study",
        _nothing,
        "let people judge or answer in a browser: make, serve, watch and export a study",
        example="new trials -o study",
    )
    actions = study.add_subparsers(metavar="ACTION", required=True, dest="action")

    def add(name: str, summary: str, *, of_study: bool = True) -> argparse.ArgumentParser:
        action: argparse.ArgumentParser = actions.add_parser(
            name, help=summary, description=summary[0].upper() + summary[1:] + "."
        )
        action.set_defaults(carried_out_by=_action)
        if of_study:
            action.add_argument("study", type=path, metavar="STUDY", help="the folder of the study")
        return action

    new = add(
        "new",
        "make a study; its study.toml holds all choices. People judge trials, answer a stimulus set, or meet online",
        of_study=False,
    )
    new.add_argument(
        "source",
        nargs="?",
        type=path,
        metavar="TRIALS|SET",
        help="a folder that `turinglike trials` wrote, or a stimulus set; none for online tests",
    )
    new.add_argument("-o", "--out", required=True, type=path, metavar="STUDY", help="the new folder of the study")
    new.add_argument("--task", type=task, metavar="TASK", help="the task, where the trials or the set have several")
    new.add_argument(
        "--preset",
        choices=("plain", "2022", "2025", "feedback", "online", "interrogation"),
        help="with trials: plain, feedback, or as in the paper of that year; without a source, a live test of a judge "
        "with a person and a machine: online (by questions) or interrogation (by the clock); with a stimulus set, none",
    )

    add("check", "check whether all that study.toml asks for can be done")
    add("close", "end a study: nobody may answer any more")

    links = add("links", "print N new links, each for one judge; they are kept nowhere")
    links.add_argument("number", type=positive, metavar="N", help="how many links")
    links.add_argument(
        "--address", default="http://127.0.0.1:8000/", help="the address at which judges reach the study"
    )

    serve = add("serve", "serve the pages of a study, until Ctrl-C")
    serve.add_argument(
        "--host",
        default="127.0.0.1",
        help="the address to listen at (default 127.0.0.1: this machine alone); others reach it through a proxy",
    )
    serve.add_argument("--port", type=port, default=8000, help="the port to listen at (default 8000)")
    serve.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="a host name under which judges reach this server; may be repeated",
    )
    serve.add_argument(
        "--key-file",
        type=path,
        metavar="FILE",
        help="a file with the key of /admin (default: the variable TURINGLIKE_API_KEY)",
    )
    serve.add_argument("-q", "--quiet", action="store_true", help="print only errors and the address")

    status = add(
        "status", "count judges, verdicts and exclusions by rule, and tell how often each agent passes for a person"
    )
    status.add_argument("--json", action="store_true", help="print JSON, for programs")

    plan = add(
        "plan",
        "compute how many judges are needed; for a STUDY, write its plan and power as a text to preregister",
        of_study=False,
    )
    plan.add_argument(
        "study", nargs="?", type=path, metavar="STUDY", help="a study, which gives all numbers and bounds"
    )
    plan.add_argument(
        "--half-width", type=share, metavar="W", help="half the width of each agent's 95 %% interval (default 0.05)"
    )
    plan.add_argument(
        "--measure", choices=("detectability", "p_machine"), help="what the interval is of (default detectability)"
    )
    plan.add_argument("--agents", type=positive, metavar="N", help="agents that are judged")
    plan.add_argument("--per-judge", type=positive, metavar="N", help="trials that each judge sees")
    plan.add_argument("--stimuli", type=positive, metavar="N", help="stimuli that the trials come from")

    export = add(
        "export",
        "write verdicts or answers as a run folder, which `score` or `trials` reads, with a table of verdicts",
    )
    export.add_argument("-o", "--out", required=True, type=path, metavar="RUN", help="the run folder to write")
    export.add_argument(
        "--personal", action="store_true", help="also export panels' ids, and what people said of themselves"
    )
    export.add_argument("--judge", metavar="CODE", help="export all that is kept of this one person, as a JSON file")
    export.add_argument("--force", action="store_true", help="replace what is at --out")

    kit = add("kit", "write an HTML file with the trials of N judges, for a machine without a network")
    kit.add_argument("number", type=positive, metavar="N", help="how many judges")
    kit.add_argument("-o", "--out", required=True, type=path, metavar="FILE.html", help="the file to write")

    take = add("import", "take in the answers that kits have saved")
    take.add_argument("files", nargs="+", type=path, metavar="FILE", help="files that kits saved")

    forget = add("forget", "remove all that is kept of a judge")
    forget.add_argument("judge", metavar="CODE", help="the code of the judge")


def _action(options: argparse.Namespace) -> int:
    from judging.study.actions import ACTIONS

    act = ACTIONS[options.action]
    act(**arguments(act, options))
    return 0


def _nothing(options: argparse.Namespace) -> int:
    raise InputError("study: say what to do; `turinglike study --help` lists it")
