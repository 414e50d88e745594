"""What the first page of a study tells is what then comes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from judging.study.kinds import material_of
from judging.study.pages.first_page import assumed_minutes, first_page
from judging.study.pages.phrases import read_phrases
from judging.study.serving_study import ServedStudy
from judging.study.step_pages import view
from tests.helpers import online_studies, study_folders, talk_studies
from tests.helpers.study_folders import Visitor, run, turinglike

if TYPE_CHECKING:
    from playwright.sync_api import Browser


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


def test_it_says_who_may_not_begin_and_whoever_has_begun_still_may(tmp_path: Path) -> None:
    trials = study_folders.write_trials(tmp_path / "T", study_folders.word_trials(20))
    folder = study_folders.write_study(tmp_path / "study", trials, "word_association", number=2, worker="PID")

    async def work(served: ServedStudy) -> None:
        judge, _ = await served.join(None, "aa")
        asked = (None, "", "aa", "bb")
        assert [served.why_not(None, panel_id) for panel_id in asked] == [None] * 4
        await served.set_entry(is_open=False)
        assert [served.why_not(None, panel_id) for panel_id in asked] == ["no_new", "no_new", None, "no_new"]
        again, _ = await served.join(None, "aa")
        assert again is judge
        await served.end()
        assert [served.why_not(None, panel_id) for panel_id in asked] == ["closed", "closed", None, "closed"]

    run(folder, work)


def test_a_study_that_takes_nobody_has_a_sentence_in_place_of_the_button(browser: Browser, tmp_path: Path) -> None:
    trials = study_folders.write_trials(tmp_path / "T", study_folders.word_trials(20))
    folder = study_folders.write_study(tmp_path / "study", trials, "word_association", number=2)
    with study_folders.serving(folder, TURINGLIKE_API_KEY="k" * 20) as server:
        page = browser.new_context().new_page()
        page.goto(server.url)
        begin = page.get_by_role("button", name="Begin")
        begin.wait_for()
        admin = Visitor(server.port, authorization=f"Bearer {'k' * 20}")
        assert admin.post("/admin/entry", open=False)[0] == 200
        begin.click()  # the page was loaded before
        page.get_by_text("This study takes no new participants now.").wait_for()
        page.reload()
        page.get_by_role("status").get_by_text("This study takes no new participants now.").wait_for()
        assert begin.count() == 0
        assert page.get_by_text("What will happen").is_visible()
        assert admin.post("/admin/entry", open=True)[0] == 200
        page.reload()
        begin.click()
        page.get_by_role("heading", name="What to do").wait_for()
        page.context.clear_cookies()
    assert turinglike("study", "close", folder) == 0
    with study_folders.serving(folder) as server:
        page.goto(server.url)
        page.get_by_role("status").get_by_text("This study is closed.").wait_for()
        assert begin.count() == 0
        page.context.close()
