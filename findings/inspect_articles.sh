#!/usr/bin/env bash
set -euo pipefail
# Package: inspect-ai 0.3.285.
# Found: the scorers exact() and f1() take away a, an and the before they compare. Of an answer that is an article nothing is left.
# Expected: an answer that equals its target is correct, as match() and includes() say.
# Seen: target "the" and answer "the": exact says incorrect and f1 says 0. "a" and "A" likewise (an option's letter, or a word answer).
#   And exact says that "the sea" equals "sea".
# Source: the help of exact says that it is correct if the answer matches a target exactly after both are normalised.
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
export HOME="$dir" # inspect keeps its files there
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check --no-deps 'inspect-ai==0.3.285' 'PyYAML==6.0.4' 'Pygments==2.21.0' \
  'annotated-types==0.8.0' 'anyio==4.16.0' 'attrs==26.1.0' 'botocore==1.43.117' 'certifi==2026.10.18' 'click==8.5.1' 'docstring_parser==0.18.0' \
  'fsspec==2026.6.0' 'h11==0.16.0' 'httpcore==1.0.9' 'httpx==0.28.1' 'idna==3.20' 'ijson==3.6.0' 'jsonlines==4.0.0' 'jsonpatch==1.48' \
  'jsonpointer==3.12' 'mmh3==5.3.1' 'nest-asyncio2==1.7.4' 'numpy==2.3.5' 'platformdirs==4.14.8' 'psutil==7.2.2' 'pydantic==2.14.4' \
  'pydantic_core==2.50.5' 'python-dateutil==2.9.0.post0' 'python-dotenv==1.2.4' 'rich==15.0.0' 'semver==3.1.2' 'shortuuid==1.0.13' \
  'six==1.17.0' 'sniffio==1.3.1' 'starlette==1.10.0' 'tenacity==9.2.1' 'textual==8.2.8' 'typing-inspection==0.4.5' 'typing_extensions==4.16.0' \
  'zipfile-zstd==0.0.4' 'zstandard==0.25.0'
venv/bin/python -W ignore - <<'PY'
import asyncio
import sys
from importlib.metadata import version

from inspect_ai.model import ModelName, ModelOutput
from inspect_ai.scorer import Target, exact, f1, includes, match
from inspect_ai.solver import TaskState

print("inspect-ai", version("inspect-ai"))
scorers = {"exact": exact(), "f1": f1(), "match": match(), "includes": includes()}


def state(answer):
    output = ModelOutput.from_content("mockllm/model", answer)
    return TaskState(model=ModelName("mockllm/model"), sample_id=1, epoch=1, input="", messages=[], output=output)


async def main():
    seen = {}
    for target, answer in (("the", "the"), ("A", "A"), ("sea", "sea"), ("sea", "the sea")):
        values = {name: (await scorer(state(answer), Target(target))).value for name, scorer in scorers.items()}
        seen[f"{target} | {answer}"] = values
        print(f"  target {target!r}, answer {answer!r}: {values}")
    return seen


seen = asyncio.run(main())
wrong = {"exact": "I", "f1": 0.0, "match": "C", "includes": "C"}
right = {"exact": "C", "f1": 1.0, "match": "C", "includes": "C"}
expected = {"the | the": wrong, "A | A": wrong, "sea | sea": right, "sea | the sea": right}
if seen != expected:
    sys.exit(f"changed: expected {expected}")
PY
