#!/usr/bin/env bash
set -euo pipefail
# Package: rouge-score 0.1.2, with its tokenizer as it comes.
# Found: all letters but a to z are taken for spaces.
# Expected: a caption that equals its reference scores 1, and two captions with other letters score less.
# Seen: equal captions in Hindi and Russian score 0. "ein Mädchen läuft" and "ein M dchen l uft" score 1.
#   "a naïve café" and "a naive cafe" share one piece of four and three: 0.2857, as naïve counts as "na" and "ve".
# Source: rouge_score/tokenize.py says that it replaces what is not alphanumeric; its pattern is a to z and 0 to 9.
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check --no-deps 'rouge-score==0.1.2' 'nltk==3.10.4' 'numpy==2.3.5' 'six==1.17.0' \
  'absl-py==2.5.1' 'click==8.5.1' 'joblib==1.6.0' 'regex==2026.11.19' 'tqdm==4.70.1' 'defusedxml==0.7.1'
venv/bin/python - <<'PY'
import sys
from importlib.metadata import version

from rouge_score import rouge_scorer

print("rouge-score", version("rouge-score"))
scorer = rouge_scorer.RougeScorer(["rougeL"])
pairs = {
    "Hindi, equal": ("एक कुत्ता घास पर", "एक कुत्ता घास पर"),
    "Russian, equal": ("собака бежит", "собака бежит"),
    "German, letters gone": ("ein Mädchen läuft", "ein M dchen l uft"),
    "accents": ("a naïve café", "a naive cafe"),
    "English, equal": ("a dog runs", "a dog runs"),
}
seen = {name: round(float(scorer.score(*pair)["rougeL"].fmeasure), 4) for name, pair in pairs.items()}
for name, value in seen.items():
    print(f"  {name}: {pairs[name][0]} | {pairs[name][1]}: {value}")
expected = {"Hindi, equal": 0.0, "Russian, equal": 0.0, "German, letters gone": 1.0, "accents": 0.2857, "English, equal": 1.0}
if seen != expected:
    sys.exit(f"changed: expected {expected}")
PY
