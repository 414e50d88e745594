"""The scanpaths of OSIE as files that the program reads: a table of fixations, and a set of the pictures.

    git clone https://github.com/NUS-VIP/predicting-human-gaze-beyond-pixels osie
    python scripts/osie_scanpaths.py osie --every 10 --out paths
    turinglike import paths/scanpaths.csv --task attention --frame 800x600 --out people
    turinglike generate paths/pictures.jsonl --agents gbvs --set gbvs.lengths=paths/lengths.txt --out run

OSIE (Xu, Jiang, Wang, Kankanhalli, Zhao 2014, Predicting human gaze beyond pixels, Journal of Vision 14(1):28; MIT
licence) has 700 pictures of 800 x 600 pixels. Fifteen participants looked freely at each of them for 3 s. Its folder
has ``data/eye/fixations.mat`` and ``data/stimuli``. The folder of ``--out`` then has:

- ``scanpaths.csv``, a row for each fixation: the participant (p01 to p15), the picture's name, the fixation's number
  from 1, x and y in pixels of the picture, and the duration in milliseconds;
- ``pictures.jsonl``, a stimulus set of the same pictures, which stay where they are;
- ``lengths.txt``, where pictures are left out: the number of fixations in each scanpath of *these* pictures, for the
  agents' setting ``lengths``. So no agent draws from the scanpaths that it is compared with.

Coordinates stay as they are in the file. It does not say whether they count from 0, or from 1 as Matlab does; so they
may be wrong by half a pixel. Nor does it name participants. They have the number of their place in the picture's list.
The file has no fixation outside the picture, and durations of a scanpath add up to 2.0 s in the median.

The folder must be new, or empty: files of another choice of pictures would contradict these. The exit code is 2 for
wrong usage or input, and then nothing is written.
"""

import argparse
import csv
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray
from scipy.io import loadmat
from scipy.io.matlab import MatReadError

from agents.errors import InputError, Problem

FIXATIONS = Path("data", "eye", "fixations.mat")
PICTURES = Path("data", "stimuli")
COLUMNS = ("participant", "stimulus", "fixation", "x", "y", "duration")
NUMBERS = ("fix_x", "fix_y", "fix_duration")
NO_SCANPATH = f"must have numbers in {', '.join(NUMBERS)}, equally many in each and at least one, and durations above 0"
SHOWN = 20  # problems that the command tells


@dataclass(frozen=True, slots=True)
class Viewing:
    """What one participant looked at on one picture."""

    participant: str
    """p01 to p15."""
    picture: str
    """The picture's file name, 1001.jpg."""
    fixations: NDArray[np.float64]
    """[fixations, 3]: x and y in pixels, and the duration in milliseconds, in the order of looking."""


def read_viewings(file: Path) -> list[Viewing]:
    """All viewings of ``fixations.mat``, picture by picture in the order of the file. Raises InputError, which tells
    all problems."""
    if not file.is_file():
        raise InputError(f"{file}: there is no such file")
    try:
        content = loadmat(file, squeeze_me=True, struct_as_record=False, variable_names=["fixations"])
    except (
        OSError,
        ValueError,
        TypeError,
        NotImplementedError,
        MatReadError,
    ) as error:  # scipy knows no HDF5, Matlab 7.3
        raise InputError(f"{file}: cannot be read as a file of Matlab: {error}") from None
    if "fixations" not in content:
        raise InputError(f"{file}: has no variable fixations")
    problems: list[Problem] = []
    viewings: list[Viewing] = []
    names: set[str] = set()
    number = 0  # of participants, on the first picture
    for place, entry in enumerate(np.atleast_1d(content["fixations"]), start=1):
        name = getattr(entry, "img", None)
        subjects = getattr(entry, "subjects", None)
        if not isinstance(name, str) or Path(name).name != name or subjects is None:
            problems.append(_problem(file, f"picture {place}", "must have img, a file name, and subjects"))
            continue
        if name in names:
            problems.append(_problem(file, name, "stands there twice"))
        names.add(name)
        subjects = np.atleast_1d(subjects)
        number = number or len(subjects)
        if len(subjects) != number:
            said = f"has {len(subjects)} participants, but the first picture has {number}"
            problems.append(_problem(file, name, said))
        for seat, subject in enumerate(subjects, start=1):
            fixations = _fixations(subject)
            if fixations is None:
                problems.append(_problem(file, f"{name}, participant {seat}", NO_SCANPATH))
            else:
                viewings.append(Viewing(f"p{seat:02}", name, fixations))
    if problems:
        raise InputError(f"{file}: cannot be used; nothing was written", problems)
    if not viewings:
        raise InputError(f"{file}: has no scanpath")
    return viewings


