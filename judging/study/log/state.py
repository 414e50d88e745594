"""The state of a study, which is read from its events alone: the same events give the same state."""

import gc
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from agents.errors import InputError
from judging.study.log.events import Event, OfParticipant
from judging.study.log.files import EVENTS, read_events
from judging.study.log.meeting import FORGOTTEN, Meeting, Talk, begun_test
from judging.study.log.meeting_events import (
    InterrogationBegan,
    OnlineTestBegan,
    TalkBegan,
    TalkSaid,
    TalkVoid,
    TalkWithdrawn,
    TestAnswered,
    TestAsked,
    TestJudged,
    TestLeft,
    TestReady,
    TestSaid,
    TestVoid,
    TestWithdrawn,
)
from judging.study.log.participant_events import (
    AnswerReturned,
    Blocked,
    Consent,
    ConsentAnswered,
    EntryChanged,
    Joined,
    Left,
    PageLoaded,
    QuestionsAnswered,
    Restarted,
    SessionBegan,
    SettingsChosen,
    StepAnswer,
    StepDone,
    StimulusAnswered,
    StudyClosed,
    TalkLeft,
    TestEnded,
    TrialJudged,
)
from judging.study.log.steps import MaterialStep, Step, is_counted

M = TypeVar("M", bound=Meeting)
A = TypeVar("A")


@dataclass(slots=True)
class Judge:
    """A participant, also of a study in which nobody judges. The fields up to ``kit`` come from the event
    ``Joined``."""

    code: str
    """The code drawn for the participant, which the event calls ``judge``."""
    session: str
    """The SHA-256 of the token in the browser's cookie, of the newest session."""
    joined: str
    """The time of the event."""
    number: int
    """How many had joined by then, this one included."""
    keys: list[str]
    """The keys for "human" and "machine", in this order. Empty where nothing is judged."""
    steps: list[Step]
    """All that is drawn for the participant. Only logs of version 0.2.0 change it later."""
    end_code: str
    """The code that is shown at the end, by which a panel pays."""
    link: str | None = None
    """The SHA-256 of a personal link's token."""
    kit: str | None = None
    """The id of the kit that has this list."""
    answers: list[StepAnswer] = field(default_factory=list)
    """One for each step that is done, in order."""
    returned: list[AnswerReturned] = field(default_factory=list)
    """Answers that were to be replaced."""
    ended: str | None = None
    """finished, declined, screened_out, blocked or left; None while the participant may go on."""
    last_seen: str = ""
    """The time of the last event that is the participant's own: joining, a session, a loaded page, an answer.

    What is said in a meeting does not count, and neither do the page's questions to a lobby, which are no events."""
    consent: str | None = None
    """The SHA-256 of the text that was in force when the participant joined."""
    codeword: str | None = None
    """The word of the hidden instruction on their pages; None where there is none."""
    left_at: int | None = None
    """The position of the step that was up when they left, for their last page; None where they have not left."""

    @property
    def step(self) -> int:
        """The position of the step that comes next."""
        return len(self.answers)

    @property
    def current(self) -> Step | None:
        """The step that comes next; None at the end."""
        return None if self.ended or self.step >= len(self.steps) else self.steps[self.step]

    def counted(self, end: int | None = None) -> int:
        """The number of steps before ``end`` (of all where it is None) that count; practice does not."""
        return sum(map(is_counted, self.steps[:end]))

    def answer_of(self, kind: type[A]) -> A | None:
        """The first answer of a kind, such as ``InstructionsRead``; None before it."""
        return next((answer for answer in self.answers if isinstance(answer, kind)), None)

    def pages(self, begin: int = 0) -> Iterator[tuple[str, ...]]:
        """The trials of each page from step ``begin`` on, without practice and repeats."""
        for step in self.steps[begin:]:
            if isinstance(step, MaterialStep) and step.is_counted and not step.again:
                yield tuple(step.trials)


