"""Compare two sets of scanpaths, of machines or of people, or the paths of one set with each other.

    python scripts/compare_scanpaths.py RUN:gbvs people.json --out FOLDER

A set is a run folder, records as JSON lines, COCO-Search18's JSON, the published fv.json, or a list of grid cells;
SET:WHO takes one agent or person of it, or all "humans", "machines" or "published" machines. See docs/scanpaths.md.

FOLDER gets comparison.json and a plot. Tables go to stdout, and one JSON line last. The exit code is 2 for wrong usage
or input or a missing package, and 4 if FOLDER cannot be written.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from pydantic import ValidationError
from rich.console import Console
from rich.table import Table

from agents import __version__
from agents.attention import scanpath_metrics as metrics
from agents.attention.scanpath_comparison import Comparison, Options, Size
from agents.errors import InputError, TuringlikeError, UnavailableError
from serving.runs.display_text import count
from serving.runs.output_paths import new_folder, refuse_own_files
from serving.runs.scanpath_sets import ReadSet, read_set, split

RESULT, PLOT = "comparison.json", "figures.png"
SCHEMA = "turinglike.scanpaths/1"
MOST_PROBLEMS = 20  # problems on a terminal
COLOURS = {"first": "#0072b2", "second": "#d55e00", "random": "#999999"}  # told apart by the colour-blind too
WARNING = """\
WARNING: similarity scores rank models poorly. Do not choose a model by them.
- Any two paths score high in MultiMatch: on COCO-Search18 random scanpaths scored 0.87/0.56/0.85/0.85 where people
  scored 0.90/0.74/0.88/0.91 (Yang et al. 2020, table 2). Read a score between its floor and its ceiling above.
- Whole paths are compared: whether a model knows where the next fixation goes is not asked (Kümmerer and Bethge 2021,
  arXiv 2102.12239). Read scores beside counts, amplitudes, directions and returns."""


def frame_sides(text: str) -> tuple[int, int]:
    """ "1280x1024" as two whole numbers above 0."""
    across, down = map(int, text.split("x"))
    if min(across, down) < 1:
        raise ValueError
    return across, down


def arguments() -> argparse.ArgumentParser:
    """The command line: sets, where to write, and the fields of :class:`Options`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("sets", nargs="+", metavar="SET", help="one set or two; the second is the reference, usually people")
    add("--out", required=True, type=Path, metavar="FOLDER", help="a new folder for comparison.json and the plot")
    add("--force", action="store_true", help="replace an earlier comparison in FOLDER")
    add("--frame", action="append", default=[], type=frame_sides, metavar="WxH",
        help="the frame of files that do not say it and have no side-car; once for all sets, or for each")  # fmt: skip
    for name, field in Options.model_fields.items():
        default = "" if field.default in (None, False) else f" (default {field.default})"
        how: dict[str, Any] = {"action": "store_true"} if field.default is False else {"default": field.default}
        add(f"--{name.replace('_', '-')}", help=f"{field.description}{default}", **how)
    return parser


def chosen(options: argparse.Namespace) -> Options:
    """The options of the comparison. Raises InputError naming each that cannot be."""
    try:
        return Options.model_validate({name: getattr(options, name) for name in Options.model_fields})
    except ValidationError as error:
        wrong = (f"--{fault['loc'][0]}: {fault['msg']}".replace("_", "-") for fault in error.errors())
        raise InputError("; ".join(wrong)) from None


def read_sets(texts: Sequence[str], frames: Sequence[Size]) -> list[ReadSet]:
    """The sets; if something is wrong with both, all of it is in one error."""
    if len(texts) > 2:
        raise InputError(f"give one set or two, not {len(texts)}")
    if len(frames) > 1 and len(frames) != len(texts):
        raise InputError(f"--frame is given {len(frames)} times for {count(len(texts), 'set')}; give it once for each")
    sets: list[ReadSet] = []
    errors: list[InputError] = []
    for index, text in enumerate(texts):
        frame = frames[index % len(frames)] if frames else None
        try:
            sets.append(read_set(text, frame))
        except InputError as error:
            errors.append(error)
            continue
        if frame and (stated := sum(path.frame != frame for path in sets[-1].paths)):
            paths = f"{text}: {count(stated, 'path')} stay in the frame that the set or its side-car states"
            print(f"{paths}; --frame {frame[0]}x{frame[1]} is for paths without one", file=sys.stderr)
    if errors:
        raise InputError("; ".join(map(str, errors)), [problem for error in errors for problem in error.problems])
    return sets


