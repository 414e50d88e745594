"""What a run folder must be to be relied on, checked in one place for all that read or continue a run: its files, and
what ``run.json`` holds."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agents import __version__
from agents.catalogue import NAME
from agents.errors import InputError
from serving.runs import schemas
from serving.runs.row_problems import as_problems
from serving.timestamps import now

# What a run folder holds that is nobody else's to write. The page of the report is not among it.
FOLDERS = ("records", "turns")
OWN = ("run.json", "stimuli.jsonl", "stimuli.index", "stimuli.new", "asked.jsonl", "lock", "import.json", *FOLDERS)
ONE_OR_TWO = rf"{NAME.pattern}(~{NAME.pattern})?"  # an agent, or a pair
Whole = Annotated[int, Field(ge=0)]


class _Lenient(BaseModel):
    """Strict about the types of what readers use; anything else may stand beside it."""

    model_config = ConfigDict(strict=True, extra="allow")


class RecordsEntry(_Lenient):
    """What a run keeps of an agent's records: how many bytes there were, and their SHA-256."""

    bytes: Whole
    sha256: str


class AgentEntry(_Lenient):
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
    tasks: list[str] | None = None  # of a folder of images


class RunEntry(_Lenient):
    run: str
    seed: Whole
    samples: Whole
    set: StimulusSetEntry
    agents: dict[Annotated[str, Field(pattern=f"^{ONE_OR_TWO}$")], AgentEntry]
    created: str | None = None
    imports_only: bool = False


def new_run_json(run: str, seed: int, samples: int) -> dict[str, Any]:
    """``run.json`` of a run with this id that has neither a set nor agents yet."""
    return {
        "schema": schemas.RUN,
        "run": run,
        "created": now(),
        "turinglike": __version__,
        "seed": seed,
        "samples": samples,
        "set": {},
        "agents": {},
    }


def read_run_json(folder: Path) -> dict[str, Any]:
    """``run.json`` of a folder, as it stands. Raises InputError if there is none, or if it cannot be relied on."""
    path = folder / "run.json"
    try:
        meta = orjson.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        reason = "it has no run.json" if folder.is_dir() else "there is no such folder"
        if folder.is_file():
            reason = "it is a file; `turinglike generate` answers a set, `turinglike import` reads people's answers"
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
        raise InputError(f"{path} is damaged", as_problems(error, str(path))) from None
    return dict(meta)


PIECE = 1 << 20


def checksum(path: Path) -> dict[str, Any]:
    """What ``run.json`` keeps of a record file: its ``bytes`` and their ``sha256``."""
    size = path.stat().st_size
    return {"bytes": size, "sha256": _sha256(path, size)}


def is_changed(path: Path, kept: Mapping[str, Any] | None) -> bool:
    """Whether the file, if there is one, no longer begins with what ``kept`` stands for. Raises InputError."""
    try:
        return kept is not None and path.exists() and _sha256(path, kept["bytes"]) != kept["sha256"]
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error


def _sha256(path: Path, size: int) -> str | None:
    """Of the first ``size`` bytes; None if there are fewer."""
    found = hashlib.sha256()
    with path.open("rb") as file:
        while size and (piece := file.read(min(size, PIECE))):
            found.update(piece)
            size -= len(piece)
    return None if size else found.hexdigest()
