"""The set of 150 cues, the known answers beside it, and the comparison of a run with them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import published_words
import pytest
import run_folders

from agents.errors import InputError
from agents.stimuli import WordStimulus, parse_row

ROOT = Path(__file__).parent.parent
LINES = (ROOT / "examples" / "words.jsonl").read_text(encoding="utf-8").splitlines()
PUBLISHED = json.loads((ROOT / "examples" / "words_published.json").read_text(encoding="utf-8"))


def test_every_cue_is_asked_in_both_versions_as_it_was_printed() -> None:
    cues: dict[str, list[str]] = {"free": [], "prompted": []}
    examples = []
    for stimulus in map(parse_row, LINES):
        assert isinstance(stimulus, WordStimulus)
        cues[stimulus.version].append(stimulus.cue)
        assert stimulus.id == f"{stimulus.version}/{stimulus.cue}"
        assert stimulus.benchmark_id == stimulus.cue
        assert len(stimulus.examples) == (3 if stimulus.version == "prompted" else 0)
        examples += stimulus.examples
    assert cues["free"] == cues["prompted"] == list(PUBLISHED["answers"])
    assert (len(set(cues["free"])), cues["free"][0], cues["free"][-1]) == (150, "memorable", "come")
    assert examples[:3] == [("easy", "form"), ("business", "money"), ("future", "base")]
    odd = Counter(word for pair in examples for word in pair if not (word.islower() and word.isalpha()))
    assert odd == {"Happy": 1, "a bit": 1, "unluckily;": 2, "facilitate;": 3, "unknown;": 2}


def test_the_known_answers_are_four_columns() -> None:
    columns = ["word2vec", "gpt2", "gpt3-embedding", "gpt3-curie"]
    assert all(list(answers) == columns for answers in PUBLISHED["answers"].values())
    assert list(PUBLISHED["answers"]["puppy"].values()) == ["kitten", "dog", "kitten", "dog"]


ANSWERS = {
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
    for version, answers in ANSWERS.items():
        for cue, word in answers.items():
            row: dict[str, Any] = {"id": f"{version}/{cue}", "task": "word_association", "cue": cue.capitalize()}
            rows.append(row | ({"version": "prompted", "examples": [["a", "b"]]} if version == "prompted" else {}))
            answer = {"word": word, "candidates": None, "skipped": []}
            for sample, entry in enumerate((answer, answer | {"word": "?"})):
                records.append(run_folders.record(row["id"], "word_association", "w", answer=entry, sample=sample))
    agents = {"w": run_folders.agent_entry("word_association")}
    run = run_folders.write_run(tmp_path / "run", rows, {"w": records}, agents)
    (tmp_path / "published.json").write_text(json.dumps({"answers": KNOWN}))
    (tmp_path / "people.json").write_text(json.dumps({"associations": PEOPLE}))
    return {"run": run, "published": tmp_path / "published.json", "people": tmp_path / "people.json"}


def test_a_run_is_compared(files: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["compare", str(files["run"]), "--published", str(files["published"])]
    assert published_words.main([*argv, "--people", str(files["people"])]) == 0
    result = json.loads(capsys.readouterr().out)
    assert list(result) == ["w, free", "w, prompted", "a", "b"]
    # feet and took break a rule; dogs becomes dog.
    assert result["w, free"]["published"] == {
        "a": {"cues": 4, "as_said": 0, "rules": 1},
        "b": {"cues": 4, "as_said": 3, "rules": 3},
    }
    assert result["w, free"]["people"] == {"cues": 4, "as_said": 1, "rules": 3}
    assert {(row["cue"], row["rule"]) for row in result["w, free"]["broken"]} == {
        ("foot", "becomes shoe"),
        ("puppy", "becomes dog"),
        ("kindle", "overlap"),
    }
    # The same word on both sides is the same as it stands, but no answer by the rules.
    assert result["w, prompted"]["published"]["a"] == {"cues": 2, "as_said": 1, "rules": 0}
    assert list(result["a"]["published"]) == ["b"]


@pytest.mark.parametrize("content", ["{", '{"associations": {"foot": "shoe"}}', None])
def test_bad_files_are_named(files: dict[str, Path], content: str | None, capsys: pytest.CaptureFixture[str]) -> None:
    if content is None:
        files["people"].unlink()
    else:
        files["people"].write_text(content)
    for argv in (["compare", str(files["run"]), "--people"], ["truth"]):
        argv.append(str(files["people"]))
        assert published_words.main([*argv, "out.json"] if argv[0] == "truth" else argv) == 2
        assert "people.json" in capsys.readouterr().err


def test_a_run_without_words_is_refused(files: dict[str, Path]) -> None:
    (files["run"] / "records" / "w.jsonl").write_text("")
    with pytest.raises(InputError, match="no answers of word association"):
        published_words.compare(files["run"], files["published"], None)


def test_all_words_become_one_file(tmp_path: Path) -> None:
    people, out = tmp_path / "people.json", tmp_path / "word.json"
    people.write_text(json.dumps({"associations": {"puppy": ["dog", "cute"]}}))
    assert published_words.main(["truth", str(people), str(out), "--as-printed"]) == 0
    rows = [
        (row["groundtruth"], row["machine_groundtruth"], row["response"])
        for row in json.loads(out.read_text())["puppy"]
    ]
    assert rows[:3] == [("human", "", "dog"), ("human", "", "cute"), ("machine", "word2vec", "kitten")]
    assert rows[-1] == ("machine", "gpt3-davinci", "dog")
    people.write_text(json.dumps({"associations": {"nowhere": ["x"]}}))
    assert published_words.main(["truth", str(people), str(out)]) == 2
