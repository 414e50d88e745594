#!/usr/bin/env bash
set -euo pipefail
# Package: statsmodels 0.15.0, beside irrCAC 0.4.4.
# Found: aggregate_raters, which makes the table for Fleiss' kappa, takes a missing rating (NaN) for a category of its own.
# Expected: an error, as its help announces for what is no integer; or the rating is left out, as irrCAC leaves it out.
# Seen: the categories are 0, 1 and nan. Two trials that nobody rated count as perfect agreement on nan.
#   The kappa of three raters rises from 0.56 (by irrCAC, or without these trials) to 0.75. There is no warning.
# Source: the help of aggregate_raters says that an exception is raised if the data cannot be made integers.
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'statsmodels==0.15.0' 'irrCAC==0.4.4' 'numpy==1.26.4' 'pandas==2.3.3' \
  'scipy==1.12.0' 'patsy==1.0.3'
venv/bin/python -W ignore - <<'PY'
import sys
from importlib.metadata import version

import numpy as np
import pandas as pd
from irrCAC.raw import CAC
from statsmodels.stats.inter_rater import aggregate_raters, fleiss_kappa

print("statsmodels", version("statsmodels"), "irrCAC", version("irrCAC"))
missing = np.nan
ratings = np.array(
    [
        [1, 1, 1],
        [0, 0, 1],
        [0, 0, 0],
        [1, 0, 1],
        [0, 0, 0],
        [1, 1, 1],
        [missing, missing, missing],
        [missing, missing, missing],
    ]
)
counts, categories = aggregate_raters(ratings)
kappa = round(float(fleiss_kappa(counts)), 4)
reference = round(float(CAC(pd.DataFrame(ratings)).fleiss()["est"]["coefficient_value"]), 4)
whole = round(float(fleiss_kappa(aggregate_raters(ratings[:6])[0])), 4)
seen = ([str(one) for one in categories], kappa, reference, whole)
print("  categories:", seen[0])
print("  Fleiss' kappa by statsmodels:", kappa)
print("  Fleiss' kappa by irrCAC:", reference)
print("  by statsmodels, the rated trials alone:", whole)
expected = (["0.0", "1.0", "nan"], 0.746, 0.5556, 0.5556)
if seen != expected:
    sys.exit(f"changed: seen {seen}, expected {expected}")
PY
