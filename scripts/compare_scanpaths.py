"""Compare two sets of scanpaths, of machines or of people, or the paths of one set with each other.

    python scripts/compare_scanpaths.py RUN:gbvs people.json --out FOLDER

A set is a run folder, records as JSON lines, COCO-Search18's JSON, the published fv.json, or a list of grid cells;
SET:WHO takes one agent or person of it, or all "humans", "machines" or "published" machines. See docs/scanpaths.md.

FOLDER gets comparison.json and four plots. Tables go to stdout, and one JSON line last. The exit code is 2 for wrong
usage or input or a missing package, and 4 if FOLDER cannot be written.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import orjson
from scanpath_plots import draw, figure

from agents import __version__
from agents.attention.scanpath_comparison import SCORES, Comparison, Options
from agents.attention.scanpath_metrics import load_multimatch
from agents.attention.scanpath_sets import Read, Size
from agents.errors import InputError, TuringlikeError
from serving.runs.display_text import count
from serving.runs.output_paths import new_folder, refuse_own_files
from serving.runs.scanpath_files import about, read_set, split

RESULT = "comparison.json"
SCHEMA = "turinglike.scanpaths/1"
SHOWN = 20  # problems on a terminal
HEADS = {**{score: score for score in SCORES}, "scanmatch": "ScanMatch", "scanmatch_durations": "ScanMatch, timed"}
MULTIMATCH = ("shape", "direction", "length", "position")

Figures = Mapping[str, Mapping[str, Any]]
Rows = Sequence[Mapping[str, Any]]


def number(text: str) -> float:
    """A finite number above 0."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"must be a number above 0, not {text!r}")
    return value


def sides(text: str) -> tuple[int, int]:
    """ "1280x1024" as two whole numbers above 0."""
    across, _, down = text.partition("x")
    if not (across.isdecimal() and down.isdecimal() and 0 < int(across) < 10**6 and 0 < int(down) < 10**6):
        raise argparse.ArgumentTypeError(f"must be of the form 1280x1024, not {text!r}")
    return int(across), int(down)


def whole(least: int, most: int) -> Callable[[str], int]:
    """A reader of whole numbers from ``least`` to ``most``."""

    def read(text: str) -> int:
        if not text.isdecimal() or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"must be a whole number from {least} to {most}, not {text!r}")
        return int(text)

    return read


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    default = Options()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("sets", nargs="+", metavar="SET", help="one set or two; the second is the reference, usually people")
    add("--out", required=True, type=Path, metavar="FOLDER", help="a new folder for comparison.json and the plots")
    add("--force", action="store_true", help="replace an earlier comparison in FOLDER")
    add("--frame", action="append", default=[], type=sides, metavar="WxH",
        help="the frame of files that do not say it and have no side-car; once for all sets, or for each")  # fmt: skip
    add("--pairs", type=whole(1, 100_000), default=default.pairs, metavar="N",
        help=f"most pairs of paths per stimulus (default {default.pairs})")  # fmt: skip
    add("--grid", type=sides, default=default.grid, metavar="CxR", help="ScanMatch's grid (default 12x8)")
    add("--threshold", type=number, metavar="CELLS",
        help="ScanMatch's threshold (default: twice the standard deviation of the reference's amplitudes)")  # fmt: skip
    add("--bin-ms", type=number, default=default.bin_ms, metavar="MS", help="ScanMatch's temporal bin (default 50)")
    add("--return-radius", type=number, default=default.return_radius, metavar="PX",
        help="of return fixations, in a frame 1280 wide (default 43)")  # fmt: skip
    add("--count-first", action="store_true", help="a return to the first fixation counts too")
    add("--window", type=number, default=default.window, metavar="PX",
        help="of edge share where a path states none, in a frame 1280 wide (default 200)")  # fmt: skip
    add("--pixels-per-degree", type=number, metavar="PX", help="of the common frame, for amplitudes in degrees")
    add("--seed", type=whole(0, 2**53 - 1), default=default.seed, metavar="S", help="of every draw (default 0)")
    add("--resamples", type=whole(100, 100_000), default=default.resamples, metavar="N", help="bootstrap resamples")
    return parser


def chosen_options(options: argparse.Namespace) -> Options:
    """What the command line says about how to compare."""
    if options.grid[0] * options.grid[1] > 10_000:
        raise InputError(f"--grid: {options.grid[0]} x {options.grid[1]} are more than 10,000 cells")
    return Options(**{name: getattr(options, name) for name in Options.__dataclass_fields__})


def read_sets(texts: Sequence[str], frames: Sequence[Size]) -> list[Read]:
    """The sets; if something is wrong with both, all of it is in one error."""
    if len(texts) > 2:
        raise InputError(f"give one set or two, not {len(texts)}")
    if len(frames) > 1 and len(frames) != len(texts):
        raise InputError(f"--frame is given {len(frames)} times for {count(len(texts), 'set')}; give it once for each")
    found: list[Read] = []
    errors: list[InputError] = []
    for place, text in enumerate(texts):
        try:
            found.append(read_set(text, frames[place % len(frames)] if frames else None))
        except InputError as error:
            errors.append(error)
    if errors:
        raise InputError("; ".join(map(str, errors)), [problem for error in errors for problem in error.problems])
    return found


