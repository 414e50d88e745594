"""How far a study is: judges, verdicts, what rules exclude and when, how sure each agent's score is by now."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

from judging.measures import ALL
from judging.study.exclusions import Row, verdict_rows
from judging.study.material import Material, TrialMaterial
from judging.study.online.material import OnlineMaterial
from judging.study.online.status import show_tests, tests_of
from judging.study.state import State
from serving.runs.display_text import count
from serving.terminal import plain_table, print_table

if TYPE_CHECKING:
    import pandas as pd


def status_of(
    state: State, material: Material, personal: dict[str, dict[str, Any]], half_width: float = 0.05
) -> dict[str, Any]:
    """``judges`` by where they are, ``verdicts``, ``excluded`` by rule and by day, and of people, each agent and all
    together the share that was said to be human, the half-widths of the 95 % intervals of p(M|M) and detectability, and
    how many more judges bring the latter to ``half_width`` (:func:`judging.study.planning.half_widths`). Truths are in
    it: for the lab alone. Of participants ``answers``: all, answered anew after they were told, kept with a flag;
    of online tests what :func:`judging.study.online.status.tests_of` says."""
    judges = Counter(judge.ended or ("at it" if judge.has_judged() else "begun") for judge in state.judges.values())
    wanted = material.settings.judges.wanted
    found: dict[str, Any] = {
        "closed": state.closed,
        "judges": {"wanted": wanted, "joined": len(state.judges), **judges},
    }
    if isinstance(material, OnlineMaterial):
        return found | tests_of(state, material.settings.tests.wanted)
    if not isinstance(material, TrialMaterial):
        answers = [one for judge in state.judges.values() for one in judge.answers if one["kind"] == "ask"]
        told = sum(len(judge.told) for judge in state.judges.values())
        flagged = sum(bool(one["flags"]) for one in answers)
        return found | {"answers": {"all": len(answers), "told": told, "flagged": flagged}}
    rows = list(verdict_rows(state, material.settings, material.pool, personal))
    by_rule: Counter[str] = Counter()
    by_day: dict[str, Counter[str]] = defaultdict(Counter)
    judges_out: dict[str, set[str]] = defaultdict(set)
    counted = [row for row in rows if row["phase"] != "practice"]
    for row in counted:
        for rule in row["rules"]:
            by_rule[rule] += 1
            judges_out[rule].add(row["judge"])
        by_day[row["at"][:10]]["excluded" if row["rules"] else "counted"] += 1
    kept = [row for row in counted if not row["rules"]]
    good = [row for row in kept if not row["catch"] and not row["again"]]
    return found | {
        "verdicts": {"all": len(counted), "counted": len(kept)},
        "excluded": {
            rule: {"verdicts": number, "judges": len(judges_out[rule])} for rule, number in sorted(by_rule.items())
        },
        "days": {day: dict(counts) for day, counts in sorted(by_day.items())},
        "agents": _agents(good, half_width),
    }


def _agents(good: list[Row], half_width: float) -> dict[str, dict[str, Any]]:
    import pandas as pd

    from judging.study.planning import half_widths

    if not good:
        return {}
    table = pd.DataFrame.from_records(good)
    whose = table["agent"].where(table["truth"] == "machine", "people")
    machine = table["truth"] == "machine"
    found: dict[str, dict[str, Any]] = {"people": _share(table[~machine])}
    for row in half_widths(table, half_width):
        about = {name: None if value != value else value for name, value in row.items() if name != "agent"}
        found[row["agent"]] = _share(table[machine if row["agent"] == ALL else whose == row["agent"]]) | about
    return found


def _share(some: pd.DataFrame) -> dict[str, Any]:
    share = float((some["verdict"] == "human").mean()) if len(some) else None
    return {"verdicts": len(some), "judges": int(some["judge"].nunique()), "said_human": share}


def show(found: dict[str, Any]) -> None:
    """The same for people."""
    judges = dict(found["judges"])
    wanted, joined = judges.pop("wanted"), judges.pop("joined")
    finished, kind = judges.pop("finished", 0), "judges" if "verdicts" in found else "participants"
    rest = "".join(f", {number:,} {name}" for name, number in judges.items())
    print(f"{kind}: {finished:,} of {wanted:,} finished ({joined:,} joined{rest})")
    if "tests" in found:
        show_tests(found)
        return
    if "answers" in found:
        answers = found["answers"]
        print(f"answers: {answers['all']:,}, of them {answers['flagged']:,} with a flag")
        print(f"  told to be given anew: {answers['told']:,}")
        return
    print(f"verdicts: {found['verdicts']['counted']:,} count of {found['verdicts']['all']:,}")
    for rule, about in found["excluded"].items():
        print(f"  excluded by {rule}: {count(about['verdicts'], 'verdict')} of {count(about['judges'], 'judge')}")
    for day, counts in found["days"].items():
        print(f"  {day}: {counts.get('counted', 0):,} count, {counts.get('excluded', 0):,} excluded")
    if found["agents"]:
        table = plain_table(
            "answers of", "verdicts", "judges", "said to be human", "± p(M|M)", "± detectability", "more judges"
        )
        for name, row in found["agents"].items():
            shares = [_told(row.get(each)) for each in ("said_human", "p_machine", "detectability")]
            needed = row.get("needed", "")
            table.add_row(
                name, f"{row['verdicts']:,}", f"{row['judges']:,}", *shares, "?" if needed is None else str(needed)
            )
        print_table(table)
        print("more judges: to bring ± detectability to --half-width; ?: not with these stimuli, or not known yet")
    if found["closed"]:
        print(f"closed {found['closed'][:10]}")


def _told(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
