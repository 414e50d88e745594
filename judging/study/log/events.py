"""Every kind of event of a study, one a line in ``events.jsonl``.

Fields stand in the order in which they are written. To add a kind, write a class with a value of ``event`` of its own,
and name it in ``Event``; then :meth:`judging.study.log.state.State.apply` says what it changes. Never rename a field or
a value of ``event``: logs of people who took part could not be read any more. A field that comes later needs a default.

Times ``at`` are UTC with milliseconds, such as ``2026-11-28T12:00:00.123Z``. Times ``clock`` are seconds since a
meeting began. ``judge`` is the code of a participant, also of one who judges nothing; ``who`` is a participant's code
or an agent's name.
"""

from typing import Annotated, Any

from pydantic import Discriminator, Field, Tag, TypeAdapter

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
    EntryChanged,
    Joined,
    Left,
    PageLoaded,
    Restarted,
    SessionBegan,
    SettingsChosen,
    StepAnswer,
    StudyClosed,
)


def _form(value: Any) -> str:
    """Which of the two tests an event begins: only an interrogation has ``seconds``."""
    return "clock" if isinstance(value, InterrogationBegan) or "seconds" in value else "questions"


TestBegan = Annotated[
    Annotated[OnlineTestBegan, Tag("questions")] | Annotated[InterrogationBegan, Tag("clock")], Discriminator(_form)
]
InTalk = TalkSaid | TalkWithdrawn | TalkVoid
"""What happens in a conversation."""
InTest = TestReady | TestAsked | TestAnswered | TestSaid | TestWithdrawn | TestJudged | TestVoid
"""What happens in a live test, until its people go on."""
OfParticipant = SessionBegan | PageLoaded | Blocked | Left | Restarted | AnswerReturned
"""What happens to a participant who has joined, but for steps that are done."""
Event = Annotated[
    SettingsChosen
    | StudyClosed
    | EntryChanged
    | Joined
    | OfParticipant
    | StepAnswer
    | TalkBegan
    | InTalk
    | TestBegan
    | InTest
    | TestLeft,
    Field(discriminator="event"),
]
_EVENT: TypeAdapter[Event] = TypeAdapter(Event)


def read_event(line: bytes) -> Event:
    """The event of a line. Raises pydantic's ValidationError, also for what is no JSON."""
    return _EVENT.validate_json(line)


def json_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of a line of ``events.jsonl``."""
    schema = _EVENT.json_schema()
    for part in schema["$defs"].values():
        if "event" in part["properties"]:  # always written, though classes have it by themselves
            part["required"] = ["event", *(name for name in part["required"] if name != "event")]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "turinglike.study/1 event", **schema}
