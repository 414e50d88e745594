"""From a card's folder, whose commands have all ended, to the :class:`judging.cards.card.Card`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from agents import __version__, catalogue
from agents.language.words.replies import is_apology
from agents.stimuli import Asked
from judging.cards.calibration import calibrate
from judging.cards.card import (
    AgentResult,
    Beside,
    Calibration,
    Card,
    Figure,
    JudgeKind,
    JudgeResult,
    PoolUsed,
    PublishedAgent,
    TaskResult,
    Tell,
    Usage,
)
from judging.cards.pool import Pool, PoolAnswers, checksum
from judging.cards.steps import ANSWERS, CALIBRATION, PEOPLE, SCORES, VERDICTS, verdicts_of
from judging.scores.papers.published import kind, published
from judging.scores.scores import SCORES_FILE
from judging.scores.tiles import overall_outcome
from judging.scores.verdicts import open_verdicts, read_verdicts, settings_of, single_cues
from judging.statistics.ledger import SettingsByJudge
from judging.statistics.tables import Estimate
from serving.library.typed_records import OpenRun, TypedRecord, open_run
from serving.runs.run import Run
from serving.runs.status import texts_of

SHOWN = 6  # stimuli whose answers stand side by side
OF_PARTICIPANTS = 5  # their answers to each of these
MOST_TELLS = 3
LONGEST = 600  # letters of an answer on the page
FAILURES = 3  # kinds of failures that are told
DESCRIBED = ("settings", "checkpoint", "revision", "digest", "versions", "task")
TASK_FIELDS = ("cue", "topic", "image", "id")  # what is shown of a stimulus, the first that it has


def gather(
    folder: Path,
    typed: Mapping[str, Sequence[str]],
    pools: Mapping[Asked, tuple[Pool, PoolAnswers]],
    left_out: Sequence[str],
    commands: Sequence[str],
    price_token: float | None = None,
) -> Card:
    """The card of ``folder``. ``typed`` has by what was typed the agent's names in the run: itself, and the pair in
    which it converses. ``pools`` are by task. Raises InputError for folders whose commands have not ended."""
    scores = orjson.loads((folder / SCORES / SCORES_FILE).read_bytes())
    run = Run(folder / ANSWERS)
    people = Run(folder / PEOPLE)
    judged = open_verdicts([folder / VERDICTS])
    settings = settings_of(judged)
    cues = single_cues(judged)
    described = run.meta["agents"]
    agents = []
    for name, in_run in typed.items():
        results = []
        for task in pools:
            of_task = [one for one in in_run if task in described[one]["task"]]
            if of_task:
                pool = pools[task][0].name
                result = _task_result(run, people, of_task[0], task, pool, scores, settings, cues, price_token)
                results.append(result)
        provenance = {one: {key: described[one].get(key) for key in DESCRIBED} for one in in_run}
        agents.append(AgentResult(agent=in_run[0], typed=name, provenance=provenance, tasks=results))
    return Card(
        turinglike=__version__,
        created=str(run.meta["created"]),
        bounds=scores["bounds"],
        agents=agents,
        pools=[_pool_used(people, task, pool, answers) for task, (pool, answers) in pools.items()],
        left_out=list(left_out),
        published=[agent for task in pools for agent in published_agents(task)],
        calibration=_calibrations(folder, pools),
        commands=list(commands),
    )


def _task_result(
    run: Run,
    people: Run,
    agent: str,
    task: Asked,
    pool: str,
    scores: Mapping[str, Any],
    settings: SettingsByJudge,
    cues: frozenset[str],
    price_token: float | None,
) -> TaskResult:
    rows = [row for row in scores["scores"] if row["asked"] == task and row["agent"] == agent]
    by_judge = {row["judge"]: row for row in rows}
    conclusions = [row for row in scores["conclusions"].get(task, []) if row["agent"] == agent]
    judges = []
    for conclusion in conclusions:
        row = by_judge[conclusion["judge"]]
        judges.append(
            JudgeResult(
                judge=conclusion["judge"],
                kind=kind_of(conclusion["judge"], settings, cues),
                outcome=conclusion["outcome"],
                why=conclusion["why"],
                more=conclusion["more"],
                detectability=Figure.of(_estimate(row, "detectability")),
                p_human=row["p_human"],
                p_machine=row["p_machine"],
                missing=row["missing_of_people"] + row["missing_of_machines"],
            )
        )
    usage, stimuli = _usage(run, agent, task, price_token)
    outcome = overall_outcome([judge.outcome for judge in judges])
    return TaskResult(
        task=task,
        pool=pool,
        stimuli=stimuli,
        outcome=outcome,
        sentence=_sentence(agent, outcome, judges),
        judges=judges,
        tells=_tells(rows, cues),
        usage=usage,
        beside=list(_beside(run, people, agent, task)),
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
    reasons = "; ".join(judge.why for judge in judges if judge.outcome == outcome)
    words = {"may or may not pass": "is undecided"}
    more = [judge.more for judge in judges if judge.more and judge.outcome == outcome]
    text = f"{agent} {words.get(outcome, outcome)}: {reasons}."
    return f"{text} {more[0][0].upper()}{more[0][1:]}." if more else text


def _tells(rows: Sequence[Mapping[str, Any]], cues: frozenset[str]) -> list[Tell]:
    tells = []
    for row in rows:
        estimate = _estimate(row, "detectability")
        if row["judge"] in cues and estimate.low > 0.5:
            entry = catalogue.get(row["judge"])
            tells.append(Tell(cue=row["judge"], summary=entry.summary, detectability=Figure.of(estimate)))
    tells.sort(key=lambda tell: (-(tell.detectability.value or 0), tell.cue))
    return tells[:MOST_TELLS]


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
        if record.stimulus in of_agent or len(of_agent) < SHOWN:
            of_agent.setdefault(record.stimulus, []).append(record)
    rows = {row["id"]: row for row in run.stimuli() if row["id"] in of_agent}
    names = {row.get("benchmark_id", name): name for name, row in rows.items()} | {name: name for name in rows}
    participants = _of_participants(open_run(people.path), task, names)
    for name, records in of_agent.items():
        row = rows[name]
        shown = next(str(row[key]) for key in TASK_FIELDS if row.get(key))
        yield Beside(
            stimulus=str(row.get("benchmark_id", name)),
            shown=Path(shown).name if row.get("image") == shown else shown,
            participants=participants.get(name, []),
            agent=[record.text()[:LONGEST] for record in records],
        )


def _of_participants(opened: OpenRun, task: Asked, names: Mapping[str, str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for record in opened.of(task=task):
        name = names.get(record.stimulus)
        if record.kind != "human" or name is None:
            continue
        texts = found.setdefault(name, [])
        if len(texts) < OF_PARTICIPANTS:
            texts.append(record.text()[:LONGEST])
    return found


def _pool_used(people: Run, task: Asked, pool: Pool, answers: PoolAnswers) -> PoolUsed:
    number = sum(record["kind"] == "human" and record["task"] == task for record in people.latest("humans"))
    manifest = pool.manifest
    return PoolUsed(
        pool=pool.name,
        task=task,
        source=manifest.source,
        licence=manifest.licence,
        collected=manifest.collected,
        participants=manifest.participants,
        answers=number,
        sha256=checksum(pool.folder / answers.file),
        verified=bool(answers.sha256),
    )


def published_agents(task: Asked) -> list[PublishedAgent]:
    """The agents of the papers whose figures can stand on the scale of detectability.

    Where a paper prints an agent's detectability, that is it. Else it is the mean of the printed p(H|H) of the task and
    p(M|M) of the agent, by the same kind of judges; agents without one of the two are left out."""
    cells = [cell for cell in published()["cells"] if cell["asked"] == task and "only" not in cell]
    of_people = {(cell["paper"], cell["judge"]): cell for cell in cells if cell["measure"] == "p_human"}
    found: dict[tuple[str, str, str], PublishedAgent] = {}
    for cell in sorted(cells, key=lambda cell: cell["measure"] != "p_machine"):  # a printed detectability goes before
        key = (cell["paper"], cell["judge"], cell["agent"])
        value = cell["value"]
        source = str(cell["source"])
        if cell["measure"] == "p_human":
            continue
        if cell["measure"] == "p_machine":
            people = of_people.get(key[:2])
            if people is None:
                continue
            value = (people["value"] + value) / 2
            source = f"mean of printed p(H|H) ({people['source']}) and p(M|M) ({source})"
        found[key] = PublishedAgent(
            task=task,
            agent="all agents" if cell["agent"] == "all" else cell["agent"],
            paper=cell["paper"],
            kind=cell["judge"],
            detectability=value,
            source=source,
        )
    return sorted(found.values(), key=lambda agent: (agent.paper, agent.kind, agent.agent))


def _calibrations(folder: Path, pools: Mapping[Asked, tuple[Pool, PoolAnswers]]) -> list[Calibration]:
    found: list[Calibration] = []
    for number, (pool, verdicts) in enumerate(verdicts_of(pools), 1):
        runs = open_verdicts([pool.folder / verdicts.verdicts, folder / CALIBRATION / str(number)])
        cues = single_cues(runs)
        rows = calibrate(read_verdicts(runs), pool.name)
        found += [row for row in rows if row.judge not in cues and row.task in pools]
    return found
