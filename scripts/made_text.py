"""What the scripts that make a text of the package have in common: where it is written, and ``--check``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path


def run(
    argv: list[str] | None,
    summary: str,
    source: tuple[str, str],
    default: Path,
    build: Callable[[Path], str],
    wrong: tuple[type[Exception], ...],
    refusal: str,
) -> int:
    """A script's command; returns its exit code.

    ``source`` is the name and the description of its argument, of which ``build`` makes the text; an error among
    ``wrong`` says that it cannot, and the source ``refusal``. The text is written to ``--output`` or ``default``,
    unless it is there already. With ``--check`` nothing is written, and the code is 1 if it is missing or differs.
    """
    parser = argparse.ArgumentParser(description=summary)
    parser.add_argument("source", type=Path, metavar=source[0], help=source[1])
    parser.add_argument("--output", type=Path, default=default, help="the text to write")
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if the output differs")
    arguments = parser.parse_args(argv)
    try:
        text = build(arguments.source)
    except wrong as error:
        parser.error(f"{arguments.source} {refusal}: {error}")
    output: Path = arguments.output
    if output.is_file() and output.read_text(encoding="utf-8") == text:
        return 0
    if arguments.check:
        print(f"{output} differs from what is made of {arguments.source}", file=sys.stderr)
        return 1
    output.write_text(text, encoding="utf-8")
    print(f"wrote {output}")
    return 0
