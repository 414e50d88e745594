"""How each type of answer looks in the report."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from agents import answers
from agents.stimuli import Task
from agents.vision import colors
from serving.runs.display_text import as_json, code, count, details, esc, pairs, said, share

DRAWN = 15  # fixations that are drawn: what judges see of a path
LISTED = 100  # entries of a list that are shown
MESSAGES = 100
STOPS = {
    "target": "the target was found",
    "maximum": "the maximum number of fixations was reached",
    "exhausted": "the whole map was inhibited",
    "end": "the model ended the path",
}


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture on the page: the id of its SVG image element (None: it cannot be shown), its size in pixels."""

    element: str | None
    width: int
    height: int


def render(task: str, answer: Any, stimulus: Mapping[str, Any], picture: Picture | None) -> str:
    """An answer as HTML. One that does not have the form of its task's answers is shown as the JSON it is."""
    kind = answers.BY_TASK.get(task)  # type: ignore[call-overload]
    if kind is None or answer is None:
        return as_json(answer)
    try:
        parsed = kind.model_validate(answer)
    except ValidationError:
        return f'<p class="note">This answer does not have the form of a {esc(task)} answer:</p>{as_json(answer)}'
    return _RENDERERS[task](parsed, stimulus, picture)  # type: ignore[index]


def swatch(color: str) -> str:
    """``color`` is a CSS colour made here, never text from a record."""
    return f'<span class="swatch" style="background:{color}"></span>'


def _css(rgb: Sequence[int]) -> str:
    return f"rgb({rgb[0]:d},{rgb[1]:d},{rgb[2]:d})"


def _hex(rgb: Sequence[int]) -> str:
    return f"#{rgb[0]:02x}{rgb[1]:02x}{rgb[2]:02x}"


def _color(answer: answers.ColorAnswer, stimulus: Mapping[str, Any], picture: Picture | None) -> str:
    mark = ""
    if answer.rgb is not None:
        mark = swatch(_css(answer.rgb))
    elif answer.color in colors.WORDS:  # CSS knows each of them by the same name
        mark = swatch(answer.color)
    small = [f"CSS name {said(answer.css_name)}"] if answer.css_name else []
    if answer.rgb is not None:
        small.append(code(_hex(answer.rgb)))
    extra = f"<small>{' · '.join(small)}</small>" if small else ""
    return f'<p class="word">{mark}<strong>{said(answer.color, 200)}</strong> {extra}</p>{_palette(answer)}'


def _palette(answer: answers.ColorAnswer) -> str:
    if not answer.palette:
        return ""
    full = [entry for entry in answer.palette[:LISTED] if entry.population > 0]
    total = sum(entry.population for entry in full)
    if not full:
        return '<p class="note">The palette has no counted pixels.</p>'
    parts = [f"{_hex(entry.rgb)} {share(entry.population, total)}" for entry in full]
    segments = "".join(
        f'<span style="flex-grow:{entry.population:d};background:{_css(entry.rgb)}"></span>' for entry in full
    )
    legend = "".join(
        f"<li>{swatch(_css(entry.rgb))}{code(_hex(entry.rgb))} {share(entry.population, total)}</li>" for entry in full
    )
    out = (
        f'<div class="bar" role="img" aria-label="Palette: {", ".join(parts)}">{segments}</div>'
        f'<ol class="legend">{legend}</ol>'
    )
    first, biggest = full[0], max(full, key=lambda entry: entry.population)
    if biggest.population > first.population:
        out += (
            f'<p class="note">By population alone the first colour would be {swatch(_css(biggest.rgb))}'
            f"{code(_hex(biggest.rgb))}{_word_for(biggest.rgb, answer)}: {share(biggest.population, total)} of the "
            f"pixels against {share(first.population, total)}. That a large, uniform area can come second is a known "
            "property of population × volume, by which the palette is ordered.</p>"
        )
    return out


