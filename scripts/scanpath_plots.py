"""The plots of ``compare_scanpaths.py``, as PNG files. They need matplotlib, which is imported when they are drawn."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents.attention import scanpath_metrics as metrics
from agents.attention.scanpath_comparison import Comparison
from agents.errors import UnavailableError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = {"first": "#0072b2", "second": "#d55e00", "random": "#999999"}  # told apart by the colour-blind too
PANELS = {
    "shape": "MultiMatch: shape",
    "direction": "MultiMatch: direction",
    "length": "MultiMatch: length",
    "position": "MultiMatch: position",
    "duration": "MultiMatch: duration",
    "scanmatch": "ScanMatch",
    "scanmatch_durations": "ScanMatch, with durations",
}


def figure(width: float, height: float) -> Figure:
    """An empty figure, in inches. Raises UnavailableError where matplotlib is not installed."""
    try:
        module = importlib.import_module("matplotlib.figure")
    except ImportError as error:
        raise UnavailableError(f"the plots need matplotlib ({error}): pip install 'turinglike[compare]'") from None
    return module.Figure(figsize=(width, height), layout="constrained", dpi=120)


def draw(
    folder: Path,
    comparison: Comparison,
    names: Mapping[str, str],
    figures: Mapping[str, Mapping[str, Any]],
    rows: Sequence[Mapping[str, Any]],
) -> list[str]:
    """Write the plots; returns their names. ``names`` are the sets', by "first", "second" and "random".

    Without a score there is none of similarity.
    """
    plots = {
        "fixation_counts.png": _counts(comparison, names, list(figures)),
        "amplitudes.png": _amplitudes(comparison, names, list(figures)),
        "directions.png": _directions(names, figures),
    }
    if any(row["scores"] for row in rows):
        plots["similarity.png"] = _similarity(names, rows)
    for name, plot in plots.items():
        plot.savefig(folder / name, metadata={"Software": None})
    return list(plots)


def _counts(comparison: Comparison, names: Mapping[str, str], sides: Sequence[str]) -> Figure:
    """Histograms of fixations per path. Random paths have as many as the first set's and are left out."""
    import numpy as np

    counts = {
        side: np.array([len(path.fixations) for path, _ in comparison.each(side)]) for side in sides if side != "random"
    }
    most = max(int(values.max()) for values in counts.values())
    edges = np.arange(0.5, most + 1.5) if most <= 40 else np.linspace(0.5, most + 0.5, 41)
    plot = figure(6.4, 3.6)
    axes = plot.subplots()
    for side, values in counts.items():
        axes.stairs(_shares(values, edges), edges, fill=True, alpha=0.25, color=COLOURS[side])
        axes.stairs(_shares(values, edges), edges, color=COLOURS[side], linewidth=1.6, label=_legend(side, names))
    axes.xaxis.get_major_locator().set_params(integer=True)
    _finish(axes, "fixations per path", "share of paths")
    return plot


def _amplitudes(comparison: Comparison, names: Mapping[str, str], sides: Sequence[str]) -> Figure:
    """The distributions of saccade amplitudes, as shares of the frame's width."""
    import numpy as np

    plot = figure(6.4, 3.6)
    axes = plot.subplots()
    edges = np.linspace(0, 1.3, 27)
    for side in sides:
        found = [metrics.amplitudes(path.scaled(frame)) / frame[0] for path, frame in comparison.each(side)]
        values = np.clip(np.concatenate(found), 0, edges[-1]) if found else np.zeros(0)
        axes.stairs(_shares(values, edges), edges, color=COLOURS[side], linewidth=1.6, label=_legend(side, names))
    axes.set_xlim(0, edges[-1])
    _finish(axes, "saccade amplitude, as a share of the frame's width", "share of saccades")
    return plot


def _directions(names: Mapping[str, str], figures: Mapping[str, Mapping[str, Any]]) -> Figure:
    """A rose per set: the area of a sector is its share of saccades."""
    import numpy as np

    plot = figure(3.3 * len(figures), 3.6)
    panels = plot.subplots(1, len(figures), subplot_kw={"projection": "polar"}, squeeze=False)[0]
    angles = np.arange(8) * np.pi / 4
    largest = np.sqrt(max(max(own["directions"].values()) for own in figures.values()) or 1.0)
    for axes, (side, own) in zip(panels, figures.items(), strict=True):
        radii = np.sqrt([own["directions"][sector] for sector in metrics.SECTORS])
        axes.bar(angles, radii, width=np.pi / 4 * 0.94, color=COLOURS[side], alpha=0.75)
        for angle, radius, sector in zip(angles, radii, metrics.SECTORS, strict=True):
            word = "" if " " in sector else f"{sector}\n"
            axes.text(
                angle, radius + 0.24 * largest, f"{word}{100 * radius**2:.0f}", ha="center", va="center", fontsize=9
            )
        axes.set_ylim(0, 1.35 * largest)
        axes.set_axis_off()
        axes.set_title(_legend(side, names), fontsize=10)
    plot.supxlabel("per cent of saccades by direction; a sector's area is its share", fontsize=9)
    return plot


def _similarity(names: Mapping[str, str], rows: Sequence[Mapping[str, Any]]) -> Figure:
    """A panel per score: each condition's mean over stimuli with its interval.

    Filled are paths as they were made; hollow is what stands in the place of one.
    """
    panels = [score for score in PANELS if any(score in row["scores"] for row in rows)]
    columns = min(3, len(panels))
    lines = -(-len(panels) // columns)
    plot = figure(1.6 + 2.6 * columns, 0.9 + lines * (0.7 + 0.27 * len(rows)))
    grid = plot.subplots(lines, columns, sharey=True, squeeze=False).flat
    places = range(len(rows))
    for score, axes in zip(panels, grid, strict=False):
        for place, row in zip(places, rows, strict=True):
            found = row["scores"].get(score)
            if found is None:
                continue
            side, _, how = row["condition"].split(" : ")[0].partition(", ")
            colour = COLOURS["random" if how == "other stimulus" else side]
            inside = "white" if how or side == "random" else colour
            if found["low"] is not None:
                axes.plot((found["low"], found["high"]), (place, place), color=colour, linewidth=2.2, alpha=0.6)
            axes.plot(found["mean"], place, "o", color=colour, markersize=6, markerfacecolor=inside)
        axes.set_title(PANELS[score], fontsize=10)
        axes.set_yticks(places, [row["condition"] for row in rows], fontsize=9)
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.margins(x=0.12)
        axes.tick_params(axis="x", labelsize=8)
        axes.grid(axis="x", color="#e5e5e5")
        axes.set_axisbelow(True)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    for axes in list(grid):
        axes.set_visible(False)
    sets = ", ".join(_legend(side, names) for side in names if side != "random")
    plot.suptitle(sets, fontsize=10)
    plot.supxlabel(
        "mean of the stimuli, 95 % interval; hollow: not paths that were made. The scales differ.", fontsize=9
    )
    return plot


def _legend(side: str, names: Mapping[str, str]) -> str:
    """ "first: gbvs", so that plots and tables go together."""
    return side if names[side] == side else f"{side}: {names[side]}"


def _shares(values: Any, edges: Any) -> Any:
    import numpy as np

    return np.histogram(values, edges)[0] / max(1, len(values))


def _finish(axes: Axes, across: str, up: str) -> None:
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
