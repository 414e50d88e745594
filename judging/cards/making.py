"""``turinglike test``: a card for agents in one command, which resumes."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from agents import catalogue
from agents.catalogue.selection import Selection, checked_agents, resolve
from agents.errors import InputError, Problem
from agents.stimuli import SHORT, TASKS, Asked
from judging.cards.card import Card, read_card
from judging.cards.gathering import gather
from judging.cards.page import badge, board_page, card_page, readme_rows
from judging.cards.pool import Pool, PoolAnswers, chosen, find_pool
from judging.cards.steps import CardChoices, write_project
from judging.judges.asking import CUES, check_judges
from serving.files.atomic_files import lock, replacing
from serving.files.output_paths import make_parent, refuse_existing
from serving.projects.project_file import read_project
from serving.projects.running import FAILED_RECORDS, run_project

CARD_FILE = "card.json"
PAGE = "index.html"
README = "README-row.md"
JUDGES = ("svm",)  # of every computer: it needs no model and no key
SHORT_OF: dict[str, str] = {full: short for short, full in SHORT.items()}


def make_card(
    agents: Sequence[str],
    out: Path,
    *,
    people: Sequence[str] = ("words-1910",),
    tasks: Sequence[Asked] = TASKS,
    judges: Sequence[str] = JUDGES,
    settings: Sequence[str] = (),
    config: Path | None = None,
    per_agent: int | None = None,
    here: bool = False,
    device: str = "auto",
    price_token: float | None = None,
) -> int:
    """Test ``agents`` in each of ``tasks`` that they answer and a pool has, and write the card into the folder ``out``.

    - ``agents``: names, as ``generate --agents`` takes them; also ``hf:ORG/NAME`` and ``hf:./folder``.
    - ``people``: pools: names in the box, folders, manifests. ``judges``: names of judges; all judges by a single cue
      are asked, too, as tells. ``settings``: ``name.field=value`` of agents and of judges.
    - ``per_agent``: the most answers of an agent that are judged for a task.
    - ``price_token``: what a token costs; it is for the card alone.

    Each step resumes, so that the same call goes on after any end, and asks nothing twice. Returns 0, 1 where some
    records failed, or the exit code of the step that ended it. Raises InputError with all that is wrong before anything
    starts, and StorageError."""
    pools = [find_pool(name) for name in dict.fromkeys(people)]
    wanted_judges = [*dict.fromkeys([*judges, CUES])]
    of_judges, of_agents = _parted(settings, wanted_judges)
    agents = list(dict.fromkeys(map(_from_anywhere, agents)))
    selection = resolve(agents, of_agents, config)
    checked_agents(selection.entries, selection.settings)
    check_judges(",".join(wanted_judges), of_judges, config)
    found = chosen(pools, tasks)
    typed, asked, left_out = plan(agents, selection, found, tasks, pools)
    if not asked:
        raise InputError("nothing can be tested", [Problem("test", None, None, sentence) for sentence in left_out])
    answered = {task: found[task] for task in found if _is_answered(task, typed, selection)}
    choices = CardChoices(
        agents=asked,
        judges=wanted_judges,
        settings=list(map(_value_from_anywhere, of_agents)),
        judges_settings=list(map(_value_from_anywhere, of_judges)),
        config=config,
        here=here,
        device=device,
        per_agent=per_agent,
        pools=answered,
    )
    make_parent(out / CARD_FILE)
    with lock(out):
        file = write_project(out, choices)
        code, lines = _run(file)
        if code not in (0, FAILED_RECORDS):
            return code
        card = gather(out, typed, answered, left_out, lines, price_token)
        write_card(card, out)
    return code


def _run(file: Path) -> tuple[int, list[str]]:
    """Carry out a project; its exit code, and the lines of its commands."""
    from serving.cli import build_parser  # which registers the command that calls this

    parser = build_parser()
    lines = [shlex.join(["turinglike", *step.words]) for step in read_project(file, parser)]
    return run_project(file, parser, (), False), lines


def write_card(card: Card, folder: Path) -> None:
    """Write ``card.json``, the page, a badge for each agent, and the rows for a README."""
    texts = {CARD_FILE: card.as_json(), PAGE: card_page(card).encode(), README: readme_rows(card).encode()}
    for agent in card.agents:
        name = "badge.svg" if len(card.agents) == 1 else f"badge-{agent.agent}.svg"
        texts[name] = badge(agent).encode()
    for name, text in texts.items():
        with replacing(folder / name) as file:
            file.write(text)


def plan(
    agents: Sequence[str],
    selection: Selection,
    found: Mapping[Asked, tuple[Pool, PoolAnswers]],
    tasks: Sequence[Asked],
    pools: Sequence[Pool],
) -> tuple[dict[str, list[str]], list[str], list[str]]:
    """By typed name the names in the run; what ``generate`` is asked; and sentences on what is left out.

    An agent converses with itself, as ``a~a``: a conversation needs two, and a person cannot be asked here."""
    typed: dict[str, list[str]] = {}
    asked: list[str] = []
    left_out = [_without_pool(task, pools) for task in tasks if task not in found and _any_answers(task, selection)]
    for name in agents:
        plain = selection.plain[name]
        members = catalogue.members(plain)
        of_agent: list[str] = ["conversation"] if len(members) > 1 else list(selection.entries[plain].tasks)
        testable = [task for task in found if task in of_agent]
        if not testable:
            answers = ", ".join(SHORT_OF.get(task, task) for task in of_agent)
            left_out.append(f"{plain} answers {answers}, and no pool has participants' answers to it")
            continue
        names = []
        if len(members) > 1:
            names.append(plain)
            asked.append(name)
        else:
            if any(task != "conversation" for task in testable):
                names.append(plain)
                asked.append(name)
            if "conversation" in testable:
                model = name.rpartition("=")[0] if name != plain and plain in selection.narrowed else name
                names.append(f"{plain}~{plain}")
                asked.append(f"{model}~{model}")
        typed[name] = names
    return typed, asked, left_out


def _any_answers(task: Asked, selection: Selection) -> bool:
    return any(task in entry.tasks for entry in selection.entries.values())


def _is_answered(task: Asked, typed: Mapping[str, Sequence[str]], selection: Selection) -> bool:
    for names in typed.values():
        for name in names:
            if "~" in name:
                if task == "conversation":
                    return True
            elif task in selection.entries[name].tasks and task != "conversation":
                return True
    return False


def _without_pool(task: Asked, pools: Sequence[Pool]) -> str:
    names = ", ".join(pool.name for pool in pools)
    return f"{task}: no participants' answers in {names}; give a pool that has some with --people"


def _parted(settings: Sequence[str], judges: Sequence[str]) -> tuple[list[str], list[str]]:
    """Settings of judges, and of agents."""
    of_judges = [text for text in settings if any(text.startswith(f"{judge}.") for judge in judges)]
    return of_judges, [text for text in settings if text not in of_judges]


def _from_anywhere(name: str) -> str:
    """An agent's name that means the same from the card's folder: the path of a model is made absolute."""
    return "~".join(_model_from_anywhere(part) for part in name.split("~"))


def _model_from_anywhere(name: str) -> str:
    engine, colon, model = name.partition(":")
    return f"{engine}{colon}{_absolute(model)}" if colon else name


def _value_from_anywhere(assignment: str) -> str:
    target, equals, value = assignment.partition("=")
    return f"{target}{equals}{_absolute(value)}"


def _absolute(text: str) -> str:
    """A text that names a path from here, as an absolute path; any other text as it is."""
    return str(Path(text).expanduser().absolute()) if text.startswith(("./", "../", "~/")) else text


def make_board(cards: Sequence[Path], out: Path, *, force: bool) -> int:
    """Write a board of cards to the file ``out``; each of ``cards`` is a card's folder or its ``card.json``. Returns
    the number of its rows, one for each agent of a card. Raises InputError with every card that cannot be read, and
    where ``out`` exists without ``force``."""
    refuse_existing([out], force=force)
    read: list[tuple[str, Card]] = []
    problems: list[Problem] = []
    for path in dict.fromkeys(cards):
        file = path / CARD_FILE if path.is_dir() else path
        try:
            card = read_card(file.read_bytes(), str(file))
        except OSError as error:
            problems.append(Problem(str(file), None, None, f"cannot be read: {error.strerror or error}"))
        except InputError as error:
            problems += error.problems or [Problem(str(file), None, None, str(error))]
        else:
            page = os.path.relpath(file.with_name(PAGE), out.parent)
            read.append((page, card))
    if problems:
        raise InputError("the board was not written", problems)
    make_parent(out)
    with replacing(out) as opened:
        opened.write(board_page(read).encode())
    return sum(len(card.agents) for _, card in read)
