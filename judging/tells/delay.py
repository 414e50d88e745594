"""The transformation of delays: how long the messages of a conversation took."""

from __future__ import annotations

from collections.abc import Sequence

from judging.tells.seen import SeenAnswer
from judging.tells.transformation import Planted, Target, Transformation, refuse_unless


class Delay(Transformation):
    """The judged speaker's messages no longer say how long they took.

    A delay could also be brought to a common distribution, as lengths are. But it goes with the message: who writes
    more takes longer, and a common delay beside a long message would be a new tell. Without a number nothing is left
    to go by, and nothing of the messages has to change."""

    name = "delay"
    tasks = ("conversation",)
    takes = "the delays of the judged speaker's messages: no seconds are shown beside them"
    keeps = "all texts, their order, the other speaker's delays"
    measures = "seconds per message whose delay is shown; 0 where none is shown"
    plants = "the delays of a participant's messages, in their order"
    plant_tasks = tasks
    needs_delays = True

    def measure(self, seen: SeenAnswer) -> float:
        """The mean of the shown delays in seconds, 0 where none is shown."""
        seconds = _shown(seen)
        return sum(seconds) / len(seconds) if seconds else 0.0

    def take_away(self, seen: SeenAnswer, target: Target) -> SeenAnswer:
        """Without the judged speaker's delays."""
        return seen.with_delays([None] * len(seen.delays()))

    def check(self, before: SeenAnswer, after: SeenAnswer) -> None:
        """Speakers, texts and the other speaker's delays must be the same. The judged speaker's delays must be shown
        beside the same messages, or beside none."""
        is_kept = _others(before) == _others(after)
        is_kept = is_kept and (not _shown(after) or _places(before) == _places(after))
        refuse_unless(is_kept, self.name, before.answer, after.answer)

    def donors_for(self, seen: SeenAnswer, donors: Sequence[SeenAnswer]) -> Sequence[SeenAnswer]:
        """Participants' answers with at least as many delays; where there are none, all with a delay.

        The few delays of a short excerpt, taken in turn, would give the messages of a long one too little variety."""
        number = len(_shown(seen))
        enough = [donor for donor in donors if len(_shown(donor)) >= number]
        return enough or [donor for donor in donors if _shown(donor)] or donors

    def plant(self, seen: SeenAnswer, donor: SeenAnswer) -> Planted:
        """Each message that shows a delay gets one of the donor's, which are taken in turn.

        All are of one donor: some people are slow and others quick, and a mixture of all would vary less from answer to
        answer than people do."""
        given = _shown(donor)
        wanted = len(_shown(seen))
        if not given or not wanted:
            return Planted(seen, not wanted)
        delays: list[float | None] = []
        number = 0
        for delay in seen.delays():
            if delay is None:
                delays.append(None)
                continue
            delays.append(given[number % len(given)])
            number += 1
        return Planted(seen.with_delays(delays), True)


def _shown(seen: SeenAnswer) -> list[float]:
    return [delay for delay in seen.delays() if delay is not None]


def _places(seen: SeenAnswer) -> list[bool]:
    return [delay is not None for delay in seen.delays()]


def _others(seen: SeenAnswer) -> list[tuple[str, str, float | None]]:
    """All that must stay: who says what, and the other speaker's delays."""
    kept: list[tuple[str, str, float | None]] = []
    for message in seen.answer.messages or ():
        delay = None if message.speaker == seen.speaker else message.delay_s
        kept.append((message.speaker, message.text, delay))
    return kept
