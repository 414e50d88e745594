"""Where an export may write, in every format: over nothing by accident, never over a run's own files, and whole."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as PILImage

from agents.errors import InputError, StorageError
from agents.stimuli import TASKS
from serving.exchange.exporting.command import FORMATS, export_run
from tests.helpers.run_folders import ANSWERS, agent_entry, record, stimulus, write_run

FILES = [form for form, kind in FORMATS.items() if not kind.is_folder]
FOLDERS = [form for form in FORMATS if form not in FILES]
OPTIONS: dict[str, dict[str, Any]] = {"turingtest": {"allow_missing": True}}
OWN = ("run.json", "stimuli.jsonl", "stimuli.index", "lock", "import.json", "records/mmcq.jsonl", "records/new/x")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run of which every format exports something."""
    PILImage.new("RGB", (64, 48)).save(tmp_path / "g1.png")
    stimuli = [stimulus(f"{task[0]}1", task) for task in TASKS if task != "attention_prediction"]
    stimuli.append(stimulus("g1", "attention_prediction", image="g1.png"))
    path = {**ANSWERS["attention_prediction"], "frame": [64, 48], "fixations": [[1, 2], [3, 4]]}
    records = [record(row["id"], row["task"], "all", stimulus_sha256=None) for row in stimuli]
    records[-1]["answer"] = path
    return write_run(tmp_path / "run", stimuli, {"all": records}, {"all": agent_entry(*TASKS)})


def exported(run: Path, form: str, out: Path, **more: Any) -> None:
    export_run(run, form, out, **OPTIONS.get(form, {}), **more)


def tree(folder: Path) -> dict[str, bytes]:
    """Every file; of Parquet, which says when it was written, only that it is there."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.mark.parametrize("form", FILES)
def test_no_file_is_replaced_unasked(run: Path, tmp_path: Path, form: str) -> None:
    out = tmp_path / "out"
    for taken in (out, tmp_path / "out.export.json", *(tmp_path / f"out.{end}" for end in FORMATS[form].beside)):
        taken.write_text("precious")
        with pytest.raises(InputError, match="already exists"):
            exported(run, form, out)
        assert taken.read_text() == "precious"
        taken.unlink()
    exported(run, form, out)
    before = out.read_bytes()
    exported(run, form, out, force=True)
    if form != "parquet":
        assert out.read_bytes() == before
    out.unlink()
    out.mkdir()
    with pytest.raises(InputError, match="is a folder"):
        exported(run, form, out, force=True)


@pytest.mark.parametrize("form", FOLDERS)
def test_no_folder_is_replaced_unasked(run: Path, tmp_path: Path, form: str) -> None:
    out = tmp_path / "out"
    other = tmp_path / "photographs"
    file = tmp_path / "file"
    out.mkdir()
    exported(run, form, out)  # an empty folder is no loss
    before = tree(tmp_path)
    with pytest.raises(InputError, match="already exists"):
        exported(run, form, out)
    exported(run, form, out, force=True)
    assert tree(tmp_path) == before
    other.mkdir()
    (other / "precious.jpg").write_text("x")
    (tmp_path / "link").symlink_to(other)
    file.write_text("x")
    for path in (other, tmp_path / "link", file):
        with pytest.raises(InputError, match=r"is none that this command has made|is not a folder"):
            exported(run, form, path, force=True)
    assert (other / "precious.jpg").read_text() == file.read_text() == "x"


@pytest.mark.parametrize("name", [*OWN, "records", "turns/a~b.jsonl", "../run/records/../run.json", "."])
@pytest.mark.parametrize("form", ["csv", *FOLDERS])
def test_the_runs_own_files_are_safe(run: Path, tmp_path: Path, name: str, form: str) -> None:
    (run / "records" / "_export.json").write_bytes(b"{}")  # even if it looks like an export
    before = tree(run)
    with pytest.raises(InputError, match="where the run"):
        exported(run, form, run / name, force=True)
    (tmp_path / "link").symlink_to(run / name)
    (tmp_path / "folder").symlink_to(run)
    for out in (tmp_path / "link", tmp_path / "folder" / name):
        with pytest.raises(InputError):
            exported(run, form, out, force=True)
    other = write_run(tmp_path / "other", [stimulus("c1")], {"mmcq": [record("c1")]})
    if name != ".":
        with pytest.raises(InputError, match="keeps its own files"):
            exported(other, form, run / name, force=True)
    assert tree(run) == before


@pytest.mark.parametrize("form", FORMATS)
def test_a_full_disk_and_damage_leave_nothing(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match="No space left on device"):
        exported(run, form, tmp_path / "folder" / "out")
    monkeypatch.undo()
    path = run / "records" / "all.jsonl"
    path.write_bytes(b"{]\n" + path.read_bytes())
    with pytest.raises(InputError, match=r"all\.jsonl:1"):
        exported(run, form, tmp_path / "folder" / "out")
    assert list((tmp_path / "folder").iterdir()) == []
