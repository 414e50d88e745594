"""The first tab of the page of scores: a tile for each agent by each judge, and a sentence for each task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from judging.scores.conclusions import BLIND, DETECTED, OPEN, PASSES, TAKEN, UNKNOWN, Conclusion
from judging.scores.page_content import AgentTiles, TaskResult, Tile
from judging.scores.score_tables import ScoreTables
from judging.statistics.tables import Estimate
from judging.statistics.verdict_table import TASK_NAMES
from serving.files.words import listed

# by outcome the class of a tile in the styles, its sign and its word: never by colour alone
LOOKS = {
    PASSES: ("passes", "✓", "PASSES"),
    OPEN: ("open", "?", "UNDECIDED"),
    TAKEN: ("above", "↑", "MORE OFTEN THAN PEOPLE"),
    DETECTED: ("fails", "✗", "DOES NOT PASS"),
    BLIND: ("untested", "–", "NOT TESTED"),
    UNKNOWN: ("untested", "–", "NOT TESTED"),
}
ORDER = tuple(LOOKS)  # in which agents stand
MOST_NAMES = 3  # of judges in a sentence; more are counted


def results(tables: ScoreTables) -> list[TaskResult]:
    """By task with conclusions the sentence and the tiles, agent by agent: who passes stands first, then who is
    undecided."""
    found = []
    for task, conclusions in tables.conclusions.items():
        if not conclusions:
            continue
        rates = {(score.judge, score.agent): score.detectability_judges for score in tables.scores.where(task=task)}
        judges = conclusions.distinct("judge")
        testing = {row.judge for row in conclusions if row.outcome not in (BLIND, UNKNOWN)}
        able = {row.judge for row in conclusions if row.outcome == DETECTED}
        by_agent = {agent: conclusions.where(agent=agent).data for agent in conclusions.distinct("agent")}
        overall = {agent: overall_outcome([row.outcome for row in rows]) for agent, rows in by_agent.items()}
        agents = [
            AgentTiles(agent, [_tile(row, rates[row.judge, agent], able, len(judges)) for row in by_agent[agent]])
            for _, _, agent in sorted(
                (ORDER.index(overall[agent]), [ORDER.index(row.outcome) for row in rows], agent)
                for agent, rows in by_agent.items()
            )
        ]
        found.append(TaskResult(task, TASK_NAMES[task], sentence(overall, judges, testing), agents, len(judges)))
    return found


def overall_outcome(outcomes: Sequence[str]) -> str:
    """The outcome of an agent by all its judges: it does not pass if one of them tells it from people, and passes if
    all that tested it say so."""
    tested = [outcome for outcome in outcomes if outcome not in (BLIND, UNKNOWN)]
    if not tested:
        return BLIND
    if DETECTED in tested:
        return DETECTED
    if TAKEN in tested:
        return TAKEN
    return OPEN if OPEN in tested else PASSES


def sentence(overall: dict[str, str], judges: Sequence[str], testing: Collection[str]) -> str:
    """How many agents have which outcome, in a sentence, and which of the ``judges`` tested nobody; ``testing`` are
    those that did test an agent."""
    named = [judge for judge in judges if judge in testing] or judges
    others = [judge for judge in judges if judge not in named]
    by_whom = f"Judged by {listed(named) if len(named) <= MOST_NAMES else f'{len(named)} judges'}"
    is_by_one = len(named) == 1
    nobody = f" {listed(others)} tested nobody." if others else ""
    if len(overall) == 1:
        [(agent, outcome)] = overall.items()
        return f"{by_whom}, {agent} {_predicate(outcome, 1, is_by_one)}.{nobody}"
    number = Counter(overall.values())
    parts: list[str] = []
    for outcome in ORDER:
        if number[outcome]:
            of = f" of {len(overall)} agents" if not parts else ""
            parts.append(f"{number[outcome]}{of} {_predicate(outcome, number[outcome], is_by_one)}")
    return f"{by_whom}: {'; '.join(parts)}.{nobody}"


def _predicate(outcome: str, number: int, is_by_one: bool) -> str:
    is_single = number == 1
    if outcome == PASSES:
        verb = "passes" if is_single else "pass"
        return verb if is_by_one else f"{verb} by every judge"
    if outcome == DETECTED:
        verb = "does not pass" if is_single else "do not pass"
        return (
            verb
            if is_by_one
            else f"{verb}, because at least one judge tells {'it' if is_single else 'them'} from people"
        )
    verb = "is" if is_single else "are"
    if outcome == OPEN:
        return f"{verb} undecided"
    if outcome == TAKEN:
        return f"{verb} taken for a person more often than people are"
    return f"{verb} not tested"


def _tile(row: Conclusion, rate: Estimate, able: set[str], judges: int) -> Tile:
    look, sign, word = LOOKS[row.outcome]
    notes = {
        OPEN: f"{row.more[:1].upper()}{row.more[1:]}.",
        TAKEN: "It is taken for a person more often than people are.",
        BLIND: f"{row.why[:1].upper()}{row.why[1:]}.",
        UNKNOWN: f"{row.why[:1].upper()}{row.why[1:]}.",
    }
    note = notes.get(row.outcome, "")
    if row.outcome == PASSES and row.judge not in able:
        note = f"But no agent here shows that {row.judge} can tell any."
    shown = rate.apart_from(0.5)
    has_interval = rate.low == rate.low
    interval = f"{format(shown.low, shown.form)} to {format(shown.high, shown.form)}" if has_interval else ""
    return Tile(
        judge=row.judge if judges > 1 else "",
        look=look,
        sign=sign,
        word=word,
        value=format(shown.value, shown.form) if rate.value == rate.value else "",
        interval=interval,
        at=100 * rate.value,
        low=100 * rate.low if has_interval else 100 * rate.value,
        high=100 * rate.high if has_interval else 100 * rate.value,
        note=note,
    )
