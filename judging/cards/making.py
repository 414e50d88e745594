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
from judging.cards.gathering import gather, thumbnails
from judging.cards.page import badge, board_page, card_page, readme_rows
from judging.cards.pool import Pool, PoolAnswers, chosen, find_pool
from judging.cards.steps import TALK, TELLS, CardChoices, set_rows, write_projects
from judging.judges.asking import CUES, check_judges
from judging.judges.trained import TrainedJudge
from serving.files.atomic_files import lock, replacing
from serving.files.output_paths import make_parent, refuse_existing
from serving.files.terminal import print_line
from serving.projects.project_file import FILE, read_project
from serving.projects.running import FAILED_RECORDS, run_project

CARD_FILE = "card.json"
PAGE = "index.html"
README = "README-row.md"
JUDGES = ("svm",)  # of every computer: it needs no model and no key
GOES_ON = (0, FAILED_RECORDS)  # exit codes after which there is something to judge
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
    tested, asked, left_out = plan(agents, selection, found, tasks, pools)
    if not asked:
        raise InputError("nothing can be tested", [Problem("test", None, None, sentence) for sentence in left_out])
    answered = {task: found[task] for task in found if any(task in names for names in tested.values())}
    choices = CardChoices(
        agents=asked,
        tested=tested,
        judges=wanted_judges,
        settings=list(map(_value_from_anywhere, of_agents)),
        judges_settings=list(map(_value_from_anywhere, of_judges)),
        trained=trained_judges(wanted_judges, config),
        config=config,
        here=here,
        device=device,
        per_agent=per_agent,
        pools=answered,
    )
    rows = set_rows(out.resolve(), answered)
    make_parent(out / CARD_FILE)
    with lock(out):
        file, files = write_projects(out, choices, rows)
        worst, lines = _run(file)
        if worst not in GOES_ON:
            return worst
        unjudged = []
        for name, of_agent in files.items():
            code, of_steps = _run(of_agent)
            if code not in (*GOES_ON, InputError.exit_code):
                return code
            if code == InputError.exit_code:
                unjudged.append(name)
                left_out.append(f"{name} could not be judged: `turinglike run` in the folder {name} says why")
            worst = max(worst, code)
            lines += [f"# in the folder {name}", *of_steps]
            of_tells = of_agent.parent / TELLS / FILE
            if of_tells.is_file() and name not in unjudged:
                code, of_steps = _run(of_tells)
                if code not in (*GOES_ON, InputError.exit_code):
                    return code
                if code == InputError.exit_code:
                    told = f"`turinglike run` in the folder {name}/{TELLS} says why"
                    left_out.append(f"tells of {name} could not be looked for: {told}")
                worst = max(worst, code)
                lines += [f"# in the folder {name}/{TELLS}", *of_steps]
        card = gather(out, tested, answered, left_out, lines, unjudged=unjudged, price_token=price_token)
        write_card(card, out, thumbnails(out, card))
    print_line(f"card: {out / PAGE}")
    return worst


def trained_judges(judges: Sequence[str], config: Path | None) -> list[str]:
    """Those of the judges that learn from trials and look at whole answers; judges by a single cue do not."""
    named = [name for name in judges if name != CUES]
    found = []
    for name, entry in resolve(named, [], config, "judges").entries.items():
        if issubclass(entry.load_class(), TrainedJudge) and not entry.make().declaration().single_cue:
            found.append(name)
    return found


def _run(file: Path) -> tuple[int, list[str]]:
    """Carry out a project; its exit code, and the lines of its commands."""
    from serving.cli import build_parser  # which registers the command that calls this

    parser = build_parser()
    lines = [shlex.join(["turinglike", *step.words]) for step in read_project(file, parser)]
    return run_project(file, parser, (), False), lines


def write_card(card: Card, folder: Path, pictures: Mapping[tuple[Asked, str], str]) -> None:
    """Write ``card.json``, the page, a badge for each agent, and the rows for a README. ``pictures`` are those of
    :func:`judging.cards.gathering.thumbnails`."""
    texts = {CARD_FILE: card.as_json(), PAGE: card_page(card, pictures).encode(), README: readme_rows(card).encode()}
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
) -> tuple[dict[str, dict[Asked, str]], list[str], list[str]]:
    """By tested agent, and by task, its name in the run; what ``generate`` is asked; and sentences on what is left out.

    An agent converses with itself, as ``a~a``: a conversation needs two, and a person cannot be asked here. Of a pair
    ``a~b`` both are tested."""
    tested: dict[str, dict[Asked, str]] = {}
    asked: list[str] = []
    left_out = [_without_pool(task, pools) for task in tasks if task not in found and _any_answers(task, selection)]
    for name in sorted(agents, key=lambda name: "~" not in name):  # pairs first: who has a partner needs no other
        plain = selection.plain[name]
        is_pair = len(catalogue.members(plain)) > 1
        answers: Sequence[str] = [TALK] if is_pair else selection.entries[plain].tasks
        testable = [task for task in found if task in answers]
        if not testable:
            listed = ", ".join(SHORT_OF.get(task, task) for task in answers)
            left_out.append(f"{plain} answers {listed}, and no pool has participants' answers to it")
            continue
        if is_pair:
            asked.append(name)
            for member in dict.fromkeys(catalogue.members(plain)):
                tested.setdefault(member, {})[TALK] = plain
            continue
        names = tested.setdefault(plain, {})
        names |= {task: plain for task in testable if task != TALK}
        if testable != [TALK]:
            asked.append(name)
        if TALK in testable and TALK not in names:
            model = name.rpartition("=")[0] if plain in selection.narrowed else name
            asked.append(f"{model}~{model}")
            names[TALK] = f"{plain}~{plain}"
    return tested, asked, left_out


def _any_answers(task: Asked, selection: Selection) -> bool:
    return any(task in entry.tasks for entry in selection.entries.values())


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
