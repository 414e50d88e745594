"""The actions of ``turinglike study``."""

import argparse
import asyncio
import os
import secrets
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

from agents.errors import InputError, UnavailableError, printable
from agents.stimuli import TASKS, parse_row
from judging.study.design import presets
from judging.study.design.settings import FILE, JudgesSettings, read_settings
from judging.study.kinds import material_of
from judging.study.log import files
from judging.study.log.codes import hashed
from judging.study.log.participant_events import StudyClosed
from judging.study.meetings.material import MeetingMaterial
from judging.study.pages.material import Material
from judging.study.pages.phrases import phrase_warnings, read_phrases
from judging.study.pages.pool import HOW_TO_CATCH, TrialPool
from judging.study.pages.stimulus_material import only_task
from judging.study.pages.trial_material import TrialMaterial
from judging.study.results import status as study_status
from judging.study.study import Study
from judging.trial_sets.trial_set import TRIALS_FILE
from serving.files.atomic_files import lock, write_json
from serving.files.output_paths import new_folder, refuse_existing
from serving.files.terminal import print_json
from serving.files.timestamps import now
from serving.files.words import count
from serving.sets.stimulus_set import read_rows

T = TypeVar("T")
README = """\
A study of Turinglike. `study.toml` has the choices, `events.jsonl` has what judges did, by a random code.

Personal, and not to be handed on: `personal.jsonl` (what judges said of themselves, and the ids that a panel gave them)
and what judges wrote in their own words in `events.jsonl`. `links.jsonl` has no link, only their hashes.

`turinglike study forget STUDY CODE` removes all that is known of a judge.
"""


def new_study(options: argparse.Namespace) -> None:
    """Write a new study with all its choices; says what was changed to fit the set. Raises InputError."""
    source = options.source
    task = options.task
    preset = options.preset or "plain"
    if source is None:
        _check_of_tests(preset, task)
        _write_study(options.out, presets.study_of_tests(preset))
        return
    if preset in presets.OF_TESTS:
        raise InputError(f"study new: --preset {preset} is of live tests, which show no set: leave {source} out")
    of_trials = (source / TRIALS_FILE).is_file()
    rows = [*read_rows(source / TRIALS_FILE if of_trials else source, choose=only_task(task))]
    if problems := [problem for row in rows for problem in row.problems]:
        raise InputError(f"{source} has {count(len(problems), 'problem')}", problems)
    stimuli = [parse_row(row.canonical) for row in rows if row.canonical is not None]
    there = Counter(getattr(stimulus, "asked", stimulus.task) for stimulus in stimuli)
    if task is None and len(there) == 1:
        [task] = there
    if task not in there:
        tasks = ", ".join(name for name in TASKS if name in there)
        raise InputError(f"{source} is of {tasks or 'no task'}: say with --task which of these the study is of")
    relative = os.path.relpath(source, options.out)
    if not of_trials:
        if preset != "plain":
            raise InputError(
                f"study new: --preset {preset} is of people who judge a folder of `turinglike trials`; {source} is a "
                "stimulus set, which people answer, and has no presets: leave --preset out"
            )
        text = presets.study_of_participants(relative, task, there[task])
        number = tomllib.loads(text)["answers"]["number"]
        wanted = tomllib.loads(presets.study_of_participants(relative, task))["answers"]["number"]
        if number != wanted:
            _say(f"answers.number = {number}, not {wanted}: the set has {count(number, 'stimulus', 'stimuli')}")
        _write_study(options.out, text)
        return
    of_pairs = any(getattr(stimulus, "beside", None) is not None for stimulus in stimuli)
    if of_pairs and preset != "plain":
        raise InputError(f"--preset {preset}: the papers have no pairs of conversations")
    text = presets.study_of_judges(relative, task, preset, of_pairs=of_pairs)
    pool = TrialPool(source, JudgesSettings.model_validate(tomllib.loads(text)))
    number = pool.settings.trials.number
    changed = pool.fit()
    if "catch" in changed:
        _say(f"trials.catch = {changed['catch']}: there are no catch trials; {HOW_TO_CATCH}")
    if "number" in changed:
        _say(f"trials.number = {changed['number']}, not {number}: {pool.why_no_more()}")
    text = presets.study_of_judges(relative, task, preset, of_pairs=of_pairs, changed=changed)
    wanted = 0 if of_pairs else presets.preset(preset, task)[0].get("feedback", 0)
    feedback = tomllib.loads(text)["trials"]["feedback"]
    if feedback != wanted:
        _say(f"trials.feedback = {feedback}, not {wanted}: the other half of the trials is without")
    _write_study(options.out, text)


