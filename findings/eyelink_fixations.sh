#!/usr/bin/env bash
set -euo pipefail
# Packages: mne 1.13.2 and pymovements 0.28.0, which both read recordings of EyeLink that were written as text (.asc).
# Input: two fixations. The tracker itself wrote of the first: 1000 to 1209, 210 ms, at x 300.5 and y 200.1.
# Expected: the fixations of the file, each with its place and its duration, as EyeLink's Data Viewer lists them.
# Seen: mne keeps begin and end of each fixation, and no place. pymovements keeps no place, and 209 ms in place of 210.
# Source: EFIX lines of EyeLink's manual have begin, end, duration, x, y and pupil; the last millisecond is part of the fixation.
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
export HOME="$dir" # mne writes its settings there
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'mne==1.13.2' 'pymovements==0.28.0' 'polars==2.1.0' 'numpy==2.3.5' \
  'scipy==1.17.1' 'pandas==3.1.1'
venv/bin/python -W ignore - <<'PY'
import sys
from importlib.metadata import version

import mne
import pymovements

print("mne", version("mne"), "pymovements", version("pymovements"))
lines = [
    "** CONVERTED FROM x.edf using edfapi 4.2.1 Linux  standalone Jan  1 2020 on Mon Jan  1 10:00:00 2024",
    *("** DATE: Mon Jan  1 10:00:00 2024", "** TYPE: EDF_FILE BINARY EVENT SAMPLE TAGGED", "** VERSION: EYELINK II 1"),
    *("** SOURCE: EYELINK CL", "** EYELINK II CL v5.15 Jan 24 2018", "** CAMERA: EyeLink GL Version 1.2 Sensor=AH7", "**", ""),
    *("MSG\t1000 !MODE RECORD CR 1000 2 1 L", "MSG\t1000 DISPLAY_COORDS = 0 0 1679 1049", "START\t1000 \tLEFT\tSAMPLES\tEVENTS"),
    *("PRESCALER\t1", "VPRESCALER\t1", "PUPIL\tAREA"),
    *(f"{kind}\tGAZE\tLEFT\tRATE\t1000.00\tTRACKING\tCR\tFILTER\t2" for kind in ("EVENTS", "SAMPLES")),
]
time = 1000
for x, y, duration in ((300.5, 200.1, 210), (140.0, 150.0, 180)):
    lines.append(f"SFIX L   {time}")
    lines += [f"{time + moment}\t  {x}\t  {y}\t  1000.0\t..." for moment in range(duration)]
    time += duration
    lines.append(f"EFIX L   {time - duration}\t{time - 1}\t{duration}\t  {x}\t  {y}\t   1000")
lines.append(f"END\t{time} \tSAMPLES\tEVENTS\tRES\t  25.00\t  25.00")
with open("x.asc", "w", encoding="ascii") as file:
    file.write("\n".join(lines) + "\n")

annotations = mne.io.read_raw_eyelink("x.asc", verbose="error").annotations
fixations = [row for row in annotations if row["description"] == "fixation"]
seen = {"mne": [(round(row["duration"] * 1000), dict(row["extras"]), sorted(row.keys())) for row in fixations]}
events = pymovements.gaze.from_asc("x.asc", events=True).events.frame
seen["pymovements"] = [(row["duration"], sorted(row)) for row in events.iter_rows(named=True)]
for name, rows in seen.items():
    print(f"  {name}: milliseconds, and what is kept: {rows}")
if [row[:2] for row in seen["mne"]] != [(210, {}), (180, {})]:
    sys.exit("changed: mne had the durations 210 and 180, and no place")
if seen["pymovements"] != [(duration, ["duration", "eye", "name", "offset", "onset"]) for duration in (209, 179)]:
    sys.exit("changed: pymovements had the durations 209 and 179, and no place")
PY
