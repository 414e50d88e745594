"""What the actions of ``turinglike study`` do."""

from __future__ import annotations

import argparse
import asyncio
import os
import secrets
import sys
import tomllib
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

import orjson

from agents.errors import InputError, StorageError, UnavailableError, printable
from agents.stimuli import TASKS, parse_row
from judging.study import presets
from judging.study import status as progress
from judging.study.asking import StimulusMaterial, chosen
from judging.study.material import Material, TrialMaterial
from judging.study.online.material import OnlineMaterial
from judging.study.pages import read_phrases
from judging.study.pool import HOW_TO_CATCH, TrialPool
from judging.study.settings import FILE, JudgesSettings, read_settings, source_of
from judging.study.state import EVENTS, LINKS, PERSONAL, read_personal, read_state, without
from judging.study.study import Study, hashed, material_of
from judging.trial_set import MARKER, key_path
from serving.runs.atomic_files import lock, repair_tail, replacing, sync_folder
from serving.runs.display_text import count
from serving.runs.output_paths import refuse_existing
from serving.runs.stimulus_set import read_rows
from serving.timestamps import now

T = TypeVar("T")
FEWEST_CATCH = 5  # fewer catch trials judge mostly by chance
README = """\
A study of Turinglike. `study.toml` says what is asked, `events.jsonl` has what judges did, by a random code.

Personal, and not to be handed on: `personal.jsonl` (what judges said of themselves, and the ids that a panel gave them)
and what judges wrote in their own words in `events.jsonl`. `links.jsonl` has no link, only their hashes.

`turinglike study forget STUDY CODE` removes all that is known of a judge.
"""


def new(options: argparse.Namespace) -> int:
    if options.preset == "online":
        if options.source is not None or options.task is not None:
            raise InputError("--preset online: is of no trials, no stimuli and no --task")
        return _write_study(options.out, presets.study_of_online_tests())
    source = options.source
    if source is None:
        raise InputError("study new: name a trial set or a stimulus set, or give --preset online")
    of_trials = (source / MARKER).is_file()
    if of_trials and not key_path(source).is_file():
        raise InputError(f"{source}: its key {key_path(source)} is not there")
    rows = [*read_rows(source / MARKER if of_trials else source, choose=chosen(options.task))]
    if problems := [problem for row in rows for problem in row.problems]:
        raise InputError(f"{source} has {count(len(problems), 'problem')}", problems)
    stimuli = [parse_row(row.canonical) for row in rows if row.canonical is not None]
    asked = {getattr(stimulus, "asked", stimulus.task) for stimulus in stimuli}
    tasks = [name for name in TASKS if name in asked]
    what = "trials" if of_trials else "stimuli"
    if options.task is None and len(tasks) != 1:
        raise InputError(
            f"{source} has {what} of {', '.join(tasks) or 'no task'}: say with --task which the study is of"
        )
    task = options.task or tasks[0]
    if task not in tasks:
        raise InputError(f"{source} has no {what} of {task}, but of {', '.join(tasks) or 'no task'}")
    relative = os.path.relpath(source, options.out)
    if of_trials:
        of_pairs = any(getattr(stimulus, "beside", None) is not None for stimulus in stimuli)
        if of_pairs and options.preset != "plain":
            raise InputError(f"--preset {options.preset}: the papers have no pairs of conversations")
        text = _fitting(source, lambda changed: presets.study_of_judges(
            relative, task, options.preset, of_pairs=of_pairs, changed=changed
        ))  # fmt: skip
    else:
        number = sum(stimulus.task == task for stimulus in stimuli)
        text = presets.study_of_participants(relative, task, number)
    return _write_study(options.out, text)


def _fitting(source: Path, write: Callable[[Mapping[str, Any]], str]) -> str:
    """The text of ``study.toml`` that the trial set allows; prints what differs from the preset."""
    pool = TrialPool(source, JudgesSettings.model_validate(tomllib.loads(write({}))))
    trials = pool.settings.trials
    changed = presets.fitting(pool.room()[1], trials, has_catch=pool.has_catch())
    for name, value in changed.items():
        if value != getattr(trials, name):
            why = f"there are no catch trials; {HOW_TO_CATCH}" if name == "catch" else "there are no more stimuli"
            _say(f"trials.{name} = {value}, not {getattr(trials, name)}: {why}")
    return write(changed)


def _write_study(out: Path, text: str) -> int:
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{out} is there already; give a new folder")
    try:
        out.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise StorageError(f"cannot write {out}: {error.strerror}") from None
    for name, content in (("README.md", README), (FILE, text)):
        with replacing(out / name) as file:
            file.write(content.encode())
    _say(f"{out / FILE}: write your consent text there, then")
    _say(f"  turinglike study check {out}")
    return 0


def _opened(folder: Path) -> Material:
    settings = read_settings(folder)
    return material_of(folder, settings, source_of(folder, settings))