def _word_for(rgb: Sequence[int], answer: answers.ColorAnswer) -> str:
    """The word for ``rgb`` by the ways of naming that gave the answer its own word; nothing if none did."""
    if answer.rgb is None:
        return ""
    own, other = ((color[0], color[1], color[2]) for color in (answer.rgb, rgb))
    ways = (lambda color: colors.word_of(colors.nearest_rgb(color)), colors.nearest_word)
    words = sorted({word(other) for word in ways if word(own) == answer.color})
    if not words:
        return ""
    return ", the same word" if words == [answer.color] else f", <strong>{' or '.join(words)}</strong>"


def _objects(answer: answers.ObjectAnswer, stimulus: Mapping[str, Any], picture: Picture | None) -> str:
    if not answer.labels:
        return '<p class="note">No object was found.</p>'
    items = []
    for index, label in enumerate(answer.labels[:LISTED]):
        score = answer.scores[index] if answer.scores and index < len(answer.scores) else None
        items.append(
            f"<li>{said(label, 200)}" + (f" <small>{score:.2f}</small>" if score is not None else "") + "</li>"
        )
    drawing = ""
    if answer.boxes and picture is not None and picture.width > 0:
        shapes = []
        size = max(picture.width, picture.height) / 26
        for index, (x, y, width, height) in enumerate(answer.boxes[:LISTED]):
            name = answer.labels[index] if index < len(answer.labels) else ""
            shapes.append(
                f'<rect class="box" x="{_n(x)}" y="{_n(y)}" width="{_n(max(width, 0))}" height="{_n(max(height, 0))}"/>'
                f'<text class="tag" x="{_n(x + size / 4)}" y="{_n(max(y, 0) + size)}" '
                f'font-size="{_n(size)}">{esc(name, 40)}</text>'
            )
        label = "The picture with boxes around: " + ", ".join(answer.labels[:10])
        drawing = canvas(picture, (picture.width, picture.height), label, "".join(shapes))
    return drawing + f'<ol class="labels">{"".join(items)}</ol>' + _cut(len(answer.labels), LISTED, "label")


def _caption(answer: answers.CaptionAnswer, stimulus: Mapping[str, Any], picture: Picture | None) -> str:
    facts = []
    if answer.tokens is not None:
        facts.append(count(answer.tokens, "token"))
    if answer.score is not None:
        facts.append(f"score {answer.score:.3f}")
    if answer.finish:
        facts.append(f"finished by {said(answer.finish, 60)}")
    facts += [f'<span class="badge warn">{said(flag, 60)}</span>' for flag in answer.flags[:LISTED]]
    small = f'<p class="small">{" · ".join(facts)}</p>' if facts else ""
    return f'<blockquote dir="auto">{said(answer.text)}</blockquote>{small}'


def _word(answer: answers.WordAnswer, stimulus: Mapping[str, Any], picture: Picture | None) -> str:
    out = f'<p class="word"><strong>{said(answer.word, 200)}</strong></p>'
    if answer.candidates:
        others = ", ".join(said(word, 60) for word in answer.candidates[:10])
        out += f'<p class="small">Candidates, best first: {others}{_more(len(answer.candidates), 10)}</p>'
    if answer.skipped:
        rows = "".join(f"<li>{said(item.word, 60)}: {said(item.rule, 100)}</li>" for item in answer.skipped[:LISTED])
        out += details(f"{count(len(answer.skipped), 'candidate')} passed over", f"<ul>{rows}</ul>")
    return out


def _verdict(answer: answers.VerdictAnswer, stimulus: Mapping[str, Any], picture: Picture | None) -> str:
    reason = f'<p class="small">{said(answer.reason)}</p>' if answer.reason else ""
    return f'<p class="word"><strong>{esc(answer.verdict)}</strong></p>{reason}'


def _conversation(answer: answers.ConversationAnswer, stimulus: Mapping[str, Any], picture: Picture | None) -> str:
    out = chat([message.model_dump() for message in answer.messages])
    if answer.ended_early:
        out += '<p class="note">The conversation ended early.</p>'
    return out


