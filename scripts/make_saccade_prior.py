"""Count the saccades of people's scanpaths for the return-fixation agent:
``python scripts/make_saccade_prior.py human_freeviewing_scanpaths.json [--output FILE]``.

The file is JSON, ``{"source": ..., "scanpaths": [{"image": ..., "grid64": [cell, ...]}, ...]}``: cells of a 64 x 64
grid, row by row, counted from 1. The output is a text of 128 lines of 128 counts; it depends on that file alone. With
``--check`` nothing is written; the exit code is 1 if the output is missing or differs.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import made_text
import orjson

from agents.attention.models import saccade_prior

HEADER = """\
The saccades of {paths} scanpaths of people in free viewing: {saccades} in all. Line 64 + r, number 64 + c (from 0): how
many went r cells down and c cells to the right, on a grid of 64 x 64 cells over 1280 x 1024 pixels.
Made by scripts/make_saccade_prior.py of {name}, sha256
{digest}
Source: {source}

The scanpaths are published under this licence:

MIT License

Copyright (c) 2020 Kreiman Lab

Permission is hereby granted, free of charge, to any person obtaining a copy
of this software and associated documentation files (the "Software"), to deal
in the Software without restriction, including without limitation the rights
to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all
copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
SOFTWARE."""


def build(path: Path) -> str:
    """The text of the counts of a file of scanpaths. Raises ValueError if it holds a cell off the grid."""
    data = path.read_bytes()
    found = orjson.loads(data)
    paths = [[cell - 1 for cell in entry["grid64"]] for entry in found["scanpaths"]]
    if wrong := [cell + 1 for cells in paths for cell in cells if not 0 <= cell < saccade_prior.GRID**2]:
        raise ValueError(f"{path}: cells go from 1 to {saccade_prior.GRID**2}, found {wrong[0]}")
    counts = saccade_prior.count(paths)
    header = HEADER.format(
        paths=len(paths),
        saccades=int(counts.sum()),
        name=path.name,
        digest=hashlib.sha256(data).hexdigest(),
        source=found["source"],
    )
    return saccade_prior.render(counts, header)


def main(argv: list[str] | None = None) -> int:
    summary, source = "Count the saccades of people's scanpaths.", ("scanpaths", "the file of scanpaths (JSON)")
    wrong = (OSError, ValueError, KeyError, TypeError)
    return made_text.run(argv, summary, source, saccade_prior.FILE, build, wrong, "cannot be counted")


if __name__ == "__main__":
    sys.exit(main())
