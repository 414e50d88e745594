"""The events of a study (``events.jsonl``), its state, which is read from them alone, and ``personal.jsonl``."""

import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import orjson

from agents.errors import InputError
from judging.study.meetings.meeting import FORGOTTEN, Meeting, Talk, begun_test
from serving.files.atomic_files import repair_tail, replacing, sync_folder, writing
from serving.files.timestamps import now

MEETINGS = ("talk", "test")  # kinds of steps in which people meet
ASKED = ("trial", "ask", *MEETINGS)  # kinds of steps that are what a study is about
EVENTS = "events.jsonl"
PERSONAL = "personal.jsonl"
LINKS = "links.jsonl"
EXPORTS = "exports.jsonl"
Step = dict[str, Any]
M = TypeVar("M", bound=Meeting)


def meeting_id(event: Mapping[str, Any]) -> str | None:
    """Of the meeting in which something happened."""
    return None if event.get("event") == "step" else event.get("test", event.get("talk"))


def is_counted(step: Step) -> bool:
    return step["kind"] in ASKED and step["phase"] != "practice"


def with_breaks(steps: Iterable[Step], every: int) -> Iterator[Step]:
    """A break comes after ``every`` trials if more follow; 0: there is none."""
    done = 0
    for step in steps:
        if is_counted(step):
            if every and done and done % every == 0:
                yield {"kind": "break"}
            done += 1
        yield step


@dataclass(slots=True)
class Judge:
    """``told`` are answers that were to be replaced; ``ended``: finished, declined, screened_out, blocked or left;
    ``consent``: the hash of the text in force when they joined."""

    code: str
    session: str
    joined: str
    number: int
    keys: list[str]
    steps: list[Step]
    end_code: str
    link: str | None = None
    kit: str | None = None
    answers: list[dict[str, Any]] = field(default_factory=list)
    told: list[dict[str, Any]] = field(default_factory=list)
    ended: str | None = None
    at: str = ""
    consent: str | None = None

    @property
    def step(self) -> int:
        return len(self.answers)

    @property
    def current(self) -> Step | None:
        return None if self.ended or self.step >= len(self.steps) else self.steps[self.step]

    def counted(self, end: int | None = None) -> int:
        """The number of trials, practice apart."""
        return sum(map(is_counted, self.steps[:end]))

    def of(self, kind: str) -> dict[str, Any]:
        """The answer to the step of that kind, of which there is at most a single; empty before it."""
        steps = zip(self.steps, self.answers, strict=False)
        return next((answer for step, answer in steps if step["kind"] == kind), {})

    def pages(self, begin: int = 0) -> Iterator[tuple[str, ...]]:
        """The trials of each page from a step on, without practice and repeats."""
        for step in self.steps[begin:]:
            if is_counted(step) and not step["again"]:
                yield tuple(step["trials"])


