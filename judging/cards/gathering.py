"""From a card's folder, whose commands have all ended, to the :class:`judging.cards.card.Card`."""

from __future__ import annotations

import base64
import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from agents import __version__, catalogue
from agents.errors import ImageError
from agents.images import Image
from agents.language.words.replies import is_apology
from agents.stimuli import Asked
from judging.cards.calibration import calibrate
from judging.cards.card import (
    AgentResult,
    Beside,
    Calibration,
    Card,
    Cue,
    Figure,
    JudgeKind,
    JudgeResult,
    PoolUsed,
    TaskResult,
    Usage,
)
from judging.cards.own_answers import contamination, corrected
from judging.cards.papers_agents import published_agents
from judging.cards.pool import Pool, PoolAnswers, checksum
from judging.cards.steps import (
    ANSWERS,
    CALIBRATION,
    PEOPLE,
    SCORES,
    TALK,
    TELLS,
    VERDICTS,
    verdicts_of,
)
from judging.cards.taken_away import no_tells, remaining, tells
from judging.scores.conclusions import IN_WORDS
from judging.scores.papers.published import kind
from judging.scores.score_tables import BOUNDS
from judging.scores.scores import SCORES_FILE
from judging.scores.tiles import overall_outcome
from judging.scores.verdicts import open_verdicts, read_verdicts, settings_of, single_cues
from judging.statistics.ledger import SettingsByJudge
from judging.statistics.measures import NAMELESS, TRAINED
from judging.statistics.tables import Estimate
from judging.trial_sets.trial_set import key_path
from serving.library.typed_records import TypedRecord, open_run
from serving.pages.thumbnails import thumbnail
from serving.runs.run import Run
from serving.runs.status import texts_of
from serving.runs.stimulus_lookup import StimulusLookup

SHOWN = 6  # stimuli whose answers stand side by side
TALKS_SHOWN = 2  # conversations, which are long
OF_PARTICIPANTS = 5  # their answers to each of these
MOST_CUES = 3
LEAKS = "cue-metadata"  # the judge that sees no answer, but order, ids and files
CONSTANT = "-constant"  # the end of the name of the judge that says one word
HALF_90 = 1.645  # standard errors in half of a 90 % interval
LONGEST = 600  # letters of an answer on the page
FAILURES = 3  # kinds of failures that are told
DESCRIBED = ("settings", "checkpoint", "revision", "digest", "versions", "task")
TASK_FIELDS = ("cue", "topic", "image", "id")  # what is shown of a stimulus, the first that it has


def gather(
    folder: Path,
    tested: Mapping[str, Mapping[Asked, str]],
    pools: Mapping[Asked, tuple[Pool, PoolAnswers]],
    left_out: Sequence[str],
    commands: Sequence[str],
    *,
    unjudged: Collection[str] = (),
    price_token: float | None = None,
) -> Card:
    """The card of ``folder``. ``tested`` has by agent and task the agent's name in the run, ``pools`` are by task. The
    agents ``unjudged`` have no judges: scores of an earlier call may lie in their folders, and are not read. Raises
    InputError for folders whose commands have not ended."""
    run = Run(folder / ANSWERS)
    people = Run(folder / PEOPLE)
    described = run.meta["agents"]
    agents = []
    scores = []
    bounds = BOUNDS
    for name, by_task in tested.items():
        scored = NOT_SCORED if name in unjudged else _read_scores(folder / name)
        bounds = scored.scores.get("bounds", bounds)
        scores.append(scored.scores)
        results = [
            _task_result(run, people, name, in_run, task, pools[task][0].name, scored, price_token)
            for task, in_run in by_task.items()
        ]
        provenance = {}
        for in_run in by_task.values():
            provenance[in_run] = {key: described[in_run].get(key) for key in DESCRIBED}
        agents.append(AgentResult(agent=name, provenance=provenance, tasks=results))
    return Card(
        turinglike=__version__,
        created=str(run.meta["created"]),
        bounds=bounds,
        agents=agents,
        pools=[_pool_used(people, task, pool, answers, scores) for task, (pool, answers) in pools.items()],
        left_out=list(left_out),
        published=[agent for task in pools for agent in published_agents(task)],
        calibration=_calibrations(folder, pools),
        commands=list(commands),
    )


