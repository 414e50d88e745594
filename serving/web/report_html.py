"""The parts of the report's page around the answers: head, provenance, counts, alarms, failures, sections."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from agents import catalogue
from agents.errors import InputError
from serving.runs.display_text import as_json, code, count, details, esc, pairs, plain_fields, said, share, table
from serving.web import report_alarms
from serving.web.report_answers import Picture, chat, render

TASK_NAMES = {
    "color_estimation": "Colour estimation",
    "object_detection": "Object detection",
    "attention_prediction": "Attention prediction",
    "image_captioning": "Image captioning",
    "word_association": "Word association",
    "conversation": "Conversation",
    "judgement": "Judgement",
}
IN_PAPER = {"compared": "the papers' agent", "variant": "a variant of the papers' agent", "no": "not in the papers"}
PLAIN = {
    "missing_image": "The image file was not there when the agent asked for it.",
    "bad_image": "The file is not an image whose pixels can be decoded.",
    "image_too_large": "The image is larger than what is decoded.",
    "invalid_stimulus": "The stimulus itself was wrong, and was passed over on request.",
    "out_of_memory": "The device had not enough memory, even for this stimulus alone.",
    "prepare_failed": "The agent raised an error while it prepared this stimulus.",
    "respond_failed": "The agent raised an error while it answered this stimulus.",
    "bad_target": "The target of the search could not be used.",
    "no_target_image": "The agent looks for a picture, and the stimulus shows none.",
    "bad_map": "The agent's saliency map had values that are no numbers.",
    "bad_logits": "The model's output for this stimulus was no number, so that no text could be chosen.",
    "bad_output": "The model's output for this stimulus was no number, so that no box could be chosen.",
    "too_few_beams": "More answers to one stimulus were asked for than the beam search has beams.",
    "image_too_narrow": "The image is so narrow that nothing would be left of it once it is resized.",
    "unknown_cue": "The agent has no word of the cue.",
    "unparsable": "The model's reply could not be read as an answer.",
    "filtered": "The server's own filter withheld the reply.",
    "no_absent_object": "A catch trial needs an object that is not in the picture, and the stimulus names none.",
    "server_auth": "The server did not accept the key.",
    "server_refused": "The server refused the request.",
    "server_busy": "The server would not answer, though it was asked again.",
    "server_timeout": "The server gave no reply in time, though it was asked again.",
    "server_bad_reply": "The server's reply could not be read.",
    "server_unreachable": "The server could not be reached, or the connection broke.",
    "worker_failed": "The process that hosted the agent failed on this stimulus.",
    "worker_died": "The process that hosted the agent died on this stimulus, again and again.",
    "timeout": "The agent gave no answer in the time it had.",
    "deadline": "There was no answer before the time was over.",
    "bad_agent": "The agent broke its contract: it replied with something else than an answer to this task.",
}
# Nothing may be loaded from anywhere, and nothing runs: the page is a document.
STYLE = resources.files("serving.web").joinpath("report.css").read_text("utf-8")
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"

GENERATOR = '<meta name="generator" content="Turinglike">'  # by which a page of ours is known again


@dataclass(slots=True)
class Tally:
    """Counts of one agent's records. ``expected`` is None where nothing says how many there should be."""

    kind: str
    ok: int = 0
    rejected: int = 0
    failed: int = 0
    attempts: int = 0
    expected: int | None = None
    names: set[str] = field(default_factory=set)

    @property
    def total(self) -> int:
        return self.ok + self.rejected + self.failed


@dataclass(slots=True)
class Failures:
    """Failed records of one agent with one code: how many, and the first as an example."""

    count: int
    stimulus: str
    message: str


def head(title: str) -> str:
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'{GENERATOR}<meta name="referrer" content="no-referrer"><meta name="robots" content="noindex">'
        f"<title>{esc(title, 200)}</title><style>{STYLE}</style></head><body>\n"
        '<a class="skip" href="#answers">Skip to the answers</a>\n'
    )


