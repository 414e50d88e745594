#!/usr/bin/env bash
set -euo pipefail
# Packages: pycocotools 2.0.11 and faster-coco-eval 1.8.0.
# Found: getCatIds, which looks up a category by its name, takes a single name for a list of letters.
# Expected: the one category of that name; the function wraps a single value in a list, and a single id works so.
# Seen: in pycocotools "hot dog" gives dog and hot dog, and "carrot" gives car and carrot. It looks for each name within the text.
#   In faster-coco-eval the same call gives nothing at all. Neither warns. A list with one name is right in both.
# Source: the help of getCatIds calls the names an array of text; _isArrayLike in pycocotools/coco.py is true of text.
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'pycocotools==2.0.11' 'faster-coco-eval==1.8.0' 'numpy==2.3.5'
venv/bin/python - <<'PY'
import contextlib
import io
import sys
from importlib.metadata import version

import faster_coco_eval
from pycocotools.coco import COCO

print("pycocotools", version("pycocotools"), "faster-coco-eval", version("faster-coco-eval"))
names = {3: "car", 18: "dog", 57: "carrot", 58: "hot dog"}
seen = {}
for program, table in (("pycocotools", COCO), ("faster-coco-eval", faster_coco_eval.COCO)):
    truth = table()
    truth.dataset = {
        "images": [],
        "annotations": [],
        "categories": [{"id": number, "name": name, "supercategory": "thing"} for number, name in names.items()],
    }
    with contextlib.redirect_stdout(io.StringIO()):
        truth.createIndex()
    for asked in ("hot dog", "carrot", ["hot dog"], ["carrot"]):
        seen[f"{program}, {asked!r}"] = [names[number] for number in truth.getCatIds(catNms=asked)]
for name, value in seen.items():
    print(f"  {name}: {value}")
expected = {
    "pycocotools, 'hot dog'": ["dog", "hot dog"],
    "pycocotools, 'carrot'": ["car", "carrot"],
    "pycocotools, ['hot dog']": ["hot dog"],
    "pycocotools, ['carrot']": ["carrot"],
    "faster-coco-eval, 'hot dog'": [],
    "faster-coco-eval, 'carrot'": [],
    "faster-coco-eval, ['hot dog']": ["hot dog"],
    "faster-coco-eval, ['carrot']": ["carrot"],
}
if seen != expected:
    sys.exit(f"changed: expected {expected}")
PY
