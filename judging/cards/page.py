"""What people see of a card: its page, its badges and its row for a README; and the board of several cards."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from urllib.parse import quote

import orjson
from markupsafe import Markup

from agents.stimuli import SHORT, Asked
from judging.cards.card import AgentResult, Calibration, Card, PublishedAgent, TaskResult
from judging.cards.steps import SCORES, TELLS
from judging.scores.conclusions import DETECTED, OPEN, PASSES, SCOPE, TAKEN
from judging.scores.tiles import LOOKS
from judging.statistics.tables import Estimate, Grid
from judging.statistics.verdict_table import TASK_NAMES
from serving.files.words import count, listed
from serving.pages.rendering import render

SHORT_OF: dict[str, str] = {full: short for short, full in SHORT.items()}
IN_BADGE = {PASSES: "not told", DETECTED: "told", TAKEN: "taken for a person more often", OPEN: "undecided"}
COLOURS = {PASSES: "#1d6b35", DETECTED: "#a3200d", TAKEN: "#0b5cad", OPEN: "#7a4b00"}
GREY = "#605d58"
LETTER = 6.6  # pixels of a letter in a badge, at 11 pixels of height; texts are stretched to it


@dataclass(frozen=True, slots=True)
class ScaleRow:
    """A line of the scale of detectability."""

    who: str
    """Whose answers."""
    by: str
    """Who judged them."""
    value: Estimate
    """Their detectability."""
    is_own: bool
    """Whether it is of this card, and not of a paper."""
    source: str
    """Where a paper prints it, and what must be known of it; "" for one of this card."""
    is_mean: bool = False
    """Whether it is the mean of two printed rates."""

    @property
    def low(self) -> float:
        """Where the interval begins on the drawing, in percent of its width."""
        return 100 * (self.value.value if math.isnan(self.value.low) else self.value.low)

    @property
    def high(self) -> float:
        """Where it ends, likewise."""
        return 100 * (self.value.value if math.isnan(self.value.high) else self.value.high)


@dataclass(frozen=True, slots=True)
class ShownTask:
    """A task of an agent, as the page shows it."""

    result: TaskResult
    """What the card says of it."""
    name: str
    """The task's name."""
    look: str
    """The class of its colour."""
    sign: str
    """Its sign; a result is never told by colour alone."""
    word: str
    """Its word, such as "UNDECIDED"."""
    scale: Sequence[ScaleRow]
    """The scale: this agent by each judge, then the papers' agents by judges of the same kinds."""
    others: Sequence[ScaleRow]
    """The papers' agents by judges of other kinds, which cannot be compared with these."""
    notes: Sequence[str]
    """What else must be said of the result, in sentences."""
    tells: Grid
    """What was taken away, and what changed; empty where nothing was."""
    not_tested: str
    """The properties that were not tested, as part of a sentence; "" for none."""
    tells_page: str
    """Where the page of scores with all figures of tells lies, in the card's folder."""
    beside: Grid
    """Answers side by side."""
    took: str
    """What the answers took, in a sentence."""
    sources: Sequence[str]
    """Where the papers print the figures of the scale, in words."""
    calibration: Sequence[Calibration]
    """Of the judges of this task."""
    uncalibrated: str
    """The judges of this task without one, as part of a sentence; "" for none."""
    uncalibrated_number: int
    """How many these are."""


def card_page(card: Card, pictures: Mapping[tuple[Asked, str], str]) -> str:
    """The HTML of a card's page. ``pictures`` are addresses of the pictures of stimuli, by task and stimulus."""
    agents = [(agent, [_shown(card, agent, result, pictures) for result in agent.tasks]) for agent in card.agents]
    provenance = [
        (name, orjson.dumps(entry, option=orjson.OPT_INDENT_2).decode())
        for agent in card.agents
        for name, entry in agent.provenance.items()
    ]
    return render(
        "judging.cards",
        "card.html",
        title=f"Card: {', '.join(agent.agent for agent in card.agents)}",
        card=card,
        agents=agents,
        names=TASK_NAMES,
        provenance=provenance,
        calibrations=[(row, _by_agent(row)) for row in card.calibration],
        scope=SCOPE if any(agent.tasks for agent in card.agents) else "",
        low=50 - 100 * card.bounds,
        high=50 + 100 * card.bounds,
    )


