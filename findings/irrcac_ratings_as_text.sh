#!/usr/bin/env bash
set -euo pipefail
# Package: irrCAC 0.4.4, beside krippendorff 0.9.0.
# Found: ratings from 1 to 10 that come as text, as some readers of CSV give them, are put in the order of the alphabet.
# Expected: 10 is the highest step; or, as krippendorff does, the program refuses text unless it is told the order.
# Seen: "10" stands between "1" and "2", so two raters who say 9 and 10 count as far apart. Ordinal alpha falls from 0.90 to -0.16.
#   There is no warning.
# Source: irrCAC's help has a parameter for the list of categories. Left out, the list is what the raters used, sorted.
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'irrCAC==0.4.4' 'krippendorff==0.9.0' 'numpy==1.26.4' 'pandas==2.3.3' 'scipy==1.12.0'
venv/bin/python - <<'PY'
import sys
from importlib.metadata import version

import krippendorff
import pandas as pd
from irrCAC.raw import CAC

print("irrCAC", version("irrCAC"), "krippendorff", version("krippendorff"))
first = [10, 9, 1, 2, 10, 3, 8, 10, 5, 4]
second = [9, 10, 2, 1, 9, 4, 8, 9, 5, 4]
table = pd.DataFrame({"first": first, "second": second})


def alpha(ratings):
    return CAC(ratings, weights="ordinal").krippendorff()["est"]["coefficient_value"]


as_numbers = float(alpha(table))
as_text = float(alpha(table.astype(str)))
print("irrCAC, ordinal alpha of numbers:", as_numbers)
print("irrCAC, the same as text:", as_text)
reference = krippendorff.alpha(table.to_numpy().T, level_of_measurement="ordinal")
print("krippendorff, numbers:", round(reference, 5))
try:
    krippendorff.alpha(table.astype(str).to_numpy().T.astype(str), level_of_measurement="ordinal")
    refused = "no"
except ValueError as error:
    refused = "yes"
    print("krippendorff, text: ValueError:", error)
seen = (as_numbers, as_text, refused)
expected = (0.90299, -0.16431, "yes")
if seen != expected:
    sys.exit(f"changed: seen {seen}, expected {expected}")
PY
