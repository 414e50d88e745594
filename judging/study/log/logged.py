"""What all that stands in a study's log has in common."""

from typing import Annotated, Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field

HumanOrMachine = Literal["human", "machine"]
Sex = Literal["female", "male"]
# Examples, and no descriptions: these would stand in the schema in place of the docstrings of the fields.
Time = Annotated[str, Field(examples=["2026-11-28T12:00:00.123Z"])]
"""When something happened: UTC with milliseconds."""
ParticipantCode = Annotated[str, Field(examples=["bcdfghjkmn"])]
"""The code of a participant, also of one who judges nothing."""
Who = Annotated[str, Field(examples=["bcdfghjkmn", "llama-3.3-70b"])]
"""A participant's code or an agent's name."""
Clock = Annotated[float, Field(examples=[12.25])]
"""Seconds since the meeting's clock began."""
TalkId = Annotated[str, Field(examples=["talk-bcdfghjkmn"])]
"""The id of a conversation."""
TestId = Annotated[str, Field(examples=["test-00001"])]
"""The id of a live test."""


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