def check(options: argparse.Namespace) -> int:
    material = _opened(options.study)
    problems = material.problems()
    try:
        read_phrases(options.study, material.settings)
    except InputError as error:
        problems += [*map(str, error.problems), str(error)]
    if isinstance(material, OnlineMaterial):
        problems += material.served_problems()
    _refuse(options.study, problems)
    if isinstance(material, TrialMaterial):
        kinds = {name: len(pages) for name, pages in sorted(material.pool.cells.items())}
        _say(f"{material.settings.task}: {', '.join(f'{number:,} of {name}' for name, number in kinds.items())}")
        trials = material.settings.trials
        _say(f"each judge: {count(trials.number, 'trial')}, {trials.practice:,} of practice")
        caught = round(trials.catch * trials.number)
        if material.settings.exclude.catch and 0 < caught < FEWEST_CATCH:
            _say(
                f"note: exclude.catch judges by {count(caught, 'catch trial')}, too few to tell who pays no attention, "
                "and it excludes those first who say human more often; a control question (trials.control) does neither"
            )
    elif isinstance(material, StimulusMaterial):
        _say(f"{material.settings.task}: {count(len(material.stimuli), 'stimulus', 'stimuli')}")
        _say(f"each participant: {count(material.settings.answers.number, 'stimulus', 'stimuli')}")
    elif isinstance(material, OnlineMaterial):
        tests = material.settings.tests
        _say(f"{count(tests.wanted, 'online test')} of {', '.join(map(str, tests.exchanges))} exchanges")
        _say(f"each participant: at most {count(tests.each, 'test')}")
    _say(f"no problems; now: turinglike study serve {options.study}")
    return 0


def _refuse(study: Path, problems: Sequence[str]) -> None:
    for problem in problems:
        print(printable(problem), file=sys.stderr)
    if problems:
        raise InputError(f"{study}: {count(len(problems), 'problem')}")


def links(options: argparse.Namespace) -> int:
    settings = read_settings(options.study)
    if settings.judges.entry != "links":
        raise InputError(f'{options.study / FILE}: judges.entry is "{settings.judges.entry}": no link is needed')
    tokens = [secrets.token_urlsafe(16) for _ in range(options.number)]
    lines = [orjson.dumps({"link": hashed(token), "at": now()}) + b"\n" for token in tokens]
    target = options.study / LINKS
    try:
        repair_tail(target)
        with target.open("ab") as file:
            file.writelines(lines)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise StorageError(f"cannot write {target}: {error.strerror}") from None
    for token in tokens:
        print(f"{options.address.rstrip('/')}/?link={token}")
    return 0


def serve(options: argparse.Namespace) -> int:
    try:
        import uvloop

        from judging.study.app import create_app
        from judging.study.server import serve as run
        from serving.http.guard import LOOPBACK, Rules
        from serving.http.monitoring import ServerLog
        from serving.http.server import bound_sockets
        from serving.scheduling import interrupts
        from serving.serve import check_names, read_key
    except ImportError as error:
        raise UnavailableError(f"a study needs more packages ({error}): pip install 'turinglike[serve]'") from None
    check_names(options.allow_host)
    key = read_key(options.key_file)
    material = _opened(options.study)
    phrases = read_phrases(options.study, material.settings)
    hosts = LOOPBACK | {name.lower() for name in options.allow_host}
    if options.host not in ("0.0.0.0", "::"):
        hosts |= {options.host.lower()}
    rules = Rules(frozenset(hosts), None, body_bytes=64 * 1024, all_bytes=64 * 1024 * 1024)
    log = ServerLog(options.quiet)
    log.start()
    if isinstance(material, OnlineMaterial):
        for problem in material.served_problems(with_batch=False):
            print(printable(f"online tests will be void: {problem}"), file=sys.stderr)
    with ExitStack() as held:
        check = held.enter_context(lock(options.study))
        study = Study(options.study, material, check)
        sockets = held.enter_context(bound_sockets(options.host, options.port))
        app = create_app(
            study, phrases, rules, admin_key=key, joins_per_minute=options.joins_per_minute,
            behind_proxy=options.behind_proxy, on_end=log.request,
        )  # fmt: skip
        interrupts.run(lambda take_signals: run(study, app, sockets, log), uvloop.new_event_loop)
    return 0


def status(options: argparse.Namespace) -> int:
    material = _opened(options.study)
    state, personal = read_state(options.study), read_personal(options.study)
    study = progress.status_of(state, material, personal, options.half_width)
    if options.json:
        print(orjson.dumps(study, option=orjson.OPT_INDENT_2).decode())
    else:
        progress.print_study(study)
    return 0


def plan(options: argparse.Namespace) -> int:
    from judging.study import planning

    judges = planning.plan(
        options.half_width, options.agents, options.per_judge, options.stimuli, measure=options.measure
    )
    planning.print_plan(judges)
    return 0


