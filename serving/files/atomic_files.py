"""Files written so that a crash, a full disk or a second writer leaves nothing torn."""

import contextlib
import fcntl
import mmap
import os
import re
import secrets
import shutil
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import orjson

from agents.errors import LockedError, StorageError

TOKEN = 6  # bytes in the name of what takes another file's place


@contextlib.contextmanager
def writing(what: object) -> Iterator[None]:
    """Around a block that writes ``what``: its OSError becomes a StorageError."""
    try:
        yield
    except OSError as error:
        raise StorageError(f"cannot write {what}: {error.strerror or error}") from error


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A new file, which replaces ``path`` when the block ends without an error."""
    remove_abandoned(path)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(TOKEN)}")
    try:
        with writing(path):
            with temporary.open("xb") as file:
                hold(file.fileno())
                yield file
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
            sync_folder(path.parent)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()


def remove_abandoned(path: Path) -> None:
    """Remove what killed processes left beside ``path``."""
    name = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{{2 * TOKEN}}}")
    with contextlib.suppress(OSError):  # whoever writes to this folder next will hear of it
        for item in path.parent.iterdir():
            if name.fullmatch(item.name):
                descriptor = os.open(item, os.O_RDONLY | os.O_NOFOLLOW)
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(item) if item.is_dir() else item.unlink()
                except BlockingIOError:
                    continue
                finally:
                    os.close(descriptor)


def hold(descriptor: int) -> None:
    """Mark an open file or folder as in use, for :func:`remove_abandoned`; the mark ends with the process."""
    with contextlib.suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def sync_folder(path: Path) -> None:
    """Wait until the names in a folder are on disk. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_json(path: Path, value: object) -> None:
    """Replace ``path`` by indented JSON. Raises StorageError."""
    with replacing(path) as file:
        file.write(orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))


def repair_tail(path: Path) -> int:
    """Cut a last line that is torn or does not parse off a JSONL file. Returns the bytes that remain."""
    if not path.exists():
        return 0
    with writing(path):
        file = path.open("r+b")
    with file:
        size = file.seek(0, os.SEEK_END)
        if not size:
            return 0
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            end = content.rfind(b"\n") + 1
            start = content.rfind(b"\n", 0, max(end - 1, 0)) + 1
            try:
                orjson.loads(content[start:end] or b"null")
            except orjson.JSONDecodeError:
                end = start
        if end != size:
            file.truncate(end)
            os.fsync(file.fileno())
        return end


@contextlib.contextmanager
def lock(folder: Path) -> Iterator[Callable[[], None]]:
    """Hold the folder's lock. Raises LockedError, and so does the block's function once the lock is lost."""
    path = folder / "lock"
    with writing(f"to {folder}"):
        file = path.open("a+b", buffering=0)
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            file.truncate(0)
            started = time.strftime("%Y-%m-%d %H:%M:%S")
            file.write(orjson.dumps({"pid": os.getpid(), "host": socket.gethostname(), "started": started}))
        except BlockingIOError:
            file.seek(0)
            raise LockedError(f"{folder} is being written by {_holder(file.read())}; wait for it or end it") from None
        except OSError as error:
            raise StorageError(f"{folder} cannot be locked: {error.strerror}") from error

        def check() -> None:
            try:
                is_same = os.path.samestat(os.stat(path), os.fstat(file.fileno()))
            except OSError:
                is_same = False
            if not is_same:
                raise LockedError(
                    f"{path} was removed during the run, so that another process may write there too; every record "
                    "written so far is safe: see that nobody else writes, and run the same command again to resume"
                )

        try:
            yield check
        finally:
            with contextlib.suppress(OSError):
                file.truncate(0)


def _holder(text: bytes) -> str:
    try:
        holder = orjson.loads(text)
        return f"process {holder['pid']} on {holder['host']} since {holder['started']}"
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return "another process"
