"""Catch trials: what each is, that it is the seed's alone, and that a judge's filters see it."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from agents.answers import BY_TASK, TurnAnswer
from agents.contract import Draw, Reply
from agents.errors import UnavailableError
from agents.language.filters.policies import MEASURE, judge_conversation
from agents.stimuli import TASKS
from agents.universal.catch import UNSEEN, CatchAgent
from serving.exchange.importing.reading import read_source
from tests.helpers import run_folders
from tests.helpers.task_stimuli import SIZE, stimulus

PROMPT = "Please enter a valid prompt."


def make(**settings: Any) -> CatchAgent:
    agent = CatchAgent(CatchAgent.Settings.model_validate(settings), "catch")
    agent.open()
    agent.load("cpu")
    return agent


def answer(agent: CatchAgent, trial: Any, seed: int = 1, **draw: Any) -> Any:
    [reply] = agent.respond([agent.prepare(trial)], [Draw(seed, **draw)])
    assert isinstance(reply, Reply), reply
    return reply.answer


@pytest.mark.parametrize("task", TASKS)
def test_every_task_has_a_catch_trial_that_the_seed_alone_decides(task: str) -> None:
    agent = make()
    trial = stimulus(task)
    together = agent.respond([agent.prepare(trial)] * 30, [Draw(seed) for seed in range(30)])
    alone = [answer(make(), trial, seed) for seed in range(30)]
    assert [reply.answer for reply in together if isinstance(reply, Reply)] == alone
    assert {type(each) for each in alone} == {TurnAnswer if task == "conversation" else BY_TASK[task]}  # type: ignore[index]
    assert (len({each.model_dump_json() for each in alone}) > 1) == (task not in ("word_association", "conversation"))
    if task == "word_association":
        assert alone[0].word == "bread"


def test_a_caption_is_a_word_again_and_again() -> None:
    captions = [answer(make(repeats=5), stimulus("image_captioning"), seed) for seed in range(50)]
    assert all(len(caption.text.split()) == 5 and len(set(caption.text.split())) == 1 for caption in captions)
    assert all("repeated_words" in caption.flags for caption in captions)


@pytest.mark.parametrize(
    ("about", "expected"),
    [
        ({"absent": ["dog", "ship", "red", "Light Blue"]}, {"dog", "ship"}),  # a colour would be an answer
        ({"absent": ["dog", "ship"], "present": [" Ship"]}, {"dog"}),
        ({"absent": ["red"], "present": ["gray", "dog"]}, set(UNSEEN)),
    ],
)
def test_a_colour_trial_names_what_is_not_in_the_picture(about: dict[str, Any], expected: set[str]) -> None:
    """Table S3: "an object not present in the picture"."""
    assert {answer(make(), stimulus("color_estimation", **about), seed).color for seed in range(300)} == expected


def test_objects_are_an_absent_object_three_times() -> None:
    for about, names in (({}, {"elephant", "ship"}), ({"present": ["Ship"]}, {"elephant"})):
        labels = {tuple(answer(make(), stimulus("object_detection", **about), seed).labels) for seed in range(20)}
        assert labels == {(name,) * 3 for name in names}
    agent = make()
    batch = (stimulus("object_detection", absent=[]), stimulus("word_association"))
    error, other = agent.respond([agent.prepare(trial) for trial in batch], [Draw(1), Draw(1)])
    assert getattr(error, "code", None) == "no_absent_object"
    assert isinstance(other, Reply)  # which is not touched


@pytest.mark.parametrize(("most", "expected"), [(None, 15), (7, 7)])
def test_a_scanpath_stays_at_a_point(most: int | None, expected: int) -> None:
    points = []
    for seed in range(40):
        path = answer(make(), stimulus("attention_prediction", max_fixations=most), seed)
        assert path.frame == list(SIZE)
        assert path.fixations == [path.fixations[0]] * expected
        points.append(tuple(path.fixations[0]))
    assert all(0 <= x < SIZE[0] and 0 <= y < SIZE[1] for x, y in points)
    assert len(set(points)) > 30


# scanpaths of other images


def test_a_scanpath_may_be_another_images(tmp_path: Path) -> None:
    def record(name: str, fixations: list[list[float]], frame: tuple[int, int] = SIZE) -> Any:
        about = {**run_folders.ANSWERS["attention_prediction"], "fixations": fixations, "frame": list(frame)}
        return run_folders.record(name, "attention_prediction", answer=about)

    rows = [
        record("s1", [[1, 1]]),
        record("other", [[32, 24], [0, 12.5]], (128, 96)),
        record("same size", [[5, 6], [-3, 100]]),
        run_folders.record("failed", "attention_prediction", answer=None, status="failed"),
        run_folders.record("word", "word_association"),
    ]
    file = tmp_path / "paths.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    agent = make(scanpath="other_image", scanpaths=str(file))
    trial = agent.prepare(stimulus("attention_prediction"))
    replies = agent.respond([trial] * 30, [Draw(seed) for seed in range(30)])
    paths = {
        reply.raw["stimulus"]: reply.answer.model_dump()["fixations"] for reply in replies if isinstance(reply, Reply)
    }
    assert paths == {"other": [[16, 12], [0, 6.25]], "same size": [[5, 6], [-3, 100]]}
    assert agent.provenance() == {"scanpaths_sha256": hashlib.sha256(file.read_bytes()).hexdigest()}


def test_a_scanpath_of_a_screen_with_bars_is_put_on_the_same_place_of_the_screen(tmp_path: Path) -> None:
    """This picture, 64 x 48, would be 128 x 96 on a screen of 184 x 96, between bars of 28. A path that leaves it,
    as its own picture was wider, is not drawn."""

    def record(name: str, fixations: list[list[float]]) -> Any:
        answer = {**run_folders.ANSWERS["attention_prediction"], "fixations": fixations, "frame": [184, 96]}
        return run_folders.record(name, "attention_prediction", answer={**answer, "fit": "bars"})

    rows = [record("alike", [[28, 0], [92, 48], [154, 94]]), record("wide", [[92, 48], [10, 48]])]
    file = tmp_path / "paths.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    agent = make(scanpath="other_image", scanpaths=str(file))
    trial = stimulus("attention_prediction")
    drawn = {str(answer(agent, trial, seed).fixations) for seed in range(20)}
    assert drawn == {"[[0.0, 0.0], [32.0, 24.0], [63.0, 47.0]]"}
    file.write_text(json.dumps(rows[1]))
    [error] = make(scanpath="other_image", scanpaths=str(file)).respond([agent.prepare(trial)], [Draw(1)])
    assert getattr(error, "code", None) == "no_other_image"
    assert "that would lie on this one" in str(error)


@pytest.mark.parametrize("imported", [False, True])
def test_swapped_paths_are_those_of_people_in_the_published_ground_truth(tmp_path: Path, imported: bool) -> None:
    """The form of the benchmark's groundtruth_dictionaries/fv.json."""

    def row(number: int, response: list[list[int]], human: str = "", machine: str = "") -> dict[str, Any]:
        kind = "human" if human else "machine"
        about = {"groundtruth": kind, "human_groundtruth": human, "machine_groundtruth": machine}
        return {"imageID": f"{number:03}", "response": response, **about}

    content = {
        "img001.jpg": [row(1, [[660, 512], [40, 512]], machine="ivsn"), row(1, [[640, 484]], human="05")],
        "img002.jpg": [row(2, [[1280, 512], [-12, 1024]], human="05"), row(2, [[616, 647]], machine="gbvs")],
        "img003.jpg": [],
    }
    file = tmp_path / "fv.json"
    file.write_text(json.dumps(content))
    if imported:
        lines = [json.dumps(each) for each in read_source(file).records("run", "human")]
        file = tmp_path / "humans.jsonl"
        file.write_text("\n".join(lines))
    agent = make(scanpath="other_image", scanpaths=str(file))
    first, second = (stimulus("attention_prediction", benchmark_id=f"img00{number}") for number in (1, 2))
    assert {str(answer(agent, first, seed).fixations) for seed in range(20)} == {"[[64.0, 24.0], [-0.6, 48.0]]"}
    assert {str(answer(agent, second, seed).fixations) for seed in range(20)} == {"[[32.0, 22.688]]"}


