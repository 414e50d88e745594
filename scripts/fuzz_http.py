"""Thousands of requests to a running server, made from its OpenAPI document by schemathesis, valid ones and others.

A fault is a status of 500, a status, type or body that the document does not name, and a connection that breaks.

    turinglike serve --agents null,mmcq,eliza &
    python scripts/fuzz_http.py [--url http://127.0.0.1:8000] [--examples 300] [--seed 1]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile

CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
PROGRAM = "import sys; from schemathesis.cli import schemathesis; sys.exit(schemathesis())"


def run(url: str, *, examples: int, seed: int) -> subprocess.CompletedProcess[str]:
    """Ask each route so many times in each of schemathesis's phases."""
    command = [sys.executable, "-c", PROGRAM, "run", f"{url}/openapi.json", "--checks", CHECKS, "--seed", str(seed)]
    command += ["--max-examples", str(examples), "--wait-for-schema", "120", "--no-color"]
    with tempfile.TemporaryDirectory() as folder:
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--examples", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    done = run(args.url, examples=args.examples, seed=args.seed)
    print(done.stdout + done.stderr)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
