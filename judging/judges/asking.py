"""Judges that answer the trials of a set: :func:`judge`, on which ``turinglike judge`` stands.

Judges are agents of the task ``judgement``, and a trial set is a stimulus set of that task. So judging is ``generate``
over a trial set, with two of the judges' settings filled in: ``trials`` and ``key``. Trained judges learn
from these."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import orjson

from agents import catalogue
from agents.catalogue.named_models import ANTHROPIC_MODEL, SERVER_MODEL
from agents.catalogue.selection import checked_agents, read_names, resolve
from agents.contract import Entry
from agents.errors import LASTING, AgentStoppedError, InputError, Problem
from judging.judges.built_in import JUDGE_PRESETS
from judging.trial_sets.cues import has_delays
from judging.trial_sets.drawn_from import changed_answers
from judging.trial_sets.trial_set import TRIALS_FILE, check_trials, key_path, read_about, read_trial_key
from serving.files.words import count
from serving.generation.generate import GenerateOptions, generate
from serving.library.typed_records import OpenRun, open_run
from serving.runs.run import Run
from serving.runs.status import without_verdict
from serving.scheduling.placement import DeviceChoice
from serving.sets.stimulus_set import read_rows

CUES = "cues"  # all judges by a single cue
NOT_USABLE = "the judges cannot be used as asked"
GRID_OF_VERSIONS = (
    "grid shows all answers to a stimulus at once, and so each answer in all its versions: judge this set without grid"
)
ROWS_OF_BLOCKS = "split=row learns from answers that were matched with those that it judges: use split=stimulus"
NO_DELAYS = "goes by delays, and no trial shows one: draw trials with --show-delays"
WHOSE = {"human": "of people", "machine": "of machines"}
JUDGES = {SERVER_MODEL: "OpenAIJudge", ANTHROPIC_MODEL: "AnthropicJudge"}


@dataclass(frozen=True, slots=True)
class AskedJudges:
    """Judges that can judge a trial set as they are set."""

    source: Path
    """The file of the trials."""
    names: Sequence[str]
    """The judges' names, in the order in which they were asked."""
    entries: Mapping[str, Entry]
    """By name the judge's entry of the catalogue, as one that judges."""
    settings: Mapping[str, Mapping[str, Any]]
    """By name the settings, with the paths of trials and key filled in."""
    keys: Mapping[str, Mapping[str, Any]]
    """By trial its row of the key; empty where the key is not there, and no judge of these needs it."""

    def choices(self) -> dict[str, Any]:
        """The options of :class:`GenerateOptions` that the judges decide."""
        return {
            "source": self.source,
            "tasks": (),
            "agents": list(self.names),
            "entries": self.entries,
            "settings": self.settings,
        }


