"""Import: the published files become records, with all that is odd in them; what is wrong is refused whole."""

from __future__ import annotations

import contextlib
import errno
import json
import os
from pathlib import Path
from typing import Any

import orjson
import pytest
from run_folders import record, stimulus, write_run

import serving.runs.atomic_files
from agents.errors import InputError, LockedError, StorageError
from serving.cli import main
from serving.runs.atomic_files import lock
from serving.runs.importing import import_files
from serving.runs.records import problems
from serving.runs.run import Run
from serving.runs.status import print_status


def _human(response: Any, subject: str = "", **more: Any) -> dict[str, Any]:
    row = {"response": response, "groundtruth": "human", "human_groundtruth": subject, "machine_groundtruth": ""}
    return {**row, **more}


def _machine(response: Any, name: str) -> dict[str, Any]:
    return {"response": response, "groundtruth": "machine", "human_groundtruth": "", "machine_groundtruth": name}


def _write(path: Path, content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """The five files in small, odd in the ways the published ones are."""
    path = [[660, 512], [-12, 1324], [1280, 0]]
    words = {f"cue{number}": [_machine(f"w{number}", "gpt2"), _machine(f"w{number}", "dav")] for number in range(29)}
    words["come"] = [_human("together"), _machine("make", "gpt2"), _human("here"), _human("here", "07")]
    words["come"] += [_machine("make", "dav"), _machine("far", "word2vec"), _human("again", "07")]
    content = {
        "color": {
            "565.jpg": [_human("white", imageID="565.jpg"), _machine("none", "google"), _machine("green", "histogram")]
        },
        "object": {"565.jpg": [_machine("zebra", "detectron"), _human("zebra, wall , plants"), _human("")]},
        "caption": {"0001.jpg": [_machine("a [ unused0 ] plate", "git"), _human("a dish", "Participant_114")]},
        "word": words,
        "fv": {
            "img001.jpg": [_human(path, "05"), _human([], "07"), _machine([[1, 2], [0, 0], [0, 0], [0, 0]], "gbvs")]
        },
    }
    return {name: _write(tmp_path / "published" / f"{name}.json", rows) for name, rows in content.items()}


def _rows(out: Path, name: str) -> list[dict[str, Any]]:
    return list(Run(out).records(name))


def test_everything_odd_is_kept(files: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert import_files(list(files.values()), out) == 0
    humans, published = _rows(out, "humans"), _rows(out, "published")
    assert [problem for row in humans + published for problem in problems(row)] == []
    assert {row["kind"] for row in humans} == {"human"}
    assert {row["kind"] for row in published} == {"published"}
    keys = [(row["task"], row["agent"], row["stimulus"], row["sample"]) for row in humans]
    assert len(set(keys)) == len(keys)
    answers = dict(zip(keys, [row["answer"] for row in humans], strict=True))
    gaze = answers["attention_prediction", "human:05", "img001.jpg", 0]
    assert gaze["fixations"] == [[660, 512], [-12, 1324], [1280, 0]]
    assert gaze["frame"] == [1280, 1024]
    assert answers["attention_prediction", "human:07", "img001.jpg", 0]["fixations"] == []
    blank = [answers["word_association", "human:unknown", "come", sample]["word"] for sample in range(2)]
    assert blank == ["together", "here"]
    named = [answers["word_association", "human:07", "come", sample]["word"] for sample in range(2)]
    assert named == ["here", "again"]
    # One image is shown for its colour and for its objects: a sample of its own in each task.
    assert answers["color_estimation", "human:unknown", "565.jpg", 0]["color"] == "white"
    labels = [answers["object_detection", "human:unknown", "565.jpg", sample]["labels"] for sample in range(2)]
    assert labels == [["zebra", "wall", "plants"], []]
    raw = {(row["agent"], row["stimulus"]): row["raw"] for row in published}
    assert raw["published:git", "0001.jpg"] == "a [ unused0 ] plate"
    assert raw["published:google", "565.jpg"] == "none"
    out_text = capsys.readouterr().out
    for words in ("points off the frame: 2", "none of the eleven: 1", "captions with special tokens: 1"):
        assert words in out_text
    assert print_status(out) == 0
    about = orjson.loads((out / "import.json").read_bytes())
    assert [source["task"] for source in about["sources"]][:2] == ["color_estimation", "object_detection"]
    word = next(source for source in about["sources"] if source["task"] == "word_association")
    assert (word["human"], word["published"], word["subjects"], word["machines"]) == (4, 61, 2, 3)
    assert word["noticed"] == {"human_answers_without_a_name": 2}
    meta = Run(out).meta
    assert meta["imports_only"] is True
    assert meta["agents"] == {}


def _bytes(out: Path) -> dict[str, bytes]:
    names = ("records/humans.jsonl", "records/published.jsonl", "import.json", "run.json")
    return {name: (out / name).read_bytes() for name in names}


def test_importing_twice_changes_nothing(files: dict[str, Path], tmp_path: Path) -> None:
    out, order = tmp_path / "out", list(files.values())
    import_files(order, out)
    before = _bytes(out)
    import_files(order, out)
    assert _bytes(out) == before
    for path in order[::-1]:
        import_files([path], out)
    assert _bytes(out) == before
    copy = tmp_path / "elsewhere" / "word.json"
    copy.parent.mkdir()
    copy.write_bytes(files["word"].read_bytes())
    import_files([copy, files["word"], copy], out)
    assert _bytes(out) == before
    other = tmp_path / "other"
    import_files(order, other)
    assert (other / "records" / "humans.jsonl").read_bytes() == before["records/humans.jsonl"]


def test_a_file_that_has_changed_takes_its_own_place(files: dict[str, Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    import_files([files["color"], files["caption"]], out)
    _write(files["color"], {"565.jpg": [_human("pink"), _human("red")]})
    import_files([files["color"]], out)
    assert [(row["task"], row["raw"], row["sample"]) for row in _rows(out, "humans")] == [
        ("color_estimation", "pink", 0),
        ("color_estimation", "red", 1),
        ("image_captioning", "a dish", 0),
    ]
    assert [row["task"] for row in _rows(out, "published")] == ["image_captioning"]
    assert len(orjson.loads((out / "import.json").read_bytes())["sources"]) == 2


def test_another_file_of_the_same_task_adds_samples(tmp_path: Path) -> None:
    out = tmp_path / "out"
    for number, word in enumerate(["one", "two", "three"]):
        import_files([_write(tmp_path / str(number) / "word.json", {"cue": [_human(word)]})], out)
    assert [(row["raw"], row["sample"]) for row in _rows(out, "humans")] == [("one", 0), ("two", 1), ("three", 2)]


def test_a_task_given_wrongly_can_be_put_right(tmp_path: Path) -> None:
    path, out = _write(tmp_path / "answers.json", {"a": [_human("red")]}), tmp_path / "out"
    with pytest.raises(InputError) as caught:
        import_files([path], out)
    assert "says no task; say with --task which" in caught.value.problems[0].message
    import_files([path], out, task="word")
    import_files([path], out, task="color_estimation")
    assert [row["task"] for row in _rows(out, "humans")] == ["color_estimation"]


def test_submissions(tmp_path: Path) -> None:
    out = tmp_path / "out"
    color = _write(tmp_path / "a" / "color.json", {"1.jpg": "red", "2.jpg": "none"})
    gaze = _write(tmp_path / "a" / "fv.json", {"img001": [], "img002": [[1, 2], [3.5, 4]]})
    with pytest.raises(InputError) as caught:
        import_files([color], out)
    assert "does not say whose answers" in caught.value.problems[0].message
    import_files([color, gaze], out, name="mine")
    found = {row["stimulus"]: (row["agent"], row["raw"]) for row in _rows(out, "published")}
    assert found["2.jpg"] == ("published:mine", "none")
    assert found["img001"] == ("published:mine", [])
    assert found["img002"] == ("published:mine", [[1, 2], [3.5, 4]])
    assert not (out / "records" / "humans.jsonl").exists()
    # The same answers from two machines are two machines' answers.
    same = tmp_path / "b" / "color.json"
    same.parent.mkdir()
    same.write_bytes(color.read_bytes())
    import_files([same], out, name="theirs")
    import_files([same], out, name="theirs")
    agents = [row["agent"] for row in _rows(out, "published") if row["task"] == "color_estimation"]
    assert agents == ["published:mine"] * 2 + ["published:theirs"] * 2


def test_into_a_run(files: dict[str, Path], tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [stimulus("s1")], {"mmcq": [record("s1")]})
    meta, own = (run / "run.json").read_bytes(), (run / "records" / "mmcq.jsonl").read_bytes()
    import_files([files["color"]], run)
    assert (run / "run.json").read_bytes() == meta
    assert (run / "records" / "mmcq.jsonl").read_bytes() == own
    folder = Run(run)
    assert folder.agents() == ["mmcq"]
    assert {row["run"] for row in folder.records("humans")} == {"0123456789ab"}
    with lock(run), pytest.raises(LockedError):
        import_files([files["color"]], run)


BAD = {
    "not utf-8": b'{"a": "\xff"}',
    "a list": b"[]",
    "nothing in it": b'{"a": [], "b": []}',
    "empty id": json.dumps({" ": [_human("red")]}).encode(),
    "not a number": b'{"a": [{"response": NaN, "groundtruth": "human"}]}',
    "a key twice": b'{"a": [{"response": "x", "groundtruth": "human"}], "a": []}',
    "deep": b"[" * 100_000,
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_refused_whole(files: dict[str, Path], tmp_path: Path, name: str) -> None:
    path = tmp_path / "color.json"
    path.write_bytes(BAD[name])
    with pytest.raises(InputError, match="nothing was imported") as caught:
        import_files([files["word"], path], tmp_path / "out")
    assert [problem.where for problem in caught.value.problems] == [str(path)]
    assert not (tmp_path / "out").exists()


def test_every_problem_at_once(tmp_path: Path) -> None:
    rows = [_human(1), _human("red"), _human(None), {**_human("red"), "human_groundtruth": ["05"]}, "blue"]
    one = _write(
        tmp_path / "color.json", {"a": rows, "b": [{}], "c": [{**_human("x"), "groundtruth": "robot"}], "d": "x"}
    )
    paths = ["[[1, 2]]", [[1, 2, 3]], [["1", 2]], [[True, 1]], [[2**70, 1]], [[1, 2]]]
    two = _write(tmp_path / "fv.json", {"e": [_human(path) for path in paths]})
    with pytest.raises(InputError) as caught:
        import_files([one, two, tmp_path / "word.json"], tmp_path / "out")
    assert [problem.field for problem in caught.value.problems] == [
        *("a[0].response", "a[2].response", "a[3].human_groundtruth", "a[4]", "b[0].response", "b[0].groundtruth"),
        *("c[0].groundtruth", "d", *(f"e[{number}].response" for number in range(5)), None),
    ]


def test_lone_surrogates_are_replaced_and_other_fields_counted(tmp_path: Path) -> None:
    path = tmp_path / "caption.json"
    path.write_text('{"a": [{"response": "x\\ud800y", "groundtruth": "human", "age": 30}]}')
    import_files([path], tmp_path / "out")
    [row] = _rows(tmp_path / "out", "humans")
    assert row["answer"]["text"] == row["raw"] == "x\ufffdy"
    assert problems(row) == []
    [source] = orjson.loads((tmp_path / "out" / "import.json").read_bytes())["sources"]
    assert source["noticed"]["field_age_not_imported"] == 1


def test_wrong_usage(files: dict[str, Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    for arguments in (
        {"paths": []},
        {"paths": [files["color"]], "name": "x"},
        {"paths": [files["color"]], "name": "Bad Name"},
        {"paths": [files["color"]], "task": "conversation"},
        {"paths": [tmp_path / "none.json"], "task": "word"},
    ):
        with pytest.raises(InputError):
            import_files(out=out, **arguments)
    assert not out.exists()


def _said(path: Path, out: Path, capsys: pytest.CaptureFixture[str], *more: str) -> list[str]:
    """What the command says of a file that it refuses."""
    assert main(["import", str(path), "--out", str(out), *more]) == 2
    return capsys.readouterr().err.splitlines()


def test_what_is_said_of_a_file_that_cannot_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, last = tmp_path / "out", "turinglike: nothing was imported: 1 problem"
    os.mkfifo(tmp_path / "fifo.json")
    for path in (Path("/dev/zero"), tmp_path / "fifo.json", tmp_path):
        assert _said(path, out, capsys) == [f"{path}: is not a plain file", last]
    path = tmp_path / "word.json"
    assert _said(path, out, capsys) == [f"{path}: cannot be read: No such file or directory", last]
    with path.open("wb") as file:
        file.truncate((1 << 30) + 1)  # a hole: nothing is on disk
    assert _said(path, out, capsys) == [f"{path}: has 1.0 GiB; at most 1 GiB is read", last]
    assert not out.exists()


def test_another_folder_is_not_written_to(files: dict[str, Path], tmp_path: Path) -> None:
    other = tmp_path / "photographs"
    other.mkdir()
    (other / "precious.jpg").write_text("x")
    with pytest.raises(InputError, match="is not a run folder"):
        import_files([files["color"]], other)
    assert [path.name for path in other.iterdir()] == ["precious.jpg"]


def test_damage_in_what_was_there_is_not_overwritten(files: dict[str, Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    import_files([files["color"]], out)
    path = out / "records" / "humans.jsonl"
    path.write_bytes(b"{]\n" + path.read_bytes())
    with pytest.raises(InputError, match=r"humans\.jsonl:1"):
        import_files([files["word"]], out)
    for content in (b"{", b"{}", b'{"schema": "turinglike.import/2", "sources": []}'):
        (out / "import.json").write_bytes(content)
        with pytest.raises(InputError, match=r"import\.json"):
            import_files([files["word"]], out)


@pytest.mark.parametrize("moment", [1, 4])
def test_a_disk_that_fills_up(
    files: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    """Whenever the disk fails, every file is the old or the new one, and importing again makes it whole."""
    out = tmp_path / "out"
    import_files([files["color"], files["word"]], out)
    left, sync = moment, serving.runs.atomic_files.os.fsync

    def fails(descriptor: int) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        sync(descriptor)

    wanted = tmp_path / "wanted"
    import_files([files["color"], files["word"], files["object"]], wanted)
    with monkeypatch.context() as patch:
        patch.setattr(serving.runs.atomic_files.os, "fsync", fails)
        with contextlib.suppress(StorageError):
            import_files([files["object"]], out)
            assert left > 0
    assert not list((out / "records").glob(".*"))
    Run(out)
    import_files([files["object"]], out)
    run = Run(out).meta["run"].encode()
    for name in ("humans", "published"):
        found, expected = (folder / "records" / f"{name}.jsonl" for folder in (out, wanted))
        assert found.read_bytes() == expected.read_bytes().replace(Run(wanted).meta["run"].encode(), run)


def test_names_of_files_do_not_steer_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "talk\x1b[2J.html"
    page.write_text("<p> A: Hi! </p>\n<p> B: Hello. </p>")
    assert main(["import", str(page), "--name", "human~x", "--out", str(tmp_path / "new\x1b[2J")]) == 0
    with pytest.raises(SystemExit):
        main(["import", str(page), "--out", "x", "--sur\x1b[2Jprise"])
    said = "".join(capsys.readouterr())
    assert "\x1b" not in said
    assert said.count("\\x1b[2J") == 3
