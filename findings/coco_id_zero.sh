#!/usr/bin/env bash
set -euo pipefail
# Packages: pycocotools 2.0.11 and faster-coco-eval 1.8.0.
# Found: an annotation whose id is 0 can never be found. The evaluation notes the id of the match, and 0 means "no match".
# Expected: boxes that equal the annotations have an average precision of 1, whatever the ids are.
# Seen: with two pictures and the ids 1 and 2 it is 1.0. With the ids 0 and 1 it is 0.2525, and pycocotools says nothing.
#   In faster-coco-eval the figure is the same, with a warning. Label Studio's COCO export (label-studio-sdk 2.1.2) begins at 0.
# Source: cocodataset/cocoapi#664, MiXaiLL76/faster_coco_eval#77.
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'pycocotools==2.0.11' 'faster-coco-eval==1.8.0' 'numpy==2.3.5'
venv/bin/python - <<'PY'
import contextlib
import io
import sys
import warnings
from importlib.metadata import version

import faster_coco_eval
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

print("pycocotools", version("pycocotools"), "faster-coco-eval", version("faster-coco-eval"))
box = [10, 10, 30, 30]


def precision(first, table, evaluation):
    pictures = [{"id": i, "file_name": f"{i}.png", "width": 100, "height": 100} for i in (1, 2)]
    truth = table()
    truth.dataset = {
        "info": {},
        "licenses": [],
        "images": pictures,
        "categories": [{"id": 1, "name": "dog"}],
        "annotations": [
            {"id": first + n, "image_id": n + 1, "category_id": 1, "bbox": box, "area": 900, "iscrowd": 0} for n in (0, 1)
        ],
    }
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        truth.createIndex()
        found = truth.loadRes([{"image_id": i, "category_id": 1, "bbox": box, "score": 0.9} for i in (1, 2)])
        run = evaluation(truth, found, "bbox")
        run.evaluate()
        run.accumulate()
        run.summarize()
    return round(float(run.stats[0]), 4), any("id 0" in str(one.message) for one in caught)


seen = {
    "pycocotools, ids 1 and 2": precision(1, COCO, COCOeval),
    "pycocotools, ids 0 and 1": precision(0, COCO, COCOeval),
    "faster-coco-eval, ids 1 and 2": precision(1, faster_coco_eval.COCO, faster_coco_eval.COCOeval_faster),
    "faster-coco-eval, ids 0 and 1": precision(0, faster_coco_eval.COCO, faster_coco_eval.COCOeval_faster),
}
for name, (value, warned) in seen.items():
    print(f"  {name}: average precision {value}, warned: {warned}")
expected = {
    "pycocotools, ids 1 and 2": (1.0, False),
    "pycocotools, ids 0 and 1": (0.2525, False),
    "faster-coco-eval, ids 1 and 2": (1.0, False),
    "faster-coco-eval, ids 0 and 1": (0.2525, True),
}
if seen != expected:
    sys.exit(f"changed: expected {expected}")
PY
