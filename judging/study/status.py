"""How far a study is: judges, verdicts, exclusions by rule and day, how sure each score is by now; online tests."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from judging.measures import ALL
from judging.study.exclusions import Row, verdict_rows
from judging.study.material import Material, TrialMaterial
from judging.study.online.material import OnlineMaterial
from judging.study.online.state import OnlineTest
from judging.study.state import State
from judging.verdicts import SAID
from serving.runs.display_text import count
from serving.terminal import plain_table, print_table

if TYPE_CHECKING:
    import pandas as pd


def status_of(
    state: State, material: Material, personal: dict[str, dict[str, Any]], half_width: float = 0.05
) -> dict[str, Any]:
    """The status as JSON values, with truths in it: for the lab alone.

    ``judges`` by where they are. Of trials ``verdicts``, ``excluded`` by rule, ``days``, and ``agents``: the share of
    verdicts that are human, half-widths of 95 % intervals, and how many more judges bring detectability to
    ``half_width``. Of participants ``answers``; of online tests what :func:`tests_of` returns.
    """
    judges = Counter(judge.ended or ("at it" if judge.has_judged() else "begun") for judge in state.judges.values())
    wanted = material.settings.judges.wanted
    status: dict[str, Any] = {
        "closed": state.closed,
        "judges": {"wanted": wanted, "joined": len(state.judges), **judges},
    }
    if isinstance(material, OnlineMaterial):
        return status | tests_of(state, material.settings.tests.wanted)
    if not isinstance(material, TrialMaterial):
        answers = [event for judge in state.judges.values() for event in judge.answers if event["kind"] == "ask"]
        told = sum(len(judge.told) for judge in state.judges.values())
        flagged = sum(bool(event["flags"]) for event in answers)
        return status | {"answers": {"all": len(answers), "told": told, "flagged": flagged}}
    rows = list(verdict_rows(state, material.settings, material.pool, personal))
    by_rule: Counter[str] = Counter()
    by_day: dict[str, Counter[str]] = defaultdict(Counter)
    judges_by_rule: dict[str, set[str]] = defaultdict(set)
    counted = [row for row in rows if row["phase"] != "practice"]
    for row in counted:
        for rule in row["rules"]:
            by_rule[rule] += 1
            judges_by_rule[rule].add(row["judge"])
        by_day[row["at"][:10]]["excluded" if row["rules"] else "counted"] += 1
    kept = [row for row in counted if not row["rules"]]
    scored = [row for row in kept if not row["catch"] and not row["again"]]
    return status | {
        "verdicts": {"all": len(counted), "counted": len(kept)},
        "excluded": {
            rule: {"verdicts": number, "judges": len(judges_by_rule[rule])} for rule, number in sorted(by_rule.items())
        },
        "days": {day: dict(counts) for day, counts in sorted(by_day.items())},
        "agents": _agents(scored, half_width),
    }


def _agents(rows: list[Row], half_width: float) -> dict[str, dict[str, Any]]:
    import pandas as pd

    from judging.study.planning import half_widths

    if not rows:
        return {}
    table = pd.DataFrame.from_records(rows)
    machine = table["truth"] == "machine"
    agents: dict[str, dict[str, Any]] = {"people": _share(table[~machine])}
    for widths in half_widths(table, half_width):
        name = widths.pop("agent")
        of_agent = machine if name == ALL else machine & (table["agent"] == name)
        known = {column: None if value != value else value for column, value in widths.items()}  # NaN is unknown
        agents[name] = _share(table[of_agent]) | known
    return agents


def _share(verdicts: pd.DataFrame) -> dict[str, Any]:
    share = float((verdicts["verdict"] == "human").mean()) if len(verdicts) else None
    return {"verdicts": len(verdicts), "judges": int(verdicts["judge"].nunique()), "said_human": share}


def tests_of(state: State, wanted: int) -> dict[str, Any]:
    """Online ``tests`` by where they are, ``void`` by reason, and how often last verdicts were ``right``.

    These are by condition and number of exchanges, with the number of void tests, which are not void by chance alone.
    ``alike``: of tests of two people or two machines, how often agent 1 was taken for the human.
    """
    tests = list(state.tests.by_id.values())
    over = [test for test in tests if test.void is None and test.is_over()]
    under_way = sum(test.void is None and not test.is_over() for test in tests)
    alike = {}
    for pair in ("two machines", "two people"):
        verdicts = [test.judged[-1].verdict for test in over if test.pair == pair]
        if given := [verdict for verdict in verdicts if verdict in SAID]:
            alike[pair] = {"verdicts": len(given), "first": given.count("human")}
    return {
        "tests": {"wanted": wanted, "over": len(over), "under_way": under_way,
                  "void": sum(test.void is not None for test in tests)},
        "void": dict(Counter(_void_reason(test, state) for test in tests if test.void is not None)),
        "right": [
            {"by": name, "value": value, **_right([test for test in tests if getattr(test, name) == value])}
            for name in ("condition", "exchanges")
            for value in sorted({getattr(test, name) for test in tests})
        ],
        "alike": alike,
    }  # fmt: skip


def _right(tests: Sequence[OnlineTest]) -> dict[str, int]:
    right = [
        test.parts[0 if test.judged[-1].verdict == "human" else 1] == "person"
        for test in tests
        if test.void is None and test.is_over()
        if test.pair == "person machine" and test.judged[-1].verdict in SAID
    ]
    return {"verdicts": len(right), "right": sum(right), "void": sum(test.void is not None for test in tests)}


def _void_reason(test: OnlineTest, state: State) -> str:
    code, _, reason = (test.void or "").partition(" ")
    if code in state.judges:  # nobody is named
        return f"{'the judge' if code == test.judge else 'an agent'} {reason}"
    return test.void or ""


def print_study(status: dict[str, Any]) -> None:
    """Print the status for people."""
    judges = dict(status["judges"])
    wanted, joined = judges.pop("wanted"), judges.pop("joined")
    finished, kind = judges.pop("finished", 0), "judges" if "verdicts" in status else "participants"
    others = "".join(f", {number:,} {name}" for name, number in judges.items())
    print(f"{kind}: {finished:,} of {wanted:,} finished ({joined:,} joined{others})")
    if "tests" in status:
        _print_tests(status)
    elif "answers" in status:
        answers = status["answers"]
        print(f"answers: {answers['all']:,}, of them {answers['flagged']:,} with a flag")
        print(f"  told to be given anew: {answers['told']:,}")
    else:
        _print_verdicts(status)
        if status["closed"]:
            print(f"closed {status['closed'][:10]}")


def _print_verdicts(status: dict[str, Any]) -> None:
    print(f"verdicts: {status['verdicts']['counted']:,} count of {status['verdicts']['all']:,}")
    for rule, about in status["excluded"].items():
        print(f"  excluded by {rule}: {count(about['verdicts'], 'verdict')} of {count(about['judges'], 'judge')}")
    for day, counts in status["days"].items():
        print(f"  {day}: {counts.get('counted', 0):,} count, {counts.get('excluded', 0):,} excluded")
    if not status["agents"]:
        return
    table = plain_table(
        "answers of", "verdicts", "judges", "said to be human", "± p(M|M)", "± detectability", "more judges"
    )
    for name, row in status["agents"].items():
        shares = [_decimal(row.get(column)) for column in ("said_human", "p_machine", "detectability")]
        needed = row.get("needed", "")
        table.add_row(
            name, f"{row['verdicts']:,}", f"{row['judges']:,}", *shares, "?" if needed is None else str(needed)
        )
    print_table(table)
    print("more judges: to bring ± detectability to --half-width; ?: not with these stimuli, or not known yet")


def _decimal(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _print_tests(status: dict[str, Any]) -> None:
    tests = status["tests"]
    print(
        f"tests: {tests['over']:,} of {tests['wanted']:,} wanted ({tests['under_way']:,} under way, "
        f"{tests['void']:,} void)"
    )
    for reason, number in sorted(status["void"].items()):
        print(f"  void: {number:,} {reason}")
    if any(row["verdicts"] or row["void"] for row in status["right"]):
        table = plain_table("by", "", "last verdicts", "right", "share", "void")
        for row in status["right"]:
            share = _decimal(row["right"] / row["verdicts"] if row["verdicts"] else None)
            numbers = [f"{row[name]:,}" for name in ("verdicts", "right")]
            table.add_row(row["by"], str(row["value"]), *numbers, share, f"{row['void']:,}")
        print_table(table)
    for pair, about in status["alike"].items():
        print(f"{pair}: {count(about['verdicts'], 'last verdict')}, agent 1 said to be the human in {about['first']:,}")
