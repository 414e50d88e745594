"""The viewer's statistics: against SciPy, brute force, and answers made by hand."""

from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from scipy import stats

from agents.errors import InputError
from serving.cli import main
from serving.runs.answer_numbers import likeness
from serving.runs.run import Run
from serving.viewer.data import gathered
from serving.viewer.statistics import Mean, Statistics, wilson
from serving.viewer.view import viewer
from tests.helpers.made_runs import PATH, Folder


def test_shares_are_those_of_scipy() -> None:
    for number, units in ((0, 9), (3, 9), (9, 9), (40, 100)):
        theirs = stats.binomtest(number, units).proportion_ci(method="wilson")
        assert wilson(number / units, units, units)[1:3] == pytest.approx([theirs.low, theirs.high])


def test_an_interval_has_stimuli_as_its_units() -> None:
    """Of one answer each it is Student's; of the same answers, each given four times, it is no narrower."""
    values = np.random.default_rng(1).normal(5, 2, 40)
    once = Mean()
    often = Mean()
    for stimulus, value in enumerate(values):
        once.add(stimulus, value)
        for _ in range(4):
            often.add(stimulus, value)
    theirs = stats.t.interval(0.95, 39, values.mean(), stats.sem(values))
    assert once.interval() == pytest.approx([values.mean(), *theirs, 40])
    assert often.interval()[:3] == pytest.approx(once.interval()[:3])
    alone = Mean()
    alone.add(0, 3.0)
    assert alone.interval() == [3.0, None, None, 1]
    alike = Mean()
    for stimulus in range(9):
        alike.add(stimulus, 0.1)
    assert alike.interval() == [pytest.approx(0.1), None, None, 9]


@pytest.mark.parametrize(
    ("task", "one", "other", "value"),
    [
        ("color_estimation", {"color": "Red"}, {"color": "red"}, 1.0),
        ("word_association", {"word": "cat"}, {"word": "dog"}, 0.0),
        ("object_detection", {"labels": ["cat", "Dog", "cat"]}, {"labels": ["dog", "sofa"]}, 1 / 3),
        ("object_detection", {"labels": []}, {"labels": []}, 1.0),
        ("image_captioning", {"text": "A dog, asleep."}, {"text": "the dog asleep"}, 0.5),
        # of 2 + 3 fixations the first of each are 5 pixels apart on a diagonal of 500, the others far from any
        (
            "attention_prediction",
            {"fixations": [[0, 0], [400, 300]], "frame": [400, 300]},
            {"fixations": [[3, 4], [100, 0], [200, 0]], "frame": [400, 300]},
            2 / 5,
        ),
        ("attention_prediction", {"fixations": [], "frame": [4, 3]}, {"fixations": [[1, 1]], "frame": [4, 3]}, None),
        ("conversation", {"messages": []}, {"messages": []}, None),
    ],
)
def test_likeness(task: str, one: dict[str, Any], other: dict[str, Any], value: float | None) -> None:
    assert (
        likeness(task, one, other) == likeness(task, other, one) == (value if value is None else pytest.approx(value))
    )


def _index(folder: Folder) -> tuple[dict[str, Any], dict[tuple[str, str], dict[str, Any]]]:
    """The index, and its figures by task and title."""
    pieces: dict[str, bytes] = {}
    with gathered([Run(folder.write())]) as data:
        data.write(lambda name, chunk: pieces.update({name: chunk}), pictures=lambda number, image: None)
    index = orjson.loads(pieces["index"])
    return index, {(one["task"], one["title"]): one for one in index["figures"]}


def _figures(folder: Folder) -> tuple[dict[tuple[str, str], dict[str, Any]], list[int]]:
    """The figures by task and title, and the likeness of each stimulus's answers in per cent."""
    index, figures = _index(folder)
    return figures, index["stimuli"]["alike"]


def _paths(folder: Folder, **of_people: Any) -> dict[tuple[str, str], dict[str, Any]]:
    """The figures of a machine's paths and people's, who looked alike at three pictures of 40 x 30 on a screen."""
    folder.agent("gbvs", "attention_prediction")
    for number in range(3):
        row = folder.ask("attention_prediction", str(number), image=folder.picture(f"{number}.png"))
        folder.record("gbvs", row, {**PATH, "fixations": [[0, 0], [20, 15], [40, 30]]})
        folder.record("human:1", row, {**PATH, "frame": [80, 30], **of_people}, kind="human")
    return _figures(folder)[0]


def test_paths_on_a_screen_are_compared_on_the_picture(tmp_path: Path) -> None:
    """The same fixations through bars of 20 pixels agree in all; and the mean saccade is 25 pixels of 40."""
    figures = _paths(Folder(tmp_path), fixations=[[20, 0], [40, 15], [60, 30]], fit="bars")
    task = "attention_prediction"
    agreement = figures[task, "Agreement with people"]
    assert agreement["panels"][0]["values"][0][0] == 1.0
    numbers = {panel["title"]: panel["values"] for panel in figures[task, "The answers in numbers"]["panels"]}
    for name, wanted in (("saccade, widths", 25 / 40), ("distance to the centre, widths", 2 / 3 * 25 / 40)):
        assert [row[0] for row in numbers[name]] == [pytest.approx(wanted)] * 2


def test_stretched_paths_are_compared_on_the_picture(tmp_path: Path) -> None:
    figures = _paths(Folder(tmp_path), fixations=[[0, 0], [40, 15], [80, 30]], fit="stretch")
    assert figures["attention_prediction", "Agreement with people"]["panels"][0]["values"][0][0] == 1.0


