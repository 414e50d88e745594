"""The page of scores in a Chromium: its two tabs, its tiles, what is printed, and the words that it explains."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

from judging.scores.computing import compute_scores
from judging.scores.conclusions import BLIND, DETECTED, OPEN, PASSES, TAKEN, UNKNOWN
from judging.scores.scores import Scores
from judging.scores.tiles import ORDER, overall_outcome, sentence
from serving.pages.rendering import with_code
from tests.helpers.watched_page import WatchedPage, small_targets

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

WORDS = {"PASSES": "✓", "UNDECIDED": "?", "MORE OFTEN THAN PEOPLE": "↑", "DOES NOT PASS": "✗", "NOT TESTED": "–"}
EVIL = "<img src=x onerror=alert(1)>"


def _verdicts(agents: dict[str, float], judges: int) -> pd.DataFrame:
    """Verdicts of ``judges`` people, of a classifier and of one who always says human, on a person's answers and those
    of ``agents``, of which such shares are taken for a machine's."""
    chance = np.random.default_rng(1)
    rows = []
    for judge in [*(f"human:{at}" for at in range(judges)), "svm", "always"]:
        for stimulus in range(40):
            for agent, share in {"human:1": 0.5, **agents}.items():
                verdict = "machine" if judge != "always" and chance.random() < share else "human"
                rows.append((judge, agent, f"s{stimulus}", verdict))
    table = pd.DataFrame(rows, columns=["judge", "agent", "stimulus", "verdict"])
    return table.assign(
        judge_kind=np.where(table["judge"].str.startswith("human:"), "human", "machine"),
        truth=np.where(table["agent"] == "human:1", "human", "machine"),
        trial=table["stimulus"] + table["agent"],
        asked="word_association",
        catch=False,
        repeat_of=None,
        beside_truth=None,
        sample=0,
        excluded=None,
        confidence=np.nan,
    )


@pytest.fixture(scope="module")
def scores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page") / "S"
    verdicts = _verdicts({"like": 0.5, EVIL: 0.55, "unlike": 0.9, "more-human": 0.2}, 20)
    Scores(compute_scores(verdicts, [], bounds=0.1), verdicts).write(folder)
    return folder


def _is_shown(page: Page, selector: str) -> bool:
    return page.locator(selector).first.is_visible()


def test_the_tabs_need_no_script_and_old_addresses_still_lead_somewhere(scores: Path, browser: Browser) -> None:
    address = (scores / "index.html").as_uri()
    watched = WatchedPage(browser, java_script_enabled=False, viewport={"width": 390, "height": 800})
    page = watched.page
    page.goto(address)
    assert (_is_shown(page, ".tile"), _is_shown(page, "#details")) == (True, False)
    page.locator(".tabs").get_by_role("link", name="Details").click()
    assert (_is_shown(page, ".tile"), _is_shown(page, "#details table")) == (False, True)
    for fragment in ("word_association", "needed"):
        page.goto("about:blank")
        page.goto(f"{address}#{fragment}")
        assert (_is_shown(page, ".tile"), _is_shown(page, f"#{fragment}")) == (False, True), fragment
    page.locator(".tabs").get_by_role("link", name="Result").click()
    assert (_is_shown(page, ".tile"), _is_shown(page, "#details")) == (True, False)
    page.emulate_media(media="print")
    assert (_is_shown(page, ".tile"), _is_shown(page, "#details"), _is_shown(page, ".save")) == (True, False, False)
    page.goto(f"{address}#details")
    assert (_is_shown(page, ".tile"), _is_shown(page, "#details table")) == (True, True)
    assert watched.complaints == []
    assert {asked.partition("#")[0] for asked in watched.asked} <= {address, "about:blank"}
    watched.context.close()


