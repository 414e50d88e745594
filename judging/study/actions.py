"""The actions of ``turinglike study``."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from agents.errors import InputError, UnavailableError, printable
from judging.study.addresses import new_links
from judging.study.design.english_texts import sentence_on
from judging.study.design.settings import FILE, read_settings
from judging.study.export import export_study
from judging.study.folder import Study
from judging.study.kinds import material_of
from judging.study.log.codes import hashed
from judging.study.log.files import (
    EVENTS,
    append_lines,
    forget,
    read_exports,
    read_personal,
)
from judging.study.log.participant_events import StudyClosed
from judging.study.log.state import read_state
from judging.study.meetings.material import MeetingMaterial
from judging.study.needed_packages import what_serving_lacks
from judging.study.new_study import new_study
from judging.study.pages.first_page import assumed_minutes
from judging.study.pages.material import Material
from judging.study.pages.phrases import phrase_warnings, read_phrases
from judging.study.pages.trial_material import TrialMaterial
from judging.study.results.printed_status import print_judges, print_study
from judging.study.serving_study import ServedStudy
from judging.study.writing_checks import WritingChecks
from serving.files.atomic_files import lock
from serving.files.output_paths import refuse_existing
from serving.files.terminal import print_json, print_line
from serving.files.timestamps import now
from serving.files.words import count
from serving.files.written_texts import read_written

if TYPE_CHECKING:
    from judging.study.results.planning import PlannedMeasure

T = TypeVar("T")
LARGEST_BODY = 256 * 1024
"""Bytes of what a page sends at once: the longest text, with as many traces of its writing as a page records."""
EARLY_STOPPING = "With early stopping by the decisions of `turinglike study status`"


def check_study(study: Path) -> None:
    """Print all problems and warnings of a study. Raises InputError where there are problems."""
    material = material_of(study)
    material.refuse_other_set(read_state(study))
    problems = material.problems()
    warnings = material.warnings()
    try:
        read_phrases(study, material.settings)
        warnings += WritingChecks(study, material).warnings()
        warnings += phrase_warnings(study, material.settings)
        if told := sentence_on(material.settings):
            warnings.append(told)
    except InputError as error:
        problems += [*map(str, error.problems), str(error)]
    if (lacking := what_serving_lacks()) is not None:
        warnings.append(lacking)
    problems += material.served_problems()
    for problem in [*problems, *(f"warning: {warning}" for warning in warnings)]:
        print(printable(problem), file=sys.stderr)
    if problems:
        raise InputError(f"{study}: {count(len(problems), 'problem')}")
    print_line(material.summary())
    if not material.settings.texts.duration_minutes:
        minutes = count(assumed_minutes(material), "minute")
        print_line(f"the first page says about {minutes}, which is computed; texts.duration_minutes changes it")
    print_line(f"no problems; now: turinglike study serve {study}")


def make_links(study: Path, number: int, address: str) -> None:
    """Print ``number`` new links to ``address``, each for a judge; only their hashes are kept. Raises InputError."""
    settings = read_settings(study)
    if settings.judges.entry != "links":
        raise InputError(
            f'{study / FILE}: judges.entry is "{settings.judges.entry}": everybody may begin without a link'
        )
    if set("?#") & set(address):
        raise InputError(
            f"study links: --address {address}: give the address without ? and #, because each link adds ?link=…"
        )
    for token in new_links(study, number):
        print(f"{address.rstrip('/')}/?link={token}")


def serve_study(
    study: Path, host: str, port: int, allow_host: list[str], key_file: Path | None, *, quiet: bool
) -> None:
    """Serve the study's pages until a signal ends it. Raises InputError, StorageError and UnavailableError."""
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
    check_host_names(list(allow_host))
    key = read_api_key(key_file)
    material = material_of(study)
    phrases = read_phrases(study, material.settings)
    hosts = LOOPBACK | {name.lower() for name in allow_host}
    if host not in ("0.0.0.0", "::"):
        hosts |= {host.lower()}
    rules = Rules(frozenset(hosts), None, body_bytes=LARGEST_BODY)
    log = ServerLog(quiet)
    log.start()
    for warning in phrase_warnings(study, material.settings):
        log.say(f"warning: {warning}")
    if isinstance(material, MeetingMaterial):
        for problem in material.served_problems():
            log.say(f"{material.meetings} with this agent will be void: {problem}")
    with ExitStack() as held:
        check = held.enter_context(lock(study))
        running = ServedStudy(study, material, check)
        sockets = held.enter_context(bound_sockets(host, port))
        app = create_app(running, phrases, rules, admin_key=key, on_end=log.request)
        interrupts.run(lambda take_signals: run(running, app, sockets, log), uvloop.new_event_loop)