def chat(messages: Sequence[Mapping[str, Any]]) -> str:
    """Messages as bubbles: the first speaker on the left, the others on the right."""
    if not messages:
        return '<p class="note">No message was said.</p>'
    first = messages[0].get("speaker")
    rows = []
    for message in messages[:MESSAGES]:
        agent = message.get("agent")
        who = said(message.get("speaker"), 80) + (f" <small>{said(agent, 80)}</small>" if agent else "")
        at = message.get("at")
        when = f" <small>at {at:.1f} s</small>" if isinstance(at, (int, float)) else ""
        side = "left" if message.get("speaker") == first else "right"
        text = said(message.get("text"), 1_000)
        rows.append(f'<li class="{side}"><span class="who">{who}{when}</span><p dir="auto">{text}</p></li>')
    return f'<ol class="chat">{"".join(rows)}</ol>' + _cut(len(messages), MESSAGES, "message")


def _scanpath(answer: answers.ScanpathAnswer, stimulus: Mapping[str, Any], picture: Picture | None) -> str:
    width, height = answer.frame
    facts = [("fixations", f"{len(answer.fixations):,}")]
    if answer.stop:
        facts.append(("stopped because", STOPS[answer.stop]))
    if answer.found is not None:
        place = f" at fixation {answer.found_at + 1}" if answer.found and answer.found_at is not None else ""
        facts.append(("target", ("found" + place) if answer.found else "not found"))
    if answer.window:
        facts.append(("inhibition window", f"{_n(answer.window)} px (dashed square around the first fixation)"))
    if answer.forced_first:
        facts.append(("first fixation", "forced to where every path starts; it is not a prediction"))
    if answer.selection:
        facts.append(("selection", said(answer.selection, 100)))
    facts.append(("frame", f"{width} × {height} px"))
    drawing = ""
    if width > 0 and height > 0 and answer.fixations:
        drawing = _draw_path(answer, stimulus, picture)
    notes = _cut(len(answer.fixations), DRAWN, "fixation", done="drawn")
    outside = [
        f"{number} ({_n(x)}, {_n(y)})"
        for number, (x, y) in enumerate(answer.fixations, 1)
        if not (0 <= x < width and 0 <= y < height)
    ]
    if outside:
        notes += (
            f'<p class="note">{count(len(outside), "fixation")} outside the frame: '
            f"{', '.join(outside[:10])}{_more(len(outside), 10)}</p>"
        )
    return drawing + notes + pairs(facts) + _listed_path(answer)


def _draw_path(answer: answers.ScanpathAnswer, stimulus: Mapping[str, Any], picture: Picture | None) -> str:
    width, height = answer.frame
    scale = max(width, height)
    radius = scale / 32
    points = answer.fixations[:DRAWN]
    shapes = []
    box = stimulus.get("target_box")
    whole = isinstance(box, list) and len(box) == 4 and all(isinstance(value, int | float) for value in box)
    if isinstance(box, list) and whole and picture is not None and picture.width > 0:
        sx, sy = width / picture.width, height / picture.height  # the box is in pixels of the picture
        x, y, w, h = box[0] * sx, box[1] * sy, max(box[2] * sx, 0), max(box[3] * sy, 0)
        shapes.append(f'<rect class="box" x="{_n(x)}" y="{_n(y)}" width="{_n(w)}" height="{_n(h)}"/>')
    if answer.window:
        side = float(answer.window)
        x, y = points[0]
        shapes.append(
            f'<rect class="window" x="{_n(x - side / 2)}" y="{_n(y - side / 2)}" width="{_n(side)}" '
            f'height="{_n(side)}"/>'
        )
    line = " ".join(f"{_n(x)},{_n(y)}" for x, y in points)
    shapes.append(f'<polyline class="under" points="{line}"/><polyline class="path" points="{line}"/>')
    for number, (x, y) in enumerate(points, 1):
        css = "fixation forced" if number == 1 and answer.forced_first else "fixation"
        shapes.append(
            f'<circle class="{css}" cx="{_n(x)}" cy="{_n(y)}" r="{_n(radius)}"/><text class="number" x="{_n(x)}" '
            f'y="{_n(y)}" dy="0.36em" font-size="{_n(radius * 1.15)}">{number}</text>'
        )
    shapes.append(_moving_ring(points, radius * 1.7))
    label = f"Scanpath of {len(points)} fixations drawn on the picture"
    return (
        '<label class="animate"><input type="checkbox"> animate</label>'
        + canvas(picture, (width, height), label, "".join(shapes))
        + '<p class="still">The system asks for reduced motion, so the path stays still.</p>'
    )


