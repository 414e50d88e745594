"""Sets from what others publish, on small samples of their forms; and tables and lists as sets."""

import io
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image as PILImage

from agents.errors import InputError
from serving import answer, open_run
from serving.cli import main
from serving.sets.stimulus_set import read_rows


def picture(color: str) -> bytes:
    buffer = io.BytesIO()
    PILImage.new("RGB", (12, 8), color).save(buffer, "PNG")
    return buffer.getvalue()


TEXTS = [
    *("61e5", "5e9012", "12345678901234567890123", "1.10", "3.0", "007", "-0", "1e400"),
    *("0x1F", "1_000", "NaN", "inf", "null", "+5", "5.", "True"),
]
VALUES = {"5": 5, "-2": -2, "2.5": 2.5, "0.1": 0.1, "9007199254740993": 2**53 + 1, "true": True}


@pytest.mark.parametrize(("cell", "value"), {**{text: text for text in [*TEXTS, " 5"]}, **VALUES}.items())
def test_a_free_cell_is_a_number_only_where_it_is_spelled_as_one(cell: str, value: Any, tmp_path: Path) -> None:
    (tmp_path / "set.csv").write_text(f"id,task,cue,meta.x\n1,word_association,sun,{cell}\n")
    [row] = read_rows(tmp_path / "set.csv")
    assert row.stimulus is not None
    assert row.stimulus.meta is not None
    assert (row.stimulus.meta["x"], type(row.stimulus.meta["x"])) == (value, type(value))


def test_what_pandas_writes_into_parquet(tmp_path: Path) -> None:
    """Its NaN is an absent field, its index without a name no column; what JSON cannot hold is named by its column."""
    path = tmp_path / "set.parquet"
    frame = pandas.DataFrame(
        {"id": ["a", "b"], "cue": ["sun", "sea"], "frequency": [1.5, None], "meta.age": [None, 31]}
    )
    frame.index = pandas.Index([7, 8])
    frame.to_parquet(path)
    assert "__index_level_0__" in pq.read_schema(path).names
    wanted = [
        {"id": "a", "task": "word_association", "cue": "sun", "frequency": 1.5},
        {"id": "b", "task": "word_association", "cue": "sea", "meta": {"age": 31.0}},
    ]
    assert [json.loads(row.canonical or b"") for row in read_rows(path, "word_association")] == wanted
    rows = frame.to_dict("records")
    assert [record.stimulus for record in answer("null", rows, task="word")] == ["a", "b"]
    frame.assign(**{"meta.price": [Decimal("1.10"), Decimal(2)]}).to_parquet(path)
    for row in read_rows(path, "word_association"):
        [problem] = row.problems
        assert (problem.line, problem.field) in ((1, "meta.price"), (2, "meta.price"))
        assert "must be text or a plain number" in problem.message
        assert "decimal.Decimal" in problem.message


