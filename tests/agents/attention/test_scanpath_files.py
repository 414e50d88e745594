"""How many fixations people make, from files, and numbers of fixations drawn from them."""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from agents.attention import scanpath
from agents.attention.scanpath_files import read_lengths


def row(response: object, human: str) -> dict[str, Any]:
    about = {"groundtruth": "human", "human_groundtruth": human} if human else {"groundtruth": "machine"}
    return {"imageID": "001", "response": response, **about}


ANSWER = {"fixations": [[1, 1]] * 4, "frame": [9, 9]}
FILES = {
    "ground truth": ("fv.json", {"img001.jpg": [row([[1, 1]] * 15, ""), row([[1, 1]] * 4, "05")], "img002.jpg": []}),
    "submission": ("fv.json", {"img001": [[1, 1]] * 4}),
    "COCO-Search18": ("people.json", [{"name": "a", "subject": 1, "X": [1, 2, 3, 4], "Y": [1, 2, 3, 4]}]),
    "records": ("run.jsonl", {"task": "attention_prediction", "status": "ok", "stimulus": "a", "answer": ANSWER}),
    "numbers": ("lengths.txt", 4),
}


@pytest.mark.parametrize("form", FILES)
def test_every_form_of_file_says_how_many_fixations_people_make(form: str, tmp_path: Path) -> None:
    name, content = FILES[form]
    (tmp_path / name).write_text(json.dumps(content))
    assert read_lengths(tmp_path / name) == (4,)


def test_of_an_export_of_people_and_machines_only_peoples_count(tmp_path: Path) -> None:
    """A machine that makes fifteen each time would say of people what the setting is to undo."""
    task = {"task": "attention_prediction", "stimulus": "a", "status": "ok"}
    machine = {**task, "kind": "machine", "answer": {"fixations": [[1, 1]] * 15, "frame": [9, 9]}}
    rows = [machine, {**task, "kind": "human", "answer": ANSWER}, machine]
    (tmp_path / "all.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows))
    assert read_lengths(tmp_path / "all.jsonl") == (4,)
    (tmp_path / "machines.jsonl").write_text(json.dumps(machine))
    assert read_lengths(tmp_path / "machines.jsonl") == (15,)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.txt", "4\nfour"),
        ("a.txt", ""),
        ("a.txt", "0"),
        ("a.json", "{}"),
        ("a.json", "[{}]"),
        ("b.json", "[" * 100_000),
        ("b", ""),
    ],
)
def test_a_file_without_lengths_is_refused_with_its_name_before_anything_loads(
    name: str, text: str, tmp_path: Path
) -> None:
    if name != "b":
        (tmp_path / name).write_text(text)
    with pytest.raises(ValidationError, match=name):
        scanpath.PathSettings(lengths=tmp_path / name)
