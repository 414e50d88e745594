"""The viewer's data: a columnar index, and chunks of records by stimulus."""

from __future__ import annotations

import re
import sys
import tempfile
from array import array
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import IO, Any

import numpy as np
import orjson

from agents import __version__
from agents.errors import ImageError, printable
from agents.images import Image
from serving.files.words import count
from serving.runs.run import Damage, Run
from serving.runs.stimulus_lookup import WARNING, StimulusLookup, common_stimuli
from serving.runs.words_by_rules import changed_by_rules, in_words
from serving.sets.kinds import Kind, is_asked, kind_of
from serving.viewer.alarms import Alarms
from serving.viewer.provenance import about_run
from serving.viewer.records import as_compared, flags_of, one_line, well_formed
from serving.viewer.scanpaths import TASK, ViewedScanpaths
from serving.viewer.statistics import UNKNOWN, Labelled, Statistics

CHUNK = 300_000  # bytes of records in a chunk, from which on the next begins
SEARCHED = 24_000_000  # characters of answers that the index holds to be searched, over all records
SPOOL = 64_000_000  # bytes of records that are kept in memory before they go to a temporary file
COLUMNS = ("mode", "type", "asked", "source")  # of a stimulus, by which one can choose beside those of its ``meta``
MOST_COLUMNS = 30
MOST_VALUES = 300  # of a column that is offered
STATUSES = ("ok", "rejected", "failed")

Put = Callable[[str, bytes], object]  # takes a chunk's name and its JSON


class Codes(dict[str, int]):
    """A number for each value of a column, as they come."""

    def __missing__(self, value: str) -> int:
        return self.setdefault(value, len(self))


@dataclass(slots=True)
class Tally:
    kind: str
    ok: int = 0
    rejected: int = 0
    failed: int = 0
    attempts: int = 0
    expected: int | None = None
    names: set[str] = field(default_factory=set)

    def row(self) -> list[Any]:
        """[kind, participants, ok, rejected, failed, expected, attempts]"""
        participants = len(self.names - {UNKNOWN})
        return [self.kind, participants, self.ok, self.rejected, self.failed, self.expected, self.attempts]


