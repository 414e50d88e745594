"""What ``turinglike study status`` prints of :func:`judging.study.results.status.read_status`."""

from typing import Any

from serving.files.terminal import plain_table, print_line, print_table
from serving.files.words import count

STAGES = {"at it": "not finished", "begun": "without an answer"}
"""How the text of ``study status`` names two stages of ``status --json``."""
ENTRY = {
    "stopped": "nobody new may begin: this was stopped on the page /admin",
    "enough": "nobody new may begin: as many have finished as are wanted",
}
"""What keeps new participants out while the study is open."""


def print_study(status: dict[str, Any]) -> None:
    """Print how a study stands, without its rows of participants."""
    judges = dict(status["judges"])
    wanted = judges.pop("wanted")
    joined = judges.pop("joined")
    finished = judges.pop("finished", 0)
    kind = "judges" if "verdicts" in status else "participants"
    others = "".join(f", {number:,} {STAGES.get(name, name)}" for name, number in judges.items())
    print_line(f"{kind}: {finished:,} of {wanted:,} finished ({joined:,} joined{others})")
    if "tests" in status:
        tests = status["tests"]
        numbers = f"({tests['under_way']:,} not complete, {tests['void']:,} void)"
        print_line(f"tests: {tests['over']:,} of {tests['wanted']:,} complete {numbers}")
    elif "conversations" in status:
        held = status["conversations"]
        numbers = f"({held['under_way']:,} not complete, {held['void']:,} void)"
        print_line(f"conversations: {held['over']:,} complete {numbers}")
    elif "answers" in status:
        answers = status["answers"]
        print_line(f"answers: {answers['all']:,} ({answers['flagged']:,} with a flag)")
        print_line(f"  answers that the page's checks refused: {answers['told']:,}")
    else:
        every = status["verdicts"]["all"]
        counted = status["verdicts"]["counted"]
        print_line(f"verdicts: {every:,} ({counted:,} counted, {every - counted:,} excluded)")
        for rule, excluded in status["excluded"].items():
            excluded_verdicts = count(excluded["verdicts"], "verdict")
            print_line(f"  excluded by the rule `{rule}`: {excluded_verdicts} of {count(excluded['judges'], 'judge')}")
        has_bounds = any("decision" in row for row in status["agents"].values())
        titles = ["answers of", "verdicts", "judged human"]
        if has_bounds:
            titles.append("within bounds")
        table = plain_table(*titles)
        for name, row in status["agents"].items():
            decision = [f"{row['decision']} ({count(row['judges'], 'judge')})"] if "decision" in row else []
            table.add_row(name, f"{row['verdicts']:,}", f"{row['said_human']:.3f}", *decision)
        if status["agents"]:
            print_table(table)
        if has_bounds:
            print_line(status["decided_for"])
        if "not_counted" in status:
            print_line(status["not_counted"])
    for reason, number in sorted(status.get("void", {}).items()):
        print_line(f"  {number:,} void: {reason}")
    _print_progress(status, kind[:-1])
    for export in status["exports"]:
        people = count(export["deleted"], "person", "people")
        print_line(
            f"the export of {export['at'][:10]} may still contain data of {people} deleted later: {export['out']}"
        )
    if status["closed"]:
        print_line(f"the study was closed on {status['closed'][:10]}")
    elif status["entry"] != "open":
        print_line(ENTRY[status["entry"]])


def _print_progress(status: dict[str, Any], noun: str) -> None:
    """Times, how often each trial was answered, quotas, and whether agents are served."""
    minutes = status["times"]["minutes"]
    seconds = status["times"]["seconds"]
    if minutes is not None:
        of_trials = f"; for a {'trial' if 'verdicts' in status else 'stimulus'}: {seconds:g} s" if seconds else ""
        print_line(f"median time of a {noun} who finished: {minutes:g} min{of_trials}")
    coverage = status["coverage"]
    if coverage is not None:
        things = (
            count(coverage["all"], "trial") if "verdicts" in status else count(coverage["all"], "stimulus", "stimuli")
        )
        print_line(f"answers to each of {things}: from {coverage['fewest']:,} to {coverage['most']:,}")
    if status["quotas"]:
        table = plain_table("kind of test", "complete", "wanted")
        for quota in status["quotas"]:
            table.add_row(quota["name"], f"{quota['done']:,}", f"{quota['wanted']:g}")
        print_table(table)
    for problem in status.get("server", {}).get("problems", []):
        print_line(f"the agents' server: {problem}")


def print_judges(status: dict[str, Any]) -> None:
    """Print a row for each participant who has not deleted all; columns without any cell are left out."""
    rows = [_cells(row) for row in status["rows"]]
    filled = [name for name in rows[0] if any(row[name] for row in rows)] if rows else []
    table = plain_table(*filled)
    for row in rows:
        table.add_row(*(row[name] for name in filled))
    print_table(table)


def _cells(row: dict[str, Any]) -> dict[str, str]:
    return {
        "number": str(row["number"]),
        "code": row["judge"],
        "stage": STAGES.get(row["stage"], row["stage"]),
        "done": f"{row['done']} of {row['of']}",
        "joined": row["joined"][:16].replace("T", " "),
        "minutes": _or_nothing(row["minutes"]),
        "median s": _or_nothing(row["seconds"]),
        "controls right": _of(row["controls"]),
        "catch trials right": _of(row["catch"]),
        "excluded": f"{row['excluded']:,} ({', '.join(row['rules'])})" if row["excluded"] else "",
        "void": ", ".join(row["void"]),
    }


def _or_nothing(number: float | None) -> str:
    return "" if number is None else f"{number:g}"


def _of(right: list[int] | None) -> str:
    return "" if right is None else f"{right[0]} of {right[1]}"