def _check_of_tests(preset: str, task: str | None) -> None:
    """Raises InputError for what goes with no live tests."""
    if preset not in presets.OF_TESTS:
        names = " or ".join(presets.OF_TESTS)
        raise InputError(
            f"study new: name a trial set or a stimulus set, or give --preset {names}, which are of neither"
        )
    if task not in (None, "conversation"):
        raise InputError(f"study new: --preset {preset} is of conversations, not of {task}: leave --task out")


def _write_study(out: Path, text: str) -> None:
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{out} is there already; give a new folder")
    with new_folder(out, marker=FILE, force=False) as made:
        made.chmod(0o700)
        (made / "README.md").write_text(README, "utf-8")
        (made / FILE).write_text(text, "utf-8")
    _say(f"{out / FILE}: write your consent text there, then")
    _say(f"  turinglike study check {out}")


def check_study(options: argparse.Namespace) -> None:
    """Say all that stands in the way of a study, also at the server of its agents. Raises InputError for a problem."""
    material = material_of(options.study)
    problems = material.problems()
    warnings = material.warnings()
    try:
        read_phrases(options.study, material.settings)
        warnings += phrase_warnings(options.study, material.settings)
    except InputError as error:
        problems += [*map(str, error.problems), str(error)]
    problems += material.served_problems()
    for problem in [*problems, *(f"warning: {warning}" for warning in warnings)]:
        print(printable(problem), file=sys.stderr)
    if problems:
        raise InputError(f"{options.study}: {count(len(problems), 'problem')}")
    _say(material.summary())
    _say(f"no problems; now: turinglike study serve {options.study}")


def make_links(options: argparse.Namespace) -> None:
    """Print new personal links; the study keeps their hashes alone. Raises InputError where none are needed."""
    settings = read_settings(options.study)
    if settings.judges.entry != "links":
        raise InputError(f'{options.study / FILE}: judges.entry is "{settings.judges.entry}": no link is needed')
    if set("?#") & set(options.address):
        raise InputError(f"study links: --address {options.address}: give it without ? and #; each link adds ?link=…")
    tokens = [secrets.token_urlsafe(16) for _ in range(options.number)]
    files.append(options.study / files.LINKS, [{"link": hashed(token), "at": now()} for token in tokens])
    for token in tokens:
        print(f"{options.address.rstrip('/')}/?link={token}")


def serve_study(options: argparse.Namespace) -> None:
    """Serve the pages until a signal comes. Raises InputError, StorageError, and UnavailableError without packages."""
    try:
        import uvloop

        from judging.study.app import create_app
        from judging.study.app import serve as run
        from serving.commands.serve import check_host_names, read_api_key
        from serving.http.guard import LOOPBACK, Rules
        from serving.http.monitoring import ServerLog
        from serving.http.server import bound_sockets
        from serving.scheduling import interrupts
    except ImportError as error:
        raise UnavailableError(f"a study needs more packages ({error}): pip install 'turinglike[serve]'") from None
    check_host_names(options.allow_host)
    key = read_api_key(options.key_file)
    material = material_of(options.study)
    phrases = read_phrases(options.study, material.settings)
    hosts = LOOPBACK | {name.lower() for name in options.allow_host}
    if options.host not in ("0.0.0.0", "::"):
        hosts |= {options.host.lower()}
    rules = Rules(frozenset(hosts), None, body_bytes=64 * 1024)
    log = ServerLog(options.quiet)
    log.start()
    for warning in phrase_warnings(options.study, material.settings):
        log.say(f"warning: {warning}")
    if isinstance(material, MeetingMaterial):
        for problem in material.served_problems():
            log.say(f"{material.meetings} with this agent will be void: {problem}")
    with ExitStack() as held:
        check = held.enter_context(lock(options.study))
        study = Study(options.study, material, check)
        sockets = held.enter_context(bound_sockets(options.host, options.port))
        app = create_app(study, phrases, rules, admin_key=key, on_end=log.request)
        interrupts.run(lambda take_signals: run(study, app, sockets, log), uvloop.new_event_loop)


