"""``run.json``: what a run folder was made from."""

import hashlib
import inspect
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agents import __version__
from agents.capabilities import checkpoint_of, identity_of, template_effects_of
from agents.catalogue import NAME, Entry
from agents.contract import Agent
from agents.errors import InputError
from agents.stimuli import MODES
from serving.files.row_problems import as_problems
from serving.files.timestamps import now
from serving.runs.schema_names import schema_mismatch

RUN = "turinglike.run/1"
ONE_OR_TWO = rf"{NAME.pattern}(~{NAME.pattern})?"  # an agent, or a pair
Natural = Annotated[int, Field(ge=0)]
PIECE = 1 << 20
OURS = ("agents", "judging")  # packages whose classes change with Turinglike's version


class _Lenient(BaseModel):
    model_config = ConfigDict(strict=True, extra="allow")


class RecordsEntry(_Lenient):
    """The part of an agent's file of records that is finished and checked."""

    bytes: Natural
    """Its length."""
    sha256: str
    """Its SHA-256, in hex."""


class AgentEntry(_Lenient):
    """What made an agent's or a pair's answers."""

    task: list[str]
    """The tasks that it answers."""
    modes: list[str] | None = None
    """The viewing modes, or the judged tasks; None: all."""
    single_cue: bool | None = None
    """Whether a judge goes by one cue alone; None: of no judge, and in runs of version 0.2."""
    kind: str
    """"machine" or "control"."""
    digest: str
    """The SHA-256 of everything that can change an answer; a run goes on only with the same."""
    settings: dict[str, Any]
    """All settings; of a pair those of the conversation."""
    checkpoint: str | None
    """The model's name; None without one."""
    revision: str | None
    """The model's revision; None without one."""
    samples: Natural
    """The answers that were asked to each stimulus."""
    members: dict[str, dict[str, Any]] | None = None
    """The entries of a pair's two agents."""
    code: str | None = None
    """The SHA-256 of the file that defines an agent of somebody else's."""
    earlier_code: list[str] | None = None
    """What ``code`` was for earlier answers."""
    records: RecordsEntry | None = None
    """The finished part of its records."""


class StimulusSetEntry(_Lenient):
    """The set that a run asks. All are None in a run without a set."""

    source: str | None = None
    """The path as the user gave it."""
    root: str | None = None
    """The folder in which the paths of pictures begin."""
    count: Natural | None = None
    """The stimuli."""
    sha256: str | None = None
    """A hash of all rows and pictures, in any order."""
    tasks: list[str] | None = None
    """The tasks of pictures whose rows name none."""


class RunEntry(_Lenient):
    """``run.json`` as far as programs rely on it; further keys are kept."""

    run: str
    """The run's id, 12 hex digits."""
    seed: Natural
    """The run's seed."""
    samples: Natural
    """The answers that were asked to each stimulus, at most."""
    set: StimulusSetEntry
    """What is asked: where it came from, its size and hash."""
    agents: dict[Annotated[str, Field(pattern=f"^{ONE_OR_TWO}$")], AgentEntry]
    """The agents and pairs, by name."""
    created: str | None = None
    """The time (ISO 8601, UTC)."""
    imports_only: bool = False
    """Whether it holds imported answers and has no set."""


def new_run_json(run: str, seed: int, samples: int) -> dict[str, Any]:
    """The ``run.json`` of a new run, without set and agents; ``run`` is its id."""
    return {
        "schema": RUN,
        "run": run,
        "created": now(),
        "turinglike": __version__,
        "seed": seed,
        "samples": samples,
        "set": {},
        "agents": {},
    }


def read_run_json(folder: Path) -> dict[str, Any]:
    """What ``run.json`` in a run's ``folder`` holds. Raises InputError if it is missing or damaged."""
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
    mismatch = schema_mismatch(meta.get("schema") if isinstance(meta, dict) else None, RUN)
    if mismatch is not None:
        raise InputError(f"{folder} is not a run folder that can be read: {path}: {mismatch}")
    try:
        RunEntry.model_validate(meta)
    except ValidationError as error:
        raise InputError(f"{path} is damaged", as_problems(error, str(path))) from None
    return dict(meta)


