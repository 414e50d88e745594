#!/usr/bin/env bash
set -euo pipefail
# Packages: irrCAC 0.4.4 (agreement of raters) and numba 0.68.1 (which pysaliency 0.2.22 needs), in one environment.
# Found: irrCAC declares coverage, a tool of its own tests, below version 7 as a package that every user must install.
#   numba looks whether coverage is there and then wants a part of it that came with version 7.
# Expected: both can be imported, as pip installs them together and `pip check` finds nothing broken.
# Seen: `import numba` ends with "AttributeError: module 'coverage' has no attribute 'types'"; without coverage it works.
# Source: the metadata of irrCAC (coverage 6.2 or newer, below 7.0) and numba's module misc/coverage_support.
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'irrCAC==0.4.4' 'numba==0.68.1' 'llvmlite==0.50.0' \
  'coverage==6.5.0' 'numpy==1.26.4' 'pandas==2.3.3' 'scipy==1.12.0'
cat > try.py <<'PY'
import importlib
import sys
from importlib.metadata import PackageNotFoundError, version

for name in ("irrCAC", "numba", "coverage", "numpy"):
    try:
        print(name, version(name))
    except PackageNotFoundError:
        print(name, "not installed")
try:
    importlib.import_module("numba")
    seen = "imported"
except Exception as error:
    seen = f"{type(error).__name__}: {error}"
print("import numba:", seen)
if seen != sys.argv[1]:
    sys.exit(f"changed: expected {sys.argv[1]}")
PY
venv/bin/pip check --disable-pip-version-check
venv/bin/python try.py "AttributeError: module 'coverage' has no attribute 'types'"
venv/bin/pip uninstall --quiet --yes coverage
venv/bin/python try.py imported
