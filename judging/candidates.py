"""The answers of runs that may become trials, as a judge may see them.

A judge sees of an answer what people's answers have as well, in one form for all: colours, labels and words in small
letters, the first three labels, fixations as whole pixels of the picture shown, text without the space around it, the
speakers of a conversation as A (who speaks first) and B. What only machines' answers have (scores, palettes, boxes,
token counts, times) is not shown.

One answer is one trial; of a conversation each speaker of each excerpt is one: the first 3, 6, 9 … messages, as in the
papers (2025 paper, Methods, "Conversation").
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import orjson
from pydantic import ValidationError

from agents.answers import BY_TASK, ConversationAnswer
from agents.attention.scanpath_files import OTHER_IMAGE
from agents.errors import InputError
from agents.images import Image
from agents.stimuli import SHORT, TASKS, Asked, ShownAnswer
from judging.dialogues import Letter, Line, heard, is_person
from serving.runs.run import Run
from serving.runs.stimulus_lookup import StimulusLookup, common_stimuli

Truth = Literal["human", "machine"]
LABELS = 3
PEOPLE_OF_PAIR = "people"  # the column that says which conversation of people a pair has
MORE_THAN_TWO = "more than two speakers"

Record = dict[str, Any]
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Shown:
    """One stimulus as it was shown: its row in the run ``folder`` that has it. ``size`` is its picture's (width,
    height), None where no run has the picture."""

    asked: Asked
    id: str
    row: Row
    folder: Path
    root: Path | None
    size: tuple[int, int] | None

    def image(self, name: str = "image") -> Image | None:
        """The picture that the row calls ``name``, or None. Nothing is read yet."""
        given = self.row.get(name)
        if self.root is None or not isinstance(given, str):
            return None
        return Image(given, root=self.root)


@dataclass(frozen=True, slots=True)
class Candidate:
    """One answer, or one speaker of one excerpt of a conversation, that may become a trial.

    ``agent`` is who answered, for a speaker that speaker; ``record`` names the record: run, agent, sample. ``length``
    is the number of messages of an excerpt, ``delays`` the seconds before each. ``is_catch``: a catch trial, a
    machine's answer by design, or (``is_swapped``) a scanpath on another picture, whose truth is who looked. A pair has
    a conversation ``beside``; its ``length`` is in turns that are shown, and
    ``turns`` are those of the machine's conversation with what it wrote itself. ``columns``, by which scores may be
    told, are known beside those of the stimulus.
    """

    shown: Shown
    agent: str
    truth: Truth
    is_catch: bool
    record: tuple[str, str, int]
    answer: ShownAnswer
    speaker: Letter | None = None
    length: int | None = None
    delays: Sequence[float | None] = ()
    beside: Candidate | None = None
    turns: int | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    is_swapped: bool = False

    def known_by(self) -> set[str]:
        """What a judge knows again who sees it twice: its stimulus; of a pair also the people's conversation, which
        thereby shows that it is theirs."""
        return {self.shown.id, *(value for name, value in self.columns.items() if name == PEOPLE_OF_PAIR)}

    def said(self) -> bytes:
        """What was said, small differences in writing apart: equal for answers that a judge takes for the same."""
        plain = self.answer.model_dump(exclude_none=True)
        if "text" in plain:
            plain["text"] = " ".join(str(plain["text"]).casefold().split()).rstrip(".")
        beside = None if self.beside is None else self.beside.answer.model_dump(exclude_none=True)
        return orjson.dumps([self.shown.asked, self.shown.id, self.speaker, plain, *([beside] if beside else [])])


@dataclass(slots=True)
class Candidates:
    """What the runs hold, and what was passed over, by why; ``common`` says how many stimuli stand in several runs."""

    found: list[Candidate] = field(default_factory=list)
    passed_over: Counter[str] = field(default_factory=Counter)
    common: list[str] = field(default_factory=list)


def read_candidates(
    runs: Sequence[Path], people: Sequence[Path], tasks: Iterable[str], lengths: Sequence[int]
) -> Candidates:
    """The candidates among the answers of :func:`read_answered`, which says what it raises."""
    candidates = Candidates()
    for record, shown in read_answered(runs, people, tasks, candidates.passed_over, candidates.common):
        candidates.found.extend(_candidates(record, shown, lengths, candidates.passed_over))
    return candidates


def read_answered(
    runs: Sequence[Path],
    people: Sequence[Path],
    tasks: Iterable[str],
    passed_over: Counter[str],
    common: list[str] | None = None,
) -> Iterator[tuple[Record, Shown]]:
    """The answers in all ``runs``, and people's in ``people``, with what each is about. Raises InputError for what is
    no run folder.

    The last record of a key counts; failed and rejected answers are passed over. Stimuli of several folders meet by the
    rule of :class:`serving.runs.stimulus_lookup.StimulusLookup`; ``common`` takes sentences on how many do. Raises
    InputError where two folders have the same answers.
    """
    wanted = set(tasks)
    seen: set[bytes] = set()
    folders = [Run(path) for path in runs]
    whole = {path.resolve() for path in runs}  # people's answers are among them
    of_people = [Run(path) for path in people if path.resolve() not in whole]
    every = [*folders, *of_people]
    about: list[dict[Hashable, str]] = [{} for _ in every]
    stimuli, known = StimulusLookup(*every), dict[tuple[str, str], Shown]()
    for folder, names in zip(every, about, strict=True):
        for name in [*folder.agents(), *folder.imports()]:
            for record in folder.latest(name):
                if record["task"] not in wanted or (folder in of_people and record["kind"] != "human"):
                    continue
                if (digest := _identity(record)) in seen:
                    raise InputError(f"answers of {record['agent']} stand in {folder.path} and in an earlier run")
                seen.add(digest)
                if record["status"] != "ok":
                    passed_over[str(record["status"])] += 1
                    continue
                shown = _shown(record, every, stimuli, known)
                names.setdefault((shown.asked, shown.id), record["stimulus"])
                yield record, shown
    if common is not None and len(every) > 1:
        common += common_stimuli([str(folder.path) for folder in every], about)
        common += stimuli.differing()


def _identity(record: Record) -> bytes:
    """Of one answer, wherever its record stands."""
    source = (record["provenance"] or {}).get("digest")
    names = ("task", "agent", "stimulus", "sample", "seed", "created", "raw")
    return hashlib.blake2b(orjson.dumps([source, *(record[name] for name in names)]), digest_size=16).digest()


def _shown(
    record: Record, folders: Sequence[Run], stimuli: StimulusLookup, known: dict[tuple[str, str], Shown]
) -> Shown:
    asked, name = record["task"], record["stimulus"]
    if (shown := known.get((asked, name))) is None:
        if (found := stimuli.find(asked, name)) is None:
            # imported answers know a cue by itself, and a picture by its file's name alone
            row = {"id": name, "task": asked, **({"cue": name} if asked == "word_association" else {})}
            shown = Shown(asked, name, row, folders[0].path, None, None)
        else:
            number, row = found
            shown = known.get((asked, row["id"])) or _with_picture(asked, row, folders[number])
            known[asked, row["id"]] = shown
        known[asked, name] = shown
    return shown


def _with_picture(asked: Asked, row: Row, folder: Run) -> Shown:
    root = folder.root or folder.path
    shown = Shown(asked, row["id"], row, folder.path, root, None)
    image = shown.image()
    if image is None:
        return shown
    header = image.header()
    return Shown(asked, row["id"], row, folder.path, root, (header.width, header.height))


def _candidates(record: Record, shown: Shown, lengths: Sequence[int], passed_over: Counter[str]) -> Iterator[Candidate]:
    key = (record["run"], record["agent"], record["sample"])
    is_catch = record["kind"] == "control"
    with naming(record):
        answer: Any = BY_TASK[record["task"]].model_validate(record["answer"])
        if isinstance(answer, ConversationAnswer):
            yield from _speakers(answer, shown, key, is_catch, lengths, passed_over)
            return
        seen = _seen(shown, answer)
    if seen is None:
        passed_over["empty"] += 1
        return
    truth: Truth = "human" if record["kind"] == "human" else "machine"
    is_swapped = is_catch and record["answer"].get("selection") == OTHER_IMAGE
    if is_swapped:
        whose = record["raw"].get("whose") if isinstance(record["raw"], dict) else None
        if whose not in ("human", "machine"):
            passed_over["swapped scanpaths that do not say who looked; generate them again"] += 1
            return
        truth = whose
    yield Candidate(shown, record["agent"], truth, is_catch, key, seen, is_swapped=is_swapped)


@contextmanager
def naming(record: Record) -> Iterator[None]:
    """Raise InputError that names the ``record`` for an answer that is none."""
    try:
        yield
    except ValidationError as error:
        reason = error.errors()[0]["msg"]
        raise InputError(f"{record['agent']}, stimulus {record['stimulus']!r}: answer: {reason}") from None


def _seen(shown: Shown, answer: Any) -> ShownAnswer | None:
    """The part of an answer that a judge sees; None if there is nothing to see."""
    match shown.asked:
        case "color_estimation":
            word = answer.color.strip().lower()
            return ShownAnswer(color=word) if word else None
        case "object_detection":
            labels = [label for one in answer.labels if (label := one.strip().lower())][:LABELS]
            return ShownAnswer(labels=labels) if labels else None
        case "image_captioning":
            text = " ".join(answer.text.split())
            return ShownAnswer(text=text) if text else None
        case "word_association":
            word = answer.word.strip().lower()
            return ShownAnswer(word=word) if word else None
    width, height = shown.size or answer.frame
    across, down = width / answer.frame[0], height / answer.frame[1]
    points = [(float(round(x * across)), float(round(y * down))) for x, y in answer.fixations]
    return ShownAnswer(fixations=points, frame=(width, height)) if points else None


def _speakers(
    answer: ConversationAnswer,
    shown: Shown,
    key: tuple[str, str, int],
    is_catch: bool,
    lengths: Sequence[int],
    passed_over: Counter[str],
) -> Iterator[Candidate]:
    """Both speakers of every excerpt. The messages that the stimulus gives, its history and its opener, are shown and
    nobody is judged by them: a speaker who says nothing else in an excerpt is no trial of it."""
    lines = heard(answer, shown.row)
    if lines is None:
        passed_over[MORE_THAN_TWO] += 1
        return
    some = False
    for length in lengths:
        if length > len(lines):
            break
        excerpt = lines[:length]
        for letter in dict.fromkeys(line.speaker for line in lines):
            agent = next((line.agent for line in excerpt if line.speaker == letter and line.agent), None)
            if agent is not None:
                some = True
                truth: Truth = "human" if is_person(agent) else "machine"
                delays = [line.delay for line in excerpt]
                yield Candidate(shown, agent, truth, is_catch, key, as_shown(excerpt), letter, length, delays=delays)
    if not some:
        passed_over["shorter than the shortest excerpt"] += 1


def as_shown(lines: Sequence[Line]) -> ShownAnswer:
    """The messages as a judge sees them, each on one line, whoever wrote it."""
    return ShownAnswer.model_validate(
        {"messages": [{"speaker": one.speaker, "text": " ".join(one.text.split())} for one in lines]}
    )


def tasks_given(given: str | None) -> tuple[Asked, ...]:
    """The tasks of ``--task``, parted by commas; all of them if it is not given. Raises InputError."""
    if given is None:
        return TASKS
    names = [SHORT.get(name.strip(), name.strip()) for name in given.split(",") if name.strip()]
    unknown = [name for name in names if name not in TASKS]
    if unknown or not names:
        raise InputError(
            f"--task: {', '.join(unknown) or 'empty'}: must be among {', '.join(SHORT)}, or their full names"
        )
    return tuple(task for task in TASKS if task in names)