def test_other_images_need_a_file() -> None:
    agent = CatchAgent(CatchAgent.Settings(scanpath="other_image"), "catch")
    assert "the setting catch.scanpaths=FILE (--set)" in (agent.missing() or "")
    with pytest.raises(UnavailableError, match="scanpaths"):
        agent.open()


# conversations


def turns(agent: CatchAgent, count: int = 6, sample: int = 0, **changes: Any) -> list[str]:
    trial = stimulus("conversation", **changes)
    return [
        answer(agent, trial, 100 + turn, sample=sample, options={"speaker": "A", "turn": turn}).text
        for turn in range(count)
    ]


@pytest.mark.parametrize(
    ("kind", "caught"), [("repeat", "same_message"), ("no_prompt", "same_message"), ("list", "list")]
)
def test_filters_catch_every_kind_of_conversation(kind: str, caught: str) -> None:
    for sample in range(5):
        texts = turns(make(conversation=kind), sample=sample)
        messages = [message for text in texts for message in (("Ann", text), ("Bob", "What do you mean?!"))]
        noticed = {each.filter: each.turns for each in judge_conversation(messages, MEASURE)}
        even = {turn for turn in noticed[caught] if turn % 2 == 0}
        assert even == ({0, 2, 4, 6, 8, 10} if caught == "list" else {4, 6, 8, 10})


def test_a_conversation_is_of_a_kind_and_others_of_others() -> None:
    agent = make()
    kinds = {}
    for number in range(40):
        texts = turns(agent, 4, id=f"c{number}")
        kinds[number] = "list" if all("coffee" in text for text in texts) else texts[0]
        assert kinds[number] == "list" or len(set(texts)) == 1
    symbols = [text for text in kinds.values() if text not in ("list", PROMPT)]
    assert {"list", PROMPT} < set(kinds.values())
    assert len(set(symbols)) == len(symbols) > 3  # each its own message
