"""Write the JSON Schemas in docs/ from the models: ``python scripts/make_schemas.py [--check]``.

With ``--check`` nothing is written; the exit code is 1 if a file is missing or out of date.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import orjson

from serving.runs.records import json_schema, stimulus_schema

DOCS = Path(__file__).resolve().parent.parent / "docs"


def render() -> dict[Path, bytes]:
    """Each schema's file and what it should hold."""
    schemas = {"record.schema.json": json_schema(), "stimulus.schema.json": stimulus_schema()}
    options = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
    return {DOCS / name: orjson.dumps(schema, option=options) for name, schema in schemas.items()}


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Write the JSON Schemas in docs/ from the models.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a file is out of date")
    arguments = parser.parse_args(argv)
    stale = {path: data for path, data in render().items() if not path.exists() or path.read_bytes() != data}
    for path, data in stale.items():
        if arguments.check:
            print(f"{path} is out of date; run python scripts/make_schemas.py", file=sys.stderr)
        else:
            path.write_bytes(data)
            print(f"wrote {path}")
    return 1 if stale and arguments.check else 0


if __name__ == "__main__":
    sys.exit(main())
