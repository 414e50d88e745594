"""Every route of the OpenAPI document, asked by schemathesis what it promises and what it does not.

A fault is a status of 500, a status, type or body that the document does not name, what the document forbids and is
taken, an undeclared method that is not 405 with Allow, and a connection that breaks.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,"
    "negative_data_rejection,unsupported_method"
)
PROGRAM = "import sys; from schemathesis.cli import schemathesis; sys.exit(schemathesis())"


@pytest.mark.slow
def test_every_answer_is_one_that_the_document_names(served: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, "run", f"{served}/openapi.json", "--checks", CHECKS, "--seed", "1"]
    command += ["--mode", "all", "--max-examples", "6", "--wait-for-schema", "120", "--no-color"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    found = re.search(r"(\d+) generated, (\d+) passed", ended.stdout)
    assert ended.returncode == 0, ended.stdout[-6000:]
    assert found is not None, ended.stdout[-2000:]
    assert int(found[1]) == int(found[2]) > 150
