"""Who passes, in sentences: each agent of a task, by whom it was judged, with which interval, and how sure."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from judging.statistics.contrasts import ALPHA, AgainstPeople
from judging.statistics.measures import Score
from judging.statistics.tables import Estimate
from judging.statistics.verdict_table import PEOPLE
from serving.files.words import count

PASSES = "passes"
DETECTED = "does not pass"
TAKEN = "is taken for a person more often than people are"
OPEN = "may or may not pass"
UNKNOWN = "cannot be scored"
BLIND = "is not tested"
LEAST = {"judges": 6, "stimuli": 10, "people who answered": 6}  # fewer say little of others like them
SINGULARS = {"judges": "judge", "stimuli": "stimulus", "people who answered": "person who answered"}
CHANCE = "; chance is 50 %"  # in the first sentence on an agent
SCOPE = (
    "This decision is for judges, stimuli and people who answered like these: where there are several, they count as "
    "drawn. `turinglike study status` decides for these stimuli alone, so that the two may differ."
)


Reasons = Sequence[tuple[str, str]]  # of an agent: a headline and its reasons for each outcome


@dataclass(frozen=True, slots=True)
class Conclusion:
    """What a judge's verdicts on an agent come to; ``why`` has the figures."""

    agent: str
    judge: str
    outcome: str
    why: str


def conclude(
    scores: Iterable[Score], tests: Iterable[AgainstPeople], trained: Collection[str], bounds: float
) -> list[Conclusion]:
    """The conclusions of a task's ``tests``, people's first. An agent passes whose detectability is surely within
    ``bounds`` of 0.5, unless the judge says the same of every answer. A ``trained`` judge may be below 0.5 by
    its folds alone."""
    by_pair = {(score.judge, score.agent): score for score in scores}
    tests = list(tests)
    able = {test.judge for test in tests if _outcome(test, is_trained=test.judge in trained) == DETECTED}
    rows: list[Conclusion] = []
    for test in sorted(tests, key=lambda test: (test.agent, test.judge != PEOPLE)):
        judge = test.judge or ""
        score = by_pair[judge, test.agent]
        outcome = BLIND if score.is_one_word else _outcome(test, judge in trained)
        why = _why(test, outcome, score, bounds, judge in trained)
        if outcome == PASSES and judge not in able:
            why += f", but no agent here shows that {judge} can tell any"
        why += _not_judged(score, judge)
        if rows and rows[-1].agent == test.agent:
            why = why.replace(CHANCE, "")
        rows.append(Conclusion(test.agent, judge, outcome, why))
    return rows


def _outcome(test: AgainstPeople, is_trained: bool) -> str:
    if test.holm is None:
        return UNKNOWN
    if test.passes:
        return PASSES
    is_above = test.difference.value > 0
    if test.holm >= ALPHA or (is_trained and is_above):
        return OPEN
    return TAKEN if is_above else DETECTED


def _why(test: AgainstPeople, outcome: str, score: Score, bounds: float, is_trained: bool) -> str:
    """The figures behind an outcome. The interval is of 95 %, and no end of it looks like 50 % without being it; an
    agent passes by its interval of 90 % (two tests at 0.05, a side each), which is named, as that of 95 % may reach
    beyond the bounds."""
    if outcome == BLIND:
        return f"{test.judge} said the same of every answer"
    if outcome == UNKNOWN:
        return f"{test.judge}, {test.test}"
    are_people = test.judge == PEOPLE
    if outcome == DETECTED:
        verb = "tell it from people" if are_people else "tells it from people"
    else:
        verb = "are right" if are_people else "is right"
    rate = score.detectability_judges
    percent = Estimate(
        100 * rate.value, 100 * rate.low, 100 * rate.high, ".0f" if rate.high - rate.low > 0.02 else ".1f"
    )
    percent = percent.apart_from(50)
    value, low, high = (f"{end:{percent.form}}" for end in (percent.value, percent.low, percent.high))
    counts = {"judges": test.judges if are_people else None, "stimuli": test.stimuli}
    if test.people is not None and test.people < (test.stimuli or 0):  # or else the stimuli are the fewer
        counts["people who answered"] = test.people
    known = {name: number for name, number in counts.items() if number is not None}
    of_each = [f"{number:,} {SINGULARS[name] if number == 1 else name}" for name, number in known.items()]
    of_judges = ", by the mean of judges," if abs(rate.value - score.detectability.value) >= 0.005 else ""
    text = f"{test.judge} {verb} in {value} % of trials{of_judges} ({low} to {high} %{CHANCE}; {', '.join(of_each)})"
    within = f", its 90 % interval within {50 - 100 * bounds:.3g} to {50 + 100 * bounds:.3g} %"
    if outcome == PASSES:
        text += within
        text += ", though surely not at 50 %" if (test.holm or 1) < ALPHA else ""
    if outcome == OPEN:
        text += _why_open(test, rate, bounds, within, is_trained)
        more = [name for name, number in known.items() if number > 1]
        text += f"; to decide it takes more {' and '.join(more)}" if more else ""
    few = [name for name, number in known.items() if number < LEAST[name]]
    return text + (f" – too few {' and '.join(few)} to speak of others" if few else "")


def _not_judged(score: Score, judge: str) -> str:
    """Whose answers have no verdict, which are part of no rate: left out of people's alone they move every rate."""
    missing = score.missing_of_people + score.missing_of_machines
    if not missing:
        return ""
    of_people = f"{score.missing_of_people:,} of {count(score.trials_of_people, 'trial')} of people"
    of_machines = f"{score.missing_of_machines:,} of {score.trials_of_machines:,} of {score.agent}"
    verb = "gave" if judge == PEOPLE else "gives"
    return f"; {judge} {verb} no verdict in {of_people} and {of_machines}, which count in no rate"


def _why_open(test: AgainstPeople, rate: Estimate, bounds: float, within: str, is_trained: bool) -> str:
    """Why nothing is decided although the interval seems to decide."""
    if test.bounds <= bounds:
        return f"{within}, though not so surely among {test.family} agents"
    if is_trained and rate.high < 0.5:
        return ", which a trained judge may be by its folds alone"
    if rate.low > 0.5 or rate.high < 0.5:
        return f", which is not sure among {test.family} tests"
    return ""


def sentences(conclusions: Iterable[Conclusion]) -> dict[str, Reasons]:
    """By agent a headline and its reasons for each outcome."""
    by_agent: dict[str, dict[str, list[Conclusion]]] = defaultdict(lambda: defaultdict(list))
    for row in conclusions:
        by_agent[row.agent][row.outcome].append(row)
    return {
        agent: [
            (
                f"{agent} {outcome}"
                if len(outcomes) == 1
                else f"Judged by {' and '.join(row.judge for row in rows)}, {agent} {outcome}",
                "; ".join(row.why for row in rows),
            )
            for outcome, rows in outcomes.items()
        ]
        for agent, outcomes in by_agent.items()
    }