def provenance(meta: Mapping[str, Any], made: str, version: str) -> str:
    """The box that says what was asked of whom, with which seed, when, and with which software."""
    stimuli = meta.get("set") or {}
    rows = [
        ("run", code(meta.get("run"))),
        ("made", f"{esc(meta.get('created', 'unknown'))} by Turinglike {esc(meta.get('turinglike', 'unknown'))}"),
        ("seed", code(meta.get("seed"))),
        ("samples per stimulus", esc(meta.get("samples", 1))),
    ]
    if stimuli:
        amount = stimuli.get("count")
        shown = f"{count(amount, 'stimulus', 'stimuli')} from " if isinstance(amount, int) else ""
        rows.append(("set", f"{shown}{code(stimuli.get('source'))}, SHA-256 {code(stimuli.get('sha256'))}"))
    rows.append(("this page", f"{esc(made)} by Turinglike {esc(version)}"))
    agents = meta.get("agents") or {}
    cards = "".join(_agent(name, agent) for name, agent in agents.items())
    return (
        f'<section aria-labelledby="provenance"><h2 id="provenance">Provenance</h2>{pairs(rows)}'
        f'<div class="agents">{cards}</div></section>\n'
    )


def _agent(name: str, agent: Mapping[str, Any]) -> str:
    badges, about = [], []
    if agent.get("kind") == "control":
        badges.append('<span class="badge warn">control: odd by design</span>')
    if random_weights(agent):
        badges.append('<span class="badge alert">RANDOM WEIGHTS</span>')
    for part in dict.fromkeys(name.split("~")):
        try:
            entry = catalogue.get(part)
        except InputError:
            badges.append(f'<span class="badge">{esc(part, 80)} is not in this catalogue</span>')
            continue
        css = "badge good" if entry.in_paper == "compared" else "badge"
        badges.append(f'<span class="{css}">{IN_PAPER[entry.in_paper]}</span>')
        about.append(f'<p class="small">{esc(entry.summary)} ({esc(entry.source)})</p>')
    tasks = agent.get("task")
    tasks = tasks if isinstance(tasks, list) else [tasks]
    checkpoint = agent.get("checkpoint")
    revision = agent.get("revision")
    versions = agent.get("versions") or {}
    rows = [
        ("task", esc(", ".join(TASK_NAMES.get(task, str(task)) for task in tasks))),
        ("checkpoint", (code(checkpoint) + (f" at {code(revision)}" if revision else "")) if checkpoint else "none"),
        ("digest", code(str(agent.get("digest"))[:16])),
    ]
    if agent.get("samples", 1) != 1:
        rows.append(("samples", esc(agent.get("samples"))))
    if versions and isinstance(versions, dict):
        rows.append(("versions", esc(", ".join(f"{package} {version}" for package, version in versions.items()))))
    folded = details("Settings", as_json(agent.get("settings"), 20_000))
    if agent.get("provenance"):
        folded += details("More provenance", as_json(agent["provenance"], 20_000))
    folded += details("Whole digest", code(agent.get("digest")))
    title = f"<h3>{esc(name, 200)} {' '.join(badges)}</h3>"
    return f'<article class="card">{title}{"".join(about)}{pairs(rows)}{folded}</article>'


def random_weights(agent: Mapping[str, Any]) -> bool:
    """Whether ``run.json`` says of an agent that its weights are random: ``random_weights: true`` or
    ``weights: "random"`` in its provenance or its settings."""
    for part in (agent.get("provenance"), agent.get("settings")):
        if isinstance(part, dict) and (part.get("random_weights") is True or part.get("weights") == "random"):
            return True
    return False


def summary(tallies: Mapping[tuple[str, str], Tally]) -> str:
    """The table of counts, one row per (agent, task)."""
    if not tallies:
        return '<section aria-labelledby="counts"><h2 id="counts">Counts</h2><p>There is no record yet.</p></section>'
    rows = []
    for (name, task), tally in tallies.items():
        unanswered = "–" if tally.expected is None else f"{max(tally.expected - tally.total, 0):,}"
        who = f"people ({count(len(tally.names), 'participant')})" if tally.kind == "human" else esc(name, 200)
        failed = f'<strong class="bad">{tally.failed:,}</strong>' if tally.failed else "0"
        tries = f"{(tally.attempts + tally.total) / tally.total:.2f}" if tally.total else "–"
        rows.append(
            [
                who,
                TASK_NAMES.get(task, esc(task)),
                f"{tally.ok:,} ({share(tally.ok, tally.total)})",
                f"{tally.rejected:,}",
                failed,
                unanswered,
                tries,
                esc(tally.kind),
            ]
        )
    columns = ["agent", "task", "ok", "rejected", "failed", "unanswered", "attempts per answer", "kind"]
    return (
        '<section aria-labelledby="counts"><h2 id="counts">Counts</h2>'
        f"{table(columns, rows, 'Records by agent')}</section>\n"
    )


