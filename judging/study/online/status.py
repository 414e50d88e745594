"""How far a study of online tests is: tests by where they are, and how often judges were right by what was drawn."""

from __future__ import annotations

from collections import Counter
from typing import Any

from judging.study.online.state import OnlineTest
from judging.study.state import State
from judging.verdicts import SAID
from serving.runs.display_text import count
from serving.terminal import plain_table, print_table

BY = ("condition", "exchanges")


def tests_of(state: State, wanted: int) -> dict[str, Any]:
    """``tests`` by where they are, ``void`` by why; by condition and number of exchanges of the last verdicts of tests
    that are over how many were ``right`` of how many, and how many tests are void, which it is not by chance alone; of
    tests of two alike how often ``first`` was said. Truths are in it: for the lab alone."""
    tests = list(state.tests.by_id.values())
    over = [test for test in tests if test.void is None and test.is_over()]
    return {
        "tests": {
            "wanted": wanted,
            "over": len(over),
            "under_way": sum(test.void is None and not test.is_over() for test in tests),
            "void": sum(test.void is not None for test in tests),
        },
        "void": dict(Counter(_why(test, state) for test in tests if test.void is not None)),
        "right": [
            {"by": name, "value": value, **_right([test for test in tests if getattr(test, name) == value])}
            for name in BY
            for value in sorted({getattr(test, name) for test in tests})
        ],
        "alike": {
            pair: {"verdicts": len(some), "first": sum(test.judged[-1].verdict == "human" for test in some)}
            for pair in ("two machines", "two people")
            if (some := [test for test in over if test.pair == pair and test.judged[-1].verdict in SAID])
        },
    }


def show_tests(found: dict[str, Any]) -> None:
    """The same for people."""
    tests = found["tests"]
    print(
        f"tests: {tests['over']:,} of {tests['wanted']:,} wanted ({tests['under_way']:,} under way, "
        f"{tests['void']:,} void)"
    )
    for why, number in sorted(found["void"].items()):
        print(f"  void: {number:,} {why}")
    if any(row["verdicts"] or row["void"] for row in found["right"]):
        table = plain_table("by", "", "last verdicts", "right", "share", "void")
        for row in found["right"]:
            share = f"{row['right'] / row['verdicts']:.3f}" if row["verdicts"] else "–"
            table.add_row(
                row["by"], str(row["value"]), f"{row['verdicts']:,}", f"{row['right']:,}", share, f"{row['void']:,}"
            )
        print_table(table)
    for pair, about in found["alike"].items():
        print(f"{pair}: {count(about['verdicts'], 'last verdict')}, agent 1 said to be the human in {about['first']:,}")


def _right(some: list[OnlineTest]) -> dict[str, int]:
    said = [
        test.parts[0 if test.judged[-1].verdict == "human" else 1] == "person"
        for test in some
        if test.void is None and test.is_over()
        if test.pair == "person machine" and test.judged[-1].verdict in SAID
    ]
    return {"verdicts": len(said), "right": sum(said), "void": sum(test.void is not None for test in some)}


def _why(test: OnlineTest, state: State) -> str:
    """Why a test is void, whoever it was."""
    who, _, why = (test.void or "").partition(" ")
    if who in state.judges:
        return f"{'the judge' if who == test.judge else 'an agent'} {why}"
    return test.void or ""
