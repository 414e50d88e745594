"""Participants answer a stimulus set: what the form refuses, what is kept, and that it becomes a trial set."""

from __future__ import annotations

import json
import re
import zipfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from PIL import Image as PILImage

from agents.answers import COLORS
from judging.study.admin import zipped_export
from judging.study.kinds import material_of
from judging.study.log.participant_events import StimulusAnswered
from judging.study.log.state import read_state
from judging.study.log.steps import MaterialStep
from judging.study.pages.page_answers import BadAnswer
from judging.study.serving_study import ServedStudy
from serving.cli import main
from serving.runs.opening import new_people_run
from tests.helpers.study_folders import arrived, begin_in, changed, exported, run, serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Route

GOOD = "a wide red field under a pale sky"
WRITES = """() => {
    globalThis.writes = [];
    new MutationObserver((changes) => {
        for (const { addedNodes } of changes)
            for (const node of addedNodes) globalThis.writes.push(node.textContent);
    }).observe(document.querySelector("[role=alert]"), { childList: true });
}"""


def made(folder: Path, task: str, number: int = 3, checks: str = "tell") -> Path:
    rows = []
    for at in range(6):
        row: dict[str, Any] = {"id": f"s{at}", "task": task}
        if task == "word_association":
            row |= {"cue": f"cue{at}"} | ({"version": "prompted", "examples": [["sun", "moon"]]} if at % 2 else {})
        else:
            PILImage.new("RGB", (40, 30), (40 * at, 90, 30)).save(folder / f"{at}.png")
            row["image"] = f"{at}.png"
        rows.append(json.dumps(row))
    (folder / "set.jsonl").write_text("\n".join(rows) + "\n")
    assert main(["study", "new", str(folder / "set.jsonl"), "-o", str(folder / "study")]) == 0
    changed(folder / "study", number=number, checks=checks, before=[], after=[])
    assert main(["study", "check", str(folder / "study")]) == 0
    return folder / "study"


@pytest.mark.parametrize(
    ("task", "said", "flags"),
    [
        ("image_captioning", ["a red field"], ["too_few_words"]),
        ("image_captioning", ["a wide red field # under a sky"], ["special_characters"]),
        ("image_captioning", ["red red red red red field and sky"], ["repeated_words"]),
        ("image_captioning", ["an image of a wide red field"], ["mentions_image"]),
        ("image_captioning", [GOOD, GOOD], ["as_before"]),
        ("object_detection", [["dog", "Dog", "cat"]], ["same_objects"]),
        ("object_detection", [["dog", "cat", "sun"], ["cat", "tree", "car"]], ["object_again"]),
        ("object_detection", [["dogs", "t-shirt", "smartphone"], ["umbrela", "tree", "car"]], ["misspelled"]),
        ("object_detection", [["traffic light", "tree", "car"]], ["misspelled"]),
        ("word_association", ["two words"], ["several_words"]),
    ],
)
@pytest.mark.parametrize("checks", ["tell", "note"])
def test_what_the_form_refuses_is_told_or_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, task: str, said: Sequence[Any], flags: list[str], checks: str
) -> None:
    monkeypatch.setattr("judging.study.pages.stimulus_material.FASTEST", 0.0)

    async def work(study: ServedStudy) -> None:
        judge = await arrived(study, "ask")
        for one in said[:-1]:
            assert (await study.answer(judge, judge.step, {"answer": one, "rt": 9000.0})).is_new
        step = judge.step
        if checks == "note":
            assert (await study.answer(judge, step, {"answer": said[-1], "rt": 9000.0})).is_new
            assert judge.answers[-1].flags == flags
        else:
            assert (await study.answer(judge, step, {"answer": said[-1], "rt": 9000.0})).flags == flags
            assert (judge.step, len(judge.returned)) == (step, 1)

    run(made(tmp_path, task, checks=checks), work)


def test_a_caption_took_no_longer_than_the_server_saw(tmp_path: Path) -> None:
    async def work(study: ServedStudy) -> None:
        judge = await arrived(study, "ask")
        for rt, text in ((None, GOOD), (9000.0, f"{GOOD} again"), (100.0, GOOD)):
            assert (await study.answer(judge, judge.step, {"answer": text, "rt": rt})).is_new
            assert judge.answers[-1].flags == ["too_fast"]

    run(made(tmp_path, "image_captioning", checks="note"), work)


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ("color_estimation", {"answer": "crimson"}),
        ("object_detection", {"answer": ["a", "b", " "]}),
        ("image_captioning", {"answer": "x" * 1001}),
        ("word_association", {"answer": "moon", "verdicts": ["human"]}),
    ],
)
def test_what_no_page_sends_is_not_kept(tmp_path: Path, task: str, said: dict[str, Any]) -> None:
    async def work(study: ServedStudy) -> None:
        judge = await arrived(study, "ask")
        with pytest.raises(BadAnswer):
            await study.answer(judge, judge.step, said)

    run(made(tmp_path, task), work)


