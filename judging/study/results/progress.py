"""How a study goes, participant by participant and over time: what ``study status`` and ``/admin`` show.

Nothing here tells who answered a trial, but for the counts of tests by machine, which only the lab sees.
"""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from statistics import median
from typing import Any

from judging.study.design.settings import InterrogationSettings, OnlineSettings
from judging.study.log.meeting import Interrogation, JudgedMeeting, OnlineTest
from judging.study.log.participant_events import StimulusAnswered, TrialJudged
from judging.study.log.state import Judge, State
from judging.study.log.steps import MaterialStep
from judging.study.meetings.cells import shares_of_pairs, wanted_shares
from judging.study.meetings.material import MeetingMaterial
from judging.study.pages.material import Material
from judging.study.pages.stimulus_material import AskMaterial
from judging.study.pages.trial_material import TrialMaterial
from judging.study.results.participants import counting_meetings, void_causes
from judging.study.results.verdict_rows import VerdictRow
from serving.files.words import count

MOST_POINTS = 200
"""Points of a curve; a longer one is thinned."""


def stage_of(judge: Judge, state: State, material: Material) -> str:
    """How far a judge is, in words; who finished without a meeting that counts takes none of the wanted places."""
    if judge.ended == "finished" and not state.has_finished(judge) and isinstance(material, MeetingMaterial):
        return f"finished without a {material.meeting} that counts"
    return judge.ended or ("at it" if judge.counted(judge.step) else "begun")


def progress_rows(state: State, material: Material, verdicts: Sequence[VerdictRow]) -> list[dict[str, Any]]:
    """A row for each participant who has not deleted all, in the order of joining.

    ``minutes`` go from joining (in a kit: from the first answer) to the last answer. ``seconds`` is the median time of
    a trial or answer that counts, by the browser. ``controls`` and ``catch`` are how many were right, and of how many.
    ``excluded`` counts verdicts, ``rules`` are those that exclude them, ``void`` the reasons of meetings that do not
    count. What was not measured is None.
    """
    of_judge: dict[str, list[VerdictRow]] = defaultdict(list)
    for row in verdicts:
        if row["phase"] != "practice":
            of_judge[row["judge"]].append(row)
    counting = counting_meetings(state, material)
    names = {meeting.id for meeting in counting}

    def of(judge: Judge) -> dict[str, Any]:
        own = of_judge[judge.code]
        excluded = [row["rules"] for row in own if row["rules"]]
        caught = [row["correct"] for row in own if row["catch"] and not row["swapped"]]
        return {
            "judge": judge.code,
            "number": judge.number,
            "stage": stage_of(judge, state, material),
            "done": judge.counted(judge.step),
            "of": judge.counted(),
            "joined": judge.joined,
            "last_seen": judge.last_seen,
            "kit": judge.kit is not None,
            "minutes": _minutes(judge),
            "seconds": _seconds(judge),
            "controls": _right([answer.right for answer in _judged(judge) if answer.right is not None]),
            "catch": _right(caught),
            "excluded": len(excluded),
            "rules": list(dict.fromkeys(rule for rules in excluded for rule in rules)),
            "void": void_causes(judge.code, judge, state, names),
        }

    return [of(judge) for judge in state.judges.values() if judge.ended != "left"]


def usual_times(rows: Sequence[Mapping[str, Any]]) -> dict[str, float | None]:
    """The medians of ``minutes`` and ``seconds`` of :func:`progress_rows`, over participants who finished and count."""
    finished = [row for row in rows if row["stage"] == "finished"]
    times: dict[str, float | None] = {}
    for name in ("minutes", "seconds"):
        known = [row[name] for row in finished if row[name] is not None]
        times[name] = round(median(known), 2) if known else None
    return times


def curve(state: State, material: Material) -> dict[str, list[Any]]:
    """How many had joined, finished and dropped out (``out``) by each time ``at``; of meetings also how many were void.

    Participants who have deleted all are no longer known once the server has ended, and then in no number.
    """
    judges = state.judges.values()
    moments = {
        "joined": [judge.joined for judge in judges],
        "finished": [judge.answers[-1].at for judge in judges if state.has_finished(judge)],
        "out": [judge.last_seen for judge in judges if judge.ended not in (None, "finished")],
    }
    if isinstance(material, MeetingMaterial):
        moments["void"] = [meeting.void_at for meeting in state.meetings.values() if meeting.void_at is not None]
    sorted_moments = {name: sorted(times) for name, times in moments.items()}
    at = _thinned(sorted({time for times in moments.values() for time in times}))
    counts = {name: [bisect_right(times, moment) for moment in at] for name, times in sorted_moments.items()}
    return {"at": at, **counts}


