"""Checking a stimulus set: every row, every image's header, and that no id stands twice, in one pass over the set.

The set is streamed. Beside what is under way, 9 bytes are held per row (the hash of its id, and whether it is good).
"""

from __future__ import annotations

import hashlib
import os
import time
from array import array
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from threading import Lock

import orjson

from agents.attention.scanpath import misplaced
from agents.errors import ImageError, Problem
from agents.images import Image
from agents.stimuli import AttentionStimulus, Stimulus
from serving.runs.positions import id_key
from serving.runs.row_problems import MODELS
from serving.runs.stimulus_set import Row, read_rows

KEPT = 10_000  # problems that a result holds; more are only counted
BLOCK = 16  # rows that a thread takes at once, so that handing over costs little beside 0.1 ms for a header
REMEMBERED = 4096  # images whose result is kept for further stimuli that show the same one
PROGRESS_ROWS = 1024
FEW = 10_000  # ids; for so many at most, importing numpy would take longer than looking for repeats without it
PICTURE_TASKS = frozenset(task for task, model in MODELS.items() if "image" in model.model_fields)

OnRow = Callable[[Row, bytes | None, int], None]
Known = Callable[[int, int], bytes | None]
_Inspected = tuple[Row, bytes | None, int]


@dataclass(slots=True)
class CheckResult:
    """What a check found.

    ``count`` rows, of them ``invalid`` with problems; ``total_problems`` in all, of which ``problems`` holds the first
    KEPT in the order of the rows; ``duplicates`` rows whose id an earlier row has (they are invalid too); ``tasks``
    counts the rows of each task, as far as the row says one; ``seconds`` taken.
    """

    count: int = 0
    invalid: int = 0
    total_problems: int = 0
    duplicates: int = 0
    problems: list[Problem] = field(default_factory=list)
    tasks: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0


def check_set(
    path: Path | str,
    *,
    task: str | None = None,
    root: Path | str | None = None,
    deep: bool = False,
    hash_images: bool = False,
    threads: int | None = None,
    on_row: OnRow | None = None,
    known: Known | None = None,
    progress: Callable[[int], None] | None = None,
) -> CheckResult:
    """Read and check the whole set at ``path`` (``task`` and ``root`` as for :func:`read_rows`).

    Images are looked at in ``threads`` threads: their headers, or with ``deep`` all their pixels. ``on_row(row,
    content, signature)`` is called for every row in file order, with the problems of its images in ``row.problems``;
    duplicate ids are known only at the end. For a row without problems ``content`` is a 16-byte digest of the
    canonical JSON and, with ``hash_images``, of the SHA-256 of each image's bytes (None for a row with images
    otherwise); ``signature`` is a 64-bit hash of the canonical JSON and of each image's name, size, mtime and inode,
    and 0 for a row without images. If ``known(id_key(id), signature)`` returns a content digest, that is taken and
    the bytes are not read (it is called from several threads). ``progress`` is told now and then how many rows are
    done.

    Raises InputError where there is no set to read.
    """
    began = time.monotonic()
    tally = _Tally(on_row, progress)
    inspector = _Inspector(deep, hash_images, known)
    threads = threads or min(16, 2 * len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 4)
    with closing(_inspected(read_rows(path, task, root=root), inspector, threads)) as inspected:
        for row, content, signature in inspected:
            tally.add(row, content, signature)
    tally.find_duplicates(lambda: read_rows(path, task, root=root))
    tally.result.seconds = time.monotonic() - began
    return tally.result


