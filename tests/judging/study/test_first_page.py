"""What the first page of a study tells is what then comes."""

from pathlib import Path
from typing import Any

import pytest

from judging.study.kinds import material_of
from judging.study.pages.first_page import assumed_minutes, first_page
from judging.study.pages.phrases import read_phrases
from judging.study.serving_study import ServedStudy
from judging.study.step_pages import view
from tests.helpers import online_studies, study_folders, talk_studies
from tests.helpers.study_folders import run


@pytest.mark.parametrize("practice", [0, 2])
def test_it_tells_the_numbers_of_the_steps(tmp_path: Path, practice: int) -> None:
    trials = study_folders.write_trials(tmp_path / "T", study_folders.word_trials(60, catch=40))
    changes: dict[str, Any] = {"number": 10, "practice": practice, "catch": 0.2, "repeats": 0.3, "break_every": 5}
    study = study_folders.write_study(tmp_path / "study", trials, "word_association", after=["comments"], **changes)
    seen: list[dict[str, Any]] = []

    async def work(served: ServedStudy) -> None:
        judge, _ = await served.join(None, None)
        while judge.current is not None:
            seen.append(view(served, judge))
            said = {"verdicts": ["human"], "rt": 900.0} if judge.current.kind == "trial" else {}
            await served.answer(judge, judge.step, said)

    run(study, work)
    told = first_page(material_of(study))
    pages = [page for page in seen if page["kind"] == "trial"]
    assert [(page["number"], page["of"]) for page in pages if page["practice"]] == [
        (at, practice) for at in range(1, practice + 1)
    ]
    counted = [(page["number"], page["of"]) for page in pages if not page["practice"]]
    assert counted == [(at, 15) for at in range(1, 16)]  # ten, two to catch, three a second time
    assert (told["what"], told["number"]) == ("first_words", 15)
    phrases = [step["phrase"] for step in told["happens"]]
    of_practice = ["first_practice"] if practice else []
    assert phrases == ["first_instructions", *of_practice, "first_judge", "first_breaks", "first_after", "first_end"]
    english = read_phrases(study, material_of(study).settings)
    assert {*phrases, told["what"]} <= english.keys()
    # the instructions, a question, and 8 s for each trial
    assert told["minutes"] == assumed_minutes(material_of(study)) == -(-(30 + 6 + 8 * (15 + practice)) // 60)


@pytest.mark.parametrize(("minutes", "told"), [(0.02, 3), (5.0, 7), (8.0, 10), (8.1, 15), (13.0, 15), (13.5, 20)])
def test_minutes_are_rounded_up_above_ten_by_fives(tmp_path: Path, minutes: float, told: int) -> None:
    """A minute for consent and instructions, and one around the test, come to the test's own."""
    study = online_studies.made(tmp_path, "interrogation", minutes=minutes, each=1)
    material = material_of(study)
    assert first_page(material)["minutes"] == told
    assert first_page(material)["what"] == "first_tests"


def test_a_lab_may_say_it_in_its_own_words(tmp_path: Path) -> None:
    study = talk_studies.made(tmp_path, exchanges=6)
    assert first_page(material_of(study))["minutes"] == 4  # consent, instructions, a minute, six messages of 20 s
    study_folders.changed(study, institution="Vision Lab", duration_minutes=12, welcome="You talk.\n\nThen you go.")
    told = first_page(material_of(study))
    assert (told["institution"], told["minutes"], told["text"]) == ("Vision Lab", 12, "You talk.\n\nThen you go.")
