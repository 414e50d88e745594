"""``turinglike generate``: check, lock, answer, tidy up, report."""

from __future__ import annotations

import contextlib
import logging
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence

from agents.errors import ClusterError, InputError, StorageError, printable
from agents.selection import checked_agents
from serving.assignments import GenerateOptions, check_usage, describe, tasks_asked
from serving.generation import Generation
from serving.progress import duration
from serving.runs.atomic_files import lock
from serving.runs.checked_stimuli import chosen_by
from serving.runs.run import Store, named, refuse_other_folder
from serving.runs.run_opening import prepare_run
from serving.scheduling import interrupts
from serving.scheduling.cluster import begun_ahead, check_installed
from serving.scheduling.interrupts import declare_answers_here
from serving.terminal import printed_log

__all__ = ["GenerateOptions", "generate"]
log = logging.getLogger("turinglike.scheduling")
LARGE = 2 << 20  # bytes of a set: some 30,000 words, or 10,000 pictures


def generate(options: GenerateOptions, report: Callable[[str], None], then: Sequence[str] = ()) -> int:
    """Run the command; returns its exit code. Proposes ``then`` at the end. Raises TuringlikeError and Interrupted."""
    began = time.monotonic()
    made = checked_agents(options.entries, options.settings)
    check_usage(options.agents, options.entries, made, options.samples)
    may_be_here = options.address is None and options.replicas is None
    if options.here and not may_be_here:
        raise InputError("--here answers in this process: leave --address and --replicas out")
    if not may_be_here:
        check_installed()
    described = describe(options.agents, options.entries, made, options.settings)
    choose = chosen_by({name: tasks_asked(about) for name, about in described.items()})
    needs_ray = (
        options.address is None and not options.here and not all(agent.is_elsewhere() for agent in made.values())
    )
    level = logging.DEBUG if options.verbose else logging.WARNING
    is_large = options.source.is_file() and options.source.stat().st_size > LARGE  # Ray may start while it is read
    with (
        interrupts.raised(), printed_log(log.name, level, _warn), _folder(options),
        lock(options.out) as check_lock, begun_ahead(needs_ray and is_large) as ahead,
    ):  # fmt: skip
        if not options.quiet:
            _warn(f"checking {options.source}")
        run = prepare_run(
            options.out,
            options.source,
            task=options.task,
            choose=choose,
            seed=options.seed,
            samples=options.samples,
            described=described,
            skip_invalid=options.skip_invalid,
        )
        if options.limit is not None:  # so many pictures, each of which is asked every task of the run
            options.limit *= len(run.meta["set"].get("tasks", [None]))
        generation = Generation(options, run, made, Store(check_lock), ahead=ahead)
        if generation.plan():
            if options.here:
                generation.here = True
                declare_answers_here()
            else:
                generation.here = may_be_here and generation.needs_no_workers() and declare_answers_here()
            log.debug("answers are made in %s", "this process" if generation.here else "workers of Ray")
            if not generation.here:
                check_installed()
            try:
                interrupts.run(generation.execute)
            except ClusterError as error:
                if may_be_here and not generation.started:
                    raise ClusterError(f"{error}, or with --here, which needs no Ray") from None
                raise
        else:
            report("nothing is left to answer")
        check_lock()
        generation.tidy()
        _summarize(generation, report)
        code = generation.exit_code()
        report(f"records: {options.out / 'records'}, after {duration(time.monotonic() - began)}")
        if not options.quiet:
            following = ("status", str(options.out)) if code else then or ("view", str(options.out))
            report(f"next: turinglike {shlex.join(following)}")
        return code


@contextlib.contextmanager
def _folder(options: GenerateOptions) -> Iterator[None]:
    out = options.out
    parts = ["records"] + ["turns"] * any("~" in name for name in options.agents)
    fresh = not out.exists()
    try:
        refuse_other_folder(out)
        for part in parts:
            (out / part).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"cannot write to {out}: {error.strerror}") from error
    try:
        yield
    except InputError:
        if fresh:  # nothing was answered: input is found wrong before anything starts
            shutil.rmtree(out)
        raise


def _summarize(generation: Generation, report: Callable[[str], None]) -> None:
    counts = generation.counts()
    for assignment in generation.assignments:
        done = counts[assignment.name]
        parts = [f"{done['ok']} ok"] + [f"{done[key]} {key}" for key in ("rejected", "failed") if done[key]]
        left = assignment.total - done.total()
        if left:
            parts.append(f"{left} unanswered")
        report(f"{assignment.name}: {', '.join(parts)}")
        if assignment.error is not None:
            report(str(assignment.error))
    for kind, count in generation.kinds.items():
        if not any(assignment.answers(kind) for assignment in generation.assignments):
            stimuli = f"{count} {'stimulus' if count == 1 else 'stimuli'}"
            report(f"{named([kind])}: {stimuli}, and none of these agents answers it")
    if generation.run.skipped:
        report(f"{generation.run.skipped} rows have no record: no readable id or task, or an id that stands earlier")


def _warn(text: str) -> None:
    print(printable(text), file=sys.stderr, flush=True)
