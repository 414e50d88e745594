"""What was written when the project had its older name is read, counted, exported and continued."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from run_folders import record

from agents import catalogue
from serving.cli import main
from serving.runs.run import digest, open_run
from serving.runs.schemas import IMPORT, RECORD, RUN, mismatch


@pytest.mark.parametrize("schema", [RECORD, RUN, IMPORT])
def test_names_that_are_read(schema: str) -> None:
    assert mismatch(schema, schema) is mismatch(schema.replace("turinglike", "understudy"), schema) is None
    assert "newer version" in str(mismatch(schema.replace("/1", "/12"), schema))
    for other in ("other/1", "turinglike.else/1", None, 1, ["x"]):
        assert mismatch(other, schema) == f"does not say {schema}"


def test_a_run_from_before_the_renaming(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, out = tmp_path / "set.jsonl", tmp_path / "run"
    rows = [{"id": name, "task": "word_association", "cue": name} for name in "ab"]
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    entry = catalogue.get("null")
    about = digest([(entry, entry.make())])
    (out / "records").mkdir(parents=True)
    open_run(out, source, task=None, seed=0, samples=1, described={"null": about})
    made = {**record()["provenance"], "digest": about["digest"]}
    lines = [json.dumps(record(name, "word_association", "null", provenance=made)) + "\n" for name in "ab"]
    (out / "records" / "null.jsonl").write_text("".join(lines))
    for path in (out / "run.json", out / "records" / "null.jsonl", out / "stimuli.index"):
        path.write_bytes(path.read_bytes().replace(b"turinglike", b"understudy"))
    assert b"understudy.run/1" in (out / "run.json").read_bytes()

    assert main(["status", str(out)]) == 0
    assert main(["report", str(out)]) == 0
    assert main(["export", str(out), "--format", "jsonl", "--out", str(tmp_path / "all.jsonl")]) == 0
    assert [json.loads(line)["stimulus"] for line in (tmp_path / "all.jsonl").read_text().splitlines()] == ["a", "b"]
    capsys.readouterr()
    assert main(["generate", str(source), "--agents", "null", "--out", str(out)]) == 0
    assert "nothing is left to answer" in capsys.readouterr().out
    assert main(["generate", str(source), "--agents", "null", "--out", str(out), "--seed", "1"]) == 2
    assert "the run has 0, given is 1" in capsys.readouterr().err
