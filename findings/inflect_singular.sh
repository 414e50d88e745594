#!/usr/bin/env bash
set -euo pipefail
# Package: inflect 7.6.0.
# Found: singular_noun, which should return False for a singular noun, takes common nouns that end in -s for plurals.
# Expected: False for bus, gas, lens, virus, cactus, canvas, iris, tennis and chaos, as for glass, dress and horse.
# Seen: bu, ga, len, viru, cactu, canva, iri, tenni and chao. A test "is this answer a plural?" says yes to each.
# Source: the function's help says that it returns False if a singular noun is passed.
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check --no-deps 'inflect==7.6.0' 'jaraco.functools==4.6.0' 'more-itertools==11.2.1' 'typeguard==4.6.1' \
  'typing-extensions==4.16.0'
venv/bin/python - <<'PY'
import sys
from importlib.metadata import version

import inflect

print("inflect", version("inflect"))
engine = inflect.engine()
words = "glass dress horse bus gas lens virus cactus canvas iris tennis chaos".split()
seen = {word: engine.singular_noun(word) for word in words}
for word, form in seen.items():
    print(f"  {word}: {form}")
expected = dict.fromkeys(words[:3], False) | {word: word[:-1] for word in words[3:]}
if seen != expected:
    sys.exit(f"changed: expected {expected}")
PY