def _shown(card: Card, agent: AgentResult, result: TaskResult, pictures: Mapping[tuple[Asked, str], str]) -> ShownTask:
    look, sign, word = LOOKS[result.outcome]
    own = [
        ScaleRow(agent.agent, judge.judge, judge.detectability.estimate.apart_from(0.5), True, "")
        for judge in result.judges
    ]
    calibration = [row for row in card.calibration if row.task == result.task]
    uncalibrated = [judge.judge for judge in result.judges if judge.judge not in {row.judge for row in calibration}]
    kinds = {judge.kind for judge in result.judges}
    theirs = [one for one in card.published if one.task == result.task]
    rows = [
        [
            _with_picture(one.shown, pictures.get((result.task, one.stimulus))),
            _joined(one.participants) or "–",
            _joined(one.agent) or "–",
        ]
        for one in result.beside
    ]
    return ShownTask(
        result=result,
        name=TASK_NAMES[result.task],
        look=look,
        sign=sign,
        word=word,
        scale=[*own, *(_of_paper(one) for one in theirs if one.kind in kinds)],
        others=[_of_paper(one) for one in theirs if one.kind not in kinds],
        notes=notes(result),
        tells=_tells(result),
        not_tested=listed(list(dict.fromkeys(tell.tell for tell in result.tells if tell.p is None))),
        tells_page=f"{agent.agent}/{TELLS}/{SCORES}/index.html",
        beside=Grid("Answers side by side", ["stimulus", "participants", agent.agent], rows),
        took=took(result),
        sources=[f"{one.who}, {one.by}: {one.source}" for one in map(_of_paper, theirs)],
        calibration=calibration,
        uncalibrated=listed(uncalibrated),
        uncalibrated_number=len(uncalibrated),
    )


def _tells(result: TaskResult) -> Grid:
    tested = [tell for tell in result.tells if tell.p is not None]
    rows = []
    for tell in tested:
        p = "< 0.001" if tell.p is not None and tell.p < 0.001 else f"{tell.p:.3f}"
        rows.append(
            [
                tell.tell,
                tell.taken,
                tell.judge,
                "–" if tell.before is None else f"{tell.before:.2f}",
                "–" if tell.after is None else f"{tell.after:.2f}",
                replace(tell.change.estimate, form="+.2f"),
                p,
            ]
        )
    columns = ["taken away", "alone or last", "judge", "before", "after", "change", "p"]
    return Grid(f"Detectability without each property ({len(rows)} changes)", columns, rows)


def _with_picture(text: str, address: str | None) -> Markup:
    if address is None:
        return Markup("{}").format(text)
    return Markup('<img src="{}" alt=""><br>{}').format(address, text)


def _joined(texts: Sequence[str]) -> str:
    return " · ".join(texts) if all("\n" not in text for text in texts) else "\n\n".join(texts)


def _of_paper(one: PublishedAgent) -> ScaleRow:
    by = f"{one.kind}, paper of {one.paper}"
    source = f"{one.source}: {one.note}" if one.note else one.source
    return ScaleRow(one.agent, by, Estimate(one.detectability), False, source, one.is_mean)


def notes(result: TaskResult) -> list[str]:
    """What must be said of a result besides its outcome: how many answers were judged, what this pool can show, and
    how a judge stands beside a single cue."""
    found = []
    for judge in result.judges:
        if judge.of_agent < result.stimuli:
            found.append(
                f"{judge.judge} judged {judge.of_agent:,} answers of the agent, {judge.of_people:,} of participants. "
                f"The agent was asked {result.stimuli:,} stimuli. Answers that lack, or that the rules for words leave "
                "out, are not judged, and do not count against the agent."
            )
        if judge.least_stimuli is not None:
            found.append(
                f"An agent that {judge.judge} cannot tell at all passes in half of all cases if there are "
                f"{judge.least_stimuli:,} stimuli. With those here it can hardly pass."
            )
        if judge.above_cue.value is not None:
            points = replace(judge.above_cue.estimate, form="+.1f")
            ends = (judge.above_cue.low, judge.above_cue.high)
            may_be_chance = None not in ends and (ends[0] or 0) <= 0 <= (ends[1] or 0)
            chance = "; this may be chance" if may_be_chance else ""
            found.append(f"{judge.judge} compared with the best single cue: {points} points of detectability{chance}.")
    if result.leak is not None:
        figure = result.leak.detectability.estimate
        found.append(
            f"A judge that sees only order, ids and files has a detectability of {figure}: something besides the "
            "answers gives away whose they are, and no other figure here can be trusted."
        )
    return found


def took(result: TaskResult) -> str:
    """What an agent's answers to a task took, in a sentence."""
    usage = result.usage
    parts = [f"{usage.ok:,} of {result.stimuli:,} stimuli answered"]
    if usage.rejected:
        parts.append(f"{usage.rejected:,} without an answer, as the filters rejected all attempts")
    if usage.failed:
        parts.append(f"{usage.failed:,} failed")
    if usage.unanswered:
        parts.append(f"{usage.unanswered:,} not asked yet")
    parts.append(f"{usage.attempts:,} attempts")
    parts.append(f"{usage.refusals:,} refusals")
    parts.append(f"{usage.seconds:,.3g} seconds of the agent's own time")
    if usage.tokens is not None:
        parts.append(f"{usage.tokens['prompt']:,} tokens read and {usage.tokens['reply']:,} written")
    if usage.cost is not None:
        parts.append(f"a cost of {usage.cost:,.4g}, in the currency of --price-token")
    return "; ".join(parts) + "."