@dataclass(slots=True)
class State:
    """``present`` is the meeting that a participant is in, ``consent`` the text in force and its ``sha256``."""

    judges: dict[str, Judge] = field(default_factory=dict)
    by_session: dict[str, Judge] = field(default_factory=dict)
    meetings: dict[str, Meeting] = field(default_factory=dict)
    present: dict[str, str] = field(default_factory=dict)
    settings: dict[str, Any] | None = None
    consent: dict[str, str] | None = None
    sha256: str | None = None
    began: str | None = None
    closed: str | None = None

    def apply(self, event: dict[str, Any]) -> None:
        """Raises KeyError for an unknown event."""
        match event["event"]:
            case "settings":
                self.settings = event["settings"]
                self.sha256 = event["sha256"]
                self.consent = event.get("consent")  # earlier versions kept none
                self.began = self.began or event["at"]
            case "closed":
                self.closed = event["at"]
            case "joined":
                names = ("session", "number", "keys", "steps", "end_code", "link", "kit")
                about = {name: event[name] for name in names} | {"consent": (self.consent or {}).get("sha256")}
                judge = Judge(event["judge"], joined=event["at"], at=event["at"], **about)
                self.judges[judge.code] = self.by_session[judge.session] = judge
            case "paired":
                self._begin(Talk(event["talk"], event["at"], event["speakers"], event["stimulus"]))
            case "test":
                self._begin(begun_test(event))
            case "test_left":
                self.present.pop(event["who"], None)
            case _ if (meeting := meeting_id(event)) is not None:
                self.meetings[meeting].apply(event)
            case _:
                self._apply_to(self.judges[event["judge"]], event)

    def _begin(self, meeting: Meeting) -> None:
        self.meetings[meeting.id] = meeting
        self.present.update(dict.fromkeys(meeting.people, meeting.id))

    def _apply_to(self, judge: Judge, event: dict[str, Any]) -> None:
        judge.at = event["at"]
        match event["event"]:
            case "session":
                self.by_session[event["session"]] = judge
            case "told":
                judge.told.append(event)
            case "blocked":
                judge.ended = "blocked"
            case "left":
                judge.ended = "left"
                judge.answers = []
                for meeting in self.meetings.values():
                    if judge.code in meeting.people:
                        meeting.void = FORGOTTEN
            case "restarted":  # of earlier versions
                judge.steps = event["steps"]
                judge.answers = judge.answers[: event["from"]]
            case "step" if event["step"] == judge.step:
                judge.answers.append(event)
                if event["kind"] in MEETINGS:
                    self.present.pop(judge.code, None)
                if event.get("agree") is False:
                    judge.ended = "declined"
                elif event.get("screened"):
                    judge.ended = "screened_out"
                elif judge.step == len(judge.steps):
                    judge.ended = "finished"
            case "loaded":
                pass
            case kind:
                raise KeyError(kind)

    def meeting_of(self, code: str) -> Meeting | None:
        return self.meetings.get(self.present.get(code, ""))

    def counted(self, kind: type[M]) -> list[M]:
        return [each for each in self.meetings.values() if isinstance(each, kind) and each.void is None]

    def met(self, judge: Judge) -> list[Meeting | None]:
        """The meeting of each step that was one; None where nobody came, or an older version deleted it."""
        names = [event.get(event["kind"]) for event in judge.answers if event["kind"] in MEETINGS]
        return [None if name is None else self.meetings.get(name) for name in names]

    def has_finished(self, judge: Judge) -> bool:
        """Whether the judge takes one of the wanted places: whose meetings are all void does not."""
        met = self.met(judge)
        counts = not met or any(meeting is not None and meeting.void is None for meeting in met)
        return judge.ended == "finished" and counts


