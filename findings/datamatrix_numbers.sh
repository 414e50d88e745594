#!/usr/bin/env bash
set -euo pipefail
# Package: datamatrix 1.0.20 (the table of OpenSesame's makers for the data of experiments).
# Found: whatever Python's float() can read in a cell becomes a number, in columns of names and of words, too.
# Expected: the participants 007, 7, 1_0 and 10 are four; the answers "infinity" and "nan" (a grandmother) are words.
# Seen: there are two participants, 7 and 10. The answers are the numbers inf and nan, and no answer equals "infinity" any more,
#   while the word "tea" beside them stays a word. There is no notice.
# Source: the library describes its mixed column as one that can hold numbers and text; the file has nothing but text in these columns.
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'datamatrix==1.0.20' 'numpy==2.3.5' 'scipy==1.17.1' 'openpyxl==3.1.5'
printf 'participant,word\n007,infinity\n7,nan\n1_0,tea\n10,1e3\n' > answers.csv
venv/bin/python -W ignore - <<'PY'
import sys
from importlib.metadata import version

from datamatrix import io

print("datamatrix", version("datamatrix"))
table = io.readtxt("answers.csv")
seen = {
    "participants": [str(name) for name in table.participant],
    "different participants": len(table.participant.unique),
    "words": [str(word) for word in table.word],
    "types": [type(word).__name__ for word in table.word],
    "rows of the word infinity": sum(word == "infinity" for word in table.word),
}
for name, value in seen.items():
    print(f"  {name}: {value}")
expected = {
    "participants": ["7", "7", "10", "10"],
    "different participants": 2,
    "words": ["inf", "nan", "tea", "1000"],
    "types": ["float", "float", "str", "int"],
    "rows of the word infinity": 0,
}
if seen != expected:
    sys.exit(f"changed: expected {expected}")
PY
