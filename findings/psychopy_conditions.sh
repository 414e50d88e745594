#!/usr/bin/env bash
set -euo pipefail
# Package: psychopy 2026.2.5 (its module data alone, without a display), with pandas 2.3.3 and with pandas 3.1.1.
# Found: importConditions, which reads the list of trials from a CSV file, takes words for numbers and for empty cells.
# Expected: cue words come as they stand in the file.
# Seen: the cues "null", "nan" (a grandmother) and "None" become an empty cell (None), without a warning.
#   "infinity" becomes the number infinity under pandas 2. Under pandas 3 it ends the import with a TypeError.
#   So one and the same list of cue words runs in one laboratory and stops in the other.
# Source: the function's help says only that a CSV file is read as a header and rows. psychopy asks for pandas 1.5.3 or newer.
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
export HOME="$dir" # psychopy writes its preferences there
printf 'cue\nsea\nnull\nnan\nNone\n' > cues.csv
printf 'cue\nsea\ninfinity\n' > infinity.csv
cat > conditions.py <<'PY'
import sys
from importlib.metadata import version

from psychopy import data

print("psychopy", version("psychopy"), "pandas", version("pandas"), "numpy", version("numpy"))


def cells(name):
    try:
        return [str(row["cue"]) if row["cue"] is not None else None for row in data.importConditions(name)]
    except TypeError as error:
        return f"TypeError: {error}"


seen = [cells("cues.csv"), cells("infinity.csv")]
for row in seen:
    print("  ", row)
by_pandas = {
    "2": ["sea", "inf"],
    "3": "TypeError: Invalid value 'inf' for dtype 'str'. Value should be a string or missing value, got 'float' instead.",
}
expected = [["sea", None, None, None], by_pandas[version("pandas")[0]]]
if seen != expected:
    sys.exit(f"changed: expected {expected}")
PY
for pandas in 2.3.3 3.1.1; do
  python3 -m venv "venv-$pandas"
  "venv-$pandas/bin/pip" install --quiet --disable-pip-version-check --no-deps 'psychopy==2026.2.5' "pandas==$pandas" 'numpy==2.3.5' \
    'scipy==1.17.1' 'openpyxl==3.1.5' 'et-xmlfile==2.0.0' 'python-dateutil==2.9.0.post0' 'pytz==2026.6' 'tzdata==2026.6' 'six==1.17.0' \
    'requests==2.34.2' 'urllib3==2.8.0' 'certifi==2026.10.18' 'idna==3.20' 'charset-normalizer==3.5.2' 'packaging==26.3' 'PyYAML==6.0.3' \
    'json-tricks==3.17.3' 'i18next==0.0.3'
  "venv-$pandas/bin/python" -W ignore conditions.py
done