@pytest.mark.parametrize("blank", ["\u200b", "\u2060 \u00a0", "\ufeff\n", "\u00ad\u200e", "\u3000"])
@pytest.mark.parametrize("task", ["object_detection", "image_captioning", "word_association"])
def test_what_shows_nothing_is_no_answer(tmp_path: Path, task: str, blank: str) -> None:
    """Signs without width, soft hyphens and marks of direction are not seen, and are no word."""

    async def work(study: ServedStudy) -> None:
        judge = await arrived(study, "ask")
        said = ["dog", blank, "cat"] if task == "object_detection" else blank
        with pytest.raises(BadAnswer, match="answer: is empty"):
            await study.answer(judge, judge.step, {"answer": said, "rt": 9000.0})
        assert judge.answers[-1].kind != "ask"

    run(made(tmp_path, task), work)


def test_stimuli_that_fewer_have_answered_come_first(tmp_path: Path) -> None:
    async def work(study: ServedStudy) -> None:
        for _ in range(6):
            judge = await arrived(study, "ask")
            while judge.current is not None and judge.current.kind == "ask":
                await study.answer(judge, judge.step, {"answer": "moon"})

    study = made(tmp_path, "word_association")
    run(study, work)
    state = read_state(study)
    steps = [step.trials[0] for judge in state.judges.values() for step in judge.steps if step.kind == "ask"]
    assert Counter(steps) == {f"s{at}": 3 for at in range(6)}


def test_a_damaged_picture_is_named_before_anybody_is_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = made(tmp_path, "color_estimation")
    whole = (tmp_path / "2.png").read_bytes()
    (tmp_path / "2.png").write_bytes(whole[: len(whole) - 30])
    assert main(["study", "check", str(study)]) == 2
    assert "s2: 2.png" in capsys.readouterr().err


@pytest.mark.parametrize("task", ["color_estimation", "image_captioning"])
@pytest.mark.parametrize("form", ["folder", "csv", "jsonl", "parquet"])
def test_answers_to_pictures_that_name_no_task_are_exported_and_become_trials(
    tmp_path: Path, form: str, task: str
) -> None:
    """A folder of pictures, and a table of them, say nothing of a task: the study's is the one that was asked."""
    names = [f"{at}.png" for at in range(3)]
    (tmp_path / "pictures").mkdir()
    for at, name in enumerate(names):
        PILImage.new("RGB", (40, 30), (80 * at, 90, 30)).save(tmp_path / "pictures" / name)
    source = tmp_path / "pictures"
    if form != "folder":
        source = source / f"set.{form}"
    if form == "csv":
        source.write_text("\n".join(["id,image", *(f"{name},{name}" for name in names)]) + "\n")
    elif form == "jsonl":
        source.write_text("".join(json.dumps({"id": name, "image": name}) + "\n" for name in names))
    elif form == "parquet":
        parquet = pytest.importorskip("pyarrow.parquet")
        parquet.write_table(pytest.importorskip("pyarrow").table({"id": names, "image": names}), source)
    study = tmp_path / "study"
    assert main(["study", "new", str(source), "-o", str(study), "--task", task]) == 0
    changed(study, number=3, checks="note", before=[], after=[])
    said = {name: GOOD if task == "image_captioning" else color for name, color in zip(names, COLORS, strict=False)}

    async def work(served: ServedStudy) -> None:
        judge = await arrived(served, "ask")
        while isinstance(step := judge.current, MaterialStep):
            await served.answer(judge, judge.step, {"answer": said[step.trials[0]], "rt": 9000.0})

    run(study, work)
    records = exported(study)
    assert {(row["task"], row["stimulus"]) for row in records} == {(task, name) for name in names}
    field = "text" if task == "image_captioning" else "color"
    assert {row["stimulus"]: row["answer"][field] for row in records} == said
    out = zipped_export(ServedStudy(study, material_of(study), lambda: None), tmp_path / "zip", personal=False)
    with zipfile.ZipFile(out) as packed:
        lines = packed.read("records/humans.jsonl").splitlines()
        assert json.loads(packed.read("run.json"))["set"]["tasks"] == [task]
    assert {json.loads(line)["stimulus"] for line in lines} == set(names)
    assert main(["trials", str(tmp_path / "people"), "-o", str(tmp_path / "T"), "--every"]) == 0
    assert len((tmp_path / "T" / "trials.jsonl").read_text().splitlines()) == 3


@pytest.mark.parametrize("public", [True, False])
def test_what_participants_say_about_themselves_is_with_their_answers(tmp_path: Path, public: bool) -> None:
    """It becomes a column of the trials' key, by which scores are told; only if the study says so."""
    study = made(tmp_path, "color_estimation")
    changed(study, before=["country"], public=public)

    async def work(served: ServedStudy) -> None:
        judge = await arrived(served, "ask")  # who says that they are from Iceland
        while isinstance(judge.current, MaterialStep):
            await served.answer(judge, judge.step, {"answer": "red", "rt": 3000.0})

    run(study, work)
    records = exported(study)
    expected = {"country": "Iceland"} if public else None
    assert [record["raw"].get("meta") for record in records] == [expected] * 3
    assert main(["trials", str(tmp_path / "people"), "-o", str(tmp_path / "T"), "--every"]) == 0
    key = (tmp_path / "T.key.csv").read_text()
    assert ("Iceland" in key) is public


