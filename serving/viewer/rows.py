"""The rows of the page: a picture, a cue or a talk each, however many tasks and runs ask about it.

Which stimuli of several runs are one, :class:`StimulusLookup` says, as it does for trials; only pictures of one name
with other bytes are not one here. Different stimuli stand in one row where they have one name (``benchmark_id``, else
id), or one cue, or where their pictures have the same bytes under other names. Of several runs the bytes are compared
by SHA-256. Where a picture cannot be read, its hash is taken from a record.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from unicodedata import normalize

from agents.errors import ImageError
from agents.images import Image
from serving.files.words import count
from serving.runs.run import Damage, Run
from serving.runs.stimulus_lookup import NAMED, WARNING, StimulusLookup

NAMESAKES = 50  # rows of one name that are looked through
KINDS = {"word_association": "cue", "conversation": "talk", "judgement": "trial"}  # by task; others ask about a picture
RunTaskName = tuple[int, str, str]
"""A run's number, a task, and what a stimulus is called there."""
Content = str | None
"""What tells two stimuli of one name apart: a picture's hash, a cue; None where nothing is known."""


@dataclass(slots=True)
class PageRow:
    """One row of the page."""

    name: str
    """What it is called there."""
    content: Content
    """What is known of its picture or cue; None as long as nothing is."""
    asked: set[tuple[int, str]] = field(default_factory=set)
    """The runs that ask about it, by number, and for which task."""


