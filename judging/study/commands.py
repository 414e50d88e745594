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
        example="new trials -o study --task word",
    )
    actions = study.add_subparsers(metavar="ACTION", required=True, dest="action")

    def add(name: str, summary: str, example: str, *, of_study: bool = True) -> argparse.ArgumentParser:
        action: argparse.ArgumentParser = actions.add_parser(
            name,
            help=summary,
            description=summary[0].upper() + summary[1:] + ".",
            epilog=f"Example: turinglike study {name} {example}",
        )
        action.set_defaults(carried_out_by=_action)
        if of_study:
            action.add_argument("study", type=path, metavar="STUDY", help="the folder of the study")
        return action

    new = add(
        "new",
        "make the folder of a study, with all its settings in the file study.toml",
        "trials -o study --task word",
        of_study=False,
    )
    new.add_argument(
        "source",
        nargs="?",
        type=path,
        metavar="TRIALS|STIMULI",
        help="what people see: a folder that `turinglike trials` wrote (people judge), or a stimulus set "
        "(people answer). Online tests and interrogations need neither",
    )
    new.add_argument("-o", "--out", required=True, type=path, metavar="STUDY", help="the new folder of the study")
    new.add_argument(
        "--task", type=task, metavar="TASK", help="the task; needed if TRIALS or STIMULI have several tasks"
    )
    new.add_argument(
        "--preset",
        choices=("plain", "2022", "2025", "feedback", "online", "interrogation"),
        help="the settings to begin with. With TRIALS: plain (default), 2022 or 2025 (as in the paper of this year), "
        "or feedback (judges learn the truth after the first trials). Without TRIALS and STIMULI: online (a test ends "
        "after a number of questions) or interrogation (a test ends after a number of minutes). With STIMULI: no "
        "preset",
    )
    new.add_argument(
        "--set",
        action="append",
        default=[],
        dest="settings",
        metavar="TABLE.KEY=VALUE",
        help="give a setting in study.toml a value, such as trials.number=20; may be repeated",
    )

    add("check", "check whether a study can be served with the settings in its study.toml", "study")
    add("close", "close a study: from then on nobody can answer", "study")

    links = add(
        "links",
        "print N new personal links, one for each judge; the study keeps only hashes of the links",
        "study 30 --address https://study.example.org/",
    )
    links.add_argument("number", type=positive, metavar="N", help="the number of links")
    links.add_argument(
        "--address",
        default="http://127.0.0.1:8000/",
        help="the address at which judges reach the study (default http://127.0.0.1:8000/)",
    )

    serve = add("serve", "serve the pages of a study until Ctrl-C", "study --port 8000")
    serve.add_argument(
        "--host",
        default="127.0.0.1",
        help="the address of the server (default 127.0.0.1: only programs on this machine can connect, and judges on "
        "other machines need a proxy)",
    )
    serve.add_argument("--port", type=port, default=8000, help="the port of the server (default 8000)")
    serve.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="a host name in the addresses that judges open; may be repeated",
    )
    serve.add_argument(
        "--key-file",
        type=path,
        metavar="FILE",
        help="a file with the secret key of the page /admin (default: the environment variable TURINGLIKE_API_KEY)",
    )
    serve.add_argument("-q", "--quiet", action="store_true", help="print only errors and the address")

    status = add(
        "status",
        "count judges, verdicts and excluded verdicts, and print how often each agent was judged human",
        "study",
    )
    status.add_argument("--judges", action="store_true", help="also print a row for each judge or participant")
    status.add_argument("--json", action="store_true", help="print JSON, for programs")

    plan = add(
        "plan",
        "compute how many judges a study needs; with STUDY, print the plan of this study as a text to preregister",
        "--agents 5 --per-judge 40 --stimuli 200",
        of_study=False,
    )
    plan.add_argument(
        "study",
        nargs="?",
        type=path,
        metavar="STUDY",
        help="the folder of a study. The settings of the study give all numbers, so give no option with STUDY",
    )
    plan.add_argument(
        "--half-width",
        type=share,
        metavar="W",
        help="the wanted half-width of each agent's 95 %% interval (default 0.05)",
    )
    plan.add_argument(
        "--measure",
        choices=("detectability", "p_machine"),
        help="the measure whose interval has the half-width W: detectability (default), or p_machine, the share of an "
        "agent's answers that are judged machine",
    )
    plan.add_argument("--agents", type=positive, metavar="N", help="the number of agents that are judged")
    plan.add_argument("--per-judge", type=positive, metavar="N", help="the number of trials that each judge sees")
    plan.add_argument("--stimuli", type=positive, metavar="N", help="the number of stimuli in the trials")
    plan.add_argument(
        "--bounds",
        type=share,
        metavar="B",
        help="also simulate early stopping: after how many judges `study status` decides whether the detectability of "
        "an agent is within 0.5 ± B",
    )

    export = add(
        "export",
        "write the verdicts as a run folder for `score`, or people's answers as a run folder for `trials`",
        "study -o verdicts",
    )
    export.add_argument(
        "-o", "--out", required=True, type=path, metavar="RUN", help="the run folder (with --judge: the file) to write"
    )
    export.add_argument(
        "--personal",
        action="store_true",
        help="also export personal data: ids from recruiting services such as Prolific, what people said about "
        "themselves, and the file participants.csv, which says who is paid",
    )
    export.add_argument("--judge", metavar="CODE", help="export everything about this one person, as a JSON file")
    export.add_argument("--force", action="store_true", help="replace an earlier export at --out")

    kit = add(
        "kit",
        "write a kit: an HTML file with the trials of N judges, for a machine without a network",
        "study 10 -o kit.html",
    )
    kit.add_argument("number", type=positive, metavar="N", help="the number of judges")
    kit.add_argument("-o", "--out", required=True, type=path, metavar="FILE.html", help="the file to write")

    take = add(
        "import", "read files that kits saved, and add the answers in these files to a study", "study answers-*.json"
    )
    take.add_argument("files", nargs="+", type=path, metavar="FILE", help="files that kits have saved")

    forget = add("forget", "delete everything that a study contains about one judge or participant", "study bcdfghjkmn")
    forget.add_argument("judge", metavar="CODE", help="the code of the judge or participant")


def _action(options: argparse.Namespace) -> int:
    from judging.study.actions import ACTIONS

    act = ACTIONS[options.action]
    act(**arguments(act, options))
    return 0


def _nothing(options: argparse.Namespace) -> int:
    raise InputError("study: give an action; `turinglike study --help` lists all actions")
