"""The clips of judges: what is in each file, to the byte, and that nothing tells whose path it is."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image as PILImage
from PIL import ImageSequence
from run_folders import ANSWERS, agent_entry, failed, record, stimulus, write_run

from agents.errors import InputError
from agents.stimuli import parse_row, sha256
from serving.cli import main
from serving.export.registry import export

GAZE = "attention_prediction"
AGENTS = ("gbvs", "ivsn")
PEOPLE = {"kind": "human", "seed": None, "timing": None, "worker": None, "created": None, "stimulus_sha256": None}


class Gif:
    """A GIF taken apart block by block, after its specification (GIF89a): ``delays`` in hundredths of a second and
    ``boxes`` of the frames, ``repeats`` (None without the block that says so), the label of every extension, and all
    that extensions say."""

    def __init__(self, data: bytes) -> None:
        assert data[:6] == b"GIF89a"
        self.size = int.from_bytes(data[6:8], "little"), int.from_bytes(data[8:10], "little")
        self.delays: list[int] = []
        self.boxes: list[tuple[int, int, int, int]] = []
        self.labels: list[int] = []
        self.said = b""
        self.repeats: int | None = None
        at = 13 + self._table(data[10])
        while data[at] != 0x3B:
            if data[at] == 0x21:
                label = data[at + 1]
                self.labels.append(label)
                blocks, at = self._blocks(data, at + 2)
                self.said += b"".join(blocks)
                if label == 0xF9:
                    self.delays.append(int.from_bytes(blocks[0][1:3], "little"))
                elif label == 0xFF:
                    assert blocks[0] == b"NETSCAPE2.0"
                    assert blocks[1][0] == 1
                    self.repeats = int.from_bytes(blocks[1][1:3], "little")
            else:
                assert data[at] == 0x2C
                numbers = [int.from_bytes(data[at + 1 + 2 * k : at + 3 + 2 * k], "little") for k in range(4)]
                self.boxes.append((numbers[0], numbers[1], numbers[2], numbers[3]))
                _, at = self._blocks(data, at + 10 + self._table(data[at + 9]) + 1)
        assert at == len(data) - 1  # nothing stands behind the end

    @staticmethod
    def _table(flags: int) -> int:
        return 3 * 2 ** ((flags & 7) + 1) if flags & 0x80 else 0

    @staticmethod
    def _blocks(data: bytes, at: int) -> tuple[list[bytes], int]:
        blocks = []
        while data[at]:
            blocks.append(data[at + 1 : at + 1 + data[at]])
            at += 1 + data[at]
        return blocks, at + 1


def frames(path: Path) -> list[np.ndarray]:
    with PILImage.open(path) as opened:
        return [np.array(frame.convert("RGB")).astype(int) for frame in ImageSequence.Iterator(opened)]


def ring(frame: np.ndarray) -> tuple[float, float, float]:
    """(x, y) of the centre of what is yellow, and its radius across."""
    rows, columns = np.nonzero((frame == (255, 255, 0)).all(axis=2))
    across = columns.max() - columns.min()
    return (columns.min() + columns.max()) / 2, (rows.min() + rows.max()) / 2, across / 2


def read_key(out: Path) -> list[dict[str, str]]:
    with out.with_name(f"{out.name}.key.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def gaze(fixations: list[list[float]], frame: tuple[int, int] = (320, 240), **changes: Any) -> dict[str, Any]:
    return {**ANSWERS[GAZE], "fixations": fixations, "frame": list(frame), **changes}


def _stimuli(tmp_path: Path) -> list[dict[str, Any]]:
    """Free viewing of a noisy picture, and search for a target image, a box and a mask in another."""
    random = np.random.default_rng(5)
    (tmp_path / "images").mkdir(exist_ok=True)
    for name in ("free", "search"):
        pixels = random.integers(0, 200, (240, 320, 3), np.uint8)
        pixels[100:140, 200:260] = (10, 20, 250)  # the target: 60 x 40 in blue
        PILImage.fromarray(pixels).save(tmp_path / "images" / f"{name}.png")
    PILImage.new("RGB", (30, 50), (250, 20, 10)).save(tmp_path / "images" / "target.png")
    mask = np.zeros((240, 320), np.uint8)
    mask[100:140, 200:260] = 255
    PILImage.fromarray(mask).save(tmp_path / "images" / "mask.png")
    there = {"mode": "search", "image": "images/search.png"}
    return [
        stimulus("free", GAZE, image="images/free.png", benchmark_id="672.jpg"),
        stimulus("by image", GAZE, target_image="images/target.png", target_present=False, **there),
        stimulus("by box", GAZE, target_box=[200.4, 99.7, 59.0, 40.0], **there),
        stimulus("by mask", GAZE, target_mask="images/mask.png", **there),
    ]


def _run(tmp_path: Path, **meta: Any) -> Path:
    """Two agents, which give one path to ``by box``, one of them in two samples; people and a published machine."""
    stimuli = _stimuli(tmp_path)
    hashes = {row["id"]: sha256(parse_row(json.dumps(row), root=tmp_path)) for row in stimuli}

    def said(name: str, agent: str, path: list[list[float]], **changes: Any) -> dict[str, Any]:
        return record(name, GAZE, agent, answer=gaze(path), stimulus_sha256=hashes[name], **changes)

    long = [[160, 120], *([[20 * k + 20, 15 * k + 20] for k in range(14)]), [1, 1], [2, 2]]
    published = {**PEOPLE, "kind": "published"}
    records = {
        "gbvs": [
            said("free", "gbvs", long),
            said("free", "gbvs", [[160, 120], [40, 50]], sample=1),
            said("by box", "gbvs", [[160, 120], [230, 120]]),
            said("by image", "gbvs", [[160, 120]]),
        ],
        "ivsn": [
            said("by box", "ivsn", [[160, 120], [230, 120]]),
            said("by mask", "ivsn", [[160, 120], [300, 20]]),
            failed("free", task=GAZE, agent="ivsn"),
        ],
        "humans": [
            record("672.jpg", GAZE, "human:05", answer=gaze([[640, 512], [320, 256]], (1280, 1024)), **PEOPLE),
            record("672.jpg", GAZE, "human:06", answer=gaze([], (1280, 1024)), **PEOPLE),
            record("other.jpg", GAZE, "human:05", answer=gaze([[640, 512]], (1280, 1024)), **PEOPLE),
        ],
        "published": [
            record("672.jpg", GAZE, "published:ivsn", answer=gaze([[1279, 5]], (1280, 1024)), **published),
        ],
    }
    agents = {name: agent_entry(GAZE) for name in AGENTS}
    return write_run(tmp_path / "run", stimuli, records, agents, **meta)


def test_every_clip_is_what_the_key_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "new" / "clips"
    export(_run(tmp_path), "judges", out)
    key = read_key(out)
    rows = {(row["agent"], row["kind"], row["stimulus"], row["sample"]): row for row in key}
    assert set(rows) == {
        ("gbvs", "machine", "free", "0"),
        ("gbvs", "machine", "free", "1"),
        ("gbvs", "machine", "by box", "0"),
        ("gbvs", "machine", "by image", "0"),
        ("ivsn", "machine", "by box", "0"),
        ("ivsn", "machine", "by mask", "0"),
        ("human:05", "human", "free", "0"),
        ("published:ivsn", "published", "free", "0"),
    }
    assert len(key) == 8
    found = {name: rows[name]["clip"] for name in rows}
    for row in key:
        data = (out / row["clip"]).read_bytes()
        gif = Gif(data)
        assert gif.size == (320, 240)
        assert gif.repeats == 0  # for ever
        assert set(gif.labels) == {0xF9, 0xFF}  # no comment, no text, no other application
        assert gif.labels.count(0xFF) == 1
        searching = row["mode"] == "search"
        assert gif.delays == [100] * searching + [30] * int(row["shown"]) + [100]
        assert len(gif.boxes) == len(gif.delays)
        assert hashlib.sha256(data).hexdigest() == row["sha256"]
    first = rows["gbvs", "machine", "free", "0"]
    assert (first["fixations"], first["shown"], first["benchmark_id"]) == ("17", "15", "672.jpg")
    assert rows["gbvs", "machine", "by image", "0"]["target"] == "target"
    pictures = frames(out / first["clip"])
    assert ring(pictures[0]) == pytest.approx((160, 120, 35 * 320 / 1280), abs=1)
    assert ring(pictures[1])[:2] == pytest.approx((20, 20), abs=1)
    assert not (pictures[-1] == (255, 255, 0)).all(axis=2).any()
    people = frames(out / found["human:05", "human", "free", "0"])
    assert ring(people[1])[:2] == pytest.approx((80, 60), abs=1)  # 320, 256 of 1280 x 1024
    about = json.loads((tmp_path / "new" / "clips.export.json").read_text())
    assert about["left_out"] == {"failed": 1, "without fixations": 1, "of stimuli outside the set": 1}
    assert about["records"] == {"gbvs": 4, "ivsn": 2, "human:05": 1, "published:ivsn": 1}
    assert about["clips"] == {"count": 8, "ring_radius": 35.0, "gap": "image", "shown": 15, "max_side": 1280}
    assert "clips.key.csv; keep it" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "colour", "size"),
    [("by image", (250, 20, 10), (30, 50)), ("by box", (10, 20, 250), (60, 41)), ("by mask", (10, 20, 250), (60, 40))],
)
@pytest.mark.parametrize("max_side", [1280, 160])
def test_the_target_is_shown_first(
    tmp_path: Path, name: str, colour: tuple[int, int, int], size: tuple[int, int], max_side: int
) -> None:
    out = tmp_path / "clips"
    export(_run(tmp_path), "judges", out, max_side=max_side)
    shown = [frames(out / row["clip"])[0] for row in read_key(out) if row["stimulus"] == name]
    part = min(1, max_side / 320)
    assert shown
    for frame in shown:
        assert np.array_equal(frame, shown[0])
        rows, columns = np.nonzero((frame != 128).any(axis=2))
        wanted = (size[0] * part, size[1] * part)
        assert (columns.max() - columns.min() + 1, rows.max() - rows.min() + 1) == pytest.approx(wanted, abs=0.6)
        assert np.abs(frame[frame.shape[0] // 2, frame.shape[1] // 2] - colour).max() <= 12
        assert (columns.min() + columns.max()) / 2 == pytest.approx(frame.shape[1] / 2, abs=1)


def test_nothing_tells_whose_a_clip_is(tmp_path: Path) -> None:
    run, out = _run(tmp_path), tmp_path / "clips"
    export(run, "judges", out)
    files = sorted(out.iterdir())
    assert [path.name for path in files] == [f"clip-{number:04}.gif" for number in range(1, 9)]
    assert [row["clip"] for row in read_key(out)] == [path.name for path in files]
    assert len({path.stat().st_mtime_ns for path in files}) == 1
    assert len({path.stat().st_mode for path in files}) == 1
    for path in files:
        gif = Gif(path.read_bytes())
        for word in (*AGENTS, "human", "published", "672", "free", "search", "pillow", "python", "turinglike", "xmp"):
            assert word.encode() not in gif.said.lower()
        assert len(gif.said) == len(b"NETSCAPE2.0") + 3 + 4 * len(gif.delays)  # there is no room for more
    # Neither of two agents, nor of two stimuli, comes before the other: the order is that of a hash.
    order = [(row["agent"], row["stimulus"], int(row["sample"])) for row in read_key(out)]

    def place(key: tuple[str, str, int]) -> bytes:
        return hashlib.sha256(json.dumps([3, *key], separators=(",", ":")).encode()).digest()

    assert order == sorted(order, key=place)
    same = [row for row in read_key(out) if row["stimulus"] == "by box"]
    assert (out / same[0]["clip"]).read_bytes() == (out / same[1]["clip"]).read_bytes()


def test_how_clips_look_can_be_chosen(tmp_path: Path) -> None:
    out = tmp_path / "clips"
    options = ["--ring-radius", "100", "--gap", "grey", "--shown", "2", "--max-side", "160", "--sample", "0"]
    assert main(["export", str(_run(tmp_path)), "--format", "judges", "--out", str(out), *options]) == 0
    [row] = [row for row in read_key(out) if row["agent"] == "gbvs" and row["stimulus"] == "free"]
    gif, pictures = Gif((out / row["clip"]).read_bytes()), frames(out / row["clip"])
    assert gif.size == (160, 120)
    assert gif.delays == [30, 30, 100]
    assert ring(pictures[0]) == pytest.approx((80, 60, 100 * 160 / 1280), abs=1)
    assert (pictures[-1] == 128).all()
    assert (row["fixations"], row["shown"]) == ("17", "2")


@pytest.mark.parametrize(
    "wrong", [{"ring_radius": 0}, {"ring_radius": float("nan")}, {"gap": "blue"}, {"shown": 0}, {"max_side": 15}]
)
def test_wrong_looks(tmp_path: Path, wrong: dict[str, Any]) -> None:
    [name] = wrong
    with pytest.raises(InputError, match=f"--{name.replace('_', '-')} "):
        export(_run(tmp_path), "judges", tmp_path / "clips", **wrong)


def test_all_pictures_that_are_not_as_they_were_are_named(tmp_path: Path) -> None:
    run = _run(tmp_path)
    before = sorted(path.name for path in tmp_path.iterdir())
    images = tmp_path / "images"
    (images / "mask.png").unlink()
    PILImage.new("RGB", (30, 50), (0, 255, 0)).save(images / "target.png")
    (images / "free.png").write_bytes((images / "free.png").read_bytes()[:2000])
    with pytest.raises(InputError, match="3 stimuli cannot be shown as they were") as caught:
        export(run, "judges", tmp_path / "clips")
    named = {problem.field: problem.message for problem in caught.value.problems}
    assert set(named) == {"free", "by image", "by mask"}
    assert "no such file" in named["by mask"]
    assert "what gbvs was shown has changed since" in named["by image"]
    assert "cannot be decoded" in named["free"]
    assert sorted(path.name for path in tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ({"target_box": [400, 10, 20, 20]}, "no pixel in the picture"),
        ({"target_box": [-30, 10, 20, 20]}, "no pixel in the picture"),
        ({"target_mask": "images/target.png"}, "another size than the picture"),
        ({"target_mask": "images/empty.png"}, "mask is empty"),
        ({}, "is not a stimulus"),
    ],
)
def test_a_target_that_cannot_be_cut_out_is_named(tmp_path: Path, target: dict[str, Any], reason: str) -> None:
    _stimuli(tmp_path)
    PILImage.new("L", (320, 240)).save(tmp_path / "images" / "empty.png")
    rows = [stimulus("s", GAZE, image="images/search.png", mode="search", **target)]
    answers = {"gbvs": [record("s", GAZE, "gbvs", answer=gaze([[1, 1]]), stimulus_sha256=None)]}
    run = write_run(tmp_path / "run", rows, answers, {"gbvs": agent_entry(GAZE)})
    with pytest.raises(InputError, match="1 stimulus cannot be shown") as caught:
        export(run, "judges", tmp_path / "clips")
    [problem] = caught.value.problems
    assert (problem.field, reason in problem.message) == ("s", True)


def test_a_box_that_lies_partly_outside_is_cut_to_the_picture(tmp_path: Path) -> None:
    _stimuli(tmp_path)
    rows = [stimulus("s", GAZE, image="images/search.png", mode="search", target_box=[-10, -20, 30, 50])]
    answers = {"gbvs": [record("s", GAZE, "gbvs", answer=gaze([[1, 1]]), stimulus_sha256=None)]}
    export(write_run(tmp_path / "run", rows, answers, {"gbvs": agent_entry(GAZE)}), "judges", tmp_path / "clips")
    target = frames(tmp_path / "clips" / "clip-0001.gif")[0]
    rows_, columns = np.nonzero((target != 128).any(axis=2))
    assert (columns.max() - columns.min() + 1, rows_.max() - rows_.min() + 1) == (20, 30)


@pytest.mark.parametrize("answer", [gaze([[1, 1]], (0, 240)), gaze([[1]]), {"fixations": [[1, 1]]}])
def test_what_is_no_scanpath_is_named(tmp_path: Path, answer: dict[str, Any]) -> None:
    stimuli = _stimuli(tmp_path)[:1]
    rows = [record("free", GAZE, "gbvs", answer=answer, stimulus_sha256=None)]
    run = write_run(tmp_path / "run", stimuli, {"gbvs": rows}, {"gbvs": agent_entry(GAZE)})
    with pytest.raises(InputError, match="gbvs, stimulus 'free': answer: not a scanpath"):
        export(run, "judges", tmp_path / "clips")


def test_the_parser_of_this_test_finds_comments() -> None:
    stream = io.BytesIO()
    PILImage.new("L", (3, 2)).save(stream, "GIF", comment=b"gbvs", duration=300)
    gif = Gif(stream.getvalue())
    assert (gif.size, gif.delays, gif.repeats) == ((3, 2), [30], None)
    assert 0xFE in gif.labels
    assert b"gbvs" in gif.said