def overruled(texts: Sequence[str], sets: Sequence[Read], frames: Sequence[Size]) -> list[str]:
    """Of each set that states other frames than ``--frame`` does, a line that says so."""
    lines = []
    for place, (text, read) in enumerate(zip(texts, sets, strict=True)):
        frame = frames[place % len(frames)] if frames else None
        stated = sum(path.frame != frame for path in read.paths) if frame else 0
        if frame and stated:
            lines.append(
                f"{text}: {count(stated, 'path')} stay in the frame that the set or its side-car states; "
                f"--frame {frame[0]}x{frame[1]} is for paths without one"
            )
    return lines


def called(texts: Sequence[str]) -> dict[str, str]:
    """Short names of the sets for tables and plots, by "first", "second" and "random"."""
    short = [who or path.stem or str(path) for path, who in map(split, texts)]
    if len(set(short)) < len(short):
        short = [f"{name} ({place})" for place, name in enumerate(short, 1)]
    return {**dict(zip(("first", "second"), short, strict=False)), "random": "random"}


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns of text; the first to the left, the others to the right."""
    widths = [max(len(line[place]) for line in (head, *rows)) for place in range(len(head))]
    lines = []
    for line in (head, *rows):
        cells = [
            cell.ljust(width) if not at else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])


def spread(found: Mapping[str, float] | None, digits: int) -> str:
    """A mean and the range from the 5th to the 95th percentile."""
    if found is None:
        return "-"
    return f"{found['mean']:.{digits}f} ({found['p5']:.{digits}f} to {found['p95']:.{digits}f})"


def rate(found: Mapping[str, Any] | None) -> str:
    """A rate in per cent with its interval."""
    if found is None:
        return "-"
    bounds = "" if found["low"] is None else f" [{100 * found['low']:.1f}, {100 * found['high']:.1f}]"
    return f"{100 * found['rate']:.1f} %{bounds}"


def figure_table(figures: Figures, options: Options) -> str:
    """What the sets are like."""
    kept = "counted" if options.count_first else "left out"
    lines: list[tuple[str, Callable[[Mapping[str, Any]], str]]] = [
        ("paths", lambda own: f"{own['paths']:,}"),
        ("subjects", lambda own: "not named" if own["subjects"] is None else f"{own['subjects']:,}"),
        ("fixations per path", lambda own: spread(own["fixations"], 1)),
        ("fixations off the frame", lambda own: f"{own['fixations_off_the_frame']:,}"),
        ("amplitude, px", lambda own: spread(own["amplitude_px"], 0)),
        ("amplitude, of the width", lambda own: spread(own["amplitude_share_of_width"], 2)),
        ("amplitude, degrees", lambda own: spread(own["amplitude_degrees"], 1)),
        ("horizontal saccades", lambda own: f"{100 * own['horizontal']:.1f} %"),
        ("vertical saccades", lambda own: f"{100 * own['vertical']:.1f} %"),
        (f"returns, {options.return_radius:g} px, first {kept}", lambda own: rate(own["return_rate"])),
        ("edge share", lambda own: rate(own["edge_share"])),
    ]
    rows = [[label, *(cell(own) for own in figures.values())] for label, cell in lines]
    return table(["", *figures], rows)


def similarity_table(rows: Rows) -> str:
    """The scores of every condition with their intervals."""
    if not rows:
        return "no similarity: no stimulus has paths of two subjects"
    scores = [score for score in SCORES if any(score in row["scores"] for row in rows)]
    lines = []
    for row in rows:
        cells = []
        for score in scores:
            own = row["scores"].get(score)
            bounds = "" if not own or own["low"] is None else f" [{own['low']:.3f}, {own['high']:.3f}]"
            cells.append(f"{own['mean']:.3f}{bounds}" if own else "-")
        lines.append([row["condition"], f"{row['pairs']:,}", *cells])
    what = "(mean of the stimuli's means, with its 95 % bootstrap interval over stimuli)"
    return f"{table(['', 'pairs', *(HEADS[score] for score in scores)], lines)}\n{what}"


def warning(rows: Rows) -> str:
    """Why a similarity score is no ranking, with what this comparison itself shows of it."""
    shown = [f"    {row['condition']:<34}{_brief(row)}" for row in rows if row["scores"]]
    return "\n".join(
        [
            "WARNING: similarity scores rank models poorly. Do not choose a model by them.",
            "- MultiMatch is 1 minus a median difference over the largest there could be (the diagonal, half a turn):",
            "  any two paths score high." + (" Here (shape/direction/length/position; ScanMatch):" if shown else ""),
            *shown,
            "  On COCO-Search18 random scanpaths scored 0.87/0.56/0.85/0.85 where people scored 0.90/0.74/0.88/0.91",
            "  (Yang et al. 2020, table 2).",
            "- People differ from one another, so a path in the middle of everybody's, which nobody makes, may score",
            '  above a person\'s ("averaged"), and a model that varies as people do is punished for it.',
            "- Whole paths are compared: whether a model knows where the next fixation goes is not asked. Rate models",
            "  by how well they predict each fixation from those before it: log-likelihood, AUC, NSS (Kümmerer and",
            "  Bethge 2021, arXiv 2102.12239).",
            "Read a score between its floor and its ceiling, and beside counts, amplitudes, directions and returns.",
        ]
    )


def _brief(row: Mapping[str, Any]) -> str:
    means = {score: own["mean"] for score, own in row["scores"].items()}
    multimatch = "/".join(f"{means[score]:.2f}" for score in MULTIMATCH) if "shape" in means else "no MultiMatch"
    return multimatch + (f"; {means['scanmatch']:.2f}" if "scanmatch" in means else "")


def matched(comparison: Comparison, sets: Sequence[Read], texts: Sequence[str]) -> list[str]:
    """What was read, and what of it is compared."""
    lines = []
    for side, text, read in zip(("first", "second"), texts, sets, strict=False):
        people = about(read.paths)
        who = ", ".join(f"{name} {paths:,}" for name, paths in list(people.items())[:8])
        more = f" and {len(people) - 8:,} more" if len(people) > 8 else ""
        stimuli = len({path.stimulus for path in read.paths})
        passed = "".join(f"; passed over: {paths:,} {why}" for why, paths in read.passed_over.items())
        lines.append(
            f"{side}: {text}, {count(len(read.paths), 'path')} on {count(stimuli, 'stimulus', 'stimuli')}"
            + (f" ({who}{more})" if who else "")
            + passed
        )
    if not comparison.alone:
        first, second = comparison.left_out
        lines.append(
            f"compared: {count(len(comparison.shown), 'stimulus', 'stimuli')} that both sets have; left out: "
            f"{first:,} of the first and {second:,} of the second"
        )
        if comparison.ambiguous:
            some = ", ".join(comparison.ambiguous[:5])
            lines.append(f"left out because their names fit several: {len(comparison.ambiguous):,}, such as {some}")
    if comparison.stretched:
        lines.append(
            f"{count(comparison.stretched, 'path')} of a frame of another shape: stretched to the reference's frame"
        )
    widths = {shown.frame[0] for shown in comparison.shown}
    if len(widths) > 1:
        lines.append(f"frames are of {len(widths):,} widths: amplitudes in px mix them, shares of the width do not")
    return lines


def compare(options: argparse.Namespace) -> dict[str, Any]:
    """Read, compare, print, and fill the folder. Returns what the last line says."""
    load_multimatch()
    figure(1, 1)
    choices = chosen_options(options)
    names = called(options.sets)
    for text in options.sets:
        refuse_own_files([options.out], split(text)[0])
    with new_folder(options.out, marker=RESULT, force=options.force) as folder:
        sets = read_sets(options.sets, options.frame)
        for line in overruled(options.sets, sets, options.frame):
            print(line, file=sys.stderr)
        comparison = Comparison(sets[0].paths, sets[1].paths if len(sets) > 1 else None, choices)
        notes = matched(comparison, sets, options.sets)
        print("\n".join(notes), end="\n\n", flush=True)
        figures = comparison.figures()
        print(figure_table(figures, choices), end="\n\n", flush=True)
        rows = comparison.similarity(lambda name: print(f"scoring {name} …", file=sys.stderr, flush=True))
        advice = warning(rows)
        print(similarity_table(rows), end="\n\n")
        print(advice, end="\n\n")
        plots = draw(folder, comparison, names, figures, rows)
        result = {
            "schema": SCHEMA,
            "turinglike": __version__,
            "sets": dict(zip(names, options.sets, strict=False)),
            "notes": notes,
            "options": asdict(choices),
            "scanmatch_threshold": comparison.threshold,
            "stimuli": [shown.name for shown in comparison.shown],
            "figures": figures,
            "similarity": rows,
            "warning": advice,
            "plots": plots,
        }
        (folder / RESULT).write_bytes(orjson.dumps(result, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
    return {
        "comparison": str(options.out / RESULT),
        "stimuli": len(comparison.shown),
        "return_rate": {side: (own["return_rate"] or {}).get("rate") for side, own in figures.items()},
        "edge_share": {side: (own["edge_share"] or {}).get("rate") for side, own in figures.items()},
        "similarity": {
            row["condition"]: {score: round(own["mean"], 4) for score, own in row["scores"].items()} for row in rows
        },
        "similarity_ranks_models": False,
    }


def main(argv: Sequence[str] | None = None) -> int:
    options = arguments().parse_args(argv)
    try:
        last = compare(options)
    except TuringlikeError as error:
        problems = error.problems if isinstance(error, InputError) else ()
        for problem in problems[:SHOWN]:
            print(problem, file=sys.stderr)
        if len(problems) > SHOWN:
            print(f"… and {len(problems) - SHOWN:,} more", file=sys.stderr)
        print(f"compare_scanpaths: {error}", file=sys.stderr)
        return error.exit_code
    print(orjson.dumps(last).decode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