def _moving_ring(points: Sequence[Sequence[float]], radius: float) -> str:
    """The path as judges see it: a yellow ring for 0.3 s at each fixation, then a gap of 1 s."""
    seconds = 0.3 * len(points) + 1.0
    times = ";".join(f"{0.3 * index / seconds:.4f}" for index in range(len(points) + 1))
    away = f"{-10 * radius:.0f}"
    moves = []
    for attribute, axis in (("cx", 0), ("cy", 1)):
        values = ";".join([*(_n(point[axis]) for point in points), away])
        moves.append(
            f'<animate attributeName="{attribute}" calcMode="discrete" dur="{seconds:.1f}s" '
            f'repeatCount="indefinite" keyTimes="{times}" values="{values}"/>'
        )
    return f'<circle class="ring" cx="{away}" cy="{away}" r="{_n(radius)}">{"".join(moves)}</circle>'


def _listed_path(answer: answers.ScanpathAnswer) -> str:
    rows = []
    for index, (x, y) in enumerate(answer.fixations[:LISTED]):
        lasts = ""
        if answer.durations_ms and index < len(answer.durations_ms):
            lasts = f", {answer.durations_ms[index]:.0f} ms"
        rows.append(f"<li>({_n(x)}, {_n(y)}){lasts}</li>")
    cut = _cut(len(answer.fixations), LISTED, "fixation")
    return details("Coordinates, x and y in pixels of the frame", f'<ol class="points">{"".join(rows)}</ol>{cut}')


def canvas(picture: Picture | None, frame: tuple[int, int], label: str, shapes: str) -> str:
    """``shapes`` drawn over the picture, which is stretched to ``frame`` = (width, height) pixels."""
    width, height = frame
    under = '<rect class="nothing" width="100%" height="100%"/>'
    if picture is not None and picture.element is not None:
        scale = f"scale({width / picture.width:.6g} {height / picture.height:.6g})"
        under = f'<g transform="{scale}"><use href="#{picture.element}"/></g>'
    stroke = max(width, height) / 220
    return (
        f'<svg class="canvas" viewBox="0 0 {width} {height}" role="img" aria-label="{esc(label, 300)}" '
        f'style="--w:{stroke:.3g}px">{under}{shapes}</svg>'
    )


def _n(value: float) -> str:
    """A number for an attribute or a list: at most one decimal, kept within what a drawing can hold."""
    if not math.isfinite(value):
        return "0"
    return f"{max(-1e7, min(1e7, value)):.1f}".removesuffix(".0")


def _more(total: int, shown: int) -> str:
    return f", and {total - shown:,} more" if total > shown else ""


def _cut(total: int, shown: int, one: str, done: str = "shown") -> str:
    return f'<p class="note">The first {shown} of {count(total, one)} are {done}.</p>' if total > shown else ""


_RENDERERS: dict[Task, Callable[[Any, Mapping[str, Any], Picture | None], str]] = {
    "color_estimation": _color,
    "object_detection": _objects,
    "attention_prediction": _scanpath,
    "image_captioning": _caption,
    "word_association": _word,
    "conversation": _conversation,
    "judgement": _verdict,
}
