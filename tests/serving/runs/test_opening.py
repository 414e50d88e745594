"""Opening a run folder again: with the set in another order, longer, changed, after a crash, and of an old version."""

import json
from pathlib import Path
from typing import Any

import pytest

from agents import catalogue
from agents.errors import IdentityError
from serving.cli import main
from serving.runs.opening import prepare_run
from serving.runs.run import Run
from serving.runs.run_json import run_entry
from tests.helpers.run_folders import record

TALK = {"id": "t", "task": "conversation"}


@pytest.fixture
def out(tmp_path: Path) -> Path:
    (tmp_path / "run" / "records").mkdir(parents=True)
    return tmp_path / "run"


def word(id: str, cue: str = "cat") -> dict[str, Any]:
    return {"id": id, "task": "word_association", "cue": cue}


def opened(out: Path, rows: list[dict[str, Any]], skip_invalid: bool = False) -> Run:
    source = out.parent / "set.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    run = prepare_run(out, source, task=None, seed=None, samples=1, described={}, skip_invalid=skip_invalid)
    assert [json.loads(row)["id"] for row in run.rows()] == [id for _, id in run.kinds]
    assert list(Run(out).kinds.items()) == list(run.kinds.items())
    return run


def sha256(run: Run) -> str:
    return str(run.meta["set"]["sha256"])


def test_order_does_not_matter_and_rows_may_be_added(out: Path) -> None:
    first = sha256(opened(out, [word("a"), word("b")]))
    assert sha256(opened(out, [word("b"), word("a")])) == first
    longer = opened(out, [word("b"), TALK, word("a")])
    assert [*longer.kinds.values()][:2] == [("word_association", None), ("conversation", None)]
    with pytest.raises(IdentityError) as caught:
        opened(out, [word("a", "dog"), word("c")])
    assert [(problem.field, problem.message) for problem in caught.value.problems] == [
        ("b", "is missing from the set"),
        ("t", "is missing from the set"),
        ("a", "has changed since the run began"),
    ]
    assert len(opened(out, [word("b"), TALK, word("a")]).kinds) == 3


def test_a_row_that_cannot_be_read_for_a_while_must_come_back_unchanged(out: Path) -> None:
    first = sha256(opened(out, [word("a"), word("b")]))
    spoilt = opened(out, [word("b"), word("a", "")], skip_invalid=True)
    assert sha256(spoilt) == first
    assert list(spoilt.invalid) == [1]
    with pytest.raises(IdentityError, match="another set"):
        opened(out, [word("a", "dog"), word("b")])
    assert opened(out, [word("a"), word("b")]).invalid == {}


def test_of_repeated_ids_the_first_is_kept(out: Path) -> None:
    run = opened(out, [word("a"), word("b", ""), word("a", "dog"), TALK, {**TALK, "id": "a"}], skip_invalid=True)
    assert [id for _, id in run.kinds] == ["a", "b", "t"]
    assert (run.skipped, list(run.invalid)) == (2, [1])


@pytest.mark.parametrize("index", [b"", b"turinglike.index/4\n[[["])
def test_without_an_index_the_set_must_be_the_same(out: Path, index: bytes) -> None:
    opened(out, [word("a"), word("b")])
    (out / "stimuli.index").write_bytes(index)
    for rows in ([word("a"), word("b", "dog")], [word("c"), word("b"), word("a")]):
        with pytest.raises(IdentityError, match="another set"):
            opened(out, rows)
    assert len(opened(out, [word("b"), word("a")]).kinds) == 2
    assert len(opened(out, [word("c"), word("b"), word("a")]).kinds) == 3


def test_a_run_from_before_the_renaming(tmp_path: Path, out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "set.jsonl"
    source.write_text("".join(json.dumps(word(name)) + "\n" for name in "ab"))
    entry = catalogue.get("null")
    about = run_entry([(entry, entry.make())])
    prepare_run(out, source, task=None, seed=0, samples=1, described={"null": about})
    provenance = {**record()["provenance"], "digest": about["digest"]}
    lines = [json.dumps(record(name, "word_association", "null", provenance=provenance)) + "\n" for name in "ab"]
    (out / "records" / "null.jsonl").write_text("".join(lines))
    for path in (out / "run.json", out / "records" / "null.jsonl", out / "stimuli.index"):
        path.write_bytes(path.read_bytes().replace(b"turinglike", b"understudy"))
    assert b"understudy.run/1" in (out / "run.json").read_bytes()

    assert main(["status", str(out)]) == 0
    assert main(["report", str(out)]) == 0
    assert main(["export", str(out), "--format", "jsonl", "--out", str(tmp_path / "all.jsonl")]) == 0
    assert [json.loads(line)["stimulus"] for line in (tmp_path / "all.jsonl").read_text().splitlines()] == ["a", "b"]
    capsys.readouterr()
    assert main(["generate", str(source), "--agents", "null", "--out", str(out), "--here"]) == 0
    assert "nothing is left to answer" in capsys.readouterr().out
    assert main(["generate", str(source), "--agents", "null", "--out", str(out), "--seed", "1"]) == 2
    assert "the run has 0, not 1" in capsys.readouterr().err
