"""Checking a stimulus set in a single pass.

A run's set is checked by :func:`check_set`, which keeps it in the run folder. The command ``check`` keeps nothing
(:func:`check_unasked`), and what a Python program asks stays in memory
(:mod:`serving.sets.checked_stimuli`).
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter, deque
from collections.abc import Callable, Container, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from agents.attention.scanpath import misplaced
from agents.errors import IdentityError, ImageError, InputError, Problem
from agents.images import Image
from agents.stimuli import AttentionStimulus
from serving.files.atomic_files import replacing, writing
from serving.files.terminal import print_json
from serving.files.words import count
from serving.sets.kinds import Kind, kind_of
from serving.sets.set_rows import OTHER_TASK, PICTURE_TASKS, Choose, Row, only
from serving.sets.stimulus_index import UNREAD, Index, StimulusKey, carry_over, load_index, save_index, sha256_of
from serving.sets.stimulus_row import StimulusRow
from serving.sets.stimulus_set import read_rows

NO_TASK_YET = "of no task yet"
KEPT = 10_000  # problems that a result holds; more are only counted
BLOCK = 16  # rows that a thread takes at once, so that handing over costs little beside 0.1 ms for a header

Inspected = tuple[Row, bytes | None, int]
OnRow = Callable[[Row, bytes | None, int], None]
KnownContent = Callable[[str, str, int], bytes | None]


@dataclass(slots=True)
class CheckResult:
    """What a check found, counted over all rows."""

    count: int = 0
    """Rows, with invalid ones; a row of two tasks counts twice."""
    invalid: int = 0
    """Rows that have at least one problem."""
    total_problems: int = 0
    """Problems of all rows together."""
    duplicates: int = 0
    """Rows that have the id of an earlier row."""
    problems: list[Problem] = field(default_factory=list)
    """The first ``KEPT`` problems, in the order of the rows."""
    tasks: Counter[str] = field(default_factory=Counter)
    """Rows by task, invalid ones too where their task can be read."""


def check_rows(
    rows: Iterator[Row],
    *,
    deep: bool = False,
    hash_images: bool = False,
    on_row: OnRow = lambda row, content, signature: None,
    known: KnownContent = lambda task, id, signature: None,
) -> CheckResult:
    """Check rows in threads: the headers of images, or with ``deep`` all pixels.

    ``on_row(row, content, signature)`` gets rows but duplicates. ``content`` is a 16-byte digest of the JSON and, with
    ``hash_images``, of the images. Threads call ``known(task, id, signature)``; if it has the digest, no image is read.
    ``signature`` is a 64-bit hash of the JSON and of each image's name, size, mtime and inode, 0 without images."""
    result = CheckResult()
    lines: dict[str, int] = {}  # the first of each id; a line of several tasks has an id once
    with closing(_inspected(rows, _Inspector(deep, hash_images, known))) as inspected:
        for row, content, signature in inspected:
            problems = [*row.problems]
            if row.id is not None and row.line is not None and lines.setdefault(row.id, row.line) != row.line:
                result.duplicates += 1
                message = f"a duplicate of line {lines[row.id]}; give each row an id of its own"
                problems.append(Problem(row.where, row.line, "id", message))
            else:
                on_row(row, content, signature)
            result.count += 1
            if problems:
                result.invalid += 1
                result.total_problems += len(problems)
                result.problems += problems[: KEPT - len(result.problems)]
            if row.task is not None:
                result.tasks[row.task] += 1
    return result


@dataclass(slots=True)
class CheckedSet:
    """The set of a run, whose checked rows stand in the run folder."""

    path: Path
    """The file ``stimuli.jsonl``: a row in canonical JSON on each line. Invalid rows stand there as they came."""
    root: Path
    """The folder in which the paths of pictures begin."""
    kinds: dict[StimulusKey, Kind] = field(default_factory=dict)
    """The kinds of the rows, in their order."""
    invalid: dict[int, tuple[str, str]] = field(default_factory=dict)
    """Why rows cannot be asked (code, message), by their positions. They stand in the set, and have failed records."""
    skipped: int = 0
    """Rows that are left out: without a readable id or task, or with an id that stands earlier."""
    sha256: str = ""
    """A hash over all that the set shows, as :func:`serving.sets.stimulus_index.sha256_of`."""

    def rows(self, positions: Container[int] | None = None) -> Iterator[StimulusRow]:
        """The rows at these ``positions`` (None: all) as they are asked, invalid ones among them. Only here does a line
        meet its position, id and kind."""
        root = str(self.root)
        with self.path.open("rb") as file:
            for position, (((_, id), kind), line) in enumerate(zip(self.kinds.items(), file, strict=True)):
                if positions is None or position in positions:
                    yield StimulusRow(id, kind, line[:-1], position, root)


