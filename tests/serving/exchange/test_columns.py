"""What columns mean, in every form of material: tasks, ids, free columns, and names that people give a field."""

from pathlib import Path

import orjson
import pandas
import pytest
from PIL import Image

from agents.errors import InputError
from serving import answer
from serving.cli import main
from serving.sets.checking import check_rows
from serving.sets.set_rows import Row, only
from serving.sets.stimulus_set import read_rows

WORDS = [{"cue": "sun", "age": 3}, {"cue": "moon", "age": 4}, {"cue": "sea", "age": 5}]


def good(path: Path, **options: object) -> list[Row]:
    rows = [*read_rows(path, **options)]  # type: ignore[arg-type]
    assert not [problem for row in rows for problem in row.problems]
    return rows


def written(path: Path, rows: list[dict[str, object]]) -> Path:
    frame = pandas.DataFrame(rows)
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    elif path.suffix == ".parquet":
        frame.to_parquet(path, index=False)
    else:
        frame.assign(id=frame["cue"]).to_json(path, orient="records", lines=True)
    return path


@pytest.mark.parametrize("name", ["set.csv", "set.parquet", "set.jsonl"])
def test_free_columns_go_into_meta_and_change_no_id(name: str, tmp_path: Path) -> None:
    path = written(tmp_path / name, WORDS)
    assert [(row.id, row.task, row.stimulus and row.stimulus.meta) for row in good(path)] == [
        ("sun", "word_association", {"age": 3}),
        ("moon", "word_association", {"age": 4}),
        ("sea", "word_association", {"age": 5}),
    ]
    [record, *_] = answer("null", path)
    assert record.stimulus == "sun"


def test_rows_of_one_name_need_ids(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [{"cue": "sun", "frequency": 1.5}, {"cue": "sun", "frequency": 2.5}]
    for name in ("a.csv", "a.parquet"):
        path = written(tmp_path / name, rows)
        [problem] = check_rows(read_rows(path)).problems
        assert "a duplicate of line" in problem.message
    with pytest.raises(InputError, match="1 problem"):
        answer("null", rows)
    numbered = [{**row, "id": number} for number, row in enumerate(rows)]
    assert [record.stimulus for record in answer("null", numbered)] == ["0", "1"]


@pytest.mark.parametrize(
    ("text", "task", "message"),
    [
        ("word,age\nsun,3\n", "word_association", "cue: is missing"),
        ("participant\np1\n", None, "task: is missing"),
        ("image\na.png\n", None, "task: is missing"),
    ],
)
def test_a_column_that_is_not_there_is_named(text: str, task: str | None, message: str, tmp_path: Path) -> None:
    (tmp_path / "set.csv").write_text(text)
    [row] = read_rows(tmp_path / "set.csv", task)
    assert str(row.problems[0]).startswith(f"{tmp_path}/set.csv:2: {message}")


def test_columns_say_the_task_and_agents_what_pictures_are_for(tmp_path: Path) -> None:
    for name in ("a.png", "b.png"):
        Image.new("RGB", (50, 40)).save(tmp_path / name)
    (tmp_path / "mixed.csv").write_text("image,cue,topic,target_box\na.png,,,\n,sun,,\n,,books,\n")
    rows = good(tmp_path / "mixed.csv", choose=only("color_estimation", "image_captioning"))
    assert [(row.line, row.task) for row in rows] == [
        (2, "color_estimation"),
        (2, "image_captioning"),
        (3, "word_association"),
        (4, "conversation"),
    ]
    of_two = read_rows(tmp_path / "mixed.csv", choose=lambda tasks: dict.fromkeys(tasks[:2], False))
    assert check_rows(of_two).total_problems == 0
    (tmp_path / "pics.csv").write_text("image,age\na.png,1\nb.png,2\n")
    for agents in ("mmcq,center", "mmcq"):
        call = ["generate", str(tmp_path / "pics.csv"), "--agents", agents, "--out", str(tmp_path / "run")]
        assert main([*call, "-q", "--here"]) == 0
    about = orjson.loads((tmp_path / "run" / "run.json").read_bytes())
    assert about["set"]["tasks"] == ["color_estimation", "attention_prediction"]