def show_status(study: Path, *, json: bool, judges: bool) -> None:
    """Print how a study stands, as text or as JSON; ``judges`` adds a row for each judge. Raises InputError."""
    if json and judges:
        raise InputError("study status: --json has a row for each judge: leave --judges out")
    status = Study(study).status()
    if json:
        print_json(status)
        return
    print_study(status)
    if judges:
        print_judges(status)


def plan_judges(
    study: Path | None,
    half_width: float | None = None,
    measure: PlannedMeasure | None = None,
    agents: int | None = None,
    per_judge: int | None = None,
    stimuli: int | None = None,
    bounds: float | None = None,
) -> None:
    """Print a study's plan to preregister, or how many judges give intervals of ``half_width``; with ``bounds`` also
    how many judges a study has that stops early. Raises InputError."""
    from judging.study.results.planning import plan, simulate_stopping

    if study is not None:
        numbers = {
            "--half-width": half_width,
            "--measure": measure,
            "--agents": agents,
            "--per-judge": per_judge,
            "--stimuli": stimuli,
            "--bounds": bounds,
        }
        given = [option for option, number in numbers.items() if number is not None]
        if given:
            raise InputError(
                f"study plan: {', '.join(given)}: {study} has its own numbers: leave these options out, or leave the "
                "study out"
            )
        print(*map(printable, _plan_of(study).splitlines()), sep="\n")
        return
    if not (agents and per_judge and stimuli):
        raise InputError("study plan: name a study, or give --agents, --per-judge and --stimuli")
    measure = measure or "detectability"
    half_width = 0.05 if half_width is None else half_width
    judges, width = plan(half_width, agents, per_judge, stimuli, measure=measure)
    if judges is None:
        print_line(
            f"no number of judges makes the interval of {measure} smaller than ± {width:.3f} (95 %): take more stimuli"
        )
    else:
        print_line(f"{count(judges, 'judge')}: {measure} of each agent ± {width:.3f} (95 %)")
    if bounds is not None:
        print_line(f"{EARLY_STOPPING} with bounds {bounds:g}:")
        for expected in simulate_stopping(agents, per_judge, stimuli, bounds, judges=judges):
            print_line(f"  {expected.in_words()}")


