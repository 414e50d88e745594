"""The files of a study's folder: what stands in them is read, appended, and deleted for a person.

``events.jsonl`` has the events, ``personal.jsonl`` what people say of themselves, ``links.jsonl`` the hashes of
personal links, ``exports.jsonl`` when the study was exported and how many people were deleted since.
"""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import orjson
from pydantic import ValidationError

from agents.errors import InputError
from judging.study.log.events import Event, InTalk, InTest, read_event
from judging.study.log.meeting import FORGOTTEN
from judging.study.log.meeting_events import (
    InterrogationBegan,
    OnlineTestBegan,
    TalkBegan,
    TalkSaid,
    TalkVoid,
    TalkWithdrawn,
    TestLeft,
    TestVoid,
)
from judging.study.log.participant_events import SettingsChosen
from serving.files.atomic_files import repair_tail, replacing, sync_folder, writing
from serving.files.timestamps import now

EVENTS = "events.jsonl"
PERSONAL = "personal.jsonl"
LINKS = "links.jsonl"
EXPORTS = "exports.jsonl"


class LogEntry(NamedTuple):
    """``event`` and its ``line`` in the file, without the newline. What stays in a file stays byte for byte."""

    event: Event
    line: bytes


def without(code: str, entries: Iterable[LogEntry]) -> Iterator[LogEntry]:
    """The entries without a person, whose code it is.

    The person's conversations and tests stay: void, without content, and with "nobody" in the person's place. So others
    are told why these do not count for them; without the meeting it would seem that nobody came.
    """
    gone = set[str]()
    for entry in entries:
        event = entry.event
        match event:
            case TalkBegan() if code in event.speakers:
                gone.add(event.talk)
                yield _changed(entry, {"speakers": _with_nobody(event.speakers, code)})
                yield _written(TalkVoid(talk=event.talk, why=FORGOTTEN, at=event.at))
            case OnlineTestBegan() | InterrogationBegan() if code in (event.judge, *event.agents):
                gone.add(event.test)
                judge, *agents = _with_nobody([event.judge, *event.agents], code)
                yield _changed(entry, {"judge": judge, "agents": agents})
                yield _written(TestVoid(test=event.test, why=FORGOTTEN, at=event.at))
            case TestLeft() if event.test in gone:
                if event.who != code:
                    yield entry
            case _ if meeting_id(event) in gone:
                pass
            case _ if getattr(event, "judge", None) != code:
                yield entry


def meeting_id(event: Event) -> str | None:
    """The id of the meeting in which something happened; None for an event of another kind."""
    if isinstance(event, InTalk):
        return event.talk
    return event.test if isinstance(event, InTest) else None


def _with_nobody(people: Iterable[str], code: str) -> list[str]:
    return ["nobody" if person == code else person for person in people]


def _changed(entry: LogEntry, fields: Mapping[str, Any]) -> LogEntry:
    line = orjson.dumps({**orjson.loads(entry.line), **fields})
    return LogEntry(read_event(line), line)


def _written(event: TalkVoid | TestVoid) -> LogEntry:
    return LogEntry(event, event.line.rstrip(b"\n"))


def forget(folder: Path, codes: Collection[str]) -> None:
    """Remove all that is known of these people. Raises InputError for a damaged file, and StorageError."""
    if not codes:
        return
    # Personal lines go first: after a kill the same call finds the people among the events.
    repair_tail(folder / PERSONAL)
    lines = [line for line, row in _rows(folder / PERSONAL) if row.get("judge") not in codes]
    with replacing(folder / PERSONAL) as file:
        file.writelines(line + b"\n" for line in lines)
    repair_tail(folder / EVENTS)
    entries: Iterable[LogEntry] = [LogEntry(event, line) for _, event, line in read_events(folder / EVENTS)]
    for code in codes:
        entries = without(code, entries)
    with replacing(folder / EVENTS) as file:
        file.writelines(entry.line + b"\n" for entry in entries)
    append(folder / EXPORTS, [{"at": now(), "deleted": len(codes)}])


