"""Every route of the OpenAPI document, asked by schemathesis what it promises and what it does not.

A hundred requests or so a route here; ``scripts/fuzz_http.py`` asks thousands.
"""

from __future__ import annotations

import re

import fuzz_http


def test_every_answer_is_one_that_the_document_names(served: str) -> None:
    done = fuzz_http.run(served, examples=15, seed=1)
    found = re.search(r"(\d+) generated, (\d+) passed", done.stdout)
    assert done.returncode == 0, done.stdout[-6000:]
    assert found is not None, done.stdout[-2000:]
    assert int(found[1]) == int(found[2]) > 300
