"""Opening a run folder again: with the same set in another order, a longer one, a changed one, after a crash."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agents.errors import IdentityError
from serving.runs.positions import id_key
from serving.runs.run import Run, open_run


@pytest.fixture
def out(tmp_path: Path) -> Path:
    (tmp_path / "run" / "records").mkdir(parents=True)
    return tmp_path / "run"


def word(id: str, cue: str = "cat") -> dict[str, Any]:
    return {"id": id, "task": "word_association", "cue": cue}


def opened(out: Path, rows: list[dict[str, Any]], skip_invalid: bool = False) -> Run:
    source = out.parent / "set.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    run = open_run(out, source, task=None, seed=None, samples=1, described={}, skip_invalid=skip_invalid)
    ids = [json.loads(row)["id"] for row in run.rows()]
    assert run.index.key.tolist() == [id_key(id) for id in ids]
    assert run.index.count_kinds().total() == len(ids)
    return run


def test_order_does_not_matter_and_rows_may_be_added(out: Path) -> None:
    first = opened(out, [word("a"), word("b")])
    assert opened(out, [word("b"), word("a")]).index.sha256 == first.index.sha256
    longer = opened(out, [word("b"), {"id": "t", "task": "conversation"}, word("a")])
    assert longer.index.count_kinds(2) == {("word_association", None): 1, ("conversation", None): 1}
    with pytest.raises(IdentityError) as caught:
        opened(out, [word("a", "dog"), word("c")])
    assert [(one.field, one.message) for one in caught.value.problems] == [
        ("b", "is missing from the set"),
        ("t", "is missing from the set"),
        ("a", "has changed since the run began"),
    ]
    assert len(opened(out, [word("b"), {"id": "t", "task": "conversation"}, word("a")]).index.key) == 3


def test_a_row_that_cannot_be_read_for_a_while_must_come_back_unchanged(out: Path) -> None:
    first = opened(out, [word("a"), word("b")])
    spoilt = opened(out, [word("b"), word("a", "")], skip_invalid=True)
    assert spoilt.index.sha256 == first.index.sha256
    assert list(spoilt.invalid) == [1]
    with pytest.raises(IdentityError, match="another set"):
        opened(out, [word("a", "dog"), word("b")])
    assert opened(out, [word("a"), word("b")]).invalid == {}


def test_rows_of_another_order_without_an_index_are_read_anew(out: Path) -> None:
    """A process that was killed between the rows and their index leaves no index."""
    opened(out, [word("a"), word("b")])
    rows = (out / "stimuli.jsonl").read_bytes().splitlines(keepends=True)
    (out / "stimuli.index").unlink()
    (out / "stimuli.jsonl").write_bytes(rows[1] + rows[0])
    assert len(opened(out, [word("a"), word("b")]).index.key) == 2
    (out / "stimuli.index").unlink()
    assert len(opened(out, [word("c"), word("b"), word("a")]).index.key) == 3