def failures(found: Mapping[tuple[str, str], Failures]) -> str:
    if not found:
        return ""
    rows = [
        [
            code(error) + (f"<br><small>{PLAIN[error]}</small>" if error in PLAIN else ""),
            esc(agent, 200),
            f"{item.count:,}",
            f"{code(item.stimulus)}: {said(item.message, 400)}",
        ]
        for (agent, error), item in found.items()
    ]
    return (
        '<section aria-labelledby="failures"><h2 id="failures">Failures</h2>'
        f"{table(['code', 'agent', 'records', 'first example'], rows, 'Failed records by code')}</section>\n"
    )


def alarms(found: Sequence[report_alarms.Alarm], compared: Mapping[tuple[str, str], int]) -> str:
    """What was found, or that nothing was; and in either case what was looked for."""
    parts = ['<section aria-labelledby="alarms"><h2 id="alarms">Alarms</h2>']
    for alarm in found[:200]:
        example = f" Example: {said(alarm.example, 200)}." if alarm.example else ""
        parts.append(
            f'<div class="box-notice bad"><strong>{esc(alarm.kind.capitalize())}.</strong> '
            f"{esc(alarm.sentence)}{example}</div>"
        )
    few = [f"{agent} ({task})" for (agent, task), number in compared.items() if number < report_alarms.LEAST]
    if not found:
        parts.append("<p>None.</p>" if compared else "<p>There are no answers to look at.</p>")
    if few:
        parts.append(f"<p>Too few answers to say anything: {esc(', '.join(few[:20]))}.</p>")
    parts.append(
        '<p class="note">Looked for, among answers of machines to the first '
        f"{report_alarms.LOOKED_AT:,} stimuli of each task, from {report_alarms.LEAST} on: two agents that give the "
        f"same answer to at least {report_alarms.TWINS:.0%} of the stimuli that both answered; one answer to at least "
        f"{report_alarms.MONOTONE:.0%} of the stimuli; a path of {report_alarms.SHORTEST_PATH} or more fixations that "
        f"is the same for different pictures, at least {report_alarms.SAME_PATH:.0%} of them. An alarm is a reason to "
        "look, not a verdict.</p></section>\n"
    )
    return "".join(parts)


def card(record: Mapping[str, Any], stimulus: Mapping[str, Any], picture: Picture | None) -> str:
    """One record: the answer, or how there came to be none; rejected attempts and particulars folded away."""
    status, task = str(record["status"]), str(record["task"])
    badges = []
    if record.get("sample"):
        badges.append(f'<span class="badge">sample {esc(record["sample"])}</span>')
    if record.get("kind") != "machine":
        badges.append(f'<span class="badge">{esc(record.get("kind"))}</span>')
    body = ""
    if status == "failed":
        error = record.get("error") or {}
        name = str(error.get("code"))
        plain = f"<p>{PLAIN[name]}</p>" if name in PLAIN else ""
        body = (
            f'<p class="bad"><strong>Failed</strong> {code(name)}</p>{plain}'
            f'<p class="small">{said(error.get("message"), 600)}</p>'
        )
    elif status == "rejected":
        body = '<p><span class="badge warn">rejected</span> No attempt passed the filters.</p>'
    if status != "failed" and record.get("answer") is not None:
        body += render(task, record["answer"], stimulus, picture)
    attempts = record.get("attempts") or []
    noted = [attempt for attempt in attempts if _is_noted(attempt)]
    rejected = [attempt for attempt in attempts if not _is_noted(attempt)]
    for listed, one, many in (
        (rejected, "rejected attempt", "rejected attempts"),
        (noted, "attempt that filters noted something in", "attempts that filters noted something in"),
    ):
        if listed:
            rows = "".join(f"<li>{_attempt(attempt, task)}</li>" for attempt in listed[:20])
            more = f"<p>and {len(listed) - 20:,} more</p>" if len(listed) > 20 else ""
            body += details(count(len(listed), one, many), f"<ol>{rows}</ol>{more}")
    if record.get("raw") is not None:
        body += details("Raw", as_json(record["raw"]))
    body += _particulars(record)
    return (
        f'<article class="card {esc(status)}"><h5>{esc(record["agent"], 200)} {" ".join(badges)}</h5>{body}</article>'
    )