def show_status(options: argparse.Namespace) -> None:
    """Print how far a study is, as text or JSON. Raises InputError."""
    material = material_of(options.study)
    study = study_status.status_of(files.read_state(options.study), material, files.read_personal(options.study))
    study["exports"] = [export for export in files.read_exports(options.study) if export["deleted"]]
    if options.json:
        print_json(study)
    else:
        study_status.print_study(study)


def plan_judges(options: argparse.Namespace) -> None:
    """Print how many judges are needed, or the plan of a study to preregister. Raises InputError."""
    from judging.study.results.planning import Measure, plan

    if options.study:
        numbers = ("half_width", "measure", "agents", "per_judge", "stimuli")
        given = [f"--{name.replace('_', '-')}" for name in numbers if getattr(options, name) is not None]
        if given:
            raise InputError(
                f"study plan: {', '.join(given)}: {options.study} has its own numbers, and its plan is of these: leave "
                "the options out, or leave the study out"
            )
        print(*map(printable, _plan_of(options.study).splitlines()), sep="\n")
        return
    if not (options.agents and options.per_judge and options.stimuli):
        raise InputError("study plan: name a study, or give --agents, --per-judge and --stimuli")
    measure: Measure = options.measure or "detectability"
    half_width = 0.05 if options.half_width is None else options.half_width
    judges, width = plan(half_width, options.agents, options.per_judge, options.stimuli, measure=measure)
    if judges is None:
        _say(f"no number of judges brings {measure} below ± {width:.3f} (95 %): more stimuli do")
    else:
        _say(f"{count(judges, 'judge')}: {measure} of each agent ± {width:.3f} (95 %)")


def _plan_of(folder: Path) -> str:
    from judging.study.results.planning import simulate

    material = material_of(folder)
    source = folder / FILE
    if not isinstance(material, TrialMaterial):
        raise InputError(f"{folder}: a plan is of people who judge trials")
    settings = material.settings
    pages = [page for page in material.pool.pages if not page.catch]
    agents = len({agent for page in pages for agent in page.agents})
    stimuli = len({page.stimulus for page in pages})
    trials = settings.trials.number
    wanted = settings.judges.wanted
    bounds = settings.analysis.bounds
    rules = [f"{name} = {value}" for name, value in settings.exclude.model_dump().items() if value]
    numbers = f"{count(wanted, 'judge')}, {count(trials, 'trial')} of each, {count(agents, 'agent')} beside people, "
    contrast = (
        "First contrast, by agent: P(said human | machine) minus P(said human | person), two-sided at 0.05 after Holm, "
        "with two-way clustered variances of judges and stimuli (`turinglike score`)."
    )
    if material.pool.of_pairs:
        contrast = (
            "First measure, by agent: the X-Turn pass rate, 1 minus the mean of how often a pair was judged rightly "
            "(0.5 is chance), with its 95 % interval (`turinglike score`)."
        )
    lines = [
        f"Plan of the study “{settings.texts.title}” ({settings.task}), {now()[:10]}",
        "",
        f"Numbers: {numbers}{count(stimuli, 'stimulus', 'stimuli')}. Data end when so many judges have finished.",
        contrast,
        f"Excluded, before the truth is joined: {', '.join(rules) or 'nothing'}.",
    ]
    if bounds and not material.pool.of_pairs:
        passes, power = simulate(wanted, agents, trials, stimuli, bounds)
        lines += [
            f"Equivalence: an agent passes whose detectability has its 90 % interval within 0.5 ± {bounds:g}.",
            f"Simulated: it passes in {passes:.0%} of studies if the detectability is 0.5; {0.5 + bounds:g} is above "
            f"0.5 in {power:.0%}. Variances are assumed: judges and stimuli are both drawn.",
        ]
    text = source.read_text("utf-8")
    hashes = [f"SHA-256 of {FILE}: {hashed(text)}", f"SHA-256 of the key: {material.sha256}"]
    return "\n".join([*lines, *hashes, "", text])