def _by_agent(row: Calibration) -> Grid:
    rows = [
        [
            agent.agent,
            agent.trials,
            f"{agent.judge_says:.2f}",
            f"{agent.people_say:.2f}",
            agent.difference.estimate,
        ]
        for agent in row.agents
    ]
    columns = ["answers of", "answers", f"{row.judge} says human", "people say human", "difference"]
    return Grid(f"{TASK_NAMES[row.task]}: how often answers are taken for a person's", columns, rows)


# badges, rows


def badge(agent: AgentResult) -> str:
    """An SVG with an agent's result, for a model's README."""
    label = "turing-like test"
    if len(agent.tasks) == 1:
        [result] = agent.tasks
        by_whom = [judge.judge for judge in result.judges if judge.outcome == result.outcome]
        word = f"{IN_BADGE.get(result.outcome, 'not tested')}"
        message = f"{SHORT_OF[result.task]}: {word} by {listed(by_whom)}" if by_whom else "not tested"
        colour = COLOURS.get(result.outcome, GREY)
    else:
        passed = sum(result.outcome == PASSES for result in agent.tasks)
        message = f"not told in {passed} of {len(agent.tasks)} tasks"
        colour = COLOURS[PASSES] if passed and passed == len(agent.tasks) else GREY
    left = round(LETTER * len(label)) + 12
    right = round(LETTER * len(message)) + 12
    title = escape(f"{label}: {agent.agent}, {message}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" aria-label="{title}">'
        f"<title>{title}</title>"
        f'<rect width="{left}" height="20" fill="#444"/><rect x="{left}" width="{right}" height="20" fill="{colour}"/>'
        f'<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">'
        f'<text x="6" y="14" textLength="{left - 12}">{escape(label)}</text>'
        f'<text x="{left + 6}" y="14" textLength="{right - 12}">{escape(message)}</text></g></svg>\n'
    )


def readme_rows(card: Card) -> str:
    """A table in Markdown, with a row for each agent, for a model's README."""
    tasks = [task for task in TASK_NAMES if any(result.task == task for agent in card.agents for result in agent.tasks)]
    lines = [
        f"| model | {' | '.join(TASK_NAMES[task] for task in tasks)} |",
        f"|---|{'---|' * len(tasks)}",
    ]
    for agent in card.agents:
        by_task: dict[str, TaskResult] = {result.task: result for result in agent.tasks}
        cells = [_cell(by_task.get(task)) for task in tasks]
        name = agent.agent.replace("|", "\\|")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    pools = ", ".join(dict.fromkeys(pool.pool for pool in card.pools))
    lines += [
        "",
        f"Turinglike {card.turinglike}, beside the participants of {pools}. The number is detectability with its 95 % "
        "interval: 0.5 means that this judge is at chance, 1 that it is always right. Undecided is no success.",
    ]
    return "\n".join(lines) + "\n"


def _cell(result: TaskResult | None) -> str:
    if result is None:
        return "–"
    parts = []
    for judge in result.judges:
        word = IN_BADGE.get(judge.outcome, "not tested")
        figure = judge.detectability.estimate.apart_from(0.5)
        parts.append(f"{word} by {judge.judge}: {figure}, {judge.of_agent:,} answers")
    return "; ".join(parts) or "not tested"


# boards


def board_page(cards: Sequence[tuple[str, Card]]) -> str:
    """The HTML of a board: a row for each agent of ``cards`` (the address of each card's page, and the card), a column
    for each task and pool. Figures stand in one column only where the participants are the same, by the checksum of
    their answers."""
    columns: dict[tuple[Asked, str, str], None] = {}
    rows = []
    for address, card in cards:
        checksums = {pool.task: pool.sha256 for pool in card.pools}
        for agent in card.agents:
            cells = {}
            for result in agent.tasks:
                column = (result.task, result.pool, checksums.get(result.task, ""))
                columns[column] = None
                look, sign, word = LOOKS[result.outcome]
                figures = [(judge.judge, judge.detectability.estimate.apart_from(0.5)) for judge in result.judges]
                calibrated = {row.judge for row in card.calibration if row.task == result.task}
                is_calibrated = all(judge.judge in calibrated for judge in result.judges)
                judged = max((judge.of_agent for judge in result.judges), default=0)
                of_stimuli = f"{judged:,} answers to {count(result.stimuli, 'stimulus', 'stimuli')} judged"
                cells[column] = (look, sign, word, figures, of_stimuli, is_calibrated)
            rows.append((agent.agent, quote(address), cells))
    order = [*TASK_NAMES]
    ordered = sorted(columns, key=lambda column: (order.index(column[0]), *column[1:]))
    versions = Counter((task, pool) for task, pool, _ in ordered)
    headings = []
    for task, pool, checksum in ordered:
        which = f"{pool} ({checksum[:8]})" if versions[task, pool] > 1 else pool
        headings.append((TASK_NAMES[task], which))
    table = [(name, address, [cells.get(column) for column in ordered]) for name, address, cells in rows]
    return render("judging.cards", "cards.html", title="Cards", headings=headings, rows=table)