def append(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Append a line of JSON for each row, on disk on return. Raises StorageError."""
    append_lines(path, (orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows))


def append_lines(path: Path, lines: Iterable[bytes]) -> None:
    """Append lines, newlines included, on disk on return. Raises StorageError."""
    repair_tail(path)
    with writing(path), path.open("ab") as file:
        file.writelines(lines)
        file.flush()
        os.fsync(file.fileno())
        sync_folder(path.parent)


def read_exports(folder: Path) -> list[dict[str, Any]]:
    """Each export, with ``at``, ``out`` and how many people were ``deleted`` since. Raises InputError."""
    exports: list[dict[str, Any]] = []
    for _, row in _rows(folder / EXPORTS):
        if "out" in row:
            exports.append({**row, "deleted": 0})
        else:
            exports = [export | {"deleted": export["deleted"] + row["deleted"]} for export in exports]
    return exports


def read_person(folder: Path, code: str) -> dict[str, Any]:
    """All that is kept of a person (GDPR, Art. 15 and 20), without others' words. Raises InputError."""
    sides: dict[str, str] = {}  # which speaker the person is in each conversation
    consents = dict[str, str]()
    events = list[dict[str, Any]]()
    for _, event, line in read_events(folder / EVENTS):
        if isinstance(event, SettingsChosen) and event.consent is not None:
            consents[event.consent.sha256] = event.consent.text
        if isinstance(event, TalkBegan) and code in event.speakers:
            sides[event.talk] = "AB"[event.speakers.index(code)]
        is_own_speech = isinstance(event, TalkSaid | TalkWithdrawn) and sides.get(event.talk) == event.speaker
        if is_own_speech or code in (getattr(event, "judge", None), getattr(event, "who", None)):
            events.append({name: value for name, value in orjson.loads(line).items() if name != "agents"})
    if not events:
        raise InputError(f"{folder} has no judge {code}")
    agreed = [consents[event["consent"]] for event in events if event.get("consent") in consents]
    return {"judge": code, "personal": read_personal(folder).get(code, {}), "consent": agreed, "events": events}


def read_events(path: Path) -> Iterator[tuple[int, Event, bytes]]:
    """Every event of a study with the number of its line, and the line. Raises InputError for a damaged line.

    A last line that is no JSON is passed over: a disk that lost power may leave such.
    """
    lines = _lines(path)
    for number, line in enumerate(lines, start=1):
        try:
            event = read_event(line)
        except ValidationError as error:
            if number == len(lines) and not _is_json(line):
                return
            raise InputError(f"{path}:{number}: is damaged: {_fault(error)}") from None
        yield number, event, line


def read_personal(folder: Path) -> dict[str, dict[str, Any]]:
    """By participant, their answers about themselves, and a panel's id as ``worker``. Raises InputError."""
    personal: dict[str, dict[str, Any]] = {}
    for _, row in _rows(folder / PERSONAL):
        personal.setdefault(str(row.get("judge")), {}).update(row.get("said", {}))
    return personal


def read_links(folder: Path) -> set[str]:
    """The SHA-256 of each link's token. Raises InputError."""
    return {str(row.get("link")) for _, row in _rows(folder / LINKS)}


def _fault(error: ValidationError) -> str:
    """The first thing that is wrong with a line."""
    first = error.errors(include_url=False, include_input=False)[0]
    if first["type"] == "union_tag_invalid":
        return "no event is called so; perhaps a later version wrote it"
    if not first["loc"]:
        return "no JSON object"
    field = ".".join(str(part) for part in first["loc"][1:])
    return f"{field}: {first['msg']}"


def _rows(path: Path) -> Iterator[tuple[bytes, dict[str, Any]]]:
    """Every line of another file with its object. Raises InputError for a damaged line but the last."""
    lines = _lines(path)
    for number, line in enumerate(lines, start=1):
        if number == len(lines) and not _is_json(line):
            return
        row = orjson.loads(line) if _is_json(line) else None
        if not isinstance(row, dict):
            raise InputError(f"{path}:{number}: is damaged: no JSON object")
        yield line, row


def _lines(path: Path) -> list[bytes]:
    """The lines of a file without their newlines; none where there is no file. Raises InputError."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    return data.split(b"\n")[:-1]  # what follows the last newline was being written


def _is_json(line: bytes) -> bool:
    try:
        orjson.loads(line)
    except orjson.JSONDecodeError:
        return False
    return True
