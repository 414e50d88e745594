#!/usr/bin/env bash
set -euo pipefail
# Package: datamatrix 1.0.20 (the table of OpenSesame's makers for the data of experiments).
# Found: whatever Python's float() can read in a cell becomes a number, cell by cell. Names of participants become one.
# Expected: the participants 007, 7, 1_0, 10 and p1 are five, as the column holds names.
# Seen: there are three participants, 7, 10 and p1. The first two are numbers and p1 is a word, in one column. There is no notice.
# Source: the library describes its mixed column as one that can hold numbers and text. It does not say that 1_0 counts as a number.
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'datamatrix==1.0.20' 'numpy==2.3.5' 'scipy==1.17.1' 'openpyxl==3.1.5'
printf 'participant,word\n007,sea\n7,tea\n1_0,sky\n10,sun\np1,box\n' > answers.csv
venv/bin/python -W ignore - <<'PY'
import sys
from importlib.metadata import version

from datamatrix import io

print("datamatrix", version("datamatrix"))
table = io.readtxt("answers.csv")
seen = {
    "participants": [str(name) for name in table.participant],
    "different participants": len(table.participant.unique),
    "types": [type(name).__name__ for name in table.participant],
}
for name, value in seen.items():
    print(f"  {name}: {value}")
expected = {
    "participants": ["7", "7", "10", "10", "p1"],
    "different participants": 3,
    "types": ["int", "int", "int", "int", "str"],
}
if seen != expected:
    sys.exit(f"changed: expected {expected}")
PY
