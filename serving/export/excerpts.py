"""The conversations that judges read: their first 3, 6, 9 … exchanges, each as a page and as text, and a separate key.

The folder ``OUT`` holds ``conv{N}_len{L}.html`` and ``conv{N}_len{L}.txt`` and nothing else: the first L exchanges
(messages) of conversation N, from its beginning. Whoever speaks first is A (dark blue), the other is B (crimson), as in
the papers, so that a letter tells nothing of the order of a pair. N follows the order of SHA-256(run seed, agent,
stimulus, sample); no file holds a name of a speaker, an agent, a model or a stimulus but what was said itself; all
files have one modification time. Who knows the run's seed and the names can work the order out again.

A conversation begins with the history that its stimulus gives, and with its opener. A length that shows nothing but
these has no file, nor has one for which there are too few messages.

A page stands alone (no request leaves it, and no script but its own may run in it), and is as the papers' experiment
wants it: in a frame it tells the page around it its height and width. Braces in it are written as character references,
as the papers' pages are templates of a server, in which "{{" would begin an expression. In a text each message begins a
line with its letter, and its further lines are indented.

``OUT.key.csv`` has one row per excerpt (:data:`COLUMNS`; the hashes are of the two files, so that a key is never taken
for that of another export).
"""

from __future__ import annotations

import base64
import hashlib
import io
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import orjson
from pydantic import Field, ValidationError, model_validator

from agents.answers import ConversationAnswer
from agents.stimuli import Task
from serving.conversations.scenario import SIDES, speaker_name
from serving.export.csv_rows import write_rows
from serving.export.registry import BlindedFormat, FormatOptions
from serving.export.selection import Record, Row, Selection, misfit
from serving.runs.display_text import count, esc
from serving.runs.output_paths import MODIFIED
from serving.runs.stimulus_lookup import StimulusLookup

TASK: Task = "conversation"
COLUMNS = (
    "file",
    "conversation",
    "exchanges",
    "agent",
    "kind",
    "stimulus",
    "benchmark_id",
    "sample",
    "topic",
    "a",
    "b",
    "a_name",
    "b_name",
    "given",
    "whole",
    "sha256_html",
    "sha256_txt",
)
SPEAKERS = "with more than two speakers"
INDENT = "   "

_STYLE = (
    "body{margin:8px;background:white;font-size:medium}p{margin:0 0 .25em}"
    ".A{color:darkblue}.B{color:crimson}bdi{white-space:pre-wrap;overflow-wrap:anywhere}"
)
_SCRIPT = (
    'addEventListener("load",()=>{const shown=document.documentElement;'
    'const size={height:shown.scrollHeight,width:shown.scrollWidth };top.postMessage(size,"*")})'
)


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


_HEAD = f"""<!DOCTYPE html>
<html>
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src {_hash(_STYLE)}; \
script-src {_hash(_SCRIPT)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Conversation</title>
<style>{_STYLE}</style>
<script>{_SCRIPT}</script>
</head>
<body>
"""
_TAIL = "</body>\n</html>\n"