@dataclass(slots=True)
class State:
    """All that is known of a study: its participants and meetings by code and id, in the order of their events."""

    judges: dict[str, Judge] = field(default_factory=dict)
    """Participants by their codes, in the order in which they joined; also those who have ended."""
    by_session: dict[str, Judge] = field(default_factory=dict)
    """Participants by the SHA-256 of their sessions' tokens."""
    meetings: dict[str, Meeting] = field(default_factory=dict)
    """Conversations and live tests by their ids, in the order in which they began; also void ones."""
    present: dict[str, str] = field(default_factory=dict)
    """The id of the meeting that each participant or agent is in."""
    settings: dict[str, Any] | None = None
    """``study.toml`` without its texts, as it was when the study was last served."""
    consent: Consent | None = None
    """The text in force."""
    sha256: str | None = None
    """The SHA-256 of what the study shows."""
    began: str | None = None
    """When the study was first served."""
    closed: str | None = None
    """When the study was closed; None before."""
    entry_stopped: str | None = None
    """Since when nobody new may begin; None where they may, as far as the study is open."""

    def apply(self, event: Event) -> None:
        """Take an event in.

        Raises KeyError for a participant or meeting of whom nothing is known. Raises IndexError for an answer before
        its question, and TypeError for an event that this kind of meeting does not have.
        """
        match event:  # what there is most of comes first: a log may have 100,000 events
            case StepDone():
                self._take(self.judges[event.judge], event)
            case TalkSaid() | TalkWithdrawn() | TalkVoid():
                self.meetings[event.talk].apply(event)
            case TestReady() | TestAsked() | TestAnswered() | TestSaid() | TestWithdrawn() | TestJudged() | TestVoid():
                self.meetings[event.test].apply(event)
            case AnswerReturned() | PageLoaded() | SessionBegan() | Blocked() | Left() | Restarted():
                self._apply_to(self.judges[event.judge], event)
            case Joined():
                self._join(event)
            case TalkBegan():
                self._begin(Talk(event.talk, event.at, event.speakers, event.stimulus))
            case OnlineTestBegan() | InterrogationBegan():
                self._begin(begun_test(event))
            case TestLeft():
                self.present.pop(event.who, None)
            case SettingsChosen():
                self.settings = event.settings
                self.sha256 = event.sha256
                self.consent = event.consent
                self.began = self.began or event.at
            case StudyClosed():
                self.closed = event.at
            case EntryChanged():
                self.entry_stopped = None if event.open else event.at

    def _join(self, event: Joined) -> None:
        judge = Judge(
            event.judge,
            event.session,
            event.at,
            event.number,
            event.keys,
            event.steps,
            event.end_code,
            event.link,
            event.kit,
            last_seen=event.at,
            consent=None if self.consent is None else self.consent.sha256,
            codeword=event.codeword,
        )
        self.judges[judge.code] = judge
        self.by_session[judge.session] = judge

    def _begin(self, meeting: Meeting) -> None:
        self.meetings[meeting.id] = meeting
        self.present.update(dict.fromkeys(meeting.people, meeting.id))

    def _apply_to(self, judge: Judge, event: OfParticipant) -> None:
        judge.last_seen = event.at
        match event:
            case SessionBegan():
                self.by_session[event.session] = judge
            case AnswerReturned():
                judge.returned.append(event)
            case Blocked():
                judge.ended = "blocked"
            case Left():
                judge.ended = "left"
                judge.left_at = judge.step
                judge.answers = []
                for meeting in self.meetings.values():
                    if judge.code in meeting.people:
                        meeting.make_void(FORGOTTEN, event.at)
            case Restarted():
                judge.steps = event.steps
                judge.answers = judge.answers[: event.kept]

    def _take(self, judge: Judge, answer: StepAnswer) -> None:
        judge.last_seen = answer.at
        if answer.step != len(judge.answers):
            return  # a step that is done already
        judge.answers.append(answer)
        match answer:
            case TrialJudged() | StimulusAnswered():
                pass  # the next step comes
            case TalkLeft() | TestEnded():
                self.present.pop(judge.code, None)
            case ConsentAnswered(agree=False):
                judge.ended = "declined"
                return
            case QuestionsAnswered(screened=True):
                judge.ended = "screened_out"
                return
        if judge.step == len(judge.steps):
            judge.ended = "finished"

    def meeting_of(self, code: str) -> Meeting | None:
        """The meeting that a participant is in."""
        return self.meetings.get(self.present.get(code, ""))

    def counted(self, kind: type[M]) -> list[M]:
        """The meetings of a kind that are not void, also those that still go on."""
        return [meeting for meeting in self.meetings.values() if isinstance(meeting, kind) and meeting.void is None]

    def met(self, judge: Judge) -> list[Meeting | None]:
        """The meeting of each step that was one; None where nobody came, or an older version deleted it."""
        names = [meeting_ended(answer) for answer in judge.answers if isinstance(answer, TalkLeft | TestEnded)]
        return [None if name is None else self.meetings.get(name) for name in names]

    def has_finished(self, judge: Judge) -> bool:
        """Whether the participant takes one of the wanted places. Who took part in void meetings alone does not."""
        met = self.met(judge)
        counts = not met or any(meeting is not None and meeting.void is None for meeting in met)
        return judge.ended == "finished" and counts


def read_state(folder: Path) -> State:
    """The state of the study in a folder; a torn last line does not count. Raises InputError for a damaged file."""
    state = State()
    with _without_collection():
        for number, event, _ in read_events(folder / EVENTS):
            try:
                state.apply(event)
            except (KeyError, IndexError, TypeError, ValueError) as error:
                raise InputError(f"{folder / EVENTS}:{number}: is damaged: {error!r}") from None
    return state


@contextmanager
def _without_collection() -> Iterator[None]:
    """Do without the garbage collector for a while, also in other threads.

    A log of 100,000 events becomes some 500,000 objects, all of which stay. The collector would go through them again
    and again and find nothing, which takes twice as long as the reading. At the end they are put among the old objects
    (``freeze``, ``unfreeze``), or it would go through all of them at once. A program that has frozen objects of its
    own would lose that by it: there they are not.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if gc.get_freeze_count() == 0:
            gc.freeze()
            gc.unfreeze()
        if was_on:
            gc.enable()


def meeting_ended(answer: TalkLeft | TestEnded) -> str | None:
    """The id of the meeting that an answer ends; None where nobody came."""
    return answer.talk if isinstance(answer, TalkLeft) else answer.test


def count_pages(judges: Iterable[Judge], absent: set[str]) -> Counter[tuple[str, ...]]:
    """By the trials of a page, how many participants have had it or will.

    Pages to come do not count where the participant has ended, or is ``absent``.
    """
    counts: Counter[tuple[str, ...]] = Counter()
    for judge in judges:
        left = set(judge.pages(judge.step)) if judge.code in absent or judge.ended else set()
        counts.update(page for page in judge.pages() if page not in left)
    return counts