def _plan_of(folder: Path) -> str:
    from judging.study.results.planning import simulate, simulate_stopping

    material = material_of(folder)
    source = folder / FILE
    if not isinstance(material, TrialMaterial):
        raise InputError(f"{folder}: a plan needs a study in which people judge trials")
    settings = material.settings
    pages = [page for page in material.pool.pages if not page.catch]
    agents = len({agent for page in pages for agent in page.agents})
    stimuli = len({page.stimulus for page in pages})
    trials = settings.trials.number
    wanted = settings.judges.wanted
    bounds = settings.analysis.bounds
    rules = [f"{name} = {value}" for name, value in settings.exclude.model_dump().items() if value]
    numbers = f"{count(wanted, 'judge')}, {count(trials, 'trial')} for each judge, {count(agents, 'agent')}, "
    contrast = (
        "First contrast, for each agent: P(judged human | machine) minus P(judged human | person). The test is "
        "two-sided at 0.05, with Holm's correction. Its variances are clustered both by judges and by stimuli "
        "(`turinglike score`)."
    )
    if material.pool.of_pairs:
        contrast = (
            "First measure, for each agent: the X-Turn pass rate with its 95 % interval (`turinglike score`). It is 1 "
            "minus the share of pairs that were judged correctly; 0.5 is chance."
        )
    lines = [
        f"Plan of the study “{settings.texts.title}” ({settings.task}), {now()[:10]}",
        "",
        f"Numbers: {numbers}{count(stimuli, 'stimulus', 'stimuli')}. The study ends when {count(wanted, 'judge')} have "
        "finished.",
        contrast,
        "Settings of [exclude], which apply before any verdict is compared with the truth: "
        f"{', '.join(rules) or 'none'}.",
    ]
    if bounds and not material.pool.of_pairs:
        passes, power = simulate(wanted, agents, trials, stimuli, bounds)
        lines += [
            f"Equivalence: an agent passes if the 90 % interval of its detectability is within 0.5 ± {bounds:g}.",
            f"Simulated studies: an agent with detectability 0.5 passes in {passes:.0%} of them. An agent with "
            f"detectability {0.5 + bounds:g} is found to be above 0.5 in {power:.0%}. The variances of judges and of "
            "stimuli are assumed. For each simulated study, new judges and new stimuli are drawn.",
            f"{EARLY_STOPPING}; the decision is for the stimuli of this study only. Simulated studies:",
            *(
                f"  {expected.in_words()}"
                for expected in simulate_stopping(agents, trials, stimuli, bounds, judges=wanted)
            ),
        ]
    text = read_written(source)
    hashes = [f"SHA-256 of {FILE}: {hashed(text)}", f"SHA-256 of the answer key: {material.sha256}"]
    return "\n".join([*lines, *hashes, "", text])


def make_kit(study: Path, number: int, out: Path) -> None:
    """Write an HTML file with the trials of ``number`` judges. Raises InputError."""
    from judging.study.kit import unused_in_kits, write_kit

    refuse_existing([out], force=False)
    material = material_of(study)
    phrases = read_phrases(study, material.settings)
    _in_study(study, material, lambda running: write_kit(running, phrases, number, out))
    if unused := unused_in_kits(material.settings):
        print_line(f"a kit does not use these settings: {', '.join(unused)}")
    print_line(f"{out}: for {count(number, 'judge')}; later: turinglike study import {study} FILE.json")


def import_kits(study: Path, files: Sequence[Path]) -> None:
    """Take in the answers that kits have saved in ``files``. Raises InputError."""
    from judging.study.kit import import_answers

    material = material_of(study)
    added = _in_study(study, material, lambda running: import_answers(running, files))
    state = read_state(study)
    for code, number in added.items():
        if (judge := state.judges.get(code)) is None:
            print_line(f"{code}: left out, because this judge's data were deleted")
        else:
            print_line(f"{code}: {count(number, 'new answer')}, {judge.ended or 'not finished'}")


def _in_study(folder: Path, material: Material, work: Callable[[ServedStudy], Coroutine[Any, Any, T]]) -> T:

    async def inside(check: Callable[[], None]) -> T:
        study = ServedStudy(folder, material, check)
        study.start()
        try:
            return await work(study)
        finally:
            await study.close()

    with lock(folder) as held:
        return asyncio.run(inside(held))


def close_study(study: Path) -> None:
    """End a study: nobody may answer any more. Raises InputError."""
    read_settings(study)
    with lock(study):
        append_lines(study / EVENTS, [StudyClosed(at=now()).line])
    print_line(f"{study} is closed; next: turinglike study export {study} -o verdicts")


def forget_judge(study: Path, judge: str) -> None:
    """Remove all that is known of a judge, given by code. Raises InputError."""
    read_settings(study)
    with lock(study):
        people = read_personal(study).keys() | read_state(study).judges.keys()
        if judge not in people:
            raise InputError(f"{study} has no judge {judge}")
        forget(study, [judge])
    print_line(f"everything about {judge} is deleted from {study}")
    for export in read_exports(study):
        print_line(f"  the export of {export['at'][:10]} may still contain data of this person: {export['out']}")


ACTIONS: Mapping[str, Callable[..., None]] = {
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
