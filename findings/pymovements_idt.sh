#!/usr/bin/env bash
set -euo pipefail
# Package: pymovements 0.28.0, event detection by dispersion (idt).
# Found: a fixation holds the first sample after it, the very one that broke the threshold.
# Input: an eye rests for 100 samples, jumps by 10 degrees and rests again. The threshold is 1 degree.
# Expected: the first fixation holds the samples 0 to 99, with a dispersion of 0. The detection by velocity (ivt) keeps to resting samples.
# Seen: the fixation lasts from 0 to 100. pymovements itself computes a dispersion of 10 degrees for it, ten times the threshold.
#   Its mean place is 0.099 degrees off. The next fixation begins one sample late, at 101.
# Source: the help of idt says that the window grows until its dispersion is above the threshold.
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'pymovements==0.28.0' 'polars==2.1.0' 'numpy==2.3.5' 'scipy==1.17.1' 'pandas==3.1.1'
venv/bin/python -W ignore - <<'PY'
import sys
from importlib.metadata import version

import numpy as np
import polars
import pymovements

print("pymovements", version("pymovements"), "polars", version("polars"))
x = np.concatenate([np.zeros(100), np.full(100, 10.0)])
samples = polars.DataFrame({"time": np.arange(200), "x": x, "y": np.zeros(200)})
experiment = pymovements.Experiment(sampling_rate=1000)
gaze = pymovements.Gaze(samples=samples, experiment=experiment, time_column="time", time_unit="ms", position_columns=["x", "y"])
gaze.pos2vel(method="neighbors")
seen = {}
for method, options in (("idt", {"dispersion_threshold": 1.0}), ("ivt", {"velocity_threshold": 20.0})):
    copy = gaze.clone()
    copy.detect(method, minimum_duration=50, **options)
    for name in ("dispersion", "location"):
        copy.compute_event_properties(name)
    seen[method] = [
        (row["onset"], row["offset"], round(row["dispersion"], 4), round(row["location"][0], 4))
        for row in copy.events.frame.iter_rows(named=True)
    ]
    print(f"  {method}: (onset, offset, dispersion, mean x) {seen[method]}")
expected = {
    "idt": [(0, 100, 10.0, 0.099), (101, 199, 0.0, 10.0)],
    "ivt": [(1, 98, 0.0, 0.0), (101, 198, 0.0, 10.0)],
}
if seen != expected:
    sys.exit(f"changed: expected {expected}")
PY