def judge(
    trials: str | PathLike[str],
    judges: str | Sequence[str],
    out: str | PathLike[str],
    *,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    config: str | PathLike[str] | None = None,
    samples: int = 1,
    seed: int | None = None,
    batch_size: int | None = None,
    replicas: int | None = None,
    address: str | None = None,
    device: DeviceChoice = "auto",
    here: bool = False,
    retry_failed: bool = False,
    accept_changed_code: bool = False,
    timeout: float = 600.0,
    load_timeout: float = 1800.0,
    report: Callable[[str], None] | None = None,
) -> OpenRun:
    """Let judges answer all trials of a set; the same call again resumes, and judges nothing twice.

    >>> verdicts = judge("trials", "svm,cues", "verdicts", settings={"svm": {"partitions": 5}})
    >>> verdicts.of(agent="svm").to_pandas()["answer.verdict"]

    ``trials`` is a folder that :func:`judging.trials` has made, or its :class:`judging.trial_sets.composed.TrialSet`.
    ``judges`` are names, as a list or as "a,b"; "cues" stands for all judges by a single cue that the trials have.
    ``out`` becomes a run folder of their verdicts. ``settings`` are by judge, ``config`` is a TOML file of them.
    ``samples`` are verdicts of a judge on each trial; ``seed`` is the run's (0 in a new run).

    Small sets are judged in this process, and all with ``here``; others by workers of Ray, ``replicas`` per judge,
    which a cluster at ``address`` may have. ``timeout`` and ``load_timeout`` are seconds for a batch, and to load a
    judge. ``report`` is called with each line that the command would print. An interrupted notebook waits until the
    judges are done.

    A trial that a judge cannot answer has a failed record; ``retry_failed`` tries these again. Returns the records.
    Raises InputError before anything is judged, UnavailableError, StorageError, and AgentStoppedError where a judge
    stopped."""
    asked = ask_judges(trials, judges, settings=settings, config=config)
    options = GenerateOptions(
        **asked.choices(),
        out=Path(out),
        samples=samples,
        seed=seed,
        batch_size=batch_size,
        replicas=replicas,
        address=address,
        device=device,
        here=here,
        retry_failed=retry_failed,
        accept_changed_code=accept_changed_code,
        timeout=timeout,
        load_timeout=load_timeout,
        quiet=True,
    )
    lines: list[str] = []

    def keep(line: str) -> None:
        lines.append(line)
        if report is not None:
            report(line)

    code = _outside_loop(lambda: judge_trials(asked, options, keep))
    if code == AgentStoppedError.exit_code:
        raise AgentStoppedError("a judge stopped: " + "; ".join(lines))
    return open_run(Path(out))


def ask_judges(
    trials: str | PathLike[str],
    judges: str | Sequence[str],
    *,
    assignments: Sequence[str] = (),
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    config: str | PathLike[str] | None = None,
) -> AskedJudges:
    """The judges of these names for the trials in a folder, checked before anything is judged.

    ``assignments`` are settings as "svm.partitions=5", ``settings`` the same by judge. Raises InputError with all that
    is wrong: unknown judges, agents that do not judge, a key that is missing or of other trials."""
    folder = Path(trials)
    source = folder / TRIALS_FILE
    key = key_path(folder)
    if not source.is_file():
        raise InputError(f"{folder} is no trial set: it has no {TRIALS_FILE}; `turinglike trials` makes one")
    text = judges if isinstance(judges, str) else ",".join(judges)
    names = read_names("judges", _with_cues(text, source), "asked")
    selection = resolve(names, assignments, None if config is None else Path(config), "judges")
    entries = {name: _as_judge(entry) for name, entry in selection.entries.items()}
    by_name = {selection.plain.get(name, name): values for name, values in (settings or {}).items()}
    if strangers := by_name.keys() - entries.keys():
        raise InputError(f"settings are given of judges that are not asked: {', '.join(sorted(strangers))}")
    settings_of = {**selection.settings, **by_name}
    rows = read_trial_key(key) if key.is_file() else None
    problems = []
    for name, entry in entries.items():
        fields = entry.load_class().Settings.model_fields
        if "judgement" not in entry.tasks:
            problems.append(_no_judge(name, entry))
        elif _goes_by_delays(entry) and not _show_delays(source):
            problems.append(Problem(str(source), None, name, NO_DELAYS))
        elif "key" in fields and rows is None:
            way_out = "put it back, or draw the trials anew with --force"
            told = f"is trained on the trials, and their key is not there; {way_out}"
            problems.append(Problem(str(key), None, name, told))
        elif "key" in fields and rows is not None and (why := _untrainable(rows.values())):
            problems.append(Problem(str(key), None, name, f"cannot be trained: {why}"))
        settings_of[name] = {**_filled_in(entry, source, key), **settings_of.get(name, {})}
    if problems:
        raise InputError(NOT_USABLE, problems)
    asked = _tasks_of(source)
    for name, judge in checked_agents(entries, settings_of).items():
        if getattr(judge.settings, "split", "") == "row" and any(row["block"] for row in (rows or {}).values()):
            problems.append(Problem(str(source), None, name, ROWS_OF_BLOCKS))
        if getattr(judge.settings, "grid", False) and any(row["version"] is not None for row in (rows or {}).values()):
            problems.append(Problem(str(source), None, name, GRID_OF_VERSIONS))
        if "without_picture" in entries[name].load_class().Settings.model_fields:
            judges = judge.declaration().judges
            if judges and asked.isdisjoint(judges):
                problems.append(Problem("judges", None, name, _no_picture(name, asked)))
    if problems:
        raise InputError(NOT_USABLE, problems)
    if rows is not None:
        lines = ((row.line, row.id, row.canonical) for row in read_rows(source))
        read = ((line, name, trial) for line, name, trial in lines if name is not None and trial is not None)
        check_trials(source, read, rows, key)
    return AskedJudges(source, selection.names, entries, settings_of, rows or {})


