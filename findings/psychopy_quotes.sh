#!/usr/bin/env bash
set -euo pipefail
# Package: psychopy 2026.2.5 (its module data alone, without a display). Its table is read again by Python's csv and by pandas 3.1.1.
# Found: the .csv of an experiment puts quotation marks around an answer with a comma, and does not double the marks in the answer.
# Expected: the answers of three people come back as they were typed: fish, "blue" / "red", or "blue" / salt; sand.
# Seen: Python's csv gives 'fish, blue""' for the first. The second is two cells, so that its row is too long, and pandas refuses the file.
#   With ";" between the cells (delim="semicolon"), the answer "salt; sand" is two cells, as only a comma brings quotation marks.
# Source: ExperimentHandler.saveAsWideText in psychopy/data/experiment.py, which writes '"%s"' % answer where the answer has a comma.
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
export HOME="$dir" # psychopy writes its preferences there
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check --no-deps 'psychopy==2026.2.5' 'pandas==3.1.1' 'numpy==2.3.5' \
  'scipy==1.17.1' 'openpyxl==3.1.5' 'et-xmlfile==2.0.0' 'python-dateutil==2.9.0.post0' 'pytz==2026.6' 'tzdata==2026.6' 'six==1.17.0' \
  'requests==2.34.2' 'urllib3==2.8.0' 'certifi==2026.10.18' 'idna==3.20' 'charset-normalizer==3.5.2' 'packaging==26.3' 'PyYAML==6.0.3' \
  'json-tricks==3.17.3' 'i18next==0.0.3'
cat > try.py <<'PY'
import csv
import sys
from importlib.metadata import version

import pandas
from psychopy import data

print("psychopy", version("psychopy"), "pandas", version("pandas"))
typed = ['fish, "blue"', '"red", or "blue"', "salt; sand"]
experiment = data.ExperimentHandler(name="words", savePickle=False, saveWideText=False)
for answer in typed:
    experiment.addData("answer", answer)
    experiment.addData("rt", 512)
    experiment.nextEntry()
experiment.saveAsWideText("comma.csv", delim="comma")
experiment.saveAsWideText("semicolon.csv", delim="semicolon")
experiment.abort()

seen = {}
for name, separator in (("comma.csv", ","), ("semicolon.csv", ";")):
    with open(name, newline="", encoding="utf-8-sig") as file:
        print(file.read())
        file.seek(0)
        header, *rows = csv.reader(file, delimiter=separator)
    place = header.index("answer")
    seen[name] = [(len(row) - len(header), row[place]) for row in rows]
    print(f"  {name}: cells more than the header, and the answer: {seen[name]}")
try:
    seen["pandas"] = str(pandas.read_csv("comma.csv")["answer"].tolist())
except pandas.errors.ParserError as error:
    seen["pandas"] = "ParserError"
print("  pandas:", seen["pandas"])
expected = {
    "comma.csv": [(0, 'fish, blue""'), (1, 'red"'), (0, "salt; sand")],
    "semicolon.csv": [(0, 'fish, blue""'), (0, 'red", or "blue""'), (1, "salt")],
    "pandas": "ParserError",
}
if seen != expected:
    sys.exit(f"changed: expected {expected}")
PY
venv/bin/python -W ignore try.py
