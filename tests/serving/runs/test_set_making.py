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
from serving.runs.stimulus_set import read_rows


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
    assert (record.answer.color, record.shown().meta) == ("red", {"label": 3})  # type: ignore[union-attr]
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
    source, pictures, out = tmp_path / "annotations.json", tmp_path / "pictures", tmp_path / "set.jsonl"
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
    truth, pictures, out = tmp_path / f"{name}.json", tmp_path / "pictures", tmp_path / "set.jsonl"
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
        "cat.jpg", "cat.png", "img.1.png", "img.jpg", "sun.webp", "No.2.png"
    ]  # fmt: skip
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
    assert [(row["id"], row["present"], row["absent"]) for row in rows] == [
        ("b.png", [], ["cat", "rocket"]),
        ("c.png", [], ["cat", "rocket"]),
    ]