def test_tiles_tell_outcomes_by_word_and_sign_and_fit_any_screen(scores: Path, browser: Browser) -> None:
    watched = WatchedPage(browser, viewport={"width": 1280, "height": 900})
    page = watched.page
    for scheme, width in (("light", 1280), ("dark", 390)):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        page.set_viewport_size({"width": width, "height": 900})
        for tab in ("", "#details"):
            page.goto("about:blank")
            page.goto((scores / "index.html").as_uri() + tab)
            assert page.evaluate("document.documentElement.scrollWidth") == width
    page.goto("about:blank")
    page.goto((scores / "index.html").as_uri())
    seen: dict[str, list[dict[str, str]]] = {}
    for card in page.locator(".verdicts > li").all():
        texts = [tile.inner_text() for tile in card.locator(".tile").all()]
        seen[card.locator("h3").inner_text()] = list(map(_tile, texts))
    assert list(seen) == [EVIL, "like", "more-human", "unlike"]
    for tiles in seen.values():
        assert [tile["judge"] for tile in tiles] == ["people", "always", "svm"]
        assert tiles[1]["word"] == "NOT TESTED"  # who says the same of every answer
        assert all(WORDS[tile["word"]] == tile["sign"] for tile in tiles)
    assert seen["like"][0]["word"] == "PASSES"
    assert seen["unlike"][0]["word"] == "DOES NOT PASS"
    assert seen["more-human"][0]["word"] == "MORE OFTEN THAN PEOPLE"
    undecided = [tile for tiles in seen.values() for tile in tiles if tile["word"] == "UNDECIDED"]
    assert undecided
    assert all(re.search(r"About [\d,]+ more stimuli would decide\.$", tile["text"]) for tile in undecided)
    shown = page.locator(".lead").inner_text()
    assert shown.startswith("Judged by people and svm: 2 of 4 agents are undecided; 1 is taken for a person more")
    assert watched.complaints == []
    watched.context.close()


def _tile(text: str) -> dict[str, str]:
    first = text.split("\n")[0]
    found = re.fullmatch(r"(.) ([A-Z ]+) by (\w+)", first)
    assert found is not None, first
    return {"sign": found[1], "word": found[2], "judge": found[3], "text": text}


SIZES = """() => [...document.querySelectorAll("#result .plot svg")].map((svg) => {
    const text = svg.querySelector("text");
    return parseFloat(getComputedStyle(text).fontSize) * svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
})"""


def test_on_a_phone_figures_can_be_read_and_links_can_be_hit(scores: Path, browser: Browser) -> None:
    watched = WatchedPage(browser, java_script_enabled=True, viewport={"width": 390, "height": 844})
    page = watched.page
    for fragment in ("", "#details"):
        page.goto("about:blank")
        page.goto((scores / "index.html").as_uri() + fragment)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert small_targets(page) == []
    page.goto("about:blank")
    page.goto((scores / "index.html").as_uri())
    sizes = page.evaluate(SIZES)
    assert sizes
    assert min(sizes) >= 9.5, sizes
    assert page.locator("#result p.note code").inner_text() == "turinglike study status"
    assert "`" not in page.locator("main").inner_text()
    watched.context.close()


def test_a_command_in_a_sentence_is_code_and_nothing_becomes_markup() -> None:
    assert with_code("run `a <b>` & `c`, <i>") == "run <code>a &lt;b&gt;</code> &amp; <code>c</code>, &lt;i&gt;"
    assert with_code("none") == "none"


def test_the_drawn_interval_is_that_of_the_scores(scores: Path, browser: Browser) -> None:
    """As the browser has laid it out, in parts of the drawing's width."""
    watched = WatchedPage(browser, viewport={"width": 1280, "height": 900})
    watched.page.goto((scores / "index.html").as_uri())
    tile = watched.page.locator(".verdicts > li", has_text="unlike").locator(".tile").first
    ends = [float(end) for end in re.findall(r"\d\.\d+", tile.inner_text())[:3]]
    drawing: Any = tile.locator(".range").bounding_box()
    parts = {}
    for name in ("circle", "line:not(.chance)", ".within"):
        box: Any = tile.locator(f".range {name}").bounding_box()
        parts[name] = [(at - drawing["x"]) / drawing["width"] for at in (box["x"], box["x"] + box["width"])]
    assert sum(parts["circle"]) / 2 == pytest.approx(ends[0], abs=0.012)
    assert parts["line:not(.chance)"] == pytest.approx(ends[1:], abs=0.012)
    assert parts[".within"] == pytest.approx([0.4, 0.6], abs=0.012)
    watched.context.close()


def test_the_glossary_has_only_words_of_its_tab(scores: Path, browser: Browser) -> None:
    watched = WatchedPage(browser)
    for tab, section in (("", "#result"), ("#details", "#details")):
        watched.page.goto("about:blank")
        watched.page.goto((scores / "index.html").as_uri() + tab)
        shown = watched.page.locator(section)
        words = shown.locator(".glossary dt").all_inner_texts()
        text = shown.inner_text().replace(shown.locator(".glossary").inner_text(), "")
        assert words
        for word in words:
            for part in word.rstrip(": ").split(", "):
                assert part.lower() in text.lower(), (section, part)
        assert "AUC" not in " ".join(words)  # no verdict has a margin or a confidence
    watched.context.close()