@dataclass(frozen=True, slots=True)
class _Scored:
    """What an agent's folder says of it."""

    scores: Mapping[str, Any]  # of scores.json; empty where the answers could not be judged
    settings: SettingsByJudge
    cues: frozenset[str]
    tells: Mapping[str, Any]  # the scores.json of its tells; empty where none were looked for


NOT_SCORED = _Scored({}, {}, frozenset(), {})


def _read_scores(folder: Path) -> _Scored:
    path = folder / SCORES / SCORES_FILE
    if not path.is_file():
        return NOT_SCORED
    verdicts = [folder / name for name in (VERDICTS, f"{VERDICTS}-{TALK}") if (folder / name).is_dir()]
    judged = open_verdicts(verdicts)
    of_tells = folder / TELLS / SCORES / SCORES_FILE
    tells = orjson.loads(of_tells.read_bytes()) if of_tells.is_file() else {}
    return _Scored(orjson.loads(path.read_bytes()), settings_of(judged), single_cues(judged), tells)


def _task_result(
    run: Run,
    people: Run,
    agent: str,
    in_run: str,
    task: Asked,
    pool: str,
    scored: _Scored,
    price_token: float | None,
) -> TaskResult:
    scores = scored.scores
    rows = [row for row in scores.get("scores", ()) if row["asked"] == task and row["agent"] == agent]
    by_judge = {row["judge"]: row for row in rows}
    conclusions = [row for row in scores.get("conclusions", {}).get(task, ()) if row["agent"] == agent]
    judges = []
    for conclusion in conclusions:
        row = by_judge[conclusion["judge"]]
        settings_of_judge = scored.settings.get(conclusion["judge"], {})
        judges.append(
            JudgeResult(
                judge=conclusion["judge"],
                kind=kind_of(conclusion["judge"], scored.settings, scored.cues),
                outcome=conclusion["outcome"],
                why=conclusion["why"],
                more=conclusion["more"],
                detectability=Figure.of(_estimate(row, "detectability")),
                corrected=corrected(scores, agent, task, conclusion["judge"]),
                p_human=row["p_human"],
                p_machine=row["p_machine"],
                of_people=row["human_human"] + row["human_machine"],
                of_agent=row["machine_human"] + row["machine_machine"],
                least_stimuli=_least_stimuli(scores, row, "split" in settings_of_judge),
                above_cue=_above_cue(scores, task, conclusion["judge"]),
                missing=row["missing_of_people"] + row["missing_of_machines"],
            )
        )
    cues = _cues(rows, scored.cues - {LEAKS})
    leak = next(iter(_cues(rows, {LEAKS})), None)
    usage, stimuli = _usage(run, in_run, task, price_token)
    outcome = overall_outcome([judge.outcome for judge in judges])
    return TaskResult(
        task=task,
        pool=pool,
        stimuli=stimuli,
        outcome=outcome,
        sentence=_sentence(agent, outcome, judges),
        judges=judges,
        cues=len(cues),
        strongest_cues=[cue for cue in cues if (cue.detectability.low or 0) > 0.5][:MOST_CUES],
        best_cue=cues[0] if cues else None,
        tells=tells(scored.tells, agent, task),
        remaining=remaining(scored.tells, agent, task),
        no_tells=no_tells(scored.tells, task),
        leak=leak if leak is not None and (leak.detectability.low or 0) > 0.5 else None,
        usage=usage,
        beside=list(_beside(run, people, in_run, task)),
    )


def _estimate(row: Mapping[str, Any], name: str) -> Estimate:
    return Figure(value=row[name], low=row[f"{name}_low"], high=row[f"{name}_high"]).estimate


def kind_of(judge: str, settings: SettingsByJudge, cues: frozenset[str]) -> JudgeKind:
    """The kind of a judge in the papers' terms; "other" of a judge that is none of theirs."""
    found = kind(judge, settings, cues)
    match found:
        case "classifier" | "language model" | "people":
            return found
        case _:
            return "other"


