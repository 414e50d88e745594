#!/usr/bin/env bash
set -euo pipefail
# Package: lm-eval 0.4.13 (lm-evaluation-harness), its module of measures alone.
# Found: the aggregation "median" takes the upper one of the two middle values of an even number of samples.
# Expected: their mean, 6.0 for 1, 2, 10 and 20, as Python's statistics.median gives it.
# Seen: 10. Of 0 and 1, one answer wrong and one right, the median is 1. An odd number of samples is right.
# Source: median in lm_eval/api/metrics.py; a task's YAML file names it under "aggregation".
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check --no-deps 'lm-eval==0.4.13' 'numpy==2.3.5' 'sacrebleu==2.6.0' 'colorama==0.4.6' \
  'lxml==6.1.3' 'portalocker==4.4.2' 'regex==2026.11.19' 'tabulate==0.10.0'
venv/bin/python -W ignore - <<'PY'
import statistics
import sys
from importlib.metadata import version

from lm_eval.api.registry import get_aggregation
from lm_eval.api import metrics  # noqa: F401 (registers the aggregations)

print("lm-eval", version("lm-eval"))
median = get_aggregation("median")
seen = {}
for values in ([1, 2, 10, 20], [0, 1], [1, 2, 10]):
    seen[str(values)] = median(values)
    print(f"  {values}: lm-eval {median(values)}, statistics.median {statistics.median(values)}")
expected = {"[1, 2, 10, 20]": 10, "[0, 1]": 1, "[1, 2, 10]": 2}
if seen != expected:
    sys.exit(f"changed: expected {expected}")
PY
