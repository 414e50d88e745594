"""A card's folder as projects: the set of stimuli, and files ``turinglike.toml`` with the commands that make the card.

The projects are the provenance of the card. They say in full what was asked, and ``turinglike run`` repeats it. Their
steps resume by themselves, so that a card that was stopped at any moment goes on. In the folder lie the answers; in it
each agent has a folder of its own, with its trials, verdicts and scores.
"""

import hashlib
import json
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from agents.errors import InputError, Problem
from agents.stimuli import SHORT, Asked
from judging.cards.pool import MANIFEST, Pool, PoolAnswers, checksum
from judging.contamination.marks import read_marks
from judging.tells.registry import TRANSFORMATIONS, in_order
from serving.exchange.importing.form_files import load_form
from serving.exchange.importing.reading import read_source
from serving.exchange.importing.recognising import with_form
from serving.exchange.importing.row_rules import row_rule
from serving.exchange.importing.source import ImportOptions
from serving.files.atomic_files import replacing
from serving.projects.project_file import FILE
from serving.sets.stimulus_set import read_rows

ANSWERS = "answers"
PEOPLE = "people"
TRIALS = "trials"
VERDICTS = "verdicts"
SCORES = "scores"
TELLS = "tells"
CALIBRATION = "calibration"
SET = "stimuli.jsonl"
BEGUN = "card.begun.json"  # what the card is made of
OWN = (ANSWERS, PEOPLE, CALIBRATION)
TALK: Asked = "conversation"
PICTURES = ("image", "target_image", "target_mask")  # fields of a stimulus that are paths
SHORT_OF: dict[str, str] = {full: short for short, full in SHORT.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class CardChoices:
    """What a card was asked for."""

    agents: Sequence[str]
    """The agents and pairs that answer, as ``generate --agents`` takes them."""
    judges: Sequence[str]
    """The judges, as ``judge --judges`` takes them."""
    settings: Sequence[str] = ()
    """``agent.field=value`` of agents."""
    judges_settings: Sequence[str] = ()
    """The same of judges."""
    trained: Sequence[str] = ()
    """Those of the judges that look at whole answers and learn from trials: they judge the versions of answers, too, in
    which a tell is taken away. Language models do not, as each version would be paid for."""
    config: Path | None = None
    """A file of settings, of agents and of judges."""
    here: bool = False
    """All is computed in one process, without workers of Ray."""
    device: str = "auto"
    """Where agents and judges compute."""
    per_agent: int | None = None
    """How many answers of each agent are judged for each task; None for all that the answers allow."""
    tested: Mapping[str, Mapping[Asked, str]]
    """By tested agent, and by task that is tested, its name in the run: ``a~a`` in conversations."""
    pools: Mapping[Asked, tuple[Pool, PoolAnswers]]
    """By task whose answers these agents stand beside."""


def write_projects(
    folder: Path, choices: CardChoices, set_of_card: Sequence[Mapping[str, Any]]
) -> tuple[Path, dict[str, Path]]:
    """Write the set of stimuli, which :func:`set_rows` gave, and the files of the projects into ``folder``. Returns the
    path of the whole card's file, and by tested agent that of its own.

    What is there already stays. Raises InputError where ``folder`` holds another card or something else."""
    folder = folder.resolve()
    if taken := [name for name in choices.tested if name in OWN]:
        raise InputError(f"{taken[0]} is the name of a folder of each card; give the agent another name (--config)")
    rows = b"".join(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in set_of_card)
    file = folder / FILE
    files = {name: folder / name / FILE for name in choices.tested}
    texts = {file: whole_text(folder, choices)}
    texts |= {files[name]: agent_text(folder / name, choices, name) for name in files}
    for name in files:
        of_tells = tells_text(folder / name / TELLS, choices, name)
        if of_tells:
            texts[folder / name / TELLS / FILE] = of_tells
    begun = folder / BEGUN
    made_of = _made_of(choices)
    if begun.is_file():
        _refuse_other_card(folder, begun, made_of)
    elif folder.is_dir() and any(path.name != "lock" and path.name[0] != "." for path in folder.iterdir()):
        raise InputError(f"{folder} exists and holds no card; choose another --out")  # "." begins abandoned files
    # First what makes the folder a card: killed after any other file, the same command would find a stranger's folder.
    contents = [(begun, orjson.dumps(made_of, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))]
    contents += [(folder / SET, rows), *((path, text.encode()) for path, text in texts.items())]
    if any(_is_private(pool.folder / answers.file) for pool, answers in choices.pools.values()):
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)  # as the pool's file: what people said in private stays so
    for path, content in contents:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as opened:
            opened.write(content)
    return file, files