def _sentence(agent: str, outcome: str, judges: Sequence[JudgeResult]) -> str:
    if not judges:
        return f"No judge tested {agent}."
    of_outcome = [judge for judge in judges if judge.outcome == outcome]
    text = f"{agent} {IN_WORDS.get(outcome, outcome)}: {'; '.join(judge.why for judge in of_outcome)}."
    for judge in of_outcome:
        if judge.more:
            by_whom = f" by {judge.judge}" if len(of_outcome) > 1 else ""
            text += f" {judge.more[0].upper()}{judge.more[1:]}{by_whom}."
    return text


def _least_stimuli(scores: Mapping[str, Any], row: Mapping[str, Any], is_trained: bool) -> int | None:
    """How many stimuli, with an answer of either side each, let an agent pass whose detectability is 0.5: as many as
    make half of its 90 % interval, 1.645 times the error of a mean of two rates, as small as the bounds. None where
    there are as many."""
    factor = TRAINED if is_trained else 1.0
    least = math.ceil(0.125 * (HALF_90 * factor / scores["bounds"]) ** 2)
    tests = scores["tests"][row["asked"]]["against_people"]
    stimuli = [test["stimuli"] for test in tests if (test["judge"], test["agent"]) == (row["judge"], row["agent"])]
    there = next(iter(stimuli), None) or min(row["trials_of_people"], row["trials_of_machines"])
    return least if there < least else None


def _above_cue(scores: Mapping[str, Any], task: Asked, judge: str) -> Figure:
    for row in scores["ledger"]:
        if row["asked"] == task and row["judge"] == judge:
            return Figure(value=row["above_cue"], low=row["above_cue_low"], high=row["above_cue_high"])
    return Figure(value=None, low=None, high=None)


def _cues(rows: Sequence[Mapping[str, Any]], cues: Collection[str]) -> list[Cue]:
    """The judges by one cue among ``cues``, the strongest first. The constant one is none: it looks at nothing."""
    found = []
    for row in rows:
        if row["judge"] in cues and not row["judge"].endswith(CONSTANT):
            summary = catalogue.get(row["judge"]).summary
            figure = Figure.of(_estimate(row, "detectability"))
            found.append(Cue(cue=row["judge"], summary=summary, detectability=figure))
    return sorted(found, key=lambda cue: (-(cue.detectability.value or 0), cue.cue))


def _usage(run: Run, agent: str, task: Asked, price_token: float | None) -> tuple[Usage, int]:
    """What the answers took, and how many stimuli of the task the run has."""
    statuses: Counter[str] = Counter()
    tokens: Counter[str] = Counter()
    failures: Counter[str] = Counter()
    attempts = 0
    refusals = 0
    seconds = 0.0
    answered = set()
    for record in run.latest(agent):
        if record["task"] != task:
            continue
        answered.add(record["stimulus"])
        statuses[record["status"]] += 1
        rejected = sum(any(found["rejected"] for found in attempt["verdicts"]) for attempt in record["attempts"])
        attempts += rejected + (record["status"] != "rejected" or rejected == 0)
        if record["status"] == "failed":
            failures[f"{record['error']['code']}: {record['error']['message']}"] += 1
        of_batch = record["worker"].get("batch_size") or 1
        seconds += (record["timing"]["preparing"] + record["timing"]["responding"]) / of_batch
        for text in texts_of(record):
            said = text.get("text")
            refusals += isinstance(said, str) and is_apology(said)
            for name, key in (("prompt", "prompt_tokens"), ("reply", "tokens")):
                if isinstance(text.get(key), int):
                    tokens[name] += text[key]
    stimuli = sum(1 for asked, _ in run.kinds if asked == task)
    counted = {name: tokens[name] for name in ("prompt", "reply")} if tokens.total() else None
    cost = None
    if price_token is not None and counted is not None:
        cost = price_token * tokens.total()
    usage = Usage(
        ok=statuses["ok"],
        rejected=statuses["rejected"],
        failed=statuses["failed"],
        unanswered=stimuli - len(answered),
        attempts=attempts,
        refusals=refusals,
        seconds=round(seconds, 3),
        tokens=counted,
        cost=cost,
        failures=[f"{number:,} times {text[:LONGEST]}" for text, number in failures.most_common(FAILURES)],
    )
    return usage, stimuli


