"""Import: the published files become records, odd ones too; what is wrong is refused completely."""

import contextlib
import errno
import json
import os
from pathlib import Path
from typing import Any

import orjson
import pytest

from agents.errors import InputError, LockedError, StorageError
from serving.cli import main
from serving.exchange.importing.command import import_files
from serving.files.atomic_files import lock
from serving.runs.run import Run
from serving.runs.status import print_status
from tests.helpers.run_folders import read_back, record, stimulus, write_run


def human(response: Any, subject: str = "", **more: Any) -> dict[str, Any]:
    row = {"response": response, "groundtruth": "human", "human_groundtruth": subject, "machine_groundtruth": ""}
    return {**row, **more}


def machine(response: Any, name: str) -> dict[str, Any]:
    return {"response": response, "groundtruth": "machine", "human_groundtruth": "", "machine_groundtruth": name}


def write(path: Path, content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """The five files in small, odd in the ways the published ones are."""
    path = [[660, 512], [-12, 1324], [1280, 0]]
    words = [human("together"), machine("make", "gpt2"), human("here"), human("here", "07"), human("again", "07")]
    content = {
        "color": {"565.jpg": [human("white", imageID="565.jpg"), machine("none", "google")]},
        "object": {"565.jpg": [machine("zebra", "detectron"), human("zebra, wall , plants"), human("")]},
        "caption": {"0001.jpg": [machine("a [ unused0 ] plate\ud800", "git"), human("a dish", "Participant_114")]},
        "word": {"come": words},
        "fv": {"img001.jpg": [human(path, "05"), human([], "07"), machine([[1, 2], [0, 0], [0, 0]], "gbvs")]},
    }
    return {name: write(tmp_path / "published" / f"{name}.json", rows) for name, rows in content.items()}


def test_everything_odd_is_kept(files: dict[str, Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert import_files(list(files.values()), out) == 0
    answers = {
        (row["task"], row["agent"], row["stimulus"], row["sample"]): row["answer"] for row in read_back(out, "humans")
    }
    assert len(answers) == 10
    gaze = answers["attention_prediction", "human:05", "img001.jpg", 0]
    assert (gaze["fixations"], gaze["frame"]) == ([[660, 512], [-12, 1324], [1280, 0]], [1280, 1024])
    assert answers["attention_prediction", "human:07", "img001.jpg", 0]["fixations"] == []
    words = [
        [answers["word_association", who, "come", sample]["word"] for sample in range(2)]
        for who in ("human:unknown", "human:07")
    ]
    assert words == [["together", "here"], ["here", "again"]]
    # One image is shown for its colour and for its objects: a sample of its own in each task.
    assert answers["color_estimation", "human:unknown", "565.jpg", 0]["color"] == "white"
    labels = [answers["object_detection", "human:unknown", "565.jpg", sample]["labels"] for sample in range(2)]
    assert labels == [["zebra", "wall", "plants"], []]
    raw = {row["agent"]: row["raw"] for row in read_back(out, "published")}
    assert (raw["published:git"], raw["published:google"]) == ("a [ unused0 ] plate\ufffd", "none")
    assert print_status(out) == 0
    [word] = [one for one in json.loads((out / "import.json").read_bytes())["sources"] if "word" in one["path"]]
    assert [word[key] for key in ("human", "published", "subjects", "machines")] == [4, 1, 2, 1]
    meta = Run(out).meta
    assert (meta["imports_only"], meta["agents"]) == (True, {})


def content(out: Path) -> dict[str, bytes]:
    return {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*.json*")}


def test_importing_twice_changes_nothing(files: dict[str, Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    order = list(files.values())
    import_files(order, out)
    before = content(out)
    import_files(order, out)
    for path in order[::-1]:
        import_files([path], out)
    copy = write(tmp_path / "elsewhere" / "word.json", json.loads(files["word"].read_bytes()))
    import_files([copy, files["word"], copy], out)
    assert content(out) == before
    import_files(order, tmp_path / "other")
    assert content(tmp_path / "other")["records/humans.jsonl"] == before["records/humans.jsonl"]


def test_a_file_that_has_changed_takes_its_place_and_another_file_adds_samples(
    files: dict[str, Path], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    import_files([files["color"], files["caption"]], out)
    write(files["color"], {"565.jpg": [human("pink"), human("red")]})
    import_files([files["color"]], out)
    import_files([write(tmp_path / "more" / "color.json", {"565.jpg": [human("grey")]})], out)
    assert [(row["task"], row["raw"], row["sample"]) for row in read_back(out, "humans")] == [
        ("color_estimation", "pink", 0),
        ("color_estimation", "red", 1),
        ("image_captioning", "a dish", 0),
        ("color_estimation", "grey", 2),
    ]
    assert [row["task"] for row in read_back(out, "published")] == ["image_captioning"]
    assert len(orjson.loads((out / "import.json").read_bytes())["sources"]) == 3


def test_submissions(tmp_path: Path) -> None:
    out = tmp_path / "out"
    color = write(tmp_path / "a" / "color.json", {"1.jpg": "red", "2.jpg": "none"})
    gaze = write(tmp_path / "a" / "fv.json", {"img001": [], "img002": [[1, 2], [3.5, 4]]})
    with pytest.raises(InputError) as caught:
        import_files([color], out)
    assert "does not say whose answers" in caught.value.problems[0].message
    import_files([color, gaze], out, name="mine")
    same = write(tmp_path / "b" / "color.json", {"1.jpg": "red", "2.jpg": "none"})  # two machines' answers
    for _ in range(2):
        import_files([same], out, name="theirs")
    assert [(row["agent"], row["stimulus"], row["raw"]) for row in read_back(out, "published")] == [
        ("published:mine", "1.jpg", "red"),
        ("published:mine", "2.jpg", "none"),
        ("published:mine", "img001", []),
        ("published:mine", "img002", [[1, 2], [3.5, 4]]),
        ("published:theirs", "1.jpg", "red"),
        ("published:theirs", "2.jpg", "none"),
    ]
    assert not (out / "records" / "humans.jsonl").exists()


def test_into_a_run(files: dict[str, Path], tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", [stimulus("s1")], {"mmcq": [record("s1")]})
    before = [(path / name).read_bytes() for name in ("run.json", "records/mmcq.jsonl")]
    import_files([files["color"]], path)
    assert [(path / name).read_bytes() for name in ("run.json", "records/mmcq.jsonl")] == before
    assert Run(path).agents() == ["mmcq"]
    assert {row["run"] for row in Run(path).records("humans")} == {"0123456789ab"}
    with lock(path), pytest.raises(LockedError):
        import_files([files["color"]], path)


BAD = {
    "not utf-8": b'{"a": "\xff"}',
    "nothing in it": b'{"a": [], "b": []}',
    "empty id": json.dumps({" ": [human("red")]}).encode(),
    "not a number": b'{"a": [{"response": NaN, "groundtruth": "human"}]}',
    "a key twice": b'{"a": [{"response": "x", "groundtruth": "human"}], "a": []}',
    "deep": b"[" * 100_000,
}


@pytest.mark.parametrize("name", BAD)
def test_a_wrong_file_stops_the_import_of_all(files: dict[str, Path], tmp_path: Path, name: str) -> None:
    path = tmp_path / "color.json"
    path.write_bytes(BAD[name])
    with pytest.raises(InputError, match="nothing was imported") as caught:
        import_files([files["word"], path], tmp_path / "out")
    assert [problem.where for problem in caught.value.problems] == [str(path)]
    assert not (tmp_path / "out").exists()


def test_every_problem_at_once(tmp_path: Path) -> None:
    answers = [human(1), human("red"), human(None), {**human("red"), "human_groundtruth": 1.5}, "blue"]
    color = write(tmp_path / "color.json", {"a": answers, "b": [{}], "c": [{**human("x"), "groundtruth": "robot"}]})
    paths = ["[[1, 2]]", [[1, 2, 3]], [["1", 2]], [[True, 1]], [[2**70, 1]], [[1, 2]]]
    gaze = write(tmp_path / "fv.json", {"e": [human(path) for path in paths]})
    with pytest.raises(InputError) as caught:
        import_files([color, gaze, tmp_path / "word.json"], tmp_path / "out")
    fields = [str(problem.field) for problem in caught.value.problems]
    assert list(dict.fromkeys(field.partition("human_groundtruth.")[0] for field in fields)) == [
        *("a.0.response", "a.2.response", "a.3.", "a.4", "b.0.response", "b.0.groundtruth", "c.0.groundtruth"),
        *("e.0.response", "e.1.response.0", "e.2.response.0.0", "e.3.response.0.0", "e.4.response.0.0", "None"),
    ]


def test_files_that_cannot_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "fifo.json")
    (tmp_path / "large.json").touch()
    os.truncate(tmp_path / "large.json", (1 << 30) + 1)  # a hole: nothing is on disk
    for path, message in (
        (tmp_path / "fifo.json", "is not a plain file"),
        (tmp_path, f"is a folder; give the files in it, such as {tmp_path}/*.csv"),
        (tmp_path / "word.json", "cannot be read: No such file or directory"),
        (tmp_path / "large.json", "has 1.0 GiB; at most 1 GiB is read"),
    ):
        assert main(["import", str(path), "--out", str(tmp_path / "out")]) == 2
        last = "turinglike: nothing was imported: 1 problem"
        assert capsys.readouterr().err.splitlines() == [f"{path}: {message}", last]
    assert not (tmp_path / "out").exists()


def test_damaged_files_are_not_overwritten(files: dict[str, Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    import_files([files["color"]], out)
    path = out / "records" / "humans.jsonl"
    path.write_bytes(b"{]\n" + path.read_bytes())
    with pytest.raises(InputError, match=r"humans\.jsonl:1"):
        import_files([files["word"]], out)
    (out / "import.json").write_bytes(b'{"schema": "turinglike.import/2", "sources": []}')
    with pytest.raises(InputError, match=r"import\.json"):
        import_files([files["word"]], out)


@pytest.mark.parametrize("moment", [1, 4])
def test_a_disk_that_fills_up(
    files: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    """Whenever the disk fails, every file is the old or the new one, and importing again makes it complete."""
    out = tmp_path / "out"
    wanted = tmp_path / "wanted"
    import_files([files["color"], files["word"]], out)
    import_files([files["color"], files["word"], files["object"]], wanted)
    left = moment
    sync = os.fsync

    def fails(descriptor: int) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        sync(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fails)
        with contextlib.suppress(StorageError):
            import_files([files["object"]], out)
            assert left > 0
    assert not list((out / "records").glob(".*"))
    import_files([files["object"]], out)
    runs = [Run(folder).meta["run"].encode() for folder in (out, wanted)]
    for name in ("humans", "published"):
        made, expected = ((folder / "records" / f"{name}.jsonl").read_bytes() for folder in (out, wanted))
        assert made == expected.replace(runs[1], runs[0])
