"""The command line of ``turinglike study``."""

import argparse

from agents.errors import InputError
from serving.commands.command_line import Commands, arguments, path, port, positive, share, task


def register(commands: Commands) -> None:
    """Add ``turinglike study`` with its actions to the command line."""
    study = commands.add(
        "study",
        _nothing,
        "people judge, or answer, in a browser: set up, serve, watch, export",
        example="new trials -o study",
    )
    actions = study.add_subparsers(metavar="ACTION", required=True, dest="action")

    def add(name: str, summary: str, *, of_study: bool = True) -> argparse.ArgumentParser:
        made: argparse.ArgumentParser = actions.add_parser(
            name, help=summary, description=summary[0].upper() + summary[1:] + "."
        )
        made.set_defaults(run=_action)
        if of_study:
            made.add_argument("study", type=path, metavar="STUDY")
        return made

    new = add(
        "new",
        "a study with all its choices in study.toml: of judges of trials, of participants who answer a set, or online",
        of_study=False,
    )
    new.add_argument(
        "source",
        nargs="?",
        type=path,
        metavar="TRIALS|SET",
        help="a folder of `turinglike trials`, or a stimulus set; none for online tests",
    )
    new.add_argument("-o", "--out", required=True, type=path, metavar="STUDY", help="a new folder")
    new.add_argument("--task", type=task, metavar="TASK", help="where the set has trials of several")
    new.add_argument(
        "--preset",
        choices=("plain", "2022", "2025", "feedback", "online", "interrogation"),
        help="of a trial set: plain, or as in a paper; of no set: live tests of a judge with a person and a machine, "
        "online (by questions) or interrogation (by the clock); a stimulus set has none",
    )

    add("check", "whether all that study.toml asks for can be done")
    add("close", "end a study: nobody may answer any more")

    links = add("links", "so many new links, each for a judge; they are printed and kept nowhere")
    links.add_argument("number", type=positive, metavar="N")
    links.add_argument("--address", default="http://127.0.0.1:8000/", help="where judges reach the study")

    serve = add("serve", "the study's pages, until Ctrl-C")
    serve.add_argument(
        "--host", default="127.0.0.1", help="the address to listen at (this machine); put a proxy before the open net"
    )
    serve.add_argument("--port", type=port, default=8000)
    serve.add_argument("--allow-host", action="append", default=[], metavar="NAME", help="a name that is this server's")
    serve.add_argument("--key-file", type=path, metavar="FILE", help="the key of /admin; or TURINGLIKE_API_KEY")
    serve.add_argument("-q", "--quiet", action="store_true", help="say nothing but errors and where it is")

    status = add("status", "judges, verdicts, exclusions by rule, and how often each agent passes for a person")
    status.add_argument("--json", action="store_true")

    plan = add(
        "plan",
        "how many judges are needed; of a STUDY, its plan with its power, as a text to preregister",
        of_study=False,
    )
    plan.add_argument("study", nargs="?", type=path, metavar="STUDY", help="has all numbers, and bounds")
    plan.add_argument("--half-width", type=share, metavar="W", help="of each agent's 95 %% interval (0.05)")
    plan.add_argument("--measure", choices=("detectability", "p_machine"), help="detectability unless said")
    plan.add_argument("--agents", type=positive, metavar="N")
    plan.add_argument("--per-judge", type=positive, metavar="N", help="trials of each judge")
    plan.add_argument("--stimuli", type=positive, metavar="N")

    export = add(
        "export", "verdicts or answers as a run folder, which `score` or `trials` reads, with a table of verdicts"
    )
    export.add_argument("-o", "--out", required=True, type=path, metavar="RUN")
    export.add_argument("--personal", action="store_true", help="with panels' ids, and what people said of themselves")
    export.add_argument("--judge", metavar="CODE", help="all that is kept of this person alone, as a JSON file")
    export.add_argument("--force", action="store_true", help="replace what is at --out")

    kit = add("kit", "an HTML file with the trials of N judges, for a machine without a network")
    kit.add_argument("number", type=positive, metavar="N")
    kit.add_argument("-o", "--out", required=True, type=path, metavar="FILE.html")

    take = add("import", "take in the answers that kits have saved")
    take.add_argument("files", nargs="+", type=path, metavar="FILE")

    forget = add("forget", "remove all that is known of a judge")
    forget.add_argument("judge", metavar="CODE")


def _action(options: argparse.Namespace) -> int:
    from judging.study.actions import ACTIONS

    act = ACTIONS[options.action]
    act(**arguments(act, options))
    return 0


def _nothing(options: argparse.Namespace) -> int:
    raise InputError("study: say what to do; `turinglike study --help` lists it")
