"""The plot of rate by number of workers, as an SVG of its own."""

from collections.abc import Mapping
from html import escape

from serving.bench import figures
from serving.bench.results import BenchResult
from serving.bench.run_results import MeasuredRuns

WIDTH = 640
HEIGHT = 400
LEFT = 80
RIGHT = 24
TOP = 40
BOTTOM = 56
INK = "#333"
FAINT = "#bbb"
LINE = "#0b6e99"


def pictures(result: BenchResult) -> Mapping[str, str]:
    """SVG by file name, one for each agent with several numbers of workers."""
    return {f"scaling-{runs.agent.replace('/', '-')}.svg": plot(runs) for runs in result.runs if len(runs.scaling) > 1}


def plot(runs: MeasuredRuns) -> str:
    """Rates of ``runs`` with least and most by number of workers; a dashed line shows a rate that grows in step."""
    first = runs.scaling[0]
    most_workers = runs.scaling[-1].replicas
    ideal = first.median / first.replicas * most_workers
    highest = max(ideal, *(scaled.rates[-1] for scaled in runs.scaling))

    def x(workers: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * workers / most_workers

    def y(rate: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * rate / highest

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        f'font-size="13" fill="{INK}" role="img">',
        f"<title>{escape(runs.agent)}: answers per second by number of workers</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        f'<text x="{LEFT}" y="22" font-size="15">{escape(runs.agent)}, {escape(runs.task)}: answers per second</text>',
    ]
    for step in range(5):
        rate = highest * step / 4
        parts.append(f'<path d="M{LEFT} {y(rate):.1f}H{WIDTH - RIGHT}" stroke="{FAINT}" stroke-width="0.5"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y(rate) + 4:.1f}" text-anchor="end">{figures.rate(rate)}</text>')
    for scaled in runs.scaling:
        at = x(scaled.replicas)
        parts.append(f'<text x="{at:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{scaled.replicas}</text>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(f'<text x="{middle:.1f}" y="{HEIGHT - 14}" text-anchor="middle">workers</text>')
    parts.append(
        f'<path d="M{x(0):.1f} {y(0):.1f}L{x(most_workers):.1f} {y(ideal):.1f}" stroke="{FAINT}" '
        'stroke-dasharray="5 4" fill="none"/>'
    )
    points = " ".join(f"{x(scaled.replicas):.1f},{y(scaled.median):.1f}" for scaled in runs.scaling)
    parts.append(f'<polyline points="{points}" stroke="{LINE}" stroke-width="2" fill="none"/>')
    for scaled in runs.scaling:
        at = x(scaled.replicas)
        least = y(scaled.rates[0])
        most = y(scaled.rates[-1])
        parts.append(f'<path d="M{at:.1f} {least:.1f}V{most:.1f}" stroke="{LINE}" stroke-width="2"/>')
        parts.append(f'<circle cx="{at:.1f}" cy="{y(scaled.median):.1f}" r="4" fill="{LINE}"/>')
        if scaled.efficiency is not None:
            parts.append(
                f'<text x="{at - 6:.1f}" y="{y(scaled.median) - 8:.1f}" text-anchor="end" font-size="11">'
                f"{100 * scaled.efficiency:.0f} %</text>"
            )
    return "\n".join([*parts, "</svg>", ""])