def notes(comparison: Comparison, sets: Sequence[ReadSet], texts: Sequence[str]) -> list[str]:
    """What was read, and what of it is compared."""
    lines = []
    for side, text, read in zip(("first", "second"), texts, sets, strict=False):
        makers = Counter(path.agent for path in read.paths if path.agent)
        who = ", ".join(f"{name} {paths:,}" for name, paths in makers.most_common(8))
        passed = "".join(f"; passed over: {paths:,} {why}" for why, paths in read.passed_over.items())
        lines.append(f"{side}: {text}, {count(len(read.paths), 'path')} ({who or 'of nobody named'}){passed}")
    if not comparison.alone:
        first, second = comparison.left_out
        stimuli = count(len(comparison.stimuli), "stimulus", "stimuli")
        left_out = f"left out: {first:,} of the first and {second:,} of the second"
        lines.append(f"compared: {stimuli} that both sets have; {left_out}")
    if comparison.ambiguous:
        lines.append(f"left out because their names fit several: {', '.join(comparison.ambiguous[:5])}")
    return lines


def interval(figure: Mapping[str, Any] | None, value: str, form: str) -> str:
    """A value with its interval."""
    if figure is None:
        return "-"
    bounds = "" if figure["low"] is None else f" [{figure['low']:{form}}, {figure['high']:{form}}]"
    return f"{figure[value]:{form}}{bounds}"


def spread(figure: Mapping[str, float] | None, digits: int) -> str:
    """A mean and the range from the 5th to the 95th percentile."""
    return f"{figure['mean']:.{digits}f} ({figure['p5']:.{digits}f} to {figure['p95']:.{digits}f})" if figure else "-"


def figure_table(figures: Mapping[str, Mapping[str, Any]], radius: float) -> Table:
    """What the sets are like."""
    cells: dict[str, Callable[[Mapping[str, Any]], str]] = {
        "paths": lambda figure: f"{figure['paths']:,}",
        "subjects": lambda figure: "not named" if figure["subjects"] is None else f"{figure['subjects']:,}",
        "fixations per path": lambda figure: spread(figure["fixations"], 1),
        "fixations off the frame": lambda figure: f"{figure['fixations_off_the_frame']:,}",
        "amplitude, px": lambda figure: spread(figure["amplitude_px"], 0),
        "amplitude, of the width": lambda figure: spread(figure["amplitude_share_of_width"], 2),
        "amplitude, degrees": lambda figure: spread(figure["amplitude_degrees"], 1),
        "horizontal saccades": lambda figure: f"{figure['horizontal']:.1%}",
        "vertical saccades": lambda figure: f"{figure['vertical']:.1%}",
        f"returns, {radius:g} px": lambda figure: interval(figure["return_rate"], "rate", ".1%"),
        "edge share": lambda figure: interval(figure["edge_share"], "rate", ".1%"),
    }
    table = Table("", *figures, box=None)
    for label, cell in cells.items():
        table.add_row(label, *(cell(figure) for figure in figures.values()))
    return table


def similarity_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """The scores of every condition with their 95 % bootstrap intervals over stimuli."""
    scores = [score for score in metrics.MULTIMATCH if any(score in row["scores"] for row in rows)]
    table = Table("", "pairs", *scores, box=None, caption="mean of the stimuli's means, 95 % bootstrap interval")
    for row in rows:
        cells = (interval(row["scores"].get(score), "mean", ".3f") for score in scores)
        table.add_row(row["condition"], f"{row['pairs']:,}", *cells)
    return table


