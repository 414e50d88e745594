"""The words of a study's pages in other languages: all are there, numbers have their forms, Arabic runs leftwards."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from PIL import Image as PILImage

from judging.study.design.english_texts import english_texts
from judging.study.design.settings import read_settings
from judging.study.pages import phrases
from judging.study.pages.phrases import languages, phrase_of, read_phrases
from serving.cli import main
from tests.helpers import study_folders, talk_studies
from tests.helpers.watched_page import WatchedPage

if TYPE_CHECKING:
    from playwright.sync_api import Browser

OTHERS = ("ar", "de", "es", "fr", "zh")
FOLDER = Path(phrases.__file__).parent


def words(language: str) -> dict[str, str]:
    name = "phrases.toml" if language == "en" else f"phrases.{language}.toml"
    read: dict[str, str] = tomllib.loads((FOLDER / name).read_text("utf-8"))
    return read


def test_the_languages_are_those_of_the_page() -> None:
    assert languages() == sorted(["en", *OTHERS])
    page = (Path(__file__).parents[3] / "docs" / "studies.md").read_text("utf-8")
    section = page[page.index("### Languages") : page.index("### Control questions")]
    told = dict(re.findall(r"^\| `(\w\w)` \| (\w+.*?) \|$", section, re.MULTILINE))
    assert {name: "unverified" in text for name, text in told.items()} == {
        name: name in phrases.UNVERIFIED for name in languages()
    }


@pytest.mark.parametrize("language", OTHERS)
def test_every_phrase_is_there_with_what_is_filled_in(language: str) -> None:
    english = words("en")
    other = words(language)
    of_all = [{name for name in words if phrase_of(name) == name} for words in (english, other)]
    assert of_all[0] == of_all[1] == {phrase_of(name) for name in other}
    for name, text in other.items():
        assert text.strip(), name
        fields = set(re.findall(r"\{\w+\}", text))
        if phrase_of(name) == name:
            assert fields == set(re.findall(r"\{\w+\}", english[name])), name
        else:
            assert fields <= set(re.findall(r"\{\w+\}", english[phrase_of(name)])), name
    same = [name for name, text in other.items() if text == english.get(name)]
    assert len(same) <= 10, same  # such as "Machine" in French


def test_each_number_has_the_form_of_its_language(browser: Browser) -> None:
    """Beside the plural rules of Unicode, as the browser has them."""
    page = browser.new_page()
    for language in languages():
        ask = "language => Array.from({ length: 201 }, (_, at) => new Intl.PluralRules(language).select(at))"
        needed = set(page.evaluate(ask, language)) - {"other"}
        there = words(language)
        of_numbers = {phrase_of(name) for name in words("en") if phrase_of(name) != name}
        assert len(of_numbers) > 5
        for name in of_numbers:
            assert {form for form in phrases.PLURAL_FORMS if f"{name}_{form}" in there} == needed, (language, name)
    page.close()


def test_what_check_says_of_languages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trials = study_folders.write_trials(tmp_path / "T", study_folders.word_trials(20))
    study = study_folders.write_study(tmp_path / "study", trials, "word_association", number=4)

    def told(language: str, **own: str) -> tuple[int, str]:
        study_folders.changed(study, language=language, phrases="own.toml" if own else "")
        (study / "own.toml").write_text("".join(f"{name} = {json.dumps(text)}\n" for name, text in own.items()))
        capsys.readouterr()
        rc = main(["study", "check", str(study)])
        return rc, capsys.readouterr().err

    assert told("en") == (0, "")
    assert told("de-AT")[0] == 0
    assert "no native reader has checked the words" in told("de-AT")[1]
    assert read_phrases(study, read_settings(study))["begin"] == "Beginnen"
    rc, said = told("pl")
    assert rc == 0
    assert "in English. There are words in ar, de, en, es, fr, zh" in said
    assert read_phrases(study, read_settings(study))["begin"] == "Begin"
    polish = {name: f"pl {text}" for name, text in words("en").items() if phrase_of(name) == name}
    texts = 'language = "pl": these texts of study.toml are still the English ones: title, instructions, thanks. '
    assert told("pl", **polish, talk_left_few="{left} wiadomości") == (
        0,
        f"warning: {texts}Write them in the language of the participants\n",
    )
    read = read_phrases(study, read_settings(study))
    assert read["talk_left_few"] == "{left} wiadomości"
    assert "talk_left_one" not in read  # the English form beside Polish words would be wrong
    rc, said = told(
        "pl", **{name: text for name, text in polish.items() if name != "begin"}, begn="x", first_by_one="y"
    )
    assert rc == 2
    assert "these phrases are missing: begin" in said
    assert "these phrases are unknown: begn (did you mean begin?), first_by_one" in said
    later = {name: text for name, text in polish.items() if name not in phrases.LATER_PHRASES}
    rc, said = told("de", **later)
    assert rc == 0
    assert 'the pages show these phrases in the shipped words of "de"' in said
    read = read_phrases(study, read_settings(study))
    assert (read["first_minutes_one"], read["begin"]) == ("Etwa 1 Minute", "pl Begin")


@pytest.mark.parametrize("task", ["word_association", "color_estimation", "image_captioning", "tests"])
def test_texts_that_are_still_english_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str], task: str) -> None:
    """`study new` writes them in English, whatever the language: a study would go out with two languages."""
    source = tmp_path / "set.jsonl"
    row = {"id": "a", "cue": "sun"} if task == "word_association" else {"id": "a", "image": "a.png"}
    source.write_text(json.dumps(row) + "\n")
    PILImage.new("RGB", (30, 20)).save(tmp_path / "a.png")
    made = [str(source), "--task", task] if task != "tests" else ["--preset", "interrogation"]
    told = "these texts of study.toml are still the English ones: "
    for language in ("fr", "it", "en-GB"):
        study = tmp_path / language
        assert main(["study", "new", *made, "-o", str(study), "--set", f"language={language}"]) == 0
        out = capsys.readouterr().out
        assert (told in out) == (language != "en-GB")
        assert english_texts(read_settings(study)) == (
            [] if language == "en-GB" else ["title", "consent", "instructions", "thanks"]
        )
    settings = tmp_path / "fr" / "study.toml"
    text = settings.read_text("utf-8").replace("Thank you for taking part.", "Merci.")
    settings.write_text(re.sub("(?m)^title = .*$", 'title = "Couleurs"', text), "utf-8-sig")  # as an editor of Windows
    assert english_texts(read_settings(tmp_path / "fr")) == ["consent", "instructions"]


def test_a_study_in_arabic_goes_from_the_right(browser: Browser, tmp_path: Path) -> None:
    trials = study_folders.write_trials(tmp_path / "T", study_folders.picture_trials(tmp_path / "T", 20))
    changes = {"number": 3, "practice": 2, "language": "ar", "institution": "جامعة", "consent": "?"}
    study = study_folders.write_study(tmp_path / "study", trials, "image_captioning", **changes)
    arabic = words("ar")
    with study_folders.serving(study) as server:
        watched = WatchedPage(browser, viewport={"width": 390, "height": 844})
        page = watched.page
        page.goto(server.url)
        page.get_by_text(arabic["first_pictures_few"].replace("{number}", "3"), exact=True).wait_for()
        assert page.evaluate("[document.documentElement.lang, document.documentElement.dir]") == ["ar", "rtl"]
        assert page.get_by_text("جامعة").is_visible()
        happens = page.locator(".happens").inner_text()
        assert arabic["first_practice_two"] in happens
        assert arabic["first_consent"] in happens
        assert arabic["first_questions"] not in happens
        for name in ("begin", "agree", "next"):
            page.get_by_role("button", name=arabic[name]).click()
        heading = arabic["practice"].replace("{number}", "1").replace("{of}", "2")
        page.get_by_role("heading", name=heading).wait_for()
        page.locator("fieldset.all:enabled").wait_for()
        boxes = {
            page.locator("kbd").nth(at).inner_text(): page.locator("label").nth(at).bounding_box() for at in (0, 1)
        }
        assert boxes["F"] is not None
        assert boxes["J"] is not None
        assert boxes["F"]["x"] < boxes["J"]["x"]  # as on the keyboard
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert watched.complaints == []
        watched.context.close()


def test_a_conversation_counts_its_messages_in_words(browser: Browser, tmp_path: Path) -> None:
    study = study_folders.changed(talk_studies.made(tmp_path, exchanges=2), language="de", duration_minutes=7)
    german = words("de")
    with study_folders.serving(study) as server:
        pages = [browser.new_context().new_page() for _ in range(2)]
        for page in pages:
            page.goto(server.url)
            page.get_by_text("Etwa 7 Minuten").wait_for()
            page.get_by_text("1 Gespräch", exact=True).wait_for()
            for name in ("Beginnen", "Ich stimme zu"):
                page.get_by_role("button", name=name).click()
            page.get_by_role("heading", name=german["instructions_title"]).wait_for()
            page.get_by_role("button", name="Weiter").click()
        for page in pages:
            page.get_by_text("Noch 2 Nachrichten").wait_for()
        speaks, listens = sorted(pages, key=lambda page: not page.get_by_text(german["your_turn"]).is_visible())
        speaks.get_by_label("Ihre Nachricht").fill("Hallo")
        speaks.keyboard.press("Enter")
        for page in (speaks, listens):
            page.get_by_text("Noch 1 Nachricht", exact=True).wait_for()
            page.context.close()
