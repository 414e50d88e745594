"""Tells in scores: tables, sentences, the page and its figure; and that further versions change no other table."""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from drawn_versions import Design, classifier, people_see_all

from judging import judge, score
from judging import trials as draw_trials
from judging.scores.computing import compute_scores
from judging.scores.scores import Scores
from judging.scores.tell_sentences import tell_sentences
from judging.statistics.versions import DRAWN
from tests.judging.trial_sets.test_versions_of_trials import captions

NUMBER = 60
NOUNS = ["dog", "cat", "tree", "house", "car"]
WITHOUT_VERSIONS = {
    "excluded": None,
    "catch": False,
    "swapped": False,
    "repeat_of": None,
    "sample": 0,
    "asked": "word_association",
}
OF_PAIRS = dict.fromkeys(("beside_truth", "beside_agent", "beside_speaker"))


def whole(table: pd.DataFrame) -> pd.DataFrame:
    """Drawn verdicts with the columns that tables of verdicts have."""
    named = table.assign(judge=[f"human:j{number}" for number in table["judge"]])
    return named.assign(**WITHOUT_VERSIONS, **OF_PAIRS)


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> tuple[Scores, Path]:
    """A machine that writes as people do, but for a full stop at the end, and capitals now and then."""
    folder = tmp_path_factory.mktemp("tells")
    chance = np.random.default_rng(1)
    texts: list[list[str]] = [[], []]
    for at in range(NUMBER):
        for side, of_side in enumerate(texts):
            first = "A" if chance.random() < 0.4 + 0.2 * side else "a"
            second = " and a tree" if chance.random() < 0.5 else ""
            stop = "." if side and chance.random() < 0.8 else ""
            of_side.append(f"{first} {NOUNS[at % 5]} by a {NOUNS[(at // 5) % 5]}{second}{stop}")
    run = captions(folder, *texts)
    draw_trials(run, folder / "T", seed=1, without="punctuation,case,length", plant="case")
    judge(folder / "T", "cue-punctuation,cue-length", folder / "V", here=True)
    scores = score(folder / "V")
    scores.write(folder / "S")
    return scores, folder / "S"


def test_other_tables_are_those_of_the_answers_as_drawn() -> None:
    table, _ = people_see_all(Design(6, 20, 12, 6), 1)
    both = compute_scores(whole(table), []).by_name()
    alone = compute_scores(
        whole(table[table["version"] == DRAWN]).drop(columns=["version", "version_of"]), []
    ).by_name()
    assert len(both["tells"]) > 0
    for name, rows in alone.items():
        if not name.startswith("tells"):
            frames = [pd.DataFrame(of_table.records()) for of_table in (both[name], rows)]
            pd.testing.assert_frame_equal(*frames)
        else:
            assert len(rows) == 0


def test_tables_have_what_was_taken_away(scored: tuple[Scores, Path]) -> None:
    scores, folder = scored
    frames = scores.to_pandas()
    tells = frames["tells"].set_index(["judge", "tell", "taken"])
    full_stop = tells.loc["cue-punctuation", "punctuation", "alone"]
    verdicts = frames["verdicts"]
    of_judge = verdicts[verdicts["judge"] == "cue-punctuation"]
    right = (of_judge["verdict"] == of_judge["truth"]).groupby([of_judge["version"], of_judge["truth"]]).mean()
    for name, version in (("before", ""), ("after", "punctuation")):
        assert full_stop[name] == pytest.approx(right[version].mean())
    assert full_stop["change"] == pytest.approx(full_stop["before"] - full_stop["after"])
    assert full_stop["holm"] < 0.001
    assert full_stop["family"] == 7
    assert tells.loc["cue-length", "punctuation", "alone"]["holm"] > 0.5
    left = frames["tells_left"].set_index("judge")
    assert set(left["gone"]) == {"punctuation+case+length"}
    with (folder / "tells.csv").open(encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == len(tells) == 14
    content = json.loads((folder / "scores.json").read_bytes())
    assert {len(content[name]) > 0 for name in ("tells", "tells_left", "tells_changed", "tells_correlated")} == {True}
    for name in ("tells_left", "tells_changed", "tells_correlated"):
        assert (folder / f"{name}.csv").is_file()


def test_what_else_a_version_changed_is_counted(scored: tuple[Scores, Path]) -> None:
    changed = scored[0].to_pandas()["tells_changed"].set_index(["version", "of", "measure"]).sort_index()
    of_answers = [*changed.loc["punctuation", "people"].iterrows(), *changed.loc["punctuation", "alpha"].iterrows()]
    assert {row["answers"] for _, row in of_answers} == {NUMBER}
    marks = changed.loc["punctuation", "alpha", "marks"]
    assert marks["before"] == pytest.approx(changed.loc["punctuation", "alpha", "marks"]["changed"])  # one of each
    assert (marks["after"], marks["differs_after"]) == (0, 0)
    letters = changed.loc["punctuation", "alpha", "letters"]
    assert letters["before"] - letters["after"] == pytest.approx(marks["before"])  # they count every character
    assert np.isnan(changed.loc["punctuation", "people", "letters"]["differs_before"])
    assert changed.loc["plant:case", "people"]["changed"].max() == 0


def test_the_page_has_a_section_with_a_figure(tmp_path: Path) -> None:
    tables = [people_see_all(Design(6, 30, 20, 6), 1)[0], classifier(Design(1, 100, 100, 12, 2), 1)[0]]
    tables[1]["trial"] += 10**6
    tables[1]["version_of"] += 10**6
    drawn = whole(pd.concat(tables)).assign(fold=0)
    drawn.loc[drawn["judge_kind"] == "machine", "judge"] = "svm"
    made = Scores(compute_scores(drawn, []))
    made.write(tmp_path / "S")
    page = (tmp_path / "S" / "index.html").read_text(encoding="utf-8")
    sentences = tell_sentences(made.tables)
    assert [sentence.headline.split(" ")[0] for sentence in sentences if "no tell" not in sentence.headline]
    assert len(sentences) == 6
    for sentence in sentences:
        assert sentence.headline in page
        assert any(sentence.headline in line and sentence.why in line for line in made.sentences())
    drawn_tells = (tmp_path / "S" / "figures" / "tells-word_association.svg").read_text(encoding="utf-8")
    assert "judged by svm<" in drawn_tells
    assert drawn_tells.count(">hedging<") == 3  # the first of two panels has the names
    assert 'href="#tells"' in page
    assert "A classifier was trained on each version" in page
    assert len(re.findall("<dt>(tell|after Holm|alone, last)</dt>", page)) == 3
    length = made.tables.tells.where(judge="svm", agent="one", tell="length", taken="alone").data[0]
    [of_one] = [row for row in sentences if row.headline.startswith("svm tells one by length")]
    assert f"from {length.before:.2f} to {length.after:.2f} (change {length.change.value:.2f}" in of_one.why
    assert "p below 0.001 after Holm" in of_one.why


def test_without_versions_nothing_is_said_of_tells() -> None:
    table, _ = people_see_all(Design(6, 20, 12, 6), 1)
    tables = compute_scores(whole(table[table["version"] == DRAWN]).drop(columns=["version", "version_of"]), [])
    scores = Scores(tables)
    assert tell_sentences(tables) == []
    assert not any("no tell" in line or "Holm)" in line for line in scores.sentences())
