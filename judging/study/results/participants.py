"""``participants.csv``: who is paid, which rules exclude verdicts of theirs, and which meetings count."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from judging.study.design.tables import ASKED_BEFORE, CLOSING
from judging.study.log.meeting import Meeting
from judging.study.log.participant_events import ConsentAnswered, TalkLeft, TestEnded
from judging.study.log.state import Judge, State, meeting_ended
from judging.study.meetings.material import MeetingMaterial
from judging.study.pages.material import Material
from judging.study.results.verdict_rows import VerdictRow, completion_code, outcome_of
from judging.study.results.writing import WritingResults
from serving.files.csv_tables import write_rows

COLUMNS = ("outcome", "code", "paid", "answers", "excluded", "rules", "consent")
"""The columns of all studies, after the participant, the panel's id and the address's parameters."""
OF_MEETINGS = ("counts", "void")
"""Further columns of studies in which people meet."""
UNFINISHED = "unfinished"
"""Said of a meeting that is not void, and not at its end."""
Personal = Mapping[str, Mapping[str, Any]]
"""What participants say of themselves, by their code and the question."""


def write_participants(
    path: Path,
    state: State,
    personal_answers: Personal,
    verdicts: Sequence[VerdictRow],
    material: Material,
    writing: WritingResults,
) -> None:
    """Write a row for each participant who has not deleted all. Raises OSError.

    ``paid`` is 1 for who finished and failed no checks. ``counts`` is 1 for whom a meeting counts, ``void`` says why
    others do not. Where ``writing`` has them, further columns count how often somebody pasted, and failed checks.
    """
    settings = material.settings
    of_meetings: Sequence[str] = OF_MEETINGS if isinstance(material, MeetingMaterial) else ()
    counting = counting_meetings(state, material)
    counted = {who for meeting in counting for who in meeting.people}  # also who closed the page after it
    names = {meeting.id for meeting in counting}
    of_all = (*COLUMNS, *of_meetings, *writing.columns)
    columns = ("participant", "worker", *settings.judges.parameters, *of_all, *ASKED_BEFORE, *CLOSING)
    excluded: dict[str, list[list[str]]] = defaultdict(list)
    for row in verdicts:
        if row["rules"] and row["phase"] != "practice":
            excluded[row["judge"]].append(row["rules"])

    def cells(code: str, judge: Judge) -> list[Any]:
        rules = excluded[code]
        outcome = outcome_of(judge, settings)
        consent = judge.answer_of(ConsentAnswered)
        values = {
            "participant": f"human:{code}",
            "outcome": outcome,
            "code": completion_code(judge, settings),
            "paid": int(outcome == "finished"),
            "answers": judge.counted(judge.step),
            "excluded": len(rules),
            "rules": " ".join(dict.fromkeys(rule for row_rules in rules for rule in row_rules)),
            "consent": None if consent is None else consent.consent,
            "counts": int(code in counted),
            "void": " ".join(void_causes(code, judge, state, names)),
            **writing.sums_of_person(judge),
            **personal_answers.get(code, {}),
        }
        return [values.get(name) for name in columns]

    there_still = [(code, judge) for code, judge in state.judges.items() if judge.ended != "left"]
    with path.open("w", encoding="utf-8", newline="") as file:
        write_rows(file, columns, (cells(code, judge) for code, judge in there_still))


def counting_meetings(state: State, material: Material) -> list[Meeting]:
    """The meetings that came to their end and are not void; none where nobody meets. Raises InputError."""
    if not isinstance(material, MeetingMaterial):
        return []
    return [meeting for meeting in state.meetings.values() if meeting.void is None and material.is_over(meeting)]


def void_causes(code: str, judge: Judge, state: State, counting: Collection[str]) -> list[str]:
    """Why meetings of somebody do not count, in the order in which they began; ``counting`` are those that do.

    All that they were in are told of, whether or not they went on after it. Who is paid for the time is decided by
    this.
    """
    causes: list[tuple[str, str]] = []
    for meeting in state.meetings.values():
        if code in meeting.people and meeting.id not in counting:
            causes.append((meeting.at, meeting.void_to(code) or UNFINISHED))
    for answer in judge.answers:
        if not isinstance(answer, TalkLeft | TestEnded):
            continue
        name = meeting_ended(answer)
        if name is None:
            causes.append((answer.at, "nobody"))
        elif name not in state.meetings:  # an older version deleted all that was known of it
            causes.append((answer.at, "deleted"))
    return [cause for _, cause in sorted(causes, key=lambda at_and_cause: at_and_cause[0])]
