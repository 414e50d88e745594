"""What an agent's answers show of the server that wrote them: a server may say 200 and do something else than asked.

The user is told in the log, once for each thing: that replies repeat each other, and what the server ignores. Nothing
follows from it for the answers.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from serving.scheduling.under_way import UnderWay

LONG = 20  # characters of a text that is hardly drawn twice
WEIGHT = 5  # what a long text counts that is drawn twice; a short one counts 1
ENOUGH = 30  # the count that shows that a server draws nothing
QUESTIONS = 1000  # questions that are remembered for that
log = logging.getLogger("turinglike.scheduling")


class ServerReplies:
    """Looks at each answer of one agent. Most agents' answers come from no server, and tell nothing."""

    def __init__(self, agent: str) -> None:
        """``agent`` is the name in the log."""
        self._agent = agent
        self._repeats = RepeatedReplies()
        self._ignored: set[str] = set()  # as the user was told

    def note(self, request: UnderWay) -> None:
        """Tell the user what the replies to a request show that was not seen before."""
        replies = _written_by_server(request)
        if not replies:
            return
        if self._repeats.note(_question(request), replies):
            log.warning(
                "%s: the server's replies repeat each other: it draws nothing, or temperature is 0", self._agent
            )
        for _, raw in replies:
            for name in raw.get("ignored") or ():
                if name not in self._ignored:
                    log.warning("%s: the server ignores %s; `ignored` in records says where", self._agent, name)
                    self._ignored.add(name)


@dataclass
class RepeatedReplies:
    """Notices a server that draws nothing: the same question, asked with other seeds, has the same text each time. A
    word tells less than a long text: models are often sure of it."""

    shown: int = 0
    """How much speaks for it so far; -1 once the server has drawn something."""
    first: dict[bytes, tuple[int, str]] = field(default_factory=dict)
    """The seed and text of the first reply to each question."""

    def note(self, question: bytes, replies: Iterable[tuple[int, Mapping[str, Any]]]) -> bool:
        """Note the replies to a question, each with its seed, as records keep them. Returns True once, where all texts
        so far were equal."""
        if self.shown < 0 or self.shown >= ENOUGH:
            return False
        for seed, raw in replies:
            text = raw.get("text")
            if not isinstance(text, str) or not text.strip():
                continue
            if question not in self.first:
                if len(self.first) < QUESTIONS:
                    self.first[question] = seed, text
                continue
            first_seed, first_text = self.first[question]
            if seed == first_seed:
                continue
            if text != first_text:
                self.shown = -1
                self.first.clear()
                return False
            if len(text) >= LONG:
                self.shown += WEIGHT
            else:
                self.shown += 1
        return self.shown >= ENOUGH


def _question(under_way: UnderWay) -> bytes:
    """A hash, the same for the samples and attempts that ask the same."""
    request = under_way.request
    asked = orjson.dumps([request.name, request.turn, request.options], default=str)
    return hashlib.sha256(request.row.json + asked).digest()


def _written_by_server(under_way: UnderWay) -> list[tuple[int, dict[str, Any]]]:
    """Seed and raw reply of each attempt that a server's model wrote; nothing where none did."""
    attempts = under_way.attempts
    raws = [(attempt.seed, attempt.raw) for attempt in attempts] if attempts else []
    if not raws or attempts[-1].number != under_way.number:
        raws.append((under_way.seed, under_way.reply.raw))
    replies = []
    for seed, raw in raws:
        if raw is not None and b'"model":' in raw:  # most raws are of no server, and parsing takes its time
            fields = orjson.loads(raw)
            if isinstance(fields, dict) and "model" in fields:
                replies.append((seed, fields))
    return replies
