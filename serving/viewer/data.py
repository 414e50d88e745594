"""The viewer's data, as JSON for its page: an index of all stimuli and records in columns, and chunks of whole records.

Records come agent by agent, and the page wants them stimulus by stimulus. :meth:`Gathered.read` therefore puts them
into a temporary file (the *spool*), and :meth:`Gathered.write` reads them from there, so that memory stays bounded.
A stimulus has a *place*, its number on the page; an agent has a *label*, the number of its name there.
"""

from __future__ import annotations

import re
import sys
import tempfile
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

import numpy as np
import orjson

from agents import __version__
from agents.errors import ImageError, printable
from agents.images import Image
from serving.files.words import count
from serving.runs.run import Damage, Run
from serving.runs.stimulus_lookup import WARNING, common_stimuli
from serving.runs.words_by_rules import changed_by_rules
from serving.sets.kinds import Kind, is_asked, kind_of
from serving.viewer.alarms import Alarms
from serving.viewer.first_rows import LARGE, first_rows
from serving.viewer.index import ValueNumbers, ViewerIndex
from serving.viewer.progress import unfinished
from serving.viewer.provenance import about_run
from serving.viewer.records import as_compared, well_formed
from serving.viewer.rows import PageRows
from serving.viewer.scanpaths import TASK, ViewedScanpaths
from serving.viewer.statistics import UNKNOWN_PERSON, Labelled, Statistics

CHUNK = 300_000  # bytes of records: a larger chunk ends, and the next begins
SEARCHED = 24_000_000  # characters of answers, over all records, that the index holds for the search
SPOOL = 64_000_000  # bytes of records that are kept in memory before they go to a temporary file

Put = Callable[[str, bytes], object]  # takes a chunk's name ("0", "1", …, "whole", "index") and its JSON


@dataclass(slots=True)
class RecordTally:
    """Counts of a group's records of one task; a group is an agent, or all people."""

    kind: str
    """The kind of its records: "machine", "human", "published" or "control"."""
    ok: int = 0
    """Records with an answer."""
    rejected: int = 0
    """Records of which filters refused every attempt."""
    failed: int = 0
    """Records without an answer."""
    attempts: int = 0
    """Attempts of all records together."""
    expected: int | None = None
    """How many records a whole run has; None where nobody knows."""
    names: set[str] = field(default_factory=set)
    """The people, by name."""

    @property
    def number(self) -> int:
        """Records of any status."""
        return self.ok + self.rejected + self.failed

    def row(self) -> list[Any]:
        """The counts for the page: [kind, participants, ok, rejected, failed, expected, attempts]."""
        participants = len(self.names - {UNKNOWN_PERSON})
        return [self.kind, participants, self.ok, self.rejected, self.failed, self.expected, self.attempts]


