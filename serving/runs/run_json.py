"""``run.json``: what it must hold to be relied on, checked in one place for all that read or continue a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agents.errors import InputError
from serving.runs import schemas

Whole = Annotated[int, Field(ge=0)]


class _Lenient(BaseModel):
    """Strict about the types of what readers use; anything else may stand beside it."""

    model_config = ConfigDict(strict=True, extra="allow")


class RecordsEntry(_Lenient):
    """What a run keeps of an agent's records: how many bytes there were, and their SHA-256."""

    bytes: Whole
    sha256: str


class AgentEntry(_Lenient):
    """What a run keeps of an agent, or of a pair."""

    task: list[str]
    modes: list[str] | None = None
    kind: str
    digest: str
    settings: dict[str, Any]
    checkpoint: str | None
    revision: str | None
    samples: Whole
    members: dict[str, dict[str, Any]] | None = None
    records: RecordsEntry | None = None


class StimulusSetEntry(_Lenient):
    """What a run keeps of its stimulus set; a folder of imports has none."""

    source: str | None = None
    root: str | None = None
    count: Whole | None = None
    sha256: str | None = None


class RunEntry(_Lenient):
    """All of ``run.json``."""

    run: str
    seed: Whole
    samples: Whole
    set: StimulusSetEntry
    agents: dict[str, AgentEntry]
    created: str | None = None
    imports_only: bool = False


def read_run_json(folder: Path) -> dict[str, Any]:
    """``run.json`` of a folder, as it stands. Raises InputError if there is none, or if it cannot be relied on."""
    path = folder / "run.json"
    try:
        meta = orjson.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        reason = "it has no run.json" if folder.is_dir() else "there is no such folder"
        raise InputError(f"{folder} is not a run folder: {reason}") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    except orjson.JSONDecodeError as error:
        raise InputError(f"{path} is damaged: {error}") from None
    mismatch = schemas.mismatch(meta.get("schema") if isinstance(meta, dict) else None, schemas.RUN)
    if mismatch is not None:
        raise InputError(f"{folder} is not a run folder that can be read: {path}: {mismatch}")
    try:
        RunEntry.model_validate(meta)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(map(str, first["loc"]))
        raise InputError(f"{path} is damaged: {field}: {first['msg']}") from None
    return dict(meta)
