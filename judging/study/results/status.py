"""How far a study is: judges, verdicts, exclusions by rule, answers, conversations, online tests."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from judging.study.design.settings import TestsSettings
from judging.study.log.files import read_exports, read_personal
from judging.study.log.participant_events import StimulusAnswered
from judging.study.log.state import Judge, State, read_state
from judging.study.meetings.material import MeetingMaterial
from judging.study.pages.material import Material
from judging.study.pages.trial_material import TrialMaterial
from judging.study.results.participants import counting_meetings
from judging.study.results.progress import coverage, curve, progress_rows, quotas, stage_of, usual_times
from judging.study.results.stopping import decide, detectability_by_judge
from judging.study.results.verdict_rows import rows_of
from serving.files.words import count

DECIDED_FOR = (
    "These decisions are for these stimuli only. `turinglike score` decides for other stimuli and for other people, "
    "too. Its decision may still be open when a decision is made here."
)


@dataclass(frozen=True, slots=True)
class MeetingCounts:
    """How many conversations or live tests there are."""

    over: int
    """They came to their end."""
    under_way: int
    """They did not yet, or never will."""
    void: Mapping[str, int]
    """They are void, by the reason."""

    def left_out(self) -> str:
        """What no export has, in words; "" where it has all."""
        clauses = [f"{self.under_way:,} not complete"] if self.under_way else []
        clauses += [f"{number:,} void ({reason})" for reason, number in sorted(self.void.items())]
        return ", ".join(clauses)


def count_meetings(state: State, material: MeetingMaterial) -> MeetingCounts:
    """The conversations or tests of a study, counted. Raises InputError where the set lacks a conversation's topic."""
    void = Counter(meeting.reason() for meeting in state.meetings.values() if meeting.void is not None)
    ends = Counter(material.is_over(meeting) for meeting in state.meetings.values() if meeting.void is None)
    return MeetingCounts(ends[True], ends[False], dict(void))


@dataclass(frozen=True, slots=True)
class KnownJudges:
    """The judges who finished, as far as a decision may take them.

    A decision takes judges as they joined. The fast finish first and may be unlike the others: who took them as they
    finish would decide on the fast.
    """

    finished: Sequence[str]
    """Codes of those who finished and joined before anybody who may still go on, in the order of joining."""
    waited_for: Judge | None
    """The first who may still go on; None where nobody may."""
    until: datetime | None
    """When nobody waits for them any more, if they do nothing more."""
    later: Sequence[str]
    """Codes of those who finished and joined later."""
    by_kit: Sequence[str]
    """Codes of those who finished a kit."""

    def left_out(self, state: State) -> dict[str, Any]:
        """What ``status`` says of judges who finished and are part of no decision; empty where all are.

        ``not_counted`` says it in words, ``waits_for`` whom the others wait for.
        """
        told: list[str] = []
        left_out: dict[str, Any] = {}
        if self.later and self.waited_for is not None and self.until is not None:
            judge = self.waited_for
            until = None if state.closed else self.until.isoformat(timespec="seconds")
            left_out["waits_for"] = {"number": judge.number, "judge": judge.code, "until": until}
            number = f"{count(len(self.later), 'judge')} who {'has' if len(self.later) == 1 else 'have'} finished"
            before = f"Judge {judge.number} ({judge.code}) joined earlier and"
            if state.closed:
                told.append(f"Not counted: {number}. {before} had not finished when the study was closed.")
            else:
                told.append(
                    f"Not counted yet: {number}. {before} has not finished. The decisions wait for judge "
                    f"{judge.number} until {self.until:%Y-%m-%d %H:%M} UTC, or longer if this judge goes on."
                )
        if self.by_kit:
            told.append(
                f"{count(len(self.by_kit), 'judge')} finished in kits. Judges of kits do not count for these "
                "decisions, because kits do not come back in the order of joining."
            )
        return left_out | {"not_counted": " ".join(told)} if told else {}


def known_judges(state: State, hours: float) -> KnownJudges:
    """The judges as a decision may take them.

    Nobody waits for a judge who has done nothing for a number of ``hours`` before now, or before the study was closed.
    """
    end = datetime.fromisoformat(state.closed) if state.closed else datetime.now(UTC)
    finished: list[str] = []
    later: list[str] = []
    by_kit: list[str] = []
    waited_for = None
    until = None
    for judge in state.judges.values():
        if judge.kit is not None:
            if judge.ended == "finished":
                by_kit.append(judge.code)
            continue
        gone = datetime.fromisoformat(judge.last_seen) + timedelta(hours=hours)
        if waited_for is None and judge.ended is None and gone >= end:
            waited_for = judge
            until = gone.astimezone(UTC)
        elif judge.ended == "finished":
            (finished if waited_for is None else later).append(judge.code)
    return KnownJudges(finished, waited_for, until, later, by_kit)


