"""How far a study is: judges, verdicts, exclusions by rule, answers, online tests."""

from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from typing import Any

from judging.study.events import State
from judging.study.materials import Material, TrialMaterial
from judging.study.meetings import JudgedMeeting, Meeting
from judging.study.settings import TestsSettings
from judging.study.stopping import decide, detectabilities
from serving.runs.row_problems import count
from serving.terminal import plain_table, print_table


def status_of(state: State, material: Material, personal: dict[str, dict[str, Any]]) -> dict[str, Any]:
    people, wanted = state.judges.values(), material.settings.judges.wanted
    judges = Counter(judge.ended or ("at it" if judge.counted(judge.step) else "begun") for judge in people)
    status = {"closed": state.closed, "judges": {"wanted": wanted, "joined": len(people), **judges}}
    if isinstance(material.settings, TestsSettings):
        held = [test for test in state.meetings.values() if isinstance(test, JudgedMeeting)]
        void = Counter(_void_reason(test, state) for test in held if test.void is not None)
        over, under_way = (sum(test.void is None and test.is_over() is ends for test in held) for ends in (True, False))
        tests = {"wanted": material.settings.tests.wanted, "over": over, "under_way": under_way, "void": void.total()}
        return status | {"tests": tests, "void": dict(void)}
    if material.kind != "trial":
        answers = [event for judge in people for event in judge.answers if event["kind"] == "ask"]
        again = sum(len(judge.told) for judge in people)
        flagged = sum(bool(event["flags"]) for event in answers)
        return status | {"answers": {"all": len(answers), "told": again, "flagged": flagged}}
    excluded: dict[str, list[str]] = defaultdict(list)
    verdicts: dict[str, list[str]] = defaultdict(list)
    rows = [row for row in material.rows(state, personal) if row["phase"] != "practice"]
    for row in rows:
        for rule in row["rules"]:
            excluded[rule].append(row["judge"])
    plain = [row for row in rows if not (row["rules"] or row["catch"] or row["again"])]
    for row in plain:
        verdicts["people" if row["truth"] == "human" else row["agent"]].append(row["verdict"])
    rules = {rule: {"verdicts": len(codes), "judges": len(set(codes))} for rule, codes in sorted(excluded.items())}
    agents: dict[str, dict[str, Any]] = {
        name: {"verdicts": len(group), "said_human": round(group.count("human") / len(group), 4)}
        for name, group in sorted(verdicts.items())
    }
    if isinstance(material, TrialMaterial) and not material.pool.of_pairs and material.settings.analysis.bounds:
        end = datetime.fromisoformat(state.closed) if state.closed else datetime.now(UTC)
        gone = (end - timedelta(hours=material.settings.judges.hours)).isoformat()
        joined = (judge for judge in people if judge.kit is None)  # kits come back in no order of joining
        known = takewhile(lambda judge: judge.ended or judge.at < gone, joined)
        finished = {judge.code for judge in known if judge.ended == "finished"}
        ended = [row for row in plain if row["phase"] == "test" and row["judge"] in finished]
        names = {name for page in material.pool.pages if not page.catch for name in page.agents}
        for name in agents.keys() & names:
            decision = decide(detectabilities(ended, name), material.settings.analysis.bounds, len(names))
            agents[name] |= dict(zip(("decision", "judges"), decision, strict=True))
    counts = {"all": len(rows), "counted": sum(not row["rules"] for row in rows)}
    return status | {"verdicts": counts, "excluded": rules, "agents": agents}


def _void_reason(test: Meeting, state: State) -> str:
    code, _, reason = (test.void or "").partition(" ")
    if code in state.judges:  # nobody is named
        return f"{'the judge' if code == test.people[0] else 'an agent'} {reason}"
    return test.void or ""


def print_study(status: dict[str, Any]) -> None:
    judges = dict(status["judges"])
    wanted, joined = judges.pop("wanted"), judges.pop("joined")
    finished, kind = judges.pop("finished", 0), "judges" if "verdicts" in status else "participants"
    others = "".join(f", {number:,} {name}" for name, number in judges.items())
    print(f"{kind}: {finished:,} of {wanted:,} finished ({joined:,} joined{others})")
    if "tests" in status:
        tests = status["tests"]
        numbers = f"({tests['under_way']:,} under way, {tests['void']:,} void)"
        print(f"tests: {tests['over']:,} of {tests['wanted']:,} wanted {numbers}")
        for reason, number in sorted(status["void"].items()):
            print(f"  void: {number:,} {reason}")
    elif "answers" in status:
        answers = status["answers"]
        print(f"answers: {answers['all']:,}, of them {answers['flagged']:,} with a flag")
        print(f"  to be answered anew: {answers['told']:,}")
    else:
        print(f"verdicts: {status['verdicts']['counted']:,} count of {status['verdicts']['all']:,}")
        for rule, about in status["excluded"].items():
            print(f"  excluded by {rule}: {count(about['verdicts'], 'verdict')} of {count(about['judges'], 'judge')}")
        has_bounds = any("decision" in row for row in status["agents"].values())
        table = plain_table("answers of", "verdicts", "share human", *(["within bounds"] if has_bounds else []))
        for name, row in status["agents"].items():
            decision = [f"{row['decision']} ({count(row['judges'], 'judge')})"] if "decision" in row else []
            table.add_row(name, f"{row['verdicts']:,}", f"{row['said_human']:.3f}", *decision)
        if status["agents"]:
            print_table(table)
    for export in status["exports"]:
        print(f"the export of {export['at'][:10]} has {export['deleted']:,} who were deleted since: {export['out']}")
    if status["closed"]:
        print(f"closed {status['closed'][:10]}")
