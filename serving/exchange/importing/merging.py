"""The files of an import beside those that were imported before: what replaces what, and whose answers stand twice."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import orjson

from agents.errors import InputError, Problem
from serving.exchange.importing.source import PUBLISHED, ImportOptions, Source, person
from serving.files.words import count
from serving.runs.run import Run, numbered_records, open_to_read
from serving.runs.schema_names import schema_mismatch

IMPORT = "turinglike.import/1"
FILES = {"human": "humans", "published": "published"}  # kinds of records, and the names of their files
ImportEntry = dict[str, Any]
"""A file in ``import.json``, as :meth:`Source.summary` writes it."""
Identity = tuple[str, str, str | None]
"""What tells a file from others: its SHA-256, its task, and the name of ``--name``."""
ImportedKey = tuple[str, str, str]
"""Task, agent and stimulus. One person may have several answers to one stimulus."""
Again = Literal["replace", "add"]
"""What is done with a file most of whose answers another file has, too: it replaces that file, or both count."""


def identity(entry: Mapping[str, Any]) -> Identity:
    """What tells a file of ``import.json`` from others."""
    return entry["sha256"], entry["task"], entry["name"]


class ImportedRecords:
    """The records of one file, held as lines of JSON and parsed one by one: as objects, a million of them would take
    ten gigabytes of memory instead of one."""

    def __init__(self) -> None:
        self._lines: list[bytes] = []

    def add(self, line: bytes) -> None:
        """Add a record, as the line of JSON that it is."""
        self._lines.append(line)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return map(orjson.loads, self._lines)


@dataclass(frozen=True, slots=True)
class Imported:
    """What a run holds of earlier imports."""

    entries: Sequence[ImportEntry] = ()
    """Its files, in the order of ``import.json``."""
    records: Mapping[Identity, ImportedRecords] = field(default_factory=dict)
    """The records of each file."""


def read_imported(run: Run) -> Imported:
    """The earlier imports of a run. Raises InputError for files of another version, and for damaged ones."""
    path = run.path / "import.json"
    try:
        content = orjson.loads(path.read_bytes())
    except FileNotFoundError:
        return Imported()
    except (orjson.JSONDecodeError, OSError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    if not isinstance(content, dict) or schema_mismatch(content.get("schema"), IMPORT):
        raise InputError(f"{path} is not of this version ({IMPORT})")
    identities = {identity(entry) for entry in content["sources"]}
    records: dict[Identity, ImportedRecords] = {}
    for name in FILES.values():
        if name not in run.imports():
            continue
        path = run.records_path(name)
        with open_to_read(path) as file:
            for _, line, record in numbered_records(file, path):
                # A record does not say whether its agent's name was that of --name.
                digest = record["provenance"]["digest"]
                submitted = (digest, record["task"], record["agent"].removeprefix("published:"))
                of_file = submitted if submitted in identities else (digest, record["task"], None)
                records.setdefault(of_file, ImportedRecords()).add(line)
    return Imported(content["sources"], records)


@dataclass(frozen=True, slots=True)
class Merged:
    """What a run holds after an import."""

    run: str
    """The run's id."""
    entries: Sequence[ImportEntry]
    """All files, old and new, in the order of ``import.json``."""
    sources: Mapping[Identity, Source]
    """The new files."""
    kept: Mapping[Identity, ImportedRecords]
    """The records of files that stay."""

    def has(self, kind: str) -> bool:
        """Whether there is any record of a ``kind``, "human" or "published"."""
        return next(self.records(kind), None) is not None

    def records(self, kind: str) -> Iterator[dict[str, Any]]:
        """The records of a ``kind``, in the order of the files. ``sample`` numbers several answers of one agent to one
        stimulus, over all files."""
        samples: dict[tuple[str, str], dict[str, int]] = {}  # by task and agent, and by stimulus
        for entry in self.entries:
            source = self.sources.get(identity(entry))
            records = self.kept.get(identity(entry), ()) if source is None else source.records(self.run, kind)
            for record in records:
                if record["kind"] == kind:
                    of_agent = samples.setdefault((record["task"], record["agent"]), {})
                    sample = of_agent.get(record["stimulus"], 0)
                    record["sample"] = sample
                    of_agent[record["stimulus"]] = sample + 1
                    yield record


