"""scripts/compare_scanpaths.py: paths made by hand, and the figures of docs/attention.md."""

import json
import re
from pathlib import Path
from typing import Any

import compare_scanpaths
import pytest

from serving.cli import main
from tests.helpers import run_folders

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize(
    ("place", "landed"),
    [((56, 50), 1), ((44, 50), 1), ((44, 55), 1), ((57, 50), 0), ((43, 50), 0), ((52, 50), 0), ((50, 44), 1)],
)
def test_a_border_is_one_pixel_wide(place: tuple[int, int], landed: int) -> None:
    """A window of 10 around (50, 50) covers 45 to 55 both ways."""
    assert compare_scanpaths.at_border([(50, 50), place], 10) == landed
    assert compare_scanpaths.at_border([(50, 50), (90, 90), place], 10) == landed
    assert compare_scanpaths.at_border([place], 10) == 0


def test_a_run_is_told_path_by_path(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answers: list[dict[str, Any]] = [
        {"fixations": [[640, 512], [741, 512], [900, 900], [743, 514]], "frame": [1280, 1024], "window": 200},
        {"fixations": [[640, 512], [741, 512]], "frame": [1280, 1024], "window": 80},  # no border of this window
    ]
    rest = {"stop": "maximum", "found": None, "found_at": None, "forced_first": True, "selection": "maximum"}
    rows = [{"id": f"p{number}", "task": "attention_prediction", "image": "a.png"} for number in range(2)]
    records = [
        run_folders.record(row["id"], "attention_prediction", "w", answer={**rest, "durations_ms": None, **answer})
        for row, answer in zip(rows, answers, strict=True)
    ]
    entry = {"w": run_folders.agent_entry("attention_prediction")}
    run = run_folders.write_run(tmp_path / "run", rows, {"w": records}, entry)
    assert compare_scanpaths.main([str(run)]) == 0
    [told] = json.loads(capsys.readouterr().out).values()
    # (741, 512) is a pixel outside of the first window of 200. (743, 514) is farther, and two pixels from (741, 512),
    # to which it returns. Two fixations of the first path count, from the third on; none of the second.
    assert told == {"paths": 2, "fixations": 6, "returns": 1, "counted": 2, "saccades": 4, "at_border": 1}


def test_a_run_without_paths_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    entry = {"w": run_folders.agent_entry("color_estimation")}
    rows = [{"id": "s1", "task": "color_estimation", "image": "a.png"}]
    run = run_folders.write_run(tmp_path / "run", rows, {"w": [run_folders.record(agent="w")]}, entry)
    assert compare_scanpaths.main([str(run)]) == 2
    assert "no scanpaths" in capsys.readouterr().err


@pytest.mark.slow
def test_the_figures_of_the_page_come_from_the_example_pictures(tmp_path: Path) -> None:
    pictures = str(ROOT / "examples" / "images")
    call = ("generate", pictures, "--task", "attention", "--agents", "gbvs", "--skip-invalid", "--here", "--device")
    assert main([*call, "cpu", "--out", str(tmp_path / "run")]) == 1  # one of the pictures is broken
    [told] = compare_scanpaths.compare([tmp_path / "run"]).values()
    page = (ROOT / "docs" / "attention.md").read_text()
    [(landed, of)] = re.findall(r"With `gbvs` (\d+) of (\d+) saccades", page)
    assert (told["at_border"], told["saccades"]) == (int(landed), int(of))