def check_judges(judges: str, assignments: Sequence[str], config: Path | None) -> None:
    """Check the names of judges and their settings as far as this goes before there are trials. Raises InputError with
    all that is wrong, as :func:`ask_judges`."""
    names = [name for name in read_names("judges", judges, "asked") if name != CUES]
    selection = resolve(names, assignments, config, "judges")
    entries = {name: _as_judge(entry) for name, entry in selection.entries.items()}
    if problems := [_no_judge(name, entry) for name, entry in entries.items() if "judgement" not in entry.tasks]:
        raise InputError(NOT_USABLE, problems)
    settings = {}
    for name, entry in entries.items():
        settings[name] = {**_filled_in(entry, Path(), Path()), **selection.settings.get(name, {})}
    checked_agents(entries, settings)


def judge_trials(asked: AskedJudges, options: GenerateOptions, report: Callable[[str], None]) -> int:
    """Judge as :func:`serving.generation.generate.generate` answers; returns its exit code. ``report`` also gets a
    sentence on each judge that left trials out, or whose answers are no verdicts, and on answers that have changed
    since the trials were drawn. Raises what ``generate`` raises."""
    folder = asked.source.parent
    for sentence in changed_answers(read_about(key_path(folder)), folder.name):
        report(sentence)
    following = ("score", str(options.out), "--out", f"{options.out}-scores")
    code = generate(options, report, following)
    run = Run(options.out)
    for sentence in not_judged(run, asked.names, asked.keys):
        report(sentence)
    for judge in asked.names:
        verdicts = Counter[str]()
        if judge in run.agents():
            verdicts.update(record["answer"]["verdict"] for record in run.latest(judge) if record["status"] == "ok")
        for sentence in without_verdict(judge, verdicts):
            report(f"{sentence}; they count in no rate")
    return code


def _outside_loop(work: Callable[[], int]) -> int:
    """``work``, in a thread of its own where this thread has a running event loop, as in a notebook.

    ``generate`` runs an event loop, and Python allows a thread a single one."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return work()
    with ThreadPoolExecutor(1, "turinglike") as thread:
        return thread.submit(work).result()


def not_judged(run: Run, judges: Iterable[str], keys: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """A sentence for each judge that leaves out trials by what they are (:data:`agents.errors.LASTING`).

    It says how many, by whom they were answered, and why. They come in no rate. Where they are people's alone, as short
    scanpaths may be, the other trials are no longer drawn as the machines' are."""
    for judge in judges:
        left_out: Counter[str] = Counter()
        judged: Counter[str] = Counter()
        reasons: Counter[str] = Counter()
        examples: dict[str, str] = {}
        if judge not in run.agents():
            continue
        for record in run.latest(judge):
            truth = keys.get(record["stimulus"], {}).get("truth", "")
            judged[truth] += 1
            if record["status"] == "failed" and (code := record["error"]["code"]) in LASTING:
                left_out[truth] += 1
                reasons[code] += 1
                examples.setdefault(code, f"{record['stimulus']}: {record['error']['message']}")
        if not left_out:
            continue
        whose = [f"{left_out[truth]:,} of {judged[truth]:,} {words}" for truth, words in WHOSE.items() if judged[truth]]
        why = "; ".join(f"{code} {number:,}, as {examples[code]}" for code, number in reasons.items())
        by_whom = f" ({', '.join(whose)})" if whose else ""
        yield (
            f"{judge} did not judge {left_out.total():,} of {count(judged.total(), 'trial')}{by_whom}. "
            f"These trials count in no rate. Why: {why}"
        )


