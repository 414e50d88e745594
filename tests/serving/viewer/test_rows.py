"""The rows of the grid: which stimuli of several tasks and runs are about one picture, cue or talk."""

import json
from pathlib import Path
from typing import Any

import orjson
import pytest

from serving.runs.run import Run
from serving.viewer import data as viewer_data
from serving.viewer.data import gathered
from tests.helpers.made_runs import ANSWERS, COLOR, Folder

RED = (200, 30, 60)
BLUE = (20, 30, 200)


def _index(*folders: Folder, of: str = "index") -> dict[str, Any]:
    pieces: dict[str, bytes] = {}
    with gathered([Run(folder.write()) for folder in folders], "live") as data:
        data.write(lambda name, chunk: pieces.update({name: chunk}), pictures=lambda number, image: None)
    return dict(orjson.loads(pieces[of]))


def _rows(index: dict[str, Any]) -> dict[str, list[str]]:
    """The stimuli of each row, as "TASK ID", with the first word of the task."""
    rows: dict[str, list[str]] = {}
    stimuli = index["stimuli"]
    for number, id in enumerate(stimuli["id"]):
        name = f"{stimuli['row'][number]} {index['rows'][stimuli['row'][number]]}"
        rows.setdefault(name, []).append(f"{index['tasks'][stimuli['task'][number]].split('_')[0]} {id}")
    return rows


@pytest.fixture
def folders(tmp_path: Path) -> list[Folder]:
    made = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        made.append(Folder(tmp_path / name))
    return made


def test_a_picture_has_one_row_in_all_tasks_and_runs(folders: list[Folder]) -> None:
    """Of two runs over one folder none lacks the stimuli of the other, though they ask other tasks."""
    first, second = folders
    second.set = first.set
    for name in ("dog.png", "cat.png"):
        picture = first.picture(name, RED if name == "dog.png" else BLUE)
        row = first.ask("color_estimation", name, image=picture)
        own = f"attention_prediction/{name}"
        first.ask("attention_prediction", own, image=picture, benchmark_id=name)
        first.agent("mmcq", "color_estimation")
        first.record("mmcq", row, COLOR)
        second.agent("blip", "image_captioning")
        second.record("blip", second.ask("image_captioning", name, image=picture), ANSWERS["image_captioning"])
        # What only an answer names, for a task that no run asks.
        detected = {"id": name, "task": "object_detection"}
        second.record("human:1", detected, ANSWERS["object_detection"], kind="human")
    index = _index(first, second)
    assert _rows(index) == {
        f"{number} {name}": [
            f"color {name}",
            f"attention attention_prediction/{name}",
            f"image {name}",
            f"object {name}",
        ]
        for number, name in enumerate(("dog.png", "cat.png"))
    }
    assert len(index["pictures"]) == 2
    assert index["notices"] == []


def test_other_names_of_a_picture_are_found_by_its_bytes(folders: list[Folder]) -> None:
    first, second = folders
    for folder, name in ((first, "dog.png"), (second, "IMG_001.png")):
        folder.agent("mmcq", "color_estimation")
        row = folder.ask("color_estimation", name, image=folder.picture(name, RED))
        folder.record("mmcq", row, COLOR)
        folder.ask("image_captioning", f"caption of {name}", image=name)
    assert _rows(_index(first, second)) == {
        "0 dog.png": [
            "color dog.png",
            "image caption of dog.png",
            "color IMG_001.png",
            "image caption of IMG_001.png",
        ]
    }


@pytest.mark.parametrize("are_there", [True, False])
def test_two_pictures_of_one_name_are_not_one(folders: list[Folder], are_there: bool) -> None:
    """By their bytes, or by what records say of these."""
    for folder, color in zip(folders, (RED, BLUE), strict=True):
        folder.agent("mmcq", "color_estimation")
        row = folder.ask("color_estimation", "dog.png", image=folder.picture("dog.png", color))
        folder.record("mmcq", row, COLOR, stimulus_sha256=f"{color[0]:064x}")
        if not are_there:
            (folder.set / "dog.png").unlink()
    index = _index(*folders)
    assert _rows(index) == {"0 dog.png": ["color dog.png"], "1 dog.png": ["color dog.png"]}
    [told] = [sentence for sentence in index["notices"] if "different pictures" in sentence]
    assert "1 id of" in told
    assert told.endswith("shown apart: 'dog.png'.")


def test_a_picture_that_a_task_asks_twice_says_nothing_of_other_tasks(folders: list[Folder]) -> None:
    """Targets that are searched for in one picture: only names tell which caption belongs to which."""
    first, _ = folders
    picture = first.picture("kitchen.png")
    for target in ("cup", "fork"):
        first.ask("attention_prediction", f"{target}/kitchen", image=picture, mode="search")
    first.ask("image_captioning", "kitchen.png", image=picture)
    first.ask("color_estimation", "any name", image=picture)
    assert _rows(_index(first)) == {
        "0 cup/kitchen": ["attention cup/kitchen"],
        "1 fork/kitchen": ["attention fork/kitchen"],
        "2 kitchen.png": ["image kitchen.png", "color any name"],
    }


def test_cues_are_one_by_their_word_and_talks_by_their_id(folders: list[Folder]) -> None:
    first, second = folders
    first.ask("word_association", "w1", cue="Time")
    second.ask("word_association", "time", cue="time")
    for folder, topic in ((first, "boats"), (second, "boats")):
        folder.ask("conversation", "talk", topic=topic)
    assert _rows(_index(first, second)) == {"0 w1": ["word w1", "word time"], "1 talk": ["conversation talk"]}


def test_another_question_by_one_name_is_warned_of(folders: list[Folder]) -> None:
    first, second = folders
    second.set = first.set
    picture = first.picture("kitchen.png")
    first.ask("attention_prediction", "kitchen.png", image=picture)
    second.ask("attention_prediction", "kitchen.png", image=picture, mode="search")
    index = _index(first, second)
    assert _rows(index) == {"0 kitchen.png": ["attention kitchen.png"]}
    assert "mean different stimuli: 'kitchen.png'" in index["notices"][0]


def test_a_large_index_begins_with_its_first_rows(folders: list[Folder], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(viewer_data, "LARGE", 100)
    first, _ = folders
    first.agent("mmcq", "color_estimation")
    for number in range(60):
        row = first.ask("color_estimation", str(number), image=first.picture(f"{number}.png"), meta={"at": number % 2})
        for sample in range(2):
            first.record("mmcq", row, {**COLOR, "color": ["red", "blue"][number % 2]}, sample=sample)
    whole = _index(first, of="whole")
    part = _index(first)
    assert part["size"] == [60, 120]
    assert part["rows"] == whole["rows"][:25]
    assert part["stimuli"]["first"] == whole["stimuli"]["first"][:26]
    texts, all_texts = ([index["texts"][at] for at in index["records"]["text"]] for index in (part, whole))
    assert texts == all_texts[:50]
    assert part["records"]["sample"] == whole["records"]["sample"][:50]
    assert part["meta"] == [[name, values, codes[:25]] for name, values, codes in whole["meta"]]
    assert part["pictures"] == {str(number): whole["pictures"][number] for number in range(25)}
    assert part["counts"] == whole["counts"]
    assert json.dumps(part).count("figures") == 0
