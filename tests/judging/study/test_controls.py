"""Control questions about objects, made from what the stimuli say: what is right, what lacks, what a browser gets."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agents.errors import InputError
from judging.study.log.steps import MaterialStep
from judging.study.pages.controls import read_controls, uncertain_options
from judging.study.pages.trial_material import TrialMaterial
from judging.study.serving_study import ServedStudy
from judging.study.step_pages import view
from serving.cli import main
from tests.helpers import study_folders

PRESENT = ("Cat", "tree", "tree ")
ABSENT = ("dog", "boat", "CAT")


def rows(asked: str, number: int = 40, **objects: Any) -> dict[str, dict[str, Any]]:
    objects = objects or {"present": [*PRESENT], "absent": [*ABSENT]}
    return {f"t{at}": {"asked": asked, "stimulus": f"s{at}", "objects": objects} for at in range(number)}


def test_an_object_is_there_in_half_of_the_pictures() -> None:
    controls, again, other = (
        read_controls("object", Path(), rows("color_estimation"), seed) for seed in ("seed", "seed", "other")
    )
    assert Counter(control.correct for control in controls.values()) == {"yes": 20, "no": 20}
    for control in controls.values():  # what is there is not absent
        assert control.object in ({"cat", "tree"} if control.correct == "yes" else {"dog", "boat"})
        assert control.options == ("yes", "no")
    assert again == controls != other


def test_one_of_three_objects_is_in_a_clip() -> None:
    """The others are absent or, where a stimulus does not say what is, other stimuli's."""
    controls = read_controls("object", Path(), rows("attention_prediction"), "seed")
    assert all(each.correct in ("cat", "tree") and {"boat", "dog"} < set(each.options) for each in controls.values())
    names = ("bowl", "fork", "car", "sink")
    made = rows("attention_prediction", 400)
    for at, row in enumerate(made.values()):
        row["objects"] = {"present": [names[at % 4]]}
    controls = read_controls("object", Path(), made, "seed")
    for at in range(400):
        control = controls[f"s{at}"]
        assert control.correct == names[at % 4]
        assert len(set(control.options) & set(names)) == 3
    assert min(Counter(each.options.index(each.correct) for each in controls.values()).values()) > 80  # of 133


def test_options_that_may_be_in_the_clip_after_all_are_told() -> None:
    """Of two of three clips nothing says what is absent, or too little for two wrong options."""
    made = rows("attention_prediction", 3, present=["cup"], absent=["fork", "sink"])
    assert uncertain_options("object", made) is None
    made["t1"]["objects"] = {"present": ["fork"]}
    made["t2"]["objects"] = {"present": ["sink"], "absent": ["cup", "Sink"]}
    told = uncertain_options("object", made)
    assert told is not None
    assert "nothing says what is absent of 2 of 3 stimuli (s1, s2)" in told
    assert uncertain_options("", made) is None
    assert uncertain_options("object", rows("color_estimation", 3, present=["cup"])) is None  # which is refused


@pytest.mark.parametrize(
    ("asked", "objects", "why"),
    [
        ("color_estimation", {"present": ["cat"]}, r"3 of 3 stimuli \(s0, s1, s2\) lack `absent`: give them"),
        ("attention_prediction", {"present": ["cat"]}, "lack `absent`"),  # no other stimulus has another object
        ("attention_prediction", {"why": []}, "lack `present` and 3 of 3"),
    ],
)
def test_the_field_that_lacks_is_named(asked: str, objects: dict[str, Any], why: str) -> None:
    with pytest.raises(InputError, match=why):
        read_controls("object", Path(), rows(asked, 3, **objects), "seed")


def test_a_browser_gets_the_question_and_not_what_is_right(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = study_folders.picture_trials(tmp_path / "T", 12)
    for _, key in made:
        key["objects"] = json.dumps({"present": ["cat"], "absent": ["dog"]})
    trials = study_folders.write_trials(tmp_path / "T", made)
    study = study_folders.write_study(tmp_path / "study", trials, "image_captioning", number=8, control="object")

    async def work(served: ServedStudy) -> None:
        judge = await study_folders.arrived(served, "trial")
        assert isinstance(served.material, TrialMaterial)
        while judge.current is not None:
            assert isinstance(judge.current, MaterialStep)
            control = served.material.control(judge.current)
            assert control is not None
            name = {"yes": "cat", "no": "dog"}[control.correct]
            sent = {"question": "", "options": ["yes", "no"], "phrase": "is_there", "object": name}
            assert view(served, judge)["control"] == sent
            await served.answer(judge, judge.step, {"verdicts": ["human"], "control": "yes", "rt": 2000})

    study_folders.run(study, work)
    for _, key in made:
        key["objects"] = "{}" if key["stimulus"] == "picture 0" else key["objects"]
    others = study_folders.write_trials(tmp_path / "others", made)
    study = study_folders.write_study(tmp_path / "new", others, "image_captioning", number=8, control="object")
    assert main(["study", "check", str(study)]) == 2
    assert "trials.control: object: 1 of 12 stimuli" in capsys.readouterr().err
