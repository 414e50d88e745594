"""``turinglike run``: carries out the steps of a project's file, one after the other, and leaves out what is done."""

import argparse
import hashlib
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import orjson

from agents.errors import InputError
from serving.files.atomic_files import write_json
from serving.files.terminal import print_warning
from serving.projects.project_file import read_project
from serving.scheduling.interrupts import Interrupted, raised

DONE = "turinglike.done.json"
FAILED_RECORDS = 1


def run_project(file: Path, parser: argparse.ArgumentParser, names: Sequence[str], dry_run: bool) -> int:
    """Carry out the steps of ``file``, or those with these ``names``; returns the exit code.

    ``parser`` is that of the whole command line. Each step is a process of its own in the folder of the file, as if
    its line were typed there. A step is left out if it was done before by the same line, its inputs are what they
    were, and its outputs are there; a step that is named in ``names`` is never left out. A step whose records failed
    in part (exit code 1) does not end the project: the last exit code is then 1. Any other code ends it.

    With ``dry_run`` the lines are printed, and nothing is carried out. Raises InputError before the first step, with
    all that is wrong with the file, and Interrupted."""
    steps = read_project(file, parser)
    known = dict.fromkeys(step.name for step in steps)
    if strangers := [name for name in names if name not in known]:
        raise InputError(f"--steps: {file} has no step {', '.join(strangers)}; it has {', '.join(known)}")
    folder = file.resolve().parent
    done = _read_done(folder / DONE)
    worst = 0
    for step in steps:
        if names and step.name not in names:
            continue
        line = shlex.join(["turinglike", *step.words])
        key = hashlib.sha256(orjson.dumps([line, step.agents], option=orjson.OPT_SORT_KEYS, default=str)).hexdigest()
        if not names and done.get(key) == _state(folder, step.inputs) and _are_there(folder, step.outputs):
            print_warning(f"# done before, and nothing it reads has changed: {line}")
            continue
        print_warning(f"$ {line}")
        if dry_run:
            continue
        read = _state(folder, step.inputs)
        code = _carried_out(step.words, folder)
        if code not in (0, FAILED_RECORDS):
            rest = f"; {file} goes on from there when you run the same command again" if code != 2 else ""
            print_warning(f"turinglike: the step {step.name} ended with exit code {code}{rest}")
            return code
        worst = max(worst, code)
        if code == 0:
            done[key] = read
            write_json(folder / DONE, done)
    return worst


def _read_done(path: Path) -> dict[str, str]:
    """What earlier calls did: the state of a step's inputs by its line. A file that cannot be read tells of nothing, so
    that all steps are carried out again."""
    with suppress(OSError, ValueError):
        done = orjson.loads(path.read_bytes())
        if isinstance(done, dict):
            return done
    return {}


def _are_there(folder: Path, paths: Sequence[Path]) -> bool:
    return all((folder / path).exists() for path in paths)


def _state(folder: Path, paths: Sequence[Path]) -> str:
    """A hash over names, sizes and times of all files that ``paths`` name or contain."""
    state = hashlib.sha256()
    for path in paths:
        for file in _files(folder / path):
            about = file.stat()
            state.update(orjson.dumps([os.path.relpath(file, folder), about.st_size, about.st_mtime_ns]))
    return state.hexdigest()


def _files(path: Path) -> Iterator[Path]:
    """A file itself; the files in a folder; of a run folder its records, which are what others read of it."""
    if (path / "run.json").is_file():
        path = path / "records"
    if path.is_dir():
        yield from sorted(file for file in path.rglob("*") if file.is_file())
    elif path.exists():
        yield path


def _carried_out(words: Sequence[str], folder: Path) -> int:
    """Run a command in ``folder``; returns its exit code. A signal is passed on, and the command's end awaited."""
    ended: Interrupted | None = None
    # -P: a folder `agents` or `serving` in the project is no package of ours.
    command = [sys.executable, "-P", "-m", "serving.cli", *words]
    sys.stdout.flush()
    with raised(), subprocess.Popen(command, cwd=folder) as process:
        while True:
            try:
                code = process.wait()
                break
            except Interrupted as interrupted:
                ended = interrupted
                process.send_signal(interrupted.number)
    if ended is not None:
        raise ended
    return code
