"""How far a study is: judges, verdicts, what rules exclude and when, how sure each agent's score is by now."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from typing import Any

from judging.study.exclusions import Row, verdict_rows
from judging.study.pool import TrialPool
from judging.study.settings import StudySettings
from judging.study.state import State
from serving.runs.display_text import count
from serving.terminal import plain_table, print_table

Z = 1.959964  # of a 95 % interval


def status_of(
    state: State, settings: StudySettings, pool: TrialPool, personal: dict[str, dict[str, Any]]
) -> dict[str, Any]:
    """``judges`` by where they are, ``verdicts``, ``excluded`` by rule and by day, ``agents`` with the share of each
    that passed and the half-width of its 95 % interval. Truths are in it: for the lab alone."""
    rows = list(verdict_rows(state, settings, pool, personal))
    judges = Counter(judge.ended or ("judging" if judge.has_judged() else "begun") for judge in state.judges.values())
    by_rule: Counter[str] = Counter()
    by_day: dict[str, Counter[str]] = defaultdict(Counter)
    judges_out: dict[str, set[str]] = defaultdict(set)
    counted = [row for row in rows if row["phase"] != "practice"]
    for row in counted:
        for rule in row["rules"]:
            by_rule[rule] += 1
            judges_out[rule].add(row["judge"])
        by_day[row["at"][:10]]["excluded" if row["rules"] else "counted"] += 1
    good = [row for row in counted if not row["rules"] and not row["catch"] and not row["again"]]
    return {
        "closed": state.closed,
        "judges": {"wanted": settings.judges.wanted, "joined": len(state.judges), **judges},
        "verdicts": {"all": len(counted), "counted": len(good)},
        "excluded": {
            rule: {"verdicts": number, "judges": len(judges_out[rule])} for rule, number in sorted(by_rule.items())
        },
        "days": {day: dict(counts) for day, counts in sorted(by_day.items())},
        "agents": _agents(good),
    }


def _agents(good: list[Row]) -> dict[str, dict[str, Any]]:
    """Of people and of each agent the share that was said to be human, with its half-width by judges: the standard
    error of the mean over judges, of whom each counts by their verdicts."""
    by_agent: dict[str, dict[str, list[bool]]] = defaultdict(lambda: defaultdict(list))
    for row in good:
        name = "people" if row["truth"] == "human" else row["agent"]
        by_agent[name][row["judge"]].append(row["verdict"] == "human")
    found = {}
    for name, judges in sorted(by_agent.items()):
        number = sum(map(len, judges.values()))
        share = sum(map(sum, judges.values())) / number
        off = sum((sum(said) - share * len(said)) ** 2 for said in judges.values())
        many = len(judges)
        half = Z * math.sqrt(off * many / (many - 1)) / number if many > 1 else None
        found[name] = {"verdicts": number, "judges": many, "said_human": share, "half_width": half}
    return found


def show(found: dict[str, Any]) -> None:
    """The same for people."""
    judges = dict(found["judges"])
    wanted, joined = judges.pop("wanted"), judges.pop("joined")
    told = ", ".join(f"{number:,} {name}" for name, number in judges.items())
    print(f"judges: {joined:,} of {wanted:,} wanted{f' ({told})' if told else ''}")
    print(f"verdicts: {found['verdicts']['counted']:,} count of {found['verdicts']['all']:,}")
    for rule, about in found["excluded"].items():
        print(f"  excluded by {rule}: {count(about['verdicts'], 'verdict')} of {count(about['judges'], 'judge')}")
    for day, counts in found["days"].items():
        print(f"  {day}: {counts.get('counted', 0):,} count, {counts.get('excluded', 0):,} excluded")
    if found["agents"]:
        table = plain_table("answers of", "verdicts", "judges", "said to be human", "half of the 95 % interval")
        for name, row in found["agents"].items():
            half = "–" if row["half_width"] is None else f"{row['half_width']:.3f}"
            table.add_row(name, f"{row['verdicts']:,}", f"{row['judges']:,}", f"{row['said_human']:.3f}", half)
        print_table(table)
    if found["closed"]:
        print(f"closed {found['closed'][:10]}")
