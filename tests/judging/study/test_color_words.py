"""Words for colours in other languages: one table for imports, and the words of the study pages are its first."""

import json
import tomllib
from collections import Counter
from pathlib import Path

import pytest
from PIL import Image as PILImage

from agents.answers import COLORS
from agents.color_words import COLOR_LANGUAGES, english_color, language_of_colors
from judging.study.pages import phrases
from serving.cli import main
from tests.helpers.imported_tables import imported, refusal, remarks
from tests.helpers.run_folders import read_back, record, stimulus, write_run

COLUMN = ("--task", "color")
FRENCH = ("rouge", "Noir", "marron", "VERTE", "turquoise", "rose")
ENGLISH = ("red", "black", "brown", "green", "turquoise", "pink")


def table(words: tuple[str, ...], person: str = "p1") -> str:
    return "subject,image,response\n" + "".join(f"{person},{at}.png,{word}\n" for at, word in enumerate(words))


@pytest.mark.parametrize("language", COLOR_LANGUAGES)
def test_the_pages_of_studies_offer_words_of_the_table(language: str) -> None:
    words = tomllib.loads((Path(phrases.__file__).parent / f"phrases.{language}.toml").read_text("utf-8"))
    for color in COLORS:
        assert english_color(words[f"c_{color}"], language) == color
    every = tomllib.loads((Path(phrases.__file__).parents[3] / "agents" / "color_words.toml").read_text("utf-8"))
    for color in COLORS:
        assert every[language][color][0] == words[f"c_{color}"]
        assert {english_color(word.upper(), language) for word in every[language][color]} == {color}


def test_every_language_of_the_pages_is_in_the_table() -> None:
    assert sorted([*COLOR_LANGUAGES, "en"]) == phrases.languages()


@pytest.mark.parametrize(
    ("said", "language"),
    [
        ({"rouge": 3, "red": 10}, "fr"),
        ({"rouge": 1, "red": 20}, None),
        ({"rose": 5, "violet": 5, "orange": 9, "mauve": 1}, None),  # English, too
        ({"rojo": 2, "verde": 1}, "es"),
        ({"weiss": 2}, "de"),
        ({"\u0627\u062d\u0645\u0631": 1}, "ar"),  # without the hamza, as many type it
        ({"红": 1}, "zh"),
        ({"moon": 4}, None),
        ({}, None),
    ],
)
def test_the_language_of_colours(said: dict[str, int], language: str | None) -> None:
    assert language_of_colors(said) == language


def test_an_import_says_that_colours_are_french_and_reads_them_if_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = imported(tmp_path, "a.csv", table(FRENCH), *COLUMN)
    assert [row["answer"]["color"] for row in rows] == list(FRENCH)
    told = remarks(tmp_path)
    assert "the colours look French (rouge, Noir, marron, VERTE, …), and machines answer in English" in told
    assert "--color-words fr reads them as the English words" in told
    rows = imported(tmp_path, "a.csv", table(FRENCH), *COLUMN, "--color-words", "fr")
    assert [row["answer"]["color"] for row in rows] == list(ENGLISH)
    assert [row["raw"] for row in rows] == list(FRENCH)
    told = remarks(tmp_path)
    assert "colours in French were read as the English words: 5 answers" in told
    assert "answers that are none of the eleven colours in French stay as they are: 1 (turquoise)" in told
    assert "look French" not in told
    imported(tmp_path, "a.csv", table(ENGLISH), *COLUMN)
    assert "look" not in remarks(tmp_path)
    form = tmp_path / "lab.toml"
    form.write_text('name = "Lab"\ntask = "color"\ncolor_words = "fr"\n')
    rows = imported(tmp_path, "a.csv", table(FRENCH), "--form", str(form))
    assert [row["answer"]["color"] for row in rows] == list(ENGLISH)
    assert "--color-words it: there are ar, de, es, fr, zh" in refusal(
        tmp_path, capsys, "a.csv", table(FRENCH), *COLUMN, "--color-words", "it"
    )
    words = refusal(tmp_path, capsys, "a.csv", table(FRENCH), "--task", "caption", "--color-words", "fr")
    assert "--color-words is for answers of colours" in words


def test_an_import_says_that_words_are_hardly_english(tmp_path: Path) -> None:
    pytest.importorskip("wordfreq")
    french = "subject,cue,response\np,soleil,lune\np,mer,eau\np,pain,fromage\np,nuit,sommeil\n"
    imported(tmp_path, "a.csv", french, "--task", "word")
    assert "more than half of the different words are not English (lune, eau, fromage, sommeil)" in remarks(tmp_path)
    objects = 'subject,image,response\np,a.png,"chien, voiture, fenêtre, chaise"\n'
    imported(tmp_path, "a.csv", objects, "--task", "object")
    assert "more than half of the different words are not English" in remarks(tmp_path)
    english = "subject,cue,response\np,sun,moon\np,sea,fish and chips\np,bread,schmaltzy\n"
    imported(tmp_path, "b.csv", english, "--task", "word")
    assert "not English" not in remarks(tmp_path)


def test_trials_and_score_say_that_the_language_tells_people(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for at in range(6):
        PILImage.new("RGB", (30, 20), (40 * at, 90, 30)).save(tmp_path / f"{at}.png")
    colors = dict(zip((f"{at}.png" for at in range(6)), COLORS, strict=False))
    rows = [stimulus(name, "color_estimation", image=str(tmp_path / name)) for name in colors]
    answers = [record(name, "color_estimation", "mmcq", answer={"color": color}) for name, color in colors.items()]
    machine = write_run(tmp_path / "machine", rows, {"mmcq": answers})
    for person in ("p1", "p2"):
        path = tmp_path / f"{person}.csv"
        path.write_text(table(FRENCH, person))
        assert main(["import", str(path), *COLUMN, "--out", str(tmp_path / "people")]) == 0
    assert main(["trials", str(machine), str(tmp_path / "people"), "-o", str(tmp_path / "T")]) == 0
    sentence = "people's colours look French, and machines answer in English"
    assert sentence in capsys.readouterr().out
    about = json.loads((tmp_path / "T.trials.json").read_text())
    assert about["same_rules"]["languages"] == {"color_estimation": "fr"}
    verdicts = ["judge", str(tmp_path / "T"), "--judges", "cue-length", "--here", "--out", str(tmp_path / "V")]
    assert main(verdicts) == 0
    capsys.readouterr()
    assert main(["score", str(tmp_path / "V"), "-o", str(tmp_path / "S")]) == 0
    assert sentence in capsys.readouterr().out
    assert sentence.removeprefix("p") in (tmp_path / "S" / "index.html").read_text("utf-8").replace("&#39;", "'")
    assert Counter(row["answer"]["color"] for row in read_back(tmp_path / "people", "humans"))["rouge"] == 2
