"""scripts/published_words.py: a run beside the published words, and the figures of docs/words.md."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import published_words
import pytest

from agents.errors import InputError
from tests.helpers import run_folders

ROOT = Path(__file__).parent.parent
COLUMNS = {"Word2vec": "word2vec", "GPT-2": "gpt2", "GPT-3 embedding": "gpt3-embedding", "GPT-3 curie": "gpt3-curie"}


def test_the_figures_of_the_page_come_from_the_published_words() -> None:
    result = published_words.compare(None)
    page = (ROOT / "docs" / "words.md").read_text()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line.startswith("|")]
    head = next(cells for cells in rows if cells[1:2] == ["Word2vec"])
    shown = {cells[0]: cells for cells in rows if cells[0] in COLUMNS}
    assert shown.keys() == COLUMNS.keys()
    for label, cells in shown.items():
        for other, cell in zip(head[1:5], cells[1:5], strict=True):
            if other != label:
                counts = result[COLUMNS[label]]["published"][COLUMNS[other]]
                assert {counts["as_said"], counts["rules"]} == {int(number) for number in re.findall(r"\d+", cell)}
    in_words = {"six": 6}
    [number] = re.findall(r"(\w+) of the 600 published answers break these rules", page)
    assert sum(len(column["broken"]) for column in result.values()) == in_words[number.lower()]


ANSWERS = {
    "free": {"foot": "shoes", "take": "give", "puppy": "dogs", "kindle": "kindle"},
    "prompted": {"foot": "feet", "take": "bake"},
}
MACHINES = {
    "foot": {"a": "feet", "b": "shoe"},
    "take": {"a": "took", "b": "give"},
    "puppy": {"a": "dog", "b": "dogs"},
    "kindle": {"a": "amazon", "b": "kindle"},
    "unasked": {"a": "x", "b": "y"},
}
PEOPLE = {"foot": ["shoe", "leg"], "take": ["give"], "puppy": ["dog", "dog"], "kindle": ["Kindle", "book"]}


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    rows = []
    records = []
    for version, answers in ANSWERS.items():
        for cue, word in answers.items():
            row: dict[str, Any] = {"id": f"{version}/{cue}", "task": "word_association", "cue": cue.capitalize()}
            if version == "prompted":
                row |= {"version": "prompted", "examples": [["a", "b"]]}
            rows.append(row)
            answer: dict[str, Any] = {"word": word, "candidates": None, "skipped": []}
            for sample, entry in enumerate((answer, answer | {"word": "?"})):
                records.append(run_folders.record(row["id"], "word_association", "w", answer=entry, sample=sample))
    agents = {"w": run_folders.agent_entry("word_association")}
    run = run_folders.write_run(tmp_path / "run", rows, {"w": records}, agents)
    machines = {
        cue: [{"response": word, "groundtruth": "machine", "machine_groundtruth": name} for name, word in by.items()]
        for cue, by in MACHINES.items()
    }
    people = {cue: [{"response": word, "groundtruth": "human"} for word in words] for cue, words in PEOPLE.items()}
    (tmp_path / "published.json").write_text(json.dumps(machines))
    (tmp_path / "people.json").write_text(json.dumps(people))
    return {"run": run, "published": tmp_path / "published.json", "people": tmp_path / "people.json"}


def test_a_run_is_compared(files: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    argv = [str(files["run"]), "--published", str(files["published"])]
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


@pytest.mark.parametrize("content", ["{", '{"foot": ["shoe"]}', None])
def test_bad_files_are_named(files: dict[str, Path], content: str | None, capsys: pytest.CaptureFixture[str]) -> None:
    if content is None:
        files["people"].unlink()
    else:
        files["people"].write_text(content)
    assert published_words.main([str(files["run"]), "--people", str(files["people"])]) == 2
    assert "people.json" in capsys.readouterr().err


def test_a_run_without_words_is_refused(files: dict[str, Path]) -> None:
    (files["run"] / "records" / "w.jsonl").write_text("")
    with pytest.raises(InputError, match="no answers of word association"):
        published_words.compare(files["run"], files["published"], None)
