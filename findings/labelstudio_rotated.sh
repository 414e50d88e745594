#!/usr/bin/env bash
set -euo pipefail
# Package: label-studio-sdk 2.1.2 (its converter makes Label Studio's exports).
# Found: one rectangle that was turned by 90 degrees comes out at three places, by the format of the export.
# Expected: the box around the turned rectangle, [272, 240, 48, 128] in pixels of a picture of 640 x 480 (x, y, width, height).
#   The package's own function for turned boxes (convert_annotation_to_yolo_obb) gives its four corners.
# Seen: COCO gives [256, 240, 64, 96], as it turns the rectangle in percent, where the picture counts as a square.
#   YOLO and Pascal VOC give [320, 240, 128, 48], the rectangle before it was turned, which does not overlap the right box at all.
#   And of a region with two labels, cat and dog, COCO keeps cat alone.
# Source: HumanSignal/label-studio-converter#101 and HumanSignal/label-studio#5223 report the percent in YOLO's export.
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check --no-deps 'label-studio-sdk==2.1.2' 'PyJWT==2.13.0' 'appdirs==1.4.4' \
  'certifi==2026.10.18' 'charset-normalizer==3.5.2' 'defusedxml==0.7.1' 'idna==3.20' 'ijson==3.6.0' 'lxml==6.1.3' 'nltk==3.10.4' \
  'numpy==2.2.6' 'pillow==13.0.0' 'regex==2026.11.19' 'requests==2.34.2' 'ujson==6.1.0' 'urllib3==2.8.0'
venv/bin/python - <<'PY'
import glob
import json
import logging
import sys
import xml.etree.ElementTree as ElementTree
from importlib.metadata import version

from label_studio_sdk.converter import Converter
from label_studio_sdk.converter.utils import convert_annotation_to_yolo_obb
from PIL import Image

logging.disable(logging.CRITICAL)
print("label-studio-sdk", version("label-studio-sdk"))
view = """<View><Image name="image" value="$image"/><RectangleLabels name="label" toName="image">
<Label value="dog"/><Label value="cat"/></RectangleLabels></View>"""
size = {"original_width": 640, "original_height": 480}
turned = {"x": 50, "y": 50, "width": 20, "height": 10, "rotation": 90, "rectanglelabels": ["dog"]}
both = {"x": 10, "y": 10, "width": 20, "height": 10, "rotation": 0, "rectanglelabels": ["cat", "dog"]}
result = [
    {"id": str(number), "type": "rectanglelabels", "from_name": "label", "to_name": "image", **size, "value": value}
    for number, value in enumerate((turned, both))
]
annotation = {"id": 5, "completed_by": {"id": 1, "email": "a@example.org"}, "was_cancelled": False, "result": result}
with open("tasks.json", "w", encoding="utf-8") as file:
    json.dump([{"id": 1, "data": {"image": "/data/a.png"}, "annotations": [annotation], "predictions": []}], file)
Image.new("RGB", (640, 480)).save("a.png")

converter = Converter(view, project_dir=".", download_resources=False)
converter.convert_to_coco("tasks.json", "coco", is_dir=False)
converter.convert_to_yolo("tasks.json", "yolo", is_dir=False)
converter.convert_to_voc("tasks.json", "voc", is_dir=False)

seen = {}
corners = convert_annotation_to_yolo_obb({**turned, **size}, normalize=False)
left = min(x for x, _ in corners)
top = min(y for _, y in corners)
seen["right"] = [round(v) for v in (left, top, max(x for x, _ in corners) - left, max(y for _, y in corners) - top)]
with open("coco/result.json", encoding="utf-8") as file:
    coco = json.load(file)
names = {category["id"]: category["name"] for category in coco["categories"]}
seen["COCO"] = [round(v) for v in coco["annotations"][0]["bbox"]]
with open(glob.glob("yolo/labels/*.txt")[0], encoding="utf-8") as file:
    _, x, y, width, height = (float(v) for v in file.readline().split())
seen["YOLO"] = [round(v) for v in ((x - width / 2) * 640, (y - height / 2) * 480, width * 640, height * 480)]
box = ElementTree.parse(glob.glob("voc/Annotations/*.xml")[0]).find("object/bndbox")
edge = {child.tag: int(child.text) for child in box}
seen["VOC"] = [edge["xmin"], edge["ymin"], edge["xmax"] - edge["xmin"], edge["ymax"] - edge["ymin"]]
seen["labels in COCO"] = [names[one["category_id"]] for one in coco["annotations"]]
seen["ids in COCO"] = [one["id"] for one in coco["annotations"]]
for name, value in seen.items():
    print(f"  {name}: {value}")
expected = {
    "right": [272, 240, 48, 128],
    "COCO": [256, 240, 64, 96],
    "YOLO": [320, 240, 128, 48],
    "VOC": [320, 240, 128, 48],
    "labels in COCO": ["dog", "cat"],
    "ids in COCO": [0, 1],
}
if seen != expected:
    sys.exit(f"changed: expected {expected}")
PY