def test_a_path_that_nothing_places_on_its_picture_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Folder(tmp_path)
    with pytest.raises(InputError, match=r"^3 scanpaths cannot be placed on the picture: .* Import the answers again"):
        _paths(folder)
    with pytest.raises(InputError, match="--fit bars"), viewer([folder.path]):
        pass
    capsys.readouterr()
    for command in (["report", str(folder.path), "--out", str(tmp_path / "out")], ["view", str(folder.path)]):
        assert main(command) == 2
        told = capsys.readouterr().err
        assert "human:1, stimulus '0': its frame is 80 x 30, and the picture 40 x 30" in told
        assert "--fit bars, if the screen had bars and the aspect ratio was kept, or --fit stretch" in told
    assert not (tmp_path / "out").exists()


def test_without_pictures_paths_of_several_screens_are_compared_nowhere(tmp_path: Path) -> None:
    """And with a word; of one shape they are compared as they are."""
    folder = Folder(tmp_path)
    row = folder.ask("attention_prediction", "gone", image="gone.png")
    folder.agent("gbvs", "attention_prediction")
    folder.record("gbvs", row, PATH)
    folder.record("human:1", row, {**PATH, "frame": [80, 30], "fit": "bars"}, kind="human")
    index, figures = _index(folder)
    assert figures == {}
    assert [sentence for sentence in index["notices"] if "Statistics lack the scanpaths of 1 stimulus" in sentence]
    folder.records["humans"][0]["answer"] = PATH
    index, figures = _index(folder)
    assert figures["attention_prediction", "Agreement with people"]["panels"][0]["values"][0][0] == 1.0
    assert not [sentence for sentence in index["notices"] if "Statistics lack" in sentence]


def _color(word: str) -> dict[str, Any]:
    return {"color": word, "css_name": None, "rgb": None, "palette": None}


def test_colors_beside_people(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.agent("mmcq", "color_estimation")
    said = [("red", "red red blue"), ("red", "red red red"), ("teal", "blue blue red"), ("blue", "blue")]
    for number, (own, theirs) in enumerate(said):
        row = folder.ask("color_estimation", str(number), image=folder.picture(f"{number}.png"))
        folder.record("mmcq", row, _color(own))
        for person, word in enumerate(theirs.split()):
            folder.record(f"human:{person}", row, _color(word), kind="human")
    figures, alike = _figures(folder)
    task = "color_estimation"
    shares = figures[task, "Colours named"]
    of = {
        who: dict(zip(shares["columns"], row, strict=True))
        for who, row in zip(shares["rows"], shares["values"], strict=True)
    }
    assert shares["rows"] == ["people", "mmcq"]
    assert of["people"]["red"][0] == pytest.approx(6 / 10)
    assert (of["mmcq"]["red"][0], of["mmcq"]["other words"][0]) == (0.5, 0.25)
    # Each pair of different people and machines: first picture mmcq with red, red, blue; people with each other.
    assert alike == [round(100 * (2 + 1) / 6), 100, round(100 * (0 + 1) / 6), 100]
    agreement = figures[task, "Agreement with people"]
    with_a_person = dict(zip(agreement["rows"], agreement["panels"][0]["values"], strict=True))
    assert with_a_person["mmcq"][0] == pytest.approx((2 + 3 + 0 + 1) / 10)
    assert with_a_person["people"][0] == pytest.approx((1 + 3 + 1) / 9)


def test_captions_labels_and_rejections(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.agent("blip", "image_captioning")
    verdict = {"filter": "min_words", "rejected": True, "found": "x"}
    attempt = {"attempt": 0, "turn": None, "seed": 1, "answer": None, "raw": None, "verdicts": [verdict]}
    for number, text in enumerate(("a dog", "a dog on a sofa", "Two cats.", "a")):
        caption: dict[str, Any] = {"text": text, "tokens": None, "score": None, "finish": None, "flags": []}
        row = folder.ask("image_captioning", str(number))
        folder.record("blip", row, caption, attempts=[] if number else [attempt])
    folder.agent("detr", "object_detection")
    for number, labels in enumerate((["dog", "dog"], ["cat", "dog"], [])):
        row = folder.ask("object_detection", str(number))
        folder.record("detr", row, {"labels": labels, "scores": None, "boxes": None})
    figures, _ = _figures(folder)
    words = figures["image_captioning", "Words most used"]
    assert dict(zip(words["rows"], (row[0][0] for row in words["values"]), strict=True)) == {
        "a": 0.75,
        "dog": 0.5,
        "cats": 0.25,
        "on": 0.25,
        "sofa": 0.25,
        "two": 0.25,
    }
    labels_ = figures["object_detection", "Labels most used"]
    assert dict(zip(labels_["rows"], (row[0][0] for row in labels_["values"]), strict=True)) == {
        "dog": pytest.approx(2 / 3),
        "cat": pytest.approx(1 / 3),
    }
    assert figures["image_captioning", "Rejections by filter"]["values"] == [[[0.25, None, None, 1]]]
    assert ("image_captioning", "Agreement") not in figures  # of one agent


def test_samples_of_an_agent_are_not_compared_with_each_other_nor_are_controls() -> None:
    statistics = Statistics(1)
    records = [("a", "red", "machine"), ("a", "blue", "machine"), ("b", "red", "machine"), ("odd", "pink", "control")]
    parsed = [
        (of, {"kind": kind, "sample": 0, "task": "color_estimation", "answer": _color(word)})
        for of, word, kind in records
    ]
    assert statistics.stimulus(0, [], parsed) == 0.5  # of b with each of a's two
    assert statistics.stimulus(0, [], parsed[:2]) is None
    apart = [("human:unknown", {**record, "kind": "human", "sample": at}) for at, (_, record) in enumerate(parsed[:3])]
    assert statistics.stimulus(0, [], apart) == pytest.approx(1 / 3)  # red, blue, red of three people