def export(options: argparse.Namespace) -> int:
    from judging.study.export import export as write

    material = _opened(options.study)
    if isinstance(material, OnlineMaterial):
        from judging.study.online.export import export_tests

        personal = read_personal(options.study) if options.personal else None
        number = export_tests(
            read_state(options.study), options.out, seed=material.settings.tests.seed, force=options.force,
            personal=personal,
        )  # fmt: skip
        _say(f"{count(number, 'verdict')}: {options.out}; next: turinglike score {options.out / 'verdicts'} -o scores")
        return 0
    number = write(options.study, material, options.out, personal=options.personal, force=options.force)
    if isinstance(material, TrialMaterial):
        _say(f"{count(number, 'verdict')}: {options.out}; next: turinglike score {options.out} -o {options.out}-scores")
    else:
        _say(f"{count(number, 'answer')}: {options.out}; next: turinglike trials RUN {options.out} -o trials")
    return 0


def batch(options: argparse.Namespace) -> int:
    from judging.study.online.batch import hold_tests

    material = _opened(options.study)
    if not isinstance(material, OnlineMaterial):
        raise InputError(f"{options.study} is no study of online tests")
    _refuse(options.study, material.problems() + material.batch_problems() or material.served_problems())

    async def hold(study: Study) -> tuple[int, int]:
        assert study.online is not None
        return await hold_tests(study.online.held, options.tests, options.at_once)

    over, void = _in_study(options.study, material, hold)
    _say(f"{count(over, 'test')} held{f'; next: turinglike study export {options.study} -o tests' if over else ''}")
    if void:
        _say(f"{count(void, 'test')} void: `turinglike study status` says why; the same command holds others")
    return int(void > 0)


def kit(options: argparse.Namespace) -> int:
    from judging.study.kit import write_kit

    refuse_existing([options.out], force=False)
    material = _opened(options.study)
    phrases = read_phrases(options.study, material.settings)
    _in_study(options.study, material, lambda study: write_kit(study, phrases, options.number, options.out))
    _say(f"{options.out}: {count(options.number, 'judge')}; then turinglike study import {options.study} FILE.json")
    return 0


def take(options: argparse.Namespace) -> int:
    from judging.study.kit import import_answers

    material = _opened(options.study)
    added = _in_study(options.study, material, lambda study: import_answers(study, options.files))
    state = read_state(options.study)
    for code, number in added.items():
        if (judge := state.judges.get(code)) is None:
            _say(f"{code}: passed over, for nothing is known of this judge any more")
        else:
            _say(f"{code}: {count(number, 'new answer')}, {judge.ended or 'not finished'}")
    return 0


def _in_study(folder: Path, material: Material, work: Callable[[Study], Coroutine[Any, Any, T]]) -> T:

    async def inside(check: Callable[[], None]) -> T:
        study = Study(folder, material, check)
        study.start()
        try:
            return await work(study)
        finally:
            await study.close()

    with lock(folder) as held:
        return asyncio.run(inside(held))


def close(options: argparse.Namespace) -> int:
    read_settings(options.study)
    with lock(options.study):
        target = options.study / EVENTS
        repair_tail(target)
        try:
            with target.open("ab") as file:
                file.write(orjson.dumps({"event": "closed", "at": now()}) + b"\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise StorageError(f"cannot write {target}: {error.strerror}") from None
        sync_folder(options.study)
    _say(f"{options.study} is closed; next: turinglike study export {options.study} -o verdicts")
    return 0


def forget(options: argparse.Namespace) -> int:
    read_settings(options.study)
    with lock(options.study):
        is_known = options.judge in read_personal(options.study) or options.judge in read_state(options.study).judges
        if not is_known:
            raise InputError(f"{options.study} has no judge {options.judge}")
        # Personal lines go first: after a kill the same command finds the judge among the events.
        for name in (PERSONAL, EVENTS):
            source = options.study / name
            for temporary in options.study.glob(f".{name}.*"):  # of a call that was killed
                temporary.unlink(missing_ok=True)
            repair_tail(source)
            lines = source.read_bytes().splitlines() if source.is_file() else []
            with replacing(source) as file:
                for event in without(options.judge, map(orjson.loads, lines)):
                    file.write(orjson.dumps(event, option=orjson.OPT_APPEND_NEWLINE))
    _say(f"nothing is known of {options.judge} any more; exports that were made before still have them")
    return 0


def _say(text: str) -> None:
    print(printable(text), flush=True)


ACTIONS: Mapping[str, Callable[[argparse.Namespace], int]] = {
    "new": new,
    "check": check,
    "links": links,
    "serve": serve,
    "status": status,
    "plan": plan,
    "export": export,
    "batch": batch,
    "kit": kit,
    "import": take,
    "close": close,
    "forget": forget,
}