class PageRows:
    """Finds each stimulus's place, which is its number on the page, and its row. Raises InputError for damaged sets."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self._runs = runs
        self._own = [StimulusLookup(run) for run in runs]
        self._all = StimulusLookup(*runs) if len(runs) > 1 else self._own[0]
        self.rows: list[PageRow] = []
        """The rows, in their order."""
        self.row_of: list[int] = []
        """The number of each place's row."""
        self._places: dict[RunTaskName, int] = {}
        self._by_name: dict[tuple[str, str], list[int]] = defaultdict(list)
        self._by_content: dict[tuple[str, str], int] = {}
        self._contents: dict[RunTaskName, Content] = {}
        self._hashes: dict[str, Content] = {}  # by path
        self._times: Counter[tuple[int, str, Content]] = Counter()  # how often a run asks a task of a content

    def look_at(self) -> None:
        """Look at all stimuli of the runs, and at their pictures if there are several runs. Comes first."""
        unread: list[set[tuple[str, str]]] = [set() for _ in self._runs]
        for number, run in enumerate(self._runs):
            for row in run.stimuli():
                key = (number, str(row.get("task")), str(row.get("id")))
                self._contents[key] = self._content(run, row)
                has_one_picture = isinstance(row.get("image"), str) and "target_image" not in row  # the hash is of all
                if self._contents[key] is None and has_one_picture:
                    unread[number].add(key[1:])
        for number, keys in enumerate(unread):
            if keys and len(self._runs) > 1:
                self._take_recorded(number, keys)
        for (number, task, _), content in self._contents.items():
            self._times[number, task, content] += 1

    def _content(self, run: Run, row: Mapping[str, Any]) -> Content:
        if isinstance(cue := row.get("cue"), str):
            return normalize("NFC", cue).casefold()
        if isinstance(topic := row.get("topic"), str):
            return topic
        if not isinstance(name := row.get("image"), str) or not name:
            return None
        if len(self._runs) == 1:
            return name
        root = run.root or run.path
        place = f"{root}/{name}"
        if place not in self._hashes:
            try:
                self._hashes[place] = Image(name, root=root).sha256
            except ImageError:
                self._hashes[place] = None
        return self._hashes[place]

    def _take_recorded(self, number: int, keys: set[tuple[str, str]]) -> None:
        """Take the hashes of pictures that cannot be read from the records of a run."""
        run = self._runs[number]
        for agent in run.agents():
            for record in run.latest(agent, Damage()):
                key = (record["task"], record["stimulus"])
                if key in keys and isinstance(record["stimulus_sha256"], str):
                    self._contents[number, *key] = record["stimulus_sha256"]
                    keys.remove(key)
                if not keys:
                    return

    def place(self, run: int, stimulus: Mapping[str, Any]) -> int:
        """The place of a stimulus of the run of that number; the next one for a stimulus that has none yet. What has
        nothing but ``id`` and ``task`` is the name in an answer, which may be another name of a stimulus."""
        task = str(stimulus.get("task"))
        key = (run, task, str(stimulus.get("id")))
        if key not in self._places:
            place = self._places.get(self._meant(key))
            if place is None:
                place = self._new(key, stimulus)
            self._places[key] = place
            self.rows[self.row_of[place]].asked.add((run, task))
        return self._places[key]

    def of(self, place: int) -> tuple[int, str]:
        """The number and the name of the row of a place."""
        number = self.row_of[place]
        return number, self.rows[number].name

    def _meant(self, key: RunTaskName) -> RunTaskName:
        """The stimulus that a name means, by the run in whose set it stands; the key itself where no run has it."""
        run, task, name = key
        if run == 0 and key in self._contents:
            return key  # in the first run a stimulus of the set stands for itself
        match = self._all.find(task, name)
        if match is None:
            return key
        meant = (match[0], task, str(match[1].get("id")))
        own = self._own[run].find(task, name)
        if own is None or "image" not in own[1]:
            return meant
        own_key = (run, task, str(own[1].get("id")))
        contents = {self._contents.get(own_key), self._contents.get(meant)} - {None}
        return own_key if len(contents) > 1 else meant  # other bytes: another picture of that name

    def _new(self, key: RunTaskName, stimulus: Mapping[str, Any]) -> int:
        run, task, id = key
        kind = KINDS.get(task, "picture")
        content = self._contents.get(key)
        names = [name for name in (stimulus.get("benchmark_id"), id) if isinstance(name, str) and name]
        number = self._row(key, kind, names, content)
        row = self.rows[number]
        row.content = row.content or content
        for name in names:
            if number not in self._by_name[kind, name]:
                self._by_name[kind, name].append(number)
        if content is not None and self._times[run, task, content] == 1:
            self._by_content.setdefault((kind, content), number)
        self.row_of.append(number)
        return len(self.row_of) - 1

    def _row(self, key: RunTaskName, kind: str, names: Sequence[str], content: Content) -> int:
        """The number of a stimulus's row: that of its name, else that of its content, else a new one."""
        run, task, _ = key
        for name in names:
            rows = [
                number
                for number in self._by_name[kind, name][:NAMESAKES]
                if (run, task) not in self.rows[number].asked
                and (content is None or self.rows[number].content in (None, content))
            ]
            if len({self.rows[number].content for number in rows}) == 1:
                return rows[0]
        # A picture that a run asks about several times says nothing of which other stimulus belongs to which of them.
        if content is not None and self._times[run, task, content] == 1:
            number = self._by_content.get((kind, content), -1)
            if number >= 0 and (run, task) not in self.rows[number].asked:
                return number
        self.rows.append(PageRow(names[0] if names else "", content))
        return len(self.rows) - 1

    def names(self, run: int) -> dict[Hashable, str]:
        """The rows of which a run has a stimulus or an answer, each with a name that it has there."""
        names: dict[Hashable, str] = {}
        for (number, _, name), place in self._places.items():
            if number == run:
                names.setdefault(self.row_of[place], name)
        return names

    def warnings(self) -> Iterator[str]:
        """A warning for each two runs in which an id means different stimuli, or pictures whose bytes differ."""
        yield from self._all.differing()
        for number, run in enumerate(self._runs):
            for before in range(number):
                ids = [
                    repr(name)
                    for (of, task, name), place in self._places.items()
                    if of == number and self._places.get((before, task, name), place) != place
                ]
                if ids:
                    few = ", ".join([*ids[:NAMED], "…"] if len(ids) > NAMED else ids)
                    runs = f"{self._runs[before].path} and {run.path}"
                    yield f"{WARNING}{count(len(ids), 'id')} of {runs} mean different pictures, shown apart: {few}"