def _made_of(choices: CardChoices) -> dict[str, Any]:
    """What a card is made of, by the words of a message. Paths of pools and of the card are not part of it, so that a
    card may be moved; neither is where it is computed."""
    config = "" if choices.config is None else choices.config.read_text("utf-8")
    return {
        "agents": list(choices.agents),
        "judges": list(choices.judges),
        "settings (--set)": [*choices.settings, *choices.judges_settings],
        "settings (--config)": hashlib.sha256(config.encode()).hexdigest(),
        "--per-agent": choices.per_agent,
        "tasks": list(choices.pools),
        "pools": {
            pool.name: pool.manifest.model_dump(mode="json", by_alias=True) for pool, _ in choices.pools.values()
        },
        "answers of participants": {
            task: checksum(pool.folder / answers.file) for task, (pool, answers) in choices.pools.items()
        },
        "traces": {task: answers.traces for task, (_, answers) in choices.pools.items() if answers.traces},
        "stimuli": {
            task: checksum(pool.folder / answers.stimuli)
            for task, (pool, answers) in choices.pools.items()
            if (pool.folder / answers.stimuli).is_file()
        },
    }


def _refuse_other_card(folder: Path, begun: Path, made_of: Mapping[str, Any]) -> None:
    try:
        before = orjson.loads(begun.read_bytes())
    except orjson.JSONDecodeError:
        raise InputError(f"{begun} cannot be read; choose another --out") from None
    if others := [name for name, value in made_of.items() if before.get(name) != value]:
        raise InputError(f"{folder} holds a card that is made of other {', '.join(others)}; choose another --out")


def _is_private(path: Path) -> bool:
    """Whether only its owner may read a file."""
    return not path.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH)


def set_rows(folder: Path, pools: Mapping[Asked, tuple[Pool, PoolAnswers]]) -> list[dict[str, Any]]:
    """The rows of the set: the stimuli of each pool, in the order of the tasks.

    A stimulus is called ``TASK/ID``, so that one picture may stand in several tasks; ``benchmark_id`` is its name in
    the pool, by which the participants' answers find it. Paths of pictures become relative to ``folder``. The answers
    are read, too: a wrong column must not come to light after a model has answered for hours. Raises InputError with
    all problems of the pools' files."""
    rows: list[dict[str, Any]] = []
    problems: list[Problem] = []
    for task, (pool, answers) in pools.items():
        found = []
        try:
            source = read_source(pool.folder / answers.file, import_options(pool, answers))
        except InputError as error:  # before a model has answered for hours
            problems += error.problems or [Problem(str(pool.folder / answers.file), None, None, str(error))]
            source = None
        try:
            if answers.traces:
                read_marks([pool.folder / answers.traces])
        except InputError as error:
            problems += error.problems or [Problem(str(pool.folder / answers.traces), None, None, str(error))]
        try:
            if answers.stimuli:
                found = _rows_of_set(pool, answers, folder)
            elif answers.task != "word_association":
                told = f"names no set of stimuli for {answers.task}: give `stimuli`"
                problems.append(Problem(str(pool.folder / MANIFEST), None, None, told))
            elif source is not None:
                cues = dict.fromkeys(answer.stimulus for answer in source.answers)
                found = [{"id": cue, "cue": cue} for cue in cues]
        except InputError as error:
            problems += error.problems or [Problem(str(pool.folder / answers.stimuli), None, None, str(error))]
        for row in found:
            name = row["id"]
            rows.append({"benchmark_id": name, **row, "id": f"{SHORT_OF[task]}/{name}", "task": task})
    if problems:
        raise InputError("the pools' files cannot be read; nothing was started", problems)
    return rows


