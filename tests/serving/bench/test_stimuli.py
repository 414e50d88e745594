"""The stimuli that are measured with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agents.stimuli import TASKS
from serving.bench import stimuli
from serving.runs.checking import check_set

KINDS: list[Any] = [(task, None) for task in TASKS if task != "attention_prediction"]
KINDS += [("attention_prediction", mode) for mode in ("free", "search")]


@pytest.mark.parametrize("kind", KINDS)
def test_made_stimuli_are_sound_and_always_the_same(kind: Any, tmp_path: Path) -> None:
    written = []
    for name in ("a", "b", "b"):  # the second time the pictures are there already
        (tmp_path / name).mkdir(exist_ok=True)
        path = stimuli.write(tmp_path / name / "set.jsonl", {kind: 9})
        written.append({file.name: file.read_bytes() for file in (tmp_path / name).rglob("*.*")})
    assert written[0] == written[1] == written[2]
    assert list(check_set(path, deep=True).problems) == []
    found = stimuli.read(path)
    assert len({stimulus.id for stimulus in found}) == 9
    sizes = {(image.header().width, image.header().height) for one in found for image in one.images()[:1]}
    assert len(sizes) == (4 if found[0].images() else 0)
    assert stimuli.options(found[1]) == ({"speaker": "B", "turn": 0} if kind[0] == "conversation" else {})


def test_one_set_may_have_several_kinds(tmp_path: Path) -> None:
    found = stimuli.read(stimuli.write(tmp_path / "set.jsonl", {KINDS[-1]: 2, ("word_association", None): 5000}))
    assert len({stimulus.id for stimulus in found}) == 5002