def export_study(options: argparse.Namespace) -> None:
    """Write verdicts or answers as a run folder, or all that is kept of a person. Raises InputError, StorageError."""
    from judging.study.results.export import export as write

    if options.judge is not None:
        if options.personal:
            raise InputError(
                "study export: --judge writes all that is kept of a person, what is personal too: leave --personal out"
            )
        refuse_existing([options.out], force=options.force)
        write_json(options.out, files.read_person(options.study, options.judge))
        _say(f"{options.out}: all that is kept of {options.judge}")
        return
    material = material_of(options.study)
    out = options.out
    number, left_out = write(options.study, material, out, personal=options.personal, force=options.force)
    files.append(options.study / files.EXPORTS, [{"at": now(), "out": str(out.resolve())}])
    following = {
        "trial": f"score {out} -o {out}-scores",
        "test": f"score {out / 'verdicts'} -o scores",
    }.get(material.kind, f"trials RUN {out} -o trials")
    what = "verdict" if material.kind in ("trial", "test") else "answer"
    if left_out and isinstance(material, MeetingMaterial):
        _say(f"{material.meetings} that are left out: {left_out}")
    if not number:
        _say(f"nobody's answer counts: {out} has participants.csv alone, which says who is paid")
        return
    _say(f"{count(number, what)}: {out}; next: turinglike {following}")


def make_kit(options: argparse.Namespace) -> None:
    """Enlist judges and write the file that they open without a network. Raises InputError, StorageError."""
    from judging.study.kit import unused_in_kits, write_kit

    refuse_existing([options.out], force=False)
    material = material_of(options.study)
    phrases = read_phrases(options.study, material.settings)
    _in_study(options.study, material, lambda study: write_kit(study, phrases, options.number, options.out))
    if unused := unused_in_kits(material.settings):
        _say(f"in a kit these do nothing: {', '.join(unused)}")
    _say(f"{options.out}: {count(options.number, 'judge')}; then turinglike study import {options.study} FILE.json")


def import_kits(options: argparse.Namespace) -> None:
    """Take in the answers of files that kits have saved. Raises InputError, StorageError."""
    from judging.study.kit import import_answers

    material = material_of(options.study)
    added = _in_study(options.study, material, lambda study: import_answers(study, options.files))
    state = files.read_state(options.study)
    for code, number in added.items():
        if (judge := state.judges.get(code)) is None:
            _say(f"{code}: passed over, for nothing is known of this judge any more")
        else:
            _say(f"{code}: {count(number, 'new answer')}, {judge.ended or 'not finished'}")


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


def close_study(options: argparse.Namespace) -> None:
    """Write that nobody may answer any more. Raises InputError, StorageError."""
    read_settings(options.study)
    with lock(options.study):
        files.append_lines(options.study / files.EVENTS, [StudyClosed(at=now()).line])
    _say(f"{options.study} is closed; next: turinglike study export {options.study} -o verdicts")


def forget_judge(options: argparse.Namespace) -> None:
    """Remove all that is known of a person, and say which exports still have it. Raises InputError, StorageError."""
    read_settings(options.study)
    with lock(options.study):
        people = files.read_personal(options.study).keys() | files.read_state(options.study).judges.keys()
        if options.judge not in people:
            raise InputError(f"{options.study} has no judge {options.judge}")
        files.forget(options.study, [options.judge])
    _say(f"nothing is known of {options.judge} any more")
    for export in files.read_exports(options.study):
        _say(f"  it may be in the export of {export['at'][:10]}, which still has it: {export['out']}")


def _say(text: str) -> None:
    print(printable(text), flush=True)


ACTIONS: Mapping[str, Callable[[argparse.Namespace], None]] = {
    "new": new_study,
    "check": check_study,
    "links": make_links,
    "serve": serve_study,
    "status": show_status,
    "plan": plan_judges,
    "export": export_study,
    "kit": make_kit,
    "import": import_kits,
    "close": close_study,
    "forget": forget_judge,
}
