"""Take the words of WordNet for the lemmas of word association:
``python scripts/make_wordnet.py FOLDER [--output FILE]``.

FOLDER holds WordNet 3.0's database files (``index.noun``, ``data.noun``, ``noun.exc`` and so on; Debian's package
wordnet-base has them in /usr/share/wordnet). Only words of the letters a to z are taken, with what they are and how
they are inflected; no meanings. With ``--check`` nothing is written; the exit code is 1 if the output is missing or
differs.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from pathlib import Path

from agents.language.words import wordnet

WORD = re.compile("[a-z]+")
HEADER = """\
The words of WordNet 3.0 that are letters alone: what each can be, how often its senses are used, and the irregular
forms of nouns and verbs. Made by scripts/make_wordnet.py from WordNet's index.*, data.noun, cntlist.rev, noun.exc and
verb.exc.
A line "dog nv 44": n a noun, N a noun that is written with a capital in all its senses, v a verb, a an adjective or an
adverb; the number counts the texts' words that WordNet's authors marked as one of its senses, none where it is 0. After
an empty line "n feet foot" and "v took take": an irregular form and what it may be a form of.

WordNet is published under this licence:

WordNet Release 3.0 This software and database is being provided to you, the LICENSEE, by Princeton University under the
following license. By obtaining, using and/or copying this software and database, you agree that you have read,
understood, and will comply with these terms and conditions.: Permission to use, copy, modify and distribute this
software and database and its documentation for any purpose and without fee or royalty is hereby granted, provided that
you agree to comply with the following copyright notice and statements, including the disclaimer, and that the same
appear on ALL copies of the software, database and documentation, including modifications that you make for internal
use or for distribution. WordNet 3.0 Copyright 2006 by Princeton University. All rights reserved. THIS SOFTWARE AND
DATABASE IS PROVIDED "AS IS" AND PRINCETON UNIVERSITY MAKES NO REPRESENTATIONS OR WARRANTIES, EXPRESS OR IMPLIED. BY WAY
OF EXAMPLE, BUT NOT LIMITATION, PRINCETON UNIVERSITY MAKES NO REPRESENTATIONS OR WARRANTIES OF MERCHANTABILITY OR
FITNESS FOR ANY PARTICULAR PURPOSE OR THAT THE USE OF THE LICENSED SOFTWARE, DATABASE OR DOCUMENTATION WILL NOT INFRINGE
ANY THIRD PARTY PATENTS, COPYRIGHTS, TRADEMARKS OR OTHER RIGHTS. The name of Princeton University or Princeton may not
be used in advertising or publicity pertaining to distribution of the software and/or database. Title to copyright in
this software, database and any associated documentation shall at all times remain with Princeton University and
LICENSEE agrees to preserve same."""


def build(folder: Path) -> str:
    """The text of WordNet's words. Raises OSError if a file of the database is missing."""
    kinds: dict[str, set[str]] = {}
    for part, letter in (("noun", "n"), ("verb", "v"), ("adj", "a"), ("adv", "a")):
        for line in (folder / f"index.{part}").read_text(encoding="ascii").splitlines():
            word = line.partition(" ")[0]
            if WORD.fullmatch(word):  # the licence stands at the beginning, on lines that begin with a space
                kinds.setdefault(word, set()).add(letter)
    common = _written_small(folder / "data.noun")
    for word, found in kinds.items():
        if "n" in found and word not in common:
            found.symmetric_difference_update("nN")
    counts = _counts(folder / "cntlist.rev")
    lines = [
        " ".join([word, "".join(sorted(found)), *([str(counts[word])] if counts[word] else [])])
        for word, found in sorted(kinds.items())
    ]
    lines.append("")
    for part, letter in (("noun", "n"), ("verb", "v")):
        for line in (folder / f"{part}.exc").read_text(encoding="ascii").splitlines():
            form, *bases = line.split()
            kept = [base for base in bases if base != form and WORD.fullmatch(base)]
            if kept and WORD.fullmatch(form):
                lines.append(" ".join([letter, form, *kept]))
    header = [f"# {line}".rstrip() for line in HEADER.splitlines()]
    return "\n".join([*header, *lines]) + "\n"


def _counts(path: Path) -> Counter[str]:
    """How often all senses of a word were marked. A line of cntlist.rev is "word%sense number-of-the-sense count"."""
    counts: Counter[str] = Counter()
    for line in path.read_text(encoding="ascii").splitlines():
        sense, _, count = line.split(" ")
        counts[sense.partition("%")[0]] += int(count)
    return counts


def _written_small(path: Path) -> set[str]:
    """The nouns that some sense writes without a capital. A line of data.noun is "place file kind count word number
    word number ...", the count in hexadecimal digits."""
    found = set()
    for line in path.read_text(encoding="ascii").splitlines():
        if not line.startswith(" "):
            fields = line.split(" ")
            found.update(word for word in fields[4 : 4 + 2 * int(fields[3], 16) : 2] if word.islower())
    return found


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Take the words of WordNet.")
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="the folder of WordNet 3.0's database files")
    parser.add_argument("--output", type=Path, default=wordnet.FILE, help="the text to write")
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if the output differs")
    options = parser.parse_args(argv)
    output: Path = options.output
    try:
        text = build(options.folder)
    except (OSError, ValueError, IndexError) as error:
        parser.error(f"{options.folder} is not WordNet's: {error}")
    if output.is_file() and output.read_text(encoding="utf-8") == text:
        return 0
    if options.check:
        print(f"{output} differs from what is made of {options.folder}", file=sys.stderr)
        return 1
    output.write_text(text, encoding="utf-8")
    print(f"wrote {output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
