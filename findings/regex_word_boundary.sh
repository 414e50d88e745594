#!/usr/bin/env bash
set -euo pipefail
# Package: regex 2024.11.6 and 2026.11.15, beside uniseg 0.10.1 and regex 2026.11.19.
# Found: with the flag WORD the package parts a text by Unicode's rules for words, but three boundaries are missing.
#   1. Between an apostrophe and a vowel: in "say 'apple', 'tea'" the quotation mark stays on apple and leaves tea.
#   2. After a combining sign at the start of the text.
#   3. After a single regional indicator, anywhere.
# Expected: the pieces of Unicode's rules (UAX 29). They keep an apostrophe only between two letters, as in l'arc.
# Seen: "'apple" is one word and "'tea" is two, in the versions 2024.11.6 and 2026.11.15. Version 2026.11.19 agrees with uniseg.
# Source: the package's page says that WORD stands for the default word boundaries of Unicode.
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
for version in 2024.11.6 2026.11.15 2026.11.19; do
  python3 -m venv "venv-$version"
  "venv-$version/bin/pip" install --quiet --disable-pip-version-check "regex==$version" 'uniseg==0.10.1'
done
cat > words.py <<'PY'
import sys
from importlib.metadata import version

import regex
from uniseg.wordbreak import words

texts = {
    "vowel after a quotation mark": "say 'apple'",
    "consonant after a quotation mark": "say 'tea'",
    "apostrophe within a word": "l'arc",
    "combining acute first": "\u0301a b",
    "combining acute within": "c \u0301a b",
    "Tamil sign first": "\u0bcd\u0b95 b",
    "one regional indicator": "c \U0001f1e6 b",
}
print("regex", version("regex"), "beside uniseg", version("uniseg"))
unlike = []
for name, text in texts.items():
    pieces = [piece for piece in regex.split(r"(?V1w)\b", text) if piece]
    right = list(words(text))
    print(f"  {name}: regex {ascii(pieces)}, uniseg {ascii(right)}")
    if pieces != right:
        unlike.append(name)
expected = sys.argv[1].split(",") if sys.argv[1] else []
print("  unlike:", unlike)
if unlike != expected:
    sys.exit(f"changed: expected {expected}")
PY
wrong="vowel after a quotation mark,combining acute first,Tamil sign first,one regional indicator"
venv-2024.11.6/bin/python words.py "$wrong"
venv-2026.11.15/bin/python words.py "$wrong"
venv-2026.11.19/bin/python words.py ""
