#!/bin/sh
# The tests at the lowest versions of what pyproject.toml names (what those need in turn is at its newest), without vLLM,
# whose versions want one version of torch each. In .venv-lowest; needs Python 3.11 and uv. Arguments go to pytest.
set -eu
cd "$(dirname "$0")/.."
uv=$(command -v uv || echo .venv/bin/uv)
"$uv" venv --quiet --allow-existing --python "${PYTHON:-python3.11}" .venv-lowest
"$uv" pip install --python .venv-lowest/bin/python --resolution lowest-direct --editable \
    '.[attention,cloud,judging,openai,parquet,pysaliency,rank,serve,test,vision,words]'
exec .venv-lowest/bin/python -m pytest "$@"