def _problem(file: Path, field: str, message: str) -> Problem:
    return Problem(str(file), None, field, message)


def _fixations(subject: Any) -> NDArray[np.float64] | None:
    """A participant's numbers, [fixations, 3]; None where they are no scanpath."""
    try:
        columns = [np.atleast_1d(np.asarray(getattr(subject, name), dtype=np.float64)) for name in NUMBERS]
    except (AttributeError, ValueError, TypeError):
        return None
    lengths = {column.shape for column in columns}
    if len(lengths) != 1 or columns[0].ndim != 1 or not columns[0].size:
        return None
    fixations = np.stack(columns, axis=1)
    if not np.isfinite(fixations).all() or fixations[:, 2].min() <= 0:
        return None
    return fixations


def write_files(source: Path, out: Path, every: int) -> Mapping[str, int]:
    """Write the files of each ``every``-th picture, from the first one, into the folder ``out``. Returns the numbers of
    pictures, of participants, of scanpaths and of fixations. Raises InputError."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{out}: is there already, and no empty folder; nothing was written")
    viewings = read_viewings(source / FIXATIONS)
    chosen = list(dict.fromkeys(viewing.picture for viewing in viewings))[::every]
    folder = source / PICTURES
    missing = [_problem(folder, name, "there is no such picture") for name in chosen if not (folder / name).is_file()]
    if missing:
        raise InputError(f"{folder}: lacks pictures; nothing was written", missing)
    taken = set(chosen)
    shown = [viewing for viewing in viewings if viewing.picture in taken]
    rest = [len(viewing.fixations) for viewing in viewings if viewing.picture not in taken]
    beside = os.path.relpath(folder.resolve(), out.resolve())  # by links, .. would lead elsewhere
    whole = out.with_name(f"{out.name}.unfinished")  # so that OUT is there with all its files, or not at all
    try:
        whole.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{out}: cannot be made: {error.strerror}") from None
    with (whole / "scanpaths.csv").open("w", encoding="utf-8", newline="") as stream:
        table = csv.writer(stream, lineterminator="\n")
        table.writerow(COLUMNS)
        table.writerows(_rows(shown))
    lines = [orjson.dumps(_stimulus(name, beside), option=orjson.OPT_APPEND_NEWLINE) for name in chosen]
    (whole / "pictures.jsonl").write_bytes(b"".join(lines))
    if rest:
        (whole / "lengths.txt").write_text("".join(f"{number}\n" for number in rest), encoding="utf-8")
    whole.replace(out)
    return {
        "pictures": len(chosen),
        "participants": len({viewing.participant for viewing in shown}),
        "scanpaths": len(shown),
        "fixations": sum(len(viewing.fixations) for viewing in shown),
    }


def _rows(viewings: Sequence[Viewing]) -> Iterator[tuple[object, ...]]:
    for viewing in viewings:
        for number, fixation in enumerate(viewing.fixations, start=1):
            numbers = [f"{value:.12g}" for value in fixation]
            yield viewing.participant, viewing.picture, number, *numbers


def _stimulus(name: str, folder: str) -> dict[str, str]:
    return {
        "id": name,
        "task": "attention_prediction",
        "image": Path(folder, name).as_posix(),
        "mode": "free",
        "source": "OSIE",
        "source_id": Path(name).stem,
    }


def tell(error: InputError) -> None:
    """Print an error with its problems, of many the first ones."""
    for problem in error.problems[:SHOWN]:
        print(f"osie_scanpaths: {problem}", file=sys.stderr)
    if len(error.problems) > SHOWN:
        print(f"osie_scanpaths: and {len(error.problems) - SHOWN} more", file=sys.stderr)
    print(f"osie_scanpaths: {error}", file=sys.stderr)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, metavar="OSIE", help="the folder of the repository")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="each N-th picture, from the first (all: 1)")
    options = parser.parse_args(arguments)
    if options.every < 1:
        parser.error("--every: must be at least 1")
    try:
        counts = write_files(options.source, options.out, options.every)
    except InputError as error:
        tell(error)
        return error.exit_code
    print(orjson.dumps(counts).decode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
