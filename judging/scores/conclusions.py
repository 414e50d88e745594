"""Who passes, in sentences: each agent of a task, by whom it was judged, with which interval, and how sure.

The outcome comes from tests alone, and a sentence may never say more than they do. An agent *passes* where two tests at
0.05 show that its detectability lies within the bounds around 0.5; that no difference was found proves nothing. It
*does not pass* where Holm's p of "as often taken for a person as people" is below 0.05. Between the two it *may or may
not pass*; readers see "undecided", and :mod:`judging.statistics.needed` tells what more would decide. Two outcomes
guard against judges. One that says the same of every answer tests nothing. A trained judge may fall below 0.5 by its
folds alone, so that this is no finding. Who changes an outcome changes what papers would print."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from judging.statistics.contrasts import ALPHA, AgainstPeople
from judging.statistics.measures import ALL, Score
from judging.statistics.needed import LEAST, Needed
from judging.statistics.tables import Estimate
from judging.statistics.verdict_table import PEOPLE
from serving.files.words import count, listed

PASSES = "passes"
DETECTED = "does not pass"
TAKEN = "is taken for a person more often than people are"
OPEN = "may or may not pass"
UNKNOWN = "cannot be scored"
BLIND = "is not tested"
IN_WORDS = {OPEN: "is undecided"}  # outcomes that readers see by another name than files have
SINGULARS = {"judges": "judge", "stimuli": "stimulus", "participants": "participant"}
CHANCE = "; chance is 50 %"  # in the first sentence on an agent
SCOPE = (
    "These results hold for judges, stimuli and participants like these: where there are several, they count as a "
    "random sample. `turinglike study status` decides about these stimuli only, so the two may differ."
)


@dataclass(frozen=True, slots=True)
class Conclusion:
    """What a judge's verdicts on an agent come to."""

    agent: str
    """The agent that is tested beside people."""
    judge: str
    """By whom; "people" are all people together."""
    outcome: str
    """One of the constants of this module, such as :data:`PASSES`."""
    why: str
    """The figures behind it, in words."""
    more: str = ""
    """What more would decide, in words; "" where the outcome is decided, or was not tested."""

    def in_words(self) -> str:
        """The outcome as readers see it, after the agent's name."""
        return IN_WORDS.get(self.outcome, self.outcome)


def conclude(
    scores: Iterable[Score], tests: Iterable[AgainstPeople], trained: Collection[str], bounds: float
) -> list[Conclusion]:
    """The conclusions of a task's ``tests`` of agents beside people: agent by agent, people's first.

    ``scores`` hold those of every judge and agent that may be concluded on; a judge that gave no verdict on an agent,
    or none on people, did not test it, and says so. ``trained`` are the judges that learn from the trials, and
    ``bounds`` is the half-width around 0.5 within which an agent passes."""
    by_pair = {(score.judge, score.agent): score for score in scores}
    tests = list(tests)
    tested = {(test.judge, test.agent) for test in tests}
    silent = [score for pair, score in by_pair.items() if pair not in tested and _is_silent(score)]
    able = {test.judge for test in tests if _outcome(test, is_trained=test.judge in trained) == DETECTED}
    rows: list[Conclusion] = []
    in_order: list[AgainstPeople | Score] = [*tests, *silent]
    for test in sorted(in_order, key=lambda row: (row.agent, row.judge != PEOPLE)):
        judge = test.judge or ""
        if isinstance(test, Score):
            why = _not_judged(test, judge).removeprefix("; ").removesuffix(", which count in no rate")
            rows.append(Conclusion(test.agent, judge, BLIND, why))
            continue
        score = by_pair[judge, test.agent]
        outcome = BLIND if score.is_one_word else _outcome(test, judge in trained)
        why = _why(test, outcome, score, bounds, judge in trained)
        if outcome == PASSES and judge not in able:
            why += f"; but no agent here shows that {judge} can tell any"
        why += _not_judged(score, judge)
        if rows and rows[-1].agent == test.agent:
            why = why.replace(CHANCE, "")
        rows.append(Conclusion(test.agent, judge, outcome, why))
    return rows


