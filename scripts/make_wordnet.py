"""Take the words of WordNet for the lemmas of word association:
``python scripts/make_wordnet.py FOLDER [--output FILE]``.

FOLDER holds WordNet 3.0's database files (``index.noun``, ``data.noun``, ``noun.exc`` and so on; Debian's package
wordnet-base has them in /usr/share/wordnet).
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from pathlib import Path

from agents.language.words.vocabulary import WORDNET

WORD = re.compile("[a-z]+")
PARTS = (("noun", "n"), ("verb", "v"), ("adj", "a"), ("adv", "a"))


def build(folder: Path, header: str) -> str:
    """The text of WordNet's words after the ``header``. Raises OSError if a file of the database is missing."""
    kinds: dict[str, set[str]] = {}
    for part, letter in PARTS:
        for line in lines(folder / f"index.{part}"):
            word = line.partition(" ")[0]
            if WORD.fullmatch(word):  # the licence stands at the beginning, on lines that begin with a space
                kinds.setdefault(word, set()).add(letter)
    common = written_small(folder / "data.noun")
    for word, letters in kinds.items():
        if "n" in letters and word not in common:
            letters.symmetric_difference_update("nN")
    counts = marked(folder / "cntlist.rev")
    rows = [
        " ".join([word, "".join(sorted(letters)), *([str(counts[word])] if counts[word] else [])])
        for word, letters in sorted(kinds.items())
    ]
    rows.append("")
    for part, letter in PARTS[:2]:
        for line in lines(folder / f"{part}.exc"):
            form, *bases = line.split()
            kept = [base for base in bases if base != form and WORD.fullmatch(base)]
            if kept and WORD.fullmatch(form):
                rows.append(" ".join([letter, form, *kept]))
    return header + "\n".join(rows) + "\n"


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="ascii").splitlines()


def marked(path: Path) -> Counter[str]:
    """How often all senses of a word were marked. A line of cntlist.rev is "word%sense number-of-the-sense count"."""
    counts: Counter[str] = Counter()
    for line in lines(path):
        sense, _, count = line.split(" ")
        counts[sense.partition("%")[0]] += int(count)
    return counts


def written_small(path: Path) -> set[str]:
    """The nouns that some sense writes without a capital. A line of data.noun is "place file kind count word number
    word number ...", the count in hexadecimal digits."""
    nouns = set()
    for line in lines(path):
        if not line.startswith(" "):
            fields = line.split(" ")
            nouns.update(word for word in fields[4 : 4 + 2 * int(fields[3], 16) : 2] if word.islower())
    return nouns


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Take the words of WordNet.")
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="the folder of WordNet 3.0's database files")
    parser.add_argument("--output", type=Path, default=WORDNET, help="the text to write")
    options = parser.parse_args(argv)
    # The header, with WordNet's licence, stands in the packaged text.
    header = "".join(line for line in WORDNET.read_text(encoding="utf-8").splitlines(True) if line.startswith("#"))
    try:
        text = build(options.folder, header)
    except (OSError, ValueError, IndexError) as error:
        parser.error(f"{options.folder} is not WordNet's: {error}")
    options.output.write_text(text, encoding="utf-8")
    print(f"wrote {options.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
