"""What all that stands in a study's log has in common."""

from typing import Literal

import orjson
from pydantic import BaseModel, ConfigDict

HumanOrMachine = Literal["human", "machine"]
Sex = Literal["female", "male"]


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