def check_set(
    source: Path,
    folder: Path,
    *,
    task: str | None,
    choose: Choose,
    skip_invalid: bool,
    earlier: Mapping[str, Any] | None,
) -> CheckedSet:
    """Check the set ``source``, and keep its rows and its index in a run's ``folder``.

    ``task`` and ``choose`` are for rows that name no task, as in :func:`serving.sets.stimulus_set.read_rows`.
    ``earlier`` is what ``run.json`` says of the set, None for a new run. Pictures that are as the run's index says are
    not read again. Raises InputError with every problem, unless ``skip_invalid``; IdentityError where the folder was
    made from another set; StorageError."""
    resolved = source.resolve()
    checked = CheckedSet(folder / "stimuli.jsonl", resolved if source.is_dir() else resolved.parent)
    known = None if earlier is None else load_index(folder)
    new = folder / "stimuli.new"
    try:
        with replacing(new) as file:
            rows = read_rows(source, task, choose=choose)
            result, index = _write_rows(rows, file, checked, known or {})
            if result.total_problems and not skip_invalid:
                raise _refusal(source, result)
        if known is not None:
            carry_over(folder, known, index)
        elif earlier is not None and sha256_of(index) != earlier.get("sha256"):
            raise IdentityError(f"{folder} was made from another set, and has no index of it; give the set as it was")
        with writing(f"to {folder}"):
            new.replace(checked.path)
    finally:
        new.unlink(missing_ok=True)
    save_index(folder, index)
    checked.sha256 = sha256_of(index)
    return checked


def _write_rows(rows: Iterator[Row], file: BinaryIO, checked: CheckedSet, known: Index) -> tuple[CheckResult, Index]:
    """Check ``rows``, write them to ``file``, and note in ``checked`` what they are."""
    index: Index = {}

    def add(row: Row, content: bytes | None, signature: int) -> None:
        if row.id is None or row.task is None:
            checked.skipped += 1
            return
        key = row.task, row.id
        if row.problems:
            reasons = "; ".join(str(problem) for problem in row.problems[:3])
            checked.invalid[len(index)] = ("invalid_stimulus", reasons)
        index[key] = (UNREAD if content is None else content[:8].hex(), signature)
        checked.kinds[key] = kind_of(orjson.loads(row.raw) if row.stimulus is None else vars(row.stimulus))
        file.write((row.canonical or row.raw) + b"\n")

    def known_content(task: str, id: str, signature: int) -> bytes | None:
        content, before = known.get((task, id), (UNREAD, 0))
        return bytes.fromhex(content) if content != UNREAD and before == signature else None

    result = check_rows(rows, hash_images=True, on_row=add, known=known_content)
    checked.skipped += result.duplicates
    return result, index


def _refusal(source: Path, result: CheckResult) -> InputError:
    problems = [*dict.fromkeys(result.problems)]  # a picture's are the same in every task
    total = result.total_problems - len(result.problems) + len(problems)
    if all(problem.field == "task" and OTHER_TASK in problem.message for problem in problems):
        others = f"{count(total, 'row')} with another task than the one that is asked"
        return InputError(f"{source}: {others}: leave out task (--task), which is for rows that name none")
    found = count(total, "problem")
    return InputError(
        f"{source}: {found}; nothing was started (skip_invalid, --skip-invalid, goes on without them)", problems
    )


def check_unasked(path: Path, *, tasks: Sequence[str], deep: bool) -> CheckResult:
    """Check a set without agents; ``tasks`` are those of rows that name none. Without any, rows that fit several are
    checked for the first of them, and counted under :data:`NO_TASK_YET`."""
    if tasks:
        return check_rows(read_rows(path, tasks[0] if len(tasks) == 1 else None, choose=only(*tasks)), deep=deep)
    first_tasks = set[str]()

    def choose(tasks: Sequence[str]) -> Mapping[str, bool]:
        first_tasks.update(PICTURE_TASKS.intersection(tasks[:1]))
        return dict.fromkeys(tasks[:1], False)

    result = check_rows(read_rows(path, choose=choose), deep=deep)
    if first_tasks and len(result.tasks) == 1:
        result.tasks = Counter({NO_TASK_YET: result.tasks.total()})
    return result


