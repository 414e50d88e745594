"""What all that stands in a study's log has in common."""

from pydantic import BaseModel, ConfigDict


class Logged(BaseModel):
    """A part of a line of ``events.jsonl``.

    Unknown keys are passed over, so that a log of a later version can be read as far as it is known. A field with a
    default is one that older versions did not write, or that is not written for every kind of study.
    """

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)