def _beside(run: Run, people: Run, agent: str, task: Asked) -> Iterator[Beside]:
    """The first stimuli of the set that the agent answered, with participants' answers to them."""
    opened = open_run(run.path)
    of_agent: dict[str, list[TypedRecord]] = {}
    for record in opened.of(agent=agent, task=task):
        if record.stimulus in of_agent or len(of_agent) < (TALKS_SHOWN if task == TALK else SHOWN):
            of_agent.setdefault(record.stimulus, []).append(record)
    rows = {row["id"]: row for row in run.stimuli() if row["id"] in of_agent}
    participants = _of_participants(run, people, task)
    if task == TALK:  # people talked about topics of their own
        others = [text for texts in participants.values() for text in texts]
        participants = {name: [text] for name, text in zip(of_agent, others, strict=False)}
    for name, records in of_agent.items():
        row = rows[name]
        shown = next(str(row[key]) for key in TASK_FIELDS if row.get(key))
        yield Beside(
            stimulus=str(row.get("benchmark_id", name)),
            shown=Path(shown).name if row.get("image") == shown else shown,
            participants=participants.get(name, []),
            agent=[_cut(record.text()) for record in records],
        )


def _of_participants(run: Run, people: Run, task: Asked) -> dict[str, list[str]]:
    """By stimulus of ``run`` some answers of participants in words. A stimulus is found as ``trials`` finds it: by its
    id, its name in the pool, its cue or its file's name."""
    lookup = StimulusLookup(run)
    found: dict[str, list[str]] = {}
    for record in open_run(people.path).of(task=task):
        if record.kind != "human":
            continue
        match = None if task == TALK else lookup.find(task, record.stimulus)
        if match is None and task != TALK:
            continue
        texts = found.setdefault(record.stimulus if match is None else match[1]["id"], [])
        if len(texts) < OF_PARTICIPANTS:
            texts.append(_cut(record.text()))
    return found


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def thumbnails(folder: Path, card: Card) -> dict[tuple[Asked, str], str]:
    """By task and stimulus the picture of what stands side by side, smaller, as a ``data:`` address. A picture that
    cannot be read is left out: the answer's own failure tells why."""
    run = Run(folder / ANSWERS)
    root = Path(run.meta["set"]["root"])
    wanted = set()
    for agent in card.agents:
        for result in agent.tasks:
            wanted |= {(result.task, beside.stimulus) for beside in result.beside}
    found: dict[tuple[Asked, str], str] = {}
    for row in run.stimuli():
        key = (row["task"], str(row.get("benchmark_id", row["id"])))
        if key in wanted and "image" in row and key not in found:
            try:
                content = thumbnail(Image(row["image"], root=root))
            except ImageError:
                continue
            found[key] = f"data:image/jpeg;base64,{base64.b64encode(content).decode()}"
    return found


def _pool_used(
    people: Run, task: Asked, pool: Pool, answers: PoolAnswers, scores: Sequence[Mapping[str, Any]]
) -> PoolUsed:
    number = 0
    names = set()
    for record in people.latest("humans"):
        if record["kind"] == "human" and record["task"] == task:
            number += 1
            names.add(record["agent"])
    names -= {*NAMELESS, "human~human"}
    manifest = pool.manifest
    return PoolUsed(
        pool=pool.name,
        task=task,
        source=manifest.source,
        licence=manifest.licence,
        collected=manifest.collected,
        participants=manifest.participants,
        names=len(names),
        answers=number,
        sha256=checksum(pool.folder / answers.file),
        contamination=contamination(scores, task),
        verified=bool(answers.sha256),
    )


def _calibrations(folder: Path, pools: Mapping[Asked, tuple[Pool, PoolAnswers]]) -> list[Calibration]:
    found: list[Calibration] = []
    for number, (pool, verdicts) in enumerate(verdicts_of(pools), 1):
        key = key_path(pool.folder / verdicts.trials)
        runs = open_verdicts([pool.folder / verdicts.verdicts, folder / CALIBRATION / str(number)], key)
        cues = single_cues(runs)
        trained = [name for name, settings in settings_of(runs).items() if "split" in settings]
        rows = calibrate(read_verdicts(runs), pool.name, trained)
        found += [row for row in rows if row.judge not in cues and row.task in pools]
    return found
