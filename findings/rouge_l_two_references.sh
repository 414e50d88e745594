#!/usr/bin/env bash
set -euo pipefail
# Package: pycocoevalcap 1.2 (COCO's measures of captions).
# Found: with several references ROUGE-L takes its precision from one of them and its recall from another.
# Expected: 1.0 only for a caption that equals a reference; or at most the best figure against any single reference.
# Seen: "a dog runs" against "a dog runs in the park" and "dog runs" has 1.0, the highest there is.
#   Against each reference alone it has 0.63 and 0.83.
# Source: pycocoevalcap/rouge/rouge.py takes the maximum of the precisions and, apart from it, of the recalls.
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check --no-deps 'pycocoevalcap==1.2' 'pycocotools==2.0.11' 'numpy==2.3.5'
venv/bin/python - <<'PY'
import sys
from importlib.metadata import version

from pycocoevalcap.rouge.rouge import Rouge

print("pycocoevalcap", version("pycocoevalcap"))


def rouge(caption, references):
    return round(float(Rouge().compute_score({1: references}, {1: [caption]})[0]), 4)


caption = "a dog runs"
references = ["a dog runs in the park", "dog runs"]
seen = {
    "both": rouge(caption, references),
    references[0]: rouge(caption, references[:1]),
    references[1]: rouge(caption, references[1:]),
    "itself": rouge(caption, [caption]),
}
for name, value in seen.items():
    print(f"  {caption!r} against {name}: {value}")
expected = {"both": 1.0, references[0]: 0.6289, references[1]: 0.8299, "itself": 1.0}
if seen != expected:
    sys.exit(f"changed: expected {expected}")
PY