def merge(
    run: str, before: Imported, sources: Sequence[Source], options: ImportOptions, again: Again | None = None
) -> Merged:
    """The new files beside those that were imported before; they replace earlier imports of the same. ``run`` is the
    run's id. ``again`` says what is done with a file most of whose answers another file has, too.

    Raises InputError with a question for each such file where ``again`` is None and ``--drop-equal`` is not given.
    """
    entries, by_identity = _with_new(before, sources, options)
    known = {identity(entry) for entry in before.entries}  # about these the user has said it already
    people = _People()
    questions = []
    last = max((place for place, entry in enumerate(entries) if identity(entry) in by_identity), default=0)
    for place, entry in enumerate(list(entries)):
        source = by_identity.get(identity(entry))
        if source is not None:
            shared = people.shared(source)
            is_asked = again is None and not options.drop_equal and identity(entry) not in known
            successors = shared.successors if again == "replace" else shared.moved()
            if shared.is_most and successors and again != "add":
                source.notes += [shared.note(path) for path in sorted(successors)]
                entries = [old for old in entries if old["path"] not in successors or old["task"] != source.task]
                people.forget(successors)
            elif shared.is_most and (is_asked or again == "replace"):
                question = shared.question() if is_asked else shared.refusal()
                questions.append(Problem(str(source.path), None, None, question))
            elif shared.answers:
                shared.tell(source, options)
            entries = [{**source.summary(), "path": old["path"]} if old is entry else old for old in entries]
        if place < last:
            if source is None:
                people.add(entry["path"], before.records.get(identity(entry), ()))
            else:
                people.add(entry["path"], chain.from_iterable(source.records("", kind) for kind in FILES))
    if questions:
        raise InputError(f"nothing was imported: {count(len(questions), 'question')}", questions)
    return Merged(run, entries, by_identity, before.records)


def _with_new(
    before: Imported, sources: Sequence[Source], options: ImportOptions
) -> tuple[list[ImportEntry], dict[Identity, Source]]:
    """The entries of all files with new ones at their places, and the new files by their identity."""
    entries = list(before.entries)
    by_identity: dict[Identity, Source] = {}
    for source in sources:
        entry = source.summary()
        former = [old for old in entries if _is_replaced(old, entry)]
        if former and identity(former[0]) == identity(entry):
            if former[0]["path"] != entry["path"]:
                source.same_as = former[0]["path"]
            entry["path"] = former[0]["path"]
            if lost := _lost(before.records.get(identity(entry), ()), source, options):
                taken = count(lost, "answer")
                source.notes.append(f"takes out {taken} of an earlier import of this file, which had other options")
        elif former:
            answers = sum(old["human"] + old["published"] for old in former)
            source.notes.append(f"replaces {count(answers, 'answer')} of an earlier import from this path")
        others = [old for old in before.entries if old["path"] == entry["path"] and old not in former]
        for other in others:
            what = other["task"] if other["name"] is None else f"{other['task']} of {other['name']}"
            source.notes.append(f"an earlier import from this path stays: {what}")
        place = entries.index(former[0]) if former else len(entries)
        entries = [old for old in entries if old not in former]
        entries.insert(place, entry)
        by_identity[identity(entry)] = source
    return entries, by_identity


def _lost(earlier: Iterable[Mapping[str, Any]], source: Source, options: ImportOptions) -> int:
    """How many earlier answers of the same file are not among those that are read from it now; with ``--drop-equal``
    equal ones count once."""
    before = Counter((record["agent"], record["stimulus"], _response(record["raw"])) for record in earlier)
    now = Counter((answer.agent, answer.stimulus, _response(answer.whole_raw())) for answer in source.answers)
    if options.drop_equal:
        return len(before.keys() - now.keys())
    return (before - now).total()


def _response(raw: Any) -> int:
    """A hash of a raw answer without its time, whose unit may have been corrected. The bytes that orjson makes have a
    buffer of some kilobytes behind them, which a million of them must not hold."""
    response = raw["response"] if isinstance(raw, dict) and raw.keys() == {"response", "rt"} else raw
    return hash(orjson.dumps(response))


