"""The set of 150 cues, the known answers beside it, and the comparison of a run with them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import compare_words
import pytest
import run_folders

from agents.errors import InputError
from agents.stimuli import WordStimulus, parse_row

ROOT = Path(__file__).parent.parent
LINES = (ROOT / "examples" / "words.jsonl").read_text(encoding="utf-8").splitlines()
STIMULI = [parse_row(line) for line in LINES]
PUBLISHED = json.loads((ROOT / "examples" / "words_published.json").read_text(encoding="utf-8"))


def test_every_cue_is_asked_in_both_versions() -> None:
    cues: dict[str, list[str]] = {"free": [], "prompted": []}
    for stimulus in STIMULI:
        assert isinstance(stimulus, WordStimulus)
        cues[stimulus.version].append(stimulus.cue)
        assert stimulus.id == f"{stimulus.version}/{stimulus.cue}"
        assert stimulus.benchmark_id == stimulus.cue
        assert len(stimulus.examples) == (3 if stimulus.version == "prompted" else 0)
    assert cues["free"] == cues["prompted"] == list(PUBLISHED["answers"])
    assert len(set(cues["free"])) == 150
    assert cues["free"][0] == "memorable"
    assert cues["free"][-1] == "come"


def test_prompts_are_as_they_were_printed() -> None:
    examples = {stimulus.cue: stimulus.examples for stimulus in STIMULI if stimulus.examples}
    assert examples["memorable"] == [("easy", "form"), ("business", "money"), ("future", "base")]
    assert examples["exclusive"][0] == ("unfortunately", "unluckily;")
    words = [word for pairs in examples.values() for pair in pairs for word in pair]
    odd = Counter(word for word in words if not (word.islower() and word.isalpha()))
    assert odd == {"Happy": 1, "a bit": 1, "unluckily;": 2, "facilitate;": 3, "unknown;": 2}
    assert len({pair for pairs in examples.values() for pair in pairs}) == 126


def test_the_known_answers_are_four_columns() -> None:
    columns = ["word2vec", "gpt2", "gpt3-embedding", "gpt3-curie"]
    assert all(list(said) == columns for said in PUBLISHED["answers"].values())
    assert list(PUBLISHED["answers"]["puppy"].values()) == ["kitten", "dog", "kitten", "dog"]


SAID = {
    "free": {"foot": "shoes", "take": "give", "puppy": "dogs", "kindle": "kindle"},
    "prompted": {"foot": "feet", "take": "bake"},
}
KNOWN = {
    "foot": {"a": "feet", "b": "shoe"},
    "take": {"a": "took", "b": "give"},
    "puppy": {"a": "dog", "b": "dogs"},
    "kindle": {"a": "amazon", "b": "kindle"},
    "unasked": {"a": "x", "b": "y"},
}
PEOPLE = {"foot": ["shoe", "leg"], "take": ["give"], "puppy": ["dog", "dog"], "kindle": ["Kindle", "book"]}


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    rows, records = [], []
    for version, said in SAID.items():
        for cue, word in said.items():
            row: dict[str, Any] = {"id": f"{version}/{cue}", "task": "word_association", "cue": cue.capitalize()}
            rows.append(row | ({"version": "prompted", "examples": [["a", "b"]]} if version == "prompted" else {}))
            answer = {"word": word, "candidates": None, "skipped": []}
            for sample, given in enumerate((answer, answer | {"word": "?"})):
                records.append(run_folders.record(row["id"], "word_association", "w", answer=given, sample=sample))
    agents = {"w": run_folders.agent_entry("word_association")}
    run = run_folders.write_run(tmp_path / "run", rows, {"w": records}, agents)
    (tmp_path / "published.json").write_text(json.dumps({"answers": KNOWN}))
    (tmp_path / "people.json").write_text(json.dumps({"associations": PEOPLE}))
    return {"run": run, "published": tmp_path / "published.json", "people": tmp_path / "people.json"}


def test_counts_with_the_rules_off_and_on(files: dict[str, Path]) -> None:
    found = compare_words.compare(files["run"], files["published"], files["people"])
    assert list(found) == ["w, free", "w, prompted", "a", "b"]
    free = found["w, free"]
    # feet and took break a rule; dogs becomes dog.
    assert free["published"] == {
        "a": {"cues": 4, "as_said": 0, "rules": 1},
        "b": {"cues": 4, "as_said": 3, "rules": 3},
    }
    assert free["people"] == {"cues": 4, "as_said": 1, "rules": 3}
    assert {(one["cue"], one["rule"]) for one in free["broken"]} == {
        ("foot", "becomes shoe"),
        ("puppy", "becomes dog"),
        ("kindle", "overlap"),
    }
    # The same word on both sides is the same as it was said, but no answer by the rules.
    assert found["w, prompted"]["published"]["a"] == {"cues": 2, "as_said": 1, "rules": 0}
    assert list(found["a"]["published"]) == ["b"]
    assert found["a"]["people"]["as_said"] == 1


def test_the_command_prints_a_table_and_one_line_of_json(
    files: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    argv = [str(files["run"]), "--published", str(files["published"])]
    assert compare_words.main([*argv, "--people", str(files["people"])]) == 0
    out = capsys.readouterr().out
    assert "0 / 1 of 4" in out
    assert "kindle for kindle (overlap)" in out
    assert json.loads(out.splitlines()[-1])["w, free"]["people"]["rules"] == 3
    assert compare_words.main(argv) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["w, free"]["people"] is None


@pytest.mark.parametrize("content", ["{", '{"associations": {"foot": "shoe"}}'])
def test_bad_files_are_named(files: dict[str, Path], content: str, capsys: pytest.CaptureFixture[str]) -> None:
    files["people"].write_text(content)
    with pytest.raises(InputError, match=r"people\.json"):
        compare_words.compare(files["run"], files["published"], files["people"])
    assert compare_words.main([str(files["run"]), "--people", "none.json"]) == 2
    assert "none.json cannot be read" in capsys.readouterr().err


def test_a_run_without_words_is_refused(files: dict[str, Path]) -> None:
    (files["run"] / "records" / "w.jsonl").write_text("")
    with pytest.raises(InputError, match="no answers of word association"):
        compare_words.compare(files["run"], files["published"], None)
