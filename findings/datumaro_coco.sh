#!/usr/bin/env bash
set -euo pipefail
# Package: datumaro 1.13.12.
# Found: a COCO set that is read and written again, with nothing done to it, is another one.
# Expected: the categories keep their numbers (as pictures and annotations do), and the captions of a picture keep their order.
# Seen: COCO's own numbers dog 18 and toothbrush 90 become 2 and 3; in COCO, 2 is a bicycle and 3 a car. So a program's boxes with
#   COCO's numbers are scored as others. The captions one, two, three come out as three, two, one, so that "the first caption" is another.
# Source: the help of datumaro's option reindex speaks of pictures and annotations; the exporter numbers the categories from 1.
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
export HOME="$dir"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'datumaro==1.13.12' 'numpy==2.4.6' 'pandas==2.3.3' 'pyarrow==25.0.1' 'pycocotools==2.0.11'
venv/bin/python -W ignore - <<'PY'
import json
import logging
import os
import sys
from importlib.metadata import version

import datumaro
from PIL import Image

logging.disable(logging.CRITICAL)
print("datumaro", version("datumaro"))
pictures = [{"id": number, "file_name": f"{number}.jpg", "width": 100, "height": 80} for number in (9, 3)]
categories = [{"id": 1, "name": "person"}, {"id": 18, "name": "dog"}, {"id": 90, "name": "toothbrush"}]
boxes = [
    {"id": 40 + n, "image_id": picture, "category_id": category, "bbox": [1, 2, 30, 40], "area": 1200, "iscrowd": 0, "segmentation": []}
    for n, (picture, category) in enumerate(((9, 1), (3, 18), (3, 90)))
]
captions = [{"id": 70 + n, "image_id": 3, "caption": text} for n, text in enumerate(("one", "two", "three"))]


def again(kind, annotations):
    os.makedirs(f"{kind}/annotations")
    os.makedirs(f"{kind}/images/train")
    for picture in pictures:
        Image.new("RGB", (100, 80)).save(f"{kind}/images/train/{picture['file_name']}")
    with open(f"{kind}/annotations/{kind}_train.json", "w", encoding="utf-8") as file:
        json.dump({"info": {}, "licenses": [], "images": pictures, "categories": categories, "annotations": annotations}, file)
    datumaro.Dataset.import_from(kind, f"coco_{kind}").export(f"{kind}-again", f"coco_{kind}", save_media=False)
    with open(f"{kind}-again/annotations/{kind}_train.json", encoding="utf-8") as file:
        return json.load(file)


instances = again("instances", boxes)
names = {category["id"]: category["name"] for category in instances["categories"]}
seen = {
    "pictures": sorted(picture["id"] for picture in instances["images"]),
    "categories": names,
    "boxes": sorted((box["id"], box["image_id"], box["category_id"]) for box in instances["annotations"]),
    "captions": [one["caption"] for one in again("captions", captions)["annotations"]],
}
for name, value in seen.items():
    print(f"  {name}: {value}")
expected = {
    "pictures": [3, 9],
    "categories": {1: "person", 2: "dog", 3: "toothbrush"},
    "boxes": [(40, 9, 1), (41, 3, 2), (42, 3, 3)],
    "captions": ["three", "two", "one"],
}
if seen != expected:
    sys.exit(f"changed: expected {expected}")
PY
