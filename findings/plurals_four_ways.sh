#!/usr/bin/env bash
set -euo pipefail
# Packages: textblob 0.20.1, inflect 7.6.0, simplemma 2.0.0 and lemminflect 0.2.3.
# Found: four programs that bring a word to its singular or base form do not agree on twelve ordinary plurals.
#   The one that is right on all of them cuts words that are no plurals.
# Expected: pie, tie, toe, canoe, ear, olive, shelf, thief, half, loaf, lens, ox (twelve cues or answers of a word association).
#   For bus, gas, lens, canvas and chaos inflect should return False, as it does for glass, dress and horse.
# Seen: TextBlob makes py, ty, to, cano and olife, shelve and thieve, and leaves ears as it is. Of simplemma's forms, shelve, thieve
#   and halve are verbs, and loave and lense are no words. The form oxen stays in lemminflect. Only inflect has all twelve right.
#   But of the singular nouns inflect makes bu, ga, len, canva and chao.
# Source: the help of inflect's singular_noun says that it returns False if a singular noun is passed.
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check --no-deps 'textblob==0.20.1' 'nltk==3.10.4' 'click==8.5.1' 'joblib==1.6.0' \
  'regex==2026.11.19' 'tqdm==4.70.1' 'defusedxml==0.7.1' 'inflect==7.6.0' 'jaraco.functools==4.6.0' 'more-itertools==11.2.1' 'typeguard==4.6.1' \
  'typing-extensions==4.16.0' 'simplemma==2.0.0' 'lemminflect==0.2.3' 'numpy==2.3.5'
venv/bin/python - <<'PY'
import sys
from importlib.metadata import version

import inflect
import lemminflect
import simplemma
from textblob import Word

print(*(f"{name} {version(name)}" for name in ("textblob", "inflect", "simplemma", "lemminflect")))
engine = inflect.engine()
programs = {
    "textblob": lambda word: str(Word(word).singularize()),
    "inflect": lambda word: engine.singular_noun(word) or word,
    "simplemma": lambda word: simplemma.lemmatize(word, lang="en"),
    "lemminflect": lambda word: lemminflect.getLemma(word, upos="NOUN")[0],
}
right = {
    "pies": "pie",
    "ties": "tie",
    "toes": "toe",
    "canoes": "canoe",
    "ears": "ear",
    "olives": "olive",
    "shelves": "shelf",
    "thieves": "thief",
    "halves": "half",
    "loaves": "loaf",
    "lenses": "lens",
    "oxen": "ox",
}
seen = {}
singulars = "glass dress horse bus gas lens canvas chaos".split()
for name, singular in programs.items():
    forms = {plural: singular(plural) for plural in right}
    seen[name] = {plural: form for plural, form in forms.items() if form != right[plural]}
    print(f"  {name}: {seen[name] or 'all right'}")
seen["inflect, singulars"] = {word: engine.singular_noun(word) for word in singulars}
print(f"  inflect, singulars: {seen['inflect, singulars']}")
expected = {
    "textblob": {
        "pies": "py",
        "ties": "ty",
        "toes": "to",
        "canoes": "cano",
        "ears": "ears",
        "olives": "olife",
        "shelves": "shelve",
        "thieves": "thieve",
    },
    "inflect": {},
    "simplemma": {"shelves": "shelve", "thieves": "thieve", "halves": "halve", "loaves": "loave", "lenses": "lense"},
    "lemminflect": {"oxen": "oxen"},
    "inflect, singulars": {
        "glass": False,
        "dress": False,
        "horse": False,
        "bus": "bu",
        "gas": "ga",
        "lens": "len",
        "canvas": "canva",
        "chaos": "chao",
    },
}
if seen != expected:
    sys.exit(f"changed: expected {expected}")
PY
