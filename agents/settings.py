"""Settings: every choice that can change an answer, and how they enter the digest of a run."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated, Any, TypeVar
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict

NO_ANSWER: dict[str, Any] = {"changes_answers": False}
"""``json_schema_extra`` of a setting that changes speed or patience and never an answer. It stands in no digest."""
LATER: dict[str, Any] = {"later": True}
"""``json_schema_extra`` of a setting that came after version 0.2, to an agent that 0.2 already had. With its default it
stands in no digest. Otherwise every older run of the agent would be refused, although nothing in it changes. A new
agent has no older runs: its settings need no such mark."""


def _check_address(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0:  # or port raises ValueError
        raise ValueError("must begin with http:// or https:// and name a host")
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise ValueError("must hold no user, password, query or fragment: they would stand in the records")
    return value


Address = Annotated[str, AfterValidator(_check_address)]
"""A server's address, http or https. It holds no user and no password, as it stands in records."""


class Settings(BaseModel):
    """Base of an agent's settings: a frozen pydantic model that refuses unknown names and numbers that are not finite.

    A field that changes no answer has ``json_schema_extra=NO_ANSWER``. One that an agent of version 0.2 has got since
    has ``json_schema_extra=LATER``. The docstring of a field is its description on the command line, on one line::

        class EchoSettings(Settings):
            suffix: str = "!"
            \"\"\"What stands behind the word.\"\"\"
            timeout_s: float = Field(60.0, json_schema_extra=NO_ANSWER)
            \"\"\"How long an answer may take, in seconds.\"\"\"
    """

    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, protected_namespaces=(), use_attribute_docstrings=True
    )

    def identity(self) -> dict[str, Any]:
        """What enters the digest of a run: JSON values of all settings that change answers, by name. A file stands
        there as the SHA-256 of its content, so that a run goes on after the file has moved. Raises OSError for a file
        that cannot be read."""
        values = self.model_dump(mode="json")
        for name, field in type(self).model_fields.items():
            value = getattr(self, name)
            is_left_out = field.json_schema_extra == LATER and value == field.get_default(call_default_factory=True)
            if field.json_schema_extra == NO_ANSWER or is_left_out:
                del values[name]
            elif isinstance(value, Settings):
                values[name] = value.identity()
            elif isinstance(value, Path) and value.is_file():
                with value.open("rb") as file:
                    values[name] = f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
        return values


S = TypeVar("S", bound=Settings)
"""The settings of an agent's class, as in ``class Echo(Agent[EchoSettings])``."""