def run_entry(members: Sequence[tuple[Entry, Agent[Any]]], pair: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """An agent's entry in ``run.json``, or a pair's with its settings ``pair``."""
    entries = [_agent_entry(entry, agent) for entry, agent in members]
    if len(entries) == 1:
        return entries[0]
    names = [agent.name for _, agent in members]
    return {
        "task": ["conversation"],
        "kind": "control" if "control" in {entry["kind"] for entry in entries} else "machine",
        "digest": _sha256_of_json([*(entry["digest"] for entry in entries), pair]),
        "settings": pair,
        "checkpoint": None,
        "revision": None,
        "members": dict(zip(names, entries, strict=True)),
    }


def _agent_entry(entry: Entry, agent: Agent[Any]) -> dict[str, Any]:
    checkpoint, revision = checkpoint_of(agent)
    declared = agent.declaration()
    modes = set[str](declared.judges or declared.modes)
    effects = template_effects_of(agent)
    identity = {
        "agent": entry.identity,
        "settings": identity_of(agent),
        "checkpoint": checkpoint,
        "revision": revision,
    }
    described: dict[str, Any] = {"task": list(entry.tasks)}
    if modes != set(MODES):
        described["modes"] = sorted(modes)
    if "judgement" in entry.tasks:
        described["single_cue"] = declared.single_cue
    described["kind"] = entry.role
    described["digest"] = _sha256_of_json(identity)
    described["settings"] = agent.settings.model_dump(mode="json")
    if effects:
        described["chat_template"] = effects
    described["checkpoint"] = checkpoint
    described["revision"] = revision
    return {**described, **_code(type(agent))}


def _code(cls: type) -> dict[str, str]:
    """The SHA-256 of the file that defines a class of somebody else's: the digest has its name alone, so that a run
    would go on with a class that answers in another way. Files that this one imports are not read."""
    if cls.__module__.partition(".")[0] in OURS:
        return {}
    try:
        return {"code": hashlib.sha256(Path(inspect.getfile(cls)).read_bytes()).hexdigest()}
    except (OSError, TypeError):  # it comes from no file
        return {}


def changed_code(before: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Whether the class of an agent, or of one of a pair, is not the code that began the run."""
    codes = [(old.get("code"), new.get("code")) for old, new in _members(before, now)]
    return any(old is not None and new is not None and old != new for old, new in codes)


def take_code(kept: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Let a kept entry have the code that answers from now on, and name the earlier ones."""
    for old, new in _members(kept, now):
        before = old.get("code")
        if "code" in new and before != new["code"]:
            if before is not None:
                old["earlier_code"] = [*old.get("earlier_code", []), before]
            old["code"] = new["code"]


def _members(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
    if "members" not in before:
        yield before, now
    else:
        for name, member in before["members"].items():
            yield member, now["members"][name]


def _sha256_of_json(value: Any) -> str:
    return hashlib.sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)).hexdigest()


def difference(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Why two entries of an agent have not the same digest, in words."""
    if "members" in before:
        differences = [
            f"{name}: {difference(member, now['members'][name])}"
            for name, member in before["members"].items()
            if member["digest"] != now["members"][name]["digest"]
        ]
        differences += _other_settings(_flat(before["settings"]), _flat(now["settings"]))
        return "; ".join(differences)
    differences = [
        f"{key} was {before[key]!r}, is {now[key]!r}" for key in ("checkpoint", "revision") if before[key] != now[key]
    ]
    old = before["settings"]
    new = now["settings"]
    if (effects := before.get("chat_template")) != now.get("chat_template"):
        differences.append(_other_prompts(effects or {}, now.get("chat_template") or {}))
        # settings that came later are no reason where they stand at their default
        new = {key: value for key, value in new.items() if key in old}
    differences += _other_settings(old, new)
    if differences:
        return "; ".join(differences)
    # The digest has the contents of files that settings name, and the settings here have their paths.
    files = [f"{key} ({value})" for key, value in new.items() if isinstance(value, str) and Path(value).is_file()]
    if files and not changed_code(before, now):
        return f"a file that its settings name has changed since: {' or '.join(files)}"
    return "another implementation, or a file that its settings name has changed"


def _other_settings(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    return [
        f"setting {key} was {old.get(key)!r}, is {new.get(key)!r}"
        for key in sorted({*old, *new})
        if old.get(key) != new.get(key)
    ]


def _flat(settings: Mapping[str, Any]) -> dict[str, Any]:
    """A pair's settings with one name for each threshold: ``{"thresholds": {"echo": 1}}`` gives ``thresholds.echo``."""
    flat: dict[str, Any] = {}
    for key, value in settings.items():
        if isinstance(value, Mapping):
            flat |= {f"{key}.{name}": inner for name, inner in value.items()}
        else:
            flat[key] = value
    return flat


def _other_prompts(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    changed = [
        f"{key} was {before.get(key, 'as the template has it')}, is {now.get(key, 'as the template has it')}"
        for key in sorted({*before, *now})
        if before.get(key) != now.get(key)
    ]
    return f"its chat template makes other prompts than those of the run ({', '.join(changed)})"


def checksum(path: Path, most: int = sys.maxsize) -> dict[str, Any]:
    """``bytes`` and ``sha256`` of a file's first ``most`` bytes."""
    sha256 = hashlib.sha256()
    size = 0
    with path.open("rb") as file:
        while piece := file.read(min(PIECE, most - size)):
            sha256.update(piece)
            size += len(piece)
    return {"bytes": size, "sha256": sha256.hexdigest()}


def is_changed(path: Path, kept: Mapping[str, Any] | None) -> bool:
    """Whether a file no longer begins with the bytes of ``kept``. Raises InputError."""
    try:
        return kept is not None and path.exists() and checksum(path, kept["bytes"])["sha256"] != kept["sha256"]
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
