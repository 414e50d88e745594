#!/usr/bin/env bash
set -euo pipefail
# Package: pycocotools 2.0.11.
# Found: people's boxes have no score, so each gets the same one. Then the average precision depends on the order of the lines,
#   and on the numbers of the pictures.
# Expected: the same boxes on the same pictures give the same figure, in whatever order they stand.
# Seen: one right and one wrong box on a picture: 1.0 if the right one stands first, 0.5 if the wrong one does.
#   Two pictures, three boxes: 0.835, and 0.6667 once the two pictures have changed numbers.
# Source: COCOeval sorts by falling score with a stable sort, and joins the pictures by rising id.
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'pycocotools==2.0.11' 'numpy==2.3.5'
venv/bin/python - <<'PY'
import contextlib
import io
import sys
from importlib.metadata import version

from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

print("pycocotools", version("pycocotools"))
right = [10, 10, 30, 30]
wrong = [60, 60, 30, 30]


def precision(pictures, boxes):
    truth = COCO()
    truth.dataset = {
        "info": {},
        "licenses": [],
        "images": [{"id": i, "file_name": f"{i}.png", "width": 100, "height": 100} for i in pictures],
        "categories": [{"id": 1, "name": "dog"}],
        "annotations": [
            {"id": i, "image_id": i, "category_id": 1, "bbox": right, "area": 900, "iscrowd": 0} for i in pictures
        ],
    }
    with contextlib.redirect_stdout(io.StringIO()):
        truth.createIndex()
        found = truth.loadRes([{"image_id": i, "category_id": 1, "bbox": box, "score": 1.0} for i, box in boxes])
        run = COCOeval(truth, found, "bbox")
        run.evaluate()
        run.accumulate()
        run.summarize()
    return round(float(run.stats[0]), 4)


seen = {
    "right, wrong": precision([1], [(1, right), (1, wrong)]),
    "wrong, right": precision([1], [(1, wrong), (1, right)]),
    "wrong box on the picture with the higher number": precision([1, 2], [(1, right), (2, wrong), (2, right)]),
    "the same, numbers exchanged": precision([1, 2], [(2, right), (1, wrong), (1, right)]),
}
for name, value in seen.items():
    print(f"  {name}: {value}")
expected = {
    "right, wrong": 1.0,
    "wrong, right": 0.5,
    "wrong box on the picture with the higher number": 0.835,
    "the same, numbers exchanged": 0.6667,
}
if seen != expected:
    sys.exit(f"changed: expected {expected}")
PY
