"""The commands ``test`` and ``cards``."""

import argparse
from pathlib import Path

from agents.errors import printable
from agents.stimuli import TASKS
from judging.cards.pool import find_pool, names_in_box
from serving.commands.command_line import DEVICE, Commands, path, positive, price, tasks


def register(commands: Commands) -> None:
    """Add ``test`` and ``cards`` to the command line."""
    test = commands.add(
        "test",
        _test,
        "test a model in one command: it answers, judges judge, and a page says what came of it. Run the same command "
        "again to continue",
        commands.settings,
        example="hf:./my-model --people words-1910 -o card",
        uses_ray=True,
        resumes=True,
    )
    add = test.add_argument
    add(
        "agents",
        nargs="*",
        metavar="AGENT",
        help="agents: names of the catalogue, or models by name, such as hf:ORG/NAME, hf:./folder or ollama:MODEL",
    )
    add(
        "-o",
        "--out",
        type=path,
        metavar="CARD",
        help="the folder of the card: a new folder, or the folder of a card to continue",
    )
    add(
        "--people",
        action="append",
        metavar="POOL",
        help="a pool of participants' answers: a folder with a pool.toml, such a file, or a name that --pools lists. "
        "If the files of such a pool are not passed on with Turinglike, NAME=FOLDER says where they lie. May be "
        "repeated (default words-1910)",
    )
    add("--pools", action="store_true", help="print the pools that Turinglike knows, and end")
    add("--task", type=tasks, default=TASKS, metavar="A,B", help="test only these tasks (default: all that a pool has)")
    add(
        "--judges",
        default="svm",
        metavar="A,B",
        help="judges, as `turinglike agents --task judgement` lists them (default svm). All judges that look at no "
        "more than one property of an answer are asked, too",
    )
    add(
        "--per-agent",
        type=positive,
        metavar="N",
        help="how many answers of each agent are judged for each task (default: as many as the answers allow)",
    )
    add("--price-token", type=price, metavar="P", help="what a token costs; the card then says what the answers cost")
    add("--here", action="store_true", help="answer and judge in one process, without Ray and without workers")
    add("--device", choices=("auto", "cpu", "cuda"), default="auto", help=DEVICE)

    cards = commands.add("cards", _cards, "make a page of several cards", example="card other-card -o board.html")
    add = cards.add_argument
    add("cards", nargs="+", type=path, metavar="CARD", help="folders of cards, or card.json files")
    add("-o", "--out", required=True, type=path, metavar="FILE", help="the page to write")
    add("--force", action="store_true", help="replace the page that is at --out")


def _test(options: argparse.Namespace) -> int:
    from judging.cards.making import make_card

    if options.pools:
        for name in names_in_box():
            _print_pool(name)
        return 0
    if not options.agents or options.out is None:
        from agents.errors import InputError

        raise InputError("test: name an agent, and with --out the folder of its card")
    agents = [name for text in options.agents for name in text.split(",") if name]
    return make_card(
        agents,
        options.out,
        people=options.people or ("words-1910",),
        tasks=options.task,
        judges=[name.strip() for name in options.judges.split(",") if name.strip()],
        settings=options.settings,
        config=options.config,
        per_agent=options.per_agent,
        here=options.here,
        device=options.device,
        price_token=options.price_token,
    )


def _print_pool(name: str) -> None:
    pool = find_pool(name)
    manifest = pool.manifest
    _print(f"{name}, version {manifest.version}: {manifest.source}")
    _print(f"  licence: {manifest.licence}")
    for answers in manifest.answers:
        there = "is here" if (pool.folder / answers.file).is_file() else f"get it at {answers.page}"
        verified = "checked by its SHA-256" if answers.sha256 else "not verified: no SHA-256 is known"
        _print(f"  {answers.task}: {answers.file}, {there}; {verified}")


def _cards(options: argparse.Namespace) -> int:
    from judging.cards.making import make_board

    rows = make_board([Path(card) for card in options.cards], options.out, force=options.force)
    _print(f"{rows:,} rows: {options.out}")
    return 0


def _print(text: str) -> None:
    print(printable(text), flush=True)
