"""``turinglike run``: carries out the steps of a project's file, one after the other, and leaves out what is done."""

import argparse
import hashlib
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import orjson

from agents.errors import InputError
from serving.files.atomic_files import write_json
from serving.files.terminal import print_warning
from serving.projects.project_file import read_project
from serving.scheduling.interrupts import Interrupted, raised

DONE = "turinglike.done.json"
BEGUN = "begun: "
"""Stands in :data:`DONE` before the line of a step whose outputs were not there when it began, and which has not ended.
If the process is killed (power, kill -9), the step may have written its folder, or a part of the files beside it. The
same line would then refuse what it made itself. With this mark it is carried out again with ``--force``."""
FAILED_RECORDS = 1
STEP = """\
import sys
from serving.scheduling.interrupts import end_with
end_with(int(sys.argv.pop(1)))
from serving.cli import command
sys.exit(command())
"""
"""What a step's process runs. It ends with this one: whoever kills `turinglike run` by SIGKILL means the step, too. A
step that went on alone would hold its folder, and the same command, typed again, would be refused."""
PASSING = ("run", "timing", "worker", "created")
"""Keys of a record that say nothing of the answer."""


def run_project(file: Path, parser: argparse.ArgumentParser, names: Sequence[str], dry_run: bool) -> int:
    """Carry out the steps of ``file``, or those with these ``names``; returns the exit code.

    ``parser`` is that of the whole command line. Each step is a process of its own in the folder of the file, as if
    its line were typed there. Commands that find out by themselves what is left to do, as ``generate``, are repeated
    each time. Others, which would refuse what they have made, are left out if the same line has ended well before, its
    inputs say what they said, and its outputs are there; but not if they are among ``names``.

    A step whose records failed in part (exit code 1) does not end the project: the last exit code is then 1. Any other
    code ends it. With ``dry_run`` the lines are printed, and nothing is carried out. Raises InputError before the first
    step, with all that is wrong with the file, and Interrupted."""
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
        was_done = not (step.repeats or names) and line in done and _are_there(folder, step.outputs)
        if was_done and done[line] == _content(folder, step.inputs):
            print_warning(f"# done before, from the same files: {line}")
            continue
        print_warning(f"$ {line}")
        if dry_run:
            continue
        words = list(step.words)
        read = ""
        if not step.repeats:
            read = _content(folder, step.inputs)
            if read in (done.get(BEGUN + line), done.get(line)) and "--force" in step.flags:
                words.append("--force")  # what is left there is of this same line: killed, or lost in part
            elif not _are_any_there(folder, step.outputs):
                done[BEGUN + line] = read
                write_json(folder / DONE, done)
        code = _carried_out(words, folder)
        if done.pop(BEGUN + line, None) is not None and code != 0:
            write_json(folder / DONE, done)  # the command ended by itself, and has tidied up
        if code not in (0, FAILED_RECORDS):
            rest = "; the same command goes on with it" if code != 2 else ""
            print_warning(f"turinglike: the step {step.name} ended with exit code {code}{rest}")
            return code
        worst = max(worst, code)
        if code == 0 and not step.repeats:
            done[line] = read
            write_json(folder / DONE, done)
    return worst


def _read_done(path: Path) -> dict[str, str]:
    """What earlier calls did: a hash of what a step read, by its line. A file that cannot be read tells of nothing."""
    with suppress(OSError, ValueError):
        done = orjson.loads(path.read_bytes())
        if isinstance(done, dict):
            return done
    return {}


def _are_there(folder: Path, paths: Sequence[Path]) -> bool:
    return all((folder / path).exists() for path in paths)


def _are_any_there(folder: Path, paths: Sequence[Path]) -> bool:
    return any((folder / path).exists() for path in paths)


def _content(folder: Path, paths: Sequence[Path]) -> str:
    """A hash of what is in all files that ``paths`` name or contain."""
    content = hashlib.sha256()
    for path in paths:
        for file in _files(folder / path):
            content.update(os.path.relpath(file, folder).encode())
            content.update(_answers(file) if file.suffix == ".jsonl" else _bytes(file))
    return content.hexdigest()


def _files(path: Path) -> list[Path]:
    """A file itself; the files in a folder, also behind links; of a run folder its records, which are what others read
    of it."""
    if (path / "run.json").is_file():
        path = path / "records"
    if path.is_dir():
        return sorted(Path(place, name) for place, _, names in os.walk(path, followlinks=True) for name in names)
    return [path] if path.exists() else []


def _bytes(file: Path) -> bytes:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").digest()


def _answers(file: Path) -> bytes:
    """A hash of the records in a file, without the run, the time and the worker that made them: an import is written
    anew with each new run. Of other lines the bytes count."""
    answers = hashlib.sha256()
    with file.open("rb") as opened:
        for line in opened:
            try:
                record = orjson.loads(line)
            except orjson.JSONDecodeError:
                answers.update(line)
                continue
            if isinstance(record, dict):
                record = {name: value for name, value in record.items() if name not in PASSING}
            answers.update(orjson.dumps(record))
    return answers.digest()


def _carried_out(words: Sequence[str], folder: Path) -> int:
    """Run a command in ``folder``; returns its exit code. A signal is passed on, and the command's end awaited."""
    ended: Interrupted | None = None
    # -P: a folder `agents` or `serving` in the project is no package of ours.
    command = [sys.executable, "-P", "-c", STEP, str(os.getpid()), *words]
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