class Excerpts(FormatOptions):
    """How conversations are cut: the first ``step``, 2 ``step`` … exchanges, at most ``longest``. The papers showed
    3, 6, 9 … 24."""

    step: int = Field(3, ge=1, description="the first so many exchanges, twice as many, …")
    longest: int = Field(24, ge=1, description="at most so many exchanges")

    @model_validator(mode="after")
    def _whole(self) -> Excerpts:
        if self.step > self.longest:
            raise ValueError(f"an excerpt of {self.step} exchanges is longer than the longest, {self.longest}")
        return self

    def lengths(self, given: int, whole: int) -> range:
        """The lengths that a conversation of ``whole`` messages is cut to, of which the first ``given`` are not its
        agents'."""
        first = (given // self.step + 1) * self.step
        return range(first, min(self.longest, whole) + 1, self.step)


@dataclass(frozen=True, slots=True)
class _Conversation:
    """One conversation: what the key says of it, and (letter, text) of its messages; the first ``given`` of them stand
    in the stimulus."""

    about: tuple[str, str, str, str | None, int, str | None]  # agent, kind, stimulus, benchmark_id, sample, topic
    agents: tuple[str, str]  # of A and B; "" for one whose messages are all given
    names: tuple[str, str]
    given: int
    messages: list[tuple[str, str]]

    def order(self, seed: int) -> bytes:
        """What the conversations are sorted by."""
        agent, _, stimulus, _, sample, _ = self.about
        return hashlib.sha256(orjson.dumps([seed, agent, stimulus, sample])).digest()


def write_conversations(chosen: Selection, folder: Path, key: BinaryIO, excerpts: Excerpts) -> dict[str, Any]:
    """Write the selected conversations' excerpts into ``folder`` and their key to ``key``; returns notes for the
    side-car. Raises InputError that names a record that is no conversation."""
    with StimulusLookup(chosen.folder) as stimuli:
        conversations = list(_conversations(chosen, excerpts, stimuli))
    seed = chosen.folder.meta.get("seed", 0)
    conversations.sort(key=lambda one: one.order(seed))
    text = io.TextIOWrapper(key, encoding="utf-8", newline="", write_through=True)
    rows = []
    lengths: dict[int, int] = {}
    for number, one in enumerate(conversations, start=1):
        for length in excerpts.lengths(one.given, len(one.messages)):
            name, messages = f"conv{number}_len{length}", one.messages[:length]
            hashes = [
                _write(folder / f"{name}{ending}", data)
                for ending, data in ((".html", as_page(messages)), (".txt", as_text(messages)))
            ]
            cut = (*one.agents, *one.names, min(one.given, length), len(one.messages))
            rows.append([name, number, length, *one.about, *cut, *hashes])
            lengths[length] = lengths.get(length, 0) + 1
    write_rows(text, COLUMNS, rows)
    text.detach()
    counts = {str(length): lengths[length] for length in sorted(lengths)}
    told = ", ".join(f"{length}: {pages:,}" for length, pages in counts.items())
    return {
        "conversations": {"count": len(conversations), **excerpts.model_dump(), "lengths": counts},
        "columns": list(COLUMNS),
        "remarks": [f"{count(len(conversations), 'conversation')}; excerpts by their number of exchanges: {told}"],
    }


def _write(path: Path, text: str) -> str:
    """Write a file that is as old as all others; returns its SHA-256."""
    data = text.encode()
    path.write_bytes(data)
    os.utime(path, (MODIFIED, MODIFIED))
    return hashlib.sha256(data).hexdigest()


def _conversations(chosen: Selection, excerpts: Excerpts, stimuli: StimulusLookup) -> Iterator[_Conversation]:
    """Every conversation of which there is something to show; the others are left out and counted."""
    begun = chosen.folder.agents()
    names = [name for name in chosen.machines() if name in begun and TASK in chosen.tasks(name)]
    for name in [*names, *chosen.folder.imports()]:
        for record in chosen.records(name, answers_to=TASK):
            one = _conversation(record, stimuli.get(record) or {})
            if one is None:
                chosen.leave_out(record, SPEAKERS)
            elif not excerpts.lengths(one.given, len(one.messages)):
                chosen.leave_out(record, f"with too few messages for an excerpt of {excerpts.step}")
            else:
                yield one


def _conversation(record: Record, row: Row) -> _Conversation | None:
    """A record's conversation, or None if more than two take part in it."""
    try:
        answer = ConversationAnswer.model_validate(record["answer"])
    except ValidationError as error:
        raise misfit(record, "answer", f"not a conversation: {error.errors()[0]['msg']}") from None
    raw = record["raw"] if isinstance(record["raw"], dict) else {}
    history = _history(record, row, raw.get("names") or row.get("names"))
    said = [*history, *((one.speaker, one.text) for one in answer.messages)]
    letters: dict[str, str] = {}
    for speaker, _ in said:
        letters.setdefault(speaker, "AB"[len(letters)] if len(letters) < 2 else "")
    if len(letters) > 2:
        return None
    agents = {one.speaker: one.agent for one in answer.messages}
    names = [*letters, "", ""][:2]
    topic = raw.get("topic") or row.get("topic")
    about = (record["agent"], record["kind"], record["stimulus"], row.get("benchmark_id"), record["sample"], topic)
    return _Conversation(
        about=about,
        agents=(agents.get(names[0], ""), agents.get(names[1], "")),
        names=(names[0], names[1]),
        given=len(history) + bool(answer.messages and answer.messages[0].finish == "opener"),
        messages=[(letters[speaker], text) for speaker, text in said],
    )


def _history(record: Record, row: Row, names: Any) -> list[tuple[str, str]]:
    names = names if isinstance(names, list) and len(names) == len(SIDES) else None
    try:
        return [(speaker_name(str(one["speaker"]), names), str(one["text"])) for one in row.get("history") or ()]
    except (KeyError, TypeError):
        raise misfit(record, "stimulus", "its history is no list of messages") from None


def as_page(messages: list[tuple[str, str]]) -> str:
    """Messages as a page of their own."""
    said = [f'<p class="{letter}">{letter}: <bdi>{_escaped(text)}</bdi></p>\n' for letter, text in messages]
    return f"{_HEAD}{''.join(said)}{_TAIL}"


def _escaped(text: str) -> str:
    return esc(text, len(text)).replace("{", "&#123;").replace("}", "&#125;")


def as_text(messages: list[tuple[str, str]]) -> str:
    """Messages one after the other. No line but a message's first begins with a letter and a colon."""
    further = f"\n{INDENT}"
    return "".join(f"{letter}: {further.join(text.splitlines())}\n" for letter, text in messages)


EXCERPTS = BlindedFormat(
    write_conversations,
    re.compile(r"conv\d+_len\d+\.(?:html|txt)"),
    "excerpt of a conversation",
    "conversations",
    Excerpts,
)