@pytest.mark.parametrize(
    ("outcomes", "overall"),
    [
        ([PASSES, PASSES], PASSES),
        ([PASSES, OPEN], OPEN),
        ([PASSES, DETECTED, TAKEN], DETECTED),
        ([TAKEN, OPEN], TAKEN),
        ([BLIND, PASSES], PASSES),
        ([BLIND, UNKNOWN], BLIND),
    ],
)
def test_an_agent_passes_only_if_no_judge_that_tests_says_otherwise(outcomes: list[str], overall: str) -> None:
    assert overall_outcome(outcomes) == overall


def test_the_sentence_counts_every_agent_once() -> None:
    agents = dict(zip("abcdefgh", [PASSES, OPEN, DETECTED, DETECTED, PASSES, TAKEN, BLIND, DETECTED], strict=True))
    text = sentence(agents, ["svm"], ["svm"])
    assert text == (
        "Judged by svm: 2 of 8 agents pass; 1 is undecided; 1 is taken for a person more often than people are; "
        "3 do not pass; 1 is not tested."
    )
    assert sum(map(int, re.findall(r"(?<!of )\b(\d)\b", text))) == len(agents)
    assert sentence({"a": DETECTED}, ["people", "svm"], ["people", "svm"]) == (
        "Judged by people and svm, a does not pass, because at least one judge tells it from people."
    )
    assert sentence({"a": OPEN, "b": PASSES}, list("pqrst"), set("pqrst")) == (
        "Judged by 5 judges: 1 of 2 agents passes by every judge; 1 is undecided."
    )
    assert set(agents.values()) | {UNKNOWN} == set(ORDER)
    assert sentence({"a": OPEN}, ["llm-judge", "svm"], ["svm"]) == (
        "Judged by svm, a is undecided. llm-judge tested nobody."
    )
    assert sentence({"a": BLIND}, ["llm-judge"], []) == "Judged by llm-judge, a is not tested."


def test_a_judge_without_a_verdict_on_an_agent_has_not_tested_it(tmp_path: Path) -> None:
    """A small model whose replies cannot be read: five verdicts "human" on people, none on one of two agents."""
    table = _verdicts({"seen": 0.5, "unseen": 0.5}, 0)
    unread = (table["judge"] == "always") & ((table["agent"] == "unseen") | (table["stimulus"] > "s14"))
    table.loc[unread, "verdict"] = "unparsed"
    tables = compute_scores(table, [], bounds=0.1)
    untested = [(row.agent, row.why) for row in tables.conclusions["word_association"] if row.outcome == BLIND]
    of_people = int((unread & (table["agent"] == "human:1")).sum())
    assert [agent for agent, _ in untested] == ["seen", "unseen"]
    assert untested[1][1] == (f"always gives no verdict in {of_people} of 40 trials of people and 40 of 40 of unseen")
    scored = Scores(tables, table)
    [said] = [line for line in scored.sentences() if "unseen" in line]
    assert untested[1][1] in said
    scored.write(tmp_path / "S")
    page = (tmp_path / "S" / "index.html").read_text("utf-8")
    [lead] = re.findall(r'<p class="lead">([^<]*)', page)
    assert lead == "Judged by svm: 2 of 2 agents are undecided. always tested nobody."
    cards = dict(re.findall(r'<li class="card"><h3>(\w+)</h3>(.*?)</li>', page, re.DOTALL))
    assert {agent: text.count("NOT TESTED") for agent, text in cards.items()} == {"seen": 1, "unseen": 1}
    assert "nan" not in page.lower().replace("nano", "")


def test_a_column_of_the_participants_says_why_machines_have_no_rate(tmp_path: Path) -> None:
    table = _verdicts({"like": 0.5}, 3)
    of_people = table["truth"] == "human"
    ages = pd.Series(np.where(table["stimulus"] < "s2", "30", "40"), index=table.index).where(of_people)
    table = table.assign(**{"person.age": ages, "place": np.where(table["stimulus"] < "s2", "1", "2")})
    scored = Scores(compute_scores(table, ["person.age", "place"], bounds=0.1), table)
    why = "person.age describes the participants, and machines have none. So by it only p(H|H) is known"
    [said] = [line for line in scored.sentences() if "describes" in line]
    assert said.startswith(why)
    scored.write(tmp_path / "S")
    page = (tmp_path / "S" / "index.html").read_text("utf-8")
    assert page.count("describes the participants") == 1
