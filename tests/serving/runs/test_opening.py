"""Opening a run folder again: with the set in another order, longer, changed, after a crash, and of an old version."""

import json
from pathlib import Path
from typing import Any

import pytest

from agents import catalogue
from agents.errors import IdentityError
from serving.cli import main
from serving.runs.opening import PreparedRun, prepare_run
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


def opened(out: Path, rows: list[dict[str, Any]], skip_invalid: bool = False) -> PreparedRun:
    source = out.parent / "set.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    prepared = prepare_run(out, source, seed=None, samples=1, described={}, skip_invalid=skip_invalid)
    read_again = Run(out)
    assert list(read_again.kinds.items()) == list(prepared.stimuli.kinds.items())
    asked = [(row.position, row.id, row.kind, json.loads(row.json)) for row in prepared.stimuli.rows()]
    written = zip(read_again.kinds.items(), read_again.stimuli(), strict=True)
    assert asked == [(position, id, kind, row) for position, (((_, id), kind), row) in enumerate(written)]
    return prepared


def sha256(prepared: PreparedRun) -> str:
    return str(prepared.run.meta["set"]["sha256"])


def test_order_does_not_matter_and_rows_may_be_added(out: Path) -> None:
    first = sha256(opened(out, [word("a"), word("b")]))
    assert sha256(opened(out, [word("b"), word("a")])) == first
    longer = opened(out, [word("b"), TALK, word("a")])
    assert [*longer.stimuli.kinds.values()][:2] == [("word_association", None), ("conversation", None)]
    with pytest.raises(IdentityError) as caught:
        opened(out, [word("a", "dog"), word("c")])
    assert [(problem.field, problem.message) for problem in caught.value.problems] == [
        ("b", "is missing from the set"),
        ("t", "is missing from the set"),
        ("a", "has changed since the run began"),
    ]
    assert len(opened(out, [word("b"), TALK, word("a")]).stimuli.kinds) == 3


def test_a_row_that_cannot_be_read_for_a_while_must_come_back_unchanged(out: Path) -> None:
    first = sha256(opened(out, [word("a"), word("b")]))
    spoilt = opened(out, [word("b"), word("a", "")], skip_invalid=True)
    assert sha256(spoilt) == first
    assert list(spoilt.stimuli.invalid) == [1]
    with pytest.raises(IdentityError, match="another set"):
        opened(out, [word("a", "dog"), word("b")])
    assert opened(out, [word("a"), word("b")]).stimuli.invalid == {}


def test_of_repeated_ids_the_first_is_kept(out: Path) -> None:
    rows = [word("a"), word("b", ""), word("a", "dog"), TALK, {**TALK, "id": "a"}]
    stimuli = opened(out, rows, skip_invalid=True).stimuli
    assert [id for _, id in stimuli.kinds] == ["a", "b", "t"]
    assert (stimuli.skipped, list(stimuli.invalid)) == (2, [1])


@pytest.mark.parametrize("index", [b"", b"turinglike.index/4\n[[["])
def test_without_an_index_the_set_must_be_the_same(out: Path, index: bytes) -> None:
    opened(out, [word("a"), word("b")])
    (out / "stimuli.index").write_bytes(index)
    for rows in ([word("a"), word("b", "dog")], [word("c"), word("b"), word("a")]):
        with pytest.raises(IdentityError, match="another set"):
            opened(out, rows)
    assert len(opened(out, [word("b"), word("a")]).stimuli.kinds) == 2
    assert len(opened(out, [word("c"), word("b"), word("a")]).stimuli.kinds) == 3


def test_a_run_from_before_the_renaming(tmp_path: Path, out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "set.jsonl"
    source.write_text("".join(json.dumps(word(name)) + "\n" for name in "ab"))
    entry = catalogue.get("null")
    about = run_entry([(entry, entry.make())])
    prepare_run(out, source, seed=0, samples=1, described={"null": about})
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
