#!/usr/bin/env bash
set -euo pipefail
# Package: pysaliency 0.2.22 (models and measures of eye movements), with Pillow 13.0.0.
# Found: FileStimuli counts the channels of a picture by the letters in the name of Pillow's mode.
# Expected: `shapes` says what the loaded picture has: 16-bit grey (mode "I;16") is (40, 60), YCbCr is (40, 60, 3).
# Seen: 16-bit grey is (40, 60, 4) and YCbCr (40, 60, 5). A picture with a palette (mode "P") is (40, 60), but loads as (40, 60, 3).
# Source: the constructor of FileStimuli in pysaliency/datasets.py takes len(img.mode).
# Note: pysaliency imports torch as it starts, but this part does not use it. An empty module stands in, which saves 200 MB.
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'pysaliency==0.2.22' 'h5py==3.16.0' 'setuptools==80.10.2' 'numpy==2.3.5' \
  'pillow==13.0.0' 'scipy==1.17.1' 'numba==0.68.1' 'llvmlite==0.50.0' 'imageio==2.38.1'
touch torch.py
PYTHONPATH="$dir" venv/bin/python -W ignore - <<'PY'
import sys
from importlib.metadata import version

import numpy as np
import pysaliency
from PIL import Image

print("pysaliency", version("pysaliency"), "Pillow", version("pillow"), "numpy", version("numpy"))
Image.new("L", (60, 40)).save("grey.png")
Image.fromarray(np.full((40, 60), 300, np.uint16)).save("grey16.png")
Image.new("RGB", (60, 40)).save("colour.png")
Image.new("YCbCr", (60, 40)).save("ycbcr.tif")
Image.new("P", (60, 40)).save("palette.png")
seen = {}
for name in ("grey.png", "grey16.png", "colour.png", "ycbcr.tif", "palette.png"):
    stimuli = pysaliency.FileStimuli([name])
    seen[name] = (Image.open(name).mode, tuple(stimuli.shapes[0]), tuple(stimuli.stimuli[0].shape))
    print(f"  {name}: mode {seen[name][0]}, shapes {seen[name][1]}, the loaded picture {seen[name][2]}")
expected = {
    "grey.png": ("L", (40, 60), (40, 60)),
    "grey16.png": ("I;16", (40, 60, 4), (40, 60)),
    "colour.png": ("RGB", (40, 60, 3), (40, 60, 3)),
    "ycbcr.tif": ("YCbCr", (40, 60, 5), (40, 60, 3)),
    "palette.png": ("P", (40, 60), (40, 60, 3)),
}
if seen != expected:
    sys.exit(f"changed: expected {expected}")
PY
