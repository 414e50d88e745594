"""What all that stands in a study's log has in common."""

from typing import Annotated, Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field

HumanOrMachine = Literal["human", "machine"]
Sex = Literal["female", "male"]
Time = Annotated[str, Field(description="When it happened: UTC with milliseconds, such as 2026-11-28T12:00:00.123Z.")]
Code = Annotated[str, Field(description="The code of a participant, also of one who judges nothing.")]
Who = Annotated[str, Field(description="A participant's code or an agent's name.")]
Clock = Annotated[float, Field(description="Seconds since the meeting's clock began.")]
TalkId = Annotated[str, Field(description="The conversation's id, such as talk-bcdfghjkmn.")]
TestId = Annotated[str, Field(description="The live test's id, such as test-00001.")]


class Logged(BaseModel):
    """A part of a line of ``events.jsonl``.

    Unknown keys are passed over, so that a log of a later version can be read as far as it is known. A field with a
    default is one that older versions did not write, or that is not written for every kind of study.
    """

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)


class LoggedEvent(Logged):
    """A line of the log."""

    @property
    def line(self) -> bytes:
        """The event as JSON with a newline.

        It has the fields that were given, and no others. So an event that was read is written as it was, without
        nulls for what its version did not know.
        """
        kind = self.event  # type: ignore[attr-defined]  # each class of Event has its own
        fields = self.model_dump(exclude_unset=True, by_alias=True)
        return orjson.dumps({"event": kind, **fields}, option=orjson.OPT_APPEND_NEWLINE)