def _is_silent(score: Score) -> bool:
    """Whether a judge was asked about an agent, and gave no verdict on it, or none on people."""
    if score.agent == ALL:
        return False
    no_machines = 0 < score.trials_of_machines == score.missing_of_machines
    return no_machines or 0 < score.trials_of_people == score.missing_of_people


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
    """The figures behind an outcome: the share of right verdicts in percent, with its 95 % interval.

    No end of the interval looks like 50 % unless it is 50 %. An agent passes by its 90 % interval (two one-sided tests
    at 0.05). It is named too, since the 95 % interval may reach beyond the bounds."""
    if outcome == BLIND:
        return f"{test.judge} said the same of every answer"
    if outcome == UNKNOWN:
        return f"{test.judge}, {test.test}"
    are_people = test.judge == PEOPLE
    if outcome == DETECTED:
        verb = "tell it from people" if are_people else "tells it from people"
    else:
        verb = "are right" if are_people else "is right"
    who = "human judges" if are_people else test.judge
    rate = score.detectability_judges
    percent = Estimate(
        100 * rate.value, 100 * rate.low, 100 * rate.high, ".0f" if rate.high - rate.low > 0.02 else ".1f"
    )
    percent = percent.apart_from(50)
    value = format(percent.value, percent.form)
    low = format(percent.low, percent.form)
    high = format(percent.high, percent.form)
    counts = {"judges": test.judges if are_people else None, "stimuli": test.stimuli}
    if test.people is not None and test.people < (test.stimuli or 0):  # or else the stimuli are the fewer
        counts["participants"] = test.people
    numbers = {name: number for name, number in counts.items() if number is not None}
    in_words = [f"{number:,} {SINGULARS[name] if number == 1 else name}" for name, number in numbers.items()]
    of_judges = ", by the mean of judges," if abs(rate.value - score.detectability.value) >= 0.005 else ""
    text = f"{who} {verb} in {value} % of trials{of_judges} ({low} to {high} %{CHANCE}; {', '.join(in_words)})"
    within = f", its 90 % interval within {50 - 100 * bounds:.3g} to {50 + 100 * bounds:.3g} %"
    if outcome == PASSES:
        text += within
        if (test.holm or 1) < ALPHA:
            text += ", although it is not at 50 %"
    if outcome == OPEN:
        text += _why_open(test, rate, bounds, within, is_trained)
    return text + _limits(numbers)


def _limits(numbers: Mapping[str, int]) -> str:
    """For whom the figures hold where one judge, stimulus or participant is all there is, and of what there is too
    little; "" where neither is so."""
    alone = [f"this {SINGULARS[name]}" for name, number in numbers.items() if number == 1]
    few = [f"{number:,} {name}" for name, number in numbers.items() if 1 < number < LEAST[name]]
    text = ""
    if alone:
        text += f"; the result holds only for {listed(alone)}"
    if few:
        text += f"; {listed(few)} are too few to speak of others"
    return text


def in_words(row: Needed) -> str:
    """What would decide about an undecided agent, as a clause: "about 30 more judges and 50 more stimuli would
    decide"."""
    if row.why:
        return f"how much more data would decide cannot be said: {row.why}"
    wanted = {"judges": row.more_judges, "stimuli": row.more_stimuli, "participants": row.more_people}
    parts = [
        count(number, f"more {SINGULARS[name]}", f"more {name}")
        for name, number in wanted.items()
        if number is not None
    ]
    return f"about {listed(parts)} would decide"


def _not_judged(score: Score, judge: str) -> str:
    """How many answers of whom have no verdict; "" for none. They are part of no rate, so that a judge who leaves out
    people's answers alone moves every rate."""
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
        return f"{within}, but not after Holm's correction for {test.family} agents"
    if is_trained and rate.high < 0.5:
        return ", which a trained judge may be by its folds alone"
    if rate.low > 0.5 or rate.high < 0.5:
        return f", which Holm's correction for {test.family} tests does not confirm"
    return ""