def _inspected(rows: Iterator[Row], inspector: _Inspector) -> Generator[Inspected, None, None]:
    threads = min(16, 2 * (os.cpu_count() or 2))
    under_way: deque[Future[list[Inspected]]] = deque()
    with ThreadPoolExecutor(threads, thread_name_prefix="check") as pool:
        while block := list(islice(rows, BLOCK)):
            if not under_way and not any(row.task in PICTURE_TASKS for row in block):
                yield from map(inspector.look_at, block)  # nothing to wait for: a thread would take as long as the rows
                continue
            under_way.append(pool.submit(lambda block: [*map(inspector.look_at, block)], block))
            if len(under_way) > 2 * threads:
                yield from under_way.popleft().result()
        while under_way:
            yield from under_way.popleft().result()


@dataclass(frozen=True, slots=True)
class _Inspector:
    deep: bool
    hash: bool
    known: KnownContent

    def look_at(self, row: Row) -> Inspected:
        if row.stimulus is None or row.canonical is None:
            return row, None, 0
        if row.task not in PICTURE_TASKS:
            return row, _digest(row.canonical), 0
        images = row.stimulus.images_by_field()
        # The state of a file is taken before its bytes are read: a file that is changed in between will differ from
        # what was noted, and be read again the next time.
        states = [_state(image) for image in images.values()]
        signature = int.from_bytes(_digest(row.canonical, *states)[:8], "big") or 1
        content = self.known(row.stimulus.task, row.stimulus.id, signature) if self.hash else None
        hashes: list[bytes] = []
        sizes: dict[str, tuple[int, int]] = {}
        for name, image in images.items():
            try:
                sizes[name], sha256 = self._look(image, read=self.hash and content is None)
            except ImageError as error:
                # A row of a folder is named after its image already.
                message = str(error) if row.line is not None else str(error).removeprefix(f"{image.name}: ")
                row.problems += (Problem(row.where, row.line, name, message),)
            else:
                if sha256 is not None:
                    hashes.append(sha256)
        if not row.problems and isinstance(row.stimulus, AttentionStimulus):
            wrong = misplaced(row.stimulus, sizes["image"], sizes.get("target_mask"))
            if wrong is not None:
                row.problems += (Problem(row.where, row.line, *wrong),)
        if row.problems:
            return row, None, 0
        if content is None and len(hashes) == len(images):
            content = _digest(row.canonical, *hashes)
        return row, content, signature

    def _look(self, image: Image, read: bool) -> tuple[tuple[int, int], bytes | None]:
        """Width and height, and with ``read`` the SHA-256 of the bytes. Raises ImageError."""
        if self.deep:
            height, width, _ = image.decode().shape
        else:
            header = Image(image.name, data=image.read()).header() if read else image.header()
            height = header.height
            width = header.width
        return (width, height), bytes.fromhex(image.sha256) if read else None


def _state(image: Image) -> bytes:
    try:
        state = os.stat(image.path) if image.path is not None else None
    except (OSError, ValueError):
        state = None
    return orjson.dumps([image.name, None if state is None else [state.st_size, state.st_mtime_ns, state.st_ino]])


def _digest(*parts: bytes) -> bytes:
    return hashlib.sha256(b"\n".join(parts)).digest()[:16]


def print_report(result: CheckResult, json: bool = False) -> int:
    """Print a result. Returns the exit code: 0, or 2 with problems."""
    if json:
        print_json(asdict(result) | {"tasks": dict(sorted(result.tasks.items()))})
    else:
        for problem in result.problems:
            print(problem)
        if result.total_problems > len(result.problems):
            print(f"… and {count(result.total_problems - len(result.problems), 'more problem')}")
        tasks = ", ".join(f"{name} {number:,}" for name, number in sorted(result.tasks.items())) or "no task"
        problems = f"{count(result.total_problems, 'problem')} in {count(result.invalid, 'row')}"
        verdict = problems if result.total_problems else "no problems"
        print(f"{count(result.count, 'stimulus', 'stimuli')} ({tasks}): {verdict}.")
    return 2 if result.total_problems else 0
