"""Where an export or an import may write."""

import os
import secrets
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from agents.errors import InputError, Problem
from serving.files.atomic_files import TOKEN, hold, remove_abandoned, sync_folder, writing
from serving.files.run_folder_names import OWN

MODIFIED = 946_684_800  # 2000-01-01, for every file that judges see: a time that archives of all kinds can hold


def refuse_own_files(paths: Iterable[Path], run: Path) -> None:
    """Raise InputError for files of a run folder and for folders around ``run``."""
    for path in paths:
        real = path.resolve()
        if run.resolve().is_relative_to(real):
            raise InputError(f"{path} is where the run itself is; give another place")
        for folder in real.parents:
            if real.relative_to(folder).parts[0] in OWN and (folder / "run.json").is_file():
                raise InputError(f"{path} is where the run {folder} keeps its own files; give another place")


def refuse_existing(paths: Iterable[Path], *, force: bool) -> None:
    """Raise InputError for what is no plain file, and without ``force`` for existing files."""
    existing = [path for path in paths if os.path.lexists(path)]
    for path in existing:
        if os.path.islink(path) or not os.path.isfile(path):
            what = "a folder" if os.path.isdir(path) else "not a plain file"
            if os.path.islink(path):
                what = "a link"
            raise InputError(f"{path} is {what} and is not replaced; give another name")
    if existing and not force:
        problems = [Problem(str(path), None, None, "already exists") for path in existing]
        raise InputError(
            f"{existing[0]} already exists; give another name, or replace it with force (--force)", problems
        )


def make_parent(path: Path) -> None:
    """Make the folder that ``path`` is to lie in, and those above it. Raises StorageError."""
    with writing(f"to {path.parent}"):
        path.parent.mkdir(parents=True, exist_ok=True)


def check_new_folder(path: Path, *, marker: str, force: bool) -> None:
    """Raises InputError for a ``path`` that :func:`new_folder` would not replace."""
    if os.path.lexists(path):
        if not path.is_dir() or path.is_symlink():
            raise InputError(f"{path} exists and is not a folder; give another name")
        if any(path.iterdir()):
            if not (path / marker).is_file():
                raise InputError(f"{path} exists and is none that this command has made; give another name")
            if not force:
                raise InputError(f"{path} already exists; give another name, or replace it with force (--force)")


@contextmanager
def new_folder(path: Path, *, marker: str, force: bool) -> Iterator[Path]:
    """A folder to fill, which replaces ``path`` when the block ends without an exception. With ``force`` it replaces
    a folder that is empty or holds the file ``marker``. Raises InputError and StorageError."""
    check_new_folder(path, marker=marker, force=force)
    make_parent(path)
    remove_abandoned(path)
    temporary = path.parent / f".{path.name}.{secrets.token_hex(TOKEN)}"
    replaced = path.parent / f".{path.name}.{secrets.token_hex(TOKEN)}"
    with writing(path):
        temporary.mkdir()
        descriptor = os.open(temporary, os.O_RDONLY)
    try:
        with writing(path):
            hold(descriptor)
            yield temporary
            for folder in [temporary, *(item for item in temporary.rglob("*") if item.is_dir())]:
                sync_folder(folder)
            if path.is_dir():
                path.replace(replaced)
            try:
                temporary.replace(path)
            except OSError:
                if replaced.is_dir():
                    replaced.replace(path)
                raise
            sync_folder(path.parent)
    finally:
        os.close(descriptor)
        shutil.rmtree(temporary, ignore_errors=True)
        shutil.rmtree(replaced, ignore_errors=True)