def test_topics_in_a_list_are_exported_as_topics(tmp_path: Path) -> None:
    """A plain list of texts may be of cues or of topics, which the study's task decides."""
    (tmp_path / "topics.txt").write_text("music\nsport\n")
    run = new_people_run(tmp_path / "run", tmp_path / "topics.txt", "conversation")
    rows = [json.loads(line) for line in (run.path / "stimuli.jsonl").read_text().splitlines()]
    assert [(row["task"], row["topic"]) for row in rows] == [("conversation", "music"), ("conversation", "sport")]


@pytest.mark.parametrize("task", ["object_detection", "image_captioning"])
def test_people_answer_in_a_browser_and_become_trials(browser: Browser, tmp_path: Path, task: str) -> None:
    number = 1 if task == "image_captioning" else 2
    study = made(tmp_path, task, number)
    with serving(study) as server:
        page = begin_in(browser.new_context().new_page(), server.url)
        for at in range(1, number + 1):
            page.get_by_role("heading", name=f"Number {at} of {number}").wait_for()
            page.locator("fieldset.all:enabled").wait_for()
            assert page.locator("img.photograph").evaluate("node => node.naturalWidth") == 40
            if task == "object_detection":
                for name, objects in (("First", "dog tree"), ("Second", "cat car"), ("Third", "sun sofa")):
                    page.get_by_label(name).fill(objects.split()[at - 1])
            else:
                page.get_by_label("Describe").fill("too short")
                page.get_by_role("button", name="Continue").click()
                page.get_by_text("at least 6 words").wait_for()
                page.wait_for_timeout(4000)  # a faster one is refused, too
                page.get_by_label("Describe").fill(GOOD)
            page.get_by_role("button", name="Continue").click()
        page.locator(".code").wait_for()
        page.context.close()
    records = exported(study)
    assert len(records) == number
    if task == "image_captioning":
        assert all(len(row["attempts"]) == 1 and row["attempts"][0]["raw"] == "too short" for row in records)
    assert main(["trials", str(tmp_path / "people"), "-o", str(tmp_path / "T"), "--every"]) == 0
    trials = [json.loads(line) for line in (tmp_path / "T" / "trials.jsonl").read_text().splitlines()]
    assert len(trials) == number
    assert all("image" in trial for trial in trials)


def test_a_refusal_is_told_anew_each_time_and_says_how_long_to_wait(browser: Browser, tmp_path: Path) -> None:
    study = made(tmp_path, "image_captioning", 1)

    def refuse(route: Route) -> None:
        sent = route.request.post_data_json
        assert sent is not None
        step = sent["step"]
        told = ["too_few_words", "too_fast"]
        route.fulfill(json={"new": False, "told": told, "truth": None, "next": {"step": step}})

    with serving(study) as server:
        page = begin_in(browser.new_context().new_page(), server.url)
        page.locator("fieldset.all:enabled").wait_for()
        page.route("**/answer", refuse)
        page.evaluate(WRITES)
        page.get_by_label("Describe").fill("too short")
        for times in (1, 2):
            page.get_by_role("button", name="Continue").click()
            page.wait_for_function(f"() => writes.length === {times}")
            told = page.get_by_role("alert").inner_text()
            assert re.search(r"at least 6 words.* take your time .* You can continue in [1-4] s\.$", told), told
        page.context.close()


def test_an_answer_that_shows_nothing_is_told_in_the_browser(browser: Browser, tmp_path: Path) -> None:
    study = made(tmp_path, "word_association", number=1)
    changed(study, before=["country"], required=["country"])
    with serving(study) as server:
        page = browser.new_context().new_page()
        page.goto(server.url)
        for name in ("Begin", "I agree"):
            page.get_by_role("button", name=name).click()
        for field, said in (("#q-country", "Iceland"), ("#answer", "moon")):
            if field == "#answer":
                page.get_by_text("Answers that you give, one after the other: 1.").wait_for()
                page.get_by_role("button", name="Continue").click()
                page.locator("fieldset.all:enabled").wait_for()
            page.locator(field).fill("\u200b \u2060")
            page.get_by_role("button", name="Continue").click()
            page.get_by_text("Please answer every question on this page.").wait_for()
            page.locator(field).fill(said)
            page.get_by_role("button", name="Continue").click()
        page.locator(".code").wait_for()
        page.context.close()
    [judge] = read_state(study).judges.values()
    assert [answer.answer for answer in judge.answers if isinstance(answer, StimulusAnswered)] == [["moon"]]