@dataclass(slots=True)
class Gathered:
    """Stimuli and records of some runs, first read, then written for the page. :func:`gathered` makes it."""

    runs: Sequence[Run]
    """The runs that are shown together."""
    _spool: IO[bytes]
    stamp: str = ""
    """A text that changes with the runs' files; "" where the page is not to ask whether it has changed."""
    pictures: list[Image] = field(default_factory=list)
    """The stimuli's pictures, each once."""
    damage: Damage = field(default_factory=Damage)
    """The lines that could not be read as records."""
    common: list[str] = field(default_factory=list)
    """Sentences about the stimuli that the runs have in common."""
    # stimuli, by place
    _rows: list[bytes] = field(default_factory=list)  # JSON
    _row_pictures: array[int] = field(default_factory=lambda: array("i"))  # numbers of pictures; -1 without one
    _page_rows: PageRows = field(init=False)
    # records, in the order in which they were read
    _record_places: array[int] = field(default_factory=lambda: array("I"))
    _record_labels: array[int] = field(default_factory=lambda: array("I"))
    _offsets: array[int] = field(default_factory=lambda: array("Q"))  # in the spool; the last one is its end
    # agents and people
    _agents: ValueNumbers = field(default_factory=ValueNumbers)  # their names on the page
    _labels: dict[tuple[int, str], int] = field(default_factory=dict)  # by run (-1: a person) and agent
    _tallies: dict[tuple[str, str], RecordTally] = field(default_factory=dict)  # by group and task
    _failures: dict[tuple[str, str], list[Any]] = field(default_factory=dict)  # by agent and code: number, first one
    # pictures
    _roots: list[Path] = field(init=False)  # by run: the folder in which the paths of its pictures begin
    _picture_numbers: dict[str, int] = field(default_factory=dict)  # by path
    _sha256: dict[int, str] = field(default_factory=dict)  # by number: the hash when it was answered
    _alarms: Alarms = field(default_factory=Alarms)
    _paths: ViewedScanpaths = field(init=False)

    def __post_init__(self) -> None:
        self._paths = ViewedScanpaths(self.pictures)
        self._page_rows = PageRows(self.runs)
        self._roots = [(run.root or run.path).resolve() for run in self.runs]

    def read(self) -> None:
        """Read all stimuli and records of the runs. Raises InputError for a damaged set, and with all scanpaths that
        cannot be placed on their picture."""
        self._page_rows.look_at()
        for number, run in enumerate(self.runs):
            kinds: Counter[Kind] = Counter()
            for row in run.stimuli():
                kinds[kind_of(row)] += 1
                self._place(number, row)
            self._expect(number, run, kinds)
        offset = 0
        for number, run in enumerate(self.runs):
            for name in [*run.agents(), *run.imports()]:
                for record in run.latest(name, self.damage):
                    place = self._place(number, {"id": record["stimulus"], "task": record["task"]})
                    self._record_places.append(place)
                    self._offsets.append(offset)
                    self._record_labels.append(self._label(number, record))
                    self._paths.check(run.path, record, self._row_pictures[place])
                    offset += self._spool.write(orjson.dumps(record))
        self._offsets.append(offset)
        self._paths.refuse()
        if len(self.runs) > 1:
            names = [self._page_rows.names(number) for number in range(len(self.runs))]
            self.common += common_stimuli([str(run.path) for run in self.runs], names)
            self.common += self._page_rows.warnings()

    def _place(self, run: int, row: dict[str, Any]) -> int:
        """The place of a stimulus of the run of that number, which is taken in if it has none yet."""
        place = self._page_rows.place(run, row)
        if place < len(self._rows):
            return place
        self._rows.append(orjson.dumps(row))
        self._alarms.add_stimulus(row)
        picture = -1
        image = row.get("image")
        if isinstance(image, str) and image:
            root = self._roots[run]
            picture = self._picture_numbers.setdefault(f"{root}/{image}", len(self.pictures))
            if picture == len(self.pictures):
                self.pictures.append(Image(image, root=root))
        self._row_pictures.append(picture)
        return place

    def _expect(self, run: int, folder: Run, kinds: Mapping[Kind, int]) -> None:
        """Note how many records a run will have when it is done. ``kinds`` are the numbers of its stimuli by kind."""
        for name, agent in folder.meta["agents"].items():
            samples = agent.get("samples", 1)
            numbers: Counter[str] = Counter()
            for kind, number in kinds.items():
                numbers[kind[0]] += number * is_asked(agent, kind)
            label = self._label(run, {"agent": name, "kind": agent.get("kind", "machine")})
            for task, number in numbers.items():
                if number and isinstance(samples, int):
                    tally = RecordTally(str(agent.get("kind", "machine")), expected=number * samples)
                    self._tallies[[*self._agents][label], task] = tally

    def _label(self, run: int, record: Mapping[str, Any]) -> int:
        """The label of who answered. An agent of a second run gets a name of its own, a person has one name in all."""
        name = record["agent"]
        key = (-1 if record["kind"] == "human" else run, name)
        if key not in self._labels:
            shown_name = name
            if record["kind"] != "human" and name in self._agents:
                shown_name = f"{name} (run {self.runs[run].path.resolve().name})"
            self._labels[key] = self._agents[shown_name]
        return self._labels[key]

    @property
    def _people(self) -> set[int]:
        return {label for (run, _), label in self._labels.items() if run < 0}

    def _in_order(self) -> list[int]:
        """All labels: agents as they came, then people by name, in which 9 comes before 10."""
        names = [*self._agents]
        people = self._people

        def key(label: int) -> tuple[bool, list[tuple[int, str]]]:
            parts = re.findall(r"\d+|\D+", names[label]) if label in people else []
            return label in people, [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]

        return sorted(range(len(names)), key=key)

    def write(self, put: Put, *, pictures: Callable[[int, Image], str | None]) -> None:
        """Make the data and hand them to ``put``: the chunks "0", "1", …, then "index". A large index is called
        "whole", and "index" has its first rows. ``pictures`` shows a picture of that number, and returns why it cannot
        be shown, or None."""
        index = ViewerIndex()
        statistics = Statistics(len(self._rows))
        order = np.argsort(np.asarray(self._record_places), kind="stable")
        bounds = np.searchsorted(np.asarray(self._record_places)[order], np.arange(len(self._rows) + 1))
        longest = max(120, min(2_000, SEARCHED // max(len(order), 1)))
        names = [*self._agents]
        ranks = {label: rank for rank, label in enumerate(self._in_order())}
        chunk: list[bytes] = []
        size = 0
        for place, line in enumerate(self._rows):
            row = orjson.loads(line)
            records = []
            for number in order[bounds[place] : bounds[place + 1]].tolist():
                record_line = self._line(number)
                records.append((self._record_labels[number], record_line, orjson.loads(record_line)))
            records.sort(key=lambda answer: (ranks[answer[0]], answer[2]["sample"]))
            lines = [record_line for _, record_line, _ in records]
            labelled = [(names[label], record) for label, _, record in records]
            by_rules = [changed_by_rules(record, row) for _, _, record in records]
            for (label, _, record), word in zip(records, by_rules, strict=True):
                self._count(place, names[label], record)
                index.record(label, record, longest, word)
            parsed: Labelled = [(name, record) for name, record in labelled if well_formed(record)]
            for name, record in parsed:
                self._alarms.add_record(name, record)
            parsed = as_compared(parsed, row)
            if row.get("task") == TASK:
                parsed = self._paths.in_one_frame(parsed, self._row_pictures[place])
            alike = statistics.stimulus(place, labelled, parsed)
            index.stimulus(row, self._row_pictures[place], len(lines), alike, self._page_rows.of(place))
            chunk.append(orjson.dumps([line.decode(), [text.decode() for text in lines], by_rules]))
            size += len(chunk[-1])
            if size > CHUNK or place == len(self._rows) - 1:
                put(str(len(index.chunks) - 1), b"[" + b",".join(chunk) + b"]")
                index.chunks.append(place + 1)
                chunk = []
                size = 0
        whole = self._index(index, statistics, pictures)
        if len(order) >= LARGE:
            put("whole", orjson.dumps(whole, option=orjson.OPT_SERIALIZE_NUMPY))
            whole = first_rows(whole)
        put("index", orjson.dumps(whole, option=orjson.OPT_SERIALIZE_NUMPY))

    def _line(self, number: int) -> bytes:
        """The JSON of the record of that number."""
        self._spool.seek(self._offsets[number])
        return self._spool.read(self._offsets[number + 1] - self._offsets[number])

    def _count(self, place: int, label: str, record: Mapping[str, Any]) -> None:
        kind = str(record["kind"])
        task = record["task"]
        tally = self._tallies.setdefault(("people" if kind == "human" else label, task), RecordTally(kind))
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

    def _index(
        self, index: ViewerIndex, statistics: Statistics, pictures: Callable[[int, Image], str | None]
    ) -> dict[str, Any]:
        pictures_shown = [self._picture(number, image, pictures) for number, image in enumerate(self.pictures)]
        names = [*self._agents]
        people = self._people
        first = self.runs[0]
        source = (first.meta.get("set") or {}).get("source")
        title = f"Run {first.meta['run']}"
        if source:
            title = f"{title} of {source}"
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
            "rows": [row.name for row in self._page_rows.rows],
            "counts": [[who, task, *tally.row()] for (who, task), tally in self._tallies.items()],
            "failures": [[agent, code, *failure] for (agent, code), failure in list(self._failures.items())[:200]],
            "figures": statistics.figures(),
            "progress": self._progress(),
            "provenance": orjson.dumps([about_run(run) for run in self.runs]).decode(),
        }

    def _progress(self) -> list[list[Any]]:
        """How far agents are, where the page follows its runs and one of them lacks answers."""
        tallies = self._tallies.values()
        is_whole = all(tally.expected is None or tally.number >= tally.expected for tally in tallies)
        if not self.stamp or is_whole:
            return []
        names = [*self._agents]
        return unfinished(self.runs, lambda run, agent: names[self._label(run, agent)])

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


@contextmanager
def gathered(runs: Sequence[Run], stamp: str = "") -> Iterator[Gathered]:
    """The stimuli and records of some runs, read. Sentences on what the runs have in common go to stderr, unless there
    is a ``stamp`` (:class:`Gathered`): the page then shows them. Raises InputError for a damaged set or ``run.json``;
    damaged records are counted."""
    with tempfile.SpooledTemporaryFile(SPOOL) as spool:
        data = Gathered(runs, spool, stamp)
        data.read()
        if not stamp:
            for sentence in data.common:
                print(printable(sentence), file=sys.stderr)
        yield data
