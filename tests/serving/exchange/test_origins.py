"""Coordinates that count from elsewhere than the top left corner of the frame, and in other units than pixels.

Four places of a frame of 1600 x 1000 pixels, written as programs write them, must be the same places.
"""

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.helpers.imported_tables import imported, refusal, remarks

GAZE = ("--task", "attention", "--frame", "1600x1000")
Points = Sequence[Sequence[float]]
PLACES: Points = [[800, 500], [0, 0], [1600, 1000], [1200, 250]]  # the center, two corners, the middle of a quarter
WRITTEN: dict[tuple[str, str | None], Points] = {  # of PLACES, by origin and unit
    ("center", None): [(0, 0), (-800, 500), (800, -500), (400, 250)],
    ("center", "pixels"): [(0, 0), (-800, 500), (800, -500), (400, 250)],
    ("center", "height"): [(0, 0), (-0.8, 0.5), (0.8, -0.5), (0.4, 0.25)],
    ("center", "norm"): [(0, 0), (-1, 1), (1, -1), (0.5, 0.5)],
    ("center-down", None): [(0, 0), (-800, -500), (800, 500), (400, -250)],
    ("bottom-left", "pixels"): [(800, 500), (0, 1000), (1600, 0), (1200, 750)],
    ("bottom-left", None): [(0.5, 0.5), (0, 1), (1, 0), (0.75, 0.75)],  # shares, as Pupil writes them
    ("top-left", None): PLACES,
    ("top-left", "height"): [(0.8, 0.5), (0, 0), (1.6, 1), (1.2, 0.25)],
}


def table(points: Points) -> str:
    return "subject,stimulus,x,y\n" + "".join(f"s1,a.png,{x},{y}\n" for x, y in points)


@pytest.mark.parametrize(("origin", "units"), WRITTEN)
def test_one_place_written_in_many_ways(tmp_path: Path, origin: str, units: str | None) -> None:
    options = ["--origin", origin]
    if units is not None:
        options += ["--units", units]
    [row] = imported(tmp_path, "gaze.csv", table(WRITTEN[origin, units]), *GAZE, *options)
    assert row["answer"]["fixations"] == PLACES
    assert row["raw"]["fixations"] == [[float(x), float(y)] for x, y in WRITTEN[origin, units]]
    assert f"y {'downward' if origin.endswith(('top-left', 'down')) else 'upward'}; one unit is" in remarks(tmp_path)


def test_a_form_says_origin_and_units(tmp_path: Path) -> None:
    form = tmp_path / "lab.toml"
    form.write_text('name = "Lab"\nframe = "1600x1000"\norigin = "center"\nunits = "height"\n')
    text = table(WRITTEN["center", "height"])
    [row] = imported(tmp_path, "gaze.csv", text, "--task", "attention", "--form", str(form))
    assert row["answer"]["fixations"] == PLACES


def test_units_that_nobody_can_know(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = table(WRITTEN["center", "height"])
    assert "Say their unit with --units" in refusal(tmp_path, capsys, "a.csv", text, *GAZE, "--origin", "center")
    assert "give --origin center, too" in refusal(tmp_path, capsys, "b.csv", text, *GAZE, "--units", "norm")
    words = "subject,cue,response\np1,sun,moon\n"
    imported(tmp_path, "words.csv", words, "--task", "word", "--origin", "center")
    assert "--origin is not used: these files contain no scanpaths" in capsys.readouterr().out