def _no_judge(name: str, entry: Entry) -> Problem:
    return Problem("judges", None, name, f"is no judge: it answers {', '.join(entry.tasks)}")


def _filled_in(entry: Entry, trials: Path, key: Path) -> dict[str, str]:
    """The settings of a judge that say where the trials and their key are, if it has them."""
    fields = entry.load_class().Settings.model_fields
    return {field: str(path) for field, path in (("trials", trials), ("key", key)) if field in fields}


def _as_judge(entry: Entry) -> Entry:
    """A model by its name judges; others are as they are."""
    if not entry.typed or "judgement" in entry.tasks:
        return entry
    judge = JUDGES.get(entry.agent, "LocalJudge")
    entry = replace(entry, agent=f"judging.judges.llm_judge:{judge}", tasks=("judgement",))
    fields = entry.load_class().Settings.model_fields
    return replace(entry, settings={name: value for name, value in entry.settings.items() if name in fields})


def _tasks_of(trials: Path) -> set[str]:
    return {orjson.loads(line)["asked"] for line in trials.read_bytes().splitlines()}


def _goes_by_delays(entry: Entry) -> bool:
    return entry.settings.get("cue") == "delay"


def _show_delays(trials: Path) -> bool:
    return any(has_delays(orjson.loads(line)) for line in trials.read_bytes().splitlines())


def _no_picture(name: str, asked: Set[str]) -> str:
    return (
        f"sees no pictures, and these trials are about pictures ({', '.join(sorted(asked))}). To let it judge the "
        f"answers alone, add --set {name}.without_picture=true; or choose a model that sees pictures"
    )


def _with_cues(names: str, trials: Path) -> str:
    if CUES not in names.split(","):
        return names
    tasks = _tasks_of(trials)
    given = names.split(",")
    place = given.index(CUES)
    others = [name for name in _single_cues(tasks, shows_delays=_show_delays(trials)) if name not in given]
    return ",".join([*given[:place], *others, *given[place + 1 :]])


def _single_cues(tasks: Set[str], *, shows_delays: bool) -> Iterator[str]:
    """The judges of one of ``tasks`` that declare ``single_cue``: ours as ``built_in.toml`` has them, then those of
    packages. Whoever cannot be made with its default settings is left out, and who goes by delays where trials show
    none."""
    entries = catalogue.entries()
    ours = [preset["name"] for preset in JUDGE_PRESETS.values()]
    for name in dict.fromkeys([*ours, *entries]):
        if name not in entries or "judgement" not in entries[name].tasks:
            continue
        if _goes_by_delays(entries[name]) and not shows_delays:
            continue
        try:
            declared = entries[name].make().declaration()
        except (ImportError, InputError):
            continue
        if declared.single_cue and not tasks.isdisjoint(declared.judges):
            yield name


def _untrainable(rows: Collection[Mapping[str, Any]]) -> str | None:
    if any(row["beside_truth"] is not None for row in rows):
        return "pairs of conversations are judged by people and language models"
    for task in {row["asked"] for row in rows}:
        of_task = [row for row in rows if row["asked"] == task]
        if any(len({row[name] for row in of_task}) < 2 for name in ("truth", "stimulus")):
            return f"{task} lacks answers of people and of machines, to two stimuli at least"
    return None