class _Tally:
    """Adds up rows in file order."""

    def __init__(self, on_row: OnRow | None, progress: Callable[[int], None] | None) -> None:
        self.result = CheckResult()
        self._on_row = on_row
        self._progress = progress
        self._keys = array("Q")  # of the rows that have an id, in order
        self._bad = bytearray()  # beside it: 1 for a row with problems
        self._kept: list[tuple[int, Problem]] = []  # with the number of the row, to be sorted by

    def add(self, row: Row, content: bytes | None, signature: int) -> None:
        result = self.result
        if row.problems:
            result.invalid += 1
            result.total_problems += len(row.problems)
            room = KEPT - len(self._kept)
            self._kept += [(result.count, problem) for problem in row.problems[:room]]
        if row.task is not None:
            result.tasks[row.task] += 1
        if row.id is not None:
            row.key = id_key(row.id)
            self._keys.append(row.key)
            self._bad.append(bool(row.problems))
        result.count += 1
        if self._on_row is not None:
            self._on_row(row, content, signature)
        if self._progress is not None and result.count % PROGRESS_ROWS == 0:
            self._progress(result.count)

    def find_duplicates(self, read_again: Callable[[], Iterator[Row]]) -> None:
        """Add a problem for every row whose id stands in an earlier one, and finish the result."""
        result = self.result
        if self._progress is not None:
            self._progress(result.count)
        later, first = _repeated_among_few(self._keys) if len(self._keys) <= FEW else _repeated(self._keys)
        if later:
            # Equal hashes are as good as equal ids, and proved for all that are named: the set is read once more.
            named = dict(zip(later[:KEPT], first[:KEPT], strict=True))
            different = self._name_duplicates(named, read_again())
            result.duplicates = len(later) - len(different)
            result.total_problems += result.duplicates
            result.invalid += sum(not self._bad[place] for place in later if place not in different)
        self._kept.sort(key=lambda item: item[0])
        result.problems = [problem for _, problem in self._kept[:KEPT]]

    def _name_duplicates(self, named: dict[int, int], rows: Iterator[Row]) -> set[int]:
        """Problems for ``named`` (place -> place of its first, among the rows with an id). Returns the places whose
        id turns out to be another one."""
        firsts = set(named.values())
        seen: dict[int, tuple[str | None, Problem]] = {}
        different = set()
        place = 0
        for number, row in enumerate(rows):
            if row.id is None:
                continue
            here = Problem(row.where, row.line, "id", "")
            if place in named:
                id, earlier = seen[named[place]]
                if id == row.id:
                    again = f"{earlier.where}:{earlier.line}" if earlier.line is not None else earlier.where
                    message = f"duplicate: {orjson.dumps(id).decode()} stands at {again} already"
                    self._kept.append((number, Problem(row.where, row.line, "id", message)))
                else:
                    different.add(place)
            if place in firsts:
                seen[place] = row.id, here
            place += 1
        return different


def _repeated_among_few(keys: Iterable[int]) -> tuple[array[int], array[int]]:
    """What :func:`_repeated` finds, at some 100 bytes a key."""
    later, first = array("q"), array("q")
    known: dict[int, int] = {}
    for place, key in enumerate(keys):
        before = known.setdefault(key, place)
        if before != place:
            later.append(place)
            first.append(before)
    return later, first


def _repeated(keys: array[int]) -> tuple[array[int], array[int]]:
    """The places of 64-bit ``keys`` that stand at an earlier place already, in order, and that first place for each."""
    import numpy as np

    values = np.frombuffer(keys, dtype=np.uint64)
    order = np.argsort(values, kind="stable")
    run = values[order]
    same = np.zeros(len(run), dtype=bool)
    same[1:] = run[1:] == run[:-1]
    later, first = array("q"), array("q")
    if same.any():
        starts = np.flatnonzero(~same)
        firsts = order[np.repeat(starts, np.diff(np.append(starts, len(run))))]
        by_place = np.argsort(order[same])
        later.frombytes(order[same][by_place].astype(np.int64).tobytes())
        first.frombytes(firsts[same][by_place].astype(np.int64).tobytes())
    return later, first


@dataclass(slots=True)
class _Seen:
    """What is known of one image file: what is wrong with it, its state on disk, and the hash of its bytes."""

    problem: str | None
    state: bytes
    sha256: bytes | None
    size: tuple[int, int]


class _Inspector:
    """Looks at the images of rows, from several threads."""

    def __init__(self, deep: bool, hash_images: bool, known: Known | None) -> None:
        self._deep = deep
        self._hash = hash_images
        self._known = known
        self._lock = Lock()
        self._seen: OrderedDict[str, _Seen] = OrderedDict()

    def block(self, rows: list[Row]) -> list[_Inspected]:
        return [self.row(row) for row in rows]

    def row(self, row: Row) -> _Inspected:
        """The row with the problems of its images, its content digest and its signature."""
        if row.stimulus is None or row.canonical is None:
            return row, None, 0
        if row.task not in PICTURE_TASKS:
            return row, _digest(row.canonical), 0
        images = _images(row.stimulus)
        states = [_state(image) for _, image in images]
        signature = int.from_bytes(_digest(row.canonical, *states)[:8], "big") or 1
        content = None
        if self._hash and self._known is not None and row.id is not None:
            content = self._known(id_key(row.id), signature)
        hashes: list[bytes] = []
        sizes: dict[str, tuple[int, int]] = {}
        for (name, image), state in zip(images, states, strict=True):
            seen = self._look(image, state, read=self._hash and content is None)
            if seen.problem is not None:
                message = seen.problem
                if row.line is None:  # of a folder: the row is named after the image
                    message = message.removeprefix(f"{image.name}: ")
                row.problems += (Problem(row.where, row.line, name, message),)
                continue
            sizes[name] = seen.size
            if seen.sha256 is not None:
                hashes.append(seen.sha256)
        if not row.problems and isinstance(row.stimulus, AttentionStimulus):
            wrong = misplaced(row.stimulus, sizes["image"], sizes.get("target_mask"))
            row.problems += () if wrong is None else (Problem(row.where, row.line, *wrong),)
        if row.problems:
            return row, None, 0
        if content is None and len(hashes) == len(images):
            content = _digest(row.canonical, *hashes)
        return row, content, signature

    def _look(self, image: Image, state: bytes, read: bool) -> _Seen:
        name = str(image.path)
        with self._lock:
            seen = self._seen.get(name)
        if seen is not None and seen.state == state and (seen.sha256 is not None or seen.problem or not read):
            return seen
        sha256 = None
        problem = None
        size = 0, 0
        try:
            if self._deep:
                height, width, _ = image.decode().shape
                size = width, height
            else:
                header = Image(image.name, data=image.read()).header() if read else image.header()
                size = header.width, header.height
            if read:
                sha256 = bytes.fromhex(image.sha256)
        except ImageError as error:
            problem = str(error)
        seen = _Seen(problem, state, sha256, size)
        with self._lock:
            self._seen[name] = seen
            if len(self._seen) > REMEMBERED:
                self._seen.popitem(last=False)
        return seen