def read_status(folder: Path, material: Material) -> dict[str, Any]:
    """All that ``turinglike study status`` and ``/admin`` tell of the study in a folder, of what is on disk.

    Beside :func:`status_of` these are the exports that may have data of deleted people, and whether the agents' server
    answers: this asks the server. Raises InputError.
    """
    state = read_state(folder)
    material.refuse_other_set(state)
    status = status_of(state, material, read_personal(folder))
    if isinstance(material, MeetingMaterial):
        address, agents = material.needed_agents()
        if agents:
            named = sorted({name for name in agents.values() if name})
            status["server"] = {"address": address, "agents": named, "problems": material.served_problems()}
    return status | {"exports": [past for past in read_exports(folder) if past["deleted"]]}


def status_of(state: State, material: Material, personal: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """How far a study is, of its state alone.

    ``personal`` is what participants say of themselves, by their code. Raises InputError where the set lacks a
    conversation's topic.
    """
    people = state.judges.values()
    wanted = material.settings.judges.wanted
    judges = Counter(stage_of(judge, state, material) for judge in people)
    rows = rows_of(material, state, personal)
    each = progress_rows(state, material, rows)
    status: dict[str, Any] = {
        "closed": state.closed,
        "entry": _entry(state, material),
        "judges": {"wanted": wanted, "joined": len(people), **judges},
        "times": usual_times(each),
        "curve": curve(state, material),
        "coverage": coverage(state, material),
        "quotas": quotas(state, material),
        "rows": each,
    }
    if isinstance(material, MeetingMaterial):
        held = count_meetings(state, material)
        numbers = {"over": held.over, "under_way": held.under_way, "void": sum(held.void.values())}
        status["void"] = held.void
        if isinstance(material.settings, TestsSettings):
            return status | {"tests": {"wanted": material.settings.tests.wanted, **numbers}}
        return status | {"conversations": numbers, "answers": {"all": held.over, "told": 0, "flagged": 0}}
    if not isinstance(material, TrialMaterial):
        answers = [event for judge in people for event in judge.answers if isinstance(event, StimulusAnswered)]
        again = sum(len(judge.returned) for judge in people)
        flagged = sum(bool(event.flags) for event in answers)
        return status | {"answers": {"all": len(answers), "told": again, "flagged": flagged}}
    excluded: dict[str, list[str]] = defaultdict(list)
    verdicts: dict[str, list[str]] = defaultdict(list)
    rows = [row for row in rows if row["phase"] != "practice"]
    for row in rows:
        for rule in row["rules"]:
            excluded[rule].append(row["judge"])
    # Another version of an answer is no further answer: rates and decisions are of answers as they were drawn.
    key = material.pool.key
    as_drawn = [row for row in rows if key[row["trial"]]["version_of"] is None]
    plain = [row for row in as_drawn if not (row["rules"] or row["catch"] or row["again"])]
    for row in plain:
        verdicts["people" if row["truth"] == "human" else row["agent"]].append(row["verdict"])
    rules = {rule: {"verdicts": len(codes), "judges": len(set(codes))} for rule, codes in sorted(excluded.items())}
    agents: dict[str, dict[str, Any]] = {
        name: {"verdicts": len(group), "said_human": round(group.count("human") / len(group), 4)}
        for name, group in sorted(verdicts.items())
    }
    if not material.pool.of_pairs and material.settings.analysis.bounds:
        joined = known_judges(state, material.settings.judges.hours)
        finished = set(joined.finished)
        ended = [row for row in plain if row["phase"] == "test" and row["judge"] in finished]
        names = {name for page in material.pool.pages if not page.catch for name in page.agents}
        for name in agents.keys() & names:
            decision = decide(detectability_by_judge(ended, name), material.settings.analysis.bounds, len(names))
            agents[name] |= dict(zip(("decision", "judges"), decision, strict=True))
        if any("decision" in row for row in agents.values()):
            status["decided_for"] = DECIDED_FOR
            status |= joined.left_out(state)
    counts = {"all": len(rows), "counted": sum(not row["rules"] for row in rows)}
    return status | {"verdicts": counts, "excluded": rules, "agents": agents}


def _entry(state: State, material: Material) -> str:
    """Whether somebody new may begin: open, stopped (by the lab), enough (as many as wanted) or closed."""
    if state.closed:
        return "closed"
    if state.entry_stopped:
        return "stopped"
    finished = sum(map(state.has_finished, state.judges.values()))
    is_enough = finished >= material.settings.judges.wanted
    if isinstance(material.settings, TestsSettings):
        is_enough = is_enough or len(counting_meetings(state, material)) >= material.settings.tests.wanted
    return "enough" if is_enough else "open"
