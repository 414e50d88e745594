"""Pairs of conversations on a person's page, in a browser: side by side, or one below the other."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import study_folders

from judging.study.events import read_state
from serving.cli import main

if TYPE_CHECKING:
    from playwright.sync_api import Browser


def turinglike(*arguments: object) -> int:
    """The command, in a thread of its own: Playwright's event loop is this one's."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(main, [*map(str, arguments)]).result()


def test_a_new_study_of_pairs_asks_of_pairs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trials = study_folders.write_trials(tmp_path / "T", study_folders.pair_trials(13))
    assert main(["study", "new", str(trials), "-o", str(tmp_path / "study")]) == 0
    assert "two conversations beside each other" in (tmp_path / "study" / "study.toml").read_text()
    assert main(["study", "check", str(tmp_path / "study")]) == 0
    assert main(["study", "new", str(trials), "-o", str(tmp_path / "other"), "--preset", "2025"]) == 2
    assert "the papers have no pairs" in capsys.readouterr().err


def test_a_person_says_in_which_conversation_the_machine_speaks(browser: Browser, tmp_path: Path) -> None:
    trials = study_folders.write_trials(tmp_path / "T", study_folders.pair_trials(8))
    study = study_folders.write_study(tmp_path / "study", trials, "conversation", number=4, practice=1)
    assert turinglike("study", "kit", study, 1, "-o", tmp_path / "kit.html") == 0
    context = browser.new_context(accept_downloads=True, viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.goto((tmp_path / "kit.html").as_uri())
    page.get_by_role("button", name="Begin").click()
    page.get_by_text("On a keyboard: F for the first conversation, J for the second").wait_for()
    page.get_by_role("button", name="Continue").click()
    for number, key in enumerate("fjfjf"):
        page.get_by_role("heading", name=f"Trial {number} of 4" if number else "Practice").wait_for()
        page.locator("fieldset.all:enabled").wait_for()
        page.get_by_text("In which of the two conversations does a machine speak?").wait_for()
        first, second = (page.locator(".pair section").nth(at).bounding_box() for at in (0, 1))
        assert first["y"] == second["y"]  # type: ignore[index]
        assert first["x"] + first["width"] < second["x"]  # type: ignore[index]
        if number == 1:
            page.set_viewport_size({"width": 360, "height": 740})
            first, second = (page.locator(".pair section").nth(at).bounding_box() for at in (0, 1))
            assert first["y"] + first["height"] <= second["y"]  # type: ignore[index]
            assert page.evaluate("document.documentElement.scrollWidth") <= 360
            page.set_viewport_size({"width": 1280, "height": 900})
        page.keyboard.press(key)
        chosen = page.locator("label:has(input:checked)")
        assert chosen.inner_text().split("\n")[0].strip() == ("First" if key == "f" else "Second") + " conversation"
        page.keyboard.press("Enter")
        if not number:
            page.get_by_text("It was: ").wait_for()
            page.keyboard.press("Enter")
    page.locator(".code").wait_for()
    with page.expect_download() as download:
        page.get_by_role("button", name="Save all answers").click()
    download.value.save_as(tmp_path / "answers.json")
    context.close()
    assert turinglike("study", "import", study, tmp_path / "answers.json") == 0
    [judge] = read_state(study).judges.values()
    given = [one["verdicts"] for one in judge.answers if one["kind"] == "trial"]
    assert given == [["machine"], ["human"], ["machine"], ["human"], ["machine"]]