def _is_noted(attempt: Any) -> bool:
    """Whether filters let the attempt be: what it says stands in the answer, or in a conversation begun anew."""
    verdicts = (attempt.get("verdicts") if isinstance(attempt, dict) else None) or []
    return bool(verdicts) and not any(isinstance(item, dict) and item.get("rejected") for item in verdicts)


def _attempt(attempt: Any, task: str) -> str:
    if not isinstance(attempt, dict):
        return as_json(attempt)
    verdicts = [
        f"{code(item.get('filter'))}: {said(item.get('found'), 300)}"
        for item in attempt.get("verdicts") or []
        if isinstance(item, dict)
    ]
    turn = "" if attempt.get("turn") is None else f"turn {esc(attempt['turn'])}: "
    answer = attempt.get("answer")
    if _is_noted(attempt):
        shown = ""
    elif attempt.get("turn") is None and task != "conversation" and isinstance(answer, dict):
        shown = render(task, answer, {}, None)
    elif isinstance(answer, dict) and isinstance(answer.get("messages"), list):
        shown = chat([message for message in answer["messages"] if isinstance(message, dict)])
    else:
        shown = as_json(answer.get("text") if isinstance(answer, dict) else answer)
    return f"{turn}{'; '.join(verdicts)}{shown}"


def _particulars(record: Mapping[str, Any]) -> str:
    rows = [("seed", code(record["seed"]))] if record.get("seed") is not None else []
    rows += [("made", esc(record["created"]))] if record.get("created") else []
    for name in ("timing", "worker"):
        if isinstance(record.get(name), dict):
            rows.append(
                (name, esc(", ".join(f"{key} {value}" for key, value in record[name].items()).replace("_", " ")))
            )
    return details("Particulars", pairs(rows)) if rows else ""


def stimulus_heading(row: Mapping[str, Any]) -> str:
    task = str(row.get("task"))
    name = TASK_NAMES.get(task, task)
    fields = plain_fields(row, ("id", "task", "image", "meta", "source", "source_id", "history"))
    body = pairs(fields) if fields else ""
    history = row.get("history")
    if isinstance(history, list) and history:
        messages = [message for message in history if isinstance(message, dict)]
        body += details(f"{count(len(messages), 'message')} before", chat(messages))
    return f"<h4>{esc(name)} {code(row.get('id'))}</h4>{body}"


def picture(shown: Picture, url: str, name: str) -> str:
    """The picture itself; drawings on it refer to its image element, so that the page holds it once."""
    size = f"{shown.width} × {shown.height} pixels"
    return (
        f'<svg class="canvas" viewBox="0 0 {shown.width} {shown.height}" role="img" '
        f'aria-label="The picture {esc(name, 300)}, {size}"><image id="{shown.element}" href="{url}" '
        f'width="{shown.width}" height="{shown.height}" preserveAspectRatio="none"/></svg>'
        f'<p class="small">{size}</p>'
    )


def section(number: int, title: str, left: str, asked: Iterable[str], css: str) -> str:
    """One picture (or cue, or conversation) with everything that was asked about it."""
    mark = f"s{number}"
    return (
        f'<section class="shown {css}" id="{mark}" aria-labelledby="{mark}-t"><h3 id="{mark}-t">{esc(title, 300)}</h3>'
        f'<div class="picture">{left}</div><div class="asked">{"".join(asked)}</div></section>\n'
    )


def jump(titles: Sequence[str]) -> str:
    links = "".join(f'<li><a href="#s{number}">{esc(title, 80)}</a></li>' for number, title in enumerate(titles, 1))
    listed = f'<ul class="jump">{links}</ul>'
    return f'<nav aria-label="All that is shown">{details("Jump to", listed)}</nav>'
