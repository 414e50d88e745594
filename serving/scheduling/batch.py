"""What a dispatcher hands to a worker and gets back: batches of requests and replies.

Within a process these are the tuples below. To a worker of its own process they travel as plain tuples of bytes and
numbers (:func:`sent` and :func:`received`): pickling a plain tuple takes a thirtieth of the time of a named one, and
there are thousands a second.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from serving.scheduling.request import Listener
from serving.sets.kinds import Kind
from serving.sets.stimulus_row import StimulusRow

Listeners = Mapping[int, Listener]
"""The listeners of a batch, by the places of their requests in it."""
NOBODY: Listeners = {}
"""Nobody listens."""


class PackedRequest(NamedTuple):
    """What a worker must know of a request."""

    row: StimulusRow
    """The stimulus; its pictures are looked for where the row says."""
    seed: int
    """The attempt's seed."""
    sample: int = 0
    """The number of the answer to this stimulus."""
    attempt: int = 0
    """The number of the attempt, from 0 in each request."""
    options: Mapping[str, Any] | None = None
    """The agent's ``Draw.options``."""


class PackedReply(NamedTuple):
    """What a worker made of a request."""

    code: str | None
    """The failure's code; None for an answer."""
    content: bytes | str
    """The answer as JSON in bytes, or the failure's message as text."""
    raw: bytes | None = None
    """The agent's raw output as JSON."""
    sha256: str | None = None
    """Of what the agent saw; None where it could not be read."""
    preparing: float = 0.0
    """Seconds of preparing."""
    is_blank: bool = False
    """Whether the answer is a word or text with nothing to see in it."""


NO_REPLY = PackedReply("", "")
"""In place of a reply that is still to come."""


@dataclass(slots=True)
class BatchReply:
    """The replies to a batch, in its order."""

    replies: list[PackedReply]
    """One for each request."""
    responding: float
    """Seconds in the agent."""
    size: int
    """The largest number of stimuli answered at once."""
    limit: int | None = None
    """The largest batch that fits, where memory ran out; None where it did not."""


SentRequest = tuple[str, Kind, bytes, Mapping[str, bytes] | None, int, int, int, Mapping[str, Any] | None]
"""A :class:`PackedRequest` between processes: the row's id, kind, JSON and files, then the other fields."""
SentReply = tuple[list[tuple[Any, ...]], float, int, int | None]
"""A :class:`BatchReply` between processes: its fields, with replies as plain tuples."""


def sent(batch: Iterable[PackedRequest]) -> tuple[SentRequest, ...]:
    """A batch for another process, as one tuple: of a list Ray would pickle each item alone."""
    return tuple(
        (row.id, row.kind, row.json, row.files, seed, sample, attempt, options)
        for row, seed, sample, attempt, options in batch
    )


def received(batch: Sequence[SentRequest], root: str) -> list[PackedRequest]:
    """A batch from another process; pictures that did not come along are looked for below ``root``."""
    return [
        PackedRequest(StimulusRow(id, kind, json, 0, root, files), seed, sample, attempt, options)
        for id, kind, json, files, seed, sample, attempt, options in batch
    ]


def reply_sent(reply: BatchReply) -> SentReply:
    """A reply for another process."""
    return [tuple(packed) for packed in reply.replies], reply.responding, reply.size, reply.limit


def reply_received(reply: SentReply) -> BatchReply:
    """A reply from another process."""
    replies, responding, size, limit = reply
    return BatchReply([PackedReply._make(packed) for packed in replies], responding, size, limit)


def in_loop(listeners: Listeners) -> Listeners:
    """The same listeners for other threads, called in the running loop."""
    loop = asyncio.get_running_loop()

    def call(listener: Listener, text: str) -> None:
        loop.call_soon_threadsafe(listener, text)

    return {place: partial(call, listener) for place, listener in listeners.items()}
