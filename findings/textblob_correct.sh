#!/usr/bin/env bash
set -euo pipefail
# Package: textblob 0.20.1.
# Found: correct() knows words from old books. It turns correct words of today, such as people write for pictures, into others.
# Expected: a word that is spelled rightly stays.
# Seen: "a man eats pizza and looks at a laptop" becomes "a man eats penza and looks at a lawton".
#   The word robot becomes root, shark sharp, panda and, giraffe griffe, zebra vera. The words skateboard and sofa stay.
# Source: the head of textblob/en/en-spelling.txt says that its counts come from old books in the public domain and two word lists.
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check --no-deps 'textblob==0.20.1' 'nltk==3.10.4' 'click==8.5.1' 'joblib==1.6.0' \
  'regex==2026.11.19' 'tqdm==4.70.1' 'defusedxml==0.7.1'
venv/bin/python - <<'PY'
import sys
from importlib.metadata import version

from textblob import TextBlob, Word

print("textblob", version("textblob"))
seen = {word: str(Word(word).correct()) for word in ("robot", "shark", "panda", "giraffe", "zebra", "koala", "skateboard", "sofa")}
caption = "a man eats pizza and looks at a laptop"
seen[caption] = str(TextBlob(caption).correct())
for text, value in seen.items():
    print(f"  {text} -> {value}")
expected = {
    "robot": "root",
    "shark": "sharp",
    "panda": "and",
    "giraffe": "griffe",
    "zebra": "vera",
    "koala": "coal",
    "skateboard": "skateboard",
    "sofa": "sofa",
    caption: "a man eats penza and looks at a lawton",
}
if seen != expected:
    sys.exit(f"changed: expected {expected}")
PY