def _rows_of_set(pool: Pool, answers: PoolAnswers, folder: Path) -> list[dict[str, Any]]:
    source = pool.folder / answers.stimuli
    root = source if source.is_dir() else source.parent
    rows: list[dict[str, Any]] = []
    problems: list[Problem] = []
    for row in read_rows(source, answers.task):
        if row.problems:
            problems += row.problems
            continue
        fields = orjson.loads(row.raw)
        if fields["task"] != answers.task:
            continue  # the set of a pool may be of several tasks
        for name in PICTURES:
            if name in fields and not (root / fields[name]).is_file():
                problems.append(Problem(str(source), row.line, name, f"{fields[name]}: no such file"))
            elif name in fields:
                fields[name] = os.path.relpath(root / fields[name], folder)
        rows.append(fields)
    if problems:
        raise InputError(f"{source} is no set that can be asked", problems)
    if not rows:
        raise InputError(f"{source} has no stimulus of {answers.task}")
    return rows


def import_options(pool: Pool, answers: PoolAnswers) -> ImportOptions:
    """The options by which the file of a pool is read. Raises InputError for a wrong one."""
    given = dict(answers.import_)
    form = given.pop("form", None)
    if "rows" in given:
        try:
            given["rows"] = [row_rule(rule) for rule in given["rows"]]
        except ValueError as error:
            raise InputError(f"pool {pool.name}: rows: {error}") from None
    if "frame" in given:
        width, height = given["frame"].split("x")
        given["frame"] = (float(width), float(height))
    options = ImportOptions(task=answers.task, **given)
    return options if form is None else with_form(options, load_form(pool.folder / form))


def whole_text(folder: Path, choices: CardChoices) -> str:
    """The project of the whole card: all agents answer, the pools' answers are read, and the AI judges judge what
    people have judged."""
    asked = {
        "stimuli": SET,
        "agents": list(choices.agents),
        "set": list(choices.settings),
        **_of_workers(folder, choices),
        "out": ANSWERS,
    }
    tables: list[tuple[str, dict[str, Any]]] = [("generate", asked)]
    for task, (pool, answers) in choices.pools.items():
        options = dict(answers.import_)
        if "form" in options:
            options["form"] = os.path.relpath(pool.folder / options["form"], folder)
        file = os.path.relpath(pool.folder / answers.file, folder)
        tables.append(("import", {"files": [file], "task": task, **options, "out": PEOPLE}))
    for number, (pool, verdicts) in enumerate(verdicts_of(choices.pools), 1):
        trials = os.path.relpath(pool.folder / verdicts.trials, folder)
        tables.append(("judge", _judged(folder, choices, trials, f"{CALIBRATION}/{number}")))
    return _project("The answers of this card; each agent's folder has the commands that judge them.", tables)


def agent_text(folder: Path, choices: CardChoices, agent: str) -> str:
    """The project of an agent: its answers are judged beside those of participants, and scored.

    Each agent is judged by itself, so that its figures do not depend on which others stand on the same card. Only
    stimuli that it and participants answered are judged: a judge could learn the others instead of the answers. The
    topics of conversations are the exception, as people talked about topics of their own."""
    tables: list[tuple[str, dict[str, Any]]] = []
    verdicts = []
    for name, tasks in _groups(choices, agent):
        tables.append(("trials", {**_drawn(choices, agent, tasks, ".."), "out": f"{TRIALS}{name}"}))
        tables.append(("judge", _judged(folder, choices, f"{TRIALS}{name}", f"{VERDICTS}{name}")))
        verdicts.append(f"{VERDICTS}{name}")
    scored: dict[str, Any] = {"verdicts": verdicts, "out": SCORES, "force": True}
    for _, tasks in _groups(choices, agent):
        for task in tasks:
            pool, answers = choices.pools[task]
            if answers.traces:  # of a single folder: ``chosen`` refuses two
                scored["contamination"] = os.path.relpath(pool.folder / answers.traces, folder)
    tables.append(("score", scored))
    return _project(f"The commands that judge the answers of {agent}.", tables)


