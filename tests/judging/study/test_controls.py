"""Control questions about objects, made from what the stimuli say: what is right, what lacks, what a browser gets."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import study_folders

from agents.errors import InputError
from judging.study.controls import read_controls
from judging.study.pages import view
from judging.study.study import Study
from serving.cli import main

HERE = Path()
PRESENT, ABSENT = ("Cat", "tree", "tree "), ("dog", "boat", "CAT")


def rows(asked: str, number: int = 40, **objects: Any) -> dict[str, dict[str, Any]]:
    objects = objects or {"present": [*PRESENT], "absent": [*ABSENT]}
    return {f"t{at}": {"asked": asked, "stimulus": f"s{at}", "objects": objects} for at in range(number)}


@pytest.mark.parametrize("asked", ["color_estimation", "object_detection"])
def test_an_object_is_there_in_half_of_the_pictures(asked: str) -> None:
    found = read_controls("object", HERE, rows(asked), "seed")
    assert Counter(one.right for one in found.values()) == {"yes": 20, "no": 20}
    for one in found.values():
        assert one.object in ({"cat", "tree"} if one.right == "yes" else {"dog", "boat"})  # what is there is not absent
        assert one.options == ("yes", "no")
    again, other = (read_controls("object", HERE, rows(asked), seed) for seed in ("seed", "other"))
    assert again == found != other


def test_one_of_three_objects_is_in_a_clip() -> None:
    """The others are absent or, where a stimulus does not say what is, other stimuli's."""
    found = read_controls("object", HERE, rows("attention_prediction"), "seed")
    assert all(one.right in ("cat", "tree") and {"boat", "dog"} < set(one.options) for one in found.values())
    names = ("bowl", "fork", "car", "sink")
    some = {name: row | {"objects": {"present": [names[at % 4]]}}
            for at, (name, row) in enumerate(rows("attention_prediction", 400).items())}  # fmt: skip
    found = read_controls("object", HERE, some, "seed")
    places = Counter(one.options.index(one.right) for one in found.values())
    for at in range(400):
        one = found[f"s{at}"]
        assert one.right == names[at % 4]
        assert len(set(one.options)) == 3
        assert set(one.options) <= set(names)
    assert min(places.values()) > 80  # of 133


@pytest.mark.parametrize(
    ("asked", "objects", "told"),
    [
        ("color_estimation", {"present": ["cat"]}, r"3 of 3 stimuli \(s0, s1, s2\) lack `absent`: give them"),
        ("object_detection", {"absent": ["cat"]}, r"3 of 3 stimuli \(s0, s1, s2\) lack `present`: give them"),
        ("attention_prediction", {"present": ["cat"]}, "lack `absent`"),  # no other stimulus has another object
        ("attention_prediction", {"why": []}, "lack `present` and 3 of 3"),
    ],
)
def test_the_field_that_lacks_is_named(asked: str, objects: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        read_controls("object", HERE, rows(asked, 3, **objects), "seed")


def test_a_browser_gets_the_question_and_not_what_is_right(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = study_folders.picture_trials(tmp_path / "T", 12)
    for _, key in made:
        key["objects"] = json.dumps({"present": ["cat"], "absent": ["dog"]})
    trials = study_folders.write_trials(tmp_path / "T", made)
    study = study_folders.write_study(tmp_path / "study", trials, "image_captioning", number=8, control="object")
    told: Counter[str] = Counter()

    async def work(served: Study) -> None:
        judge = await study_folders.arrived(served, "trial")
        while judge.current is not None and judge.current["kind"] == "trial":
            shown = view(served, judge)["control"]
            name = {"yes": "cat", "no": "dog"}[served.material.control(judge.current).right]  # type: ignore[attr-defined]
            assert shown == {"question": "", "options": ["yes", "no"], "phrase": "is_there", "object": name}
            told[name] += 1
            await served.answer(judge, judge.step, {"verdicts": ["human"], "control": "yes", "rt": 2000})

    study_folders.run(study, work)
    assert told.total() == 8
    for _, key in made:
        if key["stimulus"] in ("picture 0", "picture 1"):
            key["objects"] = "{}"
    study_folders.write_trials(tmp_path / "T", made)
    assert main(["study", "check", str(study)]) == 2
    said = capsys.readouterr().err
    assert "trials.control: object: " in said
    assert "2 of 12 stimuli (picture 0, picture 1) lack `present` and 2 of 12" in said
