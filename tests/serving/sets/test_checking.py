"""Checking sets: images, duplicates, digests, order, and what the report says."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as PILImage

from agents.images import Image
from serving.cli import main
from serving.sets.checking import CheckResult, check_rows, print_report
from serving.sets.set_rows import Row
from serving.sets.stimulus_set import read_rows
from tests.helpers import bad_images as corpus
from tests.helpers.bad_images import BadImages


def write(folder: Path, rows: list[Any], name: str = "set.jsonl") -> Path:
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    (folder / name).write_text("\n".join(lines) + "\n")
    return folder / name


def check_set(path: Path, task: str | None = None, **options: Any) -> CheckResult:
    return check_rows(read_rows(path, task), **options)


def word(id: str, cue: str = "cat") -> dict[str, Any]:
    return {"id": id, "task": "word_association", "cue": cue}


def color(id: str, image: str) -> dict[str, Any]:
    return {"id": id, "task": "color_estimation", "image": image}


def search(id: str, image: str, target: str) -> dict[str, Any]:
    return {"id": id, "task": "attention_prediction", "image": image, "mode": "search", "target_image": target}


def lines(result: CheckResult) -> list[tuple[int | None, str | None, str]]:
    return [(problem.line, problem.field, problem.message) for problem in result.problems]


def seen(path: Path, **options: Any) -> list[tuple[Row, bytes | None, int]]:
    """What ``on_row`` is given."""
    found: list[tuple[Row, bytes | None, int]] = []
    check_set(path, on_row=lambda *given: found.append(given), **options)
    return found


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    for number in range(3):
        (tmp_path / f"{number}.png").write_bytes(corpus.png(2, 1, bytes([0, number, *range(5)])))
    return tmp_path


@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize("hash_images", [False, True])
def test_every_odd_image_is_found_and_no_good_one(
    bad_images: BadImages, tmp_path: Path, deep: bool, hash_images: bool
) -> None:
    names = [name for name in bad_images.expected if "\0" not in name]
    rows = [color(f"i{number}", str(bad_images.folder / name)) for number, name in enumerate(names)]
    path = write(tmp_path, rows)
    result = check_set(path, deep=deep, hash_images=hash_images)
    found = seen(path, deep=deep, hash_images=hash_images)
    wrong = {problem.line for problem in result.problems}
    expected = [bad_images.expected[name] for name in names]
    codes = [one.error if deep else one.header for one in expected]
    assert wrong == {line for line, code in enumerate(codes, start=1) if code}
    assert all(problem.field == "image" for problem in result.problems)
    assert result.invalid == result.total_problems == len(wrong)
    for (row, content, signature), code, name in zip(found, codes, names, strict=True):
        assert bool(row.problems) == bool(code), name
        assert (content is not None) == (hash_images and not code)
        assert bool(signature) == (not code)


def test_each_image_of_a_stimulus_is_named_by_its_field(pictures: Path) -> None:
    (pictures / "text.png").write_text("text")
    result = check_set(write(pictures, [search("a", "text.png", "missing.png")]))
    assert lines(result) == [
        (1, "image", "text.png: not an image in a known format (JPEG, PNG, WEBP, GIF, BMP, TIFF)"),
        (1, "target_image", "missing.png: no such file"),
    ]
    assert result.invalid == 1


def test_duplicates_are_found_over_the_whole_set_with_both_lines(pictures: Path) -> None:
    rows = [word("a"), word("b"), color("a", "0.png"), "", word("b", ""), "nonsense", word("c"), word("a")]
    result = check_set(write(pictures, [*rows, word("../d"), word("../d")]))
    duplicates = [(line, text.partition(";")[0]) for line, _, text in lines(result) if text.startswith("a duplicate")]
    assert duplicates == [(line, f"a duplicate of line {first}") for line, first in ((3, 1), (5, 2), (8, 1))]
    assert [problem.line for problem in result.problems] == [3, 5, 5, 6, 8, 9, 10]
    assert (result.duplicates, result.invalid, result.total_problems) == (3, 6, 7)


def test_rows_come_in_file_order_whatever_they_show(pictures: Path) -> None:
    shown = ["0.png", "missing.png", "1.png"]
    rows = [color(f"i{at}", shown[at % 3]) if at * 7919 % 11 < 6 else word(f"i{at}") for at in range(500)]
    found = seen(write(pictures, rows), hash_images=True)
    assert [row.id for row, _, _ in found] == [row["id"] for row in rows]
    assert [content is None for _, content, _ in found] == [bool(row.problems) for row, _, _ in found]


def digests(path: Path, **options: Any) -> tuple[list[bytes | None], list[int]]:
    found = seen(path, hash_images=True, **options)
    return [content for _, content, _ in found], [signature for _, _, signature in found]


def test_content_depends_on_the_row_and_the_bytes_and_on_nothing_else(pictures: Path) -> None:
    rows = [word("a"), color("b", "0.png"), search("c", "1.png", "2.png")]
    contents, signatures = digests(write(pictures, rows))
    row = json.dumps(rows[2], sort_keys=True, separators=(",", ":")).encode()
    shown = [hashlib.sha256((pictures / name).read_bytes()).digest() for name in ("1.png", "2.png")]
    assert contents[2] == hashlib.sha256(b"\n".join([row, *shown])).digest()[:16]
    assert digests(write(pictures, rows), deep=True) == (contents, signatures)
    os.utime(pictures / "0.png", ns=(1, 1))
    touched = digests(write(pictures, rows))
    assert touched[0] == contents
    assert [now == before for now, before in zip(touched[1], signatures, strict=True)] == [True, False, True]
    (pictures / "2.png").write_bytes(corpus.png(2, 1, bytes(7)))
    changed = digests(write(pictures, rows))
    assert changed[0][:2] == contents[:2]
    assert changed[0][2] != contents[2]
    noted = digests(write(pictures, [rows[0], {**rows[1], "meta": {"a": 1}}, rows[2]]))
    assert noted[0][1] != contents[1]


def test_bytes_of_known_files_are_not_read_again(pictures: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [word("a"), color("b", "0.png"), search("c", "1.png", "2.png"), color("e", "missing.png")]
    path = write(pictures, rows)
    contents, signatures = digests(path)
    remembered = {
        (row["task"], row["id"], signature): content
        for row, content, signature in zip(rows, contents, signatures, strict=True)
        if content and signature
    }
    read: list[str] = []
    original = Image.read

    def noted(image: Image) -> bytes:
        read.append(image.name)
        return original(image)

    monkeypatch.setattr(Image, "read", noted)

    def known(task: str, id: str, signature: int) -> bytes | None:
        return remembered.get((task, id, signature))

    assert digests(path, known=known) == (contents, signatures)
    assert read == ["missing.png"]
    read.clear()
    (pictures / "1.png").write_bytes(corpus.png(2, 1, bytes(7)))
    changed = digests(path, known=known)[0]
    assert sorted(read) == ["1.png", "2.png", "missing.png"]
    assert changed[1] == contents[1]
    assert changed[2] != contents[2]
    read.clear()
    # The image is as it was, but the row is not: what was known of the row before may not be taken for it.
    renamed = digests(write(pictures, [rows[0], {**rows[1], "meta": {"a": 1}}]), known=known)[0]
    assert renamed[1] != contents[1]
    assert read == ["0.png"]


def test_a_files_name_forges_no_line_of_the_report(pictures: Path, capsys: pytest.CaptureFixture[str]) -> None:
    evil = "a.png: no problems.\n\x1b[2Jb.png"
    (pictures / evil).write_text("no picture")
    assert print_report(check_set(pictures, task="color_estimation")) == 2
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert not any(line.endswith("no problems.") for line in out.splitlines())
    assert main(["check", str(pictures / f"{evil}.jsonl")]) == 2
    said = capsys.readouterr().err
    assert "\x1b" not in said
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize(
    ("target", "field"),
    [
        ({"target_box": [40, 0, 5, 5]}, "target_box"),
        ({"target_box": [39, 29, 5, 5]}, None),
        ({"target_box": [40, 0, 5, 5], "target_present": False}, None),
        ({"target_mask": "small.png"}, "target_mask"),
        ({"target_mask": "scene.png"}, None),
    ],
)
def test_a_target_outside_its_picture_is_a_problem(tmp_path: Path, target: dict[str, Any], field: str | None) -> None:
    PILImage.new("RGB", (40, 30), "white").save(tmp_path / "scene.png")
    PILImage.new("RGB", (9, 9), "white").save(tmp_path / "small.png")
    row = {"id": "a", "task": "attention_prediction", "image": "scene.png", "mode": "search", **target}
    (tmp_path / "set.jsonl").write_text(json.dumps(row) + "\n")
    found = check_set(tmp_path / "set.jsonl").problems
    assert [(one.line, one.field) for one in found] == ([] if field is None else [(1, field)])