@dataclass(slots=True)
class Gathered:
    """``stamp`` is of the runs' state where the page is to ask whether it has changed."""

    runs: Sequence[Run]
    _spool: IO[bytes]
    stamp: str = ""
    pictures: list[Image] = field(default_factory=list)
    damage: Damage = field(default_factory=Damage)
    common: list[str] = field(default_factory=list)  # on the stimuli that runs have in common, in sentences
    _rows: list[bytes] = field(default_factory=list)
    _row_pictures: array[int] = field(default_factory=lambda: array("i"))
    _places: dict[tuple[str, str], int] = field(default_factory=dict)
    _numbers: dict[tuple[int, str], int] = field(default_factory=dict)
    _agents: Codes = field(default_factory=Codes)
    _labels: dict[tuple[int, str], int] = field(default_factory=dict)
    _tallies: dict[tuple[str, str], Tally] = field(default_factory=dict)
    _failures: dict[tuple[str, str], list[Any]] = field(default_factory=dict)
    _alarms: Alarms = field(default_factory=Alarms)
    _of: array[int] = field(default_factory=lambda: array("I"))  # the stimulus of each record
    _from: array[int] = field(default_factory=lambda: array("Q"))
    _by: array[int] = field(default_factory=lambda: array("I"))
    _sha256: dict[int, str] = field(default_factory=dict)  # of a picture, when it was answered
    _paths: ViewedScanpaths = field(init=False)

    def __post_init__(self) -> None:
        self._paths = ViewedScanpaths(self.pictures)

    def read(self) -> None:
        """Raises InputError with all scanpaths that nothing places on their picture."""
        stimuli = StimulusLookup(*self.runs)
        for number, run in enumerate(self.runs):
            kinds: Counter[Kind] = Counter()
            for row in run.stimuli():
                kinds[kind_of(row)] += 1
                self._place(number, row, stimuli)
            self._expect(number, run, kinds)
        about: list[dict[Hashable, str]] = [{} for _ in self.runs]
        at = 0
        for number, run in enumerate(self.runs):
            for name in [*run.agents(), *run.imports()]:
                for record in run.latest(name, self.damage):
                    task = record["task"]
                    named = record["stimulus"]
                    place = self._place(number, {"id": named, "task": task}, stimuli)
                    about[number].setdefault(place, named)
                    self._of.append(place)
                    self._from.append(at)
                    self._by.append(self._label(number, record))
                    self._paths.check(run.path, record, self._row_pictures[place])
                    at += self._spool.write(orjson.dumps(record))
        self._from.append(at)
        self._paths.refuse()
        if len(self.runs) > 1:
            self.common += common_stimuli([str(run.path) for run in self.runs], about)
            self.common += stimuli.differing()

    def _place(self, run: int, row: dict[str, Any], stimuli: StimulusLookup) -> int:
        task = str(row.get("task"))
        image = row.get("image")
        key = (task, str(row.get("id")))
        if key in self._places:
            return self._places[key]
        # In the first run a row of the set stands for itself; what only an import names has no row anywhere.
        match = stimuli.find(*key) if run or len(row) == 2 else None
        known = None if match is None else self._places.get((task, str(match[1].get("id"))))
        if known is not None:
            self._places[key] = known
            return known
        place = self._places[key] = len(self._rows)
        self._rows.append(orjson.dumps(row))
        self._alarms.add_stimulus(row)
        picture = -1
        if isinstance(image, str) and image:
            picture = self._numbers.setdefault((run, image), len(self.pictures))
            if picture == len(self.pictures):
                self.pictures.append(Image(image, root=self.runs[run].root or self.runs[run].path))
        self._row_pictures.append(picture)
        return place

    def _expect(self, run: int, folder: Run, kinds: Mapping[Kind, int]) -> None:
        for name, agent in folder.meta["agents"].items():
            samples = agent.get("samples", 1)
            numbers: Counter[str] = Counter()
            for kind, number in kinds.items():
                numbers[kind[0]] += number * is_asked(agent, kind)
            label = self._label(run, {"agent": name, "kind": agent.get("kind", "machine")})
            for task, number in numbers.items():
                if number and isinstance(samples, int):
                    tally = Tally(str(agent.get("kind", "machine")), expected=number * samples)
                    self._tallies[[*self._agents][label], task] = tally

    def _label(self, run: int, record: Mapping[str, Any]) -> int:
        name = record["agent"]
        key = (-1 if record["kind"] == "human" else run, name)
        if key not in self._labels:
            taken = name in self._agents and key[0] >= 0
            self._labels[key] = self._agents[f"{name} (run {self.runs[run].path.resolve().name})" if taken else name]
        return self._labels[key]

    @property
    def _people(self) -> set[int]:
        return {label for (run, _), label in self._labels.items() if run < 0}

    def _in_order(self) -> list[int]:
        names = [*self._agents]
        people = self._people

        def key(label: int) -> tuple[bool, list[tuple[int, str]]]:
            parts = re.findall(r"\d+|\D+", names[label]) if label in people else []
            return label in people, [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]

        return sorted(range(len(names)), key=key)

    def write(self, put: Put, *, pictures: Callable[[int, Image], str | None]) -> None:
        """Hand over chunks "0", "1" …, then "index". ``pictures`` returns a picture's problem or None."""
        index = Index()
        statistics = Statistics(len(self._rows))
        order = np.argsort(np.asarray(self._of), kind="stable")
        bounds = np.searchsorted(np.asarray(self._of)[order], np.arange(len(self._rows) + 1))
        longest = max(120, min(2_000, SEARCHED // max(len(order), 1)))
        names = [*self._agents]
        ranks = {label: at for at, label in enumerate(self._in_order())}
        chunk: list[bytes] = []
        size = 0
        for place, line in enumerate(self._rows):
            row = orjson.loads(line)
            read = [(at, self._line(at)) for at in order[bounds[place] : bounds[place + 1]].tolist()]
            answers_here = [(self._by[at], line, orjson.loads(line)) for at, line in read]
            answers_here.sort(key=lambda answer: (ranks[answer[0]], answer[2]["sample"]))
            lines = [line for _, line, _ in answers_here]
            labelled = [(names[label], record) for label, _, record in answers_here]
            by_rules = [changed_by_rules(record, row) for _, _, record in answers_here]
            for (label, _, record), word in zip(answers_here, by_rules, strict=True):
                self._count(place, names[label], record)
                index.record(label, record, longest, word)
            parsed: Labelled = [(name, record) for name, record in labelled if well_formed(record)]
            for name, record in parsed:
                self._alarms.add_record(name, record)
            parsed = as_compared(parsed, row)
            if row.get("task") == TASK:
                parsed = self._paths.in_one_frame(parsed, self._row_pictures[place])
            alike = statistics.stimulus(place, labelled, parsed)
            index.stimulus(row, self._row_pictures[place], len(lines), alike)
            chunk.append(orjson.dumps([line.decode(), [text.decode() for text in lines], by_rules]))
            size += len(chunk[-1])
            if size > CHUNK or place == len(self._rows) - 1:
                put(str(len(index.chunks) - 1), b"[" + b",".join(chunk) + b"]")
                index.chunks.append(place + 1)
                chunk = []
                size = 0
        put("index", orjson.dumps(self._whole(index, statistics, pictures), option=orjson.OPT_SERIALIZE_NUMPY))

    def _line(self, at: int) -> bytes:
        self._spool.seek(self._from[at])
        return self._spool.read(self._from[at + 1] - self._from[at])

    def _count(self, place: int, label: str, record: Mapping[str, Any]) -> None:
        kind = str(record["kind"])
        task = record["task"]
        tally = self._tallies.setdefault(("people" if kind == "human" else label, task), Tally(kind))
        if kind == "human":
            tally.names.add(label)
        setattr(tally, record["status"], getattr(tally, record["status"]) + 1)
        tally.attempts += len(record["attempts"])
        if record["status"] == "failed":
            code = str(record["error"].get("code"))
            message = str(record["error"].get("message"))[:1000]
            self._failures.setdefault((label, code), [0, str(record["stimulus"]), message])[0] += 1
        picture = self._row_pictures[place]
        digest = record["stimulus_sha256"]
        # Where there is a picture of the target, the hash is of both.
        if kind != "human" and picture >= 0 and isinstance(digest, str) and b'"target_image"' not in self._rows[place]:
            self._sha256.setdefault(picture, digest)

    def _whole(
        self, index: Index, statistics: Statistics, pictures: Callable[[int, Image], str | None]
    ) -> dict[str, Any]:
        pictures_shown = [self._picture(number, image, pictures) for number, image in enumerate(self.pictures)]
        names = [*self._agents]
        people = self._people
        first = self.runs[0]
        source = (first.meta.get("set") or {}).get("source")
        title = f"Run {first.meta['run']}" + (f" of {source}" if source else "")
        if len(self.runs) > 1:
            title = f"{count(len(self.runs), 'run')}: " + ", ".join(run.path.resolve().name for run in self.runs)
        return {
            "title": title[:300],
            "stamp": self.stamp,
            "made": f"{datetime.now(UTC).isoformat(timespec='seconds')} by Turinglike {__version__}",
            "notices": [*self._notices(), *self._alarms.sentences()],
            "agents": names,
            "people": [names[label] for label in self._in_order() if label in people],
            "pictures": pictures_shown,
            **index.columns(),
            "counts": [[who, task, *tally.row()] for (who, task), tally in self._tallies.items()],
            "failures": [[agent, code, *about] for (agent, code), about in list(self._failures.items())[:200]],
            "figures": statistics.figures(),
            "provenance": orjson.dumps([about_run(run) for run in self.runs]).decode(),
        }

    def _picture(self, number: int, image: Image, save: Callable[[int, Image], str | None]) -> list[Any]:
        try:
            header = image.header()
            trouble = save(number, image)
            changed = number in self._sha256 and image.sha256 != self._sha256[number]
        except ImageError as error:
            return [0, 0, image.name, str(error), False]
        return [header.width, header.height, image.name, trouble, changed]

    def _notices(self) -> Iterator[str]:
        for run in self.runs:
            if run.root is not None and self.pictures and not run.root.is_dir():
                yield (
                    f"The pictures cannot be shown: the folder {run.root}, where they were when the run was made, is "
                    "not there. The answers are complete."
                )
        if self.damage.lines:
            lines = count(self.damage.lines, "line")
            yield f"{lines} could not be read as records. The first: {self.damage.first}"
        yield from self._paths.notices()
        for sentence in self.common:
            if sentence.startswith(WARNING):
                text = sentence.removeprefix(WARNING)
                yield f"{text[0].upper()}{text[1:]}."


class Index:
    """The index's columns; texts and names are stored once."""

    def __init__(self) -> None:
        self.chunks = [0]  # the first stimulus of each chunk, and where the last one ends
        self.tasks = Codes()
        self.texts = Codes()
        self.flags = Codes()
        self.per_stimulus: dict[str, list[Any]] = {name: [] for name in ("id", "task", "title", "picture", "alike")}
        self.per_record: dict[str, array[int]] = {
            name: array("i") for name in ("agent", "sample", "status", "flags", "text", "attempts")
        }
        self.first = array("I", [0])
        self.meta: dict[str, tuple[Codes, array[int]]] = {}
        self.flags["[]"]

    def record(
        self, agent: int, record: Mapping[str, Any], longest: int, by_rules: Mapping[str, str | None] | None
    ) -> None:
        columns = self.per_record
        line = in_words(one_line(record), by_rules)
        columns["agent"].append(agent)
        columns["sample"].append(min(record["sample"], 2**31 - 1))
        columns["status"].append(STATUSES.index(record["status"]))
        columns["flags"].append(self.flags[orjson.dumps(flags_of(record)).decode()])
        columns["text"].append(self.texts[line[:longest]])
        columns["attempts"].append(len(record["attempts"]))

    def stimulus(self, row: Mapping[str, Any], picture: int, records: int, alike: float | None) -> None:
        named = [row.get(name) for name in ("cue", "topic", "image")]
        title = next((name for name in named if isinstance(name, str) and name), "")
        values = (str(row.get("id")), self.tasks[str(row.get("task"))], title[:200], picture)
        for name, value in zip(self.per_stimulus, (*values, -1 if alike is None else round(100 * alike)), strict=True):
            self.per_stimulus[name].append(value)
        meta = row.get("meta")
        columns = {name: row[name] for name in COLUMNS if name in row} | (meta if isinstance(meta, dict) else {})
        place = len(self.first) - 1
        for name, value in columns.items():
            if isinstance(value, str | int | float) and (name in self.meta or len(self.meta) < MOST_COLUMNS):
                codes, column = self.meta.setdefault(name, (Codes(), array("i")))
                column.extend([-1] * (place - len(column)))
                column.append(codes[value[:200] if isinstance(value, str) else orjson.dumps(value).decode()])
        self.first.append(self.first[-1] + records)

    def columns(self) -> dict[str, Any]:
        stimuli = len(self.first) - 1
        for _, column in self.meta.values():
            column.extend([-1] * (stimuli - len(column)))
        return {
            "tasks": [*self.tasks],
            "texts": [*self.texts],
            "flags": [orjson.loads(flags) for flags in self.flags],
            "stimuli": {**self.per_stimulus, "first": np.asarray(self.first)},
            "records": {name: np.asarray(column) for name, column in self.per_record.items()},
            "meta": [
                [name, [*codes], np.asarray(column)]
                for name, (codes, column) in self.meta.items()
                if len(codes) <= MOST_VALUES
            ],
            "chunks": self.chunks,
        }


@contextmanager
def gathered(runs: Sequence[Run], stamp: str = "") -> Iterator[Gathered]:
    """The runs, read. Raises InputError for a damaged set or ``run.json``; counts damaged records."""
    with tempfile.SpooledTemporaryFile(SPOOL) as spool:
        data = Gathered(runs, spool, stamp)
        data.read()
        for sentence in [] if stamp else data.common:
            print(printable(sentence), file=sys.stderr)
        yield data