def coverage(state: State, material: Material) -> dict[str, int] | None:
    """How often trials or stimuli were answered: how many there are, and the fewest and most answers of one.

    Practice, catch trials and repeats do not count. None for studies in which people meet.
    """
    if isinstance(material, TrialMaterial):
        pages = [page.trials for page in material.pool.pages if not page.catch]
    elif isinstance(material, AskMaterial):
        pages = [(name,) for name in material.stimuli]
    else:
        return None
    done: Counter[tuple[str, ...]] = Counter()
    for judge in state.judges.values():
        steps = zip(judge.steps, judge.answers, strict=False)
        done.update(
            tuple(step.trials)
            for step, _ in steps
            if isinstance(step, MaterialStep) and step.is_counted and not step.again
        )
    answered = [done[page] for page in pages]
    return {"all": len(pages), "fewest": min(answered), "most": max(answered)}


def quotas(state: State, material: Material) -> list[dict[str, Any]]:
    """Of live tests: for each kind that is drawn, how many were held to their end (``done``) and are ``wanted``."""
    settings = material.settings
    if not isinstance(settings, OnlineSettings | InterrogationSettings):
        return []
    held = [meeting for meeting in counting_meetings(state, material) if isinstance(meeting, JudgedMeeting)]
    kinds = Counter(kind for meeting in held for kind in _kinds(meeting))
    shares: dict[str, float] = {}
    if isinstance(settings, OnlineSettings):
        exchanges, conditions, pairs = wanted_shares(settings.tests)
        shares |= {count(number, "question"): share for number, share in exchanges.items()}
        shares |= {condition.replace("_", " "): share for condition, share in conditions.items()}
    else:
        pairs = shares_of_pairs(settings.tests)
        machines = settings.agents.machines
        with_machines = 1 - settings.tests.two_people
        shares |= dict.fromkeys(machines, with_machines / len(machines) if machines else 0.0)
    shares.update(pairs.items())
    wanted = settings.tests.wanted
    return [{"name": name, "done": kinds[name], "wanted": round(share * wanted, 1)} for name, share in shares.items()]


def _kinds(meeting: JudgedMeeting) -> Iterator[str]:
    """The names of the quotas in which a test is."""
    if isinstance(meeting, OnlineTest):
        yield count(meeting.exchanges, "question")
        yield meeting.condition.replace("_", " ")
    if isinstance(meeting, Interrogation):
        agents = zip(meeting.people[1:], meeting.parts, strict=True)
        yield from {who for who, part in agents if part == "machine"}
    yield meeting.pair


def _judged(judge: Judge) -> Iterator[TrialJudged]:
    """The verdicts of a judge, but for practice."""
    for step, answer in zip(judge.steps, judge.answers, strict=False):
        if isinstance(step, MaterialStep) and step.is_counted and isinstance(answer, TrialJudged):
            yield answer


def _right(found: Sequence[bool]) -> list[int] | None:
    return [sum(found), len(found)] if found else None


def _minutes(judge: Judge) -> float | None:
    if not judge.answers:
        return None
    begin = judge.joined if judge.kit is None else judge.answers[0].at
    taken = datetime.fromisoformat(judge.answers[-1].at) - datetime.fromisoformat(begin)
    return round(taken.total_seconds() / 60, 2)


def _seconds(judge: Judge) -> float | None:
    verdicts = [answer.rt for answer in _judged(judge)]
    answers = [answer.rt for answer in judge.answers if isinstance(answer, StimulusAnswered)]
    times = [rt for rt in (*verdicts, *answers) if rt is not None]
    return round(median(times) / 1000, 2) if times else None


def _thinned(times: Sequence[str]) -> list[str]:
    """At most ``MOST_POINTS`` of the times, the first and the last among them."""
    if len(times) <= MOST_POINTS:
        return list(times)
    last = len(times) - 1
    return [times[round(at * last / (MOST_POINTS - 1))] for at in range(MOST_POINTS)]