def tells_text(folder: Path, choices: CardChoices, agent: str) -> str:
    """The project of an agent's tells: the same answers in versions without one property each, judged by judges that
    learn anew on each version. "" where no judge learns, or no task has a property that could be taken away.

    It is a project of its own, so that the agent's outcome does not hang on it."""
    tables: list[tuple[str, dict[str, Any]]] = []
    verdicts = []
    for name, tasks in _groups(choices, agent):
        with_tells = [task for task in tasks if tells_of(task)]
        if not with_tells or not choices.trained:
            continue
        there = {tell for task in with_tells for tell in tells_of(task)}
        without = [tell for tell in TRANSFORMATIONS if tell in there]
        drawn = {**_drawn(choices, agent, with_tells, "../.."), "without": without, "out": f"{TRIALS}{name}"}
        tables.append(("trials", drawn))
        judged = _judged(folder, choices, f"{TRIALS}{name}", f"{VERDICTS}{name}")
        tables.append(("judge", {**judged, "judges": list(choices.trained)}))
        verdicts.append(f"{VERDICTS}{name}")
    if not tables:
        return ""
    tables.append(("score", {"verdicts": verdicts, "out": SCORES, "force": True}))
    return _project(f"The commands that look for tells of {agent}.", tables)


def tells_of(task: Asked) -> list[str]:
    """The properties that can be taken away from a card's answers to a task. Words and colours have none: the rules
    that all answers pass have taken case, marks and inflection away, and left one word. A card's trials show no
    delays."""
    if task in ("word_association", "color_estimation"):
        return []
    shown = [name for name, transformation in TRANSFORMATIONS.items() if not transformation.needs_delays]
    return in_order(shown, task)


def _groups(choices: CardChoices, agent: str) -> list[tuple[str, list[Asked]]]:
    """The tasks of an agent that are judged together, with the ends of their folders' names."""
    tested = [task for task in choices.pools if task in choices.tested[agent]]
    talks = [task for task in tested if task == TALK]
    others = [task for task in tested if task != TALK]
    groups = [("", others), (f"-{TALK}", talks)]
    return [(name, tasks) for name, tasks in groups if tasks]


def _drawn(choices: CardChoices, agent: str, tasks: Sequence[Asked], to_card: str) -> dict[str, Any]:
    """The options by which trials are drawn; ``to_card`` is the way from their project's folder to the card's."""
    drawn: dict[str, Any] = {
        "runs": [f"{to_card}/{ANSWERS}"],
        "people": [f"{to_card}/{PEOPLE}"],
        "agents": [agent],
        "task": list(tasks),
        "common": TALK not in tasks,
        "seed": 0,
    }
    if choices.per_agent is not None:
        drawn["per_agent"] = choices.per_agent
    return drawn


def _judged(folder: Path, choices: CardChoices, trials: str, out: str) -> dict[str, Any]:
    return {
        "trials": trials,
        "judges": list(choices.judges),
        "set": list(choices.judges_settings),
        **_of_workers(folder, choices),
        "out": out,
    }


def _project(comment: str, tables: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
    names = [name for name, _ in tables]
    lines = [f"# {comment}", "# `turinglike run` in this folder carries them out."]
    for name, table in tables:
        lines += ["", f"[[{name}]]" if names.count(name) > 1 else f"[{name}]"]
        lines += [f"{key} = {_toml(value)}" for key, value in table.items() if value is not False and value != []]
    return "\n".join([*lines, ""])


def _of_workers(folder: Path, choices: CardChoices) -> dict[str, Any]:
    options: dict[str, Any] = {"here": choices.here}
    if choices.device != "auto":
        options["device"] = choices.device
    if choices.config is not None:
        options["config"] = os.path.relpath(choices.config, folder)
    return options


def verdicts_of(pools: Mapping[Asked, tuple[Pool, PoolAnswers]]) -> list[tuple[Pool, Any]]:
    """The people's verdicts of all pools, each pool once, with the pool they belong to."""
    by_name = {pool.name: pool for pool, _ in pools.values()}
    return [(pool, verdicts) for pool in by_name.values() for verdicts in pool.manifest.verdicts]


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(key)} = {_toml(part)}" for key, part in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)
