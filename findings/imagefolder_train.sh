#!/usr/bin/env bash
set -euo pipefail
# Package: datasets 5.2.0 (the loader "imagefolder"), without a network.
# Found: a picture of a train makes all other pictures of its folder vanish, as its name is also that of a split.
# Expected: the folder with car.png, dog.png and train.png has three pictures, as the folder with car.png, cat.png and dog.png has.
# Seen: one picture, train.png, and no notice. "train station.png" and "test 1.png" do the same.
#   And in metadata.csv the participant 007 becomes 7.0, the participant NA and the caption "null" become None.
# Source: the Hub's page on file names and splits says that a file may name its split; it does not say what becomes of the others.
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
export HOME="$dir" HF_HUB_OFFLINE=1 HF_HOME="$dir/hub" # nothing is looked up, and all files stay here
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'datasets==5.2.0' 'pillow==12.0.0' 'numpy==2.3.5' 'pandas==2.3.3' 'pyarrow==26.0.1' \
  'huggingface_hub==2.4.0'
venv/bin/python -W ignore - <<'PY'
import os
import sys
from importlib.metadata import version

import datasets
from PIL import Image

datasets.disable_progress_bars()
print("datasets", version("datasets"))


def load(folder, names, metadata=None):
    os.makedirs(folder)
    for name in names:
        Image.new("RGB", (8, 8)).save(f"{folder}/{name}")
    if metadata:
        with open(f"{folder}/metadata.csv", "w", encoding="utf-8") as file:
            file.write(metadata)
    splits = datasets.load_dataset("imagefolder", data_dir=folder, cache_dir=f"cache-{folder}")
    return {name: split.cast_column("image", datasets.Image(decode=False)) for name, split in splits.items()}


def names(splits):
    return {name: sorted(os.path.basename(row["image"]["path"]) for row in split) for name, split in splits.items()}


seen = {
    "car, cat, dog": names(load("plain", ["car.png", "cat.png", "dog.png"])),
    "car, dog, train": names(load("train", ["car.png", "dog.png", "train.png"])),
    "car, dog, train station": names(load("station", ["car.png", "dog.png", "train station.png"])),
    "car, dog, test 1": names(load("test", ["car.png", "dog.png", "test 1.png"])),
}
rows = load("table", ["1.png", "2.png"], "file_name,participant,caption\n1.png,007,null\n2.png,NA,the sea\n")["train"]
seen["metadata.csv"] = [(row["participant"], row["caption"]) for row in rows]
for name, value in seen.items():
    print(f"  {name}: {value}")
expected = {
    "car, cat, dog": {"train": ["car.png", "cat.png", "dog.png"]},
    "car, dog, train": {"train": ["train.png"]},
    "car, dog, train station": {"train": ["train station.png"]},
    "car, dog, test 1": {"test": ["test 1.png"]},
    "metadata.csv": [(7.0, None), (None, "the sea")],
}
if seen != expected:
    sys.exit(f"changed: expected {expected}")
PY