def without(code: str, events: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The events, or personal lines, without a person. Their conversations and tests stay: void, without content, and
    with "nobody" in the person's place. So it is known of the others why it does not count for them; without the
    meeting it would seem that nobody came."""
    gone: set[str] = set()
    for event in events:
        kind = event.get("event")
        if kind in ("paired", "test") and code in _people_of(event):
            name = str(meeting_id(event))
            gone.add(name)
            yield _with_nobody(event, code)
            void = {"event": "void", "talk": name} if kind == "paired" else {"event": "test_void", "test": name}
            yield {**void, "why": FORGOTTEN, "at": event["at"]}
        elif meeting_id(event) in gone:
            if kind == "test_left" and event["who"] != code:
                yield event
        elif event.get("judge") != code:
            yield event


def _people_of(event: Mapping[str, Any]) -> list[str]:
    """Who meets, of the event that begins a conversation or a test."""
    return event["speakers"] if event["event"] == "paired" else [event["judge"], *event["agents"]]


def _with_nobody(event: Mapping[str, Any], code: str) -> dict[str, Any]:
    people = ["nobody" if person == code else person for person in _people_of(event)]
    if event["event"] == "paired":
        return {**event, "speakers": people}
    judge, *agents = people
    return {**event, "judge": judge, "agents": agents}


def forget(folder: Path, codes: Collection[str]) -> None:
    """Remove all that is known of these people. Raises StorageError."""
    # Personal lines go first: after a kill the same call finds the people among the events.
    for name in (PERSONAL, EVENTS) if codes else ():
        repair_tail(folder / name)
        events: Iterable[dict[str, Any]] = [event for _, event in _lines(folder / name)]
        for code in codes:
            events = without(code, events)
        with replacing(folder / name) as file:
            file.writelines(orjson.dumps(event, option=orjson.OPT_APPEND_NEWLINE) for event in events)
    if codes:
        append(folder / EXPORTS, [{"at": now(), "deleted": len(codes)}])


def append(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Raises StorageError."""
    repair_tail(path)
    with writing(path), path.open("ab") as file:
        file.writelines(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows)
        file.flush()
        os.fsync(file.fileno())
        sync_folder(path.parent)


def read_exports(folder: Path) -> list[dict[str, Any]]:
    """Each export, with ``at``, ``out`` and how many people were ``deleted`` since."""
    exports: list[dict[str, Any]] = []
    for _, line in _lines(folder / EXPORTS):
        if "out" in line:
            exports.append({**line, "deleted": 0})
        else:
            exports = [export | {"deleted": export["deleted"] + line["deleted"]} for export in exports]
    return exports


def read_person(folder: Path, code: str) -> dict[str, Any]:
    """All that is kept of a person (GDPR, Art. 15 and 20), without others' words. Raises InputError."""
    of_talks: dict[str, str] = {}
    consents = dict[str, str]()
    events = list[dict[str, Any]]()
    for _, event in _lines(folder / EVENTS):
        if "consent" in event and event["event"] == "settings":
            consents[event["consent"]["sha256"]] = event["consent"]["text"]
        if code in event.get("speakers", ()):
            of_talks[event["talk"]] = "AB"[event["speakers"].index(code)]
        is_speech = "speaker" in event and of_talks.get(event["talk"]) == event["speaker"]
        if is_speech or code in (event.get("judge"), event.get("who")):
            events.append({name: value for name, value in event.items() if name != "agents"})
    if not events:
        raise InputError(f"{folder} has no judge {code}")
    agreed = [consents[event["consent"]] for event in events if event.get("consent") in consents]
    return {"judge": code, "personal": read_personal(folder).get(code, {}), "consent": agreed, "events": events}


def read_state(folder: Path) -> State:
    """The state; a torn last line does not count. Raises InputError."""
    state = State()
    for number, event in _lines(folder / EVENTS):
        try:
            state.apply(event)
        except (KeyError, IndexError, TypeError) as error:
            raise InputError(f"{folder / EVENTS}:{number}: is damaged: {error!r}") from None
    return state


def read_personal(folder: Path) -> dict[str, dict[str, Any]]:
    """By judge, their answers about themselves, and a panel's id as ``worker``."""
    personal: dict[str, dict[str, Any]] = {}
    for _, line in _lines(folder / PERSONAL):
        personal.setdefault(str(line.get("judge")), {}).update(line.get("said", {}))
    return personal


def read_links(folder: Path) -> set[str]:
    """The SHA-256 of each link's token."""
    return {str(line.get("link")) for _, line in _lines(folder / LINKS)}


def _lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    lines = data.split(b"\n")[:-1]  # what follows the last newline was being written
    for number, line in enumerate(lines, start=1):
        try:
            event = orjson.loads(line)
        except orjson.JSONDecodeError:
            if number == len(lines):
                return  # a disk that lost power may leave such
            event = None
        if not isinstance(event, dict):
            raise InputError(f"{path}:{number}: is damaged: no JSON object")
        yield number, event


def count_pages(judges: Iterable[Judge], away: set[str]) -> Counter[tuple[str, ...]]:
    """By page, the judges who judged it or, unless ``away``, will."""
    counts: Counter[tuple[str, ...]] = Counter()
    for judge in judges:
        left = set(judge.pages(judge.step)) if judge.code in away or judge.ended else set()
        counts.update(page for page in judge.pages() if page not in left)
    return counts
