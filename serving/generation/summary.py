"""What a run has come to, in lines for its end."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from serving.files.words import count
from serving.generation.assignments import Assignment
from serving.sets.kinds import Kind, named


def summarize(
    assignments: Sequence[Assignment],
    counts: Mapping[str, Counter[str]],
    kinds: Mapping[Kind, int],
    skipped: int,
    report: Callable[[str], None],
) -> None:
    """Report each agent's answers by status, ``counts``; the ``kinds`` of stimuli that nobody answers; how many
    rows were ``skipped``."""
    for assignment in assignments:
        done = counts[assignment.name]
        parts = [f"{done['ok']} ok"] + [f"{done[key]} {key}" for key in ("rejected", "failed") if done[key]]
        left = assignment.total - done.total()
        if left:
            parts.append(f"{left} unanswered")
        report(f"{assignment.name}: {', '.join(parts)}")
        if assignment.error is not None:
            report(str(assignment.error))
    for kind, number in kinds.items():
        if not any(assignment.answers(kind) for assignment in assignments):
            stimuli = count(number, "stimulus", "stimuli")
            report(f"{named([kind])}: {stimuli}, and none of these agents answers it")
    if skipped:
        report(f"{skipped} rows have no record: id or task cannot be read, or an earlier row has this id")
