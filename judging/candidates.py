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
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import orjson
from pydantic import ValidationError

from agents.answers import BY_TASK, ConversationAnswer
from agents.errors import InputError
from agents.images import Image
from agents.stimuli import TASKS, Asked, ShownAnswer
from agents.tasks import SHORT
from serving.conversations.scenario import speaker_name
from serving.export.selection import StimulusLookup
from serving.runs.reader import RunFolder

Truth = Literal["human", "machine"]
LABELS = 3
PERSON = "human"
KINDS = {"human": "human", "machine": "machine", "published": "machine", "control": "machine"}

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
    is the number of messages of an excerpt. ``is_catch``: a catch trial, a machine's answer by design.
    """

    shown: Shown
    agent: str
    truth: Truth
    is_catch: bool
    record: tuple[str, str, int]
    answer: ShownAnswer
    speaker: Literal["A", "B"] | None = None
    length: int | None = None

    def said(self) -> bytes:
        """What was said, small differences in writing apart: equal for answers that a judge takes for the same."""
        plain = self.answer.model_dump(exclude_none=True)
        if "text" in plain:
            plain["text"] = " ".join(str(plain["text"]).casefold().split()).rstrip(".")
        return orjson.dumps([self.shown.asked, self.shown.id, self.speaker, plain])


@dataclass(slots=True)
class Candidates:
    """What the runs hold, and what was passed over, by why."""

    found: list[Candidate] = field(default_factory=list)
    passed_over: Counter[str] = field(default_factory=Counter)


def read_candidates(
    runs: Sequence[Path], people: Sequence[Path], tasks: Iterable[str], lengths: Sequence[int]
) -> Candidates:
    """The candidates of all ``runs``, and people's of ``people``. Raises InputError for what is no run folder.

    The last record of a key counts; failed and rejected answers are passed over. A stimulus is looked up in all
    folders, by its id, or for imported answers by its ``benchmark_id``, cue or picture's file name. Raises InputError
    where two folders have the same answers.
    """
    wanted = set(tasks)
    seen: set[bytes] = set()
    folders = [RunFolder(path) for path in runs]
    whole = {path.resolve() for path in runs}  # people's answers are among them
    of_people = [RunFolder(path) for path in people if path.resolve() not in whole]
    candidates = Candidates()
    with ExitStack() as stack:
        sets = [(folder, stack.enter_context(StimulusLookup(folder))) for folder in [*folders, *of_people]]
        known: dict[tuple[str, str], Shown] = {}
        for folder in [*folders, *of_people]:
            for name in [*folder.agents(), *folder.imports()]:
                for record in folder.latest(name):
                    if record["task"] not in wanted or (folder in of_people and record["kind"] != "human"):
                        continue
                    if (digest := _identity(record)) in seen:
                        raise InputError(f"answers of {record['agent']} stand in {folder.path} and in an earlier run")
                    seen.add(digest)
                    if record["status"] != "ok":
                        candidates.passed_over[str(record["status"])] += 1
                        continue
                    shown = _shown(record, sets, known)
                    candidates.found.extend(_candidates(record, shown, lengths, candidates.passed_over))
    return candidates


def _identity(record: Record) -> bytes:
    """Of one answer, wherever its record stands."""
    source = (record["provenance"] or {}).get("digest")
    names = ("task", "agent", "stimulus", "sample", "seed", "created", "raw")
    return hashlib.blake2b(orjson.dumps([source, *(record[name] for name in names)]), digest_size=16).digest()


def _shown(
    record: Record, sets: Sequence[tuple[RunFolder, StimulusLookup]], known: dict[tuple[str, str], Shown]
) -> Shown:
    asked, name = record["task"], record["stimulus"]
    if (found := known.get((asked, name))) is None:
        for folder, lookup in sets:
            row = lookup.get({**record, "kind": "human"})  # by benchmark_id as well, whoever answered
            if row is not None:
                found = known.get((asked, row["id"])) or _with_picture(asked, row, folder)
                known[asked, row["id"]] = found
                break
        else:  # imported answers know a cue by itself, and a picture by its file's name alone
            row = {"id": name, "task": asked, **({"cue": name} if asked == "word_association" else {})}
            found = Shown(asked, name, row, sets[0][0].path, None, None)
        known[asked, name] = found
    return found


def _with_picture(asked: Asked, row: Row, folder: RunFolder) -> Shown:
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
    try:
        answer: Any = BY_TASK[record["task"]].model_validate(record["answer"])
        if isinstance(answer, ConversationAnswer):
            yield from _speakers(answer, shown, key, is_catch, lengths, passed_over)
            return
        seen = _seen(shown, answer)
    except ValidationError as error:
        reason = error.errors()[0]["msg"]
        raise InputError(f"{record['agent']}, stimulus {record['stimulus']!r}: answer: {reason}") from None
    if seen is None:
        passed_over["empty"] += 1
        return
    truth: Truth = "human" if record["kind"] == "human" else "machine"
    yield Candidate(shown, record["agent"], truth, is_catch, key, seen)


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
    names = shown.row.get("names")
    said = [(speaker_name(one["speaker"], names), one["text"], "") for one in shown.row.get("history") or ()]
    said += [(one.speaker, one.text, "" if one.finish == "opener" else one.agent) for one in answer.messages]
    letters: dict[str, Literal["A", "B"]] = {}
    for speaker, _, _ in said:
        if speaker not in letters:
            if len(letters) == 2:
                passed_over["more than two speakers"] += 1
                return
            letters[speaker] = "B" if letters else "A"
    messages = [{"speaker": letters[speaker], "text": text} for speaker, text, _ in said]
    some = False
    for length in lengths:
        if length > len(said):
            break
        excerpt = ShownAnswer.model_validate({"messages": messages[:length]})
        for speaker, letter in letters.items():
            agent = next((by for name, _, by in said[:length] if name == speaker and by), None)
            if agent is not None:
                some = True
                truth: Truth = "human" if agent.partition(":")[0] == PERSON else "machine"
                yield Candidate(shown, agent, truth, is_catch, key, excerpt, letter, length)
    if not some:
        passed_over["shorter than the shortest excerpt"] += 1


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