def draw(folder: Path, comparison: Comparison, names: Mapping[str, str]) -> None:
    """The plot of how sets differ in the number of fixations and in amplitudes."""
    from matplotlib.figure import Figure

    plot = Figure(figsize=(9, 3.6), layout="constrained", dpi=120)
    panels = plot.subplots(1, 2)
    for side, name in names.items():
        made = list(comparison.each(side))
        lengths = np.concatenate([metrics.amplitudes(path.scaled(frame)) / frame[0] for path, frame in made])
        counts = np.array([len(path.fixations) for path, _ in made])
        for axes, values, bins in zip(panels, (counts, lengths), (counts.max(), np.linspace(0, 1.3, 27)), strict=True):
            weights = np.full(len(values), 1 / max(1, len(values)))
            axes.hist(values, bins, weights=weights, histtype="step", color=COLOURS[side], label=f"{side}: {name}")
    panels[0].set(xlabel="fixations per path", ylabel="share of paths")
    panels[1].set(xlabel="saccade amplitude, as a share of the frame's width", ylabel="share of saccades")
    panels[1].legend(frameon=False)
    plot.savefig(folder / PLOT, metadata={"Software": None})


def compare(options: argparse.Namespace) -> dict[str, Any]:
    """Read, compare, print, and fill the folder. Returns what the last line says."""
    try:
        import matplotlib
        import multimatch_gaze
        import scipy.stats  # noqa: F401
    except ImportError as error:
        raise UnavailableError(f"a comparison needs more ({error}): pip install 'turinglike[compare]'") from None
    del matplotlib, multimatch_gaze
    choices = chosen(options)
    for text in options.sets:
        refuse_own_files([options.out], split(text)[0])
    console = Console(width=200, color_system=None)
    with new_folder(options.out, marker=RESULT, force=options.force) as folder:
        sets = read_sets(options.sets, options.frame)
        comparison = Comparison(sets[0].paths, sets[1].paths if len(sets) > 1 else None, choices)
        read = notes(comparison, sets, options.sets)
        print("\n".join(read), flush=True)
        figures, rows = comparison.figures(), comparison.similarity()
        console.print(figure_table(figures, choices.return_radius))
        console.print(similarity_table(rows) if rows else "no similarity: no stimulus has paths of two subjects")
        print(WARNING)
        names = {**dict(zip(("first", "second"), options.sets, strict=False)), "random": "random"}
        result = {
            "schema": SCHEMA,
            "turinglike": __version__,
            "sets": options.sets,
            "notes": read,
            "options": choices.model_dump(),
            "stimuli": [stimulus.name for stimulus in comparison.stimuli],
            "figures": figures,
            "similarity": rows,
            "warning": WARNING,
        }
        draw(folder, comparison, names)
        (folder / RESULT).write_bytes(orjson.dumps(result, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
    return {
        "comparison": str(options.out / RESULT),
        "stimuli": len(comparison.stimuli),
        "return_rate": {side: (figure["return_rate"] or {}).get("rate") for side, figure in figures.items()},
        "edge_share": {side: (figure["edge_share"] or {}).get("rate") for side, figure in figures.items()},
        "similarity": {
            row["condition"]: {score: round(figure["mean"], 4) for score, figure in row["scores"].items()}
            for row in rows
        },
        "similarity_ranks_models": False,
    }


def main(argv: Sequence[str] | None = None) -> int:
    options = arguments().parse_args(argv)
    try:
        last = compare(options)
    except TuringlikeError as error:
        problems = error.problems if isinstance(error, InputError) else ()
        for problem in problems[:MOST_PROBLEMS]:
            print(problem, file=sys.stderr)
        if len(problems) > MOST_PROBLEMS:
            print(f"… and {len(problems) - MOST_PROBLEMS:,} more", file=sys.stderr)
        print(f"compare_scanpaths: {error}", file=sys.stderr)
        return error.exit_code
    print(orjson.dumps(last).decode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