def _images(stimulus: Stimulus) -> list[tuple[str, Image]]:
    named = ((name, getattr(stimulus, name, None)) for name in ("image", "target_image", "target_mask"))
    return [(name, image) for name, image in named if image is not None]


def _state(image: Image) -> bytes:
    """Name, size, time and inode of the file. Taken before its bytes are read: a file that is changed in between
    will differ from what was noted, and be read again the next time."""
    try:
        found = os.stat(image.path) if image.path is not None else None
    except (OSError, ValueError):
        found = None
    about = None if found is None else [found.st_size, found.st_mtime_ns, found.st_ino]
    return orjson.dumps([image.name, about])


def _digest(*parts: bytes) -> bytes:
    return hashlib.sha256(b"\n".join(parts)).digest()[:16]


def _inspected(rows: Iterator[Row], inspector: _Inspector, threads: int) -> Generator[_Inspected, None, None]:
    """The rows in their order, with their images looked at; a bounded number of blocks is under way at any time.

    Rows that show no image wait for those before them, but no thread is bothered with them.
    """
    waiting: deque[list[Row] | Future[list[_Inspected]]] = deque()
    pool: ThreadPoolExecutor | None = None
    block: list[Row] = []
    pictures = False  # in this block
    try:
        for row in rows:
            shows = row.stimulus is not None and row.task in PICTURE_TASKS
            if not (shows or block or waiting):
                yield inspector.row(row)
                continue
            block.append(row)
            pictures |= shows
            if len(block) < BLOCK:
                continue
            if pictures:
                pool = pool or ThreadPoolExecutor(threads, thread_name_prefix="check")
                waiting.append(pool.submit(inspector.block, block))
            else:
                waiting.append(block)
            block, pictures = [], False
            while len(waiting) > 2 * threads or (waiting and isinstance(waiting[0], list)):
                yield from _finished(waiting.popleft(), inspector)
        while waiting:
            yield from _finished(waiting.popleft(), inspector)
        yield from inspector.block(block)
    finally:
        if pool is not None:
            pool.shutdown(wait=True, cancel_futures=True)


def _finished(block: list[Row] | Future[list[_Inspected]], inspector: _Inspector) -> list[_Inspected]:
    return inspector.block(block) if isinstance(block, list) else block.result()


def describe(result: CheckResult) -> str:
    """One sentence about a result."""
    tasks = ", ".join(f"{name} {count:,}" for name, count in sorted(result.tasks.items()))
    head = f"{_counted(result.count, 'stimulus', 'stimuli')}{f' ({tasks})' if tasks else ''}"
    if not result.total_problems:
        return f"{head}: no problems."
    rows = _counted(result.invalid, "row", "rows")
    return f"{head}: {_counted(result.total_problems, 'problem', 'problems')} in {rows}."


def print_report(result: CheckResult, json: bool = False) -> int:
    """Print a result on standard output, for a person or as JSON. Returns the exit code: 0, or 2 with problems."""
    if json:
        report = {
            "count": result.count,
            "tasks": dict(sorted(result.tasks.items())),
            "invalid": result.invalid,
            "duplicates": result.duplicates,
            "total_problems": result.total_problems,
            "problems": [asdict(problem) for problem in result.problems],
            "seconds": round(result.seconds, 3),
        }
        print(orjson.dumps(report, option=orjson.OPT_INDENT_2).decode())
    else:
        for problem in result.problems:
            print(problem)
        if result.total_problems > len(result.problems):
            print(f"… and {_counted(result.total_problems - len(result.problems), 'more problem', 'more problems')}")
        print(describe(result))
    return 2 if result.total_problems else 0


def _counted(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"