def _is_replaced(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether a new file takes the place of an earlier one: it has the same bytes, or the same path, and is read for
    the same task and under the same name."""
    if (old["task"], old["name"]) != (new["task"], new["name"]):
        return False
    return bool(old["path"] == new["path"] or old["sha256"] == new["sha256"])


def _has_name(agent: str) -> bool:
    """Whether an agent is a machine, or one person with a name; two who converse have none."""
    return agent.startswith(PUBLISHED) or (agent.startswith("human:") and agent != person(""))


class _People:
    """What people and machines answered in the files so far."""

    def __init__(self) -> None:
        self._raws: dict[ImportedKey, dict[str, set[int]]] = {}  # hashes of raw responses, by the path of the file
        self._answers: Counter[str] = Counter()  # of those with names, by the path of the file

    def add(self, path: str, records: Iterable[Mapping[str, Any]]) -> None:
        """Add the records of the file ``path``."""
        for record in records:
            if _has_name(record["agent"]):
                by_file = self._raws.setdefault((record["task"], record["agent"], record["stimulus"]), {})
                by_file.setdefault(path, set()).add(hash(orjson.dumps(record["raw"])))
                self._answers[path] += 1

    def forget(self, paths: Collection[str]) -> None:
        """Take files out."""
        for by_file in self._raws.values():
            for path in paths:
                by_file.pop(path, None)

    def shared(self, source: Source) -> "_Shared":
        """The answers of a file that stand in the files so far, too."""
        shared = _Shared(source.path)
        if not self._raws:
            return shared  # there is no other file
        named = 0
        in_file: Counter[str] = Counter()
        for place, answer in enumerate(source.answers):
            if not _has_name(answer.agent):
                continue
            named += 1
            others = self._raws.get((source.task, answer.agent, answer.stimulus))
            if not others:
                continue
            shared.answers.append(place)
            shared.people.add(answer.agent)
            in_file.update(list(others))
            raw = hash(orjson.dumps(answer.whole_raw()))
            if any(raw in raws for raws in others.values()):
                shared.equal.add(place)
        shared.files = {path: (number, self._answers[path]) for path, number in in_file.items()}
        is_most_of_another = bool(shared.successors)
        shared.is_most = bool(in_file) and (2 * len(shared.answers) >= named or is_most_of_another)
        return shared


@dataclass(slots=True)
class _Shared:
    """Answers of a file to stimuli that the same people or machines answered in other files, too: a file that was saved
    again, or corrected under another name, would double them."""

    path: Path
    """The file."""
    answers: list[int] = field(default_factory=list)
    """The places of these answers in the file."""
    equal: set[int] = field(default_factory=set)
    """The places of those that are equal to an answer in another file."""
    people: set[str] = field(default_factory=set)
    """Whose answers they are."""
    files: dict[str, tuple[int, int]] = field(default_factory=dict)
    """The paths of the other files, with the number of these answers that each has, too, and of all that it has."""
    is_most: bool = False
    """Whether they are half of the file's answers or more, or half of another file's."""

    @property
    def successors(self) -> list[str]:
        """The files half of whose answers, or more, are in this file, too: it may take their place."""
        return [path for path, (number, whole) in self.files.items() if 2 * number >= whole]

    def moved(self) -> list[str]:
        """Those files among them that had the name of this one and are no longer there: the folder was moved."""
        return [path for path in self.successors if Path(path).name == self.path.name and not Path(path).exists()]

    def note(self, path: str) -> str:
        """What taking a file's place means."""
        number, whole = self.files[path]
        where = "" if Path(path).exists() else ", which is no longer there"
        gone = f"; {count(whole - number, 'answer')} of it have none here" if whole > number else ""
        return f"replaces {path}{where} ({count(whole, 'answer')}{gone})"

    def refusal(self) -> str:
        """Why no file is replaced."""
        sizes = []
        for path, (number, whole) in self.files.items():
            sizes.append(f"{path} has {count(whole, 'answer')}, of which {number:,} are here, too")
        return f"--replace: this file is no whole successor: {'; '.join(sizes)}. Correct the whole table, or give --add"

    def _sentence(self) -> str:
        names = ", ".join(path if Path(path).name == self.path.name else Path(path).name for path in self.files)
        return (
            f"{count(len(self.answers), 'answer')} of {self._whose()} to stimuli that "
            f"were answered in {names}, too; {len(self.equal):,} of these answers are equal to an answer in that file"
        )

    def _whose(self) -> str:
        machines = [name for name in self.people if name.startswith(PUBLISHED)]
        if not machines:
            return count(len(self.people), "person", "people")
        if len(machines) == len(self.people):
            return count(len(machines), "machine")
        return count(len(self.people), "name")

    def question(self) -> str:
        """The refusal that asks what the file is."""
        return (
            f"has {self._sentence()}. If it is the same table again, or a corrected one: --replace takes the other "
            "file out. If they answered twice: --add counts all answers. --drop-equal leaves out only equal answers"
        )

    def tell(self, source: Source, options: ImportOptions) -> None:
        """Add a remark; with ``--drop-equal`` leave the equal answers out of ``source``."""
        text = self._sentence()
        if options.drop_equal:
            source.answers = [answer for place, answer in enumerate(source.answers) if place not in self.equal]
            source.equal_in += [*self.files]
            source.used.add("drop_equal")
            text += ", and are left out" if self.equal else ". --drop-equal leaves out only equal answers"
        else:
            text += ". All answers count"
        source.noticed["answers_that_stand_in_another_file_too"] += len(self.answers)
        source.remarks.append(text)