def test_lines_of_text_are_cues_or_topics(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_bytes("\ufeffsun\r\n\n moon \n".encode())
    assert [row.id for row in read_rows(tmp_path / "words.txt", "word_association")] == ["sun", "moon"]
    assert [row.canonical for row in read_rows(tmp_path / "words.txt", "conversation")] == [
        b'{"id":"sun","task":"conversation","topic":"sun"}',
        b'{"id":"moon","task":"conversation","topic":"moon"}',
    ]


def test_a_dataset_is_a_list_of_rows(tmp_path: Path) -> None:

    class Dataset(list[dict[str, Any]]):
        column_names = ("image", "label", "boxes")

    with PILImage.open(io.BytesIO(picture("red"))) as image:
        [record] = answer("mmcq", Dataset([{"image": image, "label": 3, "boxes": [1, 2]}]))
    assert (record.answer.color, record.shown().meta) == ("red", {"label": 3})
    held = pa.table({"image": [{"bytes": picture("red"), "path": "1.png"}]})
    pq.write_table(held, tmp_path / "set.parquet")
    with pytest.raises(InputError, match="has its pictures in itself"):
        answer("mmcq", tmp_path / "set.parquet")


CAPTIONS = {
    "info": {"year": 2017},
    "images": [{"id": 9, "file_name": "000000000009.jpg", "height": 8, "width": 12, "coco_url": "http://…"}],
    "annotations": [
        {"id": 1, "image_id": 9, "caption": "A cat."},
        {"id": 2, "image_id": 9, "caption": "a cat on a mat"},
    ],
}
INSTANCES = {
    **CAPTIONS,
    "annotations": [
        {"id": 5, "image_id": 9, "category_id": 17, "bbox": [1, 2, 3, 4], "iscrowd": 0, "segmentation": []},
        {"id": 6, "image_id": 9, "category_id": 17, "bbox": [2, 2, 3, 4], "iscrowd": 0, "segmentation": []},
    ],
    "categories": [
        {"supercategory": "animal", "id": 17, "name": "cat"},
        {"supercategory": "animal", "id": 18, "name": "dog"},
    ],
}
NOCAPS = {
    "images": [
        {"id": 0, "open_images_id": "0013ea2087020901", "file_name": "0013ea2087020901.jpg", "domain": "near-domain"}
    ],
    "annotations": [{"image_id": 0, "id": 0, "caption": "A baby."}],
}
COCO_PANOPTIC = {
    "images": [{"id": 11, "file_name": "one.png"}, {"id": 12, "file_name": "two.png"}],
    "categories": [{"id": 1, "name": "person"}, {"id": 2, "name": "dog"}, {"id": 3, "name": "kite"}],
    "annotations": [
        {"image_id": 11, "file_name": "one_mask.png", "segments_info": [{"id": 5, "category_id": 2, "iscrowd": 0}]},
        {"image_id": 12, "file_name": "two_mask.png", "segments_info": [{"id": 6, "category_id": 1, "iscrowd": 1}]},
    ],
}
LOOKED = {"subject": 2, "X": [1, 6], "Y": [1, 4], "T": [200, 180], "length": 2, "correct": 1, "split": "train"}
PLANT = {"name": "000000000009.jpg", "task": "potted plant", "condition": "present", "bbox": [1, 2, 3, 4], **LOOKED}
CLOCK = {"name": "000000000009.jpg", "task": "clock", "condition": "absent", **LOOKED}
SEARCH18: list[dict[str, Any]] = [PLANT, {**PLANT, "subject": 3}, CLOCK]


@pytest.mark.parametrize(
    ("annotations", "wanted"),
    [
        (CAPTIONS, {"id": "000000000009.jpg", "task": "image_captioning", "source_id": "9", "domain": "coco"}),
        (INSTANCES, {"task": "object_detection", "present": ["cat"], "absent": ["dog"], "source": "coco"}),
        (NOCAPS, {"id": "0013ea2087020901.jpg", "source": "nocaps", "source_id": "0013ea2087020901", "domain": "near"}),
        (
            SEARCH18,
            {
                "id": "potted plant/000000000009.jpg",
                "mode": "search",
                "target_box": [1, 2, 3, 4],
                "target_present": True,
                "image": "pictures/potted plant/000000000009.jpg",
                "meta": {"target": "potted plant"},
            },
        ),
    ],
    ids=["captions", "instances", "nocaps", "search18"],
)
def test_sets_and_people_of_published_annotations(
    annotations: Any, wanted: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "annotations.json"
    pictures = tmp_path / "pictures"
    out = tmp_path / "set.jsonl"
    source.write_text(json.dumps(annotations))
    (pictures / "potted plant").mkdir(parents=True)
    for name in ("000000000009.jpg", "0013ea2087020901.jpg", "potted plant/000000000009.jpg"):
        (pictures / name).write_bytes(picture("green"))
    assert main(["set", str(source), "--images", str(pictures), "--out", str(out)]) == 0, capsys.readouterr()
    [row] = [json.loads(line) for line in out.read_text().splitlines()]
    assert wanted.items() <= row.items()
    assert ("left out: 1 entry" in capsys.readouterr().out) == (annotations is SEARCH18)
    if annotations is INSTANCES:
        return  # what is in a picture is nobody's answer
    people = tmp_path / "people"
    assert main(["import", str(source), "--out", str(people), "--frame", "12x8"]) == 0
    records = [record for record in open_run(people) if record.stimulus == row["id"]]
    said = [record.answer.text if row["task"] == "image_captioning" else record.agent for record in records]
    captions = {"coco": ["A cat.", "a cat on a mat"], "nocaps": ["A baby."]}
    assert said == captions.get(row.get("source", ""), ["human:02", "human:03"])


def test_what_is_no_annotation_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "x.json"
    source.write_text('{"images": 3}')
    call = ["set", str(source), "--out", str(tmp_path / "set.jsonl")]
    assert main(call) == 2
    assert "--images" in capsys.readouterr().err
    assert main([*call, "--images", str(tmp_path)]) == 2
    assert "neither annotations" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]


@pytest.mark.parametrize(
    ("name", "ids", "response"),
    [
        ("caption", ["0003.jpg"], "A cat."),
        ("color", ["1017.jpg"], "red"),
        ("object", ["7.jpg"], "cat, mat, hat"),
        ("fv", ["img001"], [[3, 4]]),
        ("word", ["sun"], "moon"),
    ],
)
def test_the_published_benchmark_is_a_set_to_which_people_have_answered(
    name: str, ids: list[str], response: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    truth = tmp_path / f"{name}.json"
    pictures = tmp_path / "pictures"
    out = tmp_path / "set.jsonl"
    row = {"response": response, "groundtruth": "human", "human_groundtruth": "5", "machine_groundtruth": ""}
    truth.write_text(json.dumps({one: [row] for one in ids}))
    pictures.mkdir()
    for one in ids:
        (pictures / f"{one.removesuffix('.jpg')}.jpg").write_bytes(picture("red"))
    shown = [] if name == "word" else ["--images", str(pictures)]
    assert main(["set", str(truth), *shown, "--out", str(out)]) == 0, capsys.readouterr()
    agents = {"caption": "null", "color": "mmcq", "object": "null", "fv": "center", "word": "null"}
    machine = answer(agents[name], out)
    assert [record.status for record in machine] == ["ok"]
    people = tmp_path / "people"
    assert main(["import", str(truth), "--out", str(people)]) == 0
    asked = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(one.task, one.stimulus) for one in open_run(people)] == [
        (one["task"], one["benchmark_id"]) for one in asked
    ]
    assert [one.stimulus for one in machine] == [one["id"] for one in asked]


def make(tmp_path: Path, name: str, content: Any, files: list[str]) -> int:
    (tmp_path / name).write_text(json.dumps(content))
    (tmp_path / "img").mkdir(exist_ok=True)
    for file in files:
        (tmp_path / "img" / file).write_bytes(picture("red"))
    call = ["set", str(tmp_path / name), "--images", str(tmp_path / "img"), "--out", str(tmp_path / "set.jsonl")]
    return main([*call, "--force"])


def test_a_picture_is_the_file_of_its_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of exactly its name, else the only one of its name with another ending; img.1 is no img."""
    files = ["cat.jpg", "cat.png", "img.1.png", "img.jpg", "sun.webp", "No.2.png"]
    names = ["cat.jpg", "cat.png", "img.1", "img", "sun.jpg", "No.2.png"]
    assert make(tmp_path, "caption.json", dict.fromkeys(names, "a text"), files) == 0
    rows = [json.loads(line) for line in (tmp_path / "set.jsonl").read_text().splitlines()]
    assert [Path(row["image"]).name for row in rows] == [
        "cat.jpg",
        "cat.png",
        "img.1.png",
        "img.jpg",
        "sun.webp",
        "No.2.png",
    ]
    capsys.readouterr()
    (tmp_path / "set.jsonl").unlink()
    for name in ("cat", "cat.gif"):
        assert make(tmp_path, "caption.json", {name: "a text"}, []) == 2
        assert f"img: {name}: may be any of cat.jpg, cat.png" in capsys.readouterr().err
    assert make(tmp_path, "caption.json", dict.fromkeys(["sun", "sun.webp"], "a text"), []) == 2
    assert "sun.webp: would be the picture of sun, sun.webp" in capsys.readouterr().err
    assert not (tmp_path / "set.jsonl").exists()


def test_ids_that_stand_twice_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    images = [{"id": 1, "file_name": "a.png"}, {"id": 1, "file_name": "b.png"}, {"id": 2, "file_name": "c.png"}]
    categories = [{"id": 1, "name": "cup"}, {"id": 1, "name": "rocket"}, {"id": 2, "name": "cat"}]
    annotations = [{"image_id": 1, "category_id": 7}, {"image_id": 99, "category_id": 2}, {"image_id": 2}]
    content = {"images": images, "categories": categories, "annotations": annotations}
    assert make(tmp_path, "x.json", content, ["a.png", "b.png", "c.png"]) == 2
    told = capsys.readouterr()
    assert "x.json: images: the id 1 stands 2 times: a.png, b.png" in told.err
    assert "x.json: categories: the id 1 stands 2 times: cup, rocket" in told.err
    assert not (tmp_path / "set.jsonl").exists()
    assert make(tmp_path, "x.json", {**content, "images": images[1:], "categories": categories[1:]}, []) == 0
    told = capsys.readouterr()
    assert "left out: 2 annotations of images or categories that the file does not list" in told.out
    rows = [json.loads(line) for line in (tmp_path / "set.jsonl").read_text().splitlines()]
    assert [(row["id"], row.get("present"), row.get("absent")) for row in rows] == [
        ("b.png", [], ["cat", "rocket"]),  # somebody annotated it, if with a category that is not listed
        ("c.png", None, None),  # an annotation without a category is none of objects
    ]


# what is present, and what is absent

UNKNOWN_OF_ALL = "present, absent: not known, as the file has no annotation of objects; no stimulus has these fields"


def known(tmp_path: Path) -> dict[str, tuple[Any, Any]]:
    rows = [json.loads(line) for line in (tmp_path / "set.jsonl").read_text().splitlines()]
    return {row["id"]: (row.get("present"), row.get("absent")) for row in rows}


@pytest.mark.parametrize(
    "annotations", [None, [], [{"image_id": 11, "caption": "A dog."}], [{"image_id": 11, "segments_info": []}]]
)
def test_without_annotations_of_objects_nothing_is_absent(
    annotations: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """COCO's image_info_test2017 has pictures and categories, and nobody knows what is in the pictures."""
    content = {**COCO_PANOPTIC, "annotations": annotations}
    if annotations is None:
        del content["annotations"]
    assert make(tmp_path, "image_info.json", content, ["one.png", "two.png"]) == 0
    assert known(tmp_path) == {"one.png": (None, None), "two.png": (None, None)}
    told = capsys.readouterr().out
    assert told.splitlines() == [UNKNOWN_OF_ALL, "2 stimuli (object_detection 2): no problems."]


def test_a_picture_that_nobody_annotated_is_no_empty_picture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A crowd is there as single objects are."""
    annotations = [{"image_id": 11, "category_id": 1, "iscrowd": 1}, {"image_id": 11, "category_id": 2, "iscrowd": 0}]
    assert make(tmp_path, "x.json", {**COCO_PANOPTIC, "annotations": annotations}, ["one.png", "two.png"]) == 0
    assert known(tmp_path) == {"one.png": (["dog", "person"], ["kite"]), "two.png": (None, None)}
    told = capsys.readouterr().out
    assert "present, absent: not known of 1 image without any annotation of objects" in told
    assert "absent: also 1 category of which the file has no annotation at all (kite)" in told


def test_of_a_panoptic_file_the_segments_count(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each pixel has a category there, so that what has no segment is not in the picture."""
    assert make(tmp_path, "panoptic.json", COCO_PANOPTIC, ["one.png", "two.png"]) == 0
    assert known(tmp_path) == {"one.png": (["dog"], ["kite", "person"]), "two.png": (["person"], ["dog", "kite"])}
    assert "absent" not in capsys.readouterr().out


def test_of_people_alone_nothing_else_is_said(tmp_path: Path) -> None:
    """COCO's keypoints have a single category."""
    people = {
        **COCO_PANOPTIC,
        "categories": [{"id": 1, "name": "person", "keypoints": ["nose"], "skeleton": []}],
        "annotations": [{"image_id": 12, "category_id": 1, "keypoints": [1, 1, 2], "num_keypoints": 1}],
    }
    assert make(tmp_path, "person_keypoints.json", people, ["one.png", "two.png"]) == 0
    assert known(tmp_path) == {"one.png": (None, None), "two.png": (["person"], [])}


def test_lvis_looked_for_few_categories_in_each_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It says which are not there, and of which more may be there than is annotated; it names no files."""
    address = "http://images.cocodataset.org/val2017"
    images = [
        {"id": 1, "coco_url": f"{address}/one.png", "neg_category_ids": [3, 4], "not_exhaustive_category_ids": [2]},
        {"id": 2, "coco_url": f"{address}/two.png", "neg_category_ids": [1, 4], "not_exhaustive_category_ids": [4]},
        {"id": 3, "coco_url": f"{address}/three.png", "neg_category_ids": [], "not_exhaustive_category_ids": []},
        {"id": 4, "coco_url": f"{address}/four.png", "neg_category_ids": [2], "not_exhaustive_category_ids": []},
    ]
    names = ["cat", "dog", "kite", "sink", "vase"]
    lvis = {
        "images": images,
        "categories": [{"id": at, "name": name, "synset": f"{name}.n.01"} for at, name in enumerate(names, start=1)],
        "annotations": [
            {"image_id": 1, "category_id": 2},
            {"image_id": 1, "category_id": 5},
            {"image_id": 3, "category_id": 1},
        ],
    }
    (tmp_path / "img" / "val2017").mkdir(parents=True)
    (tmp_path / "img" / "val2017" / "three.png").write_bytes(picture("red"))
    assert make(tmp_path, "lvis_v1_val.json", lvis, ["one.png", "two.png", "four.png"]) == 0
    assert known(tmp_path) == {
        "one.png": (["dog", "vase"], ["kite", "sink"]),
        "two.png": (None, ["cat"]),
        "three.png": (["cat"], []),
        "four.png": (None, ["dog"]),
    }
    assert "absent: only what the file says of each image (neg_category_ids)" in capsys.readouterr().out
    paths = [json.loads(line)["image"] for line in (tmp_path / "set.jsonl").read_text().splitlines()]
    assert "img/val2017/three.png" in paths


def test_image_labels_of_open_images(tmp_path: Path) -> None:
    """People verified that some objects are there and others not; boxes are of the former."""
    content = {
        **COCO_PANOPTIC,
        "images": [
            {"id": 11, "file_name": "one.png", "pos_category_ids": [1], "neg_category_ids": [3]},
            {"id": 12, "file_name": "two.png"},
        ],
        "annotations": [{"image_id": 11, "category_id": 2}],
    }
    assert make(tmp_path, "x.json", content, ["one.png", "two.png"]) == 0
    assert known(tmp_path) == {"one.png": (["dog", "person"], ["kite"]), "two.png": (None, None)}


# boxes of COCO-Search18

ON_SCREEN = {
    **PLANT,
    "name": "one.jpg",
    "task": "cup",
    "bbox": [420, 200, 100, 100],
    "X": [140.0],
    "Y": [0.0],
    "T": [200],
}


def searched(
    tmp_path: Path, entries: list[dict[str, Any]], *options: str, sizes: dict[str, tuple[int, int]] | None = None
) -> int:
    (tmp_path / "img").mkdir(exist_ok=True)
    for name, size in ({"one.jpg": (640, 480)} | (sizes or {})).items():
        PILImage.new("RGB", size).save(tmp_path / "img" / name)
    (tmp_path / "list.json").write_text(json.dumps(entries))
    call = ["set", str(tmp_path / "list.json"), "--images", str(tmp_path / "img"), "--out", str(tmp_path / "set.jsonl")]
    return main([*call, "--force", *options])


def boxes(tmp_path: Path) -> dict[str, Any]:
    rows = [json.loads(line) for line in (tmp_path / "set.jsonl").read_text().splitlines()]
    return {row["id"]: row.get("target_box") for row in rows}


def test_boxes_of_a_screen_with_bars(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A picture of 640 x 480 has 1400 x 1050 pixels there, between bars of 140."""
    assert searched(tmp_path, [ON_SCREEN], "--frame", "1680x1050", "--fit", "bars") == 0
    assert boxes(tmp_path)["cup/one.jpg"] == pytest.approx([128, 91.43, 45.71, 45.71], abs=0.01)
    assert capsys.readouterr().out == "1 stimulus (attention_prediction 1): no problems.\n"
    assert searched(tmp_path, [ON_SCREEN], "--frame", "1680x1050", "--fit", "stretch") == 0
    assert boxes(tmp_path)["cup/one.jpg"] == pytest.approx([160, 91.43, 38.1, 45.71], abs=0.01)
    assert searched(tmp_path, [ON_SCREEN], "--frame", "1280x960") == 0  # of one shape
    assert boxes(tmp_path)["cup/one.jpg"] == [210, 100, 50, 50]


def test_boxes_of_pictures_that_are_not_as_large_as_the_screen_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    two = {**ON_SCREEN, "name": "two.jpg"}
    three = {**ON_SCREEN, "name": "three.jpg", "bbox": [600, 400, 100, 100]}
    sizes = {"two.jpg": (1680, 1050), "three.jpg": (640, 480)}
    assert searched(tmp_path, [ON_SCREEN, two, three], sizes=sizes) == 0
    assert boxes(tmp_path)["cup/one.jpg"] == [420, 200, 100, 100]
    told = capsys.readouterr().out
    assert (
        "boxes are taken as pixels of their pictures, though 2 of 3 have one of another size than 1680 x 1050" in told
    )
    assert "give --frame 1680x1050 with --fit bars" in told
    assert (
        "boxes that leave the picture: 1, such as [600, 400, 100, 100] of cup/three.jpg, whose picture is 640 x 480"
        in told
    )


def test_a_box_at_the_edge_of_the_picture_on_the_screen_stays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Boxes of the list are rounded to pixels of the screen."""
    edge = {**ON_SCREEN, "bbox": [139, 950, 1402, 101]}
    beyond = {**ON_SCREEN, "task": "fork", "bbox": [120, 950, 1402, 101]}
    assert searched(tmp_path, [edge, beyond], "--frame", "1680x1050", "--fit", "bars") == 0
    assert "boxes that leave the picture: 1, such as [-9.14286" in capsys.readouterr().out


def test_a_frame_of_another_shape_needs_its_fit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    many = [{**ON_SCREEN, "task": f"cup {at}"} for at in range(7)]
    assert searched(tmp_path, many, "--frame", "1680x1050") == 2
    told = capsys.readouterr().err
    assert "list.json: cup 0/one.jpg: the picture is 640 x 480, of another shape than --frame 1680 x 1050" in told
    assert (
        "no set was made, as boxes cannot be brought from --frame to their pictures: 7 (5 are named); give --fit bars"
        in told
    )
    assert not (tmp_path / "set.jsonl").exists()
    assert searched(tmp_path, [{**ON_SCREEN, "name": "gone.jpg"}], "--frame", "1680x1050", "--fit", "bars") == 2
    told = capsys.readouterr().err
    assert "gone.jpg: no such file" in told
    assert "give with --images the folder in which all pictures are" in told


@pytest.mark.parametrize(
    ("options", "content", "told"),
    [
        (["--fit", "bars"], [ON_SCREEN], "--fit says how a picture filled the frame of its box: give --frame"),
        (["--frame", "9x9"], CAPTIONS, "--frame is for the boxes of COCO-Search18's list, and"),
        (["--frame", "9x9"], INSTANCES, "--frame is for the boxes of COCO-Search18's list, and"),
        (["--frame", "9x9"], {"a.jpg": "a cup"}, "--frame is for the boxes of COCO-Search18's list, and"),
        (["--frame", "9x9"], [{**ON_SCREEN, "condition": "freeview"}], "--frame is for boxes, and"),
    ],
)
def test_a_frame_is_for_boxes(
    options: list[str], content: Any, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert searched(tmp_path, content, *options) == 2
    assert told in capsys.readouterr().err
    assert not (tmp_path / "set.jsonl").exists()


def test_boxes_of_free_viewing_are_no_targets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    free = {**ON_SCREEN, "condition": "freeview"}
    assert searched(tmp_path, [free, {**free, "subject": 3, "bbox": [1, 2, 3, 4]}]) == 0
    assert boxes(tmp_path) == {"one.jpg": None}
    assert capsys.readouterr().out == "1 stimulus (attention_prediction 1): no problems.\n"


def test_what_an_entry_does_not_say_is_not_made_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whether the target is there; and of two boxes of a search the first is taken, with a word."""
    unsaid = {**ON_SCREEN, "condition": ["?"]}
    entries = [unsaid, {**ON_SCREEN, "task": "fork"}, {**ON_SCREEN, "task": "fork", "bbox": [1, 2, 3, 4], "subject": 9}]
    assert searched(tmp_path, entries) == 0
    rows = [json.loads(line) for line in (tmp_path / "set.jsonl").read_text().splitlines()]
    assert [row.get("target_present") for row in rows] == [None, True]
    assert [row["target_box"] for row in rows] == [[420, 200, 100, 100]] * 2
    assert "left out: 1 entry with another box than the first of the same search" in capsys.readouterr().out
