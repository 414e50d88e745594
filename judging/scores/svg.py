"""What the figures have in common: how an SVG is made of a drawing, its colours, and how names stand in it."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from agents.errors import printable
from judging.statistics.jackknife import Floats
from judging.statistics.tables import Estimate
from judging.statistics.verdict_table import PUBLISHED_PREFIX

# of Okabe and Ito's colours, which the colour-blind tell apart
HUMAN = "#0072b2"
MACHINE = "#d55e00"
INK = "#333333"
COLOURS = (HUMAN, MACHINE, "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
MARKERS = "osD^vPX"  # not as many as colours: both together repeat late
BAND = "#9a9a9a"
Draw = Callable[[Any], None]  # draws on an empty figure of matplotlib
FORMS: tuple[str, ...] = ("svg", "png", "pdf")  # of files in which each figure is saved
PIXELS = 200  # to the inch
# by form what a file would say of the program and the time
NAMELESS = {
    "svg": ("Date", "Creator", "Format", "Type"),
    "png": ("Software",),
    "pdf": ("Creator", "Producer", "CreationDate"),
}
LONGEST_NAME = 60  # letters of a name in a figure; tables have all
USUAL_NAME = 24  # letters, for which there is room as it is


def svg(draw: Draw) -> str:
    """The figure that ``draw`` draws, as an SVG: the same bytes every time."""
    return _svg(_figure(draw))


def drawn(draw: Draw) -> dict[str, bytes]:
    """The figure that ``draw`` draws, as the content of a file of each of FORMS: the same bytes every time.

    In an SVG text stays text, with ink of the page's colour, light or dark. A PNG has pixels on white, for slides.
    A PDF has its letters with it, for papers."""
    figure = _figure(draw)
    return {form: _svg(figure).encode("utf-8") if form == "svg" else _saved(figure, form) for form in FORMS}


def _figure(draw: Draw) -> Any:
    """A drawn figure, whose layout is fixed: saving would draw everything twice, first unseen, so that the names have
    their room."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    ink: Any = dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), INK)
    # Two $ in a name would else be a formula: it ends the drawing, or takes them out of the name.
    plain: Any = {"text.parse_math": False, "text.usetex": False}
    with rc_context({"font.size": 10, **plain, **ink}), _without_complaints():
        figure = Figure(layout="constrained")
        FigureCanvasSVG(figure)
        draw(figure)
        layout = figure.get_layout_engine()
        assert layout is not None
        layout.execute(figure)
        figure.set_layout_engine("none")
    return figure


def _without_complaints() -> warnings.catch_warnings[None]:
    """Of letters that matplotlib's own font lacks nothing is said: in an SVG text stays text, for which a browser has
    its fonts."""
    return warnings.catch_warnings(action="ignore", category=UserWarning)


def _svg(figure: Any) -> str:
    return _saved(figure, "svg").decode("utf-8").replace(INK, "currentColor")


def _saved(figure: Any, form: str) -> bytes:
    """The bytes of a file, without the time at which it was made."""
    from matplotlib import rc_context

    buffer = io.BytesIO()
    nameless = dict.fromkeys(NAMELESS[form])
    dots = PIXELS if form == "png" else "figure"
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "turinglike", "pdf.fonttype": 42}), _without_complaints():
        figure.savefig(buffer, format=form, transparent=form == "svg", dpi=dots, metadata=nameless)
    return buffer.getvalue()


def figure_labels(names: Sequence[str]) -> list[str]:
    """The names as a figure has them: of published machines without their prefix, unless another one has such a
    name."""
    short = [name.removeprefix(PUBLISHED_PREFIX) for name in names]
    return [label(name if short.count(brief) > 1 else brief) for name, brief in zip(names, short, strict=True)]


def label(name: str) -> str:
    """A name as it stands in a figure. A control character would make an SVG that is no XML, and a line break two
    labels; a name as long as a page would leave no room for what is drawn."""
    text = printable(name)
    return text if len(text) <= LONGEST_NAME else f"{text[:LONGEST_NAME]}…"


def numbers_in_order(place: Any) -> list[str]:
    """A key to sort texts by, in which numbers stand by their size: "item 9" comes before "item 10"."""
    return [part.zfill(9) if part.isdigit() else part for part in re.split(r"(\d+)", str(place))]


def beyond_usual(names: Sequence[str]) -> int:
    """Letters of the longest name for which a figure has no room as it is."""
    return max(0, max(map(len, names)) - USUAL_NAME)


def width_for(names: Sequence[str]) -> float:
    """Inches of a figure in whose margin the names of its rows stand."""
    return max(5.8, 4.6 + 0.085 * min(max(map(len, names)), LONGEST_NAME))


def with_bars(estimates: Sequence[Estimate]) -> tuple[Floats, Floats]:
    """The values [n], and how far the interval of each reaches [below and above, n], as matplotlib draws bars."""
    value, low, high = np.array([(rate.value, rate.low, rate.high) for rate in estimates]).reshape(-1, 3).T
    return value, np.abs([value - low, high - value])
